//! What the intervals of a stream say: totals of each flow, rates, losses, what either end spent. Definitions:
//! docs/metrics.md, section Metrics of `latlab stream`.

use std::collections::BTreeMap;

use super::source::ProbeSource;
use super::stages::StreamStages;
use super::tally::Counts;
use crate::facts::{IntervalCounts, StreamInterval};
use crate::metric::Metric;
use crate::plan::defaults;
use crate::probe::Phase;
use crate::recording::manifest::Manifest;
use crate::sample::Sample;
use crate::units::Nanos;

/// A shorter interval is what was left at the end of a slice, or between a question and the one sent again: its rate is
/// mostly chance.
const INTERVAL_MIN: Nanos = Nanos(defaults::STREAM_WINDOW.0 / 2);

/// What one flow, or all of them together, came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTotals {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Those of them that were sent before the last count: only of these it is known what became of them.
    pub decided: u64,
    /// Packets that arrived, each once.
    pub delivered: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that came too late to be known as new.
    pub outside_window: u64,
    /// Sends that the kernel refused for want of room; tried again.
    pub refused: u64,
    /// Due packets given up by a sender that was too far behind.
    pub skipped: u64,
    /// How long was sent, on the sender's clock; of several flows the longest.
    pub sending: Nanos,
    /// How long was counted, on the receiver's clock; of several flows the longest.
    pub counting: Nanos,
}

impl StreamTotals {
    /// Packets that nobody will see any more.
    pub fn lost(&self) -> u64 {
        self.decided.saturating_sub(self.delivered + self.outside_window)
    }

    /// The same as fates: an arrival is an answer, one too late to be known as new is late.
    fn counts(&self) -> Counts {
        Counts {
            sent: self.delivered + self.outside_window + self.lost(),
            answered: self.delivered,
            late: self.outside_window,
            lost: self.lost(),
            send_failed: self.refused,
            not_sent: self.skipped,
            duplicates: self.duplicates,
            reordered: self.reordered,
        }
    }

    fn add(&mut self, other: &StreamTotals) {
        self.sent += other.sent;
        self.decided += other.decided;
        self.delivered += other.delivered;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.outside_window += other.outside_window;
        self.refused += other.refused;
        self.skipped += other.skipped;
        self.sending = self.sending.max(other.sending);
        self.counting = self.counting.max(other.counting);
    }
}

/// Rates of the whole run, in packets and payload bits a second; none where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamRates {
    /// What the kernels of the senders took.
    pub offered_pps: Option<f64>,
    /// What arrived.
    pub delivered_pps: Option<f64>,
    /// The same in bits.
    pub offered_bps: Option<f64>,
    /// The same in bits.
    pub delivered_bps: Option<f64>,
}

/// CPU time of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCost {
    /// What its threads used while they measured.
    pub used: Nanos,
    /// As a share of one CPU.
    pub share: Option<f64>,
    /// For each packet that this end sent, or counted.
    pub per_packet_ns: Option<f64>,
    /// For each byte of their payload.
    pub per_byte_ns: Option<f64>,
}

/// What a run of a stream says.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFigures {
    /// Each flow, in order.
    pub flows: Vec<StreamTotals>,
    /// All of them together.
    pub total: StreamTotals,
    /// Rates of the whole run.
    pub rates: StreamRates,
    /// UDP payload of each packet.
    pub size_bytes: u32,
    /// Datagrams that the receiver's own socket dropped meanwhile; none where it does not tell.
    pub socket_drops: Option<u64>,
    /// Those are merged buffers, of which each may be many packets.
    pub drops_are_merged: bool,
    /// What the senders spent.
    pub sender_cpu: Option<CpuCost>,
    /// What the receiver spent.
    pub receiver_cpu: Option<CpuCost>,
    /// Packets that left in one go at most.
    pub burst_packets: u64,
    /// Buffers granted, in bytes: the sender's for sending, the receiver's for receiving.
    pub buffers: (Option<u32>, Option<u32>),
    /// The rate asked for, in packets a second; none: as fast as sends go.
    pub asked_pps: Option<f64>,
    /// The search for that rate, and the probes beside it.
    pub beside: StreamStages,
}

