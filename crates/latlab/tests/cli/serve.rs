//! `latlab serve` and `keygen`: keys, counters, limits; and targets that are not a reflector.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, lacks, wait_until, warnings_at_most};
use crate::skip::ipv6;
use crate::store::{manifest, only_recording, recordings};

/// A port of 127.0.0.1 that is free now over UDP and TCP, and that no other call returns. It lies below the ports that the
/// kernel gives to sockets without one (ip_local_port_range), which other tests open meanwhile.
pub(crate) fn free_port() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id() * 97 % 10_000) as u16;
    let next = || 20_000 + (first + CALLS.fetch_add(1, Ordering::Relaxed)) % 10_000;
    let is_free = |port: &u16| {
        let address = ("127.0.0.1", *port);
        UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
    };
    std::iter::repeat_with(next).take(1_000).find(is_free).expect("a free port")
}

/// A reflector that ends with the value, and its address.
pub(crate) fn serve(directory: &Path, options: &str) -> (Running, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let running = Latlab::at(directory).args(["serve", "-v", "--bind", &address]).line(options).stdout(empty()).start();
    running.wait_for_stderr(&format!("answering on `{address}`"));
    (running, address)
}

fn keygen(directory: &Path, name: &str) {
    Latlab::at(directory).args(["keygen", name]).stdout(empty()).stderr(contains(format!("`{name}`"))).success();
}

#[test]
fn sessions_of_the_longest_run_and_the_slowest_schedule_are_granted() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_reflector, address) = serve(home.path(), "");
    for line in ["-d 24h", "-d 24h -i 5m", "-d 1h -i 1m --poisson"] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let running = Latlab::at(place.path()).args(["ping", &address]).line(line).start();
        wait_until("the session was granted", || !recordings(place.path()).is_empty());
        running.signal(Signal::INT);
        running.exits(130);
    }
    for line in ["ping -i 1h", "ping -i 1h --poisson"] {
        Latlab::at(home.path()).line(line).args(["-n", "1", "--warmup", "0"]).success();
    }
}

/// Expects that `line` is refused with `code`, `message` and `hint` before anything is recorded.
#[track_caller]
fn refused(directory: &Path, line: &str, code: i32, message: &str, hint: &str) {
    let lab = Latlab::at(directory).line(line).stdout(empty()).stderr(contains("\n  cause: "));
    lab.stderr(contains(message)).stderr(contains(format!("\n  hint: {hint}"))).failure(code);
    assert!(recordings(directory).is_empty(), "a run that never began left {:?}", recordings(directory));
}

#[test]
fn a_shared_key_opens_a_session_with_authenticated_probes() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    let (reflector, address) = serve(home.path(), "--psk-file key");
    let ping = ["ping", &address, "--psk-file", "key", "-n", "40", "--warmup", "3"];
    let ran =
        Latlab::at(home.path()).args(ping).args(["--timeout", "20s", "--json"]).stderr(warnings_at_most()).success();
    check_schema(&ran.json(), "summary/1");
    assert_eq!((ran.json()["answered"].as_u64(), &ran.json()["condition"]["target"]), (Some(40), &address.into()));
    let manifest = manifest(&only_recording(home.path()));
    assert_eq!(manifest["spec"]["authenticated"], true);
    assert_eq!(manifest["run"]["reflector"]["answered"], 43);
    assert!(manifest["peer"]["before"].is_null(), "a reflector reports no facts of its host");

    reflector.signal(Signal::USR1);
    reflector.wait_for_stderr("answered 43");
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    assert_eq!(printed.matches("answered 43").count(), 2, "after SIGUSR1 and at its end: {printed}");
}

