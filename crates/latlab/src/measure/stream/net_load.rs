//! A network load from beginning to end: a session, the rate without loss where a share of it was asked for, the
//! stream, the report. Runs in a process of its own, started by [`crate::session::NetLoad`].

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::meter::{MeterPoint, StreamMeter};
use super::rate_search::{RateSearch, RateTrialResult, SearchStep, TRIAL};
use super::sender::{StreamError, StreamSender};
use super::token_schedule::TokenSchedule;
use crate::clock::{Clock, Monotonic};
use crate::facts::StreamReport;
use crate::measure::MeasureError;
use crate::plan::{Pace, PathSpec, Schedule, StreamSpec, defaults};
use crate::session::{self, NetLoadRequest, PreSharedKey, SessionError, SessionParams, UpStream, random_bytes};
use crate::transport::{BurstTransport, PathTransport, UdpTransport, WaitStrategy};
use crate::units::{Nanos, SenderClock, Stamp};

/// Never: the end of a stream that is told when to end.
const NEVER: Stamp<SenderClock> = Stamp::from_nanos(i64::MAX);
/// A load has begun when it has run for so long: a window has been counted, and every queue has seen it.
const BEGUN: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3 / 2);

/// A load that was held until it was told to end, or broke off.
#[derive(Debug)]
pub struct NetLoadOutcome {
    /// What was sent and what arrived.
    pub report: StreamReport,
    /// Why it broke off.
    pub failure: Option<MeasureError>,
}

/// What a load is told while it runs.
#[derive(Debug, Default)]
pub struct NetLoadCommands {
    /// From now on its figures count; without this word they count from when the load was there. Set with `end` too.
    pub begin: AtomicBool,
    /// End.
    pub end: AtomicBool,
}

impl NetLoadCommands {
    /// The load's figures begin.
    pub fn say_begin(&self) {
        self.begin.store(true, Ordering::Relaxed);
    }

    /// The load ends.
    pub fn say_end(&self) {
        self.end.store(true, Ordering::Relaxed);
        self.begin.store(true, Ordering::Relaxed);
    }
}

/// Makes the load that `order` asks for and holds it until it is told to end; `begun` is called when it is there, with
/// the rate that was searched for. None: it was told to end before that.
///
/// # Errors
/// Nobody counts, the socket breaks, or no rate passes without loss.
pub fn run_net_load(
    order: &NetLoadRequest,
    key: Option<&PreSharedKey>,
    words: &NetLoadCommands,
    begun: impl FnOnce(Option<f64>) -> Result<(), MeasureError>,
) -> Result<Option<NetLoadOutcome>, MeasureError> {
    let mut load = match Load::open(order, key, &words.end) {
        Err(MeasureError::Session(SessionError::Interrupted { .. })) => return Ok(None),
        opened => opened?,
    };
    let outcome = load.prepare(&words.end).and_then(|pace| match pace {
        Some(pace) => load.hold(pace, words, begun),
        None => Ok(None),
    });
    load.stream.close();
    outcome
}

/// The part of a load that its figures are about.
struct LoadInterval {
    meter: StreamMeter,
    refused: u64,
    skipped: u64,
}

/// A pace in packets, settled; none: as fast as sends go.
type PacketsPerSecond = Option<f64>;

struct Load<T, C> {
    stream: StreamSender<T, C>,
    spec: StreamSpec,
    peer: SocketAddr,
    size_bytes: u32,
    packet_bits: u64,
    offered_bps: Option<f64>,
    searched_bps: Option<f64>,
    search_trials: u32,
}

