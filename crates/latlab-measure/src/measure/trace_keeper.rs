//! What the CPUs ran around the slowest probes or wake-ups of the runs of a plan (`--trace`, `--break`). The rings of the
//! kernel are emptied during the run by a thread that runs where nothing else would; it keeps the last seconds, until the
//! writers of the recordings know which probes were slow.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::mem::take;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use latlab_sys::scheduler::set_idle;
use latlab_sys::sleep::current_thread;

use super::run::{MeasuredRun, on_own_thread};
use super::{MeasureError, RecordingTarget};
use crate::clock::{Clock, Monotonic};
use crate::host::placement;
use crate::host::tracing::Tracing;
use crate::plan::{EndSpec, RunSpec, defaults};
use crate::recording::trace::{TraceEvent, span_comment};
use crate::recording::{RecordingProgress, SlowSpan};
use crate::units::Nanos;

/// The part of the trace before its end in which the span of a slow probe is looked for: its time-out or so, and twice the
/// time that the writer of its recording waits.
const RETAINED: Nanos = Nanos::from_secs(3);
/// Some 60 MB.
const LINES_MAX: usize = 300_000;
/// Wake-ups in a batch, and pairs of batches, to measure the cost of tracing: some 20 ms.
const COST_ROUNDS: usize = 200;
const COST_PAIRS: usize = 21;

/// The thread that keeps the traces of `runs`.
pub(super) struct TraceKeeper {
    over: Arc<AtomicBool>,
    /// By which the kernel knows it; 0 before it runs.
    number: Arc<AtomicI32>,
    thread: JoinHandle<io::Result<Vec<KeptSpans>>>,
}

impl TraceKeeper {
    /// Begins to trace, if the runs ask for it, and enters what that costs. A run that ends at a late wake-up goes on without,
    /// with a caveat.
    ///
    /// # Errors
    /// The kernel does not trace, or nothing is recorded.
    pub(super) fn begin<R: MeasuredRun>(
        first: &RunSpec,
        target: RecordingTarget<'_>,
        runs: &mut [R],
    ) -> Result<Option<TraceKeeper>, MeasureError> {
        if !first.is_traced() {
            return Ok(None);
        }
        let kept = target.store.keeps() || target.directory.is_some();
        let not_kept = || io::Error::new(io::ErrorKind::InvalidInput, "nothing is recorded");
        let mut tracing = match Tracing::begin().and_then(|begun| kept.then_some(begun).ok_or_else(not_kept)) {
            Ok(tracing) => tracing,
            Err(error) if first.trace => return Err(MeasureError::Trace(error)),
            Err(error) => {
                runs.iter_mut().for_each(|run| run.writer().note_trace_missing(&error));
                return Ok(None);
            }
        };
        let cost_ns = wakeup_cost_ns(&tracing)?;
        runs.iter_mut().for_each(|run| run.writer().manifest_mut().run.trace_cost_ns = Some(cost_ns));
        let of = |run: &mut R| KeptSpans { progress: run.writer().progress(), spans: Vec::new() };
        let mut kept: Vec<KeptSpans> = runs.iter_mut().map(of).collect();
        let (over, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
        let (is_over, known) = (Arc::clone(&over), Arc::clone(&number));
        let begun = Nanos(Monotonic.now().as_nanos());
        let work = move || {
            known.store(current_thread(), Ordering::Release);
            // Else it delays what it watches.
            _ = set_idle(current_thread(), true);
            keep(&mut tracing, &mut kept, &is_over, begun).map(|()| kept)
        };
        let thread = thread::Builder::new().name("latlab-trace".into()).spawn(work).map_err(MeasureError::Thread)?;
        Ok(Some(TraceKeeper { over, number, thread }))
    }

    /// Ends the trace, and gives each run its own.
    pub(super) fn end<R: MeasuredRun>(self, runs: &mut [R]) {
        // From now on it may delay others: what happened last must not be overwritten.
        _ = set_idle(self.number.load(Ordering::Acquire), false);
        let progress: Vec<_> = runs.iter_mut().map(|run| run.writer().progress()).collect();
        let counted: Vec<u64> = progress.iter().map(|run| run.passes() + 2).collect();
        while progress.iter().zip(&counted).any(|(run, counted)| run.passes() < *counted) {
            thread::sleep(defaults::NAP.to_duration());
        }
        self.over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let kept = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        for (place, run) in runs.iter_mut().enumerate() {
            match &kept {
                Ok(kept) => run.writer().keep_trace(&kept[place].text()),
                Err(error) => run.writer().note_trace_missing(error),
            }
        }
    }
}

/// Lines of the kernel with their times, in the order in which they were read.
type TimedLines = VecDeque<(Nanos, String)>;

/// Keeps the lines from when they are complete, at first from `begun` on, until `over`.
fn keep(tracing: &mut Tracing, kept: &mut [KeptSpans], over: &AtomicBool, begun: Nanos) -> io::Result<()> {
    let (mut lines, mut bytes, mut last) = (TimedLines::new(), Vec::new(), Nanos::ZERO);
    let (mut complete_from, mut is_lossy) = (begun, false);
    loop {
        let (is_over, now) = (over.load(Ordering::Acquire), Nanos(Monotonic.now().as_nanos()));
        if is_over {
            tracing.turn(false)?;
        }
        let has_more = tracing.drain(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            let Some(event) = TraceEvent::parse(line) else {
                // `CPU:1 [LOST 345 EVENTS]`: the kernel overwrote those before the next line.
                is_lossy |= line.contains(" [LOST ");
                continue;
            };
            last = last.max(event.at);
            if take(&mut is_lossy) {
                complete_from = last;
            }
            lines.push_back((event.at, line.to_owned()));
        }
        bytes.drain(..whole);
        if !has_more {
            kept.iter_mut().for_each(|kept| kept.update(&lines, complete_from, now));
        }
        while lines.len() > LINES_MAX || lines.front().is_some_and(|(at, _)| !has_more && *at < now - RETAINED) {
            complete_from = complete_from.max(lines.pop_front().map_or(last, |(at, _)| at));
        }
        match (has_more, is_over) {
            (true, _) => {}
            (false, true) => return Ok(()),
            (false, false) => thread::park_timeout(defaults::DRAIN.to_duration()),
        }
    }
}

/// The lines around the slowest spans of a run.
struct KeptSpans {
    progress: RecordingProgress,
    spans: Vec<(SlowSpan, (Nanos, Nanos), TimedLines)>,
}

impl KeptSpans {
    /// Keeps those of `lines`, which are complete between these instants, that are of its slowest spans.
    fn update(&mut self, lines: &TimedLines, complete_from: Nanos, through: Nanos) {
        let slowest = self.progress.slowest();
        self.spans.retain(|(span, ..)| slowest.contains(span));
        for span in slowest {
            let [from, to] = [span.from, span.to].map(|at| Nanos(at.as_nanos()));
            let ends = (complete_from.max(from - defaults::TRACED_BEFORE), to + defaults::TRACED_AFTER);
            if complete_from <= from && ends.1 < through && self.spans.iter().all(|(known, ..)| *known != span) {
                let inside = lines.iter().filter(|(at, _)| ends.0 <= *at && *at <= ends.1);
                self.spans.push((span, ends, inside.cloned().collect()));
            }
        }
    }

