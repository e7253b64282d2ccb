//! Hidden commands. `reflector`, `net-load`, `stressor` and `supervise` run as child processes of latlab: each reads its request as
//! one line of JSON on standard input and writes events, one line of JSON each, to standard output. `watchdog` is a child
//! process of an agent. The bare loops run
//! alone, for the benchmarks of the project, and print their figures as JSON.

use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Outcome;
use crate::agent::wait_for_end;
use crate::cli::resolve::BareStreamJob;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::host::knobs::restore_of;
use crate::host::{HostRoot, KnobJournal, placement, process};
use crate::load::{StressorEvent, StressorRequest, Workers};
use crate::measure::MeasureError;
use crate::measure::baseline::{
    BareCounter, BareEnd, BareSpec, BareWakeupSpec, bare, calibrate, sleep_bare, stream_bare, with_peer,
};
use crate::measure::stream::{NetLoadCommands, run_net_load};
use crate::plan::EndSpec;
use crate::platform::{SupervisedCommand, supervise};
use crate::session::{
    BEGIN_LINE, Listener, LoadsError, NetLoadError, NetLoadEvent, NetLoadRequest, PreSharedKey, ReflectorEvent,
    ReflectorLimits, ReflectorRequest, Requests, SessionReflector, listen, random_bytes,
};
use crate::transport::{ListenAddress, ListenOptions};

