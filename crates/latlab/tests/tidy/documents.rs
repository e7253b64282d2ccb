//! Documents: decisions are indexed, no path of one machine shows through. scripts/book.sh checks links.

use crate::{Breach, expect_none};

/// Paths that exist on one machine only. Written in pieces, so that this file does not hold them.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tmp", "/w/")];
/// Endings of files that are text.
const TEXT: [&str; 12] =
    [".rs", ".md", ".toml", ".json", ".py", ".sh", ".yml", ".lock", "justfile", ".ci/run", ".txt", "LICENSE-MIT"];

fn machine_paths(path: &str, text: &str) -> Vec<Breach> {
    let shows = |line: &str| MACHINE_PATHS.iter().any(|start| line.contains(start));
    let lines = text.lines().enumerate().filter(|(_, line)| shows(line));
    lines.map(|(number, line)| format!("{path}:{}: a machine's own path: {}", number + 1, line.trim())).collect()
}

#[test]
fn decisions_are_indexed() {
    let index = crate::read("docs/design/README.md");
    let records = crate::files("docs/design", &[".md"]);
    let records = records.iter().filter_map(|path| path.strip_prefix("docs/design/0"));
    let missing = records.filter(|name| !index.contains(&format!("](0{name})")));
    expect_none(
        &missing.map(|name| format!("docs/design/README.md: `0{name}` is not in the index")).collect::<Vec<_>>(),
    );
}

#[test]
fn no_machine_shows_through() {
    let files = crate::files("", &TEXT);
    expect_none(&files.iter().flat_map(|path| machine_paths(path, &crate::read(path))).collect::<Vec<_>>());
}

#[test]
fn machine_paths_are_seen() {
    let path = format!("cd {}someone", MACHINE_PATHS[0]);
    assert_eq!(machine_paths("x.md", &format!("fine\n{path}\n/etc/fstab")).len(), 1);
}
