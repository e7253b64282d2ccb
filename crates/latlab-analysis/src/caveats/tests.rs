//! Each caveat appears when its cause does, and only then.

mod fragmentation;
mod host_samples;

use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
use crate::analysis::{SummaryOptions, summarise};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::{ClockAnchor, ConnectionFacts, DdsFacts, HostFacts, KernelFacts, SettingFacts};
use crate::plan::{
    DdsSpec, Direction, History, Pace, PacketSize, PathSpec, PingSpec, Reliability, Schedule, SendMode,
    SenderSocketOptions, StreamRunSpec, Target, TransportKind, WaitMode, Work,
};
use crate::probe::{Fate, ProbeRecord};
use crate::recording::manifest::{Manifest, RunEnding, UNFRAGMENTED_BYTES};
use crate::units::Nanos;

fn caveats(source: &InMemory) -> Vec<Caveat> {
    summarise(source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for").caveats
}

fn find(source: &InMemory, code: &str) -> Option<Caveat> {
    caveats(source).into_iter().find(|caveat| caveat.code == code)
}

/// A run whose only caveat is its small number of probes: both ends spin on CPUs of their own.
fn quiet(schedule: Schedule, rows: Vec<ProbeRecord>) -> InMemory {
    let mut source = InMemory::of(schedule, rows);
    source.manifest.spec.here.wait = WaitMode::Spin;
    if let Some(peer) = &mut source.manifest.spec.peer {
        peer.wait = WaitMode::Spin;
    }
    source
}

fn closed_loop() -> Vec<ProbeRecord> {
    (0..100).map(|seq| closed(seq, seq as i64 * 60, 50)).collect()
}

fn ping(manifest: &mut Manifest) -> &mut PingSpec {
    let Work::Ping(ping) = &mut manifest.spec.work else { panic!("a run of round trips") };
    ping
}

/// The clocks at the end of the run.
fn end(manifest: &mut Manifest) -> &mut ClockAnchor {
    manifest.here.clock_end.as_mut().expect("the test manifest has it")
}

#[test]
fn a_sound_run_has_only_the_caveat_of_its_length() {
    let codes: Vec<_> = caveats(&quiet(CLOSED, closed_loop())).into_iter().map(|one| one.code).collect();
    assert_eq!(codes, ["few-observations"]);
}

#[test]
fn a_gap_of_a_full_disk_is_distinguished_from_one_of_a_writer_that_did_not_keep_up() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.run.gap_events = 7;
    let slow = find(&source, "recording-gap").expect("events were lost");
    assert!(slow.message.contains("too little CPU time or the disk was too slow"), "{slow:?}");
    assert!(slow.hint.contains("fewer other processes") && slow.hint.contains("faster disk"), "{slow:?}");
    assert!(slow.effect.contains("deadlines"), "{slow:?}");
    source.manifest.ending = RunEnding::Failed;
    source.manifest.reason = Some("cannot write `/s/events.spool`: no space left on device (ENOSPC)".into());
    let full = find(&source, "recording-gap").expect("events were lost");
    assert!(full.message.ends_with("the disk was full") && full.hint.starts_with("free some space"), "{full:?}");
}

#[test]
fn too_few_observations_are_reported_for_the_innermost_quantiles() {
    for (quantiles, message) in [
        (&[0.9999][..], "lie beyond p99.99"),
        (&[0.999, 0.9999], "lie beyond p99.9; also not supported: p99.99"),
        (&[0.0001, 0.001, 0.9999], "lie beyond p0.1, p99.99; also not supported: p0.01"),
    ] {
        let mut source = quiet(CLOSED, (0..1_000).map(|seq| closed(seq, seq as i64 * 60, 50)).collect());
        source.manifest.spec.judging.quantiles = quantiles.to_vec();
        let found = find(&source, "few-observations").expect("of 1,000").message;
        assert!(found.ends_with(message), "{found}");
    }
}

#[test]
fn probes_in_flight_of_a_recovered_run_are_not_called_lost() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.ending = RunEnding::Recovered;
    let recovered = find(&source, "recovered").expect("it died");
    assert!(recovered.effect.contains("in no count") && !recovered.effect.contains("lost"), "{}", recovered.effect);
}

