//! Rendering of published figures and measured ones, in the columns of the publication: as text, as tables, and as a
//! document.

mod table;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::analysis::experiment::{ColumnFigure, IMPOSSIBLE, MeasuredRow, PublishedResults};
use crate::quantiles::{Cells, cells_over_runs, legend};
use crate::recipe::{FiguresOf, Published, PublishedRow};
use crate::remarks::past_the_stack;
use crate::stats::MeanDifference;
use crate::text::{Style, body_width, width, wrap};
use crate::units::human::{ABSENT, grouped};

pub(super) use table::tables;

const LABEL: usize = 14;
const GAP: usize = 2;
/// In lines of fewer characters texts do not stand behind labels.
const NARROW: usize = 60;
const AGAINST: &str = "ministat's test";
/// The source of the measured figures.
const HERE: &str = "here";

/// The measured figures of a row, or why there are none; `None` if only the publication is shown.
type Measured<'a> = Option<&'a Result<MeasuredRow, String>>;

/// The publication with the measured figures, as text.
pub(super) fn text(results: &PublishedResults, style: Style) -> String {
    table(results.published, |row| results.rows.get(row), style)
}

/// The publication alone, as text.
pub(super) fn publication(published: &Published, style: Style) -> String {
    table(published, |_| None, style)
}

fn table<'a>(published: &'a Published, measured: impl Fn(usize) -> Measured<'a>, style: Style) -> String {
    let rows: Vec<ShownRow> = shown_rows(published, measured).collect();
    let columns = Columns::of(published, &rows, style);
    let mut text = columns.heading(&published.heading, &published.unit);
    let mut reasons = Reasons::default();
    for shown in &rows {
        match shown.left_out() {
            Some(reason) => reasons.leave_out(shown.row, reason),
            None => text.extend(row_lines(shown, published, &columns, &mut reasons)),
        }
    }
    text.extend(reasons.lines().iter().flat_map(|line| wrap(line, style.width)).map(|line| style.quiet(&line)));
    text.extend(legend_of_bounds(published, &rows).map(|line| style.quiet(&line)));
    text.extend(published.whole.iter().flat_map(|whole| whole_lines(whole, published, &rows, &columns)));
    text.join("\n") + "\n"
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

/// The lines of one row of the publication.
fn row_lines<'a>(
    shown: &ShownRow<'a>,
    published: &Published,
    columns: &Columns,
    reasons: &mut Reasons<'a>,
) -> Vec<String> {
    let style = columns.style;
    let lines = figure_lines(shown, published).into_iter();
    let mut text = vec![style.strong(&shown.row.label)];
    text.extend(lines.flat_map(|line| columns.lines(line.source, &line.cells)));
    match shown.measured {
        None => {}
        Some(Err(reason)) => text.extend(wrapped(HERE, &reasons.short(reason), style)),
        Some(Ok(measured)) => {
            let bounds = bounds(measured, published.decimals);
            if bounds.iter().any(|bound| !bound.is_empty()) {
                text.extend(columns.lines("", &bounds).iter().map(|line| style.quiet(line)));
            }
            let ways = measured.xdp.iter().filter_map(past_the_stack);
            let remarks = std::iter::once(basis(measured, published)).chain(ways);
            text.extend(remarks.flat_map(|remark| wrapped("", &remark, style)).map(|line| style.quiet(&line)));
        }
    }
    text
}