/// The intervals of a run, as far as seen.
#[derive(Debug, Default)]
pub(super) struct StreamAccumulator {
    sent: BTreeMap<u16, Vec<StreamInterval>>,
    counted: BTreeMap<u16, Vec<StreamInterval>>,
}

impl StreamAccumulator {
    /// The measured intervals of `source`.
    pub(super) fn of<S: ProbeSource>(source: &S) -> Result<StreamAccumulator, S::Error> {
        let mut course = StreamAccumulator::default();
        source.visit_intervals(&mut |interval| {
            if interval.phase == Phase::Measure {
                let side = match interval.seen {
                    IntervalCounts::Offered { .. } => &mut course.sent,
                    IntervalCounts::Counted { .. } => &mut course.counted,
                };
                side.entry(interval.flow).or_default().push(*interval);
            }
        })?;
        Ok(course)
    }

    /// All figures of the run of `manifest`.
    pub(super) fn figures(&self, manifest: &Manifest) -> StreamFigures {
        let flows: Vec<StreamTotals> = self.sent.keys().map(|flow| self.totals(*flow)).collect();
        let mut total = StreamTotals::default();
        flows.iter().for_each(|flow| total.add(flow));
        let size_bytes = size_bytes(manifest);
        let facts = manifest.run.stream.clone().unwrap_or_default();
        let ipv6 = manifest.run.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
        let asked = || {
            let stream = manifest.spec.stream()?;
            Some(stream.packets_per_second_of_a_flow(size_bytes, ipv6)? * f64::from(stream.flows))
        };
        // What was searched for was asked for in the end.
        let held = manifest.run.stages.last().filter(|_| manifest.run.search.is_some());
        let asked = held.map_or_else(asked, |stage| stage.stream?.asked_pps);
        let cpu = |of: &BTreeMap<u16, Vec<StreamInterval>>| {
            of.values().flatten().filter_map(|row| row.cpu).reduce(|sum, cpu| sum + cpu)
        };
        StreamFigures {
            rates: rates(&flows, size_bytes),
            sender_cpu: cpu(&self.sent).map(|used| cost(used, total.sending, total.sent, size_bytes)),
            receiver_cpu: cpu(&self.counted).map(|used| cost(used, total.counting, total.delivered, size_bytes)),
            socket_drops: self.counted.values().flatten().filter_map(drops).reduce(|sum, drops| sum + drops),
            drops_are_merged: facts.drops_are_merged,
            burst_packets: facts.burst_packets,
            buffers: (facts.send_buffer_bytes, facts.receive_buffer_bytes),
            asked_pps: asked,
            beside: StreamStages::default(),
            flows,
            total,
            size_bytes,
        }
    }

    /// What all flows came to, as fates.
    pub(super) fn counts(&self) -> Counts {
        let mut total = StreamTotals::default();
        self.sent.keys().for_each(|flow| total.add(&self.totals(*flow)));
        total.counts()
    }

    fn totals(&self, flow: u16) -> StreamTotals {
        let mut totals = StreamTotals::default();
        for row in self.sent.get(&flow).into_iter().chain(self.counted.get(&flow)).flatten() {
            match row.seen {
                IntervalCounts::Offered { packets, refused, skipped } => {
                    totals.sent += packets;
                    totals.refused += refused;
                    totals.skipped += skipped;
                    totals.sending += row.span();
                }
                IntervalCounts::Counted { polled, delivered, reordered, duplicates, outside_window, .. } => {
                    totals.decided += polled;
                    totals.delivered += delivered;
                    totals.reordered += u64::from(reordered);
                    totals.duplicates += u64::from(duplicates);
                    totals.outside_window += u64::from(outside_window);
                    totals.counting += row.span();
                }
            }
        }
        totals
    }

