//! The question and the verdict of a page, one sentence each. A verdict says what the comparisons decide, and of a single run
//! what was measured; it never compares runs by itself.

use std::collections::BTreeMap;

use super::input::{PageExperiment, PageInput, as_code};
use crate::analysis::comparison::{Comparison, ComparisonMethod, Comparisons, Evidence, Quantity, Verdict};
use crate::analysis::experiment::ConditionRow;
use crate::analysis::{Kind, Summary};
use crate::metric::Metric;
use crate::recipe;
use crate::report::comparison::{
    compared_factors, lacks_runs, pair_name, quantity_change, quantity_figure, several_metrics, shared_reason,
};
use crate::report::heading::{Headline, heading};
use crate::stats::{Description, Interval, QuantileEstimate};
use crate::units::Nanos;
use crate::units::human::{ABSENT, bit_rate, counted, grouped, listed, percent, quantile, span};

/// What was asked, and the recipe that asks it.
pub(super) fn question(input: &PageInput<'_>) -> String {
    let asked = match input.comparisons {
        Some(comparisons) => question_of_groups(comparisons),
        None => question_of_runs(input.summaries),
    };
    let recipe = input.experiment.and_then(|it| it.report.recipe.as_ref());
    match recipe.and_then(|facts| recipe::find(&facts.name)) {
        Some(recipe) => format!("{asked} (Recipe `{}`: {}.)", recipe.name, recipe.title),
        None => asked,
    }
}

/// `How do the p50 and p99 of the round trip delay change with load?`
fn question_of_groups(comparisons: &Comparisons) -> String {
    let asked = asked_quantities(comparisons);
    let (how, that) = if asked.len() == 1 { ("How does", "that") } else { ("How do", "those") };
    let figures = in_words(&asked);
    match (compared_factors(comparisons), comparisons.groups.groups.split_first()) {
        (Some(factors), _) => {
            let factors: Vec<String> = factors.split(" and ").map(str::to_owned).collect();
            format!("{how} {figures} change with {}?", listed(&factors))
        }
        (None, Some((baseline, candidates))) => {
            let candidates: Vec<String> = candidates.iter().map(|group| group.words()).collect();
            format!("{how} {figures} of {} differ from {that} of `{}`?", as_code(&candidates), baseline.words())
        }
        (None, None) => String::new(),
    }
}

/// What the rows are about, without the losses that latlab added; what was to be compared without a row.
fn asked_quantities(comparisons: &Comparisons) -> Vec<Quantity> {
    let mut asked: Vec<Quantity> = Vec::new();
    for row in comparisons.rows.iter().filter(|row| !row.added) {
        if !asked.contains(&row.quantity) {
            asked.push(row.quantity);
        }
    }
    if asked.is_empty() { comparisons.quantities.clone() } else { asked }
}

/// `the p50 and p99 of the round trip delay and the loss ratio`
fn in_words(quantities: &[Quantity]) -> String {
    let mut by_metric: Vec<(&str, Vec<String>)> = Vec::new();
    for quantity in quantities {
        let metric = if quantity.is_share() { "" } else { quantity.metric_title() };
        match by_metric.iter_mut().find(|known| known.0 == metric) {
            Some((_, statistics)) => statistics.push(statistic(*quantity)),
            None => by_metric.push((metric, vec![statistic(*quantity)])),
        }
    }
    let words = |(metric, statistics): (&str, Vec<String>)| match metric {
        "" => format!("the {}", listed(&statistics)),
        metric => format!("the {} of the {metric}", listed(&statistics)),
    };
    listed(&by_metric.into_iter().map(words).collect::<Vec<_>>())
}

/// `p99`, `loss ratio`.
fn statistic(quantity: Quantity) -> String {
    quantity.label().replace('_', " ")
}

