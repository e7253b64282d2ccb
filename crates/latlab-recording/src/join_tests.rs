//! The joiner against a reference that keeps everything in memory.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use proptest::prelude::*;

use super::event::{ProbeStamps, SpoolEvent};
use super::join::{Horizon, JoinCounts, JoinRules, ProbeJoin, SpooledWakeups};
use super::spool::{self, Spool};
use super::tables::probes::ProbeColumn;
use super::tables::recorded::GROUP_ROWS;
use crate::plan::Via;
use crate::platform::Directory;
use crate::probe::{Fate, KernelStamps, Phase, ProbeRecord, Seq};
use crate::units::{Nanos, SenderClock, Stamp};

const TIMEOUT: Nanos = Nanos(50);
const SIZE: u32 = 64;

/// A step of a generated run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Fail,
    GiveUp,
    /// A sequence number whose departure fell into a gap.
    Swallow,
    /// An answer to the probe so many before the newest.
    Answer(u64),
    /// Stamps of the probe so many before the newest.
    Stamp(u64),
    TimeOut,
}

fn steps() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let step = prop_oneof![
        8 => Just(Step::Send),
        1 => Just(Step::Fail),
        1 => Just(Step::GiveUp),
        1 => Just(Step::Swallow),
        7 => (0u64..4).prop_map(Step::Answer),
        2 => (0u64..60).prop_map(Step::Answer),
        4 => (0u64..9).prop_map(Step::Stamp),
        1 => Just(Step::TimeOut),
    ];
    proptest::collection::vec((step, 0i64..20), 0..120)
}

fn events_of(steps: &[(Step, i64)]) -> Vec<SpoolEvent> {
    let (mut next, mut now) = (0, 1_000);
    let mut events = Vec::new();
    for (step, pause) in steps {
        now += pause;
        let at = Stamp::from_nanos(now);
        let phase = if next < 5 { Phase::Warmup } else { Phase::Measure };
        let due = (next % 3 != 0).then(|| at - Nanos(1));
        let seq = Seq(next);
        let departed = match step {
            Step::Send => Some(SpoolEvent::Sent { seq, phase, due, sent: at, cpu: (next % 2 == 0).then_some(3) }),
            Step::Fail => Some(SpoolEvent::SendFailed { seq, phase, due, tried: at, errno: 105 }),
            Step::GiveUp => Some(SpoolEvent::NotSent { seq, phase, due: at }),
            Step::Swallow => Some(SpoolEvent::Gap { since: at, events: 1 }),
            Step::TimeOut => {
                let seq = Seq(next.saturating_sub(1));
                events.push(SpoolEvent::TimedOut { seq, waited: Nanos(*pause) });
                None
            }
            Step::Stamp(back) => {
                events.extend(next.checked_sub(1 + back).map(|seq| {
                    let (tx_sched, tx_software) = ((*pause > 3).then_some(at), (*pause > 9).then_some(at));
                    let reflector_tx_lag = (*pause > 6).then_some(Nanos(*pause));
                    SpoolEvent::Stamped(ProbeStamps { seq: Seq(seq), tx_sched, tx_software, reflector_tx_lag })
                }));
                None
            }
            Step::Answer(back) => {
                events.extend(next.checked_sub(1 + back).map(|seq| answer(Seq(seq), at, *pause)));
                None
            }
        };
        next += u64::from(departed.is_some());
        events.extend(departed);
    }
    events
}

fn answer(seq: Seq, received: Stamp<SenderClock>, chance: i64) -> SpoolEvent {
    SpoolEvent::Arrived {
        seq,
        received,
        reflector_received: (chance > 2).then(|| Stamp::from_nanos(-chance)),
        reflector_sent: (chance > 3).then(|| Stamp::from_nanos(chance)),
        rx_software: (chance > 4).then(|| received - Nanos(1)),
        reflector_rx_software: (chance > 5).then(|| Stamp::from_nanos(7)),
        cpu: (chance > 6).then_some(1),
        reflector_cpu: (chance > 7).then_some(2),
    }
}

fn blank(seq: Seq, phase: Phase, due: Option<Stamp<SenderClock>>, fate: Fate) -> ProbeRecord {
    ProbeRecord {
        seq,
        phase,
        due,
        sent: None,
        received: None,
        reflector_received: None,
        reflector_sent: None,
        kernel: KernelStamps::default(),
        size_bytes: SIZE,
        sent_cpu: None,
        received_cpu: None,
        reflector_cpu: None,
        fate,
        error: None,
        duplicates: 0,
        reordered: false,
    }
}

