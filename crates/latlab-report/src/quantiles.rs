//! How a quantile of one run is shown: a figure, and below it an interval or a lower bound. The marks of a quantile that
//! the data do not support are explained once, below the first table that has them.

use std::collections::BTreeSet;

use super::view::{ColumnView, RowView, TableView};
use crate::analysis::experiment::ColumnFigure;
use crate::units::human::ABSENT;

/// Text in place of a quantile that lies among the lost probes.
pub(super) const LOST: &str = "lost";
/// Text in place of a lower bound that does not exist.
const NO_BOUND: &str = "n/a";
/// Mark of a lower bound.
const AT_LEAST: &str = "≥ ";
/// Mark of an interval without a lower end.
const AT_MOST: &str = "≤ ";

/// A figure and the text below it, which may be empty.
pub(super) type Cells = [String; 2];

/// Formats a figure of a run as `4.18`, `lost` or `–`; without support as `(4.18)` or `(lost)` with `≥ 3.10` or `n/a` below. A
/// value that is interpolated between few observations can be below its own lower bound.
pub(super) fn cells(figure: ColumnFigure, shown: impl Fn(f64) -> String) -> Cells {
    match figure {
        ColumnFigure::Nothing => [ABSENT.into(), String::new()],
        ColumnFigure::Lost => [LOST.into(), String::new()],
        ColumnFigure::Known(value) => [shown(value), String::new()],
        ColumnFigure::Unsupported { value, bound, .. } => [
            format!("({})", value.map_or_else(|| LOST.into(), &shown)),
            bound.map_or_else(|| NO_BOUND.into(), |bound| format!("{AT_LEAST}{}", shown(bound))),
        ],
    }
}

/// Formats for a sentence, as `(4.18), ≥ 3.10 with 95 % confidence` without support.
pub(super) fn in_words(figure: ColumnFigure, shown: impl Fn(f64) -> String) -> String {
    let [value, below] = cells(figure, shown);
    match figure {
        ColumnFigure::Unsupported { bound: Some(_), .. } => format!("{value}, {below} with 95 % confidence"),
        ColumnFigure::Unsupported { bound: None, .. } => format!("{value}, without a lower bound"),
        _ => value,
    }
}

/// Returns two rows for each label: one for figures, and one for what stands below them, omitted where that is nothing.
pub(super) fn rows_of_two(labels: impl IntoIterator<Item = String>) -> Vec<RowView> {
    let rows = |label: String| [RowView::of(label), RowView::below("")];
    labels.into_iter().flat_map(rows).collect()
}

/// A column for a table with [`rows_of_two`].
pub(super) fn column_of_two(heading: &str, cells: impl IntoIterator<Item = Cells>) -> ColumnView {
    ColumnView::figures(heading, cells.into_iter().flatten())
}

/// A column of figures with nothing below them.
pub(super) fn column_above(heading: &str, figures: impl IntoIterator<Item = String>) -> ColumnView {
    column_of_two(heading, figures.into_iter().map(|figure| [figure, String::new()]))
}

/// Says in `tables` of executions that a figure failed, where that of probes is lost.
pub(super) fn say_failed(tables: &mut [TableView]) {
    let columns = tables.iter_mut().flat_map(|table| &mut table.groups).flat_map(|group| &mut group.columns);
    for cell in columns.flat_map(|column| &mut column.cells).filter(|cell| cell.contains(LOST)) {
        *cell = cell.replace(LOST, "failed");
    }
    for table in tables {
        table.legend = table.legend.replace("lost probes", "failed executions").replace(LOST, "failed");
    }
}

/// Explains the marks of `tables`, each below the first table that has it.
pub(super) fn explain_marks(tables: &mut [TableView]) {
    let mut known = BTreeSet::new();
    for table in tables {
        let mut marks = marks(cells_of(table));
        marks.retain(|mark| known.insert(*mark));
        let lines = [joined(&marks), std::mem::take(&mut table.legend)];
        table.legend = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    }
}

fn cells_of(table: &TableView) -> impl Iterator<Item = &String> {
    table.columns().flat_map(|column| &column.cells)
}

fn joined(marks: &[&str]) -> String {
    marks.join(" · ").replace(" · ≤", "\n≤")
}

fn marks<'a>(cells: impl IntoIterator<Item = &'a String>) -> Vec<&'static str> {
    let (mut has_bound, mut has_no_bound, mut has_upper_end) = (false, false, false);
    for cell in cells {
        has_upper_end |= cell.starts_with(AT_MOST);
        has_bound |= cell.starts_with(AT_LEAST);
        has_no_bound |= cell == NO_BOUND;
    }
    let marks = [
        (has_bound || has_no_bound, "( ) too few effective observations beyond it"),
        (has_bound, "≥ lower bound (95 %)"),
        (has_no_bound, "n/a: none"),
        (has_upper_end, "≤ upper end of an interval without a useful lower end"),
    ];
    marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_shown_with_what_the_data_say_of_it() {
        let unsupported = |value, bound| ColumnFigure::Unsupported { value, bound, is_small: true };
        for (figure, shown, words) in [
            (ColumnFigure::Nothing, ["–", ""], "–"),
            (ColumnFigure::Lost, ["lost", ""], "lost"),
            (ColumnFigure::Known(4.18), ["4.18", ""], "4.18"),
            (unsupported(Some(4.18), Some(4.2)), ["(4.18)", "≥ 4.20"], "(4.18), ≥ 4.20 with 95 % confidence"),
            (unsupported(Some(4.18), None), ["(4.18)", "n/a"], "(4.18), without a lower bound"),
            (unsupported(None, Some(3.1)), ["(lost)", "≥ 3.10"], "(lost), ≥ 3.10 with 95 % confidence"),
            (unsupported(None, None), ["(lost)", "n/a"], "(lost), without a lower bound"),
        ] {
            let digits = |value: f64| format!("{value:.2}");
            assert_eq!((cells(figure, digits), in_words(figure, digits).as_str()), (shown.map(str::to_owned), words));
        }
    }

    fn table(cells: [&str; 2]) -> TableView {
        let columns = vec![column_of_two("p99", [cells.map(str::to_owned)])];
        TableView::of("", Vec::new(), columns)
    }

    #[test]
    fn marks_are_explained_below_the_first_table_that_has_them() {
        let cells = [["4.18", ""], ["(4.18)", "≥ 3.10"], ["4.18", "≤ 9.01"], ["(4.18)", "n/a"], ["(4.18)", "n/a"]];
        let mut tables = cells.map(table);
        tables[2].legend = "other".into();
        explain_marks(&mut tables);
        let expected = [
            "",
            "( ) too few effective observations beyond it · ≥ lower bound (95 %)",
            "≤ upper end of an interval without a useful lower end\nother",
            "n/a: none",
            "",
        ];
        assert_eq!(tables.map(|table| table.legend), expected.map(str::to_owned));
    }
}
