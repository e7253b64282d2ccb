//! A network of our own: two private namespaces and a virtual Ethernet pair between them.
//!
//! Nothing has a name that outlives us: the namespaces are held by descriptors only, so the kernel takes
//! them and the pair away when the last process that holds or inhabits them ends, however it ends.
//! `/etc`, `/proc` and the host's own interfaces stay untouched.
//!
//! A namespace belongs to a thread. Sockets belong to the namespace of the thread that made them and stay
//! there; a child process starts in the namespace of the thread that starts it. So: enter, open or start,
//! leave.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use latlab_sys::address::Family;
use latlab_sys::{ethtool, namespace, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::ground::{NetnsInterface, PathInterfaces};
use super::refusal::HostError;
use super::route_socket::{LOOPBACK, RouteSocket, VethEnd};

/// One end of the lab, all of it fixed: nobody else is in these namespaces, so nothing can collide.
struct End {
    link: VethEnd,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
}

/// Indexes of the pair's ends: far above those of the devices that some kernels put into every new namespace.
/// They differ, since the kernel puts off news of a device that seems to be linked to itself.
const SENDER_INDEX: u32 = 9862;
const REFLECTOR_INDEX: u32 = 9863;

/// How long the pair may take to get ready. The kernel gathers news of carriers for a second at most.
const READY_WITHIN: Duration = Duration::from_secs(5);

// Addresses of private networks (RFC 1918; RFC 4193), hardware addresses of local meaning (IEEE 802, bit 1
// of the first octet).
const SENDER: End = End {
    link: VethEnd { name: "lab0", index: SENDER_INDEX, hardware: [0x02, 0, 0, 0, 0x98, 1] },
    ipv4: Ipv4Addr::new(10, 98, 62, 1),
    ipv6: Ipv6Addr::new(0xfd98, 0x6200, 0, 0, 0, 0, 0, 1),
};
const REFLECTOR: End = End {
    link: VethEnd { name: "lab0", index: REFLECTOR_INDEX, hardware: [0x02, 0, 0, 0, 0x98, 2] },
    ipv4: Ipv4Addr::new(10, 98, 62, 2),
    ipv6: Ipv6Addr::new(0xfd98, 0x6200, 0, 0, 0, 0, 0, 2),
};

/// Two namespaces and the pair between them, as long as this value lives.
#[derive(Debug)]
pub struct Lab {
    sender: File,
    reflector: File,
    ipv6: bool,
    conditions: BTreeMap<String, String>,
}

impl Lab {
    /// Builds the lab. The calling thread stays in the namespace in which it is.
    ///
    /// # Errors
    /// Not root, or the kernel lacks namespaces or virtual Ethernet.
    pub fn set_up() -> Result<Lab, HostError> {
        let sender = fresh_namespace().map_err(at("a network namespace for the sender"))?;
        let reflector = fresh_namespace().map_err(at("a network namespace for the reflector"))?;
        inside(&sender, || RouteSocket::open()?.make_veth(&SENDER.link, &REFLECTOR.link, reflector.as_fd()))
            .map_err(at("a virtual Ethernet pair"))?;
        let furnish_both = || -> io::Result<bool> {
            let near = inside(&sender, || furnish(&SENDER, &REFLECTOR))?;
            Ok(inside(&reflector, || furnish(&REFLECTOR, &SENDER))? && near)
        };
        let ipv6 = furnish_both().map_err(at("addresses and neighbours"))?;
        for (end, place) in [(&SENDER, &sender), (&REFLECTOR, &reflector)] {
            inside(place, || await_readiness(end, ipv6)).map_err(at("waiting for the links"))?;
        }
        let mut lab = Lab { sender, reflector, ipv6, conditions: BTreeMap::new() };
        lab.look();
        Ok(lab)
    }

    fn look(&mut self) {
        for (end, name, place) in [(&SENDER, "sender", &self.sender), (&REFLECTOR, "reflector", &self.reflector)] {
            let (fact, value) = checksum_condition(name, inside(place, || offloads_checksum(end.link.name)));
            self.conditions.insert(fact, value);
        }
    }

    /// Takes note of what was changed on the pair, once it carries again.
    ///
    /// # Errors
    /// It does not.
    pub fn look_again(&mut self) -> Result<(), HostError> {
        for (end, place) in [(&SENDER, &self.sender), (&REFLECTOR, &self.reflector)] {
            // A small MTU takes IPv6 away (RFC 8200, section 5): then its address is awaited in vain.
            inside(place, || await_readiness(end, false)).map_err(at("waiting for the links"))?;
        }
        self.look();
        Ok(())
    }

    /// Moves the calling thread to the sender's side until the answer is dropped.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn enter_sender(&self) -> Result<EnteredNamespace, HostError> {
        EnteredNamespace::enter(&self.sender).map_err(at("entering the sender's namespace"))
    }

    /// Moves the calling thread to the reflector's side until the answer is dropped: start the reflector
    /// meanwhile, and it starts there.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn enter_reflector(&self) -> Result<EnteredNamespace, HostError> {
        EnteredNamespace::enter(&self.reflector).map_err(at("entering the reflector's namespace"))
    }

    /// The sender's IPv4 address.
    pub const fn sender_ipv4(&self) -> IpAddr {
        IpAddr::V4(SENDER.ipv4)
    }

    /// The reflector's IPv4 address.
    pub const fn reflector_ipv4(&self) -> IpAddr {
        IpAddr::V4(REFLECTOR.ipv4)
    }

    /// The sender's IPv6 address; none on a host that does not speak it.
    pub fn sender_ipv6(&self) -> Option<IpAddr> {
        self.ipv6.then_some(IpAddr::V6(SENDER.ipv6))
    }

    /// The reflector's IPv6 address; none on a host that does not speak it.
    pub fn reflector_ipv6(&self) -> Option<IpAddr> {
        self.ipv6.then_some(IpAddr::V6(REFLECTOR.ipv6))
    }

    /// Where the interfaces of the path that is measured `over_ipv6` or not are: those of the pair, each in its own
    /// namespace.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn ground(&self, over_ipv6: bool) -> Result<PathInterfaces, HostError> {
        let place = |end: &End, file: &File| {
            let network = Some(Arc::new(file.try_clone().map_err(at("descriptors of the namespaces"))?));
            Ok::<_, HostError>(NetnsInterface { interface: end.link.name.to_owned(), network })
        };
        Ok(PathInterfaces {
            local: Some(place(&SENDER, &self.sender)?),
            peer: Some(place(&REFLECTOR, &self.reflector)?),
            home: Some(Arc::new(current_namespace().map_err(at("descriptors of the namespaces"))?)),
            one_host: true,
            over_ipv6,
        })
    }

    /// What was found on the pair that a reader of the figures should know: whether checksums are left to a
    /// device that never computes them.
    pub const fn conditions(&self) -> &BTreeMap<String, String> {
        &self.conditions
    }
}

