//! Queries and requests to network drivers.
//! [linux/ethtool.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/ethtool.h)
//!
//! `interface` is the name of an interface in the network namespace of `socket`. libc does not define the structures of
//! the header, which are arrays of 32-bit words here: the number of the command, then data, which the kernel overwrites
//! with its answer.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

/// The driver of an interface; fields that it does not report are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    pub name: String,
    /// Its version; drivers of the kernel's tree report that of the kernel.
    pub version: String,
    pub firmware: String,
    /// The bus address of the device.
    pub bus: String,
}

/// The driver of the interface. ETHTOOL_GDRVINFO.
pub fn driver(socket: BorrowedFd<'_>, interface: &str) -> io::Result<DriverInfo> {
    // struct ethtool_drvinfo: command, five names of 32 bytes, 12 reserved bytes, five counts.
    let mut words = [0; 49];
    ask_words(socket, interface, 0x03, &mut words)?;
    let name = |place: usize| text(&words[1 + 8 * place..9 + 8 * place]);
    Ok(DriverInfo { name: name(0), version: name(1), firmware: name(2), bus: name(3) })
}

/// The sizes of the descriptor rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub receive: u32,
    /// The maximum number of receive descriptors that the device supports.
    pub receive_maximum: u32,
    pub transmit: u32,
    /// The maximum number of transmit descriptors that the device supports.
    pub transmit_maximum: u32,
}

/// The descriptor rings of the device. ETHTOOL_GRINGPARAM.
pub fn ring(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Ring> {
    let mut words = [0; 9];
    ask_words(socket, interface, 0x10, &mut words)?;
    Ok(Ring { receive: words[5], receive_maximum: words[1], transmit: words[8], transmit_maximum: words[4] })
}

/// Interrupt coalescing, by which one interrupt serves several packets: `struct ethtool_coalesce`, with the names of
/// `ethtool -C`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalesce {
    command: u32,
    /// Time from a received packet to an interrupt, in µs.
    pub rx_usecs: u32,
    /// Received packets that cause an interrupt.
    pub rx_frames: u32,
    /// `rx_usecs` while an interrupt is being served.
    pub rx_usecs_irq: u32,
    /// `rx_frames` while an interrupt is being served.
    pub rx_frames_irq: u32,
    /// Time from a sent packet to an interrupt, in µs.
    pub tx_usecs: u32,
    /// Sent packets that cause an interrupt.
    pub tx_frames: u32,
    /// `tx_usecs` while an interrupt is being served.
    pub tx_usecs_irq: u32,
    /// `tx_frames` while an interrupt is being served.
    pub tx_frames_irq: u32,
    stats_block_usecs: u32,
    /// Whether the driver adapts the values of receiving.
    pub adaptive_rx: u32,
    /// Whether the driver adapts the values of sending.
    pub adaptive_tx: u32,
    // Limits and values of the adaptive algorithms, which are written back unchanged.
    adaptive: [u32; 11],
}

const _: () = assert!(size_of::<Coalesce>() == 92);

/// The interrupt coalescing of the device. ETHTOOL_GCOALESCE.
pub fn coalesce(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Coalesce> {
    let mut coalesce = Coalesce { command: 0x0e, ..Coalesce::default() };
    // SAFETY: this command writes a `Coalesce`.
    unsafe { ask(socket, interface, (&raw mut coalesce).cast()) }?;
    Ok(coalesce)
}

/// Sets the interrupt coalescing to `wanted`, a result of [`coalesce`] with changed fields. ETHTOOL_SCOALESCE.
pub fn set_coalesce(socket: BorrowedFd<'_>, interface: &str, wanted: Coalesce) -> io::Result<()> {
    let mut wanted = Coalesce { command: 0x0f, ..wanted };
    // SAFETY: this command reads a `Coalesce`.
    unsafe { ask(socket, interface, (&raw mut wanted).cast()) }
}

/// The number of queues: for receiving, for transmitting, and for both. ETHTOOL_GCHANNELS.
pub fn channels(socket: BorrowedFd<'_>, interface: &str) -> io::Result<(u32, u32, u32)> {
    let mut words = [0; 9];
    ask_words(socket, interface, 0x3c, &mut words)?;
    Ok((words[5], words[6], words[8]))
}

/// The rate of the link in Mbit/s; `None` if it has none (a virtual device, or no cable). ETHTOOL_GSET.
pub fn speed_mbit_per_s(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Option<u32>> {
    // struct ethtool_cmd: `speed` is the first 16 bits of word 3, `speed_hi` those of word 7.
    let mut words = [0; 11];
    ask_words(socket, interface, 0x01, &mut words)?;
    let first_half = |word: u32| u32::from(u16::from_ne_bytes([word.to_ne_bytes()[0], word.to_ne_bytes()[1]]));
    let speed = first_half(words[7]) << 16 | first_half(words[3]);
    Ok((speed != u32::MAX && speed != u32::from(u16::MAX) && speed != 0).then_some(speed))
}

/// The time stamps that an interface supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampInfo {
    /// By the driver, when it passes a packet to the device.
    pub transmit_software: bool,
    /// By the kernel, when it receives a packet from the driver.
    pub receive_software: bool,
    /// By the device, when a packet leaves it.
    pub transmit_hardware: bool,
    /// By the device, when a packet arrives.
    pub receive_hardware: bool,
}

/// The time stamps that the interface supports. ETHTOOL_GET_TS_INFO; the bits are those of SO_TIMESTAMPING
/// ([linux/net_tstamp.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/net_tstamp.h)).
pub fn stamping(socket: BorrowedFd<'_>, interface: &str) -> io::Result<TimestampInfo> {
    let mut words = [0; 11];
    ask_words(socket, interface, 0x41, &mut words)?;
    let can = |bit: u32| words[1] >> bit & 1 == 1;
    Ok(TimestampInfo {
        transmit_hardware: can(0),
        transmit_software: can(1),
        receive_hardware: can(2),
        receive_software: can(3),
    })
}

/// Whether the device computes the checksums of sent packets. ETHTOOL_GTXCSUM.
pub fn offloads_tx_checksum(socket: BorrowedFd<'_>, interface: &str) -> io::Result<bool> {
    // struct ethtool_value: command, value.
    let mut words = [0; 2];
    ask_words(socket, interface, 0x16, &mut words)?;
    Ok(words[1] != 0)
}

/// An optional feature of a device or driver (linux/netdev_features.h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name, as `ethtool -k` shows it below the headings: `tx-checksum-ip-generic`.
    pub name: String,
    /// Whether it can be changed.
    pub changeable: bool,
    pub requested: bool,
    /// Whether it is on. A requested feature is off while another one that it needs is off.
    pub active: bool,
}

