//! Makes recordings of the current format for `testdata/recordings/`: `cargo run --example make_recordings DIRECTORY`.
//!
//! For a new format version, add `finished`, `tcp`, `dds`, `xdp`, `stamped`, `wakeup`, `command`, `stream`, `search` and `died` to `old/`, and do not
//! change those of earlier versions. `closed` and `scheduled` are for `good/`.
//!
//! `cargo run --example make_recordings refill RUNS` puts made-up rows into the recordings in `RUNS`, of an experiment for
//! `testdata/experiments/finished/`. Recordings in `testdata/recordings/forms/` are as measured, one of each kind of report,
//! without what identifies the host (boot id, kernel and its command line).
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use latlab::facts::{
    CommandLine, ConnectionFacts, CounterFacts, CpuReadings, DdsFacts, Execution, HostFacts, HostReadings, HostSample,
    InterruptSource, IntervalCounts, PrintedNumber, RateSearchFacts, SearchEnding, StageFacts, StampFacts, StreamFacts,
    StreamInterval, TrialFacts, WakeupFacts, XdpFacts,
};
use latlab::plan::{
    self, CommandOutput, CommandSpec, DdsSpec, History, Pace, PacketSize, PingSpec, RateSearchSpec, Reflect,
    Reliability, RunSpec, Schedule, Side, StampLayer, StopWhen, StreamRunSpec, Target, TransportKind, Via, WakeupCpus,
    WakeupSpec, Work, XdpSpec,
};
use latlab::probe::{ExecutionFate, Phase, Seq};
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{EventLog, RecordingWriter, Store};
use latlab::recording::{ProbeStamps, SpoolEvent};
use latlab::units::{Nanos, Stamp};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[path = "../tests/runs/mod.rs"]
mod runs;

#[path = "refill/mod.rs"]
mod refill;

const PROBES: u64 = 2_000;

fn main() {
    let target = std::env::args().nth(1).expect("a directory to make recordings in");
    if target == "refill" {
        return std::env::args().skip(2).for_each(|runs| refill::all(Path::new(&runs)));
    }
    let target = Path::new(&target);
    let finish = |writer: RecordingWriter, log| _ = writer.finish(log, RunEnding::Completed, None).expect("finished");
    make(target, "finished", known(runs::manifest("0000000000000010")), |log| runs::fill(log, 0..300), finish);
    make(target, "closed", closed("00000000000c105e"), fill_closed, finish);
    make(target, "scheduled", scheduled("000000000005c4ed"), fill_scheduled, finish);
    make(target, "tcp", tcp("0000000000007c90"), |log| runs::fill(log, 0..300), finish);
    make(target, "dds", dds("0000000000000dd5"), |log| runs::fill(log, 0..300), finish);
    make(target, "xdp", xdp("00000000000000bf"), |log| runs::fill(log, 0..300), finish);
    make(target, "stamped", stamped("0000000000057a3b"), fill_stamped, finish);
    make(target, "stream", stream("000000000057e4a0"), fill_stream, finish);
    make(target, "search", searched("000000000005ea4c"), fill_searched, finish);
    make(target, "wakeup", wakeup("0000000000003a6e"), fill_wakeup, finish);
    make(target, "command", command("00000000000c0dda"), fill_command, finish);
    let die = |name: &'static str| move |writer, log| leave_behind(target, name, writer, log);
    make(target, "died", before(known(runs::manifest("0000000000000dea"))), |log| runs::fill(log, 0..300), die("died"));
    make(target, "search-died", searched("0000000005ea4dea"), fill_searched, die("search-died"));
    make(target, "stream-died", stream("00000000057e4dea"), fill_stream, die("stream-died"));
}

/// Copies the spool files while the writer runs, as if its process had been killed, with a torn last checksum.
fn leave_behind(target: &Path, name: &str, writer: RecordingWriter, log: EventLog) {
    let spooled = || {
        let bytes = fs::read(writer.path().join("events.spool")).expect("spool");
        // Kind 10 is a checksum.
        bytes[64..].chunks_exact(64).filter(|event| event[0] != 10).count() as u64
    };
    while spooled() < log.written() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let copy = target.join("copy");
    fs::create_dir(&copy).expect("directory");
    for file in ["manifest.json", "events.spool", "host.spool"] {
        fs::copy(writer.path().join(file), copy.join(file)).expect("copied");
    }
    let spool = fs::OpenOptions::new().write(true).open(copy.join("events.spool")).expect("spool");
    spool.set_len(spool.metadata().expect("spool").len() - 20).expect("torn");
    writer.discard(Some(log));
    fs::rename(copy, target.join(name)).expect("renamed");
}