#[test]
fn the_raw_key_does_not_stay_in_memory() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    let (reflector, _) = serve(home.path(), "--psk-file key");
    let text = fs::read_to_string(home.path().join("key")).expect("a key");
    let digits = text.split_whitespace().nth(1).expect("format and key");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    let raw: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    let process = format!("/proc/{}", reflector.pid().as_raw_nonzero());
    let memory = fs::File::open(format!("{process}/mem")).expect("a process of this user");
    for line in fs::read_to_string(format!("{process}/maps")).expect("it runs").lines() {
        let (range, rest) = line.split_once(' ').expect("a range");
        let (first, last) = range.split_once('-').expect("two addresses");
        let at = |digits| u64::from_str_radix(digits, 16).expect("an address");
        let mut bytes = vec![0; (at(last) - at(first)) as usize];
        if !rest.starts_with("rw") || memory.read_exact_at(&mut bytes, at(first)).is_err() {
            continue;
        }
        for (form, wanted) in [("text", digits.as_bytes()), ("bytes", &raw[..])] {
            // Half a key is as bad.
            let wanted = &wanted[..wanted.len() / 2];
            assert!(!bytes.windows(wanted.len()).any(|window| window == wanted), "the key as {form} in {line}");
        }
    }
}

#[test]
fn loopback_is_served_without_a_key() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), "");
    let lab = Latlab::at(home.path()).args(["ping", &address, "-n", "5", "--warmup", "0"]);
    lab.stdout(lacks("authenticat")).stderr(empty()).success();
    Latlab::at(home.path())
        .args(["ping", &address, "-n", "5", "-s", "24,1000", "-i", "1ms", "--warmup", "0"])
        .measured();
    reflector.signal(Signal::INT);
    let printed = reflector.exits(0).stderr;
    assert!(printed.contains("answered 15") && printed.contains("opened 3"), "{printed}");
}

#[test]
fn a_wrong_or_missing_key_opens_no_session() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    keygen(home.path(), "other");
    let (reflector, address) = serve(home.path(), "--psk-file key");
    let wrong = format!("ping {address} -n 5 --psk-file other");
    refused(home.path(), &wrong, 3, &format!("`{address}` does not open a session"), "compare the key files");
    let none = format!("ping {address} -n 5");
    refused(home.path(), &none, 3, &format!("`{address}` asks for a pre-shared key"), "`--psk-file FILE`");
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    assert!(printed.contains("drop-") && !printed.contains("opened"), "{printed}");
}

#[test]
fn a_key_for_a_reflector_without_a_key_is_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    let (_reflector, address) = serve(home.path(), "");
    let line = format!("ping {address} -n 5 --psk-file key");
    refused(home.path(), &line, 3, &format!("`{address}`"), "");
}

#[test]
fn invalid_key_files_are_refused_by_both_ends() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(home.path().join(name), text).expect("a file");
        fs::set_permissions(home.path().join(name), Permissions::from_mode(mode)).expect("ours");
    };
    let key = "latlab-psk-1 00112233445566778899aabbccddeeff\n";
    write("open", key, 0o644);
    write("short", "latlab-psk-1 00112233\n", 0o600);
    write("empty", "", 0o600);
    write("foreign", "ssh-ed25519 AAAA\n", 0o600);
    for (name, message, hint) in [
        ("open", "`open` has mode `0644`", "chmod 600 open"),
        ("short", "`short` is too short: `32` bit", "make one with `latlab keygen FILE`"),
        ("empty", "`empty` contains no latlab key", "make one with `latlab keygen FILE`"),
        ("foreign", "`foreign` contains no latlab key", "make one with `latlab keygen FILE`"),
        ("absent", "cannot read the key from `absent`", "make one with `latlab keygen FILE`"),
    ] {
        refused(home.path(), &format!("ping 127.0.0.1:9 -n 5 --psk-file {name}"), 2, message, hint);
        refused(home.path(), &format!("serve --bind 127.0.0.1:9 --psk-file {name}"), 2, message, hint);
    }
}

#[test]
fn keygen_writes_a_fresh_private_file_and_never_overwrites_one() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "one");
    keygen(home.path(), "two");
    let read = |name: &str| fs::read_to_string(home.path().join(name)).expect("written");
    let mode = fs::metadata(home.path().join("one")).expect("written").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let before = read("one");
    assert!(before != read("two") && before.starts_with("latlab-psk-1 "), "{before}");
    refused(home.path(), "keygen one", 2, "cannot write a key to `one`", "choose another name");
    assert_eq!(read("one"), before);
    let lab =
        Latlab::at(home.path()).line("keygen no/such/place").stderr(contains("`no/such/place`\n  cause: no such"));
    lab.stderr(contains("\n  hint: ")).failure(3);
}

