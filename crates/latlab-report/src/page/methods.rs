//! How the figures of a page were computed, in plain words, as far as they apply to it. docs/statistics.md has formulas,
//! sources and measured properties.

use super::input::PageInput;
use crate::analysis::Kind;
use crate::recipe;

/// Paragraphs, each behind what it applies to.
const METHODS: &str = include_str!("methods.txt");

/// What was published, and the paragraphs that apply to `input`.
pub(super) fn methods(input: &PageInput<'_>) -> Vec<String> {
    let facts = input.experiment.and_then(|it| it.report.recipe.as_ref());
    let recipe = facts.and_then(|facts| recipe::find(&facts.name));
    let published = recipe.map(|recipe| [format!("First measured as: {}.", recipe.origin), recipe.lesson.clone()]);
    let paragraphs = METHODS.lines().filter_map(|line| line.split_once(": "));
    let paragraphs = paragraphs.filter(|(what, _)| has(input, what)).map(|(_, text)| text.to_owned());
    published.into_iter().flatten().chain(paragraphs).collect()
}

fn has(input: &PageInput<'_>, what: &str) -> bool {
    let (runs, is_of) = (input.summaries, |kind: Kind| input.summaries.iter().any(|summary| summary.kind == kind));
    match what {
        "ping" => is_of(Kind::Ping),
        "wakeup" => is_of(Kind::Wakeup),
        "command" => is_of(Kind::Command),
        "stream" => is_of(Kind::Stream),
        "comparison" => input.comparisons.is_some(),
        "several runs" => runs.len() > 1,
        "plots" => !input.figures.is_empty(),
        "one way" => runs.iter().any(|summary| summary.one_way.is_some()),
        "loads" => runs.iter().any(|summary| !summary.loads.is_empty()),
        _ => !runs.is_empty(),
    }
}
