//! From runs in memory to verdicts: grouping, levels, caveats and gates.

use std::collections::BTreeMap;

use super::*;
use crate::diagnostics::{Caveat, Explain, Severity};
use crate::facts::{ExperimentFacts, ImportFacts};
use crate::in_memory::{CLOSED, InMemory, but, closed, probes_of};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::probe::Fate;
use crate::recording::manifest::RunEnding;
use crate::units::Nanos;
use crate::{ChangeGate, GateReason, GateState};

mod free_factors;
mod gates;
mod losses;
mod shifts;

/// A run of 40 round trips around `level_us`, the last `lost` of them lost.
fn recording(level_us: i64, lost: usize) -> InMemory {
    let row = |seq: i64| closed(seq as u64, seq * 1_000, level_us + (seq * 7) % 5);
    let mut rows: Vec<_> = (0..40).map(row).collect();
    for row in rows.iter_mut().skip(40 - lost) {
        *row = but(row.clone(), Fate::Lost);
    }
    InMemory::of(CLOSED, rows)
}

/// The same as a run of an experiment.
fn of_experiment(level_us: i64, load: &str, block: u32, boot: &str) -> InMemory {
    let mut source = recording(level_us, 0);
    source.manifest.experiment = Some(ExperimentFacts {
        experiment: "e".into(),
        condition: if load == "none" { 1 } else { 2 },
        factors: BTreeMap::from([("load".into(), load.into())]),
        block,
        round: None,
        position: 1,
        boot_id: Some(boot.into()),
        warmup: false,
    });
    source
}

fn observe(sources: &[InMemory], request: &ComparisonRequest) -> Vec<ObservedRun> {
    sources.iter().map(|source| ObservedRun::of(source, &request.estimands()).expect("rows in memory")).collect()
}

fn usual() -> ComparisonRequest {
    let mut request = ComparisonRequest::default();
    for estimand in default_estimands(Metric::RoundTripDelay) {
        request.ask(estimand, None, None);
    }
    request
}

/// Four runs of each load in each of three blocks; `cpu` is a fifth slower, and blocks differ by far more.
fn experiment() -> Vec<InMemory> {
    let mut sources = Vec::new();
    for block in 1..=3 {
        for run in 0..4 {
            let level = 400 + 500 * i64::from(block) + run * 3;
            sources.push(of_experiment(level, "none", block, &format!("boot {block}")));
            sources.push(of_experiment(level * 6 / 5, "cpu=80%", block, &format!("boot {block}")));
        }
    }
    sources
}

fn codes(comparisons: &Comparisons) -> Vec<&str> {
    comparisons.caveats.iter().map(|caveat| caveat.code.as_str()).collect()
}

#[test]
fn runs_are_compared_within_blocks() {
    let request = usual();
    let groups = RunGroups::by_condition(observe(&experiment(), &request)).expect("two conditions");
    assert_eq!(groups.factor.as_deref(), Some("load"));
    let found = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline");
    assert!(found.is_interleaved() && found.caveats.iter().all(|caveat| caveat.code != "not-interleaved"));
    for row in &found.rows[..2] {
        assert_eq!((row.verdict, row.evidence.runs, row.evidence.blocks), (Verdict::Higher, (12, 12), 3), "{row:?}");
        let relative = row.relative.expect("logarithms");
        assert!((relative.value - 0.2).abs() < 0.01, "{relative:?}");
        assert!(relative.interval.low.is_some_and(|low| low > 0.1), "{relative:?}");
        let (baseline, candidate) = row.centres.expect("a centre");
        assert!((row.difference.expect("in ns").value - (candidate - baseline)).abs() < 1e-6 * candidate);
        assert!(row.adjusted_p_value >= row.p_value && row.undecided.is_none());
    }
    assert_eq!(codes(&found), ["few-observations"], "40 probes support no p99");
}

