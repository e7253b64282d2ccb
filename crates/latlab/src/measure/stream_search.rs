//! A stream's search for its rate, and the stages that follow: what the pure search asks for, measured and written down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::MeasureError;
use super::goal_search::{GoalSearch, Reach, Step};
use super::stream_lane::{Silence, StreamLane};
use crate::clock::{Clock, Monotonic};
use crate::facts::{RateSearchFacts, SearchEnding, StageFacts, TrialFacts};
use crate::plan::{RateSearchSpec, defaults};
use crate::probe::Phase;
use crate::units::{Nanos, SenderClock, Stamp};

impl StreamLane {
    /// Searches for the rates of `search`: the manifest knows all trials, however it ends.
    pub(super) fn search(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        let until = begin + search.for_trials(self.has_probes());
        let trial = search.goals.first().map_or(defaults::SEARCH_TRIAL_MIN, |goal| goal.final_trial_ns);
        let mut trials = Vec::new();
        while trials.len() < defaults::SEARCH_TRIALS_WITHOUT_PACE && !stop.load(Ordering::Relaxed) {
            trials.push(self.trial(None, trial, stop)?);
        }
        let reach = self.reach(trial, &trials);
        let facts = RateSearchFacts {
            floor_pps: reach.floor_pps,
            ceiling_pps: reach.ceiling_pps,
            trials,
            ending: SearchEnding::CutShort,
            took_ns: Nanos::ZERO,
        };
        self.facts_mut().search = Some(facts);
        let ended = self.try_rates(GoalSearch::new(&search.goals, reach, until), stop);
        if let Some(facts) = &mut self.facts_mut().search {
            facts.took_ns = Monotonic.now() - begin;
            facts.ending = *ended.as_ref().unwrap_or(&SearchEnding::CutShort);
        }
        self.save();
        ended.map(drop)
    }

    fn try_rates(&mut self, mut search: GoalSearch, stop: &AtomicBool) -> Result<SearchEnding, MeasureError> {
        let mut silent = 0;
        loop {
            let begin = Monotonic.now();
            let (pps, lasting) = match search.step(begin) {
                Step::Settled => return Ok(SearchEnding::Settled),
                Step::TimeUp => return Ok(SearchEnding::TimeUp),
                Step::Try { pps, lasting } => (pps, lasting),
            };
            let trial = self.trial(Some(pps), lasting, stop)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(SearchEnding::CutShort);
            }
            silent = if trial.answered { 0 } else { silent + 1 };
            if silent >= defaults::SEARCH_SILENT_TRIALS {
                return Err(self.fell_silent());
            }
            if let Some(facts) = &mut self.facts_mut().search {
                facts.trials.push(trial);
                search.learn(&facts.judged(), lasting, Monotonic.now() - begin);
            }
        }
    }

    /// Holds a pace for a time; a receiver that is too swamped to answer is an answer.
    fn trial(&mut self, pps: Option<f64>, lasting: Nanos, stop: &AtomicBool) -> Result<TrialFacts, MeasureError> {
        self.hold((Phase::Warmup, lasting), pps, Silence::IsLoss, stop)?;
        Ok(self.trial_facts(pps, lasting))
    }

    /// From ten packets in a trial to what left without a pace, or to the rate that was asked for if that is less.
    fn reach(&self, lasting: Nanos, trials: &[TrialFacts]) -> Reach {
        let most = self.pps_of_all().unwrap_or(f64::INFINITY);
        let best = |of: fn(&TrialFacts) -> f64| trials.iter().map(of).fold(0.0, f64::max).min(most);
        let floor_pps = defaults::SEARCH_PACKETS_MIN / lasting.as_secs_f64();
        Reach { floor_pps, ceiling_pps: best(TrialFacts::sent_pps), guess_pps: best(TrialFacts::delivered_pps) }
    }

    /// Holds shares of the found rate one after the other, the last as the run itself. Where no rate was found there is
    /// nothing to hold but none, beside probes.
    pub(super) fn hold_shares(&mut self, search: &RateSearchSpec, stop: &AtomicBool) -> Result<(), MeasureError> {
        let found = self.facts_mut().search.as_ref().and_then(|facts| facts.found_pps(&search.goals));
        for share in RateSearchSpec::SHARES {
            if stop.load(Ordering::Relaxed) || (share > 0.0 && found.is_none()) {
                break;
            }
            if share < 1.0 && !self.has_probes() {
                continue;
            }
            let phase = if share < 1.0 { Phase::Warmup } else { Phase::Measure };
            let pace = if share > 0.0 { Held::Rate(found.map(|pps| pps * share)) } else { Held::Nothing };
            self.stage(Some(share), (phase, search.stage_ns), pace, stop)?;
            self.save();
        }
        Ok(())
    }

    /// Measures a stage: the stream at its pace, and probes beside it where there are any.
    pub(super) fn stage(
        &mut self,
        share: Option<f64>,
        (phase, span): (Phase, Nanos),
        pace: Held,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let begin = Monotonic.now();
        let mut probes = self.lend_probes();
        let ran = thread::scope(|scope| {
            let probing = probes.as_mut().map(|probes| probes.spawn(scope, (phase, span), stop)).transpose();
            let probing = probing.map_err(MeasureError::Thread)?;
            let held = match pace {
                Held::Rate(pps) => self.hold((phase, span), pps, Silence::IsTheEnd, stop),
                Held::Nothing => Ok(()),
            };
            let end = match pace {
                Held::Rate(_) => Monotonic.now(),
                Held::Nothing => begin + span,
            };
            let probed = probing.map(thread::ScopedJoinHandle::join).transpose();
            let probed = probed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            held.and(probed.unwrap_or(Ok(()))).map(|()| end)
        });
        self.return_probes(probes);
        let end: Stamp<SenderClock> = ran?;
        let stream = match pace {
            Held::Rate(pps) => Some(self.trial_facts(pps, span)),
            Held::Nothing => None,
        };
        let stage = StageFacts { share, begin_ns: begin.as_nanos(), end_ns: end.as_nanos(), stream };
        self.facts_mut().stages.push(stage);
        Ok(())
    }

    /// What all flows came to in the last slice.
    fn trial_facts(&self, asked_pps: Option<f64>, lasting_ns: Nanos) -> TrialFacts {
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

/// What a stage holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// Nothing at all.
    Nothing,
    /// So many packets a second; none: as fast as sends go.
    Rate(Option<f64>),
}
