//! Ethernet, IP and UDP headers of one flow: written before a payload, and read in front of one.
//! RFC 791, RFC 8200, RFC 768, and RFC 1071 for checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Add;

/// A hardware address (IEEE 802).
pub(super) type Hardware = [u8; 6];

pub(super) const ETHERNET_BYTES: usize = 14;
pub(super) const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
pub(super) const UDP_BYTES: usize = 8;
pub(super) const MOST_HEADER_BYTES: usize = ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES;
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(super) const UDP: u8 = 17;
/// The default of Linux for packets (`net.ipv4.ip_default_ttl`).
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;

/// The bytes of an address, in the network's order.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The bytes of all headers in front of a UDP payload.
pub(super) const fn header_bytes(ipv6: bool) -> usize {
    ETHERNET_BYTES + UDP_BYTES + if ipv6 { IPV6_BYTES } else { IPV4_BYTES }
}

/// The addresses of packets from this end to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) local_hardware: Hardware,
    pub(super) peer_hardware: Hardware,
}

/// The headers of a flow, complete but for lengths and checksums.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderTemplate {
    bytes: [u8; MOST_HEADER_BYTES],
    length: usize,
    /// The sums of what does not change: of the IPv4 header, and of addresses, protocol and ports.
    ipv4_sum: Sum,
    udp_sum: Sum,
}

impl HeaderTemplate {
    /// `dscp`: the code point of each packet. IPv4 packets must not be fragmented.
    ///
    /// # Panics
    /// The addresses are of different families.
    pub(super) fn new(flow: &Flow, dscp: u8) -> HeaderTemplate {
        let mut bytes = [0; MOST_HEADER_BYTES];
        bytes[..6].copy_from_slice(&flow.peer_hardware);
        bytes[6..12].copy_from_slice(&flow.local_hardware);
        let (length, address_sum) = match (flow.local.ip(), flow.peer.ip()) {
            (IpAddr::V4(local), IpAddr::V4(peer)) => write_ipv4(&mut bytes, local, peer, dscp),
            (IpAddr::V6(local), IpAddr::V6(peer)) => write_ipv6(&mut bytes, local, peer, dscp),
            (local, peer) => panic!("a packet from {local} to {peer}"),
        };
        let udp = &mut bytes[length - UDP_BYTES..];
        udp[..2].copy_from_slice(&flow.local.port().to_be_bytes());
        udp[2..4].copy_from_slice(&flow.peer.port().to_be_bytes());
        let udp_sum = address_sum + Sum::of_word(UDP.into()) + Sum::of(&udp[..4]);
        let ipv4_sum = Sum::of(&bytes[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES]);
        HeaderTemplate { bytes, length, ipv4_sum, udp_sum }
    }

    /// Writes headers and `payload` to the beginning of `frame`, and returns the length of both.
    ///
    /// # Panics
    /// The frame is too short.
    #[inline]
    pub(super) fn write(&self, frame: &mut [u8], payload: &[u8]) -> usize {
        let end = self.length + payload.len();
        let udp_bytes = (UDP_BYTES + payload.len()) as u16;
        let packet = &mut frame[..end];
        packet[..self.length].copy_from_slice(&self.bytes[..self.length]);
        packet[self.length..].copy_from_slice(payload);
        if self.length == header_bytes(true) {
            packet[ETHERNET_BYTES + 4..][..2].copy_from_slice(&udp_bytes.to_be_bytes());
        } else {
            let total = IPV4_BYTES as u16 + udp_bytes;
            packet[ETHERNET_BYTES + 2..][..2].copy_from_slice(&total.to_be_bytes());
            let checksum = (self.ipv4_sum + Sum::of_word(total)).checksum();
            packet[ETHERNET_BYTES + 10..][..2].copy_from_slice(&checksum);
        }
        // The length counts twice: in the pseudo header and in the header.
        let lengths = Sum::of_word(udp_bytes) + Sum::of_word(udp_bytes);
        let checksum = (self.udp_sum + lengths + Sum::of(payload)).checksum();
        // 0 stands for a packet without a checksum.
        let checksum = if checksum == [0, 0] { [0xff, 0xff] } else { checksum };
        packet[self.length - 4..][..2].copy_from_slice(&udp_bytes.to_be_bytes());
        packet[self.length - 2..][..2].copy_from_slice(&checksum);
        end
    }
}

/// Writes the type and an IPv4 header; returns the length of all headers, and the sum of the addresses.
fn write_ipv4(bytes: &mut [u8; MOST_HEADER_BYTES], local: Ipv4Addr, peer: Ipv4Addr, dscp: u8) -> (usize, Sum) {
    bytes[12..14].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    let header = &mut bytes[ETHERNET_BYTES..];
    (header[0], header[1]) = (0x45, dscp << 2);
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    (header[8], header[9]) = (HOP_LIMIT, UDP);
    header[12..16].copy_from_slice(&local.octets());
    header[16..20].copy_from_slice(&peer.octets());
    (header_bytes(false), Sum::of_header(&local.octets()) + Sum::of_header(&peer.octets()))
}

