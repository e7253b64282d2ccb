//! Processes that other programs make of us: what the standard library does not say before it starts them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel send SIGTERM to the process that `command` starts as soon as the *thread* that starts it ends, also
/// when all of its process is killed. A program that gains rights by its set-user-ID bit loses this tie.
/// [PR_SET_PDEATHSIG(2const)](https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html)
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        const SIGNAL: libc::c_ulong = libc::SIGTERM as libc::c_ulong;
        // SAFETY: takes two numbers.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, SIGNAL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: takes nothing and cannot fail.
        let now = unsafe { libc::getppid() };
        // The parent ended before the tie was made: no signal will come.
        if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls that are async-signal-safe, touches no lock and
    // allocates nothing: errors of the kernel are plain numbers.
    unsafe { command.pre_exec(tie) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            end_with_parent(command.arg("60").stdin(Stdio::null()));
            command.spawn().expect("sleep(1) is everywhere")
        };
        let mut child = std::thread::spawn(start).join().expect("no panic");
        assert_eq!(child.wait().expect("our own child").signal(), Some(libc::SIGTERM));
    }
}