#[test]
fn the_scope_of_boots_needs_six_boots() {
    let request = usual();
    let groups = RunGroups::by_condition(observe(&experiment(), &request)).expect("two conditions");
    let options = ComparisonOptions { scope: QuestionScope::Boots, ..ComparisonOptions::at(0.95) };
    let found = compare(groups, &request, &options).expect("a baseline");
    let row = &found.rows[0];
    assert_eq!(row.undecided, Some(UndecidedReason::TooFewBoots { boots: 3, needed: 6 }));
    assert_eq!((row.verdict, row.evidence.boots, row.p_value), (Verdict::Undecided, 3, None));
    assert!(
        row.relative.is_some_and(|relative| relative.interval.low.is_none()),
        "the difference is estimated all the same"
    );

    let mut six = Vec::new();
    for boot in 0..6 {
        six.push(of_experiment(900 + 10 * boot, "none", 1 + boot as u32, &format!("boot {boot}")));
        six.push(of_experiment(1_080 + 13 * boot, "cpu", 1 + boot as u32, &format!("boot {boot}")));
    }
    let groups = RunGroups::by_condition(observe(&six, &request)).expect("two conditions");
    let found = compare(groups, &request, &options).expect("a baseline");
    assert_eq!((found.rows[0].evidence.boots, found.rows[0].p_value), (6, Some(2.0 / 64.0)));
}

#[test]
fn a_difference_within_the_margin_is_equivalent() {
    let mut request = ComparisonRequest::default();
    let mean = parse_estimand(None, "mean").expect("known");
    request.ask(mean, None, Some(0.25));
    request.ask(mean, None, Some(0.1));
    let groups = RunGroups::by_condition(observe(&experiment(), &request)).expect("two conditions");
    let found = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline");
    let verdicts: Vec<_> = found.rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Equivalent, Verdict::Higher], "a proven 20 % lies within 25 %, not within 10 %");
}

#[test]
fn single_and_few_runs_are_undecided_with_a_reason() {
    let request = usual();
    let pair = |runs: usize| {
        let of = |level: i64| observe(&vec![0; runs].iter().map(|_| recording(level, 0)).collect::<Vec<_>>(), &request);
        let groups = RunGroups::named(vec![("before".into(), of(50)), ("after".into(), of(80))]).expect("two groups");
        compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline")
    };
    let one = pair(1);
    assert_eq!(one.rows[0].undecided, Some(UndecidedReason::SingleRuns));
    assert_eq!((one.rows[0].p_value, one.rows[0].adjusted_p_value), (None, None));
    assert!(one.rows[0].relative.is_some());
    let two = pair(2);
    assert_eq!(two.rows[0].undecided, Some(UndecidedReason::TooFewRuns));
    assert!(codes(&two).contains(&"not-interleaved"));
    assert_eq!(pair(5).rows[0].verdict, Verdict::Higher);
}

#[test]
fn equal_runs_are_undecided_within_the_step_of_the_clock() {
    let request = usual_p50();
    let runs =
        |name: &str| (name.to_owned(), observe(&[recording(50, 0), recording(50, 0), recording(50, 0)], &request));
    let groups = RunGroups::named(vec![runs("a"), runs("b")]).expect("two groups");
    let found = compare(groups, &request, &ComparisonOptions::at(0.9)).expect("a baseline");
    let row = &found.rows[0];
    assert_eq!((row.p_value, row.verdict), (Some(1.0), Verdict::Undecided));
    let relative = row.relative.expect("logarithms");
    // Delays of 50, 51 … µs: a difference of 1 µs is not excluded.
    assert_eq!(relative.value, 0.0);
    assert!(
        relative.interval.low.is_some_and(|low| low < -0.01) && relative.interval.high.is_some_and(|high| high > 0.01)
    );
    assert_eq!(row.undecided, Some(UndecidedReason::Unsure));
    // 20 permutations reach p = 0.1, which is not enough for the first of three rows at 90 %.
    let request = usual();
    let runs =
        |name: &str| (name.to_owned(), observe(&[recording(50, 0), recording(50, 0), recording(50, 0)], &request));
    let groups = RunGroups::named(vec![runs("a"), runs("b")]).expect("two groups");
    let found = compare(groups, &request, &ComparisonOptions::at(0.9)).expect("a baseline");
    assert_eq!(found.rows[0].undecided, Some(UndecidedReason::TooFewRuns));
}

/// The comparison of two groups of runs, at 95 %.
fn pair(baseline: &[InMemory], candidate: &[InMemory], request: &ComparisonRequest) -> Comparisons {
    let groups = [("baseline", baseline), ("candidate", candidate)];
    let groups = groups.map(|(name, sources)| (name.to_owned(), observe(sources, request))).to_vec();
    compare(RunGroups::named(groups).expect("two groups"), request, &ComparisonOptions::at(0.95)).expect("a baseline")
}

