//! The content of a comparison report, rounded and formatted as text.

use std::collections::{BTreeMap, BTreeSet};

use super::words;
use crate::analysis::comparison::{
    Comparison, ComparisonMethod, Comparisons, Evidence, FigureScale, NOT_POSSIBLE, Quantity, QuestionScope, RunGroup,
    RunGroups, UndecidedReason, Verdict,
};
use crate::analysis::{ChangeGateResult, GateReason};
use crate::diagnostics::Caveat;
use crate::plan::{Factors, common_levels, level_words, levels_words};
use crate::summary_view::caveat_views;
use crate::units::human::{self, ABSENT, counted, listed};
use crate::view::{ColumnView, GroupView, Part, ReportView, RowView, TableView};

/// The report of comparisons and gates; with `explain` each verdict says how it was found.
pub fn parts(comparisons: &Comparisons, gates: &[ChangeGateResult], explain: bool) -> ReportView {
    let names = GroupNames::of(comparisons);
    let with_metric = several_metrics(&comparisons.rows);
    let changes = names.table(&comparisons.rows, Rows { with_metric, is_judged: true, explain });
    let shifts = names.table(&comparisons.shifts, Rows { with_metric, is_judged: false, explain: false });
    let gates = gates.iter().map(|gated| gate(gated, Some(comparisons)));
    let is_other = |caveat: &&Caveat| caveat.code != NOT_POSSIBLE;
    let caveats: Vec<Caveat> = comparisons.caveats.iter().filter(is_other).cloned().collect();
    let mut parts = vec![Part::Heading(heading(comparisons, &names))];
    parts.extend(names.common_line(&comparisons.rows).map(|common| Part::Notes(vec![common])));
    parts.extend(changes.map(Part::Table));
    let title = "along the distribution (intervals, no verdicts)";
    parts.extend(shifts.map(|shifts| Part::Details(title.into(), vec![Part::Table(shifts)])));
    parts.push(Part::Notes(gates.chain(footnotes(comparisons, &names, explain)).collect()));
    parts.push(Part::Caveats(caveat_views(&caveats)));
    parts
}

/// What is shown of compared rows.
#[derive(Clone, Copy)]
struct Rows {
    with_metric: bool,
    is_judged: bool,
    explain: bool,
}

/// How groups are named: by what distinguishes them.
struct GroupNames<'a> {
    groups: &'a RunGroups,
    /// Whether the compared groups are conditions of several factors; otherwise they have names only.
    by_factors: bool,
    /// Whether the names of a publication are lists that can stand for factors: `10 ms, idle, select`.
    by_parts: bool,
    /// The levels that all compared groups have in common.
    common: Factors,
}

struct PairNames {
    /// What distinguishes its groups: `select → poll`.
    contrast: String,
    /// The same behind a comparative: ``with load `cpu=80%` than with `none` ``.
    sentence: String,
    /// ` (2 factors differ)`; empty if one does.
    several: String,
    /// The levels that its groups have in common, but other groups do not.
    shared: Factors,
}

/// A row with the levels that its groups share, and its notes.
type ContrastRow<'a> = (&'a Comparison, Factors, Vec<String>);

