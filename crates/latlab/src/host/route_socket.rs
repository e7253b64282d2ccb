//! Links, addresses and neighbours of the calling thread's network namespace
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
    LinkMessage, State,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Loopback has this index in every namespace.
pub(super) const LOOPBACK: u32 = 1;

/// What stands before each message of netlink(7).
const NETLINK_HEADER_BYTES: usize = 16;

/// One end of a virtual Ethernet pair, as it shall be.
pub(super) struct VethEnd {
    /// Name of the interface.
    pub(super) name: &'static str,
    /// Its index, chosen by us so that nobody has to ask.
    pub(super) index: u32,
    /// Its hardware address.
    pub(super) hardware: [u8; 6],
}

/// A question-and-answer socket to the kernel's network configuration.
pub(super) struct RouteSocket {
    socket: Socket,
    sequence: u32,
}

impl RouteSocket {
    /// Opens one in the calling thread's namespace.
    pub(super) fn open() -> io::Result<RouteSocket> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(RouteSocket { socket, sequence: 0 })
    }

    /// Makes a virtual Ethernet pair: one end here, the other in the namespace `elsewhere`.
    pub(super) fn make_veth(&mut self, here: &VethEnd, there: &VethEnd, elsewhere: BorrowedFd<'_>) -> io::Result<()> {
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
        self.ask(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Keeps the kernel from giving the link an IPv6 address of its own, and so from announcing it.
    pub(super) fn forbid_own_addresses(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        let none = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        message.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![none])])];
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Switches a link on.
    pub(super) fn raise(&mut self, index: u32) -> io::Result<()> {
        let mut message = link(index);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a link an address, valid at once (no duplicate address detection).
    pub(super) fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Tells where `address` lives, for ever, so that nobody has to ask while a run goes on.
    pub(super) fn add_neighbour(&mut self, index: u32, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(hardware.to_vec()),
        ];
        self.ask(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Whether the kernel has taken note that the link carries.
    pub(super) fn is_running(&mut self, index: u32) -> io::Result<bool> {
        match self.exchange(RouteNetlinkMessage::GetLink(link(index)), 0)? {
            Some(RouteNetlinkMessage::NewLink(answer)) => {
                Ok(answer.attributes.contains(&LinkAttribute::OperState(State::Up)))
            }
            _ => Ok(false),
        }
    }

    /// Whether the kernel takes datagrams to `address` for this namespace.
    pub(super) fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        match self.exchange(RouteNetlinkMessage::GetRoute(route_to(address)), 0)? {
            Some(RouteNetlinkMessage::NewRoute(answer)) => Ok(answer.header.kind == RouteType::Local),
            _ => Ok(false),
        }
    }

    /// The interface through which datagrams to `address` leave; none where the kernel names none.
    pub(super) fn interface_to(&mut self, address: IpAddr) -> io::Result<Option<String>> {
        let index = match self.exchange(RouteNetlinkMessage::GetRoute(route_to(address)), 0)? {
            Some(RouteNetlinkMessage::NewRoute(answer)) => answer
                .attributes
                .iter()
                .find_map(|attribute| if let RouteAttribute::Oif(index) = attribute { Some(*index) } else { None }),
            _ => None,
        };
        let Some(index) = index else { return Ok(None) };
        match self.exchange(RouteNetlinkMessage::GetLink(link(index)), 0)? {
            Some(RouteNetlinkMessage::NewLink(answer)) => Ok(answer
                .attributes
                .into_iter()
                .find_map(|attribute| if let LinkAttribute::IfName(name) = attribute { Some(name) } else { None })),
            _ => Ok(None),
        }
    }

    /// Asks, and waits for the kernel's yes or no.
    fn ask(&mut self, question: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(question, NLM_F_ACK | flags).map(drop)
    }

    /// Asks, and waits for the answer; none where the answer is a plain yes.
    pub(super) fn exchange(
        &mut self,
        question: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(question, flags)?;
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

    /// Asks for everything of a kind; several answers come in one datagram.
    pub(super) fn list(&mut self, question: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(question, NLM_F_DUMP)?;
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

    fn send(&mut self, question: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(question));
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }
}

pub(super) fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn route_to(address: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
    message.attributes = vec![RouteAttribute::Destination(address.into())];
    message
}

pub(super) const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
