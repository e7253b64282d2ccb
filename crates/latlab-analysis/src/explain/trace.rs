//! What the CPUs ran while a probe or wake-up was late, from the trace of the run.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::recording::trace::{Trace, TraceSegment};

/// What one CPU ran in the slowest stage of a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RanThen {
    pub cpu: u16,
    /// The name of a task, `idle`, or that of an interrupt.
    pub what: String,
    pub is_interrupt: bool,
    /// The time of its own, without interrupts of it.
    pub ns: i64,
    pub times: u64,
}

/// What `cpu` ran from `from` to `to`, the longest first; empty if the trace is not complete there.
pub(super) fn ran(trace: &Trace<'_>, cpu: u16, from: i64, to: i64) -> Vec<RanThen> {
    let of = |segment: &TraceSegment<'_>| segment.to_ns.min(to) - segment.from_ns.max(from);
    let is_then = |segment: &&TraceSegment<'_>| segment.cpu == cpu && of(segment) > 0 && trace.covers(from, to);
    let then: Vec<&TraceSegment<'_>> = trace.segments.iter().filter(is_then).collect();
    let mut sums: BTreeMap<(&str, bool), (i64, u64)> = BTreeMap::new();
    for segment in &then {
        let length = |other: &TraceSegment<'_>| other.to_ns - other.from_ns;
        let is_around = |other: &&&TraceSegment<'_>| {
            other.from_ns <= segment.from_ns && segment.to_ns <= other.to_ns && length(other) > length(segment)
        };
        let around = then.iter().filter(|_| segment.is_interrupt).filter(is_around).min_by_key(|other| length(other));
        for (one, ns, times) in [(Some(segment), of(segment), 1), (around, -of(segment), 0)] {
            let Some(one) = one else { continue };
            let sum = sums.entry((one.what, one.is_interrupt)).or_default();
            *sum = (sum.0 + ns, sum.1 + times);
        }
    }
    let ran = |((what, is_interrupt), (ns, times)): ((&str, bool), (i64, u64))| {
        let what = what.to_owned();
        RanThen { cpu, what, is_interrupt, ns, times }
    };
    let mut ran: Vec<RanThen> = sums.into_iter().map(ran).filter(|ran| ran.ns > 0).collect();
    ran.sort_by_key(|ran| std::cmp::Reverse(ran.ns));
    ran
}
