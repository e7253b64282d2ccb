//! A test that cannot run here is skipped with its reason. On CI that is a failure: CI has root and every program that the
//! tests start (`.ci/run` installs them), and a test that is skipped there proves nothing.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

/// Programs that not every system has, and the package of Debian that brings each.
#[allow(dead_code, reason = "not every test binary starts one of them")]
const PACKAGES: [(&str, &str); 21] = [
    ("bash", "bash"),
    ("busybox", "busybox"),
    ("chrt", "util-linux"),
    ("cyclictest", "rt-tests"),
    ("fio", "fio"),
    ("groff", "groff-base"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("irtt", "irtt"),
    ("ministat", "ministat"),
    ("nsenter", "util-linux"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("script", "bsdutils"),
    ("setpriv", "util-linux"),
    ("sockperf", "sockperf"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("strace", "strace"),
    ("tc", "iproute2"),
    ("unshare", "util-linux"),
];

/// Writes to stderr, which libtest does not capture this way, why the test of this thread cannot run here. With CI=true
/// the test fails instead.
#[track_caller]
pub(crate) fn skip(reason: impl Display) {
    assert!(!on_ci(std::env::var("CI").ok().as_deref()), "this test cannot run here, but on CI it must: {reason}");
    let this = std::thread::current();
    writeln!(std::io::stderr(), "skipped {}: {reason}", this.name().unwrap_or("a test")).expect("stderr is open");
}

/// The file of `program`, in PATH or in the directories that only root's PATH has; without it the reason, with the command
/// that installs it.
#[allow(dead_code, reason = "not every test binary starts one of them")]
pub(crate) fn find_program(program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file()).ok_or_else(|| {
        let (_, package) = PACKAGES.iter().find(|(name, _)| *name == program).expect("a row in `PACKAGES`");
        format!("`{program}` is missing: `apt-get install {package}` installs it on Debian")
    })
}

/// The file of `program`, which the test of this thread starts. Without it the test is skipped.
#[allow(dead_code, reason = "not every test binary starts one of them")]
#[track_caller]
pub(crate) fn program(program: &str) -> Option<PathBuf> {
    match find_program(program) {
        Ok(file) => Some(file),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

/// Whether this host has IPv6; without it the test is skipped.
#[allow(dead_code, reason = "not every test binary needs it")]
#[track_caller]
pub(crate) fn ipv6() -> bool {
    std::net::UdpSocket::bind("[::1]:0").inspect_err(|error| skip(format_args!("no IPv6 here: {error}"))).is_ok()
}

/// Whether each of `programs` is there; the first that is missing skips the test.
#[allow(dead_code, reason = "not every test binary starts one of them")]
#[track_caller]
pub(crate) fn programs(programs: &[&str]) -> bool {
    programs.iter().all(|name| program(name).is_some())
}

/// Whether this value of the variable CI means a run on CI.
fn on_ci(value: Option<&str>) -> bool {
    value == Some("true")
}

#[test]
fn a_skipped_test_fails_on_ci_only() {
    assert_eq!([None, Some(""), Some("false"), Some("true")].map(on_ci), [false, false, false, true]);
}
