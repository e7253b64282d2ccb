//! What is to be measured: settled plans, facts about hosts and runs, built-in experiments. Pure.
#![forbid(unsafe_code)]

use latlab_stats as stats;
use latlab_terms::{metric, probe, units, worded};

pub mod facts;
pub mod plan;
pub mod recipe;
