//! UDP for measured streams: many packets with one call, connected or not, with or without a checksum.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use latlab_sys::address::{self, Address};
use latlab_sys::batch::{SendBatch, send_segmented};
use latlab_sys::{datagram, socket};

use super::error::{TransportError, is_interrupted, setting_error};
use super::seam::{BurstTransport, OpenPath, Packets, PathReport, PathTransport, Transport, send_each};
use super::udp::UdpTransport;
use super::wait::WaitStrategy;
use crate::plan::{PathSpec, SendMode, SenderSocketOptions, defaults};
use crate::units::Nanos;

/// A UDP socket that sends a stream.
#[derive(Debug)]
pub struct UdpStream {
    socket: UdpTransport,
    /// The destination of each packet; `None`: the socket is connected.
    to: Option<Address>,
    options: SenderSocketOptions,
    batch: SendBatch,
    path: OpenPath,
}

impl UdpStream {
    /// Opens the path to `peer`, whose packets leave as `options` say; they have checksums until
    /// [`BurstTransport::set_checksums`].
    ///
    /// # Errors
    /// As [`UdpTransport::open`].
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        wait: WaitStrategy,
        options: SenderSocketOptions,
    ) -> Result<UdpStream, TransportError> {
        // Only a connected socket knows its local address and the path MTU.
        let connected = UdpTransport::open(path, peer, wait)?;
        let unconnected_path = connected.path();
        let (socket, to) = if options.connect {
            (connected, None)
        } else {
            drop(connected);
            let local = unconnected_path.local;
            (UdpTransport::open_unconnected(path, local, peer, wait)?, Some(Address::from(peer)))
        };
        let (fd, bytes) = (socket.as_fd(), defaults::STREAM_BUFFER_BYTES);
        let granted = socket::set_send_buffer(fd, bytes).map_err(setting_error("the send buffer", bytes))?;
        socket::set_receive_buffer(fd, bytes).map_err(setting_error("the receive buffer", bytes))?;
        let most = if options.mode == SendMode::Sendmmsg { options.batch.max(1) } else { 0 };
        let batch = SendBatch::new(usize::from(most), to);
        let path = OpenPath { send_buffer_bytes: Some(granted), ..unconnected_path };
        Ok(UdpStream { socket, to, options, batch, path })
    }
}

