//! Which interface a path leaves through, and what the kernel says about it
//! ([rtnetlink(7)](https://man7.org/linux/man-pages/man7/rtnetlink.7.html)). Questions only.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, State};
use netlink_packet_route::route::{RouteAttribute, RouteMessage};

use super::route_socket::{RouteSocket, family, link};
use crate::facts::InterfaceFacts;

impl RouteSocket {
    /// The index of the interface through which datagrams to `peer` leave, from `local` where that is given.
    /// Nothing is sent: the kernel looks into its tables.
    pub(super) fn interface_towards(&mut self, local: Option<IpAddr>, peer: IpAddr) -> io::Result<u32> {
        let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
        let mut message = RouteMessage::default();
        message.header.address_family = family(peer);
        message.header.destination_prefix_length = bits(peer);
        message.attributes = vec![RouteAttribute::Destination(peer.into())];
        if let Some(local) = local.filter(|local| !local.is_unspecified() && local.is_ipv4() == peer.is_ipv4()) {
            message.header.source_prefix_length = bits(local);
            message.attributes.push(RouteAttribute::Source(local.into()));
        }
        let Some(RouteNetlinkMessage::NewRoute(answer)) = self.exchange(RouteNetlinkMessage::GetRoute(message), 0)?
        else {
            return Err(io::Error::other("the kernel names no route"));
        };
        let index = answer.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Oif(index) => Some(*index),
            _ => None,
        });
        index.ok_or_else(|| io::Error::other("the route leads through no interface"))
    }

    /// The index of the interface that has `address`; where none has it, as all but one of 127.0.0.0/8, the one that
    /// leads to it.
    pub(super) fn interface_holding(&mut self, address: IpAddr) -> io::Result<u32> {
        let mut question = AddressMessage::default();
        question.header.family = family(address);
        let has_it = |found: &AddressMessage| {
            let is_it = |attribute: &AddressAttribute| match attribute {
                AddressAttribute::Local(own) | AddressAttribute::Address(own) => *own == address,
                _ => false,
            };
            // Where there is a local address the other one is that of a far end.
            let local = found.attributes.iter().find(|attribute| matches!(attribute, AddressAttribute::Local(_)));
            local.map_or_else(|| found.attributes.iter().any(is_it), is_it)
        };
        let answers = self.list(RouteNetlinkMessage::GetAddress(question))?;
        let holding = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(found) if has_it(&found) => Some(found.header.index),
            _ => None,
        });
        holding.map_or_else(|| self.interface_towards(None, address), Ok)
    }

    /// What the kernel says about the interface with that index.
    pub(super) fn interface_at(&mut self, index: u32) -> io::Result<InterfaceFacts> {
        self.interface(RouteNetlinkMessage::GetLink(link(index)))
    }

    /// What the kernel says about the interface of that name.
    pub(super) fn interface_named(&mut self, name: &str) -> io::Result<InterfaceFacts> {
        let mut message = link(0);
        message.attributes = vec![LinkAttribute::IfName(name.into())];
        self.interface(RouteNetlinkMessage::GetLink(message))
    }

    /// The hardware address of the interface of that name; empty where it has none.
    pub(super) fn hardware_of(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let mut message = link(0);
        message.attributes = vec![LinkAttribute::IfName(name.into())];
        let Some(RouteNetlinkMessage::NewLink(answer)) = self.exchange(RouteNetlinkMessage::GetLink(message), 0)?
        else {
            return Err(io::Error::other("the kernel describes no interface"));
        };
        let hardware = answer.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => Some(bytes),
            _ => None,
        });
        Ok(hardware.unwrap_or_default())
    }

    fn interface(&mut self, question: RouteNetlinkMessage) -> io::Result<InterfaceFacts> {
        let Some(RouteNetlinkMessage::NewLink(answer)) = self.exchange(question, 0)? else {
            return Err(io::Error::other("the kernel describes no interface"));
        };
        let mut facts = InterfaceFacts::default();
        for attribute in answer.attributes {
            match attribute {
                LinkAttribute::IfName(name) => facts.name = name,
                LinkAttribute::Mtu(bytes) => facts.mtu_bytes = Some(bytes),
                LinkAttribute::Qdisc(kind) => facts.qdisc = Some(kind),
                LinkAttribute::TxQueueLen(packets) => facts.transmit_queue_packets = Some(packets),
                LinkAttribute::OperState(state) => facts.state = Some(word(state)),
                LinkAttribute::LinkInfo(about) => facts.kind = about.iter().find_map(kind),
                _ => {}
            }
        }
        Ok(facts)
    }
}

/// The state in the words of `ip link` and sysfs.
fn word(state: State) -> String {
    match state {
        State::NotPresent => "notpresent".into(),
        State::Down => "down".into(),
        State::LowerLayerDown => "lowerlayerdown".into(),
        State::Testing => "testing".into(),
        State::Dormant => "dormant".into(),
        State::Up => "up".into(),
        _ => "unknown".into(),
    }
}

fn kind(about: &LinkInfo) -> Option<String> {
    match about {
        LinkInfo::Kind(InfoKind::Other(name)) => Some(name.clone()),
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_by_path_and_by_name() {
        let mut socket = RouteSocket::open().expect("a route socket needs no right");
        for peer in ["127.0.0.1", "127.0.0.9"] {
            let peer = peer.parse().expect("an address");
            let index = socket.interface_towards(Some(peer), peer).expect("a route");
            assert_eq!(socket.interface_at(index).expect("loopback").name, "lo");
        }
        for held in ["127.0.0.1", "127.0.0.9"] {
            let index = socket.interface_holding(held.parse().expect("an address")).expect("it is ours");
            assert_eq!(socket.interface_at(index).expect("loopback").name, "lo", "{held}");
        }
        let facts = socket.interface_named("lo").expect("loopback");
        assert!(facts.mtu_bytes.is_some_and(|bytes| bytes >= 1_280) && facts.qdisc.is_some(), "{facts:?}");
        assert!(socket.interface_named("no-such-device").is_err());
        assert_eq!(socket.hardware_of("lo").expect("loopback"), [0; 6]);
    }
}
