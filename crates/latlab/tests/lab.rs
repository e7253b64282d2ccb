//! Tests in network namespaces, which need root and are skipped without it.

#[path = "lab/death.rs"]
mod death;
#[path = "lab/flood.rs"]
mod flood;
#[path = "lab/network.rs"]
mod network;
#[path = "lab/path.rs"]
mod path;
mod skip;

use std::process::Command;

use latlab::facts::Capability;
use latlab::host::HostRoot;
use latlab::host::facts::rights;

/// Whether this process may create network namespaces. If not, the test is skipped.
fn privileged() -> bool {
    let rights = rights(&HostRoot::live()).expect("this process has rights");
    let enough = rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin);
    if !enough {
        skip::skip("namespaces need CAP_SYS_ADMIN and CAP_NET_ADMIN: run as root");
    }
    enough
}

/// The output of `ip` in the namespace of the calling thread; `None` if it fails.
fn ip(arguments: &[&str]) -> Option<String> {
    let output = Command::new("ip").args(arguments).output().expect("the test has looked for it");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
