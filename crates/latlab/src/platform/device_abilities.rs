//! What the drivers of network interfaces can do for XDP, as the kernel lists it since Linux 6.3: the family `netdev` of
//! [generic netlink](https://docs.kernel.org/networking/generic_netlink.html),
//! [netdev](https://docs.kernel.org/networking/netlink_spec/netdev.html).

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

/// The family that lists families.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Of the family `netdev`.
const GET_DEVICE: u8 = 1;
const INTERFACE_INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;
/// Bits of the features.
const BASIC: u64 = 1;
const REDIRECT: u64 = 2;
const ZERO_COPY: u64 = 8;

const REQUEST: u16 = 1;
const ERROR: u16 = 2;
/// The headers of netlink and of generic netlink, and of an attribute.
const HEADER_BYTES: usize = 16 + 4;
const ATTRIBUTE_BYTES: usize = 4;
/// More than an answer has.
const BUFFER_BYTES: usize = 8 << 10;

/// The abilities of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct XdpFeatures {
    /// It runs programs, which can redirect packets.
    pub(crate) native: bool,
    /// Its device writes into the memory of AF_XDP sockets.
    pub(crate) zero_copy: bool,
}

/// The abilities of the driver of the interface `index` in the namespace of the calling thread.
///
/// # Errors
/// ENOENT: the kernel is older. ENODEV: the interface is gone.
pub(crate) fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let family = ask(&socket, CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0")?;
    let family = attribute(&family, FAMILY_ID).and_then(|id| Some(u16::from_ne_bytes(*id.first_chunk()?)));
    let family = family.ok_or(io::ErrorKind::InvalidData)?;
    let device = ask(&socket, family, GET_DEVICE, INTERFACE_INDEX, &index.to_ne_bytes())?;
    let features = attribute(&device, XDP_FEATURES).and_then(|bits| Some(u64::from_ne_bytes(*bits.first_chunk()?)));
    let features = features.ok_or(io::ErrorKind::InvalidData)?;
    Ok(XdpFeatures { native: features & (BASIC | REDIRECT) == BASIC | REDIRECT, zero_copy: features & ZERO_COPY != 0 })
}

/// Sends `command` with one attribute, and returns the attributes of the answer.
fn ask(socket: &Socket, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    let mut message = vec![0; HEADER_BYTES + ATTRIBUTE_BYTES];
    let attribute_bytes = (ATTRIBUTE_BYTES + value.len()) as u16;
    message[4..6].copy_from_slice(&family.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    (message[16], message[17]) = (command, 1);
    message[HEADER_BYTES..][..2].copy_from_slice(&attribute_bytes.to_ne_bytes());
    message[HEADER_BYTES + 2..].copy_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
    let bytes = message.len() as u32;
    message[..4].copy_from_slice(&bytes.to_ne_bytes());
    socket.send(&message, 0)?;
    let mut answer = Vec::with_capacity(BUFFER_BYTES);
    socket.recv(&mut answer, 0)?;
    let word = |at: usize| answer.get(at..at + 4).and_then(|bytes| Some(i32::from_ne_bytes(*bytes.first_chunk()?)));
    match answer.get(4..6) {
        Some(kind) if kind == ERROR.to_ne_bytes() => {
            Err(io::Error::from_raw_os_error(word(16).unwrap_or_default().wrapping_neg()))
        }
        Some(_) => Ok(answer.get(HEADER_BYTES..).unwrap_or_default().to_vec()),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The value of the attribute `wanted`.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (head, rest) = attributes.split_first_chunk::<ATTRIBUTE_BYTES>()?;
        let bytes = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(ATTRIBUTE_BYTES)?;
        let value = rest.get(..bytes)?;
        if u16::from_ne_bytes([head[2], head[3]]) == wanted {
            return Some(value);
        }
        attributes = rest.get(bytes.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::LOOPBACK;

    #[test]
    fn loopback_runs_programs_in_the_network_stack_only() {
        match xdp_features(LOOPBACK) {
            Ok(features) => assert_eq!(features, XdpFeatures { native: false, zero_copy: false }),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::NotFound, "only an older kernel does not say: {error}")
            }
        }
        assert!(xdp_features(u32::MAX >> 1).is_err());
    }

    #[test]
    fn attributes_are_found_behind_others() {
        let attributes = [5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 3, 0, 1, 2, 3, 4];
        assert_eq!(attribute(&attributes, 1), Some(&[9][..]));
        assert_eq!(attribute(&attributes, 3), Some(&[1, 2, 3, 4][..]));
        assert_eq!(attribute(&attributes, 2), None);
        assert_eq!(attribute(&attributes[..15], 3), None, "truncated");
        assert_eq!(attribute(&[3, 0, 3, 0], 3), None, "shorter than its head");
    }
}
