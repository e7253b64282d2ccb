//! Selects the tables, remarks and caveats of a report of runs. Merges the caveats of several runs.

use std::collections::BTreeSet;

use super::figures::{across, by_cpu, down, histogram, rows_of_runs, windows};
use super::heading::{Headline, are_of_one_kind, heading, names, names_by_condition};
use super::over_runs::{LEGEND, TableRow};
use super::quantiles::{explain_marks, say_failed};
use super::view::{CaveatView, Part, ReportView, Showing, TableView};
use super::{gates, one_way, rare_levels, remarks, stream_tables};
use crate::analysis::{Kind, Summary, is_routine};
use crate::diagnostics::Caveat;
use crate::stats::Description;
use crate::units::human::{few, grouped, shell_word, significant};

/// The report of the runs of one command.
pub fn report_view(summaries: &[Summary], showing: Showing) -> ReportView {
    let names = names(summaries);
    let (heading, tables) = heading_and_tables(summaries, &names, showing);
    let histogram = if let [one] = summaries { histogram(&one.histogram) } else { None };
    let mut parts = vec![Part::Heading(heading), Part::Notes(weak_median(summaries))];
    parts.extend(tables.into_iter().map(Part::Table));
    parts.extend(histogram.map(Part::Histogram));
    parts.push(Part::Notes(gates::lines(summaries, &names)));
    parts.push(Part::Remarks(remarks::remarks(summaries, &names)));
    parts.push(Part::Caveats(caveats(summaries, &names, &[])));
    parts.push(recordings(summaries, showing));
    parts
}

/// Why the median of the only run is in parentheses, if it is. That of rates in the windows of a stream is not its answer.
fn weak_median(summaries: &[Summary]) -> Vec<String> {
    let [one] = summaries else { return Vec::new() };
    let is_weak = |one: &&Description| one.quantiles.iter().any(|quantile| quantile.q == 0.5 && !quantile.supported);
    let words = |weak: &Description| match weak.slow_changes {
        Some((_, effective_n)) => {
            let (n, effective_n) = (grouped(weak.n), significant(effective_n));
            format!("p50 is uncertain: a slow change makes {n} values count as {effective_n}")
        }
        None => format!("p50 is uncertain: too few independent values ({} in all)", grouped(weak.n)),
    };
    let metric = Some(one.spec.metric()).filter(|metric| !metric.is_rate());
    metric.and_then(|metric| one.metrics.get(&metric)).filter(is_weak).map(words).into_iter().collect()
}

pub(super) fn recordings(summaries: &[Summary], showing: Showing) -> Part {
    let paths = if showing.kept {
        summaries.iter().map(|summary| shell_word(&summary.recording)).collect()
    } else {
        vec!["not kept (`--no-record`)".into()]
    };
    Part::Recordings { paths, of_store: showing.of_store }
}

/// The names of runs on a page: those of their `conditions`, with the short id of the run where it needs one.
pub(super) fn names_on_page(summaries: &[Summary], conditions: &[TableRow<'_>]) -> Vec<String> {
    let labels = conditions.iter().flat_map(|row| vec![row.condition.to_owned(); row.runs.len()]);
    names_by_condition(summaries, labels.collect())
}

/// The heading of runs with these `names`, and their tables.
pub(super) fn heading_and_tables(
    summaries: &[Summary],
    names: &[String],
    showing: Showing,
) -> (String, Vec<TableView>) {
    let (heading, mut tables) = if are_of_one_kind(summaries) {
        (heading_of(summaries), tables(summaries, names, showing))
    } else {
        (String::new(), tables_by_kind(summaries, showing))
    };
    explain_marks(&mut tables);
    (heading, tables)
}

fn heading_of(summaries: &[Summary]) -> String {
    heading(&summaries.iter().map(Headline::of).collect::<Vec<_>>())
}

/// The tables of each kind and main metric of runs, below the heading of these runs: they have no column in common.
fn tables_by_kind(summaries: &[Summary], showing: Showing) -> Vec<TableView> {
    let subject = |one: &Summary| (Kind::ALL.iter().position(|kind| *kind == one.kind), one.metric);
    let subjects: BTreeSet<_> = summaries.iter().map(subject).collect();
    let kinds = subjects
        .into_iter()
        .map(|wanted| summaries.iter().filter(|one| subject(one) == wanted).cloned().collect::<Vec<_>>());
    let headed = |runs: Vec<Summary>| {
        let title = TableView { title: heading_of(&runs), ..TableView::default() };
        std::iter::once(title).chain(tables(&runs, &names(&runs), showing)).collect::<Vec<_>>()
    };
    kinds.flat_map(headed).collect()
}

/// The tables of runs of one kind with these `names`.
fn tables(summaries: &[Summary], names: &[String], showing: Showing) -> Vec<TableView> {
    let mut tables = match summaries {
        [] => Vec::new(),
        several if several.iter().all(|one| one.stream.is_some()) => stream_tables::tables(several, names),
        [one] if one.kind == Kind::Wakeup => across(one, showing),
        [one] if one.kind == Kind::Ping && (one.spec.interval().is_some() || showing.every_metric) => {
            vec![down(one, showing)]
        }
        [one] if one.kind == Kind::Command => vec![down(one, showing)],
        [one] => across(one, showing),
        several => {
            let named = names.iter().cloned().zip(several);
            let rows: Vec<TableRow<'_>> = named.map(|(name, run)| TableRow::of_run(name, run)).collect();
            vec![rows_of_runs(&rows, showing, false)]
        }
    };
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| by_cpu(summary, name)));
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| windows(summary, name)));
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| rare_levels::table(summary, name)));
    if !showing.wide {
        tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| one_way::table(summary, name)));
    }
    if summaries.iter().all(|one| one.kind == Kind::Command) {
        say_failed(&mut tables);
    }
    tables
}

