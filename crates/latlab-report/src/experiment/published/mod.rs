//! Published figures and measured ones in the columns of the publication: as tables, and as a document.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::analysis::experiment::{
    ColumnFigure, MeasuredRow, MeasuredSystem, PublishedResults, ReachedLoad, Unmeasured,
};
use crate::quantiles::{LOST, cells};
use crate::recipe::{Column, FiguresOf, Published, PublishedRow};
use crate::remarks::past_the_stack;
use crate::stats::MeanDifference;
use crate::units::human::{ABSENT, grouped, load_figure};
use crate::view::{ColumnView, GroupView, RowView, TableView};

const AGAINST: &str = "ministat's test";
const MEAN_IS_LOST: &str = "lost: infinite, since the value of a run or more lies among its lost probes";
const MEANS_OF_RUNS: &str = "means are arithmetic here, as those of ministat, and geometric in comparisons";
const MEANS: &str = "of several runs: geometric means of their values, as in comparisons";
const MEANS_OF_EXTREMES: &str =
    "of several runs: geometric means of their values, of minima and maxima too, as in comparisons";
const SMALL: &str = "( ) too few values beyond it, or of one run too few independent ones";

/// The publication with the measured figures, a row for each source of figures; of a publication of halves a further one has
/// the measured figures doubled. Below it stands `not_possible`, which names what was not measured.
pub(super) fn table(results: &PublishedResults, not_possible: Option<String>) -> TableView {
    let is_left_out = |shown: &ShownRow<'_>| results.recipe.is_rehearsal() && shown.is_no_condition();
    let rows: Vec<ShownRow<'_>> =
        shown_rows(results.published, &results.systems).filter(|shown| !is_left_out(shown)).collect();
    let mut table = table_of(results.published, &rows, not_possible);
    if results.recipe.scale != "full" {
        // What stands in brackets takes longer runs.
        table.legend = table.legend.replacen(SMALL, &format!("{SMALL}; `--full` has more"), 1);
    }
    table
}

pub(super) fn publication(published: &Published) -> TableView {
    let rows: Vec<ShownRow<'_>> = shown_rows(published, &[]).collect();
    let own = rows.iter().filter(|shown| !shown.is_published()).map(|shown| shown.row.label.as_str());
    let own = own.collect::<Vec<_>>().join("; ");
    table_of(published, &rows, (!own.is_empty()).then(|| format!("not published: {own}")))
}

