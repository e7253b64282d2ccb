//! Statistics of one sample and of compared runs: pure functions, whose randomness comes from seeds in their arguments.
//! Methods and references: docs/statistics.md.
#![forbid(unsafe_code)]

#[cfg(test)]
use latlab_terms::metric;
use latlab_terms::{sample, units};

mod counted;
mod describe;
mod histogram;
mod interval;
mod linear_models;
mod log_histogram;
mod long_run;
mod loss_goal;
mod moments;
mod order;
mod outline;
mod permutation;
mod precision;
mod quantile;
mod sample_size;
mod sequential;
mod shift_test;
mod two_samples;

pub use counted::CountedSample;
pub use describe::{DescribeOptions, DescribedFigure, Description, QuantileEstimate, describe, plain};
pub use histogram::{Bucket, histogram};
pub use interval::{Interval, Share, ratio, share};
pub use linear_models::{Slope, between_blocks, slope};
pub use log_histogram::LogHistogram;
pub use long_run::MeanVariance;
pub use loss_goal::{LossGoal, RateBounds, RateClass, RateTrial};
pub use outline::{BoxPlot, FiveNumberSummary, Outline};
pub use permutation::{
    BlockRuns, Claims, DRAWS, PermutationTest, holm, is_significant, weighted_baseline, weighted_difference,
};
pub use precision::{GroupBlocks, PrecisionGoal, own_interval, reached};
pub use quantile::{median_interval, observations_needed};
pub use sample_size::{POWER, RUNS_MAX, SampleSizeGoal, runs_needed};
pub use sequential::{LOOKS_MAX, Look};
pub use shift_test::{ShiftTest, placement_difference, spread_ratio};
pub use two_samples::{MeanDifference, MinistatTest, ranks_differ, student_differs};
