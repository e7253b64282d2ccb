//! Many packets at a time (docs/design/0014-stream.md): the seam of streams, beside [`Transport`].

use std::io;

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

use super::Transport;
use crate::plan::{SendMode, SenderSocketOptions};

/// Packets of one size in one buffer, each beginning `stride` bytes after the one before: end to end where that is the
/// size, overlapping where it is less.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    size: usize,
    stride: usize,
    count: usize,
}

impl<'a> Packets<'a> {
    /// As many packets of `size` bytes as begin, `stride` bytes apart, and end in `bytes`.
    pub fn new(bytes: &'a [u8], size: usize, stride: usize) -> Packets<'a> {
        let count = bytes.len().checked_sub(size).map_or(0, |room| 1 + room / stride.max(1));
        Packets { bytes, size, stride, count }
    }

    /// The same, where it is known how many those are: a division takes as long as all else that is done for a packet.
    #[inline]
    pub(crate) fn counted(bytes: &'a [u8], size: usize, stride: usize, count: usize) -> Packets<'a> {
        debug_assert_eq!(count, Packets::new(bytes, size, stride).count);
        Packets { bytes, size, stride, count }
    }

    /// How many.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of each, in bytes.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size
    }

    /// From the beginning of one to that of the next, in bytes.
    #[inline]
    pub fn stride_bytes(&self) -> usize {
        self.stride
    }

    /// Where they lie.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Each of them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, size, stride) = (self.bytes, self.size, self.stride);
        (0..self.count).map(move |number| &bytes[number * stride..number * stride + size])
    }
}

/// A transport that takes many packets at a time.
pub trait BurstTransport: Transport {
    /// Hands `packets` to the network, in order, and says how many the kernel took: at least one. How many may be handed
    /// over at a time was settled when the transport was opened.
    ///
    /// # Errors
    /// The kernel's refusal of the first packet.
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        one_by_one(self, packets)
    }

    /// Whether datagrams are `protected` by a checksum from now on. Without protection they leave as was settled when the
    /// transport was opened, which may be no different.
    ///
    /// # Errors
    /// The kernel refused it.
    fn protect(&mut self, protected: bool) -> io::Result<()> {
        _ = protected;
        Ok(())
    }

    /// How far a connection has come; none where each datagram is on its own.
    fn carried(&self) -> Option<ConnectionBytes> {
        None
    }
}

/// Bytes of a connection, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionBytes {
    /// Handed over to be sent.
    pub handed_bytes: u64,
    /// Of these, acknowledged by the other end's kernel.
    pub acknowledged_bytes: u64,
}

/// A transport as a guest.
impl<T: BurstTransport + ?Sized> BurstTransport for &mut T {
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        (**self).burst(packets)
    }

    fn protect(&mut self, protected: bool) -> io::Result<()> {
        (**self).protect(protected)
    }

    fn carried(&self) -> Option<ConnectionBytes> {
        (**self).carried()
    }
}

/// One call for each packet, until one is refused.
#[inline]
pub(super) fn one_by_one(transport: &mut (impl Transport + ?Sized), packets: Packets<'_>) -> io::Result<usize> {
    for (taken, packet) in packets.iter().enumerate() {
        match transport.send(packet) {
            Err(error) if taken == 0 => return Err(error),
            // What it is about will be said of the first packet next time.
            Err(_) => return Ok(taken),
            Ok(()) => {}
        }
    }
    Ok(packets.count())
}

/// Why a kernel does not send in the way that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BurstRefusal {
    /// The kernel computes the checksum of each packet that it cuts.
    #[error("cannot send by `gso` with the checksum off")]
    ChecksumOff,
    /// A packet with its headers is longer than the path carries in one piece, and packets that are cut are not fragmented.
    #[error("cannot send packets of {size_bytes} bytes by `gso` on this path")]
    SegmentOverMtu {
        /// UDP payload of each packet.
        size_bytes: u32,
    },
    /// Before Linux 6.11 the device must compute checksums.
    #[error("cannot send by `gso` through a device that computes no checksums")]
    NoChecksumOffload,
    /// Fragments are forbidden, and the packets would need them.
    #[error("cannot send packets of {size_bytes} bytes in one piece on this path")]
    TooLong {
        /// UDP payload of each packet.
        size_bytes: u32,
    },
}

