//! Statistics of one sample and of compared runs: pure functions, whose randomness comes from seeds in their arguments.
//! Methods and references: docs/statistics.md.
//!
//! The figures of one run, with intervals that allow for the dependence of its singletons. A lost probe has infinite delay:
//!
//! ```
//! use latlab_stats::{DescribeOptions, describe};
//! use latlab_terms::metric::Metric;
//! use latlab_terms::sample::{INFINITE, Sample};
//!
//! let mut delays_ns: Vec<i64> = (0..1_000).map(|n| 50_000 + n * 7_919 % 1_000).collect();
//! delays_ns[10] = INFINITE;
//! let options = DescribeOptions { quantiles: vec![0.5, 0.999], confidence: 0.95, intervals: true };
//! let described = describe(&Sample::new(Metric::RoundTripDelay, delays_ns), &options);
//! assert_eq!((described.n, described.lost), (1_000, 1));
//! let [p50, p999] = &described.quantiles[..] else { panic!("two quantiles") };
//! assert!(p50.supported && p50.interval.is_some());
//! // The quantile 0.999 of 1,000 probes rests on one value, and is not supported.
//! assert!(!p999.supported);
//! ```
//!
//! Two groups of runs. One value of each run is compared, since singletons of one run depend on each other:
//!
//! ```
//! use latlab_stats::{BlockRuns, DRAWS, PermutationTest};
//! use rand::SeedableRng;
//! use rand_pcg::Pcg64Mcg;
//!
//! let block = BlockRuns { baseline: vec![50.1, 49.8, 50.3, 50.0, 49.9], candidate: vec![45.2, 44.9, 45.1, 45.3, 44.8] };
//! let test = PermutationTest::of(&[block], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("two groups");
//! assert!(test.is_exact() && test.p_value(0.0) < 0.05);
//! let shift = test.interval(0.95);
//! assert!(shift.low.is_some_and(|low| low < -4.8) && shift.high.is_some_and(|high| high > -5.2));
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
use latlab_terms::metric;
use latlab_terms::{sample, units};

mod chance;
mod clock_step;
mod clock_window;
mod counted;
mod describe;
mod extremes;
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
mod power;
mod precision;
mod quantile;
mod sequential;
mod shift_test;
mod spread_components;
mod two_samples;

pub use chance::{Rotated, at_least, rayleigh, resultant, rotated};
pub use clock_step::clock_step;
pub use clock_window::{ClockWindow, Exchange, OffsetBound, clock_windows};
pub use counted::CountedSample;
pub use describe::{DescribeOptions, DescribedFigure, Description, QuantileEstimate, describe, plain};
pub use extremes::{Extremes, Level, NoExtremes, Rarity, extremes};
pub use histogram::{Bucket, histogram};
pub use interval::{Interval, Share, ratio, share};
pub use linear_models::{Slope, between_blocks, slope};
pub use log_histogram::LogHistogram;
pub use long_run::effective_size;
pub use loss_goal::{LossGoal, RateBounds, RateClass, RateTrial};
pub use outline::{BoxPlot, FiveNumberSummary, Outline};
pub use permutation::{
    BlockRuns, Claims, DRAWS, PermutationTest, holm, is_significant, weighted_baseline, weighted_difference,
};
pub use power::PlannedTest;
pub use precision::{GroupBlocks, PrecisionGoal, own_interval, reached};
pub use quantile::{is_supported, observations_needed};
pub use sequential::{LOOKS_MAX, Look};
pub use shift_test::{ShiftTest, placement_difference, spread_ratio};
pub use spread_components::{PilotBlock, SpreadComponents, log_error};
pub use two_samples::{MeanDifference, MinistatTest, ranks_differ, student_differs};
