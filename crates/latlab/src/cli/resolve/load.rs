//! The loads of a run, and `latlab load`.

use crate::cli::args::{HoldArgs, LoadArgs};
use crate::cli::options::{DdsArgs, KeySource, XdpArgs, path};
use crate::cli::value::unusable;
use crate::diagnostics::Failure;
use crate::plan::{LoadKind, LoadSpec, PathSpec, Protocol, Side, Target, TransportKind, defaults};
use crate::units::Nanos;

/// The loads; on one host every place is the local one.
pub(super) fn loads(typed: &LoadArgs, target: &Target) -> Result<Vec<LoadSpec>, Failure> {
    let count = typed.load.len();
    if count > 1 && typed.load.contains(&None) {
        return Err(unusable("--load", "none", "another load was given too", "leave out `none`, or the others"));
    }
    if count > defaults::LOADS_MAX {
        let cause = format!("the most of one command are {}", defaults::LOADS_MAX);
        return Err(unusable("--load", format!("{count} loads"), cause, "one load can have many CPUs: `:cpus=0-31`"));
    }
    let one_host = matches!(target, Target::Local | Target::Lab);
    let at = |load: &LoadSpec| LoadSpec { at: if one_host { Side::Local } else { load.at }, ..load.clone() };
    Ok(typed.load.iter().flatten().map(at).collect())
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoadJob {
    pub target: Target,
    /// Path of the packets of network loads.
    pub path: PathSpec,
    pub loads: Vec<LoadSpec>,
    /// Source of the key of network loads.
    pub key: KeySource,
    /// Duration after all loads are stable.
    pub duration: Nanos,
}

pub fn hold(typed: &HoldArgs) -> Result<LoadJob, Failure> {
    let target = path::target(typed.target.as_ref(), Protocol::Native);
    let loads = loads(&typed.loads, &target)?;
    let path = path::path(&typed.way, &DdsArgs::default(), &XdpArgs::default(), TransportKind::Udp, &target)?;
    // A load at the remote end requires its agent, and the agent requires a key.
    let needs_peer = loads.iter().any(|load| matches!(load.kind, LoadKind::Net(_)) || load.at.is_peer());
    let key = if needs_peer { path::key(&typed.way.key, &target, Protocol::Native)? } else { KeySource::None };
    Ok(LoadJob { target, path, loads, key, duration: typed.duration.unwrap_or(defaults::DURATION) })
}