/// Number of features in one 32-bit word of a feature mask.
const BLOCK: usize = 32;

/// The features that have a name, in the kernel's order. ETHTOOL_GFEATURES.
pub fn features(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Vec<Feature>> {
    let names = feature_names(socket, interface)?;
    let blocks = names.len().div_ceil(BLOCK);
    // struct ethtool_gfeatures: command, blocks, and per block: available, requested, active, never changed.
    let mut words = vec![0; 2 + 4 * blocks];
    words[1] = blocks as u32;
    ask_words(socket, interface, 0x3a, &mut words)?;
    let bit = |number: usize, word: usize| words[2 + 4 * (number / BLOCK) + word] >> (number % BLOCK) & 1 == 1;
    let feature = |(number, name)| Feature {
        name,
        changeable: bit(number, 0) && !bit(number, 3),
        requested: bit(number, 1),
        active: bit(number, 2),
    };
    Ok(names.into_iter().enumerate().filter(|(_, name)| !name.is_empty()).map(feature).collect())
}

/// Requests features to be on or off, all at once. A feature that does not change is not an error; [`features`] shows it.
/// ETHTOOL_SFEATURES.
pub fn set_features(socket: BorrowedFd<'_>, interface: &str, wanted: &[(&str, bool)]) -> io::Result<()> {
    let names = feature_names(socket, interface)?;
    let blocks = names.len().div_ceil(BLOCK);
    // struct ethtool_sfeatures: command, blocks, and per block: valid, requested.
    let mut words = vec![0; 2 + 2 * blocks];
    words[1] = blocks as u32;
    for (wanted, on) in wanted {
        let number = names.iter().position(|name| name == wanted).ok_or(io::ErrorKind::NotFound)?;
        let at = 2 + 2 * (number / BLOCK);
        words[at] |= 1 << (number % BLOCK);
        words[at + 1] |= u32::from(*on) << (number % BLOCK);
    }
    ask_words(socket, interface, 0x3b, &mut words)
}

/// The name of each feature by its number; empty for numbers without a feature. ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS.
fn feature_names(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Vec<String>> {
    const FEATURE_NAMES: u32 = 4;
    const NAME_WORDS: usize = 32 / size_of::<u32>();
    /// Linux 6.18 has 66 features; a count above this is invalid.
    const FEATURES_MAX: u32 = 1_024;
    // struct ethtool_sset_info: command, reserved, a mask of 64 bits with the requested sets, their sizes.
    let mut sizes = [0; 5];
    let mask = (1_u64 << FEATURE_NAMES).to_ne_bytes();
    for (size, word) in sizes[2..4].iter_mut().zip(mask.as_chunks().0) {
        *size = u32::from_ne_bytes(*word);
    }
    ask_words(socket, interface, 0x37, &mut sizes)?;
    let count = sizes[4].min(FEATURES_MAX);
    // struct ethtool_gstrings: command, set, count, names.
    let mut names = vec![0; 3 + count as usize * NAME_WORDS];
    (names[1], names[2]) = (FEATURE_NAMES, count);
    ask_words(socket, interface, 0x1b, &mut names)?;
    Ok(names[3..].chunks_exact(NAME_WORDS).map(text).collect())
}

/// The bytes up to the first NUL.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The largest packet that the interface sends, in bytes. SIOCGIFMTU.
pub fn mtu_bytes(socket: BorrowedFd<'_>, interface: &str) -> io::Result<u32> {
    mtu(socket, interface, None)
}

/// Sets the largest packet that the interface sends. SIOCSIFMTU.
pub fn set_mtu_bytes(socket: BorrowedFd<'_>, interface: &str, bytes: u32) -> io::Result<()> {
    mtu(socket, interface, Some(bytes)).map(drop)
}

/// The first IPv4 address of the interface. SIOCGIFADDR.
pub fn ipv4_address(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Ipv4Addr> {
    first_address(socket, interface)
}

/// Sends `command` to the driver. `words` must be as long as the structure of the command, including the entries of a
/// list whose count the structure has.
fn ask_words(socket: BorrowedFd<'_>, interface: &str, command: u32, words: &mut [u32]) -> io::Result<()> {
    words[0] = command;
    // SAFETY: `words` is exclusive and, as every caller in this file ensures, as long as what the kernel reads and writes.
    unsafe { ask(socket, interface, words.as_mut_ptr().cast()) }
}

/// Sends the command in the first word of `content` to the driver. SIOCETHTOOL,
/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
///
/// # Safety
/// `content` must point to the whole structure that the command reads and writes, exclusively.
unsafe fn ask(socket: BorrowedFd<'_>, interface: &str, content: *mut libc::c_char) -> io::Result<()> {
    let mut request = request_about(interface)?;
    request.ifr_ifru.ifru_data = content;
    // SAFETY: the request points to `content`, which is valid by contract.
    crate::done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })
}

/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
fn mtu(socket: BorrowedFd<'_>, interface: &str, wanted: Option<u32>) -> io::Result<u32> {
    let mut request = request_about(interface)?;
    let command = match wanted {
        None => libc::SIOCGIFMTU,
        Some(bytes) => {
            request.ifr_ifru.ifru_mtu = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
            libc::SIOCSIFMTU
        }
    };
    // SAFETY: the request is exclusive and of the type that both commands read and write.
    crate::done(unsafe { libc::ioctl(socket.as_raw_fd(), command as _, &raw mut request) })?;
    // SAFETY: the MTU was written above, by the kernel or by this function; any bits are a number.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
}

/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
fn first_address(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Ipv4Addr> {
    let mut request = request_about(interface)?;
    // SAFETY: the request is exclusive and of the type that the command reads and writes.
    crate::done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFADDR as _, &raw mut request) })?;
    // SAFETY: the kernel has written an IPv4 address, whose layout is that of a `sockaddr_in`; any bits are valid.
    let address: libc::sockaddr_in = unsafe { std::mem::transmute(request.ifr_ifru.ifru_addr) };
    Ok(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
}

