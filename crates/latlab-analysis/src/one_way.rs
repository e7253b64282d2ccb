//! One-way delays (RFC 7679) with a bound: the offset of the reflector's clock is known only as far as the probes themselves, and
//! what both hosts state of their clocks, confine it. Methods: docs/statistics.md, "One-way delay".

use std::ops::Range;

use super::source::{ProbeSource, RowVisitor, for_each_measured, value_at, visit_rows};
use crate::facts::{ClockAnchor, ClockDiscipline, HostFacts};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::manifest::{EndFacts, Manifest};
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::Sample;
use crate::stats::{ClockWindow, DescribeOptions, Description, Exchange, clock_windows, describe};
use crate::units::{ClockPair, Nanos, ReflectorClock, SenderClock, SpanRange, Stamp};

/// The delays of one way, with what the bound of the clocks leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWayDelay {
    /// With the offset in the middle of its bound.
    pub estimate: Description,
    /// With the offset at the ends of its bound: between them lies what a clock common to both ends would show.
    pub low: Description,
    pub high: Description,
    /// Less the least delay of the window, without the drift of the clocks (RFC 5481): no offset is needed.
    pub variation: Description,
}

/// The delays there and back, and what the clocks leave open.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWay {
    pub forward: OneWayDelay,
    pub backward: OneWayDelay,
    /// Whether they are between stamps of both kernels; otherwise between those of the programs.
    pub by_kernel: bool,
    /// Whether both ends read one clock.
    pub one_clock: bool,
    /// Probes with stamps of both ends that have no delay: a clock was set around them, or there are too few.
    pub without_bound: u64,
    /// What both hosts state of CLOCK_REALTIME, if they do: whether the probes agree.
    pub stated: Option<bool>,
}

impl OneWay {
    /// The delays of `metric`; `None` of the others.
    pub fn of(&self, metric: Metric) -> Option<&OneWayDelay> {
        match metric {
            Metric::ForwardDelay => Some(&self.forward),
            Metric::BackwardDelay => Some(&self.backward),
            _ => None,
        }
    }
}

impl OneWayDelay {
    /// How far `figure` of the estimate may be off.
    pub fn bound(&self, figure: impl Fn(&Description) -> Option<f64>) -> Option<f64> {
        let [low, estimate, high] = [&self.low, &self.estimate, &self.high].map(figure);
        Some((high? - estimate?).max(estimate? - low?))
    }
}

/// The one-way delays of the run of `source`; `None` if no probe has stamps of both ends.
pub(super) fn one_way<S: ProbeSource>(source: &S, describing: &DescribeOptions) -> Result<Option<OneWay>, S::Error> {
    let manifest = source.manifest();
    let mut found = Exchanges { by_kernel: manifest.run.stamps.is_some(), ..Exchanges::default() };
    visit_rows(source, &mut [&mut found])?;
    // The stamp of a driver travels with a later answer that has space for it: many probes may lack it.
    if found.by_kernel && 2 * found.exchanges.len() < found.answered {
        found = Exchanges::default();
        visit_rows(source, &mut [&mut found])?;
    }
    Ok((!found.exchanges.is_empty()).then(|| found.one_way(manifest, describing)))
}

/// The stamps of the probes that were answered.
#[derive(Default)]
struct Exchanges {
    by_kernel: bool,
    exchanges: Vec<Exchange>,
    answered: usize,
}

impl RowVisitor for Exchanges {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{ReceivedNs, ReflectorReceivedNs, ReflectorSentNs, SentNs};
        use ProbeColumn::{ReflectorRxSoftwareNs, ReflectorTxSoftwareNs, RxSoftwareNs, TxSoftwareNs};
        if self.by_kernel {
            vec![TxSoftwareNs, ReflectorRxSoftwareNs, ReflectorTxSoftwareNs, RxSoftwareNs]
        } else {
            vec![SentNs, ReflectorReceivedNs, ReflectorSentNs, ReceivedNs]
        }
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        let columns = if self.by_kernel {
            let (there, back) = (&batch.reflector_rx_software_ns, &batch.reflector_tx_software_ns);
            [&batch.tx_software_ns, there, back, &batch.rx_software_ns]
        } else {
            [&batch.sent_ns, &batch.reflector_received_ns, &batch.reflector_sent_ns, &batch.received_ns]
        };
        for_each_measured(batch, |row, fate| {
            if !matches!(fate, Fate::Answered | Fate::Late) {
                return;
            }
            self.answered += 1;
            if let [Some(sent), Some(far_received), Some(far_sent), Some(received)] =
                columns.map(|column| value_at(column, row))
            {
                self.exchanges.push(Exchange { sent, far_received, far_sent, received });
            }
        });
    }
}

