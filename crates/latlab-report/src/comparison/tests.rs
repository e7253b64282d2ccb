//! Tests of every output format of comparisons with synthetic runs.

use super::{Companions, csv, json, pair_name, parts};
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, ObservedRun, Quantity, RunFigure, RunGroups, RunOrigin, compare,
    parse_estimand,
};
use crate::analysis::{ChangeGate, ChangeGateResult};
use crate::facts::ExcludedCondition;
use crate::metric::Metric;
use crate::plan::Factors;
use crate::view::{Part, TableView};
use crate::{Style, markdown, schemas, text};

fn agenda(shift: bool) -> ComparisonRequest {
    let mut agenda = ComparisonRequest::default();
    for statistic in ["p50", "p99", "loss_ratio"] {
        agenda.ask(parse_estimand(None, statistic).expect("known"), None, (statistic != "p99").then_some(0.03));
    }
    if shift {
        agenda.shift(Metric::RoundTripDelay);
    }
    agenda
}

/// Builds ten runs in each of three blocks, with the median scaled by `factor` and values above it by its square.
fn runs(load: &str, factor: f64, agenda: &ComparisonRequest) -> Vec<ObservedRun> {
    let mut runs = Vec::new();
    for block in 1..=3_u32 {
        for run in 0..10_u32 {
            let level = 48_700.0 * (1.0 + 0.1 * f64::from(block)) * (1.0 + 0.004 * f64::from((run * 7 + block) % 10));
            let figure = |quantity: &Quantity| match quantity.quantile() {
                Some(q) if q > 0.5 => level * (1.0 + q) * factor * factor,
                Some(q) => level * (0.5 + q) * factor,
                None => 0.001 * f64::from(run % 3),
            };
            let figures = agenda
                .quantities()
                .iter()
                .map(|quantity| RunFigure::Finite { value: figure(quantity), supported: true });
            runs.push(ObservedRun {
                origin: RunOrigin { block: Some(("e".into(), block)), ..RunOrigin::default() },
                levels: [("load".to_owned(), load.to_owned())].into(),
                factors: Some([("load".to_owned(), load.to_owned())].into()),
                figures: figures.collect(),
                ..ObservedRun::bare(format!("{load} {block} {run}"), 0.0)
            });
        }
    }
    runs
}

fn comparisons(agenda: &ComparisonRequest) -> Comparisons {
    let all = [("none", 1.0), ("cpu=80%", 0.85), ("net=90%", 1.002)];
    let runs = all.iter().flat_map(|(load, factor)| runs(load, *factor, agenda)).collect();
    let groups = RunGroups::by("load", runs).expect("three loads");
    compare(groups, agenda, &ComparisonOptions::at(0.95)).expect("a baseline")
}

fn gated(comparisons: &Comparisons) -> Vec<ChangeGateResult> {
    ChangeGate::parse("p99 <= +5%", None).expect("a gate").judge(comparisons)
}

fn shown(comparisons: &Comparisons, explain: bool, width: usize) -> String {
    text::render(&parts(comparisons, &gated(comparisons), explain), Style { width, ..Style::PLAIN })
}

/// The first table: that of the verdicts.
fn verdicts(comparisons: &Comparisons) -> TableView {
    let table = |part| if let Part::Table(table) = part { Some(table) } else { None };
    parts(comparisons, &[], false).into_iter().find_map(table).expect("rows")
}

/// Eight runs of each combination of interval, load and call, and a governor that cannot be set.
fn of_several_factors() -> Comparisons {
    let mut agenda = ComparisonRequest::default();
    for baseline in [("via", "clock_nanosleep"), ("load", "none")] {
        let baseline = Some(levels([baseline]));
        agenda.ask(parse_estimand(Some("wakeup_latency"), "mean").expect("known"), baseline, None);
    }
    let (mut runs, mut conditions) = (Vec::new(), Vec::new());
    for (interval, load, via, level_us) in [
        ("10ms", "none", "clock_nanosleep", 145.0),
        ("10ms", "none", "select", 132.0),
        ("100ms", "none", "clock_nanosleep", 157.0),
        ("100ms", "none", "select", 205.0),
        ("10ms", "heaters=30", "clock_nanosleep", 1_800.0),
    ] {
        let own = [("interval", interval), ("load", load), ("set", "governor=as-found"), ("via", via)];
        conditions.push(levels(own));
        runs.extend((0..8_u32).map(|run| ObservedRun {
            origin: RunOrigin { block: Some(("e".into(), 1)), ..RunOrigin::default() },
            levels: levels(own),
            factors: Some(levels(own)),
            ..ObservedRun::bare("r".into(), level_us * 1e3 * (1.0 + 0.01 * f64::from(run * 3 % 8)))
        }));
    }
    let impossible = |governor: &str, via: &str| ExcludedCondition {
        factors: levels([("interval", "10ms"), ("load", "none"), ("set", governor), ("via", via)]),
        reason: format!("cannot set `{governor}`: the kernel does not set frequencies here"),
    };
    let of_governor = |governor| ["clock_nanosleep", "select"].map(|via| impossible(governor, via));
    let impossible = ["governor=ondemand", "governor=performance"].map(of_governor).concat();
    conditions.extend(impossible.iter().map(|condition| condition.factors.clone()));
    let mut groups = RunGroups::of_conditions(&conditions, runs);
    groups.impossible = impossible;
    compare(groups, &agenda, &ComparisonOptions::at(0.95)).expect("a baseline")
}

fn levels<const N: usize>(levels: [(&str, &str); N]) -> Factors {
    levels.into_iter().map(|(factor, level)| (factor.to_owned(), level.to_owned())).collect()
}