fn question_of_runs(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else { return String::new() };
    let asked = match first.kind {
        Kind::Ping => "How long does a round trip take",
        Kind::Wakeup => "How late does a timer wake a thread",
        Kind::Stream => "How much of a stream arrives",
        Kind::Values => "How long are the delays of a log",
    };
    let conditions = heading(&summaries.iter().map(Headline::of).collect::<Vec<_>>());
    let of_runs =
        if summaries.len() == 1 { String::new() } else { format!(", in {}", counted(summaries.len(), "run")) };
    format!("{asked}{of_runs} ({conditions})?")
}

pub(super) fn verdict(input: &PageInput<'_>, names: &[String]) -> String {
    let single = |it: PageExperiment<'_>| {
        verdict_of_condition(it.report.single_condition.as_ref()?, it.report.only_condition().as_deref())
    };
    let found = match (input.comparisons, input.summaries) {
        (Some(comparisons), _) => verdict_of_comparison(comparisons),
        (None, [one]) => verdict_of_run(one),
        (None, several) => input.experiment.and_then(single).unwrap_or_else(|| verdict_of_runs(several, names)),
    };
    match input.summaries.iter().all(Summary::is_trustworthy) {
        true => found,
        false => format!("{found} A fatal caveat says why figures are not to be trusted."),
    }
}

/// Most changes in a verdict.
const CHANGES: usize = 3;

/// `none → cpu=80%: p99 higher, infinite in 5 of 5 runs, p50 higher, +527 % [+460, +611]; 2 comparisons are undecided.`
fn verdict_of_comparison(comparisons: &Comparisons) -> String {
    let rows: Vec<&Comparison> = comparisons.rows.iter().filter(|row| !lacks_runs(row)).collect();
    let undecided = rows.iter().filter(|row| row.verdict == Verdict::Undecided).count();
    let mut parts = decided_parts(&rows, comparisons);
    match parts.is_empty() {
        true if rows.is_empty() => "Nothing could be compared.".into(),
        true if undecided == 0 => "Neither group has what was compared: all ratios are 0.".into(),
        true => {
            let reason = shared_reason(&comparisons.rows).unwrap_or_default();
            // What stands behind a semicolon is advice.
            let reason = reason.split(';').next().filter(|it| !it.is_empty());
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("Undecided in {}{reason}.", all_comparisons(rows.len()))
        }
        false => {
            let is_are = if undecided == 1 { "is" } else { "are" };
            parts.extend((undecided > 0).then(|| format!("{} {is_are} undecided", counted(undecided, "comparison"))));
            format!("{}.", parts.join("; "))
        }
    }
}

fn all_comparisons(count: usize) -> String {
    match count {
        1 => "the only comparison".into(),
        2 => "both comparisons".into(),
        _ => format!("all {}", counted(count, "comparison")),
    }
}

/// The first changes that are decided, with those of one pair of groups behind its name, and how many more there are.
fn decided_parts(rows: &[&Comparison], comparisons: &Comparisons) -> Vec<String> {
    let (name, with_metric) = (pair_name(comparisons), several_metrics(&comparisons.rows));
    let (mut parts, mut left, mut more) = (Vec::new(), CHANGES, 0);
    for pair in decided_pairs(rows) {
        let changes = changes(&pair, with_metric);
        let shown = changes.len().min(left);
        if shown > 0 {
            parts.push(format!("{}: {}", name(pair[0]), changes[..shown].join(", ")));
        }
        left -= shown;
        more += changes.len() - shown;
    }
    parts.extend((more > 0).then(|| format!("{} more in the table", grouped(more as u64))));
    parts
}

/// The decided rows of each pair of groups, most urgent pairs and rows first.
fn decided_pairs<'a>(rows: &[&'a Comparison]) -> Vec<Vec<&'a Comparison>> {
    let mut pairs: BTreeMap<(usize, usize), Vec<&Comparison>> = BTreeMap::new();
    let mut order = Vec::new();
    for row in rows.iter().filter(|row| !matches!(row.verdict, Verdict::Undecided | Verdict::None)) {
        let pair = (row.baseline, row.candidate);
        let of_pair = pairs.entry(pair).or_default();
        order.extend(of_pair.is_empty().then_some(pair));
        of_pair.push(row);
    }
    let mut pairs: Vec<Vec<&Comparison>> = order.iter().filter_map(|pair| pairs.remove(pair)).collect();
    pairs.iter_mut().for_each(|pair| pair.sort_by_key(|row| urgency(row)));
    pairs.sort_by_key(|pair| urgency(pair[0]));
    pairs
}

