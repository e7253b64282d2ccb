//! Conducts runs of wake-ups: no other end, no path; this host, its loads and its settings.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::timer_threads::{StopSignal, TimerThread, sleep_through};
use crate::facts::WakeupFacts;
use crate::host::sampler::SamplerSpec;
use crate::host::tracing::Tracing;
use crate::host::{HostError, HostGuard, HostRoot, KnobJournal, PathInterfaces, placement};
use crate::measure::host_sampling::{HasRecording, HostSampling};
use crate::measure::lifecycle::ending_of;
use crate::measure::manifest::{closing_facts_here, opening_manifest_here};
use crate::measure::remote_host::RemoteResults;
use crate::measure::{BackgroundLoads, MeasureError, PlanOutcome, RecordingTarget, Slice};
use crate::plan::{EndSpec, Plan, RunSpec, WakeupCpus, WakeupSpec, Work, defaults};
use crate::recording::{EventLog, Finished, RecordingError, RecordingWriter, trace_awaited, trace_missing};

/// How often the caller hears of progress, and the threads of the end. Seldom, for what runs elsewhere makes the next
/// wake-up later, see [`defaults::WAKEUP_DRAIN`].
const HEARTBEAT: Duration = Duration::from_millis(250);

/// One run between its opening and its closing.
struct WakeupRun {
    spec: RunSpec,
    writer: RecordingWriter,
    beds: Vec<TimerThread>,
    facts: Mutex<WakeupFacts>,
    /// Its turn came when all sleep was over.
    waits_in_vain: bool,
    /// What is to be kept of a trace; none where no late wake-up ended the run.
    trace: Option<io::Result<String>>,
}

impl HasRecording for WakeupRun {
    fn writer(&mut self) -> &mut RecordingWriter {
        &mut self.writer
    }
}

/// Measures `plan`, whose runs are all of wake-ups; otherwise as [`super::conduct`].
pub(crate) fn conduct_wakeups(
    plan: &Plan,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
    heartbeat: &mut dyn FnMut(),
) -> Result<PlanOutcome, MeasureError> {
    let Some(first) = plan.runs.first() else { return Ok(PlanOutcome { recordings: Vec::new(), failure: None }) };
    latlab_sys::sleep::allow_interrupts().map_err(MeasureError::Thread)?;
    let runs = settled(&plan.runs);
    rehearse(&runs)?;
    let mut guard = hold(first)?;
    let beside = BackgroundLoads::start(first, None, None, plan.longest(), stop, heartbeat)?;
    let cpus: Vec<u16> = runs.iter().flat_map(|run| cpus_of(run).iter().copied()).collect();
    let count = thread::available_parallelism().map_or(1, usize::from);
    let sampling =
        SamplerSpec { avoid_cpus: cpus.clone(), own_processes: beside.own_processes(), ..SamplerSpec::for_cpus(count) };
    beside.settle(stop, heartbeat);
    placement::keep_off(&cpus);
    let mut lanes = open_lanes(&runs, &guard, place, stop)?;
    let host_watch = match HostSampling::begin(&mut lanes, sampling) {
        Ok(host_watch) => host_watch,
        Err(error) => {
            lanes.into_iter().for_each(WakeupRun::discard);
            return Err(error);
        }
    };
    let (tracing, untraced) = match tracing(&runs, place).transpose() {
        Ok(tracing) => (tracing, None),
        Err(error) => (None, Some(error)),
    };
    let halt = StopSignal::with(tracing);
    let failure = take_turns(&mut lanes, (plan.rounds, &beside), &halt, stop, heartbeat).err();
    note_cut_short(&mut lanes);
    host_watch.end().keep(&mut lanes, &RemoteResults::default());
    let loads = beside.finish(None);
    let settings = guard.restore();
    for lane in &mut lanes {
        let manifest = lane.writer.manifest_mut();
        (manifest.loads, manifest.settings) = (loads.clone(), settings.clone());
        lane.take_trace(&halt, &untraced);
    }
    Ok(close(lanes, failure, stop))
}

/// Whether this host grants what `run` asks for: takes every place and turns every knob, for a moment.
///
/// # Errors
/// What cannot be had.
pub fn rehearse_wakeups(run: &RunSpec) -> Result<(), MeasureError> {
    let _footing = placement::AffinityGuard::before(run.here.mlock);
    rehearse(&settled(std::slice::from_ref(run)))?;
    hold(run)?.restore();
    Ok(())
}

/// What `run` sets on this host.
fn hold(run: &RunSpec) -> Result<HostGuard, MeasureError> {
    if run.settings.is_empty() {
        return Ok(HostGuard::none());
    }
    let (ground, root) = (PathInterfaces::loopback(), HostRoot::of_knobs());
    let mut guard =
        HostGuard::hold(&run.settings, &ground, root, KnobJournal::of_user().as_ref()).map_err(HostError::from)?;
    guard.reflector_started().map_err(HostError::from)?;
    Ok(guard)
}

