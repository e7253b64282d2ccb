//! Facts of the machine on which a bench runs.

use std::collections::BTreeMap;
use std::fs;

/// Prefixes of kernel arguments that change the latency of wake-ups and system calls.
const RELEVANT: [&str; 10] = [
    "mitigations",
    "isolcpus",
    "nohz",
    "rcu_nocbs",
    "idle",
    "intel_idle",
    "processor.max_cstate",
    "cpuidle",
    "haltpoll",
    "preempt",
];

/// Facts by name, as the kernel prints them; `unknown` if a fact cannot be read.
pub(crate) fn facts() -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or("unknown".into());
    let processors = read("/proc/cpuinfo");
    let line = |name: &str| {
        let found = processors.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        found.map_or("unknown".to_string(), |(_, value)| value.trim().to_string())
    };
    let hypervisor = line("flags").split(' ').any(|flag| flag == "hypervisor");
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    [
        ("processor", line("model name")),
        ("CPUs", count.to_string()),
        ("virtual machine", if hypervisor { "yes" } else { "no" }.to_string()),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("clocksource", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("kernel arguments", relevant(&read("/proc/cmdline"))),
        ("latlab", env!("CARGO_PKG_VERSION").to_string()),
        ("date", jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

fn relevant(arguments: &str) -> String {
    let kept = arguments.split_whitespace().filter(|word| RELEVANT.iter().any(|start| word.starts_with(start)));
    let kept: Vec<&str> = kept.collect();
    if kept.is_empty() { "none of note".into() } else { kept.join(" ") }
}
