//! Sessions: what the two ends say to each other around and inside a run (docs/protocol.md).

mod bucket;
mod connected;
mod cookies;
mod counters;
mod down_source;
mod down_stream;
mod echo;
mod error;
mod key;
mod limits;
mod loads;
mod native;
mod net_load_process;
mod opening;
mod reflector;
mod reflector_process;
mod reflector_socket;
mod serve;
mod slot;
mod table;
mod trains;
mod up_stream;
mod wishes;

pub use counters::{DropReason, ReflectorCounters};
pub use down_source::DownDue;
pub use down_stream::{DownCounts, DownMessage, DownStream};
pub use echo::EchoCodec;
pub use error::SessionError;
pub use key::{KeyError, PreSharedKey, random_bytes};
pub use limits::{LimitError, ReflectorLimits};
pub use loads::{LoadedPath, Loads, LoadsError, lost_loads, wait_until};
pub use native::NativeSession;
pub use net_load_process::{BEGIN_WORD, NET_LOAD_COMMAND, NetLoad, NetLoadError, NetLoadEvent, NetLoadRequest};
pub use opening::open;
pub use reflector::{PendingReply, ReflectorAction, SessionReflector};
pub(crate) use reflector_process::ReflectorProcess;
pub use reflector_process::{REFLECTOR_COMMAND, ReflectorEvent, ReflectorProcessError, ReflectorRequest};
pub use reflector_socket::ReflectorSocket;
pub use serve::{Requests, ServeError, check_address, serve};
pub use slot::ReceiverState;
pub use up_stream::UpStream;
pub use wishes::SessionParams;

use crate::probe::Seq;
use crate::units::{ReflectorClock, SenderClock, Stamp};

/// What an answer says, once it is known to be genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Answer to which probe.
    pub seq: Seq,
    /// The reflector's receive stamp.
    pub reflector_received: Option<Stamp<ReflectorClock>>,
    /// The reflector's send stamp.
    pub reflector_sent: Option<Stamp<ReflectorClock>>,
    /// The reflector's kernel receive stamp.
    pub reflector_rx_software: Option<Stamp<ReflectorClock>>,
    /// The CPU on which the reflector answered.
    pub reflector_cpu: Option<u16>,
}

/// What probes say and how answers are understood. Pure: no socket, no clock.
pub trait ProbeCodec {
    /// The datagram of probe `seq`, ready to be sent. Called before the clock is read.
    fn encode(&mut self, seq: Seq) -> &[u8];

    /// The answer in `datagram`; none where it is none of this session's, which is counted.
    /// Called after the clock was read, which gives `received`.
    fn decode(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Option<Answer>;
}
