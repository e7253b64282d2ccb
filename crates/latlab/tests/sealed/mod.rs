//! Changes manifests of recordings as docs/recording.md describes their checksum.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Replaces the manifest of `recording`.
pub(crate) fn write_manifest(recording: &Path, mut manifest: Value) {
    manifest.as_object_mut().expect("an object").remove("crc32c");
    let text = serde_json::to_string_pretty(&manifest).expect("JSON");
    fs::write(recording.join("manifest.json"), sealed(text.strip_suffix("\n}").expect("in lines"))).expect("written");
}

/// Replaces the first `from` in the manifest of `recording` by `to`.
pub(crate) fn edit_manifest(recording: &Path, from: &str, to: &str) {
    let path = recording.join("manifest.json");
    let text = fs::read_to_string(&path).expect("a manifest");
    let (members, _) = text.rsplit_once(",\n  \"crc32c\": ").expect("it ends with its checksum");
    assert!(members.contains(from), "{from}");
    fs::write(path, sealed(&members.replacen(from, to, 1))).expect("written");
}

fn sealed(members: &str) -> String {
    let covered = format!("{members},\n  \"crc32c\": \"");
    format!("{covered}{:08x}\"\n}}\n", crc32c::crc32c(covered.as_bytes()))
}

/// Replaces the journal of `experiment` by the lines of `text`, with the checksums that docs/experiments.md describes.
pub(crate) fn write_journal(experiment: &Path, text: &str) {
    let (mut sum, mut lines) = (0, String::new());
    for line in text.lines() {
        let members = line.split(",\"crc32c\":").next().expect("one at least");
        let covered = format!("{},\"crc32c\":\"", members.strip_suffix('}').unwrap_or(members));
        sum = crc32c::crc32c_append(sum, covered.as_bytes());
        lines += &format!("{covered}{sum:08x}\"}}\n");
    }
    fs::write(experiment.join("journal.jsonl"), lines).expect("written");
}
