//! The writer thread: drains the rings into the spool. It runs on the CPUs of the thread that starts it, which leaves
//! those that measure.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::fstat;

use super::event::{EVENT_BYTES, EVENT_WORDS, SpoolEvent};
use super::live_delays::{DelaySeconds, LiveDelays, LiveSecond, SharedDelays};
use super::ring::RingReader;
use super::spool::{self, HEADER_BYTES};
use crate::facts::Execution;
use crate::plan::defaults;
use crate::probe::{Phase, Seq};
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};

/// Events per `write`: 64 KiB.
const WRITE_EVENTS: u64 = 1024;

/// Counts of the events in the spool, for a progress line: at most one drain old.
#[derive(Clone, Debug, Default)]
pub struct RecordingProgress(Arc<DrainCounts>);

#[derive(Debug, Default)]
struct DrainCounts {
    measured: AtomicU64,
    sent: AtomicU64,
    arrived: AtomicU64,
    missed: AtomicU64,
    /// When the first probe was sent or refused, in nanoseconds; 0 before.
    begin_ns: AtomicI64,
    probes: [AtomicU64; 3],
    delays: SharedDelays,
    slowest: Mutex<Vec<SlowSpan>>,
    passes: AtomicU64,
}

/// A slow probe from its sending to its answer, or a wake-up from its due time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowSpan {
    pub from: Stamp<SenderClock>,
    pub to: Stamp<SenderClock>,
    /// When the reflector received the probe and answered; `None` if it does not say, and of wake-ups.
    pub reflected: Option<[Stamp<ReflectorClock>; 2]>,
}

impl SlowSpan {
    fn delay(&self) -> Nanos {
        self.to - self.from
    }

    /// The time, on its clock, in which the peer's host had the probe at most: the ways there and back may take all that the
    /// reflector did not.
    fn at_peer(&self) -> Option<(Nanos, Nanos)> {
        let [received, sent] = self.reflected?.map(|at| Nanos(at.as_nanos()));
        let ways = (self.delay() - (sent - received)).max(Nanos::ZERO);
        Some((received - ways, sent + ways))
    }
}

/// The slowest spans so far, at most [`defaults::WORST_EPISODES`]. Of those that overlap it has the longest, since a process
/// that stops delays many probes.
#[derive(Default)]
struct SlowestSpans(Vec<SlowSpan>);

impl SlowestSpans {
    fn take(&mut self, span: SlowSpan) {
        let least = self.0.iter().map(SlowSpan::delay).min().filter(|_| self.0.len() >= defaults::WORST_EPISODES);
        let overlaps = |other: &SlowSpan| other.from <= span.to && span.from <= other.to;
        let is_hidden = self.0.iter().any(|other| overlaps(other) && other.delay() >= span.delay());
        if is_hidden || least.is_some_and(|least| span.delay() <= least) {
            return;
        }
        let before = self.0.len();
        self.0.retain(|other| !overlaps(other));
        if self.0.len() == before {
            self.0.retain(|other| Some(other.delay()) != least);
        }
        self.0.push(span);
    }
}

/// Probes of the measuring phase, as far as their fate is known while the run goes on. The rest is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    pub sent: u64,
    /// Their answer arrived within about the time-out.
    pub answered: u64,
    /// Their time-out has passed without an answer.
    pub lost: u64,
}

impl RecordingProgress {
    /// Probes of the measuring phase that were sent, refused or not sent; in other runs, wake-ups or executions.
    pub fn measured(&self) -> u64 {
        self.0.measured.load(Ordering::Relaxed)
    }

    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    pub fn arrived(&self) -> u64 {
        self.0.arrived.load(Ordering::Relaxed)
    }

    /// Probes that were refused, or whose time-out has passed without an answer, warm-up included.
    pub fn missed(&self) -> u64 {
        self.0.missed.load(Ordering::Relaxed)
    }

    /// When the first probe was sent or refused.
    pub fn begin(&self) -> Option<Stamp<SenderClock>> {
        Some(self.0.begin_ns.load(Ordering::Relaxed)).filter(|begin_ns| *begin_ns != 0).map(Stamp::from_nanos)
    }

