//! Values and published figures on one scale of integers: which numbers fit, which digits match, and how easily one of several
//! hypotheses has them by chance.

use std::f64::consts::SQRT_2;

use super::claim::{FigureClaim, PublishedFigure, PublishedUnit};
use super::merged::FigureSpan;
use crate::analysis::experiment::SlackFacts;
use crate::diagnostics::Failure;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, counted, listed};

/// What the integers of a sample count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueScale {
    /// Nanoseconds, in steps of 10 to the power of minus this.
    Time(u32),
    /// Numbers without a unit, in steps of 10 to the power of minus this.
    Plain(u32),
}

impl ValueScale {
    /// Whole nanoseconds.
    pub const NANOS: ValueScale = ValueScale::Time(0);

    /// Steps of the scale in `unit` of a time, or in a number of 1.
    pub fn ticks(self, unit: TimeUnit) -> f64 {
        match self {
            ValueScale::Time(places) => unit.nanos() * power_of_ten(places),
            ValueScale::Plain(places) => power_of_ten(places),
        }
    }
}

/// Digits of the raw data that are finer than a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinerDigits {
    /// The raw data have none: the values are exact.
    Absent,
    /// Some values have more digits than doubles, or integers of 63 bits beside the largest of them, hold, and were rounded.
    Rounded,
    /// The same, and so many that values which differ in their first 15 digits may have become equal.
    Merged,
    /// Values of the log have digits below a nanosecond, to which they were rounded.
    BelowNanosecond,
    /// The log was read in whole nanoseconds, and may have more digits.
    Unknown,
}

impl FinerDigits {
    /// Whether values that differ may have become equal when they were rounded.
    pub(super) const fn merges_values(self) -> bool {
        matches!(self, FinerDigits::Merged | FinerDigits::BelowNanosecond | FinerDigits::Unknown)
    }
}

/// Values are below this on either side of 0, also less their dwell, so that they and their doubles fit into half ticks.
pub(super) const TICKS_END: i64 = 1 << 62;
/// Values below this fit with a further factor of 2.
pub(super) const DOUBLED_END: i64 = 1 << 61;
/// A double holds powers of ten up to this exactly.
const POWER_MAX: u32 = 22;
/// From here on doubles are whole numbers: they have no further digits.
const WHOLE: f64 = (1_u64 << 53) as f64;

/// Whether `value` is one that a check takes.
pub(super) const fn is_fitting(value: i64) -> bool {
    value.unsigned_abs() < TICKS_END as u64
}

fn power_of_ten(power: u32) -> f64 {
    10_f64.powi(power as i32)
}

/// A number that is too large for the integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnfitNumber {
    /// How many numbers stand before it.
    pub index: usize,
    pub number: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScaledNumbers {
    pub(super) values: Vec<i64>,
    pub(super) scale: ValueScale,
    pub(super) finer: FinerDigits,
    /// How many ticks a number of 1 is.
    pub(super) one: i64,
}

