//! The rate search of a stream, and the stages after it: measures the trials that the pure search requests.

use std::sync::atomic::{AtomicBool, Ordering};

use super::goal_search::{GoalSearch, GoalStep, RateRange};
use super::run::{OnSilence, StagePace, StreamRun};
use super::sender::Awaiting;
use crate::clock::{Clock, Monotonic};
use crate::facts::{RateSearchFacts, SearchEnding, TrialFacts};
use crate::measure::{MeasureError, Slice};
use crate::plan::{RateSearchSpec, defaults};
use crate::probe::Phase;
use crate::units::{Nanos, SenderClock, Stamp};

impl StreamRun {
    /// Searches for the rates of `search`. The manifest has every trial, however the search ends.
    pub(crate) fn search(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        let until = begin + search.for_trials(self.has_probes());
        let trial_span = search.goals.first().map_or(defaults::SEARCH_TRIAL_MIN, |goal| goal.final_trial_ns);
        let range = self.rate_range(trial_span, &[]);
        self.facts_mut().search = Some(RateSearchFacts {
            floor_pps: range.floor_pps,
            ceiling_pps: range.ceiling_pps,
            trials: Vec::new(),
            ending: SearchEnding::CutShort,
            took_ns: Nanos::ZERO,
        });
        // For a run that is killed before the end of the search.
        self.save();
        let mut unanswered = Unanswered::default();
        let without_pace = match self.pps_of_all() {
            // A higher rate is not of interest, and could overload the path.
            Some(_) => Ok(None),
            None => self.try_without_pace(trial_span, until, &mut unanswered, stop),
        };
        let ended = match without_pace {
            Ok(None) => self.try_rates(search, trial_span, until, &mut unanswered, stop),
            Ok(Some(ending)) => Ok(ending),
            Err(error) => Err(error),
        };
        if let Some(facts) = &mut self.facts_mut().search {
            facts.took_ns = Monotonic.now() - begin;
            facts.ending = *ended.as_ref().unwrap_or(&SearchEnding::CutShort);
        }
        self.save();
        match ended? {
            SearchEnding::Silent => Err(self.silent_for(unanswered.span)),
            SearchEnding::Settled | SearchEnding::TimeUp | SearchEnding::CutShort => Ok(()),
        }
    }

    /// Measures the trials without a pace. Returns the ending of the search, if it ends with them.
    fn try_without_pace(
        &mut self,
        trial_span: Nanos,
        until: Stamp<SenderClock>,
        unanswered: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<Option<SearchEnding>, MeasureError> {
        for _ in 0..defaults::SEARCH_TRIALS_WITHOUT_PACE {
            if Monotonic.now() + trial_span > until {
                return Ok(Some(SearchEnding::TimeUp));
            }
            if let Some(ending) = self.try_one(None, trial_span, unanswered, stop)? {
                return Ok(Some(ending));
            }
            let trials = self.facts_mut().search.as_ref().map(|facts| facts.trials.as_slice()).unwrap_or_default();
            if trials.last().is_some_and(|trial| trial.counting_ns - trial.sending_ns > defaults::SEARCH_DEEP_QUEUE) {
                break;
            }
        }
        Ok(None)
    }

    /// Measures the trials that the search for the goals requests.
    fn try_rates(
        &mut self,
        search: &RateSearchSpec,
        trial_span: Nanos,
        until: Stamp<SenderClock>,
        unanswered: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<SearchEnding, MeasureError> {
        let without_pace = self.facts_mut().search.as_ref().map(|facts| facts.trials.clone()).unwrap_or_default();
        let range = self.rate_range(trial_span, &without_pace);
        if let Some(facts) = &mut self.facts_mut().search {
            facts.ceiling_pps = range.ceiling_pps;
        }
        let mut goals = GoalSearch::new(&search.goals, range, until);
        loop {
            let begin = Monotonic.now();
            let (pps, span) = match goals.step(begin) {
                GoalStep::Settled => return Ok(SearchEnding::Settled),
                GoalStep::TimeUp => return Ok(SearchEnding::TimeUp),
                GoalStep::Try { pps, lasting } => (pps, lasting),
            };
            if let Some(ending) = self.try_one(Some(pps), span, unanswered, stop)? {
                return Ok(ending);
            }
            if let Some(facts) = &self.facts_mut().search {
                goals.learn(&facts.judged(&search.goals), span, Monotonic.now() - begin);
            }
        }
    }

    /// Measures and records one trial. Returns the ending of the search, if it ends with this trial. That an overloaded
    /// receiver does not answer is a result.
    fn try_one(
        &mut self,
        pps: Option<f64>,
        span: Nanos,
        unanswered: &mut Unanswered,
        stop: &AtomicBool,
    ) -> Result<Option<SearchEnding>, MeasureError> {
        let begin = Monotonic.now();
        let (before, after) = unanswered.awaiting(pps);
        let slice = Slice::lasting(Phase::Warmup, span);
        self.run_flows(&slice, pps, OnSilence::CountAsLoss { before, after }, stop)?;
        let trial = self.trial_facts(pps, span);
        if stop.load(Ordering::Relaxed) {
            return Ok(Some(SearchEnding::CutShort));
        }
        let awaiting = if trial.sending_ns > Nanos::ZERO { after } else { before };
        if unanswered.ends_with(&trial, awaiting, Monotonic.now() - begin) {
            return Ok(Some(SearchEnding::Silent));
        }
        if let Some(facts) = &mut self.facts_mut().search {
            facts.trials.push(trial);
        }
        Ok(None)
    }

    /// The range of rates: from ten packets in a trial to the requested rate, or else to the rate that was sent without a
    /// pace.
    fn rate_range(&self, trial_span: Nanos, trials: &[TrialFacts]) -> RateRange {
        let asked = self.pps_of_all();
        let best = |of: fn(&TrialFacts) -> f64| asked.unwrap_or_else(|| trials.iter().map(of).fold(0.0, f64::max));
        let floor_pps = (defaults::SEARCH_PACKETS_MIN / trial_span.as_secs_f64()).min(asked.unwrap_or(f64::INFINITY));
        RateRange { floor_pps, ceiling_pps: best(TrialFacts::sent_pps), guess_pps: best(TrialFacts::delivered_pps) }
    }

    /// Measures the stages in turn: shares of the found rate, the last of which is the run itself. If no rate was found,
    /// only the pause with probes is measured. Stages are left out if the search took longer than planned.
    pub(crate) fn measure_stages(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let facts = self.facts_mut().search.clone();
        let found = facts.as_ref().and_then(|facts| facts.found_pps(&search.goals));
        let for_trials = search.for_trials(self.has_probes());
        let overrun = facts.map_or(Nanos::ZERO, |facts| facts.took_ns - for_trials).max(Nanos::ZERO);
        let until = Monotonic.now() + (search.within_ns - for_trials - overrun);
        // A path without a found rate may not even carry the probes, which then fill its queue.
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
                if share > 0.0 { StagePace::Rate(found.map(|pps| pps * share)) } else { StagePace::Pause(awaiting) };
            self.measure_stage(Some(share), Slice::lasting(phase, span), pace, stop)?;
            self.save();
        }
        Ok(())
    }

    /// The counts of all flows in the last slice.
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
        for (counts, answered) in self.flow_counts() {
            facts.sent_packets += counts.sent;
            facts.delivered_packets += counts.delivered;
            facts.sending_ns = facts.sending_ns.max(counts.sending);
            facts.counting_ns = facts.counting_ns.max(counts.counting);
            facts.answered &= answered;
        }
        facts
    }
}