/// Runs at slightly different levels around `level_us`, each with so many of 40 probes lost.
fn runs(level_us: i64, lost: &[usize]) -> Vec<InMemory> {
    lost.iter().enumerate().map(|(run, lost)| recording(level_us + run as i64, *lost)).collect()
}

fn gate_states(found: &Comparisons, gates: &[&str]) -> Vec<GateState> {
    let gates = gates.iter().map(|text| ChangeGate::parse(text, None).expect("a gate"));
    gates.flat_map(|gate| gate.judge(found)).map(|row| row.state).collect()
}

#[test]
fn groups_that_are_infinite_in_part_are_compared_by_placements() {
    let mut request = usual();
    request.ask(parse_estimand(None, "loss_ratio").expect("known"), None, None);
    let found = pair(&runs(50, &[0; 4]), &runs(50, &[8, 8, 0, 0]), &request);
    let p99 = found.rows.iter().find(|row| row.quantity.statistic_name() == "p99").expect("asked for");
    assert_eq!((p99.method, p99.evidence.infinite), (ComparisonMethod::Placements, (0, 2)));
    assert!(p99.centres.is_none() && p99.difference.is_none() && p99.relative.is_none() && p99.p_value.is_some());
    assert_eq!(gate_states(&found, &["p99 <= +5%"]), [GateState::Undecided]);
    let loss = found.rows.iter().find(|row| row.quantity.is_share()).expect("asked for");
    assert_eq!((loss.scale, loss.relative), (FigureScale::Linear, None));
    assert!((loss.difference.expect("points").value - 0.1).abs() < 1e-12);
    assert!(codes(&found).contains(&"lost"));
    // Seven of eight runs infinite against none is decided by the test, and breaks every gate.
    let found = pair(&runs(50, &[0; 8]), &runs(50, &[8, 8, 8, 8, 8, 8, 8, 0]), &request);
    let p99 = found.rows.iter().find(|row| row.quantity.statistic_name() == "p99").expect("asked for");
    assert_eq!((p99.method, p99.verdict), (ComparisonMethod::Placements, Verdict::Higher));
    assert_eq!(gate_states(&found, &["p99 <= +500%"]), [GateState::Broken]);
}

#[test]
fn a_candidate_that_answers_nothing_is_higher_and_breaks_every_gate_at_any_number_of_runs() {
    let mut request = usual();
    request.ask(parse_estimand(None, "loss_ratio").expect("known"), None, None);
    for count in [1, 2, 6] {
        let (live, dead) = (runs(50, &vec![0; count]), runs(50, &vec![40; count]));
        let found = pair(&live, &dead, &request);
        for row in &found.rows {
            assert_eq!((row.verdict, row.method), (Verdict::Higher, ComparisonMethod::Separated), "{row:?}");
            assert!(row.relative.is_none() && row.undecided.is_none() && row.p_value.is_none());
            assert_eq!(row.difference.map(|points| points.value), row.quantity.is_share().then_some(1.0));
        }
        let gates = ["p99 <= +5%", "mean <= +900%", "p50 >= -99%", "loss_ratio <= +100%"];
        assert_eq!(gate_states(&found, &gates), [GateState::Broken; 4], "{count} runs");
        let found = pair(&dead, &live, &request);
        assert!(found.rows.iter().all(|row| row.verdict == Verdict::Lower), "{count} runs");
        let gates = ["p99 <= +5%", "mean <= +900%", "p50 >= -99%", "loss_ratio <= 0"];
        assert_eq!(gate_states(&found, &gates), [GateState::Broken; 4], "{count} runs: nothing to compare with");
        let dead_baseline = ChangeGate::parse("p99 <= +5%", None).expect("a gate").judge(&found);
        assert_eq!(dead_baseline[0].reason, Some(GateReason::NothingToJudge));
        let found = pair(&dead, &dead, &request);
        assert_eq!(found.rows[0].undecided, Some(UndecidedReason::Infinite));
        assert_eq!(gate_states(&found, &["p99 <= +5%", "mean <= +5%"]), [GateState::Broken; 2]);
    }
}