impl Exchanges {
    fn one_way(self, manifest: &Manifest, describing: &DescribeOptions) -> OneWay {
        // Each end converts its kernel's stamps, or reads a clock of this step; the far one states no error of its own.
        let logged = manifest.spec.import().and_then(|import| import.resolution_ns);
        let step_ns = logged.or(manifest.instrument.clock_resolution_ns).map_or(1, |step| step.0);
        let stamps = manifest.run.stamps.filter(|_| self.by_kernel);
        let error_ns = 2.0 * stamps.map_or(step_ns, |stamps| stamps.error_ns.max(step_ns)) as f64;
        // A negative delay shows that they do not, as in another time namespace.
        let may_be_delay = |from: i64, to: i64| to.saturating_sub(from) as f64 >= -error_ns;
        let may_be_one =
            |one: &Exchange| may_be_delay(one.sent, one.far_received) && may_be_delay(one.far_sent, one.received);
        let one_clock = manifest.spec.target.is_this_host() && self.exchanges.iter().all(may_be_one);
        let relations: Vec<(Range<usize>, Option<Relation>)> = if one_clock {
            vec![(0..self.exchanges.len(), Some(Relation::OneClock(error_ns)))]
        } else {
            let windows = clock_windows(&self.exchanges, error_ns);
            windows.into_iter().map(|(range, window)| (range, window.map(Relation::Window))).collect()
        };
        let statement = ClockStatement::of(&manifest.here, &manifest.peer).filter(|_| !one_clock);
        let spans = |statement| Spans::of(&self.exchanges, &relations, statement);
        let (stated, agreed) = match statement.as_ref().map(|statement| spans(Some(statement))) {
            Some(agreed) => (Some(agreed.is_some()), agreed),
            None => (None, None),
        };
        let spans = agreed.or_else(|| spans(None)).unwrap_or_default();
        let without_bound = (self.exchanges.len() - spans.delays[0].len()) as u64;
        let of = |way: usize, metric| spans.described(way, metric, describing);
        OneWay {
            forward: of(0, Metric::ForwardDelay),
            backward: of(1, Metric::BackwardDelay),
            by_kernel: self.by_kernel,
            one_clock,
            without_bound,
            stated,
        }
    }
}

/// How the clocks of both ends relate during a time.
enum Relation {
    /// They are one, read with at most this error in ns.
    OneClock(f64),
    Window(ClockWindow),
}

impl Relation {
    /// The offset at the sender's instant `at`, also by what the hosts state; `None` if they contradict each other.
    fn pair_at(&self, at: i64, statement: Option<&ClockStatement>) -> Option<ClockPair> {
        let (mut offset, mut half_ns) = match self {
            Relation::OneClock(error_ns) => (0, *error_ns),
            Relation::Window(window) => {
                let bound = window.offset_at(at);
                (bound.middle_ns, bound.half_ns)
            }
        };
        if let Some(statement) = statement {
            let own = statement.offset_at(at);
            let other = own.saturating_sub(offset) as f64;
            let (low, high) = ((-half_ns).max(other - statement.error_ns), half_ns.min(other + statement.error_ns));
            if low > high {
                return None;
            }
            (offset, half_ns) = (offset.saturating_add(((low + high) / 2.0) as i64), (high - low) / 2.0);
        }
        let far = Stamp::from_nanos(at.saturating_add(offset));
        Some(ClockPair { near: Stamp::from_nanos(at), far, bound: Nanos(half_ns.ceil() as i64) })
    }

    /// An offset that differs from the true one by an unknown constant.
    fn drift_at(&self, at: i64) -> i64 {
        match self {
            Relation::OneClock(_) => 0,
            Relation::Window(window) => window.drift_at(at),
        }
    }

    /// Both delays of an exchange, each with the offset at the instant of the stamp of the reflector.
    fn spans(&self, exchange: &Exchange, statement: Option<&ClockStatement>) -> Option<[SpanRange; 2]> {
        let near = |far: i64, about: i64| {
            let pair = self.pair_at(about, statement)?;
            self.pair_at((pair.near + (Stamp::<ReflectorClock>::from_nanos(far) - pair.far)).as_nanos(), statement)
        };
        let sender = |at: i64| Stamp::<SenderClock>::from_nanos(at);
        let Exchange { sent, far_received, far_sent, received } = *exchange;
        Some([
            near(far_received, sent)?.forward(sender(sent), Stamp::from_nanos(far_received)),
            near(far_sent, received)?.backward(Stamp::from_nanos(far_sent), sender(received)),
        ])
    }
}

