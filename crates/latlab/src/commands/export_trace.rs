//! `latlab export --format perfetto`: one run as a trace. Probes are slices with the stages of both ends, wake-ups slices from
//! the due time on, executions slices, host samples counters, and what a traced CPU ran are slices.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::exported_runs::{Export, ExportBreak, ExportedRun};
use super::output_file::OutputTarget;
use crate::diagnostics::Failure;
use crate::facts::{ClockRelation, CpuReadings};
use crate::formats::export::perfetto::{Part, TraceWriter, Track, TrackKind};
use crate::plan::{Kind, Side};
use crate::probe::{Fate, ProbeRecord};
use crate::recording::trace::{Trace as KernelTrace, TraceSegment};
use crate::recording::{ProbeColumn, RecordedTable, Recording};
use crate::units::Stamp;
use crate::units::human::counted;

type Trace<'a, 'b> = TraceWriter<&'a mut OutputTarget<'b>>;

/// The only run.
pub(super) fn trace(export: &Export<'_>, target: &mut OutputTarget<'_>) -> Result<(), ExportBreak> {
    let [run] = export.runs else {
        let runs = counted(export.runs.len(), "run");
        let refused = Failure::request(format!("cannot write {runs} in one trace"));
        return Err(refused.because("each run has clocks of its own").hint("name one recording").into());
    };
    if run.kind == Kind::Values {
        let refused = Failure::request(format!("cannot write `{}` as a trace", run.name));
        return Err(refused.because("its log states no instants").hint("`--format csv` has its values").into());
    }
    let recording = Recording::open(&run.path)?;
    let mut trace = TraceWriter::new(target)?;
    let mut time = ReflectorTime::OneClock;
    if run.tables.contains(&RecordedTable::Probes) {
        time = reflector_time(run, &recording)?;
        probes(export, &time, &recording, &mut trace)?;
    }
    wakeups(export, &recording, &mut trace)?;
    executions(export, &recording, &mut trace)?;
    cpus(&recording, Side::Local, &ReflectorTime::OneClock, &mut trace)?;
    cpus(&recording, Side::Peer, &time, &mut trace)?;
    host(export, &recording, &mut trace)?;
    Ok(trace.finish()?)
}

/// Tracks of slices that may overlap: each slice is in the first lane that is free.
struct Lanes {
    name: &'static str,
    parent: Track,
    /// Each with the end of its last slice.
    lanes: Vec<(Track, i64)>,
}

impl Lanes {
    fn new(trace: &mut Trace<'_, '_>, name: &'static str) -> Result<Lanes, ExportBreak> {
        Ok(Lanes { name, parent: trace.track(name, None, TrackKind::Slices)?, lanes: Vec::new() })
    }

    fn slice(
        &mut self,
        trace: &mut Trace<'_, '_>,
        name: &str,
        (begin, end): (i64, i64),
        parts: &[Part],
        flow: Option<u64>,
    ) -> Result<(), ExportBreak> {
        let lane = match self.lanes.iter().position(|(_, busy_until)| *busy_until <= begin) {
            Some(lane) => lane,
            None => {
                let track = trace.track(self.name, Some(self.parent), TrackKind::Slices)?;
                self.lanes.push((track, i64::MIN));
                self.lanes.len() - 1
            }
        };
        let (track, busy_until) = &mut self.lanes[lane];
        *busy_until = end;
        Ok(trace.slice(*track, name, (begin, end), parts, flow)?)
    }
}

/// Where the reflector's stamps stand among the sender's.
enum ReflectorTime {
    OneClock,
    /// By comparisons of both clocks before and after the run.
    Compared(ClockRelation),
    /// So much later that the reflector's part of the fastest probe is in the middle of its round trip.
    Shifted(i64),
}

impl ReflectorTime {
    fn near(&self, far_ns: i64) -> i64 {
        match self {
            ReflectorTime::OneClock => far_ns,
            ReflectorTime::Compared(relation) => relation.near_ns(far_ns),
            ReflectorTime::Shifted(by) => far_ns.saturating_add(*by),
        }
    }
}

