//! Comparisons: the parts of their report, and their CSV and JSON.

mod csv;
mod json;
mod plots;
mod view;
mod words;

pub use csv::render as csv;
pub use json::{Companions, render as json};
pub use plots::plots;
pub(crate) use view::{common_sentence, compared_means, gate, lacks_runs, pair_name, pair_sentence};
pub use view::{names_of_groups, parts};
pub(crate) use view::{row_label, several_metrics, shared_reason};
pub(crate) use words::{
    change as quantity_change, figure as quantity_figure, figure_beside, plain, reason as undecided_reason,
};

#[cfg(test)]
mod tests;
