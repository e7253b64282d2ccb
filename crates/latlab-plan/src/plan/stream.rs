//! A stream: its pace, packets, flows and direction, and the system calls that send it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::defaults;
use super::path::{Family, PathSpec};
use super::ping::PingSpec;
use super::rate_search::RateSearchSpec;
use super::transport::TransportKind;
use crate::units::Nanos;
use crate::units::human::{typed_bit_rate, typed_packet_rate, typed_percent, typed_size};

/// The offered rate of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pace {
    /// Bits a second.
    Rate {
        /// Payload bits, or bits on the wire if the spec says so.
        bps: u64,
    },
    /// Packets a second.
    Packets {
        /// Packets a second.
        pps: u64,
    },
    /// A share of the rate that the path carries without loss, which is searched for first.
    Share {
        /// 0.01 to 1.
        share: f64,
    },
    Max,
}

/// A pace outside of its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PaceError {
    /// Windows would have no packet, or the share is below its limit. Holds the lowest allowed pace.
    TooSlow(Pace),
    /// Probably a wrong unit. Holds the highest allowed pace.
    TooFast(Pace),
}

/// A stream of UDP packets of one size: a network load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamSpec {
    pub pace: Pace,
    /// UDP payload of each packet; `None`: 1,400 bytes, or the largest unfragmented payload if that is less.
    pub size_bytes: Option<u32>,
    /// Whether rates count bits on an Ethernet wire instead of payload bits.
    pub wire: bool,
    /// The CPU that its sender is pinned to.
    pub cpu: Option<u16>,
    /// Whether its sender spins instead of sleeping between packets.
    pub spin: bool,
}

impl StreamSpec {
    /// A stream at `pace`, with every other parameter at its default. A low rate gets smaller packets, so that each window
    /// has one.
    pub fn at(pace: Pace) -> StreamSpec {
        let size_bytes = match pace {
            Pace::Rate { bps } => slow_size_bytes(bps),
            _ => None,
        };
        StreamSpec { pace, size_bytes, wire: false, cpu: None, spin: false }
    }

    /// The size of its packets on a path whose largest unfragmented payload is `unfragmented`, if known.
    pub fn size_on(&self, unfragmented: Option<u32>) -> u32 {
        let fitting = defaults::STREAM_SIZE_BYTES.min(unfragmented.unwrap_or(defaults::STREAM_SIZE_BYTES));
        self.size_bytes.unwrap_or(fitting).clamp(defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES)
    }

    /// The bits that a packet of `size_bytes` adds to a rate, over IPv4 or IPv6.
    pub const fn packet_bits(&self, size_bytes: u32, ipv6: bool) -> u64 {
        let headers = if ipv6 { 40 + 8 } else { 20 + 8 };
        let around = if self.wire { headers + defaults::ETHERNET_OVERHEAD_BYTES } else { 0 };
        (size_bytes + around) as u64 * 8
    }

    /// The offered rate in bits a second; `searched_bps` is the rate that the path carries without loss. `None` without a
    /// limit, and for a share of an unknown rate.
    pub fn offered_bps(&self, searched_bps: Option<f64>) -> Option<f64> {
        match self.pace {
            Pace::Rate { bps } => Some(bps as f64),
            Pace::Packets { pps } => Some((pps * self.packet_bits(self.size_on(None), false)) as f64),
            Pace::Share { share } => searched_bps.map(|searched| searched * share),
            Pace::Max => None,
        }
    }

    /// Checks its pace against the limits of a network load.
    ///
    /// # Errors
    /// With the nearest allowed pace.
    pub fn check(&self) -> Result<(), PaceError> {
        let (least_bps, most_bps) = (self.least_bps(), defaults::STREAM_RATE_MAX_BPS);
        let (least_pps, most_pps) = (defaults::STREAM_PACKETS_MIN_PER_SECOND, most_bps / 8);
        match self.pace {
            Pace::Rate { bps } if bps < least_bps => Err(PaceError::TooSlow(Pace::Rate { bps: least_bps })),
            Pace::Rate { bps } if bps > most_bps => Err(PaceError::TooFast(Pace::Rate { bps: most_bps })),
            Pace::Packets { pps } if pps < least_pps => Err(PaceError::TooSlow(Pace::Packets { pps: least_pps })),
            Pace::Packets { pps } if pps > most_pps => Err(PaceError::TooFast(Pace::Packets { pps: most_pps })),
            Pace::Share { share } if share.is_nan() || share < defaults::STREAM_SHARE_MIN => {
                Err(PaceError::TooSlow(Pace::Share { share: defaults::STREAM_SHARE_MIN }))
            }
            Pace::Share { share } if share > 1.0 => Err(PaceError::TooFast(Pace::Share { share: 1.0 })),
            _ => Ok(()),
        }
    }

