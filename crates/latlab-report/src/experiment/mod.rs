//! Rendering of experiments: the plan as text, and the report of the runs as text, Markdown and JSON. Each part of the
//! report has a module with all its output formats.

mod aa_test;
mod designs;
mod lesson;
mod plan;
mod published;
mod remedies;
mod report;
mod single_condition;
mod spread;

pub use designs::{DesignsView, designs};
pub(crate) use plan::disk_size;
pub use plan::{ExperimentPlan, SystemdUnit, plan, recipe, recipe_list, rough_span, systemd_unit};
pub use remedies::{
    RemediesView, UntriedRemedy, json as remedies_json, reasons as remedies_untried, text as remedies_text,
};
pub use report::{json, markdown, text};
pub(crate) use report::{other_results, published_parts};
