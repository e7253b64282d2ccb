//! A few rows that show the shape of a sample on a terminal.

use super::edges::edges;
use super::moments::Extent;
use crate::sample::{INFINITE, Sample};

/// Edges are chosen from so many singletons at most; counts are over all.
const EXCERPT: usize = 1 << 14;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value in it, in ns.
    pub low_ns: i64,
    /// The smallest value above it, in ns.
    pub high_ns: i64,
    /// Singletons in it.
    pub count: u64,
}

/// The finite singletons of `sample` in at most twelve adjoining buckets with round edges, narrow where the mass
/// is and wide along the tail; none where no singleton is finite. The first and the last one are never empty.
pub fn histogram(sample: &Sample) -> Vec<Bucket> {
    let Some(extent) = Extent::of(&sample.singletons) else { return Vec::new() };
    let stride = sample.singletons.len().div_ceil(EXCERPT);
    let finite = |value: &i64| *value != INFINITE;
    let mut excerpt: Vec<i64> = sample.singletons.iter().copied().step_by(stride).filter(finite).collect();
    excerpt.extend([extent.min, extent.max]);
    excerpt.sort_unstable();
    let edges = edges(&excerpt, extent.min, extent.max);
    let mut counts = vec![0; edges.len() - 1];
    let inner = &edges[1..edges.len() - 1];
    for value in sample.singletons.iter().filter(|value| finite(value)) {
        // a dozen comparisons side by side beat a search that the processor cannot predict
        let place: usize = inner.iter().map(|edge| usize::from(edge <= value)).sum();
        counts[place] += 1;
    }
    let bounds = edges.windows(2);
    bounds.zip(counts).map(|(bound, count)| Bucket { low_ns: bound[0], high_ns: bound[1], count }).collect()
}
