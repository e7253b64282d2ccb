//! Questions and orders to network drivers.
//! [linux/ethtool.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/ethtool.h)

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::done;

/// `struct ethtool_value`, which libc does not have.
#[repr(C)]
struct Question {
    command: u32,
    answer: u32,
}

const _: () = assert!(size_of::<Question>() == 8);

/// `struct ethtool_coalesce`, which libc does not have. The fields keep the names of `ethtool -C`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalesce {
    command: u32,
    /// Wait so long after a received packet before an interrupt, in µs.
    pub rx_usecs: u32,
    /// Interrupt after so many received packets.
    pub rx_frames: u32,
    /// The same while an interrupt is being served.
    pub rx_usecs_irq: u32,
    /// The same while an interrupt is being served.
    pub rx_frames_irq: u32,
    /// Wait so long after a sent packet before an interrupt, in µs.
    pub tx_usecs: u32,
    /// Interrupt after so many sent packets.
    pub tx_frames: u32,
    /// The same while an interrupt is being served.
    pub tx_usecs_irq: u32,
    /// The same while an interrupt is being served.
    pub tx_frames_irq: u32,
    stats_block_usecs: u32,
    /// Whether the driver chooses the receive side by itself.
    pub adaptive_rx: u32,
    /// Whether the driver chooses the send side by itself.
    pub adaptive_tx: u32,
    // Limits and values of the adaptive algorithms: carried along as they are.
    adaptive: [u32; 11],
}

const _: () = assert!(size_of::<Coalesce>() == 92);

const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
const GET_TX_CHECKSUM: u32 = 0x16;
const GET_STRINGS: u32 = 0x1b;
const GET_STRING_SETS: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// ETH_SS_FEATURES: the names of the features.
const FEATURE_NAMES: u32 = 4;
/// ETH_GSTRING_LEN.
const NAME_BYTES: usize = 32;
/// ETHTOOL_F_UNSUPPORTED | ETHTOOL_F_WISH: bits of the answer of ETHTOOL_SFEATURES, which is no error number.
const NOT_AS_ASKED: libc::c_int = 0b11;

/// One feature of an interface (linux/netdev_features.h), by the name that `ethtool -k` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name, such as `tx-generic-segmentation`.
    pub name: String,
    /// Whether it can be changed at all.
    pub changeable: bool,
    /// Whether it is asked for.
    pub requested: bool,
    /// Whether it is on: a feature can be asked for and off, where another one that it needs is off.
    pub active: bool,
}

/// Whether `interface`, in the socket's network namespace, leaves checksums of sent packets to the device.
/// SIOCETHTOOL, ETHTOOL_GTXCSUM; [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
pub fn offloads_tx_checksum(socket: BorrowedFd<'_>, interface: &str) -> io::Result<bool> {
    let mut question = Question { command: GET_TX_CHECKSUM, answer: 0 };
    // SAFETY: a `Question` is what this command reads and writes.
    unsafe { ask(socket, interface, (&raw mut question).cast()) }?;
    Ok(question.answer != 0)
}

