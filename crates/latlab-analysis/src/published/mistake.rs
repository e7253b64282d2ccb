//! The mistakes that can lie between a sample and a published figure. Each is a function of the data: the figure as the
//! mistake would compute it.

use super::claim::{FigureClaim, PublishedFigure};
use super::population::{FigureRules, LostProbes, NumberTable, PopulationRule, QuantileRule, ZEROS_MAX};
use super::raw_values::{Halving, PublishedData};
use crate::units::human;

/// A mistake, or another definition than the stated one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mistake {
    HalfRoundTrip,
    /// Whole round trips instead of halves.
    WholeRoundTrip,
    /// The reflector's dwell is subtracted.
    DwellSubtracted,
    /// The reflector's dwell is not subtracted.
    DwellKept,
    /// The figures are of a table that still held the numbers of the packets.
    IdsIncluded,
    /// Each distinct value was taken once: a table of values and counts, without its counts.
    DistinctValues,
    /// The warm-up was not left out.
    WarmupIncluded,
    /// Lost probes were left out of n and of quantiles.
    LostLeftOut,
    /// Lost probes were taken as values of 0.
    LostAsZero,
    /// The unit is a thousandth of what it is called, so that the number is 1,000 times too large.
    TimesThousand,
    /// The unit is a thousand of what it is called, so that the number is 1,000 times too small.
    ByThousand,
    /// Mean and median are exchanged.
    MeanMedianExchanged,
    /// This quantile is called the maximum.
    QuantileAsMaximum(f64),
    /// The maximum is called a quantile.
    MaximumAsQuantile,
    /// The standard deviation divides by n instead of n − 1.
    PopulationStddev,
    /// Quantiles by another rule than interpolation.
    OtherQuantileRule(QuantileRule),
}

/// Mistakes of one aspect exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aspect {
    Half,
    Dwell,
    Table,
    Warmup,
    Loss,
    Unit,
    Exchange,
    Maximum,
    MaximumAsQuantile,
    Deviation,
    QuantileRule,
}

/// Quantiles that may be called the maximum, besides claimed ones.
const LARGE_QUANTILES: [f64; 5] = [0.9999, 0.999, 0.99, 0.95, 0.9];

impl Mistake {
    /// The mistakes that `data` allow, and that can change one of `claims`; the simplest first.
    pub(super) fn possible(data: &PublishedData, claims: &[FigureClaim]) -> Vec<Mistake> {
        let has = |is: fn(PublishedFigure) -> bool| claims.iter().any(|claim| is(claim.figure));
        let (quantile, maximum) =
            (has(|it| matches!(it, PublishedFigure::Quantile(_))), has(|it| it == PublishedFigure::Max));
        let (stddev, centre) = (has(|it| it == PublishedFigure::Stddev), has(is_centre));
        let lost = data.lost.saturating_add(data.warmup_lost);
        let can_double = || data.halving == Halving::Halved || (data.halving == Halving::Unknown && data.can_double());
        let mut possible = vec![
            (Mistake::HalfRoundTrip, matches!(data.halving, Halving::Whole | Halving::Unknown)),
            (Mistake::WholeRoundTrip, can_double()),
            (Mistake::DwellSubtracted, data.dwell.is_some() && !data.less_dwell),
            (Mistake::DwellKept, data.dwell.is_some() && data.less_dwell),
            (Mistake::IdsIncluded, data.has_fitting_ids()),
            (Mistake::DistinctValues, true),
            (Mistake::WarmupIncluded, data.warmup > 0 || data.warmup_lost > 0),
            (Mistake::LostLeftOut, lost > 0),
            (Mistake::LostAsZero, lost > 0 && lost <= ZEROS_MAX),
            (Mistake::TimesThousand, has(PublishedFigure::is_of_values)),
            (Mistake::ByThousand, has(PublishedFigure::is_of_values)),
            (Mistake::MeanMedianExchanged, centre),
            (Mistake::MaximumAsQuantile, quantile),
            (Mistake::PopulationStddev, stddev),
        ];
        let mut quantiles = LARGE_QUANTILES.to_vec();
        let claimed = claims.iter().filter_map(|claim| match claim.figure {
            PublishedFigure::Quantile(q) if q > 0.5 && !LARGE_QUANTILES.contains(&q) => Some(q),
            _ => None,
        });
        quantiles.extend(claimed);
        possible.extend(quantiles.into_iter().map(|q| (Mistake::QuantileAsMaximum(q), maximum)));
        possible.extend(QuantileRule::OTHERS.map(|rule| (Mistake::OtherQuantileRule(rule), quantile)));
        possible.into_iter().filter(|(_, is_possible)| *is_possible).map(|(mistake, _)| mistake).collect()
    }

