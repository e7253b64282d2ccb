//! The figures of a box plot: quartiles, whiskers, and the observations beyond them.

/// How far whiskers reach from the box, in interquartile ranges (Tukey 1977, Exploratory Data Analysis, section 2C).
const REACH: f64 = 1.5;

/// A group of observations as a box plot shows it, in their own unit.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxPlot {
    /// How many observations.
    pub n: usize,
    /// A quarter of them lies below.
    pub q1: f64,
    /// The one in the middle.
    pub median: f64,
    /// A quarter of them lies above.
    pub q3: f64,
    /// The smallest that is at most 1.5 interquartile ranges below the box, and the largest so far above it.
    pub whiskers: (f64, f64),
    /// Those beyond the whiskers, ascending.
    pub outside: Vec<f64>,
}

impl BoxPlot {
    /// Of finite `observations`, which are sorted by it; none where there are none. Quartiles interpolate linearly
    /// between order statistics, as all quantiles here do.
    pub fn of(observations: &mut [f64]) -> Option<BoxPlot> {
        observations.sort_unstable_by(f64::total_cmp);
        let (first, last) = (*observations.first()?, *observations.last()?);
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|q| quantile(observations, q));
        let reach = REACH * (q3 - q1);
        let (inside, outside): (Vec<f64>, Vec<f64>) =
            observations.iter().partition(|value| (q1 - reach..=q3 + reach).contains(*value));
        let whiskers = (inside.first().copied().unwrap_or(first), inside.last().copied().unwrap_or(last));
        Some(BoxPlot { n: observations.len(), q1, median, q3, whiskers, outside })
    }

    /// The interquartile range.
    pub fn iqr(&self) -> f64 {
        self.q3 - self.q1
    }
}

/// Type 7 of Hyndman and Fan, of ascending values.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * q;
    let (below, weight) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + weight * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_numpys_and_whiskers_tukeys() {
        let of = |values: &[f64]| BoxPlot::of(&mut values.to_vec()).expect("observations");
        // numpy.percentile(…, [25, 50, 75]) and matplotlib.cbook.boxplot_stats
        for (values, quartiles, whiskers, outside) in [
            (&[7.0][..], [7.0, 7.0, 7.0], (7.0, 7.0), &[][..]),
            (&[2.0, 1.0], [1.25, 1.5, 1.75], (1.0, 2.0), &[]),
            (&[4.0, 1.0, 3.0, 2.0], [1.75, 2.5, 3.25], (1.0, 4.0), &[]),
            (&[1.0, 2.0, 3.0, 4.0, 100.0], [2.0, 3.0, 4.0], (1.0, 4.0), &[100.0]),
            (&[-9.0, 5.0, 5.0, 5.0, 5.0, 9.0], [5.0, 5.0, 5.0], (5.0, 5.0), &[-9.0, 9.0]),
        ] {
            let found = of(values);
            assert_eq!([found.q1, found.median, found.q3], quartiles, "{values:?}");
            assert_eq!((found.whiskers, &found.outside[..]), (whiskers, outside), "{values:?}");
            assert_eq!((found.n, found.iqr()), (values.len(), quartiles[2] - quartiles[0]));
        }
        assert_eq!(BoxPlot::of(&mut []), None);
    }
}
