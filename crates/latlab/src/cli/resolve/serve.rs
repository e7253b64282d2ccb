//! Resolution of `latlab serve` and `latlab agent`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::environment::verbosity;
use super::{KeySource, RequestError, dds, path, ping, value, xdp};
use crate::cli::args::{AgentArgs, CapArgs, ServeArgs};
use crate::console::Verbosity;
use crate::plan::{DdsSpec, EndSpec, TransportKind, defaults};
use crate::session::ReflectorLimits;
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSpec {
    /// Distinct addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// The interface of a reflector over DDS, by name or address, instead of these addresses.
    pub interface: Option<String>,
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
    pub verbosity: Verbosity,
}

/// Resolves the arguments and checks them against each other.
pub fn serve(typed: &ServeArgs) -> Result<ServeSpec, RequestError> {
    let key = key(typed)?;
    if let Some(rate) = typed.caps.allow_down.as_ref().filter(|_| key == KeySource::None) {
        let hint = "`latlab keygen lab.key`, then `latlab serve --psk-file lab.key --allow-down RATE`";
        return Err(value::unusable("--allow-down", rate, "without a key any host could request it", hint));
    }
    let end = path::local_end(&typed.end)?;
    let transport = ping::transport(typed.key.transport.as_deref())?;
    xdp::not_served(transport)?;
    dds::fits_a_reflector(&typed.dds, transport, end, &typed.key.bind)?;
    Ok(ServeSpec {
        listen: match transport {
            TransportKind::Dds if typed.key.bind.is_empty() => vec![(Ipv4Addr::LOCALHOST, defaults::PORT).into()],
            _ => listen(&typed.key.bind, &key)?,
        },
        interface: typed.dds.interface.clone(),
        chosen: !typed.key.bind.is_empty(),
        transports: if typed.key.tcp { vec![TransportKind::Udp, TransportKind::Tcp] } else { vec![transport] },
        dds: dds::domain(&typed.dds)?,
        key,
        end,
        limits: limits(&typed.caps)?,
        verbosity: verbosity(&typed.verbosity),
    })
}

fn key(typed: &ServeArgs) -> Result<KeySource, RequestError> {
    Ok(match (&typed.key.file.psk_file, typed.key.psk_fd.as_deref()) {
        (Some(file), _) => KeySource::File(file.clone()),
        // The kernel's own limit is reported when the descriptor is read.
        (_, Some(number)) => KeySource::Descriptor(value::whole("--psk-fd", number, 0..=i32::MAX as u64)? as i32),
        _ => KeySource::None,
    })
}

/// Resolves the addresses; the default is any address of both families, or loopback without a key.
fn listen(typed: &[String], key: &KeySource) -> Result<Vec<SocketAddr>, RequestError> {
    let keyless = *key == KeySource::None;
    let mut listen: Vec<SocketAddr> = match (typed, keyless) {
        ([], true) => vec![(Ipv4Addr::LOCALHOST, defaults::PORT).into(), (Ipv6Addr::LOCALHOST, defaults::PORT).into()],
        ([], false) => {
            vec![(Ipv4Addr::UNSPECIFIED, defaults::PORT).into(), (Ipv6Addr::UNSPECIFIED, defaults::PORT).into()]
        }
        (typed, _) => typed.iter().map(|one| path::listening(one)).collect::<Result<_, _>>()?,
    };
    if let Some(open) = listen.iter().find(|address| keyless && !address.ip().to_canonical().is_loopback()) {
        let hint = "`latlab keygen lab.key`, then `latlab serve --psk-file lab.key`";
        return Err(RequestError::KeyNeeded { target: open.to_string(), hint });
    }
    listen.sort_unstable();
    listen.dedup();
    Ok(listen)
}

fn limits(typed: &CapArgs) -> Result<ReflectorLimits, RequestError> {
    let (default, max) = (ReflectorLimits::DEFAULT, ReflectorLimits::MAX);
    let per_prefix = &typed.max_sessions_per_prefix;
    let new = &typed.max_new_sessions;
    let size = typed.max_size.as_deref().map(|size| value::size("--max-size", size)).transpose()?;
    Ok(ReflectorLimits {
        sessions: number("--max-sessions", &typed.max_sessions, max.sessions, default.sessions)?,
        sessions_per_prefix: number(
            "--max-sessions-per-prefix",
            per_prefix,
            max.sessions_per_prefix,
            default.sessions_per_prefix,
        )?,
        new_sessions_per_second: number(
            "--max-new-sessions",
            new,
            max.new_sessions_per_second,
            default.new_sessions_per_second,
        )?,
        duration: span("--max-duration", &typed.max_duration, max.duration, default.duration)?,
        idle: span("--idle-timeout", &typed.idle_timeout, max.idle, default.idle)?,
        size_bytes: size.unwrap_or(default.size_bytes),
        down_bps: typed.allow_down.as_deref().map_or(Ok(default.down_bps), down)?,
        ..default
    })
}