fn make(
    target: &Path,
    name: &str,
    manifest: Manifest,
    fill: impl FnOnce(&mut EventLog),
    end: impl FnOnce(RecordingWriter, EventLog),
) {
    let store = Store::open(target).expect("store");
    let mut writer = RecordingWriter::create(&store, Some(&target.join(name)), manifest).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    let mut host_log = writer.host_log().expect("begun");
    (0..20).for_each(|seq| host_log.push(Side::Local, &sample(seq)));
    fill(&mut log);
    writer.note_unwritten_samples(&host_log);
    end(writer, log);
}

/// A run with both ends on one host, whose counters move during the run and whose interrupt 50 ends.
fn with_host(mut manifest: Manifest) -> Manifest {
    let facts = |context_switches, interrupts: &[&str]| {
        let source = |name: &&str| ((*name).to_owned(), InterruptSource { source: "eth".into(), ..Default::default() });
        let counters = CounterFacts {
            context_switches: Some(context_switches),
            interrupts: Some(interrupts.iter().map(source).collect()),
            ..CounterFacts::default()
        };
        HostFacts { kernel: Some("Linux 6.1.0".into()), memory_bytes: Some(1 << 30), counters, ..HostFacts::default() }
    };
    manifest.here.before = Some(facts(1_000, &["41", "50"]));
    manifest.here.after = Some(facts(1_700, &["41"]));
    manifest.peer = manifest.here.clone();
    manifest
}

/// A run with its hosts and with the command line that made it, of which a shell needs the last word in quotes.
fn known(manifest: Manifest) -> Manifest {
    let typed = "/usr/bin/latlab ping -i 10us -n 1000 --warmup 3 --timeout 1ms -o".split(' ').chain(["it's finished"]);
    let command = CommandLine::of(&typed.collect::<Vec<_>>());
    Manifest { command: Some(command), ..with_host(manifest) }
}

/// As `manifest` stands before the run.
fn before(mut manifest: Manifest) -> Manifest {
    (manifest.here.after, manifest.peer.after) = (None, None);
    manifest
}

/// The run of `finished` over a connection.
fn tcp(run_id: &str) -> Manifest {
    let mut manifest = runs::manifest(run_id);
    let Work::Ping(ping) = &mut manifest.spec.work else { unreachable!("a run of round trips") };
    ping.transport = TransportKind::Tcp;
    let congestion_control = Some("cubic".into());
    manifest.run.connection = Some(ConnectionFacts { congestion_control, send_segment_bytes: 1_448, retransmitted: 2 });
    manifest
}

/// The run of `finished` over DDS.
fn dds(run_id: &str) -> Manifest {
    let mut manifest = runs::manifest(run_id);
    let Work::Ping(ping) = &mut manifest.spec.work else { unreachable!("a run of round trips") };
    ping.transport = TransportKind::Dds;
    let (reliability, history) = (Reliability::Reliable, History::KeepLast(4));
    ping.path.dds = Some(DdsSpec { domain: 7, reliability, history, keyed: true, ..DdsSpec::default() });
    manifest.run.dds = Some(DdsFacts {
        implementation: "Eclipse Cyclone DDS 11.0.0".into(),
        discovery_ns: Nanos(23_400_000),
        environment: Some("<General><FragmentSize>4000B</FragmentSize></General>".into()),
        configuration: vec!["Domain/General/FragmentSize/#text: 4000 B".into()],
        samples_lost: 3,
        warnings: Vec::new(),
    });
    manifest
}

