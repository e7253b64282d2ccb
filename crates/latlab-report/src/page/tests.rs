//! Pages of runs in memory: question, verdict, and what stands beside them.

use super::*;
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, ObservedRun, Quantity, RunGroups, compare, default_estimands,
    parse_estimand,
};
use crate::analysis::distribution::{
    DelayGrid, GridCell, HostQuantity, HostSeries, RunDistribution, StreamRates, TailPoint, TimedValue, distribution,
};
use crate::analysis::experiment::ConditionRow;
use crate::analysis::explain::explain;
use crate::analysis::in_memory::{CLOSED, InMemory, but, closed, probes_of};
use crate::analysis::{SummaryOptions, summarise};
use crate::facts::{CommandLine, HostFacts};
use crate::html;
use crate::metric::Metric;
use crate::plan::{Side, Target};
use crate::plots::{PlotCondition, PlotInput, figures};
use crate::probe::Fate;
use crate::recording::manifest::EndFacts;
use crate::report_view;
use crate::stats::{Bucket, Interval};
use crate::units::Nanos;
use crate::view::Showing;

/// A closed loop with a probe each ms of these delays in µs; 0 is a lost probe.
fn source(delays_us: impl IntoIterator<Item = i64>) -> InMemory {
    let row = |(seq, delay): (usize, i64)| {
        let row = closed(seq as u64, seq as i64 * 1_000, delay);
        if delay == 0 { but(row, Fate::Lost) } else { row }
    };
    InMemory::of(CLOSED, delays_us.into_iter().enumerate().map(row).collect())
}

fn summary(source: &InMemory) -> Summary {
    summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory")
}

/// What a page of `summaries` reports without runs, comparisons and figures.
fn input_of(summaries: &[Summary]) -> PageInput<'_> {
    PageInput {
        name: "x",
        summaries,
        explanations: &[],
        showing: Showing { kept: true, wide: true, ..Showing::default() },
        runs: &[],
        experiment: None,
        comparisons: None,
        conditions: &[],
        figures: Vec::new(),
        command: "latlab report x",
    }
}

fn page_of(summaries: &[Summary], runs: &[ReportedRun], comparisons: Option<&Comparisons>) -> PageView {
    page_view(PageInput { runs, comparisons, ..input_of(summaries) })
}

/// The parts of a section.
fn section<'a>(view: &'a PageView, id: &str) -> &'a [Part] {
    let section = view.sections.iter().find(|section| section.id == id);
    &section.unwrap_or_else(|| panic!("no {id}")).parts
}

fn tables(parts: &[Part]) -> Vec<&TableView> {
    parts.iter().filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None }).collect()
}

fn blocks(parts: &[Part]) -> Vec<&TextBlock> {
    parts.iter().filter_map(|part| if let Part::Text(block) = part { Some(block) } else { None }).collect()
}

fn notes(parts: &[Part]) -> Vec<String> {
    parts.iter().flat_map(|part| if let Part::Notes(notes) = part { notes.clone() } else { Vec::new() }).collect()
}

fn verdict_of(delays_us: impl IntoIterator<Item = i64>) -> String {
    page_of(&[summary(&source(delays_us))], &[], None).verdict
}

#[test]
fn the_verdict_of_one_run_has_its_quantiles_and_losses() {
    let many = (0..20_000).map(|index| 40 + index % 7);
    assert_eq!(verdict_of(many), "Of 20,000 probes p50 is 43 µs, p99 is 46 µs; none was lost or late.");
    let lossy = (0..1_000).map(|index| if index % 50 == 0 { 0 } else { 40 });
    assert!(verdict_of(lossy).ends_with("; 20 lost or late."));
    assert_eq!(verdict_of([]), "Nothing was measured.");
    let mut source = source((0..20).map(|_| 40));
    for row in &mut source.rows[15..] {
        *row = but(row.clone(), Fate::NotSent);
    }
    let verdict = page_of(&[summary(&source)], &[], None).verdict;
    assert!(verdict.contains("; none was lost or late; 5 of 20 due probes not sent."), "{verdict}");
}

