//! The other end of a run: reached, or made.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::MeasureError;
use crate::host::HostError;
use crate::host::lab::{Inside, Lab};
use crate::plan::{Family, RunSpec, Target};
use crate::session::{PreSharedKey, ReflectorOrder, ReflectorProcess};
use crate::transport::resolve::resolve;

/// Somebody who answers. What latlab made for it goes when this is dropped: first the process, then
/// the namespaces it lived in.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    process: Option<ReflectorProcess>,
    _inside: Option<Inside>,
    lab: Option<Lab>,
}

impl Peer {
    /// Reaches or makes the peer that `spec` names, for so many sessions. For `lab` the calling thread moves into the
    /// sender's namespace and stays there until the peer is dropped.
    pub fn reach(spec: &RunSpec, key: Option<&PreSharedKey>, sessions: u16) -> Result<Peer, MeasureError> {
        let family = spec.ping().path.family;
        let end = spec.peer.unwrap_or(spec.here);
        let order = |address| ReflectorOrder::new(address, end, key, sessions);
        match &spec.target {
            Target::Local => Peer::on_loopback(family, order),
            Target::Lab => Peer::in_lab(family, order),
            Target::Host { host, port } => {
                let address = resolve(host, *port, family)?;
                Ok(Peer { address, process: None, _inside: None, lab: None })
            }
        }
    }

    fn on_loopback(family: Option<Family>, order: impl Fn(IpAddr) -> ReflectorOrder) -> Result<Peer, MeasureError> {
        let loopback: IpAddr = match family {
            Some(Family::Ipv6) => Ipv6Addr::LOCALHOST.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let process = ReflectorProcess::start(&order(loopback))?;
        Ok(Peer { address: process.address(), process: Some(process), _inside: None, lab: None })
    }

    fn in_lab(family: Option<Family>, order: impl Fn(IpAddr) -> ReflectorOrder) -> Result<Peer, MeasureError> {
        let lab = Lab::set_up()?;
        let address = match family {
            Some(Family::Ipv6) => lab.reflector_ipv6().ok_or(HostError::LabLacksIpv6)?,
            _ => lab.reflector_ipv4(),
        };
        let process = {
            let _there = lab.enter_reflector()?;
            ReflectorProcess::start(&order(address))?
        };
        let inside = lab.enter_sender()?;
        Ok(Peer { address: process.address(), process: Some(process), _inside: Some(inside), lab: Some(lab) })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How the process that latlab made for it died, if it did.
    pub(crate) fn death(&mut self) -> Option<String> {
        self.process.as_mut()?.death()
    }

    /// Conditions of the path that were made or found on the way.
    pub fn conditions(&self) -> BTreeMap<String, String> {
        self.lab.as_ref().map(|lab| lab.conditions().clone()).unwrap_or_default()
    }
}