#[test]
fn each_fact_of_the_manifest_raises_its_caveat() {
    type Change = fn(&mut Manifest);
    let table: &[(&str, Severity, Change)] = &[
        ("interrupted", Severity::Warning, |manifest| manifest.ending = RunEnding::Interrupted),
        ("ended-early", Severity::Warning, |manifest| manifest.ending = RunEnding::Failed),
        ("recovered", Severity::Warning, |manifest| manifest.ending = RunEnding::Recovered),
        ("unfinished", Severity::Warning, |manifest| manifest.ending = RunEnding::Measuring),
        ("recording-gap", Severity::Warning, |manifest| manifest.run.gap_events = 3),
        ("undecided-probes", Severity::Note, |manifest| manifest.run.undecided_probes = 2),
        ("orphan-answers", Severity::Warning, |manifest| manifest.run.orphan_answers = 1),
        ("orphan-answers", Severity::Note, |manifest| {
            (manifest.run.orphan_answers, manifest.run.gap_events) = (1, 1);
        }),
        ("unreadable-events", Severity::Warning, |manifest| manifest.run.unreadable_events = 5),
        ("strays", Severity::Note, |manifest| {
            manifest.run.strays.insert("foreign".into(), 2);
        }),
        ("socket-errors", Severity::Warning, |manifest| {
            manifest.run.socket_errors.insert("ECONNREFUSED".into(), 2);
        }),
        ("reflector-died", Severity::Fatal, |manifest| {
            manifest.run.reflector_died = Some("killed by SIGKILL".into());
        }),
        ("clock-stepped", Severity::Fatal, |manifest| end(manifest).realtime_ns -= 2_000_000),
        ("suspended", Severity::Fatal, |manifest| {
            end(manifest).boottime_ns += 5_000_000_000;
            end(manifest).realtime_ns += 5_000_000_000;
        }),
        ("slow-clock", Severity::Warning, |manifest| manifest.instrument.clock_read_ns = Some(900.0)),
        ("coarse-clock", Severity::Warning, |manifest| {
            manifest.instrument.clock_resolution_ns = Some(Nanos::from_millis(4));
        }),
        ("spin-on-one-cpu", Severity::Warning, |manifest| manifest.spec.here.cpu = Some(1)),
        ("spin-on-one-cpu", Severity::Warning, |manifest| {
            let facts = manifest.here.before.as_mut();
            facts.expect("the test manifest has it").cpus_online = Some("0".into());
        }),
        ("idle-states", Severity::Note, |manifest| manifest.spec.here.wait = WaitMode::Block),
        ("governor", Severity::Note, |manifest| {
            let facts = manifest.here.before.as_mut();
            facts.expect("the test manifest has it").governors = Some(vec!["ondemand".into()]);
        }),
        ("rt-throttling", Severity::Warning, |manifest| {
            manifest.spec.here.fifo = Some(50);
            let facts = manifest.here.before.as_mut();
            facts.expect("the test manifest has it").rt_runtime_us = Some(950_000);
        }),
        ("fair-server", Severity::Warning, |manifest| {
            manifest.spec.here.fifo = Some(50);
            let facts = manifest.here.before.as_mut().expect("the test manifest has it");
            (facts.kernel, facts.rt_runtime_us) = (Some("Linux 6.12.3".into()), Some(-1));
        }),
        ("steal", Severity::Warning, |manifest| {
            manifest.here.before.as_mut().expect("the test manifest has it").steal_ticks = Some(5);
            manifest.here.after.as_mut().expect("the test manifest has it").steal_ticks = Some(55);
        }),
        ("fragmentation", Severity::Warning, |manifest| {
            manifest.spec.target = Target::Host { host: "10.0.0.7".into(), port: 9862 };
            ping(manifest).size_bytes = 1_473;
        }),
    ];
    for (code, severity, change) in table {
        let mut source = quiet(CLOSED, closed_loop());
        assert_eq!(find(&source, code), None, "{code} without its cause");
        change(&mut source.manifest);
        let found: Vec<_> = caveats(&source).into_iter().filter(|caveat| caveat.code == *code).collect();
        assert_eq!(found.iter().map(|caveat| caveat.severity).collect::<Vec<_>>(), [*severity], "{code}");
        assert!(found.iter().all(|caveat| !caveat.effect.is_empty() && !caveat.hint.is_empty()), "{code}");
    }
}