/// As [`write_ipv4`].
fn write_ipv6(bytes: &mut [u8; MOST_HEADER_BYTES], local: Ipv6Addr, peer: Ipv6Addr, dscp: u8) -> (usize, Sum) {
    bytes[12..14].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
    let header = &mut bytes[ETHERNET_BYTES..];
    (header[0], header[1]) = (0x60 | dscp >> 2, dscp << 6);
    (header[6], header[7]) = (UDP, HOP_LIMIT);
    header[8..24].copy_from_slice(&local.octets());
    header[24..40].copy_from_slice(&peer.octets());
    (header_bytes(true), Sum::of_header(&local.octets()) + Sum::of_header(&peer.octets()))
}

/// A UDP datagram in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The hardware address of the host, or of the router, that sent it.
    pub(super) from_hardware: Hardware,
    pub(super) payload: &'a [u8],
}

impl Datagram<'_> {
    /// The way of an answer from `local`.
    #[inline]
    pub(super) const fn answered_from(&self, local: SocketAddr, local_hardware: Hardware) -> Flow {
        Flow { local, peer: self.from, local_hardware, peer_hardware: self.from_hardware }
    }
}

/// The UDP datagram in `frame`; `None` without a whole one, or if its checksum is wrong. Options, extension headers and
/// VLAN tags are not understood.
#[inline]
pub(super) fn parse(frame: &[u8]) -> Option<Datagram<'_>> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    let from_hardware = ethernet[6..12].try_into().ok()?;
    let (from, to, udp, address_sum) = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        ETHERTYPE_IPV4 => ipv4(packet)?,
        ETHERTYPE_IPV6 => ipv6(packet)?,
        _ => return None,
    };
    let header: &[u8; UDP_BYTES] = udp.first_chunk()?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let bytes = word(4);
    let payload = udp.get(UDP_BYTES..bytes.into())?;
    let pseudo = address_sum.with_pseudo_header(bytes);
    let is_right = match [header[6], header[7]] {
        [0, 0] => from.is_ipv4(),
        // The kernel leaves the rest to the device, and a virtual one computes nothing.
        unfinished if unfinished == pseudo.folded() => true,
        _ => (pseudo + Sum::of_header(header) + Sum::of(payload)).folded() == [0xff, 0xff],
    };
    is_right.then_some(Datagram {
        from: SocketAddr::new(from, word(0)),
        to: SocketAddr::new(to, word(2)),
        from_hardware,
        payload,
    })
}

type Addressed<'a> = (IpAddr, IpAddr, &'a [u8], Sum);

/// Addresses, UDP header and payload, and the sum of the addresses.
fn ipv4(packet: &[u8]) -> Option<Addressed<'_>> {
    let header: &[u8; IPV4_BYTES] = packet.first_chunk()?;
    let total = u16::from_be_bytes([header[2], header[3]]);
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    if header[0] != 0x45 || header[9] != UDP || !is_whole || Sum::of_header(header).folded() != [0xff, 0xff] {
        return None;
    }
    let addresses: &[u8; 8] = header.last_chunk()?;
    let [from, to] = [0, 4].map(|at| Ipv4Addr::from(std::array::from_fn(|byte| addresses[at + byte])));
    Some((from.into(), to.into(), packet.get(IPV4_BYTES..total.into())?, Sum::of_header(addresses)))
}

/// As [`ipv4`].
fn ipv6(packet: &[u8]) -> Option<Addressed<'_>> {
    let header: &[u8; IPV6_BYTES] = packet.first_chunk()?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return None;
    }
    let end = IPV6_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let addresses: &[u8; 32] = header.last_chunk()?;
    let [from, to] = [0, 16].map(|at| Ipv6Addr::from(std::array::from_fn(|byte| addresses[at + byte])));
    Some((from.into(), to.into(), packet.get(IPV6_BYTES..end)?, Sum::of_header(addresses)))
}

/// A one's complement sum of 16-bit words (RFC 1071) in the order of bytes of the host: a sum of exchanged bytes has exchanged
/// bytes (section 2). Words are added in pairs, and the carries at last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum(u64);

impl Sum {
    /// The sum of a header, or of a part of one, whose length is a multiple of four.
    #[inline(always)]
    fn of_header<const BYTES: usize>(header: &[u8; BYTES]) -> Sum {
        Sum(header.as_chunks::<4>().0.iter().map(pair).sum())
    }

    /// The sum of any bytes, an odd last one filled up with zero.
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Sum {
        // Sums of their own, which do not wait for each other.
        let mut columns = [0; 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            for (column, eight) in columns.iter_mut().zip(block.as_chunks::<8>().0) {
                let both = u64::from_ne_bytes(*eight);
                *column += (both & 0xffff_ffff) + (both >> 32);
            }
        }
        let (pairs, last) = rest.as_chunks::<4>();
        let mut filled = [0; 4];
        filled[..last.len()].copy_from_slice(last);
        Sum(columns.iter().sum::<u64>() + pairs.iter().map(pair).sum::<u64>() + pair(&filled))
    }

