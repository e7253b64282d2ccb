//! What a network driver says about its interface: questions only, nothing is changed.
//! [linux/ethtool.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/ethtool.h)
//!
//! Every question is an array of 32-bit words that begins with the number of the command; the kernel writes
//! its answer over the rest. The structures of that header are such arrays, and libc has none of them. Each
//! function speaks of the interface of that name in the socket's network namespace.

use std::io;
use std::os::fd::BorrowedFd;

const WORD: usize = size_of::<u32>();

/// Who drives an interface; empty where the driver does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The driver's name.
    pub name: String,
    /// Its version; drivers of the kernel's own tree give the kernel's.
    pub version: String,
    /// The firmware's version.
    pub firmware: String,
    /// Where the device sits.
    pub bus: String,
}

/// ETHTOOL_GDRVINFO.
pub fn driver(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Driver> {
    // struct ethtool_drvinfo: the command, five names of 32 bytes, 12 bytes in reserve, five counts.
    let mut words = [0; 49];
    ask(socket, interface, 0x03, &mut words)?;
    let name = |place: usize| text(&words[1 + 8 * place..9 + 8 * place]);
    Ok(Driver { name: name(0), version: name(1), firmware: name(2), bus: name(3) })
}

/// How many frames the rings hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Receive descriptors in use.
    pub receive: u32,
    /// Receive descriptors that the device could have.
    pub receive_maximum: u32,
    /// Transmit descriptors in use.
    pub transmit: u32,
    /// Transmit descriptors that the device could have.
    pub transmit_maximum: u32,
}

/// ETHTOOL_GRINGPARAM.
pub fn ring(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Ring> {
    let mut words = [0; 9];
    ask(socket, interface, 0x10, &mut words)?;
    Ok(Ring { receive: words[5], receive_maximum: words[1], transmit: words[8], transmit_maximum: words[4] })
}

/// How long a device collects before it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Longest wait after a received frame.
    pub receive_us: u32,
    /// Received frames that end the wait.
    pub receive_frames: u32,
    /// Longest wait after a sent frame.
    pub transmit_us: u32,
    /// Sent frames that end the wait.
    pub transmit_frames: u32,
    /// Whether the driver changes the receive figures as it sees fit.
    pub adaptive_receive: bool,
    /// Whether it changes the transmit figures.
    pub adaptive_transmit: bool,
}

