//! Figures of distinct numbers, some of which rounding may have made equal: the bounds between which these figures lie.

use super::claim::PublishedFigure;

/// Where a figure lies; both bounds belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FigureSpan {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl FigureSpan {
    /// A figure that is known.
    pub(super) const fn at(figure: f64) -> FigureSpan {
        FigureSpan { low: figure, high: figure }
    }

    /// The same times a positive `factor`.
    pub(super) fn times(self, factor: f64) -> FigureSpan {
        FigureSpan { low: self.low * factor, high: self.high * factor }
    }
}

/// A figure moves by at most this many order statistics from one rule of quantiles to another, and between its neighbours.
const NEIGHBOURS: usize = 2;

/// Numbers of which each occurs once to as many times as it is found: equal ones may have been different before they were
/// rounded.
#[derive(Clone, Debug)]
pub(super) struct MergedNumbers {
    /// How many of all numbers are at or below each distinct one.
    ends: Vec<u64>,
    /// The mean of the distinct numbers.
    mean: FigureSpan,
    /// The sample standard deviation of all numbers.
    stddev: f64,
}

impl MergedNumbers {
    /// Those of `sorted` numbers; `None` if they are distinct.
    pub(super) fn of(sorted: &[i64]) -> Option<MergedNumbers> {
        if sorted.windows(2).all(|pair| pair[0] != pair[1]) {
            return None;
        }
        let runs = || sorted.chunk_by(|one, other| one == other).map(|run| (i128::from(run[0]), run.len() as i128));
        let (sum, n) = runs().fold((0, 0), |(sum, n), (number, _)| (sum + number, n + 1));
        let negative = runs().map(|(number, count)| (-number, count));
        let mean = FigureSpan { low: -largest_mean(negative, -sum, n), high: largest_mean(runs().rev(), sum, n) };
        let ends = runs().scan(0, |end, (_, count)| {
            *end += count as u64;
            Some(*end)
        });
        let centre = sorted.iter().map(|number| *number as f64).sum::<f64>() / sorted.len() as f64;
        let squares: f64 = sorted.iter().map(|number| (*number as f64 - centre).powi(2)).sum();
        Some(MergedNumbers { ends: ends.collect(), mean, stddev: (squares / (sorted.len() - 1) as f64).sqrt() })
    }

    /// How many all numbers are.
    fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Where `figure` of the `distinct` numbers lies, beside which `infinite` ones are; `None` if it does not depend on how many
    /// are distinct. `stddev` is that of the `distinct` numbers.
    pub(super) fn span(
        &self,
        figure: PublishedFigure,
        distinct: &[i64],
        infinite: u64,
        stddev: Option<f64>,
    ) -> Option<FigureSpan> {
        match figure {
            PublishedFigure::N => Some(FigureSpan {
                low: (distinct.len() as u64 + infinite) as f64,
                high: (self.total() + infinite) as f64,
            }),
            PublishedFigure::Mean => Some(self.mean),
            PublishedFigure::Quantile(q) => self.quantile(q, distinct, infinite),
            PublishedFigure::Stddev => self.stddev(distinct, stddev.unwrap_or(0.0)),
            PublishedFigure::Lost | PublishedFigure::LossRatio | PublishedFigure::Min | PublishedFigure::Max => None,
        }
    }

    /// It is largest if all numbers from some one on are distinct, and those below it merge, and smallest in the opposite case.
    fn quantile(&self, q: f64, distinct: &[i64], infinite: u64) -> Option<FigureSpan> {
        let last = distinct.len().checked_sub(1)?;
        let is_reached = |at: usize| {
            let below = at as f64;
            let merged_below = if at > 0 { self.ends[at - 1] } else { 0 };
            let from_here = (self.total() - merged_below + infinite) as f64;
            q * (below + from_here - 1.0) >= below
        };
        let is_exceeded = |at: usize| {
            let up_to_here = self.ends[at] as f64;
            let above = ((last - at) as u64 + infinite) as f64;
            q * (up_to_here + above - 1.0) > up_to_here - 1.0
        };
        let low = first_without(distinct.len(), is_exceeded).saturating_sub(NEIGHBOURS).min(last);
        let high = (first_without(distinct.len(), is_reached).saturating_sub(1) + NEIGHBOURS).min(last);
        Some(FigureSpan { low: distinct[low] as f64, high: distinct[high] as f64 })
    }

