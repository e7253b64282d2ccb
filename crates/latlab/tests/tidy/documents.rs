//! Documents: links lead somewhere, rows are in tables, decisions have a status and are indexed, no machine shows through.

use std::path::{Component, Path, PathBuf};

use crate::{Breach, expect_none, repository};

/// Paths that exist on one machine only. Written in pieces, so that this file does not hold them.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tmp", "/w/")];
/// Endings of files that are text.
const TEXT: [&str; 12] =
    [".rs", ".md", ".toml", ".json", ".py", ".sh", ".yml", ".lock", "justfile", ".ci/run", ".txt", "LICENSE-MIT"];

/// Every link in Markdown `text` as (line, target), code left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for piece in plain.split("](").skip(1) {
            if let Some((target, _)) = piece.split_once(')') {
                found.push((number, target.trim().to_string()));
            }
        }
    }
    found
}

/// The lines outside of fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

/// The anchors that the headings of `text` make.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    headings
        .map(|(_, line)| line.trim_start_matches('#').trim().to_lowercase())
        .map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// Links of the document at `path` that lead nowhere; `read` gives the text of a file, if it exists.
fn broken_links(path: &str, text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (line, link) in links(text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
        let target = if file.is_empty() { path.to_string() } else { beside(path, file) };
        match read(&target) {
            None => breaches.push(format!("{path}:{line}: link to `{link}`, which does not exist")),
            Some(text) if !anchor.is_empty() && !anchors(&text).iter().any(|found| found == anchor) => {
                breaches.push(format!("{path}:{line}: link to `{link}`, which has no such heading"));
            }
            Some(_) => {}
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

/// The errors of decision record `name`.
fn record_breaches(name: &str, text: &str, index: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let status = text.lines().find_map(|line| line.strip_prefix("Status: "));
    let known = ["proposed", "accepted", "superseded"];
    if !status.is_some_and(|status| known.iter().any(|word| status.starts_with(word))) {
        breaches.push(format!("docs/design/{name}: no line `Status: proposed|accepted|superseded…`"));
    }
    if !index.contains(&format!("]({name})")) {
        breaches.push(format!("docs/design/README.md: `{name}` is not in the index"));
    }
    breaches
}

/// Rows of the document at `path` that a reader sees as text, or with cells beyond the header's.
fn stray_rows(path: &str, text: &str) -> Vec<Breach> {
    let rows: Vec<(usize, &str)> = prose(text).filter(|(_, line)| line.starts_with('|')).collect();
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    let tables = rows.chunk_by(|one, next| one.0 + 1 == next.0);
    let strays = tables.flat_map(|table| match table {
        [header, separator, rows @ ..] if separator.1.starts_with("| ---") => {
            let of_header = cells(header.1);
            rows.iter().filter(|row| cells(row.1) != of_header).copied().collect()
        }
        rows => rows.to_vec(),
    });
    strays.map(|(line, row)| format!("{path}:{line}: a row outside of its table: {row}")).collect()
}

fn is_record(name: &str) -> bool {
    name.len() > 5 && name.as_bytes()[..4].iter().all(u8::is_ascii_digit) && name.as_bytes()[4] == b'-'
}

fn machine_paths(path: &str, text: &str) -> Vec<Breach> {
    let shows = |line: &str| MACHINE_PATHS.iter().any(|start| line.contains(start));
    let lines = text.lines().enumerate().filter(|(_, line)| shows(line));
    lines.map(|(number, line)| format!("{path}:{}: a machine's own path: {}", number + 1, line.trim())).collect()
}

#[test]
fn links_lead_somewhere() {
    let read = |path: &str| {
        let whole = repository::root().join(path);
        // Pictures are not text.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if whole.is_dir() { Some(String::new()) } else { std::fs::read(whole).ok().map(text) }
    };
    let documents = repository::files("", &[".md"]);
    assert!(documents.len() > 6, "only {documents:?}");
    expect_none(documents.iter().flat_map(|path| broken_links(path, &repository::read(path), read)).collect());
}

#[test]
fn rows_are_in_their_tables() {
    let documents = repository::files("", &[".md"]);
    expect_none(documents.iter().flat_map(|path| stray_rows(path, &repository::read(path))).collect());
}

#[test]
fn decisions_have_a_status_and_are_indexed() {
    let index = repository::read("docs/design/README.md");
    let records = repository::files("docs/design", &[".md"]);
    let named = records.iter().filter_map(|path| path.strip_prefix("docs/design/")).filter(|name| is_record(name));
    let breaches =
        named.flat_map(|name| record_breaches(name, &repository::read(&format!("docs/design/{name}")), &index));
    expect_none(breaches.collect());
}

#[test]
fn no_machine_shows_through() {
    let files = repository::files("", &TEXT);
    expect_none(files.iter().flat_map(|path| machine_paths(path, &repository::read(path))).collect());
}

#[test]
fn broken_links_are_seen() {
    let text = "# A b: `c`!\n[x](there.md) [y](gone.md#z) [z](#a-b-c) [w](#q)\n```\n[n](no.md)\n```\n`[n](no.md)`\n[h](http://x)";
    let read = |path: &str| match path {
        "docs/x.md" => Some(text.to_string()),
        "docs/there.md" => Some(String::new()),
        _ => None,
    };
    let breaches = broken_links("docs/x.md", text, read);
    assert_eq!(breaches.len(), 2, "{breaches:?}");
    assert_eq!(beside("docs/design/x.md", "../../README.md"), "README.md");
}

#[test]
fn a_row_outside_of_its_table_is_seen() {
    let table = "| a | b |\n| --- | --- |\n| c | d \\| e |\n";
    assert!(stray_rows("x.md", &format!("{table}\n```\n| f |\n```\n")).is_empty());
    let stray = stray_rows("x.md", &format!("{table}| f | g | h |\n\n| i | j |\n"));
    assert_eq!(stray.len(), 2, "{stray:?}");
}

#[test]
fn a_record_without_status_or_index_is_seen() {
    assert_eq!(record_breaches("0009-x.md", "# 9", "").len(), 2);
    assert_eq!(record_breaches("0009-x.md", "Status: maybe", "[x](0009-x.md)").len(), 1);
    assert!(record_breaches("0009-x.md", "Status: accepted, 2026-11.", "[x](0009-x.md)").is_empty());
    assert!(is_record("0001-wire.md") && !is_record("dependencies.md") && !is_record("README.md"));
}

#[test]
fn a_machine_path_is_seen() {
    let bad = format!("cd {}someone", MACHINE_PATHS[0]);
    assert_eq!(machine_paths("x.md", &format!("fine\n{bad}\n/etc/fstab")).len(), 1);
}