    const fn aspect(self) -> Aspect {
        match self {
            Mistake::HalfRoundTrip | Mistake::WholeRoundTrip => Aspect::Half,
            Mistake::DwellSubtracted | Mistake::DwellKept => Aspect::Dwell,
            Mistake::IdsIncluded | Mistake::DistinctValues => Aspect::Table,
            Mistake::WarmupIncluded => Aspect::Warmup,
            Mistake::LostLeftOut | Mistake::LostAsZero => Aspect::Loss,
            Mistake::TimesThousand | Mistake::ByThousand => Aspect::Unit,
            Mistake::MeanMedianExchanged => Aspect::Exchange,
            Mistake::QuantileAsMaximum(_) => Aspect::Maximum,
            Mistake::MaximumAsQuantile => Aspect::MaximumAsQuantile,
            Mistake::PopulationStddev => Aspect::Deviation,
            Mistake::OtherQuantileRule(_) => Aspect::QuantileRule,
        }
    }

    /// Whether it is another definition of the same delay, which does not count among the mistakes of a hypothesis.
    const fn is_of_dwell(self) -> bool {
        matches!(self, Mistake::DwellSubtracted | Mistake::DwellKept)
    }

    /// Whether it is a choice that other tools make by intention, and that a publication should state.
    pub const fn is_convention(self) -> bool {
        matches!(self.aspect(), Aspect::Half | Aspect::Dwell | Aspect::Deviation | Aspect::QuantileRule)
    }

    pub fn code(self) -> String {
        match self {
            Mistake::HalfRoundTrip => "half-round-trip".into(),
            Mistake::WholeRoundTrip => "whole-round-trip".into(),
            Mistake::DwellSubtracted => "dwell-subtracted".into(),
            Mistake::DwellKept => "dwell-kept".into(),
            Mistake::IdsIncluded => "ids-included".into(),
            Mistake::DistinctValues => "distinct-values".into(),
            Mistake::WarmupIncluded => "warmup-included".into(),
            Mistake::LostLeftOut => "lost-left-out".into(),
            Mistake::LostAsZero => "lost-as-zero".into(),
            Mistake::TimesThousand => "unit-times-1000".into(),
            Mistake::ByThousand => "unit-by-1000".into(),
            Mistake::MeanMedianExchanged => "mean-median-exchanged".into(),
            Mistake::QuantileAsMaximum(q) => format!("{}-as-max", human::quantile(q).replace('.', "-")),
            Mistake::MaximumAsQuantile => "max-as-quantile".into(),
            Mistake::PopulationStddev => "population-stddev".into(),
            Mistake::OtherQuantileRule(rule) => rule_code(rule).into(),
        }
    }

    /// For a table: `mean of distinct values`.
    pub fn title(self) -> String {
        match self {
            Mistake::HalfRoundTrip => "round trip / 2".into(),
            Mistake::WholeRoundTrip => "whole round trip".into(),
            Mistake::DwellSubtracted => "dwell subtracted".into(),
            Mistake::DwellKept => "dwell not subtracted".into(),
            Mistake::IdsIncluded => "packet ids among the values".into(),
            Mistake::DistinctValues => "distinct values only".into(),
            Mistake::WarmupIncluded => "warm-up included".into(),
            Mistake::LostLeftOut => "lost probes left out".into(),
            Mistake::LostAsZero => "lost probes as 0".into(),
            Mistake::TimesThousand => "1,000 times too large".into(),
            Mistake::ByThousand => "1,000 times too small".into(),
            Mistake::MeanMedianExchanged => "mean and median exchanged".into(),
            Mistake::QuantileAsMaximum(q) => format!("{} called maximum", human::quantile(q)),
            Mistake::MaximumAsQuantile => "maximum called quantile".into(),
            Mistake::PopulationStddev => "n instead of n − 1".into(),
            Mistake::OtherQuantileRule(rule) => format!("quantile {}", rule_words(rule)),
        }
    }

