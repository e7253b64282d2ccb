//! What every kind of run shares: where it records, how far a slice goes, how it ends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::host_sampling::HasRecording;
use super::{MeasureError, Peer};
use crate::facts::{ExperimentFacts, IntervalCounts, LoadReport, SettingFacts, StreamInterval};
use crate::plan::{RunSpec, StopWhen, Warmup};
use crate::probe::Phase;
use crate::recording::manifest::RunEnding;
use crate::recording::{Finished, Store};
use crate::session::PreSharedKey;
use crate::units::{Nanos, SenderClock, Stamp};

/// Where recordings go.
#[derive(Clone, Copy, Debug)]
pub struct RecordingTarget<'a> {
    /// The store.
    pub store: &'a Store,
    /// The directory that `--output` names; none: one of the store's own naming.
    pub directory: Option<&'a Path>,
    /// The place of these runs in an experiment; none where they are none of one.
    pub experiment: Option<&'a ExperimentFacts>,
    /// Who watches the rates of a stream while it runs.
    pub live: Option<&'a Arc<LiveRates>>,
}

/// What all flows have sent and delivered so far, at most an interval old.
#[derive(Debug, Default)]
pub struct LiveRates {
    sent_bits: AtomicU64,
    delivered_bits: AtomicU64,
}

/// One look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Payload bits that the kernel took.
    pub sent_bits: u64,
    /// Payload bits that arrived.
    pub delivered_bits: u64,
}

impl LiveRates {
    /// One more interval, whose packets have `size_bytes`.
    pub(super) fn add(&self, interval: &StreamInterval, size_bytes: u32) {
        let (bits, packets) = match interval.seen {
            IntervalCounts::Offered { packets, .. } => (&self.sent_bits, packets),
            IntervalCounts::Counted { delivered, .. } => (&self.delivered_bits, delivered),
        };
        bits.fetch_add(packets * u64::from(size_bytes) * 8, Ordering::Relaxed);
    }

    /// Where it stands.
    pub fn read(&self) -> LiveCounts {
        LiveCounts {
            sent_bits: self.sent_bits.load(Ordering::Relaxed),
            delivered_bits: self.delivered_bits.load(Ordering::Relaxed),
        }
    }
}

/// How long a session must last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLifetime {
    /// As long as the plan with all its lanes may take; none where nobody knows.
    pub(crate) whole: Option<Nanos>,
    /// A lane may wait so long for its next turn; none where there is only one.
    pub(crate) turns: Option<Nanos>,
}

/// How the plan of a lane came to its end.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub(crate) ending: RunEnding,
    /// Why, where it did not end by its own rule.
    pub(crate) reason: Option<String>,
    /// How latlab's own reflector process died, where it did.
    pub(crate) reflector_died: Option<String>,
    /// The other end has fallen silent: no lane says anything to it any more.
    pub(crate) peer_is_silent: bool,
}

/// A stretch of a run: the loop is armed once per slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whether its probes count.
    pub phase: Phase,
    /// Due probes in it, at most.
    pub count: u64,
    /// How long probes are due, at most.
    pub duration: Nanos,
}

impl Slice {
    /// The warm-up; none where none was asked for.
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

    /// The instant from which nothing is due any more, for a slice that starts at `start`.
    pub fn end(&self, start: Stamp<SenderClock>) -> Stamp<SenderClock> {
        start + self.duration
    }
}

/// How the loop learns on which CPU it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// Pinned: there is nothing to ask.
    Pinned(u16),
    /// Asked each time, where that needs no system call; else unknown.
    Running,
    /// Not known (simulations).
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

/// A run between its opening and its closing.
pub(super) trait MeasuredRun: HasRecording + Send + Sized {
    /// Opens path, sessions and recording, in this order: a target that does not answer leaves no recording behind, and a
    /// store that refuses stops the run before anything was sent.
    fn open(
        spec: &RunSpec,
        peer: &Peer,
        key: Option<&PreSharedKey>,
        place: RecordingTarget<'_>,
        lasting: SessionLifetime,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, MeasureError>;

    /// Measures the warm-up.
    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), MeasureError>;

    /// Measures slice `round` of `rounds`.
    fn measure(&mut self, round: u32, rounds: u32, stop: &AtomicBool) -> Result<(), MeasureError>;

    /// Takes everything back: nothing was measured. The sessions are ended too, since they hold places in the reflector
    /// that the next try may need.
    fn discard(self);

    /// SessionSender the sessions and finishes the recording.
    fn close(self, outcome: RunEnd) -> Result<Finished, MeasureError>;

    /// Writes down what the far host told about itself, where an agent stands there.
    fn note_far_host(&mut self, peer: &Peer) {
        if let Some(far) = peer.far() {
            let manifest = self.writer().manifest_mut();
            (manifest.peer, manifest.clock_relation) = (far.facts().clone(), far.relation());
        }
    }

    /// Writes down what the loads beside the run reached.
    fn note_loads(&mut self, loads: &[LoadReport]) {
        self.writer().manifest_mut().loads = loads.to_vec();
    }

    /// Writes down how the settings of the run were put back.
    fn note_settings(&mut self, settings: &[SettingFacts]) {
        self.writer().manifest_mut().settings = settings.to_vec();
    }
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
