//! Resolution of `latlab import`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Environment, environment};
use crate::cli::args::ImportArgs;
use crate::diagnostics::Failure;
use crate::formats::import::{LogFormat, LogOptions, format_named};

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
    let has_column = typed.log.column.is_some() || typed.log.count_column.is_some();
    Ok(ImportJob {
        file: typed.file.clone(),
        // Columns are of CSV alone.
        format: typed.log.from.or_else(|| format_named("csv").filter(|_| has_column)),
        options: LogOptions {
            unit: typed.log.unit,
            column: typed.log.column.clone(),
            count_column: typed.log.count_column.clone(),
            lost: typed.log.lost.clone(),
            metric: typed.log.metric,
            direction: typed.log.direction.clone(),
        },
        skip_bad: typed.log.skip_bad,
        store: environment::store(&typed.store, environment),
        output: typed.output.clone(),
        tags: environment::tags(&typed.tag)?,
        json: typed.json.json,
    })
}
