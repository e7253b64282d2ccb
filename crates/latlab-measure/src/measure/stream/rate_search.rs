//! The search for the highest rate without loss by bisection (RFC 2544, section 26.1), for network loads. Pure.

use crate::plan::defaults;
use crate::units::{Nanos, SenderClock, Stamp};

/// The time of sending of a trial: about 20 trials fit into a search.
pub(super) const TRIAL: Nanos = Nanos::from_millis(300);
/// The longest duration of a trial, with up to a second before and after it to wait for the TALLY of packets in flight.
const TRIAL_MAX: Nanos = Nanos::from_millis(2_300);
/// The relative width of the bounds at which the search ends.
const RESOLUTION: f64 = 0.02;
/// A sender that reaches less than this share of the requested rate is itself the limit.
const REACHED: f64 = 0.98;
/// Packets that arrive within the time of sending times this factor did not queue, …
const STRETCH: f64 = 1.05;
/// … nor did those that arrive within this additional time, since the reflector may have woken up late.
const STRETCH_MIN: Nanos = Nanos::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RateTrialResult {
    /// The requested rate; `None`: as fast as possible.
    pub asked_pps: Option<f64>,
    /// The time of sending, on the sender's clock.
    pub sending: Nanos,
    /// The time from the first to the last TALLY, on the reflector's clock.
    pub arriving: Nanos,
    pub sent: u64,
    pub delivered: u64,
}

impl RateTrialResult {
    /// Whether no packet was lost or queued: a deep queue loses none at first.
    fn is_clean(&self) -> bool {
        let longest = (self.sending.0 as f64 * STRETCH).max((self.sending + STRETCH_MIN).0 as f64);
        self.sent > 0 && self.delivered >= self.sent && (self.arriving.0 as f64) <= longest
    }

    fn sent_pps(&self) -> f64 {
        self.sent as f64 / self.sending.as_secs_f64()
    }

