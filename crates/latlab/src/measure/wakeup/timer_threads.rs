//! The threads of a run of wake-ups: made for each slice, placed, and cut short when the run ends.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use latlab_sys::sleep::{current_thread, interrupt, niceness};

use super::sleeper::{
    ClockNanosleep, EpollSleep, FutexSleep, Nanosleep, PollSleep, SelectSleep, SignalSleep, SpinWait, Timerfd,
};
use super::wakeup_loop::{SleepingThread, run_slice};
use crate::clock::{Clock, Monotonic};
use crate::facts::{LateWakeup, WakeupFacts};
use crate::host::placement;
use crate::host::tracing::Tracing;
use crate::measure::{CpuSource, MeasureError, Slice};
use crate::plan::{EndSpec, Via, WakeupSpec};
use crate::probe::Phase;
use crate::recording::EventLog;
use crate::units::{Nanos, SenderClock, Stamp};

/// So much of a trace is kept: who had the CPU before the slot was due, and how the run was stopped.
const TRACED_BEFORE: Nanos = Nanos::from_millis(10);
const TRACED_AFTER: Nanos = Nanos::from_millis(1);
/// How often it is looked whether the threads have heard that the run is over.
const STOP_POLL: Duration = Duration::from_millis(20);

/// What ends a run of wake-ups before its time, and who must hear of it.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    flag: AtomicBool,
    asleep: Mutex<Vec<i32>>,
    /// What is stopped where a late wake-up ends the run.
    tracing: Option<Tracing>,
}

impl StopSignal {
    /// One that stops `tracing` at a late wake-up.
    pub(crate) fn with(tracing: Option<Tracing>) -> StopSignal {
        StopSignal { tracing, ..StopSignal::default() }
    }

    /// A wake-up was later than it may be: what led to it is kept from being overwritten.
    fn found(&self, late: &LateWakeup) {
        let LateWakeup { seq, due_ns, woke_ns, .. } = late;
        if let Some(tracing) = &self.tracing {
            tracing.stop(&format!("latlab: slot {seq} was due at {due_ns} ns and woke at {woke_ns} ns"));
        }
    }

    /// The trace around `late`; none where nothing was traced.
    pub(crate) fn trace_around(&self, late: &LateWakeup) -> Option<io::Result<String>> {
        let from = Nanos(late.due_ns.saturating_sub(TRACED_BEFORE.0));
        let to = Nanos(late.woke_ns.saturating_add(TRACED_AFTER.0));
        self.tracing.as_ref().map(|tracing| tracing.between(from, to))
    }

    /// SessionSender all sleep now.
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether all sleep shall end.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Wakes whoever sleeps through the end of the run.
    pub(crate) fn wake(&self) {
        if self.is_set() {
            let asleep = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
            // One that has just gone needs no waking.
            asleep.iter().for_each(|thread| _ = interrupt(*thread));
        }
    }

    /// The calling thread as one to be woken, as long as the answer lives.
    fn enrol(&self) -> Enrolled<'_> {
        let thread = current_thread();
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Enrolled { halt: self, thread }
    }
}

struct Enrolled<'a> {
    halt: &'a StopSignal,
    thread: i32,
}

impl Drop for Enrolled<'_> {
    fn drop(&mut self) {
        let mut asleep = self.halt.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        asleep.retain(|thread| *thread != self.thread);
    }
}

/// One thread of a run: its place, where its schedule stands, its log.
#[derive(Debug)]
pub(crate) struct TimerThread {
    end: EndSpec,
    via: Via,
    thread: SleepingThread,
    log: EventLog,
}

impl TimerThread {
    /// A bed on `cpu`, or wherever the system likes.
    pub(crate) fn new(spec: &WakeupSpec, end: EndSpec, cpu: Option<u16>, log: EventLog) -> TimerThread {
        let of = cpu.map_or(CpuSource::Running, CpuSource::Pinned);
        TimerThread { end: EndSpec { cpu, ..end }, via: spec.via, thread: SleepingThread::new(spec, of), log }
    }

    /// Measured slots that its thread gave up.
    pub(crate) fn not_slept(&self) -> u64 {
        self.thread.not_slept()
    }

    /// Its log, when all sleep is over.
    pub(crate) fn into_log(self) -> EventLog {
        self.log
    }

