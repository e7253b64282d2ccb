//! The mistakes that can lie between a sample and a published figure: each changes the rules by which figures are computed.

use serde::Serialize;

use super::claim::PublishedFigure;
use super::data::{Halving, PublishedData};
use super::numbers::{LostProbes, NumberTable, Numbers, Rules, settled};

/// A mistake, or another definition than the stated one.
#[derive(Debug, Serialize)]
pub struct Mistake {
    pub code: &'static str,
    /// Whether it is a choice that other tools make by intention, and that a publication should state.
    pub convention: bool,
    /// What was computed, without the end of the sentence.
    pub sentence: &'static str,
    #[serde(skip)]
    pub(super) aspect: Aspect,
    #[serde(skip)]
    pub(super) apply: fn(&mut Rules),
}

/// Mistakes of one aspect exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    Half,
    Dwell,
    Table,
    /// Rounded or left out before figures were computed.
    Prepared,
    Warmup,
    Loss,
    Unit,
    Exchange,
    Maximum,
    MaximumAsQuantile,
    Deviation,
    QuantileRule,
}

use Aspect::{Deviation, Dwell, Exchange, Half, Loss, Maximum, MaximumAsQuantile, Prepared, Table, Unit, Warmup};

/// The known mistakes; of two that fit alike the first is chosen.
pub(super) const MISTAKES: [Mistake; 43] = [
    of(
        Half,
        "half-round-trip",
        |it| it.factor /= 2.0,
        "the values are of half the round trip, which is not a delay of one way",
    ),
    of(Half, "whole-round-trip", |it| it.factor *= 2.0, "the values are of whole round trips, and not of halves"),
    of(Dwell, "dwell-subtracted", |it| it.less_dwell = true, "the reflector's processing time (dwell) was subtracted"),
    of(Dwell, "dwell-kept", |it| it.less_dwell = false, "the reflector's processing time (dwell) was not subtracted"),
    of(
        Table,
        "ids-included",
        |it| it.table = NumberTable::WithIds,
        "the statistics were computed over a table that still held the packet ids with the values: the mean is that of ids and \
         values together, quantiles are of both, and the minimum can be an id",
    ),
    of(
        Table,
        "distinct-values",
        |it| it.table = NumberTable::Distinct,
        "each distinct value was taken once, as if a table of values and counts was averaged without its counts",
    ),
    of(Warmup, "warmup-included", |it| it.with_warmup = true, "the probes of the warm-up were not left out"),
    of(Loss, "lost-left-out", |it| it.lost = LostProbes::LeftOut, "lost probes were left out of n and of quantiles"),
    of(Loss, "lost-as-zero", |it| it.lost = LostProbes::Zero, "each lost probe was counted as a value of 0"),
    of(Unit, "unit-times-1000", |it| it.unit = 1e3, "the numbers are 1,000 times too large for their unit"),
    of(Unit, "unit-by-1000", |it| it.unit = 1e-3, "the numbers are 1,000 times too small for their unit"),
    of(Exchange, "mean-median-exchanged", |it| it.exchanged = true, "the mean is called median, or the median mean"),
    of(Maximum, "p90-as-max", |it| it.maximum = PublishedFigure::Quantile(0.9), "what is called maximum is p90"),
    of(Maximum, "p95-as-max", |it| it.maximum = PublishedFigure::Quantile(0.95), "what is called maximum is p95"),
    of(Maximum, "p99-as-max", |it| it.maximum = PublishedFigure::Quantile(0.99), "what is called maximum is p99"),
    of(Maximum, "p99-9-as-max", |it| it.maximum = PublishedFigure::Quantile(0.999), "what is called maximum is p99.9"),
    of(
        Maximum,
        "p99-99-as-max",
        |it| it.maximum = PublishedFigure::Quantile(0.9999),
        "what is called maximum is p99.99",
    ),
    of(
        MaximumAsQuantile,
        "max-as-quantile",
        |it| it.maximum_as_quantile = true,
        "what is called a quantile is the maximum",
    ),
    of(
        Deviation,
        "population-stddev",
        |it| it.population_stddev = true,
        "the standard deviation divides by n, not by n − 1",
    ),
    prepared("slowest-0-1-left-out", |it| it.left_out = [0.0, 0.001], "the slowest 0.1 % were left out"),
    prepared("slowest-1-left-out", |it| it.left_out = [0.0, 0.01], "the slowest 1 % were left out"),
    prepared("slowest-5-left-out", |it| it.left_out = [0.0, 0.05], "the slowest 5 % were left out"),
    prepared("ends-0-1-left-out", |it| it.left_out = [0.001; 2], "the fastest and the slowest 0.1 % were left out"),
    prepared("ends-1-left-out", |it| it.left_out = [0.01; 2], "the fastest and the slowest 1 % were left out"),
    prepared("ends-5-left-out", |it| it.left_out = [0.05; 2], "the fastest and the slowest 5 % were left out"),
    prepared("rounded-to-us", |it| it.rounded_to = 1e3, "each value was rounded to 1 µs before"),
    prepared("cut-off-to-us", |it| it.cut_off_to = 1e3, "each value was cut off to 1 µs before"),
    prepared("rounded-to-ms", |it| it.rounded_to = 1e6, "each value was rounded to 1 ms before"),
    prepared("cut-off-to-ms", |it| it.cut_off_to = 1e6, "each value was cut off to 1 ms before"),
    prepared("rounded-to-whole", |it| it.rounded_to = 1.0, "each value was rounded to a whole number before"),
    prepared("cut-off-to-whole", |it| it.cut_off_to = 1.0, "each value was cut off to a whole number before"),
    by("quantile-nearest-rank", |it| it.place = |q, n| settled(q * n).ceil() - 1.0, "quantiles are of type 1 (⌈qn⌉)"),
    by("quantile-type-2", |it| it.place = type_2, "quantiles are of type 2 (⌈qn⌉, or midway)"),
    by("quantile-type-3", |it| it.place = type_3, "quantiles are of type 3 (rank nearest to qn)"),
    by("quantile-type-4", |it| it.place = |q, n| q * n - 1.0, "quantiles are of type 4 (qn)"),
    by("quantile-type-5", |it| it.place = |q, n| q * n - 0.5, "quantiles are of type 5 (qn + 1/2)"),
    by("quantile-weibull", |it| it.place = |q, n| q * (n + 1.0) - 1.0, "quantiles are of type 6 (q(n + 1))"),
    by("quantile-type-8", |it| it.place = type_8, "quantiles are of type 8 (q(n + 1/3) + 1/3)"),
    by("quantile-type-9", |it| it.place = type_9, "quantiles are of type 9 (q(n + 1/4) + 3/8)"),
    by("quantile-lower", |it| it.place = |q, n| type_7(q, n).floor(), "quantiles are taken at the lower rank"),
    by("quantile-higher", |it| it.place = |q, n| type_7(q, n).ceil(), "quantiles are taken at the higher rank"),
    by("quantile-midpoint", |it| it.place = midpoint, "quantiles are taken midway between two ranks"),
    by(
        "quantile-array-index",
        |it| it.place = |q, n| settled(q * n).floor(),
        "quantiles are taken at array index ⌊qn⌋",
    ),
];

