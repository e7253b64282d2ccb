//! Figures of a stream from its intervals: totals of each flow, rates, losses, CPU time of either end. Definitions:
//! docs/metrics.md, section Metrics of `latlab stream`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::series::{FlowIntervals, LevelSpans, RateSeries, covered_time};
use super::stages::{SearchFigures, StageFigures, search, stages};
use crate::counts::Counts;
use crate::facts::{IntervalCounts, StreamInterval};
use crate::metric::Metric;
use crate::probe::Phase;
use crate::recording::manifest::Manifest;
use crate::sample::Sample;
use crate::source::ProbeSource;
use crate::stats::{DescribeOptions, Description};
use crate::units::Nanos;

/// Totals of one flow, or of all flows together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTotals {
    /// Packets that the kernel accepted; 0 if it [is of the receiver alone](StreamTotals::is_of_receiver_alone).
    pub sent: u64,
    /// Packets sent before the receiver's last count: only their fate is known.
    pub decided: u64,
    /// Packets that arrived, each counted once.
    pub delivered: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
    /// Further arrivals of packets that had arrived.
    pub duplicates: u64,
    /// Packets that arrived too late to be recognised as new.
    pub outside_window: u64,
    /// Sends that the kernel refused because its queue was full; each was tried again.
    pub refused: u64,
    /// Due packets given up by a sender that was too far behind.
    pub skipped: u64,
    /// Time of sending, on the sender's clock; of several flows the time in which any of them sent.
    pub sending: Nanos,
    /// Time of counting, on the receiver's clock; of several flows the time in which any of them was counted.
    pub counting: Nanos,
}

impl StreamTotals {
    /// Whether nothing is known of the sender, as of the log of a receiver: what was sent, and for how long, is not known.
    pub fn is_of_receiver_alone(&self) -> bool {
        self.sending == Nanos::ZERO && self.sent == 0 && self.counting > Nanos::ZERO
    }

    /// What the sender counted; `None` of the log of a receiver alone.
    pub fn known_sent(&self) -> Option<u64> {
        (!self.is_of_receiver_alone()).then_some(self.sent)
    }

    /// The time of the run: of sending, or of counting if no more is known.
    pub(crate) fn duration(&self) -> Nanos {
        if self.is_of_receiver_alone() { self.counting } else { self.sending }
    }

    /// Packets that did not arrive.
    pub fn lost(&self) -> u64 {
        self.decided.saturating_sub(self.delivered + self.outside_window)
    }

    /// The totals as fates: a delivered packet is answered, one outside of the window is late.
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
    }

    /// The rates of so many packets over such times, with a payload of `size_bytes` each.
    fn rates(&self, size_bytes: u32) -> StreamRates {
        let over = |packets: u64, span: Nanos| (span > Nanos::ZERO).then(|| packets as f64 / span.as_secs_f64());
        let bits = |pps: Option<f64>| pps.map(|pps| pps * f64::from(size_bytes) * 8.0);
        let (offered_pps, delivered_pps) = (over(self.sent, self.sending), over(self.delivered, self.counting));
        StreamRates { offered_pps, delivered_pps, offered_bps: bits(offered_pps), delivered_bps: bits(delivered_pps) }
    }
}

/// Rates of the whole run, totals over times; `None` if nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StreamRates {
    /// Packets a second that the sender's kernel accepted.
    pub offered_pps: Option<f64>,
    /// Packets a second that arrived.
    pub delivered_pps: Option<f64>,
    /// Payload bits a second that the sender's kernel accepted.
    pub offered_bps: Option<f64>,
    /// Payload bits a second that arrived.
    pub delivered_bps: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuCost {
    /// CPU time of its threads while they measured.
    #[serde(rename = "used_ns")]
    pub used: Nanos,
    /// As a share of one CPU.
    pub share: Option<f64>,
    /// For each packet that this end sent or received.
    pub per_packet_ns: Option<f64>,
    /// For each byte of their payload.
    pub per_byte_ns: Option<f64>,
}

