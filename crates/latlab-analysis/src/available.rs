//! The figures that a run can have. Its kind, its schedule, its protocol and its deadline decide that, not what was
//! measured: a run with too few data has no figure, but could have had one. Of an imported log it is what the log has.

use super::estimand::{Estimand, Ratio};
use super::singletons::is_on_schedule;
use super::source::{ProbeSource, value_at};
use crate::facts::StreamEnd;
use crate::metric::Metric;
use crate::plan::{Kind, Protocol, RunSpec, Work};
use crate::probe::Fate;
use crate::recording::reader::ProbeColumn;
use crate::units::Nanos;

/// The figures that a run can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableFigures {
    kind: Kind,
    main: Metric,
    /// Those of the kind, or of a log of values its one.
    metrics: Vec<Metric>,
    is_imported: bool,
    knows_losses: bool,
    is_scheduled: bool,
    has_stamps: bool,
    /// Whether it is known which probes were sent one after the other.
    has_pairs: bool,
    /// Whether the sender of a stream is known.
    has_sender: bool,
    has_deadline: bool,
}

/// Why a run can never have a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureAbsence {
    Deadline,
    /// A stream waits for no answers.
    DeadlineOfStream,
    /// Neither wake-ups nor executions are packets.
    Packets,
    /// Runs of this kind have no such metric.
    Metric,
    /// A closed loop has no due times.
    Schedule,
    /// A plain echo returns no stamps.
    Stamps,
    /// The log of another tool does not have it.
    Log,
}

impl AvailableFigures {
    /// Those of a run of `spec` that is planned or measured, judged by `deadline_ns`.
    pub fn of(spec: &RunSpec, deadline_ns: Option<Nanos>) -> AvailableFigures {
        AvailableFigures {
            kind: spec.kind(),
            main: spec.metric(),
            metrics: if spec.kind() == Kind::Values { vec![spec.metric()] } else { spec.metrics() },
            is_imported: spec.import().is_some(),
            knows_losses: spec.knows_losses(),
            is_scheduled: spec.schedule().interval().is_some(),
            has_stamps: match &spec.work {
                Work::Ping(ping) => ping.protocol != Protocol::Echo,
                Work::Import(import) => LOGS_WITH_STAMPS.contains(&import.format.as_str()),
                Work::Wakeup(_) | Work::Command(_) | Work::Stream(_) => false,
            },
            has_pairs: true,
            has_sender: true,
            has_deadline: deadline_ns.is_some(),
        }
    }

    /// Those of a recorded run, judged by `deadline_ns`. The rows are read only of an imported log whose format may have the
    /// stamps of the reflector, and of its answers.
    ///
    /// # Errors
    /// If these rows cannot be read.
    pub fn of_recorded<S: ProbeSource>(source: &S, deadline_ns: Option<Nanos>) -> Result<AvailableFigures, S::Error> {
        let manifest = source.manifest();
        let of_spec = AvailableFigures::of(&manifest.spec, deadline_ns);
        let has_stamps = of_spec.has_stamps && (!of_spec.is_imported || may_have_stamps(source)?);
        let is_of_other = of_spec.is_imported && of_spec.kind == Kind::Stream;
        let has_sender = !is_of_other || knows_sender(source)?;
        Ok(AvailableFigures { has_stamps, has_pairs: manifest.lost_without_row() == 0, has_sender, ..of_spec })
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    pub const fn main(&self) -> Metric {
        self.main
    }

    /// Whether another tool measured it.
    pub const fn is_imported(&self) -> bool {
        self.is_imported
    }

    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        self.metrics.iter().copied().filter(|metric| self.absence_of(*metric).is_none())
    }

    /// Why it can never have `estimand`; `None` if it can.
    pub fn absence(&self, estimand: Estimand) -> Option<FigureAbsence> {
        match estimand {
            Estimand::Ratio(Ratio::DeadlineMiss) if self.kind == Kind::Stream => Some(FigureAbsence::DeadlineOfStream),
            Estimand::Ratio(Ratio::DeadlineMiss) => (!self.has_deadline).then_some(FigureAbsence::Deadline),
            Estimand::Ratio(Ratio::Loss) if self.knows_losses && self.main != Metric::WakeupLatency => None,
            Estimand::Ratio(_) if self.is_imported => Some(FigureAbsence::Log),
            Estimand::Ratio(_) => matches!(self.kind, Kind::Wakeup | Kind::Command).then_some(FigureAbsence::Packets),
            Estimand::Statistic(metric, _) => self.absence_of(metric),
        }
    }

    fn absence_of(&self, metric: Metric) -> Option<FigureAbsence> {
        let is_one_way = Metric::ONE_WAY.contains(&metric);
        let needs_stamps = is_one_way || matches!(metric, Metric::ReflectorDwell | Metric::RoundTripDelayLessDwell);
        let is_known = self.metrics.contains(&metric) || (is_one_way && self.kind == Kind::Ping);
        if !is_known {
            Some(FigureAbsence::Metric)
        } else if self.kind == Kind::Values {
            None
        } else if is_on_schedule(metric) && !self.is_scheduled {
            Some(if self.is_imported { FigureAbsence::Log } else { FigureAbsence::Schedule })
        } else if (metric == Metric::Ipdv && !self.has_pairs) || (metric == Metric::OfferedRate && !self.has_sender) {
            Some(FigureAbsence::Log)
        } else {
            let absence = if self.is_imported { FigureAbsence::Log } else { FigureAbsence::Stamps };
            (needs_stamps && !self.has_stamps).then_some(absence)
        }
    }
}

