//! `latlab run`: starts or continues an experiment, and prints its report.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::experiment_executor::{ExperimentExecutor, end_cut_off_run, has_hooks};
use super::experiment_reporter::Reporter;
use super::observation_groups::located_in;
use super::{Outcome, measure_and_report, run_plan};
use crate::analysis::ExperimentGates;
use crate::analysis::comparison::{MISSING, RESTORE};
use crate::analysis::experiment::{comparisons_asked, lost_baselines};
use crate::cli::args::GateArgs;
use crate::cli::resolve::{
    self, AskedRecipe, ConditionSelection, Environment, ExperimentJob, RunJob, RunSource, TypedExperiment,
};
use crate::console::Console;
use crate::diagnostics::{Explain, Failure, refused};
use crate::experiment::{
    self, ExperimentError, ExperimentOrigin, ExperimentRunner, ExperimentState, HookRunner, OpenExperiment, RunPolicy,
    StoreLock, in_one_line,
};
use crate::facts::{ExcludedCondition, RecipeFacts};
use crate::host::HostRoot;
use crate::measure::{absence_of, lacking_right};
use crate::plan::defaults::EXPERIMENT_FILE_MAX_BYTES;
use crate::plan::{
    BetweenBlocks, CommandSpec, Experiment, ExperimentCondition, Kind, RunSpec, Target, condition_words,
};
use crate::platform::input_file;
use crate::platform::ownership::expect_own;
use crate::recipe::{self, RECIPES};
use crate::recording::Store;
use crate::report::experiment::{ExperimentPlan, SystemdUnit, plan, recipe, recipe_list, systemd_unit};

pub(super) fn run(job: &RunJob, console: &Console) -> Result<Outcome, Failure> {
    let GateArgs { gate, gate_strict } = &job.typed.gates;
    let gates = |kind: Kind| ExperimentGates::parse(gate, *gate_strict, kind.metric());
    if let (true, RunSource::Typed(typed, _)) = (job.typed.ab.print_file, &job.source) {
        return console.data(&typed.text).map(|()| Outcome::Done);
    }
    let settled = settle(job)?;
    if let Some(wanted) = &job.typed.going_on.plan {
        let SettledExperiment { source, job: settled, state, .. } = &settled;
        let begun = source.directory.as_deref().zip(state.as_ref());
        return run_plan::run(wanted, &settled.experiment, begun, &job.store, console);
    }
    warn_of_gone_runs(&settled, console);
    let gates = gates(settled.job.experiment.kind)?;
    gates.expect_judgeable(settled.job.experiment.conditions.iter().flat_map(|condition| &condition.plan.runs))?;
    if job.typed.going_on.print_unit {
        return print_unit(&settled, job.typed.going_on.keep_going, console);
    }
    let reporter = Reporter { job: &settled.job, gates, typed: &job.typed, console };
    if job.typed.going_on.dry_run {
        let not_measured = settled.not_measured(settled.state.as_ref());
        let planned = settled.plan(settled.state.as_ref(), &not_measured, true);
        measure_and_report::warn_of_refusals(&planned.measured(), console);
        return console.data(&plan(&planned, console.data_style())).map(|()| Outcome::Done);
    }
    // An experiment whose file was edited is not finished.
    let finished = settled.state.as_ref().filter(|state| state.finished && !settled.is_edited);
    if let (Some(directory), Some(state)) = (&settled.source.directory, finished) {
        console.note(&format!("the experiment in `{}` is finished", directory.display()));
        return reporter.finish(directory, state);
    }
    expect_trusted(&settled, job)?;
    let mut open = begin_or_open(&settled, job, console)?;
    let mut experiment = settled.job.experiment.clone();
    experiment.design.begun_as(&open.state().id, open.state().has_rounds);
    let experiment = &experiment;
    let plans = || experiment.conditions.iter().map(|condition| &condition.plan);
    let signals = measure_and_report::listen(plans(), console).map_err(refused("listen to signals"))?;
    let mut hooks = HookRunner::of(open.path(), &open.state().id);
    end_cut_off_run(&mut open, &mut hooks, experiment, &signals, console)?;
    let style = console.message_style();
    let not_measured = settled.not_measured(Some(open.state()));
    let begun = settled.plan(Some(open.state()), &not_measured, false);
    let conditions = begun.measured().conditions.len();
    let store = Store::open(&open.runs())?;
    let mut executor = ExperimentExecutor::new(&settled.job, conditions, store, hooks, &signals, console);
    executor.end_by(&reporter.gates);
    job.typed.going_on.budget.iter().for_each(|budget| executor.end_after(*budget));
    console.lines(&plan(&ExperimentPlan { directory: Some(open.path()), ..begun }, style));
    measure_and_report::warn_of_real_time(plans(), console);
    let policy = RunPolicy {
        boot_id: boot_id(experiment.design.between)?,
        keep_going: job.typed.going_on.keep_going,
        absent: settled.absent.clone(),
        drop_impossible: open.state().recipe.is_some() && !has_hooks(experiment),
        gate_looks: if reporter.gates.changes.is_empty() { 0 } else { experiment.design.gate_looks() },
    };
    let end = ExperimentRunner { experiment, policy, journal: &mut open, executor: &mut executor }.run()?;
    // Other processes may open the experiment from here on.
    let (directory, state) = open.close();
    reporter.end(end, &directory, &state, signals.outcome())
}

