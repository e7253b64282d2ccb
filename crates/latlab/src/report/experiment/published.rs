//! Published figures and measured ones, side by side in the publication's own columns.

use crate::analysis::experiment::ColumnFigure;
use crate::report::paint::{Style, width, wrap};
use crate::stats::MeanDifference;
use crate::units::human::{ABSENT, grouped};

/// A publication and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedView {
    /// What its columns are about.
    pub heading: String,
    /// Their unit.
    pub unit: String,
    /// Digits after the point.
    pub decimals: usize,
    /// What its figures are of: `probes`, `wake-ups`.
    pub singletons: &'static str,
    /// Whether one of them can be lost: a timer loses nothing.
    pub may_be_lost: bool,
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// One for each of its rows.
    pub rows: Vec<PublishedRowView>,
}

/// One row of a publication. Figures are in its unit; none: not published, or not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRowView {
    /// In the publication's words.
    pub label: String,
    /// As published; empty where it is not.
    pub published: Vec<Option<f64>>,
    /// As its raw data say; empty where they are not published.
    pub recomputed: Vec<Option<f64>>,
    /// What was published of the difference to the first row; none where nothing was.
    pub against_first: Option<MeanDifference>,
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
    /// Statistics over runs, each of which is one observation.
    OverRuns {
        /// In the unit of the table.
        figures: Vec<ColumnFigure>,
        /// The difference to the first row; none of the first, or where that or this is too small to be tested.
        against_first: Option<MeanDifference>,
        /// Runs.
        runs: usize,
        /// Packets of each, the most.
        packets: u64,
        /// Packets of all of them that were lost.
        lost: u64,
    },
    /// Nothing, for this reason.
    Nothing(String),
}

const LABEL: usize = 14;
const GAP: usize = 2;
const AGAINST: &str = "against first";

/// The table as text.
pub fn render(view: &PublishedView, style: Style) -> String {
    let lines: Vec<Vec<String>> = view.rows.iter().flat_map(|row| figures(row, view.decimals)).collect();
    let is_tested = view.rows.iter().any(|row| row.against_first.is_some());
    let headings: Vec<String> = view.columns.iter().cloned().chain(is_tested.then(|| AGAINST.into())).collect();
    let widest = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell));
        cells.chain([width(&headings[column])]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headings.len()).map(widest).collect();
    let line = |label: &str, cells: &[String]| {
        let cells: String =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{:GAP$}{cell:>width$}", "")).collect();
        format!("{label:<LABEL$}{cells}").trim_end().to_owned()
    };
    let mut text = vec![format!("{}, {}", style.strong(&view.heading), view.unit), line("", &headings)];
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
            Some(Measured::Nothing(reason)) => text.extend(wrapped("here", reason, style)),
            Some(Measured::OverRuns { runs, packets, lost, .. }) => {
                push("  here");
                let runs = if *runs == 1 { "1 run".into() } else { format!("{runs} runs") };
                let (packets, lost) = (grouped(*packets), grouped(*lost));
                let size = format!("{runs}, at most {packets} {} each, {lost} lost in all", view.singletons);
                text.push(style.quiet(&format!("  {:<12}  {size}", "")));
            }
            Some(Measured::Runs { runs, probes, lost, .. }) => {
                push("  here");
                text.push(style.quiet(&format!("  {:<12}  {}", "", rests((*runs, *probes, *lost), view))));
            }
        }
    }
    text.join("\n") + "\n"
}

/// On what the figures rest: `median of 9 runs, 10,000 probes each, 3 lost in all`
fn rests((runs, singletons, lost): (usize, u64, u64), view: &PublishedView) -> String {
    let runs = if runs == 1 { "1 run".into() } else { format!("median of {runs} runs") };
    let one = view.singletons.strip_suffix('s').filter(|_| singletons == 1);
    let each = format!("{} {} each", grouped(singletons), one.unwrap_or(view.singletons));
    let lost = if view.may_be_lost { format!(", {} lost in all", grouped(lost)) } else { String::new() };
    format!("{runs}, {each}{lost}")
}

/// A line behind a label, in as many lines as it takes.
fn wrapped(label: &str, words: &str, style: Style) -> Vec<String> {
    let lines = wrap(words, style.width.saturating_sub(LABEL + GAP)).into_iter();
    let line = |(number, line): (usize, String)| {
        let label = if number == 0 { label } else { "" };
        format!("  {label:<12}  {line}")
    };
    lines.enumerate().map(line).collect()
}

