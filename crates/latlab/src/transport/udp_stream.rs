//! UDP for measured streams: many packets with one call, connected or not, with or without a checksum.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use latlab_sys::address::{self, Address};
use latlab_sys::batch::{SendBatch, send_segmented};
use latlab_sys::{datagram, socket};
use serde::{Deserialize, Serialize};

use super::Transport;
use super::burst::{BurstTransport, Packets, one_by_one};
use super::refusal::TransportError;
use super::udp::{UdpTransport, WaitStrategy, is_interruption, setting};
use crate::plan::{PathSpec, SendMode, SenderSocketOptions, defaults};
use crate::units::Nanos;

/// What a kernel gave of the buffers that were asked for, its own bookkeeping included: on Linux up to twice as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedBuffers {
    /// SO_SNDBUF.
    pub send_bytes: u32,
    /// SO_RCVBUF.
    pub receive_bytes: u32,
}

/// A UDP socket that sends a stream.
#[derive(Debug)]
pub struct UdpStream {
    path: UdpTransport,
    /// Whom each packet is addressed to; none: the socket is connected.
    to: Option<Address>,
    sending: SenderSocketOptions,
    batch: SendBatch,
    granted: GrantedBuffers,
    unfragmented_bytes: Option<u32>,
}

impl UdpStream {
    /// Opens the path to `peer`, on which packets leave as `sending` says; checksums are on until
    /// [`BurstTransport::protect`] says otherwise.
    ///
    /// # Errors
    /// Each step the kernel refuses: address, port, interface, a setting, no route.
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        waiting: WaitStrategy,
        sending: SenderSocketOptions,
    ) -> Result<UdpStream, TransportError> {
        // Only a connected socket knows where it sends from and what fits there.
        let connected = UdpTransport::open(path, peer, waiting)?;
        let unfragmented_bytes = connected.unfragmented_bytes();
        let (path, to) = if sending.connect {
            (connected, None)
        } else {
            let local = connected.local_address();
            drop(connected);
            (UdpTransport::bound(path, local, peer, waiting)?, Some(Address::from(peer)))
        };
        let granted = grant(path.as_fd())?;
        let most = if sending.mode == SendMode::Sendmmsg { sending.batch.max(1) } else { 0 };
        let batch = SendBatch::new(usize::from(most), to);
        Ok(UdpStream { path, to, sending, batch, granted, unfragmented_bytes })
    }

    /// The address and port measured from.
    pub const fn local_address(&self) -> SocketAddr {
        self.path.local_address()
    }

    /// The address and port measured to.
    pub const fn peer_address(&self) -> SocketAddr {
        self.path.peer_address()
    }

    /// The largest payload that leaves unfragmented, in bytes; none where the kernel does not say. Longer packets cannot
    /// be sent by `gso`.
    pub const fn unfragmented_bytes(&self) -> Option<u32> {
        self.unfragmented_bytes
    }

    /// How packets leave.
    pub const fn sending(&self) -> SenderSocketOptions {
        self.sending
    }

    /// The buffers that the kernel gave.
    pub const fn granted_buffers(&self) -> GrantedBuffers {
        self.granted
    }

    /// Errors that the socket reported about earlier datagrams (ICMP): name of the errno → count. A socket that is not
    /// connected reports none.
    pub fn socket_errors(&self) -> BTreeMap<String, u64> {
        self.path.socket_errors()
    }
}

