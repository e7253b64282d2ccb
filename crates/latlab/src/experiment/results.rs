//! From the recordings of an experiment to its results: the outcome of each run, the figures of the stop rule, and the
//! report.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::error::ExperimentError;
use super::runner::{FailureKind, RunResult, in_one_line};
use super::state::ExperimentState;
use crate::analysis::comparison::{Comparisons, ObservedRun, Quantity, RunGroups, parse_estimand};
use crate::analysis::experiment::{
    AaTest, ConditionRow, ExperimentComparison, ExperimentReport, MeasuredRow, MeasuredSystem, MistakenFigures,
    NamedRun, PrecisionResult, PrecisionRule, PublishedResults, RunSpread, RunsByRow, aa_test, means_of_runs,
    mistaken_figures, reported_estimands, single_condition, unmeasured_reason,
};
use crate::analysis::{
    AnalysisError, AvailableFigures, ChangeGate, Estimand, ExperimentGates, GateReason, GateState, Summary,
    SummaryOptions, ValueGates, ended_run_outcome, run_outcome, sample, summarise,
};
use crate::diagnostics::Failure;
use crate::facts::{ExcludedCondition, RecipeFacts, RunOutcome, RunState, SettingFacts};
use crate::measure::PlanOutcome;
use crate::metric::Metric;
use crate::plan::{Experiment, Factors, Kind, SummaryDefaults, defaults};
use crate::platform::parallel_map;
use crate::recipe::{self, Published};
use crate::recording::Recording;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::sample::INFINITE;

fn summary_without_intervals(
    recording: &Recording,
) -> Result<Summary, AnalysisError<crate::recording::RecordingError>> {
    summarise(recording, &SummaryOptions { intervals: false, ..SummaryOptions::of(&recording.manifest().spec) })
}

/// The outcome of a run whose process died, from its recording, and the reason if it did not end by its own stop
/// rule. Agrees with [`result_of`], which the process would have noted.
pub(super) fn outcome_of_recording(recording: &Recording) -> Result<(RunOutcome, Option<String>), ExperimentError> {
    let manifest = recording.manifest();
    let reason = || manifest.reason.clone();
    Ok(match manifest.ending {
        RunEnding::Completed => match summary_without_intervals(recording) {
            Ok(summary) => {
                let (outcome, failure) = judged(&summary);
                (outcome, failure.as_ref().map(in_one_line))
            }
            Err(AnalysisError::Source(error)) => return Err(error.into()),
            Err(error) => (RunOutcome::Failed, Some(error.to_string())),
        },
        // It is measured again when there is space.
        RunEnding::Failed if manifest.ended_by_full_disk() => (RunOutcome::Interrupted, reason()),
        RunEnding::Failed => (RunOutcome::Failed, reason().or_else(|| Some("the run ended early".into()))),
        RunEnding::Interrupted => (RunOutcome::Interrupted, reason()),
        RunEnding::Recovered | RunEnding::Measuring => (RunOutcome::Died, Some("its process was killed".into())),
    })
}

/// The outcome of a run that was measured to its end, and the failure if it has no answer.
fn judged(summary: &Summary) -> (RunOutcome, Option<Failure>) {
    (ended_run_outcome(summary), run_outcome(std::slice::from_ref(summary)).err())
}

/// The result of a run that this process measured; `interrupted` by a signal or not.
pub(crate) fn result_of(measured: PlanOutcome, interrupted: bool) -> RunResult {
    let mut recordings = measured.recordings.into_iter();
    let Some(finished) = recordings.next() else { return RunResult::unrecorded(RunOutcome::Refused, None) };
    let recording = finished.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let result = |outcome, failure| RunResult { recording, ..RunResult::unrecorded(outcome, failure) };
    let opened = finished.open();
    let broken = measured.failure.map(Failure::from).or(finished.failure.map(Failure::from));
    if interrupted && finished.manifest.ending == RunEnding::Interrupted {
        return result(RunOutcome::Interrupted, None);
    }
    let is_full = finished.manifest.ended_by_full_disk();
    if broken.is_some() || finished.manifest.ending != RunEnding::Completed {
        let outcome = if is_full { RunOutcome::Interrupted } else { RunOutcome::Failed };
        let reason = finished.manifest.reason.unwrap_or_else(|| "the run ended early".into());
        return result(outcome, broken.or_else(|| Some(Failure::world(reason))));
    }
    let summary = opened.map_err(Failure::from).and_then(|recording| Ok(summary_without_intervals(&recording)?));
    match summary {
        Ok(summary) => {
            let (outcome, failure) = judged(&summary);
            let has_lost_all = has_lost_all(&summary, failure.as_ref());
            let kind = if has_lost_all { FailureKind::Unanswered } else { FailureKind::NoResult };
            RunResult { kind, ..result(outcome, failure) }
        }
        Err(failure) => result(RunOutcome::Failed, Some(failure)),
    }
}

