//! The kernel cleans up after any death.
//!
//! A process builds a lab and a reflector process in it. From outside, a witness is planted in each
//! namespace: one end of a virtual Ethernet pair whose other end stays with the test. When the kernel
//! takes a namespace away, it takes the witness along, and its other end vanishes before our eyes.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latlab::host::{Lab, process};

use crate::{ip, privileged};

const ROLE: &str = "LATLAB_TEST_ROLE";
const NAME: &str = "death::kill_9_leaves_neither_namespaces_nor_processes";

/// This very test, run by another process in another role.
fn play(role: &str) -> Child {
    Command::new(env::current_exe().expect("a test has a file"))
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a test can run itself")
}

/// Tells the parent role that all is set up, and in which threads.
fn say_ready(threads: &str) {
    // On a line of its own: the test harness has begun one with the test's name.
    writeln!(std::io::stdout(), "\nready {threads}").expect("the parent listens");
}

fn hear_ready(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ready = lines.filter_map(|line| Some(line.ok()?.strip_prefix("ready ")?.to_owned()));
    ready.next().expect("the other role gets ready")
}

fn sleep_until_killed() -> ! {
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

fn be_the_reflector() -> ! {
    let parent = rustix::process::getppid().expect("a parent").as_raw_nonzero().get();
    assert!(process::tie_to_parent(parent.unsigned_abs()).expect("the kernel agrees"));
    say_ready(&std::process::id().to_string());
    sleep_until_killed()
}

fn be_the_owner() -> ! {
    let lab = Lab::set_up().expect("root may build a lab");
    let inside = lab.enter_reflector().expect("the namespace is there");
    let mut reflector = play("reflector");
    let reflector_thread = hear_ready(&mut reflector);
    drop(inside);
    let _inside = lab.enter_sender().expect("the namespace is there");
    say_ready(&format!("{} {reflector_thread}", rustix::thread::gettid().as_raw_nonzero()));
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
fn kill_9_leaves_neither_namespaces_nor_processes() {
    match env::var(ROLE).as_deref() {
        Ok("owner") => be_the_owner(),
        Ok("reflector") => be_the_reflector(),
        _ => {}
    }
    if !privileged() {
        return;
    }
    // The witnesses' near ends live in a namespace of this thread's own: the host's stays untouched.
    latlab_sys::process::enter_fresh_network().expect("root may");
    let mut owner = play("owner");
    let ready = hear_ready(&mut owner);
    let (owner_thread, reflector) = ready.split_once(' ').expect("two threads");
    for (witness, thread) in [("near", owner_thread), ("far", reflector)] {
        let planted = ip(&["link", "add", witness, "type", "veth", "peer", "name", "planted", "netns", thread]);
        assert!(planted.is_some(), "cannot plant the witness `{witness}`");
        assert!(ip(&["link", "show", witness]).is_some());
    }
    owner.kill().expect("it runs");
    owner.wait().expect("it ends");
    let reflector_gone = || !std::path::Path::new("/proc").join(reflector).exists();
    assert!(within(Duration::from_secs(10), reflector_gone), "the reflector outlived its parent");
    for witness in ["near", "far"] {
        let gone = || ip(&["link", "show", witness]).is_none();
        assert!(within(Duration::from_secs(10), gone), "the namespace of `{witness}` outlived its owner");
    }
}
