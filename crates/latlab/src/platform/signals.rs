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

/// The signals to handle. SIGHUP and SIGQUIT stay ignored if they are ignored at the start, as by nohup(1), or in the
/// background of a script.
pub(crate) fn handled() -> impl Iterator<Item = i32> {
    let wanted = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !latlab_sys::process::ignores(*signal);
    SIGNALS.iter().map(|(signal, _)| *signal).filter(wanted)
}

/// The outcome of a command that `signal` ends; `None` for any other signal.
pub(crate) fn outcome_of(signal: i32) -> Option<Outcome> {
    SIGNALS.iter().find(|(known, _)| *known == signal).map(|(_, outcome)| *outcome)
}

/// The signals received so far. The first ends a run early, the second ends the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalWatch {
    stop: Arc<AtomicBool>,
    /// Whether the first signal was received at a call of `notice` …
    seen: Arc<AtomicBool>,
    /// … and at the next one: then a further signal ends the process.
    noticed: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl SignalWatch {
    /// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT. After the first was noticed, a second one ends the process with
    /// exit code 128 plus its number. The command's changes are then undone by the kernel (namespaces, children) or by the
    /// next command (spool).
    pub(crate) fn listen() -> io::Result<SignalWatch> {
        let watch = SignalWatch::default();
        for signal in handled() {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&watch.noticed))?;
        }
        watch.register()
    }

    /// As [`listen`](SignalWatch::listen); before a second signal ends the process, a waiting thread calls
    /// `before_exit`.
    pub(crate) fn listen_with(before_exit: fn()) -> io::Result<SignalWatch> {
        let watch = SignalWatch::default();
        for signal in handled() {
            let (mut receiver, sender) = UnixStream::pair()?;
            let noticed = Arc::clone(&watch.noticed);
            // Before the flags are registered: the first signal must not be noticed before this thread reads `noticed`.
            low_level::pipe::register(signal, sender)?;
            let wait = move || {
                while receiver.read_exact(&mut [0]).is_ok() {
                    if noticed.load(Ordering::Relaxed) {
                        before_exit();
                        low_level::exit(128 + signal);
                    }
                }
            };
            thread::Builder::new().name("before-exit".into()).spawn(wait)?;
        }
        watch.register()
    }

    fn register(self) -> io::Result<SignalWatch> {
        for signal in handled() {
            flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
            flag::register(signal, Arc::clone(&self.stop))?;
        }
        Ok(self)
    }

    /// After the second call with a signal received, a further signal ends the process. To be called at intervals:
    /// timeout(1) and others signal a process and its group at once, which counts as one signal.
    pub(crate) fn notice(&self) {
        if self.outcome().is_some() && self.seen.swap(true, Ordering::Relaxed) {
            self.noticed.store(true, Ordering::Relaxed);
        }
    }

    /// The flag that ends a run, set by a signal or another cause.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Clears the flag after a run that ended early by itself, unless a signal has arrived.
    pub(crate) fn rearm(&self) {
        self.stop.store(false, Ordering::Relaxed);
        // The number of a signal is stored before the flag is set: a signal in between is noticed here.
        if self.outcome().is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The outcome of a command that the received signal ends; `None` without a signal.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        outcome_of(self.signal.load(Ordering::Relaxed) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_a_signal_is_128_and_its_number() {
        for (signal, outcome) in SIGNALS {
            assert_eq!((i32::from(outcome.exit_code()), outcome_of(signal)), (128 + signal, Some(outcome)));
        }
        assert_eq!(outcome_of(0), None);
    }
}
