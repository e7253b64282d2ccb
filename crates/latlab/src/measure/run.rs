//! What every kind of run shares: where it records, what it is opened with, how far a slice goes, how it ends.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::session_opening::{SessionLifetime, SessionOptions};
use super::stop_signal::StopSignal;
use super::{MeasureError, Peer};
use crate::facts::{ExperimentFacts, IntervalCounts, SettingFacts, StreamInterval};
use crate::plan::{RunSpec, StopWhen, Warmup};
use crate::probe::Phase;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::{EventLog, Finished, RecordingError, RecordingWriter, Store};
use crate::session::PreSharedKey;
use crate::units::{Nanos, SenderClock, Stamp};

/// Where recordings go.
#[derive(Clone, Copy, Debug)]
pub struct RecordingTarget<'a> {
    /// The store.
    pub store: &'a Store,
    /// The directory that `--output` names; `None`: the store names one.
    pub directory: Option<&'a Path>,
    /// The position of these runs in an experiment; `None` outside of one.
    pub experiment: Option<&'a ExperimentFacts>,
    /// Counts that are updated while a stream runs; `None` if no caller displays them.
    pub live: Option<&'a Arc<LiveRates>>,
}

/// What all flows have sent and delivered so far, at most an interval old.
#[derive(Debug, Default)]
pub struct LiveRates {
    sent_bits: AtomicU64,
    delivered_bits: AtomicU64,
}

/// The counts of [`LiveRates`] at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Payload bits that the kernel took.
    pub sent_bits: u64,
    /// Payload bits that arrived.
    pub delivered_bits: u64,
}

impl LiveRates {
    /// Adds an interval with packets of `size_bytes`.
    pub(super) fn add(&self, interval: &StreamInterval, size_bytes: u32) {
        let (bits, packets) = match interval.seen {
            IntervalCounts::Offered { packets, .. } => (&self.sent_bits, packets),
            IntervalCounts::Counted { delivered, .. } => (&self.delivered_bits, delivered),
        };
        bits.fetch_add(packets * u64::from(size_bytes) * 8, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn read(&self) -> LiveCounts {
        LiveCounts {
            sent_bits: self.sent_bits.load(Ordering::Relaxed),
            delivered_bits: self.delivered_bits.load(Ordering::Relaxed),
        }
    }
}

/// How the runs of a plan came to their end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnd<'a> {
    pub(crate) ending: RunEnding,
    /// Why, if the runs did not end by their own rule.
    pub(crate) reason: Option<&'a str>,
    /// How latlab's own reflector process died, if it did.
    pub(crate) reflector_died: Option<&'a str>,
    /// The peer does not answer any more: sessions are left without closing them.
    pub(crate) peer_is_silent: bool,
    pub(crate) stop: &'a StopSignal,
}

/// A part of a run: the loop is armed once per slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whether its probes count as measured.
    pub phase: Phase,
    /// Due probes in it, at most.
    pub count: u64,
    /// How long probes are due, at most.
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

    /// Slice `round` of `rounds` of the measuring phase: counts add up to the whole exactly.
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

    /// A slice of `phase` that only its `duration` limits.
    pub(crate) const fn lasting(phase: Phase, duration: Nanos) -> Slice {
        Slice { phase, count: u64::MAX, duration }
    }

    /// The end of due times, for a slice that starts at `start`.
    pub fn end(&self, start: Stamp<SenderClock>) -> Stamp<SenderClock> {
        start + self.duration
    }
}

/// How a loop learns on which CPU it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// It is pinned to this CPU.
    Pinned(u16),
    /// Read from the vDSO each time; unknown on architectures where that takes a system call.
    Running,
    /// Unknown (simulations).
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

/// Everything that the runs of a plan are opened with.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    /// `None` for runs without a path.
    pub(crate) peer: Option<&'a Peer>,
    /// What is set on the hosts for the time of the runs.
    pub(crate) settings: &'a [SettingFacts],
    pub(crate) target: RecordingTarget<'a>,
    pub(crate) key: Option<&'a PreSharedKey>,
    pub(crate) lifetime: SessionLifetime,
    /// Set by the caller, or by a thread that cannot go on: the runs shall end.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl<'a> RunContext<'a> {
    /// The peer of a run with a path.
    ///
    /// # Panics
    /// For a run without one.
    pub(crate) fn peer(&self) -> &'a Peer {
        self.peer.expect("a plan with a path has a peer")
    }

    /// What sessions with the peer are opened with.
    pub(crate) fn sessions(&self) -> SessionOptions<'a> {
        SessionOptions { key: self.key, lifetime: self.lifetime, stop: self.stop }
    }

    /// Makes the recording, with an event log for each of these ring capacities (powers of two).
    ///
    /// # Errors
    /// The directory cannot be made, or the writer thread cannot be started; then nothing is left behind.
    pub(crate) fn start_recording(
        &self,
        manifest: Manifest,
        ring_events: &[usize],
    ) -> Result<(RecordingWriter, Vec<EventLog>), RecordingError> {
        let mut writer = RecordingWriter::create(self.target.store, self.target.directory, manifest)?;
        match writer.start_logs(Arc::clone(self.stop), ring_events) {
            Ok(logs) => Ok((writer, logs)),
            Err(error) => {
                writer.discard(None);
                Err(error)
            }
        }
    }
}

/// A run between its opening and its closing. Runs of one plan take turns, slice by slice.
pub(crate) trait MeasuredRun: Send + Sized {
    /// Opens path, sessions and recording, in this order: a target that does not answer leaves no recording behind, and a
    /// store that refuses stops the run before anything was sent.
    fn open(spec: &RunSpec, context: &RunContext<'_>) -> Result<Self, MeasureError>;

    /// The writer of its recording: takes the samples of the hosts and the facts about the run.
    fn writer(&mut self) -> &mut RecordingWriter;

    /// Measures the warm-up.
    fn warm_up(&mut self, stop: &StopSignal) -> Result<(), MeasureError>;

    /// Measures slice `round` of `rounds`.
    fn measure(&mut self, round: u32, rounds: u32, stop: &StopSignal) -> Result<(), MeasureError>;

    /// Takes everything back before anything was measured. Sessions are closed too, since they count against the
    /// reflector's limit that the next attempt may need.
    fn discard(self);

    /// Closes the sessions and finishes the recording.
    fn close(self, end: &RunEnd<'_>) -> Result<Finished, MeasureError>;
}

/// The result of `work` on a thread called `name` that ends with it: a pin or a priority does not outlive it.
pub(crate) fn on_own_thread<T: Send>(
    name: &str,
    work: impl FnOnce() -> Result<T, MeasureError> + Send,
) -> Result<T, MeasureError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.into()).spawn_scoped(scope, work);
        thread.map_err(MeasureError::Thread)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_add_up_to_the_whole() {
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
