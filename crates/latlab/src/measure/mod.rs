//! Measuring: the hot loops and what stands around them.

pub mod bare;
mod calibrate;
mod conduct;
mod ends;
mod error;
mod host_watch;
mod in_flight;
mod lane;
mod manifest;
mod peer;
pub mod ping;
mod slice;

pub use calibrate::calibrate;
pub use conduct::{Conducted, conduct};
pub use ends::{CpuOf, Ends};
pub use error::MeasureError;
pub use lane::Place;
pub use peer::Peer;
pub use slice::{Course, Slice};
