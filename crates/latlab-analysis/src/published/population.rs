//! The numbers that figures are computed from, correctly or by a mistake, and the figures of them.
//!
//! Numbers are kept in half ticks, so that halves of round trips are exact integers.

use super::claim::PublishedFigure;
use super::digits::FinerDigits;
use super::merged::{FigureSpan, MergedNumbers};
use super::raw_values::PublishedData;
use crate::stats::QuantilePosition;

/// Half ticks in a tick.
const HALVES: i64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PopulationRule {
    /// Half ticks for a tick of the data: 2 of whole values, 1 of halves, 4 of doubles.
    pub(super) factor: i64,
    /// Whether the dwell is subtracted.
    pub(super) less_dwell: bool,
    /// Whether the warm-up is taken.
    pub(super) with_warmup: bool,
    /// How lost probes are taken.
    pub(super) lost: LostProbes,
    /// Which table the numbers are of.
    pub(super) table: NumberTable,
}

/// How lost probes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LostProbes {
    /// As +∞, in quantiles and in n.
    Infinite,
    LeftOut,
    /// Each as a value of 0.
    Zero,
}

/// Which table the numbers are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NumberTable {
    Values,
    Distinct,
    /// The values and the numbers of their packets.
    WithIds,
}

/// More lost probes than this are not written out as zeros: the mistake is not tried then.
pub(super) const ZEROS_MAX: u64 = 100_000_000;

/// Sorted numbers with their moments.
#[derive(Clone, Debug)]
pub(super) struct Population {
    sorted: Vec<i64>,
    /// How many further ones are infinite.
    infinite: u64,
    /// Lost probes, however they are taken.
    lost: u64,
    sent: u64,
    sum: i128,
    /// Sum of the squares of the deviations from the mean, in squares of half ticks.
    squares: f64,
    /// How often distinct numbers were found, if rounding may have made some equal.
    merged: Option<MergedNumbers>,
    /// Those of the numbers that were rounded, ascending, if others beside them are exact.
    rounded: Option<Vec<i64>>,
}

impl Population {
    /// The numbers of `data` that `rule` takes.
    pub(super) fn of(data: &PublishedData, rule: PopulationRule) -> Population {
        let first = if rule.with_warmup { 0 } else { data.warmup.min(data.values.len()) };
        let dwell = data.dwell.as_deref().filter(|_| rule.less_dwell).and_then(|dwell| dwell.get(first..));
        let values = data.values[first..].iter().enumerate().map(|(row, value)| {
            let dwell = dwell.and_then(|dwell| dwell.get(row)).copied().unwrap_or(0);
            // They fit: `PublishedData::values`, and `can_double` where the factor is 4.
            (value - dwell) * rule.factor
        });
        let mut sorted: Vec<i64> = values.collect();
        let has_others = rule.lost == LostProbes::Zero || rule.table == NumberTable::WithIds;
        let mut rounded = (has_others && data.finer != FinerDigits::Absent).then(|| sorted.clone());
        rounded.iter_mut().for_each(|rounded| rounded.sort_unstable());
        let lost = data.lost + if rule.with_warmup { data.warmup_lost } else { 0 };
        if rule.lost == LostProbes::Zero {
            sorted.extend(std::iter::repeat_n(0, lost as usize));
        }
        if let (NumberTable::WithIds, Some(ids)) = (rule.table, data.ids.as_deref()) {
            let own = ids.get(first..).unwrap_or_default().iter();
            // They fit: `PublishedData::has_fitting_ids`.
            sorted.extend(own.map(|id| *id as i64 * data.id_ticks * HALVES));
        }
        sorted.sort_unstable();
        let mut merged = None;
        if rule.table == NumberTable::Distinct {
            merged = data.finer.merges_values().then(|| MergedNumbers::of(&sorted)).flatten();
            sorted.dedup();
        }
        let infinite = if rule.lost == LostProbes::Infinite { lost } else { 0 };
        let sent = (data.values.len() - first) as u64 + lost;
        let sum: i128 = sorted.iter().map(|value| i128::from(*value)).sum();
        let mean = mean_of(sum, sorted.len());
        let squares = sorted.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        Population { sorted, infinite, lost, sent, sum, squares, merged, rounded }
    }

    fn n(&self) -> u64 {
        self.sorted.len() as u64 + self.infinite
    }