impl ScaledNumbers {
    /// Finite `numbers`, each times `unit`, on the coarsest scale that has all of their decimals; where doubles or the integers
    /// do not hold these beside the largest number, on the finest one that does. The scale leaves space for packet ids up to
    /// `id_max` beside them, if it can.
    ///
    /// # Errors
    /// The first number that does not fit in whole nanoseconds, or, without a unit, as a whole number.
    pub(super) fn of(
        numbers: &[f64],
        unit: Option<TimeUnit>,
        id_max: Option<u64>,
    ) -> Result<ScaledNumbers, UnfitNumber> {
        let coarsest = unit.map_or(0, |unit| unit.nanos().log10().round() as u32);
        let largest_of = |largest: f64, number: &f64| largest.max(number.abs());
        let largest = numbers.iter().fold(0.0, largest_of);
        let is_unfit = |number: &f64| number.abs() * power_of_ten(coarsest) >= TICKS_END as f64;
        if is_unfit(&largest) {
            let index = numbers.iter().position(is_unfit).unwrap_or(0);
            return Err(UnfitNumber { index, number: numbers[index] });
        }
        let beside = id_max.map_or(largest, |id| largest.max(id.max(1) as f64));
        let is_possible = |power: &u32| beside * power_of_ten(*power) < DOUBLED_END as f64;
        let finest = (coarsest + 1..=POWER_MAX).take_while(is_possible).last().unwrap_or(coarsest);
        let power = decimals_of(numbers, coarsest, finest);
        let factor = power_of_ten(power);
        let is_each = |is: fn(f64, f64) -> bool| power < finest || numbers.iter().all(|number| is(*number, factor));
        let finer = match is_each(is_whole) {
            true if largest * factor < WHOLE => FinerDigits::Absent,
            false if !is_each(has_kept_digits) => FinerDigits::Merged,
            _ => FinerDigits::Rounded,
        };
        Ok(ScaledNumbers {
            values: numbers.iter().map(|number| (number * factor).round() as i64).collect(),
            scale: match unit {
                Some(_) => ValueScale::Time(power - coarsest),
                None => ValueScale::Plain(power),
            },
            finer,
            one: 10_i64.checked_pow(power).unwrap_or(i64::MAX),
        })
    }
}

/// The smallest power of ten from `coarsest` to `finest` that makes all `numbers` whole; `finest` if none does.
fn decimals_of(numbers: &[f64], coarsest: u32, finest: u32) -> u32 {
    let mut power = coarsest;
    let mut factor = power_of_ten(power);
    for number in numbers {
        while power < finest && !is_whole(*number, factor) {
            power += 1;
            factor = power_of_ten(power);
        }
    }
    power
}

/// Whether `number` times `factor` is a whole number, as far as the digits of a double say.
fn is_whole(number: f64, factor: f64) -> bool {
    let scaled = number * factor;
    // The quotient of two exact doubles is rounded once: it is the double that the decimal text has.
    scaled.abs() >= WHOLE || scaled.round() / factor == number
}

/// Whether `number` times `factor` is a whole number but for digits beyond the 15th.
fn has_kept_digits(number: f64, factor: f64) -> bool {
    let scaled = number * factor;
    is_whole(number, factor) || (scaled.round() - scaled).abs() <= scaled.abs() * PRECISION
}

/// Why a claim has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecidable {
    /// The values are times, and the claim has no unit.
    UnitMissing,
    /// The claim has a unit, and the values have none.
    UnitUnknown,
    /// The claim is about losses, and the data do not state them.
    LossesUnknown,
    /// The claim is about the number of probes, of which this many have no row, and the data do not state whether these were
    /// lost.
    ProbesMissing(u64),
    /// The last digits of the claim are finer than those of the data, and these decide its verdict.
    TooFine {
        /// Why the values may have been rounded.
        finer: FinerDigits,
        /// Whether the claim has digits that can be left out.
        can_be_shorter: bool,
    },
}

impl Undecidable {
    /// A stable kebab-case name, the cause as a sentence without its end, and the remedy.
    pub fn words(self) -> [String; 3] {
        let words = match self {
            Undecidable::UnitMissing => {
                ["unit-missing", "its unit is missing", "write it behind the number: `mean=296us`"]
            }
            Undecidable::UnitUnknown => [
                "unit-unknown",
                "the numbers of the file have no unit",
                "say which unit they have, such as `--unit us`, or leave that of the claim out",
            ],
            Undecidable::LossesUnknown => [
                "losses-unknown",
                "the log does not state losses: that it has none says nothing",
                "leave the claim out; recordings of latlab and logs of ping, irtt and sockperf state losses",
            ],
            Undecidable::ProbesMissing(missing) => [
                "probes-missing",
                &format!(
                    "its rows leave out {}, and the log does not state whether these probes were lost",
                    counted(missing as usize, "number")
                ),
                "leave the claim out; the other figures are of the rows",
            ],
            Undecidable::TooFine { finer, can_be_shorter } => {
                ["too-fine", too_fine(finer), too_fine_hint(finer, can_be_shorter)]
            }
        };
        words.map(str::to_owned)
    }
}

