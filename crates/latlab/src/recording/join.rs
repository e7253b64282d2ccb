//! Events into rows: two passes over the spool, memory bounded whatever the network did.
//!
//! The first pass notes for each block of consecutive probes the stretch of the spool that holds its
//! events. The second reads one block's stretch at a time. Answers far behind their block are kept aside,
//! up to a limit; past it they lengthen the stretch, which costs time and not memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::block::{JoinResult, ProbeBlock};
use super::event::SpoolEvent;
use super::spool::Spool;
use crate::probe::{Phase, Seq};
use crate::units::{Nanos, SenderClock, Stamp};

/// Probes in a block, and so rows in a row group: near DuckDB's unit of parallel work, and 10 MiB in the joiner.
pub(crate) const BLOCK_PROBES: usize = 1 << 17;
/// An answer this many events behind the last one of its block is far.
const FAR_EVENTS: u64 = 1 << 18;
/// So many far answers are kept aside: 4 MiB.
const ASIDE_ANSWERS: usize = 1 << 15;

/// Until when the run listened: what was sent less than a time-out before is undecided unless it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Horizon {
    /// Long enough for every probe.
    Enough,
    /// Until this instant.
    At(Stamp<SenderClock>),
    /// Until the last instant that the spool knows of: the run was cut.
    LastEvent,
}

/// What the joiner must know about a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinRules {
    /// Later answers are late.
    pub(crate) timeout: Nanos,
    /// Of every probe.
    pub(crate) size_bytes: u32,
    /// How long the run listened.
    pub(crate) horizon: Horizon,
    /// The sizes of the joiner's own structures.
    pub(crate) bounds: JoinLimits,
}

/// The sizes of the joiner's own structures; tests make them small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinLimits {
    /// Probes in a block.
    pub(crate) block_probes: usize,
    /// How many events behind is far.
    pub(crate) far_events: u64,
    /// How many far answers are kept aside.
    pub(crate) aside_answers: usize,
}

impl Default for JoinLimits {
    fn default() -> JoinLimits {
        JoinLimits { block_probes: BLOCK_PROBES, far_events: FAR_EVENTS, aside_answers: ASIDE_ANSWERS }
    }
}

/// What the joiner saw beside the rows. Complete once the last block was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JoinCounts {
    /// Rows.
    pub(crate) rows: u64,
    /// Events thrown away because the ring was full.
    pub(crate) gap_events: u64,
    /// Waiting of a closed loop for answers that did not come, once it measured.
    pub(crate) timed_out: Nanos,
    /// Pauses of a closed loop after refused sends, once it measured.
    pub(crate) refused_pause: Nanos,
    /// Probes in flight when the run was cut: no row.
    pub(crate) undecided_probes: u64,
    /// Answers whose probe is not in the spool.
    pub(crate) orphan_answers: u64,
    /// Places in the spool that hold no event.
    pub(crate) holes: u64,
    /// The last instant that the spool knows of.
    pub(crate) latest: Option<Stamp<SenderClock>>,
}

/// Where in the spool a block lives.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Aside {
    index: u64,
    event: SpoolEvent,
    reordered: bool,
}

/// A spool, joined block by block.
#[derive(Debug)]
pub(crate) struct Join {
    spool: Arc<Spool>,
    probes: u64,
    stretches: std::collections::btree_map::IntoIter<u64, Stretch>,
    asides: BTreeMap<u64, Vec<Aside>>,
    horizon: Option<Stamp<SenderClock>>,
    block: ProbeBlock,
    tally: JoinCounts,
}

impl Join {
    /// The first pass.
    pub(crate) fn new(spool: Arc<Spool>, rules: JoinRules) -> io::Result<Join> {
        let mut map = Map::new(rules.bounds);
        spool.walk(0..spool.events(), |index, event| map.take(index, event))?;
        let horizon = match rules.horizon {
            Horizon::Enough => None,
            Horizon::At(until) => Some(until),
            Horizon::LastEvent => map.tally.latest,
        };
        // Small runs need a small block.
        let places = map.highest_place.map_or(0, |place| place as usize + 1);
        Ok(Join {
            block: ProbeBlock::new(places, rules.timeout, rules.size_bytes),
            probes: rules.bounds.block_probes as u64,
            stretches: map.stretches.into_iter(),
            asides: map.asides,
            horizon,
            tally: map.tally,
            spool,
        })
    }

