//! Where network knobs are turned: the interfaces of the measured path, each in its network namespace.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use super::lab;
use super::route_socket::RouteSocket;
use crate::plan::Side;

/// An interface of the path.
#[derive(Clone, Debug)]
pub(super) struct NetnsInterface {
    pub(super) interface: String,
    /// Its namespace; none: that of the calling thread.
    pub(super) network: Option<Arc<File>>,
}

/// The ends of a path as far as they can be set from here.
#[derive(Clone, Debug, Default)]
pub struct PathInterfaces {
    /// None where nobody knows the way.
    pub(super) local: Option<NetnsInterface>,
    /// None where it is this same interface, or not ours.
    pub(super) peer: Option<NetnsInterface>,
    /// The host's own namespace, where the calling thread will leave it meanwhile.
    pub(super) home: Option<Arc<File>>,
    /// Whether both ends are on this host.
    pub(super) one_host: bool,
    /// Whether the path of a lab is IPv6.
    pub(super) over_ipv6: bool,
}

impl PathInterfaces {
    /// Both ends on loopback.
    pub fn loopback() -> PathInterfaces {
        let local = Some(NetnsInterface { interface: "lo".into(), network: None });
        PathInterfaces { local, one_host: true, ..PathInterfaces::default() }
    }

    /// This end of the path to `address`, through `interface` where one was named, else as the kernel routes.
    pub fn towards(address: IpAddr, interface: Option<&str>) -> PathInterfaces {
        let routed = || RouteSocket::open()?.interface_to(address);
        let named = interface.map(str::to_owned).or_else(|| routed().ok().flatten());
        PathInterfaces {
            local: named.map(|interface| NetnsInterface { interface, network: None }),
            ..PathInterfaces::default()
        }
    }

    /// The spots of `ends`, each once.
    pub(super) fn spots(&self, ends: Side) -> Vec<(Side, NetnsInterface)> {
        let near = self.local.iter().filter(|_| ends.is_local() || (self.peer.is_none() && self.one_host));
        let far = self.peer.iter().filter(|_| ends.is_peer());
        let near = near.map(|spot| (Side::Local, spot.clone()));
        near.chain(far.map(|spot| (Side::Peer, spot.clone()))).collect()
    }
}

/// Does `work` in the namespace `network`, or where the calling thread is.
pub(super) fn within<T: Send>(
    network: Option<&Arc<File>>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    match network {
        Some(place) => lab::inside(place, work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_loopback_is_loopback() {
        let ground = PathInterfaces::towards([127, 0, 0, 1].into(), None);
        assert_eq!(ground.local.map(|spot| spot.interface).as_deref(), Some("lo"));
        let named = PathInterfaces::towards([127, 0, 0, 1].into(), Some("eth7"));
        assert_eq!(named.local.map(|spot| spot.interface).as_deref(), Some("eth7"));
    }

    #[test]
    fn one_interface_is_turned_once() {
        for side in Side::ALL {
            assert_eq!(PathInterfaces::loopback().spots(side).len(), 1, "{side}");
        }
        let spot = |name: &str| Some(NetnsInterface { interface: name.into(), network: None });
        let pair = PathInterfaces { local: spot("a"), peer: spot("b"), home: None, one_host: true, over_ipv6: false };
        let names = |side| pair.spots(side).into_iter().map(|(_, spot)| spot.interface).collect::<Vec<_>>();
        assert_eq!(
            (names(Side::Local), names(Side::Peer), names(Side::Both)),
            (vec!["a".into()], vec!["b".into()], vec!["a".into(), "b".into()])
        );
        assert!(PathInterfaces::default().spots(Side::Local).is_empty());
    }
}
