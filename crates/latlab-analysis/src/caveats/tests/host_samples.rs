//! Caveats of host samples. The host has two CPUs with one end pinned to each, and is sampled twice a second for 10 s.

use super::{caveats, closed_loop, find, quiet};
use crate::diagnostics::Severity;
use crate::facts::{CpuReadings, HostFacts, HostReadings, HostSample, ReflectorReport};
use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, manifest, scheduled};
use crate::plan::{EndSpec, LoadKind, LoadSpec, PingSpec, Setting, SettingSpec, Side, Target, WaitMode, Work};
use crate::probe::Fate;
use crate::recording::manifest::Manifest;

const SAMPLES: i64 = 20;
const PERIOD_NS: i64 = 500_000_000;
const TICK_NS: i64 = 10_000_000;

/// A run with samples of a host that has `cpus` CPUs. `change` gets the number of each sample and modifies it.
fn sampled(cpus: u16, change: impl Fn(i64, &mut HostSample)) -> InMemory {
    let mut source = quiet(CLOSED, closed_loop());
    source.hosts = (0..SAMPLES)
        .map(|seq| {
            let start_ns = 7_000_000_000 + seq * PERIOD_NS;
            let idle = CpuReadings {
                busy_ns: Some(500 * TICK_NS),
                interrupt_ns: Some(20 * TICK_NS),
                idle_ns: Some(seq * PERIOD_NS),
                steal_ns: Some(3 * TICK_NS),
                frequency_khz: Some(2_000_000),
                throttles: Some(12),
                ..CpuReadings::default()
            };
            let mut sample = HostSample {
                seq: seq as u64,
                start_ns,
                end_ns: start_ns + 80_000,
                sampler_cpu: Some(0),
                host: HostReadings {
                    own_ns: Some(40_000_000),
                    firmware_throttled: Some(0x5_0000),
                    ..HostReadings::default()
                },
                cpus: (0..cpus).map(|cpu| (cpu, idle)).collect(),
            };
            change(seq, &mut sample);
            (Side::Local, sample)
        })
        .collect();
    source
}

/// Adds busy time to CPU `cpu`: `share` of the time from the first sample to sample `seq`.
fn add_busy(sample: &mut HostSample, cpu: usize, seq: i64, share: f64) {
    let worked = (seq as f64 * PERIOD_NS as f64 * share) as i64 / TICK_NS * TICK_NS;
    let busy = &mut sample.cpus[cpu].1.busy_ns;
    *busy = busy.map(|busy| busy + worked);
}

/// Sets the CPU time of latlab's own processes: `shares` times the time from the first sample to sample `seq`.
fn set_own(sample: &mut HostSample, seq: i64, shares: f64) {
    sample.host.own_ns = Some(40_000_000 + (seq as f64 * PERIOD_NS as f64 * shares) as i64);
}

fn codes(source: &InMemory) -> Vec<String> {
    caveats(source).into_iter().map(|caveat| caveat.code).collect()
}

#[test]
fn an_idle_host_and_one_that_only_measures_have_no_caveat() {
    assert_eq!(codes(&sampled(2, |_, _| ())), ["few-observations"]);
    // Both ends spin and use all CPU time, within the error of the ticks.
    let spinning = sampled(2, |seq, sample| {
        add_busy(sample, 0, seq, 1.0);
        add_busy(sample, 1, seq, 1.0);
        set_own(sample, seq, 1.995);
    });
    assert_eq!(codes(&spinning), ["few-observations"]);
    // Half of the work is done in soft interrupts, which are not part of the CPU time of the ends.
    let in_the_kernel = sampled(2, |seq, sample| {
        add_busy(sample, 0, seq, 0.9);
        set_own(sample, seq, 0.5);
        sample.cpus[0].1.interrupt_ns = Some(20 * TICK_NS + seq * PERIOD_NS * 4 / 10);
    });
    assert_eq!(codes(&in_the_kernel), ["few-observations"]);
}

/// Code and severity of a caveat, the change of each sample that raises it, and a part of its message.
type CaveatCase = (&'static str, Severity, fn(i64, &mut HostSample), &'static str);

