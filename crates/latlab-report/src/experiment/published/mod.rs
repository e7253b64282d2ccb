//! Published figures and measured ones in the columns of the publication: as tables, and as a document.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::analysis::experiment::{ColumnFigure, IMPOSSIBLE, MeasuredRow, PublishedResults};
use crate::quantiles::{Cells, LOST, cells_over_runs, legend};
use crate::recipe::{Column, FiguresOf, Published, PublishedRow};
use crate::remarks::past_the_stack;
use crate::stats::MeanDifference;
use crate::units::human::{ABSENT, grouped};
use crate::view::{ColumnView, GroupView, RowView, TableView};

const AGAINST: &str = "ministat's test";
/// The source of the measured figures.
const HERE: &str = "here";
const MEAN_IS_LOST: &str = "lost: infinite, since the figure of a run or more lies among its lost probes";
const MEANS_OF_RUNS: &str = "means are arithmetic here, as those of ministat, and geometric in comparisons";
const MEANS: &str = "here, of several runs: geometric means of their figures, as in comparisons";

/// The measured figures of a row, or why there are none; `None` if only the publication is shown.
type Measured<'a> = Option<&'a Result<MeasuredRow, String>>;

/// The publication with the measured figures, a row for each source of figures; of a publication of halves a second table has
/// the measured figures doubled.
pub(super) fn tables(results: &PublishedResults) -> Vec<TableView> {
    tables_of(results.published, |row| results.rows.get(row))
}

pub(super) fn publication(published: &Published) -> Vec<TableView> {
    tables_of(published, |_| None)
}

fn tables_of<'a>(published: &'a Published, measured: impl Fn(usize) -> Measured<'a>) -> Vec<TableView> {
    let rows: Vec<ShownRow<'_>> = shown_rows(published, measured).collect();
    let (mut lines, mut doubled) = (Lines::default(), Lines::default());
    let mut reasons = Reasons::default();
    for shown in &rows {
        if let Some(reason) = shown.left_out() {
            reasons.leave_out(shown.row, reason);
            continue;
        }
        let section = &shown.row.label;
        for FigureLine { source, cells } in figure_lines(shown, published) {
            lines.push(section, RowView::of(source), cells, String::new());
        }
        match shown.measured {
            Some(Err(reason)) => {
                let absent = vec![ABSENT.to_owned(); published.columns.len()];
                lines.push(section, RowView::of(HERE), absent, reasons.short(reason));
            }
            Some(Ok(measured)) => {
                let basis = basis(measured, published);
                doubled.push(section, RowView::of(HERE), whole_figures(measured, published.decimals), basis.clone());
                let bounds = bounds(measured, published.decimals);
                if bounds.iter().any(|bound| !bound.is_empty()) {
                    lines.push(section, RowView::below(""), bounds, String::new());
                }
                if let (Some(row), Some(sample)) = (lines.rows.last_mut(), lines.samples.last_mut()) {
                    row.notes = measured.xdp.iter().filter_map(past_the_stack).collect();
                    *sample = basis;
                }
            }
            None => {}
        }
    }
    let is_lost = lines.cells.iter().flatten().any(|cell| cell == LOST);
    let lost = is_lost.then(|| MEAN_IS_LOST.to_owned());
    let mut measured = rows.iter().filter_map(ShownRow::figures);
    let is_arithmetic = published.figures_of == FiguresOf::Runs;
    let means =
        measured.any(|measured| measured.runs > 1 && (!is_arithmetic || published.columns.contains(&Column::Mean)));
    let means = means.then(|| if is_arithmetic { MEANS_OF_RUNS } else { MEANS }.to_owned());
    let legend: Vec<String> =
        reasons.lines().into_iter().chain(legend_of_bounds(published, &rows)).chain(lost).chain(means).collect();
    let table = TableView { legend: legend.join("\n"), ..lines.table(&published.heading, published) };
    let whole = published.whole.as_ref().map(|heading| doubled.table(heading, published));
    std::iter::once(table).chain(whole.filter(|table| !table.rows.is_empty())).collect()
}

/// The rows of a table as they are found.
#[derive(Default)]
struct Lines {
    rows: Vec<RowView>,
    /// Of each row one for each column of figures, or fewer.
    cells: Vec<Vec<String>>,
    /// What the measured figures of each row are based on.
    samples: Vec<String>,
}

impl Lines {
    fn push(&mut self, section: &str, row: RowView, cells: Vec<String>, sample: String) {
        self.rows.push(RowView { section: section.into(), ..row });
        self.cells.push(cells);
        self.samples.push(sample);
    }

    fn table(self, heading: &str, published: &Published) -> TableView {
        let cells = |column: usize| self.cells.iter().map(move |own| own.get(column).cloned().unwrap_or_default());
        let figures = headings(published).into_iter().enumerate();
        let figures = figures.map(|(column, heading)| ColumnView::figures(&heading, cells(column))).collect();
        let is_measured = self.samples.iter().any(|sample| !sample.is_empty());
        let samples = is_measured.then(|| GroupView::plain(vec![ColumnView::words("sample", self.samples)]));
        TableView {
            title: format!("{heading}, {}", published.unit),
            rows: self.rows,
            groups: std::iter::once(GroupView::plain(figures)).chain(samples).collect(),
            ..TableView::default()
        }
    }
}

