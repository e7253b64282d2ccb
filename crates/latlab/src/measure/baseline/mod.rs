//! The bare loops: the system calls of a run and nothing else, measured to know the cost of everything else.

pub mod bare;
pub mod bare_stream;
pub mod bare_tcp;
mod bare_wakeup;
mod calibrate;

pub use bare_wakeup::{BareWakeupSpec, BareWakeups, sleep_bare};
pub use calibrate::{BareTransport, calibrate};
