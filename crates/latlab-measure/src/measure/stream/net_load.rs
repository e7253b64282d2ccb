//! A network load: opens a session, searches for the no-loss rate if a share of it is offered, sends the stream, and
//! reports. Runs in a process of its own, which [`crate::session::NetLoad`] starts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::meter::{MeterPoint, StreamMeter};
use super::rate_search::{RateSearch, RateTrialResult, SearchStep, TRIAL};
use super::sender::{StreamError, StreamSender};
use super::token_schedule::TokenSchedule;
use crate::clock::{Clock, Monotonic};
use crate::facts::StreamReport;
use crate::measure::MeasureError;
use crate::measure::run::{SessionLifetime, SessionOptions, SessionTraffic};
use crate::plan::{Pace, PathSpec, StreamSpec, defaults};
use crate::session::{NetLoadRequest, PreSharedKey, SessionError, UpStream};
use crate::transport::{BurstTransport, PathTransport, UdpTransport, WaitStrategy};
use crate::units::{Nanos, SenderClock, Stamp};

/// The end of a stream that only a command ends.
const NEVER: Stamp<SenderClock> = Stamp::from_nanos(i64::MAX);
/// The time after which a load counts as begun: a window has been counted, and the queues of the path are full.
const BEGUN: Nanos = Nanos(defaults::STREAM_WINDOW.0 * 3 / 2);

/// The result of a load that ended by its command or broke off.
#[derive(Debug)]
pub struct NetLoadOutcome {
    pub report: StreamReport,
    /// Why it broke off; `None` if it ended by its command.
    pub failure: Option<MeasureError>,
}

#[derive(Debug, Default)]
pub struct NetLoadCommands {
    /// Begins the reported interval, which without this command begins with the load. Also set with `end`.
    pub begin: AtomicBool,
    pub end: AtomicBool,
}

impl NetLoadCommands {
    pub fn set_begin(&self) {
        self.begin.store(true, Ordering::Relaxed);
    }

    pub fn set_end(&self) {
        self.end.store(true, Ordering::Relaxed);
        self.begin.store(true, Ordering::Relaxed);
    }
}

/// Holds the load of `request` until the command to end. `begun` is called when it has begun, with the rate that the search
/// found. `None` if the command to end was given before that.
///
/// # Errors
/// The reflector does not answer POLLs, the socket fails, or every rate has loss.
pub fn run_net_load(
    request: &NetLoadRequest,
    key: Option<&PreSharedKey>,
    commands: &NetLoadCommands,
    begun: impl FnOnce(Option<f64>) -> Result<(), MeasureError>,
) -> Result<Option<NetLoadOutcome>, MeasureError> {
    let mut load = match NetLoadSender::open(request, key, &commands.end) {
        Err(MeasureError::Session(SessionError::Interrupted { .. })) => return Ok(None),
        opened => opened?,
    };
    let outcome = load.settle_pace(&commands.end).and_then(|pace| match pace {
        Some(pace) => load.run(pace, commands, begun),
        None => Ok(None),
    });
    load.stream.close();
    outcome
}

struct LoadInterval {
    meter: StreamMeter,
    refused: u64,
    skipped: u64,
}

/// A pace in packets a second; `None`: as fast as possible.
type PacketsPerSecond = Option<f64>;

struct NetLoadSender<T, C> {
    stream: StreamSender<T, C>,
    spec: StreamSpec,
    peer: SocketAddr,
    size_bytes: u32,
    packet_bits: u64,
    offered_bps: Option<f64>,
    searched_bps: Option<f64>,
    search_trials: u32,
}

impl NetLoadSender<UdpTransport, Monotonic> {
    fn open(request: &NetLoadRequest, key: Option<&PreSharedKey>, stop: &AtomicBool) -> Result<Self, MeasureError> {
        let (spec, peer) = (request.stream.clone(), request.peer);
        let waiting = if spec.spin { WaitStrategy::Spin } else { WaitStrategy::Until { busy_poll: false } };
        // The source port belongs to the run.
        let path = PathSpec { source_port: None, ..request.path.clone() };
        let mut transport = UdpTransport::open(&path, peer, waiting)?;
        let size_bytes = spec.size_on(transport.path().unfragmented_bytes);
        let lifetime = SessionLifetime { duration: request.lasting_ns, idle: None };
        let options = SessionOptions { key, lifetime, xdp: None, stop };
        let session = options.open(&mut transport, SessionTraffic::packets(size_bytes))?;
        let packet_bits = spec.packet_bits(size_bytes, peer.is_ipv6());
        let stream = StreamSender::new(transport, Monotonic, UpStream::new(session));
        let (offered_bps, searched_bps) = (None, None);
        Ok(NetLoadSender { stream, spec, peer, size_bytes, packet_bits, offered_bps, searched_bps, search_trials: 0 })
    }
}