#[test]
fn a_complete_run_with_a_reason_and_no_answer_ended_for_want_of_one() {
    let run_of = |fate: Fate, reason: Option<&str>, ending: RunEnding| {
        let mut source = quiet(CLOSED, closed_loop().into_iter().map(|row| but(row, fate)).collect());
        (source.manifest.reason, source.manifest.ending) = (reason.map(String::from), ending);
        source
    };
    let reason = Some("no probe was answered in the first 10 s");
    for fate in [Fate::Lost, Fate::SendFailed, Fate::Late] {
        let found = find(&run_of(fate, reason, RunEnding::Completed), "no-answer").expect("none is answered");
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.message.ends_with(": no probe was answered in the first 10 s"), "{found:?}");
        let codes = ["none-answered", "lost"].map(|code| find(&run_of(fate, reason, RunEnding::Completed), code));
        assert_eq!(codes, [None, None], "one caveat for one cause");
    }
    for (fate, reason, ending) in [
        (Fate::Answered, reason, RunEnding::Completed),
        (Fate::Lost, None, RunEnding::Completed),
        (Fate::Lost, reason, RunEnding::Failed),
    ] {
        assert_eq!(find(&run_of(fate, reason, ending), "no-answer"), None, "{fate:?} {reason:?} {ending:?}");
    }
    let answered_at_last = find(&run_of(Fate::Answered, reason, RunEnding::Completed), "ended-early");
    assert_eq!(answered_at_last.expect("it ended early").severity, Severity::Warning);
}

#[test]
fn answers_that_end_are_fatal_unless_the_reflector_is_known_to_have_died() {
    let end_at = |answered: u64| {
        let row =
            |seq| but(closed(seq, seq as i64 * 10_000, 50), if seq < answered { Fate::Answered } else { Fate::Lost });
        quiet(CLOSED, (0..1_000).map(row).collect())
    };
    let mut ended = end_at(370);
    let found = caveats(&ended).into_iter().find(|caveat| caveat.code == "answers-ended").expect("630 are lost");
    assert_eq!(found.severity, Severity::Fatal);
    assert_eq!(
        found.message,
        "no probe was answered after the first 3.7 s of 9.99 s: all 630 that were sent later are lost"
    );
    assert_eq!(find(&end_at(1_000), "answers-ended"), None);
    ended.manifest.run.reflector_died = Some("killed by SIGKILL".into());
    assert_eq!(find(&ended, "answers-ended"), None);
}

#[test]
fn the_far_host_has_the_same_caveats_with_its_name() {
    let slow = || HostFacts {
        boot_id: Some("another".into()),
        governors: Some(vec!["ondemand".into()]),
        rt_runtime_us: Some(950_000),
        ..HostFacts::default()
    };
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.peer.as_mut().expect("it has one").fifo = Some(50);
    source.manifest.peer.before = Some(slow());
    let with_target = |source: &mut InMemory, target| source.manifest.spec.target = target;
    with_target(&mut source, Target::Ssh { host: "there".into() });
    for (code, severity, message, hint) in [
        (
            "governor",
            Severity::Note,
            "the frequency governor of the reflector's host is `ondemand`",
            "governor@peer=perf",
        ),
        (
            "rt-throttling",
            Severity::Warning,
            "the kernel of the reflector's host stops a spinning FIFO thread for 50 ms every second",
            "rt-runtime@peer=-1",
        ),
    ] {
        let caveat = find(&source, code).expect(code);
        assert!(caveat.message.contains(message) && caveat.hint.contains(hint), "{caveat:?}");
        assert_eq!(caveat.severity, severity);
    }
    // Two hosts have a caveat each.
    source.manifest.here.before = Some(HostFacts { boot_id: Some("this".into()), ..slow() });
    let both = caveats(&source).into_iter().filter(|caveat| caveat.code == "governor").count();
    assert_eq!(both, 2);
    // One machine has it once, even if both ends report it.
    source.manifest.here.before = Some(slow());
    let once: Vec<_> = caveats(&source).into_iter().filter(|caveat| caveat.code == "governor").collect();
    assert!(once.len() == 1 && once[0].message.contains("of this host"), "{once:?}");
    // A host without an agent is unknown.
    source.manifest.here.before = None;
    with_target(&mut source, Target::Host { host: "there".into(), port: 9862 });
    assert_eq!(find(&source, "governor"), None);
}

