//! The bare loop: only the system calls of a run, measured to determine the cost that latlab adds to them. Those of other
//! transports are part of the benches.

pub mod bare;
mod calibrate;

pub use calibrate::{BareSpec, calibrate};