const fn of(aspect: Aspect, code: &'static str, apply: fn(&mut Rules), sentence: &'static str) -> Mistake {
    let convention = matches!(aspect, Half | Dwell | Prepared | Deviation | Aspect::QuantileRule);
    Mistake { code, convention, sentence, aspect, apply }
}

const fn by(code: &'static str, apply: fn(&mut Rules), sentence: &'static str) -> Mistake {
    of(Aspect::QuantileRule, code, apply, sentence)
}

const fn prepared(code: &'static str, apply: fn(&mut Rules), sentence: &'static str) -> Mistake {
    of(Prepared, code, apply, sentence)
}

fn type_2(q: f64, n: f64) -> f64 {
    let rank = settled(q * n);
    if rank.fract() > 0.0 { rank.ceil() - 1.0 } else { rank - 0.5 }
}

fn type_3(q: f64, n: f64) -> f64 {
    settled(q * n).round_ties_even() - 1.0
}

fn type_7(q: f64, n: f64) -> f64 {
    settled(q * (n - 1.0))
}

fn type_8(q: f64, n: f64) -> f64 {
    q * (n + 1.0 / 3.0) - 2.0 / 3.0
}

fn type_9(q: f64, n: f64) -> f64 {
    q * (n + 0.25) - 0.625
}

