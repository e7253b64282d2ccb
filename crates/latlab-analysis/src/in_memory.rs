//! Rows in memory, for the tests of analysis and reports.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::source::ProbeSource;
use crate::facts::{
    BareConditions, BareLoop, ClockAnchor, HostFacts, HostSample, Instrument, IntervalCounts, LoggedValue,
    StreamInterval,
};
use crate::metric::Metric;
use crate::plan::{
    EndSpec, ImportSpec, Kind, LoadKind, LoadSpec, Pace, PacketSize, PingSpec, RunSpec, Schedule, Side, StreamRunSpec,
    Via, Work, defaults,
};
use crate::probe::{Fate, KernelStamps, Phase, ProbeRecord, Seq};
use crate::recording::manifest::{EndFacts, Manifest, RunEnding};
use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn, ValueBatch, WakeupBatch, WordColumn};
use crate::units::{Nanos, Stamp};

pub const CLOSED: Schedule = Schedule::Closed;
/// A probe each millisecond.
pub const EVERY_MS: Schedule = Schedule::Periodic { interval_ns: Nanos::from_millis(1) };

/// A recording without a disk.
pub struct InMemory {
    pub manifest: Manifest,
    pub rows: Vec<ProbeRecord>,
    /// Rows in a batch, few so that tests cross the border between two.
    pub batch: usize,
    /// Measured wake-ups: CPU, due time, wake-up.
    pub wakeups: Vec<(Option<u16>, i64, i64)>,
    pub hosts: Vec<(Side, HostSample)>,
    pub intervals: Vec<StreamInterval>,
    /// Those of an imported log.
    pub values: Vec<LoggedValue>,
}

impl InMemory {
    /// Rows with a plausible manifest.
    pub fn of(schedule: Schedule, rows: Vec<ProbeRecord>) -> InMemory {
        let (wakeups, hosts, intervals, values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        InMemory { manifest: manifest(schedule), rows, batch: 3, wakeups, hosts, intervals, values }
    }

    /// A stream of packets of 125 bytes, which are 1,000 bits, with these intervals.
    pub fn of_stream(flows: u16, intervals: Vec<StreamInterval>) -> InMemory {
        let spec = StreamRunSpec { size: PacketSize::Bytes(125), flows, ..StreamRunSpec::at(Pace::Max) };
        let mut source = InMemory { intervals, ..InMemory::of(CLOSED, Vec::new()) };
        source.manifest.spec = RunSpec::here(Work::Stream(spec));
        source.manifest.kind = source.manifest.spec.kind();
        source
    }
}

/// An interval of 100 ms of flow 0.
pub fn stream_interval(start_ms: i64, seen: IntervalCounts) -> StreamInterval {
    let [start_ns, end_ns] = [start_ms, start_ms + 100].map(|ms| ms * 1_000_000);
    StreamInterval { flow: 0, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen }
}

/// The parameters of a run of probes, to be changed.
pub fn probes_of(run: &mut RunSpec) -> &mut PingSpec {
    let Work::Ping(ping) = &mut run.work else { panic!("a run of probes") };
    ping
}

/// A load of this share on every CPU.
pub fn cpu_load(share: f64) -> LoadSpec {
    LoadSpec { kind: LoadKind::Cpu { share, cpus: Vec::new(), period_ns: defaults::LOAD_PERIOD }, at: Side::Local }
}

impl ProbeSource for InMemory {
    type Error = Infallible;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn location(&self) -> String {
        "latlab-runs/20261121T021500Z-ping-7f3a".into()
    }

    fn visit_probes(&self, columns: &[ProbeColumn], visit: &mut dyn FnMut(&ProbeBatch)) -> Result<(), Infallible> {
        self.rows.chunks(self.batch).for_each(|rows| visit(&batch(rows, columns)));
        Ok(())
    }

    fn visit_intervals(&self, visit: &mut dyn FnMut(&StreamInterval)) -> Result<(), Infallible> {
        self.intervals.iter().for_each(visit);
        Ok(())
    }

    fn visit_values(&self, visit: &mut dyn FnMut(&ValueBatch)) -> Result<(), Infallible> {
        for rows in self.values.chunks(self.batch) {
            visit(&ValueBatch {
                rows: rows.len(),
                seq: rows.iter().map(|row| row.seq.map(|seq| seq as i64)).collect(),
                metric: WordColumn::All(Metric::Delay),
                value_ns: rows.iter().map(|row| row.value_ns).collect(),
                count: rows.iter().map(|row| Some(row.count as i64)).collect(),
            });
        }
        Ok(())
    }

