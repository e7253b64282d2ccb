//! The machine is shared by the tests that run at the same time, also those of other test binaries: some need a CPU or the
//! network in time, some take all of it. A run that reports a lack of CPU time is not a failure of the test.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Words of latlab's messages about a run whose probes left late because of the host.
const LATE: [&str; 2] = ["left more than", "were never sent: the sender"];

/// Locks the machine: a lock of a file, which ends with the returned value.
fn lock_machine(operation: FlockOperation) -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine.lock");
    let file = File::options().create(true).append(true).open(path).expect("cargo has made the directory");
    rustix::io::retry_on_intr(|| flock(&file, operation)).expect("a file of our own");
    file
}

/// The processes that this thread starts while this value lives precede those of other tests and of other programs, and
/// no other test has such a value or floods.
pub(crate) struct Precedence {
    /// Whether the user may have it (`CAP_SYS_NICE`).
    is_granted: bool,
    _only: File,
}

/// Waits until no other test has precedence or floods, and lowers the niceness of this thread as far as it goes.
pub(crate) fn precedence() -> Precedence {
    let only = lock_machine(FlockOperation::LockExclusive);
    // On Linux a niceness is a thread's, and processes inherit it.
    Precedence { is_granted: rustix::process::setpriority_process(None, -20).is_ok(), _only: only }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if self.is_granted {
            // Allowed without any right.
            let _ = rustix::process::setpriority_process(None, 0);
        }
    }
}

/// Waits until no test has precedence. For tests that send as fast as they can: all packets to this host share one queue for
/// each CPU (net.core.netdev_max_backlog), even those of other network namespaces, and niceness does not apply to it.
#[allow(dead_code, reason = "not every test binary floods")]
pub(crate) fn flooding() -> File {
    lock_machine(FlockOperation::LockShared)
}

/// Whether `line` begins an error, on stderr or among the caveats of a summary.
pub(crate) fn is_error(line: &str) -> bool {
    let line = line.trim_start_matches("caveats").trim_start_matches(|char: char| char == ' ' || char.is_ascii_digit());
    line.starts_with("error: ") || line.starts_with("fatal: ")
}

/// Whether the error `line` says that probes left late.
pub(crate) fn is_late(line: &str) -> bool {
    LATE.iter().any(|words| line.contains(words))
}
