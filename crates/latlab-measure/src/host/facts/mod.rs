//! Reads the facts of a host from files under a root, system calls and programs. Unknown facts are null, with a reason.

mod cgroup;
mod clock;
mod host;
mod kernel;
mod network;
mod processor;
mod reader;
#[cfg(test)]
mod tests;

pub use cgroup::memory_limit;
pub use host::{boot_id, read, rights};
pub use network::Interface;
pub(crate) use processor::topology;
