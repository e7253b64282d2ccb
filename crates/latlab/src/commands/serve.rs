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

/// Serves until a signal ends it with success; SIGUSR1 and the end print the counters.
pub(super) fn run(spec: &ServeSpec, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&spec.key)?;
    let mut sockets = Vec::new();
    for socket in bind(spec)? {
        check_address(socket.place().0, key.as_ref())?;
        let limits = match socket {
            AnyReflector::Udp(_) => spec.limits,
            // Down-streams go over UDP only.
            AnyReflector::Tcp(_) => ReflectorLimits { down_bps: 0, ..spec.limits },
        };
        sockets.push((socket, SessionReflector::new(limits, key.as_ref(), random_bytes()?)));
    }
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    for (socket, _) in &sockets {
        console.note(&format!("answering on {socket} until Ctrl-C"));
    }
    if let Some(shared_cpu_note) = shared_cpu_note(&spec.end, sockets.len()) {
        console.note(&shared_cpu_note);
    }
    serve_all(sockets, spec, interrupt.stop(), console)?;
    Ok(Outcome::Done)
}

type ServeSetup = (AnyReflector, SessionReflector);

/// One thread for each address with sessions and caps of its own, so that probes take no lock.
fn serve_all(sockets: Vec<ServeSetup>, spec: &ServeSpec, stop: &AtomicBool, console: &Console) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut guards = Vec::new();
        for setup in sockets {
            let asked = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGUSR1, Arc::clone(&asked)).map_err(refused("listen to SIGUSR1"))?;
            guards.push(scope.spawn(move || {
                let ended = serve_one(setup, spec, Requests { stop, counters: &asked }, console);
                // One address that cannot be served ends the others.
                stop.store(true, Ordering::Relaxed);
                ended
            }));
        }
        guards.into_iter().try_for_each(|guard| guard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn serve_one(setup: ServeSetup, spec: &ServeSpec, requests: Requests<'_>, console: &Console) -> Result<(), Failure> {
    let (mut socket, mut reflector) = setup;
    let name = socket.to_string();
    placement::place(&spec.end)?;
    let ended = answer(&mut socket, &mut reflector, spec.end.cpu, requests, |counters| {
        print_counters(&name, counters, console)
    });
    print_counters(&name, reflector.counters(Stamp::from_nanos(Monotonic.now().as_nanos())), console);
    Ok(ended?)
}

/// One line per counter that is not zero: `latlab serve: 127.0.0.1:9862 answered 50000`.
fn print_counters(name: &str, counters: &ReflectorCounters, console: &Console) {
    let counted: Vec<String> =
        counters.rows().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    let counted = if counted.is_empty() { "nothing received".to_owned() } else { counted.join(" · ") };
    console.note(&format!("{name}: {counted}"));
}

/// Binds every requested address over each requested transport. Without a requested address one family may be missing.
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

/// The note if several threads spin on one CPU and so keep each other from it.
pub(super) fn shared_cpu_note(end: &EndSpec, sockets: usize) -> Option<String> {
    let cpu = end.cpu.filter(|_| end.wait == WaitMode::Spin && sockets > 1)?;
    Some(format!(
        "{sockets} threads spin on CPU {cpu} and take turns of milliseconds, which answers wait for: use one address and one \
         transport, `--wait block`, or no `--cpu`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_spinning_threads_on_one_cpu_are_noted() {
        for (wait, cpu, sockets, told) in [
            (WaitMode::Spin, Some(1), 2, true),
            (WaitMode::Spin, Some(1), 1, false),
            (WaitMode::Spin, None, 2, false),
            (WaitMode::Block, Some(1), 2, false),
        ] {
            let end = EndSpec { wait, cpu, ..EndSpec::SYSTEM };
            assert_eq!(
                shared_cpu_note(&end, sockets).is_some_and(|told| told.starts_with("2 threads spin on CPU 1")),
                told
            );
        }
    }
}
