//! The machine is shared by the tests that run at the same time: some need a CPU or the network in time, some take all of it.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// The processes that this thread starts while this value lives precede those of other tests and of other programs, and
/// no other test has such a value or floods.
pub(crate) struct Precedence {
    /// Whether the user may have it (`CAP_SYS_NICE`).
    is_granted: bool,
    _only: RwLockWriteGuard<'static, ()>,
}

/// Waits until no other test has precedence or floods, and lowers the niceness of this thread as far as it goes.
pub(crate) fn precedence() -> Precedence {
    // A test that failed with it has ended as well.
    let only = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
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
pub(crate) fn flooding() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}
