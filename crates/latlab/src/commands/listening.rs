//! The sockets on which `latlab serve` listens.

use std::net::SocketAddr;

use crate::cli::resolve::ServeSpec;
use crate::error::Failure;
use crate::plan::defaults;
use crate::transport::reflector::UdpReflector;

/// Every address asked for. Where none was asked for, one family may be missing on this host.
pub(super) fn bind(spec: &ServeSpec) -> Result<Vec<UdpReflector>, Failure> {
    let wait = spec.end.wait;
    if !spec.chosen && spec.listen.iter().all(|address| address.ip().is_unspecified()) {
        let port = spec.listen.first().map_or(defaults::PORT, SocketAddr::port);
        return Ok(vec![UdpReflector::bind_everywhere(port, wait)?]);
    }
    let mut sockets = Vec::new();
    let mut missing = None;
    for address in &spec.listen {
        match UdpReflector::bind(*address, wait) {
            Ok(socket) => sockets.push(socket),
            Err(error) if !spec.chosen && error.lacks_family() => missing = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match missing {
        Some(error) if sockets.is_empty() => Err(error.into()),
        _ => Ok(sockets),
    }
}
