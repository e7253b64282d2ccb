use std::path::PathBuf;

use super::{RequestError, value};
use crate::cli::args::GroupingArgs;
use crate::formats::numbers::TextColumn;
use crate::plan::defaults;

/// Where observations come from, and which belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// As typed: a directory of an experiment, recordings, files of numbers; `-` is standard input. Empty where globs
    /// name the groups.
    pub paths: Vec<PathBuf>,
    /// Which belong together.
    pub grouping: Grouping,
    /// The name of the group that others are compared with, as typed; none: the first.
    pub baseline: Option<String>,
    /// Where the numbers stand in a file of numbers.
    pub column: TextColumn,
}

/// Which observations belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each path is a group; the runs of an experiment are grouped by their conditions.
    Paths,
    /// Recordings that have this factor in common, as typed: `load`, `tag:build` …
    By(String),
    /// Whatever a glob matches.
    Globs(Vec<NamedGlob>),
}

/// A group by `--group NAME=GLOB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGlob {
    /// Its name.
    pub name: String,
    /// The pattern of its paths.
    pub glob: String,
}

/// Settles where observations come from.
pub(super) fn sources(typed: &GroupingArgs, paths: &[PathBuf]) -> Result<Sources, RequestError> {
    once_from_stdin(paths)?;
    let baseline = typed.baseline.as_deref().map(|level| level.trim().to_owned());
    Ok(Sources { paths: paths.to_vec(), grouping: grouping(typed, paths)?, baseline, column: column(typed)? })
}

fn grouping(typed: &GroupingArgs, paths: &[PathBuf]) -> Result<Grouping, RequestError> {
    if let Some(factor) = &typed.by {
        return Ok(Grouping::By(factor.clone()));
    }
    if typed.group.is_empty() {
        return Ok(Grouping::Paths);
    }
    if let Some(path) = paths.first() {
        return Err(RequestError::OutOfPlace {
            option: "--group",
            with: path.display().to_string(),
            cause: "a group is what its glob matches; the path belongs to none",
            hint: "give it to a group, quoted so that the shell leaves it alone: `--group 'before=runs/*'`",
        });
    }
    typed.group.iter().map(|typed| named_glob(typed)).collect::<Result<_, _>>().map(Grouping::Globs)
}

fn named_glob(typed: &str) -> Result<NamedGlob, RequestError> {
    let refuse =
        |cause: &str| value::unusable("--group", typed, cause, "`NAME=GLOB`, such as `'before=runs/*-ping-*'`");
    let (name, glob) = typed.split_once('=').ok_or_else(|| refuse("it has no `=`"))?;
    match (name.trim(), glob) {
        ("", _) => Err(refuse("the group has no name")),
        (_, "") => Err(refuse("nothing says what belongs to it")),
        (name, glob) => Ok(NamedGlob { name: name.into(), glob: glob.into() }),
    }
}

fn column(typed: &GroupingArgs) -> Result<TextColumn, RequestError> {
    let number = match typed.column.as_deref() {
        None => 1,
        Some(typed) => value::whole("-C", typed, 1..=defaults::TEXT_COLUMN_MAX)? as usize,
    };
    let delimiters = match typed.delimiters.as_deref() {
        None => defaults::TEXT_DELIMITERS,
        Some("") => return Err(value::unusable("-d", "", "nothing would stand between columns", "such as `-d ,`")),
        Some(typed) => typed.as_bytes(),
    };
    Ok(TextColumn { number, delimiters: delimiters.to_vec() })
}

fn once_from_stdin(paths: &[PathBuf]) -> Result<(), RequestError> {
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        let cause = "standard input can be read once";
        return Err(value::unusable("PATH", "-", cause, "give it once"));
    }
    Ok(())
}
