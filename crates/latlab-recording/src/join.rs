//! Joins events into rows: probes in two passes with bounded memory, wake-ups and intervals in one.
//!
//! For probes the first pass finds for each block of consecutive probes the range of the spool that has its events; the
//! second reads one range at a time. An answer far behind its block makes the range longer, which costs time and no memory.

use std::collections::{BTreeMap, btree_map};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use super::block::ProbeBlock;
use super::event::SpoolEvent;
use super::spool::Spool;
use super::tables::recorded::GROUP_ROWS;
use super::tables::wakeups::WakeupBatch;
use crate::facts::{Execution, PrintedNumber, StreamInterval};
use crate::plan::Via;
use crate::probe::{Phase, Seq};
use crate::units::{Nanos, SenderClock, Stamp};

/// Events of wake-ups read in one step.
const WAKEUP_EVENTS: u64 = 1 << 14;
/// Events of intervals or executions read in one step, and so most rows of a row group: seven minutes of one flow.
const ROW_EVENTS: u64 = 8_192;

/// Until when the run listened. A probe sent less than a time-out before that, and unanswered, is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// For the time-out of every probe.
    Enough,
    At(Stamp<SenderClock>),
    /// Until the last instant in the spool: the run was cut short.
    LastEvent,
}

/// How events of probes become rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinRules {
    /// Answers after more than this are late.
    pub(crate) timeout: Nanos,
    pub(crate) size_bytes: u32,
    pub(crate) horizon: Horizon,
    /// Probes in a block, and so most rows of a row group; the joiner needs 13 MiB for a block of the usual size.
    pub(crate) block_probes: usize,
}

/// Totals of a join besides its rows; complete once all rows were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JoinCounts {
    pub rows: u64,
    /// Events dropped because the ring was full.
    pub gap_events: u64,
    /// Time that a closed loop waited for answers that did not come, in the measuring phase.
    pub timed_out: Nanos,
    /// Pauses of a closed loop after refused sends, in the measuring phase.
    pub refused_pause: Nanos,
    /// Probes in flight when the run was cut short: no row.
    pub undecided_probes: u64,
    /// Answers whose probe is not in the spool.
    pub orphan_answers: u64,
    /// Places in the spool without an event.
    pub holes: u64,
    /// The last instant in the spool.
    pub latest: Option<Stamp<SenderClock>>,
}

/// The events of the spool from the first to the last of a block, both included.
#[derive(Clone, Copy, Debug)]
struct EventRange {
    first: u64,
    last: u64,
}

/// The probes of a spool, block by block.
#[derive(Debug)]
pub(crate) struct ProbeJoin {
    spool: Arc<Spool>,
    block_probes: u64,
    ranges: btree_map::IntoIter<u64, EventRange>,
    horizon: Option<Stamp<SenderClock>>,
    block: ProbeBlock,
    counts: JoinCounts,
}

impl ProbeJoin {
    pub(crate) fn new(spool: Arc<Spool>, rules: JoinRules) -> io::Result<ProbeJoin> {
        let mut pass = FirstPass::new(rules.block_probes as u64);
        spool.walk(0..spool.events(), |index, event| pass.take(index, event))?;
        let horizon = match rules.horizon {
            Horizon::Enough => None,
            Horizon::At(until) => Some(until),
            Horizon::LastEvent => pass.counts.latest,
        };
        // A short run gets a small block.
        let places = pass.highest_place.map_or(0, |place| place as usize + 1);
        Ok(ProbeJoin {
            block: ProbeBlock::new(places, rules.timeout, rules.size_bytes),
            block_probes: rules.block_probes as u64,
            ranges: pass.ranges.into_iter(),
            horizon,
            counts: pass.counts,
            spool,
        })
    }

    /// The next block that has rows, in the order of `seq`; `None` after the last.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<&ProbeBlock>> {
        while let Some((number, range)) = self.ranges.next() {
            self.fill(number, range)?;
            self.counts.undecided_probes += self.block.settle(self.horizon);
            self.counts.rows += self.block.rows() as u64;
            if self.block.rows() > 0 {
                return Ok(Some(&self.block));
            }
        }
        Ok(None)
    }

    pub(crate) fn counts(&self) -> JoinCounts {
        self.counts
    }

    fn fill(&mut self, number: u64, range: EventRange) -> io::Result<()> {
        let (block, counts) = (&mut self.block, &mut self.counts);
        let members = number * self.block_probes..(number + 1) * self.block_probes;
        block.reset(members.start);
        // The next expected sequence number (RFC 4737, section 3.3). An answer before the range cannot make a member
        // reordered: later probes left after the first of the block, so their answers came after that.
        let mut next_expected = 0;
        self.spool.walk(range.first..range.last + 1, |_, event| match event {
            Some(event @ SpoolEvent::Arrived { seq, .. }) => {
                if members.contains(&seq.0) {
                    counts.orphan_answers += u64::from(!block.arrive(event, seq.0 < next_expected));
                }
                next_expected = next_expected.max(seq.0.saturating_add(1));
            }
            Some(SpoolEvent::Stamped(stamps)) if members.contains(&stamps.seq.0) => block.stamp(stamps),
            Some(event) if departed(event).is_some_and(|seq| members.contains(&seq.0)) => block.depart(event),
            _ => (),
        })
    }
}

