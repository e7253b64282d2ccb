//! What the CPUs ran while a probe or wake-up was late, from the trace of the run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::Side;
use crate::recording::trace::{Trace, TraceSegment};

/// What one CPU ran in the slowest stage of a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RanThen {
    /// Whose CPU: `local` or `peer`.
    pub at: Side,
    pub cpu: u16,
    /// The name of a task, `idle`, or that of an interrupt.
    pub what: String,
    pub is_interrupt: bool,
    /// The time of its own, without interrupts of it.
    pub ns: i64,
    pub times: u64,
}

/// What a CPU ran from `from` to `to`, the longest first; empty if the trace is not complete there.
pub(super) fn ran(trace: &Trace<'_>, (at, cpu): (Side, u16), from: i64, to: i64) -> Vec<RanThen> {
    if !trace.covers(from, to) {
        return Vec::new();
    }
    let of = |segment: &TraceSegment<'_>| segment.to_ns.min(to) - segment.from_ns.max(from);
    let is_then = |segment: &&TraceSegment<'_>| segment.cpu == cpu && of(segment) > 0;
    let mut then: Vec<&TraceSegment<'_>> = trace.segments.iter().filter(is_then).collect();
    then.sort_by_key(|segment| (segment.from_ns, std::cmp::Reverse(segment.to_ns), segment.is_interrupt));
    let mut sums: BTreeMap<(&str, bool), (i64, u64)> = BTreeMap::new();
    // Those that contain the next one, the innermost last.
    let mut around: Vec<&TraceSegment<'_>> = Vec::new();
    for segment in then {
        while around.pop_if(|last| last.to_ns < segment.to_ns).is_some() {}
        let interrupted = around.last().copied().filter(|_| segment.is_interrupt);
        around.push(segment);
        for (one, ns, times) in [(Some(segment), of(segment), 1), (interrupted, -of(segment), 0)] {
            let Some(one) = one else { continue };
            let sum = sums.entry((one.what, one.is_interrupt)).or_default();
            *sum = (sum.0 + ns, sum.1 + times);
        }
    }
    let ran = |((what, is_interrupt), (ns, times)): ((&str, bool), (i64, u64))| {
        let what = what.to_owned();
        RanThen { at, cpu, what, is_interrupt, ns, times }
    };
    let mut ran: Vec<RanThen> = sums.into_iter().map(ran).filter(|ran| ran.ns > 0).collect();
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.ns));
    ran
}