    /// The next block that has rows, in the order of `seq`; none after the last.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<&ProbeBlock>> {
        while let Some((number, stretch)) = self.stretches.next() {
            self.fill(number, stretch)?;
            self.tally.undecided_probes += self.block.settle(self.horizon);
            self.tally.rows += self.block.rows() as u64;
            if self.block.rows() > 0 {
                return Ok(Some(&self.block));
            }
        }
        Ok(None)
    }

    /// What was seen so far; complete once [`Join::next_block`] gave none.
    pub(crate) fn tally(&self) -> JoinCounts {
        self.tally
    }

    fn fill(&mut self, number: u64, stretch: Stretch) -> io::Result<()> {
        let (block, tally) = (&mut self.block, &mut self.tally);
        let members = number * self.probes..number * self.probes + self.probes;
        block.reset(members.start);
        // The next expected sequence number (RFC 4737, section 3.3). Nothing before the stretch can make a member
        // late in order: later probes left after the first of the block, and their answers came after that.
        let mut next_expected = 0;
        let mut arrive = |block: &mut ProbeBlock, event, reordered| {
            tally.orphan_answers += u64::from(block.arrive(event, reordered) == JoinResult::Orphan);
        };
        self.spool.walk(stretch.first..stretch.last + 1, |_, event| match event {
            Some(event @ SpoolEvent::Arrived { seq, .. }) => {
                if members.contains(&seq.0) {
                    arrive(block, event, seq.0 < next_expected);
                }
                next_expected = next_expected.max(seq.0.saturating_add(1));
            }
            Some(event) if departure(event).is_some_and(|seq| members.contains(&seq)) => block.depart(event),
            _ => (),
        })?;
        for aside in self.asides.remove(&number).unwrap_or_default() {
            // One that a later answer drew into the stretch was read with it.
            if aside.index > stretch.last {
                arrive(block, aside.event, aside.reordered);
            }
        }
        Ok(())
    }
}

/// The first pass, as it goes.
struct Map {
    bounds: JoinLimits,
    stretches: BTreeMap<u64, Stretch>,
    asides: BTreeMap<u64, Vec<Aside>>,
    aside_answers: usize,
    next_expected: u64,
    highest_place: Option<u64>,
    measuring: bool,
    /// The last departure, where the kernel refused it.
    refused: Option<Seq>,
    tally: JoinCounts,
}

impl Map {
    fn new(bounds: JoinLimits) -> Map {
        Map {
            bounds,
            stretches: BTreeMap::new(),
            asides: BTreeMap::new(),
            aside_answers: 0,
            next_expected: 0,
            highest_place: None,
            measuring: false,
            refused: None,
            tally: JoinCounts::default(),
        }
    }

    fn take(&mut self, index: u64, event: Option<SpoolEvent>) {
        let Some(event) = event else {
            self.tally.holes += 1;
            return;
        };
        // A probe that was given up speaks of when it was due, and a thread that woke did not listen.
        if !matches!(event, SpoolEvent::NotSent { .. } | SpoolEvent::Woke { .. } | SpoolEvent::Interval(_)) {
            self.tally.latest = self.tally.latest.max(event.at());
        }
        match event {
            SpoolEvent::Arrived { seq, .. } => self.arrive(index, seq.0, event),
            SpoolEvent::Gap { events, .. } => self.tally.gap_events += events,
            SpoolEvent::TimedOut { seq, waited } if self.measuring => {
                let spent = match self.refused == Some(seq) {
                    true => &mut self.tally.refused_pause,
                    false => &mut self.tally.timed_out,
                };
                *spent += waited;
            }
            SpoolEvent::TimedOut { .. } | SpoolEvent::Woke { .. } | SpoolEvent::Interval(_) => (),
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
        let probes = self.bounds.block_probes as u64;
        self.highest_place = self.highest_place.max(Some(seq % probes));
        let new = Stretch { first: index, last: index };
        self.stretches.entry(seq / probes).or_insert(new).last = index;
    }

    fn arrive(&mut self, index: u64, seq: u64, event: SpoolEvent) {
        let reordered = seq < self.next_expected;
        self.next_expected = self.next_expected.max(seq.saturating_add(1));
        let number = seq / self.bounds.block_probes as u64;
        let Some(stretch) = self.stretches.get_mut(&number) else {
            self.tally.orphan_answers += 1;
            return;
        };
        if index - stretch.last > self.bounds.far_events && self.aside_answers < self.bounds.aside_answers {
            self.aside_answers += 1;
            self.asides.entry(number).or_default().push(Aside { index, event, reordered });
        } else {
            stretch.last = index;
        }
    }
}

/// The probe of which `event` is the beginning; none for other events.
fn departure(event: SpoolEvent) -> Option<u64> {
    match event {
        SpoolEvent::Sent { seq, .. } | SpoolEvent::SendFailed { seq, .. } | SpoolEvent::NotSent { seq, .. } => {
            Some(seq.0)
        }
        SpoolEvent::Arrived { .. }
        | SpoolEvent::Gap { .. }
        | SpoolEvent::TimedOut { .. }
        | SpoolEvent::Woke { .. }
        | SpoolEvent::Interval(_) => None,
    }
}
