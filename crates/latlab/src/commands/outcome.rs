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
}

impl Outcome {
    /// The exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::AnswerIsNo => 1,
            Outcome::NotTrusted => 4,
            Outcome::Interrupted => 130,
            Outcome::Terminated => 143,
        }
    }
}
