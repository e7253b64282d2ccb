//! The scale on which figures are compared (decision 0011.3).

/// How a figure becomes a number to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By logarithms: an effect is a factor.
    Logarithmic,
    /// As it is: an effect is a difference.
    Linear,
}

impl Scale {
    /// The scale of these figures: shares may be 0 and are taken as they are, so is what is not positive.
    pub fn of(values: impl Iterator<Item = f64>, is_share: bool) -> Scale {
        let mut values = values;
        if !is_share && values.all(|value| value > 0.0) { Scale::Logarithmic } else { Scale::Linear }
    }

    /// A figure on this scale.
    pub fn from_figure(self, value: f64) -> f64 {
        match self {
            Scale::Logarithmic => value.ln(),
            Scale::Linear => value,
        }
    }

    /// Back from this scale.
    pub fn to_figure(self, value: f64) -> f64 {
        match self {
            Scale::Logarithmic => value.exp(),
            Scale::Linear => value,
        }
    }

    /// A difference on this scale as a share of the baseline; none where there are only differences.
    pub fn relative(self, difference: f64) -> Option<f64> {
        (self == Scale::Logarithmic).then(|| difference.exp_m1())
    }

    /// A difference on this scale in the unit of the figures, beside a baseline's figure.
    pub fn absolute(self, difference: f64, baseline: f64) -> f64 {
        match self {
            Scale::Logarithmic => baseline * difference.exp_m1(),
            Scale::Linear => difference,
        }
    }

    /// A reach to either side, told as a share, on this scale; the lower side of a factor reaches a little further.
    pub fn half_width(self, share: f64) -> f64 {
        match self {
            Scale::Logarithmic => share.ln_1p(),
            Scale::Linear => share,
        }
    }

    /// The differences within `margin`, a share of the baseline or a difference of shares: lowest and highest.
    pub fn margin(self, margin: f64) -> (f64, f64) {
        match self {
            Scale::Logarithmic => ((1.0 - margin).max(0.0).ln(), margin.ln_1p()),
            Scale::Linear => (-margin, margin),
        }
    }
}