impl BurstRefusal {
    /// What it means that packets of `size_bytes`, sent in this way, were refused with `error`; none where the way is not
    /// the reason.
    pub fn of(error: &io::Error, sending: SenderSocketOptions, size_bytes: u32) -> Option<BurstRefusal> {
        // `udp_send_skb` in net/ipv4/udp.c and `udp_v6_send_skb` in net/ipv6/udp.c.
        match (Errno::from_io_error(error)?, sending.mode) {
            (Errno::INVAL, SendMode::Gso) if !sending.checksum => Some(BurstRefusal::ChecksumOff),
            (Errno::INVAL | Errno::MSGSIZE, SendMode::Gso) => Some(BurstRefusal::SegmentOverMtu { size_bytes }),
            (Errno::IO, SendMode::Gso) => Some(BurstRefusal::NoChecksumOffload),
            (Errno::MSGSIZE, _) => Some(BurstRefusal::TooLong { size_bytes }),
            _ => None,
        }
    }

    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        let of = |errno: Errno| explain(&io::Error::from(errno));
        Some(match self {
            BurstRefusal::ChecksumOff => {
                format!("the kernel must compute the checksum of every packet that it cuts: {}", of(Errno::INVAL))
            }
            BurstRefusal::SegmentOverMtu { .. } | BurstRefusal::TooLong { .. } => {
                "with its headers such a packet is longer than the path carries in one piece".into()
            }
            BurstRefusal::NoChecksumOffload => {
                format!("Linux before 6.11 leaves the checksums of cut packets to the device: {}", of(Errno::IO))
            }
        })
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            BurstRefusal::ChecksumOff => "leave out `--checksum off`, or use `--mode sendmmsg`".into(),
            BurstRefusal::SegmentOverMtu { .. } => "choose a smaller `--size`, or `--mode sendmmsg`".into(),
            BurstRefusal::NoChecksumOffload => {
                "`ethtool -K DEV tx-checksum-ip-generic on` where the device can, or `--mode sendmmsg`".into()
            }
            BurstRefusal::TooLong { .. } => "choose a smaller `--size`, or leave out `--df`".into(),
        })
    }

    /// 2 where the request contradicts itself or the path, 3 where the world refuses.
    pub const fn exit_code(&self) -> u8 {
        match self {
            BurstRefusal::NoChecksumOffload => 3,
            _ => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    /// Takes so many packets, then refuses.
    struct Narrow(Vec<Vec<u8>>, usize);

    impl Transport for Narrow {
        fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
            if self.0.len() == self.1 {
                return Err(Errno::NOBUFS.into());
            }
            self.0.push(datagram.to_vec());
            Ok(())
        }

        fn receive(&mut self, _: &mut [u8], _: Nanos) -> io::Result<Option<usize>> {
            Ok(None)
        }
    }

    impl BurstTransport for Narrow {}

    #[test]
    fn packets_lie_end_to_end_or_overlap() {
        let bytes: Vec<u8> = (0..12).collect();
        for (size, stride, expected) in
            [(4, 4, vec![0, 4, 8]), (6, 3, vec![0, 3, 6]), (12, 1, vec![0]), (13, 1, vec![])]
        {
            let packets = Packets::new(&bytes, size, stride);
            assert_eq!(packets.count(), expected.len());
            assert_eq!(packets.iter().map(|packet| packet[0]).collect::<Vec<_>>(), expected);
            assert!(packets.iter().all(|packet| packet.len() == size));
        }
    }

    #[test]
    fn what_is_taken_is_said_and_the_first_refusal_is_an_error() {
        for (room, expected) in [(9, Some(3)), (2, Some(2)), (0, None)] {
            let mut narrow = Narrow(Vec::new(), room);
            let taken = narrow.burst(Packets::new(&[7; 12], 4, 4));
            assert_eq!(taken.ok(), expected, "room for {room}");
        }
    }

    #[test]
    fn refusals_have_names() {
        let plain = SenderSocketOptions::PLAIN;
        let gso = SenderSocketOptions { mode: SendMode::Gso, ..plain };
        let unchecked = SenderSocketOptions { checksum: false, ..gso };
        let rows = [
            (Errno::INVAL, unchecked, Some((BurstRefusal::ChecksumOff, 2))),
            (Errno::INVAL, gso, Some((BurstRefusal::SegmentOverMtu { size_bytes: 9_000 }, 2))),
            (Errno::MSGSIZE, gso, Some((BurstRefusal::SegmentOverMtu { size_bytes: 9_000 }, 2))),
            (Errno::IO, gso, Some((BurstRefusal::NoChecksumOffload, 3))),
            (Errno::MSGSIZE, plain, Some((BurstRefusal::TooLong { size_bytes: 9_000 }, 2))),
            (Errno::IO, plain, None),
            (Errno::INVAL, SenderSocketOptions { checksum: false, ..plain }, None),
            (Errno::NOBUFS, gso, None),
        ];
        for (errno, sending, expected) in rows {
            let refusal = BurstRefusal::of(&errno.into(), sending, 9_000);
            assert_eq!(refusal.map(|refusal| (refusal, refusal.exit_code())), expected, "{errno:?} {sending:?}");
            assert!(refusal.is_none_or(|refusal| refusal.cause().is_some() && refusal.hint().is_some()));
        }
    }
}