fn midpoint(q: f64, n: f64) -> f64 {
    let place = type_7(q, n);
    if place.fract() > 0.0 { place.floor() + 0.5 } else { place }
}

/// More lost probes than this are not written out as zeros.
const ZEROS_MAX: u64 = 100_000_000;

impl Mistake {
    /// Whether `data` have what it takes.
    fn is_possible(&self, data: &PublishedData) -> bool {
        match self.code {
            "half-round-trip" => matches!(data.halving, Halving::Whole | Halving::Unknown),
            "whole-round-trip" => matches!(data.halving, Halving::Halved | Halving::Unknown),
            "dwell-subtracted" | "dwell-kept" => data.dwell.is_some(),
            "ids-included" => data.ids.is_some(),
            "rounded-to-whole" | "cut-off-to-whole" => !data.is_timed,
            code if code.starts_with("rounded-") || code.starts_with("cut-off-") => data.is_timed,
            "lost-as-zero" => data.lost + data.warmup_lost <= ZEROS_MAX,
            _ => true,
        }
    }
}

/// Mean and p99.9 of `values` by the mistake `code`; the id of a value is its place, from 1.
pub fn by_mistake(code: &str, values: Vec<f64>) -> [Option<f64>; 2] {
    let ids = Some((1..=values.len() as u64).collect());
    let data = PublishedData { ids, ..PublishedData::of_values(values, true) };
    let mut rules = Rules::of(&data);
    MISTAKES.iter().filter(|mistake| mistake.code == code).for_each(|mistake| (mistake.apply)(&mut rules));
    let numbers = Numbers::of(&data, &rules);
    [PublishedFigure::Mean, PublishedFigure::Quantile(0.999)].map(|figure| numbers.figure(figure, &rules))
}

/// Mistakes that were made together, as places in [`MISTAKES`]; without any it is the correct computation.
pub(super) type Hypothesis = Vec<usize>;

/// How many of them count as mistakes: the rule of quantiles moves a figure by one value at most.
pub(super) fn count(hypothesis: &Hypothesis) -> usize {
    hypothesis.iter().filter(|at| MISTAKES[**at].aspect != Aspect::QuantileRule).count()
}

/// The correct computation, and each mistake that `data` allow.
pub(super) fn single(data: &PublishedData) -> Vec<Hypothesis> {
    let possible = (0..MISTAKES.len()).filter(|at| MISTAKES[*at].is_possible(data)).map(|at| vec![at]);
    std::iter::once(Vec::new()).chain(possible).collect()
}

/// Every combination of at most two of `mistakes`, with or without another definition of the dwell. The correct computation is
/// the first, and none is behind one with more mistakes.
pub(super) fn combined(mistakes: &[usize]) -> Vec<Hypothesis> {
    let aspect = |at: usize| MISTAKES[at].aspect;
    let (dwell, mistakes): (Vec<usize>, Vec<usize>) = mistakes.iter().partition(|at| aspect(**at) == Dwell);
    let mut sets: Vec<Hypothesis> = vec![Vec::new()];
    for (index, first) in mistakes.iter().enumerate() {
        let others = mistakes[index + 1..].iter().filter(|other| aspect(**other) != aspect(*first));
        sets.push(vec![*first]);
        sets.extend(others.map(|second| vec![*first, *second]));
    }
    let with_dwell: Vec<Hypothesis> =
        dwell.iter().flat_map(|own| sets.iter().map(|set| [&[*own], set.as_slice()].concat())).collect();
    sets.extend(with_dwell);
    sets.sort_by_key(|set| (count(set), !set.is_empty()));
    sets
}
