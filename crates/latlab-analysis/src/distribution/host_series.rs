//! The CPUs of a host over time, from the samples of a run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::over_time::TimeSpan;
use crate::facts::HostSample;
use crate::plan::Side;
use crate::units::Nanos;

/// Bins of the time of a run, of which each has one reading of a CPU, and a series at most two points.
const BINS: i64 = 236;
/// Most CPUs of a host: those that the run was pinned to, then the busiest.
const CPUS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostQuantity {
    /// Time that the CPU was busy, interrupts included, as a share from 0 to 1.
    BusyShare,
    /// Clock frequency, Hz: the lowest and the highest reading of each span.
    Frequency,
    /// Hard interrupts served in a second.
    InterruptRate,
}

impl HostQuantity {
    pub const ALL: [HostQuantity; 3] = [HostQuantity::BusyShare, HostQuantity::Frequency, HostQuantity::InterruptRate];
}

/// A quantity of one CPU over time.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSeries {
    /// The end whose host it is of.
    pub side: Side,
    pub cpu: u16,
    /// Whether the threads of the run that work on this host were pinned to it.
    pub is_pinned: bool,
    pub quantity: HostQuantity,
    /// In order of time; each value holds until the next point.
    pub points: Vec<TimedValue>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedValue {
    /// Since the first measured probe, ns.
    pub at_ns: i64,
    /// The value in the unit of its series.
    pub value: f64,
}

/// Samples of one CPU in one bin: counters at their begin, and the extremes of states.
#[derive(Clone, Copy, Debug)]
struct CpuReading {
    bin: i64,
    at_ns: i64,
    busy_ns: Option<i64>,
    interrupts: Option<i64>,
    frequency_hz: Option<[i64; 2]>,
}

/// The readings of one CPU in order of time, one for each bin, and the last one of all.
#[derive(Debug, Default)]
struct CpuOverTime {
    readings: Vec<CpuReading>,
    last: Option<CpuReading>,
}

impl CpuOverTime {
    fn take(&mut self, reading: CpuReading) {
        self.last = Some(reading);
        match self.readings.last_mut().filter(|last| last.bin == reading.bin) {
            // Of those before the first probe the last one counts.
            Some(last) if reading.bin < 0 => *last = reading,
            Some(last) => {
                let ends = last.frequency_hz.into_iter().chain(reading.frequency_hz);
                last.frequency_hz = ends.reduce(|one, other| [one[0].min(other[0]), one[1].max(other[1])]);
            }
            None => self.readings.push(reading),
        }
    }

    /// All readings, with the last sample as their end.
    fn finish(mut self) -> Vec<CpuReading> {
        let end = self.last.filter(|last| self.readings.last().is_some_and(|reading| reading.at_ns < last.at_ns));
        self.readings.extend(end);
        self.readings
    }

    fn busy_ns(&self) -> i64 {
        let at = |reading: Option<&CpuReading>| reading.and_then(|reading| reading.busy_ns).unwrap_or(0);
        at(self.last.as_ref()).saturating_sub(at(self.readings.first()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CpuOfHost {
    /// The end whose host it is of.
    pub(super) side: Side,
    pub(super) cpu: u16,
}

/// The CPUs of both hosts, sample by sample.
#[derive(Debug)]
pub(super) struct HostReadingsOverTime {
    span: TimeSpan,
    cpus: BTreeMap<CpuOfHost, CpuOverTime>,
}

impl HostReadingsOverTime {
    /// None yet, of a run of `span`.
    pub(super) const fn of(span: TimeSpan) -> HostReadingsOverTime {
        HostReadingsOverTime { span, cpus: BTreeMap::new() }
    }

    /// Adds a sample; those of one host come in order of time.
    pub(super) fn take(&mut self, side: Side, sample: &HostSample) {
        let at_ns = sample.start_ns.saturating_sub(self.span.start_ns);
        let bin = at_ns.div_euclid(self.span.length.0 / BINS + 1).clamp(-1, BINS);
        for (cpu, readings) in &sample.cpus {
            let frequency_hz = readings.frequency_khz.map(|khz| [khz.saturating_mul(1_000); 2]);
            let (busy_ns, interrupts) = (readings.busy_ns, readings.interrupts);
            let place = self.cpus.entry(CpuOfHost { side, cpu: *cpu }).or_default();
            place.take(CpuReading { bin, at_ns, busy_ns, interrupts, frequency_hz });
        }
    }

    /// The series of a few CPUs of each host: first those of `pinned`, then the busiest. A quantity that a CPU does not report
    /// has no series.
    pub(super) fn finish(self, pinned: &[CpuOfHost]) -> Vec<HostSeries> {
        let mut cpus: Vec<_> = self.cpus.into_iter().collect();
        cpus.sort_by_key(|(place, readings)| (!pinned.contains(place), Reverse(readings.busy_ns())));
        let mut taken: BTreeMap<Side, usize> = BTreeMap::new();
        cpus.retain(|(place, _)| {
            let count = taken.entry(place.side).or_default();
            *count += 1;
            *count <= CPUS
        });
        cpus.sort_by_key(|(place, _)| *place);
        let mut series = Vec::new();
        for (place, readings) in cpus {
            let (CpuOfHost { side, cpu }, is_pinned) = (place, pinned.contains(&place));
            let readings = readings.finish();
            let of = |quantity| {
                let points = points(quantity, &readings, self.span.length);
                HostSeries { side, cpu, is_pinned, quantity, points }
            };
            series.extend(HostQuantity::ALL.into_iter().map(of).filter(|series| !series.points.is_empty()));
        }
        series
    }
}

/// The points of one quantity within the run.
fn points(quantity: HostQuantity, readings: &[CpuReading], length: Nanos) -> Vec<TimedValue> {
    let mut points: Vec<TimedValue> = Vec::new();
    for pair in readings.windows(2) {
        let (from, to) = (pair[0].at_ns, pair[1].at_ns);
        if to <= 0 || from > length.0 || to <= from {
            continue;
        }
        // A span that began before the first probe holds from its begin on.
        let from = from.max(0);
        for (index, value) in values(quantity, pair).into_iter().enumerate() {
            let at_ns = from + (to - from) / 2 * index as i64;
            points.push(TimedValue { at_ns, value });
        }
    }
    if let (Some(last), Some(end)) = (points.last().copied(), readings.last()) {
        let at_ns = end.at_ns.min(length.0);
        points.extend((at_ns > last.at_ns).then_some(TimedValue { at_ns, value: last.value }));
    }
    points
}

/// The values of a quantity between two readings: usually one, of extremes that differ two, and none if it is unknown.
fn values(quantity: HostQuantity, pair: &[CpuReading]) -> Vec<f64> {
    let seconds = Nanos(pair[1].at_ns.saturating_sub(pair[0].at_ns)).as_secs_f64();
    let increase =
        |of: fn(&CpuReading) -> Option<i64>| Some(of(&pair[1])?.saturating_sub(of(&pair[0])?).max(0) as f64 / seconds);
    match quantity {
        // Counters move in ticks of 10 ms, so that a short span may seem busier than it is long.
        HostQuantity::BusyShare => {
            increase(|reading| reading.busy_ns).map(|rate| (rate / 1e9).min(1.0)).into_iter().collect()
        }
        HostQuantity::InterruptRate => increase(|reading| reading.interrupts).into_iter().collect(),
        HostQuantity::Frequency => {
            let Some([low, high]) = pair[0].frequency_hz else { return Vec::new() };
            let mut values = vec![low as f64];
            values.extend((high > low).then_some(high as f64));
            values
        }
    }
}
