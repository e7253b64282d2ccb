//! Lost and late probes in comparisons.

use super::*;

/// The run of `recording`, whose probes take 0 to 4 µs more than the level, without its slowest fifth.
fn lossy(level: i64) -> InMemory {
    let mut source = recording(level, 0);
    for row in source.rows.iter_mut().filter(|row| (row.seq.0 * 7) % 5 == 4) {
        *row = but(row.clone(), Fate::Lost);
    }
    source
}

#[test]
fn a_mean_that_only_losses_improve_is_undecided() {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "mean").expect("known"), None, None);
    // By a clock that is finer than the difference.
    let fine = |level: i64, make: &dyn Fn(i64) -> InMemory| {
        let mut source = make(level);
        source.rows[0].received = Some(crate::units::Stamp::from_nanos(level * 1_000 + 1));
        source
    };
    let of = |make: &dyn Fn(i64) -> InMemory| (0..16).map(|run| fine(20 + run % 2, make)).collect::<Vec<_>>();
    let found = pair(&of(&|level| recording(level, 0)), &of(&lossy), &request);
    let [mean, loss] = found.rows.as_slice() else { panic!("{:?}", found.rows) };
    assert_eq!((mean.verdict, mean.undecided), (Verdict::Undecided, Some(UndecidedReason::Losses)));
    assert!(mean.relative.is_some_and(|change| change.value < 0.0 && change.interval.high > Some(1.0)), "{mean:?}");
    assert_eq!((loss.quantity.label().as_str(), loss.added, loss.verdict), ("loss_ratio", true, Verdict::Higher));
    assert_eq!(gate_states(&found, &["mean <= -1%"]), [GateState::Undecided]);
    // A mean that rises in spite of the losses stands.
    let found = pair(&of(&|level| recording(level, 0)), &of(&|level| lossy(level * 3)), &request);
    assert_eq!(found.rows[0].verdict, Verdict::Higher);
}

/// Neither reading claims anything, but the interval is that of the time-out: more runs would not make it narrower.
#[test]
fn a_gate_that_losses_leave_open_says_so() {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "mean").expect("known"), None, None);
    let found = pair(&runs(50, &[0; 6]), &runs(50, &[1, 1, 0, 1, 0, 1]), &request);
    let row = &found.rows[0];
    assert_eq!(row.undecided, Some(UndecidedReason::Unsure), "{row:?}");
    assert!(row.evidence.reads_losses && row.evidence.losses_widen, "{row:?}");
    let gates = ChangeGate::parse("mean <= +5%", None).expect("a gate").judge(&found);
    assert_eq!((gates[0].state, gates[0].reason), (GateState::Undecided, Some(GateReason::Losses)));
}

/// Delays are infinite in every run of both; only losses differ.
#[test]
fn delays_that_are_infinite_in_every_run_of_both_are_undecided() {
    let mut request = usual_p50();
    request.ask(parse_estimand(None, "loss_ratio").expect("known"), None, None);
    let found = pair(&runs(50, &[30; 4]), &runs(50, &[40; 4]), &request);
    let [p50, loss] = found.rows.as_slice() else { panic!("{:?}", found.rows) };
    assert_eq!((p50.verdict, p50.undecided), (Verdict::Undecided, Some(UndecidedReason::Infinite)));
    assert_eq!(loss.verdict, Verdict::Higher);
}

/// One run without an answer on either side makes the row one of placements; the losses of the others still count.
#[test]
fn losses_do_not_improve_a_mean_of_groups_that_are_infinite_in_part() {
    let mut request = ComparisonRequest::default();
    request.ask(parse_estimand(None, "mean").expect("known"), None, None);
    let whole: Vec<InMemory> = (0..12).map(|_| recording(20, 0)).chain([recording(20, 40)]).collect();
    let lossy: Vec<InMemory> = (0..12).map(|_| lossy(20)).chain([recording(20, 40)]).collect();
    let found = pair(&whole, &lossy, &request);
    let mean = &found.rows[0];
    assert_eq!((mean.method, mean.evidence.infinite), (ComparisonMethod::Placements, (1, 1)));
    assert_eq!((mean.verdict, mean.undecided), (Verdict::Undecided, Some(UndecidedReason::Losses)));
}

#[test]
fn late_answers_have_a_row_beside_the_losses() {
    let late = |level: i64| {
        let mut source = recording(level, 0);
        source.rows[3] = but(source.rows[3].clone(), Fate::Late);
        source
    };
    let candidate: Vec<InMemory> = (0..5).map(|run| late(50 + run)).collect();
    let found = pair(&runs(50, &[0; 5]), &candidate, &usual_p50());
    let labels: Vec<_> = found.rows.iter().map(|row| (row.quantity.label(), row.added)).collect();
    assert_eq!(labels, [("p50".into(), false), ("loss_ratio".into(), true), ("late_ratio".into(), true)]);
}

#[test]
fn an_interval_of_losses_ends_at_all_lost_and_one_of_duplicates_does_not() {
    let ask = |name| {
        let mut request = ComparisonRequest::default();
        request.ask(parse_estimand(None, name).expect("known"), None, None);
        request
    };
    let losses = pair(&runs(50, &[0; 5]), &runs(50, &[0, 0, 40, 40, 40]), &ask("loss_ratio"));
    let interval = losses.rows[0].difference.expect("shares differ").interval;
    assert!(interval.low.is_some_and(|low| low >= -1.0) && interval.high == Some(1.0), "{interval:?}");
    let repeated = |count: u16| {
        let of = |mut source: InMemory| {
            source.rows.iter_mut().for_each(|row| row.duplicates = count);
            source
        };
        runs(50, &[0; 5]).into_iter().map(of).collect::<Vec<_>>()
    };
    let duplicates = pair(&repeated(0), &repeated(3), &ask("duplicate_ratio"));
    let found = duplicates.rows[0].difference.expect("shares differ");
    assert_eq!((found.value, found.interval.low, found.interval.high), (3.0, Some(3.0), Some(3.0)));
}