struct FirstPass {
    block_probes: u64,
    ranges: BTreeMap<u64, EventRange>,
    highest_place: Option<u64>,
    measuring: bool,
    /// The last departure, if the kernel refused it.
    refused: Option<Seq>,
    counts: JoinCounts,
}

impl FirstPass {
    fn new(block_probes: u64) -> FirstPass {
        FirstPass {
            block_probes,
            ranges: BTreeMap::new(),
            highest_place: None,
            measuring: false,
            refused: None,
            counts: JoinCounts::default(),
        }
    }

    fn take(&mut self, index: u64, event: Option<SpoolEvent>) {
        let Some(event) = event else {
            self.counts.holes += 1;
            return;
        };
        // The instant of a probe that was not sent is when it was due, and a thread that woke does not listen.
        if !matches!(
            event,
            SpoolEvent::NotSent { .. } | SpoolEvent::Woke { .. } | SpoolEvent::Executed(_) | SpoolEvent::Interval(_)
        ) {
            self.counts.latest = self.counts.latest.max(event.at());
        }
        match event {
            SpoolEvent::Arrived { seq, .. } => match self.ranges.get_mut(&(seq.0 / self.block_probes)) {
                Some(range) => range.last = index,
                None => self.counts.orphan_answers += 1,
            },
            SpoolEvent::Stamped(stamps) => {
                self.ranges.entry(stamps.seq.0 / self.block_probes).and_modify(|range| range.last = index);
            }
            SpoolEvent::Gap { events, .. } => self.counts.gap_events += events,
            SpoolEvent::TimedOut { seq, waited } if self.measuring => {
                let spent =
                    if self.refused == Some(seq) { &mut self.counts.refused_pause } else { &mut self.counts.timed_out };
                *spent += waited;
            }
            SpoolEvent::TimedOut { .. }
            | SpoolEvent::Woke { .. }
            | SpoolEvent::Executed(_)
            | SpoolEvent::Printed(_)
            | SpoolEvent::Interval(_) => (),
            SpoolEvent::Sent { seq, phase, .. }
            | SpoolEvent::SendFailed { seq, phase, .. }
            | SpoolEvent::NotSent { seq, phase, .. } => {
                self.measuring |= phase == Phase::Measure;
                self.refused = matches!(event, SpoolEvent::SendFailed { .. }).then_some(seq);
                self.depart(index, seq.0);
            }
        }
    }

    fn depart(&mut self, index: u64, seq: u64) {
        self.highest_place = self.highest_place.max(Some(seq % self.block_probes));
        self.ranges.entry(seq / self.block_probes).or_insert(EventRange { first: index, last: index }).last = index;
    }
}

/// The probe that `event` begins.
fn departed(event: SpoolEvent) -> Option<Seq> {
    match event {
        SpoolEvent::Sent { seq, .. } | SpoolEvent::SendFailed { seq, .. } | SpoolEvent::NotSent { seq, .. } => {
            Some(seq)
        }
        _ => None,
    }
}

/// Reads a spool once, in steps.
#[derive(Debug)]
struct SpoolCursor {
    spool: Arc<Spool>,
    next: u64,
    counts: JoinCounts,
}

impl SpoolCursor {
    fn new(spool: Arc<Spool>) -> SpoolCursor {
        SpoolCursor { spool, next: 0, counts: JoinCounts::default() }
    }

    fn is_at_end(&self) -> bool {
        self.next >= self.spool.events()
    }

    /// Reads the next `events`; counts gaps and holes.
    fn step(&mut self, events: u64, mut take: impl FnMut(&mut JoinCounts, SpoolEvent)) -> io::Result<()> {
        let (end, counts) = ((self.next + events).min(self.spool.events()), &mut self.counts);
        self.spool.walk(self.next..end, |_, event| match event {
            Some(SpoolEvent::Gap { events, .. }) => counts.gap_events += events,
            Some(event) => take(counts, event),
            None => counts.holes += 1,
        })?;
        self.next = end;
        Ok(())
    }
}

