//! Workers that keep to a rate in bursts, on a CPU each.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use latlab_sys::clock::monotonic_ns;
use rustix::thread::{ClockId, CpuSet, Timespec, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};

use super::LoadError;
use super::duty::{Duty, DutyStep};
use crate::units::human::typed_cpus;

/// A worker made up its mind: it stands on its CPU with all it needs, or not.
type WorkerReadiness = Result<(), LoadError>;

/// Work that can be cut into grains and counted.
pub(super) trait WorkUnit {
    /// What was done by the calling thread since it made the first grain.
    fn done(&self) -> f64;
    /// Does one grain, some 10 µs of work.
    fn make(&mut self);
}

/// The CPUs that the calling thread may use, ascending.
pub(super) fn usable_cpus() -> Result<Vec<u16>, LoadError> {
    let allowed = sched_getaffinity(None).map_err(|source| LoadError::Affinity { source: source.into() })?;
    Ok((0..CpuSet::MAX_CPU as u16).filter(|cpu| allowed.is_set((*cpu).into())).collect())
}

/// Restricts the calling thread to `cpus`, all of which must be there.
pub(super) fn keep_to(cpus: &[u16]) -> Result<(), LoadError> {
    let usable = usable_cpus()?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        let mut one = CpuSet::new();
        if usize::from(*cpu) < CpuSet::MAX_CPU {
            one.set((*cpu).into());
            set.set((*cpu).into());
        }
        // The kernel refuses a set only if nothing is left of it: each CPU is tried alone.
        sched_setaffinity(None, &one).map_err(|source| refused(*cpu, &usable, source))?;
    }
    sched_setaffinity(None, &set).map_err(|source| LoadError::Affinity { source: source.into() })
}

fn refused(cpu: u16, usable: &[u16], source: rustix::io::Errno) -> LoadError {
    match source {
        rustix::io::Errno::INVAL => LoadError::CpuAbsent { cpu, usable: typed_cpus(usable) },
        other => LoadError::Affinity { source: other.into() },
    }
}

/// Starts a worker on each of `cpus`, which keeps to its `duty` from the same moment on. `prepare` makes the work
/// of the worker of that number, in its own thread and on its own CPU. Returns when all work.
pub(super) fn start<G: WorkUnit, P>(cpus: &[u16], period_ns: i64, duty: &Duty, prepare: P) -> Result<(), LoadError>
where
    P: Fn(usize) -> Result<G, LoadError> + Clone + Send + 'static,
{
    let (report, reports) = mpsc::channel();
    let mut starts = Vec::new();
    for (number, cpu) in cpus.iter().copied().enumerate() {
        let (start, started) = mpsc::channel();
        starts.push(start);
        let (duty, prepare, report) = (duty.clone(), prepare.clone(), report.clone());
        spawn(move || {
            let prepared = keep_to(&[cpu]).and_then(|()| prepare(number));
            run(prepared, &report, &started, duty);
        })?;
    }
    for _ in cpus {
        reports.recv().map_err(|_| LoadError::thread_gone())??;
    }
    let start_ns = monotonic_ns();
    for (number, start) in starts.iter().enumerate() {
        // Neither all at once nor evenly in turn: the golden ratio spreads any number of workers.
        let phase = (number as f64 * 0.618_033_988_749_895).fract() * period_ns as f64;
        let _ = start.send(start_ns + phase as i64);
    }
    Ok(())
}

fn run<G: WorkUnit>(
    prepared: Result<G, LoadError>,
    report: &Sender<WorkerReadiness>,
    started: &Receiver<i64>,
    duty: Duty,
) {
    match prepared {
        Ok(work) => {
            let _ = report.send(Ok(()));
            if let Ok(start_ns) = started.recv() {
                keep_to_duty(work, start_ns, duty);
            }
        }
        Err(error) => {
            let _ = report.send(Err(error));
        }
    }
}

/// Works and rests until the process ends.
fn keep_to_duty(mut work: impl WorkUnit, start_ns: i64, mut duty: Duty) -> ! {
    sleep_until(start_ns);
    loop {
        take_step(&mut work, start_ns, &mut duty);
    }
}

/// Works or rests, to the end of the period at most.
fn take_step(work: &mut impl WorkUnit, start_ns: i64, duty: &mut Duty) {
    match duty.step(monotonic_ns() - start_ns, work.done()) {
        DutyStep::Rest { until_ns } => sleep_until(start_ns + until_ns),
        DutyStep::Work { goal, until_ns } => {
            while work.done() < goal && monotonic_ns() < start_ns + until_ns {
                work.make();
            }
        }
    }
}

fn sleep_until(monotonic_ns: i64) {
    let until = Timespec { tv_sec: monotonic_ns / 1_000_000_000, tv_nsec: (monotonic_ns % 1_000_000_000) as _ };
    // Interrupted: the caller looks at its clock again.
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
    use crate::load::cpu::{self, CpuBurner, MOST_OWED};
    use crate::units::Nanos;
    use latlab_sys::clock::thread_cpu_ns;
    use std::fs;

    const PERIOD: Nanos = Nanos::from_millis(10);
    const HELD: Nanos = Nanos::from_secs(2);
    const ATTEMPTS: usize = 4;

    /// How long the calling thread was ready to run and another one had its `cpu`, or another guest; none where the
    /// kernel does not tell (CONFIG_SCHED_INFO).
    fn waited_ns(cpu: u16) -> Option<i64> {
        let waited: i64 = fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').nth(1)?.parse().ok()?;
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let stolen_ticks: i64 = stat.split_once(&format!("cpu{cpu} "))?.1.split_whitespace().nth(7)?.parse().ok()?;
        Some(waited + stolen_ticks * 10_000_000)
    }

    /// The share of a CPU that the loop took in [`HELD`], by its thread's CPU clock, and how long it waited for it.
    fn hold(share: f64, cpu: u16) -> (f64, Option<i64>) {
        let worker = thread::spawn(move || {
            keep_to(&[cpu]).expect("a CPU that may be used");
            let (mut work, mut duty) = (CpuBurner::new(0), cpu::duty(share, PERIOD));
            let (start_ns, used_ns, waited) = (monotonic_ns(), thread_cpu_ns(), waited_ns(cpu));
            while monotonic_ns() - start_ns < HELD.0 {
                take_step(&mut work, start_ns, &mut duty);
            }
            let gone_ns = monotonic_ns() - start_ns;
            let waited = waited_ns(cpu).zip(waited).map(|(after, before)| after - before);
            ((thread_cpu_ns() - used_ns) as f64 / gone_ns as f64, waited)
        });
        worker.join().expect("no panic")
    }

    /// Whether it is reached is judged where the thread had the CPU, by the kernel's account of its waiting; that it is
    /// not exceeded, always.
    #[test]
    fn the_loop_takes_the_share_that_was_asked_for_and_no_more() {
        let cpu = *usable_cpus().expect("the kernel tells").last().expect("this one");
        for share in [0.2, 0.5] {
            // What was waited for is made up, but for what is owed at the end; a point for the account's own grain.
            let room = (MOST_OWED + PERIOD).0 as f64 / HELD.0 as f64 + 0.01;
            for _ in 0..ATTEMPTS {
                let (found, waited) = hold(share, cpu);
                assert!(found <= share + room, "{share}: {found}");
                if found >= share - room {
                    break;
                }
                // No more is owed than is made up: then there is no excuse.
                assert!(waited.is_none_or(|waited| waited > MOST_OWED.0), "{share}: {found}, waited {waited:?} ns");
            }
        }
    }
}
