//! Where a knob is, told from others of the same name or number: the kernel gives the inode of a namespace that is
//! gone to the next one, and an interface's name is whoever's comes next.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use latlab_sys::address::Family;
use latlab_sys::{namespace, socket};
use rustix::net::netdevice::{index_to_name, name_to_index};
use serde::{Deserialize, Serialize};

use super::knob::Knob;
use super::lab;
use super::route_socket::RouteSocket;

/// The network namespace and the interface of a knob. Part of an entry of the journal: a key that is absent there was
/// not known to the latlab that wrote it, and is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NetnsIdentity {
    /// The inode of the namespace, where the knob belongs to one.
    network: Option<u64>,
    /// What no other namespace of this boot shares (SO_NETNS_COOKIE, since Linux 5.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network_cookie: Option<u64>,
    /// The interface's number in its namespace; one that takes its name later has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface_index: Option<u32>,
    /// Its hardware address, where the kernel tells no cookie: numbers begin anew in each namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface_hardware: Option<Vec<u8>>,
}

impl NetnsIdentity {
    /// Of `knob`, in the calling thread's namespace.
    ///
    /// # Errors
    /// There is no such interface.
    pub(super) fn of(knob: &Knob) -> io::Result<NetnsIdentity> {
        if !knob.is_of_a_network() {
            return Ok(NetnsIdentity::default());
        }
        let network_cookie = own_cookie().ok();
        let place = NetnsIdentity { network: own_network().ok(), network_cookie, ..NetnsIdentity::default() };
        let Some(interface) = knob.interface() else { return Ok(place) };
        let interface_hardware = match network_cookie {
            Some(_) => None,
            None => Some(hardware_of(interface)?),
        };
        Ok(NetnsIdentity { interface_index: Some(index_of(interface)?), interface_hardware, ..place })
    }

    /// Whether both are of one namespace, or of none. For places that exist: of those inodes differ.
    pub(super) fn shares_network(&self, other: &NetnsIdentity) -> bool {
        self.network == other.network
    }

    /// Whether the calling thread is in that namespace.
    ///
    /// # Errors
    /// Nobody tells.
    pub(super) fn is_here(&self) -> io::Result<bool> {
        let Some(network) = self.network else { return Ok(true) };
        Ok(network == own_network()? && self.has_own_cookie()?)
    }

    fn has_own_cookie(&self) -> io::Result<bool> {
        match self.network_cookie {
            Some(cookie) => Ok(cookie == own_cookie()?),
            None => Ok(true),
        }
    }

    /// The namespace, where it has a name or an inhabitant.
    ///
    /// # Errors
    /// It cannot be entered to see whether it is that one.
    pub(super) fn find(&self) -> io::Result<Option<File>> {
        let entries = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        let named = entries(PathBuf::from("/run/netns")).map(|entry| entry.path());
        let threads = entries(PathBuf::from("/proc")).flat_map(|entry| entries(entry.path().join("task")));
        let inhabited = threads.map(|thread| thread.path().join("ns/net"));
        let is_it = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| Some(found.ino()) == self.network);
        let Some(place) = named.chain(inhabited).find(is_it).and_then(|path| File::open(path).ok()) else {
            return Ok(None);
        };
        Ok(lab::inside(&place, || self.has_own_cookie())?.then_some(place))
    }

    /// Whether the interface of `knob`, in the calling thread's namespace, is the one that was meant.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn has_interface_of(&self, knob: &Knob) -> io::Result<bool> {
        let Some(interface) = knob.interface() else { return Ok(true) };
        let same_index = match self.interface_index {
            Some(index) => index == index_of(interface)?,
            None => true,
        };
        let same_hardware = match &self.interface_hardware {
            Some(hardware) => *hardware == hardware_of(interface)?,
            None => true,
        };
        Ok(same_index && same_hardware)
    }
}

/// The inode of the calling thread's network namespace.
fn own_network() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|place| place.ino())
}

fn own_cookie() -> io::Result<u64> {
    namespace::network_cookie(socket::udp(Family::Ipv4)?.as_fd())
}

fn index_of(interface: &str) -> io::Result<u32> {
    Ok(name_to_index(socket::udp(Family::Ipv4)?, interface)?)
}

/// The name that the kernel shows for `interface`, which may be another one of its names.
pub(super) fn name_of(interface: &str) -> io::Result<String> {
    Ok(index_to_name(socket::udp(Family::Ipv4)?, index_of(interface)?)?)
}

fn hardware_of(interface: &str) -> io::Result<Vec<u8>> {
    RouteSocket::open()?.hardware_of(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> Knob {
        Knob::Mtu { interface: "lo".into() }
    }

    #[test]
    fn a_place_is_told_from_one_of_the_same_name_or_number() {
        let place = NetnsIdentity::of(&loopback()).expect("every namespace has one");
        assert!(place.is_here().expect("told") && place.has_interface_of(&loopback()).expect("there"));
        let younger = |change: fn(&mut NetnsIdentity)| {
            let mut place = place.clone();
            change(&mut place);
            place
        };
        if place.network_cookie.is_some() {
            let namesake = younger(|place| place.network_cookie = place.network_cookie.map(|cookie| cookie + 1));
            assert!(!namesake.is_here().expect("told"), "the inode alone is not enough");
            assert_eq!(namesake.find().ok().flatten().map(drop), None);
        }
        let elsewhere = younger(|place| place.network = Some(1));
        assert!(!elsewhere.is_here().expect("told") && !elsewhere.shares_network(&place));
        let recreated = younger(|place| place.interface_index = place.interface_index.map(|index| index + 1));
        assert!(!recreated.has_interface_of(&loopback()).expect("there"));
        let exchanged = younger(|place| place.interface_hardware = Some(vec![1; 6]));
        assert!(!exchanged.has_interface_of(&loopback()).expect("there"));
        assert!(NetnsIdentity::of(&Knob::Mtu { interface: "no-such-device".into() }).is_err());
        assert_eq!(NetnsIdentity::of(&Knob::RtRuntime).expect("nowhere"), NetnsIdentity::default());
    }

    #[test]
    fn a_place_of_an_older_journal_is_known_by_its_inode() {
        let place = NetnsIdentity::of(&loopback()).expect("every namespace has one");
        let text = format!(r#"{{"network":{}}}"#, own_network().expect("Linux tells"));
        let older: NetnsIdentity = serde_json::from_str(&text).expect("an older page");
        assert!(older.is_here().expect("told") && older.has_interface_of(&loopback()).expect("there"));
        assert!(older.shares_network(&place));
    }
}
