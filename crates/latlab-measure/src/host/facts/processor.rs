//! The CPUs: model, topology, frequencies, idle states, temperatures and throttling.

use std::collections::BTreeMap;

use super::reader::{FactReader, value_of};
use crate::facts::{ByCpu, CpuTopology, FirmwareThrottling, Frequency, HeatFacts, IdleState, ProcessorFacts};
use crate::host::root::{HostRoot, parse_cpu_list};

const CPUS: &str = "sys/devices/system/cpu";
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
const NO_FREQUENCIES: &str = "the kernel does not set frequencies here";

/// x86 names the CPU; boards of other architectures name the board, which determines the CPU.
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
            // The name of the file depends on how the kernel was started.
            let governor = |file: &str| root.text(&format!("{CPUS}/cpuidle/{file}"));
            governor("current_governor_ro").or_else(|_| governor("current_governor"))
        }),
        idle_states: known.fact("processor.idle_states", || idle_states(root)),
        frequencies: known
            .fact("processor.frequencies", || frequencies(root))
            .inspect(|each| explain_nulls(each, known)),
    }
}

/// Keeps the reason for fields that only cpufreq has.
fn explain_nulls(frequencies: &ByCpu<Frequency>, known: &mut FactReader) {
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

/// The CPUs with a directory in sysfs, ascending.
fn cpus(root: &HostRoot) -> Vec<u16> {
    let names = root.names(CPUS);
    let mut cpus: Vec<u16> = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    cpus
}

/// The CPUs that are online.
pub(crate) fn topology(root: &HostRoot) -> Result<ByCpu<CpuTopology>, String> {
    let topology_of = |cpu: u16| {
        let about = format!("{CPUS}/cpu{cpu}/topology");
        let topology = CpuTopology {
            package: root.number(&format!("{about}/physical_package_id")).ok(),
            core: root.number(&format!("{about}/core_id")).ok(),
            siblings: root.text(&format!("{about}/thread_siblings_list")).ok(),
        };
        // A CPU that is offline has a directory without a topology.
        (topology != CpuTopology::default()).then_some((cpu, topology))
    };
    let topology: ByCpu<CpuTopology> = cpus(root).into_iter().filter_map(topology_of).collect();
    if topology.is_empty() { Err("the kernel does not report the CPU topology".into()) } else { Ok(topology) }
}

/// Intel's own driver has a switch that disables, all others one that enables.
fn turbo(root: &HostRoot) -> Result<bool, String> {
    let switch = |file: &str| root.number::<u8>(&format!("{CPUS}/{file}"));
    switch("intel_pstate/no_turbo")
        .map(|off| off == 0)
        .or_else(|_| switch("cpufreq/boost").map(|on| on == 1))
        .map_err(|_| "the kernel has no switch for it here".into())
}

/// From cpufreq; without it from `/proc/cpuinfo` of x86.
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
        // Separated by spaces, unlike all other lists of CPUs.
        let cpus = text("affected_cpus").unwrap_or_else(|| policy.trim_start_matches("policy").into());
        let cpus = cpus.split_whitespace().filter_map(parse_cpu_list).flatten();
        frequencies.extend(cpus.map(|cpu| (cpu, frequency.clone())));
    }
    if frequencies.is_empty() {
        frequencies = cpuinfo_frequencies(&root.text("proc/cpuinfo").unwrap_or_default());
    }
    if frequencies.is_empty() { Err(NO_FREQUENCIES.into()) } else { Ok(frequencies) }
}

/// `cpu MHz : 2599.998` of each processor.
fn cpuinfo_frequencies(cpus: &str) -> ByCpu<Frequency> {
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
        // Any bit: by the user (1) or by a driver (2).
        disabled: number("disable").is_some_and(|bits| bits != 0),
        entered: number("usage")?,
        resident_us: number("time")?,
    })
}

pub(super) fn heat(root: &HostRoot, known: &mut FactReader) -> HeatFacts {
    HeatFacts {
        temperatures_celsius: known.fact("heat.temperatures_celsius", || temperatures(root)),
        throttle_counts: known.fact("heat.throttle_counts", || throttle_counts(root)),
        firmware_throttling: known.fact("heat.firmware_throttling", || firmware_throttling(root)),
    }
}

