//! Sessions over connections: what a reflector hears of them, and the listener as its socket.

use std::io;
use std::net::SocketAddr;

use super::reflector::SessionReflector;
use super::reflector_socket::ReflectorSocket;
use crate::transport::connections::ConnectionTally;
use crate::transport::tcp_reflector::TcpReflector;
use crate::units::{ReflectorClock, Stamp};

impl SessionReflector {
    /// Told that the connection of `peer` is gone, and nothing can come over it any more: its sessions end.
    pub fn hang_up(&mut self, peer: SocketAddr) {
        self.counters.hung_up += self.table.hang_up(peer);
    }

    /// Whether `peer` has a session that is open at `now`.
    pub fn holds_session(&self, peer: SocketAddr, now: Stamp<ReflectorClock>) -> bool {
        self.table.is_open_for(peer, now)
    }

    /// Told what became of the connections of its socket, before the counters are read.
    pub fn note_connections(&mut self, tally: ConnectionTally) {
        self.counters.connections = Some(tally);
    }
}

/// latlab's own listener and its connections.
impl ReflectorSocket for TcpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        TcpReflector::receive(self, buffer)
    }

    #[inline]
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        TcpReflector::reply(self, datagram, to)
    }

    fn hear_only(&mut self, peer: SocketAddr) {
        TcpReflector::hear_only(self, peer);
    }

    #[inline]
    fn wants_care(&self) -> bool {
        TcpReflector::wants_care(self)
    }

    fn gone(&mut self) -> Option<SocketAddr> {
        TcpReflector::gone(self)
    }

    fn care(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        TcpReflector::care(self, has_session);
    }

    fn connections(&self) -> Option<ConnectionTally> {
        Some(self.tally())
    }
}
