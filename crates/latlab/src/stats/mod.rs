//! Statistics of one sample, and of runs that are compared. Pure; the methods and their references stand in docs/statistics.md.

mod batches;
mod between_blocks;
mod binomial;
mod bootstrap;
mod box_plot;
mod dependence;
mod describe;
mod description;
mod deviate;
mod edges;
mod exchange;
#[cfg(test)]
mod exchange_against_naive;
mod histogram;
mod holm;
mod interval;
mod moments;
mod needed;
mod order;
mod outline;
mod plain;
mod point;
mod pooled;
mod quantile;
mod share;
mod slope;
mod two_samples;
mod width;
mod wishes;

pub use between_blocks::between_blocks;
pub use box_plot::BoxPlot;
pub use describe::describe;
pub use description::{Description, QuantileEstimate};
pub use exchange::{BlockRuns, DRAWS, Exchanges, is_refused, weighted_baseline, weighted_difference};
pub use histogram::{Bucket, histogram};
pub use holm::{Claims, holm};
pub use interval::Interval;
pub use needed::{Aim, POWER, RUNS_MAX, runs_needed};
pub use outline::Outline;
pub use plain::plain;
pub use pooled::{ranks_differ, student_differs};
pub use share::{Share, ratio, share};
pub use slope::{Slope, slope};
pub use two_samples::{MeanDifference, TwoSamples, student};
pub use width::{GroupBlocks, OWN_RUNS_MIN, RUNS_MIN, WidthGoal, own_interval, reached};
pub use wishes::Wishes;