/// Why a claim cannot be checked about values with `finer` digits.
const fn too_fine(finer: FinerDigits) -> &'static str {
    match finer {
        FinerDigits::Absent => "a claim has more digits than figures are computed with: 15, of standard deviations 12",
        FinerDigits::Rounded | FinerDigits::Merged => {
            "the values have more digits than are kept, which is 15, and fewer beside larger values; these decide the verdict"
        }
        FinerDigits::BelowNanosecond => {
            "digits finer than 1 ns, to which the values of the log are rounded, decide the verdict"
        }
        FinerDigits::Unknown => {
            "digits finer than 1 ns, to which the values of the log may be rounded, decide the verdict"
        }
    }
}

/// What decides a claim about values with `finer` digits.
const fn too_fine_hint(finer: FinerDigits, can_be_shorter: bool) -> &'static str {
    match (finer, can_be_shorter) {
        (FinerDigits::Absent, _) => "leave the last digits out",
        (FinerDigits::Rounded | FinerDigits::Merged, true) => {
            "leave the last digits out, or `--id-column` if it is given"
        }
        (FinerDigits::Rounded | FinerDigits::Merged, false) => "leave the claim out, or `--id-column` if it is given",
        (_, true) => {
            "leave the last digits out, or check the values as one number on each line of a file, with `--unit`: 15 digits \
             of each are kept"
        }
        (_, false) => {
            "check the values as one number on each line of a file, with `--unit`: 15 digits of each are kept"
        }
    }
}

/// The failure that names all `undecided` claims with their reasons; `None` without any.
pub(super) fn refusal(undecided: &[UndecidedClaim]) -> Option<Failure> {
    let all: Vec<String> = undecided.iter().map(|one| format!("`{}`", one.claim.text)).collect();
    let noun = if all.len() > 1 { "claims" } else { "claim" };
    let failure = Failure::request(format!("cannot check the {noun} {}", listed(&all)));
    // The claims stand before the words unless these are about all.
    let [cause, hint] = [1, 2].map(|part| {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (one, name) in undecided.iter().zip(&all) {
            let words = one.reason.words()[part].clone();
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push(name.clone()),
                None => groups.push((words, vec![name.clone()])),
            }
        }
        match groups.as_slice() {
            [(words, _)] => words.clone(),
            several => {
                several.iter().map(|(words, own)| format!("{}: {words}", listed(own))).collect::<Vec<_>>().join("; ")
            }
        }
    });
    (!all.is_empty()).then(|| failure.because(cause).hint(hint))
}

/// A claim without a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct UndecidedClaim {
    pub claim: FigureClaim,
    /// Why it has none.
    pub reason: Undecidable,
}

/// How a figure has published digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DigitMatch {
    Rounded,
    /// It is cut off to them.
    CutOff,
}

/// By how much two doubles differ whose last binary digits do not count: less than a digit that is worth `step`.
fn tolerance(one: f64, other: f64, step: f64) -> f64 {
    (one.abs().max(other.abs()) * 1e-12).min(step / 16.0)
}

/// How `figure` has the digits of `published`, of which the last one is worth `step`.
pub(super) fn digit_match(published: f64, step: f64, figure: f64) -> Option<DigitMatch> {
    let tolerance = tolerance(published, figure, step);
    let beyond = if published < 0.0 { published - figure } else { figure - published };
    let is_cut = (0.0..step).contains(&beyond) && (published != 0.0 || figure >= 0.0);
    match (figure - published).abs() <= step / 2.0 + tolerance {
        true => Some(DigitMatch::Rounded),
        false => is_cut.then_some(DigitMatch::CutOff),
    }
}

/// How the time-out of select(2) shows in a figure of wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchPlace {
    /// All values are at least as long as the stretch: it is a part of them.
    InValues,
    /// The published figure exceeds the recomputed one by about the stretch.
    InDifference,
}

