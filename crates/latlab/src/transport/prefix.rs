//! Which addresses count as one network, so that it cannot keep all others out (rule R4).

use std::net::IpAddr;

/// The /24 or /64 of an address as a number; none for loopback, which is exempt.
pub fn prefix_of(address: IpAddr) -> Option<u64> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(u64::from(address.to_bits() >> 8)),
        // 2000::/3 and fc00::/7 have high bits set: no /64 in use is as small a number as a /24.
        IpAddr::V6(address) => Some((address.to_bits() >> 64) as u64),
    }
}
