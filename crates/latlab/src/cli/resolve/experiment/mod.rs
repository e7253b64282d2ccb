//! The file of an experiment, settled: each condition is a command line that goes through the same parser and the same
//! settling as if it had been typed (decision 0012). Format: docs/experiments.md.

mod conditions;
mod contrasts;
mod design;
mod kind;
mod leave_out;
mod options;
mod page;

pub use conditions::Impossible;
pub use page::FileError;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Environment, KeySource};
use crate::plan::{Design, Experiment, Kind, defaults};
use crate::units::human::grouped;
use conditions::CommandLines;
use leave_out::ConditionFilter;
use options::{KnownOptions, OptionValue, TARGET};
use page::{FileText, entries};

const KEYS: [&str; 8] = ["name", "kind", TARGET, "base", "factors", LEAVE_OUT, "design", "compare"];
const LEAVE_OUT: &str = "leave-out";

/// An experiment, and what the plan of a run does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentJob {
    /// The experiment.
    pub experiment: Experiment,
    /// Where the key of each condition comes from.
    pub keys: Vec<KeySource>,
    /// Conditions that cannot be asked of their target, with the reason: only where [`ConditionSelection::Possible`] was asked for.
    pub impossible: Vec<Impossible>,
}

/// Which conditions are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionSelection {
    /// All: one that contradicts itself or its target is refused.
    All,
    /// Those that can be: a recipe runs on hosts that lack something.
    Possible,
}

/// Settles the `text` of the file that is called `file`.
pub fn experiment(
    file: &str,
    text: &str,
    rows: ConditionSelection,
    surroundings: &Environment,
) -> Result<ExperimentJob, FileError> {
    experiment_from(file, file, text, rows, surroundings)
}

/// The same of a copy: where it does not say its name, that is the stem of its `source`.
pub fn experiment_from(
    source: &str,
    file: &str,
    text: &str,
    rows: ConditionSelection,
    surroundings: &Environment,
) -> Result<ExperimentJob, FileError> {
    let page = FileText { file, text };
    let table = page.table()?;
    for (key, span, _) in entries(&table) {
        if !KEYS.contains(&key) {
            return Err(page.unknown(key, span.start, "", &KEYS));
        }
    }
    let kind = kind::kind(page, table.get("kind"))?;
    let options = KnownOptions::of(kind);
    let base = match tables(page, &table, "base")? {
        Some(table) => options.base(page, table)?,
        None => Vec::new(),
    };
    let factors = match tables(page, &table, "factors")? {
        Some(table) => options.factors(page, table)?,
        None => Vec::new(),
    };
    let target = table.get(TARGET).map(|value| target(page, kind, value)).transpose()?;
    for factor in &factors {
        let same = |setting: &&OptionValue| setting.key == factor.key;
        if let Some(twice) = base.iter().chain(&target).find(same) {
            let cause = format!("`{}` is a factor, and line {} sets it for all", factor.key, page.line(twice.at));
            return Err(page.refuse(factor.at, cause, "leave one of them out"));
        }
    }
    let design = design::design(page, tables(page, &table, "design")?)?;
    let contrasts = contrasts::contrasts(page, kind, table.get("compare"), &factors)?;
    let left_out = ConditionFilter::read(page, table.get(LEAVE_OUT), &factors)?;
    let lines = CommandLines { page, kind, target: target.as_ref(), base: &base, factors: &factors };
    let combinations = lines.combinations(&left_out);
    if let (true, Some(rows)) = (combinations.is_empty(), table.get(LEAVE_OUT)) {
        return Err(page.refuse(rows.span().start, "no condition is left", "leave out fewer"));
    }
    refuse_too_many_runs(page, &table, &design, combinations.len())?;
    let settled = lines.settle(combinations, rows, surroundings)?;
    let name = name(page, table.get("name"))?.unwrap_or_else(|| stem(source));
    let experiment = Experiment { name, kind, conditions: settled.conditions, design, contrasts };
    Ok(ExperimentJob { experiment, keys: settled.keys, impossible: settled.impossible })
}

fn name(page: FileText<'_>, value: Option<&Spanned<DeValue<'_>>>) -> Result<Option<String>, FileError> {
    let Some(value) = value else { return Ok(None) };
    match value.get_ref().as_str().map(str::trim) {
        Some(name) if !name.is_empty() && !name.contains(['\n', '\r']) => Ok(Some(name.to_owned())),
        _ => {
            Err(page.refuse(value.span().start, "`name` is no line of text", "a few words in quotes, or leave it out"))
        }
    }
}

fn target(page: FileText<'_>, kind: Kind, value: &Spanned<DeValue<'_>>) -> Result<OptionValue, FileError> {
    let at = value.span().start;
    if !kind.has_target() {
        return Err(page.refuse(
            at,
            format!("a `{}` has no target: it is about this host", kind.word()),
            "leave it out",
        ));
    }
    let text = value.get_ref().as_str().ok_or_else(|| {
        page.refuse(at, "`target` is no text", "such as `\"local\"`; several targets are a factor: `[factors]`")
    })?;
    Ok(OptionValue { key: TARGET.into(), text: text.into(), words: vec![text.into()], at })
}

fn tables<'t, 'i>(
    page: FileText<'_>,
    all: &'t DeTable<'i>,
    section: &str,
) -> Result<Option<&'t DeTable<'i>>, FileError> {
    let Some(value) = all.get(section) else { return Ok(None) };
    let refusal =
        || page.refuse(value.span().start, format!("`{section}` is no table"), format!("write `[{section}]`"));
    value.get_ref().as_table().map(Some).ok_or_else(refusal)
}

fn refuse_too_many_runs(
    page: FileText<'_>,
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
    let cause = match runs <= defaults::EXPERIMENT_RUNS_MAX {
        true => format!("that are {} blocks, and {} is the limit", design.blocks_at_most(), defaults::BLOCKS_MAX),
        false => format!("that are {} runs of {conditions} {noun}, and {limit} is the limit", grouped(runs)),
    };
    Err(page.refuse(at, cause, "fewer `runs`, `blocks` or conditions"))
}

/// `x` of `/a/x.toml`.
fn stem(file: &str) -> String {
    std::path::Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
