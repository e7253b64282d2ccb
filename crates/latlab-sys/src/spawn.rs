//! Starts one program repeatedly, and waits for what each execution used.
#![allow(clippy::useless_conversion, reason = "the fields of the C library's times have 32 bits on some targets")]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::process::Pid;

use crate::done;

/// The result of a function that returns 0 or an error number.
fn done_or_errno(errno: libc::c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// A program with all that its start needs, so that a start allocates nothing in this process.
#[derive(Debug)]
pub struct Program {
    path: CString,
    arguments: Strings,
    environment: Strings,
    actions: Box<libc::posix_spawn_file_actions_t>,
    attributes: Box<libc::posix_spawnattr_t>,
    /// Open as long as the actions name them.
    _files: [Option<OwnedFd>; 3],
}

/// Strings of C, and the list of pointers to them that ends with a null pointer.
#[derive(Debug)]
struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*mut libc::c_char>,
}

impl Strings {
    fn of(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Strings> {
        let owned = texts.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointers = owned.iter().map(|text| text.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect();
        Ok(Strings { _owned: owned, pointers })
    }
}

// SAFETY: the pointers are to heap memory that moves with the program and is never written to.
unsafe impl Send for Program {}

impl Program {
    /// The program in the file `path`, with `words` as its arguments, the first of which is its name, this process's
    /// environment, and `files` as its standard input, output and error; `None`: those of this process. It leads a session
    /// of its own without a terminal, blocks no signal, and SIGPIPE ends it.
    pub fn new<W: AsRef<OsStr>>(path: &Path, words: &[W], files: [Option<OwnedFd>; 3]) -> io::Result<Program> {
        let arguments = Strings::of(words.iter().map(|word| word.as_ref().as_bytes().to_vec()))?;
        let variable =
            |(name, value): (OsString, OsString)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat();
        let environment = Strings::of(std::env::vars_os().map(variable))?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        Ok(Program {
            path,
            arguments,
            environment,
            actions: actions(&files)?,
            attributes: attributes()?,
            _files: files,
        })
    }

    /// Starts an execution; an error also if the program cannot be executed.
    /// [posix_spawn(3)](https://man7.org/linux/man-pages/man3/posix_spawn.3.html)
    #[inline]
    pub fn start(&self) -> io::Result<Pid> {
        let mut pid: libc::pid_t = 0;
        // SAFETY: every pointer is to a live object of this program, each list ends with a null pointer, and one process id is
        // written to `pid`.
        done_or_errno(unsafe {
            libc::posix_spawn(
                &raw mut pid,
                self.path.as_ptr(),
                &raw const *self.actions,
                &raw const *self.attributes,
                self.arguments.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            )
        })?;
        Pid::from_raw(pid).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: both were initialised, and are not used afterwards.
        unsafe {
            libc::posix_spawn_file_actions_destroy(&raw mut *self.actions);
            libc::posix_spawnattr_destroy(&raw mut *self.attributes);
        }
    }
}

fn actions(files: &[Option<OwnedFd>; 3]) -> io::Result<Box<libc::posix_spawn_file_actions_t>> {
    let mut actions = Box::new(MaybeUninit::uninit());
    // SAFETY: the library initialises the object, which is exclusive.
    done_or_errno(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
    // SAFETY: it is initialised.
    let mut actions = unsafe { actions.assume_init() };
    for (number, file) in (0..).zip(files).filter_map(|(number, file)| Some((number, file.as_ref()?))) {
        // SAFETY: the object is initialised and exclusive; the rest are numbers.
        done_or_errno(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut *actions, file.as_raw_fd(), number) })?;
    }
    Ok(actions)
}

fn attributes() -> io::Result<Box<libc::posix_spawnattr_t>> {
    let flags = libc::c_int::from(libc::POSIX_SPAWN_SETSID)
        | libc::c_int::from(libc::POSIX_SPAWN_SETSIGDEF)
        | libc::c_int::from(libc::POSIX_SPAWN_SETSIGMASK);
    let mut attributes = Box::new(MaybeUninit::uninit());
    let (mut none, mut broken_pipe) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the library initialises each object before another call reads it, and all are exclusive.
    unsafe {
        done_or_errno(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
        done(libc::sigemptyset(none.as_mut_ptr()))?;
        done(libc::sigemptyset(broken_pipe.as_mut_ptr()))?;
        done(libc::sigaddset(broken_pipe.as_mut_ptr(), libc::SIGPIPE))?;
        done_or_errno(libc::posix_spawnattr_setsigmask(attributes.as_mut_ptr(), none.as_ptr()))?;
        done_or_errno(libc::posix_spawnattr_setsigdefault(attributes.as_mut_ptr(), broken_pipe.as_ptr()))?;
        done_or_errno(libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), flags as libc::c_short))?;
        Ok(attributes.assume_init())
    }
}

/// How a process ended, and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; `None` if a signal killed it.
    pub exit_code: Option<u8>,
    /// The signal that killed it, else 0.
    pub signal: u8,
    /// CPU time outside of the kernel, and in it.
    pub user_ns: i64,
    pub system_ns: i64,
    /// Peak of the resident memory in KiB.
    pub resident_kib: i64,
    pub voluntary_switches: i64,
    pub involuntary_switches: i64,
    pub minor_faults: i64,
    pub major_faults: i64,
}

/// The peak of this process's resident memory in KiB. The kernel counts it as that of a child until the child has executed its
/// program (exec_mmap in fs/exec.c), so that no execution has less.
/// [getrusage(2)](https://man7.org/linux/man-pages/man2/getrusage.2.html)
pub fn own_resident_kib() -> io::Result<i64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage through the pointer, which is exclusive.
    done(unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) })?;
    // SAFETY: `usage` was initialised with zeros, and every bit pattern is a valid rusage.
    Ok(unsafe { usage.assume_init() }.ru_maxrss.into())
}

/// Waits for the child `pid`, which no longer exists then.
/// [wait4(2)](https://man7.org/linux/man-pages/man2/wait4.2.html)
#[inline]
pub fn wait(pid: Pid) -> io::Result<Ended> {
    let mut status: libc::c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let mut waited = || {
        // SAFETY: the kernel writes one status and one rusage through the pointers, which are exclusive.
        done(unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr()) })
    };
    while let Err(error) = waited() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: `usage` was initialised with zeros, and every bit pattern is a valid rusage.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| i64::from(time.tv_sec) * 1_000_000_000 + i64::from(time.tv_usec) * 1_000;
    Ok(Ended {
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status) as u8),
        signal: if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) as u8 } else { 0 },
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        resident_kib: usage.ru_maxrss.into(),
        voluntary_switches: usage.ru_nvcsw.into(),
        involuntary_switches: usage.ru_nivcsw.into(),
        minor_faults: usage.ru_minflt.into(),
        major_faults: usage.ru_majflt.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_execution_is_accounted_for_by_itself() {
        let program =
            Program::new(Path::new("/bin/sh"), &["sh", "-c", "exit 7"], [None, None, None]).expect("prepared");
        let ends: Vec<Ended> = (0..2).map(|_| wait(program.start().expect("started")).expect("ended")).collect();
        assert!(ends.iter().all(|end| end.exit_code == Some(7) && end.signal == 0 && end.resident_kib > 0), "{ends:?}");
        let missing = Program::new(Path::new("/missing/program"), &["x"], [None, None, None]).expect("prepared");
        assert_eq!(missing.start().map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
