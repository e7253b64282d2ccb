//! The network configuration of the calling thread's namespace: links, addresses, neighbours and routes
//! ([rtnetlink(7)](https://man7.org/linux/man-pages/man7/rtnetlink.7.html)).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage, LinkXdp, State,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::facts::InterfaceFacts;

/// Loopback has this index in every namespace.
pub const LOOPBACK: u32 = 1;

/// The header of each message of netlink(7).
const NETLINK_HEADER_BYTES: usize = 16;

/// The specification of one end of a virtual Ethernet pair.
pub struct VethEnd {
    pub name: &'static str,
    /// Given by the caller, which then need not look it up.
    pub index: u32,
    pub hardware: [u8; 6],
}

/// A netlink socket to the kernel for messages of `protocol`.
pub(super) fn kernel_socket(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// A netlink socket for requests to the kernel's network configuration.
pub struct RouteSocket {
    socket: Socket,
    sequence: u32,
}

impl RouteSocket {
    pub fn open() -> io::Result<RouteSocket> {
        Ok(RouteSocket { socket: kernel_socket(NETLINK_ROUTE)?, sequence: 0 })
    }

    /// Creates a virtual Ethernet pair: one end here, the other in the namespace `elsewhere`.
    pub fn make_veth(&mut self, here: &VethEnd, there: &VethEnd, elsewhere: BorrowedFd<'_>) -> io::Result<()> {
        let mut far = link(there.index);
        far.attributes = vec![
            LinkAttribute::IfName(there.name.into()),
            LinkAttribute::Address(there.hardware.to_vec()),
            LinkAttribute::NetNsFd(elsewhere.as_raw_fd()),
        ];
        let mut near = link(here.index);
        near.attributes = vec![
            LinkAttribute::IfName(here.name.into()),
            LinkAttribute::Address(here.hardware.to_vec()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
            ]),
        ];
        self.request(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Disables the IPv6 address that the kernel would give the link and announce.
    pub fn disable_automatic_addresses(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        let none = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        message.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![none])])];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds an address to a link, valid at once (no duplicate address detection).
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a permanent neighbour entry for `address`, so that no address resolution disturbs a run.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
        let mut message = neighbour_of(index, address);
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(hardware.to_vec()));
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Whether the kernel has registered the carrier of the link.
    pub fn is_running(&mut self, index: u32) -> io::Result<bool> {
        Ok(self.get_link(link(index))?.attributes.contains(&LinkAttribute::OperState(State::Up)))
    }

    /// Whether `address` is local to this namespace.
    pub fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        match self.exchange(RouteNetlinkMessage::GetRoute(route_to(address)), 0)? {
            Some(RouteNetlinkMessage::NewRoute(answer)) => Ok(answer.header.kind == RouteType::Local),
            _ => Ok(false),
        }
    }

    /// The index of the interface through which datagrams to `peer` leave, from `local` if given.
    pub fn interface_towards(&mut self, local: Option<IpAddr>, peer: IpAddr) -> io::Result<u32> {
        self.next_hop(local, peer).map(|(index, _)| index)
    }

    /// As [`RouteSocket::interface_towards`], with the address of the router, if there is one.
    pub fn next_hop(&mut self, local: Option<IpAddr>, peer: IpAddr) -> io::Result<(u32, Option<IpAddr>)> {
        let mut message = route_to(peer);
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
        let index = index.ok_or_else(|| io::Error::other("the route leads through no interface"))?;
        let router = answer.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet(router)) => Some(IpAddr::V4(*router)),
            RouteAttribute::Gateway(RouteAddress::Inet6(router)) => Some(IpAddr::V6(*router)),
            _ => None,
        });
        Ok((index, router))
    }

    /// The hardware address of `address` on the link `index`; `None` if the kernel does not know it (now).
    pub fn neighbour(&mut self, index: u32, address: IpAddr) -> io::Result<Option<Vec<u8>>> {
        let request = RouteNetlinkMessage::GetNeighbour(neighbour_of(index, address));
        let found = match self.exchange(request, 0) {
            Ok(Some(RouteNetlinkMessage::NewNeighbour(found))) => found,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if matches!(found.header.state, NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None) {
            return Ok(None);
        }
        Ok(found.attributes.into_iter().find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(hardware) => Some(hardware),
            _ => None,
        }))
    }

    /// Makes the kernel ask for the hardware address of `address` on the link `index`.
    pub fn resolve_neighbour(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = neighbour_of(index, address);
        message.header.flags = NeighbourFlags::Use;
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE)
    }

    /// The index of the interface that has `address`; if none has it, as of all but one of 127.0.0.0/8, the one that leads
    /// to it.
    pub fn interface_holding(&mut self, address: IpAddr) -> io::Result<u32> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        let has_it = |found: &AddressMessage| {
            let is_it = |attribute: &AddressAttribute| match attribute {
                AddressAttribute::Local(own) | AddressAttribute::Address(own) => *own == address,
                _ => false,
            };
            // On a point-to-point link the other address is that of the peer.
            let local = found.attributes.iter().find(|attribute| matches!(attribute, AddressAttribute::Local(_)));
            local.map_or_else(|| found.attributes.iter().any(is_it), is_it)
        };
        let answers = self.list(RouteNetlinkMessage::GetAddress(message))?;
        let holding = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(found) if has_it(&found) => Some(found.header.index),
            _ => None,
        });
        holding.map_or_else(|| self.interface_towards(None, address), Ok)
    }

    pub fn interface_at(&mut self, index: u32) -> io::Result<InterfaceFacts> {
        self.get_link(link(index)).map(interface_facts)
    }

    pub fn interface_named(&mut self, name: &str) -> io::Result<InterfaceFacts> {
        self.get_link(link_named(name)).map(interface_facts)
    }

    /// The hardware address of the interface of that name; empty if it has none.
    pub fn hardware_of(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let hardware = self.get_link(link_named(name))?.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => Some(bytes),
            _ => None,
        });
        Ok(hardware.unwrap_or_default())
    }

    fn get_link(&mut self, message: LinkMessage) -> io::Result<LinkMessage> {
        match self.exchange(RouteNetlinkMessage::GetLink(message), 0)? {
            Some(RouteNetlinkMessage::NewLink(answer)) => Ok(answer),
            _ => Err(io::Error::other("the kernel describes no interface")),
        }
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_ACK | flags).map(drop)
    }

    /// Sends a request and waits for the reply; `None` for a plain acknowledgement.
    fn exchange(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(message, flags)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::InnerMessage(content) => Ok(Some(content)),
                NetlinkPayload::Error(verdict) if verdict.code.is_some() => Err(verdict.to_io()),
                _ => Ok(None),
            };
        }
    }

    /// Requests a dump; one datagram may hold several messages of it.
    fn list(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_DUMP)?;
        let mut found = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                // Messages begin at multiples of four bytes (netlink(7)); one without length would never end.
                let length = (answer.header.length as usize).max(NETLINK_HEADER_BYTES).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(content) => found.push(content),
                    NetlinkPayload::Error(verdict) if verdict.code.is_some() => return Err(verdict.to_io()),
                    NetlinkPayload::Done(_) => return Ok(found),
                    _ => {}
                }
            }
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }
}

fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn link_named(name: &str) -> LinkMessage {
    let mut message = link(0);
    message.attributes = vec![LinkAttribute::IfName(name.into())];
    message
}

fn interface_facts(link: LinkMessage) -> InterfaceFacts {
    let mut facts = InterfaceFacts::default();
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => facts.name = name,
            LinkAttribute::Mtu(bytes) => facts.mtu_bytes = Some(bytes),
            LinkAttribute::Qdisc(kind) => facts.qdisc = Some(kind),
            LinkAttribute::TxQueueLen(packets) => facts.transmit_queue_packets = Some(packets),
            LinkAttribute::OperState(state) => facts.state = Some(word(state)),
            LinkAttribute::LinkInfo(about) => facts.kind = about.iter().find_map(kind),
            LinkAttribute::Xdp(about) => facts.xdp_program = about.iter().find_map(program),
            _ => {}
        }
    }
    facts
}

fn program(about: &LinkXdp) -> Option<u32> {
    match about {
        LinkXdp::ProgId(number) => Some(*number),
        _ => None,
    }
}

fn route_to(address: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.destination_prefix_length = bits(address);
    message.attributes = vec![RouteAttribute::Destination(address.into())];
    message
}

fn neighbour_of(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index;
    message.attributes = vec![NeighbourAttribute::Destination(address.into())];
    message
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
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
    fn loopback_is_found_by_route_address_and_name() {
        let mut socket = RouteSocket::open().expect("needs no privilege");
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
