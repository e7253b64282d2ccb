//! `--set` on the real host, as far as it has the knobs: they hold while a run goes on, and are as before after it.
//! A latlab that is killed leaves them, and the next one puts them back.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Finished, Latlab, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::settings::ip;
use crate::skip::skip;

/// A knob that is a file of this host.
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

/// Holds `knobs` in a run that is ended by each of the two ways, and sees that they are back.
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
                running.is_killed_by(signal);
                assert_eq!(values(), wanted, "nobody could put it back");
                lab("doctor --restore").stdout(contains(&knobs[0].set)).success();
            }
            _ => drop(running.exits_with_one_of(&[130, 3])),
        }
        assert_eq!(values(), before, "after {signal:?}");
    }
}

/// What the kernel says of all wishes for a short wake-up, in µs.
fn wake_up_us() -> i32 {
    let bytes = fs::read("/dev/cpu_dma_latency").expect("root may");
    i32::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
}

#[test]
fn host_wide_settings_hold_during_a_run_and_are_restored_after_it() {
    if !privileged("settings of the host") {
        return;
    }
    let receive = "/proc/sys/net/core/rmem_max";
    let bytes: u64 = fs::read_to_string(receive).expect("Linux has it").trim().parse().expect("a number");
    let wanted = (bytes + 4_096).to_string();
    let mut knobs = vec![RealKnob::new(receive, format!("socket-buffer={wanted}"), wanted)];
    for knob in [
        RealKnob::new("/proc/sys/net/core/busy_poll", "busy-poll=1us", "1"),
        // Less than the root group of threads has is refused where CONFIG_RT_GROUP_SCHED is on.
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
    if !privileged("a wish for short wake-ups") || !Path::new("/dev/cpu_dma_latency").exists() {
        return;
    }
    let before = wake_up_us();
    for signal in [Signal::INT, Signal::KILL] {
        let running = Latlab::new().line("ping -d 50s --warmup 0 --set cpu-dma-latency=7us").start();
        wait_until("the wake-up was asked for", || wake_up_us() <= 7);
        running.signal(signal);
        match signal {
            Signal::KILL => drop(running.is_killed_by(signal)),
            _ => drop(running.exits_with_one_of(&[130, 3])),
        }
        assert_eq!(wake_up_us(), before, "after {signal:?}");
    }
}

/// The interrupt of a virtual machine's source of random numbers, which comes when somebody reads from that.
fn interrupt_on_demand() -> Option<u32> {
    let devices = fs::read_dir("/sys/bus/virtio/drivers/virtio_rng").ok()?;
    let names = devices.filter_map(|device| device.ok()?.file_name().into_string().ok());
    let name = names.into_iter().find(|name| name.starts_with("virtio"))?;
    let table = fs::read_to_string("/proc/interrupts").ok()?;
    let row = table.lines().find(|row| row.ends_with(&format!(" {name}-input")))?;
    row.split(':').next()?.trim().parse().ok()
}

/// An interrupt that may come to several CPUs, and which the kernel lets go elsewhere: it refuses for those whose queues
/// it spreads itself.
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

/// How often it came to each CPU.
fn came(irq: u32) -> Vec<u64> {
    let table = fs::read_to_string("/proc/interrupts").expect("Linux has it");
    let row = table.lines().find(|row| row.trim_start().starts_with(&format!("{irq}:"))).expect("it is there");
    row.split_whitespace().skip(1).map_while(|count| count.parse().ok()).collect()
}

#[test]
fn an_interrupt_moves_to_the_named_cpu_and_back() {
    if !privileged("the affinity of an interrupt") {
        return;
    }
    let Some(irq) = movable_interrupt() else {
        writeln!(std::io::stderr(), "skipped irq-affinity: no interrupt of this host can be moved").expect("open");
        return;
    };
    let file = format!("/proc/irq/{irq}/smp_affinity_list");
    let knob = RealKnob::new(file, format!("irq-affinity={irq}:1"), "1");
    hold(&[knob], || {
        if interrupt_on_demand() != Some(irq) {
            return;
        }
        // The one that is on its way yet may still come to the old CPU.
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
}

/// Does `work` on a thread in a network namespace of its own with a pair `near` and `far`, which goes with it.
fn beside_a_pair(work: impl FnOnce(&Path) + Send) {
    let home = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        let inside = || {
            latlab_sys::namespace::enter_fresh_network().expect("root may");
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
    let socket = latlab_sys::socket::udp(latlab_sys::address::Family::Ipv4).expect("a socket");
    latlab_sys::ethtool::mtu_bytes(std::os::fd::AsFd::as_fd(&socket), interface).expect("it is there")
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A latlab that has set the size of `near` and was killed.
fn die_with_a_small_near(home: &Path) {
    let running = latlab(home, "ping -d 50s --warmup 0 --set mtu:near=1400").start();
    wait_until("the size was set", || mtu_bytes("near") == 1_400);
    running.signal(Signal::KILL);
    running.is_killed_by(Signal::KILL);
}

fn restore(home: &Path) -> Finished {
    latlab(home, "doctor --restore").success()
}

#[test]
fn an_interface_with_the_name_of_a_deleted_one_is_not_restored() {
    if !privileged("the name of an interface that is gone") {
        return;
    }
    beside_a_pair(|home| {
        die_with_a_small_near(home);
        ip("link delete near");
        ip("link add near type veth peer name far");
        ip("link set near mtu 1400");
        let told = in_one_line(&restore(home).stdout);
        assert!(told.contains("another interface has its name"), "{told}");
        assert_eq!(mtu_bytes("near"), 1_400, "a stranger's");
    });
}

#[test]
fn a_namespace_with_the_inode_of_a_deleted_one_is_not_restored() {
    if !privileged("the number of a namespace that is gone") {
        return;
    }
    beside_a_pair(|home| {
        die_with_a_small_near(home);
        let page =
            fs::read_dir(home.join("state/journal")).expect("a journal").next().expect("a page").expect("a name");
        let mut text: Value = serde_json::from_slice(&fs::read(page.path()).expect("a page")).expect("JSON");
        // As another namespace would be found: the kernel gives numbers of inodes again, and cookies never.
        let Some(cookie) = text["entries"][0]["network_cookie"].as_u64() else {
            return skip("the number of a namespace that is gone", "the kernel tells no cookie (Linux 5.14)");
        };
        text["entries"][0]["network_cookie"] = (cookie + 1).into();
        fs::write(page.path(), text.to_string()).expect("a page");
        let told = in_one_line(&restore(home).stdout);
        assert!(told.contains("nobody lives in its network namespace"), "{told}");
        assert_eq!(mtu_bytes("near"), 1_400, "a stranger's");
    });
}

#[test]
fn two_names_of_one_interface_are_one_knob() {
    if !privileged("two names of an interface") {
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
    if !privileged("small packets") {
        return;
    }
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return skip("small packets", "this kernel has no IPv6 to lose");
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
        // Where IPv6 is gone already nothing can be lost.
        ip("link set far mtu 1000");
        latlab(home, "ping -n 5 --warmup 0 --set mtu:far=1100").success();
        assert_eq!((mtu_bytes("near"), mtu_bytes("far")), (1_500, 1_000));
    });
    let told = "this path is IPv6";
    Latlab::new().line("ping lab -6 -n 5 --set mtu=1000").stdout(empty()).stderr(contains(told)).failure(3);
    Latlab::new().line("ping lab -4 -n 5 --warmup 0 --json --set mtu=1000").stderr(warnings_at_most()).success();
}
