//! What the CPUs ran around the slowest probes or wake-ups of the runs of a plan (`--trace`, `--break`). The rings of the
//! kernel are emptied during the run by a thread that runs where nothing else would; it keeps the last seconds, until the
//! writers of the recordings know which probes were slow.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::thread;

use super::run::MeasuredRun;
use super::{MeasureError, RecordingTarget};
use crate::clock::{Clock, Monotonic};
use crate::host::trace_thread::{TraceSink, TraceThread, wakeup_cost_ns};
use crate::host::tracing::Tracing;
use crate::plan::{RunSpec, Side, defaults};
use crate::recording::trace::{TraceEvent, span_comment};
use crate::recording::{RecordingProgress, SlowSpan};
use crate::units::Nanos;

/// The part of the trace before its end in which the span of a slow probe is looked for: its time-out or so, and twice the
/// time that the writer of its recording waits.
const RETAINED: Nanos = Nanos::from_secs(3);
/// Some 60 MB.
const LINES_MAX: usize = 300_000;

/// The thread that keeps the traces of `runs`.
pub(super) struct TraceKeeper(TraceThread<SlowestLines>);

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
        let tracing = match Tracing::begin().and_then(|begun| kept.then_some(begun).ok_or_else(not_kept)) {
            Ok(tracing) => tracing,
            Err(error) if first.trace => return Err(MeasureError::Trace(error)),
            Err(error) => {
                runs.iter_mut().for_each(|run| run.writer().note_trace_missing(&error));
                return Ok(None);
            }
        };
        let cost_ns = wakeup_cost_ns(&tracing).map_err(MeasureError::Thread)?;
        runs.iter_mut().for_each(|run| run.writer().manifest_mut().run.trace_cost_ns = Some(cost_ns));
        let of = |run: &mut R| KeptSpans { progress: run.writer().progress(), spans: Vec::new() };
        let sink = SlowestLines {
            kept: runs.iter_mut().map(of).collect(),
            lines: TimedLines::new(),
            complete_from: Nanos(Monotonic.now().as_nanos()),
            last: Nanos::ZERO,
        };
        Ok(Some(TraceKeeper(TraceThread::begin(tracing, sink).map_err(MeasureError::Thread)?)))
    }

    /// Ends the trace, and gives each run its own.
    pub(super) fn end<R: MeasuredRun>(self, runs: &mut [R]) {
        self.0.hurry();
        let progress: Vec<_> = runs.iter_mut().map(|run| run.writer().progress()).collect();
        let counted: Vec<u64> = progress.iter().map(|run| run.passes() + 2).collect();
        while progress.iter().zip(&counted).any(|(run, counted)| run.passes() < *counted) {
            thread::sleep(defaults::NAP.to_duration());
        }
        let kept = self.0.end();
        for (place, run) in runs.iter_mut().enumerate() {
            match &kept {
                Ok(sink) => run.writer().keep_trace(Side::Local, &sink.kept[place].text()),
                Err(error) => run.writer().note_trace_missing(error),
            }
        }
    }
}

/// Lines of the kernel with their times, in the order in which they were read.
type TimedLines = VecDeque<(Nanos, String)>;

/// The last lines of the trace, and those around the slowest spans of each run.
struct SlowestLines {
    kept: Vec<KeptSpans>,
    lines: TimedLines,
    complete_from: Nanos,
    last: Nanos,
}

impl SlowestLines {
    fn drop_first(&mut self) {
        self.complete_from = self.complete_from.max(self.lines.pop_front().map_or(self.last, |(at, _)| at));
    }
}

impl TraceSink for SlowestLines {
    fn take(&mut self, TraceEvent { at, .. }: TraceEvent<'_>, line: &str, follows_loss: bool) {
        self.last = self.last.max(at);
        if follows_loss {
            self.complete_from = self.last;
        }
        self.lines.push_back((at, line.to_owned()));
        if self.lines.len() > LINES_MAX {
            self.drop_first();
        }
    }

    fn rest(&mut self, now: Nanos) {
        self.kept.iter_mut().for_each(|kept| kept.update(&self.lines, self.complete_from, now));
        while self.lines.front().is_some_and(|(at, _)| *at < now - RETAINED) {
            self.drop_first();
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
