//! What a search for a rate saw, as plain data.

use serde::{Deserialize, Serialize};

use crate::stats::{LossGoal, RateTrial};
use crate::units::Nanos;

/// A sender that lacks more than this share of the packets asked for did not offer that rate …
const UNSENT: f64 = 0.01;
/// … nor one that lacks more than are due in so long: kept from its CPU at the very end, it cannot catch up.
const UNSENT_WITHIN: Nanos = Nanos::from_millis(5);
/// Packets may be counted over a time longer than that of sending by this share of a trial: what arrives later than that
/// has waited in a queue that grew. It is half of the width to which a rate is known (2 %), so that the depth of a queue
/// never shows in the answer …
const LATE: f64 = 0.01;
/// … but in short trials no less than this, which the first and the last question may differ by: a sleeping receiver wakes
/// up some 0.1 ms late, and a question that finds a packet on the wire waits for it.
const LATE_MIN: Nanos = Nanos::from_millis(1);

/// A trial without a loss that was short or late is tried again, so many times in a row at most: an end that was kept from
/// its CPU says nothing about the path, and one that is always short or late is at its limit.
const AGAIN: usize = 2;

/// A rate that was held for a time, told by both ends. Of several flows the packets are added up, and the times are the
/// longest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFacts {
    /// Packets a second asked for; null: as fast as sends go.
    pub asked_pps: Option<f64>,
    /// How long packets were to be sent.
    pub lasting_ns: Nanos,
    /// How long sending took, on the sender's clock.
    pub sending_ns: Nanos,
    /// From the question before the first packet to the answer behind the last one, on the receiver's clock, less the pause
    /// before the first.
    pub counting_ns: Nanos,
    /// Packets that the sender's kernel took.
    pub sent_packets: u64,
    /// Packets that the receiver had counted by then.
    pub delivered_packets: u64,
    /// Whether it answered at all: within 0.75 s, or 4.5 s where a trial without a pace may have filled a queue.
    pub answered: bool,
}

