//! Workers that keep a rate, each on a CPU of its own: the rate control, which is pure, and the threads.

use std::io;
use std::sync::mpsc;
use std::thread;

use latlab_sys::clock::monotonic_ns;
use rustix::thread::{ClockId, CpuSet, Timespec, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};

use super::LoadError;
use crate::units::human::typed_cpus;

/// The next step of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ControlStep {
    /// Work until `goal` is reached, or until `until_ns`; then ask again.
    Work {
        /// The total since the start that is due at the end of this period.
        goal: f64,
        /// The end of this period, since the start.
        until_ns: i64,
    },
    Rest {
        /// The end of this period, since the start.
        until_ns: i64,
    },
}

/// Keeps a mean rate since the start (integral control): the next periods make up for a late wake-up, time that was taken
/// away, or work beyond the goal.
///
/// The backlog is bounded, so that a load that had no CPU for a minute does not run at full speed for minutes afterwards,
/// which would disturb a later measurement.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    rate_per_ns: f64,
    period_ns: i64,
    backlog_max: f64,
    dropped: f64,
}

impl RateControl {
    /// `rate_per_ns` units in a nanosecond on average, in a burst every `period_ns`. A backlog above `backlog_max` units is
    /// dropped.
    pub(super) fn new(rate_per_ns: f64, period_ns: i64, backlog_max: f64) -> RateControl {
        RateControl { rate_per_ns, period_ns: period_ns.max(1), backlog_max, dropped: 0.0 }
    }

    /// The step `elapsed_ns` after the start, with `done` units done.
    pub(super) fn step(&mut self, elapsed_ns: i64, done: f64) -> ControlStep {
        let begin_ns = elapsed_ns.div_euclid(self.period_ns) * self.period_ns;
        let backlog = self.due(begin_ns) - done;
        if backlog > self.backlog_max {
            self.dropped += backlog - self.backlog_max;
        }
        let until_ns = begin_ns + self.period_ns;
        let goal = self.due(until_ns);
        if done < goal { ControlStep::Work { goal, until_ns } } else { ControlStep::Rest { until_ns } }
    }

    /// The units due `elapsed_ns` after the start.
    fn due(&self, elapsed_ns: i64) -> f64 {
        self.rate_per_ns * elapsed_ns as f64 - self.dropped
    }
}

/// Work in countable units.
pub(super) trait PacedWork {
    /// The work that the calling thread has done since it created this value, in units.
    fn done(&self) -> f64;
    /// Does one unit, about 10 µs of work.
    fn do_unit(&mut self);
}

/// The CPUs that the calling thread may use, ascending.
pub(super) fn usable_cpus() -> Result<Vec<u16>, LoadError> {
    let allowed = sched_getaffinity(None).map_err(|source| LoadError::Affinity { source: source.into() })?;
    Ok((0..CpuSet::MAX_CPU as u16).filter(|cpu| allowed.is_set((*cpu).into())).collect())
}

/// Restricts the calling thread to `cpus`, all of which must be usable.
pub(super) fn pin_to(cpus: &[u16]) -> Result<(), LoadError> {
    let usable = usable_cpus()?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        let mut one = CpuSet::new();
        if usize::from(*cpu) < CpuSet::MAX_CPU {
            one.set((*cpu).into());
            set.set((*cpu).into());
        }
        // The kernel accepts a set if one of its CPUs is usable: each is tried alone.
        sched_setaffinity(None, &one).map_err(|source| affinity_error(*cpu, &usable, source))?;
    }
    sched_setaffinity(None, &set).map_err(|source| LoadError::Affinity { source: source.into() })
}

fn affinity_error(cpu: u16, usable: &[u16], source: rustix::io::Errno) -> LoadError {
    match source {
        rustix::io::Errno::INVAL => LoadError::CpuAbsent { cpu, usable: typed_cpus(usable) },
        other => LoadError::Affinity { source: other.into() },
    }
}

/// Starts a worker on each of `cpus` and returns when all of them work. `prepare` creates the work of the worker with that
/// number, in its own thread and on its own CPU.
pub(super) fn start<W: PacedWork, P>(cpus: &[u16], control: &RateControl, prepare: P) -> Result<(), LoadError>
where
    P: Fn(usize) -> Result<W, LoadError> + Clone + Send + 'static,
{
    let (report, reports) = mpsc::channel();
    let mut starts = Vec::new();
    for (number, cpu) in cpus.iter().copied().enumerate() {
        let (start, started) = mpsc::channel();
        starts.push(start);
        let (control, prepare, report) = (control.clone(), prepare.clone(), report.clone());
        spawn(move || match pin_to(&[cpu]).and_then(|()| prepare(number)) {
            Ok(work) => {
                let _ = report.send(Ok(()));
                if let Ok(start_ns) = started.recv() {
                    work_until_exit(work, start_ns, control);
                }
            }
            Err(error) => {
                let _ = report.send(Err(error));
            }
        })?;
    }
    for _ in cpus {
        reports.recv().map_err(|_| LoadError::thread_gone())??;
    }
    let start_ns = monotonic_ns();
    for (number, start) in starts.iter().enumerate() {
        // The golden ratio spreads the phases of any number of workers without a common rhythm.
        let phase = (number as f64 * 0.618_033_988_749_895).fract() * control.period_ns as f64;
        let _ = start.send(start_ns + phase as i64);
    }
    Ok(())
}

