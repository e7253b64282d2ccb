//! A stream's search for its rate, and the stages that follow: what the pure search asks for, measured and written down.

use std::sync::atomic::{AtomicBool, Ordering};

use super::goal_search::{GoalSearch, GoalStep, RateRange};
use super::run::{SilenceMeaning, StageRate, StreamRun};
use super::sender::Awaiting;
use crate::clock::{Clock, Monotonic};
use crate::facts::{RateSearchFacts, SearchEnding, TrialFacts};
use crate::measure::MeasureError;
use crate::plan::{RateSearchSpec, defaults};
use crate::probe::Phase;
use crate::transport::TransportFamily;
use crate::units::{Nanos, SenderClock, Stamp};

impl<F: TransportFamily> StreamRun<F> {
    /// Searches for the rates of `search`: the manifest knows all trials, however it ends.
    pub(crate) fn search(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        let until = begin + search.for_trials(self.has_probes());
        let lasting = search.goals.first().map_or(defaults::SEARCH_TRIAL_MIN, |goal| goal.final_trial_ns);
        let reach = self.reach(lasting, &[]);
        self.facts_mut().search = Some(RateSearchFacts {
            floor_pps: reach.floor_pps,
            ceiling_pps: reach.ceiling_pps,
            trials: Vec::new(),
            ending: SearchEnding::CutShort,
            took_ns: Nanos::ZERO,
        });
        // A run that is killed before the end leaves that it was searching.
        self.save();
        let mut silence = Unanswered::default();
        let at_will = match self.pps_of_all() {
            // Nobody wants to know of more than this, and the path may have to be spared it.
            Some(_) => Ok(None),
            None => self.try_at_will((lasting, until), &mut silence, stop),
        };
        let ended = match at_will {
            Ok(None) => self.try_rates((search, lasting, until), &mut silence, stop),
            Ok(Some(ending)) => Ok(ending),
            Err(error) => Err(error),
        };
        if let Some(facts) = &mut self.facts_mut().search {
            facts.took_ns = Monotonic.now() - begin;
            facts.ending = *ended.as_ref().unwrap_or(&SearchEnding::CutShort);
        }
        self.save();
        match ended? {
            SearchEnding::Silent => Err(self.fell_silent(silence.span)),
            SearchEnding::Settled | SearchEnding::TimeUp | SearchEnding::CutShort => Ok(()),
        }
    }

