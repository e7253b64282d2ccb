//! Network namespaces of threads, and the interfaces of a path, each in its namespace, on which network knobs are set.
//!
//! A namespace belongs to a thread. Sockets belong to the namespace of the thread that created them, and stay there. A
//! child process starts in the namespace of the thread that starts it.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use latlab_sys::process;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::plan::Side;
use crate::platform::RouteSocket;

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

#[derive(Clone, Debug)]
pub struct NetnsInterface {
    pub interface: String,
    /// Its namespace; `None` for that of the calling thread.
    pub namespace: Option<Arc<File>>,
}

/// The interfaces of a path that can be set from this host.
#[derive(Clone, Debug, Default)]
pub struct PathInterfaces {
    /// `None` if the route is unknown.
    pub local: Option<NetnsInterface>,
    /// `None` if both ends have one interface, or if the peer is another host.
    pub peer: Option<NetnsInterface>,
    /// The host's own namespace, if the calling thread will leave it.
    pub host_namespace: Option<Arc<File>>,
    /// Whether both ends are on this host.
    pub one_host: bool,
    /// Whether the path of a lab is IPv6.
    pub over_ipv6: bool,
}

impl PathInterfaces {
    pub fn loopback() -> PathInterfaces {
        let local = Some(NetnsInterface { interface: "lo".into(), namespace: None });
        PathInterfaces { local, one_host: true, ..PathInterfaces::default() }
    }

    /// This end of the path to `address`, through `interface` if named, else as the kernel routes.
    pub fn towards(address: IpAddr, interface: Option<&str>) -> PathInterfaces {
        let routed = || -> io::Result<String> {
            let mut socket = RouteSocket::open()?;
            let index = socket.interface_towards(None, address)?;
            Ok(socket.interface_at(index)?.name)
        };
        let name = interface.map(str::to_owned).or_else(|| routed().ok());
        PathInterfaces {
            local: name.map(|interface| NetnsInterface { interface, namespace: None }),
            ..PathInterfaces::default()
        }
    }

    /// The interfaces of `ends`, each once.
    pub(crate) fn of_ends(&self, ends: Side) -> Vec<(Side, NetnsInterface)> {
        let near = self.local.iter().filter(|_| ends.is_local() || (self.peer.is_none() && self.one_host));
        let far = self.peer.iter().filter(|_| ends.is_peer());
        let near = near.map(|interface| (Side::Local, interface.clone()));
        near.chain(far.map(|interface| (Side::Peer, interface.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interface_for_both_ends_occurs_once() {
        for side in Side::ALL {
            assert_eq!(PathInterfaces::loopback().of_ends(side).len(), 1, "{side}");
        }
        let interface = |name: &str| Some(NetnsInterface { interface: name.into(), namespace: None });
        let pair = PathInterfaces {
            local: interface("a"),
            peer: interface("b"),
            host_namespace: None,
            one_host: true,
            over_ipv6: false,
        };
        let names = |side| pair.of_ends(side).into_iter().map(|(_, found)| found.interface).collect::<Vec<_>>();
        assert_eq!(
            (names(Side::Local), names(Side::Peer), names(Side::Both)),
            (vec!["a".into()], vec!["b".into()], vec!["a".into(), "b".into()])
        );
        assert!(PathInterfaces::default().of_ends(Side::Local).is_empty());
    }
}
