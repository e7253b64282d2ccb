//! What a reflector child process runs: sessions, or a bare loop for benchmarks.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use latlab_sys::socket;

use super::Outcome;
use crate::diagnostics::{Failure, refused};
use crate::measure::baseline::{BareTransport, bare, bare_stream};
use crate::session::{Listener, ReflectorEvent, Requests, SessionReflector};

/// What a reflector child process runs.
pub(super) enum ReflectorService {
    /// Sessions.
    Sessions(Box<dyn Listener>, Box<SessionReflector>),
    /// Every message of this size, unparsed.
    Bare { socket: OwnedFd, bare: BareTransport, wait: bare::Wait, size_bytes: u32 },
    /// No answers: counts what arrives, with this many buffers a call.
    BareStream(OwnedFd, bare::Wait, u16),
}

impl ReflectorService {
    /// Address and receive buffer.
    pub(super) fn ready(&self) -> Result<ReflectorEvent, Failure> {
        let (address, receive_buffer_bytes) = match self {
            ReflectorService::Sessions(listener, _) => (Ok(listener.address()), listener.receive_buffer_bytes()),
            ReflectorService::Bare { socket, bare, .. } => ((bare.local_address)(socket.as_fd()), None),
            ReflectorService::BareStream(socket, ..) => (socket::local_address(socket.as_fd()), None),
        };
        let address = address.map_err(refused("ask for the address"))?;
        Ok(ReflectorEvent::Ready { address, receive_buffer_bytes })
    }

    /// Answers until `stop`, on a thread that is pinned to `pin`.
    pub(super) fn answer(self, pin: Option<u16>, stop: &AtomicBool) -> Result<Outcome, Failure> {
        match self {
            ReflectorService::Sessions(mut listener, mut sessions) => {
                let never = AtomicBool::new(false);
                listener.serve(&mut sessions, pin, Requests { stop, counters: &never }, &mut |_| {})?;
            }
            ReflectorService::Bare { socket, bare, wait, size_bytes } => {
                (bare.reflect)(&socket, size_bytes as usize, wait, stop).map_err(refused("reflect"))?;
            }
            ReflectorService::BareStream(socket, wait, wanted) => {
                bare_stream::count(&socket, wait, usize::from(wanted), stop).map_err(refused("receive"))?;
            }
        }
        Ok(Outcome::Done)
    }
}
