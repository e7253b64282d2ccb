//! Resolution of `latlab check-published`.

use std::path::PathBuf;

use super::Sources;
use super::compare::sources;
use crate::cli::args::{CheckPublishedArgs, GroupingArgs};
use crate::cli::value::unusable;
use crate::diagnostics::Failure;
use crate::formats::import::LogFormat;
use crate::formats::numbers::TextColumn;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

/// The resolved `latlab check-published`. Claims are kept as typed; the analysis parses them.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckPublishedJob {
    /// What the claims are checked against.
    pub subject: CheckedSubject,
    pub claims: Vec<String>,
    /// The file of further claims.
    pub claims_file: Option<PathBuf>,
    /// Metric of recordings as typed; `None` selects the main metric of their kind.
    pub metric: Option<String>,
    /// True for one JSON document instead of text.
    pub json: bool,
}

/// What claims are checked against.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckedSubject {
    Sample(RawSample),
    /// Groups of runs or numbers.
    Groups(Sources),
}

#[derive(Clone, Debug, PartialEq)]
pub struct RawSample {
    /// A recording or a file of numbers; `-` is standard input.
    pub path: PathBuf,
    /// Unit of numbers and logs that do not state it, and of claims without a unit.
    pub unit: Option<TimeUnit>,
    /// Column of the numbers of a file.
    pub column: TextColumn,
    /// The format of a log; `None` to find it by the content.
    pub from: Option<&'static LogFormat>,
    /// The column of a CSV file.
    pub csv_column: Option<String>,
    /// The direction of an fio log.
    pub direction: Option<String>,
    /// Whether the columns of a file of numbers are stated, so that it is not read as a log.
    pub is_table: bool,
    /// Column of the packet ids in a file of numbers.
    pub id_column: Option<TextColumn>,
    /// The interval of sleeps whose lateness a file of numbers has.
    pub sleep: Option<Nanos>,
    /// True if the published figures are of half round trips.
    pub half: bool,
}

/// Resolves the arguments and checks them against each other.
pub fn check_published(typed: &CheckPublishedArgs) -> Result<CheckPublishedJob, Failure> {
    let paths: Vec<PathBuf> = typed.path.iter().cloned().collect();
    let grouping = GroupingArgs { group: typed.group.clone(), ..GroupingArgs::default() };
    let sources = sources(&grouping, &typed.column, &paths)?;
    let subject = match &typed.path {
        None => CheckedSubject::Groups(sources),
        Some(path) => CheckedSubject::Sample(RawSample {
            path: path.clone(),
            unit: typed.sample.unit,
            from: typed.sample.from.as_deref().map(super::import::format).transpose()?,
            csv_column: typed.sample.csv_column.clone(),
            direction: typed.sample.direction.as_deref().map(super::import::direction).transpose()?,
            is_table: typed.column.column.is_some()
                || typed.column.delimiters.is_some()
                || typed.sample.id_column.is_some(),
            id_column: id_column(typed, &sources.column)?,
            column: sources.column,
            sleep: typed.sample.sleep,
            half: typed.sample.half,
        }),
    };
    Ok(CheckPublishedJob {
        subject,
        claims: typed.claims.claims.clone(),
        claims_file: typed.claims.claims_file.clone(),
        metric: typed.sample.metric.clone(),
        json: typed.json.json,
    })
}

fn id_column(typed: &CheckPublishedArgs, column: &TextColumn) -> Result<Option<TextColumn>, Failure> {
    let Some(number) = typed.sample.id_column else { return Ok(None) };
    if typed.path.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        let cause = "standard input can be read once, and the ids would need a second reading";
        return Err(unusable("--id-column", number, cause, "name the file"));
    }
    Ok(Some(TextColumn { number, ..column.clone() }))
}