/// Whether a run that ended with `failure` lost all that it sent: into silence, or since a port is closed or the network
/// refused it.
fn has_lost_all(summary: &Summary, failure: Option<&Failure>) -> bool {
    failure.is_some_and(|failure| failure.is_silence || summary.counts.sent > 0)
}

/// Reads the figures `estimands` of each of `recordings`, several at a time; `note` receives what opening them changed.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn observe(
    recordings: &[PathBuf],
    estimands: &[Estimand],
    note: &dyn Fn(&str),
) -> Result<Vec<ObservedRun>, Failure> {
    let read = |path: &PathBuf| {
        let recording = match Recording::open(path) {
            Ok(recording) => recording,
            Err(error) => return ControlFlow::Break((None, Err(error))),
        };
        let message = recording.note().map(str::to_owned);
        match ObservedRun::of(&recording, estimands) {
            Ok(run) => ControlFlow::Continue((message, Ok(run))),
            Err(error) => ControlFlow::Break((message, Err(error))),
        }
    };
    let runs = parallel_map::each(recordings, parallel_map::available(), read);
    runs.iter().filter_map(|(message, _)| message.as_deref()).for_each(note);
    runs.into_iter().map(|(_, run)| Ok(run?)).collect()
}

/// The stop rule of an experiment, with the runs that it has read so far.
#[derive(Debug, Default)]
pub(crate) struct StopRule {
    /// By the name of the recording.
    known: BTreeMap<String, ObservedRun>,
}

impl StopRule {
    /// Judges the precision of `experiment` in `state`, whose recordings are in `runs`.
    ///
    /// # Errors
    /// If a recording cannot be read.
    pub(crate) fn check(
        &mut self,
        experiment: &Experiment,
        state: &ExperimentState,
        runs: &Path,
        note: &dyn Fn(&str),
    ) -> Result<PrecisionResult, Failure> {
        let rule = PrecisionRule::of(experiment, |factors| state.is_dropped(factors))?;
        let Some(rule) = rule else { return Ok(PrecisionResult::Wide) };
        let names = || state.judged().filter(|(run, _)| rule.covers(&run.key.factors)).map(|(_, name)| name);
        let new: Vec<&str> = names().filter(|name| !self.known.contains_key(*name)).collect();
        let paths: Vec<PathBuf> = new.iter().map(|name| runs.join(name)).collect();
        self.known.extend(new.into_iter().map(str::to_owned).zip(observe(&paths, &[rule.estimand], note)?));
        Ok(rule.check(names().filter_map(|name| self.known.get(name).cloned()).collect()))
    }
}

fn run_path(directory: &Path, name: &str) -> PathBuf {
    directory.join("runs").join(name)
}

/// The names of the recordings of judged runs of the experiment in `directory` that cannot be opened, or are of another run.
/// A run that failed may have been one that nothing answered, which is judged: only its recording says so.
pub(crate) fn gone_runs(directory: &Path, state: &ExperimentState) -> BTreeSet<String> {
    let has_ended = |run: &&RunState| !run.key.warmup && run.outcome.is_some_and(RunOutcome::is_final);
    let is_there = |run: &RunState, name: &str| {
        Recording::open(&run_path(directory, name)).is_ok_and(|recording| is_at(run, state, recording.manifest()))
    };
    let ended = state.runs.iter().filter(has_ended).filter_map(|run| Some((run, run.recording.as_deref()?)));
    ended.filter(|(run, name)| !is_there(run, name)).map(|(_, name)| name.to_owned()).collect()
}

