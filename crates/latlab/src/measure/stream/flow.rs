//! One flow of a stream run: a session and a socket of its own, measured by a thread of its own, slice by slice.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::down_intervals::{CountingCost, DownRow, DownRows};
use super::down_receiver::{DownReceiver, TallyPoint};
use super::meter::MeterPoint;
use super::sender::{Awaiting, StreamError, StreamSender};
use super::token_schedule::TokenSchedule;
use crate::clock::{Clock, Monotonic, thread_cpu_time};
use crate::facts::{IntervalCounts, StreamInterval};
use crate::measure::LiveRates;
use crate::plan::defaults;
use crate::probe::Phase;
use crate::recording::EventLog;
use crate::recording::SpoolEvent;
use crate::transport::{BurstTransport, Transport};
use crate::units::{Nanos, SenderClock, Stamp};

/// A sleep ends when it shall, not up to the usual 50 µs later: packets would clump.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// One flow, open.
pub(crate) struct Flow<T, C> {
    number: u16,
    stream: StreamSender<T, C>,
    log: EventLog,
    /// Whether the last slice ended with a count of all that was sent.
    settled: bool,
    /// What the last slice came to.
    stretch: FlowCounts,
    /// The receiver's kernel counts what its socket drops in merged buffers.
    drops_are_merged: bool,
}

/// What all flows do in one slice.
#[derive(Clone, Copy)]
pub(crate) struct FlowSlice<'a> {
    /// Whether it counts.
    pub(crate) phase: Phase,
    /// How long packets are sent.
    pub(crate) span: Nanos,
    /// Packets a second of each flow; none: as fast as sends go.
    pub(crate) packets_per_second: Option<f64>,
    /// UDP payload of each packet.
    pub(crate) size_bytes: u32,
    /// Packets between two looks at the clock at most.
    pub(crate) burst_packets: u16,
    /// Timers are as exact as the kernel can, unless the run set their slack itself.
    pub(crate) exact_timers: bool,
    /// What the question before the first packet waits for.
    pub(crate) before: Awaiting,
    /// What all others wait for.
    pub(crate) behind: Awaiting,
    /// Who watches.
    pub(crate) live: Option<&'a LiveRates>,
}

/// What a slice of a flow came to, told by both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowCounts {
    /// Packets that left.
    pub(crate) sent: u64,
    /// Packets that had arrived when the last question was answered.
    pub(crate) delivered: u64,
    /// How long sending took, on the sender's clock.
    pub(crate) sending: Nanos,
    /// From the first answer to the last, less the pause before the first packet, on the receiver's clock.
    pub(crate) counting: Nanos,
}

/// Where the sender stood when its interval began.
#[derive(Clone, Copy)]
struct Mark {
    at: Stamp<SenderClock>,
    sent: u64,
    refused: u64,
    skipped: u64,
    cpu: Nanos,
}

impl<T: BurstTransport, C: Clock> Flow<T, C> {
    /// Flow `number`, which tells `log` what it sees.
    pub(crate) fn new(number: u16, stream: StreamSender<T, C>, log: EventLog) -> Flow<T, C> {
        Flow { number, stream, log, settled: true, stretch: FlowCounts::default(), drops_are_merged: false }
    }

    /// Whether each drop at the receiver's socket may be many packets.
    pub(crate) fn drops_are_merged(&self) -> bool {
        self.drops_are_merged
    }

    /// Whether all that it sent was counted in the end.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// What the last slice came to.
    pub(crate) fn stretch(&self) -> FlowCounts {
        self.stretch
    }

    /// SessionSender the session, unless its reflector `is_gone` or has fallen silent: it forgets sessions by itself, and nobody waits
    /// for it.
    pub(crate) fn close(self, is_gone: bool) -> (Option<T>, EventLog) {
        ((self.settled && !is_gone).then(|| self.stream.close()), self.log)
    }

