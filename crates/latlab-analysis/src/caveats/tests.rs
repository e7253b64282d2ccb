//! Each caveat appears when its cause does, and only then.

mod fragmentation;
mod host_samples;
mod of_figures;
mod of_imports;
mod of_loads;

use std::collections::BTreeSet;

use super::{figures, hosts, imports, probes, recording, streams};
use crate::comparison::caveats as comparison;
use crate::diagnostics::{Caveat, Severity};
use crate::facts::{
    CgroupFacts, ClockAnchor, ConnectionFacts, DdsFacts, HostFacts, KernelFacts, Restoration, SettingFacts, StampFacts,
};
use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
use crate::plan::{
    DdsSpec, EndSpec, Pace, PacketSize, PathSpec, PingSpec, Plan, RunSpec, Schedule, SendMode, SenderSocketOptions,
    Setting, SettingSpec, StreamRunSpec, Target, TransportKind, Via, WaitMode, WakeupCpus, WakeupSpec, Work,
};
use crate::probe::{Fate, ProbeRecord};
use crate::recording::manifest::{Manifest, RunEnding, UNFRAGMENTED_BYTES};
use crate::units::Nanos;
use crate::{SummaryOptions, real_time_warning, summarise};

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

/// Codes that are raised outside of the tables: by the measuring process, and about groups and gates.
const ELSEWHERE: [&str; 6] =
    ["dependent-lines", "few-observations", "missing-runs", "recording-gap", "runs-left-out", "trace-missing"];

#[test]
fn every_code_is_documented_and_no_other() {
    let page = include_str!("../../../../docs/metrics.md");
    let (_, page) = page.split_once("\n## Caveats\n").expect("a section");
    let documented: Vec<&str> =
        page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0)).collect();
    let of_runs = [recording::RULES, imports::RULES, probes::RULES, streams::RULES, streams::OF_PATH, figures::RULES];
    let mut codes: BTreeSet<&str> = of_runs.iter().flat_map(|rules| rules.iter()).map(|rule| rule.code).collect();
    codes.extend(hosts::OF_ENDS.iter().map(|rule| rule.code));
    codes.extend(hosts::OF_LOADS.iter().map(|rule| rule.code));
    codes.extend(hosts::OF_SETTINGS.iter().map(|rule| rule.code));
    codes.extend(comparison::RULES.iter().map(|rule| rule.code));
    codes.extend(ELSEWHERE);
    assert_eq!(codes, documented.iter().copied().collect(), "docs/metrics.md");
    assert_eq!(codes.len(), documented.len(), "each once");
    assert!(codes.len() <= 62, "{}", codes.len());
    assert!(super::ROUTINE.iter().chain(&super::SILENCE).all(|code| codes.contains(code)));
}

