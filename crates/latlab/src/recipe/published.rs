use crate::metric::Metric;
use crate::plan::Factors;

/// The figures of a publication, in its own columns.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What its columns are about, in latlab's words.
    pub heading: &'static str,
    /// What latlab measures of it.
    pub metric: Metric,
    /// Its unit, in nanoseconds.
    pub unit_ns: f64,
    /// The name of that unit.
    pub unit: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// It prints half of what latlab calls the metric.
    pub half: bool,
    /// Its columns, and those that can be computed from its raw data.
    pub columns: &'static [Column],
    /// Its rows.
    pub rows: &'static [PublishedRow],
    /// What a factor is that a smaller scale does not vary.
    pub implied: &'static [(&'static str, &'static str)],
}

/// A statistic of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    /// Smallest.
    Min,
    /// Mean.
    Mean,
    /// Sample standard deviation.
    Stddev,
    /// Largest.
    Max,
    /// This quantile.
    Quantile(f64),
}

/// A row of a publication.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow {
    /// What it was measured under, in the publication's words.
    pub label: &'static str,
    /// The condition of the recipe that does it again.
    pub factors: &'static [(&'static str, &'static str)],
    /// What was published, column by column; empty where the publication has no such row.
    pub published: &'static [Option<f64>],
    /// What the publication's raw data say; empty where they are not published.
    pub recomputed: &'static [Option<f64>],
}

impl Published {
    /// Whether the condition with these `factors` does `row` again.
    pub fn is_done_by(&self, row: &PublishedRow, factors: &Factors) -> bool {
        row.factors.iter().all(|(factor, value)| match factors.get(*factor) {
            Some(own) => own == value,
            None => self.implied.contains(&(factor, value)),
        })
    }
}

impl Column {
    /// Which quantile it is, if it is one.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Column::Quantile(q) => Some(q),
            Column::Min | Column::Mean | Column::Stddev | Column::Max => None,
        }
    }

    /// Its heading.
    pub fn heading(self) -> String {
        match self {
            Column::Min => "min".into(),
            Column::Mean => "mean".into(),
            Column::Stddev => "stdev".into(),
            Column::Max => "max".into(),
            Column::Quantile(q) => crate::units::human::quantile(q),
        }
    }
}
