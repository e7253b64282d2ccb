//! The sources of observations and their groups, and what the ministat form can show.

use std::path::PathBuf;

use crate::cli::args::{ColumnArgs, ComparingArgs, GroupingArgs};
use crate::cli::value::{NamedGlob, unusable};
use crate::diagnostics::Failure;
use crate::formats::numbers::TextColumn;
use crate::plan::{Kind, defaults};

/// Sources and grouping of observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Experiment directories, recordings or files of numbers as typed; `-` is standard input. Empty if
    /// `grouping` is by globs.
    pub paths: Vec<PathBuf>,
    /// Assignment of observations to groups.
    pub grouping: Grouping,
    /// Name of the baseline group as typed; `None` selects the first group.
    pub baseline: Option<String>,
    /// Kind of the recordings that are compared; `None` for all.
    pub kind: Option<Kind>,
    /// Column of the values in a file of numbers.
    pub column: TextColumn,
}

/// Rule by which observations are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// One group for each path; runs of an experiment are grouped by condition.
    Paths,
    /// One group for each level of this factor of the recordings, as typed: `load`, `tag:build` …
    By(String),
    Globs(Vec<NamedGlob>),
}

/// The sources of recordings or of numbers.
pub fn sources(typed: &GroupingArgs, column: &ColumnArgs, paths: &[PathBuf]) -> Result<Sources, Failure> {
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(unusable("PATH", "-", "standard input can be read once", "give it once"));
    }
    let grouping = match &typed.by {
        Some(factor) => Grouping::By(factor.clone()),
        None if typed.group.is_empty() => Grouping::Paths,
        None => Grouping::Globs(typed.group.clone()),
    };
    let baseline = typed.baseline.as_deref().map(|level| level.trim().to_owned());
    Ok(Sources { paths: paths.to_vec(), grouping, baseline, kind: typed.kind, column: text_column(column) })
}

/// The column of a file of numbers.
pub fn text_column(typed: &ColumnArgs) -> TextColumn {
    let delimiters = typed.delimiters.clone().map_or_else(|| defaults::TEXT_DELIMITERS.to_vec(), |typed| typed.0);
    TextColumn { number: typed.column.unwrap_or(1), delimiters }
}

/// Refuses what the ministat form does not show.
pub fn expect_ministat(typed: &ComparingArgs) -> Result<(), Failure> {
    if typed.statistic.len() > 1 {
        let cause = "the ministat form shows one statistic of each run";
        return Err(unusable("--statistic", typed.statistic.join(" "), cause, "name one, or leave `--ministat` out"));
    }
    let percent = typed.confidence.unwrap_or_default().percent();
    if !defaults::MINISTAT_CONFIDENCES.contains(&percent) {
        let known = defaults::MINISTAT_CONFIDENCES.map(|percent| percent.to_string()).join(", ");
        let hint = format!("one of {known}; without `--ministat` any");
        return Err(unusable("--confidence", percent, "ministat knows six levels", hint));
    }
    Ok(())
}
