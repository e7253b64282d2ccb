//! One flow of a stream run, which has a session and a socket of its own, and a thread during each slice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::down_intervals::{CountingCost, DownIntervals, DownRow};
use super::down_receiver::{DownReceiver, TallyPoint};
use super::meter::{FlowCounts, MeterPoint};
use super::sender::{Awaiting, StreamError, StreamSender};
use super::token_schedule::TokenSchedule;
use crate::clock::{Clock, Monotonic, thread_cpu_time};
use crate::facts::{ConnectionFacts, DdsFacts, IntervalCounts, StreamInterval, XdpFacts};
use crate::measure::LiveProgress;
use crate::plan::defaults;
use crate::probe::Phase;
use crate::recording::EventLog;
use crate::recording::SpoolEvent;
use crate::transport::{BurstTransport, PathTransport, Transport};
use crate::units::{Nanos, SenderClock, Stamp};

/// An open flow in either direction. It records the intervals of both ends; those of the peer are in TALLYs.
pub(super) trait StreamFlow: Send {
    /// Sends or receives for a slice, or until `stop`. Sends a POLL before the first packet and after the last one, so that
    /// both ends count the same packets.
    ///
    /// # Errors
    /// The socket failed, or the peer does not answer.
    fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError>;

    /// Sends no packets for `span`, or until `stop`, but a POLL at intervals to see whether the receiver answers. Records
    /// nothing. Sleeps in between in every wait mode, so that concurrent probes are measured on an idle host.
    ///
    /// # Errors
    /// As [`StreamFlow::run`].
    fn pause(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), StreamError>;

    /// Whether both ends have counted all packets of the last slice.
    fn is_settled(&self) -> bool;

    /// The counts of the last slice.
    fn counts(&self) -> FlowCounts;

    /// Whether each drop at the receiver's socket may be many packets.
    fn drops_are_merged(&self) -> bool;

    /// Closes the session, unless the peer `is_gone` or did not answer at the end of the last slice: a reflector discards
    /// idle sessions by itself.
    fn close(self: Box<Self>, is_gone: bool) -> FlowEnd;
}

#[derive(Clone, Copy)]
pub(super) struct FlowSlice<'a> {
    /// Whether its packets count as measured.
    pub phase: Phase,
    pub span: Nanos,
    /// Packets a second of each flow; `None`: as fast as possible.
    pub packets_per_second: Option<f64>,
    pub size_bytes: u32,
    /// The most packets between two reads of the clock.
    pub burst_packets: u16,
    /// The answer that the POLL before the first packet awaits.
    pub before: Awaiting,
    /// The answer that all later POLLs await.
    pub after: Awaiting,
    /// Counts to update for a display.
    pub live: Option<&'a LiveProgress>,
}

impl FlowSlice<'_> {
    /// Records `interval` and adds it to the displayed counts.
    fn record(&self, log: &mut EventLog, interval: StreamInterval) {
        if let Some(live) = self.live {
            live.add(&interval, self.size_bytes);
        }
        log.push(SpoolEvent::Interval(interval));
    }
}

/// The results of a closed flow.
pub(super) struct FlowEnd {
    /// Errors of earlier datagrams that the socket reported; empty if the session was not closed.
    pub errors: BTreeMap<String, u64>,
    /// Facts of its connection; `None` for datagrams, and for a connection that failed.
    pub connection: Option<ConnectionFacts>,
    /// Facts of its participant; `None` unless it is over DDS.
    pub dds: Option<DdsFacts>,
    pub xdp: Option<XdpFacts>,
    pub log: EventLog,
}

impl FlowEnd {
    fn of(transport: Option<impl Transport>, log: EventLog) -> FlowEnd {
        let report = transport.map(|transport| transport.report()).unwrap_or_default();
        FlowEnd { errors: report.socket_errors, connection: report.connection, dds: report.dds, xdp: report.xdp, log }
    }
}

pub(super) struct UpFlow<T, C> {
    number: u16,
    stream: StreamSender<T, C>,
    log: EventLog,
    settled: bool,
    counts: FlowCounts,
    drops_are_merged: bool,
}

/// The state of the sender at the begin of an interval.
#[derive(Clone, Copy)]
struct SenderMark {
    at: Stamp<SenderClock>,
    sent: u64,
    refused: u64,
    skipped: u64,
    cpu: Nanos,
}

impl<T: BurstTransport, C: Clock> UpFlow<T, C> {
    /// Flow `number`, which records to `log`.
    pub(super) fn new(number: u16, stream: StreamSender<T, C>, log: EventLog) -> UpFlow<T, C> {
        UpFlow { number, stream, log, settled: true, counts: FlowCounts::default(), drops_are_merged: false }
    }

