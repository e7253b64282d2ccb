//! The real loop, the real session and the real reflector over simulated networks: each file in
//! `tests/sim/` is one network and its expected results. The runs use no sleep and no socket; the seeds are fixed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use latlab::clock::Clock;
use latlab::facts::ReflectorReport;
use latlab::measure::ping::{ProbeSequence, SessionSender, run_slice};
use latlab::measure::{CpuSource, Slice};
use latlab::plan::Schedule;
use latlab::plan::{PingSpec, RunSpec, StopWhen, Warmup};
use latlab::probe::{Fate, Phase, ProbeRecord};
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{EventLog, ProbeColumn, Recording, RecordingWriter, Store, fresh_run_id};
use latlab::session::{NativeSession, ReflectorAction, ReflectorLimits, SessionParams, SessionReflector, open};
use latlab::transport::sim::{Fault, Network, SimTransport};
use latlab::units::{Nanos, SenderClock, Stamp};
use serde::Deserialize;

static NEVER: AtomicBool = AtomicBool::new(false);

/// One scenario, as written in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    about: String,
    count: u64,
    #[serde(default)]
    warmup: u64,
    #[serde(default = "one")]
    rounds: u32,
    interval_ns: Option<i64>,
    poisson_seed: Option<u64>,
    #[serde(default = "second")]
    timeout_ns: i64,
    #[serde(default = "second")]
    max_backlog_ns: i64,
    #[serde(default = "size")]
    size_bytes: u32,
    network: NetworkFile,
    #[serde(default)]
    fault: Vec<FaultFile>,
    expect: Expect,
}

fn one() -> u32 {
    1
}

fn second() -> i64 {
    1_000_000_000
}

