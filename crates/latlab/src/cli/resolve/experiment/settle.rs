//! Resolution of a whole experiment file to an experiment.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use toml::de::DeTable;

use super::conditions::{CommandLines, ConditionSelection, factors_of, left_out};
use super::design::contrasts;
use super::design::design;
use super::file::{Field, FileError, FileText};
use super::hooks::{HookTemplates, PORT, expect_known_levels, is_filled, names_of_hook, names_of_target};
use super::options::{Factor, KnownOptions, OptionValue, TARGET};
use crate::cli::options::KeySource;
use crate::cli::resolve::Environment;
use crate::diagnostics::{Failure, refused};
use crate::facts::ExcludedCondition;
use crate::plan::{Design, Experiment, ExperimentCondition, Factors, Kind, defaults};
use crate::platform::free_port;
use crate::units::human::{grouped, suggestion};

const KEYS: [&str; 10] = ["name", "kind", TARGET, "base", "factors", "names", LEAVE_OUT, "design", "compare", "hooks"];
const LEAVE_OUT: &str = "leave-out";

/// An experiment, and what the plan of a run does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentJob {
    pub experiment: Experiment,
    /// The factors of every condition in the order of the file, possible here or not.
    pub combinations: Vec<Factors>,
    /// The source of the key of each condition.
    pub keys: Vec<KeySource>,
    /// Conditions that are impossible here; empty under [`ConditionSelection::All`].
    pub impossible: Vec<ExcludedCondition>,
    /// What it was settled from, if its runs differ in `{port}`.
    ported: Option<PortedFile>,
}

/// A file that names `{port}`.
#[derive(Clone, Debug, PartialEq)]
struct PortedFile {
    name: String,
    text: String,
    selection: ConditionSelection,
    environment: Environment,
}

impl ExperimentJob {
    /// The condition at `place`, with a free port that is not in `used`, to which it is added.
    ///
    /// # Errors
    /// If no port is free.
    pub fn condition(&self, place: usize, used: &mut BTreeSet<u16>) -> Result<Cow<'_, ExperimentCondition>, Failure> {
        let Some(PortedFile { name, text, selection, environment }) = &self.ported else {
            return Ok(Cow::Borrowed(&self.experiment.conditions[place]));
        };
        let port = free_port(used).map_err(refused("find a free port"))?;
        let environment = Environment { port: Some(port), ..environment.clone() };
        let mut job = experiment(name, text, *selection, &environment)?;
        Ok(Cow::Owned(job.experiment.conditions.swap_remove(place)))
    }
}

/// Settles the `text` of the file with this name.
pub fn experiment(
    name: &str,
    text: &str,
    selection: ConditionSelection,
    environment: &Environment,
) -> Result<ExperimentJob, FileError> {
    experiment_from(name, name, text, selection, environment)
}

/// Settles a copy of the file `source`, whose stem names the experiment if the text does not.
pub fn experiment_from(
    source: &str,
    name: &str,
    text: &str,
    selection: ConditionSelection,
    environment: &Environment,
) -> Result<ExperimentJob, FileError> {
    let file = FileText { name, text };
    let table = file.parse()?;
    if let Some(unknown) = file.fields(&table).into_iter().find(|field| !KEYS.contains(&field.key)) {
        return Err(unknown.unknown_key("", &KEYS));
    }
    let field = |key| file.field(&table, key);
    let section = |key| field(key).map(|field| field.table()).transpose();
    let kind = kind(file, field("kind"))?;
    let hooks = HookTemplates::of(section("hooks")?.map(|table| file.fields(table)).unwrap_or_default())?;
    let target = field(TARGET).map(|field| target(kind, &field)).transpose()?;
    let named = named_in(&hooks, target.as_ref(), [section("base")?, section("factors")?]);
    let names_port = named.contains(PORT);
    let options = KnownOptions::of(kind, named);
    let base = section("base")?.map_or(Ok(Vec::new()), |table| options.base(file, table))?;
    let mut factors = section("factors")?.map_or(Ok(Vec::new()), |table| options.factors(file, table))?;
    for name in section("names")?.map(|table| file.fields(table)).unwrap_or_default() {
        rename(&name, &mut factors)?;
    }
    hooks.expect_known(file, &factors)?;
    expect_known_levels(file, base.iter().chain(factors.iter().flat_map(|factor| &factor.values)), &factors)?;
    for factor in &factors {
        let is_same = |option: &&OptionValue| option.key == factor.key;
        if let Some(twice) = base.iter().chain(&target).find(is_same) {
            let cause = format!("`{}` is a factor, and line {} sets it for all", factor.key, file.line(twice.at));
            return Err(file.error(factor.at, cause, "leave one of them out"));
        }
    }
    let design = design(file, section("design")?.map(|table| file.fields(table)).unwrap_or_default())?;
    let left_out = left_out(file, field(LEAVE_OUT), &factors)?;
    let names_port = names_port && !factors.iter().any(|factor| factor.key == PORT);
    let port = names_port.then(|| port_in(file, environment)).transpose()?;
    let (target, port) = (target.as_ref(), port.as_ref());
    let lines = CommandLines { file, kind, target, base: &base, factors: &factors, hooks: &hooks, port };
    let combinations = lines.combinations(&left_out);
    if let (true, Some(field)) = (combinations.is_empty(), field(LEAVE_OUT)) {
        return Err(field.error("no condition is left", "leave out fewer"));
    }
    refuse_too_many_runs(file, &table, &design, combinations.len())?;
    let named = combinations.iter().map(|chosen| factors_of(chosen)).collect();
    let settled = lines.settle(combinations, selection, environment)?;
    let contrasts = contrasts(file, kind, &settled.conditions, field("compare"), &factors)?;
    let name = field("name").map(|field| experiment_name(&field)).transpose()?.unwrap_or_else(|| stem(source));
    let experiment = Experiment { name, kind, conditions: settled.conditions, design, contrasts };
    let ported = port.map(|_| PortedFile {
        name: file.name.to_owned(),
        text: text.to_owned(),
        selection,
        environment: environment.clone(),
    });
    Ok(ExperimentJob { experiment, combinations: named, keys: settled.keys, impossible: settled.impossible, ported })
}

