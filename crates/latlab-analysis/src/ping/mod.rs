//! Figures of round trips: windows, the CPUs of both ends, and the slots of wake-ups during them.

mod overruns;
mod placement;
mod windows;

pub(super) use overruns::{WatchedSlots, watched_slots};
pub(crate) use placement::RunPlacement;
pub(super) use placement::{Placed, Placement, Placements, SpinStalls};
pub use windows::Window;
pub(super) use windows::{MAX_WINDOWS, Windows};
