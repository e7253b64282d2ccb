//! When to work and when to rest, so that what is done keeps to a rate. Pure: the caller passes the elapsed
//! time and what was done until then.

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DutyStep {
    /// Work until so much is done in all, or until so long after the start; then ask again.
    Work {
        /// What shall be done by then, from the start on.
        goal: f64,
        /// The end of this period.
        until_ns: i64,
    },
    /// Nothing until so long after the start.
    Rest {
        /// The end of this period.
        until_ns: i64,
    },
}

/// Keeps to a rate over the whole time since the start (integral control): what one period lacks or has too
/// much, be it a late wake-up, a stolen slice or the grain of the work, the next ones make up.
///
/// What could not be done for long is forgiven, so that a load whose CPU was taken away for a minute does
/// not run at full speed for minutes afterwards: what it makes up would disturb a later measurement.
#[derive(Clone, Debug)]
pub(super) struct Duty {
    rate_per_ns: f64,
    period_ns: i64,
    most_owed: f64,
    forgiven: f64,
}

impl Duty {
    /// `rate_per_ns` units in a nanosecond on average, in bursts every `period_ns`; more than `most_owed` units
    /// are never made up.
    pub(super) fn new(rate_per_ns: f64, period_ns: i64, most_owed: f64) -> Duty {
        Duty { rate_per_ns, period_ns: period_ns.max(1), most_owed, forgiven: 0.0 }
    }

    /// What to do `elapsed_ns` after the start, when `done` units are done.
    pub(super) fn step(&mut self, elapsed_ns: i64, done: f64) -> DutyStep {
        let begin_ns = elapsed_ns.div_euclid(self.period_ns) * self.period_ns;
        let owed = self.due(begin_ns) - done;
        if owed > self.most_owed {
            self.forgiven += owed - self.most_owed;
        }
        let until_ns = begin_ns + self.period_ns;
        let goal = self.due(until_ns);
        if done < goal { DutyStep::Work { goal, until_ns } } else { DutyStep::Rest { until_ns } }
    }

    /// What shall be done so long after the start.
    fn due(&self, elapsed_ns: i64) -> f64 {
        self.rate_per_ns * elapsed_ns as f64 - self.forgiven
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MS;
    /// A worker looks at its clocks this often.
    const GRAIN: i64 = 20_000;

    /// A worker on a CPU that is `taken` at some times: its CPU time in each of `windows` windows of 5 s, the first of
    /// which starts after a second.
    fn simulate(duty: Duty, windows: i64, taken: impl Fn(i64) -> bool) -> Vec<f64> {
        let at_marks: Vec<i64> =
            (0..=windows).map(|window| done_by(duty.clone(), (1 + 5 * window) * SECOND, &taken)).collect();
        at_marks.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / (5 * SECOND) as f64).collect()
    }

    /// The CPU time of that worker so long after its start. Waking up takes 60 µs.
    fn done_by(mut duty: Duty, end: i64, taken: impl Fn(i64) -> bool) -> i64 {
        let (mut now, mut done) = (0, 0);
        while now < end {
            match duty.step(now, done as f64) {
                DutyStep::Rest { until_ns } => now = until_ns + 60_000,
                DutyStep::Work { goal, until_ns } => {
                    while (done as f64) < goal && now < until_ns.min(end) {
                        done += if taken(now) { 0 } else { GRAIN };
                        now += GRAIN;
                    }
                }
            }
        }
        done
    }

    use crate::load::cpu::MOST_OWED;
    use crate::units::Nanos;

    fn cpu(share: f64, period_ns: i64) -> Duty {
        crate::load::cpu::duty(share, Nanos(period_ns))
    }

    #[test]
    fn alone_every_window_has_its_share() {
        for share in [0.01, 0.2, 0.5, 0.8, 0.99] {
            for period in [MS, 10 * MS, 16_180_000, 100 * MS] {
                for found in simulate(cpu(share, period), 4, |_| false) {
                    let burst = share * (1.0 - share) * period as f64 / (5 * SECOND) as f64;
                    assert!((found - share).abs() <= 0.002 + burst, "{share} every {period} ns: {found}");
                }
            }
        }
    }

    #[test]
    fn what_is_taken_now_and_then_is_made_up() {
        // Somebody else has the CPU for 30 ms of every 200 ms: 85 % are free.
        for share in [0.2, 0.5, 0.8] {
            for found in simulate(cpu(share, 16_180_000), 4, |now| now % (200 * MS) < 30 * MS) {
                assert!((found - share).abs() <= 0.01, "{share}: {found}");
            }
        }
    }

    #[test]
    fn a_starved_worker_takes_all_it_gets_and_does_not_make_up_for_long() {
        // Half of every 4 ms belongs to other threads, and 80 % were asked for; from 11 s on the CPU is free.
        let found = simulate(cpu(0.8, 10 * MS), 4, |now| now < 11 * SECOND && now % (4 * MS) < 2 * MS);
        assert!((found[0] - 0.5).abs() < 0.01, "{found:?}");
        // 40 ms were owed at most: 0.8 points of one window, gone a fifth of a second later.
        assert!(found[2] > 0.8 && found[2] <= 0.81, "{found:?}");
        assert!((found[3] - 0.8).abs() < 0.002, "{found:?}");
    }

    #[test]
    fn no_disturbance_makes_any_later_five_seconds_exceed_a_point() {
        // Somebody has the CPU for a second, three seconds after the start; the share is that of each 5 s which begins
        // after that, wherever it begins.
        for share in [0.2, 0.5, 0.8, 0.95] {
            for begin in [4 * SECOND, 4 * SECOND + 8 * MS, 4 * SECOND + 100 * MS] {
                let taken = |now: i64| (3 * SECOND..4 * SECOND).contains(&now);
                let done = |at: i64| done_by(cpu(share, 16_180_000), at, taken);
                let found = (done(begin + 5 * SECOND) - done(begin)) as f64 / (5 * SECOND) as f64;
                assert!((found - share).abs() <= 0.01, "{share} from {begin} ns on: {found}");
            }
        }
    }

    #[test]
    fn the_whole_cpu_is_never_given_back() {
        let mut duty = cpu(1.0, 10 * MS);
        for elapsed in (0..SECOND).step_by(MS as usize) {
            let step = duty.step(elapsed, elapsed as f64 * 0.999);
            assert!(matches!(step, DutyStep::Work { .. }), "{elapsed}: {step:?}");
        }
    }

    proptest! {
        /// Whatever was taken, and however late it asks: a step ends within a period, no work is asked for that
        /// is done already, and what is asked for is at most what is owed and one period.
        #[test]
        fn every_step_ends_within_a_period(
            share in 0.01_f64..1.0,
            period in MS..SECOND,
            steps in prop::collection::vec((0_i64..SECOND, 0.0_f64..1.0), 1..200),
        ) {
            let mut duty = cpu(share, period);
            let (mut elapsed, mut done) = (0, 0.0);
            for (later, got) in steps {
                match duty.step(elapsed, done) {
                    DutyStep::Rest { until_ns } => prop_assert!(until_ns > elapsed && until_ns <= elapsed + period),
                    DutyStep::Work { goal, until_ns } => {
                        prop_assert!(until_ns > elapsed && until_ns <= elapsed + period);
                        let most = MOST_OWED.0 as f64 + share * period as f64;
                        prop_assert!(goal > done && goal - done <= most * (1.0 + 1e-9));
                    }
                }
                elapsed += later;
                done += later as f64 * got;
            }
        }
    }
}
