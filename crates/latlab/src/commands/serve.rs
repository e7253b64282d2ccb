//! `latlab serve`: the reflector. Answers authenticated sessions, changes nothing on the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGUSR1;

use super::answering::{AnyReflector, answer};
use super::listening::{bind, crowd};
use super::{Outcome, keys};
use crate::cli::resolve::ServeSpec;
use crate::clock::{Clock, Monotonic};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
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
