//! What a stream run does: how fast, in what packets, by which calls, in how many flows, which way.

use serde::{Deserialize, Serialize};

use super::{
    Family, Pace, PaceError, PathSpec, PingSpec, RateSearchSpec, SenderSocketOptions, StreamSpec, TransportKind,
    defaults,
};

/// Which way a stream's packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From this end to the other.
    Up,
    /// From the other end to this one: wire rule R2.
    Down,
}

impl Direction {
    /// The word on the command line and in recordings.
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// UDP payload of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketSize {
    /// So many bytes.
    Bytes(u32),
    /// As much as one Ethernet packet of 1,500 bytes carries, or the path if that is less; settled to those bytes when
    /// the path is open.
    OnePacket,
}

impl PacketSize {
    /// The bytes, where they are known before the path is.
    pub const fn known(self) -> Option<u32> {
        match self {
            PacketSize::Bytes(bytes) => Some(bytes),
            PacketSize::OnePacket => None,
        }
    }

    /// The bytes on a path of `family` that carries `unfragmented` bytes of payload in one piece, where that is known.
    pub fn settled(self, family: Family, unfragmented: Option<u32>) -> u32 {
        let usual = match family {
            Family::Ipv4 => defaults::STREAM_PACKET_IPV4_BYTES,
            Family::Ipv6 => defaults::STREAM_PACKET_IPV6_BYTES,
        };
        let fitting = unfragmented.map_or(usual, |room| room.min(usual)).max(defaults::SIZE_MIN_BYTES);
        self.known().unwrap_or(fitting)
    }
}

/// A stream run: one rate, one size, one way of sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamRunSpec {
    /// How packets travel; over TCP each is a message in a flow's connection.
    #[serde(default, skip_serializing_if = "TransportKind::is_default")]
    pub transport: TransportKind,
    /// How packets leave.
    pub path: PathSpec,
    /// How fast all flows together are offered; never a share.
    pub pace: Pace,
    /// That rate is bits on an Ethernet wire instead of payload bits.
    pub wire: bool,
    /// How large packets are.
    pub size: PacketSize,
    /// Flows: sessions of their own, from source ports of their own, with a sender thread each.
    pub flows: u16,
    /// By which call packets leave, and by what kind of socket.
    pub sending: SenderSocketOptions,
    /// Which way.
    pub direction: Direction,
    /// The rate is searched for, up to `pace`; none: it is `pace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearchSpec>,
    /// Probes in a session of their own beside it; none: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<PingSpec>,
}

impl StreamRunSpec {
    /// A stream with every other thing at its default.
    pub const fn at(pace: Pace) -> StreamRunSpec {
        StreamRunSpec {
            transport: TransportKind::Udp,
            path: PathSpec::SYSTEM,
            pace,
            wire: false,
            size: PacketSize::OnePacket,
            flows: defaults::STREAM_FLOWS,
            sending: SenderSocketOptions { connect: false, ..SenderSocketOptions::PLAIN },
            direction: Direction::Up,
            search: None,
            probes: None,
        }
    }

    /// Whether its pace can be a stream's: each flow has intervals of its own, and each of these is to have a packet.
    ///
    /// # Errors
    /// The nearest pace that can.
    pub fn check(&self) -> Result<(), PaceError> {
        let size_bytes = self.size.known().unwrap_or(defaults::STREAM_PACKET_IPV4_BYTES);
        let all = StreamSpec { size_bytes: Some(size_bytes), wire: self.wire, ..StreamSpec::at(self.pace) };
        let flows = u64::from(self.flows.max(1));
        let (least_bps, least_pps) = (all.least_bps() * flows, defaults::STREAM_PACKETS_MIN_PER_SECOND * flows);
        match self.pace {
            Pace::Rate { bps } if bps < least_bps => Err(PaceError::TooSlow(Pace::Rate { bps: least_bps })),
            Pace::Packets { pps } if pps < least_pps => Err(PaceError::TooSlow(Pace::Packets { pps: least_pps })),
            _ => all.check(),
        }
    }

