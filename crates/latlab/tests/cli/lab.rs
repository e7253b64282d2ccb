//! `latlab ping lab`, which measures between two network namespaces and needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use latlab::facts::Capability;
use latlab::host::HostRoot;
use latlab::host::facts::rights;
use latlab::host::{EnteredNamespace, Lab};
use rustix::process::Signal;

use crate::harness::{BINARY, Latlab, check_schema, contains, wait_until, warnings_at_most};
use crate::processes::{children, is_alive, network_namespaces};
use crate::skip::{program, skip};
use crate::store::{manifest, only_recording, spool_bytes};

/// Whether this process may create network namespaces. If not, the test is skipped.
pub(crate) fn privileged() -> bool {
    let rights = rights(&HostRoot::live()).expect("this process has rights");
    let enough = rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin);
    if !enough {
        skip("namespaces need root");
    }
    enough
}

/// The queue of loopback, which one AF_XDP socket of all tests has at a time.
pub(crate) fn loopback_queue() -> MutexGuard<'static, ()> {
    static QUEUE: Mutex<()> = Mutex::new(());
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of latlab in `directory` without any capability. `None` if the test is skipped.
pub(crate) fn without_rights(directory: &Path, line: &str) -> Option<Output> {
    let output = Command::new(program("setpriv")?)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"])
        .arg(BINARY)
        .args(line.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("it is there");
    if String::from_utf8_lossy(&output.stderr).starts_with("setpriv") {
        skip(format_args!("setpriv(1) cannot give rights up here: {output:?}"));
        return None;
    }
    Some(output)
}

/// Runs ip(8) in the network namespace of the calling thread.
pub(crate) fn ip(line: &str) {
    let done = Command::new("ip").args(line.split(' ')).status().expect("ip(8) is installed");
    assert!(done.success(), "ip {line}");
}

/// Moves the calling thread into a network namespace whose loopback has an MTU of 1,500 bytes and the queueing discipline
/// `shaper`. `None` if the test is skipped.
pub(crate) fn shaped(shaper: &str) -> Option<(EnteredNamespace, Lab)> {
    if !privileged() {
        return None;
    }
    let namespaces = Lab::set_up().expect("root");
    let inside = namespaces.enter_sender().expect("the namespace is there");
    for line in ["ip link set lo mtu 1500 up".to_owned(), format!("tc qdisc replace dev lo root {shaper}")] {
        let (name, words) = line.split_once(' ').expect("words");
        let done = Command::new(program(name)?).args(words.split_whitespace()).output().expect("it is there");
        if !done.status.success() {
            skip(format!("`{line}`: {}", String::from_utf8_lossy(&done.stderr).trim()));
            return None;
        }
    }
    Some((inside, namespaces))
}

#[test]
fn lab_measures_both_address_families_and_records_the_offloads() {
    if !privileged() {
        return;
    }
    for (family, separator) in [("-4", "."), ("-6", ":")] {
        let line = format!("ping lab -n 30 --warmup 2 --timeout 20s --json {family}");
        let ran = Latlab::new().line(&line).stderr(warnings_at_most()).success();
        check_schema(&ran.json(), "summary/1");
        assert_eq!((&ran.json()["answered"], &ran.json()["condition"]["target"]), (&30.into(), &"lab".into()));
        let manifest = manifest(&only_recording(ran.directory()));
        let conditions = &manifest["run"]["conditions"];
        for end in ["sender", "reflector"] {
            let offload = &conditions[format!("lab.{end}.offload.tx-checksum")];
            assert!(offload.is_string(), "checksum offload of the {end} is a condition: {conditions}");
        }
        let address = manifest["run"]["peer_address"].as_str().expect("there was a peer").to_owned();
        let host = address.rsplit_once(':').expect("a port").0;
        assert!(host.contains(separator) && !host.starts_with("127."), "{address}");
    }
}

#[test]
fn sigkill_leaves_no_namespace_and_no_process_of_lab() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("ping lab -d 50s --warmup 0").start();
    let spool_has_events = || spool_bytes(home.path()) > 1_000;
    wait_until("the run was under way", spool_has_events);
    let pid = running.pid().as_raw_nonzero().get();
    let reflectors = children(pid);
    let outside = fs::read_link("/proc/self/ns/net").expect("Linux has it").to_string_lossy().into_owned();
    let mut inside: Vec<_> = [pid].into_iter().chain(reflectors.clone()).flat_map(network_namespaces).collect();
    inside.retain(|namespace| *namespace != outside);
    inside.sort_unstable();
    inside.dedup();
    assert_eq!(
        (reflectors.len(), inside.len()),
        (1, 2),
        "one reflector process, and a namespace for each end: {inside:?}"
    );

    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    wait_until("the reflector had ended", || !is_alive(reflectors[0]));
    // The kernel removes a namespace that has no process and no mount.
    let held = || {
        let pids = fs::read_dir("/proc").expect("Linux has it");
        let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        pids.flat_map(network_namespaces).any(|namespace| inside.contains(&namespace))
    };
    wait_until("the namespaces had no thread", || !held());
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux has it");
    assert!(!inside.iter().any(|namespace| mounts.contains(namespace.as_str())), "a mount holds a namespace: {mounts}");
    let recording = only_recording(home.path());
    let summary = Latlab::at(home.path()).arg("summary").arg(&recording).stdout(contains("ping lab"));
    summary.stderr(contains("finished an interrupted recording")).success();
}

#[test]
fn lab_without_rights_is_refused_with_a_hint() {
    if !privileged() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let line = "ping lab -n 5 --no-record";
    let Some(output) = without_rights(home.path(), line) else { return };
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{printed}");
    assert!(
        printed.contains("`lab`") && printed.contains("EPERM") && printed.contains("hint: `lab` needs root"),
        "{printed}"
    );
    for (target, base, refused) in [
        ("lab", "", "`lab`"),
        ("local", "fifo = 50\n", "SCHED_FIFO priority `50`"),
        ("local", "set = [\"rt-runtime=-1\"]\n", "`rt-runtime=-1`"),
    ] {
        let file =
            format!("kind = \"ping\"\ntarget = \"{target}\"\n[base]\ncount = 9\n{base}[factors]\nsize = [24, 64]\n");
        fs::write(home.path().join("x.toml"), file).expect("written");
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("own");
        let Some(output) = without_rights(home.path(), "run x.toml --dry-run") else { return };
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let said = printed.lines().filter(|line| line.starts_with("warning: cannot ") && line.contains(refused));
        assert_eq!(said.count(), 1, "{refused}: {printed}");
    }
}
