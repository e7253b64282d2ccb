//! What a reflector process answers with: sessions, or the bare loop.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use super::Outcome;
use super::serve::reflect;
use crate::error::{Failure, refused};
use crate::measure::bare;
use crate::session::{Requests, SessionReflector};
use crate::transport::reflector::UdpReflector;

/// What answers.
pub(super) enum Post {
    /// Sessions.
    Sessions(UdpReflector, Box<SessionReflector>),
    /// Everything, unseen.
    Bare(OwnedFd, bare::Wait),
}

impl Post {
    /// Where it answers.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        match self {
            Post::Sessions(socket, _) => Ok(socket.local_address()),
            Post::Bare(socket, _) => {
                latlab_sys::socket::local_address(socket.as_fd()).map_err(refused("ask for the address"))
            }
        }
    }

    /// Answers until `stop`, on a thread that is pinned to `pin`.
    pub(super) fn answer(self, pin: Option<u16>, stop: &AtomicBool) -> Result<Outcome, Failure> {
        match self {
            Post::Sessions(mut socket, mut sessions) => {
                let never = AtomicBool::new(false);
                reflect(&mut socket, &mut sessions, pin, Requests { stop, counters: &never }, |_| {})?;
            }
            Post::Bare(socket, wait) => bare::reflect(&socket, wait, stop).map_err(refused("reflect"))?,
        }
        Ok(Outcome::Done)
    }
}
