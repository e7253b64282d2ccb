//! What a search for a rate came to, and the probes beside a stream: computed again from trials, stages and rows.

use super::source::{ProbeSource, at, word};
use super::streams::loss_of;
use crate::facts::{SearchEnding, StageFacts, TrialFacts};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};
use crate::stats::{DescribeOptions, Description, LossGoal, RateBounds, describe};
use crate::units::Nanos;

/// Those of the round trips of a stage: its table has room for no more.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// Bounds within a hair of the ends of what was searched are there.
const SAME: f64 = 1e-6;

/// How the search for one goal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalEnd {
    /// The bounds lie within the width.
    Reached,
    /// No rate that was tried was too much: the path carries what this end can send, or was to send.
    AtCeiling,
    /// The least rate was too much.
    AtFloor,
    /// Time was up, or the run was stopped.
    Undecided,
}

impl GoalEnd {
    /// The word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            GoalEnd::Reached => "reached",
            GoalEnd::AtCeiling => "at-ceiling",
            GoalEnd::AtFloor => "at-floor",
            GoalEnd::Undecided => "undecided",
        }
    }
}

/// The answer for one goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalFigures {
    /// What was asked.
    pub goal: LossGoal,
    /// Between which rates the answer lies.
    pub bounds: RateBounds,
    /// How the search for it ended.
    pub end: GoalEnd,
}

/// A search, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchFigures {
    /// Its goals, in the order in which they were typed.
    pub goals: Vec<GoalFigures>,
    /// The rate that was held in the stages, in packets a second; none was found.
    pub found_pps: Option<f64>,
    /// Between these rates it was searched.
    pub reach_pps: (f64, f64),
    /// Trials.
    pub trials: usize,
    /// The latest trial at the least rate, where nothing was lost there and packets only came late.
    pub late_at_least: Option<TrialFacts>,
    /// How long they took together.
    pub took: Nanos,
    /// How long all of it was allowed to take.
    pub within: Nanos,
    /// Why it ended.
    pub ending: SearchEnding,
}

/// A stage: a share of the found rate, held beside probes.
#[derive(Clone, Debug, PartialEq)]
pub struct StageFigures {
    /// The share; none of a stream that was not searched for.
    pub share: Option<f64>,
    /// What was to be sent, in packets a second; none where nothing was, or as much as leaves.
    pub asked_pps: Option<f64>,
    /// What was sent, in packets a second; none where nothing was to be.
    pub offered_pps: Option<f64>,
    /// What arrived.
    pub delivered_pps: Option<f64>,
    /// The share of its packets that did not.
    pub loss_ratio: Option<f64>,
    /// The share of what was to be sent that was not carried, judged as a trial is; none where no rate was searched for.
    pub not_carried_ratio: Option<f64>,
    /// Whether the sender did not offer the rate, judged likewise.
    pub is_short: bool,
    /// The round trips of its probes; none where there were none.
    pub round_trip: Option<Description>,
    /// Probes that this end gave up or could not send.
    pub unsent_probes: u64,
}

/// Both, of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamStages {
    /// The search; none where there was none.
    pub search: Option<SearchFigures>,
    /// The stages, in their order.
    pub stages: Vec<StageFigures>,
}

impl StreamStages {
    /// What `source` says of them.
    pub(super) fn of<S: ProbeSource>(source: &S, describing: &DescribeOptions) -> Result<StreamStages, S::Error> {
        let manifest = source.manifest();
        let stages = merged(&manifest.run.stages);
        let mut probes: Vec<StageProbes> = stages.iter().map(|_| StageProbes::default()).collect();
        if manifest.spec.concurrent_probes().is_some() {
            let columns = [ProbeColumn::Fate, ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs];
            let place = |sent: i64| place_of(&manifest.run.stages, &stages, sent);
            source.visit(&columns, &mut |batch| gather(batch, &place, &mut probes))?;
        }
        let describing = DescribeOptions { quantiles: QUANTILES.to_vec(), ..describing.clone() };
        let has_probes = manifest.spec.concurrent_probes().is_some();
        let figures = |(stage, probes): (&MergedStage, StageProbes)| StageFigures {
            share: stage.share,
            asked_pps: stage.stream.and_then(|stream| stream.asked_pps),
            offered_pps: stage.sending().map(|stream| stream.sent_pps()),
            delivered_pps: stage.sending().map(|stream| stream.delivered_pps()),
            loss_ratio: stage.stream.and_then(|stream| loss_of(stream.sent_packets, stream.delivered_packets)),
            not_carried_ratio: stage.judged().map(|stream| stream.loss_ratio()),
            is_short: stage.judged().is_some_and(|stream| stream.is_short()),
            round_trip: has_probes
                .then(|| describe(&Sample::new(Metric::RoundTripDelay, probes.round_trips), &describing)),
            unsent_probes: probes.unsent,
        };
        let stages = stages.iter().zip(probes).map(figures).collect();
        Ok(StreamStages { search: search(manifest), stages })
    }
}