/// The run of `finished` past the network stack, answered by a program in the network driver.
fn xdp(run_id: &str) -> Manifest {
    let mut manifest = runs::manifest(run_id);
    manifest.spec.target = Target::Lab;
    let Work::Ping(ping) = &mut manifest.spec.work else { unreachable!("a run of round trips") };
    ping.transport = TransportKind::Xdp;
    ping.path.xdp = Some(XdpSpec { queue: 2, reflect: Reflect::XdpTx, peer_queue: 0 });
    let facts = XdpFacts { interface: "lab0".into(), queue: Some(2), native: true, zero_copy: false };
    manifest.run.xdp_reflector = Some(XdpFacts { queue: None, ..facts.clone() });
    manifest.run.xdp = Some(facts);
    manifest
}

/// The run of `finished` with stamps of the kernel.
fn stamped(run_id: &str) -> Manifest {
    let mut manifest = known(runs::manifest(run_id));
    let Work::Ping(ping) = &mut manifest.spec.work else { unreachable!("a run of round trips") };
    ping.stamps = Some(StampLayer::Kernel);
    manifest.run.stamps = Some(StampFacts { error_ns: 20, clock_steps: 1, cost_ns: 390 });
    manifest
}

fn fill_stamped(log: &mut EventLog) {
    for seq in 0..300 {
        runs::fill(log, seq..seq + 1);
        let at = |after| Some(Stamp::from_nanos(runs::due(seq) + after));
        let tx_software = at(900).filter(|_| seq % 7 != 0);
        let reflector_tx_lag = (seq % 5 != 0).then_some(Nanos(310));
        log.push(SpoolEvent::Stamped(ProbeStamps { seq: Seq(seq), tx_sched: at(400), tx_software, reflector_tx_lag }));
    }
}

/// Sample `seq` of a host with two CPUs that measures and does nothing else.
fn sample(seq: u64) -> HostSample {
    let span = seq as i64 * 500_000_000;
    let cpu = |share: i64| CpuReadings {
        busy_ns: Some(1_000_000_000 + span / 100 * share),
        interrupt_ns: Some(10_000_000),
        idle_ns: Some(span / 100 * (100 - share)),
        steal_ns: Some(0),
        frequency_khz: Some(2_400_000),
        ..CpuReadings::default()
    };
    HostSample {
        seq,
        start_ns: 900_000_000 + span,
        end_ns: 900_080_000 + span,
        sampler_cpu: Some(1),
        host: HostReadings {
            context_switches: Some(1_000 + span / 10_000),
            own_ns: Some(20_000_000 + span / 100 * 60),
            ..HostReadings::default()
        },
        cpus: vec![(0, cpu(40)), (1, cpu(20))],
    }
}

/// Two flows of packets of 1,472 bytes.
fn stream(run_id: &str) -> Manifest {
    let size = PacketSize::Bytes(1_472);
    let pace = Pace::Packets { pps: 20_000 };
    let mut manifest = runs::manifest(run_id);
    manifest.spec = RunSpec::here(Work::Stream(StreamRunSpec { size, flows: 2, ..StreamRunSpec::at(pace) }));
    manifest.kind = manifest.spec.kind();
    manifest.run.stream = Some(StreamFacts {
        unfragmented_bytes: Some(65_507),
        send_buffer_bytes: Some(8 << 20),
        receive_buffer_bytes: Some(8 << 20),
        burst_packets: 64,
        settled: true,
        ..StreamFacts::default()
    });
    manifest
}

/// The stream of [`stream`] after a rate search, with a probe each millisecond.
fn searched(run_id: &str) -> Manifest {
    let mut manifest = stream(run_id);
    let Work::Stream(stream) = &mut manifest.spec.work else { panic!("a stream") };
    let interval_ns = Nanos(runs::INTERVAL);
    stream.search = Some(RateSearchSpec::within(&[0.0, 0.005], Nanos::from_secs(60)));
    stream.probes = Some(PingSpec { timeout_ns: runs::TIMEOUT, ..PingSpec::on(Schedule::Periodic { interval_ns }) });
    let trial = |pps: f64, delivered_packets| TrialFacts {
        asked_pps: Some(pps),
        lasting_ns: Nanos::from_millis(500),
        sending_ns: Nanos::from_millis(500),
        counting_ns: Nanos::from_millis(501),
        sent_packets: (pps / 2.0) as u64,
        delivered_packets,
        answered: true,
    };
    let fastest = TrialFacts { asked_pps: None, ..trial(60_000.0, 12_000) };
    let trials = [vec![fastest], vec![trial(20_000.0, 10_000); 3], vec![trial(20_300.0, 10_000); 3]].concat();
    let (ending, took_ns) = (SearchEnding::Settled, Nanos::from_millis(3_700));
    manifest.run.search = Some(RateSearchFacts { floor_pps: 20.0, ceiling_pps: 60_000.0, trials, ending, took_ns });
    let stage = |share, from: u64, stream| StageFacts {
        share: Some(share),
        begin_ns: runs::due(from),
        end_ns: runs::due(from + 100),
        stream,
    };
    manifest.run.stages = vec![stage(0.0, 0, None), stage(1.0, 150, Some(trial(20_000.0, 9_990)))];
    manifest
}

