//! Resolution of `latlab doctor`.

use std::net::IpAddr;

use super::environment::verbosity;
use super::{RequestError, path, target, value};
use crate::cli::args::DoctorArgs;
use crate::console::Verbosity;
use crate::measure::baseline::BareSpec;
use crate::plan::{Protocol, Target, defaults};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorSpec {
    /// The inspected host: this host or one with an agent.
    pub target: Target,
    /// Address of the agent's host whose interface is inspected; `None` selects the address that ssh reached.
    pub peer_address: Option<IpAddr>,
    /// CPU, wait mode, priority and memory locking of the planned measurement, and the size of the bare loop's payload.
    pub measurement: BareSpec,
    /// True to run a bare loop as well.
    pub calibrate: bool,
    /// True to restore settings left by an interrupted run and do nothing else.
    pub restore: bool,
    /// True for one JSON document instead of text.
    pub json: bool,
    pub verbosity: Verbosity,
}

/// Resolves the arguments and checks them against each other.
pub fn doctor(typed: &DoctorArgs) -> Result<DoctorSpec, RequestError> {
    let target = target::target(typed.target.as_deref(), Protocol::Native)?;
    on_that_host(typed, &target)?;
    let peer_address = typed.peer_addr.as_deref().map(|typed| path::far_address(typed, &target)).transpose()?;
    let here = path::local_end(&typed.ends)?;
    let size = typed.size.as_deref().map(|size| value::size("--size", size)).transpose()?;
    let measurement =
        BareSpec { size_bytes: size.unwrap_or(defaults::SIZE_BYTES), here, peer: path::peer_end(&typed.peer, here)? };
    Ok(DoctorSpec {
        target,
        peer_address,
        measurement,
        calibrate: typed.calibrate,
        restore: typed.restore,
        json: typed.json.json,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// Refuses a remote host without an agent, and local-only options with a remote host.
fn on_that_host(typed: &DoctorArgs, target: &Target) -> Result<(), RequestError> {
    if let Target::Host { host, .. } = target {
        return Err(RequestError::Unusable {
            option: "TARGET",
            value: typed.target.clone().unwrap_or_default(),
            cause: "`latlab serve` answers probes, but reports nothing about its host".into(),
            hint: format!("`latlab doctor ssh:{host}`, or `latlab doctor` on that host"),
        });
    }
    let here = "it works on this host only";
    let there = "run it on that host, such as by `ssh HOST latlab doctor …`";
    let end = ("it pins the end on this host", "`--peer-cpu N` pins the end that runs on that host");
    let given = [
        ("--calibrate", typed.calibrate, here, there),
        ("--restore", typed.restore, here, there),
        ("--cpu", typed.ends.cpu.is_some(), end.0, end.1),
    ];
    match given.into_iter().find(|(_, given, ..)| *given && target.has_agent()) {
        Some((option, _, cause, hint)) => {
            Err(RequestError::OutOfPlace { option, with: target.to_string(), cause, hint })
        }
        None => Ok(()),
    }
}