/// By how many ticks values may have been rounded.
const ROUNDING: f64 = 0.5;
/// The part of a figure that its double may be off. The last one of 15 digits is worth more.
const PRECISION: f64 = 1e-15;
/// How many digits of a figure that is.
const PRECISE_DIGITS: u32 = 15;
/// The same two of standard deviations, which are roots of sums of squares.
const STDDEV_PRECISION: f64 = 1e-12;
const PRECISE_STDDEV_DIGITS: u32 = 12;

/// The usual timer slack of a thread, which also delays calls that stretch nothing.
const TIMER_SLACK: Nanos = Nanos::from_micros(50);

/// By how much select(2) may stretch a time-out of `interval`, if that is more than the usual slack.
pub(super) fn stretch_of(interval: Nanos) -> Option<Nanos> {
    let stretch = Nanos((interval.0 as f64 * SlackFacts::default().stretch()) as i64);
    Some(stretch).filter(|stretch| *stretch > TIMER_SLACK)
}

/// A claim in ticks of the data.
pub(super) struct ScaledClaim<'a> {
    pub(super) claim: &'a FigureClaim,
    /// The length of its unit.
    pub(super) ticks: f64,
    pub(super) value: f64,
    /// One unit of its last digit.
    pub(super) step: f64,
}

impl ScaledClaim<'_> {
    pub(super) fn of(
        claim: &FigureClaim,
        scale: ValueScale,
        unit: Option<TimeUnit>,
    ) -> Result<ScaledClaim<'_>, Undecidable> {
        let ticks = match (claim.figure.is_of_values(), claim.published.unit, scale) {
            (false, Some(PublishedUnit::Percent), _) => 0.01,
            (false, ..) => 1.0,
            (true, Some(PublishedUnit::Time(_)), ValueScale::Plain(_)) => return Err(Undecidable::UnitUnknown),
            (true, Some(PublishedUnit::Time(unit)), ValueScale::Time(_)) => scale.ticks(unit),
            (true, _, ValueScale::Time(_)) => scale.ticks(unit.ok_or(Undecidable::UnitMissing)?),
            (true, _, ValueScale::Plain(_)) => scale.ticks(TimeUnit::Nanos),
        };
        let published = &claim.published;
        Ok(ScaledClaim { claim, ticks, value: published.value(ticks), step: published.step(ticks) })
    }

    /// Whether `other` states the same value, with as many digits or not.
    pub(super) fn has_value_of(&self, other: &ScaledClaim<'_>) -> bool {
        (self.value - other.value).abs() <= tolerance(self.value, other.value, self.step.min(other.step))
    }

    /// How `figure` has the published digits, if it has them.
    pub(super) fn matched(&self, figure: Option<f64>) -> Option<DigitMatch> {
        figure.and_then(|figure| digit_match(self.value, self.step, figure))
    }

    /// The difference from `figure` in millionths of the last digit: smaller ones are those of doubles.
    pub(super) fn difference(&self, figure: f64) -> u64 {
        ((figure - self.value).abs() / self.step * 1e6).round() as u64
    }

    /// How far `figure` may lie from that of the values with their `finer` digits, whose rounding it multiplies by `factor`.
    fn uncertainty(&self, figure: f64, finer: FinerDigits, factor: f64) -> f64 {
        let rounding = match finer {
            FinerDigits::Absent => 0.0,
            FinerDigits::BelowNanosecond | FinerDigits::Unknown => ROUNDING * factor,
            FinerDigits::Rounded | FinerDigits::Merged => ROUNDING * factor + figure.abs() * f64::EPSILON,
        };
        let is_stddev = self.claim.figure == PublishedFigure::Stddev;
        let (part, digits) = match is_stddev {
            true => (STDDEV_PRECISION, PRECISE_STDDEV_DIGITS),
            false => (PRECISION, PRECISE_DIGITS),
        };
        // Of two values the standard deviation, with n − 1, moves by this factor more than the mean.
        let rounding = if is_stddev { rounding * SQRT_2 } else { rounding };
        if self.claim.published.digits() > digits { rounding + self.value.abs() * part } else { rounding }
    }

    /// Whether the figure within `span` has the published digits; `None` if the rounding of the values, or of doubles, decides
    /// that. The rounding is multiplied by `factor`.
    pub(super) fn is_matched(&self, span: FigureSpan, finer: FinerDigits, factor: f64) -> Option<bool> {
        let off = match self.claim.figure.is_of_values() {
            true => self.uncertainty(span.low.abs().max(span.high.abs()), finer, factor),
            false => 0.0,
        };
        if off == 0.0 && span.low == span.high {
            return Some(self.matched(Some(span.low)).is_some());
        }
        // As `digit_match`: what rounds or is cut off to the digits.
        let (towards_zero, away) = (self.step / 2.0, self.step);
        let (low, high) = match self.value < 0.0 {
            true => (self.value - away, self.value + towards_zero),
            false => (self.value - towards_zero, self.value + away),
        };
        let slack = (self.value.abs() * PRECISION).min(self.step / 16.0);
        match (span.low - off, span.high + off) {
            (from, to) if to <= low + slack || from >= high - slack => Some(false),
            (from, to) if from >= low - slack && to <= high + slack => Some(true),
            _ => None,
        }
    }

    /// Where the `stretch` of a time-out shows; the smallest value is `minimum`, on this scale.
    pub(super) fn stretch_place(
        &self,
        correct: Option<f64>,
        minimum: Option<f64>,
        stretch: Nanos,
        scale: ValueScale,
    ) -> Option<StretchPlace> {
        let figure = self.claim.figure;
        if !figure.is_of_values() || figure == PublishedFigure::Stddev {
            return None;
        }
        let [stretch, slack] = [stretch, TIMER_SLACK].map(|span| span.0 as f64 * scale.ticks(TimeUnit::Nanos));
        if minimum? >= 0.9 * stretch {
            return Some(StretchPlace::InValues);
        }
        // The slack delays the exact call as well.
        let least = stretch - 1.2 * slack;
        (least..=1.1 * stretch).contains(&(self.value - correct?)).then_some(StretchPlace::InDifference)
    }
}