/// The formats of logs that may have the instants at which the reflector received and sent.
const LOGS_WITH_STAMPS: [&str; 2] = ["four-times", "irtt"];

/// Whether a row of `source` has both instants of the reflector, or no answer arrived that could have brought them.
fn may_have_stamps<S: ProbeSource>(source: &S) -> Result<bool, S::Error> {
    let (mut is_stamped, mut is_answered) = (false, false);
    let columns = [ProbeColumn::Fate, ProbeColumn::ReflectorReceivedNs, ProbeColumn::ReflectorSentNs];
    source.visit_probes(&columns, &mut |batch| {
        let has_both = |row: usize| {
            let received = value_at(&batch.reflector_received_ns, row);
            received.and(value_at(&batch.reflector_sent_ns, row)).is_some()
        };
        is_stamped = is_stamped || (0..batch.rows).any(has_both);
        is_answered = is_answered || (0..batch.rows).any(|row| batch.fate.get(row) == Fate::Answered);
    })?;
    Ok(is_stamped || !is_answered)
}

/// Whether an imported stream has the counts of its sender.
fn knows_sender<S: ProbeSource>(source: &S) -> Result<bool, S::Error> {
    let mut is_known = false;
    source.visit_intervals(&mut |interval| is_known = is_known || interval.end() == StreamEnd::Sender)?;
    Ok(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimand::Statistic;
    use crate::facts::ImportFacts;
    use crate::in_memory::{CLOSED, InMemory, but, closed, logged};
    use crate::probe::ProbeRecord;

    /// A log of probes in `format`.
    fn log(format: &str) -> AvailableFigures {
        let mut spec = logged(Vec::new(), true).manifest.spec;
        if let Work::Import(import) = &mut spec.work {
            (import.format, import.rows, import.metric) = (format.into(), Kind::Ping, None);
        }
        AvailableFigures::of(&spec, None)
    }

    /// What a recording of a log of irtt with these rows can have, whose totals count `lost` probes more.
    fn recorded(rows: Vec<ProbeRecord>, lost: u64) -> Vec<Metric> {
        let mut source = InMemory::of(CLOSED, rows);
        source.manifest.spec = logged(Vec::new(), true).manifest.spec;
        if let Work::Import(import) = &mut source.manifest.spec.work {
            (import.format, import.rows, import.metric) = ("irtt".into(), Kind::Ping, None);
        }
        source.manifest.run.import = Some(ImportFacts { lost_without_row: lost, ..ImportFacts::default() });
        let available = AvailableFigures::of_recorded(&source, None).expect("rows in memory");
        let metrics: Vec<Metric> = available.metrics().collect();
        for metric in [Metric::Ipdv, Metric::ReflectorDwell] {
            let absence = available.absence(Estimand::Statistic(metric, Statistic::Max));
            assert_eq!(absence, (!metrics.contains(&metric)).then_some(FigureAbsence::Log));
        }
        metrics
    }

    #[test]
    fn a_log_without_stamps_or_pairs_has_no_metric_of_them() {
        use Metric::{Ipdv, Pdv, ReflectorDwell, RoundTripDelay, RoundTripDelayLessDwell};
        let plain =
            |seq| ProbeRecord { reflector_received: None, reflector_sent: None, ..closed(seq, 60 * seq as i64, 9) };
        let lost = |seq| but(plain(seq), Fate::Lost);
        let all = [RoundTripDelay, RoundTripDelayLessDwell, ReflectorDwell, Pdv, Ipdv];
        let has = |rows, lost, expected: &[Metric]| {
            let found = recorded(rows, lost);
            let known: Vec<Metric> = all.into_iter().filter(|metric| found.contains(metric)).collect();
            assert_eq!((known.as_slice(), found.len()), (expected, expected.len()));
        };
        has(vec![plain(0), plain(1)], 0, &[RoundTripDelay, Pdv, Ipdv]);
        has(vec![plain(0), closed(1, 60, 9)], 0, &all);
        has(vec![lost(0), lost(1)], 0, &all);
        has(vec![plain(0), lost(1)], 1, &[RoundTripDelay, Pdv]);
    }

    #[test]
    fn a_log_has_the_metrics_whose_instants_its_format_has() {
        let (plain, stamped) = (log("sockperf"), log("four-times"));
        assert_eq!(plain.metrics().collect::<Vec<_>>(), [Metric::RoundTripDelay, Metric::Pdv, Metric::Ipdv]);
        assert_eq!(log("irtt").metrics().collect::<Vec<_>>(), stamped.metrics().collect::<Vec<_>>());
        assert!(stamped.absence(Estimand::Statistic(Metric::ReflectorDwell, Statistic::Max)).is_none());
        for metric in [Metric::ReflectorDwell, Metric::RoundTripDelayLessDwell, Metric::ResponseTime] {
            let absence = plain.absence(Estimand::Statistic(metric, Statistic::Max));
            assert_eq!(absence, Some(FigureAbsence::Log), "{metric:?}");
        }
    }
}
