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
}

impl AvailableFigures {
    /// Those of a run of `spec`, judged by `deadline_ns`.
    pub fn of(spec: &RunSpec, deadline_ns: Option<Nanos>) -> AvailableFigures {
        AvailableFigures {
            kind: spec.kind(),
            is_scheduled: spec.schedule().interval().is_some(),
            has_stamps: !matches!(&spec.work, Work::Ping(ping) if ping.protocol == Protocol::Echo),
            has_deadline: deadline_ns.is_some(),
        }
    }

    /// The kind of the run.
    pub const fn kind(&self) -> Kind {
        self.kind
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
            Estimand::Ratio(_) => (self.kind == Kind::Wakeup).then_some(FigureAbsence::Packets),
            Estimand::Statistic(metric, _) => self.absence_of(metric),
        }
    }

    fn absence_of(&self, metric: Metric) -> Option<FigureAbsence> {
        let needs_stamps = matches!(metric, Metric::ReflectorDwell | Metric::RoundTripDelayLessDwell);
        if !self.kind.metrics().contains(&metric) {
            Some(FigureAbsence::Metric)
        } else if is_on_schedule(metric) && !self.is_scheduled {
            Some(FigureAbsence::Schedule)
        } else {
            (needs_stamps && !self.has_stamps).then_some(FigureAbsence::Stamps)
        }
    }
}