    /// What was computed, as a sentence without its end.
    pub fn sentence(self) -> String {
        match self {
            Mistake::HalfRoundTrip => "the figures are of half the round trip, which is not a delay of one way".into(),
            Mistake::WholeRoundTrip => "the figures are of whole round trips, and not of halves".into(),
            Mistake::DwellSubtracted => "the dwell of the reflector was subtracted from each round trip".into(),
            Mistake::DwellKept => "the dwell of the reflector was not subtracted from the round trips".into(),
            Mistake::IdsIncluded => {
                "the figures were taken over a table that still held the packet ids beside the values: the mean is that of \
                 ids and values together, quantiles are of both, and the minimum can be an id"
                    .into()
            }
            Mistake::DistinctValues => {
                "each distinct value was taken once, as if a table of values and counts was averaged without its counts".into()
            }
            Mistake::WarmupIncluded => "the probes of the warm-up were not left out".into(),
            Mistake::LostLeftOut => {
                "lost probes were left out: n and quantiles are of answered probes, as if the lost ones had been no slower"
                    .into()
            }
            Mistake::LostAsZero => "each lost probe was counted as a value of 0".into(),
            Mistake::TimesThousand => "the numbers are 1,000 times too large for their unit".into(),
            Mistake::ByThousand => "the numbers are 1,000 times too small for their unit".into(),
            Mistake::MeanMedianExchanged => "the mean is called median, or the median mean".into(),
            Mistake::QuantileAsMaximum(q) => format!("what is called maximum is {}", human::quantile(q)),
            Mistake::MaximumAsQuantile => "what is called a quantile is the maximum".into(),
            Mistake::PopulationStddev => {
                "the standard deviation divides by n, as for a whole population, and not by n − 1".into()
            }
            Mistake::OtherQuantileRule(rule) => format!("quantiles are {}, and not interpolated", rule_words(rule)),
        }
    }
}

const fn rule_code(rule: QuantileRule) -> &'static str {
    match rule {
        QuantileRule::Interpolated => "quantile-interpolated",
        QuantileRule::Lower => "quantile-lower",
        QuantileRule::Higher => "quantile-higher",
        QuantileRule::Midpoint => "quantile-midpoint",
        QuantileRule::NearestRank => "quantile-nearest-rank",
        QuantileRule::ArrayIndex => "quantile-array-index",
        QuantileRule::Weibull => "quantile-weibull",
    }
}

const fn rule_words(rule: QuantileRule) -> &'static str {
    match rule {
        QuantileRule::Interpolated => "interpolated at 1 + q(n − 1)",
        QuantileRule::Lower => "taken at the next lower rank",
        QuantileRule::Higher => "taken at the next higher rank",
        QuantileRule::Midpoint => "taken midway between two ranks",
        QuantileRule::NearestRank => "taken at rank ⌈qn⌉",
        QuantileRule::ArrayIndex => "taken at array index ⌊qn⌋",
        QuantileRule::Weibull => "interpolated at q(n + 1)",
    }
}

const fn is_centre(figure: PublishedFigure) -> bool {
    match figure {
        PublishedFigure::Mean => true,
        PublishedFigure::Quantile(q) => q == 0.5,
        _ => false,
    }
}

/// At most so many mistakes are combined.
const MISTAKES_MAX: usize = 2;

/// Mistakes that were made together; without any it is the correct computation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hypothesis {
    /// In the order of `Mistake::possible`; no two are of one aspect.
    pub mistakes: Vec<Mistake>,
}

