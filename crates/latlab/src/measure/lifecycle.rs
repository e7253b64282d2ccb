//! Conducts a plan: opens its lanes, lets them take turns on the measuring thread, closes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::host_sampling::{HostSampling, SampledLogs};
use super::peer::measuring_cpus;
use super::ping::PingRun;
use super::remote_host::RemoteResults;
use super::run::{MeasuredRun, RunEnd, SessionLifetime};
use super::stream::StreamRun;
use super::wakeup::conduct_wakeups;
use super::{BackgroundLoads, MeasureError, Peer, RecordingTarget};
use crate::host::placement;
use crate::host::sampler::SamplerSpec;
use crate::plan::{ConcurrentWakeups, EndSpec, Kind, PingSpec, Plan, RunSpec, WakeupCpus, Work, defaults};
use crate::recording::Finished;
use crate::recording::manifest::RunEnding;
use crate::session::PreSharedKey;
use crate::transport::{self, FamilyVisitor, TransportFamily};

/// How often the caller hears of progress: four times a second is smooth enough for a person.
const HEARTBEAT: Duration = Duration::from_millis(250);

/// What came of a plan: every recording that was begun, and what went wrong after that, if anything.
#[derive(Debug)]
pub struct PlanOutcome {
    /// One per run that was opened, in the plan's order.
    pub recordings: Vec<Finished>,
    /// Why measuring or recording broke off; the recordings hold what was measured before.
    pub failure: Option<MeasureError>,
}

/// Measures `plan`. `stop` ends it early, whoever sets it; `heartbeat` is called now and then from
/// the calling thread while measuring. An error means that no recording was made.
pub fn measure_plan(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
    heartbeat: &mut dyn FnMut(),
) -> Result<PlanOutcome, MeasureError> {
    let _footing = placement::AffinityGuard::before(plan.runs.iter().any(|run| run.here.mlock));
    let Some(first) = plan.runs.first() else { return Ok(PlanOutcome { recordings: Vec::new(), failure: None }) };
    match first.transport() {
        None => conduct_wakeups(plan, place, stop, heartbeat),
        Some(kind) => transport::visit(kind, MeasureRuns { plan, key, place, stop, heartbeat }),
    }
}

/// The arguments of [`measure_runs`], which is compiled for each transport.
struct MeasureRuns<'a> {
    plan: &'a Plan,
    key: Option<&'a PreSharedKey>,
    place: RecordingTarget<'a>,
    stop: &'a Arc<AtomicBool>,
    heartbeat: &'a mut dyn FnMut(),
}

impl FamilyVisitor for MeasureRuns<'_> {
    type Output = Result<PlanOutcome, MeasureError>;

    fn visit<F: TransportFamily>(self) -> Self::Output {
        let MeasureRuns { plan, key, place, stop, heartbeat } = self;
        match plan.runs.first().map(RunSpec::kind) {
            Some(Kind::Stream) => measure_runs::<StreamRun<F>>(plan, key, place, stop, heartbeat),
            _ => measure_runs::<PingRun<F>>(plan, key, place, stop, heartbeat),
        }
    }
}