    fn sleep(&mut self, slice: &Slice, start: Stamp<SenderClock>, halt: &StopSignal) -> io::Result<Option<LateWakeup>> {
        let TimerThread { via, thread, log, .. } = self;
        let flag = &halt.flag;
        match via {
            Via::ClockNanosleep => run_slice((&mut ClockNanosleep, &Monotonic), thread, log, slice, start, flag),
            Via::Nanosleep => run_slice((&mut Nanosleep, &Monotonic), thread, log, slice, start, flag),
            Via::Select => run_slice((&mut SelectSleep, &Monotonic), thread, log, slice, start, flag),
            Via::Poll => run_slice((&mut PollSleep, &Monotonic), thread, log, slice, start, flag),
            Via::Epoll => run_slice((&mut EpollSleep::new()?, &Monotonic), thread, log, slice, start, flag),
            Via::Timerfd => run_slice((&mut Timerfd::new()?, &Monotonic), thread, log, slice, start, flag),
            Via::Futex => run_slice((&mut FutexSleep, &Monotonic), thread, log, slice, start, flag),
            Via::Signal => run_slice((&mut SignalSleep::new()?, &Monotonic), thread, log, slice, start, flag),
            Via::Spin => run_slice((&mut SpinWait(flag), &Monotonic), thread, log, slice, start, flag),
        }
    }

    /// Takes its place and sleeps through `slice`.
    fn rest(
        &mut self,
        slice: &Slice,
        origin: &SliceOrigin,
        halt: &StopSignal,
        facts: &Mutex<WakeupFacts>,
    ) -> Result<(), MeasureError> {
        let placed = placement::place(&self.end);
        {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.timer_slack_ns = placement::timer_slack();
            facts.niceness = Some(niceness());
        }
        // Whatever came of it: the others wait for nobody who will not come.
        origin.placed();
        placed?;
        let slept = {
            // Before the word: between it and the first slot the thread does nothing but sleep.
            let _enrolled = halt.enrol();
            let Some(start) = origin.await_word(halt) else { return Ok(()) };
            let slept = self.sleep(slice, start, halt);
            if let Ok(Some(late)) = &slept {
                halt.found(late);
            }
            slept
        };
        let via = self.via;
        if let Some(late) = slept.map_err(|source| MeasureError::Sleep { via, source })? {
            facts.lock().unwrap_or_else(PoisonError::into_inner).broke.get_or_insert(late);
        }
        Ok(())
    }
}

/// Lets every bed of a run sleep through `slice` at the same time, each on a thread of its own.
pub(crate) fn sleep_through(
    beds: &mut [TimerThread],
    slice: &Slice,
    halt: &StopSignal,
    facts: &Mutex<WakeupFacts>,
) -> Result<(), MeasureError> {
    let origin = SliceOrigin::new();
    thread::scope(|scope| {
        let asleep = RunningTimer::all(scope, beds, (slice, &origin), halt, facts);
        asleep.begin(&origin);
        asleep.join(halt)
    })
}

/// Does `work` while every bed sleeps: the threads are in place before it begins and go when it is done.
pub(crate) fn sleep_during<T>(
    beds: &mut [TimerThread],
    phase: Phase,
    facts: &Mutex<WakeupFacts>,
    work: impl FnOnce() -> T,
) -> Result<T, MeasureError> {
    if beds.is_empty() {
        return Ok(work());
    }
    let slice = Slice { phase, count: u64::MAX, duration: Nanos::MAX };
    let halt = StopSignal::default();
    let origin = SliceOrigin::new();
    thread::scope(|scope| {
        let asleep = RunningTimer::all(scope, beds, (&slice, &origin), &halt, facts);
        let start = asleep.begin(&origin);
        thread::sleep((start - Monotonic.now()).max(Nanos::ZERO).to_duration());
        let done = work();
        halt.set();
        asleep.join(&halt).map(|()| done)
    })
}

/// The threads of a slice.
struct RunningTimer<'scope> {
    sleepers: Vec<thread::ScopedJoinHandle<'scope, Result<(), MeasureError>>>,
    /// Why one could not be started.
    refused: Option<io::Error>,
}

