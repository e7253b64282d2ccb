//! What the host samples of a run come to: the first and the last reading, and the worst in between.

use std::collections::{BTreeMap, VecDeque};

use super::meanwhile::RatesSeen;
use crate::facts::{CpuReadings, FIRMWARE_NOW, FIRMWARE_SINCE_BOOT, HostSample};
use crate::plan::Side;
use crate::units::Nanos;

/// Steal is looked at in stretches of at least so long: shorter ones see the 10 ms of the kernel's tick.
const STRETCH: Nanos = Nanos::from_secs(1);

/// One host over the run, gathered sample by sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HostAccumulator {
    first: Option<HostSample>,
    last: Option<HostSample>,
    /// The steal of all CPUs until the samples of the last stretch: when, and how much.
    stretch: VecDeque<(i64, i64)>,
    /// The largest share of one CPU that was stolen in a stretch, which may begin with any sample.
    pub(super) worst_steal: f64,
    /// The hottest reading, thousandths of a degree.
    pub(super) hottest_millicelsius: Option<i64>,
    /// The highest cooling state of a device that slows CPUs down.
    pub(super) cooling_state: i64,
    firmware_now: i64,
    /// Clock rates of each CPU.
    rates: BTreeMap<u16, Vec<Rate>>,
    /// The lowest and the highest of them.
    extreme_rates: BTreeMap<u16, (i64, i64)>,
}

/// Clock rates over a stretch of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    sum_khz: f64,
    readings: u64,
}

/// Stretches of clock rates kept for each CPU; when there are more, neighbours are put together.
const MOST_RATES: usize = 128;

impl HostAccumulator {
    /// The samples of the host at `side`, in their order.
    pub(super) fn gather(courses: &mut BTreeMap<Side, HostAccumulator>, side: Side, sample: &HostSample) {
        courses.entry(side).or_default().take(sample);
    }

    fn take(&mut self, sample: &HostSample) {
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
        self.look_at_steal(sample);
        self.first.get_or_insert_with(|| sample.clone());
        self.last = Some(sample.clone());
    }

    fn look_at_steal(&mut self, sample: &HostSample) {
        let stolen = sample.cpus.iter().filter_map(|(_, cpu)| cpu.steal_ns).sum::<i64>();
        self.stretch.push_back((sample.start_ns, stolen));
        // The shortest stretch that is long enough.
        while self.stretch.get(1).is_some_and(|(since, _)| sample.start_ns - since >= STRETCH.0) {
            self.stretch.pop_front();
        }
        let (since, before) = self.stretch[0];
        let length = sample.start_ns - since;
        if length >= STRETCH.0 {
            self.worst_steal = self.worst_steal.max((stolen - before) as f64 / length as f64);
        }
    }

    /// From the first sample to the last.
    pub(super) fn span(&self) -> Nanos {
        let ends = self.first.as_ref().zip(self.last.as_ref());
        ends.map_or(Nanos::ZERO, |(first, last)| Nanos(last.start_ns - first.start_ns))
    }

    /// The CPUs that were sampled.
    pub(super) fn cpus(&self) -> Vec<u16> {
        self.first.iter().flat_map(|first| &first.cpus).map(|(cpu, _)| *cpu).collect()
    }

    /// How far a counter of `cpu` went, where both ends know it. Idle counters may go back a little: that is nothing.
    pub(super) fn moved(&self, cpu: u16, counter: impl Fn(&CpuReadings) -> Option<i64>) -> Option<i64> {
        let at = |sample: &Option<HostSample>| {
            let cpus = &sample.as_ref()?.cpus;
            cpus.iter().find(|(number, _)| *number == cpu).and_then(|(_, readings)| counter(readings))
        };
        Some((at(&self.last)? - at(&self.first)?).max(0))
    }

    /// Time that `cpu` worked outside of interrupts, whose work nobody can be charged with.
    pub(super) fn worked_ns(&self, cpu: u16) -> Option<i64> {
        Some((self.moved(cpu, |cpu| cpu.busy_ns)? - self.moved(cpu, |cpu| cpu.interrupt_ns)?).max(0))
    }

    /// CPU time that latlab and its processes used.
    pub(super) fn own_ns(&self) -> Option<i64> {
        Some(self.last.as_ref()?.host.own_ns? - self.first.as_ref()?.host.own_ns?)
    }

    /// Time stolen from all CPUs together; none where no CPU tells.
    pub(super) fn stolen_ns(&self) -> Option<i64> {
        let stolen: Vec<i64> = self.cpus().into_iter().filter_map(|cpu| self.moved(cpu, |cpu| cpu.steal_ns)).collect();
        (!stolen.is_empty()).then(|| stolen.iter().sum())
    }

    /// The firmware's flags that were up in any sample, or were raised for the first time since boot during the run.
    pub(super) fn firmware_flags(&self) -> i64 {
        let since_boot = |sample: &Option<HostSample>| {
            let flags = sample.as_ref().and_then(|sample| sample.host.firmware_throttled).unwrap_or(0);
            (flags & FIRMWARE_SINCE_BOOT) >> 16
        };
        self.firmware_now | (since_boot(&self.last) & !since_boot(&self.first))
    }