/// A row of the publication with what was measured of it.
#[derive(Clone, Copy)]
struct ShownRow<'a> {
    row: &'a PublishedRow,
    measured: Measured<'a>,
}

/// The rows of `published` with what `measured` has at their places.
fn shown_rows<'a>(
    published: &'a Published,
    measured: impl Fn(usize) -> Measured<'a>,
) -> impl Iterator<Item = ShownRow<'a>> {
    let rows = published.rows.iter().enumerate();
    rows.map(move |(place, row)| ShownRow { row, measured: measured(place) })
}

impl<'a> ShownRow<'a> {
    fn figures(&self) -> Option<&'a MeasuredRow> {
        self.measured?.as_ref().ok()
    }

    /// Why the row is left out: it has neither published nor measured figures. `None` if it is shown.
    fn left_out(&self) -> Option<&'a str> {
        match self.measured {
            _ if !self.row.published.is_empty() || !self.row.recomputed.is_empty() => None,
            Some(Err(reason)) => Some(reason),
            Some(Ok(_)) => None,
            None => Some("not published"),
        }
    }
}

/// Why rows have no measured figures.
#[derive(Default)]
struct Reasons<'a> {
    /// Why something is not possible here: numbered from 1.
    numbered: Vec<&'a str>,
    /// Rows without any figure: their labels by reason.
    left_out: Vec<LeftOut<'a>>,
}

/// Rows without any figure for one reason.
struct LeftOut<'a> {
    reason: &'a str,
    labels: Vec<&'a str>,
}

impl<'a> Reasons<'a> {
    /// The reason in a few words; one that explains more is numbered.
    fn short(&mut self, reason: &'a str) -> String {
        let Some(cause) = reason.strip_prefix(IMPOSSIBLE) else { return reason.to_owned() };
        let index = self.numbered.iter().position(|known| *known == cause).unwrap_or_else(|| {
            self.numbered.push(cause);
            self.numbered.len() - 1
        });
        format!("not possible here ({})", index + 1)
    }

    fn leave_out(&mut self, row: &'a PublishedRow, reason: &'a str) {
        match self.left_out.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.labels.push(&row.label),
            None => self.left_out.push(LeftOut { reason, labels: vec![&row.label] }),
        }
    }

    fn lines(&self) -> Vec<String> {
        let numbered = self.numbered.iter().zip(1..).map(|(reason, number)| format!("({number}) {reason}"));
        let left_out =
            self.left_out.iter().map(|LeftOut { reason, labels }| format!("{reason}: {}", labels.join("; ")));
        numbered.chain(left_out).collect()
    }
}

/// `mean of 9 runs, 10,000 probes each, 3 lost in all`
fn basis(measured: &MeasuredRow, published: &Published) -> String {
    let MeasuredRow { runs, singletons: n, lost, .. } = *measured;
    let over_runs = match published.figures_of {
        _ if runs == 1 => "1 run".into(),
        FiguresOf::Runs => format!("{runs} runs"),
        FiguresOf::Singletons => format!("mean of {runs} runs"),
    };
    let (noun, lost) = (published.kind().rows(), grouped(lost));
    match published.figures_of {
        FiguresOf::Runs => format!("{over_runs}, at most {} {noun} each, {lost} lost in all", grouped(n)),
        FiguresOf::Singletons => {
            let one = noun.strip_suffix('s').filter(|_| n == 1);
            // Wake-ups have no target, so none can be lost.
            let can_lose = published.kind().has_target();
            let lost = if can_lose { format!(", {lost} lost in all") } else { String::new() };
            format!("{over_runs}, {} {} each{lost}", grouped(n), one.unwrap_or(noun))
        }
    }
}

/// The headings of the columns of figures.
fn headings(published: &Published) -> Vec<String> {
    let is_tested = published.rows.iter().any(|row| row.against_first.is_some());
    let columns = published.columns.iter().map(|column| column.heading());
    columns.chain(is_tested.then(|| AGAINST.into())).collect()
}

/// The figures of a row from one source.
struct FigureLine<'a> {
    source: &'a str,
    /// Column by column; without that of the test if there was none.
    cells: Vec<String>,
}

