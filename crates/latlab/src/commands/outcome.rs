//! How commands end.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// How a command ended that did not fail: its exit code is part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done, and the answer is no: `--fail-if` held, or `doctor` found a blocker.
    AnswerIsNo,
    /// Measured but not to be trusted: a fatal caveat. The recording is kept and marked.
    NotTrusted,
    /// SIGINT ended it early; what was measured is kept and was summarised.
    Interrupted,
    /// SIGTERM did.
    Terminated,
    /// SIGHUP did: its terminal was closed.
    HungUp,
    /// SIGQUIT did.
    Quit,
}

/// The signals that end a command, and how it ended then: with 128 and the signal's number.
const SIGNALS: [(i32, Outcome); 4] = [
    (SIGINT, Outcome::Interrupted),
    (SIGTERM, Outcome::Terminated),
    (SIGHUP, Outcome::HungUp),
    (SIGQUIT, Outcome::Quit),
];

impl Outcome {
    /// The signals to listen to. nohup(1) has SIGHUP ignored, and what is started in the background by a script
    /// SIGQUIT: it stays so.
    pub(super) fn signals() -> impl Iterator<Item = i32> {
        let listened = |signal: &i32| matches!(*signal, SIGINT | SIGTERM) || !latlab_sys::process::ignores(*signal);
        SIGNALS.iter().map(|(signal, _)| *signal).filter(listened)
    }

    /// How `signal` ends a command; none where it is none of these.
    pub(super) fn of_signal(signal: i32) -> Option<Outcome> {
        SIGNALS.iter().find(|(known, _)| *known == signal).map(|(_, outcome)| *outcome)
    }

    /// The exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::AnswerIsNo => 1,
            Outcome::NotTrusted => 4,
            Outcome::HungUp => 129,
            Outcome::Interrupted => 130,
            Outcome::Quit => 131,
            Outcome::Terminated => 143,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_with_its_number_and_128() {
        for (signal, outcome) in SIGNALS {
            assert_eq!((i32::from(outcome.exit_code()), Outcome::of_signal(signal)), (128 + signal, Some(outcome)));
        }
        assert_eq!(Outcome::of_signal(0), None);
    }
}
