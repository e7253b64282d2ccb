//! Settings of a host that are changed for a run: knobs, the guard that holds them, and the journal from which they are
//! restored after a crash. Reasons: docs/design/0006-knobs.md.

mod change;
mod guard;
mod journal;
mod knob;
mod netns_identity;
mod recover;

pub use guard::HostGuard;
pub use journal::KnobJournal;
pub use recover::{Recovered, Unrecovered, recover, restore_of, restore_own, unrestored};