/// The calling thread in another namespace. Dropping this brings it back to the one it came from, so it
/// cannot go to another thread; of several, the last one is dropped first.
#[derive(Debug)]
#[must_use = "dropping this leaves the namespace again"]
pub struct EnteredNamespace {
    home: File,
    this_thread: PhantomData<*const ()>,
}

impl EnteredNamespace {
    fn enter(place: &File) -> io::Result<EnteredNamespace> {
        let home = current_namespace()?;
        move_to(place.as_fd())?;
        Ok(EnteredNamespace { home, this_thread: PhantomData })
    }
}

impl Drop for EnteredNamespace {
    fn drop(&mut self) {
        // Whoever could leave can come back; were it refused, a thread in a network that vanishes with us
        // would harm nobody else.
        let _ = move_to(self.home.as_fd());
    }
}

fn at(step: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::Lab { step, source }
}

pub(super) fn current_namespace() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

fn move_to(place: BorrowedFd<'_>) -> io::Result<()> {
    move_into_link_name_space(place, Some(LinkNameSpaceType::Network)).map_err(io::Error::from)
}

/// A namespace that lives as long as the descriptor.
fn fresh_namespace() -> io::Result<File> {
    aside(|| {
        namespace::enter_fresh_network()?;
        current_namespace()
    })
}

/// Does `work` in the namespace `place`.
pub(super) fn inside<T: Send>(place: &File, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    aside(|| {
        move_to(place.as_fd())?;
        work()
    })
}

/// Does `work` on a thread of its own, whose namespace ends with it.
fn aside<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Brings one end up; whether it has IPv6.
fn furnish(own: &End, other: &End) -> io::Result<bool> {
    let mut route = RouteSocket::open()?;
    route.raise(LOOPBACK)?;
    // Refused where IPv6 is switched off, and then there is nothing to forbid.
    let _ = route.forbid_own_addresses(own.link.index);
    route.raise(own.link.index)?;
    route.add_address(own.link.index, own.ipv4.into(), 30)?;
    route.add_neighbour(own.link.index, other.ipv4.into(), other.link.hardware)?;
    let ipv6 = route
        .add_address(own.link.index, own.ipv6.into(), 64)
        .and_then(|()| route.add_neighbour(own.link.index, other.ipv6.into(), other.link.hardware));
    Ok(ipv6.is_ok())
}

/// Waits until the end really sends and receives.
///
/// Both come later than the answers that raise a link and give it an address. Of the end that was raised first
/// the kernel learns the carrier in a work queue, and until then that end throws away what it is given; an
/// IPv6 address becomes the namespace's own in another work queue, also where nobody is asked for duplicates.
fn await_readiness(own: &End, ipv6: bool) -> io::Result<()> {
    let mut route = RouteSocket::open()?;
    let deadline = Instant::now() + READY_WITHIN;
    while !(route.is_running(own.link.index)? && (!ipv6 || route.is_local(own.ipv6.into())?)) {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    // The link's state shows a moment before its queue is in place, but both change under one lock, which
    // this takes.
    route.raise(own.link.index)
}

fn offloads_checksum(interface: &str) -> io::Result<bool> {
    let asking = socket::udp(Family::Ipv4)?;
    ethtool::offloads_tx_checksum(asking.as_fd(), interface)
}

fn checksum_condition(end: &str, answer: io::Result<bool>) -> (String, String) {
    let value = match answer {
        Ok(true) => "on".to_owned(),
        Ok(false) => "off".to_owned(),
        Err(error) => format!("unknown: {}", latlab_sys::errno::explain(&error)),
    };
    (format!("lab.{end}.offload.tx-checksum"), value)
}