#[test]
fn real_time_throttling_depends_on_the_kernel_version() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.here.fifo = Some(50);
    let settings = KernelFacts { fair_share_runtime_ns: Some(0), fair_share_period_ns: Some(1), ..Default::default() };
    for (kernel, runtime_us, kernel_settings, expected) in [
        ("Linux 6.11.9", 950_000, KernelFacts::default(), Some("rt-throttling")),
        ("Linux 6.11.9", -1, KernelFacts::default(), None),
        // As in the doctor: these kernels ignore `rt-runtime`.
        ("Linux 6.12.0-rt", 950_000, KernelFacts::default(), Some("fair-server")),
        ("Linux 6.12.0-rt", -1, KernelFacts::default(), Some("fair-server")),
        ("Linux 6.12.0-rt", 950_000, settings, None),
    ] {
        let facts = source.manifest.here.before.as_mut().expect("the test manifest has it");
        (facts.kernel, facts.rt_runtime_us) = (Some(kernel.into()), Some(runtime_us));
        facts.kernel_settings = kernel_settings;
        let found = ["rt-throttling", "fair-server"].map(|code| find(&source, code).map(|caveat| caveat.code));
        assert_eq!(found.into_iter().flatten().next().as_deref(), expected, "{kernel} with {runtime_us}");
    }
}

#[test]
fn a_far_cpu_with_idle_states_has_a_caveat_unless_settings_prevent_them() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.target = Target::Ssh { host: "there".into() };
    source.manifest.peer.before = Some(HostFacts { boot_id: Some("another".into()), ..HostFacts::default() });
    assert_eq!(find(&source, "idle-states"), None, "both ends spin");
    source.manifest.spec.peer.as_mut().expect("it has one").wait = WaitMode::Block;
    let set = |setting: &str, at: &str| SettingFacts {
        setting: setting.into(),
        at: at.into(),
        place: "/dev/cpu_dma_latency".into(),
        before: "none".into(),
        places: 1,
        root: None,
        set: "0us".into(),
        read_back: Some("0us".into()),
        ended: None,
    };
    for (settings, expected) in [
        (vec![], true),
        (vec![set("cpu-dma-latency=0us", "local")], true),
        (vec![set("cpu-dma-latency@both=0us", "local"), set("cpu-dma-latency@both=0us", "peer")], false),
        (vec![set("idle-states@peer=max-us:0", "peer")], false),
        (vec![set("idle-states@peer=max-us:10", "peer")], true),
    ] {
        source.manifest.settings = settings;
        let found = find(&source, "idle-states");
        assert_eq!(found.is_some(), expected, "{:?}", source.manifest.settings);
        assert!(found.is_none_or(|caveat| caveat.message.contains("the reflector's CPU")));
    }
}

#[test]
fn each_fate_raises_its_caveat() {
    let table: &[(&str, Fate)] = &[
        ("lost", Fate::Lost),
        ("late", Fate::Late),
        ("send-failed", Fate::SendFailed),
        ("schedule-lost", Fate::NotSent),
    ];
    for (code, fate) in table {
        let mut rows: Vec<_> = (0..90).map(|seq| scheduled(seq, seq as i64 * 1_000, 1, 50)).collect();
        assert_eq!(find(&quiet(EVERY_MS, rows.clone()), code), None, "{code} without its cause");
        rows[7] = but(rows[7].clone(), *fate);
        let caveat = find(&quiet(EVERY_MS, rows), code).expect(code);
        assert!(caveat.message.contains("1 of 90 probes"), "{}", caveat.message);
    }
}

#[test]
fn a_schedule_is_lost_if_one_in_a_hundred_probes_was_not_sent() {
    let rows = |unsent: usize| -> Vec<_> {
        let row = |seq: u64| scheduled(seq, seq as i64 * 1_000, 1, 50);
        (0..1_000).map(|seq| if seq < unsent as u64 { but(row(seq), Fate::NotSent) } else { row(seq) }).collect()
    };
    let few = quiet(EVERY_MS, rows(9));
    assert_eq!(find(&few, "not-sent").map(|caveat| caveat.severity), Some(Severity::Warning));
    assert_eq!(find(&few, "schedule-lost"), None);
    let many = quiet(EVERY_MS, rows(10));
    assert_eq!(caveats(&many).first().map(|caveat| caveat.code.as_str()), Some("schedule-lost"), "the worst is first");
    assert_eq!(find(&many, "not-sent"), None);
}

