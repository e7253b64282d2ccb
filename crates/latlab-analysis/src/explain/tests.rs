use super::*;
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, probes_of, scheduled};
use crate::plan::{ConcurrentWakeups, Target, Via, WakeupCpus, WakeupSpec, Work};
use crate::probe::{Fate, ProbeRecord};
use crate::units::{Nanos, Stamp};

fn explained(source: &InMemory) -> Explanation {
    explain(source, 20).expect("rows in memory").expect("a run of probes or wake-ups")
}

fn claimed(found: &Explanation) -> Vec<(CommonTest, &str)> {
    found.common.iter().filter(|cause| cause.is_claimed).map(|cause| (cause.test, &*cause.what)).collect()
}

/// Without a pattern in any period: the golden ratio of 1,000.
fn scattered(seq: u64) -> i64 {
    (seq as i64 * 618) % 1_000
}

/// A probe sent at `start_us` with every stamp on one clock; the reflector is woken after `wakeup_us`.
fn stamped(seq: u64, start_us: i64, wakeup_us: i64) -> ProbeRecord {
    let at = |us: i64| Stamp::from_nanos((start_us + us) * 1_000);
    let mut row = closed(seq, start_us, 12 + wakeup_us);
    (row.kernel.tx_sched, row.kernel.tx_software) = (Some(at(1)), Some(at(3)));
    let peer = |us: i64| Stamp::from_nanos((start_us + us) * 1_000);
    row.kernel.reflector_rx_software = Some(peer(4));
    (row.reflector_received, row.reflector_sent) = (Some(peer(4 + wakeup_us)), Some(peer(6 + wakeup_us)));
    row.kernel.reflector_tx_software = Some(peer(7 + wakeup_us));
    row.kernel.rx_software = Some(at(8 + wakeup_us));
    row
}

/// 1,000 probes of which every 40th waits 400 µs or more for the reflector.
fn with_slow_peer() -> InMemory {
    let row = |seq: u64| {
        let wakeup = if seq % 40 == 7 { 400 + scattered(seq) } else { 5 };
        stamped(seq, seq as i64 * 2_000 + scattered(seq), wakeup)
    };
    let mut source = InMemory::of(CLOSED, (0..1_000).map(row).collect());
    source.manifest.run.stamps = Some(StampFacts { error_ns: 1_500, clock_steps: 0, cost_ns: 400 });
    source
}

