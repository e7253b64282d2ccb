//! Accumulates the host samples of a run: the first and the last reading, and the extremes in between.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::facts::{CpuReadings, FIRMWARE_NOW, FIRMWARE_SINCE_BOOT, HostSample};
use crate::plan::Side;
use crate::units::Nanos;

/// Least span over which steal is judged: over a shorter one the 10 ms of the kernel's tick dominate.
const STEAL_SPAN: Nanos = Nanos::from_secs(1);

/// Spans of clock rates kept for each CPU; when there are more, neighbours are merged.
const MAX_RATES: usize = 128;

/// The hosts of a run that were sampled.
pub(super) type HostAccumulators = BTreeMap<Side, HostAccumulator>;

/// Clock rates of a CPU, kHz.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockRates {
    #[serde(rename = "min")]
    pub min_khz: i64,
    #[serde(rename = "mean")]
    pub mean_khz: f64,
    #[serde(rename = "max")]
    pub max_khz: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HostAccumulator {
    first: Option<HostSample>,
    last: Option<HostSample>,
    /// Time and accumulated steal of all CPUs at each sample of the last [`STEAL_SPAN`].
    recent_steal: VecDeque<(i64, i64)>,
    /// The most steal of all CPUs together over a [`STEAL_SPAN`] from any sample on, as a share of one CPU's time.
    pub(super) worst_steal: f64,
    pub(super) hottest_millicelsius: Option<i64>,
    /// The highest cooling state of a device that slows CPUs down.
    pub(super) cooling_state: i64,
    /// Flags of the firmware's present state that were set in any sample.
    firmware_now: i64,
    rates: BTreeMap<u16, Vec<Rate>>,
    /// The lowest and the highest clock rate of each CPU.
    extreme_rates: BTreeMap<u16, (i64, i64)>,
}

/// Clock rates over a span of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    sum_khz: f64,
    readings: u64,
}

impl HostAccumulator {
    /// Adds a sample; they come in order of time.
    pub(super) fn take(&mut self, sample: &HostSample) {
        let host = &sample.host;
        self.hottest_millicelsius = self.hottest_millicelsius.max(host.temperature_millicelsius);
        self.cooling_state = self.cooling_state.max(host.cooling_state.unwrap_or(0));
        self.firmware_now |= host.firmware_throttled.unwrap_or(0) & FIRMWARE_NOW;
        for (cpu, readings) in &sample.cpus {
            if let Some(khz) = readings.frequency_khz {
                add_rate(self.rates.entry(*cpu).or_default(), khz);
                let (low, high) = self.extreme_rates.entry(*cpu).or_insert((khz, khz));
                (*low, *high) = (khz.min(*low), khz.max(*high));
            }
        }
        self.take_steal(sample);
        self.first.get_or_insert_with(|| sample.clone());
        self.last = Some(sample.clone());
    }

    fn take_steal(&mut self, sample: &HostSample) {
        let stolen = sample.cpus.iter().filter_map(|(_, cpu)| cpu.steal_ns).fold(0i64, i64::saturating_add);
        self.recent_steal.push_back((sample.start_ns, stolen));
        // Keeps the shortest span that is long enough.
        while self.recent_steal.get(1).is_some_and(|(since, _)| sample.start_ns - since >= STEAL_SPAN.0) {
            self.recent_steal.pop_front();
        }
        let (since, before) = self.recent_steal[0];
        let length = sample.start_ns - since;
        if length >= STEAL_SPAN.0 {
            self.worst_steal = self.worst_steal.max((stolen - before) as f64 / length as f64);
        }
    }

    /// From the first sample to the last.
    pub(super) fn span(&self) -> Nanos {
        let ends = self.first.as_ref().zip(self.last.as_ref());
        ends.map_or(Nanos::ZERO, |(first, last)| Nanos(last.start_ns - first.start_ns))
    }

    pub(super) fn cpus(&self) -> Vec<u16> {
        self.first.iter().flat_map(|first| &first.cpus).map(|(cpu, _)| *cpu).collect()
    }

    /// The increase of a counter of `cpu`, if the first and the last sample have it. Idle counters may decrease a
    /// little, which counts as 0.
    pub(super) fn moved(&self, cpu: u16, counter: impl Fn(&CpuReadings) -> Option<i64>) -> Option<i64> {
        let at = |sample: &Option<HostSample>| {
            let cpus = &sample.as_ref()?.cpus;
            cpus.iter().find(|(number, _)| *number == cpu).and_then(|(_, readings)| counter(readings))
        };
        Some((at(&self.last)? - at(&self.first)?).max(0))
    }

    /// Time that `cpu` worked outside of interrupts, whose work belongs to no process.
    pub(super) fn worked_ns(&self, cpu: u16) -> Option<i64> {
        Some((self.moved(cpu, |cpu| cpu.busy_ns)? - self.moved(cpu, |cpu| cpu.interrupt_ns)?).max(0))
    }

    /// CPU time of latlab and its processes.
    pub(super) fn own_ns(&self) -> Option<i64> {
        Some(self.last.as_ref()?.host.own_ns? - self.first.as_ref()?.host.own_ns?)
    }

    /// Time stolen from all CPUs together; `None` if no CPU reports it.
    pub(super) fn stolen_ns(&self) -> Option<i64> {
        let stolen: Vec<i64> = self.cpus().into_iter().filter_map(|cpu| self.moved(cpu, |cpu| cpu.steal_ns)).collect();
        (!stolen.is_empty()).then(|| stolen.iter().sum())
    }

