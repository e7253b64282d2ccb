//! The target `lab`: two private network namespaces and a virtual Ethernet pair between them.
//!
//! The namespaces have no names and are held by descriptors, so the kernel removes them and the pair when the last process
//! that holds or runs in them ends, however it ends. `/etc`, `/proc` and the host's own interfaces are not changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use latlab_sys::address::AddressFamily;
use latlab_sys::{ethtool, socket};

use super::netns::{EnteredNamespace, NetnsInterface, PathInterfaces, current_namespace, inside, new_namespace};
use crate::host::error::HostError;
use crate::platform::{LOOPBACK, RouteSocket, VethEnd};

/// One end of the lab. Names, indexes and addresses are fixed: the namespaces have no other interfaces to collide with.
struct End {
    link: VethEnd,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
}

/// Indexes of the two ends: far above those of the devices that some kernels add to every new namespace. They differ,
/// since the kernel delays notifications of a device that seems to be linked to itself.
const SENDER_INDEX: u32 = 9862;
const REFLECTOR_INDEX: u32 = 9863;

/// The time until the pair is ready. The kernel defers changes of carriers by a second at most.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

// Addresses of private networks (RFC 1918; RFC 4193), locally administered hardware addresses (IEEE 802, bit 1 of the
// first octet).
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

/// Two namespaces and the pair between them, which exist as long as this value.
#[derive(Debug)]
pub struct Lab {
    sender: File,
    reflector: File,
    ipv6: bool,
    conditions: BTreeMap<String, String>,
}

impl Lab {
    /// Sets up the lab. The calling thread stays in its namespace.
    ///
    /// # Errors
    /// The process is not root, or the kernel has no namespaces or virtual Ethernet.
    pub fn set_up() -> Result<Lab, HostError> {
        let sender = new_namespace().map_err(at("a network namespace for the sender"))?;
        let reflector = new_namespace().map_err(at("a network namespace for the reflector"))?;
        inside(&sender, || RouteSocket::open()?.make_veth(&SENDER.link, &REFLECTOR.link, reflector.as_fd()))
            .map_err(at("a virtual Ethernet pair"))?;
        let configure_both = || -> io::Result<bool> {
            let near = inside(&sender, || configure(&SENDER, &REFLECTOR))?;
            Ok(inside(&reflector, || configure(&REFLECTOR, &SENDER))? && near)
        };
        let ipv6 = configure_both().map_err(at("addresses and neighbours"))?;
        for (end, namespace) in [(&SENDER, &sender), (&REFLECTOR, &reflector)] {
            inside(namespace, || await_readiness(end, ipv6)).map_err(at("waiting for the links"))?;
        }
        let mut lab = Lab { sender, reflector, ipv6, conditions: BTreeMap::new() };
        lab.read_conditions();
        Ok(lab)
    }

    fn read_conditions(&mut self) {
        for (end, name, namespace) in [(&SENDER, "sender", &self.sender), (&REFLECTOR, "reflector", &self.reflector)] {
            let (fact, value) = checksum_condition(name, inside(namespace, || offloads_checksum(end.link.name)));
            self.conditions.insert(fact, value);
        }
    }

