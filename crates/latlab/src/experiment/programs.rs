//! The programs that an experiment measures: one that is exchanged between its runs makes their comparison one of other
//! programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::plan::{Experiment, ExperimentCondition, Hooks, Target};

/// BLAKE3, hexadecimal, of each program by its path as typed.
pub(crate) type Programs = BTreeMap<String, String>;

/// The programs of `experiment` that are named by a path, and that no other hook may have built: the first words of
/// `before-block` and `before-run`; without these the executable words of `service` and of a target. One that cannot be read
/// is left out.
pub(crate) fn programs_of(experiment: &Experiment) -> Programs {
    let hashed = |word: &str| Some((word.to_owned(), hash_of(Path::new(word)).ok()??));
    words(experiment).into_iter().filter_map(hashed).collect()
}

/// Those of the programs `before` that `experiment` still names: its file may have been changed.
pub(crate) fn named_in(experiment: &Experiment, before: &Programs) -> Programs {
    let words = words(experiment);
    let named = before.iter().filter(|(program, _)| words.contains(program.as_str()));
    named.map(|(program, hash)| (program.clone(), hash.clone())).collect()
}

/// The first program that is in `before` and differs `now`, or is gone.
pub(crate) fn exchanged<'a>(before: &'a Programs, now: &Programs) -> Option<&'a str> {
    before.iter().find(|(program, hash)| now.get(*program) != Some(hash)).map(|(program, _)| program.as_str())
}

fn words(experiment: &Experiment) -> BTreeSet<&str> {
    experiment.conditions.iter().flat_map(words_of).collect()
}

fn words_of(condition: &ExperimentCondition) -> Vec<&str> {
    let Hooks { before_block, before_run, service, .. } = &condition.hooks;
    if let Some(first) = before_block.as_ref().or(before_run.as_ref()) {
        return first.0.first().map(String::as_str).into_iter().collect();
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
        let programs = |hash: &str| Programs::from([("./server".to_owned(), hash.to_owned())]);
        assert_eq!(exchanged(&programs(&one), &programs(&two)), Some("./server"));
        assert_eq!(exchanged(&programs(&one), &Programs::new()), Some("./server"));
        assert_eq!(exchanged(&programs(&one), &programs(&one)), None);
        assert!(hash_of(Path::new("/usr/bin")).expect("a directory").is_none());
        assert!(hash_of(&directory.path().join("absent")).is_err());
    }
}
