//! Figures and caveats of round trips: windows, and slow probes that coincide with late wake-ups.

mod caveats;
mod coincidence;
mod late_stretches;
mod placement;
mod windows;

pub(super) use caveats::{caveats, overrun_caveat, socket_caveats};
pub(super) use coincidence::coincidence;
pub use coincidence::{Coincidence, LateBeyond, Threshold};
pub use placement::RunPlacement;
pub(super) use placement::{PlacementFindings, Placements, SpinStalls, UNPINNED_PLACEMENT};
pub use windows::Window;
pub(super) use windows::{MAX_WINDOWS, Windows};
