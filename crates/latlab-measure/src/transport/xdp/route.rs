//! The way of packets to a peer below the network stack: the interface, and the hardware address of the next hop, from the
//! kernel's tables.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::headers::Hardware;
use crate::platform::RouteSocket;
use crate::transport::error::TransportError;

/// The kernel gives up to resolve an address after three requests, one a second.
const RESOLUTION_TIMEOUT: Duration = Duration::from_secs(3);
const RESOLUTION_STEP: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EthernetInterface {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) hardware: Hardware,
    pub(super) mtu_bytes: u32,
    /// One end of a virtual Ethernet pair.
    pub(super) is_veth: bool,
}

/// The interface towards `peer` from `local`, and the hardware address of the next hop.
pub(super) fn towards(local: IpAddr, peer: SocketAddr) -> Result<(EthernetInterface, Hardware), TransportError> {
    let refused = |source| TransportError::Connect { peer, source };
    let mut kernel = RouteSocket::open().map_err(refused)?;
    let (index, gateway) = kernel.next_hop(Some(local), peer.ip()).map_err(refused)?;
    let interface = described(&mut kernel, index).map_err(refused)?;
    let hop = gateway.unwrap_or(peer.ip());
    let hardware = resolved(&mut kernel, &interface, hop, local).map_err(refused)?;
    Ok((interface, hardware))
}

/// The kernel takes no packet from 127.0.0.0/8 that comes from a device.
pub(super) fn refuse_ipv4_loopback(local: IpAddr) -> Result<(), TransportError> {
    if local.is_ipv4() && local.is_loopback() { Err(TransportError::XdpLoopback { local }) } else { Ok(()) }
}

/// The interface that has `address`.
pub(super) fn holding(address: IpAddr) -> io::Result<EthernetInterface> {
    let mut kernel = RouteSocket::open()?;
    let index = kernel.interface_holding(address)?;
    described(&mut kernel, index)
}

fn described(kernel: &mut RouteSocket, index: u32) -> io::Result<EthernetInterface> {
    let facts = kernel.interface_at(index)?;
    let hardware = kernel.hardware_of(&facts.name)?;
    let hardware =
        Hardware::try_from(hardware).map_err(|_| io::Error::other("the interface has no Ethernet address"))?;
    let mtu_bytes = facts.mtu_bytes.ok_or_else(|| io::Error::other("the interface has no MTU"))?;
    let is_veth = facts.kind.as_deref() == Some("veth");
    Ok(EthernetInterface { name: facts.name, index, hardware, mtu_bytes, is_veth })
}

/// The hardware address of `hop`, which the kernel is made to ask for if it does not know it.
fn resolved(
    kernel: &mut RouteSocket,
    interface: &EthernetInterface,
    hop: IpAddr,
    local: IpAddr,
) -> io::Result<Hardware> {
    if local.is_loopback() {
        return Ok(interface.hardware);
    }
    let deadline = Instant::now() + RESOLUTION_TIMEOUT;
    loop {
        if let Some(hardware) = kernel.neighbour(interface.index, hop)? {
            return Hardware::try_from(hardware).map_err(|_| io::Error::other("the next hop has no Ethernet address"));
        }
        if Instant::now() > deadline {
            return Err(io::Error::from(rustix::io::Errno::HOSTUNREACH));
        }
        kernel.resolve_neighbour(interface.index, hop)?;
        sleep(RESOLUTION_STEP);
    }
}
