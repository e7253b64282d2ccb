//! Ethernet, IP and UDP headers of one flow: written before a payload, and read in front of one.
//! RFC 791, RFC 8200, RFC 768, and RFC 1071 for checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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
    ipv4_sum: u32,
    udp_sum: u32,
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
        let udp_sum = address_sum + u32::from(UDP) + sum(&udp[..4]);
        let ipv4_sum = if flow.local.is_ipv4() { sum(&bytes[ETHERNET_BYTES..ETHERNET_BYTES + IPV4_BYTES]) } else { 0 };
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
        let payload_sum = copy(payload, &mut packet[self.length..]);
        if self.length == header_bytes(true) {
            packet[ETHERNET_BYTES + 4..][..2].copy_from_slice(&udp_bytes.to_be_bytes());
        } else {
            let total = IPV4_BYTES as u16 + udp_bytes;
            packet[ETHERNET_BYTES + 2..][..2].copy_from_slice(&total.to_be_bytes());
            let checksum = !folded(self.ipv4_sum + u32::from(total));
            packet[ETHERNET_BYTES + 10..][..2].copy_from_slice(&checksum.to_be_bytes());
        }
        // The length counts twice: in the pseudo header and in the header.
        let checksum = !folded(self.udp_sum + 2 * u32::from(udp_bytes) + payload_sum);
        // 0 stands for a packet without a checksum.
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        packet[self.length - 4..][..2].copy_from_slice(&udp_bytes.to_be_bytes());
        packet[self.length - 2..][..2].copy_from_slice(&checksum.to_be_bytes());
        end
    }
}

/// Writes the type and an IPv4 header; returns the length of all headers, and the sum of the addresses.
fn write_ipv4(bytes: &mut [u8; MOST_HEADER_BYTES], local: Ipv4Addr, peer: Ipv4Addr, dscp: u8) -> (usize, u32) {
    bytes[12..14].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    let header = &mut bytes[ETHERNET_BYTES..];
    (header[0], header[1]) = (0x45, dscp << 2);
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    (header[8], header[9]) = (HOP_LIMIT, UDP);
    header[12..16].copy_from_slice(&local.octets());
    header[16..20].copy_from_slice(&peer.octets());
    (header_bytes(false), sum(&local.octets()) + sum(&peer.octets()))
}

/// As [`write_ipv4`].
fn write_ipv6(bytes: &mut [u8; MOST_HEADER_BYTES], local: Ipv6Addr, peer: Ipv6Addr, dscp: u8) -> (usize, u32) {
    bytes[12..14].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
    let header = &mut bytes[ETHERNET_BYTES..];
    (header[0], header[1]) = (0x60 | dscp >> 2, dscp << 6);
    (header[6], header[7]) = (UDP, HOP_LIMIT);
    header[8..24].copy_from_slice(&local.octets());
    header[24..40].copy_from_slice(&peer.octets());
    (header_bytes(true), sum(&local.octets()) + sum(&peer.octets()))
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
    let (header, rest) = udp.split_at_checked(UDP_BYTES)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let bytes = word(4);
    let payload = rest.get(..usize::from(bytes).checked_sub(UDP_BYTES)?)?;
    let pseudo = address_sum + u32::from(UDP) + u32::from(bytes);
    let is_right = match word(6) {
        0 => from.is_ipv4(),
        // The kernel leaves the rest to the device, and a virtual one computes nothing.
        unfinished if unfinished == folded(pseudo) => true,
        _ => folded(pseudo + sum(header) + sum(payload)) == 0xffff,
    };
    is_right.then_some(Datagram {
        from: SocketAddr::new(from, word(0)),
        to: SocketAddr::new(to, word(2)),
        from_hardware,
        payload,
    })
}

type Addressed<'a> = (IpAddr, IpAddr, &'a [u8], u32);

/// Addresses, UDP header and payload, and the sum of the addresses.
fn ipv4(packet: &[u8]) -> Option<Addressed<'_>> {
    let header: &[u8; IPV4_BYTES] = packet.first_chunk()?;
    let total = u16::from_be_bytes([header[2], header[3]]);
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    if header[0] != 0x45 || header[9] != UDP || !is_whole || folded(sum(header)) != 0xffff {
        return None;
    }
    let [from, to] = [12, 16].map(|at| Ipv4Addr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    Some((from.into(), to.into(), packet.get(IPV4_BYTES..usize::from(total))?, sum(&header[12..])))
}

/// As [`ipv4`].
fn ipv6(packet: &[u8]) -> Option<Addressed<'_>> {
    let header: &[u8; IPV6_BYTES] = packet.first_chunk()?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return None;
    }
    let end = IPV6_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    Some((address(8)?.into(), address(24)?.into(), packet.get(IPV6_BYTES..end)?, sum(&header[8..])))
}

/// The sum of 16-bit words, an odd last byte filled up with zero. Words are added in pairs and in the order of bytes of the
/// host: a sum of exchanged bytes has exchanged bytes (RFC 1071, section 2).
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<4>();
    in_network_order(pairs.iter().map(wide).sum::<u64>() + wide(&filled(rest)))
}

/// Copies `from` to `to`, which is as long, and returns its sum, in one pass.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) -> u32 {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<4>(), to.as_chunks_mut::<4>());
    let mut sum = wide(&filled(from_rest));
    for (from, to) in from.iter().zip(to) {
        *to = *from;
        sum += wide(from);
    }
    to_rest.copy_from_slice(from_rest);
    in_network_order(sum)
}

#[inline]
fn wide(pair: &[u8; 4]) -> u64 {
    u32::from_ne_bytes(*pair).into()
}

#[inline]
fn filled(rest: &[u8]) -> [u8; 4] {
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    last
}

/// The sum of words in the order of the network, of one in that of the host.
#[inline]
fn in_network_order(sum: u64) -> u32 {
    let halves = u32::from(folded(sum as u32)) + u32::from(folded((sum >> 32) as u32));
    u32::from(u16::from_be(folded(halves)))
}

/// The one's complement sum in 16 bits.
pub(super) const fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
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
            let ports = sum(&frame[at - 6..at - 2]);
            let unfinished = folded(template.udp_sum - ports + 15);
            frame[at..at + 2].copy_from_slice(&unfinished.to_be_bytes());
            assert!(parse(&frame[..written]).is_some());
            frame[at..at + 2].copy_from_slice(&[0, 0]);
            assert_eq!(parse(&frame[..written]).is_some(), flow.local.is_ipv4(), "IPv6 needs a checksum");
        }
    }

    /// The example of RFC 1071, section 3.
    #[test]
    fn sums_are_those_of_the_rfc() {
        assert_eq!(folded(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }
}