impl Transport for UdpStream {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Some(to) = &self.to else { return self.socket.send(datagram) };
        match datagram::send_to(self.socket.as_fd(), datagram, to) {
            Err(error) if is_interrupted(&error) => datagram::send_to(self.socket.as_fd(), datagram, to),
            sent => sent,
        }
        .map(drop)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        if self.to.is_none() {
            return self.socket.receive(buffer, max_wait);
        }
        let peer = self.path.peer;
        self.socket.receive_with(buffer, max_wait, |fd, buffer, sleeps| {
            let mut from = Address::empty();
            let bytes = match sleeps {
                true => datagram::receive_from(fd, buffer, &mut from),
                false => datagram::receive_from_now(fd, buffer, &mut from),
            }?;
            // The filter of a connected socket.
            let is_peer =
                from.to_socket_addr().is_some_and(|from| from.ip() == peer.ip() && from.port() == peer.port());
            if is_peer { Ok(bytes) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
    }

    /// A socket that is not connected reports no errors.
    fn report(&self) -> PathReport {
        self.socket.report()
    }
}

impl BurstTransport for UdpStream {
    #[inline]
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        let (size, stride) = (packets.size_bytes(), packets.stride_bytes());
        match self.options.mode {
            SendMode::Send => send_each(self, packets),
            SendMode::Sendmmsg => {
                let UdpStream { socket, batch, .. } = self;
                match batch.send(socket.as_fd(), packets.bytes(), size, stride) {
                    Err(error) => socket.retry_send(error, |fd| batch.send(fd, packets.bytes(), size, stride)),
                    sent => sent,
                }
            }
            SendMode::Gso => {
                let UdpStream { socket, to, .. } = self;
                // The kernel takes all of it or nothing.
                match send_segmented(socket.as_fd(), packets.bytes(), size as u16, to.as_ref()) {
                    Err(error) => {
                        socket.retry_send(error, |fd| send_segmented(fd, packets.bytes(), size as u16, to.as_ref()))
                    }
                    sent => sent,
                }
                .map(|_| packets.count())
            }
        }
    }

    fn set_checksums(&mut self, on: bool) -> io::Result<()> {
        let family = address::Family::of(&self.path.peer);
        socket::set_checksums(self.socket.as_fd(), family, on || self.options.checksum)
    }
}

impl PathTransport for UdpStream {
    fn path(&self) -> OpenPath {
        self.path
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::transport::SendModeError;

    const SIZE: usize = 100;

    fn far(loopback: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(loopback).expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    fn stream(peer: SocketAddr, options: SenderSocketOptions) -> UdpStream {
        UdpStream::open(&PathSpec::SYSTEM, peer, WaitStrategy::Until { busy_poll: false }, options).expect("a path")
    }

    fn all_options() -> impl Iterator<Item = SenderSocketOptions> {
        let modes = SendMode::ALL.into_iter();
        modes.flat_map(|mode| {
            [true, false].map(|connect| SenderSocketOptions { mode, connect, ..SenderSocketOptions::PLAIN })
        })
    }

    #[test]
    fn every_mode_delivers_every_packet_and_receives_from_its_peer_only() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            for options in all_options() {
                let (socket, peer) = far(loopback);
                let mut stream = stream(peer, options);
                let path = stream.path();
                let bytes: Vec<u8> = (0..5 * SIZE).map(|at| at as u8).collect();
                assert_eq!(stream.burst(Packets::new(&bytes, SIZE, SIZE)).expect("sent"), 5, "{options:?}");
                let mut buffer = [0; 512];
                for number in 0..5 {
                    let (length, from) = socket.recv_from(&mut buffer).expect("a packet");
                    assert_eq!((&buffer[..length], from), (&bytes[number * SIZE..][..SIZE], path.local));
                }
                let (stranger, _) = far(loopback);
                stranger.send_to(b"stranger", path.local).expect("sent");
                socket.send_to(b"answer", path.local).expect("sent");
                let received = (0..100)
                    .find_map(|_| stream.receive(&mut buffer, Nanos::from_millis(50)).expect("a working socket"));
                assert_eq!(received.map(|length| &buffer[..length]), Some(&b"answer"[..]), "{options:?}");
                assert!(path.send_buffer_bytes.is_some_and(|bytes| bytes >= 100_000), "{path:?}");
                assert!(path.unfragmented_bytes.is_some_and(|bytes| bytes > 1_200));
            }
        }
    }

    #[test]
    fn gso_without_checksums_is_refused_by_name() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (_socket, peer) = far(loopback);
            let gso = SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN };
            let unchecked = SenderSocketOptions { checksum: false, ..gso };
            let mut stream = stream(peer, unchecked);
            let packets = |bytes| Packets::new(bytes, SIZE, SIZE);
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("with checksums at first"), 3);
            stream.set_checksums(false).expect("checksums off");
            let error = stream.burst(packets(&[7; 3 * SIZE])).expect_err("EINVAL");
            assert_eq!(SendModeError::of(&error, unchecked, 100), Some(SendModeError::ChecksumOff), "{error}");
            stream.set_checksums(true).expect("checksums on");
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("with checksums again"), 3);
        }
    }

    #[test]
    fn packets_without_checksums_arrive_at_a_socket_that_accepts_them() {
        for (loopback, mode) in [("127.0.0.1:0", SendMode::Send), ("[::1]:0", SendMode::Sendmmsg)] {
            let (socket, peer) = far(loopback);
            let mut stream = stream(peer, SenderSocketOptions { mode, checksum: false, ..SenderSocketOptions::PLAIN });
            stream.set_checksums(false).expect("checksums off");
            if peer.is_ipv6() {
                socket::accept_unchecked(socket.as_fd(), true).expect("UDP_NO_CHECK6_RX");
            }
            assert_eq!(stream.burst(Packets::new(&[7; 2 * SIZE], SIZE, SIZE)).expect("sent"), 2);
            assert_eq!(socket.recv_from(&mut [0; 512]).expect("a packet").0, SIZE);
        }
    }
}
