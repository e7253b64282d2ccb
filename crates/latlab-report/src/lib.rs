//! Rendering of summaries, comparisons and experiments. All functions are pure. Each of them has its parts in the words of
//! [`view`], whose figures are already rounded and formatted; text, Markdown and HTML have one renderer each. JSON comes from
//! the analysis.
#![forbid(unsafe_code)]

use latlab_analysis as analysis;
use latlab_plan::{facts, plan, recipe};
use latlab_recording as recording;
use latlab_stats as stats;
#[cfg(test)]
use latlab_terms::probe;
use latlab_terms::{diagnostics, metric, units};

pub mod check_published;
pub mod comparison;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod figure;
mod figures;
mod gates;
mod heading;
pub mod html;
pub mod import;
pub mod json;
pub mod list;
pub mod loads;
pub mod markdown;
pub mod ministat;
mod one_way;
mod over_runs;
pub mod page;
pub mod plots;
mod quantiles;
mod rare_levels;
mod remarks;
#[cfg(test)]
mod schemas;
mod stream_tables;
mod summary_view;
pub mod text;
pub mod text_plots;
pub mod view;

pub use heading::{family_of, planned_heading};
pub use summary_view::report_view;
pub use text::{CaveatChoice, Style};

#[cfg(test)]
mod tests;
