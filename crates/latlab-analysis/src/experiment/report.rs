//! The report of an experiment, from which text, Markdown and JSON are rendered.

use std::collections::BTreeSet;

use super::aa_test::AaTest;
use super::published::{PublishedResults, RunSpread};
use super::single_condition::ConditionRow;
use crate::comparison::{Comparisons, MISSING, RESTORE, missing_runs};
use crate::diagnostics::{Caveat, Failure, Outcome};
use crate::facts::{ExcludedCondition, RecipeFacts, RunOutcome, RunState};
use crate::plan::{Factors, Kind, conditions_in_words};
use crate::{ChangeGateResult, ExperimentGateResult, GateState};

/// The most bytes of a reason in a warning: a hook may print lines of any length.
const REASON_BYTES: usize = 2_000;

/// The results of an experiment so far.
#[derive(Clone, Debug)]
pub struct ExperimentReport {
    pub id: String,
    pub name: String,
    pub kind: Kind,
    pub directory: String,
    pub recipe: Option<RecipeFacts>,
    /// Nothing is left to do.
    pub finished: bool,
    /// Blocks all of whose runs have ended.
    pub blocks_ended: usize,
    /// How often it was continued with a changed file.
    pub changes: u32,
    /// Conditions that were given up.
    pub dropped: Vec<ExcludedCondition>,
    /// Conditions that were impossible from the start.
    pub impossible: Vec<ExcludedCondition>,
    /// Its runs, in the order in which they began.
    pub runs: Vec<RunState>,
    /// The recordings of judged runs that are gone or damaged: the rest of the report is about the others.
    pub missing: BTreeSet<String>,
    /// Of a recipe with published figures.
    pub published: Option<PublishedResults>,
    /// Of a recipe whose published figures are over runs.
    pub spread: Option<RunSpread>,
    pub aa_test: Option<AaTest>,
    /// Of two measured conditions or more.
    pub comparisons: Option<Comparisons>,
    pub single_condition: Option<Vec<ConditionRow>>,
    /// Results of the gates of the command over all judged runs.
    pub gates: Vec<ExperimentGateResult>,
    /// The same of gates on changes.
    pub change_gates: Vec<ChangeGateResult>,
    /// Whether runs were left when its budget was used up.
    pub over_budget: bool,
    /// Whether runs were left when all gates were decided.
    pub decided_early: bool,
    /// With gates: whether the target was silent in all judged runs, so that the gates come before that failure.
    pub is_silent: bool,
}

impl ExperimentReport {
    /// The report of both experiments, which are of one recipe, without what is of one alone.
    #[must_use]
    pub fn joined(mut self, other: ExperimentReport) -> ExperimentReport {
        self.runs.extend(other.runs);
        self.missing.extend(other.missing);
        self.dropped.extend(other.dropped);
        self.impossible.extend(other.impossible);
        if let (Some(own), Some(others)) = (&mut self.published, other.published) {
            own.systems.extend(others.systems);
        }
        ExperimentReport { spread: None, comparisons: None, single_condition: None, ..self }
    }

    fn ended_as(&self, outcome: RunOutcome) -> impl Iterator<Item = &RunState> {
        self.runs.iter().filter(move |run| run.outcome == Some(outcome))
    }

    /// The state of all gates together; `None` without any.
    pub fn gate_state(&self) -> Option<GateState> {
        let changes = self.change_gates.iter().map(|result| result.state);
        let worst = changes.chain(self.gates.iter().map(ExperimentGateResult::state)).max()?;
        Some(if self.has_failed_runs() { worst.max(GateState::Undecided) } else { worst })
    }

    /// Whether a run ended with an error, and is not judged: what it would have shown is not known.
    pub fn has_failed_runs(&self) -> bool {
        self.runs.iter().any(|run| run.outcome == Some(RunOutcome::Failed) && run.judged().is_none())
    }

    /// Whether any run is judged.
    pub fn is_judged(&self) -> bool {
        self.runs.iter().any(|run| run.judged().is_some())
    }