/// Figures of a run of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFigures {
    /// Totals of each flow, in order.
    pub flows: Vec<StreamTotals>,
    pub total: StreamTotals,
    /// Rates of the whole run.
    pub rates: StreamRates,
    /// The times of which the delivered rate is known; `None` without any.
    pub intervals: Option<LevelSpans>,
    pub size_bytes: u32,
    /// Datagrams that the receiver's own socket dropped during the run; `None` if it does not report them.
    pub socket_drops: Option<u64>,
    /// Whether those are merged buffers, each of which may be many packets.
    pub drops_are_merged: bool,
    /// CPU time of the senders.
    pub sender_cpu: Option<CpuCost>,
    pub receiver_cpu: Option<CpuCost>,
    /// Most packets sent in one burst.
    pub burst_packets: u64,
    /// Size of the sender's send buffer as granted by its kernel.
    pub send_buffer_bytes: Option<u32>,
    /// Size of the receiver's receive buffer as granted by its kernel.
    pub receive_buffer_bytes: Option<u32>,
    /// The requested rate, in packets a second; `None` if as fast as possible.
    pub asked_pps: Option<f64>,
    /// The search for that rate, if there was one.
    pub search: Option<SearchFigures>,
    /// The stages of a stream with concurrent probes, in their order.
    pub stages: Vec<StageFigures>,
}

/// The figures of the stream of `source`, whose measured intervals are `intervals`.
pub(crate) fn figures<S: ProbeSource>(
    source: &S,
    intervals: &StreamAccumulator,
    describing: &DescribeOptions,
) -> Result<StreamFigures, S::Error> {
    let manifest = source.manifest();
    let stages = stages(source, describing)?;
    Ok(StreamFigures { search: search(manifest), stages, ..intervals.figures(manifest) })
}

/// The measured intervals of a run.
#[derive(Debug, Default)]
pub(crate) struct StreamAccumulator {
    sent: FlowIntervals,
    counted: FlowIntervals,
}

impl StreamAccumulator {
    /// The measured intervals of `source`.
    pub(crate) fn of<S: ProbeSource>(source: &S) -> Result<StreamAccumulator, S::Error> {
        let mut intervals = StreamAccumulator::default();
        source.visit_intervals(&mut |interval| {
            if interval.phase == Phase::Measure {
                intervals.take(*interval);
            }
        })?;
        Ok(intervals)
    }

    fn take(&mut self, interval: StreamInterval) {
        let side = match interval.seen {
            IntervalCounts::Offered { .. } => &mut self.sent,
            IntervalCounts::Counted { .. } => &mut self.counted,
        };
        side.entry(interval.flow).or_default().push(interval);
    }

    /// The figures of the intervals, without search and stages.
    pub(super) fn figures(&self, manifest: &Manifest) -> StreamFigures {
        let flows = self.flows();
        let total = self.all(&flows);
        let size_bytes = size_bytes(manifest);
        let facts = manifest.run.stream.clone().unwrap_or_default();
        let ipv6 = manifest.run.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
        let asked = || {
            let stream = manifest.spec.stream()?;
            Some(stream.packets_per_second_of_a_flow(size_bytes, ipv6)? * f64::from(stream.flows))
        };
        // The rate that a search found is held in the last stage.
        let held = manifest.run.stages.last().filter(|_| manifest.run.search.is_some());
        let asked = held.map_or_else(asked, |stage| stage.stream?.asked_pps);
        StreamFigures {
            rates: total.rates(size_bytes),
            intervals: self.series(Metric::DeliveredRate, size_bytes).spans(),
            sender_cpu: cpu_time(&self.sent).map(|used| cost(used, total.sending, total.sent, size_bytes)),
            receiver_cpu: cpu_time(&self.counted).map(|used| cost(used, total.counting, total.delivered, size_bytes)),
            socket_drops: self.counted.values().flatten().filter_map(drops).reduce(|sum, drops| sum + drops),
            drops_are_merged: facts.drops_are_merged,
            burst_packets: facts.burst_packets,
            send_buffer_bytes: facts.send_buffer_bytes,
            receive_buffer_bytes: facts.receive_buffer_bytes,
            asked_pps: asked,
            search: None,
            stages: Vec::new(),
            flows,
            total,
            size_bytes,
        }
    }

    /// The totals of all flows as fates.
    pub(crate) fn counts(&self) -> Counts {
        self.all(&self.flows()).counts()
    }

    /// The same for a comparison: if the receiver counted nothing, all packets are lost.
    pub(crate) fn counts_or_all_lost(&self) -> Counts {
        let totals = self.all(&self.flows());
        let is_silent = totals.counting == Nanos::ZERO;
        StreamTotals { decided: if is_silent { totals.sent } else { totals.decided }, ..totals }.counts()
    }