    /// The parameters that are not at their defaults, as typed: `size=200B`, `wire`, `cpu=3`, `spin`.
    pub(super) fn extras(&self) -> Vec<String> {
        let usual = StreamSpec::at(self.pace).size_bytes;
        let size = self.size_bytes.filter(|size| Some(*size) != usual).map(|size| format!("size={}", typed_size(size)));
        let wire = self.wire.then(|| "wire".into());
        let cpu = self.cpu.map(|cpu| format!("cpu={cpu}"));
        let spin = self.spin.then(|| "spin".into());
        [size, wire, cpu, spin].into_iter().flatten().collect()
    }

    /// The lowest rate, in bits a second, with a packet of this stream in each window.
    pub(crate) fn least_bps(&self) -> u64 {
        let size = self.size_bytes.unwrap_or(defaults::STREAM_SIZE_SLOW_BYTES);
        self.packet_bits(size, false) * defaults::STREAM_PACKETS_MIN_PER_SECOND
    }
}

/// As typed behind `net=`: `100Mbit/s`, `500kpps`, `90%`, `max`.
impl fmt::Display for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&match self {
            Pace::Rate { bps } => typed_bit_rate(*bps),
            Pace::Packets { pps } => typed_packet_rate(*pps),
            Pace::Share { share } => typed_percent(*share),
            Pace::Max => "max".into(),
        })
    }
}

/// The payload with which `bps` gives ten packets a second, at least 64 bytes; `None` if not less than the default.
fn slow_size_bytes(bps: u64) -> Option<u32> {
    let even = bps / (8 * defaults::STREAM_PACKETS_MIN_PER_SECOND);
    let slow = u32::try_from(even).ok().filter(|size| *size < defaults::STREAM_SIZE_BYTES)?;
    Some(slow.max(defaults::STREAM_SIZE_SLOW_BYTES))
}

crate::worded! {
    /// The direction of the packets of a stream.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Direction: word {
        /// From this end to the other.
        Up = "up",
        /// From the other end to this one (wire rule R2).
        Down = "down",
    }
}

/// UDP payload of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketSize {
    Bytes(u32),
    /// That of an IP packet of 1,500 bytes, or the largest that fits the path if that is less; settled when the path is open.
    OnePacket,
}

impl PacketSize {
    /// The bytes, if they do not depend on the path.
    pub const fn known(self) -> Option<u32> {
        match self {
            PacketSize::Bytes(bytes) => Some(bytes),
            PacketSize::OnePacket => None,
        }
    }

    /// The bytes on a path of `family` whose largest unfragmented payload is `unfragmented`, if known.
    pub fn settled(self, family: Family, unfragmented: Option<u32>) -> u32 {
        let usual = match family {
            Family::Ipv4 => defaults::STREAM_PACKET_IPV4_BYTES,
            Family::Ipv6 => defaults::STREAM_PACKET_IPV6_BYTES,
        };
        let fitting = unfragmented.map_or(usual, |largest| largest.min(usual)).max(defaults::SIZE_MIN_BYTES);
        self.known().unwrap_or(fitting)
    }
}

/// The parameters of a stream run: one rate, one size, one way of sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamRunSpec {
    /// Transport of its packets; over TCP each is a message in the connection of its flow.
    #[serde(default, skip_serializing_if = "TransportKind::is_default")]
    pub transport: TransportKind,
    pub path: PathSpec,
    /// The offered rate of all flows together; never a share.
    pub pace: Pace,
    /// Whether the rate counts bits on an Ethernet wire instead of payload bits.
    pub wire: bool,
    /// UDP payload of each packet.
    pub size: PacketSize,
    /// Number of flows, each with a session, a source port and a sender thread of its own.
    pub flows: u16,
    /// The system call that sends packets, and the options of its socket.
    pub sending: SenderSocketOptions,
    pub direction: Direction,
    /// The search for a rate up to `pace`; without one the rate is `pace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<RateSearchSpec>,
    /// Probes in a session of their own during the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<PingSpec>,
}

impl StreamRunSpec {
    /// A stream with every other parameter at its default.
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

    /// Checks its pace against the limits of a stream: each flow must have a packet in each interval.
    ///
    /// # Errors
    /// With the nearest allowed pace.
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

    /// The longest time that a slice takes beyond its end: for its final counts, and the answers to its probes.
    pub fn settles(&self) -> Nanos {
        let answers = self.probes.as_ref().map_or(Nanos::ZERO, |probes| probes.timeout_ns);
        self.transport.properties().stream_settles + answers
    }