    fn mark(&self, at: Stamp<SenderClock>, schedule: &TokenSchedule) -> SenderMark {
        let (sent, refused) = self.stream.sent_and_refused();
        SenderMark { at, sent, refused, skipped: schedule.skipped(), cpu: thread_cpu_time() }
    }

    /// Records the sent packets since `mark`, and advances it.
    fn record_offered(&mut self, slice: &FlowSlice<'_>, mark: &mut SenderMark, schedule: &TokenSchedule) {
        let now = self.mark(self.stream.now(), schedule);
        let since = std::mem::replace(mark, now);
        let interval = StreamInterval {
            flow: self.number,
            phase: slice.phase,
            start_ns: since.at.as_nanos(),
            end_ns: now.at.as_nanos(),
            cpu: Some(now.cpu - since.cpu),
            seen: IntervalCounts::Offered {
                packets: now.sent - since.sent,
                refused: now.refused - since.refused,
                skipped: now.skipped - since.skipped,
            },
        };
        slice.record(&mut self.log, interval);
    }

    /// Records the counted packets since `since`, and advances it, if there is a newer TALLY.
    fn record_counted(&mut self, slice: &FlowSlice<'_>, since: &mut MeterPoint, last: Option<&MeterPoint>) {
        let Some(now) = last.copied().filter(|last| last.tally.number > since.tally.number) else { return };
        let from = std::mem::replace(since, now);
        let more = |count: fn(&MeterPoint) -> u64| count(&now).saturating_sub(count(&from));
        let narrow = |count| u32::try_from(more(count)).unwrap_or(u32::MAX);
        // All flows share the receiver's socket and thread.
        let is_first = self.number == 0;
        self.drops_are_merged |= now.tally.drops_merged;
        let drops = from.tally.socket_drops.zip(now.tally.socket_drops).filter(|_| is_first);
        let interval = StreamInterval {
            flow: self.number,
            phase: slice.phase,
            start_ns: from.tally.at.as_nanos(),
            end_ns: now.tally.at.as_nanos(),
            cpu: from.tally.cpu.zip(now.tally.cpu).filter(|_| is_first).map(|(from, now)| now - from),
            seen: IntervalCounts::Counted {
                polled: more(|point| point.sent.packets),
                delivered: more(|point| point.tally.packets),
                reordered: narrow(|point| point.tally.reordered),
                duplicates: narrow(|point| point.tally.seen_before),
                outside_window: narrow(|point| point.tally.left_window),
                // Counted modulo 2^32.
                socket_drops: drops.map(|(from, now)| (now as u32).wrapping_sub(from as u32)),
            },
        };
        slice.record(&mut self.log, interval);
    }
}

impl<T: PathTransport, C: Clock + Send> StreamFlow for UpFlow<T, C> {
    fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        self.stream.wait_as(slice.before);
        let mut meter = self.stream.meter();
        (self.settled, self.counts) = (false, FlowCounts::default());
        let mut counted = self.stream.settle_unless(stop, &mut meter)?;
        self.stream.wait_as(slice.after);
        let origin = counted;
        let begin = self.stream.now();
        let end = begin + slice.span;
        let mut schedule = TokenSchedule::at_rate(begin, slice.packets_per_second).in_bursts_of(slice.burst_packets);
        let mut mark = self.mark(begin, &schedule);
        let ended = loop {
            let until = (mark.at + defaults::STREAM_WINDOW).min(end);
            let ran = self.stream.run(&mut schedule, &mut meter, until, stop);
            self.record_offered(slice, &mut mark, &schedule);
            self.record_counted(slice, &mut counted, meter.last());
            if ran.is_err() || mark.at >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        // A new meter, whose first POLL is sent at once, after the last packet.
        let mut meter = meter.after_last_packet(self.stream.now());
        let last = ended.and_then(|()| self.stream.settle_unless(stop, &mut meter));
        self.settled = last.is_ok();
        self.record_counted(slice, &mut counted, meter.last());
        // Time spans on two clocks, without comparing their instants: the pause before the first packet is the sender's.
        self.counts = FlowCounts {
            sent: mark.sent - origin.sent.packets,
            delivered: counted.tally.packets.saturating_sub(origin.tally.packets),
            sending: mark.at - begin,
            counting: counted.tally.at - origin.tally.at - (begin - origin.sent.at),
        };
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            // In a run that was ended early packets in flight stay uncounted.
            _ => Ok(()),
        }
    }

    fn pause(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), StreamError> {
        self.stream.wait_as(awaiting);
        let mut meter = self.stream.meter();
        (self.settled, self.counts) = (false, FlowCounts::default());
        let mut poll_at = self.stream.now();
        let end = poll_at + span;
        while !stop.load(Ordering::Relaxed) {
            let now = self.stream.now();
            if now >= end {
                break;
            }
            if now >= poll_at {
                // Without an answer by the end the next slice sends a POLL again.
                self.stream.ask(&mut meter, end, stop)?;
                poll_at = now + defaults::SEARCH_ASKS_EVERY;
            } else {
                thread::sleep(defaults::NAP.min(poll_at - now).min(end - now).to_duration());
            }
        }
        self.settled = true;
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.settled
    }

    fn counts(&self) -> FlowCounts {
        self.counts
    }

    fn drops_are_merged(&self) -> bool {
        self.drops_are_merged
    }

    fn close(self: Box<Self>, is_gone: bool) -> FlowEnd {
        let UpFlow { stream, settled, log, .. } = *self;
        FlowEnd::of((settled && !is_gone).then(|| stream.close()), log)
    }
}

