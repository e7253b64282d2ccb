//! Common parts of runs of all kinds: recording target, session options, slices, and endings.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::stop_signal::StopSignal;
use super::{MeasureError, Peer};
use crate::clock::Monotonic;
use crate::facts::{CommandLine, ExperimentFacts, IntervalCounts, SettingFacts, StreamInterval};
use crate::host::placement;
use crate::plan::{EndSpec, PathSpec, PingSpec, Plan, Reflect, RunSpec, Schedule, StopWhen, Warmup, XdpSpec, defaults};
use crate::probe::Phase;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::{
    EventLog, Finished, LiveDelays, LiveSecond, ProbeCounts, RecordingError, RecordingProgress, RecordingWriter, Store,
};
use crate::session::{self, NativeSession, PreSharedKey, SessionParams, random_bytes};
use crate::transport::{OpenPath, PathTransport, TransportError, TransportFamily, frame_payload_bytes};
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::SocketTerms;

#[derive(Clone, Copy, Debug)]
pub struct RecordingTarget<'a> {
    pub store: &'a Store,
    /// The directory of `--output`; `None`: one that the store names.
    pub directory: Option<&'a Path>,
    /// The command line that makes these runs; `None` if the file of an experiment makes them.
    pub command_line: Option<&'a CommandLine>,
    /// The position of these runs in an experiment; `None` outside of one.
    pub experiment: Option<&'a ExperimentFacts>,
    /// The process of a service that was started for these runs: its work is no foreign load.
    pub service: Option<u32>,
    /// Counts that are updated during the runs; `None` if no caller displays them.
    pub live: Option<&'a Arc<LiveProgress>>,
}

/// Counts of the runs of a plan while they are measured: of streams at most an interval (about 100 ms) old, of probes and
/// wake-ups as old as the last drain of their recording.
#[derive(Debug, Default)]
pub struct LiveProgress {
    /// Whether the recordings keep the delays of their last seconds.
    keeps_delays: bool,
    sent_bits: AtomicU64,
    polled_bits: AtomicU64,
    delivered_bits: AtomicU64,
    /// Of the runs, once they are open.
    recordings: OnceLock<Vec<RecordingProgress>>,
    /// Processes of the loads of this host.
    load_processes: OnceLock<Vec<u32>>,
    /// When the measuring phase began.
    measuring_since: OnceLock<Stamp<SenderClock>>,
}

/// An older second is not the last one: it is known when the next one has begun and the recording was drained.
const LAST_SECOND_AGE: Nanos = Nanos::from_secs(3);

/// The counts of [`LiveProgress`] at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Payload bits of streams that the kernel took.
    pub sent_bits: u64,
    /// The part of them that was sent before the receiver was last asked …
    pub polled_bits: u64,
    /// … and what it had received by then.
    pub delivered_bits: u64,
    /// Probes and wake-ups of the measuring phase.
    pub measured: u64,
    /// Probes of the measuring phase by their fate.
    pub probes: ProbeCounts,
}

impl LiveProgress {
    /// Counts for a display of delays: the recordings keep those of their last seconds, which costs their writers time.
    pub fn with_delays() -> LiveProgress {
        LiveProgress { keeps_delays: true, ..LiveProgress::default() }
    }

    /// Counts `runs` from now on, with loads that are made by `load_processes` of this host. Without effect if called again.
    pub fn watch(&self, runs: Vec<RecordingProgress>, load_processes: Vec<u32>) {
        let _ = self.load_processes.set(load_processes);
        // Runs are opened once.
        let _ = self.recordings.set(runs);
    }

    /// Notes that the measuring phase begins at `now`. Without effect if called again.
    pub(crate) fn begin_measuring(&self, now: Stamp<SenderClock>) {
        // The slices of all runs follow one warm-up.
        let _ = self.measuring_since.set(now);
    }

    pub fn is_open(&self) -> bool {
        self.recordings.get().is_some()
    }

    /// Whether the runs are open and their measuring phase has not begun.
    pub fn is_before_measuring(&self) -> bool {
        self.is_open() && self.measuring_since.get().is_none()
    }

