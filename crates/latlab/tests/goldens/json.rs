//! JSON documents of transcripts: in short lines, and valid under their published schemas.

use std::fs;

use serde_json::Value;

use crate::testdata;

/// Width of a line that holds a whole object or array.
const WIDTH: usize = 120;

/// The schema that `text` names, if it is a document.
pub(crate) fn schema_of(text: &str) -> Option<String> {
    let document: Value = serde_json::from_str(text).ok()?;
    Some(document["schema"].as_str()?.to_owned())
}

/// The document `text`, where each object and each array that fits stands on one line.
pub(crate) fn short(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut open = Vec::new();
    for line in text.lines() {
        lines.push(line.to_owned());
        if line.ends_with(['{', '[']) {
            open.push(lines.len() - 1);
        } else if line.trim_start().starts_with(['}', ']'])
            && let Some(start) = open.pop()
        {
            let items: Vec<&str> = lines[start + 1..lines.len() - 1].iter().map(|line| line.trim_start()).collect();
            let whole = format!("{}{}{}", lines[start], items.join(" "), line.trim_start());
            if whole.chars().count() <= WIDTH {
                lines.truncate(start);
                lines.push(whole);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// The members of the document `text` that `names`, separated by commas, name.
pub(crate) fn members(text: &str, names: &str) -> String {
    let document: Value = serde_json::from_str(text).expect("JSON");
    let member = |name: &str| document.get(name).unwrap_or_else(|| panic!("no `{name}` in {text}"));
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| short(&format!("{name}: {:#}", member(name)))).collect()
}

/// Panics if the document `text` violates the schema that it names.
pub(crate) fn check(text: &str) {
    let Some(name) = schema_of(text) else { return };
    let file = name.trim_start_matches("latlab.").replace('/', "-");
    let registry = jsonschema::Registry::new()
        .add("urn:latlab:summary:1", schema("summary-1"))
        .and_then(|registry| registry.prepare())
        .expect("a registry of one schema");
    let schema = schema(&file);
    let validator = jsonschema::options().with_registry(&registry).build(&schema).expect("a valid schema");
    let document = serde_json::from_str(text).expect("just parsed");
    let errors: Vec<_> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{text}");
}

fn schema(name: &str) -> Value {
    let path = testdata().join(format!("../docs/schemas/{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a schema is JSON")
}
