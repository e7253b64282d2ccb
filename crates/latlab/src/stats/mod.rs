//! Statistics of one sample. Pure; the methods and their references stand in docs/statistics.md.

mod batches;
mod binomial;
mod bootstrap;
mod dependence;
mod describe;
mod description;
mod deviate;
mod edges;
mod histogram;
mod interval;
mod moments;
mod order;
mod point;
mod quantile;
mod share;
mod wishes;

pub use describe::describe;
pub use description::{Description, QuantileEstimate};
pub use histogram::{Bucket, histogram};
pub use interval::Interval;
pub use share::{Share, ratio, share};
pub use wishes::Wishes;
