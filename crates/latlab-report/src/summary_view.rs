//! Selects the tables, remarks and caveats of a report of runs. Merges the caveats of several runs.

use std::collections::BTreeSet;

use super::figures::{across, by_cpu, down, histogram, rows_of_conditions, rows_of_runs, windows};
use super::heading::{Headline, are_of_one_kind, heading, names, names_by_condition};
use super::over_runs::{TableRow, explain_medians, factor_of_labels};
use super::quantiles::{explain_marks, explain_marks_of_each};
use super::view::{CaveatView, ReportView, Showing, TableView};
use super::{gates, remarks, stream_tables};
use crate::analysis::{CompatOutput, Kind, Summary, is_routine};
use crate::diagnostics::Caveat;
use crate::units::human::{few, shell_word};

/// Builds the view of the runs of one command.
pub fn report_view(summaries: &[Summary], showing: Showing) -> ReportView {
    let mut report = named_view(summaries, &names(summaries), showing);
    explain_marks(&mut report.tables);
    report
}

/// The same for a page, whose runs have `names` of their `conditions`.
pub(super) fn page_report(
    summaries: &[Summary],
    names: &[String],
    conditions: &[TableRow<'_>],
    showing: Showing,
) -> ReportView {
    let mut report = named_view(summaries, names, showing);
    explain_marks_of_each(&mut report.tables);
    head_labels(&mut report.tables, names, conditions);
    report
}

/// The names of runs on a page: those of their `conditions`, with the short id of the run where it needs one.
pub(super) fn names_on_page(summaries: &[Summary], conditions: &[TableRow<'_>]) -> Vec<String> {
    let labels = conditions.iter().flat_map(|row| vec![row.condition.to_owned(); row.runs.len()]);
    names_by_condition(summaries, labels.collect())
}

/// The view of runs with these `names`, without explanations of marks.
fn named_view(summaries: &[Summary], names: &[String], showing: Showing) -> ReportView {
    let (heading, tables) = match are_of_one_kind(summaries) {
        true => (heading_of(summaries), tables(summaries, names, showing)),
        false => (String::new(), tables_by_kind(summaries, showing)),
    };
    ReportView {
        heading,
        tables,
        alike: match showing.like {
            Some(CompatOutput::NetperfUdpStream) => stream_tables::netperf_lines(summaries),
            None => Vec::new(),
        },
        histogram: if let [one] = summaries { histogram(&one.histogram) } else { None },
        gates: gates::lines(summaries, names),
        remarks: remarks::remarks(summaries, names),
        caveats: caveats(summaries, names),
        recordings: match showing.kept {
            true => summaries.iter().map(|summary| shell_word(&summary.recording)).collect(),
            false => vec!["not kept (`--no-record`)".into()],
        },
        of_store: showing.of_store,
    }
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
        [one] if one.kind == Kind::Ping && (one.condition.interval_ns.is_some() || showing.every_metric) => {
            vec![down(one, showing)]
        }
        [one] => across(one, showing),
        several => rows_of_runs(several, names, showing),
    };
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| by_cpu(summary, name)));
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| windows(summary, name)));
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
    let mut tables = match runs().all(|run| run.stream.is_some()) {
        true => stream_tables::rows_of_conditions(conditions),
        false => rows_of_conditions(conditions, showing),
    };
    explain_medians(&mut tables, conditions);
    head_labels(&mut tables, &conditions.iter().map(|row| row.label.clone()).collect::<Vec<_>>(), conditions);
    let main = runs().next().map(|run| run.metric);
    if let (Some(main), Some(first)) = (main, tables.first_mut().filter(|table| table.title.is_empty())) {
        first.title = format!("{} by condition", main.title());
    }
    tables
}