fn size() -> u32 {
    64
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NetworkFile {
    delay_ns: i64,
    jitter_ns: i64,
    loss: f64,
    loss_after_handshake: f64,
    duplication: f64,
    seed: u64,
}

impl Default for NetworkFile {
    fn default() -> Self {
        NetworkFile { delay_ns: 0, jitter_ns: 0, loss: 0.0, loss_after_handshake: 0.0, duplication: 0.0, seed: 1 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FaultFile {
    Refuse { send: u64, errno: i32 },
    Stall { send: u64, span_ns: i64 },
    Hold { send: u64, span_ns: i64 },
}

/// Expected results. Counts without a value must be zero, except `answered`, which is then not checked, and those with
/// an expected share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    answered: Option<u64>,
    late: u64,
    lost: u64,
    send_failed: u64,
    reordered: u64,
    warmup: u64,
    not_sent_between: Option<[u64; 2]>,
    lost_share: Option<[f64; 2]>,
    duplicates_share: Option<[f64; 2]>,
    reordered_share: Option<[f64; 2]>,
    replayed_share: Option<[f64; 2]>,
    round_trip_ns: Option<[i64; 2]>,
    dwell_ns: Option<[i64; 2]>,
    forward_ns: Option<[i64; 2]>,
    slip_ns: Option<[i64; 2]>,
    whole_ns: Option<[i64; 2]>,
    slipped_at_least: u64,
    timed_out: Option<String>,
    refused_pause_ns: Option<[i64; 2]>,
    fates: BTreeMap<String, Fate>,
}

/// The result of a scenario.
struct Outcome {
    rows: Vec<ProbeRecord>,
    timed_out: Nanos,
    refused_pause: Nanos,
    replayed: u64,
}

impl Scenario {
    fn ping(&self) -> PingSpec {
        let schedule = match (self.interval_ns, self.poisson_seed) {
            (None, _) => Schedule::Closed,
            (Some(mean), Some(seed)) => Schedule::Poisson { mean_ns: Nanos(mean), seed },
            (Some(interval), None) => Schedule::Periodic { interval_ns: Nanos(interval) },
        };
        PingSpec {
            size_bytes: self.size_bytes,
            timeout_ns: Nanos(self.timeout_ns),
            max_backlog_ns: Nanos(self.max_backlog_ns),
            ..PingSpec::on(schedule)
        }
    }

    /// The network while the session is opened and closed: without jitter, losses, duplicates and faults.
    fn calm_network(&self) -> Network {
        Network {
            delay: Nanos(self.network.delay_ns),
            jitter: Nanos(0),
            loss: 0.0,
            duplication: 0.0,
            clock_read: Nanos(20),
            send_cost: Nanos(500),
            seed: self.network.seed,
            faults: Vec::new(),
        }
    }

    /// The network of the probes. Faults count sends from the first probe.
    fn network(&self) -> Network {
        let faults = self.fault.iter().map(|fault| match *fault {
            FaultFile::Refuse { send, errno } => Fault::Refuse { send, errno },
            FaultFile::Stall { send, span_ns } => Fault::Stall { send, span: Nanos(span_ns) },
            FaultFile::Hold { send, span_ns } => Fault::Hold { send, span: Nanos(span_ns) },
        });
        Network {
            jitter: Nanos(self.network.jitter_ns),
            loss: self.network.loss.max(self.network.loss_after_handshake),
            duplication: self.network.duplication,
            faults: faults.collect(),
            ..self.calm_network()
        }
    }

    fn slices(&self) -> Vec<Slice> {
        let stop = StopWhen { count: Some(self.count), duration_ns: None };
        let warmup =
            (self.warmup > 0).then_some(Slice { phase: Phase::Warmup, count: self.warmup, duration: Nanos::MAX });
        warmup.into_iter().chain((0..self.rounds).map(|round| Slice::measuring(&stop, round, self.rounds))).collect()
    }
}

impl Expect {
    fn check(&self, name: &str, outcome: &Outcome) {
        let measured: Vec<&ProbeRecord> = outcome.rows.iter().filter(|row| row.phase == Phase::Measure).collect();
        let count = |fate: Fate| measured.iter().filter(|row| row.fate == fate).count() as u64;
        let share = |part: u64| part as f64 / measured.len() as f64;
        let reordered = measured.iter().filter(|row| row.reordered).count() as u64;
        let duplicates = measured.iter().map(|row| u64::from(row.duplicates)).sum::<u64>();
        if let Some(answered) = self.answered {
            assert_eq!(count(Fate::Answered), answered, "{name}: answered");
        }
        assert_eq!(count(Fate::Late), self.late, "{name}: late");
        assert_eq!(count(Fate::SendFailed), self.send_failed, "{name}: send_failed");
        assert_eq!(outcome.rows.len() - measured.len(), self.warmup as usize, "{name}: warm-up rows");
        within(name, "lost", share(count(Fate::Lost)), self.lost_share, share(self.lost));
        within(name, "reordered", share(reordered), self.reordered_share, share(self.reordered));
        within(name, "duplicates", share(duplicates), self.duplicates_share, 0.0);
        within(name, "replayed", share(outcome.replayed), self.replayed_share, 0.0);
        let [least, most] = self.not_sent_between.unwrap_or([0, 0]);
        assert!((least..=most).contains(&count(Fate::NotSent)), "{name}: {} not sent", count(Fate::NotSent));
        self.check_fates(name, &outcome.rows);
        self.check_spans(name, &measured, outcome);
    }

    fn check_fates(&self, name: &str, rows: &[ProbeRecord]) {
        for (seq, fate) in &self.fates {
            let row = rows.iter().find(|row| row.seq.0.to_string() == *seq).expect("a row per probe");
            assert_eq!(row.fate, *fate, "{name}: probe {seq}");
            assert_eq!(row.error.is_some(), *fate == Fate::SendFailed, "{name}: errno of probe {seq}");
        }
    }

    fn check_spans(&self, name: &str, rows: &[&ProbeRecord], outcome: &Outcome) {
        let spans = |of: fn(&ProbeRecord) -> Option<Nanos>| {
            rows.iter().filter_map(|row| of(row)).map(|span| span.0).collect::<Vec<_>>()
        };
        let slips = spans(|row| Some(row.sent? - row.due?));
        bounded(name, "round trip", &spans(|row| Some(row.received? - row.sent?)), self.round_trip_ns);
        bounded(name, "dwell", &spans(|row| Some(row.reflector_sent? - row.reflector_received?)), self.dwell_ns);
        bounded(name, "slip", &slips, self.slip_ns);
        let sent: Vec<_> = rows.iter().filter_map(|row| row.sent).collect();
        let whole = sent.iter().min().zip(sent.iter().max()).map(|(first, last)| (*last - *first).0);
        bounded(name, "first send to last", whole.as_slice(), self.whole_ns);
        // Both ends of a simulation share one clock, so the difference of their stamps is the one-way delay.
        bounded(
            name,
            "way there",
            &spans(|row| Some(Nanos(row.reflector_received?.as_nanos() - row.sent?.as_nanos()))),
            self.forward_ns,
        );
        assert!(
            slips.iter().filter(|slip| **slip > 1_000).count() as u64 >= self.slipped_at_least,
            "{name}: too few slipped"
        );
        let [least, most] = self.refused_pause_ns.unwrap_or([0, 0]);
        assert!((least..=most).contains(&outcome.refused_pause.0), "{name}: paused {:?}", outcome.refused_pause);
        if self.timed_out.is_some() {
            let lost = rows.iter().filter(|row| row.fate == Fate::Lost).count() as i64;
            let per_probe = outcome.timed_out.0 / lost.max(1);
            assert!((1_000_000..1_010_000).contains(&per_probe), "{name}: {per_probe} ns lost per time-out");
        }
    }
}

fn within(name: &str, what: &str, share: f64, asked: Option<[f64; 2]>, exact: f64) {
    let [low, high] = asked.unwrap_or([exact, exact]);
    assert!(low <= share && share <= high, "{name}: share {what} {share} outside {low}..={high}");
}

fn bounded(name: &str, what: &str, spans: &[i64], asked: Option<[i64; 2]>) {
    let Some([low, high]) = asked else { return };
    assert!(!spans.is_empty(), "{name}: no {what} at all");
    for span in spans {
        assert!((low..=high).contains(span), "{name}: {what} {span} outside {low}..={high}");
    }
}

/// The time between the two stamps of the reflector.
const DWELL: Nanos = Nanos(2_000);
/// Where simulated time begins: after two wraps of a 32-bit stamp, so that a stamp that is not extended is wrong.
const START: Stamp<SenderClock> = Stamp::from_nanos(10_000_000_000);

/// The real reflector at the other end of a simulation: it handles a datagram when it arrives, and sends the answer
/// [`DWELL`] later.
fn far_end(reflector: &RefCell<SessionReflector>) -> latlab::transport::sim::SimulatedReflector<'_> {
    let sender = SocketAddr::from(([127, 0, 0, 1], 40_000));
    Box::new(move |datagram, at| {
        let mut reply = datagram.to_vec();
        let received = Stamp::from_nanos(at.as_nanos());
        let bytes = match reflector.borrow_mut().handle(&mut reply, sender, received) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => return None,
            ReflectorAction::Reply(bytes) => bytes,
            ReflectorAction::Reflect(pending) => pending.seal(received + DWELL, Some(3), &mut reply),
        };
        reply.truncate(bytes);
        Some(reply)
    })
}

fn params(ping: &PingSpec) -> SessionParams {
    SessionParams::new("simulation", [7; 16], ping.size_bytes, ping.schedule, None, ping.timeout_ns)
}

/// Opens the session over the calm network, measures over the network of the scenario, and closes the session over the
/// calm network. Each network begins at the instant at which the one before ended.
fn measure(scenario: &Scenario, log: &mut EventLog) -> (Option<ReflectorReport>, i64) {
    let ping = scenario.ping();
    let reflector = RefCell::new(SessionReflector::new(ReflectorLimits::MAX, None, [1; 32]));
    let mut calm = SimTransport::new(scenario.calm_network(), START, far_end(&reflector));
    let clock = calm.clock();
    let mut session = open(&mut calm, &clock, None, &params(&ping), &NEVER).expect("a session without faults");
    let mut network = SimTransport::new(scenario.network(), clock.now(), far_end(&reflector));
    let clock = network.clock();
    run_slices(scenario, &ping, &mut network, &mut session, log);
    let listened_until = clock.now();
    let mut calm = SimTransport::new(scenario.calm_network(), listened_until, far_end(&reflector));
    let clock = calm.clock();
    (session.close(&mut calm, &clock), listened_until.as_nanos())
}

fn run_slices(
    scenario: &Scenario,
    spec: &PingSpec,
    network: &mut SimTransport<'_>,
    session: &mut NativeSession,
    log: &mut EventLog,
) {
    let clock = network.clock();
    let never = AtomicBool::new(false);
    let mut course = ProbeSequence::new(spec);
    for slice in scenario.slices() {
        let mut ends = SessionSender::new(network, &clock, session, log, CpuSource::Unknown);
        run_slice(&mut ends, &mut course, &slice, spec, &never).expect("a simulated socket does not break");
    }
}

fn manifest(scenario: &Scenario) -> Manifest {
    let spec = RunSpec {
        stop: StopWhen { count: Some(scenario.count), duration_ns: None },
        warmup: Warmup { count: Some(scenario.warmup), duration_ns: None },
        ..RunSpec::local(scenario.ping())
    };
    Manifest::new(spec, fresh_run_id().expect("chance"), "2026-11-21T02:15:00.000Z".into())
}

/// Writes and reads a recording, so that the rows of the reader are checked.
fn play(scenario: &Scenario) -> Outcome {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(directory.path()).expect("a store");
    let mut writer = RecordingWriter::create(&store, None, manifest(scenario)).expect("a recording");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("a writer");
    let (report, listened_until) = measure(scenario, &mut log);
    writer.manifest_mut().run.listened_until_ns = Some(listened_until);
    let finished = writer.finish(log, RunEnding::Completed, None).expect("a finished recording");
    let recording = Recording::open(&finished.path).expect("readable");
    let mut rows = Vec::new();
    for batch in recording.probes(&ProbeColumn::ALL).expect("rows") {
        let batch = batch.expect("sound rows");
        rows.extend((0..batch.rows).map(|row| batch.record(row)));
    }
    let replayed = report.expect("the reflector reports at the end").replayed;
    let run = finished.manifest.run;
    Outcome { rows, timed_out: run.timed_out_ns, refused_pause: run.refused_pause_ns, replayed }
}

#[test]
fn every_scenario_has_its_expected_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim");
    let mut played = 0;
    for entry in fs::read_dir(folder).expect("the scenarios") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a scenario");
        let scenario: Scenario = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = play(&scenario);
        let total = scenario.count + scenario.warmup;
        assert_eq!(outcome.rows.len() as u64, total, "{name}: a row per probe ({})", scenario.about);
        scenario.expect.check(&name, &outcome);
        played += 1;
    }
    assert!(played >= 15, "only {played} scenarios were found");
}

#[test]
fn a_scenario_repeats_to_the_nanosecond() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim");
    let text = fs::read_to_string(folder.join("reordering.toml")).expect("a scenario");
    let scenario: Scenario = toml::from_str(&text).expect("well written");
    let stamps = |outcome: Outcome| outcome.rows.into_iter().map(|row| (row.sent, row.received)).collect::<Vec<_>>();
    assert_eq!(stamps(play(&scenario)), stamps(play(&scenario)));
}
