//! The reflector: a state machine without sockets (`machine.rs`), the loop that runs it over a socket (`serve.rs`), and
//! the process in which latlab runs its own reflector (`process.rs`). The wire rules R1 to R8 of docs/protocol.md hold
//! for every input.

mod admission;
mod cookie_rate;
mod counters;
mod down_source;
mod machine;
mod passages;
mod process;
mod serve;
mod sessions;

pub use admission::ReflectorLimits;
pub use counters::{DropReason, ReflectorCounters};
pub use down_source::DownDue;
pub use machine::{PendingReply, ReflectorAction, SessionReflector};
pub(crate) use process::ReflectorProcess;
pub use process::{ReflectorEvent, ReflectorProcessError, ReflectorRequest};
pub use serve::{Listener, Requests, ServeError, check_address, listen, serve};
pub use sessions::ReceiverState;
