//! `latlab serve`: the reflector. Answers authenticated sessions, and does not change settings of the host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGUSR1;

use super::{Outcome, keys};
use crate::cli::resolve::ServeJob;
use crate::cli::value::Bind;
use crate::clock::{Clock, Monotonic};
use crate::console::{Console, Verbosity};
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::plan::{EndSpec, TransportKind, WaitMode, defaults};
use crate::platform::SignalWatch;
use crate::session::{
    Listener, ReflectorCounters, ReflectorLimits, Requests, SessionReflector, check_address, listen, random_bytes,
};
use crate::transport::{ListenAddress, ListenOptions, TransportError, interface_address};
use crate::units::{Stamp, human};

/// Serves until a signal ends it with success; SIGUSR1 prints the counters, and the end what was served.
pub(super) fn run(job: ServeJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    let job = &at_interface(job)?;
    // A DDS participant answers strangers from the moment at which it has its sockets.
    job.listen.iter().try_for_each(|address| check_address(*address, key.as_ref()))?;
    let mut sockets = Vec::new();
    for listener in bind(job)? {
        // A reflector sends no down-stream over a connection.
        let down_bps = if listener.kind().is_connection_oriented() { 0 } else { job.limits.down_bps };
        let limits = ReflectorLimits { down_bps, ..job.limits };
        let reflector = SessionReflector::new(limits, key.as_ref(), random_bytes()?);
        sockets.push(ServedAddress { listener, reflector });
    }
    // What reflectors keep is derived from it.
    drop(key);
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    for socket in &sockets {
        console.note(&format!("answering on {} until Ctrl-C", name(&*socket.listener)));
    }
    if let Some(shared_cpu_note) = shared_cpu_note(&job.end, sockets.len()) {
        console.note(&shared_cpu_note);
    }
    serve_all(sockets, job, interrupt.stop(), console)?;
    Ok(Outcome::Done)
}

/// `job` with the address of its interface, if it names one.
fn at_interface(job: ServeJob) -> Result<ServeJob, TransportError> {
    let address = match &job.interface {
        None => return Ok(job),
        Some(Bind::Address(address)) => *address,
        Some(Bind::Interface(name)) => interface_address(name)?,
    };
    Ok(ServeJob { listen: vec![SocketAddr::new(address, defaults::PORT)], chosen: true, ..job })
}

/// One bound address and the sessions that it serves.
struct ServedAddress {
    listener: Box<dyn Listener>,
    reflector: SessionReflector,
}

/// The name in messages, which mentions the transport unless it is the default.
fn name(listener: &dyn Listener) -> String {
    match listener.kind() {
        kind if kind.is_default() => format!("`{}`", listener.address()),
        kind => format!("`{}` over {}", listener.address(), kind.properties().name),
    }
}