/// The features of `interface` that have a name, in the kernel's order. SIOCETHTOOL, ETHTOOL_GFEATURES.
pub fn features(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Vec<Feature>> {
    let names = feature_names(socket, interface)?;
    let blocks = names.len().div_ceil(32);
    // struct ethtool_gfeatures: command, size, and for each 32 features available, requested, active, never_changed.
    let mut answer = vec![0u32; 2 + 4 * blocks];
    (answer[0], answer[1]) = (GET_FEATURES, blocks as u32);
    // SAFETY: the kernel writes as many blocks as the second word says, and there is room for these.
    unsafe { ask(socket, interface, answer.as_mut_ptr().cast()) }?;
    let bit = |number: usize, word: usize| answer[2 + 4 * (number / 32) + word] >> (number % 32) & 1 == 1;
    let named = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
    Ok(named
        .map(|(number, name)| Feature {
            name,
            changeable: bit(number, 0),
            requested: bit(number, 1),
            active: bit(number, 2),
        })
        .collect())
}

/// Asks for features of `interface` to be on or off, all at once. SIOCETHTOOL, ETHTOOL_SFEATURES. That one of them
/// does not come about is no error here: [`features`] tells.
pub fn set_features(socket: BorrowedFd<'_>, interface: &str, wanted: &[(&str, bool)]) -> io::Result<()> {
    let names = feature_names(socket, interface)?;
    let blocks = names.len().div_ceil(32);
    // struct ethtool_sfeatures: command, size, and for each 32 features valid, requested.
    let mut order = vec![0u32; 2 + 2 * blocks];
    (order[0], order[1]) = (SET_FEATURES, blocks as u32);
    for (wanted, on) in wanted {
        let number = names.iter().position(|name| name == wanted).ok_or(io::ErrorKind::NotFound)?;
        let place = 2 + 2 * (number / 32);
        order[place] |= 1 << (number % 32);
        order[place + 1] |= u32::from(*on) << (number % 32);
    }
    // SAFETY: the kernel reads as many blocks as the second word says, and these are there.
    let answer = unsafe { ask(socket, interface, order.as_mut_ptr().cast()) }?;
    debug_assert!(answer & !(NOT_AS_ASKED | 0b100) == 0, "an unknown answer: {answer:#b}");
    Ok(())
}

/// Name of each feature by its number; empty where a number has none.
fn feature_names(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, a 64-bit mask of sets, and one count per set of the mask.
    let mut sets = [GET_STRING_SETS, 0, 0, 0, 0];
    let mask = (1u64 << FEATURE_NAMES).to_ne_bytes();
    sets[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
    sets[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
    // SAFETY: the mask names one set, so the kernel writes one count, for which there is room.
    unsafe { ask(socket, interface, sets.as_mut_ptr().cast()) }?;
    let count = sets[4] as usize;
    // struct ethtool_gstrings: command, set, count, and the names of 32 bytes each.
    let mut answer = vec![0u32; 3 + count * NAME_BYTES / size_of::<u32>()];
    (answer[0], answer[1], answer[2]) = (GET_STRINGS, FEATURE_NAMES, count as u32);
    // SAFETY: the kernel writes the names of the whole set, whose number it has just told; it cannot change while
    // the kernel runs.
    unsafe { ask(socket, interface, answer.as_mut_ptr().cast()) }?;
    let bytes: Vec<u8> = answer[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = |name: &[u8]| name.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
    Ok(bytes.chunks_exact(NAME_BYTES).map(text).collect())
}

/// How `interface` gathers packets before it interrupts. SIOCETHTOOL, ETHTOOL_GCOALESCE.
pub fn coalesce(socket: BorrowedFd<'_>, interface: &str) -> io::Result<Coalesce> {
    let mut coalesce = Coalesce { command: GET_COALESCE, ..Coalesce::default() };
    // SAFETY: a `Coalesce` is what this command writes.
    unsafe { ask(socket, interface, (&raw mut coalesce).cast()) }?;
    Ok(coalesce)
}

/// Sets how `interface` gathers packets; start from what [`coalesce`] answered. SIOCETHTOOL, ETHTOOL_SCOALESCE.
pub fn set_coalesce(socket: BorrowedFd<'_>, interface: &str, wanted: Coalesce) -> io::Result<()> {
    let mut wanted = Coalesce { command: SET_COALESCE, ..wanted };
    // SAFETY: a `Coalesce` is what this command reads.
    unsafe { ask(socket, interface, (&raw mut wanted).cast()) }.map(drop)
}

/// The largest packet that `interface` sends, in bytes. SIOCGIFMTU,
/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
pub fn mtu_bytes(socket: BorrowedFd<'_>, interface: &str) -> io::Result<u32> {
    let mut request = request_about(interface)?;
    // SAFETY: the request is exclusive and of the type that this command reads and writes.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) })?;
    // SAFETY: this command has just written the number, and any bits are one.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
}

/// Sets the largest packet that `interface` sends. SIOCSIFMTU,
/// [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
pub fn set_mtu_bytes(socket: BorrowedFd<'_>, interface: &str, bytes: u32) -> io::Result<()> {
    let mut request = request_about(interface)?;
    request.ifr_ifru.ifru_mtu = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: the request is of the type that this command reads.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU as _, &raw mut request) })
}

/// Hands `content` to the driver of `interface`; the answer is never negative.
///
/// # Safety
/// `content` must point to what the command in its first word reads and writes, exclusively and with room for it.
unsafe fn ask(socket: BorrowedFd<'_>, interface: &str, content: *mut libc::c_char) -> io::Result<libc::c_int> {
    let mut request = request_about(interface)?;
    request.ifr_ifru.ifru_data = content;
    // SAFETY: the request leads to `content`, for which the caller vouches.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    done(answer).map(|()| answer)
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
    use crate::address::Family;
    use crate::socket::udp;

    #[test]
    fn loopback_tells_its_features_and_its_size() {
        let socket = udp(Family::Ipv4).expect("a socket");
        let features = features(socket.as_fd(), "lo").expect("loopback has features");
        let gro = features.iter().find(|feature| feature.name == "rx-gro").expect("the kernel names it");
        assert!(gro.changeable && gro.requested == gro.active, "{gro:?}");
        assert!(features.len() > 30, "{}", features.len());
        assert!(mtu_bytes(socket.as_fd(), "lo").expect("a size") >= 1_280);
    }

    #[test]
    fn what_is_not_there_cannot_be_asked() {
        let socket = udp(Family::Ipv4).expect("a socket");
        let refused = |error: io::Error| error.raw_os_error();
        assert_eq!(features(socket.as_fd(), "nosuch").map_err(refused), Err(Some(libc::ENODEV)));
        assert_eq!(mtu_bytes(socket.as_fd(), "").map_err(refused), Err(Some(libc::ENODEV)));
        assert_eq!(coalesce(socket.as_fd(), "lo").map_err(refused), Err(Some(libc::EOPNOTSUPP)));
        let unknown = set_features(socket.as_fd(), "lo", &[("no-such-feature", true)]).map_err(|error| error.kind());
        assert_eq!(unknown, Err(io::ErrorKind::NotFound));
    }
}