impl Load<UdpTransport, Monotonic> {
    fn open(order: &NetLoadRequest, key: Option<&PreSharedKey>, stop: &AtomicBool) -> Result<Self, MeasureError> {
        let spec = order.stream.clone();
        let waiting = if spec.spin { WaitStrategy::Spin } else { WaitStrategy::Until { busy_poll: false } };
        // The port is the run's own; the load has another.
        let path = PathSpec { source_port: None, ..order.path.clone() };
        let mut transport = UdpTransport::open(&path, order.peer, waiting)?;
        let size_bytes = spec.size_on(transport.path().unfragmented_bytes);
        let (peer, second) = (order.peer.to_string(), Nanos::from_secs(1));
        let params = SessionParams::new(peer, random_bytes()?, size_bytes, Schedule::Closed, order.lasting_ns, second);
        let opened = session::open(&mut transport, &Monotonic, key, &params, stop)?;
        let packet_bits = spec.packet_bits(size_bytes, order.peer.is_ipv6());
        let stream = StreamSender::new(transport, Monotonic, UpStream::new(opened));
        let peer = order.peer;
        let (offered_bps, searched_bps) = (None, None);
        Ok(Load { stream, spec, peer, size_bytes, packet_bits, offered_bps, searched_bps, search_trials: 0 })
    }
}

impl<T: BurstTransport, C: Clock> Load<T, C> {
    /// Sees that somebody counts, and settles the pace; none where it was told to end meanwhile.
    fn prepare(&mut self, stop: &AtomicBool) -> Result<Option<PacketsPerSecond>, MeasureError> {
        let mut meter = StreamMeter::new(self.stream.now());
        self.stream.settle(&mut meter).map_err(|error| match error {
            StreamError::Silent { .. } => MeasureError::StreamUncounted { peer: self.peer.to_string() },
            error => MeasureError::of_stream(error, self.peer),
        })?;
        let packet_bits = self.packet_bits as f64;
        let pace = match self.spec.pace {
            Pace::Rate { bps } => Some(bps as f64 / packet_bits),
            Pace::Packets { pps } => Some(pps as f64),
            Pace::Max => None,
            Pace::Share { share } => {
                let Some(found) = self.search(stop)? else { return Ok(None) };
                self.searched_bps = Some(found * packet_bits);
                Some(found * share)
            }
        };
        self.offered_bps = match self.spec.pace {
            Pace::Rate { bps } => Some(bps as f64),
            _ => pace.map(|pps| pps * packet_bits),
        };
        Ok(Some(pace))
    }

    fn search(&mut self, stop: &AtomicBool) -> Result<Option<f64>, MeasureError> {
        let mut search = RateSearch::new(self.stream.now());
        loop {
            let asked_pps = match search.step(self.stream.now()) {
                SearchStep::Found(pps) => return Ok(Some(pps)),
                SearchStep::Nothing => return Err(MeasureError::NoCleanRate { peer: self.peer.to_string() }),
                SearchStep::Try(asked_pps) => asked_pps,
            };
            let trial = self.attempt(asked_pps, stop).map_err(|error| MeasureError::of_stream(error, self.peer))?;
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            search.learn(&trial);
            self.search_trials = search.trials();
        }
    }

    fn attempt(&mut self, asked_pps: PacketsPerSecond, stop: &AtomicBool) -> Result<RateTrialResult, StreamError> {
        let mut meter = StreamMeter::new(self.stream.now());
        let before = self.stream.settle(&mut meter)?;
        let begin = self.stream.now();
        self.stream.run(&mut schedule(begin, asked_pps), &mut meter, begin + TRIAL, stop)?;
        let end = self.stream.now();
        // A fresh meter: its first POLL leaves at once, behind the last packet.
        let sending = end - begin;
        let sent = self.stream.sent_and_refused().0 - before.sent.packets;
        let (arriving, delivered) = match self.stream.settle(&mut StreamMeter::new(end)) {
            // On the reflector's clock, but for the wait before the first packet: two spans, not two instants.
            Ok(after) => (
                after.tally.at - before.tally.at - (begin - before.sent.at),
                after.tally.packets.saturating_sub(before.tally.packets),
            ),
            // So much is under way that no POLL comes through within a second: far too much.
            Err(StreamError::Silent { .. }) => (sending, 0),
            Err(error) => return Err(error),
        };
        Ok(RateTrialResult { asked_pps, sending, arriving, sent, delivered })
    }

