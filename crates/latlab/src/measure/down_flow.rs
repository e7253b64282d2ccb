//! The flow of a down-stream: the far end sends within the credit that this end gives, and this end counts. Its intervals
//! are those of an up-stream with the sides changed: the sender's are told in TALLYs, the receiver's are seen here.

use std::sync::atomic::{AtomicBool, Ordering};

use super::down_stream::{Down, DownPoint};
use super::stream::StreamError;
use super::stream_flow::{FlowSlice, Stretch, set_exact_timers, tell};
use crate::clock::{Monotonic, thread_cpu_time};
use crate::facts::{Seen, StreamInterval};
use crate::plan::defaults;
use crate::recording::EventLog;
use crate::session::DownCounts;
use crate::transport::udp::UdpTransport;
use crate::units::{Nanos, SenderClock, Stamp};

/// The flow, open.
pub(super) struct DownFlow {
    down: Down<UdpTransport, Monotonic>,
    log: EventLog,
    settled: bool,
    stretch: Stretch,
}

/// Where this end stood when its interval began.
#[derive(Clone, Copy)]
struct Mark {
    at: Stamp<SenderClock>,
    counts: DownCounts,
    /// Packets that the far end had sent by its latest TALLY.
    sent: u64,
    /// What this end's socket dropped, where its kernel tells.
    drops: Option<u64>,
    cpu: Nanos,
}

impl DownFlow {
    /// The flow that tells `log` what both ends see.
    pub(super) fn new(down: Down<UdpTransport, Monotonic>, log: EventLog) -> DownFlow {
        DownFlow { down, log, settled: true, stretch: Stretch::default() }
    }

    /// Whether the far end has told all that it sent.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// What the last slice came to.
    pub(super) fn stretch(&self) -> Stretch {
        self.stretch
    }

    /// Ends the session, unless the far end `is_gone` or has fallen silent.
    pub(super) fn close(self, is_gone: bool) -> (Option<UdpTransport>, EventLog) {
        ((self.settled && !is_gone).then(|| self.down.close()), self.log)
    }

    /// Has the far end send for a slice, or until `stop`, and writes down each interval of both ends. The far end is asked
    /// before the first credit and after the last one, so that both ends tell of the same packets.
    ///
    /// # Errors
    /// The socket broke, or the far end fell silent.
    pub(super) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        set_exact_timers(slice);
        (self.settled, self.stretch) = (false, Stretch::default());
        let mut told = self.down.settle()?;
        let begin = self.down.now();
        let end = begin + slice.span;
        let mut mark = self.mark(begin, told.tally.packets);
        let (origin, first) = (told, mark);
        let ended = loop {
            let until = (mark.at + defaults::STREAM_WINDOW).min(end);
            let ran = self.down.run(until, stop);
            self.tell_sent(slice, &mut told, self.down.last().copied());
            self.tell_counted(slice, &mut mark, told.tally.packets);
            if ran.is_err() || mark.at >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        let last = ended.and_then(|()| self.down.settle());
        self.settled = last.is_ok();
        self.tell_sent(slice, &mut told, last.as_ref().ok().copied());
        self.tell_counted(slice, &mut mark, told.tally.packets);
        self.stretch = Stretch {
            sent: told.tally.packets.saturating_sub(origin.tally.packets),
            delivered: mark.counts.packets.saturating_sub(first.counts.packets),
            sending: told.tally.at - origin.tally.at,
            counting: mark.at - first.at,
        };
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            _ => Ok(()),
        }
    }

    fn mark(&self, at: Stamp<SenderClock>, sent: u64) -> Mark {
        let drops = self.down.transport().socket_drops();
        Mark { at, counts: self.down.counts(), sent, drops, cpu: thread_cpu_time() }
    }

    /// Writes down what the far end sent since `since`, which moves on, where something new is known.
    fn tell_sent(&mut self, slice: &FlowSlice<'_>, since: &mut DownPoint, last: Option<DownPoint>) {
        let Some(now) = last.filter(|last| last.tally.number > since.tally.number) else { return };
        let from = std::mem::replace(since, now).tally;
        let now = now.tally;
        let packets = now.packets.saturating_sub(from.packets);
        let interval = StreamInterval {
            flow: 0,
            phase: slice.phase,
            start_ns: from.at.as_nanos(),
            end_ns: now.at.as_nanos(),
            cpu: from.cpu.zip(now.cpu).map(|(from, now)| now - from),
            seen: Seen::Offered { packets, refused: 0, skipped: 0 },
        };
        tell(&mut self.log, slice, interval);
    }

    /// Writes down what arrived since `mark`, which moves on; by now the far end has told of `sent` packets.
    fn tell_counted(&mut self, slice: &FlowSlice<'_>, mark: &mut Mark, sent: u64) {
        let now = self.mark(self.down.now(), sent);
        let since = std::mem::replace(mark, now);
        let gone = |what: fn(&DownCounts) -> u64| what(&now.counts).saturating_sub(what(&since.counts));
        let narrow = |what| u32::try_from(gone(what)).unwrap_or(u32::MAX);
        // Counted modulo 2^32.
        let drops = since.drops.zip(now.drops);
        let interval = StreamInterval {
            flow: 0,
            phase: slice.phase,
            start_ns: since.at.as_nanos(),
            end_ns: now.at.as_nanos(),
            cpu: Some(now.cpu - since.cpu),
            seen: Seen::Counted {
                polled: now.sent.saturating_sub(since.sent),
                delivered: gone(|counts| counts.packets),
                reordered: narrow(|counts| counts.reordered),
                duplicates: narrow(|counts| counts.seen_before),
                outside_window: narrow(|counts| counts.left_window),
                socket_drops: drops.map(|(from, now)| (now as u32).wrapping_sub(from as u32)),
            },
        };
        tell(&mut self.log, slice, interval);
    }
}
