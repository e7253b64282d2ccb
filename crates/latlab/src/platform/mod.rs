//! This process, its children and its inputs: latlab's own child processes, parallel work, signals, input files.

mod child_process;
mod directory;
pub(crate) mod input_file;
pub(crate) mod ownership;
pub mod parallel_map;
pub(crate) mod signals;

pub(crate) use child_process::ChildProcess;
pub(crate) use directory::Directory;
pub(crate) use signals::SignalWatch;
