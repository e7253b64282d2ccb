//! Facts of whole hosts.

use super::host::{read, virtualisation};
use super::network::Interface;
use super::reader::NOT_THIS_HOST;
use crate::facts::HostFacts;
use crate::host::root::HostRoot;
use crate::host::root::tests::FakeHost;
use crate::host::test_hosts::{container, raspberry_pi_4, two_sockets};

const LO: Interface<'static> = Interface::Named("lo");

#[test]
fn the_facts_of_a_board_are_read() {
    let facts = read(&raspberry_pi_4().root, LO);
    assert_eq!(facts.kernel.as_deref(), Some("Linux 6.6.51+rpt-rpi-v8"));
    assert_eq!(facts.architecture.as_deref(), Some("aarch64"));
    assert_eq!(facts.cpu_model.as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
    assert_eq!(facts.governors, Some(vec!["ondemand".to_owned()]));
    assert_eq!((facts.rt_runtime_us, facts.timer_slack_ns), (Some(950_000), Some(50_000)));
    assert_eq!(facts.load_average, Some([0.1, 0.2, 0.3]));
    assert_eq!((facts.memory_bytes, facts.memory.swap_bytes), (Some(3_884_360 * 1024), Some(102_396 * 1024)));
    assert_eq!(facts.memory.major_faults, Some(812));
    assert_eq!(facts.virtualisation.as_deref(), Some("none"));
    assert_eq!((facts.steal_ticks, facts.counters.context_switches), (Some(0), Some(5_000)));
    assert_eq!(facts.kernel_settings.preemption.as_deref(), Some("PREEMPT"));
    assert_eq!(facts.kernel_settings.isolated_cpus.as_deref(), Some(""), "known to be none");
    let frequencies = facts.processor.frequencies.expect("cpufreq");
    assert_eq!(frequencies.len(), 4, "one policy for all");
    assert_eq!((frequencies[&3].minimum_khz, frequencies[&3].current_khz), (Some(600_000), Some(600_000)));
    assert_eq!(facts.processor.turbo, Some(false));
    assert_eq!(facts.heat.temperatures_celsius, Some([("thermal_zone0 cpu-thermal".to_owned(), 61.342)].into()));
    assert_eq!(
        facts.heat.firmware_throttling.map(|flags| flags.since_boot()),
        Some(vec!["throttled", "under-voltage"])
    );
    assert_eq!(facts.counters.interrupts.expect("counted")["39"].affinity.as_deref(), Some("0-3"));
    assert_eq!(facts.network.receive_buffer_maximum_bytes, Some(212_992));
    assert_eq!(facts.unknown["processor.idle_states"], "the kernel manages no idle states here");
    assert_eq!(facts.unknown["network.interface"], NOT_THIS_HOST);
}

#[test]
fn topology_and_idle_states_of_a_machine_with_two_sockets_are_read() {
    let facts = read(&two_sockets().root, LO);
    assert_eq!(facts.kernel_settings.isolated_cpus.as_deref(), Some("3,7"));
    assert_eq!(facts.kernel_settings.fair_share_runtime_ns, Some(50_000_000));
    let processor = facts.processor;
    let topology = processor.topology.as_ref().expect("topology");
    assert_eq!((topology[&7].package, topology[&7].core), (Some(1), Some(1)));
    assert_eq!(processor.siblings_of(6), Some("2,6"));
    assert_eq!((processor.smt_active, processor.turbo), (Some(true), Some(true)));
    let states = &processor.idle_states.as_ref().expect("idle states")[&5];
    let deepest = states.last().expect("three of them");
    assert_eq!((states.len(), &*deepest.name, deepest.exit_latency_us), (3, "C2", 800));
    assert_eq!((deepest.entered, deepest.resident_us, deepest.disabled), (105, 123_456, false));
    assert_eq!(processor.idle_governor.as_deref(), Some("menu"));
    assert_eq!(facts.heat.throttle_counts.expect("counted").len(), 8);
}

#[test]
fn absent_facts_are_null_with_a_reason() {
    let facts = read(&container().root, LO);
    assert_eq!(facts.clocksource, None);
    assert!(facts.unknown["clocksource"].ends_with("no such file or directory (ENOENT)"), "{facts:?}");
    assert_eq!(facts.unknown["governors"], "the kernel does not set frequencies here");
    assert_eq!(facts.rights.map(|rights| rights.memory_lock_bytes), Some(Some(65_536)));
    assert!(facts.unknown.len() > 30, "{:#?}", facts.unknown);
}

#[test]
fn every_null_of_every_host_has_its_reason() {
    for root in [container().root, raspberry_pi_4().root, two_sockets().root, HostRoot::live()] {
        let facts = HostFacts { rights: None, ..read(&root, LO) };
        let mut nulls = Vec::new();
        collect_nulls(&serde_json::to_value(&facts).expect("plain data"), "", &mut nulls);
        nulls.retain(|path| path != "rights" && !facts.unknown.contains_key(path));
        assert_eq!(nulls, [""; 0], "{root:?}");
    }
}

/// The paths of nulls, without CPUs, interrupts and list indices.
fn collect_nulls(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    let below = |key: &str| match path {
        "counters.interrupts" if value[key].is_object() && key != "counts" => path.to_owned(),
        _ if key.parse::<u16>().is_ok() => path.to_owned(),
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    for (key, inner) in value.as_object().into_iter().flatten() {
        collect_nulls(inner, &below(key), found);
    }
    for inner in value.as_array().into_iter().flatten() {
        collect_nulls(inner, path, found);
    }
    if value.is_null() {
        found.push(path.to_owned());
    }
}

#[test]
fn hypervisors_are_distinguished_from_physical_machines() {
    let metal =
        FakeHost::new().with("proc/cpuinfo", "flags : fpu vme\n").with("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    assert_eq!(virtualisation(&metal.root).as_deref(), Ok("none"));
    let guest = metal.with("proc/cpuinfo", "flags : fpu hypervisor\n");
    assert_eq!(virtualisation(&guest.root).as_deref(), Ok("kvm (amazon ec2)"));
    let nameless = FakeHost::new().with("proc/cpuinfo", "flags : hypervisor\n");
    assert_eq!(virtualisation(&nameless.root).as_deref(), Ok("a hypervisor without a name"));
    let clock = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let known_by_its_clock = nameless.with(clock, "tsc kvm-clock acpi_pm\n");
    assert_eq!(virtualisation(&known_by_its_clock.root).as_deref(), Ok("kvm"));
}
