//! How easily one of several hypotheses fits published digits by chance. Figures of few digits fit one of many.

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
