//! `latlab reflector` (hidden): the far end of `local` and `lab`, as a process of its own.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::answering::AnyReflector;
use super::post::ReflectorService;
use super::{Outcome, order};
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::placement;
use crate::measure::baseline::{bare, bare_stream, bare_tcp};
use crate::session::{PreSharedKey, ReflectorEvent, ReflectorLimits, ReflectorRequest, SessionReflector, random_bytes};

/// Takes the order from standard input, says where it answers, and answers until standard input closes.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    let order: ReflectorRequest = order::read("a reflector for others is `latlab serve`")?;
    let stop = Arc::new(AtomicBool::new(false));
    match prepare(&order, &stop) {
        Ok(post) => {
            console.data(&post.ready()?.line())?;
            post.answer(order.end.cpu, &stop)
        }
        Err(failure) => {
            let Failure { message, cause, hint, .. } = failure;
            console.data(&ReflectorEvent::Refused { message, cause, hint }.line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

/// Binds and takes its place.
fn prepare(order: &ReflectorRequest, stop: &Arc<AtomicBool>) -> Result<ReflectorService, Failure> {
    order::tie_to_parent(order.parent)?;
    let post = if order.bare {
        let wait = order.end.wait.into();
        ReflectorService::Bare(bare::bind(order.bind, wait).map_err(refused("open the bare reflector"))?, wait)
    } else if let Some(size_bytes) = order.bare_tcp {
        let listener = bare_tcp::bind(order.bind).map_err(refused("open the bare listener"))?;
        ReflectorService::BareTcp(listener, order.end.wait.into(), size_bytes)
    } else if let Some(wanted) = order.bare_stream {
        let wait = order.end.wait.into();
        let socket = bare_stream::bind(order.bind, wait).map_err(refused("open the bare receiver"))?;
        ReflectorService::BareStream(socket, wait, wanted)
    } else {
        let key =
            order.key.as_deref().map(|line| PreSharedKey::from_reader("the order", line.as_bytes())).transpose()?;
        let limits = ReflectorLimits { down_bps: order.down_bps, ..ReflectorLimits::own(order.sessions) };
        let sessions = SessionReflector::new(limits, key.as_ref(), random_bytes()?);
        let socket = AnyReflector::bind(order.transport, (order.bind, false), order.end.wait, &limits)?;
        let socket = if order.sessions == 1 { socket.for_one_sender() } else { socket };
        ReflectorService::Sessions(socket, Box::new(sessions))
    };
    // Before this thread takes its place: on the same CPU a spinning one under SCHED_FIFO would never let it run.
    stop_when_stdin_closes(stop, order.end.cpu).map_err(refused("watch standard input"))?;
    placement::place(&order.end)?;
    Ok(post)
}

fn stop_when_stdin_closes(stop: &Arc<AtomicBool>, measuring: Option<u16>) -> io::Result<()> {
    let stop = Arc::clone(stop);
    let watcher = move || {
        placement::keep_off(measuring.as_slice());
        // Nothing more is said there: what ends this read is the end of the parent.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("stdin".into()).spawn(watcher).map(drop)
}