#[test]
fn a_schedule_is_lost_if_half_of_the_probes_were_behind() {
    let rows = |behind: i64| -> Vec<_> {
        (0..100).map(|seq| scheduled(seq as u64, seq * 1_000, if seq < behind { 10_001 } else { 9_999 }, 50)).collect()
    };
    assert_eq!(find(&quiet(EVERY_MS, rows(49)), "schedule-lost"), None);
    let caveat = find(&quiet(EVERY_MS, rows(50)), "schedule-lost").expect("half of them");
    assert_eq!(caveat.severity, Severity::Fatal);
    assert_eq!(caveat.message, "50 of 100 probes (50 %) left more than 10 ms after they were due");
}

#[test]
fn a_late_sender_has_a_caveat_with_numbers() {
    let mut rows: Vec<_> = (0..60_000).map(|seq| scheduled(seq, seq as i64 * 1_000, 1, 50)).collect();
    for row in rows.iter_mut().take(412) {
        *row = scheduled(row.seq.0, row.seq.0 as i64 * 1_000, 51, 50);
    }
    let source = InMemory { batch: 1_000, ..quiet(EVERY_MS, rows) };
    let caveat = find(&source, "send-slip").expect("412 slipped");
    assert_eq!(caveat.message, "412 of 60,000 probes left more than 50 µs after they were due");
    assert!(caveat.effect.contains("above p99.31 "), "{}", caveat.effect);
    assert_eq!(caveat.severity, Severity::Warning);
}

#[test]
fn the_quantile_below_the_slips_is_rounded_down_exactly() {
    for (slipped, all, quantile) in [
        (1, 10_000, "p99.99"),
        (1, 1_000, "p99.9"),
        (10, 1_000, "p99"),
        (7, 1_000, "p99.3"),
        (1, 3, "p66"),
        (1, 2, "p50"),
        (100, 1_000, "p90"),
        (29, 1_000, "p97.1"),
        (3, 20_000, "p99.985"),
    ] {
        let slip = |seq: u64| if seq < slipped { 51 } else { 1 };
        let rows = (0..all).map(|seq| scheduled(seq, seq as i64 * 1_000, slip(seq), 50)).collect();
        let source = InMemory { batch: 1_000, ..quiet(EVERY_MS, rows) };
        let effect = find(&source, "send-slip").expect("some slipped").effect;
        assert!(
            effect.starts_with(&format!(
                "the round trip does not include how late a probe left: quantiles above {quantile} may"
            )),
            "{slipped} of {all}: {effect}"
        );
    }
}

#[test]
fn if_most_probes_slip_no_quantile_is_named() {
    let rows = (0..100).map(|seq| scheduled(seq, seq as i64 * 1_000, 51, 50)).collect();
    let caveat = find(&quiet(EVERY_MS, rows), "send-slip").expect("all slipped");
    assert!(caveat.effect.contains(": most quantiles may be too low"), "{}", caveat.effect);
}

#[test]
fn nothing_measured_and_nothing_answered_are_distinguished() {
    let nothing = quiet(CLOSED, Vec::new());
    assert!(find(&nothing, "no-probe-measured").is_some() && find(&nothing, "none-answered").is_none());
    let silent = quiet(CLOSED, vec![but(closed(0, 0, 0), Fate::Lost)]);
    assert!(find(&silent, "none-answered").is_some() && find(&silent, "no-probe-measured").is_none());
    assert!(find(&silent, "lost").is_none(), "one caveat for one cause");
    assert!(find(&silent, "few-observations").is_none());
}

#[test]
fn a_step_and_a_suspension_of_one_machine_are_reported_once() {
    let mut source = quiet(CLOSED, closed_loop());
    end(&mut source.manifest).realtime_ns += 7_000_000_000;
    source.manifest.peer.clock_end = source.manifest.here.clock_end;
    let steps: Vec<_> = caveats(&source).into_iter().filter(|caveat| caveat.code == "clock-stepped").collect();
    assert_eq!(steps.len(), 1);
    assert!(steps[0].message.contains("this host was stepped forward by 7 s"), "{}", steps[0].message);
    end(&mut source.manifest).boottime_ns += 1_000_000_000;
    source.manifest.peer.clock_end = source.manifest.here.clock_end;
    let codes: Vec<_> = caveats(&source).into_iter().map(|caveat| caveat.code).collect();
    let count = |code: &str| codes.iter().filter(|other| *other == code).count();
    assert_eq!((count("clock-stepped"), count("suspended")), (1, 1), "{codes:?}");
}