#[test]
fn the_stage_that_makes_probes_slow_is_named() {
    for batch in [7, 1_000] {
        let found = explained(&InMemory { batch, ..with_slow_peer() });
        let names: Vec<_> = found.stages.iter().map(|stage| (stage.stage.name, stage.median_ns / 1_000)).collect();
        let expected = [("send call", 1), ("queue", 2), ("network, there", 1), ("peer's wake-up", 5)];
        assert_eq!(names[..4], expected);
        assert_eq!(names[4..].iter().map(|(_, us)| *us).collect::<Vec<_>>(), [2, 1, 1, 4]);
        let shares = |it: &StageShares| [it.share_of_median, it.share_of_p99, it.share_of_worst];
        for band in 0..3 {
            let sum: f64 = found.stages.iter().map(|stage| shares(stage)[band]).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{found:#?}");
        }
        assert!(found.stages[0].is_below_error && !found.stages[1].is_below_error);
        let most = found.stages.iter().max_by(|one, other| one.excess_ns.total_cmp(&other.excess_ns));
        assert_eq!(most.expect("stages").stage.subject, StageSubject::PeerWakeup);
        let first = &found.worst[0];
        assert_eq!((first.stage, first.delay_ns, first.probes), (Some("peer's wake-up"), found.worst_ns, 1));
        assert_eq!(first.beyond_ns, found.worst_ns - 17_000);
        assert!(found.next.command.ends_with("--wait spin"), "{:?}", found.next);
    }
}

#[test]
fn probes_that_lack_a_stamp_are_left_out_of_the_stages() {
    let mut source = with_slow_peer();
    source.rows[999].kernel.reflector_tx_software = None;
    source.rows[5] = but(source.rows[5].clone(), Fate::Lost);
    let found = explained(&source);
    assert_eq!((found.answered, found.left_out, found.stages.len()), (999, 1, 8));
    // On two clocks only differences of one clock are times.
    source.manifest.spec.target = Target::Host { host: "far".into(), port: 9862 };
    let two = explained(&source);
    assert_eq!((two.stages[2].stage.name, two.stages[2].median_ns), ("network, both ways", 2_000));
}

#[test]
fn without_stamps_the_next_step_is_to_have_them() {
    let source =
        InMemory::of(CLOSED, (0..300).map(|seq| closed(seq, seq as i64 * 100, 40 + scattered(seq) / 100)).collect());
    let found = explained(&source);
    // The clock of the reflector is not that of the sender, though both are on this host.
    let names: Vec<_> = found.stages.iter().map(|stage| stage.stage.name).collect();
    assert_eq!(names, ["path and kernels, both ways", "peer's process"]);
    assert!(found.next.command.ends_with("--stamps kernel") && found.stamp_error_ns.is_none(), "{:?}", found.next);
}

#[test]
fn consecutive_slow_probes_are_one_episode() {
    let slow = |seq: u64| (500..530).contains(&seq) || seq % 100 == 3;
    let row = |seq: u64| closed(seq, seq as i64 * 2_000, if slow(seq) { 900 + scattered(seq) } else { 40 });
    let found = explained(&InMemory::of(CLOSED, (0..1_000).map(row).collect()));
    // Of 1,000 probes 100 could be slow; the others are alike.
    assert_eq!((found.slow, found.episodes), (39, 10));
    assert!(found.worst.iter().any(|episode| episode.probes == 30));
}

/// 20,000 probes on two CPUs, to either of which the sender moves every 40 probes or so; 80 slow ones, of which the share
/// that `is_slow` has chosen by CPU.
fn on_cpus(is_slow: impl Fn(u64, u16) -> bool) -> InMemory {
    let row = |seq: u64| {
        let cpu = u16::from((seq / 37 * 7919) % 100 < 25);
        let delay = if is_slow(seq, cpu) { 900 + scattered(seq) } else { 40 + scattered(seq) / 50 };
        let mut row = closed(seq, seq as i64 * 1_900 + scattered(seq), delay);
        (row.sent_cpu, row.received_cpu, row.reflector_cpu) = (Some(cpu), Some(cpu), Some(2));
        row
    };
    let mut source = InMemory { batch: 500, ..InMemory::of(CLOSED, (0..20_000).map(row).collect()) };
    source.manifest.spec.here.cpu = None;
    source
}

#[test]
fn a_cpu_that_most_slow_probes_share_is_claimed() {
    let found = explained(&on_cpus(|seq, cpu| seq % 61 == 5 && cpu == 1));
    let (test, what) = claimed(&found)[0];
    assert!(matches!(test, CommonTest::SentCpu | CommonTest::ReceivedCpu) && what.ends_with("on CPU 1"), "{found:#?}");
    assert_eq!(found.common[0].hits, Some(50));
    assert!((found.common[0].expected.expect("a share") - 12.5).abs() < 2.0, "{found:#?}");
    assert!(found.next.command.contains("--peer-cpu"));
    assert_eq!(claimed(&explained(&on_cpus(|seq, _| seq % 251 == 5))), []);
}

#[test]
fn a_period_is_claimed_unless_the_probes_have_it_themselves() {
    // Slow 2 to 3 ms after each multiple of 10 ms, in one of eight.
    let is_slow = |start_us: i64| start_us % 10_000 / 1_000 == 2 && (start_us / 10_000 * 7919) % 8 == 0;
    let row = |seq: u64| {
        let start = seq as i64 * 700 + scattered(seq) / 3;
        closed(seq, start, if is_slow(start) { 900 + scattered(seq) } else { 40 + scattered(seq) / 50 })
    };
    let found = explained(&InMemory { batch: 500, ..InMemory::of(CLOSED, (0..10_000).map(row).collect()) });
    let cause = &found.common[0];
    assert_eq!(
        (cause.test, cause.period_ns, cause.is_claimed),
        (CommonTest::Period, Some(Nanos::from_millis(10)), true)
    );
    assert!(cause.what.starts_with("sent about 2."), "{}", cause.what);
    let row = |seq: u64| {
        scheduled(seq, seq as i64 * 1_000, 0, if seq.is_multiple_of(97) { 400 + scattered(seq) } else { 40 })
    };
    let found = explained(&InMemory { batch: 500, ..InMemory::of(EVERY_MS, (0..3_000).map(row).collect()) });
    let of_ms = found.common.iter().find(|cause| cause.period_ns == Some(Nanos::from_millis(1))).expect("tested");
    assert!(of_ms.p_value.is_none() && of_ms.what.starts_with("not identifiable"), "{of_ms:?}");
}

#[test]
fn of_periods_that_divide_each_other_one_is_claimed() {
    let is_slow = |start_us: i64| start_us % 4_000 < 100;
    let row = |seq: u64| {
        let start = seq as i64 * 1_300;
        closed(seq, start, if is_slow(start) { 400 + scattered(seq) } else { 40 + scattered(seq) / 50 })
    };
    let found = explained(&InMemory { batch: 500, ..InMemory::of(CLOSED, (0..10_000).map(row).collect()) });
    let periods = found.common.iter().filter(|cause| cause.adjusted_p_value.is_some_and(|p| p < 0.05));
    assert_eq!(periods.filter_map(|cause| cause.period_ns).count(), 2, "{:#?}", found.common);
    assert_eq!(claimed(&found).len(), 1);
    let claim = found.common.iter().find(|cause| cause.is_claimed).and_then(|cause| cause.period_ns);
    assert_eq!(claim, Some(Nanos::from_millis(4)));
}

/// Probes of 50 µs every 2 ms; slots every millisecond on CPU 0, of which every 97th is late by 900 µs.
fn with_wakeups(is_slow: impl Fn(i64) -> bool) -> Explanation {
    let row = |seq: u64| {
        let start = seq as i64 * 2_000 + scattered(seq) / 2;
        let mut row = closed(seq, start, if is_slow(start / 1_000) { 700 + scattered(seq) / 5 } else { 50 });
        row.received_cpu = Some(0);
        row
    };
    let mut source = InMemory { batch: 500, ..InMemory::of(CLOSED, (0..8_000).map(row).collect()) };
    let late = |slot: i64| if slot % 97 == 30 { 900_000 } else { 60_000 };
    source.wakeups = (0..16_000).map(|slot| (Some(0), slot * 1_000_000, slot * 1_000_000 + late(slot))).collect();
    probes_of(&mut source.manifest.spec).with_wakeup = Some(ConcurrentWakeups {
        interval_ns: Nanos::from_millis(1),
        late_ns: Some(Nanos::from_micros(200)),
        cpus: WakeupCpus::These(vec![0]),
    });
    explained(&source)
}

#[test]
fn slow_probes_during_late_wakeups_are_claimed() {
    let found = with_wakeups(|slot| slot % 97 == 30);
    let watched = found.wakeups.as_ref().expect("wake-ups");
    assert_eq!((watched.n, watched.p50_ns, watched.late, watched.max_ns), (16_000, 60_000, 165, 900_000));
    let cause = found.common.iter().find(|cause| cause.test == CommonTest::LateWakeup).expect("tested");
    assert!(cause.is_claimed && cause.hits == Some(50), "{cause:?}");
    let elsewhere = with_wakeups(|slot| slot % 101 == 30);
    assert!(claimed(&elsewhere).iter().all(|(test, _)| *test != CommonTest::LateWakeup), "{elsewhere:#?}");
}

#[test]
fn wake_ups_have_no_stages() {
    let row = |seq: u64| scheduled(seq, seq as i64 * 1_000, 0, if seq % 90 == 3 { 800 + scattered(seq) } else { 60 });
    let mut source = InMemory::of(EVERY_MS, (0..2_000).map(row).collect());
    let cpus = WakeupCpus::Anywhere;
    let interval_ns = Nanos::from_millis(1);
    let spec = WakeupSpec { via: Via::ClockNanosleep, interval_ns, relative: false, cpus, break_ns: None };
    source.manifest.spec.work = Work::Wakeup(spec);
    source.manifest.kind = source.manifest.spec.kind();
    let found = explained(&source);
    assert_eq!((found.kind, found.stages.len(), found.episodes), ("wakeup", 0, 23));
    assert!(found.worst[0].stage.is_none() && found.worst[0].beyond_ns == found.worst_ns - 60_000);
    assert!(found.next.command.ends_with("--try-remedies"));
}

#[test]
fn the_host_is_shown_where_it_was_unusual() {
    let sample = |at: u64| {
        // From 1.5 to 1.6 s the hypervisor took 80 ms.
        let steal_ns = Some(if at >= 16 { 80_000_000 } else { 0 });
        let host = HostReadings { all_interrupts: Some(at as i64 * 30), ..HostReadings::default() };
        let cpus = vec![(0, CpuReadings { steal_ns, ..CpuReadings::default() })];
        let start_ns = at as i64 * 100_000_000;
        (Side::Local, HostSample { seq: at, start_ns, end_ns: start_ns + 60_000, sampler_cpu: None, host, cpus })
    };
    let row = |seq: u64| closed(seq, seq as i64 * 2_000, if seq == 760 { 9_000 } else { 50 });
    let mut source = InMemory::of(CLOSED, (0..1_000).map(row).collect());
    source.hosts = (0..22).map(sample).collect();
    let found = explained(&source);
    let [unusual] = &found.worst[0].around[..] else { panic!("{found:#?}") };
    assert_eq!((unusual.signal, unusual.value, unusual.median), (HostSignal::Steal, 0.8, 0.0));
    assert_eq!(found.worst[0].seq, 760);
}

#[test]
fn a_run_without_an_answer_and_a_stream_have_nothing_to_explain() {
    let lost = InMemory::of(CLOSED, (0..20).map(|seq| but(closed(seq, 0, 40), Fate::Lost)).collect());
    let found = explained(&lost);
    assert_eq!((found.answered, found.stages.len(), found.worst.len()), (0, 0, 0));
    assert_eq!(explain(&InMemory::of_stream(1, Vec::new()), 20).expect("no rows"), None);
}
