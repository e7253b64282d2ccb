//! Scheduling of the calling thread, as far as no safe wrapper offers it.

use std::ffi::c_int;
use std::io;

use crate::done;

/// Puts the calling thread under SCHED_FIFO; threads and processes that it starts go back to normal
/// scheduling (SCHED_RESET_ON_FORK), so that only the measuring thread has the right of way.
/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html), made directly:
/// musl's function of that name refuses always, since POSIX means processes and Linux threads.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    // The kernel's own struct sched_param has one field; musl's is larger.
    let parameter: c_int = priority.into();
    const CALLING_THREAD: c_int = 0;
    const POLICY: c_int = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one int through the pointer, and `parameter` is one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, POLICY, &raw const parameter) };
    done(answer as c_int)
}

/// Puts the calling thread back to normal scheduling where it has a real-time policy; other policies stay.
/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html); it needs no right.
pub fn leave_real_time() -> io::Result<()> {
    const CALLING_THREAD: c_int = 0;
    // SAFETY: takes a number and answers one.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, CALLING_THREAD) };
    done(policy.min(0) as c_int)?;
    if !matches!(policy as c_int & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
    {
        return Ok(());
    }
    let parameter: c_int = 0;
    // SAFETY: the kernel reads one int through the pointer, and `parameter` is one.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, libc::SCHED_OTHER, &raw const parameter) };
    done(answer as c_int)
}

/// The CPU that runs the calling thread, where that can be told without entering the kernel.
/// [getcpu(2)](https://man7.org/linux/man-pages/man2/getcpu.2.html) through the vDSO, which aarch64 lacks.
#[inline]
pub fn current_cpu() -> Option<u16> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: takes no arguments; answers −1 at worst.
        u16::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_cpu_is_below_the_count_where_it_can_be_told() {
        if let Some(cpu) = current_cpu() {
            // SAFETY: takes a number and answers one.
            let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
            assert!(libc::c_long::from(cpu) < configured);
        }
    }

    #[test]
    fn a_priority_that_does_not_exist_is_refused() {
        let error = set_fifo(200).expect_err("SCHED_FIFO ends at 99").raw_os_error();
        assert!(matches!(error, Some(libc::EINVAL | libc::EPERM)), "{error:?}");
    }
}