/// The delays there and back, and their variations in ns, in the order of sending.
#[derive(Clone, Default)]
struct Spans {
    delays: [Vec<SpanRange>; 2],
    variations: [Vec<i64>; 2],
}

impl Spans {
    /// `None` if `statement` contradicts the probes.
    fn of(
        exchanges: &[Exchange],
        relations: &[(Range<usize>, Option<Relation>)],
        statement: Option<&ClockStatement>,
    ) -> Option<Spans> {
        let mut spans = Spans::default();
        for (range, relation) in relations {
            let Some(relation) = relation else { continue };
            let mut variations = [Vec::new(), Vec::new()];
            for exchange in &exchanges[range.clone()] {
                let both = relation.spans(exchange, statement)?;
                let Exchange { sent, far_received, far_sent, received } = *exchange;
                let drifts = [sent, received].map(|at| relation.drift_at(at));
                variations[0].push(far_received.saturating_sub(sent).saturating_sub(drifts[0]));
                variations[1].push(received.saturating_sub(far_sent).saturating_add(drifts[1]));
                spans.delays.iter_mut().zip(both).for_each(|(all, one)| all.push(one));
            }
            for (all, own) in spans.variations.iter_mut().zip(variations) {
                let least = own.iter().copied().min().unwrap_or(0);
                all.extend(own.into_iter().map(|value| value.saturating_sub(least)));
            }
        }
        Some(spans)
    }

    fn described(&self, way: usize, metric: Metric, describing: &DescribeOptions) -> OneWayDelay {
        let ends = DescribeOptions { intervals: false, ..describing.clone() };
        let of = |singletons: Vec<i64>, describing| describe(&Sample::new(metric, singletons), describing);
        let delays = |of: fn(&SpanRange) -> Nanos| self.delays[way].iter().map(|span| of(span).0).collect::<Vec<_>>();
        OneWayDelay {
            estimate: of(delays(|span| span.middle), describing),
            low: of(delays(|span| span.low()), &ends),
            high: of(delays(|span| span.high()), &ends),
            variation: of(self.variations[way].clone(), describing),
        }
    }
}

/// What two synchronised hosts state: the offset of their CLOCK_MONOTONIC by way of CLOCK_REALTIME, at two instants.
struct ClockStatement {
    /// On the sender's clock, with the offset.
    ends: [(i64, i64); 2],
    error_ns: f64,
}

impl ClockStatement {
    fn of(here: &EndFacts, peer: &EndFacts) -> Option<ClockStatement> {
        let error_us = [here, peer].into_iter().map(largest_error_us).sum::<Option<i64>>()?;
        let anchors = [(here.clock_start, peer.clock_start), (here.clock_end, peer.clock_end)];
        let anchors = anchors.map(|(here, peer)| here.zip(peer));
        let [Some(start), Some(end)] = anchors else { return None };
        let offset = |(here, peer): (ClockAnchor, ClockAnchor)| {
            let ahead = |anchor: ClockAnchor| anchor.realtime_ns.saturating_sub(anchor.monotonic_ns);
            (here.monotonic_ns, ahead(here).saturating_sub(ahead(peer)))
        };
        let widths = [start, end].map(|(here, peer)| here.width_ns.saturating_add(peer.width_ns));
        let error_ns = error_us as f64 * 1e3 + widths[0].max(widths[1]) as f64;
        Some(ClockStatement { ends: [offset(start), offset(end)], error_ns })
    }

    fn offset_at(&self, at: i64) -> i64 {
        let [(start, before), (end, after)] = self.ends;
        let share = (at.saturating_sub(start) as f64 / end.saturating_sub(start).max(1) as f64).clamp(0.0, 1.0);
        before.saturating_add((share * after.saturating_sub(before) as f64) as i64)
    }
}

