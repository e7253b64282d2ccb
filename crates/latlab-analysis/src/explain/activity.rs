//! What the CPUs did on which threads slept: idle states and clock rates.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::facts::{CpuReadings, IDLE_STATES, IdleState, ProcessorFacts};
use crate::host_samples::{ClockRates, HostAccumulator};
use crate::recording::manifest::Manifest;

/// Activity of a CPU from the first to the last host sample of a run, its warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuActivity {
    pub cpu: u16,
    /// The share of the time in which it was idle, in steps of the kernel's tick.
    #[serde(rename = "idle_ratio")]
    pub idle: Option<f64>,
    /// Its idle states, the shallowest first; empty if the kernel does not manage them.
    #[serde(rename = "idle_states")]
    pub states: Vec<StateShare>,
    #[serde(rename = "frequency_khz")]
    pub rate: Option<ClockRates>,
}

/// Time of a CPU in an idle state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateShare {
    /// The driver's name of it; its number if facts have no name.
    pub name: String,
    /// The longest time to leave it, as the driver states.
    pub exit_latency_us: Option<u32>,
    /// The share of the time.
    #[serde(rename = "ratio")]
    pub share: f64,
}

/// The activity of `cpus`: from the samples of this host; without samples of idle states, from facts before and after
/// the run.
pub(super) fn cpu_activity(
    cpus: &BTreeSet<u16>,
    manifest: &Manifest,
    host: Option<&HostAccumulator>,
) -> Vec<CpuActivity> {
    let one = |cpu: &u16| {
        let sampled = host.and_then(|host| sampled_states(*cpu, manifest, host));
        CpuActivity {
            cpu: *cpu,
            idle: host.and_then(|host| share(host, *cpu, |cpu| cpu.idle_ns)),
            states: sampled.or_else(|| states_of_facts(*cpu, manifest)).unwrap_or_default(),
            rate: host.and_then(|host| host.clock_rates(*cpu)),
        }
    };
    cpus.iter().map(one).collect()
}

/// The increase of `counter` as a share of the time between the first and the last sample.
fn share(host: &HostAccumulator, cpu: u16, counter: impl Fn(&CpuReadings) -> Option<i64>) -> Option<f64> {
    let span = host.span().0;
    let moved = host.moved(cpu, counter)?;
    // Taking a sample needs time, so that a counter may increase by a little more than the time between two starts.
    (span > 0).then(|| (moved as f64 / span as f64).min(1.0))
}

fn sampled_states(cpu: u16, manifest: &Manifest, host: &HostAccumulator) -> Option<Vec<StateShare>> {
    let known = processor(manifest, false).and_then(|facts| facts.idle_states.as_ref()?.get(&cpu));
    let state = |number: usize| {
        let residency = |cpu: &CpuReadings| cpu.numbers()[CpuReadings::WIDTH - IDLE_STATES + number];
        let share = share(host, cpu, residency)?;
        let facts: Option<&IdleState> = known.and_then(|states| states.get(number));
        let name = facts.map_or_else(|| format!("state {number}"), |facts| facts.name.clone());
        Some(StateShare { name, exit_latency_us: facts.map(|facts| facts.exit_latency_us), share })
    };
    let states: Vec<_> = (0..IDLE_STATES).map_while(state).collect();
    (!states.is_empty()).then_some(states)
}

fn states_of_facts(cpu: u16, manifest: &Manifest) -> Option<Vec<StateShare>> {
    let (before, after) = (processor(manifest, false)?, processor(manifest, true)?);
    let anchors = (manifest.here.clock_start.as_ref()?, manifest.here.clock_end.as_ref()?);
    let span_us = (anchors.1.monotonic_ns - anchors.0.monotonic_ns) as f64 / 1e3;
    let states = after.idle_since(before, cpu).into_iter().map(|used| StateShare {
        name: used.state.name.clone(),
        exit_latency_us: Some(used.state.exit_latency_us),
        share: (used.resident_us as f64 / span_us).min(1.0),
    });
    let states: Vec<_> = states.collect();
    (!states.is_empty() && span_us > 0.0).then_some(states)
}

