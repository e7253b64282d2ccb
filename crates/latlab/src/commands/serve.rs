//! `latlab serve`: the reflector. Answers authenticated sessions, changes nothing on the host.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGUSR1;

use super::reflector_service::{AnyReflector, answer};
use super::{Outcome, keys};
use crate::cli::resolve::ServeSpec;
use crate::clock::{Clock, Monotonic};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::plan::{EndSpec, TransportKind, WaitMode, defaults};
use crate::platform::SignalWatch;
use crate::session::{ReflectorCounters, ReflectorLimits, Requests, SessionReflector, check_address, random_bytes};
use crate::units::Stamp;

/// Serves until a signal ends it, which is its way to be done; SIGUSR1 shows the counters, and so does the end.
pub(super) fn run(spec: &ServeSpec, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&spec.key)?;
    let mut posts = Vec::new();
    for socket in bind(spec)? {
        check_address(socket.place().0, key.as_ref())?;
        let limits = match socket {
            AnyReflector::Udp(_) => spec.limits,
            // A stream that a reflector sends by itself goes over UDP.
            AnyReflector::Tcp(_) => ReflectorLimits { down_bps: 0, ..spec.limits },
        };
        posts.push((socket, SessionReflector::new(limits, key.as_ref(), random_bytes()?)));
    }
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    for (socket, _) in &posts {
        console.note(&format!("answering on {socket} until Ctrl-C"));
    }
    if let Some(crowd) = crowd(&spec.end, posts.len()) {
        console.note(&crowd);
    }
    stand(posts, spec, interrupt.stop(), console)?;
    Ok(Outcome::Done)
}

type ServeSetup = (AnyReflector, SessionReflector);

/// One thread per address, each with sessions and caps of its own: no lock on the path of a probe.
fn stand(posts: Vec<ServeSetup>, spec: &ServeSpec, stop: &AtomicBool, console: &Console) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut guards = Vec::new();
        for post in posts {
            let asked = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGUSR1, Arc::clone(&asked)).map_err(refused("listen to SIGUSR1"))?;
            guards.push(scope.spawn(move || {
                let ended = guard(post, spec, Requests { stop, counters: &asked }, console);
                // One address that cannot be served ends the others: half a reflector is a riddle.
                stop.store(true, Ordering::Relaxed);
                ended
            }));
        }
        guards.into_iter().try_for_each(|guard| guard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn guard(post: ServeSetup, spec: &ServeSpec, requests: Requests<'_>, console: &Console) -> Result<(), Failure> {
    let (mut socket, mut reflector) = post;
    let name = socket.to_string();
    placement::place(&spec.end)?;
    let ended = answer(&mut socket, &mut reflector, spec.end.cpu, requests, |counters| tell(&name, counters, console));
    tell(&name, reflector.counters(Stamp::from_nanos(Monotonic.now().as_nanos())), console);
    Ok(ended?)
}

/// One line per counter that is not zero: `latlab serve: 127.0.0.1:9862 answered 50000`.
fn tell(name: &str, counters: &ReflectorCounters, console: &Console) {
    let counted: Vec<String> =
        counters.rows().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    let counted = if counted.is_empty() { "nothing received".to_owned() } else { counted.join(" · ") };
    console.note(&format!("{name}: {counted}"));
}

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