#[test]
fn a_sound_run_has_only_the_caveat_of_its_length() {
    let codes: Vec<_> = caveats(&quiet(CLOSED, closed_loop())).into_iter().map(|one| one.code).collect();
    assert_eq!(codes, ["few-observations"]);
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

/// A change of a sound manifest, and the code and severity of the caveat that it raises.
type Cause = (&'static str, Severity, fn(&mut Manifest));

const CAUSES: &[Cause] = &[
    ("ended-early", Severity::Warning, |manifest| manifest.ending = RunEnding::Interrupted),
    ("ended-early", Severity::Warning, |manifest| manifest.ending = RunEnding::Failed),
    ("ended-early", Severity::Warning, |manifest| manifest.ending = RunEnding::Recovered),
    ("ended-early", Severity::Warning, |manifest| manifest.ending = RunEnding::Measuring),
    ("observed", Severity::Note, |manifest| manifest.run.trace_cost_ns = Some(600)),
    ("observed", Severity::Note, |manifest| {
        manifest.run.stamps = Some(StampFacts { error_ns: 20, clock_steps: 0, cost_ns: 400 });
    }),
    ("recording-gap", Severity::Fatal, |manifest| manifest.run.gap_events = 3),
    ("undecided", Severity::Note, |manifest| manifest.run.undecided_probes = 2),
    ("recording-gap", Severity::Warning, |manifest| manifest.run.orphan_answers = 1),
    ("recording-gap", Severity::Warning, |manifest| {
        (manifest.run.orphan_answers, manifest.run.gap_events) = (1, 1);
    }),
    ("recording-gap", Severity::Warning, |manifest| manifest.run.unreadable_events = 5),
    ("no-checksums", Severity::Note, |manifest| manifest.run.unchecked_events = 5),
    ("strays", Severity::Note, |manifest| {
        manifest.run.strays.insert("foreign".into(), 2);
    }),
    ("socket-errors", Severity::Warning, |manifest| {
        manifest.run.socket_errors.insert("ECONNREFUSED".into(), 2);
    }),
    ("answers-ended", Severity::Fatal, |manifest| {
        manifest.run.reflector_died = Some("killed by SIGKILL".into());
    }),
    ("clock-stepped", Severity::Fatal, |manifest| end(manifest).realtime_ns -= 2_000_000),
    ("clock-stepped", Severity::Fatal, |manifest| {
        end(manifest).boottime_ns += 5_000_000_000;
        end(manifest).realtime_ns += 5_000_000_000;
    }),
    ("coarse-clock", Severity::Warning, |manifest| manifest.instrument.clock_read_ns = Some(900.0)),
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
    ("rt-throttling", Severity::Warning, |manifest| {
        manifest.spec.here.fifo = Some(50);
        let facts = manifest.here.before.as_mut().expect("the test manifest has it");
        (facts.kernel, facts.rt_runtime_us) = (Some("Linux 6.12.3".into()), Some(-1));
    }),
    ("steal", Severity::Warning, |manifest| {
        manifest.here.before.as_mut().expect("the test manifest has it").steal_ticks = Some(5);
        manifest.here.after.as_mut().expect("the test manifest has it").steal_ticks = Some(55);
    }),
    ("cpu-quota", Severity::Warning, |manifest| {
        let group = |times: u64| CgroupFacts {
            cpu_quota: Some(0.2),
            throttled_periods: Some(3 * times),
            ..CgroupFacts::default()
        };
        manifest.here.before.as_mut().expect("the test manifest has it").cgroup = group(1);
        manifest.here.after.as_mut().expect("the test manifest has it").cgroup = group(2);
    }),
    ("setting-changed", Severity::Warning, |manifest| {
        let ended = Some(Restoration::Changed { found: "schedutil".into() });
        manifest.settings = vec![SettingFacts { ended, ..awake("governor=performance", "local") }];
    }),
    ("setting-not-restored", Severity::Warning, |manifest| {
        let ended = Some(Restoration::Failed { reason: "gone".into() });
        manifest.settings = vec![SettingFacts { ended, ..awake("governor=performance", "local") }];
    }),
    ("fragmentation", Severity::Warning, |manifest| {
        manifest.spec.target = Target::Host { host: "10.0.0.7".into(), port: 9862 };
        ping(manifest).size_bytes = 1_473;
    }),
];

#[test]
fn each_fact_of_the_manifest_raises_its_caveat() {
    for (code, severity, change) in CAUSES {
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
        let silent = run_of(fate, reason, RunEnding::Completed);
        let found = find(&silent, "ended-early").expect("it ended early");
        assert!(found.message.ends_with(": no probe was answered in the first 10 s"), "{found:?}");
        let found = find(&silent, "no-answer").expect("none is answered");
        assert_eq!((found.severity, found.message.starts_with("none of 100 probes")), (Severity::Warning, true));
        assert_eq!(["lost", "answers-ended"].map(|code| find(&silent, code)), [None, None]);
    }
    let complete = run_of(Fate::Lost, None, RunEnding::Completed);
    assert!(find(&complete, "no-answer").is_some() && find(&complete, "ended-early").is_none());
    let answered_at_last = run_of(Fate::Answered, reason, RunEnding::Completed);
    assert!(find(&answered_at_last, "ended-early").is_some() && find(&answered_at_last, "no-answer").is_none());
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
    let died: Vec<_> = caveats(&ended).into_iter().filter(|caveat| caveat.code == "answers-ended").collect();
    assert!(died.len() == 1 && died[0].message.ends_with("killed by SIGKILL"), "{died:?}");
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
        ("Linux 6.11.9", 950_000, KernelFacts::default(), Some("`--set rt-runtime=-1`")),
        ("Linux 6.11.9", -1, KernelFacts::default(), None),
        // As in the doctor: these kernels ignore `rt-runtime`.
        ("Linux 6.12.0-rt", 950_000, KernelFacts::default(), Some("fair_server")),
        ("Linux 6.12.0-rt", -1, KernelFacts::default(), Some("fair_server")),
        ("Linux 6.12.0-rt", 950_000, settings, None),
    ] {
        let facts = source.manifest.here.before.as_mut().expect("the test manifest has it");
        (facts.kernel, facts.rt_runtime_us) = (Some(kernel.into()), Some(runtime_us));
        facts.kernel_settings = kernel_settings;
        let hint = find(&source, "rt-throttling").map(|caveat| caveat.hint);
        assert_eq!(hint.is_some(), expected.is_some(), "{kernel} with {runtime_us}");
        assert!(hint.is_none_or(|hint| expected.is_some_and(|word| hint.contains(word))), "{kernel} with {runtime_us}");
    }
}

/// A setting that was made at that end, and was restored.
fn awake(setting: &str, at: &str) -> SettingFacts {
    SettingFacts {
        setting: setting.into(),
        at: at.into(),
        place: "/dev/cpu_dma_latency".into(),
        before: "none".into(),
        places: 1,
        root: None,
        set: "0us".into(),
        read_back: Some("0us".into()),
        ended: Some(Restoration::Restored),
    }
}

#[test]
fn a_far_cpu_with_idle_states_has_a_caveat_unless_settings_prevent_them() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.target = Target::Ssh { host: "there".into() };
    source.manifest.peer.before = Some(HostFacts { boot_id: Some("another".into()), ..HostFacts::default() });
    assert_eq!(find(&source, "idle-states"), None, "both ends spin");
    source.manifest.spec.peer.as_mut().expect("it has one").wait = WaitMode::Block;
    for (settings, expected) in [
        (vec![], true),
        (vec![awake("cpu-dma-latency=0us", "local")], true),
        (vec![awake("cpu-dma-latency@both=0us", "local"), awake("cpu-dma-latency@both=0us", "peer")], false),
        (vec![awake("idle-states@peer=max-us:0", "peer")], false),
        (vec![awake("idle-states@peer=max-us:10", "peer")], true),
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
    assert_eq!(find(&few, "send-failed").map(|caveat| caveat.severity), Some(Severity::Warning));
    assert_eq!(find(&few, "schedule-lost"), None);
    let many = quiet(EVERY_MS, rows(10));
    assert_eq!(caveats(&many).first().map(|caveat| caveat.code.as_str()), Some("schedule-lost"), "the worst is first");
    assert_eq!(find(&many, "send-failed"), None);
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
    assert_eq!(caveat.severity, Severity::Warning);
}

#[test]
fn nothing_measured_and_nothing_answered_are_distinguished() {
    let nothing = quiet(CLOSED, Vec::new());
    assert!(find(&nothing, "nothing-measured").is_some() && find(&nothing, "no-answer").is_none());
    let silent = quiet(CLOSED, vec![but(closed(0, 0, 0), Fate::Lost)]);
    assert!(find(&silent, "no-answer").is_some() && find(&silent, "nothing-measured").is_none());
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
    let both = caveats(&source).into_iter().filter(|caveat| caveat.code == "clock-stepped").count();
    assert_eq!(both, 2, "one of the step, one of the suspension");
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

#[test]
fn a_plan_with_fifo_threads_that_do_not_sleep_has_a_warning_unless_it_lifts_the_throttling() {
    let (via, cpus, interval_ns) = (Via::ClockNanosleep, WakeupCpus::Anywhere, Nanos::from_micros(2));
    let spec = WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: None };
    let mut run = RunSpec::here(Work::Wakeup(spec));
    run.here.fifo = Some(80);
    let facts =
        |kernel: &str| HostFacts { kernel: Some(kernel.into()), rt_runtime_us: Some(950_000), ..HostFacts::default() };
    let lifting = RunSpec {
        settings: vec![SettingSpec { setting: Setting::RtRuntime(-1), interface: None, side: None }],
        ..run.clone()
    };
    for (run, kernel, word) in [
        (&run, "Linux 6.11.9", Some("rt-runtime=-1")),
        (&lifting, "Linux 6.11.9", None),
        (&lifting, "Linux 6.12.3", Some("fair_server")),
    ] {
        let plan = Plan { runs: vec![run.clone()], rounds: 1 };
        let found = real_time_warning(&plan, || facts(kernel));
        assert_eq!(found.is_some(), word.is_some(), "{kernel}");
        assert!(found.is_none_or(|found| word.is_some_and(|word| found.hint.contains(word))), "{kernel}");
    }
    let sleeps = RunSpec { here: EndSpec::SYSTEM, ..run };
    assert_eq!(real_time_warning(&Plan { runs: vec![sleeps], rounds: 1 }, || panic!("no such thread")), None);
}