    /// The spans in the order of time; those that overlap are one.
    fn text(&self) -> String {
        let mut spans: Vec<_> = self.spans.iter().map(|(_, ends, lines)| (*ends, lines)).collect();
        spans.sort_by_key(|(ends, _)| *ends);
        let mut joined = Vec::<((Nanos, Nanos), Vec<_>)>::new();
        for ((from, to), lines) in spans {
            match joined.last_mut().filter(|((_, until), _)| from <= *until) {
                Some(((_, until), known)) => {
                    known.extend(lines.iter().filter(|(at, _)| at > until));
                    *until = to.max(*until);
                }
                None => joined.push(((from, to), lines.iter().collect())),
            }
        }
        let mut text = String::new();
        for ((from, to), mut lines) in joined {
            lines.sort_by_key(|(at, _)| *at);
            text.push_str(&span_comment(from, to));
            lines.iter().for_each(|(_, line)| _ = writeln!(text, "{line}"));
        }
        text
    }
}

/// What tracing adds to one wake-up: the median over pairs of batches, with and without it, in which two threads of one CPU
/// wait for each other.
fn wakeup_cost_ns(tracing: &Tracing) -> Result<i64, MeasureError> {
    on_own_thread("cost", || {
        let cpu = placement::allowed_cpus().first().copied();
        placement::place(&EndSpec { cpu, ..EndSpec::SYSTEM })?;
        let both = Barrier::new(2);
        let batch = |on| {
            // Without effect the cost is 0.
            _ = tracing.turn(on);
            let start = Monotonic.now();
            (0..COST_ROUNDS).for_each(|_| _ = both.wait());
            (Monotonic.now() - start).0
        };
        thread::scope(|scope| {
            scope.spawn(|| (0..2 * COST_PAIRS * COST_ROUNDS).for_each(|_| _ = both.wait()));
            let mut differences: Vec<i64> = (0..COST_PAIRS).map(|_| -batch(false) + batch(true)).collect();
            differences.sort_unstable();
            Ok(differences[COST_PAIRS / 2] / COST_ROUNDS as i64)
        })
    })
}