    /// The time of the measuring phase until `now`; `None` before it.
    pub fn measuring_for(&self, now: Stamp<SenderClock>) -> Option<Nanos> {
        self.measuring_since.get().map(|since| now - *since)
    }

    /// Adds an interval with packets of `size_bytes`.
    pub(super) fn add(&self, interval: &StreamInterval, size_bytes: u32) {
        let add =
            |bits: &AtomicU64, packets| _ = bits.fetch_add(packets * u64::from(size_bytes) * 8, Ordering::Relaxed);
        match interval.seen {
            IntervalCounts::Offered { packets, .. } => add(&self.sent_bits, packets),
            IntervalCounts::Counted { polled, delivered, .. } => {
                add(&self.polled_bits, polled);
                add(&self.delivered_bits, delivered);
            }
        }
    }

    pub fn read(&self) -> LiveCounts {
        let mut counts = LiveCounts {
            sent_bits: self.sent_bits.load(Ordering::Relaxed),
            polled_bits: self.polled_bits.load(Ordering::Relaxed),
            delivered_bits: self.delivered_bits.load(Ordering::Relaxed),
            ..LiveCounts::default()
        };
        for run in self.runs() {
            let ProbeCounts { sent, answered, lost } = run.probes();
            counts.measured += run.measured();
            counts.probes.sent += sent;
            counts.probes.answered += answered;
            counts.probes.lost += lost;
        }
        counts
    }

    /// Processes of the loads of this host; empty before they have begun.
    pub fn load_processes(&self) -> &[u32] {
        self.load_processes.get().map_or(&[], Vec::as_slice)
    }

    /// The delays of the last second of the run that is measured at `now`; `None` if no delay became known in the last few
    /// seconds.
    pub fn last_second(&self, now: Stamp<SenderClock>) -> Option<LiveSecond> {
        let seconds = self.runs().iter().filter_map(RecordingProgress::last_second);
        seconds.max_by_key(|second| second.end).filter(|second| now - second.end < LAST_SECOND_AGE)
    }

    /// The delays of all runs, their seconds in the order of time; empty unless made by [`LiveProgress::with_delays`].
    pub fn delays(&self) -> LiveDelays {
        let mut all = LiveDelays::default();
        for LiveDelays { seconds, whole } in self.runs().iter().map(RecordingProgress::delays) {
            all.seconds.extend(seconds);
            all.whole.add(&whole);
        }
        all.seconds.sort_by_key(|second| second.end);
        all
    }

    /// The probes at `now` that got no answer, if none got one; `None` before one was lost or refused.
    pub fn unanswered(&self, now: Stamp<SenderClock>) -> Option<UnansweredProbes> {
        let total = |count: fn(&RecordingProgress) -> u64| self.runs().iter().map(count).sum::<u64>();
        let begin = self.runs().iter().filter_map(RecordingProgress::begin).min()?;
        let (arrived, probes) = (total(RecordingProgress::arrived), total(RecordingProgress::missed));
        (arrived == 0 && probes > 0).then(|| UnansweredProbes { span: now - begin, probes })
    }

    fn runs(&self) -> &[RecordingProgress] {
        self.recordings.get().map_or(&[], Vec::as_slice)
    }
}

/// The first probes of runs that got no answer so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnansweredProbes {
    /// The time since the first of them.
    pub span: Nanos,
    /// Those that were refused, or whose time-out has passed.
    pub probes: u64,
}

impl UnansweredProbes {
    pub(super) fn ends_runs(self) -> bool {
        self.span >= defaults::UNANSWERED_MAX && self.probes >= defaults::UNANSWERED_PROBES
    }

