//! The interface of a path, and the limits of sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use latlab_sys::address::AddressFamily;
use latlab_sys::errno::explain;
use latlab_sys::{ethtool, socket};

use super::reader::{FactReader, NOT_THIS_HOST};
use crate::facts::{Channels, Coalescing, Driver, InterfaceFacts, NetworkFacts, RingSizes, Stamping, XdpAbilities};
use crate::host::root::HostRoot;
use crate::platform::{DeviceAbilities, RouteSocket, XdpFeatures};

/// The interface whose facts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface<'a> {
    Named(&'a str),
    /// The one through which datagrams to `peer` leave.
    Towards {
        /// The address that they are sent from, if known.
        local: Option<IpAddr>,
        /// The address that they are sent to.
        peer: IpAddr,
    },
    /// The one that has this address.
    Holding(IpAddr),
    /// The one of the default route, or loopback without one.
    OfDefaultRoute,
}

pub(super) fn read(root: &HostRoot, interface: Interface<'_>, known: &mut FactReader) -> NetworkFacts {
    let mut limit = |field: &str, file: &str| {
        known.fact(&format!("network.{field}"), || root.number(&format!("proc/sys/net/core/{file}")))
    };
    let limits = NetworkFacts {
        interface: None,
        receive_buffer_maximum_bytes: limit("receive_buffer_maximum_bytes", "rmem_max"),
        receive_buffer_default_bytes: limit("receive_buffer_default_bytes", "rmem_default"),
        send_buffer_maximum_bytes: limit("send_buffer_maximum_bytes", "wmem_max"),
        send_buffer_default_bytes: limit("send_buffer_default_bytes", "wmem_default"),
        backlog_packets: limit("backlog_packets", "netdev_max_backlog"),
        busy_poll_us: limit("busy_poll_us", "busy_poll"),
        busy_read_us: limit("busy_read_us", "busy_read"),
    };
    let described = known.fact("network.interface", || {
        if root.is_live() {
            kernel_facts(interface).map_err(|error| explain(&error))
        } else {
            Err(NOT_THIS_HOST.into())
        }
    });
    NetworkFacts { interface: described.map(|facts| add_driver_facts(facts, known)), ..limits }
}

/// The facts of `interface` from the kernel. Read through a socket, since sysfs shows the namespace in which it was
/// mounted: a thread in the lab would read the host's interfaces.
fn kernel_facts(interface: Interface<'_>) -> io::Result<InterfaceFacts> {
    let mut kernel = RouteSocket::open()?;
    let index = match interface {
        Interface::Named(name) => return kernel.interface_named(name),
        Interface::Towards { local, peer } => kernel.interface_towards(local, peer)?,
        Interface::Holding(address) => kernel.interface_holding(address)?,
        Interface::OfDefaultRoute => {
            // Addresses for documentation (RFC 5737, RFC 3849), to which no host has a route of its own.
            let (ipv4, ipv6) = (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
            let outwards = kernel.interface_towards(None, ipv4.into());
            let outwards = outwards.or_else(|_| kernel.interface_towards(None, ipv6.into()));
            outwards.or_else(|_| kernel.interface_towards(None, Ipv4Addr::LOCALHOST.into()))?
        }
    };
    kernel.interface_at(index)
}

fn add_driver_facts(facts: InterfaceFacts, known: &mut FactReader) -> InterfaceFacts {
    let field = |name: &str| format!("network.interface.{name}");
    if facts.kind.is_none() {
        known.lacks(field("kind"), "only virtual interfaces have one: this is a device, or loopback");
    }
    if facts.xdp_program.is_none() {
        known.lacks(field("xdp_program"), "no program is attached");
    }
    // Any socket: it determines the namespace of the name.
    let opened = socket::udp(AddressFamily::Ipv4).or_else(|_| socket::udp(AddressFamily::Ipv6));
    let Some(socket) = known.fact(&field("driver"), || opened.map_err(|error| explain(&error))) else { return facts };
    let name = facts.name.clone();
    let from = DriverSource { socket: socket.as_fd(), name: &name };
    InterfaceFacts {
        driver: known.fact(&field("driver"), || from.answer(ethtool::driver).map(driven)),
        speed_mbit_per_s: known.fact(&field("speed_mbit_per_s"), || {
            from.answer(ethtool::speed_mbit_per_s)?.ok_or_else(|| "the driver states none".into())
        }),
        ring: known.fact(&field("ring"), || from.answer(ethtool::ring).map(ring)),
        coalescing: known.fact(&field("coalescing"), || from.answer(ethtool::coalesce).map(coalescing)),
        channels: known.fact(&field("channels"), || {
            let (receive, transmit, combined) = from.answer(ethtool::channels)?;
            Ok(Channels { receive, transmit, combined })
        }),
        stamping: known.fact(&field("stamping"), || from.answer(ethtool::stamping).map(stamping)),
        offloads: known.fact(&field("offloads"), || from.answer(ethtool::features).map(offloads)),
        xdp: xdp_abilities(known, &field("xdp"), &from),
        ..facts
    }
}

/// An interface whose driver can be asked.
struct DriverSource<'a> {
    socket: BorrowedFd<'a>,
    name: &'a str,
}

