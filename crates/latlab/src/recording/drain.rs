//! The writer thread: drains the rings into the spool. It runs on the CPUs of the thread that starts it, which leaves
//! those that measure.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::fstat;

use super::event::{EVENT_BYTES, EVENT_WORDS, SpoolEvent};
use super::ring::RingReader;
use super::spool::{self, HEADER_BYTES};
use crate::plan::defaults;
use crate::probe::Phase;
use crate::units::Nanos;

/// Events per `write`: 64 KiB.
const WRITE_EVENTS: u64 = 1024;

/// Counts of the events in the spool, for a progress bar: at most one drain old.
#[derive(Clone, Debug, Default)]
pub struct RecordingProgress(Arc<DrainCounts>);

#[derive(Debug, Default)]
struct DrainCounts {
    measured: AtomicU64,
    sent: AtomicU64,
    arrived: AtomicU64,
}

impl RecordingProgress {
    /// Probes of the measuring phase that were sent, refused or not sent; in a run of wake-ups, wake-ups.
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

    fn count(&self, event: SpoolEvent) {
        let add = |count: &AtomicU64| _ = count.fetch_add(1, Ordering::Relaxed);
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

#[derive(Debug)]
pub(crate) enum SpoolFailure {
    /// A write was refused; earlier events are in the file.
    Refused(std::io::Error),
    /// The file was unlinked: the recording was removed. Its content is there as long as it is open.
    Vanished,
}

/// How the thread ended.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub(crate) failure: Option<SpoolFailure>,
    /// Events after the failure, which are lost.
    pub(crate) discarded: u64,
}

/// The writer thread's work.
pub(crate) struct Drain {
    /// One for each thread that measures.
    pub(crate) readers: Vec<RingReader>,
    /// The spool, at its end.
    pub(crate) spool: File,
    /// Time between two drains, unless events are frequent ([`defaults::DRAIN_FREQUENT`]).
    pub(crate) period: Nanos,
    /// Set if the run must end because it can no longer be recorded.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) progress: RecordingProgress,
    /// Whether the spool has a name, which it can lose.
    pub(crate) is_named: bool,
    /// Parts that were written.
    pub(crate) parts: u64,
    /// The bytes of a write.
    pub(crate) checked: Vec<u8>,
}

impl Drain {
    /// Drains until every log is dropped and every ring empty.
    pub(crate) fn run(mut self) -> Drained {
        let mut drained = Drained::default();
        let mut bytes = Vec::with_capacity(WRITE_EVENTS as usize * EVENT_BYTES);
        let mut wait = self.period;
        loop {
            let over = self.readers.iter().all(RingReader::is_closed);
            let mut frequent = false;
            for ring in 0..self.readers.len() {
                let events = self.empty(ring, &mut drained, &mut bytes);
                frequent |= self.readers[ring].fills_a_quarter(events, wait, self.period);
            }
            self.check_link(&mut drained);
            if over {
                break;
            }
            wait = if frequent { self.period.min(defaults::DRAIN_FREQUENT) } else { self.period };
            thread::park_timeout(wait.to_duration());
        }
        let gaps: Vec<SpoolEvent> = self.readers.iter().filter_map(RingReader::pending_gap).collect();
        for gap in gaps {
            bytes.clear();
            spool::append(gap.to_words(), &mut bytes);
            self.write(&bytes, &mut drained);
        }
        drained
    }

    /// Moves the events of a ring to the spool; returns their number.
    fn empty(&mut self, ring: usize, drained: &mut Drained, bytes: &mut Vec<u8>) -> u64 {
        let mut all = 0;
        loop {
            let events = self.step(ring, drained, bytes);
            all += events;
            if events < WRITE_EVENTS {
                return all;
            }
        }
    }

    /// Moves at most one buffer of events from a ring to the spool; returns their number.
    fn step(&mut self, ring: usize, drained: &mut Drained, bytes: &mut Vec<u8>) -> u64 {
        bytes.clear();
        let progress = &self.progress;
        let events = self.readers[ring].drain(WRITE_EVENTS, |words: [u64; EVENT_WORDS]| {
            spool::append(words, bytes);
            if let Some(event) = SpoolEvent::from_words(words) {
                progress.count(event);
            }
        });
        if events > 0 {
            self.write(bytes, drained);
        }
        events
    }

    /// Writes the events in `bytes` and their checksums, in one write.
    fn write(&mut self, bytes: &[u8], drained: &mut Drained) {
        let events = (bytes.len() / EVENT_BYTES) as u64;
        if matches!(drained.failure, Some(SpoolFailure::Refused(_))) {
            drained.discarded += events;
            return;
        }
        self.checked.clear();
        spool::append_with_checksums(bytes, &mut self.parts, &mut self.checked);
        let before = self.places();
        if let Err(error) = self.spool.write_all(&self.checked) {
            // A part may have been written: readers ignore a torn event at its end.
            drained.discarded += events - spool::events_in(self.places() - before).min(events);
            drained.failure = Some(SpoolFailure::Refused(error));
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whole events and checksums in the spool.
    fn places(&self) -> u64 {
        let length = self.spool.metadata().map_or(0, |metadata| metadata.len());
        length.saturating_sub(HEADER_BYTES as u64) / EVENT_BYTES as u64
    }

    fn check_link(&self, drained: &mut Drained) {
        if self.is_named && drained.failure.is_none() && fstat(&self.spool).is_ok_and(|facts| facts.st_nlink == 0) {
            drained.failure = Some(SpoolFailure::Vanished);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
