//! This process, its children and its inputs, and the kernel's network configuration: latlab's own child processes, parallel
//! work, signals, input files, routes.

mod child_process;
mod device_abilities;
mod directory;
pub(crate) mod input_file;
pub(crate) mod ownership;
pub mod parallel_map;
mod route_socket;
pub(crate) mod signals;
mod supervisor;

pub(crate) use child_process::ChildProcess;
pub(crate) use device_abilities::{DeviceAbilities, XdpFeatures};
pub(crate) use directory::Directory;
pub(crate) use route_socket::{LOOPBACK, RouteSocket, VethEnd};
pub(crate) use signals::{SignalWatch, SuspendSignal};
pub(crate) use supervisor::{CommandEnd, MarkedProcesses, Supervised, SupervisedCommand, end_marked, supervise};

use crate::facts::Capability;

/// The command that grants `lacking` to the file of latlab, with what this process has.
pub(crate) fn grant(lacking: &[Capability]) -> String {
    let effective = rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits());
    Capability::grant(lacking, effective)
}