/// The lines of figures of a row.
fn figures(row: &PublishedRowView, decimals: usize) -> Vec<Vec<String>> {
    let plain = |figure: &Option<f64>| figure.map_or(ABSENT.into(), |figure| format!("{figure:.decimals$}"));
    let told = [&row.published, &row.recomputed].into_iter().filter(|figures| !figures.is_empty());
    let mut lines: Vec<Vec<String>> = told.map(|figures| figures.iter().map(plain).collect()).collect();
    if let (Some(first), Some(difference)) = (lines.first_mut(), row.against_first) {
        first.push(against_first(difference));
    }
    match &row.measured {
        Some(Measured::Runs { figures, .. }) => lines.push(figures.iter().map(|of| cell(*of, decimals)).collect()),
        Some(Measured::OverRuns { figures, against_first: difference, .. }) => {
            let figures = figures.iter().map(|figure| cell(*figure, decimals));
            lines.push(figures.chain(difference.map(against_first)).collect());
        }
        Some(Measured::Nothing(_)) | None => {}
    }
    lines
}

/// `−39.6 % ± 6.8 %`, or that none is proven.
fn against_first(difference: MeanDifference) -> String {
    match difference {
        MeanDifference::NotProven => "none proven".into(),
        MeanDifference::Proven { percent, margin_percent } => {
            format!("{} % ± {:.1} %", format!("{percent:+.1}").replace('-', "−"), margin_percent.abs())
        }
    }
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
        let row = |label: &str, measured| PublishedRowView {
            label: label.into(),
            published: vec![Some(1.821), None, Some(14.723)],
            recomputed: vec![Some(3.636), Some(7.162), Some(14.723)],
            against_first: None,
            measured: Some(measured),
        };
        let figures = vec![ColumnFigure::Known(0.021), ColumnFigure::AtLeast(0.1), ColumnFigure::Lost];
        let here = Measured::Runs { figures, runs: 9, probes: 10_000, lost: 3 };
        let view = PublishedView {
            heading: "round trip less dwell / 2".into(),
            unit: "ms".into(),
            decimals: 3,
            singletons: "probes",
            may_be_lost: true,
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
        let wakeups = PublishedView { singletons: "wake-ups", may_be_lost: false, ..view };
        for (runs, n, expected) in
            [(4, 1, "median of 4 runs, 1 wake-up each"), (1, 1_000, "1 run, 1,000 wake-ups each")]
        {
            assert_eq!(rests((runs, n, 0), &wakeups), expected);
        }
    }

    #[test]
    fn figures_over_runs_are_tested_against_the_first_row() {
        let row = |label: &str, published: f64, against_first, measured| PublishedRowView {
            label: label.into(),
            published: vec![Some(published), Some(256.3195)],
            recomputed: Vec::new(),
            against_first,
            measured: Some(measured),
        };
        let of = |figure: f64, against_first| Measured::OverRuns {
            figures: [figure, 88.0].map(ColumnFigure::Known).into(),
            against_first,
            runs: 30,
            packets: 1_234_567,
            lost: 8,
        };
        let lower = |percent, margin_percent| Some(MeanDifference::Proven { percent, margin_percent });
        let view = PublishedView {
            heading: "delivered rate".into(),
            unit: "10⁶ bit/s".into(),
            decimals: 1,
            singletons: "packets",
            may_be_lost: true,
            columns: vec!["median".into(), "stdev".into()],
            rows: vec![
                row("v4, no checksum", 6137.8, None, of(21_000.0, None)),
                row("v4, no offload", 3697.94, lower(-39.6, 6.8), of(17_000.5, lower(-19.04, 0.22))),
                row("v4", 6528.77, Some(MeanDifference::NotProven), Measured::Nothing("such is `lo` ".repeat(7))),
            ],
        };
        let expected = "\
delivered rate, 10⁶ bit/s
                 median  stdev    against first
v4, no checksum
  published      6137.8  256.3
  here          21000.0   88.0
                30 runs, at most 1,234,567 packets each, 8 lost in all
v4, no offload
  published      3697.9  256.3  −39.6 % ± 6.8 %
  here          17000.5   88.0  −19.0 % ± 0.2 %
                30 runs, at most 1,234,567 packets each, 8 lost in all
v4
  published      6528.8  256.3      none proven
  here          such is `lo` such is `lo` such is `lo` such is `lo` such is `lo`
                such is `lo` such is `lo`
";
        assert_eq!(render(&view, Style::PLAIN), expected);
    }
}