    fn visit_wakeups(&self, visit: &mut dyn FnMut(&WakeupBatch)) -> Result<(), Infallible> {
        for rows in self.wakeups.chunks(self.batch) {
            visit(&WakeupBatch {
                rows: rows.len(),
                seq: rows.iter().map(|_| Some(0)).collect(),
                phase: WordColumn::All(Phase::Measure),
                due_ns: rows.iter().map(|row| Some(row.1)).collect(),
                woke_ns: rows.iter().map(|row| Some(row.2)).collect(),
                cpu: rows.iter().map(|row| row.0.map(i64::from)).collect(),
                via: WordColumn::All(Via::ClockNanosleep),
            });
        }
        Ok(())
    }

    fn visit_host_samples(&self, visit: &mut dyn FnMut(Side, &HostSample)) -> Result<(), Infallible> {
        self.hosts.iter().for_each(|(side, sample)| visit(*side, sample));
        Ok(())
    }
}

/// Rows as columns, empty unless requested, as from a recording.
fn batch(rows: &[ProbeRecord], columns: &[ProbeColumn]) -> ProbeBatch {
    let column = |which: ProbeColumn, value: &dyn Fn(&ProbeRecord) -> Option<i64>| {
        if !columns.contains(&which) {
            return IntColumn::default();
        }
        rows.iter().map(value).collect()
    };
    ProbeBatch {
        rows: rows.len(),
        phase: rows.iter().map(|row| row.phase).collect(),
        fate: rows.iter().map(|row| row.fate).collect(),
        seq: column(ProbeColumn::Seq, &|row| Some(row.seq.0 as i64)),
        due_ns: column(ProbeColumn::DueNs, &|row| row.due.map(Stamp::as_nanos)),
        sent_ns: column(ProbeColumn::SentNs, &|row| row.sent.map(Stamp::as_nanos)),
        received_cpu: column(ProbeColumn::ReceivedCpu, &|row| row.received_cpu.map(i64::from)),
        sent_cpu: column(ProbeColumn::SentCpu, &|row| row.sent_cpu.map(i64::from)),
        reflector_cpu: column(ProbeColumn::ReflectorCpu, &|row| row.reflector_cpu.map(i64::from)),
        received_ns: column(ProbeColumn::ReceivedNs, &|row| row.received.map(Stamp::as_nanos)),
        reflector_received_ns: column(ProbeColumn::ReflectorReceivedNs, &|row| {
            row.reflector_received.map(Stamp::as_nanos)
        }),
        reflector_sent_ns: column(ProbeColumn::ReflectorSentNs, &|row| row.reflector_sent.map(Stamp::as_nanos)),
        tx_sched_ns: column(ProbeColumn::TxSchedNs, &|row| row.kernel.tx_sched.map(Stamp::as_nanos)),
        tx_software_ns: column(ProbeColumn::TxSoftwareNs, &|row| row.kernel.tx_software.map(Stamp::as_nanos)),
        rx_software_ns: column(ProbeColumn::RxSoftwareNs, &|row| row.kernel.rx_software.map(Stamp::as_nanos)),
        reflector_rx_software_ns: column(ProbeColumn::ReflectorRxSoftwareNs, &|row| {
            row.kernel.reflector_rx_software.map(Stamp::as_nanos)
        }),
        reflector_tx_software_ns: column(ProbeColumn::ReflectorTxSoftwareNs, &|row| {
            row.kernel.reflector_tx_software.map(Stamp::as_nanos)
        }),
        error: column(ProbeColumn::Error, &|row| row.error.map(i64::from)),
        duplicates: column(ProbeColumn::Duplicates, &|row| Some(row.duplicates.into())),
        reordered: column(ProbeColumn::Reordered, &|row| Some(row.reordered.into())),
        ..ProbeBatch::default()
    }
}

/// A probe due at `due_us` on a schedule, sent `slip_us` later, answered `round_trip_us` after that.
pub fn scheduled(seq: u64, due_us: i64, slip_us: i64, round_trip_us: i64) -> ProbeRecord {
    let sent = Stamp::from_nanos((due_us + slip_us) * 1_000);
    let mut row = closed(seq, due_us + slip_us, round_trip_us);
    row.due = Some(Stamp::from_nanos(due_us * 1_000));
    row.sent = Some(sent);
    row
}

/// A probe of a closed loop; the reflector dwells 2 µs, on a clock of its own.
pub fn closed(seq: u64, sent_us: i64, round_trip_us: i64) -> ProbeRecord {
    let sent = Stamp::from_nanos(sent_us * 1_000);
    ProbeRecord {
        seq: Seq(seq),
        phase: Phase::Measure,
        due: None,
        sent: Some(sent),
        received: Some(sent + Nanos::from_micros(round_trip_us)),
        reflector_received: Some(Stamp::from_nanos(-7_000_000 + sent_us * 1_000)),
        reflector_sent: Some(Stamp::from_nanos(-6_998_000 + sent_us * 1_000)),
        kernel: KernelStamps::default(),
        size_bytes: 64,
        sent_cpu: None,
        received_cpu: None,
        reflector_cpu: None,
        fate: Fate::Answered,
        error: None,
        duplicates: 0,
        reordered: false,
    }
}

/// The same probe with another fate and the stamps that a recording then has.
pub fn but(mut row: ProbeRecord, fate: Fate) -> ProbeRecord {
    row.fate = fate;
    if !matches!(fate, Fate::Answered | Fate::Late) {
        (row.received, row.reflector_received, row.reflector_sent) = (None, None, None);
    }
    if fate == Fate::NotSent {
        row.sent = None;
    }
    if fate == Fate::SendFailed {
        (row.sent, row.error) = (None, Some(90));
    }
    row
}

/// A run on loopback, both ends blocking on CPUs of their own.
pub fn manifest(schedule: Schedule) -> Manifest {
    let spec = spec(schedule);
    let host = HostFacts { cpus_online: Some("0-3".into()), boot_id: Some("b".into()), ..HostFacts::default() };
    let end = |monotonic_ns: i64| ClockAnchor {
        monotonic_ns,
        realtime_ns: 1_790_000_000_000_000_000 + monotonic_ns,
        boottime_ns: monotonic_ns + 5,
        tai_ns: 1_790_000_037_000_000_000 + monotonic_ns,
        width_ns: 90,
    };
    let facts = EndFacts {
        before: Some(host.clone()),
        after: Some(host),
        clock_start: Some(end(0)),
        clock_end: Some(end(10_000_000_000)),
    };
    let mut manifest = Manifest::new(spec, "7f3a00112233aabb".into(), "2026-11-21T02:15:00Z".into());
    (manifest.here, manifest.peer) = (facts.clone(), facts);
    manifest.run.peer_address = Some("127.0.0.1:40000".into());
    manifest.instrument = instrument();
    manifest.ending = RunEnding::Completed;
    manifest
}

fn instrument() -> Instrument {
    let bare_loop = BareLoop {
        p50_ns: 48_100.0,
        p99_ns: 60_200.0,
        n: 20_000,
        conditions: BareConditions {
            size_bytes: 64,
            wait: "block".into(),
            cpu: Some(0),
            peer_cpu: Some(1),
            fifo: None,
        },
        measured_at: "2026-11-21T02:00:00Z".into(),
        boot_id: Some("b".into()),
    };
    Instrument {
        clock_resolution_ns: Some(Nanos(1)),
        clock_read_ns: Some(23.4),
        tag_ns: None,
        bare_loop: Some(bare_loop),
    }
}

/// An imported log of one number a line with these values.
pub fn logged(values: Vec<LoggedValue>, ordered: bool) -> InMemory {
    let import = ImportSpec {
        format: "numbers".into(),
        file: "delays.txt".into(),
        rows: Kind::Values,
        metric: Some(Metric::Delay),
        unit: Some("ns".into()),
        column: None,
        direction: None,
        ordered,
        states_losses: false,
        unit_assumed: false,
        halves_doubled: false,
        size_bytes: None,
        interval_ns: None,
        resolution_ns: None,
    };
    let spec = RunSpec::imported(import, "numbers", BTreeMap::new());
    let mut manifest = Manifest::new(spec, "7f3a00112233aabb".into(), "2026-11-21T02:15:00Z".into());
    (manifest.ending, manifest.software.name) = (RunEnding::Completed, "numbers".into());
    InMemory { manifest, values, ..InMemory::of(CLOSED, Vec::new()) }
}

/// The default specification with this schedule.
pub fn spec(schedule: Schedule) -> RunSpec {
    let end = |cpu| EndSpec { cpu: Some(cpu), ..EndSpec::SYSTEM };
    RunSpec { here: end(0), peer: Some(end(1)), ..RunSpec::local(PingSpec::on(schedule)) }
}
