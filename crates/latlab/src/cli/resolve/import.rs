//! Resolution of `latlab import`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Environment, environment};
use crate::cli::args::{ImportArgs, LogArgs};
use crate::cli::value::unusable;
use crate::diagnostics::Failure;
use crate::formats::import::{FORMATS, LogFormat, LogOptions, format_named};
use crate::metric::Metric;
use crate::units::human::{TimeUnit, suggestion};

#[derive(Clone, Debug)]
pub struct ImportJob {
    /// The log; `-` is standard input.
    pub file: PathBuf,
    /// Its format; `None` to find it by the content.
    pub format: Option<&'static LogFormat>,
    /// What the user states about it.
    pub options: LogOptions,
    /// Whether malformed lines are skipped.
    pub skip_bad: bool,
    pub store: PathBuf,
    /// A directory for the recording that is not in the store.
    pub output: Option<PathBuf>,
    pub tags: BTreeMap<String, String>,
    /// Whether the result is a JSON document.
    pub json: bool,
}

pub fn import(typed: &ImportArgs, environment: &Environment) -> Result<ImportJob, Failure> {
    Ok(ImportJob {
        file: typed.file.clone(),
        format: typed.log.from.as_deref().map(format).transpose()?,
        options: options(&typed.log)?,
        skip_bad: typed.log.skip_bad,
        store: environment::store(&typed.store, environment),
        output: typed.output.clone(),
        tags: environment::tags(&typed.tag)?,
        json: typed.json.json,
    })
}

/// The format of that name.
pub(super) fn format(typed: &str) -> Result<&'static LogFormat, Failure> {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let unknown = || unusable("--from", typed, "it is not a format of logs", suggestion(typed, &names));
    format_named(typed).ok_or_else(unknown)
}

fn options(typed: &LogArgs) -> Result<LogOptions, Failure> {
    Ok(LogOptions {
        unit: typed.unit.as_deref().map(unit).transpose()?,
        column: typed.column.clone(),
        metric: typed.metric.as_deref().map(metric).transpose()?,
        direction: typed.direction.as_deref().map(direction).transpose()?,
    })
}

fn unit(typed: &str) -> Result<TimeUnit, Failure> {
    let unit = TimeUnit::from_word(typed);
    unit.ok_or_else(|| unusable("--unit", typed, "it is not a unit of time", "ns, us, ms or s"))
}

fn metric(typed: &str) -> Result<Metric, Failure> {
    let metric = Metric::from_name(typed).filter(|metric| Metric::VALUES.contains(metric));
    let names = Metric::VALUES.map(Metric::name);
    metric.ok_or_else(|| unusable("--metric", typed, "values of a log are not of it", suggestion(typed, &names)))
}

/// The direction of that name.
pub(super) fn direction(typed: &str) -> Result<String, Failure> {
    const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
    if DIRECTIONS.contains(&typed) {
        Ok(typed.into())
    } else {
        Err(unusable("--direction", typed, "it is not a direction of fio", suggestion(typed, &DIRECTIONS)))
    }
}