fn reflector_time(run: &ExportedRun, recording: &Recording) -> Result<ReflectorTime, ExportBreak> {
    if run.spec.target.is_this_host() {
        return Ok(ReflectorTime::OneClock);
    }
    if let Some(relation) = recording.manifest().clock_relation {
        return Ok(ReflectorTime::Compared(relation));
    }
    let mut fastest = (i64::MAX, 0);
    for batch in recording.probes(&ProbeColumn::ALL)? {
        let batch = batch?;
        for row in (0..batch.rows).map(|row| batch.record(row)) {
            let Some(([sent, received], [arrived, left])) = both_ends(&row) else { continue };
            let middle = |from: i64, to: i64| from + (to - from) / 2;
            fastest = fastest.min((received - sent, middle(sent, received) - middle(arrived, left)));
        }
    }
    Ok(ReflectorTime::Shifted(fastest.1))
}

/// When an answered probe left and its answer came, and the same at the reflector.
fn both_ends(row: &ProbeRecord) -> Option<([i64; 2], [i64; 2])> {
    let here = [row.sent?.as_nanos(), row.received?.as_nanos()];
    Some((here, [row.reflector_received?.as_nanos(), row.reflector_sent?.as_nanos()]))
}

fn probes(
    export: &Export<'_>,
    time: &ReflectorTime,
    recording: &Recording,
    trace: &mut Trace<'_, '_>,
) -> Result<(), ExportBreak> {
    let is_exact = matches!(time, ReflectorTime::OneClock);
    let mut sender = Lanes::new(trace, "sender")?;
    let mut reflector = Lanes::new(trace, if is_exact { "reflector" } else { "reflector (clock estimated)" })?;
    let lost = trace.track("without an answer in time", None, TrackKind::Slices)?;
    for batch in recording.probes(&ProbeColumn::ALL)? {
        export.expect_no_signal()?;
        let batch = batch?;
        for row in (0..batch.rows).map(|row| batch.record(row)) {
            let (name, flow) = (format!("probe {}", row.seq.0), Some(row.seq.0 + 1));
            let Some(begin) = row.sent.or(row.due).map(Stamp::as_nanos) else { continue };
            if row.fate != Fate::Answered {
                trace.instant(lost, &format!("{name} {}", row.fate.word()), begin)?;
            }
            let Some(end) = row.received.map(Stamp::as_nanos) else { continue };
            let at = |stamp: Option<i64>| stamp.map(|stamp| stamp.clamp(begin, end));
            let [queue, driver, stack] = [row.kernel.tx_sched, row.kernel.tx_software, row.kernel.rx_software]
                .map(|stamp| at(stamp.map(Stamp::as_nanos)));
            let parts = [("send call", Some(begin), queue), ("queue", queue, driver), ("wake-up", stack, Some(end))];
            sender.slice(trace, &name, (begin, end), &known(parts), flow)?;
            if let Some((_, [arrived, left])) = both_ends(&row) {
                let of = |stamp: Option<i64>, other| stamp.map_or(other, |stamp| time.near(stamp));
                let [arrived, left] = [arrived, left].map(|at| time.near(at));
                let first = of(row.kernel.reflector_rx_software.map(Stamp::as_nanos), arrived).min(arrived);
                let last = of(row.kernel.reflector_tx_software.map(Stamp::as_nanos), left).max(left);
                let parts = [("wake-up", first, arrived), ("process", arrived, left), ("reply", left, last)];
                reflector.slice(
                    trace,
                    &name,
                    (first, last),
                    &known(parts.map(|(n, b, e)| (n, Some(b), Some(e)))),
                    flow,
                )?;
            }
        }
    }
    Ok(())
}

