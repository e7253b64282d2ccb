use super::*;
use crate::facts::{RunKey, RunPosition};
use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
use crate::plan::{Schedule, Via, WakeupCpus, WakeupSpec, Work};
use crate::probe::{Fate, ProbeRecord};
use crate::units::Nanos;
use crate::{SummaryOptions, summarise};

fn summary(schedule: Schedule, rows: Vec<ProbeRecord>, gates: &ValueGates) -> Summary {
    let source = InMemory::of(schedule, rows);
    let mut options = SummaryOptions::of(&source.manifest.spec);
    gates.include(&mut options);
    summarise(&source, &options).expect("no windows asked for")
}

fn available() -> AvailableFigures {
    AvailableFigures::of(&InMemory::of(CLOSED, Vec::new()).manifest.spec, None)
}

fn judge(schedule: Schedule, rows: Vec<ProbeRecord>, text: &str) -> Result<ValueGateResult, GateError> {
    let gates = ValueGates::parse(&[text.to_owned()], false)?;
    let mut summary = summary(schedule, rows, &gates);
    let spec = InMemory::of(schedule, Vec::new()).manifest.spec;
    let available = AvailableFigures::of(&spec, None);
    gates.expect_recorded(&[(summary.recording.clone(), available.clone())])?;
    gates.judge(&mut summary, &available);
    Ok(summary.gates.remove(0))
}

#[test]
fn a_quantile_beyond_one_that_is_lost_is_lost_too() {
    let fate = |seq: u64| if (500..510).contains(&seq) { Fate::Lost } else { Fate::Answered };
    let rows: Vec<_> =
        (0..1_000).map(|seq| but(closed(seq, seq as i64 * 60, 50 + (seq % 7) as i64), fate(seq))).collect();
    for gate in ["p99 <= 1ms", "p99.1 <= 1ms", "p99.2 <= 1ms"] {
        let gates = ValueGates::parse(&[gate.to_owned()], false).expect("a gate");
        let source = InMemory::of(CLOSED, rows.clone());
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.judging.quantiles = vec![0.5];
        gates.include(&mut options);
        let mut summary = summarise(&source, &options).expect("no windows asked for");
        gates.judge(&mut summary, &available());
        let result = &summary.gates[0];
        assert_eq!((result.state, result.reason), (GateState::Broken, Some(GateReason::Infinite)), "{gate}");
    }
}

/// State and reason of the gate `text` in a closed loop.
fn state(rows: Vec<ProbeRecord>, text: &str) -> (GateState, Option<GateReason>) {
    let result = judge(CLOSED, rows, text).expect(text);
    (result.state, result.reason)
}

/// 2,000 round trips of 1 to 2,000 µs in shuffled order, of which the slowest `lost` are lost.
fn closed_loop(lost: i64) -> Vec<ProbeRecord> {
    // Fifth powers modulo this prime have every remainder once.
    let fifth_power = |seq: i64| (seq * seq % 1_999).pow(2) % 1_999 * seq % 1_999;
    let shuffled = |seq: i64| if seq == 1_999 { 2_000 } else { fifth_power(seq) + 1 };
    let row = |seq: i64| closed(seq as u64, seq * 10_000, shuffled(seq));
    let rows = (0..2_000).map(row).map(|row| (row.received.zip(row.sent).map(|(to, from)| (to - from).0), row));
    rows.map(|(ns, row)| if ns > Some((2_000 - lost) * 1_000) { but(row, Fate::Lost) } else { row }).collect()
}

#[test]
fn figures_that_the_data_support_keep_or_break_a_gate() {
    for (text, is_kept) in [
        ("p99 <= 200us", false),
        ("p99<=3ms", true),
        ("  p50  <=  1.0005ms ", true),
        ("p50 < 1000.5us", false),
        ("p50 >= 1000500ns", true),
        ("p50 > 1000500ns", false),
        ("round_trip_delay min < 2us", true),
        ("round-trip-delay max > 2ms", false),
        ("mean <= 1ms", false),
        ("stddev < 1ms", true),
        ("q0.25 > 0.4ms", true),
        ("pdv p99 <= 2ms", true),
        ("ipdv min >= -1us", false),
        ("ipdv max < -1.5 ms", false),
        ("loss_ratio <= 0.1%", true),
        ("loss-ratio < 0", false),
        ("duplicate_ratio <= 0", true),
    ] {
        let expected = if is_kept { GateState::Kept } else { GateState::Broken };
        assert_eq!(state(closed_loop(0), text), (expected, None), "{text}");
    }
    let result = judge(CLOSED, closed_loop(0), " p50 <= 2ms ").expect("a gate");
    assert_eq!((result.gate.as_str(), result.value, result.bounds), ("p50 <= 2ms", Some(1_000_500.0), (None, None)));
    let on_schedule = vec![scheduled(0, 0, 5, 10), scheduled(1, 1_000, 5, 10)];
    assert_eq!(judge(EVERY_MS, on_schedule, "response-time max <= 15us").expect("a gate").state, GateState::Kept);
}

