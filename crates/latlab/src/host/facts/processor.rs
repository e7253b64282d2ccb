//! The CPUs: which, where, how fast, how deep they sleep.

use super::known::FactReader;
use super::value_of;
use crate::facts::{ByCpu, CpuTopology, Frequency, IdleState, ProcessorFacts};
use crate::host::cpu_list;
use crate::host::root::HostRoot;

const CPUS: &str = "sys/devices/system/cpu";
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
const NO_FREQUENCIES: &str = "the kernel does not set frequencies here";

/// x86 names the CPU; boards of other architectures name the board, which tells the CPU.
pub(super) fn model(root: &HostRoot) -> Result<String, String> {
    let cpus = root.text("proc/cpuinfo")?;
    for key in ["model name", "Model", "Hardware"] {
        if let Some(value) = value_of(&cpus, key) {
            return Ok(value.into());
        }
    }
    root.text("proc/device-tree/model").map_err(|_| "/proc/cpuinfo names no model".into())
}

/// The governors in use, each once.
pub(super) fn governors(root: &HostRoot) -> Result<Vec<String>, String> {
    let policies = root.names(POLICIES).into_iter().filter(|name| name.starts_with("policy"));
    let mut governors: Vec<String> =
        policies.filter_map(|policy| root.text(&format!("{POLICIES}/{policy}/scaling_governor")).ok()).collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() { Err(NO_FREQUENCIES.into()) } else { Ok(governors) }
}

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> ProcessorFacts {
    ProcessorFacts {
        topology: known.fact("processor.topology", || topology(root)),
        smt_active: known.fact("processor.smt_active", || Ok(root.number::<u8>(&format!("{CPUS}/smt/active"))? == 1)),
        turbo: known.fact("processor.turbo", || turbo(root)),
        idle_driver: known.fact("processor.idle_driver", || root.text(&format!("{CPUS}/cpuidle/current_driver"))),
        idle_governor: known.fact("processor.idle_governor", || {
            // Writable under one name, readable under another, depending on how the kernel was started.
            let governor = |file: &str| root.text(&format!("{CPUS}/cpuidle/{file}"));
            governor("current_governor_ro").or_else(|_| governor("current_governor"))
        }),
        idle_states: known.fact("processor.idle_states", || idle_states(root)),
        frequencies: known.fact("processor.frequencies", || frequencies(root)).inspect(|each| explain(each, known)),
    }
}

/// What cpufreq would have told, had it been there.
fn explain(frequencies: &ByCpu<Frequency>, known: &mut FactReader) {
    let mut lack = |field: &str, value: fn(&Frequency) -> bool| {
        if frequencies.values().any(value) {
            known.lacks(format!("processor.frequencies.{field}"), NO_FREQUENCIES);
        }
    };
    lack("driver", |cpu| cpu.driver.is_none());
    lack("governor", |cpu| cpu.governor.is_none());
    lack("minimum_khz", |cpu| cpu.minimum_khz.is_none());
    lack("maximum_khz", |cpu| cpu.maximum_khz.is_none());
    lack("hardware_maximum_khz", |cpu| cpu.hardware_maximum_khz.is_none());
    lack("current_khz", |cpu| cpu.current_khz.is_none());
}

/// The CPUs that the kernel has a directory for, ascending.
fn cpus(root: &HostRoot) -> Vec<u16> {
    let names = root.names(CPUS);
    let mut cpus: Vec<u16> = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    cpus
}

fn topology(root: &HostRoot) -> Result<ByCpu<CpuTopology>, String> {
    let place = |cpu: u16| {
        let about = format!("{CPUS}/cpu{cpu}/topology");
        let place = CpuTopology {
            package: root.number(&format!("{about}/physical_package_id")).ok(),
            core: root.number(&format!("{about}/core_id")).ok(),
            siblings: root.text(&format!("{about}/thread_siblings_list")).ok(),
        };
        // A CPU that is switched off has a directory, but no place.
        (place != CpuTopology::default()).then_some((cpu, place))
    };
    let topology: ByCpu<CpuTopology> = cpus(root).into_iter().filter_map(place).collect();
    if topology.is_empty() { Err("the kernel does not tell where its CPUs sit".into()) } else { Ok(topology) }
}

/// Intel's own driver says it one way, all others the other way round.
fn turbo(root: &HostRoot) -> Result<bool, String> {
    let switch = |file: &str| root.number::<u8>(&format!("{CPUS}/{file}"));
    switch("intel_pstate/no_turbo")
        .map(|off| off == 0)
        .or_else(|_| switch("cpufreq/boost").map(|on| on == 1))
        .map_err(|_| "the kernel has no switch for it here".into())
}