    /// The clock rates of `cpu` over the whole run; none where it told none.
    pub(super) fn rates_seen(&self, cpu: u16) -> Option<RatesSeen> {
        let (rates, (min_khz, max_khz)) = (self.rates.get(&cpu)?, *self.extreme_rates.get(&cpu)?);
        let readings: u64 = rates.iter().map(|rate| rate.readings).sum();
        let sum: f64 = rates.iter().map(|rate| rate.sum_khz).sum();
        Some(RatesSeen { min_khz, mean_khz: sum / readings as f64, max_khz })
    }

    /// The mean clock rates of `cpu` in the first and in the second half of the run, kHz; none where either half has
    /// fewer than `least` readings.
    pub(super) fn rates_khz(&self, cpu: u16, least: u64) -> Option<(f64, f64)> {
        let rates = self.rates.get(&cpu)?;
        let (early, late) = rates.split_at(rates.len() / 2);
        let mean = |half: &[Rate]| {
            let readings: u64 = half.iter().map(|rate| rate.readings).sum();
            (readings >= least).then(|| half.iter().map(|rate| rate.sum_khz).sum::<f64>() / readings as f64)
        };
        Some((mean(early)?, mean(late)?))
    }
}

/// Adds a reading. A stretch holds as many samples as half of all places could not hold singly, so
/// that a day at ten a second fits into the same room as ten seconds.
fn add_rate(rates: &mut Vec<Rate>, khz: i64) {
    let held = rates.first().map_or(1, |rate| rate.readings.max(1));
    match rates.last_mut() {
        // The first one is as long as all must be.
        Some(last) if last.readings < held => {
            last.sum_khz += khz as f64;
            last.readings += 1;
        }
        _ => rates.push(Rate { sum_khz: khz as f64, readings: 1 }),
    }
    if rates.len() > MOST_RATES {
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

    fn course(samples: impl Iterator<Item = HostSample>) -> HostAccumulator {
        let mut courses = BTreeMap::new();
        samples.for_each(|sample| HostAccumulator::gather(&mut courses, Side::Local, &sample));
        courses.remove(&Side::Local).unwrap_or_default()
    }

    #[test]
    fn the_worst_second_of_steal_is_found() {
        // 10 ms a second, but 300 ms in the fourth second.
        let stolen = |seq: u64| Some(seq as i64 * 5_000_000 + if seq >= 8 { 290_000_000 } else { 0 });
        let found = course((0..20).map(|seq| {
            sample(seq, CpuReadings { steal_ns: stolen(seq), ..Default::default() }, HostReadings::default())
        }));
        assert!((found.worst_steal - 0.3).abs() < 0.001, "{}", found.worst_steal);
        assert_eq!(found.stolen_ns(), Some(19 * 5_000_000 + 290_000_000));
        // Half before and half after a whole second, and at the very end.
        let stolen = |seq: u64| {
            Some(if seq >= 19 {
                300_000_000
            } else if seq >= 18 {
                150_000_000
            } else {
                0
            })
        };
        let found = course((0..20).map(|seq| {
            sample(seq, CpuReadings { steal_ns: stolen(seq), ..Default::default() }, HostReadings::default())
        }));
        assert!((found.worst_steal - 0.3).abs() < 0.001, "{}", found.worst_steal);
    }

    #[test]
    fn rates_of_a_long_run_fit_into_the_same_room() {
        for samples in [8, 100, 129, 10_000] {
            let khz = |seq: u64| Some(if seq < samples / 2 { 1_000_000 } else { 2_000_000 });
            let found = course((0..samples).map(|seq| {
                sample(seq, CpuReadings { frequency_khz: khz(seq), ..Default::default() }, HostReadings::default())
            }));
            assert!(found.rates[&0].len() <= MOST_RATES);
            assert_eq!(found.rates[&0].iter().map(|rate| rate.readings).sum::<u64>(), samples);
            let (early, late) = found.rates_khz(0, 4).expect("readings");
            assert!((early - 1e6).abs() < 4e4 && (late - 2e6).abs() < 4e4, "{samples}: {early} {late}");
            assert_eq!(found.rates_khz(0, samples), None);
        }
    }

    #[test]
    fn flags_of_before_the_run_are_not_the_runs() {
        let flags = |seq, flags| {
            sample(seq, CpuReadings::default(), HostReadings { firmware_throttled: Some(flags), ..Default::default() })
        };
        assert_eq!(course([flags(0, 0x5_0000), flags(1, 0x5_0000)].into_iter()).firmware_flags(), 0);
        assert_eq!(
            course([flags(0, 0x5_0000), flags(1, 0x5_0004), flags(2, 0x5_0000)].into_iter()).firmware_flags(),
            4
        );
        assert_eq!(course([flags(0, 0), flags(1, 0x8_0000)].into_iter()).firmware_flags(), 8);
    }
}
