//! The figures of one group's runs, as every table of observations has them.

use super::group::RunGroup;
use super::wishes::Quantity;

/// The figures of one group's runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupFigures {
    /// Of what.
    pub quantity: Quantity,
    /// Runs with a finite figure; the rest is over these.
    pub n: usize,
    /// Smallest; none where n is 0, as the next three.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Sample standard deviation; none below two.
    pub stddev: Option<f64>,
}

impl GroupFigures {
    /// Of `group`, for each of `quantities`, in the order of its runs' figures.
    pub(super) fn all(group: &RunGroup, quantities: &[Quantity]) -> Vec<GroupFigures> {
        let of = |(place, quantity): (usize, &Quantity)| {
            let values = group.runs.iter().filter_map(|run| run.figures.get(place)?.value()).collect();
            GroupFigures::of(*quantity, values)
        };
        quantities.iter().enumerate().map(of).collect()
    }

    fn of(quantity: Quantity, mut values: Vec<f64>) -> GroupFigures {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        let mean = (n > 0).then(|| values.iter().sum::<f64>() / n as f64);
        let squares = mean.map(|mean| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>());
        GroupFigures {
            quantity,
            n,
            min: values.first().copied(),
            max: values.last().copied(),
            median: (n > 0).then(|| values[(n - 1) / 2].midpoint(values[n / 2])),
            mean,
            stddev: squares.filter(|_| n > 1).map(|squares| (squares / (n - 1) as f64).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_few_runs() {
        let of = |values: &[f64]| GroupFigures::of(Quantity::Value, values.to_vec());
        let four = of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(
            (four.n, four.min, four.max, four.median, four.mean),
            (4, Some(1.0), Some(4.0), Some(2.5), Some(2.5))
        );
        assert!((four.stddev.expect("four") - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!((of(&[7.0]).median, of(&[7.0]).stddev), (Some(7.0), None));
        assert_eq!((of(&[]).n, of(&[]).median, of(&[]).mean), (0, None, None));
    }
}
