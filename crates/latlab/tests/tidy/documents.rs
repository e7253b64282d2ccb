//! Documents: links lead somewhere, decisions are indexed, no path of one machine shows through.

use std::fs;

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

/// Links of the document at `path` that lead nowhere.
fn broken_links(path: &str, text: &str) -> Vec<Breach> {
    let folder = crate::root().join(path).with_file_name("");
    // Pictures are not text.
    let read = |file: &str| fs::read(folder.join(file)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let leads = |link: &str| match link.split_once('#') {
        None => folder.join(link).exists(),
        Some((file, anchor)) => {
            let target = if file.is_empty() { Some(text.to_owned()) } else { read(file) };
            target.is_some_and(|text| anchors(&text).iter().any(|it| it == anchor))
        }
    };
    let local = links(text).filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"));
    let broken = local.filter(|(_, link)| !leads(link));
    broken.map(|(line, link)| format!("{path}:{line}: link to `{link}`, which does not exist")).collect()
}

fn machine_paths(path: &str, text: &str) -> Vec<Breach> {
    let shows = |line: &str| MACHINE_PATHS.iter().any(|start| line.contains(start));
    let lines = text.lines().enumerate().filter(|(_, line)| shows(line));
    lines.map(|(number, line)| format!("{path}:{}: a machine's own path: {}", number + 1, line.trim())).collect()
}

#[test]
fn links_lead_somewhere() {
    let documents = crate::files("", &[".md"]);
    assert!(documents.len() > 6, "only {documents:?}");
    let breaches: Vec<_> = documents.iter().flat_map(|path| broken_links(path, &crate::read(path))).collect();
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
    let text = "# A b: `c`!\n[x](start.md) [y](gone.md#z) [z](#a-b-c) [w](#q)\n```\n[n](no.md)\n```\n`[n](no.md)`\n[h](http://x)";
    let breaches = broken_links("docs/x.md", text);
    assert_eq!(breaches.len(), 2, "{breaches:?}");
    let path = format!("cd {}someone", MACHINE_PATHS[0]);
    assert_eq!(machine_paths("x.md", &format!("fine\n{path}\n/etc/fstab")).len(), 1);
}