fn fill_searched(log: &mut EventLog) {
    fill_stream(log);
    runs::fill(log, 0..300);
}

/// Twelve intervals of each flow and end, the first two of the warm-up; of each thousand packets some are lost, and most of
/// those at the receiver's socket.
fn fill_stream(log: &mut EventLog) {
    for (interval, flow) in (0..12).flat_map(|interval| [0u16, 1].map(|flow| (interval, flow))) {
        let phase = if interval < 2 { Phase::Warmup } else { Phase::Measure };
        let at = |origin: i64| origin + interval * 100_000_000;
        let (start, end) = (at(1_000_000_000), at(1_100_000_000));
        let interval_event = |start_ns, end_ns, cpu: Option<i64>, seen| {
            let cpu = cpu.map(Nanos);
            SpoolEvent::Interval(StreamInterval { flow, phase, start_ns, end_ns, cpu, seen })
        };
        let sent = IntervalCounts::Offered { packets: 1_000, refused: interval as u64 % 3, skipped: 0 };
        log.push(interval_event(start, end, Some(3_000_000), sent));
        let first = flow == 0;
        let counted = IntervalCounts::Counted {
            polled: 1_000,
            delivered: 990 - interval as u64,
            reordered: 1,
            duplicates: u32::from(first),
            outside_window: 0,
            socket_drops: first.then_some(14),
        };
        log.push(interval_event(start - 777_000_000, end - 777_000_000, first.then_some(5_000_000), counted));
    }
}

/// Two threads, each on its CPU.
fn wakeup(run_id: &str) -> Manifest {
    let spec = WakeupSpec {
        via: Via::Select,
        interval_ns: Nanos::from_millis(1),
        relative: false,
        cpus: WakeupCpus::These(vec![0, 1]),
        break_ns: None,
    };
    let mut manifest = runs::manifest(run_id);
    manifest.spec = RunSpec::here(Work::Wakeup(spec));
    manifest.kind = manifest.spec.kind();
    let timer_slack_ns = Some(Nanos::from_micros(50));
    manifest.run.wakeup = Some(WakeupFacts { timer_slack_ns, niceness: Some(0), ..WakeupFacts::default() });
    manifest
}

/// Slots 60 µs late, every hundredth so late that the next two are past; the threads' events in stretches.
fn fill_wakeup(log: &mut EventLog) {
    for stretch in 0..10 {
        for cpu in [0, 1] {
            for seq in stretch * 50..stretch * 50 + 50 {
                let phase = if seq < 20 { Phase::Warmup } else { Phase::Measure };
                let due = Stamp::from_nanos(1_000_000_000 + seq as i64 * 1_000_000);
                let late = if seq % 100 == 99 { 2_500_000 } else { 60_000 + i64::from(cpu) * 100 };
                let via = Via::Select;
                log.push(SpoolEvent::Woke { seq: Seq(seq), phase, due, woke: due + Nanos(late), cpu: Some(cpu), via });
            }
        }
    }
}

fn command(run_id: &str) -> Manifest {
    let rate =
        plan::PrintedSpec { name: "rate".into(), pattern: "*".into(), unit: "req/s".into(), higher_is_better: true };
    let spec = CommandSpec {
        words: ["grep", "-c", "two words", "file"].map(str::to_owned).into(),
        prepare: Some(vec!["sync".into()]),
        input: Some("in".into()),
        output: CommandOutput::File("out".into()),
        timeout_ns: Some(Nanos::from_secs(1)),
        ignore_failure: true,
        printed: vec![rate],
    };
    let mut manifest = runs::manifest(run_id);
    manifest.command = Some(CommandLine::of(&["latlab", "command", "--", "grep", "-c", "two words", "file"]));
    manifest.spec = RunSpec::here(Work::Command(spec));
    manifest.kind = manifest.spec.kind();
    manifest
}