/// What fills `{port}` in: that of `environment`, else an example.
fn port_in(file: FileText<'_>, environment: &Environment) -> Result<OptionValue, FileError> {
    let port = environment.port.map_or_else(|| free_port(&mut BTreeSet::new()), Ok);
    let port = port
        .map_err(|error| file.error(0, format!("no port is free for `{{{PORT}}}`: {error}"), "end other services"))?;
    Ok(OptionValue { key: PORT.into(), text: port.to_string(), name: String::new(), words: Vec::new(), at: 0 })
}

/// Gives the level of `factors` that is the value of `field` its key as a name.
fn rename(field: &Field<'_, '_, '_>, factors: &mut [Factor]) -> Result<(), FileError> {
    let (name, level) = (field.key, field.text()?);
    let mut levels: Vec<&mut OptionValue> = factors.iter_mut().flat_map(|factor| &mut factor.values).collect();
    if levels.iter().any(|value| value.name == name) {
        return Err(field.key_error(format!("two levels have the name `{name}`"), "give each a name of its own"));
    }
    let Some(named) = levels.iter().position(|value| value.text == level) else {
        let known: Vec<&str> = levels.iter().map(|value| value.text.as_str()).collect();
        return Err(field.error(format!("no factor has the level `{level}`"), suggestion(level, &known)));
    };
    levels[named].rename(name);
    Ok(())
}

/// The names in braces in hooks, and in every `target` and `command`.
fn named_in(
    hooks: &HookTemplates,
    target: Option<&OptionValue>,
    sections: [Option<&DeTable<'_>>; 2],
) -> BTreeSet<String> {
    let mut names = hooks.names();
    names.extend(target.into_iter().flat_map(|target| names_of_target(&target.text)));
    for (key, value) in sections.into_iter().flatten().flatten() {
        let names_of: fn(&str) -> BTreeSet<String> = match key.get_ref().as_ref() {
            TARGET => names_of_target,
            key if is_filled(key) => names_of_hook,
            _ => continue,
        };
        let levels = value.get_ref().as_array().map_or(std::slice::from_ref(value), |levels| levels);
        names.extend(levels.iter().filter_map(|level| level.get_ref().as_str()).flat_map(names_of));
    }
    names
}

fn kind(file: FileText<'_>, field: Option<Field<'_, '_, '_>>) -> Result<Kind, FileError> {
    let Some(field) = field else {
        return Err(file.error(0, "the experiment has no `kind`", "write `kind = \"ping\"` above all tables"));
    };
    let Some(word) = field.value.get_ref().as_str() else {
        return Err(field.error("`kind` is not text", "write `kind = \"ping\"`"));
    };
    let error = || {
        field.error(format!("`{word}` is not a kind of run"), suggestion(word, &Kind::IN_EXPERIMENTS.map(Kind::word)))
    };
    Kind::IN_EXPERIMENTS.into_iter().find(|kind| kind.word() == word).ok_or_else(error)
}

fn experiment_name(field: &Field<'_, '_, '_>) -> Result<String, FileError> {
    match field.value.get_ref().as_str().map(str::trim) {
        Some(name) if !name.is_empty() && !name.contains(['\n', '\r']) => Ok(name.to_owned()),
        _ => Err(field.error("`name` is not a line of text", "a few words in quotes, or leave it out")),
    }
}

fn target(kind: Kind, field: &Field<'_, '_, '_>) -> Result<OptionValue, FileError> {
    if !kind.has_target() {
        let cause = format!("a `{}` has no target: it measures this host", kind.word());
        return Err(field.error(cause, "leave it out"));
    }
    let Some(text) = field.value.get_ref().as_str() else {
        let hint = "such as `\"local\"`; several targets are a factor: `[factors]`";
        return Err(field.error("`target` is not text", hint));
    };
    let at = field.value.span().start;
    Ok(OptionValue { key: TARGET.into(), text: text.into(), name: text.into(), words: vec![text.into()], at })
}

fn refuse_too_many_runs(
    file: FileText<'_>,
    table: &DeTable<'_>,
    design: &Design,
    conditions: usize,
) -> Result<(), FileError> {
    let runs = design.runs_at_most(conditions);
    if runs <= defaults::EXPERIMENT_RUNS_MAX && design.blocks_at_most() <= defaults::BLOCKS_MAX {
        return Ok(());
    }
    let noun = if conditions == 1 { "condition" } else { "conditions" };
    let at = table.get("design").map_or(0, |value| value.span().start);
    let (conditions, limit) = (grouped(conditions as u64), grouped(defaults::EXPERIMENT_RUNS_MAX));
    let cause = if runs <= defaults::EXPERIMENT_RUNS_MAX {
        format!("the file asks for {} blocks; the limit is {}", design.blocks_at_most(), defaults::BLOCKS_MAX)
    } else {
        format!("the file asks for {} runs of {conditions} {noun}; the limit is {limit}", grouped(runs))
    };
    Err(file.error(at, cause, "fewer `runs`, `blocks` or conditions"))
}

fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy().into_owned())
}
