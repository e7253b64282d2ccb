//! Questions to network drivers.
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

const GET_TX_CHECKSUM: u32 = 0x16;

/// Whether `interface`, in the socket's network namespace, leaves checksums of sent packets to the device.
/// SIOCETHTOOL, ETHTOOL_GTXCSUM; [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html)
pub fn offloads_tx_checksum(socket: BorrowedFd<'_>, interface: &str) -> io::Result<bool> {
    let mut question = Question { command: GET_TX_CHECKSUM, answer: 0 };
    // SAFETY: an interface request is a name and a union of plain values, for which zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as _;
    }
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    // SAFETY: the request leads to a `Question`, which is what this command reads and writes.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(question.answer != 0)
}