#[test]
fn rows_name_what_differs_below_what_is_common() {
    let comparisons = of_several_factors();
    let text = shown(&comparisons, false, 80);
    let expected = "\
wake-up latency, mean, by load and via: 8 runs each, interleaved, 95 % intervals
all with governor=as-found

        baseline  candidate  change ";
    assert!(text.starts_with(expected), "{text}");
    let rows = verdicts(&comparisons).rows;
    let labels: Vec<_> = rows.iter().map(|row| (row.section.as_str(), row.label.as_str())).collect();
    let via = "clock_nanosleep → select, load=none";
    let load = "load=none → heaters=30, 10ms, clock_nanosleep";
    assert_eq!(labels, [(via, "10ms"), (via, "100ms"), (load, "mean")]);
    let impossible = "not possible here: `governor=ondemand`, `governor=performance` (the kernel does\n\
                      not set frequencies here)\n";
    assert!(text.contains(impossible) && text.matches("ondemand").count() == 1, "{text}");
    let table = markdown::render(&parts(&comparisons, &[], false));
    assert!(table.contains("| clock_nanosleep → select, load=none | 100ms | 162 µs | 212 µs |"), "{table}");
}

/// Two runs of each combination of load and size, each compared with the first.
fn without_a_baseline() -> Comparisons {
    let mut agenda = ComparisonRequest::default();
    agenda.ask(parse_estimand(None, "p50").expect("known"), None, None);
    let (mut runs, mut conditions) = (Vec::new(), Vec::new());
    for (load, size) in [("none", "64"), ("none", "1024"), ("cpu=50%", "64"), ("cpu=50%", "1024")] {
        let own = levels([("load", load), ("size", size)]);
        runs.extend((0..2_u32).map(|run| ObservedRun {
            origin: RunOrigin { block: Some(("e".into(), 1)), ..RunOrigin::default() },
            levels: own.clone(),
            factors: Some(own.clone()),
            ..ObservedRun::bare("r".into(), 50_000.0 + f64::from(run))
        }));
        conditions.push(own);
    }
    compare(RunGroups::of_conditions(&conditions, runs), &agenda, &ComparisonOptions::at(0.95)).expect("a baseline")
}

#[test]
fn a_common_baseline_and_several_factors_that_differ_are_named() {
    let comparisons = without_a_baseline();
    let text = shown(&comparisons, false, 80);
    assert!(text.contains("\neach compared with `load=none, size=64`\n"), "{text}");
    assert_eq!(text.matches("2 against 2 runs can never decide: undecided whatever the values").count(), 1, "{text}");
    let mut sections: Vec<String> = verdicts(&comparisons).rows.into_iter().map(|row| row.section).collect();
    sections.dedup();
    let expected = [
        "size=64 → size=1024, load=none",
        "load=none → cpu=50%, size=64",
        "load=none, size=64 → cpu=50%, size=1024 (2 factors differ)",
    ];
    assert_eq!(sections, expected);
    // Figures have no space for the number of factors.
    let last = comparisons.rows.last().map(pair_name(&comparisons));
    assert_eq!(last.as_deref(), Some("load=none, size=64 → cpu=50%, size=1024"));
}

#[test]
fn a_table_fits_the_terminal() {
    let comparisons = [of_several_factors(), comparisons(&agenda(true))];
    for comparisons in &comparisons {
        for columns in 40..140 {
            let text = shown(comparisons, true, columns);
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
            assert!(long.is_empty(), "{columns}: {long:#?}");
        }
    }
    let mut table = verdicts(&comparisons[0]);
    for row in &mut table.rows {
        row.levels.push(std::mem::replace(&mut row.label, "wakeup_latency p99.9".into()));
    }
    let is_nested = |width: usize| {
        let text = text::render(&[Part::Table(table.clone())], Style { width, ..Style::PLAIN });
        text.contains("\n 100ms\n  wakeup_latency p99.9    162 µs     212 µs  +30.6 % [")
    };
    assert!((60..100).any(is_nested), "levels stand above their statistics where both do not fit");
    let text = shown(&comparisons[0], false, 40);
    assert!(text.contains("\n 100ms\n   baseline 162 µs, candidate 212 µs,\n"), "{text}");
}

#[test]
fn numbers_of_unknown_unit_are_shown_without_one() {
    let lines =
        |values: &[f64]| values.iter().map(|value| ObservedRun::bare("line".into(), *value)).collect::<Vec<_>>();
    let groups = vec![
        ("a|b.txt".to_owned(), lines(&[1.0, 2.0, 3.0, -4.0, 5.0])),
        ("<c>, \"d\"".to_owned(), lines(&[6.5, 7.0, 8.0, 9.0, 10.0])),
    ];
    let groups = RunGroups::named(groups).expect("two groups");
    let comparisons =
        compare(groups, &ComparisonRequest::of_values(None), &ComparisonOptions::at(0.95)).expect("a baseline");
    schemas::check("compare", &json(&comparisons, &[], Companions::default()));
    let table = markdown::render(&parts(&comparisons, &[], false));
    assert!(table.contains("| a\\|b.txt → &lt;c>, \"d\" | value |"), "{table}");
    let lines = csv(&comparisons);
    assert!(
        lines.lines().nth(1).is_some_and(|line| line.starts_with("value,value,,a|b.txt,\"<c>, \"\"d\"\"\",5,5,1,")),
        "{lines}"
    );
    let columns = |line: &str| line.split(',').count();
    let mut every = lines.lines();
    assert_eq!(every.next().map(columns), Some(24));
}