/// A trace that a late wake-up will stop, or why there is none; none where nothing stops at a late wake-up.
fn tracing(runs: &[RunSpec], place: RecordingTarget<'_>) -> Option<io::Result<Tracing>> {
    let breaks = |run: &RunSpec| run.wakeup().is_some_and(|wakeup| wakeup.break_ns.is_some());
    let kept = place.store.keeps() || place.directory.is_some();
    let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "nothing is recorded");
    let begin = || Tracing::begin().and_then(|tracing| kept.then_some(tracing).ok_or_else(nowhere));
    runs.iter().any(breaks).then(begin)
}

/// `--cpu all` as the CPUs that this process may use.
fn settled(runs: &[RunSpec]) -> Vec<RunSpec> {
    let settle = |run: &RunSpec| {
        let mut run = run.clone();
        if let Work::Wakeup(WakeupSpec { cpus: cpus @ WakeupCpus::All, .. }) = &mut run.work {
            *cpus = WakeupCpus::These(placement::allowed_cpus());
        }
        run
    };
    runs.iter().map(settle).collect()
}

fn cpus_of(run: &RunSpec) -> &[u16] {
    run.wakeup().map_or(&[], |wakeup| wakeup.cpus.known())
}

/// Takes every place for a moment: what cannot be had is refused before anything is set or recorded.
fn rehearse(runs: &[RunSpec]) -> Result<(), MeasureError> {
    let Some(first) = runs.first() else { return Ok(()) };
    let mut places: Vec<Option<u16>> = cpus_of(first).iter().copied().map(Some).collect();
    if places.is_empty() {
        places.push(None);
    }
    let end = first.here;
    places.into_iter().try_for_each(|cpu| on_a_thread(move || Ok(placement::place(&EndSpec { cpu, ..end })?)))
}

/// How the kernel treats a thread that runs as `end` says.
fn treatment(end: EndSpec) -> Result<WakeupFacts, MeasureError> {
    on_a_thread(move || {
        placement::place(&end)?;
        let (timer_slack_ns, niceness) = (placement::timer_slack(), Some(latlab_sys::sleep::niceness()));
        Ok(WakeupFacts { timer_slack_ns, niceness, ..WakeupFacts::default() })
    })
}

