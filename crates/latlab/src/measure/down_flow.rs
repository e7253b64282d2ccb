//! The flow of a down-stream: the far end sends within the credit that this end gives, and this end counts. Its intervals
//! are those of an up-stream with the sides changed: the sender's are told in TALLYs, the receiver's are seen here.

use std::sync::atomic::{AtomicBool, Ordering};

use super::down_stream::Down;
use super::stream::StreamError;
use super::stream_flow::{FlowSlice, Stretch, set_exact_timers, tell};
use crate::clock::{Monotonic, thread_cpu_time};
use crate::facts::{Seen, StreamInterval};
use crate::plan::defaults;
use crate::recording::EventLog;
use crate::session::DownCounts;
use crate::transport::udp::UdpTransport;
use crate::units::{Nanos, ReflectorClock, SenderClock, Stamp};
use crate::wire::Tally;

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

/// What the far end told of its sending in a slice.
struct Sending {
    /// When its first packet could leave.
    origin: Tally,
    /// The latest.
    told: Tally,
    /// When what it told of was sent.
    until: Stamp<ReflectorClock>,
}

impl From<Tally> for Sending {
    fn from(tally: Tally) -> Sending {
        Sending { origin: tally, told: tally, until: tally.at }
    }
}

/// What this end counted of a slice.
struct Counting {
    origin: Mark,
    mark: Mark,
    /// No packet has come.
    is_waiting: bool,
}

impl From<Mark> for Counting {
    fn from(mark: Mark) -> Counting {
        Counting { origin: mark, mark, is_waiting: true }
    }
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
    /// before the first credit and after the last one, so that both ends tell of the same packets. What passes before the
    /// first packet and after the last one, while nothing is sent, is in no interval.
    ///
    /// # Errors
    /// The socket broke, or the far end fell silent.
    pub(super) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        set_exact_timers(slice);
        (self.settled, self.stretch) = (false, Stretch::default());
        let settled = self.down.ready()?.tally;
        let mut sending = Sending::from(self.down.last().map_or(settled, |last| last.tally));
        let begin = self.down.now();
        let end = begin + slice.span;
        self.down.begin(end, sending.origin.packets);
        let mut counting = Counting::from(self.mark(begin, sending.origin.packets));
        let ended = loop {
            let until = (self.down.now() + defaults::STREAM_WINDOW).min(end);
            let ran = self.down.run(until, stop);
            self.tell_sent(slice, &mut sending, self.down.last().map(|last| last.tally));
            let now = self.down.now();
            if ran.is_err() || now >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
            self.tell_counted(slice, &mut counting, sending.told.packets, now);
        };
        let last = ended.and_then(|()| self.down.settle());
        self.settled = last.is_ok();
        if let Ok(last) = &last {
            self.tell_last_sent(slice, &mut sending, last.tally);
        }
        let until = self.last_came(&counting);
        self.tell_counted(slice, &mut counting, sending.told.packets, until);
        self.stretch = Stretch {
            sent: sending.told.packets.saturating_sub(sending.origin.packets),
            delivered: counting.mark.counts.packets.saturating_sub(counting.origin.counts.packets),
            sending: sending.until - sending.origin.at,
            counting: counting.mark.at - counting.origin.at,
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

    /// When counting was over: a gap after the last packet came, where another would have been due. Where none came at all
    /// it lasted until now.
    fn last_came(&self, counting: &Counting) -> Stamp<SenderClock> {
        let now = self.down.now();
        let over = self.down.came().map_or(now, |(_, last)| last + self.down.gap());
        over.max(counting.mark.at).min(now)
    }

    /// Writes down what the far end sent, where something new is known. Before its first packet it waits for credit.
    fn tell_sent(&mut self, slice: &FlowSlice<'_>, sending: &mut Sending, last: Option<Tally>) {
        let Some(now) = last.filter(|last| last.number > sending.told.number) else { return };
        if now.packets == sending.origin.packets {
            *sending = Sending::from(now);
        } else {
            self.tell_sent_until(slice, sending, now, now.at);
        }
    }

    /// The same of what it sent before it was told to end: the last packet left between two TALLYs, when it was its turn at
    /// the pace of those before.
    fn tell_last_sent(&mut self, slice: &FlowSlice<'_>, sending: &mut Sending, now: Tally) {
        let (origin, told) = (sending.origin, sending.told);
        let packets = now.packets.saturating_sub(told.packets);
        if packets == 0 {
            return;
        }
        let (before, took) = (told.packets.saturating_sub(origin.packets), told.at - origin.at);
        let until = match before {
            0 => now.at,
            before => told.at + Nanos((took.0 as f64 * packets as f64 / before as f64) as i64),
        };
        self.tell_sent_until(slice, sending, now, until.min(now.at));
    }

    fn tell_sent_until(
        &mut self,
        slice: &FlowSlice<'_>,
        sending: &mut Sending,
        now: Tally,
        until: Stamp<ReflectorClock>,
    ) {
        let from = std::mem::replace(&mut sending.told, now);
        sending.until = until;
        let packets = now.packets.saturating_sub(from.packets);
        let interval = StreamInterval {
            flow: 0,
            phase: slice.phase,
            start_ns: from.at.as_nanos(),
            end_ns: until.as_nanos(),
            cpu: from.cpu.zip(now.cpu).map(|(from, now)| now - from),
            seen: Seen::Offered { packets, refused: 0, skipped: 0 },
        };
        tell(&mut self.log, slice, interval);
    }

    /// Writes down what arrived until `until`; by now the far end has told of `sent` packets. The first interval begins when
    /// the first packet was due.
    fn tell_counted(&mut self, slice: &FlowSlice<'_>, counting: &mut Counting, sent: u64, until: Stamp<SenderClock>) {
        let now = self.mark(until, sent);
        if counting.is_waiting {
            match self.down.came() {
                Some((first, _)) => {
                    let from = counting.mark.at.max(first - self.down.gap()).min(until);
                    if counting.mark.at == counting.origin.at {
                        counting.origin.at = from;
                    }
                    (counting.mark.at, counting.is_waiting) = (from, false);
                }
                None if sent == counting.mark.sent => return,
                None => {}
            }
        }
        let since = std::mem::replace(&mut counting.mark, now);
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