/// The wake-ups of a spool, batch by batch, in the order in which they were due.
///
/// The writer drains one ring after the other, so the events of several threads follow one another in runs. Two batches
/// of rows are held back, so that the rows of any run shorter than a batch are sorted in.
#[derive(Debug)]
pub(crate) struct SpooledWakeups {
    cursor: SpoolCursor,
    held: Vec<Wakeup>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wakeup {
    seq: u64,
    phase: Phase,
    due: i64,
    woke: i64,
    cpu: Option<u16>,
    via: Via,
}

impl SpooledWakeups {
    pub(crate) fn new(spool: Arc<Spool>) -> SpooledWakeups {
        SpooledWakeups { cursor: SpoolCursor::new(spool), held: Vec::new() }
    }

    pub(crate) fn counts(&self) -> JoinCounts {
        self.cursor.counts
    }

    fn next_batch(&mut self) -> io::Result<Option<WakeupBatch>> {
        let held = &mut self.held;
        while held.len() < 2 * GROUP_ROWS && !self.cursor.is_at_end() {
            self.cursor.step(WAKEUP_EVENTS, |counts, event| {
                if let SpoolEvent::Woke { seq, phase, due, woke, cpu, via } = event {
                    counts.latest = counts.latest.max(Some(woke));
                    held.push(Wakeup { seq: seq.0, phase, due: due.as_nanos(), woke: woke.as_nanos(), cpu, via });
                }
            })?;
        }
        held.sort_by_key(|row| (row.due, row.cpu));
        let rest = held.split_off(held.len().min(GROUP_ROWS));
        let rows = std::mem::replace(held, rest);
        self.cursor.counts.rows += rows.len() as u64;
        Ok((!rows.is_empty()).then(|| batch(&rows)))
    }
}

impl Iterator for SpooledWakeups {
    type Item = io::Result<WakeupBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn batch(rows: &[Wakeup]) -> WakeupBatch {
    WakeupBatch {
        rows: rows.len(),
        seq: rows.iter().map(|row| Some(row.seq as i64)).collect(),
        phase: rows.iter().map(|row| row.phase).collect(),
        due_ns: rows.iter().map(|row| Some(row.due)).collect(),
        woke_ns: rows.iter().map(|row| Some(row.woke)).collect(),
        cpu: rows.iter().map(|row| row.cpu.map(i64::from)).collect(),
        via: rows.iter().map(|row| row.via).collect(),
    }
}

/// A row that is an event of its own.
pub(crate) trait EventRow: Sized {
    fn of(event: SpoolEvent) -> Option<Self>;
}

impl EventRow for StreamInterval {
    fn of(event: SpoolEvent) -> Option<StreamInterval> {
        if let SpoolEvent::Interval(interval) = event { Some(interval) } else { None }
    }
}

impl EventRow for Execution {
    fn of(event: SpoolEvent) -> Option<Execution> {
        if let SpoolEvent::Executed(execution) = event { Some(execution) } else { None }
    }
}

impl EventRow for PrintedNumber {
    fn of(event: SpoolEvent) -> Option<PrintedNumber> {
        if let SpoolEvent::Printed(number) = event { Some(number) } else { None }
    }
}

/// The rows of a spool that are events of their own, batch by batch, in the order in which they were written: intervals of
/// one flow and end, and executions, in the order of time.
#[derive(Debug)]
pub(crate) struct SpooledRows<T>(SpoolCursor, PhantomData<T>);

impl<T: EventRow> SpooledRows<T> {
    pub(crate) fn new(spool: Arc<Spool>) -> SpooledRows<T> {
        SpooledRows(SpoolCursor::new(spool), PhantomData)
    }

    pub(crate) fn counts(&self) -> JoinCounts {
        self.0.counts
    }

    fn next_batch(&mut self) -> io::Result<Option<Vec<T>>> {
        let mut rows = Vec::new();
        while rows.is_empty() && !self.0.is_at_end() {
            self.0.step(ROW_EVENTS, |counts, event| {
                if let Some(row) = T::of(event) {
                    counts.latest = counts.latest.max(event.at());
                    rows.push(row);
                }
            })?;
        }
        self.0.counts.rows += rows.len() as u64;
        Ok((!rows.is_empty()).then_some(rows))
    }
}

impl<T: EventRow> Iterator for SpooledRows<T> {
    type Item = io::Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
