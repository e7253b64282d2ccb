//! What a search for a rate came to, and the probes beside a stream: computed again from trials, stages and rows.

use super::source::{ProbeSource, at, word};
use super::streams::loss_of;
use crate::facts::{SearchEnding, StageFacts};
use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};
use crate::stats::{Description, LossGoal, RateBounds, Wishes, describe};
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
    /// What was sent, in packets a second; none where nothing was to be.
    pub offered_pps: Option<f64>,
    /// What arrived.
    pub delivered_pps: Option<f64>,
    /// The share of its packets that did not.
    pub loss_ratio: Option<f64>,
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
    pub(super) fn of<S: ProbeSource>(source: &S, describing: &Wishes) -> Result<StreamStages, S::Error> {
        let manifest = source.manifest();
        let stages = merged(&manifest.run.stages);
        let mut probes: Vec<StageProbes> = stages.iter().map(|_| StageProbes::default()).collect();
        if manifest.spec.probes_beside().is_some() {
            let columns = [ProbeColumn::Fate, ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs];
            let place = |sent: i64| place_of(&manifest.run.stages, &stages, sent);
            source.visit(&columns, &mut |batch| gather(batch, &place, &mut probes))?;
        }
        let describing = Wishes { quantiles: QUANTILES.to_vec(), ..describing.clone() };
        let has_probes = manifest.spec.probes_beside().is_some();
        let figures = |(stage, probes): (&MergedStage, StageProbes)| StageFigures {
            share: stage.share,
            offered_pps: stage.offered_pps(),
            delivered_pps: stage.delivered_pps(),
            loss_ratio: loss_of(stage.sent, stage.delivered),
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
        took: facts.took_ns,
        within: spec.within_ns,
        ending: facts.ending,
    })
}

/// Stages with the same share, which are slices of one where several sizes take turns.
#[derive(Clone, Copy, Debug, Default)]
struct MergedStage {
    share: Option<f64>,
    streamed: bool,
    sent: u64,
    delivered: u64,
    sending: Nanos,
    counting: Nanos,
}

impl MergedStage {
    fn offered_pps(&self) -> Option<f64> {
        self.rate(self.sent, self.sending)
    }

    fn delivered_pps(&self) -> Option<f64> {
        self.rate(self.delivered, self.counting)
    }

    fn rate(&self, packets: u64, span: Nanos) -> Option<f64> {
        (self.streamed && span > Nanos::ZERO).then(|| packets as f64 / span.as_secs_f64())
    }
}

fn merged(stages: &[StageFacts]) -> Vec<MergedStage> {
    let mut merged: Vec<MergedStage> = Vec::new();
    for stage in stages {
        let known = merged.iter().position(|other| other.share == stage.share);
        let place = known.unwrap_or_else(|| {
            merged.push(MergedStage { share: stage.share, ..MergedStage::default() });
            merged.len() - 1
        });
        if let Some(stream) = stage.stream {
            let sum = &mut merged[place];
            sum.streamed = true;
            sum.sent += stream.sent_packets;
            sum.delivered += stream.delivered_packets;
            sum.sending += stream.sending_ns;
            sum.counting += stream.counting_ns;
        }
    }
    merged
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