#[test]
fn an_address_in_use_is_refused_with_exit_code_3() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("bound").to_string();
    let lab = Latlab::new()
        .args(["serve", "-v", "--bind", &address])
        .stdout(empty())
        .stderr(contains(format!("`{address}`")));
    lab.stderr(contains("in use")).stderr(contains("\n  hint: ")).failure(3);
}

#[test]
fn a_silent_target_is_given_up_after_three_seconds() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("bound").to_string();
    let start = Instant::now();
    let line = format!("ping {address} -n 5 -o new -s 64,65");
    refused(home.path(), &line, 3, &format!("no answer from `{address}`"), "start `latlab serve` in another shell");
    assert!(start.elapsed() < Duration::from_secs(9), "three times the promise");
    assert!(!home.path().join("new").exists(), "a directory would refuse the next run");
    let greeting = silent.recv(&mut [0; 2048]).expect("a HELLO");
    assert!(greeting >= 128, "{greeting} bytes ask for no longer an answer");
}

#[test]
fn a_closed_port_and_an_unknown_name_are_refused_with_exit_code_3() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    let port = free_port();
    let closed = format!("ping 127.0.0.1:{port} -n 5");
    refused(home.path(), &closed, 3, &format!("`127.0.0.1:{port}`"), "start `latlab serve");
    let nowhere = "ping no-such-host.invalid -n 5 --psk-file key";
    refused(home.path(), nowhere, 3, "`no-such-host.invalid`", "check the spelling");
}

#[test]
fn both_address_families_are_served() {
    if !ipv6() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let port = free_port();
    let serve = format!("serve -v --bind 127.0.0.1:{port} --bind [::1]:{port}");
    let reflector = Latlab::at(home.path()).line(&serve).stdout(empty()).start();
    reflector.wait_for_stderr(&format!("answering on `[::1]:{port}`"));
    for target in [format!("127.0.0.1:{port}"), format!("[::1]:{port}"), format!("-4 localhost:{port}")] {
        Latlab::at(home.path()).line("ping -n 5 --warmup 0").line(&target).stderr(empty()).success();
    }
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    assert!(printed.contains("answered 10") && printed.contains("answered 5"), "counted by address: {printed}");
}

#[test]
fn a_key_can_be_read_from_a_descriptor() {
    let home = tempfile::tempdir().expect("a temporary directory");
    keygen(home.path(), "key");
    let port = free_port();
    let script = format!("exec \"$0\" serve --bind 127.0.0.1:{port} --psk-fd 3 3<key");
    let mut reflector = Command::new("sh")
        .args(["-c", &script, BINARY])
        .current_dir(home.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh");
    let mut printed = BufReader::new(reflector.stderr.take().expect("piped"));
    let mut line = String::new();
    printed.read_line(&mut line).expect("a pipe can be read");
    let target = format!("ping 127.0.0.1:{port} --psk-file key -n 5 --warmup 0");
    let ran = Latlab::at(home.path()).line(&target).start().exits_with_one_of(&[0, 3]);
    reflector.kill().expect("our own child");
    reflector.wait().expect("our own child");
    assert!(line.contains("answering on") && ran.code == 0, "{line}{}", ran.stderr);
}

#[test]
fn limits_of_size_and_sessions_are_enforced() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve(home.path(), "--max-size 100 --max-sessions 2");
    refused(home.path(), &format!("ping {address} -n 5 -s 101"), 3, &format!("`{address}`"), "");
    refused(home.path(), &format!("ping {address} -n 5 -s 24,25,26"), 3, &format!("`{address}`"), "");
    let lab = Latlab::at(home.path()).args(["ping", &address, "-n", "5", "-s", "24,100", "--warmup", "0"]);
    lab.stderr(lacks("error")).success();
    reflector.signal(Signal::TERM);
    reflector.exits(0);
}