    /// The firmware's flags that were set in any sample, or set for the first time since boot during the run.
    pub(super) fn firmware_flags(&self) -> i64 {
        let since_boot = |sample: &Option<HostSample>| {
            let flags = sample.as_ref().and_then(|sample| sample.host.firmware_throttled).unwrap_or(0);
            (flags & FIRMWARE_SINCE_BOOT) >> 16
        };
        self.firmware_now | (since_boot(&self.last) & !since_boot(&self.first))
    }

    /// The clock rates of `cpu` over the whole run; `None` without a reading.
    pub(super) fn clock_rates(&self, cpu: u16) -> Option<ClockRates> {
        let (rates, (min_khz, max_khz)) = (self.rates.get(&cpu)?, *self.extreme_rates.get(&cpu)?);
        let readings: u64 = rates.iter().map(|rate| rate.readings).sum();
        let sum: f64 = rates.iter().map(|rate| rate.sum_khz).sum();
        Some(ClockRates { min_khz, mean_khz: sum / readings as f64, max_khz })
    }

    /// The mean clock rates of `cpu` in the first and in the second half of the run, kHz; `None` if either half has
    /// fewer than `min_readings`.
    pub(super) fn rates_of_halves_khz(&self, cpu: u16, min_readings: u64) -> Option<(f64, f64)> {
        let rates = self.rates.get(&cpu)?;
        let (early, late) = rates.split_at(rates.len() / 2);
        let mean = |half: &[Rate]| {
            let readings: u64 = half.iter().map(|rate| rate.readings).sum();
            (readings >= min_readings).then(|| half.iter().map(|rate| rate.sum_khz).sum::<f64>() / readings as f64)
        };
        Some((mean(early)?, mean(late)?))
    }
}

/// Adds a reading. Each time the capacity is exceeded every span doubles its readings, so that a day at ten samples a
/// second takes as much memory as ten seconds.
fn add_rate(rates: &mut Vec<Rate>, khz: i64) {
    // The number of readings in a full span; the first span is always full.
    let readings = rates.first().map_or(1, |rate| rate.readings.max(1));
    match rates.last_mut() {
        Some(last) if last.readings < readings => {
            last.sum_khz += khz as f64;
            last.readings += 1;
        }
        _ => rates.push(Rate { sum_khz: khz as f64, readings: 1 }),
    }
    if rates.len() > MAX_RATES {
        let merged = rates.chunks(2).map(|pair| Rate {
            sum_khz: pair.iter().map(|rate| rate.sum_khz).sum(),
            readings: pair.iter().map(|rate| rate.readings).sum(),
        });
        *rates = merged.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::HostReadings;

    fn sample(seq: u64, cpu: CpuReadings, host: HostReadings) -> HostSample {
        let start_ns = seq as i64 * 500_000_000;
        HostSample { seq, start_ns, end_ns: start_ns + 60_000, sampler_cpu: None, host, cpus: vec![(0, cpu)] }
    }

    fn accumulated(samples: impl IntoIterator<Item = HostSample>) -> HostAccumulator {
        let mut found = HostAccumulator::default();
        samples.into_iter().for_each(|sample| found.take(&sample));
        found
    }

    #[test]
    fn the_second_with_the_most_steal_is_found() {
        // 10 ms a second, but 300 ms in the fourth second.
        let stolen = |seq: u64| Some(seq as i64 * 5_000_000 + if seq >= 8 { 290_000_000 } else { 0 });
        let found = accumulated((0..20).map(|seq| {
            sample(seq, CpuReadings { steal_ns: stolen(seq), ..Default::default() }, HostReadings::default())
        }));
        assert!((found.worst_steal - 0.3).abs() < 0.001, "{}", found.worst_steal);
        assert_eq!(found.stolen_ns(), Some(19 * 5_000_000 + 290_000_000));
        // Half before and half after a whole second, and at the end.
        let stolen = |seq: u64| {
            Some(if seq >= 19 {
                300_000_000
            } else if seq >= 18 {
                150_000_000
            } else {
                0
            })
        };
        let found = accumulated((0..20).map(|seq| {
            sample(seq, CpuReadings { steal_ns: stolen(seq), ..Default::default() }, HostReadings::default())
        }));
        assert!((found.worst_steal - 0.3).abs() < 0.001, "{}", found.worst_steal);
    }

    #[test]
    fn rates_of_a_long_run_take_constant_memory() {
        for samples in [8, 100, 129, 10_000] {
            let khz = |seq: u64| Some(if seq < samples / 2 { 1_000_000 } else { 2_000_000 });
            let found = accumulated((0..samples).map(|seq| {
                sample(seq, CpuReadings { frequency_khz: khz(seq), ..Default::default() }, HostReadings::default())
            }));
            assert!(found.rates[&0].len() <= MAX_RATES);
            assert_eq!(found.rates[&0].iter().map(|rate| rate.readings).sum::<u64>(), samples);
            let (early, late) = found.rates_of_halves_khz(0, 4).expect("readings");
            assert!((early - 1e6).abs() < 4e4 && (late - 2e6).abs() < 4e4, "{samples}: {early} {late}");
            assert_eq!(found.rates_of_halves_khz(0, samples), None);
        }
    }

    #[test]
    fn flags_set_before_the_run_are_ignored() {
        let flags = |seq, flags| {
            sample(seq, CpuReadings::default(), HostReadings { firmware_throttled: Some(flags), ..Default::default() })
        };
        assert_eq!(accumulated([flags(0, 0x5_0000), flags(1, 0x5_0000)]).firmware_flags(), 0);
        assert_eq!(accumulated([flags(0, 0x5_0000), flags(1, 0x5_0004), flags(2, 0x5_0000)]).firmware_flags(), 4);
        assert_eq!(accumulated([flags(0, 0), flags(1, 0x8_0000)]).firmware_flags(), 8);
    }
}
