//! Experiments as text and JSON: the plan before it begins, and one report of its runs. Each part of the report has a file
//! with all of its forms.

mod aa_test;
mod json;
mod plan;
mod published;
mod recipes;
mod remedies;
mod single_condition;
mod spread;
mod systemd_unit;
mod text;
mod timeout_slack;

pub use json::json;
pub use plan::{ExperimentPlan, plan, rough_span};
pub use recipes::{recipe, recipe_list};
pub use remedies::{RemediesView, UntriedRemedy, json as remedies_json, text as remedies_text};
pub use systemd_unit::{SystemdUnit, systemd_unit};
pub use text::text;
