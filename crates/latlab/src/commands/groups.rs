//! Which paths belong together, and the numbers of those that are files.

use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::cli::resolve::{Grouping, NamedGlob, Sources};
use crate::diagnostics::{Failure, in_words};
use crate::formats::numbers::{self, NumbersError, TextColumn};

/// Standard input, as typed.
const DASH: &str = "-";

/// A group before anything of it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathGroup {
    /// Its name.
    pub(super) name: String,
    /// Its paths: at least one.
    pub(super) paths: Vec<PathBuf>,
}

/// Whether observations stand in `path` one on a line; otherwise it is a recording or a directory of them.
pub(super) fn is_text(path: &Path) -> bool {
    !path.is_dir()
}

/// Whether anything is at `path`; standard input always is.
pub(super) fn is_there(path: &Path) -> bool {
    path.as_os_str() == DASH || path.exists()
}

/// The groups that paths and globs make. What `--by` asks is for recordings to say: there each path is a group.
pub(super) fn of(sources: &Sources) -> Result<Vec<PathGroup>, Failure> {
    let Grouping::Globs(globs) = &sources.grouping else {
        return Ok(sources
            .paths
            .iter()
            .map(|path| PathGroup { name: name(path), paths: vec![path.clone()] })
            .collect());
    };
    let mut groups: Vec<PathGroup> = Vec::new();
    for glob in globs {
        let paths = matched(glob)?;
        match groups.iter_mut().find(|group| group.name == glob.name) {
            Some(group) => group.paths.extend(paths),
            None => groups.push(PathGroup { name: glob.name.clone(), paths }),
        }
    }
    Ok(groups)
}

/// The numbers in the files of `group`, one file after the other.
pub(super) fn numbers(group: &PathGroup, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    let read = |path: &PathBuf| match path.as_os_str() == DASH {
        true => numbers::read_numbers(numbers::STDIN, io::stdin().lock(), column),
        false => numbers::read_file(path, column),
    };
    let mut values = read(&group.paths[0])?;
    for path in &group.paths[1..] {
        values.append(&mut read(path)?);
    }
    Ok(values)
}

fn name(path: &Path) -> String {
    if path.as_os_str() == DASH { numbers::STDIN.into() } else { path.display().to_string() }
}

/// What `--group` means, in alphabetical order.
fn matched(NamedGlob { name, glob }: &NamedGlob) -> Result<Vec<PathBuf>, Failure> {
    let failure = || Failure::request(format!("cannot make the group `{name}` of `{glob}`"));
    Pattern::new(glob)
        .map_err(|error| failure().because(error.msg).hint("`*`, `?`, `[abc]` and `**` have a meaning"))?;
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let found = glob::glob_with(glob, options).map_err(|error| failure().because(error.msg))?;
    let paths = found.collect::<Result<Vec<_>, _>>().map_err(|error| {
        Failure { exit_code: 3, ..failure() }.because(format!(
            "{}: {}",
            error.path().display(),
            in_words(error.error())
        ))
    })?;
    match paths.as_slice() {
        [] => Err(failure().because("nothing matches").hint(format!("`ls -d {glob}` shows what does"))),
        _ => Ok(paths),
    }
}