/// One thread for each address with sessions and caps of its own, so that probes take no lock.
fn serve_all(sockets: Vec<ServedAddress>, job: &ServeJob, stop: &AtomicBool, console: &Console) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut guards = Vec::new();
        for socket in sockets {
            let asked = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(SIGUSR1, Arc::clone(&asked)).map_err(refused("listen to SIGUSR1"))?;
            guards.push(scope.spawn(move || {
                let ended = serve_one(socket, job, Requests { stop, counters: &asked }, console);
                // One address that cannot be served ends the others.
                stop.store(true, Ordering::Relaxed);
                ended
            }));
        }
        guards.into_iter().try_for_each(|guard| guard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn serve_one(socket: ServedAddress, job: &ServeJob, requests: Requests<'_>, console: &Console) -> Result<(), Failure> {
    let ServedAddress { mut listener, mut reflector } = socket;
    let name = name(&*listener);
    placement::place(&job.end)?;
    let ended =
        listener.serve(&mut reflector, job.end.cpu, requests, &mut |counters| print_counters(&name, counters, console));
    let counters = reflector.counters(Stamp::from_nanos(Monotonic.now().as_nanos()));
    console.note(&format!("{name}: {}", served(counters)));
    if console.verbosity() >= Verbosity::Verbose {
        print_counters(&name, counters, console);
    }
    Ok(ended?)
}

/// What was served: `3 sessions, 2,120 probes answered, 2.64 MB received`.
fn served(counters: &ReflectorCounters) -> String {
    let counted = |count: u64, one: &str, several: &str| {
        (count > 0).then(|| format!("{} {}", human::grouped(count), if count == 1 { one } else { several }))
    };
    let all_of =
        |kind: &str| counters.rows().filter(|(name, _)| name.starts_with(kind)).map(|(_, count)| count).sum::<u64>();
    let received = human::byte_rate(counters.received_bytes as f64);
    let parts = [
        counted(counters.opened, "session", "sessions"),
        counted(counters.answered, "probe answered", "probes answered"),
        counted(counters.counted + counters.down, "stream packet", "stream packets"),
        counted(all_of("refuse-"), "session refused", "sessions refused"),
        counted(all_of("drop-"), "datagram dropped", "datagrams dropped"),
        (counters.received > 0).then(|| format!("{} received", received.trim_end_matches("/s"))),
    ];
    parts.into_iter().flatten().reduce(|all, one| format!("{all}, {one}")).unwrap_or_else(|| "nothing received".into())
}

/// One line per counter that is not zero: `latlab serve: 127.0.0.1:9862 answered 50000`.
fn print_counters(name: &str, counters: &ReflectorCounters, console: &Console) {
    let counted: Vec<String> =
        counters.rows().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    let counted = if counted.is_empty() { "nothing received".to_owned() } else { counted.join(" · ") };
    console.note(&format!("{name}: {counted}"));
}

/// Binds every requested address over each requested transport. Without a requested address one family may be missing.
pub(super) fn bind(job: &ServeJob) -> Result<Vec<Box<dyn Listener>>, Failure> {
    let mut listeners = Vec::new();
    for transport in &job.transports {
        listeners.extend(bind_all(*transport, job)?);
    }
    Ok(listeners)
}

fn bind_all(transport: TransportKind, job: &ServeJob) -> Result<Vec<Box<dyn Listener>>, Failure> {
    if !job.chosen && job.listen.iter().all(|address| address.ip().is_unspecified()) {
        let port = job.listen.first().map_or(defaults::PORT, SocketAddr::port);
        return Ok(vec![bind_one(transport, ListenAddress::All { port }, job)?]);
    }
    let mut listeners = Vec::new();
    let mut missing = None;
    for address in &job.listen {
        match bind_one(transport, ListenAddress::One(*address), job) {
            Ok(listener) => listeners.push(listener),
            Err(error) if !job.chosen && error.lacks_family() => missing = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error.into()),
        _ => Ok(listeners),
    }
}

fn bind_one(
    transport: TransportKind,
    address: ListenAddress,
    job: &ServeJob,
) -> Result<Box<dyn Listener>, TransportError> {
    let options = ListenOptions {
        address,
        wait: job.end.wait,
        caps: job.limits.connections(),
        single_sender: false,
        dds: job.dds,
        queue: 0,
        in_driver: false,
    };
    if !transport.properties().has_own_threads {
        return listen(transport, options);
    }
    // Its threads inherit pin and priority from this one. A refusal is reported when the answering thread is placed.
    let placed = || {
        _ = placement::place(&job.end);
        listen(transport, options)
    };
    thread::scope(|scope| scope.spawn(placed).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// The note if several threads spin on one CPU and so keep each other from it.
pub(super) fn shared_cpu_note(end: &EndSpec, sockets: usize) -> Option<String> {
    let cpu = end.cpu.filter(|_| end.wait == WaitMode::Spin && sockets > 1)?;
    Some(format!(
        "{sockets} threads spin on CPU {cpu} in time slices of milliseconds, which delays answers: use one \
         address and one transport, `--wait block`, or no `--cpu`"
    ))
}
