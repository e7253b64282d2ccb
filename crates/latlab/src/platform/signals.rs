//! Signals that end a command: SIGINT, SIGTERM, SIGHUP, SIGQUIT.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::diagnostics::Outcome;

/// The signals that end a command, each with the outcome.
const SIGNALS: [(i32, Outcome); 4] = [
    (SIGINT, Outcome::Interrupted),
    (SIGTERM, Outcome::Terminated),
    (SIGHUP, Outcome::HungUp),
    (SIGQUIT, Outcome::Quit),
];

/// The signals to handle. One that the parent process has ignored stays ignored: SIGHUP below nohup(1), SIGQUIT in the
/// background of a script.
pub(crate) fn handled() -> impl Iterator<Item = i32> {
    let wanted = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !latlab_sys::process::ignores(*signal);
    SIGNALS.iter().map(|(signal, _)| *signal).filter(wanted)
}

/// The outcome that `signal` makes; `None` for any other signal.
pub(crate) fn outcome_of(signal: i32) -> Option<Outcome> {
    SIGNALS.iter().find(|(known, _)| *known == signal).map(|(_, outcome)| *outcome)
}

/// The signals that arrived so far. The first ends a run early, the second ends the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalWatch {
    stop: Arc<AtomicBool>,
    /// The first signal was there at one call of `notice` …
    seen: Arc<AtomicBool>,
    /// … and still at the next: a further signal ends the process.
    noticed: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl SignalWatch {
    /// Listens to SIGINT, SIGTERM, SIGHUP and SIGQUIT. Once the first was noticed, a second one ends the process with 128 +
    /// its number; what must be undone then is undone by the kernel (namespaces, children) or by the next
    /// command (spool).
    pub(crate) fn listen() -> io::Result<SignalWatch> {
        let interrupt = SignalWatch::default();
        for signal in handled() {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupt.noticed))?;
        }
        interrupt.count()
    }

    /// The same, but before a second signal ends the process, `last_act` is done, on a thread that waits for it.
    pub(crate) fn listen_with(last_act: fn()) -> io::Result<SignalWatch> {
        let interrupt = SignalWatch::default();
        for signal in handled() {
            let (mut ear, mouth) = UnixStream::pair()?;
            let noticed = Arc::clone(&interrupt.noticed);
            // Before the flags are set: a signal that set them must not have been noticed yet when this one asks.
            low_level::pipe::register(signal, mouth)?;
            let wait = move || {
                while ear.read_exact(&mut [0]).is_ok() {
                    if noticed.load(Ordering::Relaxed) {
                        last_act();
                        low_level::exit(128 + signal);
                    }
                }
            };
            thread::Builder::new().name("last act".into()).spawn(wait)?;
        }
        interrupt.count()
    }

    fn count(self) -> io::Result<SignalWatch> {
        for signal in handled() {
            flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&self.stop))?;
        }
        Ok(self)
    }

    /// From now on a further signal gives up, if there was a first. To be called now and then: timeout(1)
    /// and others signal a process and its group in one breath, and mean it once.
    pub(crate) fn notice(&self) {
        if self.outcome().is_some() && self.seen.swap(true, Ordering::Relaxed) {
            self.noticed.store(true, Ordering::Relaxed);
        }
    }

    /// Set as soon as the run shall end, by a signal or another cause.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Clears the flag after a run that ended early by itself, unless a signal has arrived.
    pub(crate) fn rearm(&self) {
        self.stop.store(false, Ordering::Relaxed);
        // A signal is noted before the stop flag is set: one that came in between is seen here.
        if self.outcome().is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The signal that asked first, as the outcome it makes; `None` without a signal.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        outcome_of(self.signal.load(Ordering::Relaxed) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_with_128_and_its_number() {
        for (signal, outcome) in SIGNALS {
            assert_eq!((i32::from(outcome.exit_code()), outcome_of(signal)), (128 + signal, Some(outcome)));
        }
        assert_eq!(outcome_of(0), None);
    }
}