/// Whether the recording with this manifest was made in the place of `run` in the experiment in `state`.
fn is_at(run: &RunState, state: &ExperimentState, manifest: &Manifest) -> bool {
    let facts = manifest.experiment.as_ref().filter(|facts| facts.experiment == state.id);
    facts.is_some_and(|facts| (run.key.block, run.position.position) == (facts.block, facts.position))
}

/// Whether the recording `name` can be one of the experiment in `state`: not that of a run outside of it, and not a copy of a
/// run whose recording has another name in the journal.
pub(crate) fn can_be_of(state: &ExperimentState, name: &str, manifest: &Manifest) -> bool {
    let is_of_experiment = manifest.experiment.as_ref().is_some_and(|facts| facts.experiment == state.id);
    let mut runs = state.runs.iter().filter(|run| is_at(run, state, manifest)).peekable();
    // The journal does not name the recording of a run that has not ended.
    let is_own = |run: &RunState| match &run.recording {
        Some(own) => own == name,
        None => run.outcome.is_none(),
    };
    is_of_experiment && (runs.peek().is_none() || runs.any(is_own))
}

/// Reads the recordings of an experiment for its report.
#[derive(Clone, Copy)]
pub(crate) struct ReportReader<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) state: &'a ExperimentState,
    pub(crate) experiment: &'a Experiment,
    /// Conditions that were impossible from the start.
    pub(crate) impossible: &'a [ExcludedCondition],
    /// Whether comparisons have the differences along the distribution.
    pub(crate) shift: bool,
    /// What must hold of each judged run; `None` before the experiment is finished.
    pub(crate) gates: Option<&'a ExperimentGates>,
    /// Receives what opening the recordings changed.
    pub(crate) note: &'a dyn Fn(&str),
}

/// A report that may lack what could not be read.
pub(crate) struct PartialReport {
    pub(crate) report: ExperimentReport,
    /// The first failure; what would have been read after it is missing.
    pub(crate) failure: Option<Failure>,
}