#[test]
fn an_infinite_quantile_decides_if_the_data_support_it_or_its_bound_is_infinite_too() {
    let (infinite, unsupported) = (Some(GateReason::Infinite), Some(GateReason::Unsupported));
    for (lost, text, expected) in [
        (100, "p99 <= 1h", (GateState::Broken, infinite)),
        (100, "p99 < 1h", (GateState::Broken, infinite)),
        (100, "p99 >= 1h", (GateState::Kept, infinite)),
        (100, "p99 > 1h", (GateState::Kept, infinite)),
        (100, "p90 <= 1h", (GateState::Kept, None)),
        (100, "loss_ratio <= 1%", (GateState::Broken, None)),
        // Without support, and its bound is not among the lost: 3 of 2,000, and 2 lie beyond p99.9.
        (3, "p99.9 <= 1h", (GateState::Undecided, unsupported)),
        (3, "p99.9 >= 1h", (GateState::Undecided, unsupported)),
        (3, "p99.9 <= 1ms", (GateState::Broken, unsupported)),
        (3, "p99.9 >= 1ms", (GateState::Kept, unsupported)),
        // Without support, and even its bound is among the lost.
        (100, "p99.99 <= 1h", (GateState::Broken, infinite)),
        (100, "p99.99 >= 1h", (GateState::Kept, infinite)),
    ] {
        assert_eq!(state(closed_loop(lost), text), expected, "{text}, {lost} lost");
    }
    for (lost, text, has_bound) in [(100, "p99 <= 1h", false), (3, "p99.9 <= 1h", true), (100, "p99.99 <= 1h", false)] {
        let result = judge(CLOSED, closed_loop(lost), text).expect("a gate");
        assert_eq!((result.value, result.bounds.0.is_some()), (None, has_bound), "{text}, {lost} lost");
    }
}

#[test]
fn an_unsupported_quantile_is_judged_by_its_bounds() {
    let bound = judge(CLOSED, closed_loop(0), "p99.99 <= 1h").expect("a gate").bounds.0.expect("2,000 probes");
    assert!(bound > 1_000_000.0 && bound <= 1_999_000.0, "{bound}");
    let unsupported = Some(GateReason::Unsupported);
    for (text, expected) in [
        ("p99.99 <= 1h", GateState::Undecided),
        // Between the bound and the sample quantile.
        ("p99.99 <= 1999500ns", GateState::Undecided),
        ("p99.99 >= 1999500ns", GateState::Undecided),
        ("p99.99 <= 1ms", GateState::Broken),
        ("p99.99 < 1ms", GateState::Broken),
        ("p99.99 >= 1ms", GateState::Kept),
        ("p99.99 > 1ms", GateState::Kept),
        ("p99.99 > 1h", GateState::Undecided),
    ] {
        assert_eq!(state(closed_loop(0), text), (expected, unsupported), "{text}");
    }
    assert_eq!(state(vec![closed(0, 0, 5)], "p50 <= 1h"), (GateState::Undecided, unsupported), "no bound");
    // 15 probes of 10 to 24 us: their median is not supported, but has an interval.
    let few = || (0..15).map(|seq| closed(seq, seq as i64 * 60, 10 + (seq * 7 % 15) as i64)).collect::<Vec<_>>();
    let result = judge(CLOSED, few(), "p50 <= 1s").expect("a gate");
    assert_eq!((result.state, result.bounds.0), (GateState::Kept, None), "{result:?}");
    assert!(result.bounds.1.is_some_and(|high| (17_000.0..=24_000.0).contains(&high)), "{result:?}");
    for (text, expected) in [("p50 >= 1s", GateState::Broken), ("p50 <= 18us", GateState::Undecided)] {
        assert_eq!(state(few(), text), (expected, unsupported), "{text}");
    }
}