    /// Whether runs are judged, and the recordings of all of them are missing.
    pub fn is_all_missing(&self) -> bool {
        let mut judged = self.runs.iter().filter_map(RunState::judged).peekable();
        judged.peek().is_some() && judged.all(|name| self.missing.contains(name))
    }

    /// The condition of the judged runs, if it is one and other runs have other levels: these levels, as `build=old`.
    pub fn only_condition(&self) -> Option<String> {
        let judged: BTreeSet<&Factors> =
            self.runs.iter().filter(|run| run.judged().is_some()).map(|run| &run.key.factors).collect();
        let only = *judged.first().filter(|_| judged.len() == 1)?;
        let differs = |(factor, level): &(&String, &String)| {
            self.runs.iter().any(|run| run.key.factors.get(*factor) != Some(*level))
        };
        let levels: Vec<String> =
            only.iter().filter(differs).map(|(factor, level)| format!("{factor}={level}")).collect();
        (!levels.is_empty()).then(|| levels.join(", "))
    }

    /// The caveat of recordings that cannot be read; `None` if there are none.
    pub fn missing_caveat(&self) -> Option<Caveat> {
        missing_runs(&self.missing_names())
    }

    fn missing_names(&self) -> Vec<String> {
        self.missing.iter().map(|name| format!("`{name}`")).collect()
    }

    /// Reasons to trust the report less, one line each: failed, unanswered, untrusted and missing runs, and a changed
    /// file.
    pub fn warnings(&self) -> Vec<String> {
        let missing = self.missing_caveat().map(|caveat| caveat.message);
        self.warnings_of_journal().into_iter().chain(missing).collect()
    }

    /// The same but for missing runs, which are a caveat of a comparison as well. What a hook or a program printed is in it as
    /// it was printed.
    pub fn warnings_of_journal(&self) -> Vec<String> {
        let (silent, broken): (Vec<_>, Vec<_>) = self.ended_as(RunOutcome::Failed).partition(|run| run.is_unanswered());
        let untrusted: Vec<_> = self.ended_as(RunOutcome::Untrusted).collect();
        let counted = [
            (broken, "failed, not judged"),
            (silent, "without an answer, judged as lost"),
            (untrusted, "with a fatal caveat that `latlab summary` names"),
        ];
        let line = |(runs, words): (Vec<&RunState>, &str)| {
            let first = first_in_words(runs.first()?);
            let count = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", runs.len()) };
            Some(format!("{count} {words}{}; the first{first}", self.conditions_of(&runs)))
        };
        let changed = "the file was changed between runs: this is no longer one experiment".to_owned();
        counted.into_iter().filter_map(line).chain((self.changes > 0).then_some(changed)).collect()
    }

    /// The conditions of `runs`, as ` (of A, of B)`; empty if the experiment has no others.
    fn conditions_of(&self, runs: &[&RunState]) -> String {
        let all: BTreeSet<&Factors> = self.runs.iter().map(|run| &run.key.factors).collect();
        let own: BTreeSet<&Factors> = runs.iter().map(|run| &run.key.factors).collect();
        let [all, own] = [all, own].map(|factors| factors.into_iter().collect::<Vec<_>>());
        if own.len() == all.len() {
            return String::new();
        }
        let names: Vec<_> = conditions_in_words(&own, &all).iter().map(|name| format!("of `{name}`")).collect();
        format!(" ({})", names.join(", "))
    }