impl ReportReader<'_> {
    /// Reads the report, of the runs that are left if some are gone.
    pub(crate) fn read(&self) -> PartialReport {
        let mut report = ExperimentReport {
            id: self.state.id.clone(),
            name: self.experiment.name.clone(),
            kind: self.experiment.kind,
            directory: self.directory.display().to_string(),
            recipe: self.state.recipe.clone(),
            finished: self.state.finished,
            blocks_ended: self.state.blocks.values().filter(|block| block.ended).count(),
            changes: self.state.changes,
            dropped: self.state.dropped.clone(),
            impossible: self.impossible.to_vec(),
            runs: self.state.runs.clone(),
            missing: gone_runs(self.directory, self.state),
            published: None,
            spread: None,
            aa_test: None,
            comparisons: None,
            single_condition: None,
            gates: Vec::new(),
            change_gates: Vec::new(),
            over_budget: self.state.over_budget,
            decided_early: self.state.is_decided_early(),
            is_silent: false,
        };
        let state = self.state.without(&report.missing);
        let failure = ReportReader { state: &state, ..*self }.fill(&mut report).err();
        PartialReport { report, failure }
    }

    fn fill(&self, report: &mut ExperimentReport) -> Result<(), Failure> {
        let facts = self.state.recipe.as_ref();
        let recipe = facts.and_then(|facts| recipe::find(&facts.name));
        let published = recipe.and_then(|recipe| recipe.published.as_ref());
        let by_row = published.filter(|published| RunsByRow::suits(published)).map(|published| self.by_row(published));
        let by_row = by_row.transpose()?;
        let both = facts.zip(published);
        report.published =
            both.map(|(facts, published)| self.published(facts, published, by_row.as_ref())).transpose()?;
        let is_rehearsal = facts.is_some_and(RecipeFacts::is_rehearsal);
        report.spread = by_row.as_ref().map(|by_row| RunSpread { is_rehearsal, ..by_row.spread() });
        if recipe.is_some_and(|recipe| recipe.name == "aa") {
            report.aa_test = Some(self.aa_test()?);
        }
        let judged = report.runs.iter().filter(|run| run.judged().is_some());
        let measured: BTreeSet<&Factors> = judged.map(|run| &run.key.factors).collect();
        match measured.len() {
            _ if self.state.judged().next().is_none() => {}
            1 => report.single_condition = Some(self.single_condition()?),
            _ => {
                let measured: Vec<&Factors> = measured.into_iter().collect();
                report.comparisons = Some(self.compare(&measured, published, &report.missing)?);
            }
        }
        for gate in self.gates.iter().flat_map(|gates| &gates.changes) {
            report.change_gates.extend(match &report.comparisons {
                Some(comparisons) => gate.judge(comparisons),
                None => vec![gate.unjudged()],
            });
        }
        let has_failed = report.has_failed_runs();
        for gate in report.change_gates.iter_mut().filter(|gate| has_failed && gate.state == GateState::Kept) {
            (gate.state, gate.reason) = (GateState::Undecided, Some(GateReason::FailedRuns));
        }
        if let Some(gates) = self.gates.map(|gates| &gates.values).filter(|gates| !gates.is_empty()) {
            let summaries = self.gated_summaries(gates)?;
            report.gates = gates.over_runs(self.experiment.kind, &summaries, self.unjudged_conditions());
            report.gates.iter_mut().for_each(|result| result.gone = report.missing.len());
            report.is_silent = run_outcome(&summaries).is_err_and(|failure| failure.is_silence);
        }
        Ok(())
    }

    /// The number of conditions without a judged run, but for those that were dropped.
    fn unjudged_conditions(&self) -> usize {
        let has_run = |factors: &Factors| self.state.judged().any(|(run, _)| run.key.factors == *factors);
        let factors = self.experiment.conditions.iter().map(|condition| &condition.factors);
        factors.filter(|factors| !self.state.is_dropped(factors) && !has_run(factors)).count()
    }

    /// The summaries of all judged runs with the results of the gates, several read at a time.
    fn gated_summaries(&self, gates: &ValueGates) -> Result<Vec<Summary>, Failure> {
        let paths: Vec<PathBuf> = self.state.judged().map(|(_, name)| self.path(name)).collect();
        let read = |path: &PathBuf| match gated_summary(path, gates) {
            Ok(summary) => ControlFlow::Continue(Ok(summary)),
            Err(failure) => ControlFlow::Break(Err(failure)),
        };
        parallel_map::each(&paths, parallel_map::available(), read).into_iter().collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        run_path(self.directory, name)
    }

    /// All judged runs, in the order in which they were made.
    fn observe(&self, estimands: &[Estimand]) -> Result<Vec<ObservedRun>, Failure> {
        let paths: Vec<PathBuf> = self.state.judged().map(|(_, name)| self.path(name)).collect();
        observe(&paths, estimands, self.note)
    }

    /// The summary of the recording `name`, without intervals: a run is one observation here.
    fn summary(&self, name: &str, metric: Metric, quantiles: &[f64]) -> Result<Summary, Failure> {
        let recording = Recording::open(&self.path(name))?;
        let judging = SummaryDefaults {
            quantiles: quantiles.to_vec(),
            window_ns: None,
            ..recording.manifest().spec.judging.clone()
        };
        Ok(summarise(&recording, &SummaryOptions { judging, intervals: false, metrics: vec![metric], one_way: false })?)
    }

    fn by_row(&self, published: &'static Published) -> Result<RunsByRow, Failure> {
        let mean = parse_estimand(Some(published.metric.name()), "mean")?;
        Ok(RunsByRow::of(published, &self.observe(&[mean])?))
    }

    fn published(
        &self,
        facts: &RecipeFacts,
        published: &'static Published,
        by_row: Option<&RunsByRow>,
    ) -> Result<PublishedResults, Failure> {
        let excluded: Vec<&ExcludedCondition> = self.state.dropped.iter().chain(self.impossible).collect();
        let quantiles: Vec<f64> = published.columns.iter().filter_map(|column| column.quantile()).collect();
        let mut rows = Vec::new();
        for (place, row) in published.rows.iter().enumerate() {
            let measured = match by_row {
                // A rehearsal tests nothing.
                Some(by_row) => by_row.measured(place).map(|measured| MeasuredRow {
                    against_first: measured.against_first.filter(|_| !facts.is_rehearsal()),
                    ..measured
                }),
                None => {
                    let runs = self.state.judged().filter(|(run, _)| published.is_done_by(row, &run.key.factors));
                    let names: Vec<&str> = runs.map(|(_, name)| name).collect();
                    let summaries = names.iter().map(|name| self.summary(name, published.metric, &quantiles));
                    let measured = means_of_runs(published, &summaries.collect::<Result<Vec<_>, _>>()?);
                    let mistaken = if row.published.is_empty() { None } else { self.mistaken(published, &names)? };
                    measured.map(|measured| MeasuredRow { mistaken, ..measured })
                }
            };
            rows.push(measured.ok_or_else(|| unmeasured_reason(published, row, self.experiment, &excluded)));
        }
        let systems = vec![MeasuredSystem { name: "here".into(), rows }];
        Ok(PublishedResults { published, systems, recipe: facts.clone() })
    }

    /// What the mistake of a publication makes of the runs `names`.
    fn mistaken(&self, published: &Published, names: &[&str]) -> Result<Option<MistakenFigures>, Failure> {
        if published.lesson.mistake().is_none() {
            return Ok(None);
        }
        let singletons = |name: &&str| -> Result<Vec<i64>, Failure> {
            let mut singletons = sample(&Recording::open(&self.path(name))?, published.metric)?.singletons;
            singletons.retain(|value| *value != INFINITE);
            Ok(singletons)
        };
        Ok(mistaken_figures(published, &names.iter().map(singletons).collect::<Result<Vec<_>, _>>()?))
    }

    fn aa_test(&self) -> Result<AaTest, Failure> {
        // A stream has few intervals: quantiles of their rates mean little.
        let names = if self.experiment.kind == Kind::Stream { &["mean"][..] } else { &["mean", "p50", "p99"] };
        // The permutations that are drawn are the same each time, and so is the report.
        const SEED: u64 = 1;
        let answered = self.state.judged().filter(|(run, _)| !run.is_unanswered());
        let runs = answered.map(|(run, name)| self.named_run(run, name)).collect::<Result<Vec<_>, _>>()?;
        Ok(aa_test(&runs, names, defaults::CONFIDENCE, &mut Pcg64::seed_from_u64(SEED)))
    }

    fn named_run(&self, run: &RunState, name: &str) -> Result<NamedRun, Failure> {
        let metric = self.experiment.kind.metric();
        let is_stream = self.experiment.kind == Kind::Stream;
        let quantiles: &[f64] = if is_stream { &[] } else { &[0.5, 0.99] };
        let summary = self.summary(name, metric, quantiles)?;
        let recording = Recording::open(&self.path(name))?;
        let start = recording.manifest().here.clock_start.as_ref();
        let description = summary.metrics.get(&metric);
        let mean = description.and_then(|description| description.mean);
        let quantiles = description.into_iter().flat_map(|description| &description.quantiles);
        let mut singletons = if is_stream { Vec::new() } else { sample(&recording, metric)?.singletons };
        singletons.retain(|value| *value != INFINITE);
        Ok(NamedRun {
            second: run.position.condition == 2,
            block: run.key.block,
            hours: start.map_or(0.0, |anchor| anchor.boottime_ns as f64 / 3.6e12),
            statistics: std::iter::once(mean).chain(quantiles.map(|quantile| quantile.value)).collect(),
            singletons,
        })
    }

    fn compare(
        &self,
        measured: &[&Factors],
        published: Option<&Published>,
        missing: &BTreeSet<String>,
    ) -> Result<Comparisons, Failure> {
        let mut comparison = ExperimentComparison::of(self.experiment, &self.state.dropped, self.impossible, measured)?;
        if self.shift {
            comparison.add_shift(self.experiment);
        }
        let gates = self.gates.iter().flat_map(|gates| &gates.changes);
        gates.filter_map(ChangeGate::estimand).for_each(|estimand| comparison.include(estimand));
        let runs = self.observe(&comparison.estimands())?;
        let look = self.state.look(self.experiment.design.looks);
        let complete = |groups: &mut RunGroups| {
            groups.missing = missing.iter().map(|name| format!("`{name}`")).collect();
            published.into_iter().for_each(|published| groups.name_by(|levels| published.label(levels)));
            groups.beside_publication = published.is_some();
        };
        Ok(comparison.compare(runs, look, complete)?)
    }

    fn single_condition(&self) -> Result<Vec<ConditionRow>, Failure> {
        let estimands = reported_estimands(self.experiment)?;
        let observe = |(_, name): (&RunState, &str)| -> Result<ObservedRun, Failure> {
            Ok(ObservedRun::of(&Recording::open(&self.path(name))?, &estimands)?)
        };
        let observed = self.state.judged().map(observe).collect::<Result<Vec<_>, _>>()?;
        let quantities: Vec<Quantity> = estimands.iter().copied().map(Quantity::Of).collect();
        Ok(single_condition(&observed, &quantities, defaults::CONFIDENCE))
    }

    /// Settings whose name begins with `knob` and that changed nothing, since the host had them before: conditions with
    /// and without them are the same. Of recipes only.
    ///
    /// # Errors
    /// If a recording cannot be read.
    pub(crate) fn unchanged_settings(&self, knob: &str) -> Result<BTreeSet<String>, Failure> {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        let state = self.state.without(&gone_runs(self.directory, self.state));
        for (_, name) in state.judged().filter(|(run, _)| seen.insert(&run.key.factors)) {
            let recording = Recording::open(&self.path(name))?;
            found.extend(unchanged(&recording.manifest().settings, knob));
        }
        Ok(found)
    }
}

