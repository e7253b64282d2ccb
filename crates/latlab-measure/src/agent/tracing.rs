//! The trace of an agent's host. Which part of it is wanted is known after the run: all of it is kept, compressed, as far as
//! memory allows.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::mem::take;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use latlab_sys::errno::explain;

use crate::diagnostics::Failure;
use crate::host::trace_thread::{TraceSink, TraceThread, wakeup_cost_ns};
use crate::host::tracing::Tracing as Rings;
use crate::recording::trace::TraceEvent;
use crate::units::Nanos;

/// Memory for the trace of a run, some five million events; of a longer one the first parts are dropped.
const MEMORY_BYTES: usize = 64 << 20;
/// Text that is compressed together.
const PART_BYTES: usize = 1 << 20;
/// The longest text of a reply, which is longer in JSON.
const TEXT_BYTES: usize = 512 << 10;

/// The trace of this host between its start and the end of the connection.
#[derive(Debug, Default)]
pub(super) enum Tracing {
    #[default]
    Idle,
    Running(TraceThread<History>),
    Ended(History),
}

impl Tracing {
    /// Begins to trace, and returns what that adds to one wake-up.
    pub(super) fn start(&mut self) -> Result<i64, Failure> {
        let begun = || {
            let rings = Rings::begin()?;
            let cost_ns = wakeup_cost_ns(&rings)?;
            Ok((cost_ns, TraceThread::begin(rings, History::default())?))
        };
        let hint = "an agent that is root, or has `cap_sys_admin`, on a kernel with tracefs and its scheduler events";
        let failure = |error| Failure::world("cannot trace the far host").because(explain(&error)).hint(hint);
        let (cost_ns, thread) = begun().map_err(failure)?;
        *self = Tracing::Running(thread);
        Ok(cost_ns)
    }

    /// Ends the trace, if it has not ended, and returns the text of these instants; `None` if it is not complete, or long.
    pub(super) fn text(&mut self, from: Nanos, to: Nanos) -> Result<Option<String>, Failure> {
        let failure = |error| Failure::world("cannot read the trace of the far host").because(explain(&error));
        *self = match take(self) {
            Tracing::Running(thread) => Tracing::Ended(thread.end().map_err(failure)?),
            other => other,
        };
        match self {
            Tracing::Ended(history) => history.text(from, to).map_err(failure),
            Tracing::Idle | Tracing::Running(_) => Ok(None),
        }
    }
}

/// The lines of a trace in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Each with the time that its events span.
    parts: VecDeque<([Nanos; 2], Vec<u8>)>,
    bytes: usize,
    open: String,
    span: [Nanos; 2],
    /// When the last event of each CPU was.
    last: BTreeMap<u16, Nanos>,
    /// Between which instants events are missing.
    gaps: Vec<[Nanos; 2]>,
}

impl TraceSink for History {
    fn take(&mut self, TraceEvent { at, cpu, .. }: TraceEvent<'_>, line: &str, follows_loss: bool) {
        let last = self.last.insert(cpu, at).unwrap_or(Nanos::ZERO);
        if follows_loss {
            self.gaps.push([last, at]);
        }
        let [from, to] = if self.open.is_empty() { [at, at] } else { self.span };
        self.span = [from.min(at), to.max(at)];
        self.open.push_str(line);
        self.open.push('\n');
        if self.open.len() >= PART_BYTES {
            self.close();
        }
    }

    fn rest(&mut self, _now: Nanos) {}
}

impl History {
    fn close(&mut self) {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        // A vector takes all.
        let mut packed = packed.write_all(self.open.as_bytes()).and_then(|()| packed.finish()).unwrap_or_default();
        packed.shrink_to_fit();
        self.open.clear();
        self.bytes += packed.len();
        self.parts.push_back((self.span, packed));
        while self.bytes > MEMORY_BYTES
            && let Some(([_, to], dropped)) = self.parts.pop_front()
        {
            self.bytes -= dropped.len();
            self.gaps.retain(|[_, end]| *end > to);
            self.gaps.push([Nanos::ZERO, to]);
        }
    }

    fn text(&mut self, from: Nanos, to: Nanos) -> io::Result<Option<String>> {
        let is_in = |[first, last]: &[Nanos; 2]| *first <= to && from <= *last;
        if self.gaps.iter().any(is_in) {
            return Ok(None);
        }
        if !self.open.is_empty() {
            self.close();
        }
        let (mut lines, mut bytes) = (Vec::<(Nanos, String)>::new(), 0);
        for (_, packed) in self.parts.iter().filter(|(span, _)| is_in(span)) {
            let mut text = String::new();
            DeflateDecoder::new(packed.as_slice()).read_to_string(&mut text)?;
            let events = text.lines().filter_map(|line| Some((TraceEvent::parse(line)?.at, line.to_owned())));
            lines
                .extend(events.filter(|(at, _)| from <= *at && *at <= to).inspect(|(_, line)| bytes += line.len() + 1));
            if bytes > TEXT_BYTES {
                return Ok(None);
            }
        }
        lines.sort_by_key(|(at, _)| *at);
        Ok(Some(lines.into_iter().flat_map(|(_, line)| [line, "\n".into()]).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_us: i64) -> String {
        format!("cc1-7 [001] d..2. 0.{at_us:06}: sched_waking: comm=x pid=7 prio=120 target_cpu=001")
    }

    #[test]
    fn what_is_complete_is_read_again() {
        let mut history = History::default();
        for at in 1..100_000 {
            let line = line(at);
            history.take(TraceEvent::parse(&line).expect("an event"), &line, at == 50_000);
        }
        assert!(history.parts.len() > 1, "several parts");
        let micros = |at: i64| Nanos(at * 1_000);
        let text = history.text(micros(30_000), micros(30_002)).expect("reads").expect("complete");
        assert_eq!(text, format!("{}\n{}\n{}\n", line(30_000), line(30_001), line(30_002)));
        assert_eq!(history.text(micros(99_999), micros(200_000)).expect("reads"), Some(line(99_999) + "\n"));
        for (from, to) in [(49_000, 51_000), (49_999, 49_999), (50_000, 50_001), (60_000, 99_000)] {
            assert_eq!(history.text(micros(from), micros(to)).expect("reads"), None, "{from} to {to}");
        }
    }
}