#[test]
fn an_infinite_quantile_in_every_run_of_the_candidate_alone_breaks_its_gate() {
    let found = pair(&runs(50, &[0; 6]), &runs(50, &[1; 6]), &usual());
    let verdict = |name: &str| {
        let row = found.rows.iter().find(|row| row.quantity.statistic_name() == name).expect("a row");
        (row.verdict, row.method)
    };
    assert_eq!(verdict("p99"), (Verdict::Higher, ComparisonMethod::Separated), "1 of 40 is more than 1 %");
    assert_eq!(verdict("ratio"), (Verdict::Higher, ComparisonMethod::Shift));
    assert_eq!(gate_states(&found, &["p99 <= +5%", "loss_ratio <= 0"]), [GateState::Broken; 2]);
}

#[test]
fn ratios_that_are_0_in_every_run_are_an_answer() {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "loss_ratio").expect("known"), None, None);
    for count in [1, 6] {
        let found = pair(&runs(50, &vec![0; count]), &runs(50, &vec![0; count]), &request);
        assert_eq!((found.rows[0].verdict, found.rows[0].undecided), (Verdict::None, None), "{count} runs");
    }
}

#[test]
fn a_row_that_no_values_could_make_significant_after_the_correction_says_so() {
    let mut request = ComparisonRequest::default();
    for name in ["mean", "p50", "p90", "p10", "min"] {
        request.ask(parse_estimand(None, name).expect("known"), None, None);
    }
    // Complete separation of five runs has p = 2 / 252, which five rows raise to 0.04; of four 2 / 70, raised to 0.14.
    let found = pair(&runs(50, &[0; 4]), &runs(80, &[0; 4]), &request);
    for row in &found.rows {
        assert_eq!(row.undecided, Some(UndecidedReason::TooFewRuns), "{row:?}");
    }
}

/// A run of 40 probes whose reflector is on CPU 1, and whose sender is on it, too, in the first `together`.
fn unpinned(together: usize) -> InMemory {
    let mut source = recording(50, 0);
    for (number, row) in source.rows.iter_mut().enumerate() {
        let sender = Some(u16::from(number < together));
        (row.sent_cpu, row.received_cpu, row.reflector_cpu) = (sender, sender, Some(1));
    }
    source.manifest.spec.here.cpu = None;
    source.manifest.spec.peer.as_mut().expect("a local run has it").cpu = None;
    source
}

fn unequal_placement(baseline: &[InMemory], candidate: &[InMemory]) -> Option<Caveat> {
    let caveats = pair(baseline, candidate, &usual_p50()).caveats;
    caveats.into_iter().find(|caveat| caveat.code == "unpinned-placement")
}

#[test]
fn runs_whose_placement_differs_are_a_warning() {
    let baseline = [unpinned(40), unpinned(20), unpinned(0)];
    let found = unequal_placement(&baseline, &[unpinned(0), unpinned(2), unpinned(0)]).expect("they differ");
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(
        found.message,
        "both ends were on CPUs that varied in 1 of 6 runs (1 of 3 of `baseline`); on one CPU in 1 of 6 runs (1 of 3 of \
         `baseline`); on two CPUs in 4 of 6 runs (all of `candidate`; 1 of 3 of `baseline`)"
    );
}

#[test]
fn equal_placements_and_placements_that_pins_chose_are_no_warning() {
    let alike = [unpinned(0), unpinned(1), unpinned(0)];
    assert_eq!(unequal_placement(&alike, &alike), None);
    let pinned = |here: u16| {
        let mut source = unpinned(40);
        source.manifest.spec.here.cpu = Some(here);
        source.manifest.spec.peer.as_mut().expect("a local run has it").cpu = Some(1);
        source
    };
    assert_eq!(unequal_placement(&[pinned(0), pinned(0)], &[pinned(1), pinned(1)]), None, "as the user chose");
    let found = unequal_placement(&[pinned(1), pinned(1)], &alike).expect("the scheduler chose another");
    assert!(found.message.contains("on one CPU in 2 of 5 runs (all of `baseline`)"), "{found:?}");
}

#[test]
fn a_caveat_that_is_a_note_in_some_runs_is_counted_as_a_warning_where_it_is_one() {
    // Runs with other placements have a caveat of their own in place of this one.
    let runs = [unpinned(20), unpinned(20), unpinned(20)];
    let mut slow = unpinned(20);
    slow.rows[..20].iter_mut().for_each(|row| row.received = row.received.map(|at| at + Nanos::from_micros(50)));
    let mut others: Vec<InMemory> = (0..2).map(|_| unpinned(20)).collect();
    others.push(slow);
    let caveats = pair(&runs, &others, &usual_p50()).caveats;
    let found = caveats.iter().find(|caveat| caveat.code == "unpinned-placement").expect("a warning in one run");
    assert_eq!(found.severity, Severity::Warning);
    let counted = "1 of 6 runs (1 of 3 of `candidate`): the ends were not both pinned; of the probes ";
    assert!(found.message.starts_with(counted), "{found:?}");
}

