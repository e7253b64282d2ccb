//! Coincidences of slow probes with late wake-ups of this host, which show the part of its scheduler in the tail.
//! Definitions: docs/design/0015-with-wakeup.md.

use std::collections::BTreeMap;

use super::late_stretches::{LateStretches, ProbeFlight};
use crate::metric::Metric;
use crate::plan::{ConcurrentWakeups, WakeupCpus, defaults};
use crate::probe::{Fate, Phase};
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::Sample;
use crate::source::{ProbeSource, RowVisitor, cpu_at, for_each_measured, value_at, visit_rows};
use crate::stats::{DescribeOptions, Description, Share, describe, plain, share};
use crate::units::Nanos;

/// Beyond this quantile wake-ups are late on their CPU and probes are slow, unless a threshold was given.
const TAIL: f64 = 0.99;

/// The delay beyond which a probe is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// In ns; `None` if there was nothing to take a quantile of.
    pub beyond_ns: Option<f64>,
    /// Whether it was given; otherwise it is the 99th percentile.
    pub stated: bool,
}

impl Threshold {
    /// `stated`, or the quantile of `values`.
    fn of(stated: Option<Nanos>, values: &Sample) -> Threshold {
        let beyond_ns = stated.map(|span| span.0 as f64).or_else(|| tail(values));
        Threshold { beyond_ns, stated: stated.is_some() }
    }

    fn is_beyond(&self, value: i64) -> bool {
        self.beyond_ns.is_some_and(|beyond| value as f64 > beyond)
    }
}

fn tail(values: &Sample) -> Option<f64> {
    plain(values, &[TAIL], false).quantiles.first().and_then(|quantile| quantile.value)
}

/// The latency beyond which a wake-up is late, ns.
#[derive(Clone, Debug, PartialEq)]
pub enum LateBeyond {
    /// As given, for every CPU.
    Stated(f64),
    /// The 99th percentile of each CPU; with a common one all late wake-ups would be those of a busy CPU. Empty without
    /// wake-ups.
    Tails(BTreeMap<Option<u16>, f64>),
}

impl LateBeyond {
    fn is_late(&self, cpu: Option<u16>, latency_ns: i64) -> bool {
        let beyond = match self {
            LateBeyond::Stated(beyond) => Some(beyond),
            LateBeyond::Tails(by_cpu) => by_cpu.get(&cpu),
        };
        beyond.is_some_and(|beyond| latency_ns as f64 > *beyond)
    }
}

/// Slow probes that coincided with late wake-ups.
#[derive(Clone, Debug, PartialEq)]
pub struct Coincidence {
    pub interval_ns: Nanos,
    pub cpus: Vec<u16>,
    pub wakeup_latency: Description,
    /// Slots that were past when their thread returned from the one before.
    pub overrun_slots: u64,
    /// The latency beyond which a wake-up was late.
    pub late_beyond: LateBeyond,
    pub late: u64,
    /// The delay beyond which a probe was slow: its round trip, or with a deadline its wait for the answer.
    pub slow_beyond: Threshold,
    /// Of the slow probes (n) those that coincided (hits); without a value if [`Coincidence::is_backlog`].
    pub slow: Share,
    /// The share of them expected by chance; `None` without slow probes, or if [`Coincidence::is_backlog`].
    pub chance: Option<f64>,
    /// Whether nothing can be judged: on the CPUs of most slow probes most slots were past when their thread returned
    /// from the one before, so that threads were late because they could not keep the interval.
    pub is_backlog: bool,
}