    fn flows(&self) -> Vec<StreamTotals> {
        let flows: BTreeSet<u16> = self.sent.keys().chain(self.counted.keys()).copied().collect();
        flows.into_iter().map(|flow| self.totals(flow)).collect()
    }

    /// The totals of all `flows`.
    fn all(&self, flows: &[StreamTotals]) -> StreamTotals {
        let (sending, counting) = (covered_time(&self.sent), covered_time(&self.counted));
        let mut total = StreamTotals { sending, counting, ..StreamTotals::default() };
        flows.iter().for_each(|flow| total.add(flow));
        total
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

    /// The description of the offered or delivered rate, in payload bits a second, as every command reports it; `describe`
    /// computes the figures of a sample whose singletons are alike. The mean is that of the run's rates.
    pub(crate) fn described(
        &self,
        metric: Metric,
        manifest: &Manifest,
        describe: &dyn Fn(&Sample) -> Description,
    ) -> Description {
        let size_bytes = size_bytes(manifest);
        let rates = self.all(&self.flows()).rates(size_bytes);
        let mean = if metric == Metric::OfferedRate { rates.offered_bps } else { rates.delivered_bps };
        self.series(metric, size_bytes).described(metric, mean, describe)
    }

    /// The offered or delivered rate in each interval, in payload bits a second.
    pub(crate) fn rates(&self, metric: Metric, manifest: &Manifest) -> Vec<i64> {
        self.series(metric, size_bytes(manifest)).rates()
    }

    fn series(&self, metric: Metric, size_bytes: u32) -> RateSeries {
        let side = if metric == Metric::OfferedRate { &self.sent } else { &self.counted };
        RateSeries::of(side, f64::from(size_bytes) * 8.0)
    }
}

fn drops(row: &StreamInterval) -> Option<u64> {
    match row.seen {
        IntervalCounts::Counted { socket_drops, .. } => socket_drops.map(u64::from),
        IntervalCounts::Offered { .. } => None,
    }
}

fn size_bytes(manifest: &Manifest) -> u32 {
    manifest.spec.size_bytes().unwrap_or(0)
}

fn cost(used: Nanos, span: Nanos, packets: u64, size_bytes: u32) -> CpuCost {
    let per = |count: u64| (count > 0).then(|| used.0 as f64 / count as f64);
    CpuCost {
        used,
        share: (span > Nanos::ZERO).then(|| used.as_secs_f64() / span.as_secs_f64()),
        per_packet_ns: per(packets),
        per_byte_ns: per(packets.saturating_mul(u64::from(size_bytes))),
    }
}

/// The share of the time for which the CPU time must be known.
const CPU_KNOWN: f64 = 0.9;

/// The CPU time of the flows whose thread reports it. Intervals without it count as the others; `None` if these are less than
/// [`CPU_KNOWN`] of the time.
fn cpu_time(of: &FlowIntervals) -> Option<Nanos> {
    let reporting = of.values().filter(|rows| rows.iter().any(|row| row.cpu.is_some())).flatten();
    let (mut used, mut known_ns, mut all_ns) = (Nanos::ZERO, 0, 0);
    for row in reporting {
        let span_ns = row.end_ns - row.start_ns;
        all_ns += span_ns;
        if let Some(cpu) = row.cpu {
            (used, known_ns) = (used + cpu, known_ns + span_ns);
        }
    }
    let known = known_ns as f64 / all_ns as f64;
    (known >= CPU_KNOWN).then(|| Nanos((used.0 as f64 / known).round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, PacketSize, RunSpec, StreamRunSpec, Work};

    fn manifest(size: u32, flows: u16) -> Manifest {
        let stream = StreamRunSpec { size: PacketSize::Bytes(size), flows, ..StreamRunSpec::at(Pace::Max) };
        Manifest::new(RunSpec::here(Work::Stream(stream)), "7f3a00112233aabb".into(), "2026-11-22T07:00:00Z".into())
    }

    fn row(flow: u16, start_ms: i64, end_ms: i64, seen: IntervalCounts) -> StreamInterval {
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

    fn accumulated(rows: &[StreamInterval]) -> StreamAccumulator {
        let mut intervals = StreamAccumulator::default();
        rows.iter().for_each(|row| intervals.take(*row));
        intervals
    }

    #[test]
    fn a_receiver_that_counted_nothing_has_lost_everything_in_a_comparison() {
        let counts = |rows: &[StreamInterval]| accumulated(rows).counts_or_all_lost();
        let silent = counts(&[row(0, 0, 100, offered(1_000)), row(1, 0, 100, offered(500))]);
        assert_eq!((silent.sent, silent.answered, silent.lost), (1_500, 0, 1_500));
        let polled = counts(&[row(0, 0, 100, offered(1_000)), row(0, 0, 50, counted(400, 390))]);
        assert_eq!((polled.sent, polled.answered, polled.lost), (400, 390, 5), "as counted");
    }

    #[test]
    fn each_end_has_counts_and_a_clock_of_its_own() {
        // The receiver's clock is a different one, and its last interval counts what was left in the queue.
        let rows = [
            row(0, 0, 100, offered(1_000)),
            row(0, 100, 200, offered(1_000)),
            row(0, 9_000, 9_100, counted(990, 900)),
            row(0, 9_100, 9_210, counted(1_010, 985)),
        ];
        let figures = accumulated(&rows).figures(&manifest(125, 1));
        let total = figures.total;
        assert_eq!((total.sent, total.decided, total.delivered, total.lost()), (2_000, 2_000, 1_885, 105));
        assert_eq!((total.reordered, total.duplicates, total.outside_window), (2, 4, 10));
        assert_eq!((total.refused, total.skipped, figures.socket_drops), (2, 4, Some(6)));
        assert_eq!((figures.rates.offered_pps, figures.rates.offered_bps), (Some(10_000.0), Some(10_000_000.0)));
        assert!((figures.rates.delivered_pps.expect("counted") - 1_885.0 / 0.21).abs() < 1e-6);
        let sender = figures.sender_cpu.expect("it is known");
        assert_eq!((sender.used, sender.share), (Nanos::from_millis(100), Some(0.5)));
        assert_eq!((sender.per_packet_ns, sender.per_byte_ns), (Some(50_000.0), Some(400.0)));
        let counts = accumulated(&rows).counts();
        assert_eq!((counts.sent, counts.answered, counts.late, counts.lost), (2_000, 1_885, 10, 105));
    }

    #[test]
    fn of_a_receiver_alone_its_counts_are_those_of_the_stream() {
        let rows = [row(0, 0, 100, counted(50, 39)), row(1, 0, 100, counted(10, 5))];
        let StreamFigures { total, rates, flows, .. } = accumulated(&rows).figures(&manifest(125, 2));
        assert_eq!((total.decided, total.delivered, total.lost(), flows.len()), (60, 44, 6, 2));
        assert!(total.is_of_receiver_alone() && flows.iter().all(StreamTotals::is_of_receiver_alone));
        assert_eq!((total.sent, total.duration()), (0, Nanos::from_millis(100)));
        assert_eq!((rates.offered_pps, rates.delivered_pps), (None, Some(440.0)));
    }

    #[test]
    fn packets_sent_after_the_last_count_are_not_lost() {
        let rows = [row(0, 0, 100, offered(1_000)), row(0, 0, 100, counted(400, 395))];
        let total = accumulated(&rows).figures(&manifest(125, 1)).total;
        assert_eq!((total.sent - total.decided, total.lost()), (600, 0));
    }

    #[test]
    fn intervals_without_cpu_time_count_as_the_others_if_they_are_few() {
        for (unknown, expected) in [(1, Some(Nanos::from_millis(500))), (2, None)] {
            let rows = (0..10).map(|number| row(0, number * 100, (number + 1) * 100, counted(100, 100)));
            let rows =
                rows.zip(0..).map(|(row, number)| StreamInterval { cpu: row.cpu.filter(|_| number >= unknown), ..row });
            let figures = accumulated(&rows.collect::<Vec<_>>()).figures(&manifest(125, 1));
            assert_eq!(figures.receiver_cpu.map(|cost| cost.used), expected);
        }
    }

    #[test]
    fn without_intervals_there_are_no_rates() {
        let figures = accumulated(&[]).figures(&manifest(125, 1));
        assert_eq!((figures.rates, figures.total), (StreamRates::default(), StreamTotals::default()));
        assert_eq!((figures.sender_cpu, figures.socket_drops), (None, None));
    }
}
