//! The threads that measure wake-ups: they are started for each slice and begin together.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use latlab_sys::sleep::niceness;

use super::sleeper::{
    ClockNanosleep, EpollSleep, FutexSleep, Nanosleep, PollSleep, SelectSleep, SignalSleep, SpinWait, Timerfd,
};
use super::wakeup_loop::{SleepingThread, run_slice};
use crate::clock::{Clock, Monotonic};
use crate::facts::{LateWakeup, WakeupFacts};
use crate::host::placement;
use crate::measure::stop_signal::StopSignal;
use crate::measure::{CpuSource, MeasureError, Slice};
use crate::plan::{EndSpec, Via, WakeupSpec, defaults};
use crate::probe::Phase;
use crate::recording::EventLog;
use crate::units::{Nanos, SenderClock, Stamp};

/// The interval at which threads that have not ended are signalled again.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// The time from the announcement of the origin to the origin, in which every thread reads it and goes to sleep.
const LEAD: Nanos = Nanos::from_millis(5);
/// The interval at which threads look for the origin.
const ORIGIN_POLL: Duration = Duration::from_micros(200);

/// The CPUs of the threads of `spec`; `None` for a thread without a pin.
pub(crate) fn thread_cpus(spec: &WakeupSpec) -> Vec<Option<u16>> {
    match spec.cpus.known() {
        [] => vec![None],
        cpus => cpus.iter().copied().map(Some).collect(),
    }
}

/// A thread of a run: its placement, and its state between slices.
#[derive(Debug)]
pub(crate) struct TimerThread {
    end: EndSpec,
    via: Via,
    thread: SleepingThread,
}

impl TimerThread {
    /// The ring capacity of each thread of `spec`: the number of slots in [`defaults::WAKEUP_RING`], since after a stall of
    /// that length a thread writes as many at once.
    pub(crate) fn rings(spec: &WakeupSpec) -> Vec<usize> {
        let slots = defaults::WAKEUP_RING.0 / spec.interval_ns.0.max(1);
        let events = (slots.max(0) as usize).clamp(defaults::WAKEUP_RING_EVENTS_MIN, defaults::RING_EVENTS);
        vec![events.next_power_of_two(); thread_cpus(spec).len()]
    }

    /// The threads of `spec`, each with its CPU, the priority of `end` and one of `logs`.
    pub(crate) fn on_each_cpu(spec: &WakeupSpec, end: EndSpec, logs: Vec<EventLog>) -> Vec<TimerThread> {
        let on = |(cpu, log): (Option<u16>, EventLog)| {
            let thread = SleepingThread::new(spec, cpu.map_or(CpuSource::Running, CpuSource::Pinned), log);
            TimerThread { end: EndSpec { cpu, ..end }, via: spec.via, thread }
        };
        thread_cpus(spec).into_iter().zip(logs).map(on).collect()
    }

    /// The number of measured slots that it has skipped.
    pub(crate) fn not_slept(&self) -> u64 {
        self.thread.not_slept()
    }

    pub(crate) fn into_log(self) -> EventLog {
        self.thread.into_log()
    }

    /// Places itself and sleeps through the slice.
    fn run(&mut self, shared: &SharedSlice<'_>) -> Result<(), MeasureError> {
        let SharedSlice { slice, origin, stop, facts } = shared;
        let placed = placement::place(&self.end);
        {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.timer_slack_ns = placement::timer_slack();
            facts.niceness = Some(niceness());
        }
        // Also after an error, since the other threads wait for it.
        origin.placed();
        placed?;
        // Before the origin is known: between the origin and the first slot the thread only sleeps.
        let registered = stop.register();
        let Some(start) = origin.wait(stop) else { return Ok(()) };
        let slept = self.sleep(slice, start, stop);
        if matches!(slept, Ok(Some(_))) {
            stop.note_late_wakeup();
        }
        drop(registered);
        let via = self.via;
        if let Some(late) = slept.map_err(|source| MeasureError::Sleep { via, source })? {
            facts.lock().unwrap_or_else(PoisonError::into_inner).broke.get_or_insert(late);
        }
        Ok(())
    }

    fn sleep(&mut self, slice: &Slice, start: Stamp<SenderClock>, stop: &StopSignal) -> io::Result<Option<LateWakeup>> {
        let (clock, thread, end) = (&Monotonic, &mut self.thread, stop.sleep_over());
        match self.via {
            Via::ClockNanosleep => run_slice(&mut ClockNanosleep, clock, thread, slice, start, end),
            Via::Nanosleep => run_slice(&mut Nanosleep, clock, thread, slice, start, end),
            Via::Select => run_slice(&mut SelectSleep, clock, thread, slice, start, end),
            Via::Poll => run_slice(&mut PollSleep, clock, thread, slice, start, end),
            Via::Epoll => run_slice(&mut EpollSleep::new()?, clock, thread, slice, start, end),
            Via::Timerfd => run_slice(&mut Timerfd::new()?, clock, thread, slice, start, end),
            Via::Futex => run_slice(&mut FutexSleep, clock, thread, slice, start, end),
            Via::Signal => run_slice(&mut SignalSleep::new()?, clock, thread, slice, start, end),
            Via::Spin => run_slice(&mut SpinWait(end), clock, thread, slice, start, end),
        }
    }
}

/// Measures `slice` with all `timers` at the same time, each on a thread of its own.
pub(super) fn measure_wakeups(
    timers: &mut [TimerThread],
    slice: &Slice,
    stop: &StopSignal,
    facts: &Mutex<WakeupFacts>,
) -> Result<(), MeasureError> {
    let shared = SharedSlice { slice: *slice, origin: SliceOrigin::new(), stop, facts };
    thread::scope(|scope| {
        let running = RunningTimers::start(scope, timers, &shared);
        running.begin(&shared.origin);
        running.join(stop)
    })
}

