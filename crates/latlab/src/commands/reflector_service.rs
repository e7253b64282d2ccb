//! What a reflector child process runs: sessions, or a bare loop for benchmarks.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use super::Outcome;
use crate::diagnostics::{Failure, refused};
use crate::measure::baseline::{bare, bare_stream, bare_tcp};
use crate::session::{Listener, ReflectorEvent, Requests, SessionReflector};

/// What a reflector child process runs.
pub(super) enum ReflectorService {
    /// Sessions.
    Sessions(Box<dyn Listener>, Box<SessionReflector>),
    /// Every datagram, unparsed.
    Bare(OwnedFd, bare::Wait),
    /// The same over one connection, in messages of this many bytes.
    BareTcp(OwnedFd, bare::Wait, u32),
    /// No answers: counts what arrives, with this many buffers a call.
    BareStream(OwnedFd, bare::Wait, u16),
}

impl ReflectorService {
    /// Address and receive buffer.
    pub(super) fn ready(&self) -> Result<ReflectorEvent, Failure> {
        let (address, receive_buffer_bytes) = match self {
            ReflectorService::Sessions(listener, _) => (listener.address(), listener.receive_buffer_bytes()),
            ReflectorService::Bare(socket, _)
            | ReflectorService::BareTcp(socket, ..)
            | ReflectorService::BareStream(socket, ..) => {
                let address = latlab_sys::socket::local_address(socket.as_fd());
                (address.map_err(refused("ask for the address"))?, None)
            }
        };
        Ok(ReflectorEvent::Ready { address, receive_buffer_bytes })
    }

    /// Answers until `stop`, on a thread that is pinned to `pin`.
    pub(super) fn answer(self, pin: Option<u16>, stop: &AtomicBool) -> Result<Outcome, Failure> {
        match self {
            ReflectorService::Sessions(mut listener, mut sessions) => {
                let never = AtomicBool::new(false);
                listener.serve(&mut sessions, pin, Requests { stop, counters: &never }, &mut |_| {})?;
            }
            ReflectorService::Bare(socket, wait) => bare::reflect(&socket, wait, stop).map_err(refused("reflect"))?,
            ReflectorService::BareTcp(listener, wait, size_bytes) => {
                bare_tcp::reflect(&listener, size_bytes as usize, wait, stop).map_err(refused("reflect"))?;
            }
            ReflectorService::BareStream(socket, wait, wanted) => {
                bare_stream::count(&socket, wait, usize::from(wanted), stop).map_err(refused("receive"))?;
            }
        }
        Ok(Outcome::Done)
    }
}
