//! Resolution of `latlab serve`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::cli::args::{CapArgs, ServeArgs};
use crate::cli::options::path::without_key;
use crate::cli::options::{KeySource, dds};
use crate::cli::value::Bind;
use crate::diagnostics::Failure;
use crate::plan::{DdsSpec, EndSpec, TransportKind, defaults};
use crate::session::ReflectorLimits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeJob {
    /// Distinct addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// The interface of a reflector over DDS, by name or address, instead of these addresses.
    pub interface: Option<Bind>,
    /// True if the addresses were typed: each must then succeed. Otherwise one family may be unavailable.
    pub chosen: bool,
    /// Transports to listen on, each at every address.
    pub transports: Vec<TransportKind>,
    /// Domain and policies over DDS.
    pub dds: DdsSpec,
    /// Source of the pre-shared key.
    pub key: KeySource,
    /// CPU, priority and wait mode of the reflector.
    pub end: EndSpec,
    pub limits: ReflectorLimits,
}

/// Resolves the arguments and checks them against each other.
pub fn serve(typed: &ServeArgs) -> Result<ServeJob, Failure> {
    let bind = &typed.key.bind;
    let key = match (&typed.key.file.psk_file, typed.key.psk_fd) {
        (Some(file), _) => KeySource::File(file.clone()),
        // The kernel's own limit is reported when the descriptor is read.
        (_, Some(number)) => KeySource::Descriptor(number),
        _ => KeySource::None,
    };
    let transport = typed.key.transport.unwrap_or_default();
    if transport == TransportKind::Dds {
        dds::expect_addresses_of_reflector(bind, &typed.dds)?;
    }
    Ok(ServeJob {
        listen: match transport {
            TransportKind::Dds if bind.is_empty() => vec![(Ipv4Addr::LOCALHOST, defaults::PORT).into()],
            _ => listen(bind, &key)?,
        },
        interface: typed.dds.interface.clone(),
        chosen: !bind.is_empty(),
        transports: if typed.key.tcp { vec![TransportKind::Udp, TransportKind::Tcp] } else { vec![transport] },
        dds: dds::domain(&typed.dds),
        key,
        end: typed.end.end(),
        limits: limits(&typed.caps),
    })
}

/// Resolves the addresses; the default is any address of both families, or loopback without a key.
fn listen(typed: &[SocketAddr], key: &KeySource) -> Result<Vec<SocketAddr>, Failure> {
    let keyless = *key == KeySource::None;
    let mut listen: Vec<SocketAddr> = match (typed, keyless) {
        ([], true) => vec![(Ipv4Addr::LOCALHOST, defaults::PORT).into(), (Ipv6Addr::LOCALHOST, defaults::PORT).into()],
        ([], false) => {
            vec![(Ipv4Addr::UNSPECIFIED, defaults::PORT).into(), (Ipv6Addr::UNSPECIFIED, defaults::PORT).into()]
        }
        (typed, _) => typed.to_vec(),
    };
    if let Some(open) = listen.iter().find(|address| keyless && !address.ip().to_canonical().is_loopback()) {
        let hint = "`latlab keygen lab.key`, then `latlab serve --psk-file lab.key`";
        return Err(without_key(&open.to_string(), hint));
    }
    listen.sort_unstable();
    listen.dedup();
    Ok(listen)
}

fn limits(typed: &CapArgs) -> ReflectorLimits {
    let usual = ReflectorLimits::DEFAULT;
    ReflectorLimits {
        sessions: typed.max_sessions.unwrap_or(usual.sessions),
        sessions_per_prefix: typed.max_sessions_per_prefix.unwrap_or(usual.sessions_per_prefix),
        new_sessions_per_second: typed.max_new_sessions.unwrap_or(usual.new_sessions_per_second),
        duration: typed.max_duration.unwrap_or(usual.duration),
        idle: typed.idle_timeout.unwrap_or(usual.idle),
        size_bytes: typed.max_size.unwrap_or(usual.size_bytes),
        down_bps: typed.allow_down.unwrap_or(usual.down_bps),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn resolve(line: &str) -> Result<ServeJob, Failure> {
        let typed = ["latlab", "serve"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Serve(args) => serve(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_key_only_loopback_is_served() {
        for (line, listen) in [
            ("", &["127.0.0.1:9862", "[::1]:9862"][..]),
            ("--psk-file k", &["0.0.0.0:9862", "[::]:9862"]),
            ("--psk-fd 3", &["0.0.0.0:9862", "[::]:9862"]),
            ("--bind 127.0.0.2:7000", &["127.0.0.2:7000"]),
            ("--bind ::1 --bind [::1]:9862 --bind 127.0.0.1", &["127.0.0.1:9862", "[::1]:9862"]),
            ("--psk-file k --bind 192.0.2.1:7", &["192.0.2.1:7"]),
        ] {
            let spec = resolve(line).expect(line);
            assert_eq!(spec.listen.iter().map(ToString::to_string).collect::<Vec<_>>(), listen, "{line}");
        }
    }
}
