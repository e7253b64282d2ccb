//! What CPUs did while threads slept on them: how deep they slept, how fast they ran. Of what the host does not tell
//! there is nothing.

use std::collections::BTreeSet;

use super::host_course::HostAccumulator;
use crate::facts::{CpuReadings, IDLE_STATES, IdleState, ProcessorFacts};
use crate::recording::manifest::Manifest;

/// What a CPU did from the first to the last host sample of a run, its warm-up included.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuMeanwhile {
    /// The CPU.
    pub cpu: u16,
    /// The share of the time in which it had nothing to do, in steps of the kernel's tick.
    pub idle: Option<f64>,
    /// Its idle states, the shallowest first; empty where the kernel manages none.
    pub states: Vec<StateShare>,
    /// Its clock rate when it was sampled.
    pub rate: Option<RatesSeen>,
}

/// How long a CPU was in an idle state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateShare {
    /// The driver's name of it; its number where facts have none.
    pub name: String,
    /// How long waking up from it takes at most, as the driver states.
    pub exit_latency_us: Option<u32>,
    /// The share of the time.
    pub share: f64,
}

/// Clock rates of a CPU, kHz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatesSeen {
    /// The lowest.
    pub min_khz: i64,
    /// Their mean.
    pub mean_khz: f64,
    /// The highest.
    pub max_khz: i64,
}

/// What `cpus` did, as the samples of this host tell; where there are no samples of an idle state, as facts from
/// before and after the run do.
pub(super) fn of(cpus: &BTreeSet<u16>, manifest: &Manifest, course: Option<&HostAccumulator>) -> Vec<CpuMeanwhile> {
    let one = |cpu: &u16| {
        let sampled = course.and_then(|course| sampled_states(*cpu, manifest, course));
        CpuMeanwhile {
            cpu: *cpu,
            idle: course.and_then(|course| share(course, *cpu, |cpu| cpu.idle_ns)),
            states: sampled.or_else(|| states_of_facts(*cpu, manifest)).unwrap_or_default(),
            rate: course.and_then(|course| course.rates_seen(*cpu)),
        }
    };
    cpus.iter().map(one).collect()
}

/// The part of the time between the first and the last sample that `counter` grew by.
fn share(course: &HostAccumulator, cpu: u16, counter: impl Fn(&CpuReadings) -> Option<i64>) -> Option<f64> {
    let span = course.span().0;
    let moved = course.moved(cpu, counter)?;
    // A sample takes a while, so that a counter may grow by a little more than the time between their beginnings.
    (span > 0).then(|| (moved as f64 / span as f64).min(1.0))
}

fn sampled_states(cpu: u16, manifest: &Manifest, course: &HostAccumulator) -> Option<Vec<StateShare>> {
    let known = processor(manifest, false).and_then(|facts| facts.idle_states.as_ref()?.get(&cpu));
    let state = |number: usize| {
        let residency = |cpu: &CpuReadings| cpu.numbers()[CpuReadings::WIDTH - IDLE_STATES + number];
        let share = share(course, cpu, residency)?;
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
    use crate::analysis::in_memory::manifest;
    use crate::facts::{HostFacts, HostReadings, HostSample};
    use crate::plan::Schedule;
    use crate::plan::Side;

    /// Two samples a second apart, in which CPU 1 was idle for 900 ms, 700 ms of it in state 1.
    fn course() -> HostAccumulator {
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
        let mut courses = std::collections::BTreeMap::new();
        for sample in [sample(1, 600_000), sample(2, 1_800_000)] {
            HostAccumulator::gather(&mut courses, Side::Local, &sample);
        }
        courses.remove(&Side::Local).expect("two samples")
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
    fn samples_tell_states_by_the_names_of_the_facts() {
        let mut manifest = manifest(Schedule::Closed);
        manifest.here.before = Some(with_states(0));
        let [told] = &of(&BTreeSet::from([1]), &manifest, Some(&course()))[..] else { panic!("one CPU") };
        let states: Vec<_> =
            told.states.iter().map(|state| (&*state.name, state.exit_latency_us, state.share)).collect();
        assert_eq!((told.idle, states), (Some(0.9), vec![("POLL", Some(0), 0.1), ("C6", Some(133), 0.7)]));
        assert_eq!(told.rate, Some(RatesSeen { min_khz: 600_000, mean_khz: 1.2e6, max_khz: 1_800_000 }));
    }

    #[test]
    fn facts_stand_in_where_there_are_no_samples_and_nothing_is_invented() {
        let mut manifest = manifest(Schedule::Closed);
        (manifest.here.before, manifest.here.after) = (Some(with_states(0)), Some(with_states(500_000)));
        let span = |manifest: &Manifest| {
            let ends = manifest.here.clock_start.as_ref().zip(manifest.here.clock_end.as_ref()).expect("anchors");
            (ends.1.monotonic_ns - ends.0.monotonic_ns) as f64 / 1e3
        };
        let [told] = &of(&BTreeSet::from([1]), &manifest, None)[..] else { panic!("one CPU") };
        assert_eq!(told.states[1].share, (500_000.0 / span(&manifest)).min(1.0));
        (manifest.here.before, manifest.here.after) = (None, None);
        let [told] = &of(&BTreeSet::from([0]), &manifest, Some(&course()))[..] else { panic!("one CPU") };
        assert_eq!(told, &CpuMeanwhile { cpu: 0, idle: None, states: Vec::new(), rate: None });
    }
}