/// The tables with a row for each of `conditions`; empty if each has one run only, or if the runs are of several kinds.
pub(super) fn condition_tables(conditions: &[TableRow<'_>], showing: Showing) -> Vec<TableView> {
    let runs = || conditions.iter().flat_map(|condition| condition.runs);
    let kind = runs().next().map(|run| run.kind);
    let have_several_runs = conditions.iter().any(|condition| condition.runs.len() > 1);
    if !have_several_runs || runs().any(|run| Some(run.kind) != kind) {
        return Vec::new();
    }
    let mut tables = if runs().all(|run| run.stream.is_some()) {
        stream_tables::rows_of_conditions(conditions)
    } else {
        vec![rows_of_runs(conditions, showing, true)]
    };
    if let Some(first) = tables.first_mut() {
        first.legend = LEGEND.into();
    }
    if kind == Some(Kind::Command) {
        say_failed(&mut tables);
    }
    explain_marks(&mut tables);
    let main = runs().next().map(|run| run.metric);
    if let (Some(main), Some(first)) = (main, tables.first_mut().filter(|table| table.title.is_empty())) {
        first.title = format!("{} by condition", main.title());
    }
    tables
}

/// A caveat common to several runs, possibly with different numbers.
struct Concern<'a> {
    /// Index among the caveats of the same code in a run, since a code can apply to each end.
    place: usize,
    /// Run name and caveat, in order of the runs.
    occurrences: Vec<(&'a str, &'a Caveat)>,
}

impl<'a> Concern<'a> {
    /// Returns the most severe caveat.
    fn worst(&self) -> &'a Caveat {
        let (_, first) = self.occurrences[0];
        self.occurrences
            .iter()
            .fold(first, |worst, (_, caveat)| if caveat.severity > worst.severity { caveat } else { worst })
    }

    fn same(&self, caveat: &Caveat, place: usize) -> bool {
        self.place == place && self.occurrences[0].1.code == caveat.code
    }
}

/// Merges the caveats of all runs, those that spoil the figures most first, and names the runs concerned unless all are. If
/// runs differ in numbers, those of one run are shown; the JSON documents have all of them. Those that a comparison `has` are
/// left out.
pub(super) fn caveats(summaries: &[Summary], names: &[String], has: &[Caveat]) -> Vec<CaveatView> {
    let is_known = |own: &Caveat| has.iter().any(|known| known.code == own.code && known.severity >= own.severity);
    let mut concerns: Vec<Concern> = Vec::new();
    for (summary, name) in summaries.iter().zip(names) {
        for (number, caveat) in summary.caveats.iter().enumerate() {
            if is_known(caveat) {
                continue;
            }
            let place = summary.caveats[..number].iter().filter(|other| other.code == caveat.code).count();
            match concerns.iter_mut().find(|known| known.same(caveat, place)) {
                Some(known) => known.occurrences.push((name, caveat)),
                None => concerns.push(Concern { place, occurrences: vec![(name, caveat)] }),
            }
        }
    }
    concerns.sort_by_key(|concern| concern.worst().worst_first());
    concerns.iter().map(|concern| view(concern, summaries.len())).collect()
}

