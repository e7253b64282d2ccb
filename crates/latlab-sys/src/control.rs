//! Control messages beside a datagram: its local address, the kernel's stamps, merged lengths
//! ([cmsg(3)](https://man7.org/linux/man-pages/man3/cmsg.3.html)).

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Space for the control messages of one datagram, aligned for their headers.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

/// The packet information of either family, three stamps, and an extended error with an address.
pub(crate) const CONTROL_BYTES: usize = 192;
/// `SO_TIMESTAMPING_NEW` (asm-generic/socket.h), option and control message: stamps of 64 bits on every architecture.
pub(crate) const TIMESTAMPING: c_int = 65;
/// `SO_EE_ORIGIN_TIMESTAMPING` (linux/errqueue.h).
const ORIGIN_TIMESTAMPING: u8 = 4;

impl Control {
    pub(crate) const fn empty() -> Control {
        Control([0; CONTROL_BYTES])
    }
}

/// What the control messages of a received message say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) local: Option<IpAddr>,
    /// The software stamp on CLOCK_REALTIME.
    pub(crate) stamp_ns: Option<i64>,
    /// The length of merged datagrams (UDP_GRO, [udp(7)](https://man7.org/linux/man-pages/man7/udp.7.html)).
    pub(crate) segment: Option<usize>,
    /// In a message of the error queue: the point that was stamped (`SCM_TSTAMP_…`) and the number of the datagram.
    pub(crate) transmitted: Option<(u32, u32)>,
}

/// Reads the control messages.
///
/// # Safety
/// A receive call must have filled `message`, and its control buffer must still be alive.
pub(crate) unsafe fn received(message: &libc::msghdr) -> Received {
    let mut found = Received::default();
    // SAFETY: by contract the header describes a live control buffer.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros return headers inside the buffer only, and the content follows its header.
        let (kind, content) = unsafe { (((*header).cmsg_level, (*header).cmsg_type), libc::CMSG_DATA(header)) };
        // SAFETY: the kernel wrote the struct of this kind there; any bits are valid, and no alignment is assumed.
        unsafe {
            match kind {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let seen = content.cast::<libc::in_pktinfo>().read_unaligned();
                    found.local = Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(seen.ipi_spec_dst.s_addr))));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let seen = content.cast::<libc::in6_pktinfo>().read_unaligned();
                    found.local = Some(IpAddr::V6(Ipv6Addr::from(seen.ipi6_addr.s6_addr)));
                }
                (libc::IPPROTO_UDP, libc::UDP_GRO) => {
                    let segment = content.cast::<c_int>().read_unaligned();
                    found.segment = usize::try_from(segment).ok().filter(|segment| *segment > 0);
                }
                // The first of three stamps is the software's; zero: none.
                (libc::SOL_SOCKET, TIMESTAMPING) => {
                    let [seconds, nanos] = content.cast::<[i64; 2]>().read_unaligned();
                    let stamp = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanos));
                    found.stamp_ns = stamp.filter(|stamp| *stamp > 0);
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    let error = content.cast::<libc::sock_extended_err>().read_unaligned();
                    let is_stamp = error.ee_origin == ORIGIN_TIMESTAMPING;
                    found.transmitted = is_stamp.then_some((error.ee_info, error.ee_data));
                }
                _ => {}
            }
            // As for the first header.
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    found
}

/// Writes one control message and returns its length. [cmsg(3)](https://man7.org/linux/man-pages/man3/cmsg.3.html)
///
/// # Safety
/// `message` must describe a live control buffer, aligned for a header, into which `content` fits.
pub(crate) unsafe fn put<T: Copy>(message: &libc::msghdr, level: c_int, kind: c_int, content: T) -> usize {
    let bytes = size_of::<T>() as u32;
    // SAFETY: by contract the buffer is alive, aligned and large enough, so the first header exists and the content fits
    // after it; the two length macros are computations without side effects.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(content);
        libc::CMSG_SPACE(bytes) as usize
    }
}