/// Consecutive POLLs of trials without an answer.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    questions: u32,
    /// The time for which answers were awaited while no packets were sent.
    span: Nanos,
    /// Whether the trial before had no pace, so that its packets may still fill a queue of unknown depth.
    without_pace: bool,
}

impl Unanswered {
    /// The answers that the POLLs of a trial at `pps` await: the POLL before its first packet, and all later ones.
    fn awaiting(&self, pps: Option<f64>) -> (Awaiting, Awaiting) {
        let of = |without_pace| if without_pace { Awaiting::UnknownQueue } else { Awaiting::OneOfSeveral };
        (of(pps.is_none() || self.without_pace), of(pps.is_none()))
    }

    /// Updates the counts with a trial that took `took`, and whose last POLL was `awaiting`. Returns whether the receiver
    /// is gone: it may be too overloaded to answer after the packets of a trial, but answers the next POLL, which is sent
    /// over an idle path. After a wait for a queue of unknown depth one POLL is enough.
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

    /// Whether the last of `trials` ends a search, and the time of silence. No trial before it may end the search.
    fn ended(trials: &[TrialFacts]) -> (bool, Nanos) {
        let mut unanswered = Unanswered::default();
        let mut ends = Vec::new();
        for trial in trials {
            let (before, after) = unanswered.awaiting(trial.asked_pps);
            let awaiting = if trial.sending_ns > Nanos::ZERO { after } else { before };
            let took = trial.sending_ns + if trial.answered { Nanos::ZERO } else { SECOND };
            ends.push(unanswered.ends_with(trial, awaiting, took));
        }
        let (last, rest) = ends.split_last().expect("some trials");
        assert!(rest.iter().all(|ended| !ended), "{trials:?}");
        (*last, unanswered.span)
    }

    #[test]
    fn a_receiver_is_gone_after_two_consecutive_unanswered_polls() {
        let pace = Some(9.0);
        let (overloaded, answered, before) = (trial(pace, 9, false), trial(pace, 9, true), trial(pace, 0, false));
        for (trials, gone, span) in [
            (vec![answered, overloaded, answered, overloaded], false, SECOND),
            (vec![answered, overloaded, overloaded], true, SECOND + SECOND),
            (vec![answered, before], false, SECOND),
            (vec![overloaded, before], true, SECOND + SECOND),
            (vec![before, before], true, SECOND + SECOND),
        ] {
            assert_eq!(ended(&trials), (gone, span), "{trials:?}");
        }
    }

    #[test]
    fn one_poll_is_enough_after_a_wait_for_a_queue_of_unknown_depth() {
        let (answered, silent, before) = (trial(None, 9, true), trial(None, 9, false), trial(None, 0, false));
        let (paced_before, paced_behind) = (trial(Some(9.0), 0, false), trial(Some(9.0), 9, false));
        for (trials, gone) in [
            (vec![silent], true),
            (vec![answered, before], true),
            // Packets of a trial without a pace may be queued before the next POLL.
            (vec![answered, paced_before], true),
            (vec![answered, paced_behind], false),
            (vec![answered, paced_behind, paced_before], true),
        ] {
            assert_eq!(ended(&trials).0, gone, "{trials:?}");
        }
    }
}