/// The same for runs that have a path.
fn measure_runs<L: MeasuredRun>(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
    heartbeat: &mut dyn FnMut(),
) -> Result<PlanOutcome, MeasureError> {
    let plan = &settled(plan);
    let Some(first) = plan.runs.first() else { return Ok(PlanOutcome { recordings: Vec::new(), failure: None }) };
    if first.concurrent_wakeups().is_some() {
        latlab_sys::sleep::allow_interrupts().map_err(MeasureError::Thread)?;
    }
    rehearse(first.here)?;
    let sessions = plan.runs.iter().map(RunSpec::sessions).sum();
    let mut peer = Peer::reach(first, key, sessions, stop)?;
    let whole = plan.longest();
    let beside =
        BackgroundLoads::start(first, Some(&mut peer), key, whole, stop, heartbeat).map_err(|error| peer.why(error))?;
    let sampling = sampling(first, &peer, &beside);
    beside.settle(stop, heartbeat);
    placement::keep_off(&measuring_cpus(first));
    let answered = peer.answer_probes(first, key, plan.runs.len() as u16);
    answered.map_err(|error| peer.why(error))?;
    let mut lanes: Vec<L> = open_lanes(plan, &mut peer, key, place, stop)?;
    let begun = peer.arm(whole).and_then(|()| HostSampling::begin(&mut lanes, sampling));
    let host_watch = match begun {
        Ok(host_watch) => host_watch,
        Err(error) => {
            lanes.into_iter().for_each(L::discard);
            return Err(error);
        }
    };
    let mut watch = ReflectorWatch { peer: &mut peer, stop, death: None };
    let failure = take_turns(&mut lanes, (plan.rounds, &beside), first.here, stop, &mut || {
        heartbeat();
        watch.look();
    })
    .err();
    // Once more: it may have died after the last heartbeat.
    watch.look();
    let death = watch.death;
    let watched = host_watch.end();
    // An agent that was lost ended the run; what it cannot tell now, nobody can.
    let (failure, died_there) = match peer.disarm() {
        Ok(died_there) => {
            beside.end_there(&mut peer);
            (failure, died_there)
        }
        Err(lost) => (failure.or(Some(lost)), None),
    };
    let failure = failure.or(look_back(&mut peer, watched, &mut lanes));
    let loads = beside.finish(Some(&mut peer));
    lanes.iter_mut().for_each(|lane| lane.note_loads(&loads));
    let settings = peer.restore_settings();
    lanes.iter_mut().for_each(|lane| lane.note_settings(&settings));
    let mut conducted = close(lanes, failure, death.or(died_there), stop);
    let parted = peer.dismiss();
    conducted.failure = conducted.failure.or(parted.err());
    Ok(conducted)
}

/// Wake-ups beside an unpinned sender are on every CPU that it may use: those of this process, without a reflector's.
fn settled(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for run in &mut plan.runs {
        let kept_off = measuring_cpus(run);
        if let Work::Ping(PingSpec {
            with_wakeup: Some(ConcurrentWakeups { cpus: cpus @ WakeupCpus::All, .. }), ..
        }) = &mut run.work
        {
            let (kept_off, left): (Vec<u16>, Vec<u16>) =
                placement::allowed_cpus().into_iter().partition(|cpu| kept_off.contains(cpu));
            *cpus = WakeupCpus::These(if left.is_empty() { kept_off } else { left });
        }
    }
    plan
}

/// Opens a lane for each run of `plan`; where one cannot be opened, none is.
fn open_lanes<L: MeasuredRun>(
    plan: &Plan,
    peer: &mut Peer,
    key: Option<&PreSharedKey>,
    place: RecordingTarget<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<L>, MeasureError> {
    let whole = plan.longest();
    // A plan that only counts limit lasts nobody knows how long: then what every reflector grants.
    let turns = (plan.runs.len() > 1).then(|| whole.unwrap_or(defaults::SERVE_IDLE).min(defaults::SERVE_IDLE));
    let lasting = SessionLifetime { whole, turns };
    let mut lanes = Vec::with_capacity(plan.runs.len());
    for spec in &plan.runs {
        match L::open(spec, peer, key, place, lasting, stop) {
            Ok(lane) => lanes.push(lane),
            Err(error) => {
                lanes.into_iter().for_each(L::discard);
                return Err(peer.why(error));
            }
        }
    }
    Ok(lanes)
}

/// Gives each lane its samples, with what an agent tells of the far host now that the run is over; why it could not.
fn look_back<L: MeasuredRun>(peer: &mut Peer, watched: SampledLogs, lanes: &mut [L]) -> Option<MeasureError> {
    let (far, lost) = match peer.look_back() {
        Ok(far) => (far, None),
        Err(lost) => (RemoteResults::default(), Some(lost)),
    };
    watched.keep(lanes, &far);
    lanes.iter_mut().for_each(|lane| lane.note_far_host(peer));
    lost
}

/// Looks after the reflector process while the lanes are measured.
struct ReflectorWatch<'a> {
    peer: &'a mut Peer,
    stop: &'a AtomicBool,
    /// How it died.
    death: Option<String>,
}