    /// About how long after the first of them the runs of `plan` end for this reason; `None` if they end by their own stop
    /// rules before.
    pub fn end(self, plan: &Plan) -> Option<Nanos> {
        let ping = plan.runs.first()?.ping()?;
        // A closed loop sends the next probe when the time-out of the last one has passed.
        let interval = ping.schedule.interval().unwrap_or(ping.timeout_ns);
        let spans = |probes: u64| interval.saturating_mul(i64::try_from(probes).unwrap_or(i64::MAX));
        // A time-out is noticed when a later probe is sent.
        let timed_out = spans(defaults::UNANSWERED_PROBES - 1) + interval.max(ping.timeout_ns);
        let is_enough = self.probes >= defaults::UNANSWERED_PROBES;
        let end = defaults::UNANSWERED_MAX.max(if is_enough { Nanos::ZERO } else { timed_out });
        let shorter = |span: Option<Nanos>, count: Option<u64>| [span, count.map(spans)].into_iter().flatten().min();
        let duration = |run: &RunSpec| {
            let warmup = shorter(run.warmup.duration_ns, run.warmup.count).unwrap_or_default();
            Some(warmup + shorter(run.stop.duration_ns, run.stop.count)?)
        };
        let planned = plan.runs.iter().map(duration).try_fold(Nanos::ZERO, |sum, run| Some(sum + run?));
        planned.is_none_or(|planned| planned > end).then_some(end)
    }
}

/// How the runs of a plan ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunEnd<'a> {
    pub ending: RunEnding,
    /// The reason, if the runs did not end by their stop condition.
    pub reason: Option<&'a str>,
    /// How latlab's own reflector process died; `None` if it did not.
    pub reflector_died: Option<&'a str>,
    /// The peer no longer answers: sessions are not closed.
    pub peer_is_silent: bool,
    pub stop: &'a StopSignal,
}

/// A part of a run; the loop is armed once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whether its probes are measured or warm up.
    pub phase: Phase,
    /// The largest number of due probes.
    pub count: u64,
    /// The longest time in which probes are due.
    pub duration: Nanos,
}

impl Slice {
    /// The warm-up; `None` if the run has none.
    pub fn warmup(warmup: &Warmup) -> Option<Slice> {
        (warmup.count.is_some() || warmup.duration_ns.is_some()).then(|| Slice {
            phase: Phase::Warmup,
            count: warmup.count.unwrap_or(u64::MAX),
            duration: warmup.duration_ns.unwrap_or(Nanos::MAX),
        })
    }

    /// Slice `round` of `rounds` of the measuring phase. Counts and durations of all slices add up to those of `stop`.
    pub fn measuring(stop: &StopWhen, round: u32, rounds: u32) -> Slice {
        let (round, rounds) = (u128::from(round), u128::from(rounds));
        let share =
            |whole: u64| ((u128::from(whole) * (round + 1) / rounds) - (u128::from(whole) * round / rounds)) as u64;
        Slice {
            phase: Phase::Measure,
            count: stop.count.map_or(u64::MAX, share),
            duration: stop.duration_ns.map_or(Nanos::MAX, |whole| Nanos(share(whole.0.max(0) as u64) as i64)),
        }
    }

    /// A slice of `phase` without a limit but its `duration`.
    pub const fn lasting(phase: Phase, duration: Nanos) -> Slice {
        Slice { phase, count: u64::MAX, duration }
    }

    /// The end of due times of a slice that starts at `start`.
    pub fn end(&self, start: Stamp<SenderClock>) -> Stamp<SenderClock> {
        start + self.duration
    }
}

/// The source of the CPU number that a loop records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    Pinned(u16),
    /// Read from the vDSO each time; `None` on architectures on which that is a system call.
    Running,
    Unknown,
}

impl CpuSource {
    #[inline]
    pub(super) fn now(self) -> Option<u16> {
        match self {
            CpuSource::Pinned(cpu) => Some(cpu),
            CpuSource::Running => latlab_sys::scheduler::current_cpu(),
            CpuSource::Unknown => None,
        }
    }
}