    /// The `figure` in ticks, or as a count or share; `None` if it does not exist or is infinite.
    pub(super) fn figure(&self, figure: PublishedFigure, rules: FigureRules) -> Option<f64> {
        let half_ticks = match figure {
            PublishedFigure::N => return Some(self.n() as f64),
            PublishedFigure::Lost => return Some(self.lost as f64),
            PublishedFigure::LossRatio => return self.loss_ratio(),
            PublishedFigure::Mean => self.mean()?,
            PublishedFigure::Min => *self.sorted.first()? as f64,
            PublishedFigure::Max => *self.sorted.last()? as f64,
            PublishedFigure::Stddev => self.stddev(rules.population_stddev)?,
            PublishedFigure::Quantile(q) => self.quantile(q, rules.quantiles)?,
        };
        Some(half_ticks / HALVES as f64)
    }

    /// Where `figure` lies, if rounding made values equal whose number it depends on. The other figures are known.
    pub(super) fn span(&self, figure: PublishedFigure, rules: FigureRules) -> Option<FigureSpan> {
        let stddev = self.stddev(rules.population_stddev);
        let span = self.merged.as_ref()?.span(figure, &self.sorted, self.infinite, stddev)?;
        Some(if figure.is_of_values() { span.times(1.0 / HALVES as f64) } else { span })
    }

    /// Whether `figure` is exact although values were rounded: an order statistic that is a packet id, or a zero for a lost probe.
    pub(super) fn is_exact(&self, figure: PublishedFigure, rules: FigureRules) -> bool {
        let Some(rounded) = &self.rounded else { return false };
        let place = match figure {
            PublishedFigure::Min => RankPlace { rank: 0, weight: 0.0 },
            PublishedFigure::Max => RankPlace { rank: (self.sorted.len() as u64).saturating_sub(1), weight: 0.0 },
            PublishedFigure::Quantile(q) if self.n() > 0 => rules.quantiles.place(q, self.n()),
            _ => return false,
        };
        let ranks = place.rank..=place.rank + u64::from(place.weight > 0.0);
        // A value that was rounded to the same number may be another one, which stands at that rank.
        let is_rounded = |number: &i64| rounded.binary_search(number).is_ok();
        ranks.into_iter().all(|rank| self.sorted.get(rank as usize).is_some_and(|number| !is_rounded(number)))
    }

    fn loss_ratio(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }

    fn mean(&self) -> Option<f64> {
        (!self.sorted.is_empty()).then(|| mean_of(self.sum, self.sorted.len()))
    }

    fn stddev(&self, of_population: bool) -> Option<f64> {
        let freedom = self.sorted.len().checked_sub(usize::from(!of_population)).filter(|freedom| *freedom > 0)?;
        Some((self.squares / freedom as f64).sqrt())
    }

    fn quantile(&self, q: f64, rule: QuantileRule) -> Option<f64> {
        let n = self.n();
        if n == 0 {
            return None;
        }
        let RankPlace { rank, weight } = rule.place(q, n);
        let low = *self.sorted.get(usize::try_from(rank).ok()?)? as f64;
        if weight == 0.0 {
            return Some(low);
        }
        let high = *self.sorted.get(usize::try_from(rank).ok()? + 1)? as f64;
        Some(low + (high - low) * weight)
    }
}

/// The mean of `n` numbers with this `sum`, from the exact sum.
fn mean_of(sum: i128, n: usize) -> f64 {
    let n = i128::try_from(n.max(1)).unwrap_or(i128::MAX);
    sum.div_euclid(n) as f64 + sum.rem_euclid(n) as f64 / n as f64
}

/// How figures are computed of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct FigureRules {
    /// Whether the standard deviation divides by n instead of n − 1.
    pub(super) population_stddev: bool,
    /// How a quantile lies between order statistics.
    pub(super) quantiles: QuantileRule,
}

/// Which order statistics of n a quantile q is computed from; ranks count from 1 in the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum QuantileRule {
    /// Interpolation at 1 + q(n − 1): type 7 of Hyndman and Fan, latlab's own.
    #[default]
    Interpolated,
    /// The one at or below that place.
    Lower,
    /// The one at or above that place.
    Higher,
    /// The mean of the two around that place.
    Midpoint,
    /// The one of rank ⌈qn⌉: type 1.
    NearestRank,
    /// The one of rank ⌊qn⌋ + 1: element `q * n` of an array that counts from 0.
    ArrayIndex,
    /// Interpolation at q(n + 1): type 6.
    Weibull,
}

/// A place between two order statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RankPlace {
    /// Rank of the lower one, from 0.
    rank: u64,
    /// Weight of the one after it.
    weight: f64,
}

impl QuantileRule {
    /// The rules that latlab does not use.
    pub(super) const OTHERS: [QuantileRule; 6] = [
        QuantileRule::NearestRank,
        QuantileRule::Lower,
        QuantileRule::Higher,
        QuantileRule::Midpoint,
        QuantileRule::ArrayIndex,
        QuantileRule::Weibull,
    ];

