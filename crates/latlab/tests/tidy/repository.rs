//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::source::Source;

/// Folders that are made, not written.
const MADE: [&str; 6] = ["target", "dist", "latlab-runs", ".git", "corpus", "artifacts"];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the crate lies two folders below the root")
}

/// Every file below `folder` of the repository whose name ends in one of `endings`, sorted.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.retain(|path| endings.iter().any(|ending| path.ends_with(ending)));
    found.sort();
    found
}

/// The sources of the crates without `unsafe`.
pub(crate) fn own_sources() -> Vec<Source> {
    let is_own = |path: &str| !["crates/latlab-sys/", "crates/latlab-dds/"].iter().any(|other| path.starts_with(other));
    sources("crates").into_iter().filter(|source| source.path.contains("/src/") && is_own(&source.path)).collect()
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(|entry| entry.expect("a readable folder")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && !path.is_symlink() {
            if !MADE.contains(&name.as_str()) {
                walk(&path, found);
            }
        } else {
            let relative = path.strip_prefix(root()).expect("below the root");
            found.push(relative.to_string_lossy().into_owned());
        }
    }
}

/// The text of a file, by its path in the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read `{path}`: {error}"))
}

/// Every Rust file below `folder`.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    files(folder, &[".rs"]).iter().map(|path| Source::new(path, &read(path))).collect()
}

#[test]
fn the_repository_is_found() {
    assert!(files("", &["Cargo.toml"]).contains(&"crates/latlab/Cargo.toml".to_string()));
    assert!(sources("crates/latlab/src").len() > 20);
    assert!(files("", &[".rs"]).iter().all(|path| !path.starts_with("target/")));
}
