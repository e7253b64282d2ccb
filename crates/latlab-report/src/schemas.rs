//! Validation of documents against the published schemas.

/// Panics if `document` violates `docs/schemas/NAME-1.json`.
pub(crate) fn check(name: &str, document: &str) {
    let read = |path: String| std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let schema = parse(&read(format!("{folder}/{name}-1.json")));
    let summary = parse(&read(format!("{folder}/summary-1.json")));
    let registry = jsonschema::Registry::new()
        .add("urn:latlab:summary:1", summary)
        .and_then(|registry| registry.prepare())
        .expect("a registry of one schema");
    let validator = jsonschema::options().with_registry(&registry).build(&schema).expect("a valid schema");
    let errors: Vec<_> =
        validator.iter_errors(&parse(document)).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{document}");
}
