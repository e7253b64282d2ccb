//! The lifecycle of the runs of a plan of any kind: connect to the peer, start the loads, open the runs, sample the
//! hosts, measure the runs in turn on the measuring thread, collect the results, close the runs.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::command::CommandRun;
use super::peer::{local_settings, measuring_cpus};
use super::ping::PingRun;
use super::remote_host::RemoteResults;
use super::run::{MeasuredRun, RunContext, RunEnd, SessionLifetime, on_own_thread};
use super::stop_signal::StopSignal;
use super::stream::StreamRun;
use super::trace_keeper::TraceKeeper;
use super::wakeup::{WakeupRun, thread_cpus};
use super::{BackgroundLoads, LiveProgress, MeasureError, Peer, RecordingTarget};
use crate::clock::{Clock, Monotonic};
use crate::facts::{HostSample, SettingFacts};
use crate::host::sampler::{SampleSink, Sampler, SamplerSpec};
use crate::host::{HostGuard, HostRoot, placement};
use crate::plan::{ConcurrentWakeups, EndSpec, PingSpec, Plan, RunSpec, Side, WakeupCpus, WakeupSpec, Work, defaults};
use crate::recording::manifest::RunEnding;
use crate::recording::{Finished, HostLog};
use crate::session::PreSharedKey;
use crate::transport::{self, FamilyVisitor, TransportFamily};
use crate::units::{Nanos, human};

/// The interval of the caller's heartbeat: short enough for a progress display, and long enough not to disturb wake-ups,
/// which are later after other work ([`defaults::WAKEUP_DRAIN`]).
const HEARTBEAT: Duration = Duration::from_millis(250);

/// The recordings of a plan, and the failure that ended it early.
#[derive(Debug, Default)]
pub struct PlanOutcome {
    /// One for each run, in the order of the plan.
    pub recordings: Vec<Finished>,
    /// Why measuring or recording broke off; the recordings have what was measured before.
    pub failure: Option<MeasureError>,
}

/// Measures `plan`. `stop` ends it early; `heartbeat` is called about four times a second from the calling thread.
///
/// # Errors
/// The plan could not be measured; no recording was created.
pub fn measure_plan(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    target: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
    heartbeat: &mut dyn FnMut(),
) -> Result<PlanOutcome, MeasureError> {
    let _affinity = placement::AffinityGuard::save(plan.runs.iter().any(|run| run.here.mlock));
    let plan = Plan { runs: plan.runs.iter().map(with_known_cpus).collect(), rounds: plan.rounds };
    let Some(first) = plan.runs.first() else { return Ok(PlanOutcome::default()) };
    let lifecycle = Lifecycle { plan: &plan, first, key, target, stop, heartbeat };
    match &first.work {
        Work::Ping(ping) => transport::visit(ping.transport, lifecycle),
        Work::Stream(_) => lifecycle.measure::<StreamRun>(),
        Work::Wakeup(_) => lifecycle.measure::<WakeupRun>(),
        Work::Command(_) => lifecycle.measure::<CommandRun>(),
        Work::Import(_) => Err(MeasureError::Imported),
    }
}

/// `run` with `all` CPUs replaced by those that this process may use. Wake-ups during a ping are on every CPU but those
/// of the sender and the reflector, unless no other is left.
fn with_known_cpus(run: &RunSpec) -> RunSpec {
    let mut run = run.clone();
    let measuring = measuring_cpus(&run);
    let allowed = placement::allowed_cpus;
    match &mut run.work {
        Work::Wakeup(WakeupSpec { cpus: cpus @ WakeupCpus::All, .. }) => *cpus = WakeupCpus::These(allowed()),
        Work::Ping(PingSpec { with_wakeup: Some(ConcurrentWakeups { cpus: cpus @ WakeupCpus::All, .. }), .. }) => {
            let (taken, left): (Vec<u16>, Vec<u16>) = allowed().into_iter().partition(|cpu| measuring.contains(cpu));
            *cpus = WakeupCpus::These(if left.is_empty() { taken } else { left });
        }
        _ => {}
    }
    run
}

/// Applies the pins and priorities of the measuring threads for a moment, so that a refusal is reported before anything is
/// set, sent or recorded.
fn rehearse_placement(run: &RunSpec) -> Result<(), MeasureError> {
    let cpus = run.wakeup().map_or_else(|| vec![run.here.cpu], thread_cpus);
    cpus.into_iter()
        .try_for_each(|cpu| on_own_thread("rehearse", || Ok(placement::place(&EndSpec { cpu, ..run.here })?)))
}

/// A plan with at least one run, and the arguments of the caller.
struct Lifecycle<'a> {
    plan: &'a Plan,
    first: &'a RunSpec,
    key: Option<&'a PreSharedKey>,
    target: RecordingTarget<'a>,
    stop: &'a Arc<AtomicBool>,
    heartbeat: &'a mut dyn FnMut(),
}

