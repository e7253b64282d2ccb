//! `latlab reflector` (hidden): the far end of `local` and `lab`, as a process of its own.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Outcome;
use super::post::Post;
use crate::console::Console;
use crate::error::{Failure, refused};
use crate::host::{lifeline, placement};
use crate::measure::bare;
use crate::session::{PreSharedKey, ReflectorLimits, ReflectorNews, ReflectorOrder, SessionReflector, random_bytes};
use crate::transport::reflector::UdpReflector;

/// Takes the order from standard input, says where it answers, and answers until standard input closes.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    let order = read_order()?;
    let stop = Arc::new(AtomicBool::new(false));
    match prepare(&order, &stop) {
        Ok(post) => {
            console.data(&ReflectorNews::Ready { address: post.address()? }.line())?;
            post.answer(order.end.cpu, &stop)
        }
        Err(failure) => {
            let Failure { message, cause, hint, .. } = failure;
            console.data(&ReflectorNews::Refused { message, cause, hint }.line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn read_order() -> Result<ReflectorOrder, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(refused("read the order"))?;
    serde_json::from_str(&line).map_err(|error| {
        Failure::request("cannot understand the order on standard input")
            .because(error.to_string())
            .hint("this command is for latlab itself; a reflector for others is `latlab serve`")
    })
}

/// Binds and takes its place.
fn prepare(order: &ReflectorOrder, stop: &Arc<AtomicBool>) -> Result<Post, Failure> {
    if !lifeline::tie_to_parent(order.parent).map_err(refused("tie the reflector to its parent"))? {
        return Err(Failure::world("the process that ordered the reflector is gone"));
    }
    let post = if order.bare {
        let wait = order.end.wait.into();
        Post::Bare(bare::bind(order.bind, wait).map_err(refused("open the bare reflector"))?, wait)
    } else {
        let key =
            order.key.as_deref().map(|line| PreSharedKey::from_reader("the order", line.as_bytes())).transpose()?;
        let limits = ReflectorLimits::own(order.sessions);
        let sessions = SessionReflector::new(limits, key.as_ref(), random_bytes()?);
        let socket = UdpReflector::bind(order.bind, order.end.wait)?;
        let socket = if order.sessions == 1 { socket.for_one_sender() } else { socket };
        Post::Sessions(socket, Box::new(sessions))
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
