//! The numbers that figures are computed from, correctly or by a mistake, and the figures of them.

use super::claim::PublishedFigure;
use super::data::{Halving, PublishedData};
use crate::stats::Outline;

/// Which numbers of the data are taken, and how figures are computed of them.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// What each value is multiplied by.
    pub(super) factor: f64,
    pub(super) less_dwell: bool,
    pub(super) with_warmup: bool,
    pub(super) lost: LostProbes,
    pub(super) table: NumberTable,
    /// The step to which each number is rounded, and the one to which it is cut off; 0 if it is not.
    pub(super) rounded_to: f64,
    pub(super) cut_off_to: f64,
    /// The shares of the numbers that are left out at the low and at the high end.
    pub(super) left_out: [f64; 2],
    /// What figures of values are multiplied by.
    pub(super) unit: f64,
    /// Whether the standard deviation divides by n instead of n − 1.
    pub(super) population_stddev: bool,
    /// The place of quantile q among n numbers, from 0.
    pub(super) place: fn(f64, f64) -> f64,
    /// Whether mean and median are exchanged.
    pub(super) exchanged: bool,
    pub(super) maximum: PublishedFigure,
    /// Whether the maximum is called a quantile above the median.
    pub(super) maximum_as_quantile: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostProbes {
    /// In quantiles and in n.
    Infinite,
    LeftOut,
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberTable {
    Values,
    Distinct,
    /// The values and the numbers of their packets.
    WithIds,
}

impl Rules {
    /// The correct ones for `data`.
    pub(super) fn of(data: &PublishedData) -> Rules {
        Rules {
            factor: if data.halving == Halving::Halved { 0.5 } else { 1.0 },
            less_dwell: data.less_dwell,
            with_warmup: false,
            lost: LostProbes::Infinite,
            table: NumberTable::Values,
            rounded_to: 0.0,
            cut_off_to: 0.0,
            left_out: [0.0; 2],
            unit: 1.0,
            population_stddev: false,
            // Type 7 of Hyndman and Fan, as in a summary.
            place: |q, n| q * (n - 1.0),
            exchanged: false,
            maximum: PublishedFigure::Max,
            maximum_as_quantile: false,
        }
    }

    /// Whether both take the same numbers.
    pub(super) fn shares_numbers(&self, other: &Rules) -> bool {
        let own = |it: &Rules| (it.factor, it.less_dwell, it.with_warmup, it.lost, it.table);
        let prepared = |it: &Rules| (it.rounded_to, it.cut_off_to, it.left_out);
        own(self) == own(other) && prepared(self) == prepared(other)
    }

    fn computed(&self, claimed: PublishedFigure) -> PublishedFigure {
        match claimed {
            PublishedFigure::Mean if self.exchanged => PublishedFigure::MEDIAN,
            PublishedFigure::MEDIAN if self.exchanged => PublishedFigure::Mean,
            PublishedFigure::Max => self.maximum,
            PublishedFigure::Quantile(q) if self.maximum_as_quantile && q > 0.5 => PublishedFigure::Max,
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Numbers {
    sorted: Vec<f64>,
    outline: Option<Outline>,
    /// How many further ones are infinite.
    infinite: u64,
    lost: u64,
    sent: u64,
}

impl Numbers {
    pub(super) fn of(data: &PublishedData, rule: &Rules) -> Numbers {
        let first = if rule.with_warmup { 0 } else { data.warmup };
        let mut numbers: Vec<f64> = match data.dwell.as_deref().filter(|_| rule.less_dwell) {
            None => data.values[first..].iter().map(|value| value * rule.factor).collect(),
            Some(dwell) => {
                let both = data.values[first..].iter().zip(&dwell[first..]);
                both.map(|(value, dwell)| (value - dwell) * rule.factor).collect()
            }
        };
        for (step, whole) in [(rule.rounded_to, f64::round as fn(f64) -> f64), (rule.cut_off_to, f64::trunc)] {
            numbers.iter_mut().filter(|_| step > 0.0).for_each(|number| *number = whole(*number / step) * step);
        }
        let lost = data.lost + if rule.with_warmup { data.warmup_lost } else { 0 };
        let sent = numbers.len() as u64 + lost;
        if rule.lost == LostProbes::Zero {
            numbers.extend(std::iter::repeat_n(0.0, lost as usize));
        }
        match (rule.table, &data.ids) {
            (NumberTable::WithIds, Some(ids)) => {
                numbers.extend(ids[first..].iter().map(|id| *id as f64 * data.id_unit))
            }
            (NumberTable::Distinct, _) => {
                numbers.sort_unstable_by(f64::total_cmp);
                numbers.dedup();
            }
            _ => {}
        }
        numbers.sort_unstable_by(f64::total_cmp);
        let [low, high] = rule.left_out.map(|share| settled(share * numbers.len() as f64) as usize);
        numbers.truncate(numbers.len() - high);
        numbers.drain(..low);
        let outline = Outline::of(&mut numbers.clone());
        let infinite = if rule.lost == LostProbes::Infinite { lost } else { 0 };
        Numbers { sorted: numbers, outline, infinite, lost, sent }
    }

    /// The figure that is called `claimed`; `None` if it does not exist or is infinite.
    pub(super) fn figure(&self, claimed: PublishedFigure, rule: &Rules) -> Option<f64> {
        let n = self.sorted.len() as u64 + self.infinite;
        let value = match rule.computed(claimed) {
            PublishedFigure::N => return Some(n as f64),
            PublishedFigure::Lost => return Some(self.lost as f64),
            PublishedFigure::LossRatio => return (self.sent > 0).then(|| self.lost as f64 / self.sent as f64),
            PublishedFigure::Mean => self.outline?.mean,
            PublishedFigure::Min => self.outline?.min,
            PublishedFigure::Max => self.outline?.max,
            PublishedFigure::Stddev => {
                let own = self.outline.filter(|own| own.n > 1)?;
                own.stddev * if rule.population_stddev { (1.0 - 1.0 / own.n as f64).sqrt() } else { 1.0 }
            }
            PublishedFigure::Quantile(q) => {
                let place = settled((rule.place)(q, n as f64)).clamp(0.0, n.checked_sub(1)? as f64);
                let low = *self.sorted.get(place as usize)?;
                let next = if place.fract() > 0.0 { *self.sorted.get(place as usize + 1)? } else { low };
                low + (next - low) * place.fract()
            }
        };
        Some(value * rule.unit)
    }
}

/// `place`, or the integer that it misses by rounding alone: q is seldom a binary fraction.
pub(super) fn settled(place: f64) -> f64 {
    if (place - place.round()).abs() < 1e-9 * place.abs() { place.round() } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::mistake::MISTAKES;

    /// Of the integers from 1 to 10, whose order statistics are their ranks.
    #[test]
    fn each_rule_takes_its_order_statistics() {
        let data = PublishedData::of_values((1..=10).map(f64::from), true);
        let numbers = Numbers::of(&data, &Rules::of(&data));
        for (q, code, expected) in [
            (0.95, "", 9.55),
            (0.95, "quantile-lower", 9.0),
            (0.95, "quantile-higher", 10.0),
            (0.95, "quantile-midpoint", 9.5),
            (0.95, "quantile-nearest-rank", 10.0),
            (0.95, "quantile-array-index", 10.0),
            (0.95, "quantile-weibull", 10.0),
            (0.5, "", 5.5),
            (0.5, "quantile-nearest-rank", 5.0),
            (0.5, "quantile-array-index", 6.0),
            (0.9, "quantile-nearest-rank", 9.0),
            (0.9, "quantile-array-index", 10.0),
            (0.75, "quantile-weibull", 8.25),
        ] {
            let mut rules = Rules::of(&data);
            MISTAKES.iter().filter(|mistake| mistake.code == code).for_each(|mistake| (mistake.apply)(&mut rules));
            let got = numbers.figure(PublishedFigure::Quantile(q), &rules).expect("ten values");
            assert!((got - expected).abs() < 1e-9, "{q} by {code}: {got}");
        }
    }
}
