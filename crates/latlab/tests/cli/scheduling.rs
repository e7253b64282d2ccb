//! Precedence of a test's processes, so that its result does not depend on what else the machine does.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The processes that this thread starts while this value lives precede those of other tests and of other programs.
pub(crate) struct Precedence {
    /// Whether the user may have it (`CAP_SYS_NICE`).
    pub(crate) is_granted: bool,
}

/// Lowers the niceness of this thread as far as it goes.
pub(crate) fn precedence() -> Precedence {
    // On Linux a niceness is a thread's, and processes inherit it.
    Precedence { is_granted: rustix::process::setpriority_process(None, -20).is_ok() }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if self.is_granted {
            // Allowed without any right.
            let _ = rustix::process::setpriority_process(None, 0);
        }
    }
}

static CPU: Mutex<()> = Mutex::new(());

/// Waits until no other test takes a CPU from everything else.
pub(crate) fn only_busy_cpu() -> MutexGuard<'static, ()> {
    CPU.lock().unwrap_or_else(PoisonError::into_inner)
}