impl Hypothesis {
    /// Every combination of the `possible` mistakes: at most two, with or without another definition of the dwell. The
    /// correct computation is the first, and no other is behind one with more mistakes.
    pub(super) fn all(possible: &[Mistake]) -> Vec<Hypothesis> {
        let (definitions, mistakes): (Vec<Mistake>, Vec<Mistake>) =
            possible.iter().copied().partition(|mistake| mistake.is_of_dwell());
        let mut sets: Vec<Vec<Mistake>> = vec![Vec::new()];
        sets.extend(mistakes.iter().map(|mistake| vec![*mistake]));
        for (index, first) in mistakes.iter().enumerate() {
            let others = mistakes[index + 1..].iter().filter(|other| other.aspect() != first.aspect());
            sets.extend(others.map(|second| vec![*first, *second]));
        }
        debug_assert!(sets.iter().all(|set| set.len() <= MISTAKES_MAX));
        let with = |set: &Vec<Mistake>| {
            let others = definitions.iter().map(|definition| [&[*definition], set.as_slice()].concat());
            std::iter::once(set.clone()).chain(others).collect::<Vec<_>>()
        };
        let mut all: Vec<Hypothesis> = sets.iter().flat_map(with).map(|mistakes| Hypothesis { mistakes }).collect();
        all.sort_by_key(|hypothesis| hypothesis.mistakes.len());
        all
    }

    /// Whether all of its mistakes are among those of `other`.
    pub(super) fn is_part_of(&self, other: &Hypothesis) -> bool {
        self.mistakes.iter().all(|mistake| other.mistakes.contains(mistake))
    }

    /// Which numbers of `data` it takes.
    pub(super) fn population(&self, data: &PublishedData) -> PopulationRule {
        let usual = PopulationRule {
            factor: if data.halving == Halving::Halved { 1 } else { 2 },
            less_dwell: data.less_dwell,
            with_warmup: false,
            lost: LostProbes::Infinite,
            table: NumberTable::Values,
        };
        self.mistakes.iter().fold(usual, |rule, mistake| match mistake {
            Mistake::HalfRoundTrip => PopulationRule { factor: rule.factor / 2, ..rule },
            Mistake::WholeRoundTrip => PopulationRule { factor: rule.factor * 2, ..rule },
            Mistake::DwellSubtracted => PopulationRule { less_dwell: true, ..rule },
            Mistake::DwellKept => PopulationRule { less_dwell: false, ..rule },
            Mistake::IdsIncluded => PopulationRule { table: NumberTable::WithIds, ..rule },
            Mistake::DistinctValues => PopulationRule { table: NumberTable::Distinct, ..rule },
            Mistake::WarmupIncluded => PopulationRule { with_warmup: true, ..rule },
            Mistake::LostLeftOut => PopulationRule { lost: LostProbes::LeftOut, ..rule },
            Mistake::LostAsZero => PopulationRule { lost: LostProbes::Zero, ..rule },
            _ => rule,
        })
    }

    /// The figure that it computes where `claimed` is claimed.
    pub(super) fn computed(&self, claimed: PublishedFigure) -> PublishedFigure {
        self.mistakes.iter().fold(claimed, |figure, mistake| match (mistake, claimed) {
            (Mistake::MeanMedianExchanged, PublishedFigure::Mean) => PublishedFigure::Quantile(0.5),
            (Mistake::MeanMedianExchanged, claimed) if is_centre(claimed) => PublishedFigure::Mean,
            (Mistake::QuantileAsMaximum(q), PublishedFigure::Max) => PublishedFigure::Quantile(*q),
            (Mistake::MaximumAsQuantile, PublishedFigure::Quantile(q)) if q > 0.5 => PublishedFigure::Max,
            _ => figure,
        })
    }

    /// How it computes figures of numbers.
    pub(super) fn rules(&self) -> FigureRules {
        self.mistakes.iter().fold(FigureRules::default(), |rules, mistake| match mistake {
            Mistake::PopulationStddev => FigureRules { population_stddev: true, ..rules },
            Mistake::OtherQuantileRule(quantiles) => FigureRules { quantiles: *quantiles, ..rules },
            _ => rules,
        })
    }