#[test]
fn a_page_without_a_delay_says_why_it_has_no_plot() {
    let reason = |runs: &[&[i64]]| {
        let summaries: Vec<Summary> = runs.iter().map(|delays| summary(&source(delays.iter().copied()))).collect();
        notes(section(&page_of(&summaries, &[], None), "plots")).concat()
    };
    assert_eq!(reason(&[&[0; 1_200]]), "Plots of delays are missing: all of 1,200 probes count as lost or late.");
    assert_eq!(
        reason(&[&[0, 0], &[0]]),
        "Plots of delays are missing: all of 3 probes in 2 runs count as lost or late."
    );
    assert_eq!(reason(&[&[0]]), "Plots of delays are missing: the only probe counts as lost or late.");
    assert_eq!(reason(&[&[]]), "Plots of delays are missing: nothing was measured.");
    assert_eq!(reason(&[&[40]]), "Plots are missing: there is one probe.");
    assert_eq!(reason(&[&[0, 0], &[40]]), "");
    assert_eq!(reason(&[]), "");
}

#[test]
fn runs_that_are_not_compared_get_no_claim_that_they_differ() {
    let mut runs = [summary(&source([40, 41, 42])), summary(&source([80, 81, 82]))];
    probes_of(&mut runs[1].spec).size_bytes = 1_024;
    let view = page_of(&runs, &[], None);
    assert_eq!(
        view.verdict,
        "Medians of single runs are between 41 µs (`64 B`) and 81 µs (`1,024 B`); whether conditions differ was not tested."
    );
    assert!(view.question.starts_with("How long does a round trip take, in 2 runs (ping"), "{}", view.question);
    let headings: Vec<&str> = tables(section(&view, "results"))[0].groups[1]
        .columns
        .iter()
        .map(|column| column.heading.as_str())
        .take(3)
        .collect();
    assert_eq!(headings, ["min", "mean", "stddev"]);
}

#[test]
fn the_verdict_of_one_condition_has_infinite_figures_first_and_the_kind_of_its_means() {
    let row = |text: &str, lost: usize, is_geometric: bool, mean: Option<f64>| ConditionRow {
        quantity: Quantity::Of(parse_estimand(Some("round_trip_delay"), text).expect("known")),
        runs: 10 - lost,
        lost,
        blocks: 2,
        mean,
        is_geometric,
        interval: mean.map(|mean| Interval { low: Some(mean * 0.8), high: Some(mean * 1.2), confidence: 0.95 }),
    };
    let rows = [
        row("p50", 0, true, Some(48_700.0)),
        row("p99", 2, true, None),
        row("mean", 0, true, Some(50_000.0)),
        row("loss_ratio", 0, false, Some(0.01)),
    ];
    let verdict = |rows: &[ConditionRow]| sentences::verdict_of_condition(rows, None).expect("figures");
    assert_eq!(
        verdict(&rows),
        "Over 10 runs of one condition: p99 infinite in 2 of 10 runs; geometric means p50 48.7 µs [39.0 µs, 58.4 µs], \
         mean 50.0 µs [40.0 µs, 60.0 µs]; mean loss ratio 1 % [0.8 %, 1.2 %]."
    );
    assert!(verdict(&rows[..1]).contains("condition: geometric mean p50 48.7"), "{}", verdict(&rows[..1]));
    assert_eq!(verdict(&rows[1..2]), "Over 10 runs of one condition: p99 infinite in 2 of 10 runs.");
    let named = sentences::verdict_of_condition(&rows[1..2], Some("build=old"));
    assert_eq!(named.as_deref(), Some("Over 10 runs of one condition (`build=old`): p99 infinite in 2 of 10 runs."));
    assert_eq!(sentences::verdict_of_condition(&[], None), None);
}