/// Infinite figures come first, then ratios such as losses that differ, then all others.
fn urgency(row: &Comparison) -> u8 {
    match row.method {
        ComparisonMethod::Separated | ComparisonMethod::Placements => 0,
        _ if row.quantity.is_share() && row.verdict != Verdict::Equivalent => 1,
        _ => 2,
    }
}

/// What is decided of a pair of groups. Without any answer all its rows say the same.
fn changes(pair: &[&Comparison], with_metric: bool) -> Vec<String> {
    let Evidence { runs, unanswered, .. } = pair[0].evidence;
    if pair[0].method == ComparisonMethod::Separated && unanswered.1 == runs.1 {
        return vec!["no probe was answered".into()];
    }
    if pair[0].method == ComparisonMethod::Separated && unanswered.0 == runs.0 {
        return vec!["no probe of the baseline was answered".into()];
    }
    pair.iter().map(|row| change(row, with_metric)).collect()
}

fn change(row: &Comparison, with_metric: bool) -> String {
    let name = match with_metric && !row.quantity.is_share() {
        true => format!("{} of the {}", statistic(row.quantity), row.quantity.metric_title()),
        false => statistic(row.quantity),
    };
    let Evidence { runs, infinite, .. } = row.evidence;
    let found = match infinite {
        (0, 0) => quantity_change(row),
        (0, candidate) => format!("infinite in {candidate} of {}", counted(runs.1, "run")),
        (baseline, candidate) => {
            format!("infinite in {candidate} of {} instead of {baseline} of {}", counted(runs.1, "run"), runs.0)
        }
    };
    format!("{name} {}, {found}", row.verdict.word())
}

/// The statistics of an experiment with one judged condition over its runs, infinite ones first; the condition has a `name` if
/// the experiment has others:
/// `Over 10 runs of one condition: p99 infinite in 2 of 10 runs; geometric mean p50 45.0 µs [44.6 µs, 45.4 µs].`
pub(super) fn verdict_of_condition(rows: &[ConditionRow], name: Option<&str>) -> Option<String> {
    let infinite = rows.iter().filter(|row| row.lost > 0).map(|row| {
        format!("{} infinite in {} of {}", statistic(row.quantity), row.lost, counted(row.runs + row.lost, "run"))
    });
    let means = [(true, "geometric mean"), (false, "mean")].into_iter().filter_map(|(is_geometric, name)| {
        let rows = rows.iter().filter(|row| row.is_geometric == is_geometric);
        let figures: Vec<String> = rows.filter_map(mean_words).collect();
        let plural = if figures.len() == 1 { "" } else { "s" };
        (!figures.is_empty()).then(|| format!("{name}{plural} {}", figures.join(", ")))
    });
    let found: Vec<String> = infinite.chain(means).collect();
    let runs = rows.iter().map(|row| row.runs + row.lost).max()?;
    let name = name.map(|name| format!(" (`{name}`)")).unwrap_or_default();
    (!found.is_empty()).then(|| format!("Over {} of one condition{name}: {}.", counted(runs, "run"), found.join("; ")))
}

/// `p50 45.0 µs [44.6 µs, 45.4 µs]`; `None` without a finite mean.
fn mean_words(row: &ConditionRow) -> Option<String> {
    let mean = row.mean?;
    let figure = |value: f64| quantity_figure(row.quantity, value, mean);
    let interval = row.interval.and_then(|ends| Some(format!(" [{}, {}]", figure(ends.low?), figure(ends.high?))));
    Some(format!("{} {}{}", statistic(row.quantity), figure(mean), interval.unwrap_or_default()))
}