    /// By what it multiplies figures of values.
    pub(super) fn factor(&self) -> f64 {
        self.mistakes.iter().fold(1.0, |factor, mistake| match mistake {
            Mistake::TimesThousand => factor * 1e3,
            Mistake::ByThousand => factor / 1e3,
            _ => factor,
        })
    }

    /// By what it multiplies the rounding of values in their figures, at most: halves may have been rounded before they were
    /// doubled.
    pub(super) fn rounding_factor(&self) -> f64 {
        self.factor() * if self.mistakes.contains(&Mistake::WholeRoundTrip) { 2.0 } else { 1.0 }
    }

    /// The titles of its mistakes: `round trip / 2, packet ids among the values`.
    pub fn title(&self) -> String {
        self.mistakes.iter().map(|mistake| mistake.title()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::published::claim::StatedClaims;
    use crate::analysis::published::digits::ValueScale;

    fn claims(text: &str) -> Vec<FigureClaim> {
        let mut stated = StatedClaims::default();
        stated.add(text).expect(text);
        stated.figures
    }

    fn all(data: &PublishedData, text: &str) -> Vec<Hypothesis> {
        Hypothesis::all(&Mistake::possible(data, &claims(text)))
    }

    #[test]
    fn only_mistakes_that_the_data_allow_are_tried() {
        let plain =
            PublishedData { halving: Halving::NotRoundTrip, ..PublishedData::of_values(vec![1], ValueScale::NANOS) };
        let codes = |data: &PublishedData, text: &str| {
            let possible = Mistake::possible(data, &claims(text));
            possible.into_iter().map(Mistake::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&plain, "min=1us"), ["distinct-values", "unit-times-1000", "unit-by-1000"]);
        assert_eq!(codes(&plain, "n=1"), ["distinct-values"]);
        let round_trips = PublishedData { halving: Halving::Whole, lost: 1, warmup: 1, ..plain };
        let of_round_trips = codes(&round_trips, "max=1us stddev=1us");
        for code in
            ["half-round-trip", "lost-left-out", "lost-as-zero", "warmup-included", "p99-9-as-max", "population-stddev"]
        {
            assert!(of_round_trips.iter().any(|own| own == code), "{code}: {of_round_trips:?}");
        }
        for code in ["whole-round-trip", "ids-included", "dwell-subtracted", "max-as-quantile", "quantile-lower"] {
            assert!(of_round_trips.iter().all(|own| own != code), "{code}");
        }
    }

    #[test]
    fn at_most_two_mistakes_are_combined_and_no_two_of_one_aspect() {
        let data = PublishedData {
            ids: Some(vec![1]),
            dwell: Some(vec![1]),
            ..PublishedData::of_values(vec![1], ValueScale::NANOS)
        };
        let all = all(&data, "mean=1us max=2us p99=1us stddev=1us");
        assert!(all[0].mistakes.is_empty() && all.is_sorted_by_key(|one| one.mistakes.len()));
        for hypothesis in &all {
            let aspects: Vec<Aspect> = hypothesis.mistakes.iter().map(|mistake| mistake.aspect()).collect();
            let is_repeated = |aspect: &Aspect| aspects.iter().filter(|other| *other == aspect).count() > 1;
            assert!(!aspects.iter().any(is_repeated), "{hypothesis:?}");
            assert!(hypothesis.mistakes.iter().filter(|mistake| !mistake.is_of_dwell()).count() <= MISTAKES_MAX);
        }
        let a = [Mistake::DwellSubtracted, Mistake::HalfRoundTrip, Mistake::IdsIncluded];
        assert!(all.iter().any(|one| one.mistakes == a), "the third is another definition");
    }

    #[test]
    fn codes_and_titles_are_distinct() {
        let data = PublishedData {
            ids: Some(vec![1]),
            dwell: Some(vec![1]),
            warmup: 1,
            lost: 1,
            ..PublishedData::of_values(vec![1], ValueScale::NANOS)
        };
        let possible = Mistake::possible(&data, &claims("mean=1us max=2us p99=1us stddev=1us"));
        for words in [Mistake::code, Mistake::title, Mistake::sentence] {
            let mut all: Vec<String> = possible.iter().map(|mistake| words(*mistake)).collect();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), possible.len());
        }
    }
}