/// Label and cell of each row of `table` in the column below `heading`, without parentheses.
fn rows_of(table: &TableView, heading: &str) -> Vec<[String; 2]> {
    let mut columns = table.groups.iter().flat_map(|group| &group.columns);
    let column = columns.find(|column| column.heading == heading).unwrap_or_else(|| panic!("{heading}: {table:?}"));
    let rows = table.rows.iter().zip(&column.cells);
    rows.map(|(row, cell)| [row.label.clone(), cell.trim_matches(['(', ')']).to_owned()]).collect()
}

#[test]
fn conditions_with_several_runs_have_a_row_each_and_every_run_is_apart() {
    let run = |us: i64| summary(&source((0..30).map(|_| us)));
    let lossy = summary(&source((0..30).map(|index| if index < 20 { 0 } else { 300 })));
    let runs = [[10, 20, 30, 40, 50, 60].map(run).to_vec(), vec![run(100), lossy], vec![run(70)]].concat();
    let condition = |name, runs| PageCondition { name, runs };
    let conditions = [condition("old", 6), condition("new", 2), condition("last", 1)];
    let view = page_view(PageInput { conditions: &conditions, ..input_of(&runs) });
    let results = section(&view, "results");
    let [table] = tables(results)[..] else { panic!("one table: {results:?}") };
    let labels = ["old", "95 % interval", "new", "95 % interval", "last", ""];
    for (heading, cells) in [
        ("runs", ["6", "", "2", "", "1", ""]),
        ("n", ["180", "", "60", "", "30", ""]),
        ("lost", ["0", "", "20", "", "0", ""]),
        ("lowest", ["10.0", "", "100", "", "70.0", ""]),
        ("mean", ["29.9", "5.83–51.1", "173", "", "70.0", ""]),
        ("p50", ["29.9", "5.83–51.1", "lost", "", "70.0", ""]),
        ("highest", ["60.0", "", "300", "", "70.0", ""]),
    ] {
        let expected: Vec<[String; 2]> =
            labels.iter().zip(cells).map(|(label, cell)| [*label, cell].map(str::to_owned)).collect();
        assert_eq!(rows_of(table, heading), expected, "{heading}");
    }
    let every_run = results.iter().find_map(|part| if let Part::Details(_, parts) = part { Some(parts) } else { None });
    assert_eq!(tables(every_run.expect("details"))[0].rows.len(), 2 * runs.len());
}

/// Five runs about each of these medians in µs, compared.
fn compared(names: [&str; 2], medians_us: [i64; 2]) -> Comparisons {
    let mut request = ComparisonRequest::default();
    default_estimands(Metric::RoundTripDelay).into_iter().for_each(|estimand| request.ask(estimand, None, None));
    let run = |median: i64| {
        let source = source((0..100).map(|index| median + index % 5));
        ObservedRun::of(&source, &request.estimands()).expect("rows in memory")
    };
    let group = |index: usize| (names[index].to_owned(), (0..5).map(|more| run(medians_us[index] + more)).collect());
    let groups = RunGroups::named(vec![group(0), group(1)]).expect("two groups");
    compare(groups, &request, &ComparisonOptions::at(0.95)).expect("comparable")
}

#[test]
fn a_verdict_names_what_is_decided_and_counts_the_rest() {
    let comparisons = compared(["old", "new"], [100, 200]);
    let view = page_of(&[summary(&source([40]))], &[], Some(&comparisons));
    assert_eq!(view.question, "");
    let begin = "Mean of the round trip delay is higher with `new` than with `old`: 204 µs and 104 µs, +9";
    assert!(view.verdict.starts_with(begin), "{}", view.verdict);
    assert!(view.verdict.ends_with("; 2 smaller changes are decided."), "{}", view.verdict);
    let comparisons = compared(["old", "new"], [100, 100]);
    let view = page_of(&[], &[], Some(&comparisons));
    assert!(view.verdict.starts_with("Undecided in all 3 comparisons"), "{}", view.verdict);
    assert!(notes(section(&view, "methods")).concat().contains("runs as its observations"));
}