    /// The singletons of `metric`: the rate of each interval of the first flow, in payload bits a second. What the other
    /// flows did in that time is added, shared out by how far their own intervals lie within it.
    pub(super) fn sample(&self, metric: Metric, manifest: &Manifest) -> Sample {
        let side = if metric == Metric::OfferedRate { &self.sent } else { &self.counted };
        let bits = f64::from(size_bytes(manifest)) * 8.0;
        let mut flows = side.values();
        let first = flows.next().map(Vec::as_slice).unwrap_or_default();
        let mut others: Vec<Overlap> = flows.map(|rows| Overlap { rows, next: 0 }).collect();
        let mut singletons = Vec::with_capacity(first.len());
        for row in first {
            let beside: f64 = others.iter_mut().map(|other| other.packets_within(row)).sum();
            if row.span() >= INTERVAL_MIN {
                let packets = packets(row) as f64 + beside;
                singletons.push((packets * bits / row.span().as_secs_f64()).round() as i64);
            }
        }
        Sample::new(metric, singletons)
    }
}

/// A flow beside the first: its intervals in the order of time, and the first that is not over yet.
struct Overlap<'a> {
    rows: &'a [StreamInterval],
    next: usize,
}

impl Overlap<'_> {
    /// Its packets within `window`; windows come in the order of time.
    fn packets_within(&mut self, window: &StreamInterval) -> f64 {
        let mut sum = 0.0;
        while let Some(row) = self.rows.get(self.next) {
            let common = row.end_ns.min(window.end_ns) - row.start_ns.max(window.start_ns);
            if common > 0 {
                sum += packets(row) as f64 * common as f64 / row.span().0 as f64;
            }
            if row.end_ns > window.end_ns {
                break;
            }
            self.next += 1;
        }
        sum
    }
}

fn packets(row: &StreamInterval) -> u64 {
    match row.seen {
        IntervalCounts::Offered { packets, .. } => packets,
        IntervalCounts::Counted { delivered, .. } => delivered,
    }
}

fn drops(row: &StreamInterval) -> Option<u64> {
    match row.seen {
        IntervalCounts::Counted { socket_drops, .. } => socket_drops.map(u64::from),
        IntervalCounts::Offered { .. } => None,
    }
}

fn size_bytes(manifest: &Manifest) -> u32 {
    manifest.spec.stream().and_then(|stream| stream.size.known()).unwrap_or(0)
}

/// Flows run at the same time: their rates add up.
fn rates(flows: &[StreamTotals], size_bytes: u32) -> StreamRates {
    let sum = |of: fn(&StreamTotals) -> (u64, Nanos)| {
        let rates = flows.iter().map(of).filter(|(_, span)| *span > Nanos::ZERO);
        rates.map(|(packets, span)| packets as f64 / span.as_secs_f64()).reduce(|sum, rate| sum + rate)
    };
    let bits = |pps: Option<f64>| pps.map(|pps| pps * f64::from(size_bytes) * 8.0);
    let (offered_pps, delivered_pps) =
        (sum(|flow| (flow.sent, flow.sending)), sum(|flow| (flow.delivered, flow.counting)));
    StreamRates { offered_pps, delivered_pps, offered_bps: bits(offered_pps), delivered_bps: bits(delivered_pps) }
}

/// The share of packets sent that did not arrive; none where none was sent.
pub(super) fn loss_of(sent: u64, delivered: u64) -> Option<f64> {
    (sent > 0).then(|| sent.saturating_sub(delivered) as f64 / sent as f64)
}

