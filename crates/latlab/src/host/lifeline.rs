//! Children that do not outlive their parent.

use std::io;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Has the kernel kill the calling process when the thread that started it ends; whether that thread's
/// process, `parent`, is still there. False: it died before this call and no signal will come.
///
/// The kernel means the *thread* ([PR_SET_PDEATHSIG(2const)](https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html)):
/// whoever starts such a child must live as long as the child shall.
///
/// # Errors
/// The kernel refused the request.
pub fn tie_to_parent(parent: u32) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid().is_some_and(|now| u32::try_from(now.as_raw_nonzero().get()) == Ok(parent)))
}
