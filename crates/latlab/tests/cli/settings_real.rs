//! `--set` on this host, as far as it has the knobs: settings hold during a run and are restored after it, or by the next
//! latlab if the run was killed; and network interfaces whose name or namespace is used again.

use std::fs;
use std::io::Read;
use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Finished, Latlab, contains, empty, wait_until, warnings_at_most};
use crate::lab::{ip, privileged};
use crate::skip::{programs, skip};

/// A knob of this host that is a file, the setting, and the value that the file then has.
struct RealKnob {
    file: String,
    set: String,
    value: String,
}

impl RealKnob {
    fn new(file: impl Into<String>, set: impl Into<String>, value: impl Into<String>) -> RealKnob {
        RealKnob { file: file.into(), set: set.into(), value: value.into() }
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.file).expect("it is there").trim().to_owned()
    }
}

/// Sets `knobs` in a run that is interrupted and in one that is killed, and expects that they are restored.
fn hold(knobs: &[RealKnob], meanwhile: impl Fn()) {
    let home = tempfile::tempdir().expect("a directory");
    let lab =
        |line: &str| Latlab::at(home.path()).line(line).environment("LATLAB_STATE_DIR", home.path().join("state"));
    let values = || knobs.iter().map(RealKnob::read).collect::<Vec<_>>();
    let (before, wanted) = (values(), knobs.iter().map(|knob| knob.value.clone()).collect::<Vec<_>>());
    assert!(before.iter().zip(&wanted).all(|(before, wanted)| before != wanted), "{before:?} {wanted:?}");
    let sets: Vec<_> = knobs.iter().map(|knob| format!("--set {}", knob.set)).collect();
    for signal in [Signal::INT, Signal::KILL] {
        let running = lab(&format!("ping -d 50s --warmup 0 {}", sets.join(" "))).start();
        wait_until("everything was set", || values() == wanted);
        meanwhile();
        running.signal(signal);
        match signal {
            Signal::KILL => {
                running.killed_by(signal);
                assert_eq!(values(), wanted, "SIGKILL leaves the settings");
                lab("doctor --restore").stdout(contains(&knobs[0].set)).success();
            }
            _ => drop(running.exits_with_one_of(&[130, 3])),
        }
        assert_eq!(values(), before, "after {signal:?}");
    }
}

/// The least of all requested CPU DMA latencies in µs.
fn wake_up_us() -> i32 {
    let bytes = fs::read("/dev/cpu_dma_latency").expect("root may");
    i32::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
}

#[test]
fn host_wide_settings_hold_during_a_run_and_are_restored_after_it() {
    if !privileged() {
        return;
    }
    let receive = "/proc/sys/net/core/rmem_max";
    let bytes: u64 = fs::read_to_string(receive).expect("Linux has it").trim().parse().expect("a number");
    let wanted = (bytes + 4_096).to_string();
    let mut knobs = vec![RealKnob::new(receive, format!("socket-buffer={wanted}"), wanted)];
    for knob in [
        RealKnob::new("/proc/sys/net/core/busy_poll", "busy-poll=1us", "1"),
        // With CONFIG_RT_GROUP_SCHED less than the runtime of the root group is refused.
        RealKnob::new("/proc/sys/kernel/sched_rt_runtime_us", "rt-runtime=-1", "-1"),
        RealKnob::new("/sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "idle-states=none", "1"),
    ] {
        if Path::new(&knob.file).exists() {
            knobs.push(knob);
        }
    }
    hold(&knobs, || {});
}

#[test]
fn a_request_for_a_cpu_dma_latency_ends_with_the_process() {
    if !privileged() {
        return;
    }
    if !Path::new("/dev/cpu_dma_latency").exists() {
        return skip("this host has no /dev/cpu_dma_latency");
    }
    let before = wake_up_us();
    for signal in [Signal::INT, Signal::KILL] {
        let running = Latlab::new().line("ping -d 50s --warmup 0 --set cpu-dma-latency=7us").start();
        wait_until("the wake-up was asked for", || wake_up_us() <= 7);
        running.signal(signal);
        match signal {
            Signal::KILL => drop(running.killed_by(signal)),
            _ => drop(running.exits_with_one_of(&[130, 3])),
        }
        assert_eq!(wake_up_us(), before, "after {signal:?}");
    }
}

/// The interrupt of virtio-rng, which a read of /dev/hwrng causes.
fn interrupt_on_demand() -> Option<u32> {
    let devices = fs::read_dir("/sys/bus/virtio/drivers/virtio_rng").ok()?;
    let names = devices.filter_map(|device| device.ok()?.file_name().into_string().ok());
    let name = names.into_iter().find(|name| name.starts_with("virtio"))?;
    let table = fs::read_to_string("/proc/interrupts").ok()?;
    let row = table.lines().find(|row| row.ends_with(&format!(" {name}-input")))?;
    row.split(':').next()?.trim().parse().ok()
}

/// An interrupt whose affinity has several CPUs and can be changed: that of managed interrupts cannot.
fn movable_interrupt() -> Option<u32> {
    let numbers = fs::read_dir("/proc/irq").ok()?;
    let mut numbers: Vec<u32> = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    interrupt_on_demand().into_iter().chain(numbers).find(|irq| {
        let file = format!("/proc/irq/{irq}/smp_affinity_list");
        let cpus = fs::read_to_string(&file).unwrap_or_default();
        cpus.contains(['-', ',']) && fs::write(&file, cpus.trim()).is_ok()
    })
}

/// The count of interrupt `irq` on each CPU.
fn came(irq: u32) -> Vec<u64> {
    let table = fs::read_to_string("/proc/interrupts").expect("Linux has it");
    let row = table.lines().find(|row| row.trim_start().starts_with(&format!("{irq}:"))).expect("it is there");
    row.split_whitespace().skip(1).map_while(|count| count.parse().ok()).collect()
}

#[test]
fn an_interrupt_moves_to_the_named_cpu_and_back() {
    if !privileged() {
        return;
    }
    let Some(irq) = movable_interrupt() else { return skip("no interrupt of this host can be moved") };
    let file = format!("/proc/irq/{irq}/smp_affinity_list");
    let knob = RealKnob::new(file, format!("irq-affinity={irq}:1"), "1");
    let occurs_on_demand = interrupt_on_demand() == Some(irq);
    hold(&[knob], || {
        if !occurs_on_demand {
            return;
        }
        // One that is pending may still be delivered to the old CPU.
        let ask = || {
            let mut source = fs::File::open("/dev/hwrng").expect("root may");
            source.read_exact(&mut [0; 64]).expect("it never runs dry");
        };
        ask();
        let before = came(irq);
        wait_until("it came to CPU 1", || {
            ask();
            came(irq)[1] > before[1] + 2
        });
    });
    if !occurs_on_demand {
        skip("no interrupt of this host occurs on demand, so that only its setting was tested");
    }
}

/// Runs `work` in a thread with a network namespace of its own, which has a veth pair `near` and `far`.
fn beside_a_pair(work: impl FnOnce(&Path) + Send) {
    let home = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        let inside = || {
            latlab_sys::process::enter_fresh_network().expect("root may");
            ip("link set lo up");
            ip("link add near type veth peer name far");
            work(home.path());
        };
        scope.spawn(inside).join().expect("no panic");
    });
}