    /// The trials without a pace; why the search ends with them, if it does.
    fn try_at_will(
        &mut self,
        (lasting, until): (Nanos, Stamp<SenderClock>),
        silence: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<Option<SearchEnding>, MeasureError> {
        for _ in 0..defaults::SEARCH_TRIALS_WITHOUT_PACE {
            if Monotonic.now() + lasting > until {
                return Ok(Some(SearchEnding::TimeUp));
            }
            if let Some(ending) = self.try_one((None, lasting), silence, stop)? {
                return Ok(Some(ending));
            }
            let trials = self.facts_mut().search.as_ref().map(|facts| facts.trials.as_slice()).unwrap_or_default();
            if trials.last().is_some_and(|trial| trial.counting_ns - trial.sending_ns > defaults::SEARCH_DEEP_QUEUE) {
                break;
            }
        }
        Ok(None)
    }

    fn try_rates(
        &mut self,
        (search, lasting, until): (&RateSearchSpec, Nanos, Stamp<SenderClock>),
        silence: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<SearchEnding, MeasureError> {
        let at_will = self.facts_mut().search.as_ref().map(|facts| facts.trials.clone()).unwrap_or_default();
        let reach = self.reach(lasting, &at_will);
        if let Some(facts) = &mut self.facts_mut().search {
            facts.ceiling_pps = reach.ceiling_pps;
        }
        let mut search = GoalSearch::new(&search.goals, reach, until);
        loop {
            let begin = Monotonic.now();
            let (pps, lasting) = match search.step(begin) {
                GoalStep::Settled => return Ok(SearchEnding::Settled),
                GoalStep::TimeUp => return Ok(SearchEnding::TimeUp),
                GoalStep::Try { pps, lasting } => (pps, lasting),
            };
            if let Some(ending) = self.try_one((Some(pps), lasting), silence, stop)? {
                return Ok(ending);
            }
            if let Some(facts) = &self.facts_mut().search {
                search.learn(&facts.judged(), lasting, Monotonic.now() - begin);
            }
        }
    }

    /// One trial, which is written down; why the search ends with it, if it does. A receiver that is too swamped to answer is
    /// an answer.
    fn try_one(
        &mut self,
        (pps, lasting): (Option<f64>, Nanos),
        silence: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<Option<SearchEnding>, MeasureError> {
        let begin = Monotonic.now();
        let (before, behind) = silence.awaiting(pps);
        self.hold((Phase::Warmup, lasting), pps, SilenceMeaning::IsLoss { before, behind }, stop)?;
        let trial = self.trial_facts(pps, lasting);
        if stop.load(Ordering::Relaxed) {
            return Ok(Some(SearchEnding::CutShort));
        }
        let awaiting = if trial.sending_ns > Nanos::ZERO { behind } else { before };
        if silence.ends_with(&trial, awaiting, Monotonic.now() - begin) {
            return Ok(Some(SearchEnding::Silent));
        }
        if let Some(facts) = &mut self.facts_mut().search {
            facts.trials.push(trial);
        }
        Ok(None)
    }

    /// From ten packets in a trial to the rate that was asked for, or else to what left without a pace; no more is tried,
    /// however few packets of a trial that leaves.
    fn reach(&self, lasting: Nanos, trials: &[TrialFacts]) -> RateRange {
        let asked = self.pps_of_all();
        let best = |of: fn(&TrialFacts) -> f64| asked.unwrap_or_else(|| trials.iter().map(of).fold(0.0, f64::max));
        let floor_pps = (defaults::SEARCH_PACKETS_MIN / lasting.as_secs_f64()).min(asked.unwrap_or(f64::INFINITY));
        RateRange { floor_pps, ceiling_pps: best(TrialFacts::sent_pps), guess_pps: best(TrialFacts::delivered_pps) }
    }

    /// Holds shares of the found rate one after the other, the last as the run itself. Where no rate was found there is
    /// nothing to hold but none, beside probes. Where the search took longer than it may, stages are left out.
    pub(crate) fn hold_shares(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let facts = self.facts_mut().search.clone();
        let found = facts.as_ref().and_then(|facts| facts.found_pps(&search.goals));
        let for_trials = search.for_trials(self.has_probes());
        let late = facts.map_or(Nanos::ZERO, |facts| facts.took_ns - for_trials).max(Nanos::ZERO);
        let until = Monotonic.now() + (search.within_ns - for_trials - late);
        // What carries no rate may not carry the probes either: they fill its queue.
        let awaiting = if found.is_some() { Awaiting::Answer } else { Awaiting::UnknownQueue };
        for share in RateSearchSpec::SHARES {
            if stop.load(Ordering::Relaxed) || (share > 0.0 && found.is_none()) {
                break;
            }
            if share < 1.0 && !self.has_probes() {
                continue;
            }
            let Some(span) = search.stage_within(share, until - Monotonic.now()) else { continue };
            let phase = if share < 1.0 { Phase::Warmup } else { Phase::Measure };
            let pace =
                if share > 0.0 { StageRate::Rate(found.map(|pps| pps * share)) } else { StageRate::Nothing(awaiting) };
            self.stage(Some(share), (phase, span), pace, stop)?;
            self.save();
        }
        Ok(())
    }

    /// What all flows came to in the last slice.
    pub(crate) fn trial_facts(&self, asked_pps: Option<f64>, lasting_ns: Nanos) -> TrialFacts {
        let mut facts = TrialFacts {
            asked_pps,
            lasting_ns,
            sending_ns: Nanos::ZERO,
            counting_ns: Nanos::ZERO,
            sent_packets: 0,
            delivered_packets: 0,
            answered: true,
        };
        for (stretch, answered) in self.stretches() {
            facts.sent_packets += stretch.sent;
            facts.delivered_packets += stretch.delivered;
            facts.sending_ns = facts.sending_ns.max(stretch.sending);
            facts.counting_ns = facts.counting_ns.max(stretch.counting);
            facts.answered &= answered;
        }
        facts
    }
}

/// Questions in a row that nobody answered.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    questions: u32,
    /// For so long they were waited for, while nothing was sent.
    span: Nanos,
    /// Whether the trial before had no pace: then there may still be what is in a queue of any depth.
    without_pace: bool,
}

impl Unanswered {
    /// What a trial at this pace waits for before its first packet and behind it.
    fn awaiting(&self, pps: Option<f64>) -> (Awaiting, Awaiting) {
        let of = |without_pace| if without_pace { Awaiting::UnknownQueue } else { Awaiting::OneOfSeveral };
        (of(pps.is_none() || self.without_pace), of(pps.is_none()))
    }

    /// Takes in a trial that took so long, and whose last question was `awaiting` that; whether the receiver is gone. It may
    /// be too swamped to answer behind the packets of a trial, but not the next question too, which waits with nothing in its
    /// way. Where a queue of any depth was allowed for, one question is enough.
    fn ends_with(&mut self, trial: &TrialFacts, awaiting: Awaiting, took: Nanos) -> bool {
        let without_pace = trial.asked_pps.is_none();
        if trial.answered {
            *self = Unanswered { without_pace, ..Unanswered::default() };
            return false;
        }
        self.without_pace = without_pace;
        self.questions += 1;
        self.span += (took - trial.sending_ns).max(Nanos::ZERO);
        awaiting == Awaiting::UnknownQueue || self.questions >= defaults::SEARCH_SILENT_QUESTIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn trial(asked_pps: Option<f64>, sent_packets: u64, answered: bool) -> TrialFacts {
        TrialFacts {
            asked_pps,
            lasting_ns: SECOND,
            sending_ns: if sent_packets > 0 { SECOND } else { Nanos::ZERO },
            counting_ns: Nanos::ZERO,
            sent_packets,
            delivered_packets: 0,
            answered,
        }
    }

    /// Whether the last of `trials` ends a search, none of those before it, and after how much silence.
    fn ended(trials: &[TrialFacts]) -> (bool, Nanos) {
        let mut silence = Unanswered::default();
        let mut ends = Vec::new();
        for trial in trials {
            let (before, behind) = silence.awaiting(trial.asked_pps);
            let awaiting = if trial.sending_ns > Nanos::ZERO { behind } else { before };
            let took = trial.sending_ns + if trial.answered { Nanos::ZERO } else { SECOND };
            ends.push(silence.ends_with(trial, awaiting, took));
        }
        let (last, rest) = ends.split_last().expect("some trials");
        assert!(rest.iter().all(|ended| !ended), "{trials:?}");
        (*last, silence.span)
    }

    #[test]
    fn a_receiver_is_gone_that_leaves_two_questions_in_a_row_unanswered() {
        let pace = Some(9.0);
        let (swamped, heard, before) = (trial(pace, 9, false), trial(pace, 9, true), trial(pace, 0, false));
        for (trials, gone, span) in [
            (vec![heard, swamped, heard, swamped], false, SECOND),
            (vec![heard, swamped, swamped], true, SECOND + SECOND),
            (vec![heard, before], false, SECOND),
            (vec![swamped, before], true, SECOND + SECOND),
            (vec![before, before], true, SECOND + SECOND),
        ] {
            assert_eq!(ended(&trials), (gone, span), "{trials:?}");
        }
    }

    #[test]
    fn one_question_is_enough_where_a_queue_of_any_depth_was_allowed_for() {
        let (heard, silent, before) = (trial(None, 9, true), trial(None, 9, false), trial(None, 0, false));
        let (paced_before, paced_behind) = (trial(Some(9.0), 0, false), trial(Some(9.0), 9, false));
        for (trials, gone) in [
            (vec![silent], true),
            (vec![heard, before], true),
            // What a trial without a pace has left in a queue is in the way of the next question.
            (vec![heard, paced_before], true),
            (vec![heard, paced_behind], false),
            (vec![heard, paced_behind, paced_before], true),
        ] {
            assert_eq!(ended(&trials).0, gone, "{trials:?}");
        }
    }
}
