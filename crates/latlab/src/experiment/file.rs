//! The file of an experiment: replaced in one step, and compared line by line.

use std::io::Write;
use std::path::Path;
use std::{fs, io};

/// Replaces the file at `path` in one step, on the disk before this returns.
pub(super) fn put(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = fs::File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(next, path)
}

/// The first line in which two files differ, in words.
pub(super) fn first_difference(old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let (mut old, mut new) = (old.lines(), new.lines());
    for line in 1.. {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => (),
            (None, None) => break,
            (old, new) => {
                let word = |line: Option<&str>| line.map_or("not there".into(), |line| format!("`{}`", line.trim()));
                return Some(format!("line {line} is {}, it was {}", word(new), word(old)));
            }
        }
    }
    Some("its line ends are others".into())
}