    /// Sends for a slice, or until `stop`, and writes down each interval of both ends. The receiver is asked before the
    /// first packet and after the last one, so that both ends have counted the same packets.
    ///
    /// # Errors
    /// The socket broke, or nobody says any more what arrives.
    pub(crate) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        set_exact_timers(slice);
        self.stream.wait_as(slice.before);
        let mut meter = self.stream.meter();
        (self.settled, self.stretch) = (false, FlowCounts::default());
        let mut counted = self.stream.settle_unless(stop, &mut meter)?;
        self.stream.wait_as(slice.behind);
        let origin = counted;
        let begin = self.stream.now();
        let end = begin + slice.span;
        let mut schedule = token_schedule(begin, slice.packets_per_second).in_bursts_of(slice.burst_packets);
        let mut mark = self.mark(begin, &schedule);
        let ended = loop {
            let until = (mark.at + defaults::STREAM_WINDOW).min(end);
            let ran = self.stream.run(&mut schedule, &mut meter, until, stop);
            self.tell_offered(slice, &mut mark, &schedule);
            self.tell_counted(slice, &mut counted, meter.last());
            if ran.is_err() || mark.at >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        // A meter of its own: its first question leaves at once, behind the last packet.
        let mut meter = meter.behind_the_last(self.stream.now());
        let last = ended.and_then(|()| self.stream.settle_unless(stop, &mut meter));
        self.settled = last.is_ok();
        self.tell_counted(slice, &mut counted, meter.last());
        // Spans of two clocks, and no instants of them: the pause before the first packet is the sender's.
        self.stretch = FlowCounts {
            sent: mark.sent - origin.sent.packets,
            delivered: counted.tally.packets.saturating_sub(origin.tally.packets),
            sending: mark.at - begin,
            counting: counted.tally.at - origin.tally.at - (begin - origin.sent.at),
        };
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            // Whoever ends a run early has to live with what is still under way; so does who finds its target gone.
            _ => Ok(()),
        }
    }

    /// Sends nothing for a while, or until `stop`, and asks now and then whether the receiver is still there. Nothing of it is
    /// written down. In between it sleeps, however a stream waits: what is measured beside it is an idle host.
    ///
    /// # Errors
    /// The socket broke, or nobody answers.
    pub(crate) fn rest(&mut self, span: Nanos, awaiting: Awaiting, stop: &AtomicBool) -> Result<(), StreamError> {
        self.stream.wait_as(awaiting);
        let mut meter = self.stream.meter();
        (self.settled, self.stretch) = (false, FlowCounts::default());
        let mut ask_at = self.stream.now();
        let end = ask_at + span;
        while !stop.load(Ordering::Relaxed) {
            let now = self.stream.now();
            if now >= end {
                break;
            }
            if now >= ask_at {
                // Where no answer comes by the end, what follows asks again.
                self.stream.ask(&mut meter, end, stop)?;
                ask_at = now + defaults::SEARCH_ASKS_EVERY;
            } else {
                thread::sleep(defaults::NAP.min(ask_at - now).min(end - now).to_duration());
            }
        }
        self.settled = true;
        Ok(())
    }

    fn mark(&self, at: Stamp<SenderClock>, schedule: &TokenSchedule) -> Mark {
        let (sent, refused) = self.stream.sent_and_refused();
        Mark { at, sent, refused, skipped: schedule.skipped(), cpu: thread_cpu_time() }
    }

    /// Writes down what was sent since `mark`, which moves on.
    fn tell_offered(&mut self, slice: &FlowSlice<'_>, mark: &mut Mark, schedule: &TokenSchedule) {
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
        tell(&mut self.log, slice, interval);
    }

    /// Writes down what was counted since `since`, which moves on, where something new is known.
    fn tell_counted(&mut self, slice: &FlowSlice<'_>, since: &mut MeterPoint, last: Option<&MeterPoint>) {
        let Some(now) = last.copied().filter(|last| last.tally.number > since.tally.number) else { return };
        let from = std::mem::replace(since, now);
        let gone = |what: fn(&MeterPoint) -> u64| what(&now).saturating_sub(what(&from));
        let narrow = |what| u32::try_from(gone(what)).unwrap_or(u32::MAX);
        // The socket and the thread behind it are common to all flows.
        let first = self.number == 0;
        self.drops_are_merged |= now.tally.drops_merged;
        let drops = from.tally.socket_drops.zip(now.tally.socket_drops).filter(|_| first);
        let interval = StreamInterval {
            flow: self.number,
            phase: slice.phase,
            start_ns: from.tally.at.as_nanos(),
            end_ns: now.tally.at.as_nanos(),
            cpu: from.tally.cpu.zip(now.tally.cpu).filter(|_| first).map(|(from, now)| now - from),
            seen: IntervalCounts::Counted {
                polled: gone(|point| point.sent.packets),
                delivered: gone(|point| point.tally.packets),
                reordered: narrow(|point| point.tally.reordered),
                duplicates: narrow(|point| point.tally.seen_before),
                outside_window: narrow(|point| point.tally.left_window),
                // Counted modulo 2^32.
                socket_drops: drops.map(|(from, now)| (now as u32).wrapping_sub(from as u32)),
            },
        };
        tell(&mut self.log, slice, interval);
    }
}

