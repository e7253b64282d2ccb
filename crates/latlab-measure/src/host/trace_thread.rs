//! The thread that empties the rings of a trace while it grows. It runs where nothing else would, so that it hardly delays
//! what it watches.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use latlab_sys::scheduler::set_idle;
use latlab_sys::sleep::current_thread;

use super::placement;
use super::tracing::Tracing;
use crate::clock::{Clock, Monotonic};
use crate::plan::{EndSpec, defaults};
use crate::recording::trace::TraceEvent;
use crate::units::Nanos;

/// Wake-ups in a batch, and pairs of batches, to measure the cost of tracing: some 20 ms.
const COST_ROUNDS: usize = 200;
const COST_PAIRS: usize = 21;

/// What keeps the lines of a trace.
pub trait TraceSink: Send + 'static {
    /// Takes an event and its line, in the order in which they are read; if it `follows_loss`, events of its CPU before it were
    /// overwritten.
    fn take(&mut self, event: TraceEvent<'_>, line: &str, follows_loss: bool);

    /// The rings have nothing from before `now`.
    fn rest(&mut self, now: Nanos);
}

/// A trace that grows; dropping this value ends it.
#[derive(Debug)]
pub struct TraceThread<S> {
    over: Arc<AtomicBool>,
    /// What the rings have at the end is not read.
    is_dropped: Arc<AtomicBool>,
    /// By which the kernel knows it; 0 before it runs.
    number: Arc<AtomicI32>,
    thread: Option<JoinHandle<io::Result<S>>>,
}

impl<S: TraceSink> TraceThread<S> {
    /// # Errors
    /// The thread cannot be started.
    pub fn begin(mut tracing: Tracing, mut sink: S) -> io::Result<TraceThread<S>> {
        let [over, is_dropped] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let number = Arc::new(AtomicI32::new(0));
        let (ends, known) = ([Arc::clone(&over), Arc::clone(&is_dropped)], Arc::clone(&number));
        let work = move || {
            known.store(current_thread(), Ordering::Release);
            // Else it delays what it watches.
            _ = set_idle(current_thread(), true);
            empty(&mut tracing, &mut sink, &ends).map(|()| sink)
        };
        let thread = Some(thread::Builder::new().name("latlab-trace".into()).spawn(work)?);
        Ok(TraceThread { over, is_dropped, number, thread })
    }

    /// Ends the trace, and returns what was kept of it.
    ///
    /// # Errors
    /// The rings could not be read.
    pub fn end(mut self) -> io::Result<S> {
        let ended = || Err(io::ErrorKind::NotFound.into());
        self.join().map_or_else(ended, |joined| joined.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<S> TraceThread<S> {
    /// From now on it may delay others: what happened last must not be overwritten.
    pub fn hurry(&self) {
        let number = self.number.load(Ordering::Acquire);
        // 0 would be the calling thread.
        _ = (number > 0).then(|| set_idle(number, false));
    }

    fn join(&mut self) -> Option<thread::Result<io::Result<S>>> {
        let thread = self.thread.take()?;
        self.hurry();
        self.over.store(true, Ordering::Release);
        thread.thread().unpark();
        Some(thread.join())
    }
}

impl<S> Drop for TraceThread<S> {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Release);
        _ = self.join();
    }
}

/// Gives `sink` all lines until it is over, or dropped.
fn empty(tracing: &mut Tracing, sink: &mut impl TraceSink, ends: &[Arc<AtomicBool>; 2]) -> io::Result<()> {
    let (mut bytes, mut follows_loss) = (Vec::new(), false);
    loop {
        let [is_over, is_dropped] = ends.each_ref().map(|end| end.load(Ordering::Acquire));
        let now = Nanos(Monotonic.now().as_nanos());
        if is_over {
            tracing.turn(false)?;
        }
        if is_dropped {
            return Ok(());
        }
        let has_more = tracing.drain(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            match TraceEvent::parse(line) {
                Some(event) => sink.take(event, line, std::mem::take(&mut follows_loss)),
                // `CPU:1 [LOST 345 EVENTS]`: the kernel overwrote those before the next line.
                None => follows_loss |= line.contains(" [LOST "),
            }
        }
        bytes.drain(..whole);
        if has_more {
            continue;
        }
        sink.rest(now);
        if is_over {
            return Ok(());
        }
        thread::park_timeout(defaults::DRAIN.to_duration());
    }
}

/// What tracing adds to one wake-up: the median over pairs of batches, with and without it, in which two threads of one CPU
/// wait for each other.
///
/// # Errors
/// The threads cannot be started.
pub fn wakeup_cost_ns(tracing: &Tracing) -> io::Result<i64> {
    let both = Barrier::new(2);
    let other = || (0..2 * COST_PAIRS * COST_ROUNDS).for_each(|_| _ = both.wait());
    let batch = |on| {
        // Without effect the cost is 0.
        _ = tracing.turn(on);
        let start = Monotonic.now();
        (0..COST_ROUNDS).for_each(|_| _ = both.wait());
        (Monotonic.now() - start).0
    };
    let median = || {
        let mut differences: Vec<i64> = (0..COST_PAIRS).map(|_| -batch(false) + batch(true)).collect();
        differences.sort_unstable();
        differences[COST_PAIRS / 2] / COST_ROUNDS as i64
    };
    thread::scope(|scope| {
        let measuring = thread::Builder::new().name("cost".into()).spawn_scoped(scope, || {
            let cpu = placement::allowed_cpus().first().copied();
            // Anywhere else it is measured as well. The other thread inherits the place.
            _ = placement::place(&EndSpec { cpu, ..EndSpec::SYSTEM });
            scope.spawn(other);
            median()
        })?;
        Ok(measuring.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