impl<'a> GroupNames<'a> {
    fn of(comparisons: &'a Comparisons) -> GroupNames<'a> {
        let groups = &comparisons.groups;
        let rows = || comparisons.rows.iter().chain(&comparisons.shifts);
        let compared: BTreeSet<usize> = rows().flat_map(|row| [row.baseline, row.candidate]).collect();
        let compared: Vec<&RunGroup> = compared.into_iter().map(|index| &groups.groups[index]).collect();
        let by_factors = compared.iter().all(|group| group.has_factors());
        // Each of a pair has parts that the other lacks.
        let has_own = |one: usize, other: usize| {
            let [one, other] = [one, other].map(|index| parts_of(&groups.groups[index]));
            one.values().any(|part| !other.values().any(|own| own == part))
        };
        let by_parts = groups.of_publication
            && rows().all(|row| has_own(row.baseline, row.candidate) && has_own(row.candidate, row.baseline));
        let names = GroupNames { groups, by_factors, by_parts, common: Factors::new() };
        let levels: Vec<Factors> =
            compared.iter().filter(|_| by_factors || by_parts).map(|group| names.levels(group)).collect();
        GroupNames { common: common_levels(&levels.iter().collect::<Vec<_>>()), ..names }
    }

    /// The levels of `group`, or the parts of its name.
    fn levels(&self, group: &RunGroup) -> Factors {
        if self.by_parts { parts_of(group) } else { group.levels.clone() }
    }

    /// A level, with its factor if another factor has the same level.
    fn word(&self, factor: &str, level: &str) -> String {
        if self.by_parts {
            return level.to_owned();
        }
        let mut all = self.groups.groups.iter().flat_map(|group| &group.levels);
        if all.any(|(other, same)| other != factor && same == level) {
            format!("{factor}={level}")
        } else {
            level_words(factor, level)
        }
    }

    /// A level that stands beside other ones of its factor: with its factor if one of these is.
    fn word_in_row(&self, factor: &str, level: &str) -> String {
        let mut levels = self.groups.groups.iter().filter_map(|group| group.levels.get(factor));
        if levels.any(|other| level_words(factor, other) != *other) {
            format!("{factor}={level}")
        } else {
            self.word(factor, level)
        }
    }

    fn words(&self, levels: &Factors) -> String {
        levels.iter().map(|(factor, level)| self.word(factor, level)).collect::<Vec<_>>().join(", ")
    }

    /// Formats as ``all with tcp; each compared with `load=none, size=64` ``.
    fn common_line(&self, rows: &[Comparison]) -> Option<String> {
        let common = (!self.common.is_empty()).then(|| format!("all with {}", self.words(&self.common)));
        let baseline = self.only_baseline(rows).map(|baseline| format!("each compared with `{baseline}`"));
        let parts: Vec<String> = common.into_iter().chain(baseline).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The baseline of all `rows`, if some of them differ from it in several factors.
    fn only_baseline(&self, rows: &[Comparison]) -> Option<String> {
        let mut compared = rows.iter().filter(|row| !lacks_runs(row));
        let first = compared.next()?;
        let is_alike = compared.all(|row| row.baseline == first.baseline);
        let is_mixed = self.by_factors && rows.iter().any(|row| self.differing(row) > 1);
        let are_several = rows.iter().any(|row| row.candidate != first.candidate);
        let levels = self.groups.groups[first.baseline].levels.iter();
        let own = levels.filter(|(factor, _)| !self.common.contains_key(*factor));
        let words: Vec<String> = own.map(|(factor, level)| format!("{factor}={level}")).collect();
        (is_alike && is_mixed && are_several).then(|| words.join(", "))
    }

    /// The number of factors in which the groups of `row` differ.
    fn differing(&self, row: &Comparison) -> usize {
        let [baseline, candidate] = [row.baseline, row.candidate].map(|index| &self.groups.groups[index].levels);
        baseline.iter().filter(|(factor, level)| candidate.get(*factor) != Some(*level)).count()
    }

    fn pair(&self, row: &Comparison) -> PairNames {
        let [baseline, candidate] = [row.baseline, row.candidate].map(|index| &self.groups.groups[index]);
        if !self.by_factors && !self.by_parts {
            let [baseline, candidate] = [baseline, candidate].map(RunGroup::words);
            return PairNames {
                contrast: format!("{baseline} → {candidate}"),
                sentence: format!("with `{candidate}` than with `{baseline}`"),
                several: String::new(),
                shared: Factors::new(),
            };
        }
        let [of_baseline, of_candidate] = [baseline, candidate].map(|group| self.levels(group));
        let differs = |factor: &str| of_baseline.get(factor) != of_candidate.get(factor);
        let own =
            |levels: &Factors| self.words(&levels.clone().into_iter().filter(|(factor, _)| differs(factor)).collect());
        let is_shared = |factor: &str| !differs(factor) && !self.common.contains_key(factor);
        let factors: Vec<String> = baseline.levels.keys().filter(|factor| differs(factor)).cloned().collect();
        // Parts of a publication's name belong to no factor.
        let of = if factors.is_empty() || self.by_parts { String::new() } else { listed(&factors) + " " };
        let [baseline_words, candidate_words] = [own(&of_baseline), own(&of_candidate)];
        let several = match self.differing(row) {
            _ if self.by_parts => String::new(),
            0 | 1 => String::new(),
            factors => format!(" ({factors} factors differ)"),
        };
        PairNames {
            sentence: format!("with {of}`{candidate_words}` than with `{baseline_words}`"),
            contrast: format!("{baseline_words} → {candidate_words}"),
            several,
            shared: of_baseline.clone().into_iter().filter(|(factor, _)| is_shared(factor)).collect(),
        }
    }

    /// The rows whose groups have runs, by contrast in order of first occurrence; `None` without any.
    fn table(&self, rows: &[Comparison], showing: Rows) -> Option<TableView> {
        let mut contrasts: Vec<(String, Vec<ContrastRow<'_>>)> = Vec::new();
        let (mut known, mut given) = (BTreeMap::new(), BTreeSet::new());
        for row in rows.iter().filter(|row| !lacks_runs(row)) {
            let PairNames { contrast, several, shared, .. } = self.pair(row);
            let contrast = contrast + &several;
            let index = *known.entry(contrast.clone()).or_insert(contrasts.len());
            if index == contrasts.len() {
                contrasts.push((contrast, Vec::new()));
            }
            contrasts[index].1.push((row, shared, notes(row, showing, &mut given)));
        }
        let is_single = are_of_one_quantity(rows);
        let (mut views, mut shown) = (Vec::new(), Vec::new());
        for (contrast, own) in contrasts {
            let common = common_levels(&own.iter().map(|(_, levels, _)| levels).collect::<Vec<_>>());
            let section = if common.is_empty() { contrast } else { format!("{contrast}, {}", self.words(&common)) };
            for (row, levels, notes) in own {
                let levels = levels.iter().filter(|(factor, _)| !common.contains_key(*factor));
                let mut levels: Vec<String> = levels.map(|(factor, level)| self.word_in_row(factor, level)).collect();
                // The heading names a single statistic.
                if levels.is_empty() || !is_single {
                    levels.push(row_label(row, showing.with_metric));
                }
                let label = levels.pop().unwrap_or_default();
                views.push(RowView { label, levels, notes, section: section.clone(), quiet: false });
                shown.push(row);
            }
        }
        let changes = shown.iter().map(|row| words::change(row));
        let figures = vec![
            ColumnView::figures("baseline", shown.iter().map(|row| centre(row, |centres| centres.0))),
            ColumnView::figures("candidate", shown.iter().map(|row| centre(row, |centres| centres.1))),
            ColumnView::words("change", changes),
        ];
        let judgement = vec![
            ColumnView::words("verdict", shown.iter().map(|row| words::verdict(row))),
            ColumnView::figures("p", shown.iter().map(|row| words::p_value(row.deciding_p_value()))),
        ];
        let judgement = Some(GroupView::plain(judgement)).filter(|_| showing.is_judged);
        let groups = std::iter::once(GroupView::plain(figures)).chain(judgement).collect();
        (!views.is_empty()).then(|| TableView { rows: views, groups, ..TableView::default() })
    }

    /// The factors in which pairs of `rows` differ: `interval, load and via`.
    fn factors(&self, rows: &[Comparison]) -> Option<String> {
        if !self.by_factors && !self.by_parts {
            return self.groups.factor.clone();
        }
        let levels = |index: usize| &self.groups.groups[index].levels;
        let of_row = |row: &Comparison| {
            let [baseline, candidate] = [row.baseline, row.candidate].map(levels);
            baseline.keys().filter(|factor| baseline.get(*factor) != candidate.get(*factor)).collect::<Vec<_>>()
        };
        let factors: BTreeSet<&String> = rows.iter().flat_map(of_row).collect();
        let factors: Vec<String> = factors.into_iter().cloned().collect();
        (!factors.is_empty()).then(|| listed(&factors))
    }

    /// The levels of `group` that distinguish it, without that of the load `name`.
    fn beside_load(&self, group: &RunGroup, name: &str) -> String {
        if !self.by_factors {
            return group.words();
        }
        let levels = group.levels.clone().into_iter();
        let is_own = |(factor, level): &(String, String)| level != name && !self.common.contains_key(factor);
        self.words(&levels.filter(is_own).collect())
    }
}

/// The parts of the name of `group`, by their places from the end, so that lists of several lengths have the same ends.
fn parts_of(group: &RunGroup) -> Factors {
    let name = group.words();
    let parts: Vec<&str> = name.split(", ").collect();
    let place = |index: usize| format!("{:02}", 99 - (parts.len() - index).min(99));
    parts.iter().enumerate().map(|(index, part)| (place(index), (*part).to_owned())).collect()
}

/// Whether a group of `row` has no run that can be judged.
pub(crate) fn lacks_runs(row: &Comparison) -> bool {
    matches!(row.undecided, Some(UndecidedReason::NoRun { .. }))
}

/// The reason that all of `rows` share whose groups have runs; `None` if one of them has another reason, or does not need one.
pub(crate) fn shared_reason(rows: &[Comparison]) -> Option<String> {
    let mut reasons = rows.iter().filter(|row| !lacks_runs(row)).map(words::reason);
    let first = reasons.next()??;
    reasons.all(|reason| reason.as_ref() == Some(&first)).then_some(first)
}

fn are_of_one_quantity(rows: &[Comparison]) -> bool {
    rows.windows(2).all(|pair| pair[0].quantity == pair[1].quantity)
}

/// The mean of the baseline or of the candidate.
fn centre(row: &Comparison, of: fn((f64, f64)) -> f64) -> String {
    let Some(centres) = row.centres else { return ABSENT.into() };
    let typical = if centres.0.is_finite() { centres.0 } else { centres.1 };
    words::figure(row.quantity, of(centres), typical)
}

/// Why a row is undecided, what would decide it, and how it was judged. A reason is `given` once.
fn notes(row: &Comparison, showing: Rows, given: &mut BTreeSet<String>) -> Vec<String> {
    if !showing.is_judged {
        return Vec::new();
    }
    let reason = words::reason(row).filter(|reason| row.undecided.is_none() || given.insert(reason.clone()));
    reason.into_iter().chain(showing.explain.then(|| explanation(row))).collect()
}

/// The name of the statistic of `row`, with its metric if there are several: `round_trip_delay p99`.
pub(crate) fn row_label(row: &Comparison, with_metric: bool) -> String {
    if with_metric && row.quantity.metric().is_some() {
        format!("{} {}", row.quantity.metric_name(), row.quantity.label())
    } else {
        row.quantity.label()
    }
}

/// The names of all `groups` beside each other: of conditions without the levels that all those with runs have in common.
pub fn names_of_groups(groups: &RunGroups) -> Vec<String> {
    let with_runs = groups.groups.iter().filter(|group| !group.runs.is_empty()).map(|group| &group.levels);
    let common = common_levels(&with_runs.collect::<Vec<_>>());
    let by_factors = groups.groups.iter().all(RunGroup::has_factors);
    let words = |group: &RunGroup| {
        let mut own = group.levels.clone();
        own.retain(|factor, level| common.get(factor) != Some(level));
        if own.is_empty() || !by_factors { group.words() } else { levels_words(&own) }
    };
    groups.groups.iter().map(words).collect()
}

/// Names of pairs of groups, without the levels that all compared groups have in common: `none → cpu=80%, 64 B`.
pub(crate) fn pair_name(comparisons: &Comparisons) -> impl Fn(&Comparison) -> String + '_ {
    let names = GroupNames::of(comparisons);
    move |row| {
        let PairNames { contrast, shared, .. } = names.pair(row);
        if shared.is_empty() { contrast } else { format!("{contrast}, {}", names.words(&shared)) }
    }
}

/// A pair of groups in a sentence: `with load cpu=80% than with none, 64 B`.
pub(crate) fn pair_sentence(comparisons: &Comparisons, row: &Comparison) -> String {
    let names = GroupNames::of(comparisons);
    let PairNames { sentence, shared, .. } = names.pair(row);
    if shared.is_empty() { sentence } else { format!("{sentence}, {}", names.words(&shared)) }
}

/// The levels that all compared groups have in common, as a sentence after others; empty without any.
pub(crate) fn common_sentence(comparisons: &Comparisons) -> String {
    let names = GroupNames::of(comparisons);
    if names.common.is_empty() { String::new() } else { format!(" All with {}.", names.words(&names.common)) }
}

pub(crate) fn several_metrics(rows: &[Comparison]) -> bool {
    let of_metric = |row: &&Comparison| row.quantity.metric().is_some();
    let mut times = rows.iter().filter(of_metric).map(|row| row.quantity.metric_name());
    let first = times.next();
    times.any(|name| Some(name) != first)
}

/// Formats as `round trip delay by load: 10 runs × 3 blocks each, interleaved, 95 % intervals`.
fn heading(comparisons: &Comparisons, names: &GroupNames<'_>) -> String {
    let asked = comparisons.rows.iter().filter(|row| !row.added);
    let mut titles: Vec<_> = asked.map(|row| row.quantity.metric_title()).collect();
    titles.dedup();
    let title = if titles.windows(2).all(|pair| pair[0] == pair[1]) { titles.first().copied() } else { None };
    let what = title.unwrap_or(if comparisons.rows.is_empty() { "nothing to compare" } else { "several metrics" });
    let statistic = comparisons.rows.first().filter(|row| {
        (names.by_factors || names.by_parts) && are_of_one_quantity(&comparisons.rows) && !row.quantity.is_share()
    });
    let statistic = statistic.map(|row| format!(", {},", row.quantity.label())).unwrap_or_default();
    let by = names.factors(&comparisons.rows).map(|factors| format!(" by {factors}")).unwrap_or_default();
    let interleaved = comparisons.is_interleaved();
    let design = design(comparisons, interleaved);
    let turns = if interleaved { ", interleaved" } else { "" };
    format!("{what}{statistic}{by}: {design}{turns}, {} intervals", words::confidence(comparisons.options.confidence))
}

/// Formats as `10 runs × 3 blocks each` for a balanced design, else with the counts common to all groups.
fn design(comparisons: &Comparisons, interleaved: bool) -> String {
    let noun = if comparisons.quantities.contains(&Quantity::Value) { "value" } else { "run" };
    let in_blocks = |group: &RunGroup| {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        group.runs.iter().for_each(|run| *counts.entry(run.origin.block.clone()).or_default() += 1);
        counts
    };
    let groups: Vec<_> =
        comparisons.groups.groups.iter().filter(|group| !group.runs.is_empty()).map(in_blocks).collect();
    let blocks = groups.iter().flat_map(BTreeMap::keys).collect::<BTreeSet<_>>().len();
    let blocks = if interleaved { blocks } else { 1 };
    let counts: BTreeSet<usize> = groups.iter().flat_map(BTreeMap::values).copied().collect();
    let size = |group: &RunGroup| group.numbers.map_or(group.runs.len(), |numbers| numbers.lines as usize);
    let with_runs = comparisons.groups.groups.iter().filter(|group| !group.runs.is_empty());
    let sizes: BTreeSet<usize> = with_runs.map(size).collect();
    let count = |count: usize| human::grouped(count as u64);
    let plural = |number: usize| counted(number, noun);
    let [least, most] = [sizes.first(), sizes.last()].map(|size| size.copied().unwrap_or(0));
    let is_full = counts.len() == 1 && groups.iter().all(|group| group.len() == blocks);
    let size = if least == most { plural(most) } else { format!("{} to {}", count(least), plural(most)) };
    match blocks {
        0 | 1 => format!("{size} each"),
        _ if is_full => format!("{} × {blocks} blocks each", plural(most / blocks)),
        _ => format!("{size} each in {blocks} blocks"),
    }
}

fn footnotes(comparisons: &Comparisons, names: &GroupNames<'_>, explain: bool) -> Vec<String> {
    // A publication beside it says that, and which loads were reached.
    let is_alone = !comparisons.groups.beside_publication;
    let not_possible = comparisons.caveats.iter().find(|caveat| is_alone && caveat.code == NOT_POSSIBLE);
    let mut notes: Vec<String> = not_possible.map(|caveat| caveat.message.clone()).into_iter().collect();
    notes.extend(groups_without_runs(comparisons));
    notes.extend(too_few_runs(comparisons));
    notes.extend(reached_loads(comparisons, names).filter(|_| is_alone));
    notes.extend(figures(comparisons));
    let tested = |row: &&Comparison| row.p_value.is_some();
    if !comparisons.rows.iter().any(|row| tested(&row)) {
        return notes;
    }
    let by_round = comparisons.rows.iter().any(|row| row.evidence.by_round);
    let over = match comparisons.options.scope {
        QuestionScope::Blocks if by_round => "permutation test and paired t within rounds (the larger)",
        QuestionScope::Blocks => "permutation test and Welch's t within blocks (the larger), for these blocks",
        QuestionScope::Boots => "sign permutation test and paired t (the larger), over boots",
    };
    let of_family = |added: bool| comparisons.rows.iter().filter(|row| row.added == added).filter(tested).count();
    let family = match (of_family(false), of_family(true)) {
        (asked, 0 | 1) if asked > 1 => format!(", Holm over {asked} comparisons"),
        (asked, losses) if losses > 1 => format!(", Holm over {asked} comparisons, and apart over {losses} of losses"),
        _ => String::new(),
    };
    let more = if explain { "" } else { "; details: `latlab compare --explain`" };
    notes.push(format!("p values: {over}{family}{more}"));
    let equivalent = comparisons.rows.iter().filter(|row| row.verdict == Verdict::Equivalent);
    let mut margins: Vec<String> = equivalent.filter_map(|row| row.margin).map(human::percent).collect();
    margins.dedup();
    if !margins.is_empty() {
        notes.push(format!(
            "equivalent: the difference is proven to lie within {}; its p is that of a larger one",
            margins.join(" and ")
        ));
    }
    notes
}

/// Says once which numbers of runs cannot decide, although their values might be apart.
fn too_few_runs(comparisons: &Comparisons) -> Option<String> {
    let is_too_few = |row: &&Comparison| matches!(row.undecided, Some(UndecidedReason::TooFewRuns));
    let sizes: BTreeSet<String> = comparisons.rows.iter().filter(is_too_few).map(words::sizes).collect();
    // So many runs can decide a row with a margin of equivalence, and not one without.
    let what = |sizes: String| {
        let of_sizes: Vec<&Comparison> = comparisons.rows.iter().filter(|row| words::sizes(row) == sizes).collect();
        let too_few: BTreeSet<String> =
            of_sizes.iter().copied().filter(is_too_few).map(|row| row.quantity.label()).collect();
        if of_sizes.iter().all(is_too_few) {
            format!("{sizes} can never decide")
        } else {
            format!("{sizes} can never decide {}", human::few(&too_few.into_iter().collect::<Vec<_>>()))
        }
    };
    let sizes: Vec<String> = sizes.into_iter().map(what).collect();
    (!sizes.is_empty()).then(|| format!("{}: undecided whatever the values", human::few_parts(&sizes)))
}

/// Names the groups whose comparisons have no row.
fn groups_without_runs(comparisons: &Comparisons) -> Option<String> {
    let mut lacking = comparisons.rows.iter().filter(|row| lacks_runs(row)).peekable();
    lacking.peek()?;
    let names: Vec<_> = comparisons.groups.words_without_runs().iter().map(|name| format!("`{name}`")).collect();
    Some(format!("no row, since no run of it can be judged: {}", human::few(&names)))
}

/// Formats `loads reached: cpu=80% 63.8 % in cpu; …`: the mean over the runs of each group, where loads have figures.
fn reached_loads(comparisons: &Comparisons, names: &GroupNames<'_>) -> Option<String> {
    let mut reached = Vec::new();
    for group in &comparisons.groups.groups {
        let loads = || group.runs.iter().flat_map(|run| &run.loads);
        let own_names: BTreeSet<&str> = loads().map(|load| load.load.as_str()).collect();
        for name in own_names {
            let own = || loads().filter(|load| load.load == name);
            let figures: Vec<f64> = own().filter_map(|load| load.achieved).collect();
            if let (Some(first), false) = (own().next(), figures.is_empty()) {
                let mean = figures.iter().sum::<f64>() / figures.len() as f64;
                let place = Some(names.beside_load(group, name)).filter(|words| !words.is_empty());
                let place = place.map(|words| format!(" in {words}")).unwrap_or_default();
                reached.push(format!("`{name}` {}{place}", human::load_figure(&first.unit, mean)));
            }
        }
    }
    (!reached.is_empty()).then(|| format!("loads reached: {}", reached.join("; ")))
}

/// Names the kind of mean that `rows` compare, which may differ from the arithmetic mean of publications; `None` without a mean.
pub(crate) fn compared_means(comparisons: &Comparisons, rows: &[&Comparison]) -> Option<String> {
    // The mean of one run is its figure.
    let has_mean = |row: &Comparison| row.centres.is_some() && row.evidence.runs.0.max(row.evidence.runs.1) > 1;
    let has_scale = |scale: FigureScale| rows.iter().any(|row| row.scale == scale);
    let of = if comparisons.quantities.contains(&Quantity::Value) { "the values" } else { "the runs" };
    let means = match (has_scale(FigureScale::Logarithmic), has_scale(FigureScale::Linear)) {
        (true, false) => format!("geometric means of {of}"),
        (true, true) => format!("geometric means of {of}; of shares, and where one is not above 0, means"),
        (false, _) => format!("means of {of}"),
    };
    rows.iter().any(|row| has_mean(row)).then_some(means)
}

fn figures(comparisons: &Comparisons) -> Option<String> {
    let means = compared_means(comparisons, &comparisons.rows.iter().collect::<Vec<_>>())?;
    let reads_losses =
        comparisons.rows.iter().any(|row| row.evidence.reads_losses && row.method == ComparisonMethod::Shift);
    let losses = if reads_losses { "; intervals also count infinite values as their time-out" } else { "" };
    Some(format!("baseline, candidate: {means}{losses}"))
}

fn explanation(row: &Comparison) -> String {
    let scale = match row.scale {
        FigureScale::Logarithmic => "by logarithms: values are geometric means, a change is a factor",
        FigureScale::Linear => "as they are: values are means, a change is a difference",
    };
    let (baseline, candidate) = row.evidence.runs;
    let Evidence { blocks, strata, by_round, boots, .. } = row.evidence;
    let what = if by_round { "rounds" } else { "strata with the other factors" };
    let strata = if strata == blocks { String::new() } else { format!(", {strata} {what}") };
    let boots = if boots > 0 { format!(", {}", counted(boots, "boot")) } else { String::new() };
    let exchanges = match (row.evidence.permutations, row.evidence.exact) {
        (count, true) => format!("all {} permutations", human::grouped(count)),
        (count, false) => format!("{} random permutations", human::grouped(count)),
    };
    let raw = format!("p {} before Holm", words::p_value(row.p_value));
    let margin = row.p_equivalent.map(|p| format!(", p {} of a difference beyond the margin", words::p_value(Some(p))));
    let margin = margin.unwrap_or_default();
    let test = match row.method {
        ComparisonMethod::None => "no test".to_owned(),
        ComparisonMethod::Separated => {
            "no test: all runs of one group are infinite or unanswered, none of the other".into()
        }
        ComparisonMethod::Placements => format!("{exchanges} of ranks, and Brunner and Munzel's t; {raw}"),
        ComparisonMethod::Shift => format!("{exchanges}, and Welch's t; {raw}{margin}; compared {scale}"),
    };
    let noun = match row.quantity {
        Quantity::Value if row.evidence.of_means => "lines or means of consecutive lines",
        Quantity::Value => "lines",
        Quantity::Of(_) => "runs",
    };
    format!("{baseline} and {candidate} {noun} in {}{strata}{boots}; {test}", counted(blocks, "common block"))
}

/// Says what a gate lacks, of the first that applies.
fn nothing_to_judge(row: Option<&Comparison>) -> &'static str {
    match row.map(|row| row.evidence) {
        None => ": nothing was compared in it",
        Some(Evidence { runs: (0, _), .. }) => ": the baseline has no run",
        Some(Evidence { runs: (_, 0), .. }) => ": it has no run",
        Some(Evidence { runs, unanswered, .. }) if unanswered.0 == runs.0 => ": no run of the baseline got an answer",
        Some(_) => ": some runs have nothing to compute it from",
    }
}

/// The line of a gate on a change; without `comparisons` there was nothing to compare.
pub(crate) fn gate(gated: &ChangeGateResult, comparisons: Option<&Comparisons>) -> String {
    let judged = comparisons.and_then(|comparisons| Some((comparisons, &comparisons.rows[gated.row?])));
    let word = gated.state.in_text();
    let why = match gated.reason {
        Some(GateReason::NotPositive) => ": values are not all above 0, so that a change is not a share",
        Some(GateReason::Unanswered) => ": no run of it got an answer",
        Some(GateReason::Infinite) => ": it is infinite, and the baseline is not",
        Some(GateReason::NothingToJudge) => nothing_to_judge(judged.map(|(_, row)| row)),
        Some(GateReason::FailedRuns) => ": runs failed",
        Some(GateReason::MissingRuns) => ": recordings or files of the experiment are gone, damaged or edited",
        Some(GateReason::Losses) => ": lost probes make the change uncertain",
        _ => "",
    };
    let Some((comparisons, row)) = judged else {
        return format!("gate `{}` {word}{why}", gated.gate);
    };
    let name = comparisons.groups.groups[row.candidate].words();
    format!("gate `{}` {word} for `{name}`: {}{why}", gated.gate, words::judged_change(row))
}
