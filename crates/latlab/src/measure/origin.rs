//! The origin of a slice's schedule: known only once every thread is in place. On a busy host a fresh thread may need
//! longer for that than any time fixed beforehand, and its first slots would be late for no other reason.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::sleepers::StopSignal;
use crate::clock::{Clock, Monotonic};
use crate::units::{Nanos, SenderClock, Stamp};

/// From the word to all threads to the origin: each has heard it and sleeps by then.
const LEAD: Nanos = Nanos::from_millis(5);
/// How often it is looked meanwhile; nothing is armed yet.
const LOOK: Duration = Duration::from_micros(200);
/// Not known yet; the clock starts with the boot and never shows it.
const UNKNOWN: i64 = i64::MIN;

/// The origin of a slice.
#[derive(Debug)]
pub(super) struct SliceOrigin {
    placed: AtomicUsize,
    at_ns: AtomicI64,
}

impl SliceOrigin {
    pub(super) const fn new() -> SliceOrigin {
        SliceOrigin { placed: AtomicUsize::new(0), at_ns: AtomicI64::new(UNKNOWN) }
    }

    /// The calling thread is in its place, or cannot be.
    pub(super) fn placed(&self) {
        self.placed.fetch_add(1, Ordering::Release);
    }

    /// Waits until `threads` have said so, then tells them all when to begin.
    pub(super) fn tell(&self, threads: usize) -> Stamp<SenderClock> {
        while self.placed.load(Ordering::Acquire) < threads {
            thread::sleep(LOOK);
        }
        let at = Monotonic.now() + LEAD;
        self.at_ns.store(at.as_nanos(), Ordering::Release);
        at
    }

    /// When to begin; none where all sleep ended before that.
    pub(super) fn await_word(&self, halt: &StopSignal) -> Option<Stamp<SenderClock>> {
        loop {
            match self.at_ns.load(Ordering::Acquire) {
                UNKNOWN if halt.is_set() => return None,
                // Not by the call that is measured: whoever traces a thread tells the two apart.
                UNKNOWN => thread::park_timeout(LOOK),
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
