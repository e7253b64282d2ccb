//! The rates of a stream over time: packets of all flows in bins of equal length, those of an interval spread evenly over
//! its time, since more is not known of them.

use super::over_time::TimeSpan;
use crate::analysis::source::ProbeSource;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::plan::{Direction, Kind, defaults};
use crate::probe::Phase;
use crate::units::Nanos;

const BINS: i64 = 480;

/// Rates of a stream in one bin, bits of payload a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamRatePoint {
    /// Begin of the bin since the first measured interval of each end, ns.
    pub at_ns: i64,
    /// Accepted by the kernel of the sender; `None` after its last interval.
    pub offered_bps: Option<f64>,
    /// Received; `None` after the last interval of the receiver.
    pub delivered_bps: Option<f64>,
    /// Sent and not received, as counted between two polls of the receiver; `None` as for `delivered_bps`, and if the losses of
    /// the stream are unknown.
    pub lost_bps: Option<f64>,
}

/// The rates of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamRateSeries {
    pub(super) points: Vec<StreamRatePoint>,
    /// The measured time on the clock of this host; `None` without an interval.
    pub(super) span: Option<TimeSpan>,
}

/// The rates of `source`; nothing unless it is a stream. Both ends begin at 0: their clocks may differ.
pub(super) fn rates<S: ProbeSource>(source: &S) -> Result<StreamRateSeries, S::Error> {
    let spec = &source.manifest().spec;
    if spec.kind() != Kind::Stream {
        return Ok(StreamRateSeries::default());
    }
    let packet_bits = f64::from(spec.size_bytes().unwrap_or(0)) * 8.0;
    let mut ends: [Option<[i64; 2]>; 2] = [None; 2];
    visit_measured(source, &mut |interval| {
        let [start, end] = ends[index_of(interval)].get_or_insert([interval.start_ns, interval.end_ns]);
        (*start, *end) = (interval.start_ns.min(*start), interval.end_ns.max(*end));
    })?;
    let lengths = ends.map(|end| end.map_or(0, |[start, end]| end.saturating_sub(start)));
    let length = lengths.into_iter().max().unwrap_or(0);
    if length == 0 {
        return Ok(StreamRateSeries::default());
    }
    let bin_ns = defaults::STREAM_WINDOW.0.max(length / BINS + 1);
    let mut bins = RateBins { bin_ns, points: vec![[0.0; 3]; ((length - 1) / bin_ns) as usize + 1] };
    visit_measured(source, &mut |interval| {
        if let Some([start, _]) = ends[index_of(interval)] {
            bins.spread(interval, start);
        }
    })?;
    // The end at this host, on whose clock host samples are.
    let is_down = spec.stream().is_some_and(|stream| stream.direction == Direction::Down);
    let here = if is_down { StreamEnd::Receiver } else { StreamEnd::Sender };
    let span = ends[here as usize].or(ends[StreamEnd::Sender as usize]).or(ends[StreamEnd::Receiver as usize]);
    let span = span.map(|[start_ns, _]| TimeSpan { start_ns, length: Nanos(length) });
    let mut points = bins.finish(lengths, packet_bits);
    if !spec.knows_losses() {
        points.iter_mut().for_each(|point| point.lost_bps = None);
    }
    Ok(StreamRateSeries { points, span })
}

fn index_of(interval: &StreamInterval) -> usize {
    interval.end() as usize
}

fn visit_measured<S: ProbeSource>(source: &S, visit: &mut dyn FnMut(&StreamInterval)) -> Result<(), S::Error> {
    source.visit_intervals(&mut |interval| {
        if interval.phase == Phase::Measure && interval.span() > Nanos::ZERO {
            visit(interval);
        }
    })
}

/// Packets offered, delivered and lost in each bin.
struct RateBins {
    bin_ns: i64,
    points: Vec<[f64; 3]>,
}

impl RateBins {
    /// Adds the packets of `interval` to the bins that it covers; time is 0 at `start_ns`.
    fn spread(&mut self, interval: &StreamInterval, start_ns: i64) {
        let packets = match interval.seen {
            IntervalCounts::Offered { packets, .. } => [packets as f64, 0.0, 0.0],
            IntervalCounts::Counted { polled, delivered, .. } => {
                [0.0, delivered as f64, polled.saturating_sub(delivered) as f64]
            }
        };
        let since = |at_ns: i64| at_ns.saturating_sub(start_ns);
        let (from, to) = (since(interval.start_ns), since(interval.end_ns));
        for bin in from / self.bin_ns..=(to - 1) / self.bin_ns {
            let common = to.min((bin + 1).saturating_mul(self.bin_ns)) - from.max(bin * self.bin_ns);
            let share = common as f64 / (to - from) as f64;
            if let Some(sums) = self.points.get_mut(bin as usize) {
                sums.iter_mut().zip(packets).for_each(|(sum, packets)| *sum += packets * share);
            }
        }
    }

    /// The rates of ends that were counted for `lengths`: each over the part of a bin in which it was.
    fn finish(self, lengths: [i64; 2], packet_bits: f64) -> Vec<StreamRatePoint> {
        let point = |(index, [offered, delivered, lost]): (usize, [f64; 3])| {
            let at_ns = index as i64 * self.bin_ns;
            let rate = |packets: f64, end: StreamEnd| {
                let counted = Nanos(self.bin_ns.min(lengths[end as usize] - at_ns));
                (counted > Nanos::ZERO).then(|| packets * packet_bits / counted.as_secs_f64())
            };
            StreamRatePoint {
                at_ns,
                offered_bps: rate(offered, StreamEnd::Sender),
                delivered_bps: rate(delivered, StreamEnd::Receiver),
                lost_bps: rate(lost, StreamEnd::Receiver),
            }
        };
        self.points.into_iter().enumerate().map(point).collect()
    }
}