/// Runs that are not compared: what their medians are, without a claim that they differ.
fn verdict_of_runs(summaries: &[Summary], names: &[String]) -> String {
    let Some(first) = summaries.first() else { return "No run can be used.".into() };
    let metric = first.metric;
    let (mut finite, mut infinite, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (summary, name) in summaries.iter().zip(names.iter().cloned()) {
        match middle(summary, metric) {
            Some(value) if value.is_finite() => finite.push((value, name)),
            Some(_) => infinite.push(name),
            None => unknown.push(name),
        }
    }
    finite.sort_by(|one, other| one.0.total_cmp(&other.0));
    let of_all = |what: &str, names: &[String]| {
        let count = format!("{} of {}", names.len(), counted(summaries.len(), "run"));
        (!names.is_empty()).then(|| format!("{what} in {count} ({})", as_code(names)))
    };
    let parts = [of_all("infinite", &infinite), of_all("unknown", &unknown), finite_range(metric, &finite)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let what = if metric.is_rate() { "Means" } else { "Medians" };
    format!("{what} of single runs are {}; whether conditions differ was not tested.", listed(&parts))
}

/// The median of a delay, which is infinite among the lost probes, or the mean of a rate; `None` if it is not known.
fn middle(summary: &Summary, metric: Metric) -> Option<f64> {
    let described = summary.metrics.get(&metric).filter(|described| described.n > 0)?;
    if metric.is_rate() { described.mean } else { Some(at(described, 0.5)?.value.unwrap_or(f64::INFINITY)) }
}

/// The ends of `sorted` figures with the names of their runs; equal ends once.
fn finite_range(metric: Metric, sorted: &[(f64, String)]) -> Option<String> {
    let (least, most) = (sorted.first()?, sorted.last()?);
    let (low, high) = (figure(metric, least.0), figure(metric, most.0));
    let names: Vec<String> = sorted.iter().map(|run| run.1.clone()).collect();
    Some(match low == high {
        true => format!("{low} ({})", as_code(&names)),
        false => format!("between {low} (`{}`) and {high} (`{}`)", least.1, most.1),
    })
}

/// What the comparison is of and what `others` are of, if these do not show it; else empty. Beside the main metric they show
/// `further` ones.
pub(super) fn other_metric(input: &PageInput<'_>, compared: &str, others: &str, further: &[Metric]) -> String {
    let (Some(comparisons), Some(first)) = (input.comparisons, input.summaries.first()) else { return String::new() };
    let main = first.metric.title();
    let mut titles: Vec<String> = Vec::new();
    for quantity in asked_quantities(comparisons).iter().filter(|quantity| !quantity.is_share()) {
        let title = quantity.metric_title();
        if !titles.iter().any(|known| known == title) {
            titles.push(title.into());
        }
    }
    let is_shown = |title: &String| title == main || further.iter().any(|metric| metric.title() == title);
    match titles.is_empty() || titles.iter().any(is_shown) {
        true => String::new(),
        false => format!("{compared} of the {}; {others} of the {main}.", listed(&titles)),
    }
}

/// Why no plot shows a delay, or a rate: no run has one. Empty if a run has one, or without runs.
pub(super) fn without_plots(summaries: &[Summary]) -> String {
    let described = || summaries.iter().filter_map(|summary| summary.metrics.get(&summary.metric));
    let sum = |of: fn(&Description) -> u64| described().map(of).sum::<u64>();
    let n = sum(|all| all.n);
    let Some(first) = summaries.first().filter(|_| n == sum(|all| all.lost)) else { return String::new() };
    let in_runs = if summaries.len() > 1 { format!(" in {}", counted(summaries.len(), "run")) } else { String::new() };
    match n {
        0 if first.metric.is_rate() => format!("Plots of rates are missing: nothing was measured{in_runs}."),
        0 => format!("Plots of delays are missing: nothing was measured{in_runs}."),
        1 => format!("Plots of delays are missing: the only probe{in_runs} was lost or late."),
        _ => format!(
            "Plots of delays are missing: all of {} {}{in_runs} were lost or late.",
            grouped(n),
            first.kind.rows()
        ),
    }
}

/// Median, p99 and losses of a single run, and how many probes were due and not sent.
fn verdict_of_run(summary: &Summary) -> String {
    let (metric, kind) = (summary.metric, summary.kind);
    let noun = kind.rows().trim_end_matches('s');
    let unsent = if metric.is_rate() { 0 } else { summary.counts.send_failed + summary.counts.not_sent };
    let sent = if unsent > 0 { format!("sent {noun}") } else { noun.into() };
    let found = match summary.metrics.get(&metric).filter(|described| described.n > 0) {
        None => "Nothing was measured".into(),
        Some(rate) if metric.is_rate() => rate_words(rate, summary),
        Some(delay) if delay.lost == delay.n => {
            format!("Answered in time: 0 of {}", counted(delay.n as usize, &sent))
        }
        Some(delay) => {
            let figures = [0.5, 0.99].into_iter().filter_map(|q| quantile_words(metric, delay, q)).collect::<Vec<_>>();
            let losses = match delay.lost {
                0 if kind.has_target() && summary.knows_losses => Some("none was lost or late".into()),
                0 => None,
                lost => Some(format!("{} {} lost or late", grouped(lost), were(lost))),
            };
            let figures = Some(figures.join(", ")).filter(|words| !words.is_empty());
            let words: Vec<String> = figures.into_iter().chain(losses).collect();
            format!("Of {} {}", counted(delay.n as usize, &sent), words.join("; "))
        }
    };
    let due = || counted(summary.counts.due() as usize, &format!("due {noun}"));
    let unsent = (unsent > 0).then(|| format!("; {} of {} {} not sent", grouped(unsent), due(), were(unsent)));
    format!("{found}{}.", unsent.unwrap_or_default())
}

const fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn rate_words(rate: &Description, summary: &Summary) -> String {
    let metric = summary.metric;
    let mean = rate.mean.map_or_else(|| ABSENT.into(), |mean| figure(metric, mean));
    let loss = summary.ratios.loss.map(|loss| format!(", the loss ratio is {}", percent(loss)));
    format!("The mean delivered rate is {mean}{}{}", interval(metric, rate.mean_interval), loss.unwrap_or_default())
}

/// `p99 is 61.9 µs (61.3 µs to 62.5 µs)`; `None` if the summary has no such quantile.
fn quantile_words(metric: Metric, described: &Description, q: f64) -> Option<String> {
    let estimate = at(described, q)?;
    let name = if q == 0.5 { "the median".into() } else { quantile(q) };
    let bound = estimate.lower_bound.filter(|_| !estimate.supported);
    let bound = bound.map(|bound| format!(" (at least {} with 95 % confidence)", figure(metric, bound)));
    Some(match estimate.value {
        None if estimate.is_surely_lost() => format!("{name} lies among the lost probes"),
        None => format!("{name} may lie among the lost probes{}", bound?),
        Some(value) if estimate.supported => {
            format!("{name} is {}{}", figure(metric, value), interval(metric, estimate.interval))
        }
        Some(value) => format!("{name} is {}{}", figure(metric, value), bound.unwrap_or_default()),
    })
}

fn at(described: &Description, q: f64) -> Option<&QuantileEstimate> {
    described.quantiles.iter().find(|estimate| estimate.q == q)
}

fn interval(metric: Metric, interval: Option<Interval>) -> String {
    let words = interval.and_then(|it| {
        let (low, high) = (figure(metric, it.low?), figure(metric, it.high?));
        Some(if low == high { format!(" ({low} at both ends)") } else { format!(" ({low} to {high})") })
    });
    words.unwrap_or_default()
}

fn figure(metric: Metric, value: f64) -> String {
    if metric.is_rate() { bit_rate(value) } else { span(Nanos(value.round() as i64)) }
}
