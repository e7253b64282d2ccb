//! The scale on which figures are compared (decision 0011.3).

/// How a figure becomes a number to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureScale {
    /// By logarithms: an effect is a factor.
    Logarithmic,
    /// As it is: an effect is a difference.
    Linear,
}

impl FigureScale {
    /// The scale of these figures: shares may be 0 and are taken as they are, so is what is not positive.
    pub fn of(values: impl Iterator<Item = f64>, is_share: bool) -> FigureScale {
        let mut values = values;
        if !is_share && values.all(|value| value > 0.0) { FigureScale::Logarithmic } else { FigureScale::Linear }
    }

    /// A figure on this scale.
    pub fn from_figure(self, value: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => value.ln(),
            FigureScale::Linear => value,
        }
    }

    /// Back from this scale.
    pub fn to_figure(self, value: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => value.exp(),
            FigureScale::Linear => value,
        }
    }

    /// A difference on this scale as a share of the baseline's figure, or of its size where that may be negative; none
    /// where that is 0.
    pub fn relative(self, difference: f64, baseline: f64) -> Option<f64> {
        match self {
            FigureScale::Logarithmic => Some(difference.exp_m1()),
            FigureScale::Linear => (baseline != 0.0).then(|| difference / baseline.abs()),
        }
    }

    /// A difference on this scale in the unit of the figures, beside a baseline's figure.
    pub fn absolute(self, difference: f64, baseline: f64) -> f64 {
        match self {
            // a factor may be beyond all numbers where both figures are not
            FigureScale::Logarithmic if difference > 1.0 => (baseline.ln() + difference).exp() - baseline,
            FigureScale::Logarithmic => baseline * difference.exp_m1(),
            FigureScale::Linear => difference,
        }
    }

    /// A reach to either side of figures of this size, told as a share of it, on this scale; the lower side of a factor
    /// reaches a little further.
    pub fn half_width(self, share: f64, size: f64) -> f64 {
        match self {
            FigureScale::Logarithmic => share.ln_1p(),
            FigureScale::Linear => share * size,
        }
    }

    /// The differences within `margin`, a share of figures of this size: lowest and highest. Of shares, whose margin is
    /// a difference, the size is 1. None where it is 0: of nothing there is no share.
    pub fn margin(self, margin: f64, size: f64) -> Option<(f64, f64)> {
        match self {
            FigureScale::Logarithmic => Some(((1.0 - margin).max(0.0).ln(), margin.ln_1p())),
            FigureScale::Linear => (size > 0.0).then_some((-margin * size, margin * size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FigureScale;

    #[test]
    fn shares_of_a_baseline_are_shares_on_every_scale() {
        assert_eq!(FigureScale::Linear.margin(0.03, 0.001), Some((-0.03 * 0.001, 0.03 * 0.001)));
        assert_eq!(FigureScale::Linear.margin(0.03, 0.0), None);
        assert_eq!(FigureScale::Linear.relative(0.5, -2.0), Some(0.25), "upwards, whatever the sign of the baseline");
        assert_eq!(FigureScale::Linear.relative(0.5, 0.0), None);
        assert_eq!(FigureScale::Linear.half_width(0.03, 200.0), 6.0);
        let (low, high) = FigureScale::Logarithmic.margin(0.25, 7.0).expect("whatever the size");
        assert!((low - 0.75_f64.ln()).abs() < 1e-15 && (high - 1.25_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn differences_of_figures_are_numbers_where_their_factor_is_none() {
        let factor = 1e300_f64.ln() - 1e-300_f64.ln();
        assert!(FigureScale::Logarithmic.relative(factor, 1e-300).is_some_and(f64::is_infinite));
        assert!((FigureScale::Logarithmic.absolute(factor, 1e-300) / 1e300 - 1.0).abs() < 1e-9);
        assert!((FigureScale::Logarithmic.absolute(2_f64.ln(), 3.0) - 3.0).abs() < 1e-12);
    }
}