/// For runs of probes, whose loop is compiled for each transport.
impl FamilyVisitor for Lifecycle<'_> {
    type Output = Result<PlanOutcome, MeasureError>;

    fn visit<F: TransportFamily>(self) -> Self::Output {
        self.measure::<PingRun<F>>()
    }
}

impl Lifecycle<'_> {
    fn measure<R: MeasuredRun>(mut self) -> Result<PlanOutcome, MeasureError> {
        if self.first.concurrent_wakeups().is_some() || self.first.path().is_none() {
            latlab_sys::sleep::allow_interrupts().map_err(MeasureError::Thread)?;
        }
        rehearse_placement(self.first)?;
        let mut hosts = Hosts::prepare(self.plan, self.first, self.key, self.stop)?;
        let loads = self.start_loads(&mut hosts)?;
        // Before this thread leaves CPUs, since its allowed CPUs are counted.
        let sampling = self.sampling(&hosts, &loads);
        loads.settle(self.stop, self.heartbeat);
        placement::keep_off(&self.measuring_cpus());
        let mut runs: Vec<R> = self.open_runs(&mut hosts)?;
        let begun = hosts.arm(self.plan.longest()).and_then(|()| {
            let sampler = HostSampling::begin(&mut runs, sampling)?;
            Ok((sampler, TraceKeeper::begin(self.first, self.target, &mut runs)?))
        });
        let (sampler, keeper) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                runs.into_iter().for_each(R::discard);
                return Err(error);
            }
        };
        let signal = StopSignal::new(self.stop);
        let failure = self.measure_in_turn(&mut runs, &mut hosts, &loads, &signal).err();
        keeper.into_iter().for_each(|keeper| keeper.end(&mut runs));
        let failure = hosts.collect(&mut runs, loads, sampler, failure);
        Ok(close(runs, hosts, failure, &signal))
    }

    fn start_loads(&mut self, hosts: &mut Hosts) -> Result<BackgroundLoads, MeasureError> {
        let longest = self.plan.longest();
        let loads =
            BackgroundLoads::start(self.first, hosts.peer.as_mut(), self.key, longest, self.stop, self.heartbeat);
        loads.map_err(|error| hosts.explained(error))
    }

    /// The sampling of this host during the runs.
    fn sampling(&self, hosts: &Hosts, loads: &BackgroundLoads) -> SamplerSpec {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let reflectors = hosts.peer.as_ref().map(Peer::own_processes).unwrap_or_default();
        let service = Vec::from_iter(self.target.service);
        let own_processes = [reflectors, loads.own_processes(), service].concat();
        SamplerSpec { avoid_cpus: self.measuring_cpus(), own_processes, ..SamplerSpec::for_cpus(cpus) }
    }

    /// The CPUs of this host on which any of the runs measures.
    fn measuring_cpus(&self) -> Vec<u16> {
        let mut cpus = Vec::new();
        for cpu in self.plan.runs.iter().flat_map(measuring_cpus) {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
        cpus
    }

    /// Opens all runs of the plan. After an error none stays open.
    fn open_runs<R: MeasuredRun>(&self, hosts: &mut Hosts) -> Result<Vec<R>, MeasureError> {
        let count = self.plan.runs.len();
        if let Some(peer) = &mut hosts.peer
            && let Err(error) = peer.answer_probes(self.first, self.key, count as u16)
        {
            return Err(peer.explained(error));
        }
        let duration = self.plan.longest();
        // The longest idle time that every reflector grants, if the plan has no bound.
        let idle = (count > 1).then(|| duration.unwrap_or(defaults::SERVE_IDLE).min(defaults::SERVE_IDLE));
        let context = RunContext {
            peer: hosts.peer.as_ref(),
            settings: &hosts.settings(),
            target: self.target,
            key: self.key,
            lifetime: SessionLifetime { duration, idle },
            stop: self.stop,
        };
        let mut runs = Vec::with_capacity(count);
        for spec in &self.plan.runs {
            match R::open(spec, &context) {
                Ok(run) => runs.push(run),
                Err(error) => {
                    runs.into_iter().for_each(R::discard);
                    return Err(hosts.explained(error));
                }
            }
        }
        Ok(runs)
    }

    /// Measures the runs on a thread of their own, with which pins and priorities end. The calling thread displays progress
    /// meanwhile.
    fn measure_in_turn<R: MeasuredRun>(
        &mut self,
        runs: &mut [R],
        hosts: &mut Hosts,
        loads: &BackgroundLoads,
        signal: &StopSignal,
    ) -> Result<(), MeasureError> {
        let (rounds, first) = (self.plan.rounds, self.first);
        let live = self.target.live.cloned().unwrap_or_default();
        let progress = runs.iter_mut().map(|run| run.writer().progress()).collect();
        live.watch(progress, loads.own_processes());
        let watched = &live;
        thread::scope(|scope| {
            let caller = thread::current();
            let work = move || {
                let measured = place_sender(first).and_then(|timer_slack_ns| {
                    note_timer_slack(runs, timer_slack_ns);
                    measure_slices(runs, rounds, loads, watched, signal)
                });
                // By this thread: the time until the caller wakes up is not part of the run.
                loads.end();
                caller.unpark();
                measured
            };
            let measuring = thread::Builder::new().name("measure".into()).spawn_scoped(scope, work);
            let measuring = measuring.map_err(MeasureError::Thread)?;
            while !measuring.is_finished() {
                (self.heartbeat)();
                hosts.check_reflector(signal);
                check_answers(first, &live, signal);
                signal.forward();
                thread::park_timeout(HEARTBEAT);
            }
            // It may have died after the last heartbeat.
            hosts.check_reflector(signal);
            measuring.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

/// Ends the runs if they got no answer in their first seconds: all further probes would probably be lost, too.
fn check_answers(first: &RunSpec, live: &LiveProgress, signal: &StopSignal) {
    if first.ping().is_some()
        && !signal.requested().load(Ordering::Relaxed)
        && let Some(unanswered) = live.unanswered(Monotonic.now()).filter(|unanswered| unanswered.ends_runs())
    {
        signal.end_unanswered(unanswered.span);
    }
}

/// Places the calling thread as the sender of `run`, and reads back its timer slack, or as the parent of its command. Timer
/// threads place themselves.
fn place_sender(run: &RunSpec) -> Result<Option<Nanos>, MeasureError> {
    if run.wakeup().is_none() {
        placement::place(&run.here)?;
    }
    if run.path().is_none() {
        return Ok(None);
    }
    if run.minimises_timer_slack() {
        placement::minimise_timer_slack();
    }
    Ok(placement::timer_slack())
}

/// Records the timer slack of the measuring thread before the first slice, so that a run that dies has it.
fn note_timer_slack<R: MeasuredRun>(runs: &mut [R], timer_slack_ns: Option<Nanos>) {
    for run in runs.iter_mut().filter(|_| timer_slack_ns.is_some()) {
        run.writer().manifest_mut().run.timer_slack_ns = timer_slack_ns;
        run.writer().save();
    }
}

fn measure_slices<R: MeasuredRun>(
    runs: &mut [R],
    rounds: u32,
    loads: &BackgroundLoads,
    live: &LiveProgress,
    signal: &StopSignal,
) -> Result<(), MeasureError> {
    for run in runs.iter_mut() {
        run.warm_up(signal)?;
    }
    loads.begin();
    live.begin_measuring(Monotonic.now());
    for round in 0..rounds {
        for run in runs.iter_mut() {
            run.measure(round, rounds, signal)?;
        }
    }
    Ok(())
}

/// Closes every run, also if another one fails to close.
fn close<R: MeasuredRun>(
    runs: Vec<R>,
    hosts: Hosts,
    mut failure: Option<MeasureError>,
    signal: &StopSignal,
) -> PlanOutcome {
    let died = hosts.reflector_died.as_ref().map(|how| format!("the reflector process died: {how}"));
    let failed = failure.as_ref().map(ToString::to_string).or(died);
    let unanswered =
        signal.unanswered_for().map(|span| format!("no probe was answered in the first {}", human::span(span)));
    // Loss is a result: a run without an answer is complete.
    let ending = match (&failed, &unanswered, signal.requested().load(Ordering::Relaxed)) {
        (Some(_), ..) => RunEnding::Failed,
        (None, None, true) => RunEnding::Interrupted,
        (None, Some(_), _) | (None, None, false) => RunEnding::Completed,
    };
    let reason = failed.or(unanswered);
    let end = RunEnd {
        ending,
        reason: reason.as_deref(),
        reflector_died: hosts.reflector_died.as_deref(),
        peer_is_silent: matches!(failure, Some(MeasureError::StreamSilent { .. })),
        stop: signal,
    };
    let mut recordings = Vec::with_capacity(runs.len());
    for run in runs {
        match run.close(&end) {
            Ok(finished) => recordings.push(finished),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let dismissed = hosts.peer.map_or(Ok(()), Peer::dismiss);
    PlanOutcome { recordings, failure: failure.or(dismissed.err()) }
}

/// The hosts of a plan: this one with its settings, and the peer of runs with a path.
struct Hosts {
    /// The settings of runs without a path; those of runs with a path belong to the peer.
    guard: HostGuard,
    peer: Option<Peer>,
    /// How latlab's own reflector process died, if it did.
    reflector_died: Option<String>,
}

impl Hosts {
    fn prepare(
        plan: &Plan,
        first: &RunSpec,
        key: Option<&PreSharedKey>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Hosts, MeasureError> {
        let (guard, peer) = match first.path() {
            None => (local_settings(&first.settings)?, None),
            Some(_) => {
                let sessions = plan.runs.iter().map(RunSpec::sessions).sum();
                (HostGuard::none(), Some(Peer::reach(first, key, sessions, stop)?))
            }
        };
        Ok(Hosts { guard, peer, reflector_died: None })
    }

    /// `error`, or the loss of the agent that caused it.
    fn explained(&mut self, error: MeasureError) -> MeasureError {
        match &mut self.peer {
            Some(peer) => peer.explained(error),
            None => error,
        }
    }

    fn settings(&self) -> Vec<SettingFacts> {
        self.peer.as_ref().map_or_else(|| self.guard.facts(), Peer::settings)
    }

    fn arm(&mut self, longest: Option<Nanos>) -> Result<(), MeasureError> {
        self.peer.as_mut().map_or(Ok(()), |peer| peer.arm(longest))
    }

    /// Ends the runs if the reflector process has died, since all further probes would be lost. A death after a request to
    /// end the runs, as when a service manager ends both, does not affect the figures.
    fn check_reflector(&mut self, signal: &StopSignal) {
        if !signal.requested().load(Ordering::Relaxed)
            && let Some(death) = self.peer.as_mut().and_then(Peer::death)
        {
            self.reflector_died = Some(death);
            signal.requested().store(true, Ordering::Relaxed);
        }
    }

    /// Ends loads, sampling and settings after the runs, and records their results. Returns the failure of the runs, or else
    /// the loss of the agent.
    fn collect<R: MeasuredRun>(
        &mut self,
        runs: &mut [R],
        loads: BackgroundLoads,
        sampler: HostSampling,
        failure: Option<MeasureError>,
    ) -> Option<MeasureError> {
        let logs = sampler.end();
        let (mut failure, mut remote) = (failure, RemoteResults::default());
        if let Some(peer) = &mut self.peer {
            match peer.disarm() {
                Ok(died) => {
                    self.reflector_died = self.reflector_died.take().or(died);
                    loads.end_remote(peer);
                }
                Err(lost) => failure = failure.or(Some(lost)),
            }
            match peer.collect() {
                Ok(results) => remote = results,
                Err(lost) => failure = failure.or(Some(lost)),
            }
            runs.iter_mut().for_each(|run| peer.keep_trace(run.writer()));
            failure = failure.or_else(|| peer.lost());
            runs.iter_mut().for_each(|run| note_remote_host(run, peer));
        }
        logs.finish(runs, &remote);
        let reports = loads.finish(self.peer.as_mut());
        let settings = self.peer.as_mut().map_or_else(|| self.guard.restore(), Peer::restore_settings);
        for run in runs {
            let manifest = run.writer().manifest_mut();
            (manifest.loads, manifest.settings) = (reports.clone(), settings.clone());
        }
        failure
    }
}

/// Records the facts of the peer's host, if it has an agent.
fn note_remote_host<R: MeasuredRun>(run: &mut R, peer: &Peer) {
    if let Some(remote) = peer.remote_host() {
        let manifest = run.writer().manifest_mut();
        (manifest.peer, manifest.clock_relation) = (remote.facts().clone(), remote.relation());
    }
}

/// The sampling of this host during the runs.
struct HostSampling(Sampler<HostLogs>);

impl HostSampling {
    fn begin<R: MeasuredRun>(runs: &mut [R], spec: SamplerSpec) -> Result<HostSampling, MeasureError> {
        let logs: Result<Vec<HostLog>, _> = runs.iter_mut().map(|run| run.writer().host_log()).collect();
        let sampler = Sampler::start(HostRoot::live(), spec, HostLogs(logs?));
        Ok(HostSampling(sampler.map_err(MeasureError::Thread)?))
    }

    /// Takes the last sample and ends.
    fn end(self) -> HostLogs {
        self.0.stop()
    }
}

/// A log for each run, in their order. Each recording gets every sample, so that it is complete by itself.
struct HostLogs(Vec<HostLog>);

impl SampleSink for HostLogs {
    fn take(&mut self, sample: HostSample) {
        self.0.iter_mut().for_each(|log| log.push(Side::Local, &sample));
    }
}

impl HostLogs {
    /// Adds the samples of the peer's host, and gives each run its log.
    fn finish<R: MeasuredRun>(self, runs: &mut [R], remote: &RemoteResults) {
        for (run, mut log) in runs.iter_mut().zip(self.0) {
            remote.samples.iter().for_each(|sample| log.push(Side::Peer, sample));
            run.writer().note_unwritten_samples(&log);
            run.writer().note_samples_given_up(remote.given_up);
        }
    }
}
