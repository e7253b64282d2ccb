//! The programs that an experiment measures: one that is exchanged between its runs makes their comparison one of other
//! programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::plan::{ExperimentCondition, Hooks, Target};

/// BLAKE3, hexadecimal, of each program by its path as typed.
pub(crate) type Programs = BTreeMap<String, String>;

/// The programs of `condition`: the words of `service` and of a target that are the path of an executable file; none if
/// `before-block` or `before-run` may have built them.
pub(crate) fn programs_of(condition: &ExperimentCondition) -> Programs {
    let hashed = |word: &str| Some((word.to_owned(), hash_of(Path::new(word)).ok()??));
    words_of(condition).into_iter().filter_map(hashed).collect()
}

/// How programs of `condition` differ now from those that runs have `used`, a sentence for each.
pub(crate) fn exchanged(condition: &ExperimentCondition, used: &Programs) -> BTreeSet<ExchangedProgram> {
    let named = words_of(condition);
    let named = named.into_iter().filter_map(|word| used.get_key_value(word));
    named.filter_map(|(path, hash)| ExchangedProgram::of(path, hash)).collect()
}

/// A program that runs have used, and that is another one now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExchangedProgram {
    /// Its path as typed.
    path: String,
    /// Why it cannot be used; `None` if another program is there.
    refusal: Option<String>,
}

impl ExchangedProgram {
    fn of(path: &str, hash: &str) -> Option<ExchangedProgram> {
        let refusal = match hash_of(Path::new(path)) {
            Ok(Some(now)) if now == hash => return None,
            Ok(Some(_)) => None,
            Ok(None) => Some("is not an executable file".into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("is not found from this directory".into()),
            Err(error) => Some(format!("cannot be read: {}", latlab_sys::errno::explain(&error))),
        };
        Some(ExchangedProgram { path: path.to_owned(), refusal })
    }

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

/// `None` if it is not an executable file with a path.
fn hash_of(path: &Path) -> io::Result<Option<String>> {
    let found = fs::metadata(path)?;
    if path.components().count() < 2 || !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Ok(None);
    }
    let (mut file, mut hasher, mut buffer) = (File::open(path)?, blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hasher.finalize().to_hex().to_string())),
            bytes => _ = hasher.update(&buffer[..bytes]),
        }
    }
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
        let sentence = |hash: &str| ExchangedProgram::of(&text, hash).map(|program| program.to_string());
        assert_eq!(sentence(&two), None);
        assert_eq!(sentence(&one), Some(format!("`{text}` is not the program that runs have used")));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert_eq!(sentence(&two), Some(format!("`{text}`, which runs have used, is not an executable file")));
        fs::remove_file(&path).expect("removed");
        assert_eq!(sentence(&two), Some(format!("`{text}`, which runs have used, is not found from this directory")));
    }
}
