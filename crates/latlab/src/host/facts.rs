//! Reading a host's facts. What cannot be had stays null, with the reason.
//!
//! Reading changes nothing, never fails, and ends within about a second: whatever is left when that is over
//! stays null too. It is done before a run is armed and after it has ended, never in between.

mod clock;
mod clock_keeper;
mod counters;
mod heat;
mod kernel;
mod known;
mod memory;
mod network;
mod processor;
mod program;

use std::net::IpAddr;
use std::time::Instant;

use self::known::FactReader;
use super::root::HostRoot;
use crate::clock::{Clock, Monotonic};
use crate::facts::{HostFacts, Rights};

/// Why system calls and programs are not asked about a host that is only a directory.
const NOT_THIS_HOST: &str = "only the files of this host are at hand";

/// Whose interface is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface<'a> {
    /// The one of this name.
    Named(&'a str),
    /// The one through which datagrams to `peer` leave.
    Towards {
        /// The address that they are sent from, where it is known.
        local: Option<IpAddr>,
        /// The address that they are sent to.
        peer: IpAddr,
    },
    /// The one that has this address.
    Holding(IpAddr),
    /// The one through which most of the world is reached; loopback where none is.
    OfDefaultRoute,
}

/// The facts of the host under `root`, now, and of `interface` in the calling thread's network namespace.
pub fn read(root: &HostRoot, interface: Interface<'_>) -> HostFacts {
    let (start, began) = (Instant::now(), Monotonic.now());
    let mut known = FactReader::from(start);
    let counters = counters::read(root, &mut known);
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
        memory_bytes: known.fact("memory_bytes", || memory::total_bytes(root)),
        boot_id: known.fact("boot_id", || boot_id(root)),
        steal_ticks: known.fact("steal_ticks", || steal_ticks.ok_or_else(|| "see `counters.cpu_ticks`".into())),
        kernel_settings: kernel::read(root, &mut known),
        processor: processor::read(root, &mut known),
        counters,
        memory: memory::read(root, &mut known),
        heat: heat::read(root, &mut known),
        rights: known.fact("rights", || Rights::read(root)),
        network: network::read(root, interface, &mut known),
        // Last, since it starts a program and waits for it.
        clock: clock::read(root, &mut known),
        monotonic_ns: Some(began.as_nanos()),
        ..HostFacts::default()
    };
    let reading_ns = u64::try_from(start.elapsed().as_nanos()).ok();
    HostFacts { reading_ns, unknown: known.reasons(), ..facts }
}

/// The id of this boot of the host under `root`; or why it cannot be had.
pub fn boot_id(root: &HostRoot) -> Result<String, String> {
    root.text("proc/sys/kernel/random/boot_id")
}

/// The value of the first line `key : value`.
pub(super) fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
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
        (true, None) => Ok(by_its_clock(root).unwrap_or("a hypervisor that does not say its name").into()),
        // A real Amazon or Microsoft machine has the maker without the flag; other CPUs have no such flag.
        (false, Some((_, kind))) if value_of(&cpus, "flags").is_none() => Ok((*kind).into()),
        (false, _) => Ok("none".into()),
    }
}

/// Small virtual machines have no firmware that names a maker, but a clock of their hypervisor's.
fn by_its_clock(root: &HostRoot) -> Option<&'static str> {
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
        _ => Err(format!("/proc/loadavg: `{text}` holds no three numbers")),
    }
}

#[cfg(test)]
mod tests;
