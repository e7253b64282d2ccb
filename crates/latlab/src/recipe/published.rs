use crate::metric::Metric;
use crate::plan::{Factors, Kind};
use crate::stats::MeanDifference;

/// The figures of a publication, in its own columns.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What its columns are about, in latlab's words.
    pub heading: &'static str,
    /// What latlab measures of it.
    pub metric: Metric,
    /// How many of the metric's own units, nanoseconds or bits a second, its unit is.
    pub own_units: f64,
    /// The name of that unit.
    pub unit: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// It prints half of what latlab calls the metric.
    pub half: bool,
    /// What its figures are statistics of.
    pub figures_of: FiguresOf,
    /// Its columns, and those that can be computed from its raw data.
    pub columns: &'static [Column],
    /// Its rows.
    pub rows: &'static [PublishedRow],
    /// What a factor is that a smaller scale does not vary.
    pub implied: &'static [(&'static str, &'static str)],
}

/// What the figures of a publication are statistics of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiguresOf {
    /// What a run is made of: of several runs measured here, the median of each figure is shown.
    Singletons,
    /// Runs, of each of which the mean is one observation. Each row is tested against the first.
    Runs,
}

/// A statistic of a run, or of the runs of a row.
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
    /// The one in the middle.
    Median,
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
    /// What was published of the difference to the first row, at 95 %; none where nothing was.
    pub against_first: Option<MeanDifference>,
}

impl Published {
    /// What its runs measure.
    pub fn kind(&self) -> Kind {
        Kind::of_metric(self.metric)
    }

    /// Whether the condition with these `factors` does `row` again.
    pub fn is_done_by(&self, row: &PublishedRow, factors: &Factors) -> bool {
        row.factors.iter().all(|(factor, value)| match factors.get(*factor) {
            // Of an option that is given several times the last is the one that varies.
            Some(own) => own.strip_suffix(value).is_some_and(|others| others.is_empty() || others.ends_with(',')),
            None => self.implied.contains(&(factor, value)),
        })
    }
}

impl Column {
    /// Which quantile it is, if it is one.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Column::Quantile(q) => Some(q),
            Column::Median => Some(0.5),
            Column::Min | Column::Mean | Column::Stddev | Column::Max => None,
        }
    }

    /// Its heading.
    pub fn heading(self) -> String {
        match self {
            Column::Median => "median".into(),
            Column::Min => "min".into(),
            Column::Mean => "mean".into(),
            Column::Stddev => "stdev".into(),
            Column::Max => "max".into(),
            Column::Quantile(q) => crate::units::human::quantile(q),
        }
    }
}
