//! Network namespaces, as far as no safe wrapper offers them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::done;

/// Moves the calling thread into a fresh network namespace; other threads stay where they are.
/// [unshare(2)](https://man7.org/linux/man-pages/man2/unshare.2.html) with CLONE_NEWNET, which, unlike
/// CLONE_FILES, changes nothing that other threads could hold.
pub fn enter_fresh_network() -> io::Result<()> {
    // SAFETY: takes no pointers; this flag touches no memory and no descriptors.
    done(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// What no other network namespace of this boot has had or will have, unlike its inode: that of `socket`.
/// SO_NETNS_COOKIE, since Linux 5.14; [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)
pub fn network_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    let place = (&raw mut cookie).cast();
    // SAFETY: the kernel writes at most `length` bytes, and there is room for them.
    done(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, place, &raw mut length)
    })?;
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::address::Family;
    use crate::socket::udp;

    #[test]
    fn a_namespace_tells_the_same_cookie_to_every_socket() {
        let cookie = || network_cookie(udp(Family::Ipv4).expect("a socket").as_fd());
        match cookie() {
            Ok(first) => assert_eq!(cookie().expect("told before"), first),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "before Linux 5.14"),
        }
    }
}