/// The recipe, file or directory named on the command line, before its file is settled.
struct ExperimentSource {
    /// The name of its file.
    file: String,
    text: String,
    /// `None` if a directory was named.
    origin: Option<ExperimentOrigin>,
    directory: Option<PathBuf>,
    /// Why its commands are not trusted: another user can write or exchange the file that was read. That of an experiment
    /// to continue is judged when it is opened.
    distrust: Option<io::Error>,
}

struct SettledExperiment {
    source: ExperimentSource,
    job: ExperimentJob,
    /// Conditions with settings that this host cannot have.
    absent: Vec<ExcludedCondition>,
    /// `None` before it begins.
    state: Option<ExperimentState>,
    /// Whether the file in its directory was edited; `--force` continues with it.
    is_edited: bool,
}

impl SettledExperiment {
    /// Conditions that are not measured in `state`: impossible ones, dropped ones, and those to drop before the first run.
    fn not_measured(&self, state: Option<&ExperimentState>) -> Vec<ExcludedCondition> {
        let dropped = state.map_or(&[][..], |state| state.dropped.as_slice());
        let is_new = |absent: &&ExcludedCondition| state.is_none_or(|state| state.is_open(&absent.factors));
        let absent: Vec<_> = self.absent.iter().filter(is_new).cloned().collect();
        [self.job.impossible.as_slice(), dropped, absent.as_slice()].concat()
    }

    fn plan<'a>(
        &'a self,
        state: Option<&ExperimentState>,
        not_measured: &'a [ExcludedCondition],
        with_order: bool,
    ) -> ExperimentPlan<'a> {
        let begun_as = state.and_then(|state| state.recipe.as_ref());
        let facts = begun_as.or_else(|| self.source.origin.as_ref()?.recipe.as_ref());
        ExperimentPlan {
            experiment: &self.job.experiment,
            not_measured,
            done: state.map_or(0, ExperimentState::runs_done),
            with_order,
            published: facts.and_then(|facts| recipe::find(&facts.name)?.published.as_ref()),
            is_rehearsal: facts.is_some_and(|facts| facts.is_rehearsal() && facts.name != "aa"),
            directory: self.source.directory.as_deref(),
        }
    }
}