/// Runs of two groups with these medians in µs and so many lost probes of 100, compared.
fn verdict_of_lossy(medians_us: [i64; 2], lost: [usize; 2], runs: usize) -> String {
    let mut request = ComparisonRequest::default();
    default_estimands(Metric::RoundTripDelay).into_iter().for_each(|estimand| request.ask(estimand, None, None));
    let run = |median: i64, lost: usize| {
        let source = source((0..100).map(|index| if index < lost { 0 } else { median + index as i64 % 5 }));
        ObservedRun::of(&source, &request.estimands()).expect("rows in memory")
    };
    let group = |index: usize| {
        let (median, lost) = (medians_us[index], lost[index]);
        (format!("{median} µs"), (0..runs).map(|more| run(median + more as i64, lost)).collect())
    };
    let groups = RunGroups::named([0, 1].map(group).to_vec()).expect("two groups");
    let comparisons = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("comparable");
    page_of(&[], &[], Some(&comparisons)).verdict
}

#[test]
fn a_verdict_gives_a_reason_only_if_all_comparisons_share_it() {
    let alike = verdict_of_lossy([100, 120], [0, 0], 1);
    assert_eq!(
        alike,
        "Undecided in all 3 comparisons: one run against one run: what differs between runs anyway is unknown."
    );
    // With 2 of 100 probes lost, p99 is infinite in every run, and the other rows vary too much.
    let differing = verdict_of_lossy([100, 101], [2, 2], 5);
    assert!(differing.starts_with("Undecided in all ") && differing.ends_with(" comparisons."), "{differing}");
}

#[test]
fn a_verdict_begins_with_infinite_figures_and_losses_in_words() {
    let verdict = verdict_of_lossy([100, 200], [0, 2], 5);
    let begin = "p99 of the round trip delay is higher with `200 µs` than with `100 µs`: infinite in 0 of 5 runs of the baseline \
                 and 5 of 5 of the candidate; 3 smaller";
    assert!(verdict.starts_with(begin), "{verdict}");
}

#[test]
fn facts_of_hosts_say_what_changed_and_what_differs_between_runs() {
    let host = |governor: &str| {
        let (governors, load_average) = (Some(vec![governor.to_owned()]), Some([governor.len() as f64, 0.0, 0.0]));
        Some(HostFacts { kernel: Some("Linux 6.1".into()), governors, load_average, ..HostFacts::default() })
    };
    let facts = |before: &str, after: &str| {
        let mut source = source([40]);
        source.manifest.here = EndFacts { before: host(before), after: host(after), ..EndFacts::default() };
        source.manifest.peer = EndFacts::default();
        ReportedRun::of(&source.manifest)
    };
    let texts = |runs: &[ReportedRun]| {
        let hosts = reported_run::hosts(runs);
        let [Part::Heading(_), Part::Remarks(rows)] = hosts.as_slice() else { panic!("{hosts:?}") };
        rows.iter().map(|row| format!("{}: {}", row.label, row.text)).collect::<Vec<_>>()
    };
    let changed = facts("ondemand", "performance");
    let load = "load average: 8.00 to 11.0 over 1 minute";
    assert_eq!(texts(&[changed]), ["kernel: Linux 6.1", "governor: ondemand before, performance after", load]);
    let runs = [facts("ondemand", "ondemand"), facts("performance", "performance")];
    assert_eq!(texts(&runs), ["kernel: Linux 6.1", "governor: differs between runs: ondemand; performance", load]);
    assert_eq!(texts(&runs[..1])[2], "load average: 8.00 over 1 minute");
}