/// A share of the found rate, held beside probes; or the whole of a stream that was not searched for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFacts {
    /// The share; null: there was no search.
    pub share: Option<f64>,
    /// When it began, on the sender's clock, in ns.
    pub begin_ns: i64,
    /// When its last packet had been sent, in ns; of one that broke off when it did, or was to end.
    pub end_ns: i64,
    /// Its stream; null where none was sent, or where it broke off.
    pub stream: Option<TrialFacts>,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnding {
    /// Every goal was reached, or cannot be.
    Settled,
    /// The next trial would have ended too late.
    TimeUp,
    /// Nobody answered any more.
    Silent,
    /// Somebody stopped it, or the world broke.
    CutShort,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSearchFacts {
    /// The least rate of interest, in packets a second.
    pub floor_pps: f64,
    /// The most that this end can send, or was to try; 0 until that is known.
    pub ceiling_pps: f64,
    /// The trials in their order; the first ones were as fast as sends go, unless a rate was asked for.
    pub trials: Vec<TrialFacts>,
    /// Why there are no more of them.
    pub ending: SearchEnding,
    /// How long they took together.
    pub took_ns: Nanos,
}

impl TrialFacts {
    /// Packets a second that were sent.
    pub fn sent_pps(&self) -> f64 {
        rate(self.sent_packets, self.sending_ns)
    }

    /// Packets a second that arrived, while they were sent and counted.
    pub fn delivered_pps(&self) -> f64 {
        rate(self.delivered_packets, self.counting_ns.max(self.sending_ns))
    }

    /// The share of packets that was not carried: lost, not offered though it was asked for, or so late that a queue must have
    /// grown. What was counted in a longer time than it was sent in, and than that may differ, counts at the rate at which it
    /// arrived: whatever the queue holds, no more than that goes through. 1 where nobody counted.
    pub fn loss_ratio(&self) -> f64 {
        let offered = if self.is_short() { self.asked_packets() } else { self.sent_packets as f64 };
        if !self.answered || offered <= 0.0 {
            return 1.0;
        }
        let in_time = self.counted_by().as_secs_f64() / self.counting_ns.as_secs_f64().max(1e-9);
        let carried = self.delivered_packets as f64 * in_time.min(1.0);
        (1.0 - carried / offered).clamp(0.0, 1.0)
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

    /// Whether nothing was lost of a trial that was short or late.
    fn is_odd(&self) -> bool {
        self.is_lossless() && (self.is_short() || self.is_late())
    }

    fn is_lossless(&self) -> bool {
        self.answered && self.sent_packets > 0 && self.delivered_packets >= self.sent_packets
    }

    fn is_late(&self) -> bool {
        self.counting_ns > self.counted_by()
    }

    /// The trial as goals judge it; none where no rate was asked for.
    pub fn as_trial(&self) -> Option<RateTrial> {
        let (pps, lasting) = (self.asked_pps?, self.lasting_ns);
        // The packets of a trial stand at both of its ends: one more than its rate says is not a higher rate.
        let delivered_pps = self.delivered_pps().min(pps);
        Some(RateTrial { pps, lasting, loss_ratio: self.loss_ratio(), delivered_pps })
    }
}

impl RateSearchFacts {
    /// The trials as goals judge them, without those that were to be tried again.
    pub fn judged(&self) -> Vec<RateTrial> {
        let mut odd = 0;
        let mut judged = Vec::with_capacity(self.trials.len());
        for trial in &self.trials {
            odd = if trial.is_odd() { odd + 1 } else { 0 };
            if odd == 0 || odd > AGAIN {
                odd = 0;
                judged.extend(trial.as_trial());
            }
        }
        judged
    }

    /// The latest of the trials at the lowest rate that was tried, where nothing was lost in any of them and one was late;
    /// none where that is not what was wrong with them.
    pub fn late_at_least(&self) -> Option<TrialFacts> {
        let paced = || self.trials.iter().filter_map(|trial| Some((trial.asked_pps?, trial)));
        let least = paced().map(|(pps, _)| pps).fold(f64::INFINITY, f64::min);
        let lowest = || paced().filter(|(pps, _)| *pps <= least).map(|(_, trial)| trial);
        let carried = lowest().all(|trial| trial.is_lossless() && !trial.is_short());
        let late = lowest().filter(|trial| trial.is_late()).max_by_key(|trial| trial.counting_ns);
        late.filter(|_| carried).copied()
    }

    /// The rate that keeps to the first of `goals` that some rate keeps to, in packets a second.
    pub fn found_pps(&self, goals: &[LossGoal]) -> Option<f64> {
        let trials = self.judged();
        goals.iter().find_map(|goal| goal.bounds(&trials).lower_pps)
    }
}

fn rate(packets: u64, span: Nanos) -> f64 {
    if span <= Nanos::ZERO { 0.0 } else { packets as f64 / span.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_was_not_carried_is_lost() {
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
    fn what_a_queue_holds_is_not_carried_however_long_the_trial_is() {
        // 10,000 packets a second are sent, and 8,000 go through: the queue has room for all of them.
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
            // A millisecond in 25, else a hundredth.
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
    fn what_only_came_late_was_not_lost() {
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
    fn an_end_that_was_kept_from_its_cpu_has_two_more_tries() {
        let short = TrialFacts { sent_packets: 500, delivered_packets: 500, ..CLEAN };
        let late = TrialFacts { counting_ns: Nanos::from_millis(1_500), ..CLEAN };
        let lossy = TrialFacts { delivered_packets: 900, ..CLEAN };
        for (trials, kept, lost) in [
            (vec![CLEAN, short, CLEAN], 2, 0),
            (vec![short, late, CLEAN, short, late], 1, 0),
            (vec![short, short, short], 0, 1),
            (vec![late, short, late, late, late, late], 0, 2),
            // What lost packets counts, however it was sent.
            (vec![lossy, TrialFacts { sent_packets: 900, ..lossy }, lossy], 0, 2),
            (vec![lossy, TrialFacts { sent_packets: 950, ..lossy }, lossy], 0, 3),
        ] {
            let (floor_pps, ceiling_pps, ending) = (20.0, 1e6, SearchEnding::Settled);
            let facts = RateSearchFacts { floor_pps, ceiling_pps, trials, ending, took_ns: SECOND };
            let judged = facts.judged();
            let found = judged.iter().filter(|trial| trial.loss_ratio == 0.0).count();
            assert_eq!((found, judged.len() - found), (kept, lost), "{:?}", facts.trials);
        }
    }
}