#[test]
fn only_an_undecided_gate_has_a_warning() {
    let result = |text: &str| judge(CLOSED, closed_loop(0), text).expect("a gate");
    let warning = result("p99.99 <= 1h").undecided_warning().expect("it is undecided");
    assert_eq!(
        (warning.code.as_str(), warning.message.as_str()),
        ("few-observations", "the gate `p99.99 <= 1h` is undecided")
    );
    assert!(warning.hint.contains("--gate-strict"), "{warning:?}");
    for text in ["p99.99 <= 1ms", "p50 <= 1h"] {
        assert_eq!(result(text).undecided_warning(), None, "{text}");
    }
}

#[test]
fn a_gate_without_an_answer_or_a_figure_is_broken() {
    let unanswered = || (0..7).map(|seq| but(closed(seq, seq as i64 * 60, 50), Fate::Lost)).collect::<Vec<_>>();
    for text in ["p99 <= 1s", "p99 >= 1ns", "max > 1ns", "pdv p50 <= 1h", "loss_ratio <= 100%", "loss_ratio >= 0"] {
        for rows in [unanswered(), Vec::new()] {
            assert_eq!(state(rows, text), (GateState::Broken, Some(GateReason::Unanswered)), "{text}");
        }
    }
    let one = vec![closed(0, 0, 1)];
    let alone = || vec![closed(0, 0, 1), but(closed(1, 60, 1), Fate::Lost)];
    for (rows, text) in [(one, "stddev <= 1s"), (alone(), "ipdv p50 <= 1s"), (alone(), "ipdv max >= 0ns")] {
        assert_eq!(state(rows, text), (GateState::Broken, Some(GateReason::NothingToJudge)), "{text}");
    }
}

/// A summary of a wake-up that was measured, with the results of `gates`.
fn of_wakeups(gates: &ValueGates) -> (AvailableFigures, Summary) {
    // Wake-ups are read as probes.
    let mut source = InMemory::of(EVERY_MS, vec![scheduled(0, 0, 0, 7)]);
    let (via, cpus) = (Via::ClockNanosleep, WakeupCpus::Anywhere);
    let spec = WakeupSpec { via, interval_ns: Nanos::from_millis(1), relative: false, cpus, break_ns: None };
    source.manifest.spec = RunSpec::here(Work::Wakeup(spec));
    source.manifest.kind = Kind::Wakeup;
    let mut options = SummaryOptions::of(&source.manifest.spec);
    gates.include(&mut options);
    let mut summary = summarise(&source, &options).expect("no windows");
    gates.judge(&mut summary, &available());
    (AvailableFigures::of(&source.manifest.spec, None), summary)
}

#[test]
fn a_metric_that_was_typed_is_not_replaced_by_that_of_the_run() {
    let gates = |text: &str| ValueGates::parse(&[text.to_owned()], false).expect(text);
    let (available, summary) = of_wakeups(&gates("max <= 1s"));
    let result = &summary.gates[0];
    assert_eq!((result.estimand.metric_name(), result.value), ("wakeup_latency", Some(7_000.0)));
    assert_eq!(gates("max <= 1s").expect_recorded(&[("w".into(), available.clone())]), Ok(()));
    let failure = gates("round_trip_delay max <= 1s")
        .expect_recorded(&[("w".into(), available.clone())])
        .expect_err("a timer")
        .explain();
    assert_eq!((failure.exit_code, failure.cause.as_deref()), (2, Some("such a run has no `round_trip_delay`")));
    assert_eq!(failure.hint.as_deref(), Some("gate on one of wakeup_latency"));
    // The hint names what can be judged, shown or not.
    let failure = judge(CLOSED, closed_loop(0), "wakeup_latency p50 <= 1s").expect_err("no timer").explain();
    let metrics = "round_trip_delay, round_trip_delay_less_dwell, reflector_dwell, pdv, ipdv";
    assert_eq!(failure.hint, Some(format!("gate on one of {metrics}")));
}

#[test]
fn a_metric_or_deadline_that_the_recording_lacks_is_refused() {
    for (text, hint) in [("response_time p99 <= 1ms", "round_trip_delay"), ("deadline_miss_ratio <= 0", "--deadline")] {
        let failure = judge(CLOSED, closed_loop(0), text).expect_err(text).explain();
        assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
        assert!(failure.message.contains(text) && failure.exit_code == 2);
    }
}