#[test]
fn the_warnings_of_runs_are_counted_and_unbalanced_ones_come_first() {
    let warned = |level: i64, codes: &[&str]| {
        let mut source = recording(level, 0);
        let caveat = |code: &&str| Caveat {
            code: (*code).into(),
            message: format!("about {code}"),
            ..Caveat::new(Severity::Warning, "steal", "", "", "")
        };
        source.manifest.caveats.extend(codes.iter().map(caveat));
        source
    };
    let baseline: Vec<InMemory> = (0..4).map(|run| warned(50 + run, &["both"])).collect();
    let candidate: Vec<InMemory> = (0..4).map(|run| warned(50 + run, &["both", "one-side"])).collect();
    let found = pair(&baseline, &candidate, &usual_p50());
    let of_runs: Vec<_> = found.caveats.iter().filter(|caveat| caveat.message.contains("for example")).collect();
    let [first, second] = of_runs.as_slice() else { panic!("{:?}", found.caveats) };
    assert_eq!(first.message, "4 of 8 runs (all of `candidate`), for example: about one-side");
    assert_eq!(second.message, "8 of 8 runs, for example: about both");
}

#[test]
fn a_verdict_on_groups_of_unequal_spread_names_the_ratio() {
    let wide = |run: i64| recording(100 + 12 * run, 0);
    let found = pair(&runs(50, &[0; 6]), &(0..6).map(wide).collect::<Vec<_>>(), &usual_p50());
    assert_eq!(found.rows[0].verdict, Verdict::Higher);
    let caveat = found.caveats.iter().find(|caveat| caveat.code == "unequal-spread").expect("a ratio above 4");
    assert!(caveat.message.contains("p50 ") && caveat.message.contains(" times"), "{caveat:?}");
    let found = pair(&runs(50, &[0; 6]), &runs(90, &[0; 6]), &usual_p50());
    assert!(!codes(&found).contains(&"unequal-spread"));
}

#[test]
fn failed_and_warm_up_runs_are_excluded_with_a_caveat() {
    let request = usual();
    let mut sources = experiment();
    sources[0].manifest.ending = RunEnding::Failed;
    sources[2].manifest.ending = RunEnding::Interrupted;
    sources[4].manifest.experiment.as_mut().expect("of an experiment").warmup = true;
    let groups = RunGroups::by_condition(observe(&sources, &request)).expect("two conditions");
    assert_eq!(groups.groups[0].runs.len(), 9);
    let found = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline");
    let caveat = found.caveats.iter().find(|caveat| caveat.code == "runs-left-out").expect("some are excluded");
    assert!(
        caveat.message.contains("1 run that warmed up") && caveat.message.contains("1 run that failed"),
        "{caveat:?}"
    );
}

#[test]
fn unknown_and_constant_factors_are_refused_with_a_hint() {
    let request = usual();
    let mut sources = vec![recording(50, 0), recording(60, 0)];
    for (source, build) in sources.iter_mut().zip(["old", "new"]) {
        source.manifest.spec.tags.insert("build".into(), build.into());
    }
    let runs = observe(&sources, &request);
    let groups = RunGroups::by("tag:build", runs.clone()).expect("two builds");
    assert_eq!(
        groups.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
        ["new", "old"],
        "by their letters"
    );
    let unknown = RunGroups::by("tag:buidl", runs.clone()).expect_err("no such tag");
    assert!(unknown.explain().hint.is_some_and(|hint| hint.contains("`tag:build`")), "{unknown:?}");
    let bare = RunGroups::by("build", runs.clone()).expect_err("a tag is named with its prefix");
    assert_eq!(bare.explain().hint.as_deref(), Some("write it `--by tag:build`"));
    assert!(unknown.explain().cause.is_some_and(|cause| cause.ends_with("is tag:build")), "what varies: {unknown:?}");
    let one = RunGroups::by("size", runs).expect("one size is a group");
    let same = compare(one, &request, &ComparisonOptions::at(0.95)).expect_err("and no comparison").explain();
    assert_eq!(same.cause.as_deref(), Some("`size` is `64 B` in every run"));
    assert_eq!(same.hint.as_deref(), Some("group the runs by what varies: `--by tag:build`"));
}