/// A down-flow, which the reflector sends within the credit that this end grants. The intervals of the sender are in TALLYs;
/// this end counts those of the receiver.
pub(super) struct DownFlow<T> {
    receiver: DownReceiver<T, Monotonic>,
    log: EventLog,
    settled: bool,
    counts: FlowCounts,
}

impl<T: Transport> DownFlow<T> {
    /// A flow that records to `log`.
    pub(super) fn new(receiver: DownReceiver<T, Monotonic>, log: EventLog) -> DownFlow<T> {
        DownFlow { receiver, log, settled: true, counts: FlowCounts::default() }
    }

    fn cost(&self) -> CountingCost {
        CountingCost { drops: self.receiver.transport().report().socket_drops, cpu: thread_cpu_time() }
    }

    /// Records the intervals of both ends up to the latest TALLY; if more `is_to_follow`, only when an interval is complete.
    fn record_latest(&mut self, slice: &FlowSlice<'_>, intervals: &mut DownIntervals, is_to_follow: bool) {
        let Some(latest) = self.receiver.last().copied() else { return };
        let rows = intervals.up_to(latest, self.cost(), self.receiver.came(), is_to_follow);
        rows.into_iter().flatten().for_each(|row| self.record(slice, row));
    }

    fn record(&mut self, slice: &FlowSlice<'_>, row: DownRow) {
        let DownRow { start_ns, end_ns, cpu, seen } = row;
        slice.record(&mut self.log, StreamInterval { flow: 0, phase: slice.phase, start_ns, end_ns, cpu, seen });
    }
}

impl<T: Transport + Send> StreamFlow for DownFlow<T> {
    /// Sends a POLL before the first credit and after the last one. The time before the first packet and after the last one
    /// is in no interval.
    fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        (self.settled, self.counts) = (false, FlowCounts::default());
        let ready = self.receiver.ready()?;
        let ready = TallyPoint { tally: self.receiver.last().map_or(ready.tally, |last| last.tally), ..ready };
        let begin = self.receiver.now();
        let end = begin + slice.span;
        let most = self.receiver.begin(begin, slice.span, ready.tally.packets, slice.packets_per_second.is_some());
        let mut intervals = DownIntervals::new(self.receiver.gap(), most, begin, ready, self.cost());
        let ended = loop {
            let ran = self.receiver.run(intervals.due(), end, stop);
            self.record_latest(slice, &mut intervals, true);
            if ran.is_err() || self.receiver.now() >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        let last = ended.and_then(|()| self.receiver.settle());
        self.settled = last.is_ok();
        match &last {
            Ok(last) => {
                let rows = intervals.last(*last, self.cost(), self.receiver.came(), self.receiver.now());
                rows.into_iter().flatten().for_each(|row| self.record(slice, row));
            }
            Err(_) => self.record_latest(slice, &mut intervals, false),
        }
        self.counts = intervals.totals();
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            _ => Ok(()),
        }
    }

    /// Never called: rates of down-streams cannot be searched for.
    fn pause(&mut self, _: Nanos, _: Awaiting, _: &AtomicBool) -> Result<(), StreamError> {
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.settled
    }

    fn counts(&self) -> FlowCounts {
        self.counts
    }

    fn drops_are_merged(&self) -> bool {
        false
    }

    fn close(self: Box<Self>, is_gone: bool) -> FlowEnd {
        let DownFlow { receiver, settled, log, .. } = *self;
        FlowEnd::of((settled && !is_gone).then(|| receiver.close()), log)
    }
}