/// ETHTOOL_GCOALESCE.
pub fn coalescing(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Coalescing> {
    let mut words = [0; 23];
    ask(socket, interface, 0x0e, &mut words)?;
    Ok(Coalescing {
        receive_us: words[1],
        receive_frames: words[2],
        transmit_us: words[5],
        transmit_frames: words[6],
        adaptive_receive: words[10] != 0,
        adaptive_transmit: words[11] != 0,
    })
}

/// How many queues the device serves. ETHTOOL_GCHANNELS: (receive only, transmit only, both).
pub fn channels(socket: BorrowedFd<'_>, interface: &str) -> io::Result<(u32, u32, u32)> {
    let mut words = [0; 9];
    ask(socket, interface, 0x3c, &mut words)?;
    Ok((words[5], words[6], words[8]))
}

/// The link's rate in Mbit/s; none where it has none (a virtual device, or no cable). ETHTOOL_GSET.
pub fn speed_mbit_per_s(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Option<u32>> {
    // struct ethtool_cmd: `speed` are the first 16 bits of word 3, `speed_hi` those of word 7.
    let mut words = [0; 11];
    ask(socket, interface, 0x01, &mut words)?;
    let first_half = |word: u32| u32::from(u16::from_ne_bytes([word.to_ne_bytes()[0], word.to_ne_bytes()[1]]));
    let speed = first_half(words[7]) << 16 | first_half(words[3]);
    Ok((speed != u32::MAX && speed != u32::from(u16::MAX) && speed != 0).then_some(speed))
}

/// What can put a time on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// The driver, when it hands a packet to the device.
    pub transmit_software: bool,
    /// The kernel, when it takes a packet from the driver.
    pub receive_software: bool,
    /// The device, when a packet leaves.
    pub transmit_hardware: bool,
    /// The device, when a packet comes.
    pub receive_hardware: bool,
}

/// ETHTOOL_GET_TS_INFO; the bits are those of SO_TIMESTAMPING
/// ([linux/net_tstamp.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/net_tstamp.h)).
pub fn stamping(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Stamping> {
    let mut words = [0; 11];
    ask(socket, interface, 0x41, &mut words)?;
    let can = |bit: u32| words[1] >> bit & 1 == 1;
    Ok(Stamping {
        transmit_hardware: can(0),
        transmit_software: can(1),
        receive_hardware: can(2),
        receive_software: can(3),
    })
}

/// One of the things that a device or driver may do for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name of it, as `ethtool -k` shows it below the headings: `tx-checksum-ip-generic`.
    pub name: String,
    /// Whether it is on.
    pub active: bool,
    /// Whether it can be switched here.
    pub changeable: bool,
}

/// The features of an interface. ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GFEATURES.
pub fn features(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Vec<Feature>> {
    const FEATURE_NAMES: u32 = 4;
    const NAME_WORDS: usize = 32 / WORD;
    /// Linux 6.18 has 66; more than this is no count.
    const MOST: u32 = 1_024;
    // struct ethtool_sset_info: command, reserve, a mask of 64 bits with the sets asked for, their sizes.
    let mut sizes = [0; 5];
    let mask = (1u64 << FEATURE_NAMES).to_ne_bytes();
    sizes[2..4].copy_from_slice(&[word(&mask[..4]), word(&mask[4..])]);
    ask(socket, interface, 0x37, &mut sizes)?;
    let count = sizes[4].min(MOST);
    // struct ethtool_gstrings: command, set, count, names.
    let mut names = vec![0; 3 + count as usize * NAME_WORDS];
    names[1..3].copy_from_slice(&[FEATURE_NAMES, count]);
    ask(socket, interface, 0x1b, &mut names)?;
    // struct ethtool_gfeatures: command, blocks, and per block of 32: available, requested, active, never changed.
    let blocks = count.div_ceil(32);
    let mut states = vec![0; 2 + 4 * blocks as usize];
    states[1] = blocks;
    ask(socket, interface, 0x3a, &mut states)?;
    let feature = |at: usize| {
        let block = &states[2 + 4 * (at / 32)..];
        let bit = |word: u32| word >> (at % 32) & 1 == 1;
        Feature {
            name: text(&names[3 + NAME_WORDS * at..][..NAME_WORDS]),
            active: bit(block[2]),
            changeable: bit(block[0]) && !bit(block[3]),
        }
    };
    Ok((0..count as usize).map(feature).filter(|feature| !feature.name.is_empty()).collect())
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Bytes up to the first NUL.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Puts `command` to the driver of `interface`. SIOCETHTOOL,
/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
///
/// `words` must be as long as the command's structure: fixed by the header for most, for lists by the count
/// that stands in it.
#[cfg(target_os = "linux")]
fn ask(socket: BorrowedFd<'_>, interface: &str, command: u32, words: &mut [u32]) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    words[0] = command;
    // SAFETY: an interface request is a name and a union of plain values, for which zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as _;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request leads to words that are ours alone and, as each caller above sees to, as many as
    // the kernel reads and writes for this command.
    crate::done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })
}

#[cfg(not(target_os = "linux"))]
fn ask(_: BorrowedFd<'_>, _: &str, _: u32, _: &mut [u32]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::address::Family;
    use crate::socket::udp;

    #[test]
    fn loopback_tells_its_features_and_has_no_ring() {
        let socket = udp(Family::Ipv4).expect("a socket");
        let features = features(socket.as_fd(), "lo").expect("every interface has features");
        let segmentation = features.iter().find(|feature| feature.name == "tx-tcp-segmentation").expect("a known name");
        assert!(segmentation.changeable, "{segmentation:?}");
        assert!(features.iter().any(|feature| !feature.active), "{features:?}");
        assert!(stamping(socket.as_fd(), "lo").expect("every interface says").receive_software);
        let error = ring(socket.as_fd(), "lo").expect_err("no device, no ring");
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }

    #[test]
    fn interfaces_that_cannot_exist_are_refused() {
        let socket = udp(Family::Ipv4).expect("a socket");
        for name in ["", "an-interface-name-too-long", "no-such-device"] {
            assert_eq!(driver(socket.as_fd(), name).expect_err(name).raw_os_error(), Some(libc::ENODEV));
        }
    }

    #[test]
    fn names_end_at_nul() {
        assert_eq!(text(&[u32::from_ne_bytes(*b"e100"), u32::from_ne_bytes(*b"0\0xx")]), "e1000");
    }
}