/// Parses a rate in bits per second above 0.
fn down(typed: &str) -> Result<u64, RequestError> {
    let (option, most) = ("--allow-down", defaults::STREAM_RATE_MAX_BPS);
    match human::parse_network_rate(typed).map_err(|source| value::unreadable(option, source))? {
        NetworkRate::Bits(bps) if (1..=most).contains(&bps) => Ok(bps),
        _ => {
            let hint = format!("a rate such as 1Gbit/s, up to {}", human::typed_bit_rate(most));
            Err(value::unusable(option, typed, "it is not a rate in bits per second, or is out of range", hint))
        }
    }
}

/// Parses a number from 1 to `most`.
fn number<N>(option: &'static str, typed: &Option<String>, most: N, default: N) -> Result<N, RequestError>
where
    N: Copy + Into<u64> + TryFrom<u64>,
{
    let Some(typed) = typed else { return Ok(default) };
    value::whole(option, typed, 1..=most.into()).map(|number| N::try_from(number).unwrap_or(most))
}

fn span(option: &'static str, typed: &Option<String>, most: Nanos, default: Nanos) -> Result<Nanos, RequestError> {
    typed.as_deref().map_or(Ok(default), |typed| value::span(option, typed, most))
}

/// Refuses `latlab agent` without `--stdio`.
pub fn agent(typed: AgentArgs) -> Result<(), RequestError> {
    if typed.stdio {
        return Ok(());
    }
    Err(RequestError::Alone {
        option: "agent",
        needed: "--stdio",
        cause: "it opens no port and uses standard input and output only",
        hint: "`latlab ping ssh:HOST` starts it where it is needed; a reflector for others is `latlab serve`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::diagnostics::Explain;

    fn resolve(line: &str) -> Result<ServeSpec, RequestError> {
        let typed = ["latlab", "serve"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Serve(args) => serve(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn down_streams_need_an_explicit_limit() {
        for (line, bps) in [("--psk-file k", 0), ("--psk-file k --allow-down 1.5Gbit/s", 1_500_000_000)] {
            assert_eq!(resolve(line).expect(line).limits.down_bps, bps);
        }
    }

    #[test]
    fn tcp_is_off_by_default() {
        assert_eq!(resolve("").expect("defaults").transports, [TransportKind::Udp]);
        assert_eq!(resolve("--tcp").expect("a flag").transports, [TransportKind::Udp, TransportKind::Tcp]);
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

    #[test]
    fn impossible_values_are_refused_with_a_hint() {
        for (line, value) in [
            ("--bind 0.0.0.0", "`0.0.0.0:9862`"),
            ("--bind [::]:7000", "`[::]:7000`"),
            ("--bind 127.0.0.1:0", "`127.0.0.1:0`"),
            ("--bind localhost", "`localhost`"),
            ("--max-sessions 0", "`0`"),
            ("--max-sessions 1025", "`1025`"),
            ("--max-new-sessions 1001", "`1001`"),
            ("--max-duration 169h", "`169h`"),
            ("--idle-timeout -1s", "`-1s`"),
            ("--idle-timeout 11h", "`11h`"),
            ("--max-size 23", "`23`"),
            ("--psk-file k --allow-down 500kpps", "`500kpps`"),
            ("--psk-file k --allow-down 0bit/s", "`0bit/s`"),
            ("--allow-down 1Gbit/s", "`1Gbit/s`"),
            ("--psk-fd -1", "`-1`"),
            ("--cpu 4096", "`4096`"),
        ] {
            let error = resolve(line).expect_err(line);
            assert!(error.to_string().contains(value), "{line}: {error}");
            assert!(error.explain().cause.is_some() && error.explain().hint.is_some(), "{line}: {error:?}");
        }
    }
}
