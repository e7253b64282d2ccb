//! `--set` on interfaces, of which others may have the same name: in another namespace, or later.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Finished, Latlab, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::setting::ip;
use crate::skip::skip;

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
fn an_interface_that_took_the_name_of_the_one_that_was_set_is_left_alone() {
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
fn a_namespace_that_got_the_number_of_the_one_that_was_set_is_left_alone() {
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
fn one_interface_by_two_names_is_one_knob() {
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
fn a_size_that_would_take_ipv6_away_is_refused() {
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
