//! The rates of a stream over time: packets of all flows in bins of equal length, those of an interval spread evenly over
//! its time, since more is not known of them.

use super::host_series::TimedValue;
use super::over_time::TimeSpan;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::plan::{Direction, Kind, defaults};
use crate::probe::Phase;
use crate::source::ProbeSource;
use crate::units::Nanos;

const BINS: i64 = 480;

/// The rates of a stream: bits of payload a second in each bin since the first measured interval of each end, and the last
/// one again at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamRates {
    /// Accepted by the kernel of the sender.
    pub offered: Vec<TimedValue>,
    pub delivered: Vec<TimedValue>,
    /// Sent and not received, as counted between two polls of the receiver; empty if the losses of the stream are unknown.
    pub lost: Vec<TimedValue>,
}

/// The rates of a stream, and the measured time on the clock of this host; `None` without an interval.
#[derive(Debug, Default)]
pub(super) struct TimedRates {
    pub(super) rates: StreamRates,
    pub(super) span: Option<TimeSpan>,
}

/// The rates of `source`; nothing unless it is a stream. Both ends begin at 0: their clocks may differ.
pub(super) fn rates<S: ProbeSource>(source: &S) -> Result<TimedRates, S::Error> {
    let spec = &source.manifest().spec;
    if spec.kind() != Kind::Stream {
        return Ok(TimedRates::default());
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
        return Ok(TimedRates::default());
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
    let mut rates = bins.finish(lengths, packet_bits);
    if !spec.knows_losses() {
        rates.lost.clear();
    }
    Ok(TimedRates { rates, span })
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
    fn finish(self, lengths: [i64; 2], packet_bits: f64) -> StreamRates {
        let series = |packets: usize, end: StreamEnd| {
            let length = lengths[end as usize];
            let begins = (0..length).step_by(self.bin_ns as usize).zip(&self.points);
            let rate = |(at_ns, sums): (i64, &[f64; 3])| {
                let counted = Nanos(self.bin_ns.min(length - at_ns));
                TimedValue { at_ns, value: sums[packets] * packet_bits / counted.as_secs_f64() }
            };
            let mut points: Vec<TimedValue> = begins.map(rate).collect();
            points.extend(points.last().map(|last| TimedValue { at_ns: length, ..*last }));
            points
        };
        let receiver = StreamEnd::Receiver;
        StreamRates { offered: series(0, StreamEnd::Sender), delivered: series(1, receiver), lost: series(2, receiver) }
    }
}