impl<'scope> RunningTimer<'scope> {
    /// A thread for each of `beds`, until the first that cannot be started.
    fn all<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        beds: &'scope mut [TimerThread],
        (slice, origin): (&'scope Slice, &'scope SliceOrigin),
        halt: &'scope StopSignal,
        facts: &'scope Mutex<WakeupFacts>,
    ) -> RunningTimer<'scope> {
        let mut asleep = RunningTimer { sleepers: Vec::with_capacity(beds.len()), refused: None };
        for bed in beds {
            let sleeper = thread::Builder::new().name("sleep".into()).spawn_scoped(scope, move || {
                let slept = bed.rest(slice, origin, halt, facts);
                if slept.is_err() {
                    halt.set();
                }
                slept
            });
            match sleeper {
                Ok(sleeper) => asleep.sleepers.push(sleeper),
                Err(error) => {
                    halt.set();
                    asleep.refused = Some(error);
                    break;
                }
            }
        }
        asleep
    }

    /// Tells the threads when to begin, once each is in its place.
    fn begin(&self, origin: &SliceOrigin) -> Stamp<SenderClock> {
        origin.tell(self.sleepers.len())
    }

    /// Waits for the end of all sleep, which `halt` may hasten.
    fn join(self, halt: &StopSignal) -> Result<(), MeasureError> {
        let mut outcome = self.refused.map_or(Ok(()), |error| Err(MeasureError::Thread(error)));
        for sleeper in self.sleepers {
            while !sleeper.is_finished() && halt.is_set() {
                halt.wake();
                thread::sleep(STOP_POLL);
            }
            let slept = sleeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(slept);
        }
        outcome
    }
}

/// From the word to all threads to the origin: each has heard it and sleeps by then.
const LEAD: Nanos = Nanos::from_millis(5);
/// How often it is looked meanwhile; nothing is armed yet.
const START_POLL: Duration = Duration::from_micros(200);
/// Not known yet; the clock starts with the boot and never shows it.
const UNKNOWN: i64 = i64::MIN;

/// The origin of a slice.
#[derive(Debug)]
pub(crate) struct SliceOrigin {
    placed: AtomicUsize,
    at_ns: AtomicI64,
}

impl SliceOrigin {
    pub(crate) const fn new() -> SliceOrigin {
        SliceOrigin { placed: AtomicUsize::new(0), at_ns: AtomicI64::new(UNKNOWN) }
    }

    /// The calling thread is in its place, or cannot be.
    pub(crate) fn placed(&self) {
        self.placed.fetch_add(1, Ordering::Release);
    }

    /// Waits until `threads` have said so, then tells them all when to begin.
    pub(crate) fn tell(&self, threads: usize) -> Stamp<SenderClock> {
        while self.placed.load(Ordering::Acquire) < threads {
            thread::sleep(START_POLL);
        }
        let at = Monotonic.now() + LEAD;
        self.at_ns.store(at.as_nanos(), Ordering::Release);
        at
    }

    /// When to begin; none where all sleep ended before that.
    pub(crate) fn await_word(&self, halt: &StopSignal) -> Option<Stamp<SenderClock>> {
        loop {
            match self.at_ns.load(Ordering::Acquire) {
                UNKNOWN if halt.is_set() => return None,
                // Not by the call that is measured: whoever traces a thread tells the two apart.
                UNKNOWN => thread::park_timeout(START_POLL),
                at_ns => return Some(Stamp::from_nanos(at_ns)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_begins_before_the_last_is_in_place() {
        let (origin, halt) = (SliceOrigin::new(), StopSignal::default());
        let slow = Duration::from_millis(30);
        let (told, heard, placed_last) = thread::scope(|scope| {
            let quick = scope.spawn(|| {
                origin.placed();
                origin.await_word(&halt)
            });
            let late = scope.spawn(|| {
                thread::sleep(slow);
                let at = Monotonic.now();
                origin.placed();
                (origin.await_word(&halt), at)
            });
            let told = origin.tell(2);
            let (heard_late, at) = late.join().expect("no panic");
            (told, [quick.join().expect("no panic"), heard_late], at)
        });
        assert_eq!(heard, [Some(told); 2]);
        assert!(told - placed_last >= LEAD);
    }

    #[test]
    fn an_end_before_the_beginning_is_heard() {
        let (origin, halt) = (SliceOrigin::new(), StopSignal::default());
        halt.set();
        assert_eq!(origin.await_word(&halt), None);
    }
}