fn latlab(home: &Path, line: &str) -> Latlab {
    Latlab::at(home).line(line).environment("LATLAB_STATE_DIR", home.join("state"))
}

fn mtu_bytes(interface: &str) -> u32 {
    let socket = latlab_sys::socket::udp(latlab_sys::address::AddressFamily::Ipv4).expect("a socket");
    latlab_sys::ethtool::mtu_bytes(std::os::fd::AsFd::as_fd(&socket), interface).expect("it is there")
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Kills a latlab that has set the MTU of `near`.
fn die_with_a_small_near(home: &Path) {
    let running = latlab(home, "ping -d 50s --warmup 0 --set mtu:near=1400").start();
    wait_until("the size was set", || mtu_bytes("near") == 1_400);
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
}

fn restore(home: &Path) -> Finished {
    latlab(home, "doctor --restore").success()
}

#[test]
fn an_interface_with_the_name_of_a_deleted_one_is_not_restored() {
    if !privileged() || !programs(&["ip"]) {
        return;
    }
    beside_a_pair(|home| {
        die_with_a_small_near(home);
        ip("link delete near");
        ip("link add near type veth peer name far");
        ip("link set near mtu 1400");
        let printed = in_one_line(&restore(home).stdout);
        assert!(printed.contains("another interface has its name"), "{printed}");
        assert_eq!(mtu_bytes("near"), 1_400, "another interface");
    });
}

#[test]
fn two_names_of_one_interface_are_one_knob() {
    if !privileged() || !programs(&["ip"]) {
        return;
    }
    beside_a_pair(|home| {
        ip("link property add dev near altname other-name");
        let line = "ping -n 5 --set mtu:near=1400 --set mtu:other-name=1300";
        latlab(home, line).stdout(empty()).stderr(contains("give each knob once")).failure(2);
        assert_eq!(mtu_bytes("near"), 1_500);
        let line = "ping -n 5 --set offload:near=tso:off --set offload:other-name=tx-tcp6-segmentation:on";
        latlab(home, line).stdout(empty()).stderr(contains("`offload:near=tso:off` sets `near tx-tcp")).failure(2);
    });
}

#[test]
fn an_mtu_that_disables_ipv6_is_refused() {
    if !privileged() || !programs(&["ip"]) {
        return;
    }
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return skip("this kernel has no IPv6 to lose");
    }
    beside_a_pair(|home| {
        ip("link set near up");
        ip("-6 address add fd98::1/64 dev near nodad");
        let line = "ping -n 5 --warmup 0 --set mtu:near=1279";
        latlab(home, line).stdout(empty()).stderr(contains("the kernel takes IPv6 off `near`")).failure(3);
        let addresses = fs::read_to_string("/proc/thread-self/net/if_inet6").expect("Linux tells");
        assert!(addresses.contains("fd980000000000000000000000000001"), "{addresses}");
        assert!(!home.join("state/journal").exists(), "refused before anything was done");
        latlab(home, "ping -n 5 --warmup 0 --set mtu:near=1280").success();
        // An interface on which IPv6 is disabled already may have any MTU.
        ip("link set far mtu 1000");
        latlab(home, "ping -n 5 --warmup 0 --set mtu:far=1100").success();
        assert_eq!((mtu_bytes("near"), mtu_bytes("far")), (1_500, 1_000));
    });
    let printed = "this path is IPv6";
    Latlab::new().line("ping lab -6 -n 5 --set mtu=1000").stdout(empty()).stderr(contains(printed)).failure(3);
    Latlab::new().line("ping lab -4 -n 5 --warmup 0 --json --set mtu=1000").stderr(warnings_at_most()).success();
}
