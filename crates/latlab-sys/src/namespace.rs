//! Network namespaces, as far as no safe wrapper offers them.

use std::io;

use crate::done;

/// Moves the calling thread into a fresh network namespace; other threads stay where they are.
/// [unshare(2)](https://man7.org/linux/man-pages/man2/unshare.2.html) with CLONE_NEWNET, which, unlike
/// CLONE_FILES, changes nothing that other threads could hold.
pub fn enter_fresh_network() -> io::Result<()> {
    // SAFETY: takes no pointers; this flag touches no memory and no descriptors.
    done(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}
