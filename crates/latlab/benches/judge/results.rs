//! Writes results to `target/bench/`: as tables for docs/performance.md and as JSON.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{machine, programs};

/// Writes `NAME.md` and `NAME.json`; prints the table.
pub(crate) fn write(name: &str, head: &[&str], rows: &[Vec<String>], raw: Value, quick: bool) -> Result<(), String> {
    let folder = programs::target_folder().join("bench");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make `{}`: {error}", folder.display()))?;
    let text = format!("{}\n{}", caption(quick), table(head, rows));
    println!("\n{text}");
    write_file(folder.join(format!("{name}.md")), &text)?;
    let document = json!({ "bench": name, "quick": quick, "machine": machine::facts(), "rows": raw });
    write_file(folder.join(format!("{name}.json")), &format!("{document:#}\n"))
}

fn write_file(path: PathBuf, text: &str) -> Result<(), String> {
    fs::write(&path, text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

fn caption(quick: bool) -> String {
    let facts: Vec<String> = machine::facts().iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let warning = if quick { "Quick: shows that the bench runs, its figures mean nothing.\n\n" } else { "" };
    format!("{warning}{}\n", facts.join(" · "))
}

pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = head.iter().map(|title| title.to_string()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_string()).collect();
    [line(&titles), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}