/// What cpufreq sets; where it does not, what `/proc/cpuinfo` of x86 says.
fn frequencies(root: &HostRoot) -> Result<ByCpu<Frequency>, String> {
    let mut frequencies = ByCpu::default();
    for policy in root.names(POLICIES).into_iter().filter(|name| name.starts_with("policy")) {
        let text = |file: &str| root.text(&format!("{POLICIES}/{policy}/{file}")).ok();
        let khz = |file: &str| root.number(&format!("{POLICIES}/{policy}/{file}")).ok();
        let frequency = Frequency {
            driver: text("scaling_driver"),
            governor: text("scaling_governor"),
            minimum_khz: khz("scaling_min_freq"),
            maximum_khz: khz("scaling_max_freq"),
            hardware_maximum_khz: khz("cpuinfo_max_freq"),
            current_khz: khz("scaling_cur_freq"),
        };
        // Separated by blanks, unlike all other lists of CPUs.
        let cpus = text("affected_cpus").unwrap_or_else(|| policy.trim_start_matches("policy").into());
        let cpus = cpus.split_whitespace().filter_map(cpu_list::parse).flatten();
        frequencies.extend(cpus.map(|cpu| (cpu, frequency.clone())));
    }
    if frequencies.is_empty() {
        frequencies = stated_frequencies(&root.text("proc/cpuinfo").unwrap_or_default());
    }
    if frequencies.is_empty() { Err(NO_FREQUENCIES.into()) } else { Ok(frequencies) }
}

/// `cpu MHz : 2599.998` of each processor.
fn stated_frequencies(cpus: &str) -> ByCpu<Frequency> {
    let blocks = cpus.split("\n\n");
    blocks
        .filter_map(|block| {
            let megahertz: f64 = value_of(block, "cpu MHz")?.parse().ok()?;
            let current_khz = Some((megahertz * 1e3).round() as u64);
            Some((value_of(block, "processor")?.parse().ok()?, Frequency { current_khz, ..Frequency::default() }))
        })
        .collect()
}

fn idle_states(root: &HostRoot) -> Result<ByCpu<Vec<IdleState>>, String> {
    let states = |cpu: u16| {
        let directory = format!("{CPUS}/cpu{cpu}/cpuidle");
        let names = root.names(&directory);
        let mut numbers: Vec<u16> = names.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok()).collect();
        numbers.sort_unstable();
        let states: Vec<_> =
            numbers.iter().filter_map(|number| idle_state(root, &format!("{directory}/state{number}"))).collect();
        (!states.is_empty()).then_some((cpu, states))
    };
    let found: ByCpu<Vec<IdleState>> = cpus(root).into_iter().filter_map(states).collect();
    if found.is_empty() { Err("the kernel manages no idle states here".into()) } else { Ok(found) }
}

/// [Documentation/admin-guide/pm/cpuidle](https://docs.kernel.org/admin-guide/pm/cpuidle.html)
fn idle_state(root: &HostRoot, directory: &str) -> Option<IdleState> {
    let number = |file: &str| root.number::<u64>(&format!("{directory}/{file}")).ok();
    Some(IdleState {
        name: root.text(&format!("{directory}/name")).ok()?,
        exit_latency_us: u32::try_from(number("latency")?).ok()?,
        // Any bit: by a person (1) or by a driver (2).
        disabled: number("disable").is_some_and(|bits| bits != 0),
        entered: number("usage")?,
        resident_us: number("time")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn without_cpufreq_x86_states_what_it_runs_at() {
        let cpus = "processor\t: 0\ncpu MHz\t\t: 2599.998\n\nprocessor\t: 1\ncpu MHz\t\t: 800.0\n";
        let host = FakeHost::new().with("proc/cpuinfo", cpus);
        let frequencies = frequencies(&host.root).expect("stated");
        assert_eq!(frequencies[&0].current_khz, Some(2_599_998));
        assert_eq!((frequencies[&1].current_khz, frequencies[&1].maximum_khz), (Some(800_000), None));
    }

    #[test]
    fn turbo_is_read_from_either_switch() {
        for (file, text, expected) in [
            ("intel_pstate/no_turbo", "0", Ok(true)),
            ("intel_pstate/no_turbo", "1", Ok(false)),
            ("cpufreq/boost", "1", Ok(true)),
            ("cpufreq/boost", "0", Ok(false)),
            ("online", "0-1", Err("the kernel has no switch for it here".into())),
        ] {
            let host = FakeHost::new().with(&format!("{CPUS}/{file}"), text);
            assert_eq!(turbo(&host.root), expected, "{file} {text}");
        }
    }
}
