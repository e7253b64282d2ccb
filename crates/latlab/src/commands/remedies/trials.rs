//! What is tried: what was asked, and this with each remedy that this host allows.

use crate::diagnostics::Failure;
use crate::measure::{MeasureError, rehearse_run};
use crate::plan::{Plan, Remedy, RunSpec};
use crate::platform::SignalWatch;

/// The name of what was asked.
const AS_ASKED: &str = "as asked";
/// The name of all remedies at once.
const TOGETHER: &str = "all of these";

/// One condition.
pub(super) struct RemedyTrial {
    /// What it is called.
    pub(super) words: String,
    /// Its one run.
    pub(super) plan: Plan,
}

/// All of them.
pub(super) struct RemedyTrials {
    /// What was asked comes first.
    pub(super) tried: Vec<RemedyTrial>,
    /// Remedies that are not, with the reason.
    pub(super) impossible: Vec<(String, String)>,
}

impl RemedyTrials {
    /// Those of `asked`, each had for a moment; fails where `interrupt` ends it before all were.
    pub(super) fn of(asked: &Plan, interrupt: &SignalWatch) -> Result<RemedyTrials, Failure> {
        let run = &asked.runs[0];
        rehearse_run(run)?;
        let mut trials = RemedyTrials { tried: vec![trial(AS_ASKED, run.clone())], impossible: Vec::new() };
        let mut together = run.clone();
        for remedy in Remedy::ALL {
            unless_interrupted(interrupt)?;
            match remedy.applied(run).and_then(|with| rehearse_run(&with).map(|()| with).map_err(reason)) {
                Ok(with) => {
                    trials.tried.push(trial(remedy.words(), with));
                    // One may make another one pointless: SCHED_FIFO has no slack that could be taken away.
                    together = remedy.applied(&together).unwrap_or(together);
                }
                Err(reason) => trials.impossible.push((remedy.words().into(), reason)),
            }
        }
        unless_interrupted(interrupt)?;
        match trials.tried.len() {
            1 => {
                let reasons = trials.impossible.iter().map(|(words, reason)| format!("{words}: {reason}"));
                return Err(Failure::world("no remedy can be tried here")
                    .because(reasons.collect::<Vec<_>>().join("\n"))
                    .hint("`latlab doctor` says what this host lacks"));
            }
            2 => {}
            _ => trials.tried.push(trial(TOGETHER, together)),
        }
        Ok(trials)
    }
}

/// Between two rehearsals the host is as it was found: whoever interrupts is obeyed here.
fn unless_interrupted(interrupt: &SignalWatch) -> Result<(), Failure> {
    interrupt.notice();
    match interrupt.outcome() {
        None => Ok(()),
        Some(_) => Err(Failure::world("interrupted before every remedy was looked at")),
    }
}

fn trial(words: &str, run: RunSpec) -> RemedyTrial {
    RemedyTrial { words: words.into(), plan: Plan { runs: vec![run], rounds: 1 } }
}

fn reason(error: MeasureError) -> String {
    let Failure { message, cause, .. } = Failure::from(error);
    cause.unwrap_or(message)
}