impl DriverSource<'_> {
    fn answer<T>(&self, question: impl FnOnce(BorrowedFd<'_>, &str) -> io::Result<T>) -> Result<T, String> {
        question(self.socket, self.name).map_err(|error| explain(&error))
    }
}

fn xdp_abilities(known: &mut FactReader, field: &str, from: &DriverSource<'_>) -> Option<XdpAbilities> {
    let index = rustix::net::netdevice::name_to_index(from.socket, from.name);
    let index = known.fact(field, || index.map_err(|error| explain(&error.into())))?;
    let abilities = known.fact(field, || match DeviceAbilities::open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("the kernel lists it since Linux 6.3".into()),
        opened => opened.map_err(|error| explain(&error)),
    })?;
    let XdpFeatures { native, zero_copy } =
        known.fact(field, || abilities.xdp(index).map_err(|error| explain(&error)))?;
    let field = format!("{field}.polled_queues");
    let queues = known.fact(&field, || abilities.polled_queues(index).map_err(|error| explain(&error))).flatten();
    let (polled_queues, defers_interrupts) = (queues.map(|of| of.count), queues.and_then(|of| of.defer_interrupts));
    Some(XdpAbilities { native, zero_copy, polled_queues, defers_interrupts })
}

fn driven(from: ethtool::DriverInfo) -> Driver {
    Driver { name: from.name, version: from.version, firmware: from.firmware, bus: from.bus }
}

fn ring(from: ethtool::Ring) -> RingSizes {
    RingSizes {
        receive: from.receive,
        receive_maximum: from.receive_maximum,
        transmit: from.transmit,
        transmit_maximum: from.transmit_maximum,
    }
}

fn coalescing(from: ethtool::Coalesce) -> Coalescing {
    Coalescing {
        receive_us: from.rx_usecs,
        receive_frames: from.rx_frames,
        transmit_us: from.tx_usecs,
        transmit_frames: from.tx_frames,
        adaptive_receive: from.adaptive_rx != 0,
        adaptive_transmit: from.adaptive_tx != 0,
    }
}

fn stamping(from: ethtool::TimestampInfo) -> Stamping {
    Stamping {
        transmit_software: from.transmit_software,
        receive_software: from.receive_software,
        transmit_hardware: from.transmit_hardware,
        receive_hardware: from.receive_hardware,
    }
}

/// Without features that are off and cannot be changed, which are most of them.
fn offloads(features: Vec<ethtool::Feature>) -> BTreeMap<String, bool> {
    let possible = features.into_iter().filter(|feature| feature.active || feature.changeable);
    possible.map(|feature| (feature.name, feature.active)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn loopback_has_facts_and_a_reason_for_each_null() {
        let mut known = FactReader::new(Instant::now());
        let facts = read(&HostRoot::live(), Interface::Named("lo"), &mut known);
        let lo = facts.interface.expect("loopback");
        assert_eq!(lo.name, "lo");
        assert!(lo.mtu_bytes.is_some() && lo.qdisc.is_some(), "{lo:?}");
        assert!(lo.offloads.is_some_and(|offloads| offloads.contains_key("tx-tcp-segmentation")));
        let reasons = known.reasons();
        assert_eq!((lo.ring, &*reasons["network.interface.ring"]), (None, "operation not supported (EOPNOTSUPP)"));
        assert_eq!((lo.kind, reasons["network.interface.kind"].contains("loopback")), (None, true));
    }
}
