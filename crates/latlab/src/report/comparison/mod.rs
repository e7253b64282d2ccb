//! Rendering of comparisons as text, Markdown, CSV and JSON.

mod json;
mod markdown;
mod plots;
mod text;
mod view;
mod words;

pub use json::{Companions, render as json};
pub use markdown::csv;
pub(in crate::report) use markdown::quoted;
pub use markdown::render as markdown;
pub use plots::plots;
pub use text::render as text;
pub(in crate::report) use view::shared_reason;
pub use view::{ChangeView, ComparisonShowing, ComparisonView, ContrastView, names_of_groups};
pub(in crate::report) use view::{common_sentence, pair_name, row_label, several_metrics};
pub(in crate::report) use words::{figure as quantity_figure, figure_beside};

#[cfg(test)]
mod tests;
