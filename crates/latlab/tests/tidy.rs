//! What a machine can check of CONTRIBUTING.md: the shape of the code in numbers, and the documents.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are made, not written.
const MADE: [&str; 6] = ["target", "dist", "latlab-runs", ".git", "corpus", "artifacts"];

/// One broken rule, as `path:line: error`.
type Breach = String;

/// Fails with every breach on a line of its own.
fn expect_none(breaches: &[Breach]) {
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("two folders below the root")
}

/// Every file below `folder` of the repository whose name ends in one of `endings`, sorted.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.retain(|path| endings.iter().any(|ending| path.ends_with(ending)));
    found.sort();
    found
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("a readable folder")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if !path.is_dir() || path.is_symlink() {
            found.push(path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned());
        } else if !MADE.contains(&name.as_str()) {
            walk(&path, found);
        }
    }
}

/// Code that takes clock readings, random numbers and settings as arguments, in its folder or in a crate of that name.
const PURE: [&str; 7] = ["stats", "units", "plan", "recipe", "wire", "analysis", "report"];
const IMPURE: [&str; 6] = ["latlab_sys", "rustix", "Instant::now", "SystemTime::now", "env::var", "UdpSocket"];

#[test]
fn pure_code_reads_no_clock_and_no_system() {
    let is_pure = |path: &&String| {
        let folders = PURE.map(|name| [format!("/src/{name}/"), format!("crates/latlab-{name}/src/")]);
        folders.iter().flatten().any(|folder| path.contains(folder))
    };
    let sources = files("crates", &[".rs"]);
    let breaches: Vec<Breach> = sources
        .iter()
        .filter(is_pure)
        .flat_map(|path| {
            let text = read(path);
            let found = IMPURE.into_iter().filter(|word| text.contains(word)).collect::<Vec<_>>();
            found.into_iter().map(move |word| format!("{path}: `{word}` in pure code; take it as an argument"))
        })
        .collect();
    expect_none(&breaches);
}

/// The text of a file, by its path in the repository.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
