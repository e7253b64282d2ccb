//! The trials and stages of a rate search, and their evaluation.

use serde::{Deserialize, Serialize};

use crate::stats::{LossGoal, RateTrial};
use crate::units::Nanos;

/// A sender that is short of more than this share of the packets asked for did not offer that rate …
const UNSENT: f64 = 0.01;
/// … nor one that is short of more packets than are due in this time: preempted at the very end, it cannot catch up.
const UNSENT_WITHIN: Nanos = Nanos::from_millis(5);
/// Packets may be counted for longer than they are sent by this share of a trial; later ones have waited in a growing
/// queue. It is half of the width to which a rate is found (2 %), so that the depth of a queue does not affect the
/// result …
const LATE: f64 = 0.01;
/// … but at least this, by which the first and the last poll may differ: a sleeping receiver wakes up about 0.1 ms late,
/// and a poll waits for a packet that is on the wire.
const LATE_MIN: Nanos = Nanos::from_millis(1);

/// A trial without loss that was short or late is repeated, at most this many times in a row: an end that was preempted
/// shows nothing about the path, and one that is always short or late is at its limit.
const REPEATS: usize = 2;

/// A trial at a constant rate, with the counts of both ends. Of several flows it has the sums of packets and the longest
/// times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFacts {
    /// Packets a second asked for; null: unlimited.
    pub asked_pps: Option<f64>,
    pub lasting_ns: Nanos,
    /// Actual time of sending, on the clock of the sender.
    pub sending_ns: Nanos,
    /// From the poll before the first packet to the one after the last, on the clock of the receiver, minus the pause before
    /// the first packet.
    pub counting_ns: Nanos,
    /// Packets accepted by the kernel of the sender.
    pub sent_packets: u64,
    /// Packets that the receiver had counted by the last poll.
    pub delivered_packets: u64,
    /// Whether the receiver answered: within 0.75 s, or 4.5 s after a trial without a pace, which may have filled a queue.
    pub answered: bool,
}

