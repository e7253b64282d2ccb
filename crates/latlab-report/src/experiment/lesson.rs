//! The lesson of a publication, recomputed from the runs measured here: a sentence or two.

use super::published::{against_first, measured_cell};
use crate::analysis::comparison::Comparisons;
use crate::analysis::experiment::{ColumnFigure, MeasuredRow, MeasuredSystem, MistakenFigures, PublishedResults};
use crate::plan::Factors;
use crate::recipe::{self, Column, Lesson, Prediction, Published, PublishedRow};
use crate::stats::{MeanDifference, observations_needed};
use crate::units::human::{grouped, parse_duration};

/// What `results` show of the lesson, a text for each system.
pub(super) fn recomputed(results: &PublishedResults, comparisons: Option<&Comparisons>) -> Vec<String> {
    let of_system = |system: &MeasuredSystem| {
        let rows = results.published.rows.iter().zip(&system.rows);
        let rows = rows.filter_map(|(row, measured)| Some((row, measured.as_ref().ok()?))).collect();
        let own = Measured { published: results.published, rows };
        let stretch = || recipe::find(&results.recipe.name)?.pictures.prediction.as_ref();
        let text = match results.published.lesson {
            Lesson::IdsIncluded | Lesson::DistinctValues => own.mistaken(),
            Lesson::UntestedClaim => own.by_tests(comparisons),
            Lesson::HalfRoundTrip => own.halves(),
            Lesson::SleepStretch => stretch().and_then(|stretch| own.stretches(stretch)),
        };
        Some(format!("{}, {}", if results.is_joint() { &system.name } else { "Here" }, text?))
    };
    results.systems.iter().filter_map(of_system).collect()
}

/// The rows of a publication that were measured at one place.
struct Measured<'a> {
    published: &'a Published,
    rows: Vec<(&'a PublishedRow, &'a MeasuredRow)>,
}

impl<'a> Measured<'a> {
    /// The measured rows that the publication has too.
    fn shared(&self) -> impl Iterator<Item = (&'a PublishedRow, &'a MeasuredRow)> {
        self.rows.iter().copied().filter(|(row, _)| !row.published.is_empty())
    }

    fn number(&self, value: f64) -> String {
        measured_cell(ColumnFigure::Known(value), self.published.decimals)
    }

    fn figure(&self, measured: &MeasuredRow, column: Column) -> ColumnFigure {
        let place = self.published.columns.iter().position(|own| *own == column);
        place.map_or(ColumnFigure::Nothing, |place| measured.figures[place])
    }

    /// The figure of `column` as a table shows it, without marks.
    fn shown(&self, measured: &MeasuredRow, column: Column) -> String {
        measured_cell(self.figure(measured, column), self.published.decimals).replace(['(', ')'], "")
    }

    /// What the mistake makes of the mean, beside the correct figures; with the ids also of p99.9, in the first and the last row.
    fn mistaken(&self) -> Option<String> {
        let rows: Vec<_> = self.shared().filter_map(|(row, own)| Some((row, own, own.mistaken?))).collect();
        let both = |value, own: &MeasuredRow, column| format!("{} ({})", self.number(value), self.shown(own, column));
        let of_row = |(row, own, mistaken): &(&PublishedRow, &MeasuredRow, MistakenFigures)| {
            format!("{} {}", row.label, both(mistaken.mean, own, Column::Mean))
        };
        let with_tail = |row: &(&PublishedRow, &MeasuredRow, MistakenFigures)| {
            format!("{} / {}", of_row(row), both(row.2.p999, row.1, Column::Quantile(0.999)))
        };
        let (unit, _) = (&self.published.unit, rows.first()?);
        if self.published.lesson == Lesson::IdsIncluded {
            let ends: Vec<String> = rows.iter().step_by(rows.len().max(2) - 1).map(with_tail).collect();
            return Some(format!("avg / p99.9 with the ids averaged in (without): {} {unit}.", ends.join("; ")));
        }
        let lags = || rows.iter().map(|(_, _, mistaken)| mistaken.lag_one);
        let lags = format!("{:.2} to {:.2}", lags().reduce(f64::min)?, lags().reduce(f64::max)?).replace('-', "−");
        let means = rows.iter().map(of_row).collect::<Vec<_>>().join("; ");
        Some(format!("the mean of the distinct values (of all): {means} {unit}; lag-1 correlation {lags}."))
    }

