//! Processes: the rights and signals with which this one was started, children that end with their parent, locked memory, and
//! network namespaces.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::done;

/// Whether this process has more rights than its caller (set-user-ID, file capabilities): then the caller's environment
/// must not decide what it does with them. AT_SECURE of
/// [getauxval(3)](https://man7.org/linux/man-pages/man3/getauxval.3.html)
pub fn started_with_more_rights() -> bool {
    // SAFETY: takes a number and returns one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether this process ignores `signal`, as it does under nohup(1); false for a number that is not a signal.
/// [sigaction(2)](https://man7.org/linux/man-pages/man2/sigaction.2.html)
pub fn ignores(signal: i32) -> bool {
    // SAFETY: a `sigaction` is plain values, for which zero bytes are valid.
    let mut current: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action nothing changes; the current one is written to `current`, which is exclusive.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut current) };
    result == 0 && current.sa_sigaction == libc::SIG_IGN
}

/// Makes the kernel send SIGTERM to the process that `command` starts when the *thread* that starts it ends, also if its
/// whole process is killed. Executing a set-user-ID program clears this setting.
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
        // The parent ended before the request: no signal will come.
        if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls that are async-signal-safe, touches no lock and
    // allocates nothing: errors of the kernel are plain numbers.
    unsafe { command.pre_exec(tie) };
}

/// Makes the process that `command` starts the leader of a session of its own, without a terminal: signals to a process group
/// in it, and reads of `/dev/tty`, do not reach this process. [setsid(2)](https://man7.org/linux/man-pages/man2/setsid.2.html)
pub fn in_own_session(command: &mut Command) {
    // SAFETY: takes nothing.
    let begin = || done(if unsafe { libc::setsid() } < 0 { -1 } else { 0 });
    // SAFETY: between fork and exec the closure makes one system call that is async-signal-safe, touches no lock and
    // allocates nothing: errors of the kernel are plain numbers.
    unsafe { command.pre_exec(begin) };
}

/// Keeps the pages of `span` in memory until they are unmapped; whole pages are locked. Refused beyond the limit of the
/// process (RLIMIT_MEMLOCK), unless it has CAP_IPC_LOCK.
/// [mlock(2)](https://man7.org/linux/man-pages/man2/mlock.2.html)
pub fn lock_memory<T>(span: &[T]) -> io::Result<()> {
    // SAFETY: pointer and length describe a live slice, whose content the kernel does not touch.
    done(unsafe { libc::mlock(span.as_ptr().cast(), size_of_val(span)) })
}

/// Moves the calling thread, and no other, into a new network namespace.
/// [unshare(2)](https://man7.org/linux/man-pages/man2/unshare.2.html) with CLONE_NEWNET, which, unlike CLONE_FILES,
/// changes nothing that threads share.
pub fn enter_fresh_network() -> io::Result<()> {
    // SAFETY: takes no pointers; this flag touches no memory and no descriptors.
    done(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// A table of descriptors that belongs to the calling thread alone. Where threads share a table, the kernel counts a
/// reference to the socket in each call, with two atomic instructions.
///
/// The other threads keep their table: what they open or close later is not seen here, and what this thread opens must not
/// be passed on. The table is closed when this is dropped, after which the thread must end.
#[derive(Debug)]
pub struct OwnDescriptors(PhantomData<*const ()>);

impl OwnDescriptors {
    /// Copies the table of the process for the calling thread.
    /// [unshare(2)](https://man7.org/linux/man-pages/man2/unshare.2.html) with CLONE_FILES
    pub fn copy() -> io::Result<OwnDescriptors> {
        // SAFETY: takes no pointers; every descriptor keeps its number and its meaning.
        done(unsafe { libc::unshare(libc::CLONE_FILES) })?;
        Ok(OwnDescriptors(PhantomData))
    }
}

impl Drop for OwnDescriptors {
    /// The kernel closes the table only after it has reported the end of the thread to others: a port could still be in use
    /// then. [close_range(2)](https://man7.org/linux/man-pages/man2/close_range.2.html), since Linux 5.9
    fn drop(&mut self) {
        // SAFETY: takes three numbers; it closes the descriptors of this thread's own table, and no others.
        unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    }
}

/// The cookie of the network namespace of `socket`: unique during this boot, unlike the inode, which is reused.
/// SO_NETNS_COOKIE, since Linux 5.14; [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)
pub fn network_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    let place = (&raw mut cookie).cast();
    // SAFETY: the kernel writes at most `length` bytes into `cookie`, which has as many.
    done(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, place, &raw mut length)
    })?;
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;
    use crate::address::AddressFamily;
    use crate::socket::udp;

    #[test]
    fn an_ignored_signal_is_detected() {
        // Programs in Rust ignore SIGPIPE from their start.
        assert!(ignores(libc::SIGPIPE));
        assert!(!ignores(libc::SIGTERM) && !super::ignores(-1));
    }

    #[test]
    fn a_thread_that_closes_its_own_descriptors_leaves_those_of_the_process_open() {
        use std::os::fd::IntoRawFd;
        let shared = udp(AddressFamily::Ipv4).expect("a socket");
        std::thread::scope(|scope| {
            let work = || {
                let own = OwnDescriptors::copy().expect("no right is needed");
                assert!(network_cookie(shared.as_fd()).is_ok(), "a copy has what was open before");
                // Belongs to this thread alone.
                let _ = udp(AddressFamily::Ipv4).expect("a socket").into_raw_fd();
                drop(own);
                assert!(network_cookie(shared.as_fd()).is_err(), "the copy is closed");
            };
            scope.spawn(work).join().expect("no panic");
        });
        assert!(network_cookie(shared.as_fd()).is_ok(), "the socket of the process stays open");
    }

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

    #[test]
    fn a_child_in_its_own_session_can_signal_its_group() {
        let mut command = Command::new("sh");
        in_own_session(command.args(["-c", "kill 0"]));
        let status = command.status().expect("sh(1) is everywhere");
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    /// Pages locked by this process, in KiB, as the kernel counts them.
    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line on locked memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    fn locked_memory_is_counted_by_the_kernel() {
        let span = vec![1u64; 1 << 15];
        match lock_memory(&span) {
            Ok(()) => assert!(locked_kib() >= 256),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN)),
                "a limit is the only reason: {error}"
            ),
        }
    }

    #[test]
    fn all_sockets_of_a_namespace_have_its_cookie() {
        let cookie = || network_cookie(udp(AddressFamily::Ipv4).expect("a socket").as_fd());
        match cookie() {
            Ok(first) => assert_eq!(cookie().expect("a cookie"), first),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "before Linux 5.14"),
        }
    }
}
