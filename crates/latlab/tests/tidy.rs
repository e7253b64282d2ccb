//! The rules of CONTRIBUTING.md that a program can check: layers, sizes, names, places, words and documents.
//!
//! Each checker is itself tested on snippets that break its rule: a checker that finds nothing
//! because it looks at nothing would be worse than none.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/places.rs"]
mod places;
#[path = "tidy/repository.rs"]
mod repository;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/voice.rs"]
mod voice;
#[path = "tidy/ways.rs"]
mod ways;
#[path = "tidy/words.rs"]
mod words;

/// One broken rule, as `path:line: error; remedy`.
type Breach = String;

/// Fails with every breach on a line of its own.
fn expect_none(breaches: Vec<Breach>) {
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), breaches.join("\n"));
}