impl<T: BurstTransport, C: Clock> NetLoadSender<T, C> {
    /// Checks that the reflector answers POLLs, and determines the pace; `None` if the command to end was given meanwhile.
    fn settle_pace(&mut self, stop: &AtomicBool) -> Result<Option<PacketsPerSecond>, MeasureError> {
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
        self.stream.run(&mut TokenSchedule::at_rate(begin, asked_pps), &mut meter, begin + TRIAL, stop)?;
        let end = self.stream.now();
        // A new meter, whose first POLL is sent at once, after the last packet.
        let sending = end - begin;
        let sent = self.stream.sent_and_refused().0 - before.sent.packets;
        let (arriving, delivered) = match self.stream.settle(&mut StreamMeter::new(end)) {
            // On the reflector's clock, less the pause before the first packet: time spans on two clocks, without comparing
            // their instants.
            Ok(after) => (
                after.tally.at - before.tally.at - (begin - before.sent.at),
                after.tally.packets.saturating_sub(before.tally.packets),
            ),
            // No POLL is answered within a second, since far too many packets are queued.
            Err(StreamError::Silent { .. }) => (sending, 0),
            Err(error) => return Err(error),
        };
        Ok(RateTrialResult { asked_pps, sending, arriving, sent, delivered })
    }

    fn run(
        &mut self,
        pace: PacketsPerSecond,
        commands: &NetLoadCommands,
        begun: impl FnOnce(Option<f64>) -> Result<(), MeasureError>,
    ) -> Result<Option<NetLoadOutcome>, MeasureError> {
        let peer = self.peer;
        let failed = |error| MeasureError::of_stream(error, peer);
        let begin = self.stream.now();
        let mut schedule = TokenSchedule::at_rate(begin, pace);
        let mut meter = StreamMeter::new(begin);
        self.stream.run(&mut schedule, &mut meter, begin + BEGUN, &commands.end).map_err(failed)?;
        begun(self.searched_bps)?;
        let mut interval = self.interval(&schedule);
        let mut ended = self.stream.run(&mut schedule, &mut interval.meter, NEVER, &commands.begin);
        if ended.is_ok() && !commands.end.load(Ordering::Relaxed) {
            interval = self.interval(&schedule);
            ended = self.stream.run(&mut schedule, &mut interval.meter, NEVER, &commands.end);
        }
        let failure = ended.err().map(failed);
        // A new meter, since the time after the last packet is not a window of the load. Without an answer the last TALLY
        // is used.
        let last = match failure {
            None => self.stream.settle(&mut StreamMeter::new(self.stream.now())).ok(),
            Some(_) => None,
        };
        Ok(Some(NetLoadOutcome { report: self.report(&interval, &schedule, last), failure }))
    }

    /// A reported interval that begins now.
    fn interval(&self, schedule: &TokenSchedule) -> LoadInterval {
        let refused = self.stream.sent_and_refused().1;
        LoadInterval { meter: StreamMeter::new(self.stream.now()), refused, skipped: schedule.skipped() }
    }

    /// The counts of both ends from the first to the last TALLY.
    fn report(&self, interval: &LoadInterval, schedule: &TokenSchedule, last: Option<MeterPoint>) -> StreamReport {
        let meter = &interval.meter;
        let span = meter.origin().copied().zip(last.or(meter.last().copied()));
        let rates = meter.rates(self.packet_bits);
        let count = |of: fn(&MeterPoint) -> u64| span.map_or(0, |(from, to)| of(&to).saturating_sub(of(&from)));
        let sent_packets = count(|point| point.sent.packets);
        let delivered_packets = count(|point| point.tally.packets);
        let arrived_late = count(|point| point.tally.left_window);
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
            skipped_packets: schedule.skipped() - interval.skipped,
            refused_packets: self.stream.sent_and_refused().1 - interval.refused,
            delivered_packets,
            lost_packets: sent_packets.saturating_sub(delivered_packets + arrived_late),
            reordered_packets: count(|point| point.tally.reordered),
            duplicate_packets: count(|point| point.tally.seen_before),
            socket_drops: span.and_then(|(from, to)| {
                Some(u64::from((to.tally.socket_drops? as u32).wrapping_sub(from.tally.socket_drops? as u32)))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
