//! Figures of round trips: windows, and slow probes that coincide with late wake-ups.

mod coincidence;
mod late_stretches;
mod placement;
mod windows;

pub(super) use coincidence::coincidence;
pub use coincidence::{Coincidence, LateBeyond, Threshold};
pub(crate) use placement::RunPlacement;
pub(super) use placement::{Placed, Placements, SpinStalls};
pub use windows::Window;
pub(super) use windows::{MAX_WINDOWS, Windows};
