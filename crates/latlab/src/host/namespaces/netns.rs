//! Network namespaces: entering one, and doing work in another.
//!
//! A namespace belongs to a thread. Sockets belong to the namespace of the thread that created them and stay there; a
//! child process starts in the namespace of the thread that starts it.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use latlab_sys::process;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The calling thread is in another namespace until this is dropped, so this cannot move to another thread. Of several,
/// the last one must be dropped first.
#[derive(Debug)]
#[must_use = "dropping this leaves the namespace"]
pub struct EnteredNamespace {
    origin: File,
    this_thread: PhantomData<*const ()>,
}

impl EnteredNamespace {
    pub(super) fn enter(namespace: &File) -> io::Result<EnteredNamespace> {
        let origin = current_namespace()?;
        move_to(namespace.as_fd())?;
        Ok(EnteredNamespace { origin, this_thread: PhantomData })
    }
}

impl Drop for EnteredNamespace {
    fn drop(&mut self) {
        // The right to leave is also the right to return. If it were refused, the thread would stay in a network that
        // ends with this process.
        let _ = move_to(self.origin.as_fd());
    }
}

/// The namespace of the calling thread.
pub(super) fn current_namespace() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

fn move_to(namespace: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).map_err(io::Error::from)
}

/// A new namespace that exists as long as the descriptor.
pub(super) fn new_namespace() -> io::Result<File> {
    on_own_thread(|| {
        process::enter_fresh_network()?;
        current_namespace()
    })
}

/// Does `work` in `namespace`.
pub(crate) fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    on_own_thread(|| {
        move_to(namespace.as_fd())?;
        work()
    })
}

/// Does `work` on a new thread, which can change its namespace.
fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Does `work` in `namespace`, or in that of the calling thread if there is none.
pub(crate) fn within<T: Send>(
    namespace: Option<&Arc<File>>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    match namespace {
        Some(namespace) => inside(namespace, work),
        None => work(),
    }
}
