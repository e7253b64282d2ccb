//! Gates on changes between groups, also of groups whose figures are infinite or missing, and the outcome.

use super::*;
use crate::diagnostics::Outcome;
use crate::outcome::comparison_outcome;

#[test]
fn a_baseline_that_is_infinite_but_answered_satisfies_limits_that_allow_a_rise() {
    for count in [1, 6] {
        let found = pair(&runs(50, &vec![1; count]), &runs(50, &vec![0; count]), &usual());
        let p99 = found.rows.iter().find(|row| row.quantity.statistic_name() == "p99").expect("a row");
        assert_eq!((p99.verdict, p99.method), (Verdict::Lower, ComparisonMethod::Separated));
        let gates = ["p99 <= +5%", "p99 < 0", "p99 <= -5%", "p99 >= -5%", "p99 >= +5%"];
        let [kept, undecided] = [GateState::Kept, GateState::Undecided];
        assert_eq!(gate_states(&found, &gates), [kept, kept, undecided, undecided, undecided], "{count} runs");
    }
}

/// A comparison of p99 alone between so many runs of each group, of which so many have an infinite one.
fn infinite_in_part(runs_of_each: usize, infinite: [usize; 2]) -> Comparisons {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "p99").expect("known"), None, None);
    let lost = |infinite: usize| (0..runs_of_each).map(|run| usize::from(run < infinite) * 8).collect::<Vec<_>>();
    let [baseline, candidate] = infinite.map(|infinite| runs(50, &lost(infinite)));
    pair(&baseline, &candidate, &request)
}

/// The state of `p99 <= +5%` between the same.
fn state_of_infinite(runs_of_each: usize, infinite: [usize; 2]) -> GateState {
    gate_states(&infinite_in_part(runs_of_each, infinite), &["p99 <= +5%"])[0]
}

#[test]
fn a_candidate_that_is_infinite_in_part_breaks_its_gate_by_the_test_only() {
    for (runs_of_each, infinite, expected) in [
        (3, [0, 2], GateState::Undecided),
        (3, [0, 3], GateState::Broken),
        (3, [1, 3], GateState::Undecided),
        (8, [0, 4], GateState::Undecided),
        (8, [0, 7], GateState::Broken),
        (8, [1, 8], GateState::Broken),
        // Higher by the test, see below, but infinite in most runs of both.
        (16, [9, 16], GateState::Undecided),
    ] {
        assert_eq!(state_of_infinite(runs_of_each, infinite), expected, "{infinite:?} of {runs_of_each}");
    }
    assert_eq!(infinite_in_part(16, [9, 16]).rows[0].verdict, Verdict::Higher);
}

/// The rate in docs/comparing.md: exact, over all numbers of infinite runs of two equal groups.
#[test]
fn equal_groups_with_infinite_runs_rarely_break_a_gate() {
    let binomial = |n: usize, k: usize, p: f64| {
        let ways = (0..k).fold(1.0, |ways, at| ways * (n - at) as f64 / (at + 1) as f64);
        ways * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
    };
    for (runs_of_each, most) in [(1, 0.25), (2, 0.0625), (3, 0.0157), (4, 0.05), (6, 0.05)] {
        let pairs = (0..=runs_of_each).flat_map(|one| (0..=runs_of_each).map(move |other| [one, other]));
        let broken: Vec<[usize; 2]> =
            pairs.filter(|pair| state_of_infinite(runs_of_each, *pair) == GateState::Broken).collect();
        for p in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let chance =
                |[one, other]: &[usize; 2]| binomial(runs_of_each, *one, p) * binomial(runs_of_each, *other, p);
            let rate: f64 = broken.iter().map(chance).sum();
            assert!(rate <= most, "{runs_of_each} runs, p {p}: {rate} by {broken:?}");
        }
    }
}

