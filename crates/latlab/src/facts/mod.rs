//! What is known about hosts, clocks and instruments, as plain data. Unknown is null with a reason.

mod clock;
mod finding;
mod host;
mod instrument;
mod reflector;

pub use clock::ClockAnchor;
pub use finding::{Finding, FindingSeverity};
pub use host::HostFacts;
pub use instrument::{BareLoop, Instrument};
pub use reflector::ReflectorReport;
