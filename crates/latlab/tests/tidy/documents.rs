//! Documents: links lead somewhere, decisions are indexed, no path of one machine shows through.

use std::path::{Component, Path, PathBuf};

use crate::{Breach, expect_none};

/// Paths that exist on one machine only. Written in pieces, so that this file does not hold them.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tmp", "/w/")];
/// Endings of files that are text.
const TEXT: [&str; 12] =
    [".rs", ".md", ".toml", ".json", ".py", ".sh", ".yml", ".lock", "justfile", ".ci/run", ".txt", "LICENSE-MIT"];

/// The lines of Markdown `text` outside of fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

/// Every link as (line, target), code left out.
fn links(text: &str) -> impl Iterator<Item = (usize, String)> {
    prose(text).flat_map(|(number, line)| {
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = plain.split("](").skip(1).filter_map(|piece| piece.split_once(')'));
        targets.map(|(target, _)| (number, target.trim().to_owned())).collect::<Vec<_>>()
    })
}

/// The anchors that the headings of `text` make.
fn anchors(text: &str) -> Vec<String> {
    let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    let titles = headings.map(|(_, line)| line.trim_start_matches('#').trim().to_lowercase());
    titles.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// Links of the document at `path` that lead nowhere; `read` gives the text of a file, if it exists.
fn broken_links(path: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (line, link) in links(text).filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:")) {
        let (file, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
        let target = if file.is_empty() { path.to_owned() } else { beside(path, file) };
        let leads = read(&target).is_some_and(|text| anchor.is_empty() || anchors(&text).iter().any(|it| it == anchor));
        if !leads {
            breaches.push(format!("{path}:{line}: link to `{link}`, which does not exist"));
        }
    }
    breaches
}

/// `file` as a path of the repository, seen from the document at `path`.
fn beside(path: &str, file: &str) -> String {
    let joined = Path::new(path).parent().unwrap_or(Path::new("")).join(file);
    let mut clean = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean.to_string_lossy().into_owned()
}

fn machine_paths(path: &str, text: &str) -> Vec<Breach> {
    let shows = |line: &str| MACHINE_PATHS.iter().any(|start| line.contains(start));
    let lines = text.lines().enumerate().filter(|(_, line)| shows(line));
    lines.map(|(number, line)| format!("{path}:{}: a machine's own path: {}", number + 1, line.trim())).collect()
}

#[test]
fn links_lead_somewhere() {
    let read = |path: &str| {
        let whole = crate::root().join(path);
        // Pictures are not text.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if whole.is_dir() { Some(String::new()) } else { std::fs::read(whole).ok().map(text) }
    };
    let documents = crate::files("", &[".md"]);
    assert!(documents.len() > 6, "only {documents:?}");
    let breaches: Vec<_> = documents.iter().flat_map(|path| broken_links(path, &crate::read(path), read)).collect();
    expect_none(&breaches);
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
fn broken_links_and_machine_paths_are_seen() {
    let text = "# A b: `c`!\n[x](there.md) [y](gone.md#z) [z](#a-b-c) [w](#q)\n```\n[n](no.md)\n```\n`[n](no.md)`\n[h](http://x)";
    let read = |path: &str| match path {
        "docs/x.md" => Some(text.to_owned()),
        "docs/there.md" => Some(String::new()),
        _ => None,
    };
    let breaches = broken_links("docs/x.md", text, read);
    assert_eq!(breaches.len(), 2, "{breaches:?}");
    assert_eq!(beside("docs/design/x.md", "../../README.md"), "README.md");
    let path = format!("cd {}someone", MACHINE_PATHS[0]);
    assert_eq!(machine_paths("x.md", &format!("fine\n{path}\n/etc/fstab")).len(), 1);
}
