//! The interface of the path, and the limits of sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use latlab_sys::address::Family;
use latlab_sys::errno::explain;
use latlab_sys::{interface as driver, socket};

use super::known::FactReader;
use super::{Interface, NOT_THIS_HOST};
use crate::facts::{Channels, Coalescing, Driver, InterfaceFacts, NetworkFacts, RingSizes, Stamping};
use crate::host::root::HostRoot;
use crate::host::route_socket::RouteSocket;

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
    let described = known.fact("network.interface", || match root.is_live() {
        true => describe(interface).map_err(|error| explain(&error)),
        false => Err(NOT_THIS_HOST.into()),
    });
    NetworkFacts { interface: described.map(|facts| ask_driver(facts, known)), ..limits }
}

/// What the kernel says of `interface`. Asked by socket and not in sysfs, which shows the namespace that it
/// was mounted in: a thread in the lab would be told of the host's interfaces.
fn describe(interface: Interface<'_>) -> io::Result<InterfaceFacts> {
    let mut kernel = RouteSocket::open()?;
    let index = match interface {
        Interface::Named(name) => return kernel.interface_named(name),
        Interface::Towards { local, peer } => kernel.interface_towards(local, peer)?,
        Interface::Holding(address) => kernel.interface_holding(address)?,
        Interface::OfDefaultRoute => {
            // Addresses for documentation (RFC 5737, RFC 3849): nobody has a route of its own to them.
            let (ipv4, ipv6) = (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
            let outwards = kernel.interface_towards(None, ipv4.into());
            let outwards = outwards.or_else(|_| kernel.interface_towards(None, ipv6.into()));
            outwards.or_else(|_| kernel.interface_towards(None, Ipv4Addr::LOCALHOST.into()))?
        }
    };
    kernel.interface_at(index)
}

/// Adds what the driver says.
fn ask_driver(facts: InterfaceFacts, known: &mut FactReader) -> InterfaceFacts {
    let field = |name: &str| format!("network.interface.{name}");
    if facts.kind.is_none() {
        known.lacks(field("kind"), "only virtual interfaces have one: this is a device, or loopback");
    }
    // Any socket will do: it only says in which namespace the name is meant.
    let opened = socket::udp(Family::Ipv4).or_else(|_| socket::udp(Family::Ipv6));
    let Some(socket) = known.fact(&field("driver"), || opened.map_err(|error| explain(&error))) else { return facts };
    let name = facts.name.clone();
    let from = Asked { socket: socket.as_fd(), name: &name };
    InterfaceFacts {
        driver: known.fact(&field("driver"), || from.answer(driver::driver).map(driven)),
        speed_mbit_per_s: known.fact(&field("speed_mbit_per_s"), || {
            from.answer(driver::speed_mbit_per_s)?.ok_or_else(|| "the driver states none".into())
        }),
        ring: known.fact(&field("ring"), || from.answer(driver::ring).map(ring)),
        coalescing: known.fact(&field("coalescing"), || from.answer(driver::coalescing).map(coalescing)),
        channels: known.fact(&field("channels"), || {
            let (receive, transmit, combined) = from.answer(driver::channels)?;
            Ok(Channels { receive, transmit, combined })
        }),
        stamping: known.fact(&field("stamping"), || from.answer(driver::stamping).map(stamping)),
        offloads: known.fact(&field("offloads"), || from.answer(driver::features).map(offloads)),
        ..facts
    }
}

/// An interface that can be asked.
struct Asked<'a> {
    socket: BorrowedFd<'a>,
    name: &'a str,
}

impl Asked<'_> {
    fn answer<T>(&self, question: impl FnOnce(BorrowedFd<'_>, &str) -> io::Result<T>) -> Result<T, String> {
        question(self.socket, self.name).map_err(|error| explain(&error))
    }
}

fn driven(told: driver::Driver) -> Driver {
    Driver { name: told.name, version: told.version, firmware: told.firmware, bus: told.bus }
}

fn ring(told: driver::Ring) -> RingSizes {
    RingSizes {
        receive: told.receive,
        receive_maximum: told.receive_maximum,
        transmit: told.transmit,
        transmit_maximum: told.transmit_maximum,
    }
}

fn coalescing(told: driver::Coalescing) -> Coalescing {
    Coalescing {
        receive_us: told.receive_us,
        receive_frames: told.receive_frames,
        transmit_us: told.transmit_us,
        transmit_frames: told.transmit_frames,
        adaptive_receive: told.adaptive_receive,
        adaptive_transmit: told.adaptive_transmit,
    }
}

fn stamping(told: driver::Stamping) -> Stamping {
    Stamping {
        transmit_software: told.transmit_software,
        receive_software: told.receive_software,
        transmit_hardware: told.transmit_hardware,
        receive_hardware: told.receive_hardware,
    }
}

/// Features that are off and cannot be switched on are most of them, and say nothing.
fn offloads(told: Vec<driver::Feature>) -> BTreeMap<String, bool> {
    let possible = told.into_iter().filter(|feature| feature.active || feature.changeable);
    possible.map(|feature| (feature.name, feature.active)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn loopback_is_described_and_what_it_lacks_has_a_reason() {
        let mut known = FactReader::from(Instant::now());
        let facts = read(&HostRoot::live(), Interface::Named("lo"), &mut known);
        let lo = facts.interface.expect("loopback");
        assert_eq!(lo.name, "lo");
        assert!(lo.mtu_bytes.is_some() && lo.qdisc.is_some(), "{lo:?}");
        assert!(lo.offloads.is_some_and(|offloads| offloads.contains_key("tx-tcp-segmentation")));
        let reasons = known.reasons();
        assert_eq!((lo.ring, &*reasons["network.interface.ring"]), (None, "operation not supported (EOPNOTSUPP)"));
        assert_eq!((lo.kind, reasons["network.interface.kind"].contains("loopback")), (None, true));
    }

    #[test]
    fn the_path_to_loopback_leads_through_it() {
        let mut known = FactReader::from(Instant::now());
        let peer = Ipv4Addr::LOCALHOST.into();
        let facts = read(&HostRoot::live(), Interface::Towards { local: None, peer }, &mut known);
        assert_eq!(facts.interface.expect("loopback").name, "lo");
        assert!(read(&HostRoot::live(), Interface::OfDefaultRoute, &mut known).interface.is_some());
        let absent = read(&HostRoot::live(), Interface::Named("no-such-device"), &mut known);
        assert_eq!(absent.interface, None);
        assert!(known.reasons()["network.interface"].contains("ENODEV"));
    }
}
