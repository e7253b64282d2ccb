//! A stream on the measured path, settled: how fast, in what packets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::defaults;
use crate::units::human::{typed_bit_rate, typed_packet_rate, typed_percent, typed_size};

/// How fast a stream is offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pace {
    /// So many bits a second.
    Rate {
        /// Payload bits, or bits on the wire where the spec says so.
        bps: u64,
    },
    /// So many packets a second.
    Packets {
        /// Packets.
        pps: u64,
    },
    /// This share of the rate that the path carries without loss, which is searched for first.
    Share {
        /// 0 to 1.
        share: f64,
    },
    /// As fast as sends go.
    Max,
}

/// A pace that is none; with the nearest one that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PaceError {
    /// Windows without a packet: the least is this.
    TooSlow(Pace),
    /// A mistake in the unit: the most is this.
    TooFast(Pace),
}

/// A stream of UDP packets, all of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamSpec {
    /// How fast.
    pub pace: Pace,
    /// UDP payload of each packet; none: 1,400 bytes, or what the path carries unfragmented if that is less.
    pub size_bytes: Option<u32>,
    /// Rates are bits on an Ethernet wire instead of payload bits.
    pub wire: bool,
    /// The CPU that its sender is pinned to; none: the system's choice.
    pub cpu: Option<u16>,
    /// Its sender looks at the clock all the time instead of sleeping between packets.
    pub spin: bool,
}

impl StreamSpec {
    /// A stream at `pace`, everything else as usual. A slow rate gets smaller packets, so that each window has one.
    pub fn at(pace: Pace) -> StreamSpec {
        let size_bytes = match pace {
            Pace::Rate { bps } => slow_size_bytes(bps),
            _ => None,
        };
        StreamSpec { pace, size_bytes, wire: false, cpu: None, spin: false }
    }

    /// The size of its packets on a path that carries `unfragmented` bytes of payload in one piece, if that is known.
    pub fn size_on(&self, unfragmented: Option<u32>) -> u32 {
        let fitting = defaults::STREAM_SIZE_BYTES.min(unfragmented.unwrap_or(defaults::STREAM_SIZE_BYTES));
        self.size_bytes.unwrap_or(fitting).clamp(defaults::SIZE_MIN_BYTES, defaults::SIZE_MAX_BYTES)
    }

    /// Bits that a packet of `size_bytes` counts for, over IPv4 or IPv6.
    pub const fn packet_bits(&self, size_bytes: u32, ipv6: bool) -> u64 {
        let headers = if ipv6 { 40 + 8 } else { 20 + 8 };
        let around = if self.wire { headers + defaults::ETHERNET_OVERHEAD_BYTES } else { 0 };
        (size_bytes + around) as u64 * 8
    }

    /// The rate asked for in bits a second, where that is known; `searched_bps` is the path's rate without loss. None: as
    /// fast as sends go, or a share of a rate that nobody has found.
    pub fn offered_bps(&self, searched_bps: Option<f64>) -> Option<f64> {
        match self.pace {
            Pace::Rate { bps } => Some(bps as f64),
            Pace::Packets { pps } => Some((pps * self.packet_bits(self.size_on(None), false)) as f64),
            Pace::Share { share } => searched_bps.map(|searched| searched * share),
            Pace::Max => None,
        }
    }

    /// Whether its pace can be a load on a network.
    ///
    /// # Errors
    /// The nearest pace that can.
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

    /// What was asked for beyond the defaults, as typed: `size=200B`, `wire`, `cpu=3`, `spin`.
    pub(super) fn extras(&self) -> Vec<String> {
        let usual = StreamSpec::at(self.pace).size_bytes;
        let size = self.size_bytes.filter(|size| Some(*size) != usual).map(|size| format!("size={}", typed_size(size)));
        let wire = self.wire.then(|| "wire".into());
        let cpu = self.cpu.map(|cpu| format!("cpu={cpu}"));
        let spin = self.spin.then(|| "spin".into());
        [size, wire, cpu, spin].into_iter().flatten().collect()
    }

    /// The slowest rate, in bits a second, that still puts a packet of this stream into each window.
    pub fn least_bps(&self) -> u64 {
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

/// The payload with which `bps` makes ten packets a second, where that is less than the usual one.
fn slow_size_bytes(bps: u64) -> Option<u32> {
    let even = bps / (8 * defaults::STREAM_PACKETS_MIN_PER_SECOND);
    let slow = u32::try_from(even).ok().filter(|size| *size < defaults::STREAM_SIZE_BYTES)?;
    Some(slow.max(defaults::STREAM_SIZE_SLOW_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_fit_the_path_and_the_rate() {
        let fast = StreamSpec::at(Pace::Rate { bps: 100_000_000 });
        for (unfragmented, expected) in [(None, 1_400), (Some(65_507), 1_400), (Some(1_252), 1_252), (Some(8), 24)] {
            assert_eq!(fast.size_on(unfragmented), expected);
        }
        for (bps, expected) in [(112_000, 1_400), (56_000, 700), (5_120, 64), (1, 64)] {
            assert_eq!(StreamSpec::at(Pace::Rate { bps }).size_on(None), expected, "{bps} bit/s");
        }
        let asked = StreamSpec { size_bytes: Some(9_000), ..fast };
        assert_eq!(asked.size_on(Some(1_472)), 9_000, "who asks for fragments gets them");
    }

    #[test]
    fn a_pace_that_is_no_load_names_the_nearest_that_is() {
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
    fn wire_bits_are_those_of_ethernet() {
        let payload = StreamSpec::at(Pace::Max);
        let wire = StreamSpec { wire: true, ..payload.clone() };
        assert_eq!((payload.packet_bits(1_472, false), wire.packet_bits(1_472, false)), (1_472 * 8, 1_538 * 8));
        assert_eq!(wire.packet_bits(1_452, true), 1_538 * 8);
        assert_eq!((payload.least_bps(), wire.least_bps()), (5_120, 10_400));
    }
}