/// The judgement of the trials of `manifest`.
fn search(manifest: &Manifest) -> Option<SearchFigures> {
    let spec = manifest.spec.stream()?.search.as_ref()?;
    let facts = manifest.run.search.as_ref()?;
    let trials = facts.judged();
    let goal = |goal: &LossGoal| {
        let bounds = goal.bounds(&trials);
        let end = match (bounds.lower_pps, bounds.upper_pps) {
            _ if bounds.width().is_some_and(|width| width <= goal.width) => GoalEnd::Reached,
            (Some(lower), None) if lower >= facts.ceiling_pps * (1.0 - SAME) => GoalEnd::AtCeiling,
            (None, Some(upper)) if upper <= facts.floor_pps * (1.0 + SAME) => GoalEnd::AtFloor,
            _ => GoalEnd::Undecided,
        };
        GoalFigures { goal: *goal, bounds, end }
    };
    Some(SearchFigures {
        goals: spec.goals.iter().map(goal).collect(),
        found_pps: facts.found_pps(&spec.goals),
        reach_pps: (facts.floor_pps, facts.ceiling_pps),
        trials: facts.trials.len(),
        late_at_least: facts.late_at_least(),
        took: facts.took_ns,
        within: spec.within_ns,
        ending: facts.ending,
    })
}

/// Stages with the same share, which are slices of one where several sizes take turns.
#[derive(Clone, Copy, Debug)]
struct MergedStage {
    share: Option<f64>,
    /// All of their streams.
    stream: Option<TrialFacts>,
}

impl MergedStage {
    /// Its stream, where it sent for a time.
    fn sending(&self) -> Option<TrialFacts> {
        self.stream.filter(|stream| stream.sending_ns > Nanos::ZERO)
    }

    /// Its stream, where its rate is one that was searched for.
    fn judged(&self) -> Option<TrialFacts> {
        self.stream.filter(|_| self.share.is_some())
    }
}

fn merged(stages: &[StageFacts]) -> Vec<MergedStage> {
    let mut merged: Vec<MergedStage> = Vec::new();
    for stage in stages {
        match merged.iter_mut().find(|other| other.share == stage.share) {
            Some(known) => known.stream = together(known.stream, stage.stream),
            None => merged.push(MergedStage { share: stage.share, stream: stage.stream }),
        }
    }
    merged
}

/// Two slices as one, which is as long as both.
fn together(one: Option<TrialFacts>, other: Option<TrialFacts>) -> Option<TrialFacts> {
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

/// The place of the stage that had begun last when a probe left; none before the first.
fn place_of(stages: &[StageFacts], merged: &[MergedStage], sent: i64) -> Option<usize> {
    let stage = stages.iter().rev().find(|stage| stage.begin_ns <= sent)?;
    merged.iter().position(|other| other.share == stage.share)
}

/// The probes of one stage, as far as seen.
#[derive(Clone, Debug, Default)]
struct StageProbes {
    round_trips: Vec<i64>,
    unsent: u64,
}

fn gather(batch: &ProbeBatch, place: &dyn Fn(i64) -> Option<usize>, stages: &mut [StageProbes]) {
    for row in 0..batch.rows {
        let (sent, received) = (at(&batch.sent_ns, row), at(&batch.received_ns, row));
        let Some(left) = sent.or(at(&batch.due_ns, row)) else { continue };
        let Some(stage) = place(left).and_then(|place| stages.get_mut(place)) else { continue };
        match (word(&batch.fate, row), sent.zip(received)) {
            (Fate::Answered, Some((sent, received))) => stage.round_trips.push(received.saturating_sub(sent)),
            (Fate::Answered | Fate::Late | Fate::Lost, _) => stage.round_trips.push(INFINITE),
            (Fate::SendFailed | Fate::NotSent, _) => stage.unsent += 1,
        }
    }
}

#[cfg(test)]
mod tests;
