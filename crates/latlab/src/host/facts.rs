//! Reading a host's facts. What cannot be had stays null, with the reason.

use std::collections::BTreeMap;

use super::activity::CpuTicks;
use super::root::HostRoot;
use crate::facts::HostFacts;

/// The facts of the host under `root`, now.
pub fn read(root: &HostRoot) -> HostFacts {
    let mut unknown = BTreeMap::new();
    let mut known = Known { unknown: &mut unknown };
    HostFacts {
        kernel: known.fact("kernel", kernel(root)),
        architecture: known.fact("architecture", architecture(root)),
        cpu_model: known.fact("cpu_model", cpu_model(root)),
        cpus_online: known.fact("cpus_online", root.text("sys/devices/system/cpu/online")),
        governors: known.fact("governors", governors(root)),
        clocksource: known
            .fact("clocksource", root.text("sys/devices/system/clocksource/clocksource0/current_clocksource")),
        rt_runtime_us: known.fact("rt_runtime_us", root.number("proc/sys/kernel/sched_rt_runtime_us")),
        timer_slack_ns: known.fact("timer_slack_ns", root.number("proc/self/timerslack_ns")),
        virtualisation: known.fact("virtualisation", virtualisation(root)),
        load_average: known.fact("load_average", load_average(root)),
        memory_bytes: known.fact("memory_bytes", memory_bytes(root)),
        boot_id: known.fact("boot_id", root.text("proc/sys/kernel/random/boot_id")),
        steal_ticks: known.fact("steal_ticks", CpuTicks::read(root).map(|ticks| ticks.all.steal)),
        unknown,
    }
}

struct Known<'a> {
    unknown: &'a mut BTreeMap<String, String>,
}

impl Known<'_> {
    fn fact<T>(&mut self, field: &str, answer: Result<T, String>) -> Option<T> {
        answer.map_err(|reason| self.unknown.insert(field.into(), reason)).ok()
    }
}

fn kernel(root: &HostRoot) -> Result<String, String> {
    Ok(format!("{} {}", root.text("proc/sys/kernel/ostype")?, root.text("proc/sys/kernel/osrelease")?))
}

fn architecture(root: &HostRoot) -> Result<String, String> {
    // The file came with Linux 6.1; before that, what we were built for is what runs.
    root.text("proc/sys/kernel/arch").or_else(|_| Ok(std::env::consts::ARCH.into()))
}

/// x86 names the CPU; boards of other architectures name the board, which tells the CPU.
fn cpu_model(root: &HostRoot) -> Result<String, String> {
    let cpus = root.text("proc/cpuinfo")?;
    for key in ["model name", "Model", "Hardware"] {
        if let Some(value) = value_of(&cpus, key) {
            return Ok(value.into());
        }
    }
    root.text("proc/device-tree/model").map_err(|_| "/proc/cpuinfo names no model".into())
}

/// The value of the first line `key : value`.
pub(super) fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

fn governors(root: &HostRoot) -> Result<Vec<String>, String> {
    const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
    let policies = root.names(POLICIES).into_iter().filter(|name| name.starts_with("policy"));
    let mut governors: Vec<String> =
        policies.filter_map(|policy| root.text(&format!("{POLICIES}/{policy}/scaling_governor")).ok()).collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() { Err("the kernel does not set frequencies here".into()) } else { Ok(governors) }
}

fn virtualisation(root: &HostRoot) -> Result<String, String> {
    if let Ok(kind) = root.text("sys/hypervisor/type") {
        return Ok(kind);
    }
    if let Ok(kind) = root.text("proc/device-tree/hypervisor/compatible") {
        return Ok(kind);
    }
    let cpus = root.text("proc/cpuinfo")?;
    let virtual_cpu = value_of(&cpus, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let maker = root.text("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root.text("sys/class/dmi/id/product_name").unwrap_or_default();
    let makers = [
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Microsoft Corporation", "hyper-v"),
        ("QEMU", "kvm"),
        ("Amazon EC2", "kvm (amazon ec2)"),
        ("Google", "kvm (google)"),
    ];
    let known = makers.iter().find(|(name, _)| maker.contains(name) || product.contains(name));
    match (virtual_cpu, known) {
        (true, Some((_, kind))) => Ok((*kind).into()),
        (true, None) => Ok("a hypervisor that does not say its name".into()),
        // A real Amazon or Microsoft machine has the maker without the flag; other CPUs have no such flag.
        (false, Some((_, kind))) if value_of(&cpus, "flags").is_none() => Ok((*kind).into()),
        (false, _) => Ok("none".into()),
    }
}

fn load_average(root: &HostRoot) -> Result<[f64; 3], String> {
    let text = root.text("proc/loadavg")?;
    let mut numbers = text.split(' ').map_while(|word| word.parse::<f64>().ok());
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(five), Some(fifteen)) => Ok([one, five, fifteen]),
        _ => Err(format!("/proc/loadavg: `{text}` holds no three numbers")),
    }
}