fn cost(used: Nanos, span: Nanos, packets: u64, size_bytes: u32) -> CpuCost {
    let per = |count: u64| (count > 0).then(|| used.0 as f64 / count as f64);
    CpuCost {
        used,
        share: (span > Nanos::ZERO).then(|| used.as_secs_f64() / span.as_secs_f64()),
        per_packet_ns: per(packets),
        per_byte_ns: per(packets * u64::from(size_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, PacketSize, RunSpec, StreamRunSpec, Work};

    fn manifest(size: u32, flows: u16) -> Manifest {
        let stream = StreamRunSpec { size: PacketSize::Bytes(size), flows, ..StreamRunSpec::at(Pace::Max) };
        Manifest::new(RunSpec::here(Work::Stream(stream)), "7f3a00112233aabb".into(), "2026-11-22T07:00:00Z".into())
    }

    fn row(flow: u16, (start_ms, end_ms): (i64, i64), seen: IntervalCounts) -> StreamInterval {
        let ns = |millis: i64| millis * 1_000_000;
        let cpu = Some(Nanos(ns(end_ms - start_ms) / 2)).filter(|_| flow == 0);
        StreamInterval { flow, phase: Phase::Measure, start_ns: ns(start_ms), end_ns: ns(end_ms), cpu, seen }
    }

    fn offered(packets: u64) -> IntervalCounts {
        IntervalCounts::Offered { packets, refused: 1, skipped: 2 }
    }

    fn counted(polled: u64, delivered: u64) -> IntervalCounts {
        let socket_drops = Some(3);
        IntervalCounts::Counted { polled, delivered, reordered: 1, duplicates: 2, outside_window: 5, socket_drops }
    }

    fn course(rows: &[StreamInterval]) -> StreamAccumulator {
        let mut course = StreamAccumulator::default();
        for row in rows {
            let side =
                if matches!(row.seen, IntervalCounts::Offered { .. }) { &mut course.sent } else { &mut course.counted };
            side.entry(row.flow).or_default().push(*row);
        }
        course
    }

    #[test]
    fn totals_come_from_each_ends_own_counts_and_rates_from_its_own_clock() {
        // The receiver's clock is another one, and its last interval is what was left in the queue.
        let rows = [
            row(0, (0, 100), offered(1_000)),
            row(0, (100, 200), offered(1_000)),
            row(0, (9_000, 9_100), counted(990, 900)),
            row(0, (9_100, 9_210), counted(1_010, 985)),
        ];
        let figures = course(&rows).figures(&manifest(125, 1));
        let total = figures.total;
        assert_eq!((total.sent, total.decided, total.delivered, total.lost()), (2_000, 2_000, 1_885, 105));
        assert_eq!((total.reordered, total.duplicates, total.outside_window), (2, 4, 10));
        assert_eq!((total.refused, total.skipped, figures.socket_drops), (2, 4, Some(6)));
        assert_eq!((figures.rates.offered_pps, figures.rates.offered_bps), (Some(10_000.0), Some(10_000_000.0)));
        assert!((figures.rates.delivered_pps.expect("counted") - 1_885.0 / 0.21).abs() < 1e-6);
        let sender = figures.sender_cpu.expect("told");
        assert_eq!((sender.used, sender.share), (Nanos::from_millis(100), Some(0.5)));
        assert_eq!((sender.per_packet_ns, sender.per_byte_ns), (Some(50_000.0), Some(400.0)));
        let counts = course(&rows).counts();
        assert_eq!((counts.sent, counts.answered, counts.late, counts.lost), (2_000, 1_885, 10, 105));
    }

    #[test]
    fn what_was_sent_after_the_last_count_is_no_loss() {
        let rows = [row(0, (0, 100), offered(1_000)), row(0, (0, 100), counted(400, 395))];
        let total = course(&rows).figures(&manifest(125, 1)).total;
        assert_eq!((total.sent - total.decided, total.lost()), (600, 0));
    }

    #[test]
    fn rates_of_flows_add_up_whatever_their_intervals() {
        let rows = [
            row(0, (0, 100), counted(100, 100)),
            row(0, (100, 200), counted(100, 100)),
            row(0, (200, 210), counted(9, 9)),
            row(1, (50, 150), counted(200, 200)),
            row(1, (150, 250), counted(400, 400)),
        ];
        let sample = course(&rows).sample(Metric::DeliveredRate, &manifest(125, 2));
        // 100 + half of 200, then 100 + half of 200 + half of 400; the last 10 ms are no interval.
        assert_eq!(sample.singletons, [2_000_000, 4_000_000]);
        assert_eq!(course(&[]).sample(Metric::OfferedRate, &manifest(125, 1)).n(), 0);
    }

    #[test]
    fn nothing_measured_has_no_rates() {
        let figures = course(&[]).figures(&manifest(125, 1));
        assert_eq!((figures.rates, figures.total), (StreamRates::default(), StreamTotals::default()));
        assert_eq!((figures.sender_cpu, figures.socket_drops), (None, None));
    }
}
