//! What the loop of a reflector needs of a socket.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::transport::batch_receiver::BatchBuffer;
use crate::transport::connections::ConnectionTally;
use crate::transport::reflector::UdpReflector;
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// The socket of a reflector, as far as its loop needs one.
pub trait ReflectorSocket {
    /// Takes one datagram into `buffer`: its length, and where it came from. None where nothing came for
    /// about 100 ms (a spinning socket: at once), or a signal did.
    ///
    /// # Errors
    /// The kernel's; the loop counts them and gives up after a hundred in a row.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>>;

    /// The same, but waits no longer than about `patience`: something is to be sent then.
    ///
    /// # Errors
    /// As [`ReflectorSocket::receive`].
    fn receive_within(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        _ = patience;
        self.receive(buffer)
    }

    /// Sends `datagram` to where its request came from.
    ///
    /// # Errors
    /// The kernel's; the loop counts them.
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()>;

    /// Told that `peer` has a session and that nobody else can get one while it lasts.
    fn hear_only(&mut self, peer: SocketAddr) {
        _ = peer;
    }

    /// Datagrams that the kernel dropped for want of room since the socket was made, modulo 2^32; none where it does
    /// not tell. Asked for when a session begins and ends, and ten times a second while there is a stream.
    fn dropped(&self) -> Option<u64> {
        None
    }

    /// What the socket can do for streams; what it cannot is not granted.
    fn abilities(&self) -> StreamTerms {
        StreamTerms::NONE
    }

    /// Told what the open sessions need of it, whenever one was opened, closed or asked.
    fn adapt(&mut self, needs: StreamTerms) {
        _ = needs;
    }

    /// Whether datagrams are to be taken many at a time: what it has adapted to.
    fn batches(&self) -> bool {
        false
    }

    /// Whether merged buffers came: then [`ReflectorSocket::dropped`] counts those.
    fn has_merged(&self) -> bool {
        false
    }

    /// Takes many datagrams at a time into `room`, and says how many buffers came: 0 as [`ReflectorSocket::receive`]
    /// says none.
    ///
    /// # Errors
    /// The kernel's; the loop counts them and gives up after a hundred in a row.
    fn receive_many(&mut self, room: &mut BatchBuffer) -> io::Result<usize> {
        _ = room;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// To which address of ours the last datagram was sent, where that is not the only one.
    fn asked_at(&self) -> Option<IpAddr> {
        None
    }

    /// Whether [`ReflectorSocket::gone`] or [`ReflectorSocket::care`] has something to do; asked before every receive call.
    fn wants_care(&self) -> bool {
        false
    }

    /// Somebody whose connection is gone; each is told once.
    fn gone(&mut self) -> Option<SocketAddr> {
        None
    }

    /// Lets go of who costs more than it is worth; `has_session` tells whether somebody has an open session.
    fn care(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        _ = has_session;
    }

    /// What became of connections; none where there are none.
    fn connections(&self) -> Option<ConnectionTally> {
        None
    }

    /// Told to which address of ours the datagrams that are judged next were sent, and whether they came merged.
    fn turn_to(&mut self, local: Option<IpAddr>, merged: bool) {
        _ = (local, merged);
    }
}

/// A standard socket; its read time-out, which the caller sets, is how often the loop looks up.
impl ReflectorSocket for UdpSocket {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match self.recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.send_to(datagram, to).map(|_| ())
    }
}

/// latlab's own socket.
impl ReflectorSocket for UdpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        UdpReflector::receive(self, buffer)
    }

    #[inline]
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        UdpReflector::reply(self, datagram, to)
    }

    #[inline]
    fn receive_within(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        UdpReflector::receive_within(self, buffer, patience)
    }

    fn asked_at(&self) -> Option<IpAddr> {
        UdpReflector::asked_at(self)
    }

    fn hear_only(&mut self, peer: SocketAddr) {
        UdpReflector::hear_only(self, peer);
    }

    fn dropped(&self) -> Option<u64> {
        self.socket_drops()
    }

    fn abilities(&self) -> StreamTerms {
        UdpReflector::abilities(self)
    }

    fn adapt(&mut self, needs: StreamTerms) {
        UdpReflector::adapt(self, needs);
    }

    #[inline]
    fn batches(&self) -> bool {
        UdpReflector::batches(self)
    }

    fn has_merged(&self) -> bool {
        UdpReflector::has_merged(self)
    }

    #[inline]
    fn receive_many(&mut self, room: &mut BatchBuffer) -> io::Result<usize> {
        UdpReflector::receive_many(self, room)
    }

    #[inline]
    fn turn_to(&mut self, local: Option<IpAddr>, merged: bool) {
        UdpReflector::turn_to(self, local, merged);
    }
}
