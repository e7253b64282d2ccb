//! Scheduling of the calling thread, where rustix has no wrapper.

use std::ffi::c_int;
use std::io;

use crate::done;

const CALLING_THREAD: c_int = 0;

/// Puts the calling thread under SCHED_FIFO. Threads and processes that it starts have normal scheduling
/// (SCHED_RESET_ON_FORK), so that only the measuring thread has priority.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

/// Puts the calling thread under SCHED_FIFO, and threads and processes that it starts too.
pub fn set_inherited_fifo(priority: u8) -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// Puts the calling thread under SCHED_BATCH, and threads and processes that it starts too: when one is woken, it does not
/// preempt a thread with normal scheduling. Needs no privilege.
/// [sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)
pub fn set_inherited_batch() -> io::Result<()> {
    set_policy(libc::SCHED_BATCH, 0)
}

/// Puts `thread` of this process under SCHED_IDLE, so that it runs where nothing else would, or under normal scheduling. Needs
/// no privilege. [sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)
pub fn set_idle(thread: c_int, is_idle: bool) -> io::Result<()> {
    set_policy_of(thread, if is_idle { libc::SCHED_IDLE } else { libc::SCHED_OTHER }, 0)
}

/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html) as a raw system call: musl's
/// function of that name always fails, since POSIX defines it for processes and Linux implements it for threads.
fn set_policy_of(thread: c_int, policy: c_int, priority: u8) -> io::Result<()> {
    // The kernel's struct sched_param has one field; musl's is larger.
    let parameter: c_int = priority.into();
    // SAFETY: the kernel reads one int through the pointer, and `parameter` is one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const parameter) };
    done(answer as c_int)
}

fn set_policy(policy: c_int, priority: u8) -> io::Result<()> {
    set_policy_of(CALLING_THREAD, policy, priority)
}

/// The policy of the calling thread, without flags.
fn policy() -> io::Result<c_int> {
    // SAFETY: takes a number and returns one.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, CALLING_THREAD) };
    done(policy.min(0) as c_int)?;
    Ok(policy as c_int & !libc::SCHED_RESET_ON_FORK)
}

/// Whether the calling thread has normal scheduling (SCHED_OTHER).
pub fn is_normal() -> io::Result<bool> {
    Ok(policy()? == libc::SCHED_OTHER)
}

/// The priority of the calling thread under SCHED_FIFO; `None` under another policy.
/// [sched_getparam(2)](https://man7.org/linux/man-pages/man2/sched_getparam.2.html)
pub fn fifo_priority() -> io::Result<Option<u8>> {
    if policy()? != libc::SCHED_FIFO {
        return Ok(None);
    }
    let mut parameter: c_int = 0;
    // SAFETY: the kernel writes one int through the pointer, and `parameter` is one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getparam, CALLING_THREAD, &raw mut parameter) };
    done(answer as c_int)?;
    Ok(u8::try_from(parameter).ok())
}

/// Puts the calling thread under normal scheduling if it has a real-time policy; other policies stay. Needs no privilege.
/// [sched_setscheduler(2)](https://man7.org/linux/man-pages/man2/sched_setscheduler.2.html)
pub fn leave_real_time() -> io::Result<()> {
    match policy()? {
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE => set_policy(libc::SCHED_OTHER, 0),
        _ => Ok(()),
    }
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