#[test]
fn mixed_kinds_and_foreign_metrics_are_refused() {
    let request = usual();
    let mut runs = observe(&[recording(50, 0), recording(60, 0)], &request);
    let asked = request.estimands();
    assert_eq!(expect_one_kind(&runs, &asked), Ok(()));
    assert_eq!(expect_one_kind(&[ObservedRun::bare("1".into(), 1.0)], &[]), Ok(()));
    let foreign = parse_estimand(Some("wakeup_latency"), "p99").expect("a metric");
    let refused = expect_one_kind(&runs, &[asked[0], foreign]).expect_err("not of pings");
    assert!(refused.explain().cause.is_some_and(|cause| cause.contains("round_trip_delay")), "{refused:?}");
    runs[1].kind = Some(Kind::Wakeup);
    let refused = expect_one_kind(&runs, &asked).expect_err("two kinds");
    assert_eq!(refused.to_string(), "cannot compare runs of `ping` with runs of `wakeup`");
    let refused = refused.explain();
    assert_eq!((refused.cause.as_deref(), refused.exit_code), (Some("1 of ping, 1 of wakeup"), 2));
    assert_eq!(refused.hint.as_deref(), Some("choose one: `--kind ping` or `--kind wakeup`"));
}

#[test]
fn other_differing_factors_and_the_order_of_runs_raise_caveats() {
    let request = usual();
    let mut sources: Vec<InMemory> = (0..8).map(|run| recording(50 + run, 0)).collect();
    for (place, source) in sources.iter_mut().enumerate() {
        source.manifest.spec.tags.insert("build".into(), if place % 2 == 0 { "old" } else { "new" }.into());
        probes_of(&mut source.manifest.spec).size_bytes = if place % 2 == 0 { 64 } else { 1_024 };
        source.manifest.started_at = format!("2026-11-22T00:00:0{place}Z");
    }
    let found = |sources: &[InMemory]| {
        let groups = RunGroups::by("tag:build", observe(sources, &request)).expect("two builds");
        compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline")
    };
    let in_turn = found(&sources);
    let first = &in_turn.caveats[0];
    assert_eq!((first.code.as_str(), first.message.as_str()), ("confounded", "the groups also differ in size"));
    let severity = |found: &Comparisons| {
        found.caveats.iter().find(|caveat| caveat.code == "not-interleaved").map(|caveat| caveat.severity)
    };
    assert_eq!(severity(&in_turn), Some(crate::diagnostics::Severity::Note), "they alternate");
    sources.sort_by_key(|source| source.manifest.spec.size_bytes());
    for (place, source) in sources.iter_mut().enumerate() {
        source.manifest.started_at = format!("2026-11-22T00:00:0{place}Z");
    }
    assert_eq!(severity(&found(&sources)), Some(crate::diagnostics::Severity::Warning), "one after the other");
    // The date of an imported log may be that of its import.
    sources[0].manifest.run.import = Some(ImportFacts::default());
    assert_eq!(severity(&found(&sources)), Some(crate::diagnostics::Severity::Note), "not known");
    // The order of another pair is known, and its groups were measured one after the other.
    sources[0].manifest.spec.tags.insert("build".into(), "other".into());
    assert_eq!(severity(&found(&sources)), Some(crate::diagnostics::Severity::Warning));
}