fn naive(events: &[SpoolEvent], cut: bool) -> (Vec<ProbeRecord>, JoinCounts) {
    let mut rows: BTreeMap<Seq, ProbeRecord> = BTreeMap::new();
    let mut counts = JoinCounts::default();
    let (mut next_expected, mut lags) = (Seq(0), BTreeMap::new());
    for event in events {
        if !matches!(event, SpoolEvent::NotSent { .. }) {
            counts.latest = counts.latest.max(event.at());
        }
        match *event {
            SpoolEvent::Sent { seq, phase, due, sent, cpu } => {
                let row = ProbeRecord { sent: Some(sent), sent_cpu: cpu, ..blank(seq, phase, due, Fate::Lost) };
                rows.insert(seq, row);
            }
            SpoolEvent::SendFailed { seq, phase, due, tried, errno } => {
                let row = blank(seq, phase, due, Fate::SendFailed);
                rows.insert(seq, ProbeRecord { sent: Some(tried), error: Some(errno), ..row });
            }
            SpoolEvent::NotSent { seq, phase, due } => {
                _ = rows.insert(seq, blank(seq, phase, Some(due), Fate::NotSent))
            }
            SpoolEvent::Woke { .. } | SpoolEvent::Executed(_) | SpoolEvent::Printed(_) | SpoolEvent::Interval(_) => (),
            SpoolEvent::Gap { events, .. } => counts.gap_events += events,
            SpoolEvent::Stamped(stamps) => {
                if let Some(row) = rows.get_mut(&stamps.seq) {
                    row.kernel.tx_sched = stamps.tx_sched.or(row.kernel.tx_sched);
                    row.kernel.tx_software = stamps.tx_software.or(row.kernel.tx_software);
                    lags.extend(stamps.reflector_tx_lag.map(|lag| (stamps.seq, lag)));
                }
            }
            SpoolEvent::TimedOut { seq, waited } => {
                let refused = rows.get(&seq).is_some_and(|row| row.fate == Fate::SendFailed);
                if rows.values().any(|row| row.phase == Phase::Measure) {
                    *(if refused { &mut counts.refused_pause } else { &mut counts.timed_out }) += waited;
                }
            }
            SpoolEvent::Arrived { seq, .. } => {
                match rows.get_mut(&seq).filter(|row| row.fate.was_sent()) {
                    None => counts.orphan_answers += 1,
                    Some(row) if row.fate != Fate::Lost => row.duplicates += 1,
                    Some(row) => take(row, *event, seq < next_expected),
                }
                next_expected = next_expected.max(Seq(seq.0 + 1));
            }
        }
    }
    for (seq, row) in &mut rows {
        row.kernel.reflector_tx_software = row.reflector_sent.zip(lags.get(seq)).map(|(sent, lag)| sent + *lag);
    }
    let undecided =
        |row: &ProbeRecord| cut && row.fate == Fate::Lost && row.sent.map(|sent| sent + TIMEOUT) > counts.latest;
    let (undecided, rows): (Vec<_>, Vec<_>) = rows.into_values().partition(undecided);
    (counts.undecided_probes, counts.rows) = (undecided.len() as u64, rows.len() as u64);
    (rows, counts)
}

fn take(row: &mut ProbeRecord, event: SpoolEvent, out_of_order: bool) {
    let SpoolEvent::Arrived {
        received, reflector_received, reflector_sent, rx_software, reflector_rx_software, ..
    } = event
    else {
        return;
    };
    let SpoolEvent::Arrived { cpu, reflector_cpu, .. } = event else { return };
    let in_time = row.sent.is_some_and(|sent| received - sent <= TIMEOUT);
    row.fate = if in_time { Fate::Answered } else { Fate::Late };
    row.received = Some(received);
    (row.reflector_received, row.reflector_sent) = (reflector_received, reflector_sent);
    row.kernel = KernelStamps { rx_software, reflector_rx_software, ..row.kernel };
    (row.received_cpu, row.reflector_cpu) = (cpu, reflector_cpu);
    row.reordered = out_of_order;
}

fn spool_of(events: &[SpoolEvent]) -> Arc<Spool> {
    spool_with(&checked(events))
}

fn spool_with(checked: &[u8]) -> Arc<Spool> {
    let above = tempfile::tempdir().expect("temporary directory");
    let directory = Directory::open(above.path()).expect("opens");
    spool::create(&directory, "0123456789abcdef").and_then(|mut file| file.write_all(checked)).expect("written");
    Arc::new(Spool::open(&directory).expect("opens").expect("is there"))
}

fn checked(events: &[SpoolEvent]) -> Vec<u8> {
    let mut bytes = Vec::new();
    events.iter().for_each(|event| spool::append(event.to_words(), &mut bytes));
    let mut checked = Vec::new();
    spool::append_with_checksums(&bytes, &mut 0, &mut checked);
    checked
}