/// The largest error that the kernel of a host states of its CLOCK_REALTIME; `None` unless it was synchronised all the time.
fn largest_error_us(end: &EndFacts) -> Option<i64> {
    let discipline = |facts: &Option<HostFacts>| facts.as_ref()?.clock.discipline;
    let of = |discipline: ClockDiscipline| discipline.synchronised.then_some(discipline.maximum_error_us);
    Some(of(discipline(&end.before)?)?.max(of(discipline(&end.after)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ClockFacts;
    use crate::in_memory::{CLOSED, InMemory, closed};
    use crate::plan::Target;
    use crate::{AvailableFigures, GateReason, GateState, SummaryOptions, ValueGates, summarise};

    /// How much the reflector's clock of the fixtures is behind, if both ways are alike.
    const BEHIND_NS: i64 = 7_024_000;

    /// 200 probes with a round trip of 50 µs to a host with another clock. `stated_ns` is how much both hosts say that it is
    /// behind, with an error of 5 µs each.
    fn source(stated_ns: Option<i64>) -> InMemory {
        let mut source = InMemory::of(CLOSED, (0..200).map(|seq| closed(seq, seq as i64 * 60, 50)).collect());
        source.manifest.spec.target = Target::Ssh { host: "pi3".into() };
        for end in [&mut source.manifest.here, &mut source.manifest.peer] {
            for facts in [&mut end.before, &mut end.after].into_iter().flatten() {
                let discipline = ClockDiscipline {
                    synchronised: stated_ns.is_some(),
                    estimated_error_us: 1,
                    maximum_error_us: 5,
                    frequency_ppm: 0.0,
                    tai_offset_s: 37,
                    status: 0,
                };
                facts.clock = ClockFacts { discipline: Some(discipline), ..ClockFacts::default() };
            }
        }
        for anchor in [&mut source.manifest.peer.clock_start, &mut source.manifest.peer.clock_end].into_iter().flatten()
        {
            anchor.realtime_ns += stated_ns.unwrap_or(0);
        }
        source
    }

    fn found(source: &InMemory) -> OneWay {
        let describing = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: false };
        one_way(source, &describing).expect("rows in memory").expect("stamps")
    }

    #[test]
    fn what_synchronised_hosts_state_narrows_the_bound_unless_the_probes_contradict() {
        let [alone, agreed, contradicted] =
            [None, Some(BEHIND_NS - 10_000), Some(BEHIND_NS + 40_000)].map(|stated| found(&source(stated)));
        let bound = |one: &OneWay| one.forward.bound(|described| described.mean).expect("a bound");
        let mean = |one: &OneWay| one.forward.estimate.mean.expect("a mean");
        assert_eq!((alone.stated, alone.without_bound), (None, 0));
        assert!((24_000.0..25_000.0).contains(&bound(&alone)) && (mean(&alone) - 24_000.0).abs() < 10.0, "{alone:?}");
        assert_eq!(agreed.stated, Some(true));
        assert!((10_000.0..10_500.0).contains(&bound(&agreed)), "{}", bound(&agreed));
        assert!((mean(&agreed) - 14_000.0).abs() < 20.0, "{}", mean(&agreed));
        assert_eq!((contradicted.stated, bound(&contradicted)), (Some(false), bound(&alone)));
    }

    #[test]
    fn variation_needs_no_common_clock() {
        let mut source = source(None);
        let slow = source.rows[100].reflector_received.expect("a stamp");
        source.rows[100].reflector_received = Some(slow + Nanos(1_500));
        let found = found(&source);
        let most = found.forward.variation.max.expect("delays");
        assert!((1_400.0..1_700.0).contains(&most), "{most}");
        assert_eq!(found.backward.variation.n, 200);
    }

    #[test]
    fn a_gate_is_judged_by_both_ends_of_the_bound() {
        let texts = ["max <= 60us", "max <= 40us", "max <= -5us", "min >= 0us", "stddev <= 1s", "p50 > -1us"];
        let gates: Vec<String> = texts.iter().map(|text| format!("forward_delay {text}")).collect();
        let gates = ValueGates::parse(&gates, false).expect("gates");
        let source = source(None);
        let mut options = SummaryOptions::of(&source.manifest.spec);
        gates.include(&mut options);
        let mut summary = summarise(&source, &options).expect("no windows");
        gates.judge(&mut summary, &AvailableFigures::of(&source.manifest.spec, None));
        let states: Vec<GateState> = summary.gates.iter().map(|gate| gate.state).collect();
        use GateState::{Broken, Kept, Undecided};
        assert_eq!(states, [Kept, Undecided, Broken, Undecided, Undecided, Kept]);
        let undecided = summary.gates.iter().filter(|gate| gate.state == Undecided);
        assert!(undecided.clone().all(|gate| gate.reason == Some(GateReason::ClockBound)));
        assert!(undecided.clone().all(|gate| gate.undecided_warning().is_some()));
    }
}
