//! Builds the figures of runs, conditions and comparisons as data for renderers. Which figures appear is decided by the
//! data alone, in one table.

mod axes;
mod comparisons;
mod conditions;
mod factors;
mod input;
mod single_run;
mod tails;
#[cfg(test)]
mod tests;

use crate::report::figure::Figure;

pub use input::{PlotCondition, PlotInput};

/// Figures that appear together, and the data that they need.
struct Plot {
    /// Whether the data have them.
    applies: fn(&PlotInput) -> bool,
    /// Builds them; may be empty where parts of the data are missing.
    build: fn(&PlotInput) -> Vec<Figure>,
}

/// All figures in the order of the page: the answer first, then distributions, then what happened over time.
const PLOTS: [Plot; 10] = [
    Plot { applies: |input| input.comparisons.is_some(), build: comparisons::forest },
    Plot { applies: |input| input.has_delays(), build: tails::tail },
    Plot { applies: |input| input.has_delays(), build: tails::percentiles },
    Plot { applies: |input| input.comparisons.is_some(), build: comparisons::shift },
    Plot { applies: |input| input.has_several_runs(), build: conditions::box_plots },
    Plot { applies: |input| input.has_several_conditions(), build: factors::sweep },
    Plot { applies: |input| input.has_several_conditions(), build: factors::heat_map },
    Plot { applies: |input| input.only_run().is_some(), build: single_run::histogram },
    Plot { applies: |input| input.only_run().is_some(), build: single_run::delays_and_rates },
    Plot { applies: |input| input.only_run().is_some(), build: single_run::host },
];

/// The figures of `input`, each with a name of its own. Their number and size are bounded, whatever the number of
/// conditions, runs and probes.
pub fn figures(input: &PlotInput) -> Vec<Figure> {
    PLOTS.iter().filter(|plot| (plot.applies)(input)).flat_map(|plot| (plot.build)(input)).collect()
}
