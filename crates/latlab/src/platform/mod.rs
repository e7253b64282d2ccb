//! This process and its children: latlab's own child processes, parallel work, signals.

mod child_process;
pub mod parallel_map;
pub(crate) mod signals;

pub(crate) use child_process::ChildProcess;
pub(crate) use signals::SignalWatch;
