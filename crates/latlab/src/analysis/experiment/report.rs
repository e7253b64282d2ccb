//! The report of an experiment, from which text, Markdown and JSON are rendered.

use std::collections::BTreeSet;

use super::aa_test::AaTest;
use super::published::{PublishedResults, RunSpread};
use super::single_condition::ConditionRow;
use super::timeout_slack::TimeoutSlack;
use crate::analysis::ExperimentGateResult;
use crate::analysis::comparison::{Comparisons, MISSING, RESTORE, missing_runs};
use crate::diagnostics::{Caveat, Failure, Outcome};
use crate::facts::{ExcludedCondition, RecipeFacts, RunOutcome, RunState};
use crate::plan::{Factors, Kind, conditions_in_words};

/// The results of an experiment so far.
#[derive(Clone, Debug)]
pub struct ExperimentReport {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The kind of its runs.
    pub kind: Kind,
    /// Its directory.
    pub directory: String,
    /// The recipe, if it is one.
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
    /// Of the recipe `aa`.
    pub aa_test: Option<AaTest>,
    /// Of the recipe `wakeup-governor`: `Some(None)` if its runs cannot answer.
    pub timeout_slack: Option<Option<TimeoutSlack>>,
    /// Of two measured conditions or more.
    pub comparisons: Option<Comparisons>,
    /// Of one measured condition.
    pub single_condition: Option<Vec<ConditionRow>>,
    /// Results of the gates of the command over all judged runs.
    pub gates: Vec<ExperimentGateResult>,
    /// With gates: whether the target was silent in all judged runs, so that the gates come before that failure.
    pub is_silent: bool,
}

impl ExperimentReport {
    fn ended_as(&self, outcome: RunOutcome) -> impl Iterator<Item = &RunState> {
        self.runs.iter().filter(move |run| run.outcome == Some(outcome))
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
        let (silent, broken): (Vec<_>, Vec<_>) = self.ended_as(RunOutcome::Failed).partition(|run| run.is_unanswered());
        let untrusted: Vec<_> = self.ended_as(RunOutcome::Untrusted).collect();
        let counted = [
            (broken, "failed and not judged"),
            (silent, "without an answer, judged as lost"),
            (untrusted, "with a fatal caveat that `latlab summary` names"),
        ];
        let line = |(runs, words): (Vec<&RunState>, &str)| {
            let first = runs.first()?;
            let name = first.recording.as_deref().or(first.reason.as_deref()).unwrap_or("nothing recorded");
            let count = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", runs.len()) };
            Some(format!("{count} {words}{}; the first: {name}", self.conditions_of(&runs)))
        };
        let missing = self.missing_caveat().map(|caveat| caveat.message);
        let changed = "the file was changed between runs: this is no longer one experiment".to_owned();
        counted.into_iter().filter_map(line).chain((self.changes > 0).then_some(changed)).chain(missing).collect()
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
            Kind::Ping | Kind::Stream | Kind::Wakeup | Kind::Values => "`latlab list` shows how each ended",
        };
        let failure = Failure::world("the experiment has no run that can be used").hint(hint);
        if reasons.is_empty() { failure } else { failure.because(reasons.join("\n")) }
    }
}
