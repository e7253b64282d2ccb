//! Formats of files that other tools read and write.
#![forbid(unsafe_code)]

use latlab_plan::{facts, plan};
use latlab_platform as platform;
use latlab_recording as recording;
use latlab_terms::{diagnostics, metric, probe, sample, units};

pub mod export;
pub mod import;
pub mod numbers;
