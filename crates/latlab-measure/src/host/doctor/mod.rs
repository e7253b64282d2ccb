//! Findings: properties of a host that would spoil a measurement, with the command that corrects each. They are judged
//! from facts alone, so that a remote host is judged like this one. Each finding and its reason: docs/doctor.md.

mod evidence;
mod findings;
#[cfg(test)]
mod host_tests;
mod interface;
mod kernel;
mod processor;
mod remote;
mod work;

pub use evidence::Intent;
pub use findings::findings;
pub use remote::for_remote_host;
pub use work::busy_cpus;
