//! `latlab doctor`, settled.

use std::net::IpAddr;

use super::environment::verbosity;
use super::{BareSpec, RequestError, path, ping, target};
use crate::cli::args::{BareArgs, DoctorArgs};
use crate::console::Verbosity;
use crate::plan::{Protocol, Target};

/// `latlab doctor`, settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorSpec {
    /// The host to look at: this one, or one with an agent.
    pub target: Target,
    /// The address of an agent's host on the measured path, whose interface is meant; none: the one that ssh reached.
    pub peer_address: Option<IpAddr>,
    /// The measurement to look at the host for: its pins, waiting, priority and locking.
    pub measurement: BareSpec,
    /// Whether to run it as a bare loop.
    pub calibrate: bool,
    /// Whether only to put back what was left behind.
    pub restore: bool,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub verbosity: Verbosity,
}

/// Settles `typed`.
pub fn doctor(typed: &DoctorArgs) -> Result<DoctorSpec, RequestError> {
    let target = target::target(typed.target.as_deref(), Protocol::Native)?;
    on_that_host(typed, &target)?;
    let peer_address = typed.peer_addr.as_deref().map(|typed| path::far_address(typed, &target)).transpose()?;
    let measurement = ping::bare(&BareArgs {
        count: None,
        size: typed.size.clone(),
        tcp: false,
        ends: typed.ends.clone(),
        peer: typed.peer.clone(),
    })?;
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

/// Only an agent tells about another host, and some things are done on this one alone.
fn on_that_host(typed: &DoctorArgs, target: &Target) -> Result<(), RequestError> {
    if let Target::Host { host, .. } = target {
        return Err(RequestError::Unusable {
            option: "TARGET",
            value: typed.target.clone().unwrap_or_default(),
            cause: "`latlab serve` answers probes, and tells nothing about its host".into(),
            hint: format!("`latlab doctor ssh:{host}`, or `latlab doctor` on that host"),
        });
    }
    let here = "it is done on this host alone";
    let there = "run it on that host, such as by `ssh HOST latlab doctor …`";
    let end = ("it pins the end on this host", "`--peer-cpu N` pins the end that runs on that host");
    let asked = [
        ("--calibrate", typed.calibrate, here, there),
        ("--restore", typed.restore, here, there),
        ("--cpu", typed.ends.cpu.is_some(), end.0, end.1),
    ];
    match asked.into_iter().find(|(_, asked, ..)| *asked && target.has_agent()) {
        Some((option, _, cause, hint)) => {
            Err(RequestError::OutOfPlace { option, with: target.to_string(), cause, hint })
        }
        None => Ok(()),
    }
}