impl ReflectorWatch<'_> {
    /// SessionSender the run when nobody is left to answer: what follows would only be losses. A reflector that goes after
    /// the run was told to end, as when a service manager ends both, took no figure with it.
    fn look(&mut self) {
        if !self.stop.load(Ordering::Relaxed)
            && let Some(death) = self.peer.death()
        {
            self.death = Some(death);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// How this host is sampled while `spec` is measured on it; asked before this thread leaves any CPU, since those that
/// it may use are counted.
fn sampling(spec: &RunSpec, peer: &Peer, beside: &BackgroundLoads) -> SamplerSpec {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let own_processes = peer.own_processes().into_iter().chain(beside.own_processes()).collect();
    SamplerSpec { avoid_cpus: measuring_cpus(spec), own_processes, ..SamplerSpec::for_cpus(cpus) }
}

/// Takes the place of the measuring thread for a moment: a pin or a priority that cannot be had is refused
/// before anybody is greeted, and no recording of nothing is made.
fn rehearse(end: EndSpec) -> Result<(), MeasureError> {
    let rehearsal = thread::Builder::new().name("rehearse".into()).spawn(move || placement::place(&end));
    let placed = rehearsal.map_err(MeasureError::Thread)?.join();
    Ok(placed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
}

/// Runs the lanes on a thread of their own, so that pins and priorities end with it and progress is
/// never drawn by the thread that measures.
fn take_turns<L: MeasuredRun>(
    lanes: &mut [L],
    (rounds, beside): (u32, &BackgroundLoads),
    end: EndSpec,
    stop: &AtomicBool,
    heartbeat: &mut dyn FnMut(),
) -> Result<(), MeasureError> {
    thread::scope(|scope| {
        let caller = thread::current();
        let measuring = thread::Builder::new()
            .name("measure".into())
            .spawn_scoped(scope, move || {
                let outcome = placement::place(&end)
                    .map_err(MeasureError::from)
                    .and_then(|()| measure_all(lanes, rounds, beside, stop));
                // Here, and not where the caller wakes up: what follows is no part of the run.
                beside.end();
                caller.unpark();
                outcome
            })
            .map_err(MeasureError::Thread)?;
        while !measuring.is_finished() {
            heartbeat();
            thread::park_timeout(HEARTBEAT);
        }
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_all<L: MeasuredRun>(
    lanes: &mut [L],
    rounds: u32,
    beside: &BackgroundLoads,
    stop: &AtomicBool,
) -> Result<(), MeasureError> {
    for lane in lanes.iter_mut() {
        lane.warm_up(stop)?;
    }
    beside.begin();
    for round in 0..rounds {
        for lane in lanes.iter_mut() {
            lane.measure(round, rounds, stop)?;
        }
    }
    Ok(())
}

/// How a run ended that broke off or not, and was told to stop or not.
pub(crate) const fn ending_of(broke_off: bool, stopped: bool) -> RunEnding {
    match (broke_off, stopped) {
        (true, _) => RunEnding::Failed,
        (false, true) => RunEnding::Interrupted,
        (false, false) => RunEnding::Completed,
    }
}

/// Closes every lane, whatever happened to the others: one run's damage touches no other.
fn close<L: MeasuredRun>(
    lanes: Vec<L>,
    mut failure: Option<MeasureError>,
    death: Option<String>,
    stop: &AtomicBool,
) -> PlanOutcome {
    let died = death.as_ref().map(|how| format!("the reflector process died: {how}"));
    let reason = failure.as_ref().map(ToString::to_string).or(died);
    let ending = ending_of(reason.is_some(), stop.load(Ordering::Relaxed));
    let peer_is_silent = matches!(failure, Some(MeasureError::StreamSilent { .. }));
    let outcome = RunEnd { ending, reason, reflector_died: death, peer_is_silent };
    let mut recordings = Vec::with_capacity(lanes.len());
    for lane in lanes {
        match lane.close(outcome.clone()) {
            Ok(finished) => recordings.push(finished),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    PlanOutcome { recordings, failure }
}
