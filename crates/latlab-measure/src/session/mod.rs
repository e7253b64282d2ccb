//! Sessions: both ends of the protocol of sender and reflector before, during and after a run (docs/protocol.md).
//! Starts the processes that hold one end of a session (reflectors, network loads), and with them all loads of a run.

mod codec;
mod key;
mod loads;
mod opening;
mod reflector;
mod stream;

pub use codec::{Answer, EchoCodec, NativeSession, ProbeCodec};
pub use key::{KeyError, PreSharedKey, random_bytes};
pub use loads::LoadedPath;
pub(crate) use loads::lost_loads;
pub use loads::{BEGIN_LINE, Loads, LoadsError, NetLoad, NetLoadError, NetLoadEvent, NetLoadRequest, wait_until};
pub use opening::{SessionError, SessionParams, open};
pub use reflector::PendingReply;
pub(crate) use reflector::ReflectorProcess;
pub use reflector::{
    DownDue, DropReason, Listener, ReceiverState, ReflectorAction, ReflectorCounters, ReflectorEvent, ReflectorLimits,
    ReflectorProcessError, ReflectorRequest, Requests, ServeError, SessionReflector, check_address, listen, serve,
};
pub use stream::{DownCounts, DownMessage, DownStream, UpStream};