/// Reads and settles the experiment that `job` names.
fn settle(job: &RunJob) -> Result<SettledExperiment, Failure> {
    let source = match &job.source {
        RunSource::Recipe(asked) => recipe_source(asked, job)?,
        RunSource::Typed(typed, asked) => typed_source(typed, asked.as_ref(), job)?,
        RunSource::Path(typed) => path_source(&located_in(typed, &job.store)?, job)?,
    };
    source.directory.as_deref().map(experiment::expect_own).transpose()?;
    let state = source.directory.as_deref().map(experiment::read_state).transpose()?;
    let mut is_edited = false;
    if let (Some(directory), Some(state)) = (&source.directory, &state) {
        is_edited = experiment::is_edited(directory, state)?;
        if !job.typed.going_on.force && job.typed.going_on.plan.is_none() {
            refuse_changed(directory, &source)?;
        }
    }
    let begun_as = state.as_ref().and_then(|state| state.recipe.as_ref());
    let is_recipe = begun_as.is_some() || source.origin.as_ref().is_some_and(|origin| origin.recipe.is_some());
    let selection = if is_recipe { ConditionSelection::Possible } else { ConditionSelection::All };
    // The file in a directory has the same name in every experiment: the name comes from the file that was copied.
    let named_by = state.as_ref().map_or(&source.file, |state| &state.source);
    let environment = Environment::of_this_process()?;
    let mut job = resolve::experiment_from(named_by, &source.file, &source.text, selection, &environment)?;
    if let Some(state) = &state {
        job.experiment.design.begun_as(&state.id, state.has_rounds);
    }
    if state.is_none() {
        expect_feasible(&job.experiment, &source.file)?;
    }
    let absent = absent_conditions(&job.experiment, is_recipe);
    let has_begun = state.as_ref().is_some_and(|state| !state.runs.is_empty());
    let conditions = job.experiment.conditions.len();
    if conditions == 0 || (conditions == absent.len() && !has_begun) {
        return Err(nothing_possible(&job, &absent, (!is_recipe).then_some(source.file.as_str())));
    }
    let settled = SettledExperiment { source, job, absent, state, is_edited };
    if !is_recipe && !has_begun {
        expect_comparison(&settled)?;
    }
    Ok(settled)
}

/// Refuses an `experiment` of `file` that would begin with intervals of probes that no host keeps.
fn expect_feasible(experiment: &Experiment, file: &str) -> Result<(), Failure> {
    let runs = || experiment.conditions.iter().flat_map(|condition| &condition.plan.runs);
    resolve::expect_feasible_intervals(runs()).and_then(|()| resolve::expect_a_free_cpu(runs())).map_err(|error| {
        let Failure { message, cause, hint, .. } = error;
        let because = [Some(message), cause].into_iter().flatten().collect::<Vec<_>>().join(": ");
        Failure { hint, ..Failure::request(format!("cannot begin the experiment of `{file}`")).because(because) }
    })
}

/// The conditions of `experiment` with a setting that this host cannot have; of a recipe also those that need missing rights.
fn absent_conditions(experiment: &Experiment, is_recipe: bool) -> Vec<ExcludedCondition> {
    // Conditions share settings, and one may have thousands of files.
    let mut known: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
    let mut absence = |run: &RunSpec| {
        let absent = run.settings.iter().find_map(|setting| {
            let reason = || absence_of(setting, &run.target).as_ref().map(in_one_line);
            known.entry((setting.to_string(), run.target.to_string())).or_insert_with(reason).clone()
        });
        absent.or_else(|| lacking_right(run).filter(|_| is_recipe).as_ref().map(in_one_line))
    };
    let absent = experiment.conditions.iter().filter_map(|ExperimentCondition { factors, plan, .. }| {
        let reason = plan.runs.iter().find_map(&mut absence)?;
        Some(ExcludedCondition { factors: factors.clone(), reason })
    });
    absent.collect()
}

/// The failure of an experiment without a condition that this host can measure: that of a recipe, or of `file`.
fn nothing_possible(job: &ExperimentJob, absent: &[ExcludedCondition], file: Option<&str>) -> Failure {
    let name = &job.experiment.name;
    let (message, hint) = match file {
        None => (
            format!("no row of the recipe `{name}` can be measured on this host"),
            "try another target: `local`, `lab`, `ssh:HOST`".into(),
        ),
        Some(file) => (
            format!("no condition of the experiment `{name}` can be measured on this host"),
            format!("change `set` in `{file}`, or measure on a host that has this"),
        ),
    };
    Failure::world(message).because(reasons(job.impossible.iter().chain(absent))).hint(hint)
}