#[test]
fn a_page_says_how_to_make_it_again() {
    let source = source([40]);
    let runs = [ReportedRun::of(&source.manifest), ReportedRun::of(&source.manifest)];
    let view = page_of(&[summary(&source)], &runs, None);
    let blocks = blocks(section(&view, "reproduce"));
    assert_eq!(blocks.len(), 3, "one specification of equal runs: {blocks:?}");
    assert_eq!(blocks[0].text, "latlab report x\n");
    assert!(view.made.starts_with("latlab ") && view.made.ends_with(" UTC"), "{}", view.made);
}

#[test]
fn a_page_has_the_command_line_of_each_run_above_its_own() {
    let run_of = |output: &str| {
        let mut source = source([40]);
        source.manifest.command = Some(CommandLine::of(&["/opt/latlab", "ping", "--tag", "build=a b", "-o", output]));
        ReportedRun::of(&source.manifest)
    };
    let commands = |runs: &[ReportedRun]| blocks(section(&page_of(&[], runs, None), "reproduce"))[0].text.clone();
    let unknown = ReportedRun::of(&source([40]).manifest);
    assert_eq!(
        commands(&[run_of("old"), run_of("new"), unknown, run_of("old")]),
        "latlab ping --tag 'build=a b' -o old\nlatlab ping --tag 'build=a b' -o new\nlatlab report x\n"
    );
    let many: Vec<ReportedRun> = (0..20).map(|run| run_of(&run.to_string())).collect();
    assert_eq!(commands(&many).lines().count(), MOST_RUNS + 1);
    assert!(commands(&many).ends_with("\nlatlab report x\n"));
}

/// What a run of ten million probes leaves at most: every limit of `analysis::distribution` is reached, with numbers as long as
/// they can be, and no two cells have the same count.
fn largest_distribution() -> RunDistribution {
    const COLUMNS: usize = 240;
    const ROWS: usize = 96;
    const CELLS: usize = 8_000;
    // 10 µs to 10 s at equal ratios, with all digits.
    let delay = |index: usize, of: usize| 10_000.0 * 1e6_f64.powf(index as f64 / of as f64) + 0.123;
    let edges = |count: usize| (0..=count).map(|index| delay(index, count) as i64).collect::<Vec<_>>();
    let tail = |index: usize| TailPoint { tail: 1e7_f64.powf(-(index as f64) / 512.0), value_ns: delay(index, 512) };
    let bucket =
        |(index, pair): (usize, &[i64])| Bucket { low_ns: pair[0], high_ns: pair[1], count: 61_234 + index as u64 };
    let cell = |index: usize| GridCell { column: index % COLUMNS, row: index / COLUMNS, count: 1_001 + index as u64 };
    let losses = |column: usize| 1_001 + column as u64;
    let at_ns = |index: usize| 1_234_567_891 * index as i64;
    let rate = |share: f64| -> Vec<TimedValue> {
        (0..480)
            .map(|index| TimedValue { at_ns: at_ns(index), value: share * (9.123_456_789e9 + index as f64) })
            .collect()
    };
    let timed = |index: usize| TimedValue { at_ns: at_ns(index), value: 0.123_456_789 + index as f64 / 1_000.0 };
    let series = |(side, cpu, quantity)| HostSeries {
        side,
        cpu,
        quantity,
        is_pinned: false,
        points: (0..480).map(timed).collect(),
    };
    let of_side = |side| (0..4).flat_map(move |cpu| HostQuantity::ALL.map(move |quantity| (side, cpu, quantity)));
    RunDistribution {
        n: 10_000_000,
        lost: 280_000,
        tail: (0..512).map(tail).collect(),
        histogram: edges(160).windows(2).enumerate().map(bucket).collect(),
        over_time: Some(DelayGrid {
            column_ns: Nanos(2_469_135_782),
            columns: COLUMNS,
            edges_ns: edges(ROWS),
            cells: (0..CELLS).map(cell).collect(),
            lost: (0..COLUMNS).map(losses).collect(),
        }),
        rates: StreamRates { offered: rate(1.0), delivered: rate(0.91), lost: rate(0.09) },
        host: [Side::Local, Side::Peer].into_iter().flat_map(of_side).map(series).collect(),
        duration_ns: Nanos(592_592_587_680),
        ..distribution(&source([40]), Metric::RoundTripDelay).expect("rows in memory")
    }
}

