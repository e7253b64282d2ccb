//! Memory that stays where it is.

use std::io;

use crate::done;

/// Keeps the pages under `span` in memory until they are unmapped. Whole pages: neighbours of its ends stay as
/// well. Refused beyond the process's limit (RLIMIT_MEMLOCK), unless it has CAP_IPC_LOCK.
/// [mlock(2)](https://man7.org/linux/man-pages/man2/mlock.2.html)
pub fn lock<T>(span: &[T]) -> io::Result<()> {
    // SAFETY: pointer and length describe a live slice, whose content the kernel does not touch.
    done(unsafe { libc::mlock(span.as_ptr().cast(), size_of_val(span)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages locked by this process, in KiB, as the kernel counts them.
    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line on locked memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    fn what_is_locked_the_kernel_counts_as_locked() {
        let span = vec![1u64; 1 << 15];
        match lock(&span) {
            Ok(()) => assert!(locked_kib() >= 256),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN)),
                "a limit is the only reason: {error}"
            ),
        }
    }
}
