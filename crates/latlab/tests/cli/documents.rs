//! JSON documents against the schemas that the documentation publishes.

use std::fs;

use serde_json::Value;

fn schema(name: &str) -> Value {
    let path = format!("{}/../../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// Fails where `document` is not what the schema of the name it bears promises.
#[track_caller]
pub(crate) fn check(document: &Value, name: &str) {
    assert_eq!(document["schema"], format!("latlab.{name}"));
    let registry = jsonschema::Registry::new()
        .add("urn:latlab:summary:1", schema("summary-1"))
        .and_then(|registry| registry.prepare())
        .expect("a registry of one schema");
    let schema = schema(&name.replace('/', "-"));
    let validator = jsonschema::options().with_registry(&registry).build(&schema).expect("a valid schema");
    let errors: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}
