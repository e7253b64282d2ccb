//! The documents are tests: each `$ latlab …` line in README.md and docs/*.md runs with the real binary,
//! what it prints matches what stands below it, and what is named exists.
//!
//! A block is fenced as `console` or `text`. Its info string may say more, separated by commas:
//! `root` (skipped with a message without root, but not on CI), `exit=N` (the last command's exit code),
//! `norun="reason"` (not run; its commands and options must exist all the same). Commands of one
//! block share a directory; one that ends in `&` runs beside the next ones. Lines that start with
//! `$` and another program are for people. A failed block whose output says that the host was busy is repeated. How output is compared: docs/pattern.rs.

#[path = "docs/blocks.rs"]
mod blocks;
#[path = "docs/execution.rs"]
mod execution;
#[path = "docs/help.rs"]
mod help;
#[path = "docs/job.rs"]
mod job;
#[path = "docs/pattern.rs"]
mod pattern;
mod scheduling;
mod skip;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// README.md and the documents directly below docs/: what users read.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("two folders up");
    let entries = fs::read_dir(root.join("docs")).expect("docs/ is there");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    found.push(root.join("README.md"));
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[test]
fn every_block_runs_and_prints_what_it_says() {
    let mut failures = Vec::new();
    let (mut ran, mut compared) = (0, 0);
    for path in documents() {
        for block in blocks::blocks(&read(&path)) {
            let place = format!("{}:{}", name_of(&path), block.line);
            if let Some(reason) = &block.norun {
                writeln!(std::io::stderr(), "{place}: not run: {reason}").expect("stderr is open");
                continue;
            }
            if block.root && !rustix::process::geteuid().is_root() {
                skip::skip(format_args!("{place} needs root"));
                continue;
            }
            ran += block.commands.len();
            compared += block.commands.iter().map(|command| pattern::compared(&command.output)).sum::<usize>();
            failures.extend(execution::run(&block).into_iter().map(|failure| format!("{place}: {failure}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(ran > 0, "no document holds a command that runs");
    assert!(compared >= 15, "documents show only {compared} lines that are compared with what is printed");
}

#[test]
fn the_readme_shows_the_layout_of_a_summary_that_is_compared() {
    let readme = documents().into_iter().find(|path| path.ends_with("README.md")).expect("the repository has one");
    let shown: Vec<String> = blocks::blocks(&read(&readme))
        .into_iter()
        .filter(|block| block.norun.is_none() && !block.root)
        .flat_map(|block| block.commands)
        .filter(|command| command.typed.starts_with("latlab ping"))
        .flat_map(|command| command.output)
        .collect();
    for label in ["n ", "lost ", "min ", "mean ", "stddev ", "p50 ", "p99 ", "max ", "instrument ", "recording "] {
        assert!(shown.iter().any(|line| line.trim_start().starts_with(label)), "no line of `{label}` is compared");
    }
}

#[test]
fn each_page_for_users_shows_output_that_is_compared() {
    for page in ["conditions.md", "doctor.md", "metrics.md", "recording.md", "remote.md", "statistics.md"] {
        let path = documents().into_iter().find(|path| path.ends_with(page)).unwrap_or_else(|| panic!("no {page}"));
        let blocks = blocks::blocks(&read(&path)).into_iter().filter(|block| block.norun.is_none() && !block.root);
        let lines: usize =
            blocks.flat_map(|block| block.commands).map(|command| pattern::compared(&command.output)).sum();
        assert!(lines >= 3, "{page} shows {lines} lines that are compared with what is printed");
    }
}

#[test]
fn what_documents_name_exists() {
    let manual = help::Manual::read();
    let mut failures = Vec::new();
    for path in documents() {
        for (line, command) in blocks::named_commands(&read(&path)) {
            let missing = manual.missing(&command);
            failures.extend(missing.into_iter().map(|word| format!("{}:{line}: {word}", name_of(&path))));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