/// Thermal zones; without any, the sensors of processors
/// ([thermal](https://docs.kernel.org/driver-api/thermal/sysfs-api.html),
/// [hwmon](https://docs.kernel.org/hwmon/sysfs-interface.html)). Both count in thousandths of a degree.
fn temperatures(root: &HostRoot) -> Result<BTreeMap<String, f64>, String> {
    const ZONES: &str = "sys/class/thermal";
    const SENSORS: &str = "sys/class/hwmon";
    const OF_PROCESSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
    let celsius = |file: &str| root.number::<f64>(file).ok().map(|thousandths| thousandths / 1e3);
    let mut found = BTreeMap::new();
    for zone in root.names(ZONES).into_iter().filter(|name| name.starts_with("thermal_zone")) {
        let kind = root.text(&format!("{ZONES}/{zone}/type")).unwrap_or_default();
        // The sensor of a zone may be off: reading it is an error then.
        found.extend(celsius(&format!("{ZONES}/{zone}/temp")).map(|celsius| (format!("{zone} {kind}"), celsius)));
    }
    for sensor in root.names(SENSORS) {
        let name = root.text(&format!("{SENSORS}/{sensor}/name")).unwrap_or_default();
        if !OF_PROCESSORS.contains(&name.as_str()) || !found.is_empty() {
            continue;
        }
        let inputs = root.names(&format!("{SENSORS}/{sensor}"));
        for input in inputs.iter().filter_map(|file| file.strip_suffix("_input")?.strip_prefix("temp")) {
            let prefix = format!("{SENSORS}/{sensor}/temp{input}");
            let label = root.text(&format!("{prefix}_label")).unwrap_or_else(|_| input.into());
            found.extend(celsius(&format!("{prefix}_input")).map(|celsius| (format!("{name} {label}"), celsius)));
        }
    }
    if found.is_empty() { Err("no temperature sensor answers".into()) } else { Ok(found) }
}

fn throttle_counts(root: &HostRoot) -> Result<ByCpu<u64>, String> {
    const CPUS: &str = "sys/devices/system/cpu";
    let count = |name: String| {
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, root.number(&format!("{CPUS}/{name}/thermal_throttle/core_throttle_count")).ok()?))
    };
    let counts: ByCpu<u64> = root.names(CPUS).into_iter().filter_map(count).collect();
    if counts.is_empty() { Err("the kernel counts no throttling here".into()) } else { Ok(counts) }
}

/// The flags of a Raspberry Pi's firmware: hexadecimal, without a prefix. The directory of the device is `soc` up to the
/// Pi 4 and `soc@107c000000` on the Pi 5.
fn firmware_throttling(root: &HostRoot) -> Result<FirmwareThrottling, String> {
    const DEVICES: &str = "sys/devices/platform";
    let below = |directory: String| {
        root.names(&directory).into_iter().map(move |name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let top = below(DEVICES.into());
    let systems = top.iter().filter(|path| path[DEVICES.len() + 1..].starts_with("soc")).cloned();
    let devices = systems.flat_map(below).chain(top.iter().cloned());
    let firmware = devices.filter(|path| path.ends_with("firmware"));
    let text = firmware.map(|path| root.text(&format!("{path}/get_throttled"))).find_map(Result::ok);
    let text = text.ok_or("the firmware does not report throttling (only that of a Raspberry Pi does)")?;
    let bits = u32::from_str_radix(text.trim_start_matches("0x"), 16);
    bits.map(FirmwareThrottling).map_err(|_| format!("get_throttled: `{text}` is not a hexadecimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn without_cpufreq_frequencies_come_from_cpuinfo() {
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

    #[test]
    fn without_thermal_zones_temperatures_come_from_processor_sensors() {
        let host = FakeHost::new()
            .with("sys/class/hwmon/hwmon0/name", "nvme\n")
            .with("sys/class/hwmon/hwmon0/temp1_input", "30000\n")
            .with("sys/class/hwmon/hwmon1/name", "k10temp\n")
            .with("sys/class/hwmon/hwmon1/temp1_label", "Tctl\n")
            .with("sys/class/hwmon/hwmon1/temp1_input", "61250\n")
            .with("sys/class/hwmon/hwmon1/temp3_input", "58000\n");
        let expected = [("k10temp 3".to_owned(), 58.0), ("k10temp Tctl".to_owned(), 61.25)];
        assert_eq!(temperatures(&host.root), Ok(expected.into()));
    }

    #[test]
    fn throttling_flags_are_found_in_the_directories_of_all_boards() {
        for place in ["soc/soc:firmware", "soc@107c000000/soc@107c000000:firmware"] {
            let file = format!("sys/devices/platform/{place}/get_throttled");
            let host = FakeHost::new().with(&file, "50000\n");
            assert_eq!(firmware_throttling(&host.root), Ok(FirmwareThrottling(0x5_0000)), "{place}");
            assert!(firmware_throttling(&host.with(&file, "soon").root).is_err());
        }
        let counted = FakeHost::new().with("sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "17\n");
        assert_eq!(throttle_counts(&counted.root).expect("counts")[&3], 17);
    }
}