    /// Bits that a packet of `size_bytes` counts for in the rate that was asked for, over IPv4 or IPv6.
    pub fn packet_bits(&self, size_bytes: u32, ipv6: bool) -> u64 {
        StreamSpec { wire: self.wire, ..StreamSpec::at(Pace::Max) }.packet_bits(size_bytes, ipv6)
    }

    /// Packets a second that each flow is to send, over IPv4 or IPv6; none: as fast as sends go.
    pub fn packets_per_second_of_a_flow(&self, size_bytes: u32, ipv6: bool) -> Option<f64> {
        let all = match self.pace {
            Pace::Rate { bps } => bps as f64 / self.packet_bits(size_bytes, ipv6) as f64,
            Pace::Packets { pps } => pps as f64,
            Pace::Share { .. } | Pace::Max => return None,
        };
        Some(all / f64::from(self.flows.max(1)))
    }

    /// The rate as typed: `max`, `1Gbit/s`, `1Gbit/s:wire`; of a search its goals: `search 0,0.5%`.
    pub fn rate_words(&self) -> String {
        let wire = if self.wire { ":wire" } else { "" };
        match (&self.search, self.pace) {
            (None, pace) => format!("{pace}{wire}"),
            (Some(search), Pace::Max) => format!("search {}", search.words()),
            (Some(search), pace) => format!("search {} up to {pace}{wire}", search.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fits_an_ethernet_and_a_narrower_path() {
        for (size, family, room, expected) in [
            (PacketSize::OnePacket, Family::Ipv4, None, 1_472),
            (PacketSize::OnePacket, Family::Ipv4, Some(65_507), 1_472),
            (PacketSize::OnePacket, Family::Ipv6, Some(65_487), 1_452),
            (PacketSize::OnePacket, Family::Ipv4, Some(1_252), 1_252),
            (PacketSize::OnePacket, Family::Ipv4, Some(3), 24),
            (PacketSize::Bytes(9_000), Family::Ipv4, Some(1_472), 9_000),
        ] {
            assert_eq!(size.settled(family, room), expected, "{size:?} {family:?} {room:?}");
        }
    }

    #[test]
    fn flows_share_the_rate_and_wire_bits_are_those_of_ethernet() {
        let of = |pace, wire, flows| StreamRunSpec { wire, flows, ..StreamRunSpec::at(pace) };
        for (spec, size, expected) in [
            (of(Pace::Rate { bps: 11_776_000 }, false, 1), 1_472, Some(1_000.0)),
            (of(Pace::Rate { bps: 11_776_000 }, false, 4), 1_472, Some(250.0)),
            (of(Pace::Rate { bps: 12_304_000 }, true, 1), 1_472, Some(1_000.0)),
            (of(Pace::Packets { pps: 500 }, false, 2), 64, Some(250.0)),
            (of(Pace::Max, false, 1), 64, None),
        ] {
            assert_eq!(spec.packets_per_second_of_a_flow(size, false), expected, "{spec:?}");
        }
        assert_eq!(of(Pace::Rate { bps: 1_000_000_000 }, true, 1).rate_words(), "1Gbit/s:wire");
        assert_eq!(of(Pace::Max, false, 1).rate_words(), "max");
    }

    #[test]
    fn a_rate_without_a_packet_in_each_interval_is_refused_with_the_least() {
        let (bytes, bits, packets) = (PacketSize::Bytes, |bps| Pace::Rate { bps }, |pps| Pace::Packets { pps });
        for (pace, size, flows, least) in [
            (bits(79_999), bytes(1_000), 1, Some(bits(80_000))),
            (bits(80_000), bytes(1_000), 1, None),
            // Without a size asked for a packet has 1,472 bytes, however slow the stream.
            (bits(5_120), PacketSize::OnePacket, 1, Some(bits(117_760))),
            (bits(117_760), PacketSize::OnePacket, 1, None),
            (bits(117_760), PacketSize::OnePacket, 2, Some(bits(235_520))),
            (packets(320), bytes(64), 64, Some(packets(640))),
            (packets(640), bytes(64), 64, None),
            (bits(10_000_000), PacketSize::OnePacket, 1, None),
        ] {
            let spec = StreamRunSpec { size, flows, ..StreamRunSpec::at(pace) };
            assert_eq!(spec.check().err(), least.map(PaceError::TooSlow), "{spec:?}");
        }
    }
}