#[test]
fn a_gate_on_a_figure_that_the_runs_can_never_have_is_refused() {
    let found = pair(&runs(50, &[0; 2]), &runs(50, &[0; 2]), &usual());
    let judgeable = |text: &str| ChangeGate::parse(text, None).expect("a gate").expect_judgeable(&found.groups);
    for (text, cause, hint) in [
        ("response_time p50 <= +5%", "a closed loop has no `response_time`", "pdv, ipdv"),
        ("deadline_miss_ratio <= +1%", "no deadline was given", "measure with `--deadline T`"),
    ] {
        let failure = judgeable(text).expect_err(text).explain();
        assert_eq!((failure.exit_code, failure.cause.as_deref()), (2, Some(cause)), "{text}");
        assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
        assert!(failure.message.contains(text), "{failure:?}");
    }
    for text in ["p50 <= +5%", "ipdv max <= +5%", "loss_ratio <= +1%"] {
        assert_eq!(judgeable(text), Ok(()), "{text}");
    }
}

#[test]
fn a_gate_without_a_run_or_a_row_is_broken() {
    let request = usual_p50();
    let mut dead = runs(50, &[0; 3]);
    dead.iter_mut().for_each(|source| source.manifest.ending = RunEnding::Failed);
    let found = pair(&runs(50, &[0; 3]), &dead, &request);
    let rows = ChangeGate::parse("p50 <= +5%", None).expect("a gate").judge(&found);
    assert_eq!((rows[0].state, rows[0].reason), (GateState::Broken, Some(GateReason::NothingToJudge)));
    let rows = ChangeGate::parse("p90 <= +5%", None).expect("a gate").judge(&found);
    assert_eq!((rows[0].row, rows[0].state), (None, GateState::Broken), "no row compares p90");
}

#[test]
fn gates_are_judged_by_the_whole_interval() {
    let mut request = usual_p50();
    request.include(parse_estimand(None, "mean").expect("known"));
    let groups = RunGroups::by_condition(observe(&experiment(), &request)).expect("two conditions");
    let found = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline");
    let interval = found.rows[0].relative.expect("logarithms").interval;
    let middle = 50.0 * (interval.low.expect("bounded") + interval.high.expect("bounded"));
    for (text, state) in [
        ("p50 <= +5%".to_owned(), GateState::Broken),
        ("p50 <= 50%".to_owned(), GateState::Kept),
        (format!("p50 < {middle:.4}%"), GateState::Undecided),
        ("p50 >= -3%".to_owned(), GateState::Kept),
        ("p50 >= 60 %".to_owned(), GateState::Broken),
        ("round_trip_delay mean <= 0".to_owned(), GateState::Broken),
    ] {
        let gate = ChangeGate::parse(&text, None).expect("a gate");
        let judged: Vec<_> = gate.judge(&found).into_iter().map(|gated| gated.state).collect();
        assert_eq!(judged, [state], "{text}");
    }
    for (text, cause) in [
        ("p99", "none of"),
        ("p99 <= 5", "per cent"),
        ("p99 <= 5us", "per cent"),
        ("<= 5%", "missing"),
        ("p999 <= 5%", "`p999`"),
        ("p99 <= x%", "cannot read"),
    ] {
        let error = ChangeGate::parse(text, None).expect_err(text).explain();
        assert!(error.cause.as_ref().is_some_and(|found| found.contains(cause)), "{text}: {error:?}");
    }
}

#[test]
fn a_fatal_caveat_of_a_run_makes_the_outcome_of_a_comparison_untrusted() {
    let request = usual();
    let outcome = |sources: &[InMemory]| {
        let groups = RunGroups::by_condition(observe(sources, &request)).expect("two conditions");
        comparison_outcome(&compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline"))
    };
    let mut sources = experiment();
    assert_eq!(outcome(&sources), Outcome::Done);
    let caveat = |severity| Caveat::new(severity, "schedule-lost", "late", "", "");
    sources[3].manifest.caveats.push(caveat(Severity::Warning));
    assert_eq!(outcome(&sources), Outcome::Done);
    sources[3].manifest.caveats.push(caveat(Severity::Fatal));
    assert_eq!(outcome(&sources), Outcome::NotTrusted);
}