/// The parts whose ends are known, without those that take no time.
fn known(parts: [(&'static str, Option<i64>, Option<i64>); 3]) -> Vec<Part> {
    let part = |(name, begin, end): (_, Option<i64>, Option<i64>)| Some((name, begin?, end?));
    parts.into_iter().filter_map(part).filter(|(_, begin, end)| begin < end).collect()
}

fn wakeups(export: &Export<'_>, recording: &Recording, trace: &mut Trace<'_, '_>) -> Result<(), ExportBreak> {
    if recording.manifest().wakeup_rows.is_none() {
        return Ok(());
    }
    let mut tracks: BTreeMap<Option<i64>, Lanes> = BTreeMap::new();
    for batch in recording.wakeups()? {
        export.expect_no_signal()?;
        let batch = batch?;
        for row in 0..batch.rows {
            let (Some(due), Some(woke)) = (batch.due_ns.get(row), batch.woke_ns.get(row)) else { continue };
            let lanes = match tracks.entry(batch.cpu.get(row)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(Lanes::new(trace, "wake-ups")?),
            };
            lanes.slice(trace, "wake-up", (due.min(woke), woke), &[], None)?;
        }
    }
    Ok(())
}

fn executions(export: &Export<'_>, recording: &Recording, trace: &mut Trace<'_, '_>) -> Result<(), ExportBreak> {
    if recording.manifest().kind != Kind::Command {
        return Ok(());
    }
    let mut lanes = Lanes::new(trace, "executions")?;
    for batch in recording.executions()? {
        export.expect_no_signal()?;
        let batch = batch?;
        for row in 0..batch.rows {
            let (Some(started), Some(ended)) = (batch.started_ns.get(row), batch.ended_ns.get(row)) else { continue };
            lanes.slice(trace, "execution", (started, ended), &[], None)?;
        }
    }
    Ok(())
}

/// What each CPU of a host ran around the slowest, and the interrupts in it.
fn cpus(recording: &Recording, side: Side, time: &ReflectorTime, trace: &mut Trace<'_, '_>) -> Result<(), ExportBreak> {
    let text = recording.trace(side).unwrap_or_default();
    let whose = if side == Side::Peer { "peer's " } else { "" };
    let mut segments = KernelTrace::of(&text).segments;
    segments.sort_by_key(|segment| (segment.from_ns, segment.is_interrupt));
    let mut tracks: BTreeMap<(u16, bool), Track> = BTreeMap::new();
    for TraceSegment { cpu, what, is_interrupt, from_ns, to_ns } in segments {
        let track = match tracks.entry((cpu, is_interrupt)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let what = if is_interrupt { "interrupts" } else { "ran" };
                *entry.insert(trace.track(&format!("{whose}CPU {cpu} {what}"), None, TrackKind::Slices)?)
            }
        };
        trace.slice(track, what, (time.near(from_ns), time.near(to_ns)), &[], None)?;
    }
    Ok(())
}

/// The shortest time between two values of a counter.
const SHORTEST_NS: f64 = 50e6;

/// Busy share and frequency of each CPU of this host, between samples.
fn host(export: &Export<'_>, recording: &Recording, trace: &mut Trace<'_, '_>) -> Result<(), ExportBreak> {
    let mut cpus: BTreeMap<u16, ([Track; 2], CpuReadings, i64)> = BTreeMap::new();
    for sample in recording.host_samples()? {
        export.expect_no_signal()?;
        let (side, sample) = sample?;
        if side != Side::Local {
            continue;
        }
        for (cpu, readings) in sample.cpus {
            let ([busy, frequency], before, since) = match cpus.entry(cpu) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let busy = trace.track(&format!("CPU {cpu} busy"), None, TrackKind::Counter("%"))?;
                    let frequency = trace.track(&format!("CPU {cpu} frequency"), None, TrackKind::Counter("MHz"))?;
                    entry.insert(([busy, frequency], readings, sample.start_ns));
                    continue;
                }
            };
            let span = (sample.start_ns - *since) as f64;
            // In a shorter time ticks of the kernel's counters make shares of their own.
            if span < SHORTEST_NS {
                continue;
            }
            if let (Some(now), Some(then)) = (readings.busy_ns, before.busy_ns) {
                trace.value(*busy, *since, 100.0 * (now - then) as f64 / span.max(1.0))?;
            }
            if let Some(khz) = readings.frequency_khz {
                trace.value(*frequency, sample.start_ns, khz as f64 / 1e3)?;
            }
            (*before, *since) = (readings, sample.start_ns);
        }
    }
    Ok(())
}