    /// What ministat's test, and the comparison inside of blocks, say of the rows whose difference is not proven.
    fn by_tests(&self, comparisons: Option<&Comparisons>) -> Option<String> {
        let first = self.published.rows.first()?;
        let verdict = |row: &PublishedRow| {
            let comparisons = comparisons?;
            let is_its = |index: usize| self.published.is_done_by(row, &comparisons.groups.groups[index].levels);
            let found = comparisons.rows.iter().find(|one| !one.added && is_its(one.candidate))?;
            Some(format!(" and {}", found.verdict.word()))
        };
        let of_row = |(row, own): (&PublishedRow, &MeasuredRow)| {
            let is_claimed = row.against_first == Some(MeanDifference::NotProven);
            let test = own.against_first.filter(|_| is_claimed).map(against_first)?;
            Some(format!("`{}` {test}{}", row.label, verdict(row).unwrap_or_default()))
        };
        let rows: Vec<String> = self.shared().filter_map(of_row).collect();
        let tests = if comparisons.is_some() { " and inside of blocks" } else { "" };
        (!rows.is_empty()).then(|| format!("against `{}` by ministat's test{tests}: {}.", first.label, rows.join("; ")))
    }

    fn halves(&self) -> Option<String> {
        let (row, own) = self.shared().next()?;
        let median = self.figure(own, Column::Quantile(0.5));
        let (half, whole) =
            (self.shown(own, Column::Quantile(0.5)), measured_cell(median.doubled(), self.published.decimals));
        let whole = whole.replace(['(', ')'], "");
        let q = self.published.columns.iter().filter_map(|column| column.quantile()).reduce(f64::max)?;
        let (needed, n) = (observations_needed(q), own.singletons);
        let enough = if n < needed {
            format!("of which these have {}: see `--full`", grouped(n))
        } else {
            "which these have".into()
        };
        Some(format!(
            "`{}`: {half} {unit} (50 %) is half of a round trip of {whole} {unit}. {} takes {} samples a run, {enough}.",
            row.label,
            self.published.heading_of(self.published.columns.len() - 1),
            grouped(needed),
            unit = self.published.unit,
        ))
    }

    /// The lateness through both calls, for one governor and without load.
    fn stretches(&self, stretch: &Prediction) -> Option<String> {
        let through = |call: &str, factors: &Factors| {
            let wanted: Factors = factors.clone().into_iter().chain([("via".to_owned(), call.to_owned())]).collect();
            self.rows.iter().find(|(row, _)| row.factors == wanted).map(|(_, own)| self.shown(own, Column::Mean))
        };
        let pairs = self.rows.iter().filter_map(|(row, own)| {
            let (select, interval) = (row.factors.get("via")? == "select", row.factors.get("interval")?);
            let nanosleep = through("clock_nanosleep", &row.factors).filter(|_| select)?;
            let stretch = stretch.at(parse_duration(interval).ok()?.0 as f64) / self.published.own_units;
            let (late, sleep) = (self.shown(own, Column::Mean), row.label.split(", ").next()?);
            Some((row.factors.get("set")?, format!("{sleep}: {late} / {nanosleep} / {stretch:.0}")))
        });
        let pairs: Vec<_> = pairs.collect();
        let governor = pairs.first()?.0;
        let texts: Vec<&str> =
            pairs.iter().filter(|(own, _)| *own == governor).map(|(_, text)| text.as_str()).collect();
        Some(format!("late through select / clock_nanosleep / allowed stretch: {} µs.", texts.join("; ")))
    }
}
