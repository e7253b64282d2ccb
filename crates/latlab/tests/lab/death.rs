//! The kernel removes the namespaces of a killed process.
//!
//! A process sets up a lab and a reflector process in it. The test puts one end of a virtual Ethernet pair into each
//! namespace and keeps the other end. When the kernel removes a namespace, it removes both ends of its pair.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latlab::host::{Lab, process};

use crate::{ip, privileged, skip};

const ROLE: &str = "LATLAB_TEST_ROLE";
const NAME: &str = "death::sigkill_leaves_neither_namespaces_nor_processes";

/// A process that runs this test in the role `role`.
fn start_role(role: &str) -> Child {
    Command::new(env::current_exe().expect("a test has a file"))
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can run itself")
}

/// Reports to the process of the parent role that all is set up, and in which threads.
#[expect(clippy::disallowed_methods, reason = "the parent reads it")]
fn report_ready(threads: &str) {
    // The test harness has already printed the name of the test without an end of line.
    writeln!(std::io::stdout(), "\nready {threads}").expect("the parent listens");
}

fn wait_for_ready(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ready = lines.filter_map(|line| Some(line.ok()?.strip_prefix("ready ")?.to_owned()));
    ready.next().expect("the other role gets ready")
}

fn sleep_until_killed() -> ! {
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

fn reflector_role() -> ! {
    let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    assert!(process::tie_to_parent(parent.unsigned_abs()).expect("the kernel agrees"));
    report_ready(&std::process::id().to_string());
    sleep_until_killed()
}

fn owner_role() -> ! {
    let lab = Lab::set_up().expect("root may build a lab");
    let inside = lab.enter_reflector().expect("the namespace is there");
    let mut reflector = start_role("reflector");
    let reflector_thread = wait_for_ready(&mut reflector);
    drop(inside);
    let _inside = lab.enter_sender().expect("the namespace is there");
    report_ready(&format!("{} {reflector_thread}", rustix::thread::gettid().as_raw_nonzero()));
    sleep_until_killed()
}

fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn sigkill_leaves_neither_namespaces_nor_processes() {
    match env::var(ROLE).as_deref() {
        Ok("owner") => owner_role(),
        Ok("reflector") => reflector_role(),
        _ => {}
    }
    if !privileged() || !skip::programs(&["ip"]) {
        return;
    }
    // The near ends are in a namespace of this thread, so that the namespace of the host stays unchanged.
    latlab_sys::process::enter_fresh_network().expect("root may");
    let mut owner = start_role("owner");
    let ready = wait_for_ready(&mut owner);
    let (owner_thread, reflector) = ready.split_once(' ').expect("two threads");
    for (link, thread) in [("near", owner_thread), ("far", reflector)] {
        let added = ip(&["link", "add", link, "type", "veth", "peer", "name", "inside", "netns", thread]);
        assert!(added.is_some(), "cannot add the link `{link}`");
        assert!(ip(&["link", "show", link]).is_some());
    }
    owner.kill().expect("it runs");
    owner.wait().expect("it ends");
    let reflector_gone = || !std::path::Path::new("/proc").join(reflector).exists();
    assert!(within(Duration::from_secs(10), reflector_gone), "the reflector outlived its parent");
    for link in ["near", "far"] {
        let gone = || ip(&["link", "show", link]).is_none();
        assert!(within(Duration::from_secs(10), gone), "the namespace of `{link}` outlived its owner");
    }
}