/// Caveats that concern no particular run.
pub(super) fn caveat_views(caveats: &[Caveat]) -> Vec<CaveatView> {
    caveats.iter().map(|caveat| caveat_view(caveat, caveat.message.clone())).collect()
}

fn caveat_view(caveat: &Caveat, message: String) -> CaveatView {
    let (effect, hint) = (caveat.effect.clone(), caveat.hint.clone());
    CaveatView { severity: caveat.severity, is_routine: is_routine(caveat), message, effect, hint }
}

fn view(concern: &Concern, runs: usize) -> CaveatView {
    let worst = concern.worst();
    let (alike, others): (Vec<_>, Vec<_>) = concern.occurrences.iter().partition(|(_, caveat)| *caveat == worst);
    let list = |runs: &[&(&str, &Caveat)]| few(&runs.iter().map(|(run, _)| (*run).to_owned()).collect::<Vec<_>>());
    let prefix = if alike.len() == runs { String::new() } else { format!("{}: ", list(&alike)) };
    let rest = match others.len() {
        0 => String::new(),
        _ if concern.occurrences.len() == runs => " (similar in the other runs)".into(),
        _ => format!(" (similar in {})", list(&others)),
    };
    caveat_view(worst, format!("{prefix}{}{rest}", worst.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed, cpu_load, probes_of};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::diagnostics::Severity;

    fn run(size_bytes: u32, caveats: &[(Severity, &str, &str)]) -> Summary {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        probes_of(&mut summary.spec).size_bytes = size_bytes;
        let caveat = |(severity, code, message): &(Severity, &str, &str)| {
            let [code, message] = [code, message].map(|text| text.to_string());
            let hint = format!("hint for {message}");
            Caveat { code, severity: *severity, message, effect: "effect".into(), hint }
        };
        summary.caveats = caveats.iter().map(caveat).collect();
        summary
    }

    #[test]
    fn runs_of_a_page_are_named_by_their_conditions() {
        let late = [(Severity::Note, "late", "1 late")];
        let of_level = |load: f64, id: &str, caveats: &[(Severity, &str, &str)]| {
            let mut run = run(64, caveats);
            run.recording = format!("x/20261121T021500Z-ping-{id}");
            run.spec.loads = vec![cpu_load(load)];
            run
        };
        let runs = [of_level(0.2, "7f3a", &late), of_level(0.2, "81aa", &[]), of_level(0.8, "0d2e", &[])];
        let conditions = |names: [&'static str; 2]| {
            [TableRow::of_condition(names[0], &runs[..2]), TableRow::of_condition(names[1], &runs[2..])]
        };
        let names = |labels| names_on_page(&runs, &conditions(labels));
        assert_eq!(names(["net=5", "cpu=80%"]), ["net=5 · 7f3a", "net=5 · 81aa", "cpu=80%"]);
        assert_eq!(caveats(&runs, &names(["old", "new"]), &[])[0].message, "old · 7f3a: 1 late");
    }

    #[test]
    fn a_caveat_of_several_runs_is_shown_once() {
        use Severity::{Note, Warning};
        let runs = [
            run(
                64,
                &[
                    (Note, "lost", "3 lost"),
                    (Note, "idle", "asleep"),
                    (Note, "clock", "here"),
                    (Note, "clock", "there"),
                ],
            ),
            run(128, &[(Warning, "lost", "50 lost"), (Note, "idle", "asleep"), (Note, "late", "1 late")]),
            run(256, &[(Note, "lost", "4 lost"), (Note, "idle", "asleep"), (Note, "late", "2 late")]),
        ];
        let known = Caveat { severity: Warning, ..runs[0].caveats[0].clone() };
        assert_eq!(caveats(&runs, &names(&runs), &[known])[0].message, "asleep");
        let caveats = caveats(&runs, &names(&runs), &[]);
        let shown: Vec<_> = caveats.iter().cloned().map(|caveat| (caveat.severity, caveat.message)).collect();
        let expected = [
            (Warning, "128 B: 50 lost (similar in the other runs)"),
            (Note, "asleep"),
            (Note, "64 B: here"),
            (Note, "64 B: there"),
            (Note, "128 B: 1 late (similar in 256 B)"),
        ];
        assert_eq!(shown, expected.map(|(severity, message)| (severity, message.to_owned())));
        assert_eq!(caveats[0].hint, "hint for 50 lost", "message and hint are of one run");
    }
}