#[test]
fn each_reading_raises_its_caveat() {
    let table: &[CaveatCase] = &[
        (
            "host-throttled",
            Severity::Fatal,
            |seq, sample| sample.cpus[1].1.throttles = Some(12 + i64::from(seq > 7)),
            "thermal events counted by its CPUs: 1",
        ),
        (
            "host-throttled",
            Severity::Fatal,
            |seq, sample| sample.host.cooling_state = Some(i64::from(seq == 9) * 2),
            "step 2",
        ),
        (
            "host-throttled",
            Severity::Fatal,
            |seq, sample| {
                sample.host.firmware_throttled = Some(0x5_0000 | if seq == 4 { 1 } else { 0 });
                sample.host.temperature_millicelsius = Some(84_200);
            },
            "the firmware reports under-voltage at up to 84.2 °C",
        ),
        (
            "steal",
            Severity::Warning,
            |seq, sample| sample.cpus[0].1.steal_ns = Some(if seq > 9 { 19 * TICK_NS } else { 3 * TICK_NS }),
            "took 1.68 % of one CPU's time from this host during the run, and 16 % in its worst second",
        ),
        (
            // Ten minutes with all steal in one second: the mean is small.
            "steal",
            Severity::Warning,
            |seq, sample| {
                sample.start_ns += if seq == SAMPLES - 1 { 600_000_000_000 } else { 0 };
                sample.cpus[0].1.steal_ns = Some(if seq > 9 { 53 * TICK_NS } else { 3 * TICK_NS });
            },
            "took 0.082 % of one CPU's time from this host during the run, and 50 % in its worst second",
        ),
        (
            "foreign-load",
            Severity::Warning,
            |seq, sample| add_busy(sample, 1, seq, 0.4),
            "used 19.8 % of the measuring CPUs",
        ),
        // Both ends spin.
        ("foreign-load", Severity::Warning, |seq, sample| add_busy(sample, 1, seq, 0.15), "used 7."),
        (
            "frequency-drift",
            Severity::Warning,
            |seq, sample| sample.cpus[1].1.frequency_khz = Some(if seq < 12 { 2_000_000 } else { 1_500_000 }),
            "the clock rate of CPU 1 of this host fell by 20 %",
        ),
    ];
    for (code, severity, change, words) in table {
        let source = sampled(2, change);
        let found: Vec<_> = caveats(&source).into_iter().filter(|caveat| caveat.code == *code).collect();
        assert_eq!(found.iter().map(|caveat| caveat.severity).collect::<Vec<_>>(), [*severity], "{code}");
        assert!(found[0].message.contains(words), "{}", found[0].message);
    }
}

#[test]
fn work_on_other_cpus_has_no_caveat_if_the_ends_are_pinned() {
    // Ends on CPUs 0 and 1 of four; other processes use the other two fully.
    let elsewhere = sampled(4, |seq, sample| {
        add_busy(sample, 2, seq, 1.0);
        add_busy(sample, 3, seq, 1.0);
    });
    assert_eq!(find(&elsewhere, "foreign-load"), None);
    let mut anywhere = elsewhere;
    anywhere.manifest.spec.here.cpu = None;
    let caveat = find(&anywhere, "foreign-load").expect("the sender may run on the same CPU");
    assert!(caveat.message.contains("of all CPUs"), "{}", caveat.message);
    let throttled_elsewhere = sampled(4, |seq, sample| sample.cpus[3].1.throttles = Some(seq));
    assert_eq!(find(&throttled_elsewhere, "host-throttled"), None);
}

#[test]
fn a_reflector_started_here_by_another_process_is_not_foreign_load() {
    let mut source = sampled(2, |seq, sample| add_busy(sample, 0, seq, 0.9));
    for (target, peer, judged) in [
        (Target::Local, "127.0.0.1:40000", true),
        (Target::Host { host: "localhost".into(), port: 9862 }, "127.0.0.1:9862", false),
        (Target::Host { host: "me".into(), port: 9862 }, "10.0.0.1:9862", false),
        (Target::Host { host: "there".into(), port: 9862 }, "10.0.0.7:9862", true),
    ] {
        source.manifest.spec.target = target;
        source.manifest.run.local_address = Some("10.0.0.1:33000".into());
        source.manifest.run.peer_address = Some(peer.into());
        assert_eq!(find(&source, "foreign-load").is_some(), judged, "{peer}");
    }
}

#[test]
fn a_run_of_less_than_a_second_is_not_judged() {
    let mut short = sampled(2, |seq, sample| add_busy(sample, 1, seq, 1.0));
    short.hosts.truncate(2);
    assert_eq!(find(&short, "foreign-load"), None);
}

#[test]
fn unknown_readings_have_no_caveat() {
    let unknown = sampled(2, |seq, sample| {
        sample.host = HostReadings::default();
        let busy_ns = Some(seq * PERIOD_NS);
        sample.cpus.iter_mut().for_each(|(_, cpu)| *cpu = CpuReadings { busy_ns, ..CpuReadings::default() });
    });
    assert_eq!(codes(&unknown), ["few-observations"]);
}