fn table_of(published: &Published, rows: &[ShownRow<'_>], remark: Option<String>) -> TableView {
    let common = common_basis(published, rows);
    let mut lines = Lines::default();
    for shown in rows {
        let section = &shown.row.label;
        for FigureLine { source, cells } in known_lines(shown.row, published) {
            lines.push(section, RowView::of(source), cells, String::new());
        }
        for (system, measured) in shown.figures() {
            let cells = measured.figures.iter().map(|figure| measured_cell(*figure, published.decimals));
            let cells = cells.chain(measured.against_first.map(against_first)).collect();
            let basis = if common.is_some() { String::new() } else { basis(shown.row, measured, published) };
            lines.push(section, RowView::of(system), cells, basis);
            if let Some(row) = lines.rows.last_mut() {
                row.notes = measured.xdp.iter().filter_map(past_the_stack).collect();
            }
            if let Some(whole) = &published.whole {
                let figures = measured.figures.iter().map(|figure| measured_cell(figure.doubled(), published.decimals));
                lines.push(section, RowView::of(whole), figures.collect(), String::new());
            }
        }
    }
    let has = |mark: fn(&String) -> bool| lines.cells.iter().flatten().any(mark);
    let lost = has(|cell| cell.contains(LOST)).then(|| MEAN_IS_LOST.to_owned());
    let small = has(|cell| cell.starts_with('(')).then(|| SMALL.to_owned());
    let mut measured = rows.iter().flat_map(ShownRow::figures);
    let is_arithmetic = published.figures_of == FiguresOf::Runs;
    let has_means = measured
        .any(|(_, measured)| measured.runs > 1 && (!is_arithmetic || published.columns.contains(&Column::Mean)));
    let means = match is_arithmetic {
        true => MEANS_OF_RUNS,
        false if published.columns.contains(&Column::Max) => MEANS_OF_EXTREMES,
        false => MEANS,
    };
    let means = has_means.then(|| means.to_owned());
    let not_yet = labels(rows, Unmeasured::NotYet).map(|labels| format!("not measured yet: {labels}"));
    let common = common.map(|basis| format!("measured: {basis}"));
    let legend = [common, not_yet, remark, small, lost, means];
    let legend = legend.into_iter().flatten().collect::<Vec<_>>().join("\n");
    TableView { legend, ..lines.table(&published.heading, published) }
}

/// What the measured figures of all `rows` are based on, if it is the same and there are several.
fn common_basis(published: &Published, rows: &[ShownRow<'_>]) -> Option<String> {
    let of_row = |shown: &ShownRow<'_>| {
        let bases = shown.figures().map(|(_, measured)| basis(shown.row, measured, published));
        bases.collect::<Vec<_>>()
    };
    let bases: Vec<String> = rows.iter().flat_map(of_row).collect();
    bases.windows(2).all(|pair| pair[0] == pair[1]).then_some(bases)?.into_iter().nth(1)
}

/// The labels of the rows that were not measured for `reason`; `None` without any.
fn labels(rows: &[ShownRow<'_>], reason: Unmeasured) -> Option<String> {
    let is_of = |shown: &&ShownRow<'_>| shown.measured.iter().any(|(_, measured)| measured.as_ref() == Err(&reason));
    let labels: Vec<&str> = rows.iter().filter(is_of).map(|shown| shown.row.label.as_str()).collect();
    (!labels.is_empty()).then(|| labels.join("; "))
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
struct ShownRow<'a> {
    row: &'a PublishedRow,
    /// By the name of the system.
    measured: Vec<(&'a str, &'a Result<MeasuredRow, Unmeasured>)>,
}

/// The rows of `published` with what `systems` have at their places.
fn shown_rows<'a>(published: &'a Published, systems: &'a [MeasuredSystem]) -> impl Iterator<Item = ShownRow<'a>> {
    let measured = |place: usize| systems.iter().map(move |system| (system.name.as_str(), &system.rows[place]));
    published.rows.iter().enumerate().map(move |(place, row)| ShownRow { row, measured: measured(place).collect() })
}

impl<'a> ShownRow<'a> {
    fn figures(&self) -> impl Iterator<Item = (&'a str, &'a MeasuredRow)> {
        self.measured.iter().filter_map(|(system, measured)| Some((*system, measured.as_ref().ok()?)))
    }

    fn is_published(&self) -> bool {
        !self.row.published.is_empty() || !self.row.recomputed.is_empty()
    }

    fn is_no_condition(&self) -> bool {
        self.measured.iter().all(|(_, measured)| **measured == Err(Unmeasured::NoCondition))
    }
}

/// `mean of 9 runs, 10,000 probes each, 3 lost in all; cpu=80% reached 79.8 %`
fn basis(row: &PublishedRow, measured: &MeasuredRow, published: &Published) -> String {
    let of_load = |ReachedLoad { unit, achieved, is_reached }: &ReachedLoad| {
        let (load, reached) = (row.factors.get("load")?, load_figure(unit, *achieved));
        Some(if *is_reached {
            format!("; `{load}` reached {reached}")
        } else {
            format!("; `{load}` reached only {reached}")
        })
    };
    let load = measured.load.as_ref().and_then(of_load).unwrap_or_default();
    format!("{}{load}{}", sample(measured, published), row.note)
}

fn sample(measured: &MeasuredRow, published: &Published) -> String {
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
    let columns = (0..published.columns.len()).map(|place| published.heading_of(place));
    columns.chain(is_tested.then(|| AGAINST.into())).collect()
}

/// The figures of a row from one source.
struct FigureLine<'a> {
    source: &'a str,
    /// Column by column; without that of the test if there was none.
    cells: Vec<String>,
}

/// Takes the figures of one source from a row.
type SourceOf = fn(&PublishedRow) -> &Vec<Option<f64>>;

/// The published lines of figures of a row.
fn known_lines<'a>(row: &PublishedRow, published: &'a Published) -> Vec<FigureLine<'a>> {
    let sources: [SourceOf; 2] = [|row| &row.published, |row| &row.recomputed];
    let known = published.sources.iter().zip(sources).filter(|(_, of)| !of(row).is_empty());
    let line = |(source, of): (&'a String, SourceOf)| {
        // As many decimals as that source has in the column.
        let decimals = |place: usize| {
            let column = published.rows.iter().filter_map(|row| *of(row).get(place)?);
            column.map(|figure| decimals_of(figure, published.decimals)).max().unwrap_or_default()
        };
        let cell = |(place, figure): (usize, &Option<f64>)| {
            figure.map_or(ABSENT.into(), |figure| number(figure, decimals(place)))
        };
        FigureLine { source, cells: of(row).iter().enumerate().map(cell).collect() }
    };
    let mut lines: Vec<FigureLine<'a>> = known.map(line).collect();
    if let (Some(first), Some(difference)) = (lines.first_mut(), row.against_first) {
        first.cells.push(against_first(difference));
    }
    lines
}