fn processor(manifest: &Manifest, after: bool) -> Option<&ProcessorFacts> {
    let facts = if after { &manifest.here.after } else { &manifest.here.before };
    facts.as_ref().map(|facts| &facts.processor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{HostFacts, HostReadings, HostSample};
    use crate::in_memory::manifest;
    use crate::plan::Schedule;

    /// Two samples a second apart, in which CPU 1 was idle for 900 ms, 700 ms of it in state 1.
    fn sampled() -> HostAccumulator {
        let sample = |seq: i64, khz| {
            let states = [Some(100_000_000 * seq), Some(700_000_000 * seq)];
            let mut residencies = [None; IDLE_STATES];
            residencies[..2].copy_from_slice(&states);
            let readings =
                CpuReadings { idle_ns: Some(900_000_000 * seq), frequency_khz: Some(khz), ..CpuReadings::default() };
            let cpus = vec![(0, CpuReadings::default()), (1, readings.with_idle_states(residencies))];
            let start_ns = seq * 1_000_000_000;
            let host = HostReadings::default();
            HostSample { seq: seq as u64, start_ns, end_ns: start_ns + 60_000, sampler_cpu: None, host, cpus }
        };
        let mut host = HostAccumulator::default();
        [sample(1, 600_000), sample(2, 1_800_000)].iter().for_each(|sample| host.take(sample));
        host
    }

    fn with_states(residency_us: u64) -> HostFacts {
        let state = |name: &str, exit_latency_us, resident_us| IdleState {
            name: name.into(),
            exit_latency_us,
            resident_us,
            ..IdleState::default()
        };
        let states = vec![state("POLL", 0, 0), state("C6", 133, residency_us)];
        let mut facts = HostFacts::default();
        facts.processor.idle_states = Some([(1, states)].into_iter().collect());
        facts
    }

    #[test]
    fn sampled_idle_states_have_the_names_of_the_facts() {
        let mut manifest = manifest(Schedule::Closed);
        manifest.here.before = Some(with_states(0));
        let [found] = &cpu_activity(&BTreeSet::from([1]), &manifest, Some(&sampled()))[..] else { panic!("one CPU") };
        let states: Vec<_> =
            found.states.iter().map(|state| (&*state.name, state.exit_latency_us, state.share)).collect();
        assert_eq!((found.idle, states), (Some(0.9), vec![("POLL", Some(0), 0.1), ("C6", Some(133), 0.7)]));
        assert_eq!(found.rate, Some(ClockRates { min_khz: 600_000, mean_khz: 1.2e6, max_khz: 1_800_000 }));
    }

    #[test]
    fn without_samples_idle_states_come_from_the_facts() {
        let mut manifest = manifest(Schedule::Closed);
        (manifest.here.before, manifest.here.after) = (Some(with_states(0)), Some(with_states(500_000)));
        let span = |manifest: &Manifest| {
            let ends = manifest.here.clock_start.as_ref().zip(manifest.here.clock_end.as_ref()).expect("anchors");
            (ends.1.monotonic_ns - ends.0.monotonic_ns) as f64 / 1e3
        };
        let [found] = &cpu_activity(&BTreeSet::from([1]), &manifest, None)[..] else { panic!("one CPU") };
        assert_eq!(found.states[1].share, (500_000.0 / span(&manifest)).min(1.0));
        (manifest.here.before, manifest.here.after) = (None, None);
        let [found] = &cpu_activity(&BTreeSet::from([0]), &manifest, Some(&sampled()))[..] else { panic!("one CPU") };
        assert_eq!(found, &CpuActivity { cpu: 0, idle: None, states: Vec::new(), rate: None });
    }
}