/// Heads the rows of `conditions`, or of their runs, with the factor whose levels name them. `names` are those of the rows.
fn head_labels(tables: &mut [TableView], names: &[String], conditions: &[TableRow<'_>]) {
    let Some(factor) = factor_of_labels(conditions).filter(|_| names.len() > 1) else { return };
    let names: BTreeSet<&String> = names.iter().collect();
    for table in tables.iter_mut().filter(|table| table.corner.is_empty()) {
        if table.rows.iter().all(|row| row.quiet || names.contains(&row.label)) {
            table.corner.clone_from(&factor);
        }
    }
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
/// runs differ in numbers, those of one run are shown; the JSON documents have all of them.
fn caveats(summaries: &[Summary], names: &[String]) -> Vec<CaveatView> {
    let mut concerns: Vec<Concern> = Vec::new();
    for (summary, name) in summaries.iter().zip(names) {
        for (number, caveat) in summary.caveats.iter().enumerate() {
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
    use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, closed, scheduled};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::diagnostics::Severity;
    use crate::units::human::ABSENT;

    fn run(size_bytes: u32, caveats: &[(Severity, &str, &str)]) -> Summary {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        summary.condition.size_bytes = Some(size_bytes);
        let caveat = |(severity, code, message): &(Severity, &str, &str)| {
            let [code, message] = [code, message].map(|text| text.to_string());
            let hint = format!("hint for {message}");
            Caveat { code, severity: *severity, message, effect: "effect".into(), hint }
        };
        summary.caveats = caveats.iter().map(caveat).collect();
        summary
    }

    #[test]
    fn each_kind_has_tables_of_its_own_and_so_have_response_times_of_some_runs() {
        let source = InMemory::of(EVERY_MS, vec![scheduled(0, 0, 1, 50)]);
        let on_schedule = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        let wakeup = Summary { kind: Kind::Wakeup, metric: Kind::Wakeup.metric(), ..run(64, &[]) };
        let mut elsewhere = run(64, &[]);
        elsewhere.condition.target = "10.0.0.7:9862".into();
        let view = report_view(&[wakeup, elsewhere, on_schedule], Showing::default());
        let begins = view.tables.iter().map(|table| table.title.split(' ').next().unwrap_or_default());
        assert_eq!((view.heading.as_str(), begins.collect::<Vec<_>>()), ("", vec!["ping", "", "", "wakeup"]));
        let labels = |table: usize| {
            let rows = view.tables[table].rows.iter().filter(|row| !row.quiet);
            rows.map(|row| row.label.as_str()).collect::<Vec<_>>()
        };
        let names = vec!["10.0.0.7:9862 · closed loop", "local · every 1 ms"];
        assert_eq!((labels(1), labels(2)), (names.clone(), names[1..].to_vec()));
        let mut cells = view.tables.iter().flat_map(|table| &table.groups).flat_map(|group| &group.columns);
        assert!(cells.all(|column| column.cells.iter().all(|cell| cell != ABSENT)), "{view:#?}");
    }

    #[test]
    fn runs_of_a_page_are_named_by_their_conditions_below_the_factor() {
        let late = [(Severity::Note, "late", "1 late")];
        let of_level = |load: &str, id: &str, caveats: &[(Severity, &str, &str)]| {
            let mut run = run(64, caveats);
            run.recording = format!("x/20261121T021500Z-ping-{id}");
            run.condition.loads = vec![load.to_owned()];
            run
        };
        let runs = [of_level("net=5", "7f3a", &late), of_level("net=5", "81aa", &[]), of_level("cpu=80%", "0d2e", &[])];
        let conditions = |names: [&'static str; 2]| {
            [TableRow::of_condition(names[0], &runs[..2]), TableRow::of_condition(names[1], &runs[2..])]
        };
        let rows = |table: &TableView| {
            let rows = table.rows.iter().filter(|row| !row.quiet).map(|row| row.label.clone());
            std::iter::once(table.corner.clone()).chain(rows).collect::<Vec<_>>()
        };
        let levels = conditions(["net=5", "cpu=80%"]);
        assert_eq!(rows(&condition_tables(&levels, Showing::default())[0]), ["load", "net=5", "cpu=80%"]);
        let names = |conditions: &[TableRow<'_>]| names_on_page(&runs, conditions);
        let report = page_report(&runs, &names(&levels), &levels, Showing::default());
        assert_eq!(rows(&report.tables[0]), ["load", "net=5 · 7f3a", "net=5 · 81aa", "cpu=80%"]);
        assert_eq!(report.caveats[0].message, "net=5 · 7f3a: 1 late");
        let named = conditions(["old", "new"]);
        let report = page_report(&runs, &names(&named), &named, Showing::default());
        assert_eq!(rows(&report.tables[0]), ["", "old · 7f3a", "old · 81aa", "new"]);
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
        let caveats = caveats(&runs, &names(&runs));
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