/// The decimals of a figure, at most `most`.
fn decimals_of(figure: f64, most: usize) -> usize {
    (0..most).find(|decimals| format!("{figure:.decimals$}").parse() == Ok(figure)).unwrap_or(most)
}

/// A figure with so many decimals; with all that it has if it would be 0 otherwise.
fn number(figure: f64, decimals: usize) -> String {
    if figure != 0.0 && figure.abs() < 0.5 * 0.1_f64.powi(decimals as i32) {
        format!("{figure}")
    } else {
        format!("{figure:.decimals$}")
    }
}

/// `−39.6 % ± 6.8 %` or `none proven`.
pub(super) fn against_first(difference: MeanDifference) -> String {
    match difference {
        MeanDifference::NotProven => "none proven".into(),
        MeanDifference::Proven { percent, margin_percent } => {
            format!("{} % ± {:.1} %", format!("{percent:+.1}").replace('-', "−"), margin_percent.abs())
        }
    }
}

/// `12.345`; `(12.345)` if it is an unsupported quantile; `lost` if lost probes make it infinite; `–` if unknown.
pub(super) fn measured_cell(figure: ColumnFigure, decimals: usize) -> String {
    // Three digits, as every figure of latlab.
    let digits = |value: f64| if value == 0.0 { 0 } else { (2.0 - value.abs().log10().floor()).max(0.0) as usize };
    let [figure, _] = cells(figure, |value| number(value, decimals.max(digits(value))));
    figure
}

/// The publication with the measured figures, as the value of a key of `latlab.compare/1`.
pub(super) fn document(results: &PublishedResults) -> Value {
    let published = results.published;
    let measured = results.systems.iter().flat_map(|system| &system.rows);
    let rows = published.rows.iter().zip(measured).map(|(row, measured)| row_document(row, measured));
    json!({
        "heading": published.heading,
        "unit": published.unit,
        "sources": published.sources,
        "columns": published.columns.iter().map(|column| column.heading()).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn row_document(row: &PublishedRow, measured: &Result<MeasuredRow, Unmeasured>) -> Value {
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
        "reason": measured.as_ref().err().map(Unmeasured::to_string),
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
        ColumnFigure::Unsupported { value, bound, .. } => of(*value, *bound, Some("not-supported")),
        ColumnFigure::Lost => of(None, None, Some("lost")),
        ColumnFigure::Nothing => of(None, None, Some("no-figure")),
    }
}