/// Executions of a millisecond, of which every tenth exits with 1; one was killed, and one took too long.
fn fill_command(log: &mut EventLog) {
    for seq in 0..200 {
        let started = Stamp::from_nanos(1_000_000_000 + seq as i64 * 2_000_000);
        let (fate, code) = match seq {
            150 => (ExecutionFate::Killed, 11),
            151 => (ExecutionFate::TimedOut, 0),
            seq => (ExecutionFate::Exited, u8::from(seq % 10 == 9)),
        };
        log.push(SpoolEvent::Executed(Execution {
            seq: Seq(seq),
            phase: if seq < 20 { Phase::Warmup } else { Phase::Measure },
            started,
            ended: started + Nanos(1_000_000 + (seq as i64 * 7_919) % 100_000),
            user: Nanos(300_000 + seq as i64 % 7 * 1_000),
            system: Nanos(400_000),
            resident_kib: 2_048 + seq as u32,
            voluntary_switches: 1,
            involuntary_switches: u32::from(seq % 4 == 0),
            minor_faults: 95,
            major_faults: 0,
            fate,
            code,
        }));
        log.push(SpoolEvent::Printed(PrintedNumber { seq: Seq(seq), metric: 0, bits: (seq as f64 / 4.0).to_bits() }));
    }
}

fn closed(run_id: &str) -> Manifest {
    with_schedule(run_id, Schedule::Closed)
}

fn scheduled(run_id: &str) -> Manifest {
    with_schedule(run_id, Schedule::Periodic { interval_ns: Nanos(runs::INTERVAL) })
}

fn with_schedule(run_id: &str, schedule: Schedule) -> Manifest {
    let mut manifest = runs::manifest(run_id);
    let Work::Ping(ping) = &mut manifest.spec.work else { panic!("a run of round trips") };
    ping.schedule = schedule;
    manifest.spec.stop = StopWhen { count: Some(PROBES - runs::WARMUP), duration_ns: None };
    manifest
}

/// Round trips of 40 µs and an exponential tail; every 400th probe is lost.
fn fill_closed(log: &mut EventLog) {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut now = runs::due(0);
    for seq in 0..PROBES {
        let phase = if seq < runs::WARMUP { Phase::Warmup } else { Phase::Measure };
        log.push(SpoolEvent::Sent { seq: Seq(seq), phase, due: None, sent: Stamp::from_nanos(now), cpu: Some(0) });
        if seq % 400 == 399 {
            now += runs::TIMEOUT.0;
            log.push(SpoolEvent::TimedOut { seq: Seq(seq), waited: runs::TIMEOUT });
        } else {
            let delay = 40_000 + tail(&mut rng, 5_000.0);
            now += delay;
            log.push(runs::answer(seq, now - runs::due(seq)));
        }
        now += 300;
    }
}

/// Answers 20 to 60 µs after they were due, several in flight: some late, some twice, some out of order, and those
/// that `runs::departure` refuses or gives up.
fn fill_scheduled(log: &mut EventLog) {
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    let mut events: Vec<(i64, SpoolEvent)> = Vec::new();
    for seq in 0..PROBES {
        let departure = runs::departure(seq);
        events.push((runs::due(seq) + 50, departure));
        let delay = match seq % 100 {
            13 => None,
            57 => Some(runs::TIMEOUT.0 + 70_000),
            _ => Some(20_000 + tail(&mut rng, 8_000.0)),
        };
        if let (SpoolEvent::Sent { .. }, Some(delay)) = (departure, delay) {
            let copies = if seq % 250 == 77 { 3 } else { 1 };
            events.extend(
                (0..copies).map(|copy| (runs::due(seq) + delay + copy * 900, runs::answer(seq, delay + copy * 900))),
            );
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().for_each(|(_, event)| log.push(event));
}

fn tail(rng: &mut Pcg64Mcg, mean: f64) -> i64 {
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (-(1.0 - uniform).ln() * mean) as i64
}