#[test]
fn the_largest_page_of_one_run_is_below_two_megabytes() {
    let source = source([40]);
    let condition = PlotCondition { name: "x".into(), levels: [].into(), runs: vec![largest_distribution()] };
    let view = page_view(PageInput {
        runs: &[ReportedRun::of(&source.manifest)],
        figures: figures(&PlotInput { conditions: vec![condition], comparisons: None, recipe: None }),
        ..input_of(&[summary(&source)])
    });
    let mut names = Vec::new();
    for part in section(&view, "plots") {
        if let Part::Figure(figure) = part {
            names.push(figure.name.as_str());
        }
    }
    for name in
        ["tail", "percentiles", "histogram", "over-time", "rates", "host-busy", "host-frequency", "host-interrupts"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let page = html::page(&view);
    assert!(page.matches("class=\"cell").count() >= 8_000);
    assert!(page.len() <= 2_000_000, "{} bytes", page.len());
}

#[test]
fn a_page_says_why_its_runs_were_slow() {
    let source = InMemory::of(CLOSED, (0..300).map(|seq| closed(seq, seq as i64 * 100, 40 + seq as i64 % 7)).collect());
    let (summaries, explanation) = ([summary(&source)], explain(&source, 20).expect("rows in memory"));
    let view = page_view(PageInput { explanations: &[explanation], ..input_of(&summaries) });
    let titles: Vec<&str> = tables(section(&view, "slow")).into_iter().map(|table| &*table.title).collect();
    assert!(titles[0] == "where the time went" && titles[1].starts_with("the worst of "), "{titles:?}");
    // Of many runs none is explained.
    let view = page_view(PageInput { explanations: &[None, None], ..input_of(&summaries) });
    assert!(section(&view, "slow").is_empty());
}

/// A run of so many probes to a host with another clock, with the delays of each way.
fn both_ways(probes: usize) -> Summary {
    let mut source = source((0..probes).map(|_| 40));
    source.manifest.spec.target = Target::Ssh { host: "pi3".into() };
    let options = SummaryOptions { one_way: true, ..SummaryOptions::of(&source.manifest.spec) };
    summarise(&source, &options).expect("rows in memory")
}

#[test]
fn the_delays_of_each_way_have_a_section_with_the_table_of_the_text() {
    let runs = [both_ways(200)];
    let view = page_of(&runs, &[], None);
    let [table] = tables(section(&view, "one-way"))[..] else { panic!("{view:?}") };
    assert!(table.title.ends_with("; the bound is larger than the difference"), "{}", table.title);
    let text = report_view(&runs, Showing::default());
    let of_text = tables(&text);
    assert_eq!(of_text.last().map(|own| (&own.title, &own.groups)), Some((&table.title, &table.groups)));
    assert_eq!(tables(section(&view, "results")).len(), of_text.len() - 1);
    assert!(notes(section(&view, "methods")).concat().contains("A delay of one way is "));
    let few = page_of(&[both_ways(20)], &[], None);
    assert!(notes(section(&few, "one-way")).concat().starts_with("one way: not known: "));
    let mut several = [runs[0].clone(), both_ways(20), summary(&source([40, 41]))];
    several[1].recording = "x/20261121T021500Z-ping-7f3a".into();
    let view = page_of(&several, &[], None);
    let [Part::Details(title, parts), Part::Notes(_)] = section(&view, "one-way") else { panic!("{view:?}") };
    assert!(title.ends_with(&format!(" · {}", table.title)) && !tables(parts)[0].title.is_empty(), "{title}");
    assert!(!html::page(&page_of(&several[2..], &[], None)).contains("One-way delay"));
}