#[test]
fn a_baseline_of_levels_is_compared_with_its_counterparts() {
    let request = |baseline: &str| {
        let mut request = ComparisonRequest::default();
        let levels = BTreeMap::from([("load".to_owned(), baseline.to_owned())]);
        request.ask(parse_estimand(None, "p50").expect("known"), Some(levels), None);
        request
    };
    let mut sources = Vec::new();
    for (condition, (load, size)) in
        [("none", "64"), ("none", "1024"), ("cpu", "64"), ("cpu", "1024")].into_iter().enumerate()
    {
        for run in 0..4 {
            let mut source = of_experiment(50 + 10 * condition as i64 + run, load, 1, "boot");
            let experiment = source.manifest.experiment.as_mut().expect("of an experiment");
            experiment.factors.insert("size".into(), size.into());
            experiment.condition = condition as u32 + 1;
            sources.push(source);
        }
    }
    let runs = observe(&sources, &request("none"));
    let groups = RunGroups::by_condition(runs.clone()).expect("four conditions");
    let found = compare(groups.clone(), &request("none"), &ComparisonOptions::at(0.95)).expect("baselines");
    let pairs: Vec<_> = found.rows.iter().map(|row| (row.baseline, row.candidate)).collect();
    assert_eq!(pairs, [(0, 2), (1, 3)], "each load against load `none` of the same size");
    let unknown = compare(groups, &request("net"), &ComparisonOptions::at(0.95)).expect_err("no such load");
    assert!(unknown.explain().cause.is_some_and(|cause| cause.contains("`net`")), "{unknown:?}");
    // Grouped by one factor, the levels of the other are strata.
    let by_load = RunGroups::by("load", runs).expect("two loads");
    let found = compare(by_load, &usual_p50(), &ComparisonOptions::at(0.95)).expect("a baseline");
    assert_eq!((found.rows[0].evidence.runs, found.rows[0].evidence.blocks), ((8, 8), 1));
    assert_eq!(found.rows[0].evidence.strata, 2, "each size apart");
}

fn usual_p50() -> ComparisonRequest {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "p50").expect("known"), None, None);
    request
}

#[test]
fn precision_depends_on_widths_and_not_on_differences() {
    let request = usual_p50();
    let groups = |factor: i64| {
        let mut sources = Vec::new();
        for (block, run) in (1..=5).flat_map(|block| (0..6).map(move |run| (block, run))) {
            let level = 10_000 + 3_000 * i64::from(block) + 100 * run;
            sources.push(of_experiment(level, "none", block, "b"));
            sources.push(of_experiment(level * factor, "cpu", block, "b"));
        }
        RunGroups::by_condition(observe(&sources, &request)).expect("two conditions").groups
    };
    let options = ComparisonOptions::at(0.95);
    for factor in [1, 3] {
        assert!(is_precise(&groups(factor), 0, 0.05, &options), "times {factor}");
        assert!(!is_precise(&groups(factor), 0, 0.001, &options), "times {factor}");
    }
    let alone = |blocks: u32| {
        let mut group = groups(1).swap_remove(0);
        group.runs.retain(|run| run.origin.block.as_ref().is_some_and(|(_, block)| *block <= blocks));
        is_precise(&[group], 0, 0.05, &options)
    };
    assert!(alone(5), "a single group by its own mean");
    assert!(!alone(4), "24 runs are enough, but the goal must be reached again one block later");
    // On a linear scale the half-width is a share of the baseline too, not of 1 ns.
    let shifted = |share: f64| {
        let mut groups = groups(1);
        let lowest = ObservedRun {
            figures: vec![RunFigure::Finite { value: -1.0, supported: true }],
            ..groups[0].runs[0].clone()
        };
        groups[0].runs.push(lowest);
        is_precise(&groups, 0, share, &options)
    };
    assert!(shifted(0.5) && !shifted(0.001));
    let few: Vec<RunGroup> = groups(1)
        .into_iter()
        .map(|mut group| {
            group.runs.truncate(9);
            group
        })
        .collect();
    assert!(!is_precise(&few, 0, 0.5, &options), "fewer than ten runs");
}

#[test]
fn groups_of_paths_have_the_last_component_as_their_name_if_these_differ() {
    let named = |names: &[&str]| {
        let groups = names.iter().map(|name| ((*name).to_owned(), vec![ObservedRun::bare("r".into(), 1.0)])).collect();
        let groups = RunGroups::of_paths(groups).expect("a run each").groups;
        groups.into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    assert_eq!(named(&["old/a/", "new/b"]), ["a", "b"]);
    assert_eq!(named(&["old/a", "new/a"]), ["old/a", "new/a"]);
    let runs = observe(&experiment(), &usual());
    let of_experiment = RunGroups::of_paths(vec![("e/runs".into(), runs.clone())]).expect("two conditions");
    assert_eq!(of_experiment.groups.len(), 2);
    let of_globs = RunGroups::of_globs(vec![("e/runs".into(), runs)]).expect("one group");
    assert_eq!(of_globs.groups.len(), 1, "a glob names its group");
}
