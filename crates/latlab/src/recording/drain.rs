//! The writer thread: empties the rings into the spool, far from the hot loop. It runs where its creator may run,
//! who keeps off the CPUs that measure.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::fstat;

use super::event::{EVENT_BYTES, EVENT_WORDS, SpoolEvent};
use super::ring::RingReader;
use super::spool::{HEADER_BYTES, append};
use crate::probe::Phase;
use crate::units::Nanos;

/// Events per `write`: 64 KiB.
const WRITE_EVENTS: u64 = 1024;

/// How far the run is, as the spool knows it: for a progress bar, at most one drain old.
#[derive(Clone, Debug, Default)]
pub struct RecordingProgress(Arc<DrainCounts>);

#[derive(Debug, Default)]
struct DrainCounts {
    measured: AtomicU64,
    sent: AtomicU64,
    arrived: AtomicU64,
}

impl RecordingProgress {
    /// Probes of the measuring phase that were due, be they sent, refused or given up; wake-ups of a run of wake-ups.
    pub fn measured(&self) -> u64 {
        self.0.measured.load(Ordering::Relaxed)
    }

    /// Probes sent, warm-up included.
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Answers, duplicates included.
    pub fn arrived(&self) -> u64 {
        self.0.arrived.load(Ordering::Relaxed)
    }

    fn note(&self, event: SpoolEvent) {
        let add = |tally: &AtomicU64| _ = tally.fetch_add(1, Ordering::Relaxed);
        match event {
            SpoolEvent::Sent { phase, .. }
            | SpoolEvent::SendFailed { phase, .. }
            | SpoolEvent::NotSent { phase, .. } => {
                if phase == Phase::Measure {
                    add(&self.0.measured);
                }
                if matches!(event, SpoolEvent::Sent { .. }) {
                    add(&self.0.sent);
                }
            }
            SpoolEvent::Arrived { .. } => add(&self.0.arrived),
            SpoolEvent::Woke { phase: Phase::Measure, .. } => add(&self.0.measured),
            SpoolEvent::Woke { .. } | SpoolEvent::Interval(_) => (),
            SpoolEvent::Gap { .. } | SpoolEvent::TimedOut { .. } => (),
        }
    }
}

/// What went wrong with the spool.
#[derive(Debug)]
pub(crate) enum SpoolFailure {
    /// A write was refused; what was written before stands.
    Refused(std::io::Error),
    /// The file has no name any more: somebody removed the recording. Its content is kept as long as it is open.
    Vanished,
}

/// How the draining ended.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// The first failure.
    pub(crate) failure: Option<SpoolFailure>,
    /// Events that came after the failure and are nowhere.
    pub(crate) discarded: u64,
}

/// The writer thread's work.
pub(crate) struct Drain {
    /// The ends of the rings, one for each thread that measures.
    pub(crate) readers: Vec<RingReader>,
    /// The spool, at its end.
    pub(crate) spool: File,
    /// How often.
    pub(crate) every: Nanos,
    /// Set when the run should end because it can no longer be recorded.
    pub(crate) stop: Arc<AtomicBool>,
    /// Told of every event.
    pub(crate) progress: RecordingProgress,
}

impl Drain {
    /// Drains until every log is gone and every ring empty.
    pub(crate) fn run(mut self) -> Drained {
        let mut drained = Drained::default();
        let mut bytes = Vec::with_capacity(WRITE_EVENTS as usize * EVENT_BYTES);
        loop {
            let over = self.readers.iter().all(RingReader::is_closed);
            for ring in 0..self.readers.len() {
                while self.step(ring, &mut drained, &mut bytes) == WRITE_EVENTS {}
            }
            self.look_for_the_file(&mut drained);
            if over {
                break;
            }
            thread::park_timeout(self.every.to_duration());
        }
        let gaps: Vec<SpoolEvent> = self.readers.iter().filter_map(RingReader::pending_gap).collect();
        for gap in gaps {
            bytes.clear();
            append(gap.to_words(), &mut bytes);
            self.write(&bytes, &mut drained);
        }
        drained
    }

    /// Moves at most one buffer of events out of a ring; returns how many.
    fn step(&mut self, ring: usize, drained: &mut Drained, bytes: &mut Vec<u8>) -> u64 {
        bytes.clear();
        let progress = &self.progress;
        let events = self.readers[ring].drain(WRITE_EVENTS, |words: [u64; EVENT_WORDS]| {
            append(words, bytes);
            if let Some(event) = SpoolEvent::from_words(words) {
                progress.note(event);
            }
        });
        if events > 0 {
            self.write(bytes, drained);
        }
        events
    }

    fn write(&mut self, bytes: &[u8], drained: &mut Drained) {
        let events = (bytes.len() / EVENT_BYTES) as u64;
        if matches!(drained.failure, Some(SpoolFailure::Refused(_))) {
            drained.discarded += events;
            return;
        }
        let before = self.whole_events();
        if let Err(error) = self.spool.write_all(bytes) {
            // A part may have been taken; a torn event at its end is ignored by every reader.
            drained.discarded += events - (self.whole_events() - before).min(events);
            drained.failure = Some(SpoolFailure::Refused(error));
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn whole_events(&self) -> u64 {
        let length = self.spool.metadata().map_or(0, |metadata| metadata.len());
        length.saturating_sub(HEADER_BYTES as u64) / EVENT_BYTES as u64
    }

    fn look_for_the_file(&self, drained: &mut Drained) {
        if drained.failure.is_none() && fstat(&self.spool).is_ok_and(|facts| facts.st_nlink == 0) {
            drained.failure = Some(SpoolFailure::Vanished);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