    /// Makes kernels compute the checksums of this pair, which its devices never do: programs and AF_XDP sockets see whole
    /// packets.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn finish_checksums(&mut self) -> Result<(), HostError> {
        for (end, namespace) in [(&SENDER, &self.sender), (&REFLECTOR, &self.reflector)] {
            let change = || {
                let socket = socket::udp(AddressFamily::Ipv4)?;
                ethtool::set_features(socket.as_fd(), end.link.name, &[("tx-checksum-ip-generic", false)])
            };
            inside(namespace, change).map_err(at("checksums of the virtual Ethernet pair"))?;
        }
        self.read_conditions();
        Ok(())
    }

    /// Reads the conditions again after the pair was changed, once its links are up.
    ///
    /// # Errors
    /// The links are not up within `READY_TIMEOUT`.
    pub(crate) fn update_conditions(&mut self) -> Result<(), HostError> {
        for (end, namespace) in [(&SENDER, &self.sender), (&REFLECTOR, &self.reflector)] {
            // Without IPv6, which a small MTU removes (RFC 8200, section 5).
            inside(namespace, || await_readiness(end, false)).map_err(at("waiting for the links"))?;
        }
        self.read_conditions();
        Ok(())
    }

    /// Moves the calling thread to the sender's namespace until the result is dropped.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn enter_sender(&self) -> Result<EnteredNamespace, HostError> {
        EnteredNamespace::enter(&self.sender).map_err(at("entering the sender's namespace"))
    }

    /// Moves the calling thread to the reflector's namespace until the result is dropped. A reflector that is started
    /// meanwhile runs there.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn enter_reflector(&self) -> Result<EnteredNamespace, HostError> {
        EnteredNamespace::enter(&self.reflector).map_err(at("entering the reflector's namespace"))
    }

    pub const fn sender_ipv4(&self) -> IpAddr {
        IpAddr::V4(SENDER.ipv4)
    }

    pub const fn reflector_ipv4(&self) -> IpAddr {
        IpAddr::V4(REFLECTOR.ipv4)
    }

    /// The reflector's IPv6 address; `None` on a host without IPv6.
    pub fn reflector_ipv6(&self) -> Option<IpAddr> {
        self.ipv6.then_some(IpAddr::V6(REFLECTOR.ipv6))
    }

    /// The interfaces of the pair, each in its namespace, for a path over IPv6 or IPv4.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn path(&self, over_ipv6: bool) -> Result<PathInterfaces, HostError> {
        let interface = |end: &End, namespace: &File| -> io::Result<NetnsInterface> {
            Ok(NetnsInterface {
                interface: end.link.name.to_owned(),
                namespace: Some(Arc::new(namespace.try_clone()?)),
            })
        };
        let path = || -> io::Result<PathInterfaces> {
            Ok(PathInterfaces {
                local: Some(interface(&SENDER, &self.sender)?),
                peer: Some(interface(&REFLECTOR, &self.reflector)?),
                host_namespace: Some(Arc::new(current_namespace()?)),
                one_host: true,
                over_ipv6,
            })
        };
        path().map_err(at("descriptors of the namespaces"))
    }

    /// Conditions of the pair for the manifest: whether checksums are offloaded to a device that never computes them.
    pub const fn conditions(&self) -> &BTreeMap<String, String> {
        &self.conditions
    }
}

fn at(step: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::Lab { step, source }
}

/// Brings one end up; returns whether it has IPv6.
fn configure(own: &End, other: &End) -> io::Result<bool> {
    let mut route = RouteSocket::open()?;
    route.set_up(LOOPBACK)?;
    // On a host without IPv6 this fails, and there are no addresses to disable.
    let _ = route.disable_automatic_addresses(own.link.index);
    route.set_up(own.link.index)?;
    route.add_address(own.link.index, own.ipv4.into(), 30)?;
    route.add_neighbour(own.link.index, other.ipv4.into(), other.link.hardware)?;
    let ipv6 = route
        .add_address(own.link.index, own.ipv6.into(), 64)
        .and_then(|()| route.add_neighbour(own.link.index, other.ipv6.into(), other.link.hardware));
    Ok(ipv6.is_ok())
}

/// Waits until the end sends and receives.
///
/// Both begin later than the answers to the requests that set a link up and add an address. The kernel updates the carrier
/// of the end that was set up first in a work queue, and until then that end drops its packets; an IPv6 address becomes
/// local in another work queue, also without duplicate address detection.
fn await_readiness(own: &End, ipv6: bool) -> io::Result<()> {
    let mut route = RouteSocket::open()?;
    let deadline = Instant::now() + READY_TIMEOUT;
    while !(route.is_running(own.link.index)? && (!ipv6 || route.is_local(own.ipv6.into())?)) {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    // The state of the link changes shortly before its queue is attached, but both under one lock, which this takes.
    route.set_up(own.link.index)
}

fn offloads_checksum(interface: &str) -> io::Result<bool> {
    let socket = socket::udp(AddressFamily::Ipv4)?;
    ethtool::offloads_tx_checksum(socket.as_fd(), interface)
}

fn checksum_condition(end: &str, offloaded: io::Result<bool>) -> (String, String) {
    let value = match offloaded {
        Ok(true) => "on".to_owned(),
        Ok(false) => "off".to_owned(),
        Err(error) => format!("unknown: {}", latlab_sys::errno::explain(&error)),
    };
    (format!("lab.{end}.offload.tx-checksum"), value)
}