/// The published value could have lain from a half of it to twice it.
const RANGE: f64 = 2.0;

/// What the hypotheses that were tried leave to chance for one claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alternative {
    /// The part of the range of the published value, on a logarithmic scale, whose digits one of them has.
    covered: f64,
    /// How many different digits they have in that range.
    distinct: usize,
}

/// The chance for one claim of `published`, whose last digit is worth `step`, under hypotheses that compute `figures`. What has
/// the digits of the `correct` figure does not count.
pub(super) fn chance_alone(
    published: f64,
    step: f64,
    correct: Option<f64>,
    figures: impl Iterator<Item = f64>,
) -> Alternative {
    let (low, high) = (published / RANGE, published * RANGE);
    if published <= 0.0 {
        return Alternative { covered: 1.0, distinct: 1 };
    }
    let is_other = |figure: &f64| correct.is_none_or(|correct| (figure - correct).abs() >= step);
    let mut figures: Vec<f64> = figures.filter(is_other).collect();
    figures.sort_unstable_by(f64::total_cmp);
    let (mut covered, mut distinct, mut end) = (0.0, 0, low);
    for figure in figures {
        // A figure has the digits of each value that it rounds to or is cut off to.
        let (from, to) = ((figure - step).max(end), (figure + step / 2.0).min(high));
        if to > from {
            covered += (to / from).ln();
            distinct += usize::from(figure - step >= end || distinct == 0);
            end = to;
        }
    }
    Alternative { covered: (covered / (high / low).ln()).min(1.0), distinct }
}