/// The same samples, taken by the agent of another host.
fn of_far_host(mut source: InMemory) -> InMemory {
    source.hosts.iter_mut().for_each(|(side, _)| *side = Side::Peer);
    source.manifest.spec.target = Target::Ssh { host: "there".into() };
    source.manifest.peer.before = Some(HostFacts { boot_id: Some("another".into()), ..HostFacts::default() });
    source
}

#[test]
fn the_far_host_has_the_caveats_of_its_own_samples() {
    let table: &[CaveatCase] = &[
        (
            "host-throttled",
            Severity::Fatal,
            |seq, sample| sample.host.cooling_state = Some(seq),
            "the reflector's host throttled during the run: a cooling device slowed its CPUs (step 19)",
        ),
        (
            "host-throttled",
            Severity::Fatal,
            |seq, sample| sample.cpus[1].1.throttles = Some(12 + seq / 10),
            "the reflector's host throttled during the run: thermal events counted by its CPUs: 1",
        ),
        (
            "frequency-drift",
            Severity::Warning,
            |seq, sample| sample.cpus[1].1.frequency_khz = Some(if seq < 12 { 2_000_000 } else { 1_500_000 }),
            "the clock rate of CPU 1 of the reflector's host fell by 20 %",
        ),
        (
            "steal",
            Severity::Warning,
            |seq, sample| sample.cpus[0].1.steal_ns = Some(if seq > 9 { 19 * TICK_NS } else { 3 * TICK_NS }),
            "from the reflector's host during the run",
        ),
    ];
    for (code, severity, change, words) in table {
        let caveat = find(&of_far_host(sampled(2, change)), code).expect(code);
        assert!(caveat.severity == *severity && caveat.message.contains(words), "{caveat:?}");
        assert!(*code != "frequency-drift" || caveat.hint.contains("`--set governor@peer=performance`"), "{caveat:?}");
    }
    // On the far host the measuring CPU is the one that the reflector is pinned to.
    let far_cpu_0 = of_far_host(sampled(2, |seq, sample| sample.cpus[0].1.throttles = Some(seq)));
    assert_eq!(find(&far_cpu_0, "host-throttled"), None, "the reflector is pinned to CPU 1");
}

#[test]
fn drops_at_either_socket_are_capped_at_the_losses_of_the_run() {
    for (drops, lost, severity, of_the_reflector, of_this_host) in [
        (None, 5, None, "", ""),
        (Some(0), 5, None, "", ""),
        (Some(5), 5, Some(Severity::Warning), ": up to 5 of them measured probes (0.5 % of the probes)", ""),
        (Some(20), 20, Some(Severity::Fatal), "", ": up to 20 of them answers (2 % of the probes)"),
        // A socket also receives from other senders: drops beyond the losses of this run belong to those.
        (Some(900), 5, Some(Severity::Warning), "", ": up to 5 of them answers (0.5 % of the probes)"),
        (Some(900), 0, Some(Severity::Note), ": none of them a measured probe", ": none of them an answer"),
    ] {
        for (is_reflector, message) in [(true, of_the_reflector), (false, of_this_host)] {
            let rows = (0..1_000).map(|seq| closed(seq, seq as i64 * 60, 50));
            let rows = rows.map(|row| if row.seq.0 < lost { but(row, Fate::Lost) } else { row }).collect();
            let mut source = quiet(CLOSED, rows);
            let run = &mut source.manifest.run;
            if is_reflector {
                run.reflector = Some(ReflectorReport { socket_drops: drops, ..ReflectorReport::default() });
            } else {
                run.socket_drops = drops;
            }
            let found = find(&source, "socket-drops");
            assert_eq!(found.as_ref().map(|caveat| caveat.severity), severity, "{drops:?} dropped, {lost} lost");
            assert!(found.is_none_or(|caveat| caveat.message.ends_with(message)), "{message}");
        }
    }
}

/// The ends have CPUs of their own; another process uses a share of CPU 0.
fn beside_foreign_load(share: f64, wait: WaitMode) -> InMemory {
    let mut source = sampled(2, |seq, sample| {
        add_busy(sample, 0, seq, 0.2 + share);
        add_busy(sample, 1, seq, 0.2);
        set_own(sample, seq, 0.4);
    });
    source.manifest.spec.here.wait = wait;
    source.manifest.spec.peer.as_mut().expect("a local run has it").wait = wait;
    source
}

#[test]
fn spinning_beside_foreign_load_is_a_warning_that_does_not_recommend_spinning() {
    let shares = [(0.16, WaitMode::Block, Severity::Note), (0.16, WaitMode::Spin, Severity::Warning)];
    for (share, wait, severity) in shares {
        let found = find(&beside_foreign_load(share, wait), "foreign-load").expect("someone else works");
        assert_eq!(found.severity, severity, "{wait:?}");
        assert_eq!(found.hint.contains("`--wait block`"), wait == WaitMode::Spin, "{found:?}");
    }
}

