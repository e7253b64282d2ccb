//! Measuring: the hot loops and what stands around them.

pub mod bare;
mod beside;
mod calibrate;
mod conduct;
mod conduct_wakeup;
mod ends;
mod error;
mod far_host;
mod far_settings;
mod host_watch;
mod in_flight;
mod lane;
mod manifest;
mod net_load;
mod peer;
pub mod ping;
pub mod rate_search;
pub mod sleeper;
mod sleepers;
mod slice;
pub mod stream;
pub mod stream_meter;
pub mod token_schedule;
pub mod wakeup;

pub(crate) use beside::Beside;
pub use calibrate::calibrate;
pub use conduct::{Conducted, conduct};
pub use ends::{CpuOf, Ends};
pub use error::MeasureError;
pub use lane::Place;
pub use net_load::{Held, Words, hold as hold_net_load};
pub use peer::Peer;
pub use slice::{Course, Slice};