fn request_about(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an interface request is a name and a union of plain values, for which zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as _;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::address::AddressFamily;
    use crate::socket::udp;

    #[test]
    fn loopback_has_features_and_an_mtu_but_no_ring() {
        let socket = udp(AddressFamily::Ipv4).expect("a socket");
        let features = features(socket.as_fd(), "lo").expect("every interface has features");
        let named = |name: &str| features.iter().find(|feature| feature.name == name).expect("a known name");
        let gro = named("rx-gro");
        assert!(gro.changeable && gro.requested == gro.active, "{gro:?}");
        assert!(named("tx-tcp-segmentation").changeable, "{features:?}");
        assert!(features.len() > 30 && features.iter().any(|feature| !feature.active), "{features:?}");
        assert!(mtu_bytes(socket.as_fd(), "lo").expect("a size") >= 1_280);
        assert_eq!(ipv4_address(socket.as_fd(), "lo").expect("an address"), Ipv4Addr::LOCALHOST);
        assert!(stamping(socket.as_fd(), "lo").expect("every interface reports it").receive_software);
        let error = ring(socket.as_fd(), "lo").expect_err("no device, no ring");
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }

    #[test]
    fn unknown_interfaces_and_features_are_refused() {
        let socket = udp(AddressFamily::Ipv4).expect("a socket");
        for name in ["", "an-interface-name-too-long", "no-such-device"] {
            assert_eq!(driver(socket.as_fd(), name).expect_err(name).raw_os_error(), Some(libc::ENODEV));
            assert_eq!(mtu_bytes(socket.as_fd(), name).expect_err(name).raw_os_error(), Some(libc::ENODEV));
        }
        let error = coalesce(socket.as_fd(), "lo").expect_err("no device, no interrupts");
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        let unknown = set_features(socket.as_fd(), "lo", &[("no-such-feature", true)]).map_err(|error| error.kind());
        assert_eq!(unknown, Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn names_end_at_nul() {
        assert_eq!(text(&[u32::from_ne_bytes(*b"e100"), u32::from_ne_bytes(*b"0\0xx")]), "e1000");
    }
}