/// What `work` finds on a thread that is gone afterwards, as is the place that it takes.
fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MeasureError> + Send + 'static,
) -> Result<T, MeasureError> {
    let thread = thread::Builder::new().name("rehearse".into()).spawn(work).map_err(MeasureError::Thread)?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A late wake-up ends the runs beside its own as well: those that had something left to sleep through.
fn note_cut_short(lanes: &mut [WakeupRun]) {
    if lanes.iter_mut().any(|lane| lane.facts().broke.is_some()) {
        lanes.iter_mut().for_each(|lane| lane.note_cut_short());
    }
}

fn open_lanes(
    runs: &[RunSpec],
    guard: &HostGuard,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<WakeupRun>, MeasureError> {
    let mut lanes = Vec::with_capacity(runs.len());
    for run in runs {
        match WakeupRun::open(run, guard, place, stop) {
            Ok(lane) => lanes.push(lane),
            Err(error) => {
                lanes.into_iter().for_each(WakeupRun::discard);
                return Err(error);
            }
        }
    }
    Ok(lanes)
}

impl WakeupRun {
    fn open(
        spec: &RunSpec,
        guard: &HostGuard,
        place: RecordingTarget<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<WakeupRun, MeasureError> {
        let mut manifest = opening_manifest_here(spec)?;
        manifest.settings = guard.facts();
        manifest.experiment = place.experiment.cloned();
        // Before any of it sleeps: a run that dies, or whose turn never comes, has it too.
        let facts = treatment(spec.here)?;
        manifest.run.wakeup = Some(facts.clone());
        let mut writer = RecordingWriter::create(place.store, place.directory, manifest)?;
        let beds = spec.wakeup().map_or(Ok(Vec::new()), |wakeup| beds(&mut writer, wakeup, spec.here, stop));
        match beds {
            Ok(beds) => {
                let (spec, facts) = (spec.clone(), Mutex::new(facts));
                Ok(WakeupRun { spec, writer, beds, facts, waits_in_vain: false, trace: None })
            }
            Err(error) => {
                writer.discard(None);
                Err(error.into())
            }
        }
    }

    fn discard(self) {
        self.writer.discard(self.beds.into_iter().map(TimerThread::into_log));
    }

    fn run(&mut self, slice: &Slice, halt: &StopSignal) -> Result<(), MeasureError> {
        match halt.is_set() {
            true => {
                self.waits_in_vain = true;
                Ok(())
            }
            false => sleep_through(&mut self.beds, slice, halt, &self.facts),
        }
    }

    fn note_cut_short(&mut self) {
        let waits_in_vain = self.waits_in_vain;
        let facts = self.facts();
        facts.cut_short = waits_in_vain && facts.broke.is_none();
    }

    fn facts(&mut self) -> &mut WakeupFacts {
        self.facts.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the trace around the wake-up that ended the run, if one did; why there is none, else.
    fn take_trace(&mut self, halt: &StopSignal, untraced: &Option<io::Error>) {
        let Some(late) = self.facts().broke else { return };
        let nobody = || untraced.as_ref().map_or(io::ErrorKind::Unsupported.into(), same);
        self.trace = Some(halt.trace_around(&late).unwrap_or_else(|| Err(nobody())));
    }

    fn close(self, failure: Option<&MeasureError>, stop: &AtomicBool) -> Result<Finished, MeasureError> {
        let WakeupRun { mut writer, beds, facts, trace, .. } = self;
        let mut facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
        facts.not_slept = beds.iter().map(TimerThread::not_slept).sum();
        let manifest = writer.manifest_mut();
        closing_facts_here(manifest);
        manifest.run.wakeup = Some(facts);
        manifest
            .caveats
            .extend(trace.as_ref().map(|trace| trace.as_ref().map_or_else(trace_missing, |_| trace_awaited())));
        let ending = ending_of(failure.is_some(), stop.load(Ordering::Relaxed));
        let logs: Vec<EventLog> = beds.into_iter().map(TimerThread::into_log).collect();
        let mut finished = writer.finish_logs(logs, ending, failure.map(ToString::to_string))?;
        // After the rows: where the disk is full, they need what room there is.
        if let (Some(Ok(trace)), None) = (trace, &finished.failure) {
            finished.keep_trace(&trace);
        }
        Ok(finished)
    }
}

/// The error once more, for another lane.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

/// A bed with a log of its own for each CPU.
fn beds(
    writer: &mut RecordingWriter,
    wakeup: &WakeupSpec,
    end: EndSpec,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<TimerThread>, RecordingError> {
    let mut places: Vec<Option<u16>> = wakeup.cpus.known().iter().copied().map(Some).collect();
    if places.is_empty() {
        places.push(None);
    }
    let rings = vec![ring_events(wakeup); places.len()];
    let logs = writer.start_logs(Arc::clone(stop), &rings)?;
    Ok(places.into_iter().zip(logs).map(|(cpu, log)| TimerThread::new(wakeup, end, cpu, log)).collect())
}

/// Slots of a thread's ring: those due within [`defaults::WAKEUP_RING`], since that many are past when a thread comes
/// back after so long a stall.
pub(crate) fn ring_events(wakeup: &WakeupSpec) -> usize {
    let slots = defaults::WAKEUP_RING.0 / wakeup.interval_ns.0.max(1);
    (slots.max(0) as usize).clamp(defaults::WAKEUP_RING_EVENTS_MIN, defaults::RING_EVENTS).next_power_of_two()
}

fn take_turns(
    lanes: &mut [WakeupRun],
    (rounds, beside): (u32, &BackgroundLoads),
    halt: &StopSignal,
    stop: &AtomicBool,
    heartbeat: &mut dyn FnMut(),
) -> Result<(), MeasureError> {
    thread::scope(|scope| {
        let caller = thread::current();
        let slack = placement::timer_slack();
        let measuring = thread::Builder::new()
            .name("measure".into())
            .spawn_scoped(scope, move || {
                debug_assert_eq!(placement::timer_slack(), slack, "threads inherit the slack of who starts them");
                let outcome = measure_all(lanes, rounds, beside, halt);
                caller.unpark();
                outcome
            })
            .map_err(MeasureError::Thread)?;
        while !measuring.is_finished() {
            heartbeat();
            if stop.load(Ordering::Relaxed) {
                halt.set();
            }
            halt.wake();
            thread::park_timeout(HEARTBEAT);
        }
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_all(
    lanes: &mut [WakeupRun],
    rounds: u32,
    beside: &BackgroundLoads,
    halt: &StopSignal,
) -> Result<(), MeasureError> {
    for lane in lanes.iter_mut() {
        if let Some(slice) = Slice::warmup(&lane.spec.warmup) {
            lane.run(&slice, halt)?;
        }
    }
    beside.begin();
    for round in 0..rounds {
        for lane in lanes.iter_mut() {
            let stop = lane.spec.stop;
            lane.run(&Slice::measuring(&stop, round, rounds), halt)?;
        }
    }
    Ok(())
}

fn close(lanes: Vec<WakeupRun>, mut failure: Option<MeasureError>, stop: &AtomicBool) -> PlanOutcome {
    let mut recordings = Vec::with_capacity(lanes.len());
    let mut later = None;
    for lane in lanes {
        match lane.close(failure.as_ref(), stop) {
            Ok(finished) => recordings.push(finished),
            Err(error) => later = later.or(Some(error)),
        }
    }
    failure = failure.or(later);
    PlanOutcome { recordings, failure }
}
