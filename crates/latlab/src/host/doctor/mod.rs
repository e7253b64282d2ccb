//! Findings: what on a host would spoil a measurement, and the command that mends it. Judged on facts alone, so that the
//! facts of a remote host are judged alike. Each finding and its reason: docs/doctor.md.

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
pub use findings::{CODES, findings};
pub use remote::for_remote_host;
