//! What a caller wants to know of a sample.

/// What to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeOptions {
    /// Quantiles in (0, 1).
    pub quantiles: Vec<f64>,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// Whether to compute intervals at all: they cost more than everything else.
    pub intervals: bool,
    /// Seed of the bootstrap, so that the same recording gives the same figures.
    pub seed: u64,
}