    /// n(n − 1)·s² is the sum of the squares of the differences of all pairs, which grows with each number that is added.
    fn stddev(&self, distinct: &[i64], stddev: f64) -> Option<FigureSpan> {
        let pairs = |n: f64| n * (n - 1.0);
        let ratio = (pairs(distinct.len() as f64) / pairs(self.total() as f64)).sqrt();
        // Two numbers at the ends have the largest one.
        let largest = (*distinct.last()? as f64 - *distinct.first()? as f64) * std::f64::consts::FRAC_1_SQRT_2;
        Some(FigureSpan { low: stddev * ratio, high: (self.stddev / ratio).min(largest) })
    }
}

/// The largest mean of numbers with this `sum`, `n` of them, and as many repetitions as help. `descending` are the numbers with
/// how often each may occur.
fn largest_mean(descending: impl Iterator<Item = (i128, i128)>, mut sum: i128, mut n: i128) -> f64 {
    for (number, count) in descending {
        if number * n <= sum {
            break;
        }
        sum += number * (count - 1);
        n += count - 1;
    }
    sum as f64 / n as f64
}

/// The first of the indices below `count` at which `is_so`, which then stays so, is not so; `count` without such a one.
fn first_without(count: usize, is_so: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        match is_so(middle) {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way in which 1, 1, 1, 4, 6, 6 and 9 may be distinct, as lists.
    fn ways() -> Vec<Vec<i64>> {
        let counts = (1..=3).flat_map(|ones| (1..=2).map(move |sixes| (ones, sixes)));
        counts.map(|(ones, sixes)| [&[1; 3][..ones], &[4], &[6; 2][..sixes], &[9]].concat()).collect()
    }

    #[test]
    fn every_way_in_which_numbers_may_be_distinct_lies_within_the_bounds() {
        let merged = MergedNumbers::of(&[1, 1, 1, 4, 6, 6, 9]).expect("ones and sixes are repeated");
        let distinct = [1, 4, 6, 9];
        let stddev_of = |numbers: &[i64]| {
            let mean = numbers.iter().sum::<i64>() as f64 / numbers.len() as f64;
            let squares: f64 = numbers.iter().map(|number| (*number as f64 - mean).powi(2)).sum();
            (squares / (numbers.len() - 1) as f64).sqrt()
        };
        let span = |figure| merged.span(figure, &distinct, 0, Some(stddev_of(&distinct))).expect("a figure that moves");
        let lies_within = |figure, value: f64| {
            let FigureSpan { low, high } = span(figure);
            assert!((low - 1e-9..=high + 1e-9).contains(&value), "{figure:?} {value}: {low} to {high}");
        };
        for numbers in ways() {
            let n = numbers.len() as f64;
            lies_within(PublishedFigure::N, n);
            lies_within(PublishedFigure::Mean, numbers.iter().sum::<i64>() as f64 / n);
            lies_within(PublishedFigure::Stddev, stddev_of(&numbers));
            for q in [0.01, 0.25, 0.5, 0.75, 0.9, 0.999] {
                let place = q * (n - 1.0);
                let (low, high) = (numbers[place.floor() as usize] as f64, numbers[place.ceil() as usize] as f64);
                lies_within(PublishedFigure::Quantile(q), low + (high - low) * place.fract());
            }
        }
        // 1, 1, 1, 4, 6 and 9 have the smallest mean, and 1, 4, 6, 6 and 9 the largest.
        assert_eq!(span(PublishedFigure::Mean), FigureSpan { low: 22.0 / 6.0, high: 26.0 / 5.0 });
        assert_eq!(merged.span(PublishedFigure::Max, &distinct, 0, None), None, "the maximum is the same");
    }

    #[test]
    fn bounds_of_quantiles_are_near_where_few_numbers_merge() {
        let mut sorted: Vec<i64> = (0..1_000).chain([500]).collect();
        sorted.sort_unstable();
        let distinct: Vec<i64> = (0..1_000).collect();
        let merged = MergedNumbers::of(&sorted).expect("500 is repeated");
        let span = merged.span(PublishedFigure::Quantile(0.9), &distinct, 0, None).expect("a quantile");
        assert!(span.low >= 896.0 && span.high <= 902.0, "{span:?}");
        assert!(MergedNumbers::of(&distinct).is_none() && MergedNumbers::of(&[]).is_none());
        let equal = MergedNumbers::of(&[7, 7]).expect("a repetition");
        assert_eq!(equal.span(PublishedFigure::Stddev, &[7], 0, None), Some(FigureSpan { low: 0.0, high: 0.0 }));
        assert_eq!(equal.span(PublishedFigure::Mean, &[7], 0, None), Some(FigureSpan::at(7.0)));
    }
}