/// The reasons of `rows`, each once, one a line.
fn reasons<'a>(rows: impl Iterator<Item = &'a ExcludedCondition>) -> String {
    let reasons: BTreeSet<&str> = rows.map(|row| row.reason.as_str()).collect();
    reasons.into_iter().collect::<Vec<_>>().join("\n")
}

/// Refuses an experiment whose file names baselines, if nothing is compared since this host lacks conditions.
fn expect_comparison(settled: &SettledExperiment) -> Result<(), Failure> {
    let not_measured = settled.not_measured(settled.state.as_ref());
    let measured = settled.plan(settled.state.as_ref(), &not_measured, false).measured();
    let lost = lost_baselines(&settled.job.experiment, &measured);
    let Some(baseline) = lost.first().filter(|_| comparisons_asked(&measured) == 0) else { return Ok(()) };
    let (words, file) = (condition_words(baseline.levels), &settled.source.file);
    let (message, change) = if baseline.is_measured {
        (format!("nothing can be compared with the baseline `{words}` on this host"), "change its factors")
    } else {
        (format!("the baseline `{words}` cannot be measured on this host"), "name another `baseline`")
    };
    Err(Failure::world(message)
        .because(reasons(not_measured.iter().filter(|row| baseline.lacks(&row.factors))))
        .hint(format!("{change} in `{file}`, or measure on a host that has this")))
}

/// Warns of judged runs of an experiment to continue that are gone: its gates are broken at the end, however long it takes.
fn warn_of_gone_runs(settled: &SettledExperiment, console: &Console) {
    let (Some(directory), Some(state)) = (&settled.source.directory, &settled.state) else { return };
    let gone = experiment::gone_runs(directory, state);
    if !gone.is_empty() && !state.finished {
        let names = gone.into_iter().collect::<Vec<_>>().join(", ");
        console.warning(&format!("{MISSING}: {names}: no gate will be met"), Some(RESTORE));
    }
}

/// Refuses a file with commands that another user can write or exchange.
fn expect_trusted(settled: &SettledExperiment, job: &RunJob) -> Result<(), Failure> {
    let RunSource::Path(path) = &job.source else { return Ok(()) };
    let commands = settled.job.experiment.conditions.iter().flat_map(commands_of);
    let Some(command) = commands.into_iter().next() else { return Ok(()) };
    let is_trusted = job.typed.going_on.trust_file;
    let Some(error) = settled.source.distrust.as_ref().filter(|_| !is_trusted) else { return Ok(()) };
    let message = format!("cannot run the command `{command}` of `{}`", path.display());
    let failure = input_file::failure(message, error);
    let hint = failure.hint.as_ref().map(|hint| format!("{hint}; or `--trust-file`, if you have read it"));
    Err(Failure { hint, ..failure })
}

/// The commands that `condition` runs: targets and what is measured, then hooks.
fn commands_of(condition: &ExperimentCondition) -> Vec<String> {
    let of_run = |run: &RunSpec| match run.target {
        Target::Command { .. } => Some(run.target.to_string()),
        _ => run.command().map(CommandSpec::in_shell),
    };
    condition.plan.runs.iter().filter_map(of_run).chain(condition.hooks.commands()).collect()
}

fn recipe_source(asked: &AskedRecipe, job: &RunJob) -> Result<ExperimentSource, Failure> {
    let AskedRecipe { recipe, target, scale, .. } = asked;
    let source = asked.source();
    let facts = RecipeFacts { name: recipe.name.clone(), scale: scale.word().into(), target: target.clone() };
    let directory = unfinished(job, &source, &asked.file())?;
    // Another version may have another file: an experiment continues with the one that it was begun with.
    let text = match &directory {
        Some(directory) => experiment::file_text(directory)?,
        None => asked.file(),
    };
    let origin = Some(ExperimentOrigin { source, recipe: Some(facts) });
    Ok(ExperimentSource { file: recipe.name.clone(), text, origin, directory, distrust: None })
}