    /// This sum of both addresses, and what else a pseudo header has (RFC 768).
    #[inline]
    pub(super) fn with_pseudo_header(self, udp_bytes: u16) -> Sum {
        self + Sum::of_word(UDP.into()) + Sum::of_word(udp_bytes)
    }

    #[inline]
    fn of_word(word: u16) -> Sum {
        Sum(word.to_be().into())
    }

    /// The sum in 16 bits, in the order of the network.
    #[inline]
    pub(super) fn folded(self) -> [u8; 2] {
        let halves = |sum: u64| (sum & 0xffff_ffff) + (sum >> 32);
        let words = |sum: u64| (sum & 0xffff) + (sum >> 16);
        (words(words(halves(halves(self.0)))) as u16).to_ne_bytes()
    }

    /// What a checksum is for this sum of all other words.
    #[inline]
    fn checksum(self) -> [u8; 2] {
        self.folded().map(|byte| !byte)
    }
}

impl Add for Sum {
    type Output = Sum;

    #[inline]
    fn add(self, other: Sum) -> Sum {
        Sum(self.0 + other.0)
    }
}

#[inline]
fn pair(bytes: &[u8; 4]) -> u64 {
    u32::from_ne_bytes(*bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows() -> [Flow; 2] {
        let flow = |local: &str, peer: &str| Flow {
            local: local.parse().expect("an address"),
            peer: peer.parse().expect("an address"),
            local_hardware: [2, 0, 0, 0, 0, 1],
            peer_hardware: [2, 0, 0, 0, 0, 2],
        };
        [flow("10.98.62.1:4000", "10.98.62.2:9862"), flow("[fd98:6200::1]:4000", "[fd98:6200::2]:9862")]
    }

    #[test]
    fn what_is_written_is_read_again() {
        for flow in flows() {
            for length in [0, 1, 24, 25, 1_472] {
                let payload: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
                let mut frame = [0xee; 2_048];
                let written = HeaderTemplate::new(&flow, 46).write(&mut frame, &payload);
                assert_eq!(written, header_bytes(flow.local.is_ipv6()) + length);
                let found = parse(&frame[..written]).expect("a datagram");
                assert_eq!((found.from, found.to, found.payload), (flow.local, flow.peer, &payload[..]));
                assert_eq!(found.from_hardware, flow.local_hardware);
                // Ethernet fills short frames up.
                assert_eq!(parse(&frame[..written + 100]), Some(found));
            }
        }
    }

    #[test]
    fn a_changed_or_truncated_frame_is_refused() {
        for flow in flows() {
            let mut frame = [0; 256];
            let written = HeaderTemplate::new(&flow, 0).write(&mut frame, b"a payload of odd length");
            for cut in 1..written {
                assert_eq!(parse(&frame[..written - cut]), None, "{cut} bytes less");
            }
            // Hardware addresses, class, flow label and hop limit are not covered by a checksum of IPv6.
            let covered =
                (ETHERNET_BYTES..written).filter(|at| flow.local.is_ipv4() || !(14..18).contains(at) && *at != 21);
            for at in covered {
                let mut changed = frame;
                changed[at] ^= 0x10;
                assert_eq!(parse(&changed[..written]), None, "byte {at}");
            }
        }
    }

    #[test]
    fn a_checksum_that_the_kernel_left_unfinished_is_accepted() {
        let [ipv4, ipv6] = flows();
        for flow in [ipv4, ipv6] {
            let mut frame = [0; 256];
            let template = HeaderTemplate::new(&flow, 0);
            let written = template.write(&mut frame, b"payload");
            let at = header_bytes(flow.local.is_ipv6()) - 2;
            let addresses = Sum::of(&octets(flow.local.ip())) + Sum::of(&octets(flow.peer.ip()));
            let unfinished = addresses.with_pseudo_header(15).folded();
            frame[at..at + 2].copy_from_slice(&unfinished);
            assert!(parse(&frame[..written]).is_some());
            frame[at..at + 2].copy_from_slice(&[0, 0]);
            assert_eq!(parse(&frame[..written]).is_some(), flow.local.is_ipv4(), "IPv6 needs a checksum");
        }
    }

    /// The example of RFC 1071, section 3.
    #[test]
    fn sums_are_those_of_the_rfc() {
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded(), [0xdd, 0xf2]);
    }

    #[test]
    fn sums_of_any_length_are_those_of_single_words() {
        let bytes: Vec<u8> = (0..1_500_u32).map(|at| (at * 167 % 256) as u8 | 0x80).collect();
        for length in (0..140).chain([1_024, 1_471, 1_472, 1_500]) {
            let words = bytes[..length]
                .chunks(2)
                .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
            let expected = words.fold(0, |sum, word| (sum + word) % 0xffff);
            let found = u16::from_be_bytes(Sum::of(&bytes[..length]).folded());
            // Both forms of zero are the same number.
            assert_eq!(u32::from(found) % 0xffff, expected, "{length} bytes");
        }
    }
}
