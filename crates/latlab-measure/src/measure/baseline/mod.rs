//! The bare loops: only the system calls of a run, measured to determine the cost that latlab adds to them.

pub mod bare;
#[cfg(feature = "dds")]
mod bare_dds;
mod bare_receiver;
mod bare_schedule;
mod bare_stream;
pub mod bare_tcp;
mod bare_wakeup;
mod bare_xdp;
mod bare_xdp_stream;
mod calibrate;
mod delivered;
mod stream_ends;

pub use bare_wakeup::{BareWakeupSpec, BareWakeups, sleep_bare};
pub use calibrate::{BareEnd, BareRoundTrips, BareSpec, calibrate, with_peer};
pub use delivered::Delivered;
pub use stream_ends::{BareCounter, stream_bare};
