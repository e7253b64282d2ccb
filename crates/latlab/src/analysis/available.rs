//! The figures that a run can have. Its kind, its schedule, its protocol and its deadline decide that, not what was
//! measured: a run with too few data has no figure, but could have had one.

use super::estimand::{Estimand, Ratio};
use super::singletons::is_on_schedule;
use crate::metric::Metric;
use crate::plan::{Kind, Protocol, RunSpec, Work};
use crate::units::Nanos;

/// The figures that a run can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableFigures {
    kind: Kind,
    main: Metric,
    is_imported: bool,
    knows_losses: bool,
    is_scheduled: bool,
    has_stamps: bool,
    has_deadline: bool,
}

/// Why a run can never have a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureAbsence {
    /// No deadline was given.
    Deadline,
    /// A stream waits for no answers.
    DeadlineOfStream,
    /// Wake-ups have no packets to lose.
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
    /// Those of a run of `spec`, judged by `deadline_ns`.
    pub fn of(spec: &RunSpec, deadline_ns: Option<Nanos>) -> AvailableFigures {
        AvailableFigures {
            kind: spec.kind(),
            main: spec.metric(),
            is_imported: spec.import().is_some(),
            knows_losses: spec.knows_losses(),
            is_scheduled: spec.schedule().interval().is_some(),
            has_stamps: !matches!(&spec.work, Work::Ping(ping) if ping.protocol == Protocol::Echo),
            has_deadline: deadline_ns.is_some(),
        }
    }

    /// The kind of the run.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The main metric of the run.
    pub const fn main(&self) -> Metric {
        self.main
    }

    /// The metrics that it can have.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        self.kind.metrics().iter().copied().filter(|metric| self.absence_of(*metric).is_none())
    }

    /// Why it can never have `estimand`; `None` if it can.
    pub fn absence(&self, estimand: Estimand) -> Option<FigureAbsence> {
        match estimand {
            Estimand::Ratio(Ratio::DeadlineMiss) if self.kind == Kind::Stream => Some(FigureAbsence::DeadlineOfStream),
            Estimand::Ratio(Ratio::DeadlineMiss) => (!self.has_deadline).then_some(FigureAbsence::Deadline),
            Estimand::Ratio(Ratio::Loss) if self.knows_losses && self.main != Metric::WakeupLatency => None,
            Estimand::Ratio(_) if self.is_imported => Some(FigureAbsence::Log),
            Estimand::Ratio(_) => (self.kind == Kind::Wakeup).then_some(FigureAbsence::Packets),
            Estimand::Statistic(metric, _) => self.absence_of(metric),
        }
    }

    /// Whether it is the metric of the values of an imported log, which has neither due times nor stamps.
    fn is_imported_value(&self, metric: Metric) -> bool {
        self.kind == Kind::Values && metric == self.main
    }

    fn absence_of(&self, metric: Metric) -> Option<FigureAbsence> {
        let needs_stamps = matches!(metric, Metric::ReflectorDwell | Metric::RoundTripDelayLessDwell);
        let is_other_value = self.kind == Kind::Values && metric != self.main;
        if is_other_value || !self.kind.metrics().contains(&metric) {
            Some(FigureAbsence::Metric)
        } else if is_on_schedule(metric) && !self.is_scheduled && !self.is_imported_value(metric) {
            Some(FigureAbsence::Schedule)
        } else {
            (needs_stamps && !self.has_stamps).then_some(FigureAbsence::Stamps)
        }
    }
}