    fn hold(
        &mut self,
        pace: PacketsPerSecond,
        words: &NetLoadCommands,
        begun: impl FnOnce(Option<f64>) -> Result<(), MeasureError>,
    ) -> Result<Option<NetLoadOutcome>, MeasureError> {
        let peer = self.peer;
        let failed = |error| MeasureError::of_stream(error, peer);
        let begin = self.stream.now();
        let mut schedule = schedule(begin, pace);
        let mut meter = StreamMeter::new(begin);
        self.stream.run(&mut schedule, &mut meter, begin + BEGUN, &words.end).map_err(failed)?;
        begun(self.searched_bps)?;
        let mut stretch = self.stretch(&schedule);
        let mut ended = self.stream.run(&mut schedule, &mut stretch.meter, NEVER, &words.begin);
        if ended.is_ok() && !words.end.load(Ordering::Relaxed) {
            stretch = self.stretch(&schedule);
            ended = self.stream.run(&mut schedule, &mut stretch.meter, NEVER, &words.end);
        }
        let failure = ended.err().map(failed);
        // A meter of its own: nothing is sent any more, and that is no window of the load. Where nobody answers the last
        // tally stands.
        let last = match failure {
            None => self.stream.settle(&mut StreamMeter::new(self.stream.now())).ok(),
            Some(_) => None,
        };
        Ok(Some(NetLoadOutcome { report: self.report(&stretch, &schedule, last), failure }))
    }

    /// A stretch that begins now.
    fn stretch(&self, schedule: &TokenSchedule) -> LoadInterval {
        let refused = self.stream.sent_and_refused().1;
        LoadInterval { meter: StreamMeter::new(self.stream.now()), refused, skipped: schedule.skipped() }
    }

    /// What both ends say of the time from the first to the last tally.
    fn report(&self, stretch: &LoadInterval, schedule: &TokenSchedule, last: Option<MeterPoint>) -> StreamReport {
        let meter = &stretch.meter;
        let span = meter.origin().copied().zip(last.or(meter.last().copied()));
        let rates = meter.rates(self.packet_bits);
        let gone = |what: fn(&MeterPoint) -> u64| span.map_or(0, |(from, to)| what(&to).saturating_sub(what(&from)));
        let sent_packets = gone(|point| point.sent.packets);
        let delivered_packets = gone(|point| point.tally.packets);
        let arrived_late = gone(|point| point.tally.left_window);
        StreamReport {
            size_bytes: self.size_bytes,
            wire: self.spec.wire,
            offered_bps: self.offered_bps,
            searched_bps: self.searched_bps,
            search_trials: self.search_trials,
            sent: rates.map(|(sent, _)| sent),
            delivered: rates.map(|(_, delivered)| delivered),
            windows: meter.windows(),
            measured_ns: meter.measured(),
            sent_packets,
            skipped_packets: schedule.skipped() - stretch.skipped,
            refused_packets: self.stream.sent_and_refused().1 - stretch.refused,
            delivered_packets,
            lost_packets: sent_packets.saturating_sub(delivered_packets + arrived_late),
            reordered_packets: gone(|point| point.tally.reordered),
            duplicate_packets: gone(|point| point.tally.seen_before),
            socket_drops: span.and_then(|(from, to)| {
                Some(u64::from((to.tally.socket_drops? as u32).wrapping_sub(from.tally.socket_drops? as u32)))
            }),
        }
    }
}

/// Thousandths of a packet are fine enough: at 1 packet a second the last digit is 1 s in 1,000.
fn schedule(begin: Stamp<SenderClock>, pace: PacketsPerSecond) -> TokenSchedule {
    match pace {
        Some(pps) => TokenSchedule::new(begin, 1_000, (pps * 1_000.0).round().max(1.0) as u64),
        None => TokenSchedule::at_will(begin),
    }
}

#[cfg(test)]
mod tests;
