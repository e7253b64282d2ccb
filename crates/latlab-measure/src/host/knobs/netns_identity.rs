//! The identity of a knob's network namespace and interface. It differs from that of later ones, although the kernel
//! reuses the inode of a removed namespace, and another interface may get the same name.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use latlab_sys::address::AddressFamily;
use latlab_sys::{process, socket};
use rustix::net::netdevice::{index_to_name, name_to_index};
use serde::{Deserialize, Serialize};

use super::knob::Knob;
use crate::host::namespaces::inside;
use crate::platform::RouteSocket;

/// The identity of a knob's network namespace and interface, part of an entry of the journal. A key that is absent there
/// is not compared: the latlab that wrote the entry did not know it, or had no value for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NetnsIdentity {
    /// The inode of the namespace, if the knob belongs to one.
    network: Option<u64>,
    /// Unique among the namespaces of this boot (SO_NETNS_COOKIE, since Linux 5.14).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network_cookie: Option<u64>,
    /// The interface's index in its namespace; a later interface of its name has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface_index: Option<u32>,
    /// The hardware address, if the kernel has no cookies: indexes start anew in each namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface_hardware: Option<Vec<u8>>,
}

impl NetnsIdentity {
    /// The identity of `knob` in the calling thread's namespace.
    ///
    /// # Errors
    /// The interface does not exist.
    pub(super) fn read(knob: &Knob) -> io::Result<NetnsIdentity> {
        if !knob.is_of_namespace() {
            return Ok(NetnsIdentity::default());
        }
        let network_cookie = own_cookie().ok();
        let namespace = NetnsIdentity { network: own_inode().ok(), network_cookie, ..NetnsIdentity::default() };
        let Some(interface) = knob.interface() else { return Ok(namespace) };
        let interface_hardware = match network_cookie {
            Some(_) => None,
            None => Some(hardware_of(interface)?),
        };
        Ok(NetnsIdentity { interface_index: Some(index_of(interface)?), interface_hardware, ..namespace })
    }

    /// Whether both are of one namespace or of none. Both namespaces must exist, so that their inodes differ.
    pub(super) fn shares_namespace(&self, other: &NetnsIdentity) -> bool {
        self.network == other.network
    }

    /// Whether the calling thread is in that namespace.
    ///
    /// # Errors
    /// The namespace of the thread cannot be read.
    pub(super) fn is_here(&self) -> io::Result<bool> {
        let Some(network) = self.network else { return Ok(true) };
        Ok(network == own_inode()? && self.has_own_cookie()?)
    }

    fn has_own_cookie(&self) -> io::Result<bool> {
        match self.network_cookie {
            Some(cookie) => Ok(cookie == own_cookie()?),
            None => Ok(true),
        }
    }

    /// The namespace, if it has a name or a thread is in it.
    ///
    /// # Errors
    /// It cannot be entered to compare its cookie.
    pub(super) fn find(&self) -> io::Result<Option<File>> {
        let entries = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        let named = entries(PathBuf::from("/run/netns")).map(|entry| entry.path());
        let threads = entries(PathBuf::from("/proc")).flat_map(|entry| entries(entry.path().join("task")));
        let entered = threads.map(|thread| thread.path().join("ns/net"));
        let is_it = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| Some(found.ino()) == self.network);
        let Some(namespace) = named.chain(entered).find(is_it).and_then(|path| File::open(path).ok()) else {
            return Ok(None);
        };
        Ok(inside(&namespace, || self.has_own_cookie())?.then_some(namespace))
    }

    /// Whether the interface of `knob`, in the calling thread's namespace, is that one.
    ///
    /// # Errors
    /// No interface has that name.
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
fn own_inode() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|namespace| namespace.ino())
}

fn own_cookie() -> io::Result<u64> {
    process::network_cookie(socket::udp(AddressFamily::Ipv4)?.as_fd())
}

fn index_of(interface: &str) -> io::Result<u32> {
    Ok(name_to_index(socket::udp(AddressFamily::Ipv4)?, interface)?)
}

/// The name of `interface`, which may be given by an alternative name.
pub(super) fn canonical_name(interface: &str) -> io::Result<String> {
    Ok(index_to_name(socket::udp(AddressFamily::Ipv4)?, index_of(interface)?)?)
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
    fn a_later_namespace_or_interface_of_the_same_name_or_number_differs() {
        let identity = NetnsIdentity::read(&loopback()).expect("every namespace has one");
        assert!(identity.is_here().expect("readable") && identity.has_interface_of(&loopback()).expect("there"));
        let later = |change: fn(&mut NetnsIdentity)| {
            let mut identity = identity.clone();
            change(&mut identity);
            identity
        };
        if identity.network_cookie.is_some() {
            let namesake = later(|identity| identity.network_cookie = identity.network_cookie.map(|cookie| cookie + 1));
            assert!(!namesake.is_here().expect("readable"), "the inode alone is not enough");
            assert_eq!(namesake.find().ok().flatten().map(drop), None);
        }
        let elsewhere = later(|identity| identity.network = Some(1));
        assert!(!elsewhere.is_here().expect("readable") && !elsewhere.shares_namespace(&identity));
        let recreated = later(|identity| identity.interface_index = identity.interface_index.map(|index| index + 1));
        assert!(!recreated.has_interface_of(&loopback()).expect("there"));
        let exchanged = later(|identity| identity.interface_hardware = Some(vec![1; 6]));
        assert!(!exchanged.has_interface_of(&loopback()).expect("there"));
        assert!(NetnsIdentity::read(&Knob::Mtu { interface: "no-such-device".into() }).is_err());
        assert_eq!(NetnsIdentity::read(&Knob::RtRuntime).expect("nowhere"), NetnsIdentity::default());
    }
}