/// Writes `interval` down, for whoever watches too.
pub(crate) fn tell(log: &mut EventLog, slice: &FlowSlice<'_>, interval: StreamInterval) {
    if let Some(live) = slice.live {
        live.add(&interval, slice.size_bytes);
    }
    log.push(SpoolEvent::Interval(interval));
}

/// Makes the timers of the calling thread exact, where `slice` asks for it. Where that cannot be had the stream is a little
/// less even, and no less true.
pub(crate) fn set_exact_timers(slice: &FlowSlice<'_>) {
    if slice.exact_timers {
        let _ = rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS));
    }
}

/// Thousandths of a packet are fine enough: at 1 packet a second the last digit is 1 s in 1,000.
fn token_schedule(begin: Stamp<SenderClock>, packets_per_second: Option<f64>) -> TokenSchedule {
    match packets_per_second {
        Some(pps) => TokenSchedule::new(begin, 1_000, (pps * 1_000.0).round().max(1.0) as u64),
        None => TokenSchedule::at_will(begin),
    }
}

/// The flow, open.
pub(crate) struct DownFlow<T> {
    down: DownReceiver<T, Monotonic>,
    log: EventLog,
    settled: bool,
    stretch: FlowCounts,
}

impl<T: Transport> DownFlow<T> {
    /// The flow that tells `log` what both ends see.
    pub(crate) fn new(down: DownReceiver<T, Monotonic>, log: EventLog) -> DownFlow<T> {
        DownFlow { down, log, settled: true, stretch: FlowCounts::default() }
    }

    /// Whether the far end has told all that it sent.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// What the last slice came to.
    pub(crate) fn stretch(&self) -> FlowCounts {
        self.stretch
    }

    /// SessionSender the session, unless the far end `is_gone` or has fallen silent.
    pub(crate) fn close(self, is_gone: bool) -> (Option<T>, EventLog) {
        ((self.settled && !is_gone).then(|| self.down.close()), self.log)
    }

    /// Has the far end send for a slice, or until `stop`, and writes down each interval of both ends. The far end is asked
    /// before the first credit and after the last one, so that both ends tell of the same packets. What passes before the
    /// first packet and after the last one, while nothing is sent, is in no interval.
    ///
    /// # Errors
    /// The socket broke, or the far end fell silent.
    pub(crate) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        set_exact_timers(slice);
        (self.settled, self.stretch) = (false, FlowCounts::default());
        let ready = self.down.ready()?;
        let ready = TallyPoint { tally: self.down.last().map_or(ready.tally, |last| last.tally), ..ready };
        let begin = self.down.now();
        let end = begin + slice.span;
        let most = self.down.begin(begin, slice.span, ready.tally.packets, slice.packets_per_second.is_some());
        let mut rows = DownRows::new((self.down.gap(), most), begin, ready, self.cost());
        let ended = loop {
            let ran = self.down.run(rows.due(), end, stop);
            self.tell_latest(slice, &mut rows, true);
            if ran.is_err() || self.down.now() >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        let last = ended.and_then(|()| self.down.settle());
        self.settled = last.is_ok();
        match &last {
            Ok(last) => {
                let told = rows.last(*last, self.cost(), self.down.came(), self.down.now());
                told.into_iter().flatten().for_each(|row| self.tell(slice, row));
            }
            Err(_) => self.tell_latest(slice, &mut rows, false),
        }
        let (sent, delivered, sending, counting) = rows.totals();
        self.stretch = FlowCounts { sent, delivered, sending, counting };
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            _ => Ok(()),
        }
    }

    fn cost(&self) -> CountingCost {
        CountingCost { drops: self.down.transport().report().socket_drops, cpu: thread_cpu_time() }
    }

    /// Writes down what both ends did until the latest TALLY, unless that comes too soon and more `is_to_follow`.
    fn tell_latest(&mut self, slice: &FlowSlice<'_>, rows: &mut DownRows, is_to_follow: bool) {
        let Some(latest) = self.down.last().copied() else { return };
        let told = rows.told(latest, self.cost(), self.down.came(), is_to_follow);
        told.into_iter().flatten().for_each(|row| self.tell(slice, row));
    }

    fn tell(&mut self, slice: &FlowSlice<'_>, row: DownRow) {
        let DownRow { start_ns, end_ns, cpu, seen } = row;
        tell(&mut self.log, slice, StreamInterval { flow: 0, phase: slice.phase, start_ns, end_ns, cpu, seen });
    }
}
