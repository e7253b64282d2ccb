//! A figure of a publication's column, measured again: of one run, and the median of several.

use crate::recipe::Column;
use crate::stats::{Description, Outline};

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnFigure {
    /// The figure.
    Known(f64),
    /// A quantile that the run cannot carry: one-sided 95 % lower bound.
    AtLeast(f64),
    /// The same without a bound.
    NotSupported,
    /// It fell among the lost.
    Lost,
    /// There was nothing to compute it from.
    Nothing,
}

impl ColumnFigure {
    /// What stands in `column` for the run that is described, in the unit of its singletons.
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

    /// What stands in `column` for observations that are runs.
    pub fn of_runs(column: Column, outline: &Outline) -> ColumnFigure {
        ColumnFigure::Known(match column {
            Column::Min => outline.min,
            Column::Max => outline.max,
            Column::Mean => outline.mean,
            Column::Stddev => outline.stddev,
            Column::Median => outline.median,
            // a quantile of a few dozen runs but their median is nobody's figure
            Column::Quantile(_) => return ColumnFigure::Nothing,
        })
    }

    /// The median of the runs. Where one of them knows a bound only, so does the median; what is lost is infinite.
    pub fn median(runs: &[ColumnFigure]) -> ColumnFigure {
        let there: Vec<ColumnFigure> = runs.iter().copied().filter(|run| *run != ColumnFigure::Nothing).collect();
        let place = |run: &ColumnFigure| match run {
            ColumnFigure::Known(value) | ColumnFigure::AtLeast(value) => *value,
            ColumnFigure::Lost => f64::INFINITY,
            ColumnFigure::NotSupported | ColumnFigure::Nothing => f64::NEG_INFINITY,
        };
        let mut values: Vec<f64> = there.iter().map(place).collect();
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { return ColumnFigure::Nothing };
        let (below, above) = (values[last / 2], values[values.len() / 2]);
        let is_exact = there.iter().all(|run| matches!(run, ColumnFigure::Known(_) | ColumnFigure::Lost));
        match below.midpoint(above) {
            // half of the runs bound nothing
            _ if below == f64::NEG_INFINITY => ColumnFigure::NotSupported,
            middle if middle.is_infinite() => ColumnFigure::Lost,
            middle if is_exact => ColumnFigure::Known(middle),
            middle => ColumnFigure::AtLeast(middle),
        }
    }

    /// The same in a unit of so many of the old one.
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
    fn a_median_knows_no_more_than_its_runs() {
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
