//! Signals that end a command: SIGINT, SIGTERM, SIGHUP, SIGQUIT; and the one that stops it, SIGTSTP.

#![expect(clippy::disallowed_methods, reason = "the only handling of signals")]

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use rustix::net::{RecvFlags, recv};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
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
pub fn handled() -> impl Iterator<Item = i32> {
    let wanted = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !latlab_sys::process::ignores(*signal);
    SIGNALS.iter().map(|(signal, _)| *signal).filter(wanted)
}

/// The outcome of a command that `signal` ends; `None` for any other signal.
pub fn outcome_of(signal: i32) -> Option<Outcome> {
    SIGNALS.iter().find(|(known, _)| *known == signal).map(|(_, outcome)| *outcome)
}

/// The signals received so far. The first ends a run early, the second ends the process.
#[derive(Clone, Debug, Default)]
pub struct SignalWatch {
    stop: Arc<AtomicBool>,
    /// Whether the first signal was received at a call of `notice` …
    seen: Arc<AtomicBool>,
    /// … and at the next one: then a further signal ends the process.
    noticed: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    before_exit: Option<Arc<BeforeExit>>,
}

/// The thread that ends the process at a second signal, and the pipe to it, into which each signal writes a byte.
#[derive(Debug)]
struct BeforeExit {
    received: UnixStream,
    thread: Thread,
}

impl SignalWatch {
    /// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT. After the first was noticed, a second one ends the process with
    /// exit code 128 plus its number. The command's changes are then undone by the kernel (namespaces, children) or by the
    /// next command (spool).
    pub fn listen() -> io::Result<SignalWatch> {
        let watch = SignalWatch::default();
        for signal in handled() {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&watch.noticed))?;
        }
        watch.register()
    }

    /// As [`listen`](SignalWatch::listen); before a second signal ends the process, a waiting thread calls
    /// `before_exit`.
    pub fn listen_with(before_exit: fn()) -> io::Result<SignalWatch> {
        let watch = SignalWatch::default();
        let (received, sender) = UnixStream::pair()?;
        let latest = Arc::new(AtomicUsize::new(0));
        for signal in handled() {
            // In this order, and before `signal` is registered: with a byte its signal is known, and when a signal is
            // noticed its byte has been written.
            flag::register_usize(signal, Arc::clone(&latest), signal as usize)?;
            low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let (noticed, mut further) = (Arc::clone(&watch.noticed), received.try_clone()?);
        let wait = move || {
            while !noticed.load(Ordering::Acquire) {
                thread::park();
            }
            if further.read_exact(&mut [0]).is_ok() {
                before_exit();
                low_level::exit(128 + latest.load(Ordering::Relaxed) as i32);
            }
        };
        let thread = thread::Builder::new().name("before-exit".into()).spawn(wait)?.thread().clone();
        SignalWatch { before_exit: Some(Arc::new(BeforeExit { received, thread })), ..watch }.register()
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
    pub fn notice(&self) {
        let is_repeated = self.outcome().is_some() && self.seen.swap(true, Ordering::Relaxed);
        if !is_repeated || self.noticed.load(Ordering::Relaxed) {
            return;
        }
        self.before_exit.iter().for_each(|before_exit| before_exit.drop_received());
        self.noticed.store(true, Ordering::Release);
        self.before_exit.iter().for_each(|before_exit| before_exit.thread.unpark());
    }

    /// The flag that ends a run, set by a signal or another cause.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Clears the flag after a run that ended early by itself, unless a signal has arrived.
    pub fn rearm(&self) {
        self.stop.store(false, Ordering::Relaxed);
        // The number of a signal is stored before the flag is set: a signal in between is noticed here.
        if self.outcome().is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The outcome of a command that the received signal ends; `None` without a signal.
    pub fn outcome(&self) -> Option<Outcome> {
        outcome_of(self.signal.load(Ordering::Relaxed) as i32)
    }
}

/// SIGTSTP of a process that has to put its terminal back before it stops. When the value is dropped, the signal stops the
/// process at once again.
#[derive(Debug)]
pub struct SuspendSignal {
    received: Arc<AtomicBool>,
    stops_at_once: Arc<AtomicBool>,
}

impl SuspendSignal {
    /// Handles SIGTSTP, unless it is ignored.
    ///
    /// # Errors
    /// It is ignored, or the kernel refuses the handler.
    pub fn listen() -> io::Result<SuspendSignal> {
        if latlab_sys::process::ignores(SIGTSTP) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let signal = SuspendSignal { received: Arc::default(), stops_at_once: Arc::default() };
        flag::register_conditional_default(SIGTSTP, Arc::clone(&signal.stops_at_once))?;
        flag::register(SIGTSTP, Arc::clone(&signal.received))?;
        Ok(signal)
    }

    /// Whether the signal was received since the last call.
    pub fn is_received(&self) -> bool {
        self.received.swap(false, Ordering::Relaxed)
    }

    /// Stops this process, as the signal does by default, until SIGCONT.
    pub fn stop_process(&self) {
        // It fails only for signals that do not exist.
        let _ = low_level::emulate_default_handler(SIGTSTP);
    }
}

impl Drop for SuspendSignal {
    fn drop(&mut self) {
        self.stops_at_once.store(true, Ordering::Relaxed);
    }
}

impl BeforeExit {
    /// Drops the bytes of the signals so far. The thread must not do it: on a busy host it may run after a further signal.
    fn drop_received(&self) {
        // An error leaves a byte: the process ends with the first signal, restored.
        let received = |bytes: &mut [u8]| recv(&self.received, bytes, RecvFlags::DONTWAIT);
        while received(&mut [0; 64]).is_ok_and(|(bytes, _)| bytes > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_a_signal_after_the_second_notice_is_left_to_end_the_process() {
        let (received, mut signal) = UnixStream::pair().expect("a pair");
        let before_exit = BeforeExit { received: received.try_clone().expect("a socket"), thread: thread::current() };
        let watch = SignalWatch { before_exit: Some(Arc::new(before_exit)), ..SignalWatch::default() };
        let (mut further, mut byte) = (received, [0]);
        signal.write_all(b"1").expect("room");
        watch.notice();
        watch.signal.store(SIGINT as usize, Ordering::Relaxed);
        watch.notice();
        signal.write_all(b"2").expect("room");
        assert!(!watch.noticed.load(Ordering::Relaxed), "a signal to the process and its group counts once");
        watch.notice();
        assert!(watch.noticed.load(Ordering::Relaxed));
        signal.write_all(b"3").expect("room");
        watch.notice();
        further.read_exact(&mut byte).expect("a byte");
        assert_eq!(&byte, b"3");
    }
}