/// The experiment of two commands that were typed: its file is the same each time.
fn typed_source(
    typed: &TypedExperiment,
    asked: Option<&AskedRecipe>,
    job: &RunJob,
) -> Result<ExperimentSource, Failure> {
    let TypedExperiment { source, text, target } = typed;
    let facts = |asked: &AskedRecipe| RecipeFacts {
        name: asked.recipe.name.clone(),
        scale: asked.scale.word().into(),
        target: target.clone(),
    };
    let source = asked.map_or_else(|| source.clone(), |asked| format!("{} {source}", asked.recipe.name));
    let directory = unfinished(job, &source, text)?;
    let origin = Some(ExperimentOrigin { source, recipe: asked.map(facts) });
    Ok(ExperimentSource { file: "--ab".into(), text: text.clone(), origin, directory, distrust: None })
}

fn path_source(path: &Path, job: &RunJob) -> Result<ExperimentSource, Failure> {
    if path.is_dir() { directory_source(path, job) } else { file_source(path, job) }
}

fn directory_source(path: &Path, job: &RunJob) -> Result<ExperimentSource, Failure> {
    experiment::read_named_state(path)?;
    if job.typed.going_on.new {
        return Err(Failure::request(format!("`{}` cannot be started again", path.display()))
            .because("a directory is one experiment")
            .hint("`latlab run FILE --new` starts another experiment of its file"));
    }
    let file = experiment::file_path(path).display().to_string();
    let (text, directory) = (experiment::file_text(path)?, Some(path.to_owned()));
    Ok(ExperimentSource { file, text, origin: None, directory, distrust: None })
}

fn file_source(path: &Path, job: &RunJob) -> Result<ExperimentSource, Failure> {
    let shown = path.display();
    let read = input_file::open(path).and_then(|file| {
        // Of the open file, which another may replace at its path at any time.
        let distrust = expect_own(path, &file).err();
        Ok((input_file::text_of(file, EXPERIMENT_FILE_MAX_BYTES)?, distrust))
    });
    let (text, distrust) = read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let usual = "`latlab recipes` lists the built-in experiments; docs/experiments.md shows a file";
            let hint = recipe::meant(&shown.to_string()).unwrap_or_else(|| usual.into());
            Failure::request(format!("there is no file, recipe or experiment `{shown}`")).hint(hint)
        }
        _ => Failure { exit_code: 2, ..input_file::failure(format!("cannot read `{shown}`"), &error) },
    })?;
    let source = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let mut directory = unfinished(job, &source, &text)?;
    let is_read = job.typed.format.is_some() || job.typed.going_on.plan.is_some();
    if is_read && !job.typed.going_on.new {
        directory = directory.or_else(|| experiment::newest(&job.store, &source, true));
    }
    let origin = Some(ExperimentOrigin { source, recipe: None });
    Ok(ExperimentSource { file: shown.to_string(), text, origin, directory, distrust })
}

/// The experiment of `source`, whose file has `text`, to continue; `None` if another is to begin.
fn unfinished(job: &RunJob, source: &str, text: &str) -> Result<Option<PathBuf>, ExperimentError> {
    if job.typed.going_on.new {
        return Ok(None);
    }
    experiment::expect_readable(&job.store, source, text)?;
    Ok(experiment::newest_unfinished(&job.store, source))
}

/// Refuses to continue if the file in `directory` was edited, or `source` differs from it.
fn refuse_changed(directory: &Path, source: &ExperimentSource) -> Result<(), Failure> {
    if experiment::is_edited(directory, &experiment::read_state(directory)?)? {
        return Err(ExperimentError::Edited { path: directory.to_owned() }.into());
    }
    Ok(experiment::expect_same(directory, &source.file, &source.text)?)
}