/// The chance that one and the same hypothesis fits the digits of all claims with these `alternatives`.
pub(super) fn chance_together(alternatives: &[Alternative]) -> f64 {
    let distinct = alternatives.iter().map(|one| one.distinct).max().unwrap_or(0).max(1) as f64;
    let each = alternatives.iter().map(|one| one.covered / one.distinct.max(1) as f64);
    (distinct * each.product::<f64>()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(numbers: &[f64], unit: Option<TimeUnit>) -> ScaledNumbers {
        ScaledNumbers::of(numbers, unit, None).expect("they fit")
    }

    #[test]
    fn the_scale_has_all_decimals_of_the_numbers() {
        let time = |places| ValueScale::Time(places);
        for (numbers, unit, values, scale) in [
            (&[0.2, 0.3, 0.4][..], Some(TimeUnit::Nanos), &[2, 3, 4][..], time(1)),
            (&[281.41234, 282.51234, 283.6], Some(TimeUnit::Micros), &[28_141_234, 28_251_234, 28_360_000], time(2)),
            (&[0.000296, 0.003256], Some(TimeUnit::Seconds), &[296_000, 3_256_000], time(0)),
            (&[1.5, -2.0], Some(TimeUnit::Seconds), &[1_500_000_000, -2_000_000_000], time(0)),
            (&[8_328.19, -4.0], None, &[832_819, -400], ValueScale::Plain(2)),
            (&[0.00012345678, 0.00012345679], None, &[12_345_678, 12_345_679], ValueScale::Plain(11)),
            (&[1e14], None, &[100_000_000_000_000], ValueScale::Plain(0)),
            (&[0.0], None, &[0], ValueScale::Plain(0)),
        ] {
            let own = scaled(numbers, unit);
            assert_eq!((&own.values[..], own.scale, own.finer), (values, scale, FinerDigits::Absent), "{numbers:?}");
        }
        assert_eq!(ValueScale::Time(2).ticks(TimeUnit::Micros), 1e5);
        assert_eq!(scaled(&[0.25], Some(TimeUnit::Micros)).one, 1_000, "250 ns need no finer scale");
    }

    #[test]
    fn digits_of_doubles_are_kept_as_far_as_integers_hold_them() {
        // As Python prints differences of its clock.
        let own = scaled(&[0.00010514259338378906, 0.00011086463928222656], Some(TimeUnit::Seconds));
        assert!(matches!(own.scale, ValueScale::Time(10..)) && own.finer == FinerDigits::Rounded, "{own:?}");
        let own = scaled(&[0.000105142593383789, 0.000110864639282227], Some(TimeUnit::Seconds));
        assert_eq!((own.values[0], own.finer), (105_142_593_383_789, FinerDigits::Absent), "15 digits");
        for (number, finer) in [(9_007_199_254_740_991.0, FinerDigits::Absent), (WHOLE, FinerDigits::Rounded)] {
            assert_eq!(scaled(&[number], None).finer, finer, "{number}: 2^53 + 1 is the same double as 2^53");
        }
        let own = scaled(&[0.00010514259338378906, 1.5], Some(TimeUnit::Seconds));
        assert_eq!((own.values[1], own.scale), (1_500_000_000_000_000_000, ValueScale::Time(9)));
        assert_eq!((own.values[0], own.finer), (105_142_593_383_789, FinerDigits::Rounded));
        let own = scaled(&[1e10, 1e-10], None);
        assert_eq!((&own.values[..], own.finer), (&[1_000_000_000_000_000_000, 0][..], FinerDigits::Merged));
    }

    #[test]
    fn ids_beside_the_numbers_fit_where_that_is_possible() {
        let numbers = [0.00010514259338378906, 0.5];
        let own = ScaledNumbers::of(&numbers, Some(TimeUnit::Seconds), Some(10_000)).expect("they fit");
        assert!(own.one.checked_mul(10_000).is_some_and(is_fitting), "{own:?}");
        let own = ScaledNumbers::of(&numbers, Some(TimeUnit::Seconds), Some(9_000_000_000_000_000)).expect("they fit");
        assert_eq!(own.scale, ValueScale::NANOS, "whole nanoseconds are the coarsest scale");
    }

    #[test]
    fn the_first_number_that_does_not_fit_is_refused() {
        for (numbers, unit, index) in [
            (&[1e10, 2e10, 3e10][..], Some(TimeUnit::Seconds), 0),
            (&[5.0, -4_611_686_018.5, 1e30], Some(TimeUnit::Seconds), 1),
            (&[1.0, 2.0, 1e20], None, 2),
            (&[4_611_686_018_427_387_904.0], Some(TimeUnit::Nanos), 0),
        ] {
            let refused = ScaledNumbers::of(numbers, unit, None).expect_err("too large");
            assert_eq!(refused, UnfitNumber { index, number: numbers[index] });
        }
        let largest = scaled(&[4_611_686_018.0, -4e18 / 1e9], Some(TimeUnit::Seconds));
        assert!(largest.values.iter().all(|value| is_fitting(*value)) && largest.scale == ValueScale::NANOS);
    }

    #[test]
    fn digits_within_the_first_15_that_integers_do_not_hold_are_lost() {
        let micros = |numbers: &[f64]| scaled(numbers, Some(TimeUnit::Micros)).finer;
        // The noise of a double beside 1 s is not a lost digit.
        assert_eq!(micros(&[262.37199999999996, 262.372, 1e6]), FinerDigits::Rounded);
        assert_eq!(micros(&[262.3719999999, 1e9]), FinerDigits::Merged);
        assert!(FinerDigits::Merged.merges_values() && !FinerDigits::Rounded.merges_values());
    }

    #[test]
    fn digits_are_rounded_before_they_are_cut_off() {
        let matched = |figure| digit_match(99.0, 1.0, figure);
        for rounded in [99.0, 99.5, 98.5, 99.01] {
            assert_eq!(matched(rounded), Some(DigitMatch::Rounded), "{rounded}");
        }
        assert_eq!([99.501, 99.99].map(matched), [Some(DigitMatch::CutOff); 2]);
        assert_eq!([100.0, 98.49].map(matched), [None; 2]);
        assert_eq!(digit_match(-99.0, 1.0, -99.9), Some(DigitMatch::CutOff), "towards zero");
        // However many digits are published.
        assert_eq!(digit_match(1_234_567_890_124.0, 1.0, 1_234_567_890_123.0), None);
        assert_eq!(digit_match(1.700_000_000_123_999e18, 1e3, 1.700_000_000_123_456_8e18), None);
        assert_eq!(
            digit_match(0.3, 0.1, 0.1 + 0.15),
            Some(DigitMatch::Rounded),
            "0.25, but for the last binary digits"
        );
    }

    #[test]
    fn a_figure_of_few_digits_fits_more_easily() {
        let figures = || [150.0, 220.0, 310.0, 1_000.0].into_iter();
        let alone = |step| chance_alone(300.0, step, Some(280.0), figures());
        let (fine, coarse) = (alone(0.1), alone(10.0));
        assert_eq!((fine.distinct, coarse.distinct), (3, 3), "{fine:?} {coarse:?}");
        assert!(
            coarse.covered > 50.0 * fine.covered && fine.covered > 0.0 && coarse.covered < 0.15,
            "{fine:?} {coarse:?}"
        );
        assert_eq!(chance_alone(3.0, 10.0, None, [3.0].into_iter()).covered, 1.0);
        assert_eq!(chance_alone(-3.0, 1.0, None, [3.0].into_iter()).covered, 1.0, "it has no logarithm");
    }

    #[test]
    fn what_has_the_digits_of_the_correct_figure_does_not_count() {
        let none = chance_alone(300.0, 1.0, Some(280.0), [280.0, 280.4].into_iter());
        assert_eq!(none, Alternative { covered: 0.0, distinct: 0 });
        // Two figures with the same digits are one.
        let one = chance_alone(300.0, 1.0, Some(280.0), [310.0, 310.2].into_iter());
        assert_eq!(one.distinct, 1);
    }

    #[test]
    fn one_hypothesis_for_several_claims_is_less_likely_to_fit_by_chance() {
        let claim = Alternative { covered: 0.2, distinct: 20 };
        assert!((chance_together(&[claim]) - 0.2).abs() < 1e-12);
        assert!((chance_together(&[claim, claim]) - 0.002).abs() < 1e-12);
        assert_eq!(chance_together(&[Alternative { covered: 1.0, distinct: 1 }]), 1.0);
    }
}
