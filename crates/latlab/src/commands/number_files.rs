//! Files of numbers as groups of runs: each line is an observation.

use super::groups::{self, PathGroup, is_text};
use crate::analysis::comparison::{ObservedRun, RunGroups};
use crate::cli::resolve::Sources;
use crate::diagnostics::Failure;

/// Whether the numbers of `groups` stand in files: all of them do, or none.
pub(super) fn are_numbers(groups: &[PathGroup]) -> Result<bool, Failure> {
    let mut paths = groups.iter().flat_map(|group| &group.paths);
    let texts = paths.clone().filter(|path| is_text(path)).count();
    if let Some(path) = paths.clone().find(|path| !groups::is_there(path)) {
        return Err(Failure::request(format!("cannot read `{}`", path.display()))
            .because("there is no such file or directory")
            .hint("see the path; `latlab list` shows the recordings of a store"));
    }
    let recorded = paths.find(|path| !is_text(path));
    match (texts, recorded) {
        (0, _) => Ok(false),
        (_, None) => Ok(true),
        (_, Some(path)) => Err(Failure::request("cannot compare numbers of files with recordings")
            .because(format!("`{}` is a directory, and other paths are files", path.display()))
            .hint("compare files with files, or recordings with recordings")),
    }
}

/// Each line an observation.
pub(super) fn numbers(paths: &[PathGroup], sources: &Sources) -> Result<RunGroups, Failure> {
    let mut named = Vec::new();
    for group in paths {
        let values = groups::numbers(group, &sources.column)?;
        if values.is_empty() {
            return Err(Failure::request(format!("cannot compare `{}`", group.name))
                .because(format!("it has no number in column {}", sources.column.number))
                .hint("`-C N` picks another column, `-d DELIMS` splits otherwise"));
        }
        let line = |(line, value): (usize, &f64)| ObservedRun::bare(format!("{}:{}", group.name, line + 1), *value);
        named.push((group.name.clone(), values.iter().enumerate().map(line).collect()));
    }
    Ok(RunGroups::named(named)?)
}