/// Opens the experiment to continue, or begins one.
fn begin_or_open(settled: &SettledExperiment, job: &RunJob, console: &Console) -> Result<OpenExperiment, Failure> {
    let ExperimentSource { origin, directory, text, .. } = &settled.source;
    let Some(origin) = origin else {
        return open(directory.as_deref().unwrap_or(Path::new(".")), settled, job, console);
    };
    // A process that starts at the same time waits here, and then finds the experiment that this one has begun.
    let _lock = StoreLock::wait(&job.store)?;
    let found = || experiment::newest_unfinished(&job.store, &origin.source);
    if let Some(directory) = directory.clone().or_else(found).filter(|_| !job.typed.going_on.new) {
        return open(&directory, settled, job, console);
    }
    // Two experiments of one file would disturb each other.
    experiment::expect_idle(&job.store, &origin.source)?;
    Ok(OpenExperiment::begin(&job.store, text, origin.clone())?)
}

fn open(
    directory: &Path,
    settled: &SettledExperiment,
    job: &RunJob,
    console: &Console,
) -> Result<OpenExperiment, Failure> {
    let conditions = &settled.job.experiment.conditions;
    let changed = settled.state.as_ref().and_then(|state| experiment::changed_program(directory, state, conditions));
    if let Some(program) = changed {
        let error = ExperimentError::Exchanged { path: directory.to_owned(), program: program.to_owned() };
        if !job.typed.going_on.force {
            return Err(error.into());
        }
        console.warning(&in_one_line(&error.explain()), Some("compare runs from before and after with care"));
    }
    let mut open = OpenExperiment::open(directory)?;
    let text = &settled.source.text;
    if !job.typed.going_on.force {
        refuse_changed(directory, &settled.source)?;
    } else if open.text() != text || experiment::is_edited(directory, open.state())? {
        open.change(text)?;
        let message =
            format!("`{}` continues with a changed file: it is no longer one experiment", directory.display());
        console.warning(
            &message,
            Some("compare runs from before and after with care, or start another experiment: `--new`"),
        );
    }
    if !matches!(job.source, RunSource::Recipe(_)) {
        console.note(&format!("continuing `{}`", directory.display()));
    }
    Ok(open)
}

/// The id of this boot. An experiment that reboots must know it.
fn boot_id(between: BetweenBlocks) -> Result<Option<String>, Failure> {
    match (HostRoot::for_knobs().text("proc/sys/kernel/random/boot_id"), between) {
        (Ok(id), _) if !id.is_empty() => Ok(Some(id)),
        (Err(cause), BetweenBlocks::Reboot) => Err(ExperimentError::UnknownBoot { cause }.into()),
        _ => Ok(None),
    }
}

fn print_unit(settled: &SettledExperiment, keep_going: bool, console: &Console) -> Result<Outcome, Failure> {
    let Some(directory) = &settled.source.directory else {
        return Err(Failure::request(format!("`{}` was not started yet", settled.source.file))
            .because("the unit continues one experiment; it must not start another at each boot")
            .hint("start it with `latlab run`; print the unit when it asks for a reboot"));
    };
    console.data(&systemd_unit(&SystemdUnit {
        name: &settled.job.experiment.name,
        program: &std::env::current_exe().map_err(refused("find this program"))?,
        here: &std::env::current_dir().map_err(refused("find the working directory"))?,
        directory: &directory.canonicalize().map_err(refused("find the experiment's directory"))?,
        keep_going,
    })?)?;
    console.note(
        "as root: write it to `/etc/systemd/system/latlab-experiment.service`, then `systemctl enable latlab-experiment`; \
         add `User=` where the experiment needs no root",
    );
    Ok(Outcome::Done)
}

/// Shows one recipe, or lists all.
pub(super) fn recipes(asked: Option<AskedRecipe>, console: &Console) -> Result<Outcome, Failure> {
    let style = console.data_style();
    let text = match asked {
        None => recipe_list(&RECIPES, style),
        Some(asked) => recipe(asked.recipe, &asked.file(), style.width),
    };
    console.data(&text)?;
    Ok(Outcome::Done)
}
