//! Builds the figures of runs, conditions and comparisons as data for renderers. Which figures appear is decided by the
//! data alone.

mod comparisons;
mod conditions;
mod factors;
mod histograms;
mod input;
mod layout;
mod single_run;
mod tails;
#[cfg(test)]
mod tests;

use crate::figure::Figure;

pub use input::{PlotCondition, PlotInput};

/// The figures of `input`, each with a name of its own, in the order of the page: the answer first, then distributions, then
/// what happened over time. Their number and size are bounded, whatever the number of conditions, runs and probes.
pub fn figures(input: &PlotInput) -> Vec<Figure> {
    // One probe has no plots.
    if input.only_run().is_some_and(|run| run.n == 1) {
        return Vec::new();
    }
    let mut figures: Vec<Figure> = input.comparisons.and_then(comparisons::forest).into_iter().collect();
    figures.extend(tails::tail(input));
    figures.extend(tails::percentiles(input));
    figures.extend(histograms::histogram(input));
    figures.extend(input.comparisons.and_then(|it| comparisons::shift(it, input.pictures())));
    if input.conditions.iter().any(|condition| condition.runs.len() > 1) {
        figures.extend(conditions::box_plots(input));
    }
    if input.conditions.iter().filter(|condition| !condition.runs.is_empty()).nth(1).is_some() {
        figures.extend(factors::sweep(input));
    }
    if let Some(run) = input.only_run() {
        figures.extend(single_run::figures(run));
    }
    figures.iter_mut().for_each(|figure| figure.series.retain(|series| !series.marks.is_empty()));
    figures
}
