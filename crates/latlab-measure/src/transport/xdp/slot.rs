//! The entry of a session in the map between the reflector and its program, byte by byte.

use std::net::IpAddr;

use super::headers::{IPV4_BYTES, Sum, UDP_BYTES, octets};
use crate::transport::interface::{DriverCounts, DriverSession};
use crate::units::Stamp;
use crate::wire::{FULL_STAMP_MIN_BYTES, KERNEL_STAMP_MIN_BYTES, PROBE_MIN_BYTES};

/// The program distinguishes so many of the newest probes: as many as a register has bits.
pub(super) const WINDOW_PROBES: i32 = 64;

/// Offsets of the fields; those that are compared with fields of a packet are in the network's order of bytes.
pub(super) struct Slot;

impl Slot {
    /// Not 0 if the program answers this session.
    pub(super) const OFFERED: i16 = 0;
    pub(super) const SESSION: i16 = 4;
    pub(super) const PEER_PORT: i16 = 6;
    /// 16 bytes, of which IPv4 uses the first four.
    pub(super) const PEER_ADDRESS: i16 = 8;
    pub(super) const UDP_LENGTH: i16 = 24;
    pub(super) const IP_LENGTH: i16 = 26;
    /// The bytes at the beginning of a probe that its answer changes.
    pub(super) const HEAD_BYTES: i16 = 28;
    pub(super) const ENDS_AT: i16 = 32;
    pub(super) const IDLE: i16 = 40;
    /// The stamp of the newest probe.
    pub(super) const NEWEST_AT: i16 = 48;
    /// The highest counter, its low half.
    pub(super) const NEWEST: i16 = 56;
    /// The checksum that a kernel writes if it leaves the rest to its device: the sum of the pseudo header.
    pub(super) const UNFINISHED_CHECKSUM: i16 = 60;
    pub(super) const NEWEST_CHECKSUM: i16 = 62;
    /// A bit for each of the newest counters: bit 0 is the highest.
    pub(super) const WINDOW: i16 = 64;
    pub(super) const ANSWERED: i16 = 72;
    pub(super) const SEEN_BEFORE: i16 = 80;
    pub(super) const LEFT_WINDOW: i16 = 88;
    pub(super) const BYTES: usize = 96;

    /// A slot whose session the program does not answer.
    pub(super) const EMPTY: [u8; Slot::BYTES] = [0; Slot::BYTES];

    /// The slot of `session` at `local`, without a probe.
    pub(super) fn of(session: &DriverSession, local: IpAddr) -> [u8; Slot::BYTES] {
        let mut slot = Slot::EMPTY;
        let mut put = |at: i16, bytes: &[u8]| slot[at as usize..][..bytes.len()].copy_from_slice(bytes);
        let udp_bytes = UDP_BYTES + session.size_bytes as usize;
        // The length of IPv6 leaves its own header out, that of IPv4 does not.
        let ip_bytes = if local.is_ipv4() { IPV4_BYTES + udp_bytes } else { udp_bytes };
        put(Slot::OFFERED, &1_u32.to_ne_bytes());
        put(Slot::SESSION, &session.session.to_be_bytes());
        put(Slot::PEER_PORT, &session.peer.port().to_be_bytes());
        put(Slot::PEER_ADDRESS, &octets(session.peer.ip()));
        put(Slot::UDP_LENGTH, &(udp_bytes as u16).to_be_bytes());
        put(Slot::IP_LENGTH, &(ip_bytes as u16).to_be_bytes());
        put(Slot::HEAD_BYTES, &head_bytes(session.size_bytes as usize).to_ne_bytes());
        put(Slot::ENDS_AT, &session.ends_at.as_nanos().to_ne_bytes());
        put(Slot::IDLE, &session.idle.0.to_ne_bytes());
        put(Slot::NEWEST_AT, &session.newest_at.as_nanos().to_ne_bytes());
        put(Slot::NEWEST, &u32::MAX.to_ne_bytes());
        let addresses = Sum::of(&octets(local)) + Sum::of(&octets(session.peer.ip()));
        put(Slot::UNFINISHED_CHECKSUM, &addresses.with_pseudo_header(udp_bytes as u16).folded());
        slot
    }

    /// What the program has counted; `None` before its first answer.
    pub(super) fn counts(slot: &[u8; Slot::BYTES]) -> Option<DriverCounts> {
        let number = |at: i16| u64::from_ne_bytes(std::array::from_fn(|by| slot[at as usize + by]));
        let newest_at = Stamp::from_nanos(number(Slot::NEWEST_AT) as i64);
        let [answered, seen_before, left_window] = [Slot::ANSWERED, Slot::SEEN_BEFORE, Slot::LEFT_WINDOW].map(number);
        (answered > 0).then_some(DriverCounts { answered, seen_before, left_window, newest_at })
    }
}

fn head_bytes(size_bytes: usize) -> u32 {
    let forms = [KERNEL_STAMP_MIN_BYTES, FULL_STAMP_MIN_BYTES];
    forms.into_iter().find(|form| size_bytes >= *form).unwrap_or(PROBE_MIN_BYTES) as u32
}