    /// The bits that a packet of `size_bytes` adds to the rate, over IPv4 or IPv6.
    pub fn packet_bits(&self, size_bytes: u32, ipv6: bool) -> u64 {
        StreamSpec { wire: self.wire, ..StreamSpec::at(Pace::Max) }.packet_bits(size_bytes, ipv6)
    }

    /// Packets a second of each flow, over IPv4 or IPv6; `None`: without a limit.
    pub fn packets_per_second_of_a_flow(&self, size_bytes: u32, ipv6: bool) -> Option<f64> {
        let all = match self.pace {
            Pace::Rate { bps } => bps as f64 / self.packet_bits(size_bytes, ipv6) as f64,
            Pace::Packets { pps } => pps as f64,
            Pace::Share { .. } | Pace::Max => return None,
        };
        Some(all / f64::from(self.flows.max(1)))
    }

    /// The rate as typed: `max`, `1Gbit/s`, `1Gbit/s:wire`; the goals of a search: `search 0,0.5%`.
    pub fn rate_words(&self) -> String {
        let wire = if self.wire { ":wire" } else { "" };
        match (&self.search, self.pace) {
            (None, pace) => format!("{pace}{wire}"),
            (Some(search), Pace::Max) => format!("search {}", search.words()),
            (Some(search), pace) => format!("search {} up to {pace}{wire}", search.words()),
        }
    }
}

crate::worded! {
    /// How the packets of a stream are passed on: by a system call, by the writer of a DDS topic, or by a ring.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SendMode: word {
        /// One call for each packet (send(2)).
        Send = "send",
        /// One call for a batch of packets (sendmmsg(2)).
        Sendmmsg = "sendmmsg",
        /// One call for a buffer that the kernel or the NIC cuts into packets: generic segmentation offload
        /// (UDP_SEGMENT, udp(7)).
        Gso = "gso",
        /// Over DDS: the writer collects a batch of samples (writer batching) and sends them in as few RTPS messages as
        /// hold them. Past the network stack: one call for a batch of packets in the ring.
        Batch = "batch",
    }
}

impl SendMode {
    /// The number of packets of `size_bytes` that one call takes, with batches of `batch`.
    pub fn packets_per_call(self, size_bytes: u32, batch: u16) -> u16 {
        let most = match self {
            SendMode::Send => 1,
            SendMode::Sendmmsg | SendMode::Batch => batch,
            // The buffer is limited to the size of one datagram.
            SendMode::Gso => {
                let fitting = defaults::SIZE_MAX_BYTES / size_bytes.max(1);
                batch.min(defaults::GSO_SEGMENTS_MAX).min(fitting as u16)
            }
        };
        most.max(1)
    }
}

/// How the sender of a stream sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderSocketOptions {
    pub mode: SendMode,
    /// The most packets of a burst, between two checks of clock and schedule.
    pub batch: u16,
    /// Whether packets carry a UDP checksum.
    pub checksum: bool,
    /// Whether the socket is connected to its peer; otherwise each call has the address.
    pub connect: bool,
}

impl SenderSocketOptions {
    /// One connected send for each packet, with a checksum, as for probes and network loads.
    pub const PLAIN: SenderSocketOptions =
        SenderSocketOptions { mode: SendMode::Send, batch: defaults::STREAM_BATCH, checksum: true, connect: true };

    /// The number of packets of `size_bytes` that one call takes.
    pub fn packets_per_call(&self, size_bytes: u32) -> u16 {
        self.mode.packets_per_call(size_bytes, self.batch)
    }