fn memory_bytes(root: &HostRoot) -> Result<u64, String> {
    let text = root.text("proc/meminfo")?;
    let total = value_of(&text, "MemTotal").and_then(|value| value.strip_suffix(" kB")?.parse::<u64>().ok());
    total.map(|kib| kib * 1024).ok_or_else(|| "/proc/meminfo states no MemTotal".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn a_host_tells_its_facts() {
        let host = FakeHost::new()
            .with("proc/sys/kernel/ostype", "Linux\n")
            .with("proc/sys/kernel/osrelease", "6.1.0-rpi7\n")
            .with("proc/sys/kernel/arch", "aarch64\n")
            .with("proc/cpuinfo", "processor\t: 0\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n")
            .with("sys/devices/system/cpu/online", "0-3\n")
            .with("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "ondemand\n")
            .with("sys/devices/system/clocksource/clocksource0/current_clocksource", "arch_sys_counter\n")
            .with("proc/sys/kernel/sched_rt_runtime_us", "-1\n")
            .with("proc/self/timerslack_ns", "50000\n")
            .with("proc/loadavg", "0.10 0.20 0.30 1/100 999\n")
            .with("proc/meminfo", "MemTotal:        3884360 kB\nMemFree: 1 kB\n")
            .with("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
        let facts = read(&host.root);
        assert_eq!(facts.kernel.as_deref(), Some("Linux 6.1.0-rpi7"));
        assert_eq!(facts.cpu_model.as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
        assert_eq!(facts.governors, Some(vec!["ondemand".to_owned()]));
        assert_eq!((facts.rt_runtime_us, facts.timer_slack_ns), (Some(-1), Some(50_000)));
        assert_eq!(facts.load_average, Some([0.1, 0.2, 0.3]));
        assert_eq!(facts.memory_bytes, Some(3_884_360 * 1024));
        assert_eq!(facts.virtualisation.as_deref(), Some("none"));
        assert_eq!(facts.steal_ticks, Some(8));
        assert_eq!(facts.unknown.keys().collect::<Vec<_>>(), ["boot_id"]);
    }

    #[test]
    fn what_is_not_there_is_null_with_a_reason() {
        let facts = read(&FakeHost::new().root);
        assert_eq!(facts.clocksource, None);
        assert!(facts.unknown["clocksource"].ends_with("no such file or directory (ENOENT)"), "{facts:?}");
        assert_eq!(facts.unknown["governors"], "the kernel does not set frequencies here");
    }

    #[test]
    fn hypervisors_are_told_from_metal() {
        let metal = FakeHost::new()
            .with("proc/cpuinfo", "flags : fpu vme\n")
            .with("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(virtualisation(&metal.root).as_deref(), Ok("none"));
        let guest = metal.with("proc/cpuinfo", "flags : fpu hypervisor\n");
        assert_eq!(virtualisation(&guest.root).as_deref(), Ok("kvm (amazon ec2)"));
        let nameless = FakeHost::new().with("proc/cpuinfo", "flags : hypervisor\n");
        assert_eq!(virtualisation(&nameless.root).as_deref(), Ok("a hypervisor that does not say its name"));
    }

    #[test]
    fn this_host_tells_its_boot_and_kernel() {
        let facts = read(&HostRoot::live());
        assert!(facts.kernel.is_some_and(|kernel| kernel.starts_with("Linux ")));
        assert!(facts.boot_id.is_some_and(|id| id.len() == 36));
    }
}