#[test]
fn a_planned_run_that_will_lack_a_figure_is_refused() {
    let spec = |schedule: Schedule| InMemory::of(schedule, Vec::new()).manifest.spec;
    let expected = |text: &str, run: &RunSpec| {
        ValueGates::parse(&[text.to_owned()], false).expect(text).expect_judgeable([run].into_iter())
    };
    for (text, run, cause, hint) in [
        ("response_time p99 <= 1ms", spec(CLOSED), "closed loop", "--interval"),
        ("deadline_miss_ratio <= 0", spec(CLOSED), "no deadline", "--deadline"),
        ("p50 >= 1Mbit/s", spec(CLOSED), "`delivered_rate`", "round_trip_delay"),
        ("wakeup_latency p50 <= 1ms", spec(EVERY_MS), "`wakeup_latency`", "round_trip_delay"),
    ] {
        let failure = expected(text, &run).expect_err(text).explain();
        assert!(failure.cause.as_ref().is_some_and(|found| found.contains(cause)), "{failure:?}");
        assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
    }
    for text in ["response_time p99 <= 1ms", "p50 <= 1ms", "loss_ratio <= 0", "reflector_dwell max <= 1s"] {
        assert_eq!(expected(text, &spec(EVERY_MS)), Ok(()), "{text}");
    }
}

#[test]
fn outcomes_follow_from_the_states_and_from_strictness() {
    for (text, usual, strict) in [
        ("p50 <= 1h", Outcome::Done, Outcome::Done),
        ("p99.99 <= 1h", Outcome::Done, Outcome::AnswerIsNo),
        ("p50 <= 1ns", Outcome::AnswerIsNo, Outcome::AnswerIsNo),
    ] {
        for (is_strict, expected) in [(false, usual), (true, strict)] {
            let gates = ValueGates::parse(&[text.to_owned()], is_strict).expect(text);
            let mut summary = summary(CLOSED, closed_loop(0), &gates);
            gates.judge(&mut summary, &available());
            let summaries = [summary];
            assert_eq!(gates.outcome(&summaries), expected, "{text}");
            let states = gates.over_runs(Kind::Ping, &summaries, 0).into_iter().map(|result| result.state());
            assert_eq!(outcome_of(states, gates.is_strict), expected, "{text}");
        }
    }
    assert_eq!(ValueGates::default().outcome(&[]), Outcome::Done);
}

#[test]
fn the_worst_run_of_an_experiment_decides_its_gates() {
    let texts = ["p50 <= 20us", "min >= 15us", "max <= 1h"].map(str::to_owned);
    let gates = ValueGates::parse(&texts, false).expect("gates");
    let run = |name: &str, delay: i64| {
        let rows = (0..100).map(|seq| closed(seq, seq as i64 * 60, delay)).collect();
        let mut summary = Summary { recording: format!("e/runs/{name}"), ..summary(CLOSED, rows, &gates) };
        gates.judge(&mut summary, &available());
        summary
    };
    let results = gates.over_runs(Kind::Ping, &[run("a", 10), run("b", 30), run("c", 40), run("d", 40)], 0);
    let found: Vec<_> = results.iter().map(|result| (result.state(), result.runs, result.broken)).collect();
    assert_eq!(found, [(GateState::Broken, 4, 3), (GateState::Broken, 4, 1), (GateState::Kept, 4, 0)]);
    let worst: Vec<_> = results.iter().map(|result| result.worst.as_ref().expect("a run")).collect();
    let named: Vec<_> = worst.iter().map(|worst| (worst.name.as_str(), worst.result.value)).collect();
    assert_eq!(named, [("c", Some(40_000.0)), ("a", Some(10_000.0)), ("c", Some(40_000.0))]);
}

#[test]
fn the_runs_of_a_condition_are_judged_by_the_interval_of_their_mean() {
    let texts = ["p50 <= 200us", "p50 <= 190us", "p50 >= 200us", "every: p50 <= 200us"].map(str::to_owned);
    let gates = ValueGates::parse(&texts, false).expect("gates");
    let run = |number: u32, condition: u32| {
        let delay = 175 + i64::from(number * 7 % 30);
        let delay = if condition == 2 { delay - 100 } else { delay };
        let rows = (0..100).map(|seq| closed(seq, seq as i64 * 60, delay)).collect();
        let mut summary = summary(CLOSED, rows, &gates);
        let key = RunKey { block: 1, factors: [].into(), repetition: number, warmup: false };
        let position = RunPosition { position: number, condition };
        summary.experiment = Some(key.facts(position, "e", None, true));
        gates.judge(&mut summary, &available());
        summary
    };
    let runs: Vec<_> = (1..=30).flat_map(|number| [run(number, 1), run(number, 2)]).collect();
    let found = gates.over_runs(Kind::Ping, &runs, 0);
    let states: Vec<_> =
        found.iter().map(|result| (result.state(), result.judged, result.broken, result.undecided)).collect();
    let (kept, broken) = (GateState::Kept, GateState::Broken);
    assert_eq!(states, [(kept, 2, 0, 0), (GateState::Undecided, 2, 0, 1), (broken, 2, 2, 0), (broken, 60, 4, 0)]);
    let worst = &found[1].worst.as_ref().expect("runs").result;
    assert!(worst.bounds.0 < worst.value && worst.value < worst.bounds.1, "{worst:?}");
    assert_eq!((worst.reason, found[1].runs), (Some(GateReason::BothSides), 60));
    let mut refused = runs;
    refused[0].counts.send_failed = 2;
    let first = &gates.over_runs(Kind::Ping, &refused, 0)[0];
    assert_eq!((first.state(), first.reason()), (GateState::Undecided, Some(GateReason::NotSent)));
}