/// Does `work` while all `timers` measure wake-ups: their threads are placed before it begins, and end after it.
pub(crate) fn measure_wakeups_during<T>(
    timers: &mut [TimerThread],
    phase: Phase,
    facts: &Mutex<WakeupFacts>,
    work: impl FnOnce() -> T,
) -> Result<T, MeasureError> {
    if timers.is_empty() {
        return Ok(work());
    }
    let stop = StopSignal::default();
    let slice = Slice::lasting(phase, Nanos::MAX);
    let shared = SharedSlice { slice, origin: SliceOrigin::new(), stop: &stop, facts };
    thread::scope(|scope| {
        let running = RunningTimers::start(scope, timers, &shared);
        let start = running.begin(&shared.origin);
        thread::sleep((start - Monotonic.now()).max(Nanos::ZERO).to_duration());
        let result = work();
        stop.end_sleep();
        running.join(&stop).map(|()| result)
    })
}

/// The state that the threads of a slice share.
struct SharedSlice<'a> {
    slice: Slice,
    origin: SliceOrigin,
    stop: &'a StopSignal,
    facts: &'a Mutex<WakeupFacts>,
}

struct RunningTimers<'scope> {
    threads: Vec<thread::ScopedJoinHandle<'scope, Result<(), MeasureError>>>,
    /// Why a thread could not be started.
    refused: Option<io::Error>,
}

impl<'scope> RunningTimers<'scope> {
    /// Starts a thread for each of `timers`, up to the first that cannot be started.
    fn start(
        scope: &'scope thread::Scope<'scope, '_>,
        timers: &'scope mut [TimerThread],
        shared: &'scope SharedSlice<'_>,
    ) -> RunningTimers<'scope> {
        let mut running = RunningTimers { threads: Vec::with_capacity(timers.len()), refused: None };
        for timer in timers {
            let thread = thread::Builder::new()
                .name("sleep".into())
                .spawn_scoped(scope, move || timer.run(shared).inspect_err(|_| shared.stop.end_sleep()));
            match thread {
                Ok(thread) => running.threads.push(thread),
                Err(error) => {
                    shared.stop.end_sleep();
                    running.refused = Some(error);
                    break;
                }
            }
        }
        running
    }

    /// Announces the origin of the slice when every thread is placed.
    fn begin(&self, origin: &SliceOrigin) -> Stamp<SenderClock> {
        origin.announce(self.threads.len())
    }

    /// Waits until every thread has ended; wakes those that sleep after `stop`.
    fn join(self, stop: &StopSignal) -> Result<(), MeasureError> {
        let mut outcome = self.refused.map_or(Ok(()), |error| Err(MeasureError::Thread(error)));
        for thread in self.threads {
            while !thread.is_finished() && stop.is_sleep_over() {
                stop.forward();
                thread::sleep(SIGNAL_INTERVAL);
            }
            outcome = outcome.and(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        outcome
    }
}

/// The origin before its announcement; CLOCK_MONOTONIC never has this value.
const UNKNOWN: i64 = i64::MIN;

/// The origin of a slice's schedule, fixed only when every thread is placed: on a busy host a new thread may need longer for
/// that than any lead time, and its first slots would be late for that reason alone.
#[derive(Debug)]
struct SliceOrigin {
    placed: AtomicUsize,
    at_ns: AtomicI64,
}

impl SliceOrigin {
    const fn new() -> SliceOrigin {
        SliceOrigin { placed: AtomicUsize::new(0), at_ns: AtomicI64::new(UNKNOWN) }
    }

    /// Counts the calling thread as placed, also if placing it failed.
    fn placed(&self) {
        self.placed.fetch_add(1, Ordering::Release);
    }

    /// Waits until so many `threads` are placed, then fixes the origin.
    fn announce(&self, threads: usize) -> Stamp<SenderClock> {
        while self.placed.load(Ordering::Acquire) < threads {
            thread::sleep(ORIGIN_POLL);
        }
        let at = Monotonic.now() + LEAD;
        self.at_ns.store(at.as_nanos(), Ordering::Release);
        at
    }

    /// Waits for the origin; `None` if `stop` comes before.
    fn wait(&self, stop: &StopSignal) -> Option<Stamp<SenderClock>> {
        loop {
            match self.at_ns.load(Ordering::Acquire) {
                UNKNOWN if stop.is_sleep_over() => return None,
                // Waits at a futex of its own, which a trace distinguishes from every measured call.
                UNKNOWN => thread::park_timeout(ORIGIN_POLL),
                at_ns => return Some(Stamp::from_nanos(at_ns)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_announced_after_the_last_thread_is_placed() {
        let (origin, stop) = (SliceOrigin::new(), StopSignal::default());
        let slow = Duration::from_millis(30);
        thread::scope(|scope| {
            let quick = scope.spawn(|| {
                origin.placed();
                origin.wait(&stop)
            });
            let late = scope.spawn(|| {
                thread::sleep(slow);
                let placed_at = Monotonic.now();
                origin.placed();
                (origin.wait(&stop), placed_at)
            });
            let announced = origin.announce(2);
            let (seen_by_late, placed_last) = late.join().expect("no panic");
            assert_eq!([quick.join().expect("no panic"), seen_by_late], [Some(announced); 2]);
            assert!(announced - placed_last >= LEAD);
        });
    }

    #[test]
    fn a_thread_that_waits_for_the_origin_ends_at_a_stop() {
        let (origin, stop) = (SliceOrigin::new(), StopSignal::default());
        stop.end_sleep();
        assert_eq!(origin.wait(&stop), None);
    }
}