    /// Where quantile `q` of `n` numbers lies, of which there is at least one.
    fn place(self, q: f64, n: u64) -> RankPlace {
        let last = n - 1;
        let usual = QuantilePosition::of(q, n);
        let next = (usual.rank + u64::from(usual.weight > 0.0)).min(last);
        let at = |rank: u64| RankPlace { rank: rank.min(last), weight: 0.0 };
        // q is seldom a binary fraction: q·n that misses an integer by rounding alone is that integer.
        let product = q * n as f64;
        let product = if (product - product.round()).abs() < 1e-9 * n as f64 { product.round() } else { product };
        match self {
            QuantileRule::Interpolated => RankPlace { rank: usual.rank, weight: usual.weight },
            QuantileRule::Lower => at(usual.rank),
            QuantileRule::Higher => at(next),
            QuantileRule::Midpoint if next > usual.rank => RankPlace { rank: usual.rank, weight: 0.5 },
            QuantileRule::Midpoint => at(usual.rank),
            QuantileRule::NearestRank => at((product.ceil() as u64).saturating_sub(1)),
            QuantileRule::ArrayIndex => at(product as u64),
            QuantileRule::Weibull => {
                let place = (product + q - 1.0).clamp(0.0, last as f64);
                RankPlace { rank: place as u64, weight: place.fract() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::published::digits::ValueScale;
    use crate::sample::Sample;
    use crate::stats::plain;

    const RULE: PopulationRule = PopulationRule {
        factor: 2,
        less_dwell: false,
        with_warmup: false,
        lost: LostProbes::Infinite,
        table: NumberTable::Values,
    };

    fn data() -> PublishedData {
        PublishedData {
            warmup: 2,
            ids: Some((1..=7).collect()),
            dwell: Some(vec![10; 7]),
            lost: 1,
            ..PublishedData::of_values(vec![900, 800, 100, 300, 100, 200, 401], ValueScale::NANOS)
        }
    }

    fn figures(rule: PopulationRule) -> [Option<f64>; 5] {
        use PublishedFigure::{Max, Mean, Min, N, Quantile};
        let population = Population::of(&data(), rule);
        [N, Mean, Min, Max, Quantile(0.5)].map(|figure| population.figure(figure, FigureRules::default()))
    }

    #[test]
    fn a_rule_says_which_numbers_are_taken() {
        let some = |values: [f64; 5]| values.map(Some);
        // 100, 100, 200, 300, 401 and one that is infinite.
        assert_eq!(figures(RULE), some([6.0, 220.2, 100.0, 401.0, 250.0]));
        let halved = PopulationRule { factor: 1, ..RULE };
        assert_eq!(figures(halved), some([6.0, 110.1, 50.0, 200.5, 125.0]));
        let less_dwell = PopulationRule { less_dwell: true, ..RULE };
        assert_eq!(figures(less_dwell), some([6.0, 210.2, 90.0, 391.0, 240.0]));
        let left_out = PopulationRule { lost: LostProbes::LeftOut, ..RULE };
        assert_eq!(figures(left_out), some([5.0, 220.2, 100.0, 401.0, 200.0]));
        let zero = PopulationRule { lost: LostProbes::Zero, ..RULE };
        assert_eq!(figures(zero), some([6.0, 183.5, 0.0, 401.0, 150.0]));
        let distinct = PopulationRule { table: NumberTable::Distinct, lost: LostProbes::LeftOut, ..RULE };
        assert_eq!(figures(distinct), some([4.0, 250.25, 100.0, 401.0, 250.0]));
        let with_warmup = PopulationRule { with_warmup: true, ..RULE };
        let population = Population::of(&PublishedData { warmup_lost: 2, ..data() }, with_warmup);
        let figure = |figure| population.figure(figure, FigureRules::default());
        assert_eq!([figure(PublishedFigure::N), figure(PublishedFigure::Lost)], [Some(10.0), Some(3.0)]);
        assert_eq!(figure(PublishedFigure::LossRatio), Some(0.3));
        let with_warmup = PopulationRule { with_warmup: true, ..left_out };
        assert_eq!(figures(with_warmup), some([7.0, 2801.0 / 7.0, 100.0, 900.0, 300.0]));
        // The numbers of the packets are 3 to 7.
        let with_ids = PopulationRule { table: NumberTable::WithIds, ..left_out };
        assert_eq!(figures(with_ids), some([10.0, (1101.0 + 25.0) / 10.0, 3.0, 401.0, 53.5]));
    }

    #[test]
    fn order_statistics_that_are_ids_or_zeros_alone_are_exact() {
        use PublishedFigure::{Max, Mean, Min, Quantile};
        let data = PublishedData {
            ids: Some(vec![3, 5, 600]),
            lost: 1,
            finer: FinerDigits::BelowNanosecond,
            ..PublishedData::of_values(vec![5, 100, 200], ValueScale::NANOS)
        };
        let exact = |data: &PublishedData, rule: PopulationRule| {
            let population = Population::of(data, rule);
            // Of 3, 5, 5, 100, 200 and 600: one of both fives is a value.
            [Min, Max, Quantile(0.1), Quantile(0.2), Quantile(0.5), Mean]
                .map(|figure| population.is_exact(figure, FigureRules::default()))
        };
        let with_ids = PopulationRule { table: NumberTable::WithIds, lost: LostProbes::LeftOut, ..RULE };
        assert_eq!(exact(&data, with_ids), [true, true, false, false, false, false]);
        let zeros = PopulationRule { lost: LostProbes::Zero, ..RULE };
        assert_eq!(exact(&data, zeros), [true, false, false, false, false, false]);
        assert_eq!(exact(&data, PopulationRule { table: NumberTable::Distinct, ..zeros })[..2], [true, false]);
        assert_eq!(exact(&data, RULE), [false; 6], "values are rounded");
        let ids = PublishedData { ids: Some(vec![1, 2, 3]), ..data };
        assert_eq!(exact(&ids, with_ids)[2..], [true, true, false, false]);
    }

    #[test]
    fn the_usual_figures_are_those_of_a_summary() {
        let values: Vec<i64> = (0..1_000_i64).map(|step| 1_000_000 + step * step % 7_919).collect();
        let quantiles = [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.57];
        let sample = Sample::new(crate::metric::Metric::RoundTripDelay, values.clone());
        let described = plain(&sample, &quantiles, true);
        let population = Population::of(&PublishedData::of_values(values, ValueScale::NANOS), RULE);
        let figure = |figure| population.figure(figure, FigureRules::default());
        assert_eq!(figure(PublishedFigure::Mean), described.mean);
        for quantile in &described.quantiles {
            assert_eq!(figure(PublishedFigure::Quantile(quantile.q)), quantile.value, "{}", quantile.q);
        }
        let stddev = described.stddev.expect("a thousand values");
        assert!(figure(PublishedFigure::Stddev).is_some_and(|own| (own / stddev - 1.0).abs() < 1e-12));
    }

    /// Of the integers from 1 to 10, whose order statistics are their ranks.
    #[test]
    fn each_rule_takes_its_order_statistics() {
        let population = Population::of(&PublishedData::of_values((1..=10).collect(), ValueScale::NANOS), RULE);
        for (q, rule, expected) in [
            (0.95, QuantileRule::Interpolated, 9.55),
            (0.95, QuantileRule::Lower, 9.0),
            (0.95, QuantileRule::Higher, 10.0),
            (0.95, QuantileRule::Midpoint, 9.5),
            (0.95, QuantileRule::NearestRank, 10.0),
            (0.95, QuantileRule::ArrayIndex, 10.0),
            (0.95, QuantileRule::Weibull, 10.0),
            (0.5, QuantileRule::Interpolated, 5.5),
            (0.5, QuantileRule::NearestRank, 5.0),
            (0.5, QuantileRule::ArrayIndex, 6.0),
            (0.9, QuantileRule::NearestRank, 9.0),
            (0.9, QuantileRule::ArrayIndex, 10.0),
            (0.75, QuantileRule::Weibull, 8.25),
        ] {
            let rules = FigureRules { quantiles: rule, ..FigureRules::default() };
            let got = population.figure(PublishedFigure::Quantile(q), rules).expect("ten values");
            assert!((got - expected).abs() < 1e-9, "{q} by {rule:?}: {got}");
        }
    }

    #[test]
    fn figures_without_values_do_not_exist() {
        let empty = PublishedData { lost: 3, ..PublishedData::of_values(Vec::new(), ValueScale::NANOS) };
        let population = Population::of(&empty, RULE);
        let figure = |figure| population.figure(figure, FigureRules::default());
        assert_eq!((figure(PublishedFigure::N), figure(PublishedFigure::LossRatio)), (Some(3.0), Some(1.0)));
        for absent in [PublishedFigure::Mean, PublishedFigure::Quantile(0.5), PublishedFigure::Stddev] {
            assert_eq!(figure(absent), None);
        }
        let lossy = PublishedData { lost: 2, ..PublishedData::of_values(vec![1, 2], ValueScale::NANOS) };
        assert_eq!(Population::of(&lossy, RULE).figure(PublishedFigure::Quantile(0.9), FigureRules::default()), None);
    }
}
