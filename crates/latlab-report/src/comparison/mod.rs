//! Rendering of comparisons as text, Markdown, CSV and JSON.

mod json;
mod markdown;
mod plots;
mod text;
mod view;
mod words;

pub use json::{Companions, render as json};
pub use markdown::csv;
pub use markdown::render as markdown;
pub(crate) use markdown::{quoted, warning as markdown_warning};
pub use plots::plots;
pub use text::render as text;
pub use view::{ChangeView, ComparisonShowing, ComparisonView, ContrastView, names_of_groups};
pub(crate) use view::{common_sentence, compared_factors, compared_means, lacks_runs, pair_name};
pub(crate) use view::{row_label, several_metrics, shared_reason};
pub(crate) use words::{
    change as quantity_change, figure as quantity_figure, figure_beside, reason as undecided_reason,
};

#[cfg(test)]
mod tests;
