//! Figures of a rate search, and of the stages of a stream with concurrent probes: from trials, stages and rows.

use crate::facts::{SearchEnding, StageFacts, TrialFacts};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};
use crate::source::{ProbeSource, value_at};
use crate::stats::{DescribeOptions, Description, LossGoal, RateBounds, describe};
use crate::units::Nanos;

/// Quantiles of the round trips of a stage: as many as its table shows.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// An upper bound this close to the lowest rate, relatively, is that rate.
const SAME: f64 = 1e-6;
/// Confirmed bounds may be wider by this factor than those of trials, which the search narrows.
const CONFIRMED_WIDTH: f64 = 2.0;

crate::worded! {
    /// How the search for one goal ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GoalEnd: word {
        /// The bounds are within the requested width.
        Reached = "reached",
        /// No rate that was tried was too high: the path carries what this end can send, or was to send.
        AtCeiling = "at-ceiling",
        /// The lowest rate was too high.
        AtFloor = "at-floor",
        /// The time was up, or the run was stopped.
        Undecided = "undecided",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalFigures {
    pub goal: LossGoal,
    pub bounds: RateBounds,
    /// How the search for it ended.
    pub end: GoalEnd,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SearchFigures {
    pub goals: Vec<GoalFigures>,
    /// The rate that the stages hold, in packets a second; `None` if none was found.
    pub found_pps: Option<f64>,
    /// The lowest rate that may be tried, in packets a second.
    pub min_pps: f64,
    /// The highest rate that may be tried, in packets a second.
    pub max_pps: f64,
    pub trials: usize,
    /// The longest counted late trial at the lowest rate; `None` if any there was unanswered, lossy or short.
    pub late_at_least: Option<TrialFacts>,
    pub took: Nanos,
    /// The time limit of the search.
    pub within: Nanos,
    pub ending: SearchEnding,
}

/// A stage: a share of the found rate, held with concurrent probes.
#[derive(Clone, Debug, PartialEq)]
pub struct StageFigures {
    /// The share; `None` without a search.
    pub share: Option<f64>,
    /// The requested rate, in packets a second; `None` if nothing was to be sent, or as much as possible.
    pub asked_pps: Option<f64>,
    /// Packets a second that were sent; `None` if none were to be.
    pub offered_pps: Option<f64>,
    /// Packets a second that arrived.
    pub delivered_pps: Option<f64>,
    /// The share of its packets that did not arrive.
    pub loss_ratio: Option<f64>,
    /// The share of the requested packets that was not carried, as in a trial; `None` without a search.
    pub not_carried_ratio: Option<f64>,
    /// The part of it that was not sent; `None` without a search.
    pub not_sent_ratio: Option<f64>,
    /// Whether the sender did not offer the rate, as in a trial.
    pub is_short: bool,
    /// The round trips of its probes; `None` if there were none.
    pub round_trip: Option<Description>,
    /// Probes given up or refused by the kernel.
    pub unsent_probes: u64,
}

/// The stages of the stream of `source`, in their order.
pub(super) fn stages<S: ProbeSource>(source: &S, describing: &DescribeOptions) -> Result<Vec<StageFigures>, S::Error> {
    let manifest = source.manifest();
    let stages = merged(&manifest.run.stages);
    let has_probes = manifest.spec.concurrent_probes().is_some();
    let mut probes: Vec<StageProbes> = stages.iter().map(|_| StageProbes::default()).collect();
    if has_probes {
        let columns = [ProbeColumn::Fate, ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs];
        let stage_at = |sent: i64| stage_at(&manifest.run.stages, &stages, sent);
        source.visit_probes(&columns, &mut |batch| assign(batch, &stage_at, &mut probes))?;
    }
    let describing = DescribeOptions { quantiles: QUANTILES.to_vec(), ..describing.clone() };
    let figures = |(stage, probes): (&MergedStage, StageProbes)| StageFigures {
        share: stage.share,
        asked_pps: stage.stream.and_then(|stream| stream.asked_pps),
        offered_pps: stage.sending().map(|stream| stream.sent_pps()),
        delivered_pps: stage.sending().map(|stream| stream.delivered_pps()),
        loss_ratio: stage.stream.and_then(|stream| loss_ratio(stream.sent_packets, stream.delivered_packets)),
        not_carried_ratio: stage.of_search().map(|stream| stream.loss_ratio()),
        not_sent_ratio: stage.of_search().map(|stream| stream.not_sent_ratio()),
        is_short: stage.of_search().is_some_and(|stream| stream.is_short()),
        round_trip: has_probes.then(|| describe(&Sample::new(Metric::RoundTripDelay, probes.round_trips), &describing)),
        unsent_probes: probes.unsent,
    };
    Ok(stages.iter().zip(probes).map(figures).collect())
}

/// The share of the sent packets that did not arrive; `None` if none was sent.
fn loss_ratio(sent: u64, delivered: u64) -> Option<f64> {
    (sent > 0).then(|| sent.saturating_sub(delivered) as f64 / sent as f64)
}

/// The result of the trials of `manifest`; `None` without a search.
pub(super) fn search(manifest: &Manifest) -> Option<SearchFigures> {
    let spec = manifest.spec.stream()?.search.as_ref()?;
    let facts = manifest.run.search.as_ref()?;
    let trials = facts.judged(&spec.goals);
    let goal = |goal: &LossGoal| {
        let bounds = goal.bounds(&trials);
        let widest = goal.width * if goal.confirming_ns > Nanos::ZERO { CONFIRMED_WIDTH } else { 1.0 };
        let end = match (bounds.lower_pps, bounds.upper_pps) {
            _ if bounds.width().is_some_and(|width| width <= widest) => GoalEnd::Reached,
            (Some(lower), None) if lower >= facts.ceiling_pps * (1.0 - goal.width) => GoalEnd::AtCeiling,
            (None, Some(upper)) if upper <= facts.floor_pps * (1.0 + SAME) => GoalEnd::AtFloor,
            _ => GoalEnd::Undecided,
        };
        GoalFigures { goal: *goal, bounds, end }
    };
    Some(SearchFigures {
        goals: spec.goals.iter().map(goal).collect(),
        found_pps: facts.found_pps(&spec.goals),
        min_pps: facts.floor_pps,
        max_pps: facts.ceiling_pps,
        trials: facts.trials.len(),
        late_at_least: facts.late_at_least(),
        took: facts.took_ns,
        within: spec.within_ns,
        ending: facts.ending,
    })
}

/// Stages with the same share, which are slices of one if several sizes are interleaved.
#[derive(Clone, Copy, Debug)]
struct MergedStage {
    share: Option<f64>,
    stream: Option<TrialFacts>,
}

impl MergedStage {
    /// Its stream, if it sent for some time.
    fn sending(&self) -> Option<TrialFacts> {
        self.stream.filter(|stream| stream.sending_ns > Nanos::ZERO)
    }

    /// Its stream, if its rate is that of a search.
    fn of_search(&self) -> Option<TrialFacts> {
        self.stream.filter(|_| self.share.is_some())
    }
}

fn merged(stages: &[StageFacts]) -> Vec<MergedStage> {
    let mut merged: Vec<MergedStage> = Vec::new();
    for stage in stages {
        match merged.iter_mut().find(|other| other.share == stage.share) {
            Some(known) => known.stream = added(known.stream, stage.stream),
            None => merged.push(MergedStage { share: stage.share, stream: stage.stream }),
        }
    }
    merged
}

/// Two slices as one, with the sums of their durations and packets.
fn added(one: Option<TrialFacts>, other: Option<TrialFacts>) -> Option<TrialFacts> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    Some(TrialFacts {
        asked_pps: one.asked_pps,
        lasting_ns: one.lasting_ns + other.lasting_ns,
        sending_ns: one.sending_ns + other.sending_ns,
        counting_ns: one.counting_ns + other.counting_ns,
        sent_packets: one.sent_packets + other.sent_packets,
        delivered_packets: one.delivered_packets + other.delivered_packets,
        answered: one.answered && other.answered,
    })
}

/// The index of the stage that had begun last when a probe left; `None` before the first.
fn stage_at(stages: &[StageFacts], merged: &[MergedStage], sent: i64) -> Option<usize> {
    let stage = stages.iter().rev().find(|stage| stage.begin_ns <= sent)?;
    merged.iter().position(|other| other.share == stage.share)
}

#[derive(Clone, Debug, Default)]
struct StageProbes {
    round_trips: Vec<i64>,
    unsent: u64,
}

fn assign(batch: &ProbeBatch, stage_at: &dyn Fn(i64) -> Option<usize>, stages: &mut [StageProbes]) {
    for row in 0..batch.rows {
        let (sent, received) = (value_at(&batch.sent_ns, row), value_at(&batch.received_ns, row));
        let Some(left) = sent.or(value_at(&batch.due_ns, row)) else { continue };
        let Some(stage) = stage_at(left).and_then(|index| stages.get_mut(index)) else { continue };
        match (batch.fate.get(row), sent.zip(received)) {
            (Fate::Answered, Some((sent, received))) => stage.round_trips.push(received.saturating_sub(sent)),
            (Fate::Answered | Fate::Late | Fate::Lost, _) => stage.round_trips.push(INFINITE),
            (Fate::SendFailed | Fate::NotSent, _) => stage.unsent += 1,
        }
    }
}

#[cfg(test)]
mod tests;