/// The most bytes of payload on a path with an end past the network stack, which takes whole packets; `None` if both ends
/// have sockets of the kernel, or if the path is not known.
pub(super) fn whole_packet_bytes(spec: &PathSpec, path: OpenPath) -> Option<u32> {
    let reflect = spec.xdp?.reflect;
    let most_bytes = path.unfragmented_bytes?;
    let received_bytes = frame_payload_bytes(path.peer.is_ipv6());
    Some(if reflect == Reflect::Xdp { most_bytes.min(received_bytes) } else { most_bytes })
}

/// The lifetime that a session is opened with.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLifetime {
    /// The longest duration of the plan with all its runs; `None` without a bound.
    pub duration: Option<Nanos>,
    /// The longest time between two slices of a run; `None` if the plan has one run only.
    pub idle: Option<Nanos>,
}

impl SessionLifetime {
    /// The lifetime of a session that may be idle during the whole plan.
    pub(super) fn resting(self) -> SessionLifetime {
        let idle = self.idle.or(self.duration).unwrap_or_default().min(defaults::SERVE_IDLE);
        SessionLifetime { idle: Some(idle), ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SessionTraffic {
    /// UDP payload or message size of each packet.
    pub size_bytes: u32,
    pub schedule: Schedule,
    pub timeout: Nanos,
    /// How the peer's socket receives.
    pub socket: SocketTerms,
    /// The least gap between packets of a down-stream.
    pub down_gap: Option<Nanos>,
}

impl SessionTraffic {
    pub(super) fn probes(ping: &PingSpec) -> SessionTraffic {
        let socket = if ping.stamps.is_some() { SocketTerms::STAMPED } else { SocketTerms::NONE };
        let (schedule, timeout) = (ping.schedule, ping.timeout_ns);
        SessionTraffic { schedule, timeout, socket, ..SessionTraffic::packets(ping.size_bytes) }
    }

    pub(super) fn packets(size_bytes: u32) -> SessionTraffic {
        let (schedule, timeout) = (Schedule::Closed, Nanos::from_secs(1));
        SessionTraffic { size_bytes, schedule, timeout, socket: SocketTerms::NONE, down_gap: None }
    }
}

/// Key, lifetime and stop flag for the sessions of a run, all of which are opened by [`SessionOptions::open`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionOptions<'a> {
    pub key: Option<&'a PreSharedKey>,
    pub lifetime: SessionLifetime,
    /// Queue and kind of a reflector past the network stack.
    pub xdp: Option<XdpSpec>,
    /// Ends the handshake when it is set.
    pub stop: &'a AtomicBool,
}

impl SessionOptions<'_> {
    /// Opens a session for `traffic` over `transport`.
    ///
    /// # Errors
    /// The peer does not answer or refuses, `stop` was set, or the kernel has no random bytes for the nonce.
    pub(super) fn open(
        &self,
        transport: &mut impl PathTransport,
        traffic: SessionTraffic,
    ) -> Result<NativeSession, MeasureError> {
        let SessionTraffic { size_bytes, schedule, timeout, socket, down_gap } = traffic;
        let (peer, duration) = (transport.path().peer.to_string(), self.lifetime.duration);
        let params = SessionParams::new(peer, random_bytes()?, size_bytes, schedule, duration, timeout);
        let mut params = params.with_socket(socket);
        if let Some(gap) = down_gap {
            params = params.with_down_stream(gap);
        }
        if self.xdp.is_some_and(|xdp| xdp.reflect == Reflect::XdpTx) {
            params = params.with_answers_in_driver();
        }
        params.terms.idle = params.terms.idle.max(self.lifetime.idle.unwrap_or_default());
        let queue = self.xdp.filter(|xdp| xdp.reflect == Reflect::Xdp).map(|xdp| xdp.peer_queue);
        let opened = session::open(transport, &Monotonic, self.key, &params, self.stop);
        Ok(opened.map_err(|error| error.answered_elsewhere(transport).at_queue(queue))?)
    }
}

/// The parameters that the runs of a plan have in common.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    /// `None` for runs without a path.
    pub peer: Option<&'a Peer>,
    /// The settings of the hosts during the runs.
    pub settings: &'a [SettingFacts],
    pub target: RecordingTarget<'a>,
    pub key: Option<&'a PreSharedKey>,
    pub lifetime: SessionLifetime,
    /// Ends the runs; set by the caller, or by a thread that failed.
    pub stop: &'a Arc<AtomicBool>,
}