    /// The delays so far; empty unless the recording keeps them for a display.
    pub fn delays(&self) -> LiveDelays {
        self.0.delays.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last second with a delay.
    pub fn last_second(&self) -> Option<LiveSecond> {
        self.0.delays.lock().unwrap_or_else(PoisonError::into_inner).seconds.last().copied()
    }

    /// How often the rings were emptied: after two times more all that was recorded before is counted.
    pub fn passes(&self) -> u64 {
        self.0.passes.load(Ordering::Acquire)
    }

    /// The slowest spans so far; empty unless the run is traced.
    pub fn slowest(&self) -> Vec<SlowSpan> {
        self.0.slowest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the peer had the slowest probes so far, on its clock, and the time around that is kept: those that meet are one.
    pub fn slowest_at_peer(&self) -> Vec<(Nanos, Nanos)> {
        let around = |(from, to)| (from - defaults::TRACED_BEFORE, to + defaults::TRACED_AFTER);
        let mut each: Vec<_> = self.slowest().iter().filter_map(SlowSpan::at_peer).map(around).collect();
        each.sort_unstable();
        each.dedup_by(|next, last| {
            let meets = next.0 <= last.1;
            last.1 = if meets { last.1.max(next.1) } else { last.1 };
            meets
        });
        each
    }

    /// Probes of the measuring phase by their fate.
    pub fn probes(&self) -> ProbeCounts {
        let [sent, answered, lost] = self.0.probes.each_ref().map(|count| count.load(Ordering::Relaxed));
        ProbeCounts { sent, answered, lost }
    }
}

/// Counts the events of a run. Reads no clock: a probe is lost when a later one was sent more than a time-out after it.
pub(crate) struct ProbeTally {
    timeout: Nanos,
    progress: RecordingProgress,
    /// Probes whose time-out has not passed, in the order of sending; the first one is not answered.
    in_flight: VecDeque<InFlight>,
    measured: u64,
    sent: u64,
    arrived: u64,
    missed: u64,
    probes: ProbeCounts,
    /// `None` if no display shows them.
    delays: Option<DelaySeconds>,
    /// `None` if the run is not traced.
    slowest: Option<SlowestSpans>,
}

struct InFlight {
    seq: Seq,
    phase: Phase,
    sent: Stamp<SenderClock>,
    is_answered: bool,
}

/// The most probes in flight, in 1.5 MiB. If there are more, the oldest count as lost.
const IN_FLIGHT_MAX: usize = 1 << 16;

impl ProbeTally {
    /// No events so far, of probes with this `timeout`; the counts are published in `progress`, and the delays of the last
    /// seconds if `keeps_delays`, and the slowest spans if the run `is_traced`.
    pub(crate) fn new(timeout: Nanos, progress: RecordingProgress, keeps_delays: bool, is_traced: bool) -> ProbeTally {
        let (in_flight, probes) = (VecDeque::new(), ProbeCounts::default());
        let delays = keeps_delays.then(DelaySeconds::default);
        let slowest = is_traced.then(SlowestSpans::default);
        ProbeTally {
            timeout,
            progress,
            in_flight,
            measured: 0,
            sent: 0,
            arrived: 0,
            missed: 0,
            probes,
            delays,
            slowest,
        }
    }

    fn count(&mut self, event: SpoolEvent) {
        match event {
            SpoolEvent::Sent { seq, phase, sent, .. } => self.count_sent(seq, phase, sent),
            SpoolEvent::SendFailed { phase, tried, .. } => {
                self.begin(tried);
                self.missed += 1;
                self.measured += u64::from(phase == Phase::Measure);
            }
            SpoolEvent::NotSent { phase, .. } => self.measured += u64::from(phase == Phase::Measure),
            SpoolEvent::Woke { phase: Phase::Measure, due, woke, .. } => {
                self.measured += 1;
                self.record(due, woke, None);
            }
            SpoolEvent::Woke { phase: Phase::Warmup, .. } => (),
            SpoolEvent::Executed(execution) => self.count_execution(execution),
            SpoolEvent::Arrived { seq, received, reflector_received, reflector_sent, .. } => {
                let reflected = reflector_received.zip(reflector_sent).map(<[_; 2]>::from);
                self.count_answer(seq, received, reflected);
            }
            SpoolEvent::Printed(_) | SpoolEvent::Interval(_) | SpoolEvent::Stamped(_) => (),
            SpoolEvent::Gap { .. } | SpoolEvent::TimedOut { .. } => (),
        }
    }

    fn count_execution(&mut self, execution: Execution) {
        if execution.phase == Phase::Measure {
            self.measured += 1;
            self.record(execution.started, execution.ended, None);
        }
    }

    /// Counts the delay from `from` to `to`, for those who asked.
    fn record(
        &mut self,
        from: Stamp<SenderClock>,
        to: Stamp<SenderClock>,
        reflected: Option<[Stamp<ReflectorClock>; 2]>,
    ) {
        self.delays.iter_mut().for_each(|delays| delays.record(to, to - from));
        self.slowest.iter_mut().for_each(|slowest| slowest.take(SlowSpan { from, to, reflected }));
    }

    fn begin(&self, at: Stamp<SenderClock>) {
        if self.sent + self.missed == 0 {
            self.progress.0.begin_ns.store(at.as_nanos(), Ordering::Relaxed);
        }
    }

    fn count_sent(&mut self, seq: Seq, phase: Phase, at: Stamp<SenderClock>) {
        self.begin(at);
        let timeout = self.timeout;
        let is_over = move |first: &InFlight| first.sent + timeout < at;
        while self.in_flight.len() >= IN_FLIGHT_MAX || self.in_flight.front().is_some_and(is_over) {
            self.end_first();
        }
        self.in_flight.push_back(InFlight { seq, phase, sent: at, is_answered: false });
        self.sent += 1;
        if phase == Phase::Measure {
            self.measured += 1;
            self.probes.sent += 1;
        }
    }

    fn end_first(&mut self) {
        if let Some(lost) = self.in_flight.pop_front().filter(|first| !first.is_answered) {
            self.missed += 1;
            self.probes.lost += u64::from(lost.phase == Phase::Measure);
        }
    }

    /// A late answer is that of a lost probe, and a further one a duplicate.
    fn count_answer(&mut self, seq: Seq, received: Stamp<SenderClock>, reflected: Option<[Stamp<ReflectorClock>; 2]>) {
        self.arrived += 1;
        let Ok(place) = self.in_flight.binary_search_by_key(&seq, |probe| probe.seq) else { return };
        let probe = &mut self.in_flight[place];
        if probe.is_answered || received > probe.sent + self.timeout {
            return;
        }
        probe.is_answered = true;
        if probe.phase == Phase::Measure {
            let sent = probe.sent;
            self.probes.answered += 1;
            self.record(sent, received, reflected);
        }
        while self.in_flight.front().is_some_and(|first| first.is_answered) {
            self.end_first();
        }
    }

    fn publish(&mut self) {
        self.delays.iter_mut().for_each(|delays| delays.publish(&self.progress.0.delays));
        let shared = &*self.progress.0;
        let known = || shared.slowest.lock().unwrap_or_else(PoisonError::into_inner);
        self.slowest.iter().for_each(|slowest| known().clone_from(&slowest.0));
        let store = |place: &AtomicU64, count| place.store(count, Ordering::Relaxed);
        let ProbeCounts { sent, answered, lost } = self.probes;
        shared.probes.iter().zip([sent, answered, lost]).for_each(|(place, count)| store(place, count));
        store(&shared.sent, self.sent);
        store(&shared.arrived, self.arrived);
        store(&shared.missed, self.missed);
        store(&shared.measured, self.measured);
    }
}

#[derive(Debug)]
pub(crate) enum SpoolFailure {
    /// A write was refused; earlier events are in the file.
    Refused(std::io::Error),
    /// The file was unlinked: the recording was removed. Its content is there as long as it is open.
    Vanished,
}

#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub failure: Option<SpoolFailure>,
    /// Events after the failure, which are lost.
    pub discarded: u64,
}

pub(crate) struct Drain {
    /// One for each thread that measures.
    pub readers: Vec<RingReader>,
    /// The spool, at its end.
    pub spool: File,
    /// Time between two drains, unless events are frequent ([`defaults::DRAIN_FREQUENT`]).
    pub period: Nanos,
    /// Set if the run must end because it can no longer be recorded.
    pub stop: Arc<AtomicBool>,
    pub tally: ProbeTally,
    /// Whether the spool has a name, which it can lose.
    pub is_named: bool,
    pub parts: u64,
    /// The bytes of a write.
    pub checked: Vec<u8>,
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
            self.tally.progress.0.passes.fetch_add(1, Ordering::Release);
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
        let tally = &mut self.tally;
        let events = self.readers[ring].drain(WRITE_EVENTS, |words: [u64; EVENT_WORDS]| {
            spool::append(words, bytes);
            if let Some(event) = SpoolEvent::from_words(words) {
                tally.count(event);
            }
        });
        if events > 0 {
            self.tally.publish();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Via;

    fn sent_at(seq: u64, millis: i64, phase: Phase) -> SpoolEvent {
        let sent = Stamp::from_nanos(Nanos::from_millis(millis).0);
        SpoolEvent::Sent { seq: Seq(seq), phase, due: None, sent, cpu: None }
    }

    fn answer_to(seq: u64) -> SpoolEvent {
        answer_at(seq, 0)
    }

    fn answer_at(seq: u64, micros: i64) -> SpoolEvent {
        SpoolEvent::Arrived {
            seq: Seq(seq),
            received: Stamp::from_nanos(micros * 1_000),
            reflector_received: None,
            reflector_sent: None,
            rx_software: None,
            reflector_rx_software: None,
            cpu: None,
            reflector_cpu: None,
        }
    }

    fn counted(events: impl IntoIterator<Item = SpoolEvent>) -> RecordingProgress {
        counted_with(false, events)
    }

    fn counted_with(keeps_delays: bool, events: impl IntoIterator<Item = SpoolEvent>) -> RecordingProgress {
        let mut tally = ProbeTally::new(Nanos::from_secs(1), RecordingProgress::default(), keeps_delays, false);
        events.into_iter().for_each(|event| tally.count(event));
        tally.publish();
        tally.progress
    }

    #[test]
    fn probes_are_lost_once_their_time_out_has_passed() {
        // One probe every 10 ms; each tenth is not answered.
        let events = (1..=500).flat_map(|seq: u64| {
            let answer = (!seq.is_multiple_of(10)).then(|| answer_to(seq));
            std::iter::once(sent_at(seq, seq as i64 * 10, Phase::Measure)).chain(answer)
        });
        let progress = counted(events);
        let ProbeCounts { sent, answered, lost } = progress.probes();
        assert_eq!((sent, answered), (500, 450));
        // Of the 50 without an answer, those of the last second are in flight.
        assert_eq!(lost, 39);
        assert_eq!((progress.missed(), progress.begin()), (lost, Some(Stamp::from_nanos(10_000_000))));
    }

    #[test]
    fn delays_are_kept_only_for_a_display() {
        let wake = |millis: i64| {
            let [due, woke] = [0, 50_000].map(|late| Stamp::from_nanos(Nanos::from_millis(millis).0 + late));
            SpoolEvent::Woke {
                phase: Phase::Measure,
                seq: Seq(millis as u64),
                due,
                woke,
                cpu: None,
                via: Via::ClockNanosleep,
            }
        };
        let seconds = |keeps_delays| counted_with(keeps_delays, (1..=2_500).map(wake)).delays().seconds;
        assert_eq!(seconds(true).iter().map(|second| second.n).collect::<Vec<_>>(), [1_000, 1_000]);
        assert!(seconds(false).is_empty());
    }

    #[test]
    fn late_and_repeated_answers_and_those_to_the_warm_up_count_as_no_answers() {
        let events = [
            sent_at(0, 1, Phase::Warmup),
            answer_to(0),
            sent_at(1, 2, Phase::Measure),
            answer_to(1),
            answer_to(1),
            sent_at(2, 1_000, Phase::Measure),
            sent_at(3, 3_000, Phase::Measure),
            answer_to(2),
        ];
        let progress = counted(events);
        assert_eq!(progress.probes(), ProbeCounts { sent: 3, answered: 1, lost: 1 });
        assert_eq!((progress.sent(), progress.arrived(), progress.missed()), (4, 4, 1));
    }

    #[test]
    fn each_second_has_the_delays_of_its_answers_in_any_order() {
        let sent = |seq: u64| sent_at(seq, 0, Phase::Measure);
        let answers = [(2, 50), (2, 60), (9, 60), (1, 70), (3, 1_000_001)].map(|(seq, micros)| answer_at(seq, micros));
        let next = [sent_at(5, 1_500, Phase::Measure), answer_at(5, 1_500_090)];
        let progress = counted_with(true, (1..=4).map(sent).chain(answers).chain(next));
        let second = progress.last_second().expect("a second");
        assert_eq!((second.n, second.max), (2, Nanos(70_000)));
        assert_eq!(progress.probes(), ProbeCounts { sent: 5, answered: 3, lost: 2 });
    }

    #[test]
    fn a_peer_has_a_probe_within_its_round_trip_and_spans_that_meet_are_one() {
        let probe = |from_ms: i64| {
            let at = |ms: i64| Nanos::from_millis(ms).0;
            // 20 ms, of which the reflector has 4, on a clock that is an hour ahead.
            let reflected = [from_ms + 3_600_007, from_ms + 3_600_011].map(|ms| Stamp::from_nanos(at(ms)));
            let [from, to] = [from_ms, from_ms + 20].map(|ms| Stamp::from_nanos(at(ms)));
            SlowSpan { from, to, reflected: Some(reflected) }
        };
        let progress = RecordingProgress::default();
        *progress.0.slowest.lock().expect("not poisoned") = vec![probe(200), probe(0), probe(30)];
        let span =
            |from_ms: i64, to_ms: i64| (Nanos::from_millis(3_600_000 + from_ms), Nanos::from_millis(3_600_000 + to_ms));
        // From 16 ms before the receipt until 16 ms after the answer, with 10 ms before and 1 ms after.
        assert_eq!(progress.slowest_at_peer(), [span(-19, 58), span(181, 228)]);
    }

    #[test]
    fn of_spans_that_overlap_the_slowest_is_kept() {
        let mut slowest = SlowestSpans::default();
        let span = |from: i64, to: i64| {
            let [from, to] = [from, to].map(Stamp::from_nanos);
            SlowSpan { from, to, reflected: None }
        };
        // A process that stops from 0 to 90 delays a probe every 10.
        (0..9).for_each(|probe| slowest.take(span(10 * probe, 90 + probe)));
        assert_eq!(slowest.0, [span(0, 90)]);
        (1..40).for_each(|probe| slowest.take(span(100 * probe, 100 * probe + probe)));
        slowest.take(span(1_900, 1_960));
        let delays: Vec<i64> = slowest.0.iter().map(|span| span.delay().0).collect();
        assert_eq!((delays.len(), delays.iter().min(), delays.contains(&60)), (20, Some(&22), true));
    }

    #[test]
    fn memory_is_bounded_while_nothing_is_answered() {
        let mut tally = ProbeTally::new(Nanos::from_secs(1_000), RecordingProgress::default(), false, false);
        (0..2 * IN_FLIGHT_MAX as u64).for_each(|seq| tally.count(sent_at(seq, 0, Phase::Measure)));
        assert_eq!((tally.in_flight.len(), tally.probes.lost), (IN_FLIGHT_MAX, IN_FLIGHT_MAX as u64));
    }

    #[test]
    fn refused_probes_are_missed_and_begin_the_run() {
        let tried = Stamp::from_nanos(7);
        let refused =
            |seq| SpoolEvent::SendFailed { seq: Seq(seq), phase: Phase::Measure, due: None, tried, errno: 101 };
        let progress = counted([refused(0), refused(1)]);
        assert_eq!((progress.missed(), progress.begin(), progress.measured()), (2, Some(tried), 2));
        assert_eq!(progress.probes(), ProbeCounts::default());
        assert_eq!(counted([]).begin(), None);
    }
}