    /// The number of packets of `size_bytes` in one burst: as many full calls as a batch holds.
    pub fn burst_packets(&self, size_bytes: u32) -> u16 {
        let per_call = self.packets_per_call(size_bytes);
        (self.batch / per_call).max(1) * per_call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_size_fits_the_path_and_the_rate() {
        let fast = StreamSpec::at(Pace::Rate { bps: 100_000_000 });
        for (unfragmented, expected) in [(None, 1_400), (Some(65_507), 1_400), (Some(1_252), 1_252), (Some(8), 24)] {
            assert_eq!(fast.size_on(unfragmented), expected);
        }
        for (bps, expected) in [(112_000, 1_400), (56_000, 700), (5_120, 64), (1, 64)] {
            assert_eq!(StreamSpec::at(Pace::Rate { bps }).size_on(None), expected, "{bps} bit/s");
        }
        let asked = StreamSpec { size_bytes: Some(9_000), ..fast };
        assert_eq!(asked.size_on(Some(1_472)), 9_000, "a size that was asked for may need fragments");
    }

    #[test]
    fn a_pace_outside_of_its_limits_is_refused_with_the_nearest_one() {
        let checked = |pace| StreamSpec::at(pace).check();
        assert_eq!(checked(Pace::Rate { bps: 1 }), Err(PaceError::TooSlow(Pace::Rate { bps: 5_120 })));
        assert_eq!(checked(Pace::Rate { bps: 5_120 }), Ok(()));
        let large = StreamSpec { size_bytes: Some(1_400), ..StreamSpec::at(Pace::Rate { bps: 100_000 }) };
        assert_eq!(large.check(), Err(PaceError::TooSlow(Pace::Rate { bps: 112_000 })));
        assert!(matches!(checked(Pace::Rate { bps: u64::MAX }), Err(PaceError::TooFast(_))));
        assert_eq!(checked(Pace::Packets { pps: 9 }), Err(PaceError::TooSlow(Pace::Packets { pps: 10 })));
        assert!(matches!(checked(Pace::Packets { pps: u64::MAX }), Err(PaceError::TooFast(_))));
        for (share, good) in [(0.0, false), (f64::NAN, false), (0.01, true), (1.0, true), (1.01, false)] {
            assert_eq!(checked(Pace::Share { share }).is_ok(), good, "{share}");
        }
        assert_eq!(checked(Pace::Max), Ok(()));
    }

    #[test]
    fn wire_bits_include_the_overhead_of_ethernet() {
        let payload = StreamSpec::at(Pace::Max);
        let wire = StreamSpec { wire: true, ..payload.clone() };
        assert_eq!((payload.packet_bits(1_472, false), wire.packet_bits(1_472, false)), (1_472 * 8, 1_538 * 8));
        assert_eq!(wire.packet_bits(1_452, true), 1_538 * 8);
        assert_eq!((payload.least_bps(), wire.least_bps()), (5_120, 10_400));
    }

    #[test]
    fn one_packet_fits_an_ethernet_and_the_path() {
        for (size, family, largest, expected) in [
            (PacketSize::OnePacket, Family::Ipv4, None, 1_472),
            (PacketSize::OnePacket, Family::Ipv4, Some(65_507), 1_472),
            (PacketSize::OnePacket, Family::Ipv6, Some(65_487), 1_452),
            (PacketSize::OnePacket, Family::Ipv4, Some(1_252), 1_252),
            (PacketSize::OnePacket, Family::Ipv4, Some(3), 24),
            (PacketSize::Bytes(9_000), Family::Ipv4, Some(1_472), 9_000),
        ] {
            assert_eq!(size.settled(family, largest), expected, "{size:?} {family:?} {largest:?}");
        }
    }

    #[test]
    fn flows_share_the_rate() {
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
    fn a_rate_without_a_packet_in_each_interval_is_refused_with_the_lowest_one() {
        let (bytes, bits, packets) = (PacketSize::Bytes, |bps| Pace::Rate { bps }, |pps| Pace::Packets { pps });
        for (pace, size, flows, least) in [
            (bits(79_999), bytes(1_000), 1, Some(bits(80_000))),
            (bits(80_000), bytes(1_000), 1, None),
            // Without a size a packet has 1,472 bytes at any rate.
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

    #[test]
    fn a_call_takes_a_batch_or_as_many_packets_as_a_datagram_holds() {
        let rows = [
            (SendMode::Send, 1_472, 64, 1),
            (SendMode::Sendmmsg, 1_472, 64, 64),
            (SendMode::Sendmmsg, 65_507, 1_024, 1_024),
            (SendMode::Gso, 64, 1_024, 64),
            (SendMode::Gso, 64, 16, 16),
            (SendMode::Gso, 1_472, 64, 44),
            (SendMode::Gso, 8_192, 64, 7),
            (SendMode::Gso, 32_768, 64, 1),
            (SendMode::Gso, 65_507, 64, 1),
            (SendMode::Sendmmsg, 64, 0, 1),
            (SendMode::Batch, 65_507, 1_024, 1_024),
        ];
        for (mode, size_bytes, batch, expected) in rows {
            assert_eq!(mode.packets_per_call(size_bytes, batch), expected, "{mode:?} {size_bytes} × {batch}");
        }
    }

    #[test]
    fn a_burst_consists_of_full_calls() {
        let burst = |mode, size_bytes, batch| {
            SenderSocketOptions { mode, batch, ..SenderSocketOptions::PLAIN }.burst_packets(size_bytes)
        };
        assert_eq!([64, 1_472, 8_192, 32_768].map(|size| burst(SendMode::Gso, size, 64)), [64, 44, 63, 64]);
        assert_eq!([SendMode::Send, SendMode::Sendmmsg].map(|mode| burst(mode, 1_472, 16)), [16, 16]);
        assert_eq!(burst(SendMode::Gso, 1_472, 0), 1);
    }
}
