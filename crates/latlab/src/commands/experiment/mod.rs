//! What `latlab run` is made of: asking for an experiment, planning, measuring it run by run, and what is shown at its end.

mod alone;
mod asking;
mod bench;
pub(super) mod beside;
mod boot;
mod cells;
mod companions;
mod contrasts;
mod cost;
mod documents;
pub(super) mod ending;
mod finding;
mod left;
mod listing;
mod news;
mod outcome;
mod pairs;
pub(super) mod plan;
pub(super) mod reporting;
mod runs;
mod same;
mod spread;
mod taking;
mod text;
mod unchanged;
pub(super) mod unit;
mod verdicts;
mod via_growth;
mod waiting;
mod widths;

pub(super) use asking::{Asked, ask};
pub(super) use bench::Bench;
pub(super) use boot::boot_id;
pub(super) use contrasts::{ask_as_its_file, contrasts};
pub(super) use listing::listing;
pub(super) use taking::take_on;
