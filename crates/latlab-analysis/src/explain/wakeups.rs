//! Wake-ups that were measured during the probes: how late they were, and the spans in which a thread was due to run and
//! did not. Definitions: docs/design/0032-explain.md.

use std::collections::BTreeMap;

use serde::Serialize;

use super::slow::order_statistic;
use crate::plan::WakeupCpus;
use crate::probe::Phase;
use crate::source::{ProbeSource, cpu_at};
use crate::units::Nanos;

/// Wake-ups later than this quantile of those on their CPU are late, unless a latency was given. With a common one all late
/// wake-ups would be those of a busy CPU.
const LATE: f64 = 0.99;

/// Wake-ups during the probes of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WatchedWakeups {
    pub interval_ns: Nanos,
    /// Empty if they are those of any CPU.
    pub cpus: Vec<u16>,
    pub n: u64,
    pub p50_ns: i64,
    pub p99_ns: i64,
    pub max_ns: i64,
    pub late: u64,
    /// The latency from which they are late, if it was given; otherwise beyond the 99th percentile of their CPU.
    pub late_from_ns: Option<Nanos>,
}

/// Late stretches of a CPU, from the due time to the wake-up; ascending and disjoint.
type Stretches = Vec<(i64, i64)>;

pub(super) struct Watched {
    pub(super) figures: WatchedWakeups,
    pub(super) by_cpu: BTreeMap<u16, Stretches>,
    /// Those of all CPUs, for probes whose CPU is not known or was not watched.
    pub(super) any: Stretches,
}

impl Watched {
    /// Whether a thread on `cpu` was late at any time from `from` to `to`.
    pub(super) fn is_late(&self, cpu: u16, from: i64, to: i64) -> bool {
        let stretches = self.by_cpu.get(&cpu).unwrap_or(&self.any);
        let next = stretches.partition_point(|(_, woke)| *woke < from);
        stretches.get(next).is_some_and(|(due, _)| *due <= to)
    }
}

/// The wake-ups of `source`; `None` if no thread slept beside its probes.
pub(super) fn watched<S: ProbeSource>(source: &S) -> Result<Option<Watched>, S::Error> {
    let Some(concurrent) = source.manifest().spec.concurrent_wakeups() else { return Ok(None) };
    let mut by_cpu: BTreeMap<Option<u16>, Stretches> = BTreeMap::new();
    source.visit_wakeups(&mut |batch| {
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let slot = (batch.due_ns.values[row], batch.woke_ns.values[row]);
            by_cpu.entry(cpu_at(&batch.cpu, row)).or_default().push(slot);
        }
    })?;
    let latency = |(due, woke): &(i64, i64)| woke.saturating_sub(*due);
    let mut all_ns: Vec<i64> = by_cpu.values().flatten().map(latency).collect();
    for slots in by_cpu.values_mut() {
        let mut latencies: Vec<i64> = slots.iter().map(latency).collect();
        let beyond = concurrent.late_ns.map_or_else(|| order_statistic(&mut latencies, LATE), |span| span.0);
        slots.retain(|slot| latency(slot) > beyond);
    }
    let late = by_cpu.values().map(|slots| slots.len() as u64).sum();
    let figures = WatchedWakeups {
        interval_ns: concurrent.interval_ns,
        cpus: match &concurrent.cpus {
            WakeupCpus::These(cpus) => cpus.clone(),
            WakeupCpus::Anywhere | WakeupCpus::All => Vec::new(),
        },
        n: all_ns.len() as u64,
        p50_ns: order_statistic(&mut all_ns, 0.5),
        p99_ns: order_statistic(&mut all_ns, LATE),
        max_ns: order_statistic(&mut all_ns, 1.0),
        late,
        late_from_ns: concurrent.late_ns,
    };
    let any = disjoint(by_cpu.values().flatten().copied().collect());
    let by_cpu = by_cpu.into_iter().filter_map(|(cpu, slots)| Some((cpu?, disjoint(slots)))).collect();
    Ok(Some(Watched { figures, by_cpu, any }))
}

/// The union of spans.
fn disjoint(mut spans: Stretches) -> Stretches {
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let meets = next.0 <= kept.1;
        if meets {
            kept.1 = kept.1.max(next.1);
        }
        meets
    });
    spans
}