#[test]
fn a_gate_of_an_experiment_with_a_condition_without_a_judged_run_is_broken() {
    let gates = ValueGates::parse(&["p50 <= 1s".to_owned()], false).expect("a gate");
    let mut measured = summary(CLOSED, closed_loop(0), &gates);
    gates.judge(&mut measured, &available());
    let result = gates.over_runs(Kind::Ping, &[measured], 1).remove(0);
    assert_eq!((result.state(), result.reason()), (GateState::Broken, Some(GateReason::NothingToJudge)));
    assert_eq!((result.broken, result.undecided_warning()), (0, None));
    let results = gates.over_runs(Kind::Ping, &[], 1);
    assert_eq!((results[0].state(), results[0].reason()), (GateState::Broken, Some(GateReason::NothingToJudge)));
    let states = results.iter().map(ExperimentGateResult::state);
    assert_eq!(outcome_of(states, gates.is_strict), Outcome::AnswerIsNo);
}

#[test]
fn malformed_gates_are_refused_with_text_cause_and_hint() {
    for (text, cause, hint) in [
        ("", "none of", "such as"),
        ("p99", "none of", "such as"),
        ("p99 = 1ms", "none of", "such as"),
        ("p99 =< 1ms", "`=<` is not an operator", "did you mean `<=`?"),
        ("p99 => 1ms", "`=>` is not an operator", "did you mean `>=`?"),
        ("p99 ≤ 1ms", "`≤` is not an operator", "did you mean `<=`?"),
        ("<= 1ms", "statistic is missing", "such as"),
        ("round trip p99 <= 1ms", "3 words", "such as"),
        ("p99 <= 200", "unit is missing", "250us"),
        ("p99 <=", "empty", "250us"),
        ("p99 << 1ms", "number", "250us"),
        ("p99 <= -1us", "negative", "250us"),
        ("p99 <= 5%", "`%`", "latlab compare"),
        ("p99 <= +5%", "cannot read", "latlab compare"),
        ("loss_ratio <= 1ms", "`ms`", "0.5%"),
        ("loss_ratio <= 5", "`%`", "0.5%"),
        ("p100 <= 1ms", "`p100`", "between `p0` and `p100`"),
        ("q1.5 <= 1ms", "`q1.5`", "between `p0` and `p100`"),
        ("pinf <= 1ms", "`pinf`", "known are"),
        ("maximum <= 1ms", "`maximum`", "did you mean `max`?"),
        ("median <= 1ms", "`median`", "did you mean `p50`?"),
        ("rtt p99 <= 1ms", "`rtt`", "did you mean `round_trip_delay`?"),
        ("p999 <= 1ms", "`p999`", "did you mean `p99.9`? a quantile lies"),
        ("tail <= 1ms", "`tail`", "known are"),
        ("response_time <= 1ms", "is a metric", "`response_time p99 <= 1ms`"),
        ("man <= 1ms", "`man`", "did you mean `max`?"),
        ("loss_ration <= 1%", "`loss_ration`", "did you mean `loss_ratio`?"),
        ("responsetime p99 <= 1ms", "`responsetime`", "did you mean `response_time`?"),
        ("latency p99 <= 1ms", "`latency`", "known are round_trip_delay"),
        ("round_trip_delay loss_ratio <= 1%", "whole run", "such as"),
    ] {
        let failure = ValueGate::parse(text).expect_err(text).explain();
        assert!(failure.cause.as_ref().is_some_and(|found| found.contains(cause)), "{text}: {failure:?}");
        assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{text}: {failure:?}");
        assert!(failure.message.contains(&format!("`{text}`")) && failure.exit_code == 2);
    }
}
