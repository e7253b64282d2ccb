//! Sessions: the messages between the two ends before, during and after a run (docs/protocol.md), at the sender and in
//! `reflector/`. Processes that hold one end of a session are started from here too, and with them the loads of a run.

mod codec;
mod key;
mod loads;
mod opening;
mod reflector;
mod stream;

pub use codec::{Answer, EchoCodec, NativeSession, ProbeCodec};
pub use key::{KeyError, PreSharedKey, random_bytes};
pub use loads::{
    BEGIN_LINE, LoadedPath, Loads, LoadsError, NET_LOAD_COMMAND, NetLoad, NetLoadError, NetLoadEvent, NetLoadRequest,
    lost_loads, wait_until,
};
pub use opening::{SessionError, SessionParams, open};
pub(crate) use reflector::ReflectorProcess;
pub use reflector::{
    DownDue, DropReason, Listener, PendingReply, REFLECTOR_COMMAND, ReceiverState, ReflectorAction, ReflectorCounters,
    ReflectorEvent, ReflectorLimits, ReflectorProcessError, ReflectorRequest, Requests, ServeError, SessionReflector,
    check_address, listen, serve,
};
pub use stream::{DownCounts, DownMessage, DownStream, UpStream};