/// The lines of figures of a row, the measured ones last.
fn figure_lines<'a>(shown: &ShownRow<'_>, published: &'a Published) -> Vec<FigureLine<'a>> {
    let (row, decimals) = (shown.row, published.decimals);
    let plain = |figure: &Option<f64>| figure.map_or(ABSENT.into(), |figure| format!("{figure:.decimals$}"));
    let known = published.sources.iter().zip([&row.published, &row.recomputed]);
    let known = known.filter(|(_, figures)| !figures.is_empty());
    let line = |(source, figures): (&'a String, &Vec<Option<f64>>)| FigureLine {
        source,
        cells: figures.iter().map(plain).collect(),
    };
    let mut lines: Vec<FigureLine<'a>> = known.map(line).collect();
    if let (Some(first), Some(difference)) = (lines.first_mut(), row.against_first) {
        first.cells.push(against_first(difference));
    }
    if let Some(measured) = shown.figures() {
        let figure = |figure: &ColumnFigure| {
            let [figure, _] = cells(*figure, decimals);
            figure
        };
        let figures = measured.figures.iter().map(figure);
        let cells = figures.chain(measured.against_first.map(against_first)).collect();
        lines.push(FigureLine { source: HERE, cells });
    }
    lines
}

/// The measured figures of a publication of halves, doubled.
fn whole_figures(measured: &MeasuredRow, decimals: usize) -> Vec<String> {
    let whole = |figure: &ColumnFigure| {
        let [figure, _] = cells(figure.doubled(), decimals);
        figure
    };
    measured.figures.iter().map(whole).collect()
}

/// `−39.6 % ± 6.8 %` or `none proven`.
fn against_first(difference: MeanDifference) -> String {
    match difference {
        MeanDifference::NotProven => "none proven".into(),
        MeanDifference::Proven { percent, margin_percent } => {
            format!("{} % ± {:.1} %", format!("{percent:+.1}").replace('-', "−"), margin_percent.abs())
        }
    }
}

/// `12.345`; `(12.345)` if it is an unsupported quantile; `lost` if lost probes make it infinite, without a bound below it; `–`
/// if unknown.
fn cells(figure: ColumnFigure, decimals: usize) -> Cells {
    cells_over_runs(figure, |value| format!("{value:.decimals$}"))
}

/// What stands below the measured figures: the lower bounds of those without support.
fn bounds(measured: &MeasuredRow, decimals: usize) -> Vec<String> {
    let bound = |figure: &ColumnFigure| {
        let [_, bound] = cells(*figure, decimals);
        bound
    };
    measured.figures.iter().map(bound).collect()
}

/// Explains the lower bounds of all rows; `None` if there are none.
fn legend_of_bounds(published: &Published, rows: &[ShownRow<'_>]) -> Option<String> {
    let all = rows.iter().filter_map(|shown| Some(bounds(shown.figures()?, published.decimals)));
    legend(all.flatten().collect::<Vec<_>>().iter())
}

/// The publication with the measured figures, as the value of a key of `latlab.compare/1`.
pub(super) fn document(results: &PublishedResults) -> Value {
    let published = results.published;
    let rows = published.rows.iter().zip(&results.rows).map(|(row, measured)| row_document(row, measured));
    json!({
        "heading": published.heading,
        "unit": published.unit,
        "sources": published.sources,
        "columns": published.columns.iter().map(|column| column.heading()).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn row_document(row: &PublishedRow, measured: &Result<MeasuredRow, String>) -> Value {
    let or_null = |figures: &[Option<f64>]| if figures.is_empty() { Value::Null } else { json!(figures) };
    let figures = measured.as_ref().ok().map(|MeasuredRow { figures, runs, singletons, lost, xdp, .. }| {
        let figures: Vec<Value> = figures.iter().map(figure_document).collect();
        json!({ "runs": runs, "n": singletons, "lost": lost, "figures": figures, "xdp": xdp })
    });
    let against_first = measured.as_ref().ok().and_then(|measured| measured.against_first);
    json!({
        "label": row.label,
        "published": or_null(&row.published),
        "raw_data": or_null(&row.recomputed),
        "measured": figures,
        "reason": measured.as_ref().err(),
        "against_first": match (row.against_first, against_first) {
            (None, None) => Value::Null,
            (published, measured) => {
                json!({ "published": difference_document(published), "measured": difference_document(measured) })
            }
        },
    })
}

fn difference_document(difference: Option<MeanDifference>) -> Value {
    match difference {
        None => Value::Null,
        Some(MeanDifference::NotProven) => json!({ "proven": false, "percent": null, "margin_percent": null }),
        Some(MeanDifference::Proven { percent, margin_percent }) => {
            json!({ "proven": true, "percent": percent, "margin_percent": margin_percent })
        }
    }
}

fn figure_document(figure: &ColumnFigure) -> Value {
    let of = |value: Option<f64>, at_least: Option<f64>, reason: Option<&str>| {
        let supported = reason != Some("not-supported");
        // Logarithms differ in their last digits between computers.
        let [value, at_least] = [value, at_least].map(|it| it.map(|it| format!("{it:.8e}").parse().unwrap_or(it)));
        json!({ "value": value, "at_least": at_least, "supported": supported, "reason": reason })
    };
    match figure {
        ColumnFigure::Known(value) => of(Some(*value), None, None),
        ColumnFigure::Unsupported { value, bound } => of(*value, *bound, Some("not-supported")),
        ColumnFigure::Lost => of(None, None, Some("lost")),
        ColumnFigure::Nothing => of(None, None, Some("no-figure")),
    }
}