/// The measured figures of a publication of halves, doubled, as a table with the heading `whole`.
fn whole_lines(whole: &str, published: &Published, rows: &[ShownRow<'_>], columns: &Columns) -> Vec<String> {
    let doubled = rows.iter().filter_map(|shown| Some((shown.row, shown.figures()?)));
    let lines = doubled.flat_map(|(row, measured)| {
        let figures = columns.lines(HERE, &whole_figures(measured, published.decimals));
        std::iter::once(columns.style.strong(&row.label)).chain(figures)
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        lines
    } else {
        [vec![String::new()], columns.heading(whole, &published.unit), lines].concat()
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

/// The columns of a publication.
struct Columns {
    headings: Vec<String>,
    widths: Vec<usize>,
    style: Style,
}

impl Columns {
    fn of(published: &Published, rows: &[ShownRow<'_>], style: Style) -> Columns {
        let decimals = published.decimals;
        let measured = || rows.iter().filter_map(ShownRow::figures);
        let figures = rows.iter().flat_map(|shown| figure_lines(shown, published));
        let mut lines: Vec<Vec<String>> = figures.map(|line| line.cells).collect();
        lines.extend(measured().map(|row| bounds(row, decimals)));
        lines.extend(measured().filter(|_| published.whole.is_some()).map(|row| whole_figures(row, decimals)));
        let headings = headings(published);
        let widest = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| body_width(cell));
            cells.chain([width(&headings[column])]).max().unwrap_or_default()
        };
        let widths = (0..headings.len()).map(widest).collect();
        Columns { headings, widths, style }
    }

    /// Whether a line has space for all columns.
    fn fit(&self) -> bool {
        LABEL + self.widths.iter().map(|column| GAP + column).sum::<usize>() <= self.style.width
    }

    /// What the figures are, and the headings of the columns if these fit.
    fn heading(&self, title: &str, unit: &str) -> Vec<String> {
        let title = wrap(&format!("{title}, {unit}"), self.style.width);
        let mut lines: Vec<String> = title.iter().map(|line| self.style.strong(line)).collect();
        lines.extend(self.fit().then(|| self.line("", &self.headings)));
        lines
    }

    fn line(&self, label: &str, cells: &[String]) -> String {
        let mut text = format!("{label:<LABEL$}");
        let mut end = LABEL;
        for (cell, column) in cells.iter().zip(&self.widths) {
            end += GAP + column;
            text.push_str(&" ".repeat((end - body_width(cell)).saturating_sub(width(&text))));
            text.push_str(cell);
        }
        text.trim_end().to_owned()
    }

    /// One line of cells, or several lines with the heading of each cell if the columns do not fit.
    fn lines(&self, label: &str, cells: &[String]) -> Vec<String> {
        if self.fit() {
            return vec![self.line(&format!("  {label}"), cells)];
        }
        let mut lines = if label.is_empty() { Vec::new() } else { vec![format!("  {label}")] };
        let named = self.headings.iter().zip(cells).filter(|(_, cell)| !cell.is_empty() && *cell != ABSENT);
        let mut line = String::new();
        for item in named.map(|(heading, cell)| format!("{heading} {cell}")) {
            if !line.is_empty() && width(&line) + GAP + width(&item) > self.style.width {
                lines.push(std::mem::take(&mut line));
            }
            line += &format!("{}{item}", " ".repeat(if line.is_empty() { 2 * GAP } else { GAP }));
        }
        lines.extend((!line.is_empty()).then_some(line));
        lines
    }
}

/// `median of 9 runs`; `1 run`; `30 runs` if the figures are those over runs.
fn basis_in_runs(runs: usize, published: &Published) -> String {
    match published.figures_of {
        _ if runs == 1 => "1 run".into(),
        FiguresOf::Runs => format!("{runs} runs"),
        FiguresOf::Singletons => format!("median of {runs} runs"),
    }
}

/// `median of 9 runs, 10,000 probes each, 3 lost in all`
fn basis(measured: &MeasuredRow, published: &Published) -> String {
    format!("{}, {}", basis_in_runs(measured.runs, published), basis_in_singletons(measured, published))
}

/// `10,000 probes each, 3 lost in all`
fn basis_in_singletons(measured: &MeasuredRow, published: &Published) -> String {
    let MeasuredRow { singletons: n, lost, .. } = *measured;
    let (noun, lost) = (published.kind().rows(), grouped(lost));
    match published.figures_of {
        FiguresOf::Runs => format!("at most {} {noun} each, {lost} lost in all", grouped(n)),
        FiguresOf::Singletons => {
            let one = noun.strip_suffix('s').filter(|_| n == 1);
            // Wake-ups have no target, so none can be lost.
            let can_lose = published.kind().has_target();
            let lost = if can_lose { format!(", {lost} lost in all") } else { String::new() };
            format!("{} {} each{lost}", grouped(n), one.unwrap_or(noun))
        }
    }
}

fn wrapped(label: &str, words: &str, style: Style) -> Vec<String> {
    if style.width < NARROW {
        let text = if label.is_empty() { words.to_owned() } else { format!("{label}: {words}") };
        let lines = wrap(&text, style.width.saturating_sub(2 * GAP).max(1)).into_iter();
        return lines.map(|line| format!("{:1$}{line}", "", 2 * GAP)).collect();
    }
    let lines = wrap(words, style.width.saturating_sub(LABEL + GAP)).into_iter();
    let line = |(number, line): (usize, String)| {
        let label = if number == 0 { label } else { "" };
        format!("  {label:<12}  {line}")
    };
    lines.enumerate().map(line).collect()
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
        json!({ "value": value, "at_least": at_least, "supported": supported, "reason": reason })
    };
    match figure {
        ColumnFigure::Known(value) => of(Some(*value), None, None),
        ColumnFigure::Unsupported { value, bound } => of(*value, *bound, Some("not-supported")),
        ColumnFigure::Lost => of(None, None, Some("lost")),
        ColumnFigure::Nothing => of(None, None, Some("no-figure")),
    }
}
