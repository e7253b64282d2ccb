//! How alike the runs of one block are: the share of the variance that lies between blocks.

/// The intraclass correlation of groups of observations, from 0 (a block says nothing about its runs) to 1 (the runs of a
/// block are all the same): the estimator of the analysis of variance with one random factor (Donner 1986), not below 0.
/// None with fewer than two blocks, none of two runs, or where all observations are equal.
pub fn between_blocks(blocks: &[Vec<f64>]) -> Option<f64> {
    let blocks: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).filter(|block| !block.is_empty()).collect();
    let count = blocks.len();
    let n: usize = blocks.iter().map(|block| block.len()).sum();
    if count < 2 || n == count {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let grand = mean(&blocks.concat());
    let between: f64 = blocks.iter().map(|block| block.len() as f64 * (mean(block) - grand).powi(2)).sum();
    let within: f64 =
        blocks.iter().map(|block| block.iter().map(|value| (value - mean(block)).powi(2)).sum::<f64>()).sum();
    let (between, within) = (between / (count - 1) as f64, within / (n - count) as f64);
    // of blocks of one size that size; of others what stands for it
    let squares: f64 = blocks.iter().map(|block| (block.len() as f64).powi(2)).sum();
    let size = (n as f64 - squares / n as f64) / (count - 1) as f64;
    let all = between + (size - 1.0) * within;
    (all > 0.0).then(|| ((between - within) / all).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blocks_say_about_their_runs() {
        for (blocks, share) in [
            (vec![vec![1.0, 1.0], vec![2.0, 2.0]], Some(1.0)),
            (vec![vec![1.0, 2.0], vec![1.0, 2.0]], Some(0.0)),
            // mean squares 6.25 and 0.25, blocks of two: (6.25 − 0.25) / (6.25 + 0.25)
            (vec![vec![1.0, 1.0 + 0.5_f64.sqrt()], vec![3.5, 3.5 + 0.5_f64.sqrt()]], Some(6.0 / 6.5)),
            // blocks of one and three: mean squares 12 and 1, n₀ = 4 − 10/4 = 1.5
            (vec![vec![6.0], vec![1.0, 2.0, 3.0]], Some(11.0 / 12.5)),
            (vec![vec![1.0, 2.0]], None),
            (vec![vec![1.0], vec![2.0]], None),
            (vec![vec![3.0, 3.0], vec![3.0]], None),
            (vec![], None),
        ] {
            let found = between_blocks(&blocks);
            let is_close = match (found, share) {
                (Some(found), Some(share)) => (found - share).abs() < 1e-9,
                (found, share) => found == share,
            };
            assert!(is_close, "{blocks:?}: {found:?}, not {share:?}");
        }
    }
}