    fn delivered_pps(&self) -> f64 {
        self.delivered as f64 / self.arriving.max(self.sending).as_secs_f64()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SearchStep {
    /// Measure a trial at this rate in packets a second; `None`: as fast as possible.
    Try(Option<f64>),
    /// The highest rate without loss, in packets a second.
    Found(f64),
    /// Packets were lost at every rate.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct RateSearch {
    until: Stamp<SenderClock>,
    /// The highest rate without loss so far.
    clean_pps: f64,
    /// The lowest rate with loss so far.
    lossy_pps: Option<f64>,
    /// The rate of the next trial, if it is not the middle of the bounds: a little below the delivered rate of the first
    /// trial.
    guess_pps: Option<f64>,
    settled: bool,
    trials: u32,
}

impl RateSearch {
    /// A search from `now` on, of 10 s at most.
    pub(super) fn new(now: Stamp<SenderClock>) -> RateSearch {
        let until = now + defaults::RATE_SEARCH;
        RateSearch { until, clean_pps: 0.0, lossy_pps: None, guess_pps: None, settled: false, trials: 0 }
    }

    /// The next step at `now`.
    pub(super) fn step(&self, now: Stamp<SenderClock>) -> SearchStep {
        let Some(lossy) = self.lossy_pps else {
            return if self.settled { SearchStep::Found(self.clean_pps) } else { SearchStep::Try(None) };
        };
        let known = self.settled || lossy - self.clean_pps <= RESOLUTION * lossy;
        if known || now + TRIAL_MAX > self.until {
            return if self.clean_pps > 0.0 { SearchStep::Found(self.clean_pps) } else { SearchStep::Nothing };
        }
        // A trial of less than two packets cannot show a lower rate.
        if lossy * TRIAL.as_secs_f64() < 2.0 {
            return SearchStep::Nothing;
        }
        SearchStep::Try(Some(self.guess_pps.unwrap_or((self.clean_pps + lossy) / 2.0)))
    }

    /// Updates the bounds with a trial.
    pub(super) fn learn(&mut self, trial: &RateTrialResult) {
        self.trials += 1;
        self.guess_pps = None;
        if trial.is_clean() {
            self.clean_pps = self.clean_pps.max(trial.delivered_pps());
            self.settled = trial.asked_pps.is_none_or(|asked| trial.sent_pps() < REACHED * asked);
            return;
        }
        let lossy = trial.asked_pps.unwrap_or(trial.sent_pps());
        self.lossy_pps = Some(self.lossy_pps.map_or(lossy, |known| known.min(lossy)));
        if trial.asked_pps.is_none() {
            // A little less, since the count is uncertain by some packets.
            self.guess_pps = Some(trial.delivered_pps() * (1.0 - RESOLUTION)).filter(|guess| *guess > 0.0);
        }
    }

    /// The number of trials so far.
    pub(super) fn trials(&self) -> u32 {
        self.trials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search on a path of `capacity` packets a second with a queue of `queue`, by a sender of at most `fastest`.
    fn search(capacity: f64, queue: f64, fastest: f64) -> (SearchStep, RateSearch, Nanos) {
        let mut now = Stamp::from_nanos(0);
        let mut search = RateSearch::new(now);
        loop {
            let SearchStep::Try(asked_pps) = search.step(now) else {
                return (search.step(now), search, now - Stamp::from_nanos(0));
            };
            let rate = asked_pps.unwrap_or(f64::INFINITY).min(fastest);
            let seconds = TRIAL.as_secs_f64();
            let sent = (rate * seconds).round();
            let delivered = sent.min(capacity * seconds + queue).floor();
            let arriving = Nanos((delivered / capacity * 1e9) as i64).max(TRIAL);
            let (sent, delivered) = (sent as u64, delivered as u64);
            search.learn(&RateTrialResult { asked_pps, sending: TRIAL, arriving, sent, delivered });
            now = now + Nanos::from_millis(450);
        }
    }

    #[test]
    fn the_capacity_is_found_within_10_s() {
        for capacity in [50.0, 1_000.0, 8_900.0, 123_456.0, 900_000.0] {
            for queue in [0.0, capacity * 0.01] {
                let (step, search, took) = search(capacity, queue, 1_000_000.0);
                let SearchStep::Found(found) = step else { panic!("{capacity}: {step:?}") };
                let slack = 1.0 + STRETCH_MIN.as_secs_f64() / TRIAL.as_secs_f64();
                assert!(found <= capacity * slack && found >= capacity * 0.94, "{found} of {capacity}, queue {queue}");
                assert!(took <= defaults::RATE_SEARCH, "{took:?}");
                assert!(search.trials() > 2);
            }
        }
    }

    #[test]
    fn packets_in_a_deep_queue_do_not_count_as_capacity() {
        let (step, ..) = search(1_000.0, 1e9, 100_000.0);
        assert!(matches!(step, SearchStep::Found(found) if found < 1_080.0), "{step:?}");
    }

    #[test]
    fn the_limit_of_a_sender_slower_than_the_path_is_found_with_one_trial() {
        let (step, search, _) = search(1e9, 0.0, 20_000.0);
        assert_eq!((step, search.trials()), (SearchStep::Found(20_000.0), 1));
    }

    #[test]
    fn a_path_that_always_loses_has_no_rate_without_loss() {
        let mut search = RateSearch::new(Stamp::from_nanos(0));
        let mut trials = 0;
        while let SearchStep::Try(asked_pps) = search.step(Stamp::from_nanos(0)) {
            let sent = (asked_pps.unwrap_or(1e5) * TRIAL.as_secs_f64()) as u64;
            search.learn(&RateTrialResult { asked_pps, sending: TRIAL, arriving: TRIAL, sent, delivered: sent / 2 });
            trials += 1;
            assert!(trials < 100);
        }
        assert_eq!(search.step(Stamp::from_nanos(0)), SearchStep::Nothing);
    }
}
