//! The programs that an experiment measures: one that is exchanged between its runs makes their comparison one of other
//! programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::plan::{ExperimentCondition, Hooks, Target};

/// BLAKE3, hexadecimal, of each program by its path as typed.
pub(crate) type Programs = BTreeMap<String, String>;

/// The programs of conditions as they are now: the words of `service` and of a target that are the path of an executable file,
/// except where `before-block` or `before-run` may have built them.
pub(crate) struct FoundPrograms<'a>(BTreeMap<&'a str, Result<String, String>>);

impl<'a> FoundPrograms<'a> {
    /// Each is read once, however many conditions have it.
    pub(crate) fn of(conditions: impl IntoIterator<Item = &'a ExperimentCondition>) -> FoundPrograms<'a> {
        let words: BTreeSet<&str> = conditions.into_iter().flat_map(words_of).collect();
        FoundPrograms(words.into_iter().map(|word| (word, hash_or_refusal(Path::new(word)))).collect())
    }

    /// Those that are not the ones that runs have `used`.
    pub(crate) fn exchanged(&self, used: &Programs) -> Vec<ExchangedProgram> {
        let differing =
            self.0.iter().filter(|(path, now)| used.get(**path).is_some_and(|hash| now.as_ref() != Ok(hash)));
        let exchanged = |(path, now): (&&str, &Result<String, String>)| ExchangedProgram {
            path: (*path).to_owned(),
            refusal: now.clone().err(),
        };
        differing.map(exchanged).collect()
    }

    /// Those that runs have not `used`.
    pub(crate) fn unused(&self, used: &Programs) -> Programs {
        let found = self.0.iter().filter_map(|(path, now)| Some(((*path).to_owned(), now.as_ref().ok()?.clone())));
        found.filter(|(path, hash)| used.get(path) != Some(hash)).collect()
    }
}

/// A program that runs have used, and that is another one now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangedProgram {
    path: String,
    /// Why it cannot be used; `None` if another program is there.
    refusal: Option<String>,
}

impl ExchangedProgram {
    /// Whether another program is in its place.
    pub(crate) const fn is_replaced(&self) -> bool {
        self.refusal.is_none()
    }
}

impl fmt::Display for ExchangedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            None => write!(f, "`{}` is not the program that runs have used", self.path),
            Some(refusal) => write!(f, "`{}`, which runs have used, {refusal}", self.path),
        }
    }
}

fn words_of(condition: &ExperimentCondition) -> Vec<&str> {
    let Hooks { before_block, before_run, service, .. } = &condition.hooks;
    if before_block.is_some() || before_run.is_some() {
        return Vec::new();
    }
    let targets = condition.plan.runs.iter().filter_map(|run| match &run.target {
        Target::Command { words } => Some(words),
        _ => None,
    });
    service.iter().map(|hook| &hook.0).chain(targets).flatten().map(String::as_str).collect()
}

/// The hash of a program, or why it cannot be used.
fn hash_or_refusal(path: &Path) -> Result<String, String> {
    match hash_of(path) {
        Ok(found) => found.ok_or_else(|| "is not an executable file".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("is not found from this directory".into()),
        Err(error) => Err(format!("cannot be read: {}", latlab_sys::errno::explain(&error))),
    }
}

/// `None` if it is not an executable file with a path.
fn hash_of(path: &Path) -> io::Result<Option<String>> {
    let found = fs::metadata(path)?;
    if path.components().count() < 2 || !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Ok(None);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_hash_of_its_content_and_other_files_have_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("server");
        fs::write(&path, "one").expect("written");
        assert_eq!(hash_of(&path).expect("read"), None, "not executable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changed");
        let one = hash_of(&path).expect("read").expect("a program");
        fs::write(&path, "two").expect("written");
        let two = hash_of(&path).expect("read").expect("a program");
        assert!(hash_of(Path::new("/usr/bin")).expect("a directory").is_none());
        assert!(hash_of(&directory.path().join("absent")).is_err());
        let text = path.display().to_string();
        let sentences = |used: &str| {
            let found = FoundPrograms(BTreeMap::from([(&*text, hash_or_refusal(&path))]));
            let used = Programs::from([(text.clone(), used.to_owned())]);
            let all = found.exchanged(&used).iter().map(ToString::to_string).collect::<Vec<_>>();
            (all, found.unused(&used).into_values().collect::<Vec<_>>())
        };
        assert_eq!(sentences(&two), (vec![], vec![]));
        assert_eq!(
            sentences(&one),
            (vec![format!("`{text}` is not the program that runs have used")], vec![two.clone()])
        );
        let refused = |refusal: &str| (vec![format!("`{text}`, which runs have used, {refusal}")], vec![]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert_eq!(sentences(&two), refused("is not an executable file"));
        fs::remove_file(&path).expect("removed");
        assert_eq!(sentences(&two), refused("is not found from this directory"));
    }
}