#[test]
fn a_tail_in_one_burst_needs_several_runs_and_a_scattered_one_more_probes() {
    let source = |is_slow: fn(i64) -> bool| {
        let rows =
            (0..1_000).map(|seq| closed(seq as u64, seq * 100, if is_slow(seq) { 80 } else { 40 + seq * 37 % 11 }));
        quiet(CLOSED, rows.collect())
    };
    let (scattered, burst) = (source(|seq| seq * 7_919 % 1_009 < 100), source(|seq| (400..520).contains(&seq)));
    let few = find(&scattered, "few-observations").expect("p99.99 of 1,000");
    assert!(few.hint.contains("`-n 100000`") && find(&scattered, "slow-changes").is_none(), "{few:?}");
    let slow = find(&burst, "slow-changes").expect("one burst");
    assert!(slow.hint.starts_with("measure several runs") && find(&burst, "few-observations").is_none(), "{slow:?}");
}

fn connection(retransmitted: u64) -> ConnectionFacts {
    ConnectionFacts { congestion_control: Some("cubic".into()), send_segment_bytes: 1_448, retransmitted }
}

#[test]
fn over_tcp_datagrams_are_not_fragmented_and_few_retransmissions_are_a_note() {
    let rows: Vec<_> = (0..200).map(|seq| closed(seq, seq as i64 * 60, 50)).collect();
    let mut source = quiet(CLOSED, rows);
    source.manifest.spec.target = Target::Host { host: "10.0.0.7".into(), port: 9862 };
    ping(&mut source.manifest).size_bytes = 60_000;
    ping(&mut source.manifest).transport = TransportKind::Tcp;
    source.manifest.run.connection = Some(connection(0));
    for code in ["fragmentation", "tcp-retransmits"] {
        assert_eq!(find(&source, code), None);
    }
    source.manifest.run.connection = Some(connection(1));
    let found = find(&source, "tcp-retransmits").expect("one was sent again");
    assert!(found.severity == Severity::Note && !found.effect.is_empty() && !found.hint.is_empty(), "{found:?}");
    assert!(found.message.contains("again: 1, with 200 probes"), "{found:?}");
    source.manifest.run.connection = Some(connection(2));
    assert_eq!(find(&source, "tcp-retransmits").map(|caveat| caveat.severity), Some(Severity::Warning));
}

/// The hint of a caveat with `code` of a run over DDS, with the policies `dds`.
fn hint_over_dds(code: &str, (fate, error): (Fate, Option<i32>), dds: DdsSpec) -> String {
    let mut rows: Vec<_> = (0..200).map(|seq| closed(seq, seq as i64 * 60, 50)).collect();
    rows.push(ProbeRecord { error, ..but(closed(200, 200 * 60, 50), fate) });
    let mut source = quiet(CLOSED, rows);
    ping(&mut source.manifest).transport = TransportKind::Dds;
    ping(&mut source.manifest).path.dds = Some(dds);
    find(&source, code).expect("one failed").hint
}

#[test]
fn hints_over_dds_name_what_can_help() {
    let of = |reliability, history| DdsSpec { reliability, history, ..DdsSpec::default() };
    let (best_effort, reliable) = (Reliability::BestEffort, Reliability::Reliable);
    for (dds, expected) in [
        (of(best_effort, History::KeepAll), "`--reliability reliable` sends lost samples again"),
        (of(reliable, History::KeepLast(16)), "a larger `--history`, or `keep-all`, at both ends"),
        (of(reliable, History::KeepAll), "check that the reflector still runs, and has `--history keep-all` too"),
    ] {
        assert_eq!(hint_over_dds("lost", (Fate::Lost, None), dds), expected);
    }
    for (error, history, expected) in [
        (11, History::KeepAll, "check that the reflector still runs"),
        (11, History::KeepLast(1), "the warnings of the library"),
        (0, History::KeepAll, "the warnings of the library"),
    ] {
        let refused = hint_over_dds("send-failed", (Fate::SendFailed, Some(error)), of(reliable, history));
        assert!(refused.starts_with(expected), "{refused}");
    }
}