/// The summary of the recording at `path` with the results of `gates`.
fn gated_summary(path: &Path, gates: &ValueGates) -> Result<Summary, Failure> {
    let recording = Recording::open(path)?;
    let judging = SummaryDefaults { window_ns: None, ..recording.manifest().spec.judging.clone() };
    let mut options = SummaryOptions { judging, intervals: true, metrics: Vec::new(), one_way: false };
    gates.include(&mut options);
    let mut summary = summarise(&recording, &options)?;
    let available = AvailableFigures::of_recorded(&recording, options.judging.deadline_ns)?;
    gates.judge(&mut summary, &available);
    Ok(summary)
}

/// The place and the value of the settings of `knob`, if each had its value before.
fn unchanged(settings: &[SettingFacts], knob: &str) -> Option<String> {
    let mut own = settings.iter().filter(|fact| fact.setting.starts_with(knob)).peekable();
    let first = *own.peek()?;
    own.all(|fact| fact.before == fact.set).then(|| format!("`{}` was `{}`", first.place, first.before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_the_host_had_before_is_unchanged() {
        let fact = |setting: &str, before: &str, set: &str| SettingFacts {
            setting: setting.into(),
            at: "local".into(),
            place: "eth0 tx-checksum-ipv4".into(),
            places: 1,
            root: None,
            before: before.into(),
            set: set.into(),
            read_back: None,
            ended: None,
        };
        let mtu = || fact("mtu=16384", "1500", "16384");
        let offload = |before| fact("offload@both=tx-checksum:off", before, "tx-checksum-ipv4:off");
        assert_eq!(unchanged(&[], "offload"), None);
        assert_eq!(unchanged(&[mtu()], "offload"), None);
        assert_eq!(unchanged(&[mtu(), offload("tx-checksum-ipv4:on")], "offload"), None);
        let found = unchanged(&[mtu(), offload("tx-checksum-ipv4:off")], "offload").expect("it was off");
        assert_eq!(found, "`eth0 tx-checksum-ipv4` was `tx-checksum-ipv4:off`");
        let both = [offload("tx-checksum-ipv4:off"), offload("tx-checksum-ipv4:on")];
        assert_eq!(unchanged(&both, "offload"), None, "one end was changed");
    }
}
