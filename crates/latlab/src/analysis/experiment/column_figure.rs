//! A figure in a column of a publication, reproduced: of one run, and the median of several.

use crate::recipe::Column;
use crate::stats::{Description, Outline};

/// The figure of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnFigure {
    /// Known exactly.
    Known(f64),
    /// A quantile that the run does not support: its one-sided 95 % lower bound.
    AtLeast(f64),
    /// A quantile beyond the sample size, without a bound.
    NotSupported,
    /// The quantile fell among the lost.
    Lost,
    /// The run has nothing to compute it from.
    Nothing,
}

impl ColumnFigure {
    /// The figure of `column` for a described run, in the unit of its singletons.
    pub fn of(column: Column, description: &Description) -> ColumnFigure {
        let known = |value: Option<f64>| value.map_or(ColumnFigure::Nothing, ColumnFigure::Known);
        let whole = |value: Option<i64>| known(value.map(|value| value as f64));
        match column {
            Column::Median => ColumnFigure::of(Column::Quantile(0.5), description),
            Column::Min => whole(description.min),
            Column::Max => whole(description.max),
            Column::Mean => known(description.mean),
            Column::Stddev => known(description.stddev),
            Column::Quantile(q) => match description.quantiles.iter().find(|own| own.q == q) {
                Some(own) if own.supported && own.lost => ColumnFigure::Lost,
                Some(own) if own.supported => known(own.value),
                Some(own) => own.lower_bound.map_or(ColumnFigure::NotSupported, ColumnFigure::AtLeast),
                None => ColumnFigure::Nothing,
            },
        }
    }

    /// The figure of `column` for observations that are runs.
    pub fn of_runs(column: Column, outline: &Outline) -> ColumnFigure {
        ColumnFigure::Known(match column {
            Column::Min => outline.min,
            Column::Max => outline.max,
            Column::Mean => outline.mean,
            Column::Stddev => outline.stddev,
            Column::Median => outline.median,
            // A few dozen runs support no quantile but the median.
            Column::Quantile(_) => return ColumnFigure::Nothing,
        })
    }

    /// The median of the runs: a bound if one of the figures is a bound; lost ones are infinite.
    pub fn median(runs: &[ColumnFigure]) -> ColumnFigure {
        let known: Vec<ColumnFigure> = runs.iter().copied().filter(|run| *run != ColumnFigure::Nothing).collect();
        let value = |run: &ColumnFigure| match run {
            ColumnFigure::Known(value) | ColumnFigure::AtLeast(value) => *value,
            ColumnFigure::Lost => f64::INFINITY,
            ColumnFigure::NotSupported | ColumnFigure::Nothing => f64::NEG_INFINITY,
        };
        let mut values: Vec<f64> = known.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { return ColumnFigure::Nothing };
        let (below, above) = (values[last / 2], values[values.len() / 2]);
        let is_exact = known.iter().all(|run| matches!(run, ColumnFigure::Known(_) | ColumnFigure::Lost));
        match below.midpoint(above) {
            // Half of the runs have no bound.
            _ if below == f64::NEG_INFINITY => ColumnFigure::NotSupported,
            middle if middle.is_infinite() => ColumnFigure::Lost,
            middle if is_exact => ColumnFigure::Known(middle),
            middle => ColumnFigure::AtLeast(middle),
        }
    }

    /// The figure in a unit of `unit` of the old one.
    pub fn in_units_of(self, unit: f64) -> ColumnFigure {
        match self {
            ColumnFigure::Known(value) => ColumnFigure::Known(value / unit),
            ColumnFigure::AtLeast(value) => ColumnFigure::AtLeast(value / unit),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{self, AtLeast, Known, Lost, NotSupported, Nothing};

    #[test]
    fn the_median_is_a_bound_if_one_of_its_runs_is() {
        for (runs, median) in [
            (vec![Known(3.0), Known(1.0), Known(2.0)], Known(2.0)),
            (vec![Known(3.0), Known(1.0)], Known(2.0)),
            (vec![Known(3.0), Lost, Known(1.0)], Known(3.0)),
            (vec![Known(3.0), Lost], Lost),
            (vec![Known(3.0), AtLeast(1.0), Known(2.0)], AtLeast(2.0)),
            (vec![AtLeast(5.0), NotSupported, NotSupported], NotSupported),
            (vec![AtLeast(5.0), NotSupported, AtLeast(4.0)], AtLeast(4.0)),
            (vec![NotSupported, Lost], NotSupported),
            (vec![Nothing, Known(4.0)], Known(4.0)),
            (vec![Nothing], Nothing),
            (vec![], Nothing),
        ] {
            assert_eq!(ColumnFigure::median(&runs), median, "{runs:?}");
        }
        assert_eq!(AtLeast(3e6).in_units_of(1e6), AtLeast(3.0));
    }
}