impl Transport for UdpStream {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Some(to) = &self.to else { return self.path.send(datagram) };
        match datagram::send_to(self.path.as_fd(), datagram, to) {
            Err(error) if is_interruption(&error) => datagram::send_to(self.path.as_fd(), datagram, to),
            sent => sent,
        }
        .map(drop)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        if self.to.is_none() {
            return self.path.receive(buffer, patience);
        }
        let peer = self.path.peer_address();
        self.path.receive_by(buffer, patience, |fd, buffer, sleeps| {
            let mut from = Address::empty();
            let bytes = match sleeps {
                true => datagram::receive_from(fd, buffer, &mut from),
                false => datagram::receive_from_now(fd, buffer, &mut from),
            }?;
            // What a connected socket would not have heard.
            let is_peer =
                from.to_socket_addr().is_some_and(|from| from.ip() == peer.ip() && from.port() == peer.port());
            if is_peer { Ok(bytes) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
    }
}

impl BurstTransport for UdpStream {
    #[inline]
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        let (size, stride) = (packets.size_bytes(), packets.stride_bytes());
        match self.sending.mode {
            SendMode::Send => one_by_one(self, packets),
            SendMode::Sendmmsg => {
                let UdpStream { path, batch, .. } = self;
                match batch.send(path.as_fd(), packets.bytes(), size, stride) {
                    Err(error) => path.send_again(error, |fd| batch.send(fd, packets.bytes(), size, stride)),
                    sent => sent,
                }
            }
            SendMode::Gso => {
                let UdpStream { path, to, .. } = self;
                // What the kernel takes it takes whole.
                match send_segmented(path.as_fd(), packets.bytes(), size as u16, to.as_ref()) {
                    Err(error) => {
                        path.send_again(error, |fd| send_segmented(fd, packets.bytes(), size as u16, to.as_ref()))
                    }
                    sent => sent,
                }
                .map(|_| packets.count())
            }
        }
    }

    fn protect(&mut self, protected: bool) -> io::Result<()> {
        let family = address::Family::of(&self.path.peer_address());
        socket::set_checksums(self.path.as_fd(), family, protected || self.sending.checksum)
    }
}

/// Asks for both buffers.
fn grant(fd: BorrowedFd<'_>) -> Result<GrantedBuffers, TransportError> {
    let bytes = defaults::STREAM_BUFFER_BYTES;
    let send_bytes = socket::set_send_buffer(fd, bytes).map_err(setting("the send buffer", bytes))?;
    let receive_bytes = socket::set_receive_buffer(fd, bytes).map_err(setting("the receive buffer", bytes))?;
    Ok(GrantedBuffers { send_bytes, receive_bytes })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::transport::burst::BurstRefusal;

    const SIZE: usize = 100;

    fn far(loopback: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(loopback).expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    fn stream(peer: SocketAddr, sending: SenderSocketOptions) -> UdpStream {
        UdpStream::open(&PathSpec::SYSTEM, peer, WaitStrategy::Until { busy_poll: false }, sending).expect("a path")
    }

    fn ways() -> impl Iterator<Item = SenderSocketOptions> {
        let modes = SendMode::ALL.into_iter();
        modes.flat_map(|mode| {
            [true, false].map(|connect| SenderSocketOptions { mode, connect, ..SenderSocketOptions::PLAIN })
        })
    }

    #[test]
    fn every_way_brings_every_packet_and_hears_the_answer_of_its_peer() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            for sending in ways() {
                let (socket, peer) = far(loopback);
                let mut stream = stream(peer, sending);
                let bytes: Vec<u8> = (0..5 * SIZE).map(|at| at as u8).collect();
                assert_eq!(stream.burst(Packets::new(&bytes, SIZE, SIZE)).expect("sent"), 5, "{sending:?}");
                let mut buffer = [0; 512];
                for number in 0..5 {
                    let (length, from) = socket.recv_from(&mut buffer).expect("it arrives");
                    assert_eq!((&buffer[..length], from), (&bytes[number * SIZE..][..SIZE], stream.local_address()));
                }
                let (stranger, _) = far(loopback);
                stranger.send_to(b"stranger", stream.local_address()).expect("sent");
                socket.send_to(b"answer", stream.local_address()).expect("sent");
                let heard = (0..100)
                    .find_map(|_| stream.receive(&mut buffer, Nanos::from_millis(50)).expect("a socket of our own"));
                assert_eq!(heard.map(|length| &buffer[..length]), Some(&b"answer"[..]), "{sending:?}");
                let granted = stream.granted_buffers();
                assert!(granted.send_bytes >= 100_000 && granted.receive_bytes >= 100_000, "{granted:?}");
                assert!(stream.unfragmented_bytes().is_some_and(|bytes| bytes > 1_200));
            }
        }
    }

    #[test]
    fn what_gso_cannot_do_is_refused_by_name() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (_socket, peer) = far(loopback);
            let gso = SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN };
            let unchecked = SenderSocketOptions { checksum: false, ..gso };
            let mut stream = stream(peer, unchecked);
            let packets = |bytes| Packets::new(bytes, SIZE, SIZE);
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("protected as yet"), 3);
            stream.protect(false).expect("checksums off");
            let error = stream.burst(packets(&[7; 3 * SIZE])).expect_err("EINVAL");
            assert_eq!(BurstRefusal::of(&error, unchecked, 100), Some(BurstRefusal::ChecksumOff), "{error}");
            stream.protect(true).expect("checksums on");
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("protected again"), 3);
        }
    }

    #[test]
    fn without_checksums_packets_arrive_where_they_are_taken() {
        for (loopback, mode) in [("127.0.0.1:0", SendMode::Send), ("[::1]:0", SendMode::Sendmmsg)] {
            let (socket, peer) = far(loopback);
            let mut stream = stream(peer, SenderSocketOptions { mode, checksum: false, ..SenderSocketOptions::PLAIN });
            stream.protect(false).expect("checksums off");
            if peer.is_ipv6() {
                socket::take_unchecked(socket.as_fd(), true).expect("UDP_NO_CHECK6_RX");
            }
            assert_eq!(stream.burst(Packets::new(&[7; 2 * SIZE], SIZE, SIZE)).expect("sent"), 2);
            assert_eq!(socket.recv_from(&mut [0; 512]).expect("it arrives").0, SIZE);
        }
    }
}
