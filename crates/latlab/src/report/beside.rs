//! Published figures and measured ones, side by side in the publication's own columns.

use super::paint::{Style, width};
use crate::analysis::ColumnFigure;
use crate::units::human::{ABSENT, grouped};

/// A publication and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BesideView {
    /// What its columns are about.
    pub heading: String,
    /// Their unit.
    pub unit: String,
    /// Digits after the point.
    pub decimals: usize,
    /// What its figures are of: `probes`, `wake-ups`.
    pub singletons: &'static str,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// One for each of its rows.
    pub rows: Vec<BesideRow>,
}

/// One row of a publication. Figures are in its unit; none: not published, or not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BesideRow {
    /// In the publication's words.
    pub label: String,
    /// As published; empty where it is not.
    pub published: Vec<Option<f64>>,
    /// As its raw data say; empty where they are not published.
    pub recomputed: Vec<Option<f64>>,
    /// What was measured here; none where only the publication is shown.
    pub measured: Option<Measured>,
}

/// What was measured of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// The median of the runs, column by column; how many runs, of how many probes each.
    Runs {
        /// In the unit of the table.
        figures: Vec<ColumnFigure>,
        /// Runs.
        runs: usize,
        /// Probes of each, the most.
        probes: u64,
        /// Probes of all of them that were lost.
        lost: u64,
    },
    /// Nothing, for this reason.
    Nothing(String),
}

const LABEL: usize = 14;
const GAP: usize = 2;

/// The table as text.
pub fn render(view: &BesideView, style: Style) -> String {
    let lines: Vec<Vec<String>> = view.rows.iter().flat_map(|row| figures(row, view.decimals)).collect();
    let widest = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell));
        cells.chain([width(&view.columns[column])]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..view.columns.len()).map(widest).collect();
    let line = |label: &str, cells: &[String]| {
        let cells: String =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{:GAP$}{cell:>width$}", "")).collect();
        format!("{label:<LABEL$}{cells}").trim_end().to_owned()
    };
    let mut text = vec![format!("{}, {}", style.strong(&view.heading), view.unit), line("", &view.columns)];
    for row in &view.rows {
        text.push(style.strong(&row.label));
        let mut cells = figures(row, view.decimals).into_iter();
        let mut push = |label: &str| text.extend(cells.next().map(|cells| line(label, &cells)));
        if !row.published.is_empty() {
            push("  published");
        }
        if !row.recomputed.is_empty() {
            push("  raw data");
        }
        match &row.measured {
            None => {}
            Some(Measured::Nothing(reason)) => text.push(format!("  {:<12}  {reason}", "here")),
            Some(Measured::Runs { runs, probes, lost, .. }) => {
                push("  here");
                let probes = grouped(*probes);
                let runs = if *runs == 1 { "1 run".into() } else { format!("median of {runs} runs") };
                let lost = format!("{} lost in all", grouped(*lost));
                text.push(style.quiet(&format!("  {:<12}  {runs}, {probes} {} each, {lost}", "", view.singletons)));
            }
        }
    }
    text.join("\n") + "\n"
}

/// The lines of figures of a row.
fn figures(row: &BesideRow, decimals: usize) -> Vec<Vec<String>> {
    let plain = |figure: &Option<f64>| figure.map_or(ABSENT.into(), |figure| format!("{figure:.decimals$}"));
    let told = [&row.published, &row.recomputed].into_iter().filter(|figures| !figures.is_empty());
    let mut lines: Vec<Vec<String>> = told.map(|figures| figures.iter().map(plain).collect()).collect();
    if let Some(Measured::Runs { figures, .. }) = &row.measured {
        lines.push(figures.iter().map(|figure| cell(*figure, decimals)).collect());
    }
    lines
}

/// `12.345`; of a quantile that the runs cannot carry `≥ 12.345` or `n/a`.
fn cell(figure: ColumnFigure, decimals: usize) -> String {
    match figure {
        ColumnFigure::Known(value) => format!("{value:.decimals$}"),
        ColumnFigure::AtLeast(bound) => format!("≥ {bound:.decimals$}"),
        ColumnFigure::NotSupported => "n/a".into(),
        ColumnFigure::Lost => "lost".into(),
        ColumnFigure::Nothing => ABSENT.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_of_the_publication() {
        let row = |label: &str, measured| BesideRow {
            label: label.into(),
            published: vec![Some(1.821), None, Some(14.723)],
            recomputed: vec![Some(3.636), Some(7.162), Some(14.723)],
            measured: Some(measured),
        };
        let figures = vec![ColumnFigure::Known(0.021), ColumnFigure::AtLeast(0.1), ColumnFigure::Lost];
        let here = Measured::Runs { figures, runs: 9, probes: 10_000, lost: 3 };
        let view = BesideView {
            heading: "round trip less dwell / 2".into(),
            unit: "ms".into(),
            decimals: 3,
            singletons: "probes",
            columns: vec!["mean".into(), "p99".into(), "max".into()],
            rows: vec![row("no load", here), row("CPU load", Measured::Nothing("no CPU to spare".into()))],
        };
        let expected = "\
round trip less dwell / 2, ms
                 mean      p99     max
no load
  published     1.821        –  14.723
  raw data      3.636    7.162  14.723
  here          0.021  ≥ 0.100    lost
                median of 9 runs, 10,000 probes each, 3 lost in all
CPU load
  published     1.821        –  14.723
  raw data      3.636    7.162  14.723
  here          no CPU to spare
";
        assert_eq!(render(&view, Style::PLAIN), expected);
    }
}
