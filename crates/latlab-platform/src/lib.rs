//! This process, its children and its inputs, and the kernel's network configuration: latlab's own child processes, parallel
//! work, signals, input files, routes.
#![forbid(unsafe_code)]

use latlab_plan::facts;
use latlab_terms::{diagnostics, units};

mod child_process;
mod device_abilities;
mod directory;
mod free_port;
pub mod input_file;
pub mod ownership;
pub mod parallel_map;
mod process_group;
mod route_socket;
pub mod signals;

pub use child_process::{ChildProcess, exit_words};
pub use device_abilities::{DeviceAbilities, XdpFeatures};
pub use directory::Directory;
pub use free_port::free_port;
pub use process_group::{CommandEnd, ProcessGroup, guard_group};
pub use route_socket::{LOOPBACK, RouteSocket, VethEnd};
pub use signals::{SignalWatch, SuspendSignal};

use crate::facts::Capability;

/// The command that grants `lacking` to the file of latlab, with what this process has.
pub fn grant(lacking: &[Capability]) -> String {
    let effective = rustix::thread::capabilities(None).map_or(0, |sets| sets.effective.bits());
    Capability::grant(lacking, effective)
}
