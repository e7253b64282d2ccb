//! All facts of a host, at one instant.
//!
//! Reading changes nothing, never fails, and ends within about a second. Facts that are not read by then are null, with
//! that reason. Facts are read before a run is armed and after it has ended, never in between.

use std::time::Instant;

use super::network::Interface;
use super::reader::{FactReader, value_of};
use super::{cgroup, clock, kernel, network, processor};
use crate::clock::{Clock, Monotonic};
use crate::facts::{HostFacts, Rights};
use crate::host::root::HostRoot;

/// The facts of the host under `root`, now, and of `interface` in the calling thread's network namespace.
pub fn read(root: &HostRoot, interface: Interface<'_>) -> HostFacts {
    let (start, began) = (Instant::now(), Monotonic.now());
    let mut known = FactReader::new(start);
    let counters = kernel::counters(root, &mut known);
    let steal_ticks = counters.cpu_ticks.as_ref().map(|ticks| ticks.all.steal);
    let facts = HostFacts {
        kernel: known.fact("kernel", || kernel::version(root)),
        architecture: known.fact("architecture", || kernel::architecture(root)),
        cpu_model: known.fact("cpu_model", || processor::model(root)),
        cpus_online: known.fact("cpus_online", || root.text("sys/devices/system/cpu/online")),
        governors: known.fact("governors", || processor::governors(root)),
        clocksource: known.fact("clocksource", || clock::source(root)),
        rt_runtime_us: known.fact("rt_runtime_us", || root.number("proc/sys/kernel/sched_rt_runtime_us")),
        timer_slack_ns: known.fact("timer_slack_ns", || root.number("proc/self/timerslack_ns")),
        virtualisation: known.fact("virtualisation", || virtualisation(root)),
        load_average: known.fact("load_average", || load_average(root)),
        memory_bytes: known.fact("memory_bytes", || kernel::memory_bytes(root)),
        boot_id: known.fact("boot_id", || boot_id(root)),
        steal_ticks: known.fact("steal_ticks", || steal_ticks.ok_or_else(|| "see `counters.cpu_ticks`".into())),
        kernel_settings: kernel::settings(root, &mut known),
        processor: processor::read(root, &mut known),
        counters,
        memory: kernel::memory(root, &mut known),
        cgroup: cgroup::read(root, &mut known),
        heat: processor::heat(root, &mut known),
        rights: known.fact("rights", || rights(root)),
        network: network::read(root, interface, &mut known),
        // Last, since it waits for a program.
        clock: clock::read(root, &mut known),
        monotonic_ns: Some(began.as_nanos()),
        ..HostFacts::default()
    };
    let reading_ns = u64::try_from(start.elapsed().as_nanos()).ok();
    HostFacts { reading_ns, unknown: known.reasons(), ..facts }
}

/// The id of the boot of the host under `root`, or why it is unknown.
pub fn boot_id(root: &HostRoot) -> Result<String, String> {
    root.text("proc/sys/kernel/random/boot_id")
}

pub(super) fn virtualisation(root: &HostRoot) -> Result<String, String> {
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
        (true, None) => Ok(hypervisor_of_clock(root).unwrap_or("a hypervisor without a name").into()),
        // Physical machines of Amazon and Microsoft name the maker without the flag, which only x86 has.
        (false, Some((_, kind))) if value_of(&cpus, "flags").is_none() => Ok((*kind).into()),
        (false, _) => Ok("none".into()),
    }
}

/// The hypervisor by its clock: small virtual machines have no firmware that names a maker.
fn hypervisor_of_clock(root: &HostRoot) -> Option<&'static str> {
    const CLOCKS: [(&str, &str); 3] = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")];
    let available = clock::available(root).ok()?;
    let known = |name: &&(&str, &str)| available.iter().any(|clock| clock.starts_with(name.0));
    CLOCKS.iter().find(known).map(|(_, kind)| *kind)
}

fn load_average(root: &HostRoot) -> Result<[f64; 3], String> {
    let text = root.text("proc/loadavg")?;
    let mut numbers = text.split(' ').map_while(|word| word.parse::<f64>().ok());
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(one), Some(five), Some(fifteen)) => Ok([one, five, fifteen]),
        _ => Err(format!("/proc/loadavg: `{text}` does not begin with three numbers")),
    }
}

/// The rights of the calling process ([capabilities(7)](https://man7.org/linux/man-pages/man7/capabilities.7.html)) on
/// the host under `root`, or why they are unknown.
pub fn rights(root: &HostRoot) -> Result<Rights, String> {
    let status = root.text("proc/self/status")?;
    let mask = value_of(&status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let limits = root.text("proc/self/limits")?;
    Ok(Rights {
        capabilities: mask.ok_or("/proc/self/status states no CapEff")?,
        memory_lock_bytes: soft_limit(&limits, "Max locked memory"),
        real_time_priority: soft_limit(&limits, "Max realtime priority"),
    })
}

/// The soft limit of that name; `None` if it is `unlimited` or absent.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Capability;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn capabilities_and_limits_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max locked memory         8388608              unlimited            bytes\n\
                      Max realtime priority     20                   20\n";
        let host = FakeHost::new()
            .with("proc/self/status", "Name:\tx\nCapEff:\t0000000000001000\n")
            .with("proc/self/limits", limits);
        let few = rights(&host.root).expect("rights");
        assert!(few.has(Capability::NetAdmin) && !few.has(Capability::SysNice));
        assert_eq!(few.memory_lock_bytes, Some(8_388_608));
        assert!(few.may_run_fifo(20) && !few.may_run_fifo(21) && !few.may_lock_all());
        let root = host.with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        let all = rights(&root.root).expect("rights");
        assert!(all.may_run_fifo(99) && all.may_lock_all());
    }
}