impl<'a> RunContext<'a> {
    /// The peer of a run with a path.
    ///
    /// # Panics
    /// For a run without one.
    pub(super) fn peer(&self) -> &'a Peer {
        self.peer.expect("a plan with a path has a peer")
    }

    pub(super) fn sessions(&self) -> SessionOptions<'a> {
        SessionOptions { key: self.key, lifetime: self.lifetime, xdp: None, stop: self.stop }
    }

    /// Creates the recording, with an event log for each of these ring capacities (powers of two).
    ///
    /// # Errors
    /// The directory cannot be created, or the writer thread cannot be started; then the directory is removed.
    pub(super) fn start_recording(
        &self,
        manifest: Manifest,
        ring_events: &[usize],
    ) -> Result<(RecordingWriter, Vec<EventLog>), RecordingError> {
        let mut writer = RecordingWriter::create(self.target.store, self.target.directory, manifest)?;
        if self.target.live.is_some_and(|live| live.keeps_delays) {
            writer.keep_delays();
        }
        match writer.start_logs(Arc::clone(self.stop), ring_events) {
            Ok(logs) => Ok((writer, logs)),
            Err(error) => {
                writer.discard(None);
                Err(error)
            }
        }
    }
}

/// An open run. The runs of a plan are measured in turn, slice by slice.
pub(super) trait MeasuredRun: Send + Sized {
    /// Opens path, sessions and recording, in this order: if a session cannot be opened, no recording is created; if
    /// the store refuses, no probe is sent.
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<Self, MeasureError>;

    /// The writer of its recording, for samples of the hosts and facts about the run.
    fn writer(&mut self) -> &mut RecordingWriter;

    fn warm_up(&mut self, stop: &StopSignal) -> Result<(), MeasureError>;

    /// Measures slice `round` of `rounds`.
    fn measure(&mut self, round: u32, rounds: u32, stop: &StopSignal) -> Result<(), MeasureError>;

    /// Removes the recording of a run that was not measured, and closes its sessions, which count against the limit of the
    /// reflector.
    fn discard(self);

    /// Closes the sessions and finishes the recording.
    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError>;
}

/// The result of `work` on a thread called `name`, whose pin and priority end with it.
pub(super) fn on_own_thread<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, MeasureError> + Send,
) -> Result<T, MeasureError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.into()).spawn_scoped(scope, work);
        thread.map_err(MeasureError::Thread)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Opens a path over `F` for a sender placed as `here`: a thread with that pin and priority opens it, if the threads of a
/// library inherit these.
pub(super) fn open_placed<F: TransportFamily, T: Send>(
    here: &EndSpec,
    open: impl FnOnce() -> Result<T, TransportError> + Send,
) -> Result<T, MeasureError> {
    if F::KIND.properties().has_own_threads {
        on_own_thread("open", || {
            placement::place(here)?;
            Ok(open()?)
        })
    } else {
        Ok(open()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_durations_of_slices_add_up() {
        let stop = StopWhen { count: Some(1_003), duration_ns: Some(Nanos(10_000_000_007)) };
        let slices: Vec<Slice> = (0..10).map(|round| Slice::measuring(&stop, round, 10)).collect();
        assert_eq!(slices.iter().map(|slice| slice.count).sum::<u64>(), 1_003);
        assert_eq!(slices.iter().map(|slice| slice.duration.0).sum::<i64>(), 10_000_000_007);
    }

    #[test]
    fn a_missing_limit_never_ends_a_slice() {
        let slice = Slice::measuring(&StopWhen { count: None, duration_ns: Some(Nanos(5)) }, 0, 1);
        assert_eq!((slice.count, slice.duration), (u64::MAX, Nanos(5)));
        assert_eq!(Slice::warmup(&Warmup { count: None, duration_ns: None }), None);
    }
}
