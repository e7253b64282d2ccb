//! Scheduling of the calling thread, where rustix has no wrapper.

use std::ffi::c_int;
use std::io;

use crate::done;

/// Puts the calling thread under SCHED_FIFO. Threads and processes that it starts have normal scheduling
/// (SCHED_RESET_ON_FORK), so that only the measuring thread has priority.
/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html) as a raw system call: musl's
/// function of that name always fails, since POSIX defines it for processes and Linux implements it for threads.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    // The kernel's struct sched_param has one field; musl's is larger.
    let parameter: c_int = priority.into();
    const CALLING_THREAD: c_int = 0;
    const POLICY: c_int = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one int through the pointer, and `parameter` is one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, POLICY, &raw const parameter) };
    done(answer as c_int)
}

/// Puts the calling thread under normal scheduling if it has a real-time policy; other policies stay. Needs no privilege.
/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html)
pub fn leave_real_time() -> io::Result<()> {
    const CALLING_THREAD: c_int = 0;
    // SAFETY: takes a number and returns one.
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

/// The CPU of the calling thread; `None` if reading it would enter the kernel.
/// [getcpu(2)](https://man7.org/linux/man-pages/man2/getcpu.2.html) through the vDSO, which does not have it on aarch64.
#[inline]
pub fn current_cpu() -> Option<u16> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: takes no arguments; returns −1 on failure.
        u16::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_cpu_if_known_is_below_the_number_of_cpus() {
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