#[test]
fn gaps_and_holes_between_wakeups_are_counted() {
    let gap = |events| SpoolEvent::Gap { since: Stamp::from_nanos(1), events };
    let mut wakeups = SpooledWakeups::new(spool_of(&[gap(3), gap(4)]));
    assert!(wakeups.by_ref().next().is_none(), "a gap has no row");
    assert_eq!(wakeups.counts().gap_events, 7);
    let mut damaged = checked(&[gap(3), gap(4)]);
    damaged[1] ^= 1;
    let mut wakeups = SpooledWakeups::new(spool_with(&damaged));
    assert!(wakeups.by_ref().next().is_none(), "a hole has no row");
    // The checksum of the damaged part is a third place.
    assert_eq!((wakeups.counts().gap_events, wakeups.counts().holes), (0, 3));
}

fn joined(events: &[SpoolEvent], block_probes: usize, horizon: Horizon) -> (Vec<ProbeRecord>, JoinCounts) {
    let spool = spool_of(events);
    let rules = JoinRules { timeout: TIMEOUT, size_bytes: SIZE, horizon, block_probes };
    let mut join = ProbeJoin::new(spool, rules).expect("first pass");
    let mut rows = Vec::new();
    while let Some(block) = join.next_block().expect("second pass") {
        let batch = block.batch(&ProbeColumn::ALL);
        assert!(batch.rows <= block_probes);
        rows.extend((0..batch.rows).map(|row| batch.record(row)));
    }
    (rows, join.counts())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_joiners_agree(
        steps in steps(),
        block_probes in 1usize..9,
        cut: bool,
    ) {
        let events = events_of(&steps);
        let horizon = if cut { Horizon::LastEvent } else { Horizon::Enough };
        prop_assert_eq!(joined(&events, block_probes, horizon), naive(&events, cut));
    }
}

#[test]
fn wakeups_of_several_threads_are_in_the_order_in_which_they_were_due() {
    let rows = 2 * GROUP_ROWS as u64 + 10;
    let event = |seq, due, cpu| SpoolEvent::Woke {
        seq: Seq(seq),
        phase: Phase::Measure,
        due: Stamp::from_nanos(due),
        woke: Stamp::from_nanos(due + 7),
        cpu: Some(cpu),
        via: Via::Spin,
    };
    // The writer empties the ring of one thread after that of the other.
    let of_thread = |cpu: u16| (0..rows / 2).map(move |seq| event(seq, seq as i64 * 10, cpu));
    let events: Vec<_> = of_thread(1).chain(of_thread(0)).collect();
    let mut wakeups = SpooledWakeups::new(spool_of(&events));
    let batches: Vec<_> = wakeups.by_ref().map(|batch| batch.expect("reads")).collect();
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [GROUP_ROWS, GROUP_ROWS, 10]);
    let order = |row: usize| {
        let (batch, row) = (&batches[row / GROUP_ROWS], row % GROUP_ROWS);
        (batch.due_ns.get(row), batch.cpu.get(row), batch.woke_ns.get(row))
    };
    for row in 0..rows as usize {
        let due = (row as i64 / 2) * 10;
        assert_eq!(order(row), (Some(due), Some(row as i64 % 2), Some(due + 7)), "row {row}");
    }
    let counts = wakeups.counts();
    assert_eq!((counts.rows, counts.latest.map(Stamp::as_nanos)), (rows, Some((rows as i64 / 2 - 1) * 10 + 7)));
}

#[test]
fn a_scattered_run_has_every_fate() {
    // Guards the property above against a generator that makes nothing of interest.
    let at = Stamp::from_nanos;
    let sent =
        |seq, nanos| SpoolEvent::Sent { seq: Seq(seq), phase: Phase::Measure, due: None, sent: at(nanos), cpu: None };
    let events = [
        sent(0, 0),
        sent(1, 10),
        answer(Seq(1), at(20), 0),
        answer(Seq(0), at(30), 0),
        answer(Seq(0), at(31), 0),
        SpoolEvent::SendFailed { seq: Seq(2), phase: Phase::Measure, due: None, tried: at(32), errno: 101 },
        SpoolEvent::NotSent { seq: Seq(3), phase: Phase::Measure, due: at(33) },
        sent(4, 40),
        sent(5, 100),
        answer(Seq(4), at(100), 0),
        sent(6, 140),
        answer(Seq(9), at(150), 0),
    ];
    let (rows, counts) = joined(&events, GROUP_ROWS, Horizon::LastEvent);
    let fates: Vec<_> = rows.iter().map(|row| (row.seq.0, row.fate, row.duplicates, row.reordered)).collect();
    let expected = [
        (0, Fate::Answered, 1, true),
        (1, Fate::Answered, 0, false),
        (2, Fate::SendFailed, 0, false),
        (3, Fate::NotSent, 0, false),
        (4, Fate::Late, 0, false),
        (5, Fate::Lost, 0, false),
    ];
    assert_eq!(fates, expected);
    assert_eq!((counts.undecided_probes, counts.orphan_answers), (1, 1));
}
