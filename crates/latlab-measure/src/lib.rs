//! The measuring half: it sends, receives, and writes recordings; it computes no statistic.
#![forbid(unsafe_code)]

use latlab_plan::{facts, plan};
use latlab_platform as platform;
use latlab_recording as recording;
use latlab_stats as stats;
use latlab_terms::{diagnostics, metric, probe, sample, units, worded};

pub mod agent;
pub mod clock;
pub mod host;
pub mod load;
pub mod measure;
pub mod session;
pub mod transport;
pub mod wire;
