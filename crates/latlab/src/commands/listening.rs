//! The sockets on which `latlab serve` listens.

use std::net::{Ipv6Addr, SocketAddr};

use super::answering::AnyReflector;
use crate::cli::resolve::ServeSpec;
use crate::diagnostics::Failure;
use crate::plan::{EndSpec, TransportKind, WaitMode, defaults};

/// Every address asked for, over each transport asked for. Where none was asked for, one family may be missing on this
/// host.
pub(super) fn bind(spec: &ServeSpec) -> Result<Vec<AnyReflector>, Failure> {
    let mut sockets = Vec::new();
    for transport in TransportKind::ALL.into_iter().filter(|transport| spec.tcp || *transport != TransportKind::Tcp) {
        sockets.extend(bind_all(transport, spec)?);
    }
    Ok(sockets)
}

fn bind_all(transport: TransportKind, spec: &ServeSpec) -> Result<Vec<AnyReflector>, Failure> {
    if !spec.chosen && spec.listen.iter().all(|address| address.ip().is_unspecified()) {
        let port = spec.listen.first().map_or(defaults::PORT, SocketAddr::port);
        let everywhere = ((Ipv6Addr::UNSPECIFIED, port).into(), true);
        return Ok(vec![AnyReflector::bind(transport, everywhere, spec.end.wait, &spec.limits)?]);
    }
    let mut sockets = Vec::new();
    let mut missing = None;
    for address in &spec.listen {
        match AnyReflector::bind(transport, (*address, false), spec.end.wait, &spec.limits) {
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

/// What is to be said where threads spin on one CPU: each keeps the others from it.
pub(super) fn crowd(end: &EndSpec, posts: usize) -> Option<String> {
    let cpu = end.cpu.filter(|_| end.wait == WaitMode::Spin && posts > 1)?;
    Some(format!(
        "{posts} threads spin on CPU {cpu} and take turns of milliseconds, which answers wait for: use one address and one \
         transport, `--wait block`, or no `--cpu`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_share_a_cpu_and_never_sleep_are_told() {
        for (wait, cpu, posts, told) in [
            (WaitMode::Spin, Some(1), 2, true),
            (WaitMode::Spin, Some(1), 1, false),
            (WaitMode::Spin, None, 2, false),
            (WaitMode::Block, Some(1), 2, false),
        ] {
            let end = EndSpec { wait, cpu, ..EndSpec::SYSTEM };
            assert_eq!(crowd(&end, posts).is_some_and(|told| told.starts_with("2 threads spin on CPU 1")), told);
        }
    }
}