    /// The outcome of a finished experiment.
    ///
    /// # Errors
    /// If no run can be judged, or none was answered.
    pub fn outcome(&self) -> Result<Outcome, Failure> {
        let judged = || self.runs.iter().filter(|run| run.judged().is_some());
        if !self.is_judged() {
            return Err(self.nothing_judged());
        }
        if self.is_all_missing() {
            return Err(Failure::request("the experiment has no run that can be used")
                .because(format!("{MISSING}: {}", self.missing_names().join(", ")))
                .hint(RESTORE));
        }
        if judged().all(RunState::is_unanswered) {
            let reason = judged().find_map(|run| run.reason.clone()).unwrap_or_default();
            let failure = Failure::world("no run of the experiment was answered").because(reason);
            return Err(failure.of_silence(self.is_silent));
        }
        let is_trusted =
            [RunOutcome::Untrusted, RunOutcome::Failed].iter().all(|outcome| self.ended_as(*outcome).next().is_none());
        Ok(if is_trusted { Outcome::Done } else { Outcome::NotTrusted })
    }

    fn nothing_judged(&self) -> Failure {
        let mut reasons: Vec<&str> = self.dropped.iter().map(|dropped| dropped.reason.as_str()).collect();
        reasons.dedup();
        let hint = match self.kind {
            Kind::Ping | Kind::Stream if !reasons.is_empty() => {
                "try another target: `local`, `lab` (as root), `ssh:HOST`"
            }
            Kind::Ping | Kind::Stream | Kind::Wakeup | Kind::Command | Kind::Values => {
                "`latlab list` shows how each ended"
            }
        };
        let failure = Failure::world("the experiment has no run that can be used").hint(hint);
        if reasons.is_empty() { failure } else { failure.because(reasons.join("\n")) }
    }
}

/// The recording of `run`, if there is one, and why it ended: `` , `NAME`: REASON``.
fn first_in_words(run: &RunState) -> String {
    let reason = run.reason.as_deref().map(shortened);
    match (&run.recording, reason) {
        (Some(name), Some(reason)) => format!(", `{name}`: {reason}"),
        (Some(name), None) => format!(": `{name}`"),
        (None, Some(reason)) => format!(": {reason}"),
        (None, None) => ": nothing recorded".into(),
    }
}

/// `reason` with its begin and its end only, if it is longer than [`REASON_BYTES`].
fn shortened(reason: &str) -> String {
    const CUT: &str = " […] ";
    if reason.len() <= REASON_BYTES {
        return reason.to_owned();
    }
    let half = (REASON_BYTES - CUT.len()) / 2;
    let begin = (0..=half).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or_default();
    let end = (reason.len() - half..reason.len()).find(|at| reason.is_char_boundary(*at)).unwrap_or(reason.len());
    format!("{}{CUT}{}", &reason[..begin], &reason[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{RunKey, RunPosition};

    fn failed(recording: Option<&str>, reason: Option<&str>) -> RunState {
        RunState {
            key: RunKey { block: 1, factors: Factors::new(), warmup: false, repetition: 1 },
            position: RunPosition { position: 1, condition: 1 },
            outcome: Some(RunOutcome::Failed),
            recording: recording.map(str::to_owned),
            reason: reason.map(str::to_owned),
            complete: false,
        }
    }

    #[test]
    fn a_failed_run_is_named_by_its_recording_and_its_reason() {
        for (recording, reason, words) in [
            (Some("r"), Some("the hook `service` failed"), ", `r`: the hook `service` failed"),
            (None, Some("the hook `service` failed"), ": the hook `service` failed"),
            (Some("r"), None, ": `r`"),
            (None, None, ": nothing recorded"),
        ] {
            assert_eq!(first_in_words(&failed(recording, reason)), words);
        }
    }

    #[test]
    fn a_long_reason_keeps_its_begin_and_its_end() {
        assert_eq!(shortened(&"x".repeat(REASON_BYTES)), "x".repeat(REASON_BYTES));
        for filling in ["x", "µ", "…", "🦀"] {
            let long = format!("the hook failed: {}; out of memory", filling.repeat(REASON_BYTES));
            let short = shortened(&long);
            assert!(short.len() <= REASON_BYTES && short.len() > REASON_BYTES - 10, "{filling}: {}", short.len());
            assert!(short.starts_with("the hook failed: ") && short.ends_with("; out of memory"), "{short}");
        }
    }
}