/// The slow probes of `source` that coincided with late wake-ups; `None` without concurrent wake-ups.
pub(crate) fn coincidence<S: ProbeSource>(
    source: &S,
    deadline: Option<Nanos>,
    describing: &DescribeOptions,
) -> Result<Option<Coincidence>, S::Error> {
    let Some(concurrent) = source.manifest().spec.concurrent_wakeups() else { return Ok(None) };
    let latencies = Latencies::of(source, concurrent, describing)?;
    let stretches = late_stretches(source, concurrent.interval_ns, &latencies.late_beyond)?;
    let by_deadline = deadline.is_some();
    let mut waits = Waits { by_deadline, each: Vec::new() };
    if !by_deadline {
        visit_rows(source, &mut [&mut waits])?;
    }
    let slow_beyond = Threshold::of(deadline, &Sample::new(Metric::RoundTripDelay, waits.each));
    let mut slow = SlowProbes { beyond: slow_beyond, by_deadline, flights: Vec::new() };
    visit_rows(source, &mut [&mut slow])?;
    let flights = slow.flights;
    // 1 for each that met one: slow probes come in bursts, and the interval depends on their order.
    let met = flights.iter().map(|flight| i64::from(stretches.meet(flight))).collect();
    let mut slow = share(&Sample::new(Metric::RoundTripDelay, met), defaults::CONFIDENCE, |met| met == 1);
    let mut chance = stretches.chance(&flights);
    let in_backlog = flights.iter().filter(|flight| stretches.is_backlog(flight)).count();
    let is_backlog = in_backlog > flights.len() / 2;
    if is_backlog {
        (slow.value, slow.interval, chance) = (None, None, None);
    }
    Ok(Some(Coincidence {
        interval_ns: concurrent.interval_ns,
        cpus: match &concurrent.cpus {
            WakeupCpus::These(cpus) => cpus.clone(),
            WakeupCpus::Anywhere | WakeupCpus::All => Vec::new(),
        },
        wakeup_latency: latencies.described,
        overrun_slots: latencies.overrun_slots,
        late_beyond: latencies.late_beyond,
        late: stretches.late(),
        slow_beyond,
        slow,
        chance,
        is_backlog,
    }))
}

struct Wakeup {
    cpu: Option<u16>,
    due_ns: i64,
    woke_ns: i64,
}

impl Wakeup {
    fn latency_ns(&self) -> i64 {
        self.woke_ns.saturating_sub(self.due_ns)
    }
}

fn for_each_wakeup<S: ProbeSource>(source: &S, mut each: impl FnMut(Wakeup)) -> Result<(), S::Error> {
    source.visit_wakeups(&mut |batch| {
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let (due_ns, woke_ns) = (batch.due_ns.values[row], batch.woke_ns.values[row]);
            each(Wakeup { cpu: cpu_at(&batch.cpu, row), due_ns, woke_ns });
        }
    })
}

/// The latencies of the measured wake-ups.
struct Latencies {
    described: Description,
    late_beyond: LateBeyond,
    overrun_slots: u64,
}

impl Latencies {
    fn of<S: ProbeSource>(
        source: &S,
        concurrent: &ConcurrentWakeups,
        describing: &DescribeOptions,
    ) -> Result<Latencies, S::Error> {
        let (mut each, mut overrun_slots) = (Vec::new(), 0);
        let mut woke_last: BTreeMap<Option<u16>, i64> = BTreeMap::new();
        let mut by_cpu: BTreeMap<Option<u16>, Vec<i64>> = BTreeMap::new();
        for_each_wakeup(source, |wakeup| {
            each.push(wakeup.latency_ns());
            by_cpu.entry(wakeup.cpu).or_default().push(wakeup.latency_ns());
            let before = woke_last.insert(wakeup.cpu, wakeup.woke_ns);
            overrun_slots += u64::from(before.is_some_and(|before| before > wakeup.due_ns));
        })?;
        let tail_of = |(cpu, values)| Some((cpu, tail(&Sample::new(Metric::WakeupLatency, values))?));
        let late_beyond = match concurrent.late_ns {
            Some(span) => LateBeyond::Stated(span.0 as f64),
            None => LateBeyond::Tails(by_cpu.into_iter().filter_map(tail_of).collect()),
        };
        let described = describe(&Sample::new(Metric::WakeupLatency, each), describing);
        Ok(Latencies { described, late_beyond, overrun_slots })
    }
}

fn late_stretches<S: ProbeSource>(source: &S, interval: Nanos, beyond: &LateBeyond) -> Result<LateStretches, S::Error> {
    let mut stretches = LateStretches::every(interval);
    for_each_wakeup(source, |wakeup| {
        let is_late = beyond.is_late(wakeup.cpu, wakeup.latency_ns());
        stretches.take(wakeup.cpu, wakeup.due_ns, wakeup.woke_ns, is_late);
    })?;
    Ok(stretches)
}

/// Start and end of the wait for an answer; `None` without an answer.
fn wait_of(batch: &ProbeBatch, row: usize, fate: Fate, by_deadline: bool) -> Option<(i64, i64)> {
    if !matches!(fate, Fate::Answered | Fate::Late) {
        return None;
    }
    let sent = value_at(&batch.sent_ns, row);
    // A deadline runs from the due time on, in a closed loop from sending.
    let from = if by_deadline { value_at(&batch.due_ns, row).or(sent) } else { sent };
    from.zip(value_at(&batch.received_ns, row))
}