/// A stage: a share of the found rate, sent during probes; or a whole stream without a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFacts {
    /// The share; null without a search.
    pub share: Option<f64>,
    /// Begin, on the clock of the sender, ns.
    pub begin_ns: i64,
    /// When its last packet had been sent, ns; of a stage that failed when it did, or was to end.
    pub end_ns: i64,
    /// Its stream; null if none was sent or the stage failed.
    pub stream: Option<TrialFacts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnding {
    /// Every goal was reached or shown to be out of reach.
    Settled,
    /// The next trial would have ended too late.
    TimeUp,
    /// The receiver did not answer any more.
    Silent,
    /// It was interrupted, or failed.
    CutShort,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSearchFacts {
    /// The lowest rate to try, in packets a second.
    pub floor_pps: f64,
    /// The highest rate that this end can send, or was to try; 0 until it is known.
    pub ceiling_pps: f64,
    /// The trials in their order; the first ones without a pace, unless a rate was asked for.
    pub trials: Vec<TrialFacts>,
    pub ending: SearchEnding,
    pub took_ns: Nanos,
}

impl TrialFacts {
    /// Packets a second that were sent.
    pub fn sent_pps(&self) -> f64 {
        rate(self.sent_packets, self.sending_ns)
    }

    /// Packets a second that were received, over the longer of the times of sending and counting.
    pub fn delivered_pps(&self) -> f64 {
        rate(self.delivered_packets, self.counting_ns.max(self.sending_ns))
    }

    /// The share of packets that the path did not carry: lost, asked for and not offered, or so late that a queue must have
    /// grown. Packets that were counted over a longer time than allowed count at the rate at which they arrived, since the
    /// path carries no more than that, whatever the queue holds. 1 if the receiver did not answer.
    pub fn loss_ratio(&self) -> f64 {
        let offered = if self.is_short() { self.asked_packets() } else { self.sent_packets as f64 };
        if !self.answered || offered <= 0.0 {
            return 1.0;
        }
        let in_time = self.counted_by().as_secs_f64() / self.counting_ns.as_secs_f64().max(1e-9);
        let carried = self.delivered_packets as f64 * in_time.min(1.0);
        (1.0 - carried / offered).clamp(0.0, 1.0)
    }

    /// The share of the packets asked for that was not sent, as [`Self::loss_ratio`] counts it: 0 if the rate was offered.
    pub fn not_sent_ratio(&self) -> f64 {
        if self.is_short() { 1.0 - self.sent_packets as f64 / self.asked_packets() } else { 0.0 }
    }

    fn asked_packets(&self) -> f64 {
        self.asked_pps.unwrap_or(0.0) * self.lasting_ns.as_secs_f64()
    }

    /// Whether the sender did not offer the rate.
    pub fn is_short(&self) -> bool {
        let lacking = UNSENT.max(UNSENT_WITHIN.as_secs_f64() / self.lasting_ns.as_secs_f64().max(1e-9));
        (self.sent_packets as f64) < self.asked_packets() * (1.0 - lacking)
    }

    fn counted_by(&self) -> Nanos {
        let late = Nanos((self.lasting_ns.0 as f64 * LATE) as i64);
        self.sending_ns + late.max(LATE_MIN)
    }

    /// Whether the trial was short or late without loss.
    fn is_suspect(&self) -> bool {
        self.is_lossless() && (self.is_short() || self.is_late())
    }

    fn is_lossless(&self) -> bool {
        self.answered && self.sent_packets > 0 && self.delivered_packets >= self.sent_packets
    }

    fn is_late(&self) -> bool {
        self.counting_ns > self.counted_by()
    }

    /// The trial as goals evaluate it; `None` without a pace.
    pub(crate) fn as_trial(&self) -> Option<RateTrial> {
        let (pps, lasting) = (self.asked_pps?, self.lasting_ns);
        // A trial has a packet at its begin and at its end: one more than its rate gives is not a higher rate.
        let [delivered_pps, offered_pps] = [self.delivered_packets, self.sent_packets]
            .map(|packets| rate(packets, self.counting_ns.max(self.sending_ns)).min(pps));
        let arrived = if self.answered { self.delivered_packets as f64 / self.sent_packets.max(1) as f64 } else { 0.0 };
        let lost_ratio = (1.0 - arrived).max(0.0);
        Some(RateTrial { pps, lasting, loss_ratio: self.loss_ratio(), delivered_pps, offered_pps, lost_ratio })
    }
}

impl RateSearchFacts {
    /// The trials as `goals` evaluate them, without those that were repeated. Longer ones, which confirm a rate, count as
    /// the rate that was really offered.
    pub fn judged(&self, goals: &[LossGoal]) -> Vec<RateTrial> {
        let full = goals.iter().map(|goal| goal.final_trial_ns).max().unwrap_or_default();
        let mut suspects = 0;
        let mut judged = Vec::with_capacity(self.trials.len());
        for trial in &self.trials {
            suspects = if trial.is_suspect() && trial.lasting_ns <= full { suspects + 1 } else { 0 };
            if suspects == 0 || suspects > REPEATS {
                suspects = 0;
                judged.extend(trial.as_trial());
            }
        }
        judged
    }

    /// The trial at the lowest rate with the longest counting time. `None` if no trial at that rate was late, or if any
    /// was unanswered, lost packets or sent too few.
    pub fn late_at_least(&self) -> Option<TrialFacts> {
        let paced = || self.trials.iter().filter_map(|trial| Some((trial.asked_pps?, trial)));
        let least = paced().map(|(pps, _)| pps).fold(f64::INFINITY, f64::min);
        let lowest = || paced().filter(|(pps, _)| *pps <= least).map(|(_, trial)| trial);
        let carried = lowest().all(|trial| trial.is_lossless() && !trial.is_short());
        let late = lowest().filter(|trial| trial.is_late()).max_by_key(|trial| trial.counting_ns);
        late.filter(|_| carried).copied()
    }

    /// The rate found for the first of `goals` that any rate meets, in packets a second.
    pub fn found_pps(&self, goals: &[LossGoal]) -> Option<f64> {
        let trials = self.judged(goals);
        goals.iter().find_map(|goal| goal.bounds(&trials).lower_pps)
    }
}

fn rate(packets: u64, span: Nanos) -> f64 {
    if span <= Nanos::ZERO { 0.0 } else { packets as f64 / span.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RateSearchSpec;

    const SECOND: Nanos = Nanos::from_secs(1);
    const CLEAN: TrialFacts = TrialFacts {
        asked_pps: Some(1_000.0),
        lasting_ns: SECOND,
        sending_ns: SECOND,
        counting_ns: SECOND,
        sent_packets: 1_000,
        delivered_packets: 1_000,
        answered: true,
    };

    #[test]
    fn packets_that_were_not_carried_count_as_lost() {
        for (what, trial, expected) in [
            ("clean", CLEAN, 0.0),
            ("a packet more than asked", TrialFacts { sent_packets: 1_001, delivered_packets: 1_001, ..CLEAN }, 0.0),
            ("lost", TrialFacts { delivered_packets: 990, ..CLEAN }, 0.01),
            ("a packet short", TrialFacts { sent_packets: 999, delivered_packets: 999, ..CLEAN }, 0.0),
            ("ten short", TrialFacts { sent_packets: 990, delivered_packets: 990, ..CLEAN }, 0.0),
            ("never offered", TrialFacts { sent_packets: 900, delivered_packets: 900, ..CLEAN }, 0.1),
            ("a late wake-up", TrialFacts { counting_ns: Nanos::from_millis(1_010), ..CLEAN }, 0.0),
            ("a queue that grew", TrialFacts { counting_ns: Nanos::from_millis(2_020), ..CLEAN }, 0.5),
            ("silence", TrialFacts { answered: false, delivered_packets: 0, ..CLEAN }, 1.0),
            ("nothing sent", TrialFacts { sent_packets: 0, delivered_packets: 0, ..CLEAN }, 1.0),
        ] {
            assert!((trial.loss_ratio() - expected).abs() < 1e-12, "{what}: {}", trial.loss_ratio());
        }
        let tenth = TrialFacts { lasting_ns: Nanos::from_millis(100), sending_ns: Nanos::from_millis(100), ..CLEAN };
        for (sent, expected) in [(96, 0.0), (94, 0.06)] {
            let short =
                TrialFacts { sent_packets: sent, delivered_packets: sent, counting_ns: tenth.sending_ns, ..tenth };
            assert!((short.loss_ratio() - expected).abs() < 1e-12, "{sent} of 100: {}", short.loss_ratio());
        }
        assert_eq!(TrialFacts { asked_pps: None, ..CLEAN }.as_trial(), None);
    }

    #[test]
    fn packets_in_a_queue_count_as_lost_in_trials_of_any_length() {
        // 10,000 packets a second are sent and 8,000 pass; the queue holds the rest.
        for lasting in [25, 100, 166, 500, 1_000].map(Nanos::from_millis) {
            let sent = (10_000.0 * lasting.as_secs_f64()) as u64;
            let trial = TrialFacts {
                asked_pps: Some(10_000.0),
                lasting_ns: lasting,
                sending_ns: lasting,
                counting_ns: Nanos((sent as f64 / 8_000.0 * 1e9) as i64),
                sent_packets: sent,
                delivered_packets: sent,
                answered: true,
            };
            // 1 ms of 25 ms, else 1 %.
            let late = if lasting < Nanos::from_millis(100) { 0.04 } else { 0.01 };
            let expected = 1.0 - 0.8 * (1.0 + late);
            assert!((trial.loss_ratio() - expected).abs() < 1e-6, "{lasting:?}: {}", trial.loss_ratio());
            let judged = trial.as_trial().expect("a rate was asked for");
            assert!((judged.delivered_pps - 8_000.0).abs() < 0.1, "{judged:?}");
        }
        let one_more = TrialFacts { sent_packets: 1_001, delivered_packets: 1_001, ..CLEAN };
        assert_eq!(one_more.as_trial().map(|trial| trial.delivered_pps), Some(1_000.0));
    }

    #[test]
    fn late_packets_alone_are_not_lost() {
        let late = |millis| TrialFacts { counting_ns: Nanos::from_millis(millis), ..CLEAN };
        let lossy = TrialFacts { delivered_packets: 900, ..late(1_400) };
        let faster = |trial: TrialFacts| TrialFacts { asked_pps: Some(1_010.0), ..trial };
        for (trials, expected) in [
            (vec![late(1_100), late(1_200), late(1_150)], Some(late(1_200))),
            (vec![faster(lossy), late(1_100), CLEAN], Some(late(1_100))),
            (vec![TrialFacts { asked_pps: None, ..lossy }, late(1_100)], Some(late(1_100))),
            (vec![late(1_100), lossy], None),
            (vec![late(1_100), TrialFacts { sent_packets: 500, delivered_packets: 500, ..CLEAN }], None),
            (vec![faster(late(1_100)), CLEAN], None),
            (Vec::new(), None),
        ] {
            let (floor_pps, ceiling_pps, ending) = (1_000.0, 1e6, SearchEnding::Settled);
            let facts = RateSearchFacts { floor_pps, ceiling_pps, trials, ending, took_ns: SECOND };
            assert_eq!(facts.late_at_least(), expected, "{:?}", facts.trials);
        }
    }

    #[test]
    fn a_short_or_late_trial_without_loss_is_repeated_twice() {
        let short = TrialFacts { sent_packets: 500, delivered_packets: 500, ..CLEAN };
        let late = TrialFacts { counting_ns: Nanos::from_millis(1_500), ..CLEAN };
        let lossy = TrialFacts { delivered_packets: 900, ..CLEAN };
        for (trials, kept, lost) in [
            (vec![CLEAN, short, CLEAN], 2, 0),
            (vec![short, late, CLEAN, short, late], 1, 0),
            (vec![short, short, short], 0, 1),
            (vec![late, short, late, late, late, late], 0, 2),
            // A trial with loss counts, even if it was short.
            (vec![lossy, TrialFacts { sent_packets: 900, ..lossy }, lossy], 0, 2),
            (vec![lossy, TrialFacts { sent_packets: 950, ..lossy }, lossy], 0, 3),
        ] {
            let (floor_pps, ceiling_pps, ending) = (20.0, 1e6, SearchEnding::Settled);
            let facts = RateSearchFacts { floor_pps, ceiling_pps, trials, ending, took_ns: SECOND };
            let judged = facts.judged(&RateSearchSpec::within(&[0.0], Nanos::from_secs(120)).goals);
            let found = judged.iter().filter(|trial| trial.loss_ratio == 0.0).count();
            assert_eq!((found, judged.len() - found), (kept, lost), "{:?}", facts.trials);
        }
    }

    #[test]
    fn a_trial_that_confirms_counts_at_the_rate_that_was_offered() {
        let ten = SECOND.saturating_mul(10);
        let late = TrialFacts {
            lasting_ns: ten,
            sending_ns: ten,
            counting_ns: Nanos::from_secs(16),
            sent_packets: 8_000,
            delivered_packets: 7_200,
            ..CLEAN
        };
        let without_loss = TrialFacts { delivered_packets: 8_000, ..late };
        let (floor_pps, ceiling_pps, ending) = (20.0, 1e6, SearchEnding::Settled);
        let trials = vec![late, without_loss];
        let facts = RateSearchFacts { floor_pps, ceiling_pps, trials, ending, took_ns: SECOND };
        let goals = RateSearchSpec::within(&[0.0, 0.1], Nanos::from_secs(120)).goals;
        // A late one is not repeated.
        let judged = facts.judged(&goals);
        let figures = |trial: &RateTrial| (trial.offered_pps, trial.delivered_pps, (trial.lost_ratio * 1e6).round());
        let judged: Vec<_> = judged.iter().map(figures).collect();
        assert_eq!(judged, [(500.0, 450.0, 100_000.0), (500.0, 500.0, 0.0)]);
        assert_eq!((facts.found_pps(&goals[..1]), facts.found_pps(&goals[1..])), (Some(497.5), Some(497.5)));
        let silent = TrialFacts { answered: false, ..without_loss };
        assert_eq!(silent.as_trial().map(|trial| trial.lost_ratio), Some(1.0));
    }
}