/// `latlab reflector`: reports its address, then answers until standard input closes.
pub(super) fn reflector(console: &Console) -> Result<Outcome, Failure> {
    let request: ReflectorRequest = read_request("a reflector for others is `latlab serve`")?;
    let stop = Arc::new(AtomicBool::new(false));
    match prepare_reflector(&request, &stop) {
        Ok(service) => {
            console.document(&service.ready()?.line())?;
            service.answer(request.end.cpu, &stop)
        }
        Err(failure) => {
            console.document(&ReflectorEvent::Refused(failure).line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

/// Binds the socket and applies pin and priority.
fn prepare_reflector(request: &ReflectorRequest, stop: &Arc<AtomicBool>) -> Result<ReflectorService, Failure> {
    tie_to_parent(request.parent)?;
    // Started before this thread is pinned: on the same CPU a spinning SCHED_FIFO thread would never let it run.
    stop_when_stdin_closes(stop, request.end.cpu).map_err(refused("watch standard input"))?;
    // Before the socket is opened: the threads of a library inherit pin and priority.
    placement::place(&request.end)?;
    let wait = request.end.wait.into();
    Ok(if let Some(size_bytes) = request.bare {
        let end = BareEnd::bind(request.transport, request.bind, wait, request.dds);
        ReflectorService::Bare { end: end.map_err(refused("open the bare reflector"))?, wait, size_bytes }
    } else if let Some(receiver) = request.bare_stream {
        let counter = BareCounter::bind(request.transport, request.bind, wait, receiver);
        ReflectorService::BareStream(counter.map_err(refused("open the bare receiver"))?, wait)
    } else {
        let key =
            request.key.as_deref().map(|line| PreSharedKey::from_reader("the order", line.as_bytes())).transpose()?;
        let limits = ReflectorLimits { down_bps: request.down_bps, ..ReflectorLimits::own(request.sessions) };
        let sessions = SessionReflector::new(limits, key.as_ref(), random_bytes()?);
        let options = ListenOptions {
            address: ListenAddress::One(request.bind),
            wait: request.end.wait,
            caps: limits.connections(),
            single_sender: request.sessions == 1,
            dds: request.dds,
            queue: request.queue,
            in_driver: request.in_driver,
        };
        ReflectorService::Sessions(listen(request.transport, options)?, Box::new(sessions))
    })
}

fn stop_when_stdin_closes(stop: &Arc<AtomicBool>, measuring: Option<u16>) -> io::Result<()> {
    let stop = Arc::clone(stop);
    let watcher = move || {
        placement::keep_off(measuring.as_slice());
        // The parent writes nothing more: this read ends when the parent does.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("stdin".into()).spawn(watcher).map(drop)
}

/// `latlab net-load`: reports when the load has begun, holds it until standard input closes, and reports what was
/// reached.
pub(super) fn net_load(console: &Console) -> Result<Outcome, Failure> {
    let request: NetLoadRequest = read_request("a load of your own is `--load net=…`")?;
    match hold_net_load(&request, console) {
        Ok(()) => Ok(Outcome::Done),
        Err(failure) => {
            console.document(&NetLoadEvent::Refused(failure).line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn hold_net_load(request: &NetLoadRequest, console: &Console) -> Result<(), Failure> {
    tie_to_parent(request.parent)?;
    leave_real_time()?;
    let key = request.key.as_deref().map(|line| PreSharedKey::from_reader("the order", line.as_bytes())).transpose()?;
    let words = Arc::new(NetLoadCommands::default());
    read_commands(&words).map_err(refused("watch standard input"))?;
    placement::place(&EndSpec { cpu: request.stream.cpu, ..EndSpec::SYSTEM })?;
    // Without it packets leave in clusters, at the same rate.
    placement::minimise_timer_slack();
    let report = |event: NetLoadEvent| console.document(&event.line());
    let begun = |searched_bps| {
        let gone = |_| LoadsError::from(NetLoadError::Process(io::ErrorKind::BrokenPipe.into()));
        report(NetLoadEvent::Begun { searched_bps }).map_err(gone).map_err(MeasureError::from)
    };
    let Some(held) = run_net_load(request, key.as_ref(), &words, begun)? else { return Ok(()) };
    match held.failure {
        Some(failure) => Err(failure.into()),
        None => report(NetLoadEvent::Ended { report: Box::new(held.report) }),
    }
}

/// Passes on the commands on standard input until it closes.
fn read_commands(words: &Arc<NetLoadCommands>) -> io::Result<()> {
    let words = Arc::clone(words);
    let listener = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line == BEGIN_LINE {
                words.set_begin();
            }
        }
        words.set_end();
    };
    thread::Builder::new().name("stdin".into()).spawn(listener).map(drop)
}

/// `latlab stressor`: reports when every worker runs, and at the end what was reached. The workers end with this process.
pub(super) fn stressor(console: &Console) -> Result<Outcome, Failure> {
    let request: StressorRequest = read_request("loads for people are `latlab load`")?;
    match start_workers(&request) {
        Ok(workers) => {
            console.document(&StressorEvent::Ready.line())?;
            if let Some(report) = workers.watch(io::stdin().lock()) {
                console.document(&StressorEvent::Reached(Box::new(report)).line())?;
            }
            Ok(Outcome::Done)
        }
        Err(failure) => {
            console.document(&StressorEvent::Refused(failure).line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn start_workers(request: &StressorRequest) -> Result<Workers, Failure> {
    tie_to_parent(request.parent)?;
    leave_real_time()?;
    Ok(Workers::start(request)?)
}

/// `latlab supervise`: runs a command, and ends with all that the command has left when standard input closes.
pub(super) fn supervised(console: &Console) -> Result<Outcome, Failure> {
    let command: SupervisedCommand = read_request("a command around runs is a hook of an experiment")?;
    let input = io::BufReader::new(io::stdin());
    // An event has no reader once latlab has ended.
    supervise(&command, input, &|event| _ = console.document(&event.line()));
    Ok(Outcome::Done)
}

/// `latlab watchdog`: waits until the agent that started it has ended, or kills it, and restores what it has set.
///
/// # Errors
/// `agent` runs and is not the parent of this process: a user has typed the command, and the settings of `agent` stay.
pub(super) fn watchdog(agent: u32) -> Result<Outcome, Failure> {
    if process::as_parent(agent).is_none() && process::is_alive(agent) {
        return Err(Failure::request(format!("process {agent} did not start this watchdog"))
            .hint("this command is for latlab itself; `latlab doctor --restore` restores what a latlab that has ended had set"));
    }
    let waited = wait_for_end(agent, io::stdin().as_fd());
    if let Some(journal) = KnobJournal::for_user() {
        restore_of(agent, &journal, &HostRoot::for_knobs());
    }
    waited.map_err(refused("watch standard input"))?;
    Ok(Outcome::Done)
}

/// The request on standard input. A user who typed the hidden command gets the hint `instead`.
fn read_request<Order: DeserializeOwned>(instead: &str) -> Result<Order, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(refused("read the order"))?;
    serde_json::from_str(&line).map_err(|error| {
        Failure::request("cannot read the settings on standard input")
            .because(error.to_string())
            .hint(format!("this command is for latlab itself; {instead}"))
    })
}

/// Makes this process end with the thread of `parent` that started it.
fn tie_to_parent(parent: u32) -> Result<(), Failure> {
    if process::tie_to_parent(parent).map_err(refused("tie this process to its parent"))? {
        Ok(())
    } else {
        Err(Failure::world("the process that started this one has ended"))
    }
}

/// Leaves real-time scheduling, which a parent under `chrt -f` passes on: a load with such a priority would take the CPUs
/// from the measurement.
fn leave_real_time() -> Result<(), Failure> {
    placement::leave_real_time().map_err(refused("leave real-time scheduling"))
}

enum ReflectorService {
    Sessions(Box<dyn Listener>, Box<SessionReflector>),
    /// Every message of this size, unparsed.
    Bare {
        end: BareEnd,
        wait: bare::Wait,
        size_bytes: u32,
    },
    /// No answers: counts what arrives.
    BareStream(BareCounter, bare::Wait),
}

impl ReflectorService {
    fn ready(&self) -> Result<ReflectorEvent, Failure> {
        let (address, receive_buffer_bytes, xdp) = match self {
            ReflectorService::Sessions(listener, _) => {
                (Ok(listener.address()), listener.receive_buffer_bytes(), listener.xdp().cloned())
            }
            ReflectorService::Bare { end, .. } => (end.address(), None, None),
            ReflectorService::BareStream(counter, _) => (counter.address(), None, None),
        };
        let address = address.map_err(refused("ask for the address"))?;
        Ok(ReflectorEvent::Ready { address, receive_buffer_bytes, xdp })
    }

    /// Answers until `stop`, on a thread that is pinned to `pin`.
    fn answer(self, pin: Option<u16>, stop: &AtomicBool) -> Result<Outcome, Failure> {
        match self {
            ReflectorService::Sessions(mut listener, mut sessions) => {
                let never = AtomicBool::new(false);
                listener.serve(&mut sessions, pin, Requests { stop, counters: &never }, &mut |_| {})?;
            }
            ReflectorService::Bare { mut end, wait, size_bytes } => {
                end.reflect(size_bytes as usize, wait, stop).map_err(refused("reflect"))?;
            }
            ReflectorService::BareStream(mut counter, wait) => {
                counter.count(wait, stop).map_err(refused("receive"))?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// `latlab bare`: the bare round-trip loop; prints the round trip that `latlab doctor --calibrate` keeps.
pub(super) fn bare_round_trips(spec: &BareSpec, console: &Console) -> Result<Outcome, Failure> {
    print(&calibrate(spec)?, console)
}

/// `latlab bare-stream`: the bare stream against a receiver of its own; prints what was delivered.
pub(super) fn bare_streams(job: BareStreamJob, console: &Console) -> Result<Outcome, Failure> {
    let request = ReflectorRequest::bare_stream(job.transport, job.loopback, job.peer, job.receiver);
    let delivered = with_peer(request, job.here, move |peer| {
        stream_bare(job.transport, peer, job.sending, job.size_bytes, job.span.0)
    });
    print(&delivered?, console)
}

/// `latlab bare-wakeup`: the bare loop of wake-ups; prints its quantiles.
pub(super) fn bare_wakeups(spec: &BareWakeupSpec, console: &Console) -> Result<Outcome, Failure> {
    print(&sleep_bare(spec)?, console)
}

fn print(figures: &impl Serialize, console: &Console) -> Result<Outcome, Failure> {
    let document = serde_json::to_string(figures)
        .map_err(|error| Failure::world("cannot write the figures").because(error.to_string()))?;
    console.document(&document)?;
    Ok(Outcome::Done)
}