fn work_until_exit(mut work: impl PacedWork, start_ns: i64, mut control: RateControl) -> ! {
    sleep_until(start_ns);
    loop {
        take_step(&mut work, start_ns, &mut control);
    }
}

/// Works or rests, at most until the end of the period.
fn take_step(work: &mut impl PacedWork, start_ns: i64, control: &mut RateControl) {
    match control.step(monotonic_ns() - start_ns, work.done()) {
        ControlStep::Rest { until_ns } => sleep_until(start_ns + until_ns),
        ControlStep::Work { goal, until_ns } => {
            while work.done() < goal && monotonic_ns() < start_ns + until_ns {
                work.do_unit();
            }
        }
    }
}

fn sleep_until(monotonic_ns: i64) {
    let until = Timespec { tv_sec: monotonic_ns / 1_000_000_000, tv_nsec: (monotonic_ns % 1_000_000_000) as _ };
    // After an interruption the caller reads the clock again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

/// Starts a thread that ends with the process.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), LoadError> {
    let thread = thread::Builder::new().name("load".into()).spawn(work);
    thread.map(drop).map_err(|source: io::Error| LoadError::Thread { source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::kinds::{BACKLOG_MAX, cpu_control};
    use crate::units::Nanos;
    use proptest::prelude::*;
    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MS;
    /// The time between two readings of the clock by a simulated worker.
    const GRAIN: i64 = 20_000;

    /// The share of a worker in each of `windows` windows of 5 s, the first of which starts after 1 s. Its CPU is `taken`
    /// away at some times.
    fn simulate(control: RateControl, windows: i64, taken: impl Fn(i64) -> bool) -> Vec<f64> {
        let at_marks: Vec<i64> =
            (0..=windows).map(|window| done_by(control.clone(), (1 + 5 * window) * SECOND, &taken)).collect();
        at_marks.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / (5 * SECOND) as f64).collect()
    }

    /// The CPU time of that worker at `end`. A wake-up takes 60 µs.
    fn done_by(mut control: RateControl, end: i64, taken: impl Fn(i64) -> bool) -> i64 {
        let (mut now, mut done) = (0, 0);
        while now < end {
            match control.step(now, done as f64) {
                ControlStep::Rest { until_ns } => now = until_ns + 60_000,
                ControlStep::Work { goal, until_ns } => {
                    while (done as f64) < goal && now < until_ns.min(end) {
                        done += if taken(now) { 0 } else { GRAIN };
                        now += GRAIN;
                    }
                }
            }
        }
        done
    }

    fn cpu(share: f64, period_ns: i64) -> RateControl {
        cpu_control(share, Nanos(period_ns))
    }

    #[test]
    fn without_contention_every_window_has_its_share() {
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
    fn time_taken_away_in_short_slices_is_made_up() {
        // Another thread has the CPU for 30 ms of every 200 ms: 85 % are free.
        for share in [0.2, 0.5, 0.8] {
            for found in simulate(cpu(share, 16_180_000), 4, |now| now % (200 * MS) < 30 * MS) {
                assert!((found - share).abs() <= 0.01, "{share}: {found}");
            }
        }
    }

    #[test]
    fn a_starved_worker_uses_all_its_time_and_makes_up_only_the_bounded_backlog() {
        // Other threads have half of every 4 ms, and 80 % were requested; from 11 s on the CPU is free.
        let found = simulate(cpu(0.8, 10 * MS), 4, |now| now < 11 * SECOND && now % (4 * MS) < 2 * MS);
        assert!((found[0] - 0.5).abs() < 0.01, "{found:?}");
        // A backlog of 40 ms: 0.8 percentage points of one window, made up within 200 ms.
        assert!(found[2] > 0.8 && found[2] <= 0.81, "{found:?}");
        assert!((found[3] - 0.8).abs() < 0.002, "{found:?}");
    }

    #[test]
    fn after_a_disturbance_every_window_of_5_s_is_within_one_percentage_point() {
        // Another thread has the CPU from 3 s to 4 s; the windows begin after that.
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
    fn a_share_of_the_whole_cpu_never_rests() {
        let mut control = cpu(1.0, 10 * MS);
        for elapsed in (0..SECOND).step_by(MS as usize) {
            let step = control.step(elapsed, elapsed as f64 * 0.999);
            assert!(matches!(step, ControlStep::Work { .. }), "{elapsed}: {step:?}");
        }
    }

    proptest! {
        /// For any contention and delay: a step ends within a period, and its goal is above what is done, by the bounded
        /// backlog and one period at most.
        #[test]
        fn every_step_ends_within_a_period(
            share in 0.01_f64..1.0,
            period in MS..SECOND,
            steps in prop::collection::vec((0_i64..SECOND, 0.0_f64..1.0), 1..200),
        ) {
            let mut control = cpu(share, period);
            let (mut elapsed, mut done) = (0, 0.0);
            for (later, got) in steps {
                match control.step(elapsed, done) {
                    ControlStep::Rest { until_ns } => prop_assert!(until_ns > elapsed && until_ns <= elapsed + period),
                    ControlStep::Work { goal, until_ns } => {
                        prop_assert!(until_ns > elapsed && until_ns <= elapsed + period);
                        let most = BACKLOG_MAX.0 as f64 + share * period as f64;
                        prop_assert!(goal > done && goal - done <= most * (1.0 + 1e-9));
                    }
                }
                elapsed += later;
                done += later as f64 * got;
            }
        }
    }
}