#[test]
fn no_cpu_is_recommended_if_other_processes_use_all() {
    for (shares, is_everywhere) in [([0.95, 0.95], true), ([0.95, 0.3], false)] {
        let mut source = sampled(2, |seq, sample| {
            shares.iter().enumerate().for_each(|(cpu, share)| add_busy(sample, cpu, seq, *share));
        });
        source.manifest.spec.here.cpu = None;
        source.manifest.spec.here.wait = WaitMode::Block;
        source.manifest.spec.peer.as_mut().expect("a local run has it").wait = WaitMode::Block;
        let hint = find(&source, "foreign-load").expect("other processes ran").hint;
        let pins = "stop the other processes, or a CPU for each end with `--cpu` and `--peer-cpu`";
        assert_eq!(hint, if is_everywhere { "stop the other processes" } else { pins });
    }
}

#[test]
fn spinning_is_recommended_only_to_ends_that_block_on_cpus_of_their_own() {
    let recommends = |source: &InMemory| {
        let all = caveats(source);
        for code in ["send-slip", "send-failed"] {
            assert!(all.iter().any(|caveat| caveat.code == code), "{code}: {all:#?}");
        }
        all.iter().filter(|caveat| caveat.hint.contains("--wait spin")).map(|caveat| caveat.code.clone()).collect()
    };
    let late = |mut source: InMemory| {
        source.rows = (0..400).map(|seq| scheduled(seq, seq as i64 * 1_000, 400, 50)).collect();
        source.rows[399] = but(source.rows[399].clone(), Fate::NotSent);
        source.manifest = Manifest { spec: source.manifest.spec.clone(), ..manifest(EVERY_MS) };
        source.manifest.spec.work = Work::Ping(PingSpec::on(EVERY_MS));
        source
    };
    let none: [&str; 0] = [];
    let quiet = |wait| late(beside_foreign_load(0.0, wait));
    let codes = |source: &InMemory| -> Vec<String> { recommends(source) };
    assert_eq!(codes(&quiet(WaitMode::Block)), ["send-failed", "send-slip", "idle-states"]);
    assert_eq!(codes(&quiet(WaitMode::Spin)), none);
    assert_eq!(codes(&late(beside_foreign_load(0.5, WaitMode::Block))), none);
    assert_eq!(codes(&late(beside_foreign_load(0.5, WaitMode::Spin))), none);
    let mut loaded = quiet(WaitMode::Block);
    let kind = LoadKind::Heaters { workers: 4, cpus: Vec::new() };
    loaded.manifest.spec.loads = vec![LoadSpec { kind, at: Side::Local }];
    assert_eq!(codes(&loaded), none);
    let mut together = quiet(WaitMode::Block);
    together.manifest.spec.peer.as_mut().expect("a local run has it").cpu = together.manifest.spec.here.cpu;
    assert_eq!(codes(&together), none);
}

#[test]
fn a_hint_does_not_name_what_the_run_has_already() {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.here.before.as_mut().expect("the test manifest has it").governors = Some(vec!["powersave".into()]);
    assert!(find(&source, "governor").is_some_and(|caveat| caveat.hint.contains("governor=performance")));
    let setting = Setting::Governor("powersave".into());
    source.manifest.spec.settings = vec![SettingSpec { setting, interface: None, side: None }];
    assert_eq!(find(&source, "governor"), None, "it is a condition of the run");
    let rows: Vec<_> = (0..400).map(|seq| scheduled(seq, seq as i64 * 1_000, 400, 50)).collect();
    let named = ["`--cpu`", "`--wait spin`", "`--fifo 80`", "stop the other processes"];
    for (fifo, cpu, wait, expected) in [
        (None, None, WaitMode::Block, &named[..3]),
        (None, Some(0), WaitMode::Block, &named[1..3]),
        (Some(50), None, WaitMode::Block, &named[..1]),
        (None, None, WaitMode::Spin, &named[..1]),
        (Some(50), Some(0), WaitMode::Block, &named[3..]),
    ] {
        let mut source = quiet(EVERY_MS, rows.clone());
        source.manifest.spec.here = EndSpec { wait, cpu, fifo, mlock: false };
        let hint = find(&source, "send-slip").expect("all slipped").hint;
        let found: Vec<&str> = named.into_iter().filter(|remedy| hint.contains(remedy)).collect();
        assert_eq!(found, expected, "{hint}");
    }
}