struct Waits {
    by_deadline: bool,
    each: Vec<i64>,
}

impl RowVisitor for Waits {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            let wait = wait_of(batch, row, fate, self.by_deadline).map(|(from, to)| to.saturating_sub(from));
            self.each.extend(wait);
        });
    }
}

/// The slow probes, in order.
struct SlowProbes {
    beyond: Threshold,
    by_deadline: bool,
    flights: Vec<ProbeFlight>,
}

impl RowVisitor for SlowProbes {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs, ProbeColumn::ReceivedCpu]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            let Some((from, to)) = wait_of(batch, row, fate, self.by_deadline) else { return };
            if self.beyond.is_beyond(to.saturating_sub(from)) {
                self.flights.push(ProbeFlight { cpu: cpu_at(&batch.received_cpu, row), from, to });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
    use crate::plan::Work;
    use crate::probe::ProbeRecord;
    use crate::{SummaryOptions, summarise};

    const MS: i64 = 1_000_000;

    fn on_cpu(mut row: ProbeRecord, cpu: u16) -> ProbeRecord {
        row.received_cpu = Some(cpu);
        row
    }

    /// 200 probes, 2 ms apart, of 50 µs each; the 20th to the 24th take 900 µs. Slots every millisecond on CPU 0 and 1,
    /// 60 µs late each, except those of 39 to 48 ms on CPU 0, which all wake at 49 ms.
    fn source(schedule: crate::plan::Schedule, cpu: u16) -> InMemory {
        let probe = |seq: u64| {
            let slow = (20..25).contains(&seq);
            let (start, wait) = (seq as i64 * 2_000, if slow { 900 } else { 50 });
            let row = if schedule == CLOSED { closed(seq, start, wait) } else { scheduled(seq, start, 5, wait) };
            on_cpu(row, cpu)
        };
        let slot = |cpu: u16, slot: i64| {
            let blocked = cpu == 0 && (39..49).contains(&slot);
            let due = slot * MS;
            (Some(cpu), due, if blocked { 49 * MS } else { due + 60_000 })
        };
        let mut source = InMemory::of(schedule, (0..200).map(probe).collect());
        source.wakeups = (0..400).flat_map(|at| [slot(0, at), slot(1, at)]).collect();
        source
    }

    fn found(mut source: InMemory, late_ns: Option<Nanos>, deadline: Option<Nanos>) -> Coincidence {
        let cpus = WakeupCpus::These(vec![0, 1]);
        let Work::Ping(ping) = &mut source.manifest.spec.work else { panic!("a ping") };
        ping.with_wakeup = Some(ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns, cpus });
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.judging.deadline_ns = deadline;
        summarise(&source, &options).expect("rows in memory").coincidence.expect("concurrent wake-ups")
    }

    #[test]
    fn slow_probes_coincide_with_late_wake_ups_of_their_own_cpu_only() {
        for batch in [1, 7, 1_000] {
            let late = Some(Nanos::from_micros(200));
            let slow = Some(Nanos::from_micros(100));
            let here = found(InMemory { batch, ..source(CLOSED, 0) }, late, slow);
            assert_eq!((here.slow.n, here.slow.hits, here.late), (5, 5, 10), "{here:?}");
            // The nine slots after the first of the ten were past when it woke, and no later ones.
            assert_eq!(here.overrun_slots, 9);
            // A probe of 0.9 ms that starts when a slot is due meets them from slots 39 to 49, and ends within the run
            // from 399 slots.
            assert!((here.chance.expect("slow probes") - 11.0 / 399.0).abs() < 1e-9, "{here:?}");
            let elsewhere = found(InMemory { batch, ..source(CLOSED, 1) }, late, slow);
            assert_eq!((elsewhere.slow.n, elsewhere.slow.hits, elsewhere.chance), (5, 0, Some(0.0)));
        }
    }

    #[test]
    fn thresholds_are_the_99th_percentiles_unless_stated() {
        let own = found(source(CLOSED, 0), None, None);
        // 390 of 400 wake-ups on CPU 0 are late by 60 µs, the others by 1 to 10 ms; of 200 round trips 5 take 900 µs.
        let LateBeyond::Tails(tails) = &own.late_beyond else { panic!("{own:?}") };
        assert!(tails[&Some(0)] > 1e6 && tails[&Some(1)] == 60_000.0, "{own:?}");
        assert_eq!((own.slow_beyond.stated, own.slow_beyond.beyond_ns), (false, Some(900_000.0)));
        // No round trip is longer than the longest.
        assert_eq!((own.slow.n, own.chance), (0, None));
        let deadline = found(source(EVERY_MS, 0), Some(Nanos::from_micros(200)), Some(Nanos::from_micros(54)));
        // 5 µs of slip and 50 µs of round trip miss a deadline of 54 µs.
        assert_eq!((deadline.slow_beyond.stated, deadline.slow.n, deadline.slow.hits), (true, 200, 5));
    }

    /// CPU 1 is late by 12 ms all the time, as a busy CPU would be.
    #[test]
    fn lateness_is_relative_to_the_wake_ups_of_the_same_cpu() {
        let mut source = source(CLOSED, 0);
        for (_, due, woke) in source.wakeups.iter_mut().filter(|slot| slot.0 == Some(1)) {
            *woke = *due + 12 * MS + *due / 1_000;
        }
        let found = found(source, None, Some(Nanos::from_micros(100)));
        // Four of 400 slots lie beyond a 99th percentile.
        assert_eq!((found.late, found.slow.n, found.slow.hits), (8, 5, 5), "{found:?}");
        assert!(found.chance > Some(0.0), "{found:?}");
    }

    /// Probes and slots have one interval, as with `-i 1ms --with-wakeup 1ms`; one slot in fifty is late, by 30 µs.
    #[test]
    fn chance_keeps_the_phase_between_probes_and_slots() {
        let found_at = |offset_us: i64| {
            let probe = |seq: u64| {
                let start = seq as i64 * 1_000 + offset_us;
                on_cpu(closed(seq, start, if seq % 49 == 3 { 30 } else { 5 }), 0)
            };
            let mut source = InMemory::of(EVERY_MS, (0..2_000).map(probe).collect());
            let lateness = |slot: i64| if slot % 50 == 3 { 30_000 } else { 1_000 };
            source.wakeups = (0..2_000).map(|slot| (Some(0), slot * MS, slot * MS + lateness(slot))).collect();
            found(source, Some(Nanos::from_micros(5)), Some(Nanos::from_micros(10)))
        };
        // A probe of 30 µs that starts at a random time would meet one in 60 µs of each 50 ms.
        let of_random_starts = 0.06 / 50.0;
        let (never, always) = (found_at(500), found_at(20));
        assert_eq!((never.slow.n, never.slow.hits, never.chance), (41, 0, Some(0.0)), "{never:?}");
        let chance = always.chance.expect("slow probes");
        assert!((chance - 1.0 / 50.0).abs() < 1e-3 && chance > 10.0 * of_random_starts, "{always:?}");
        // Slow probes and late slots are unrelated: one of 41 is in the same millisecond.
        assert_eq!((always.slow.n, always.slow.hits), (41, 1), "{always:?}");
    }

    #[test]
    fn backlog_of_the_wake_ups_leaves_nothing_to_judge() {
        let known = found(source(CLOSED, 0), None, Some(Nanos::from_micros(100)));
        assert!(known.chance.is_some() && !known.is_backlog, "{known:?}");
        let mut source = source(CLOSED, 0);
        // Each wake-up takes one and a half intervals.
        for (_, due, woke) in &mut source.wakeups {
            *woke = *due * 3 / 2;
        }
        let found = found(source, None, Some(Nanos::from_micros(100)));
        assert!(found.is_backlog && found.slow.n == 5, "{found:?}");
        assert_eq!((found.slow.value, found.slow.interval, found.chance), (None, None, None));
    }

    #[test]
    fn lost_probes_are_not_slow_and_late_ones_are() {
        let mut source = source(CLOSED, 0);
        source.rows[20] = but(source.rows[20].clone(), Fate::Lost);
        source.rows[21] = but(source.rows[21].clone(), Fate::Late);
        let found = found(source, Some(Nanos::from_micros(200)), Some(Nanos::from_micros(100)));
        assert_eq!((found.slow.n, found.slow.hits), (4, 4));
    }

    #[test]
    fn a_run_without_answers_or_wake_ups_has_no_coincidence() {
        let mut nothing = source(CLOSED, 0);
        (nothing.rows, nothing.wakeups) = (Vec::new(), Vec::new());
        let found = found(nothing, None, None);
        assert_eq!((found.late, found.slow.n, found.slow.value, found.chance), (0, 0, None, None));
        assert_eq!((found.late_beyond, found.slow_beyond.beyond_ns), (LateBeyond::Tails(BTreeMap::new()), None));
    }
}
