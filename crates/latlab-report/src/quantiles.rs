//! How a quantile of one run is shown: a figure, and below it an interval or a lower bound. The marks of a quantile that
//! the data do not support are explained once, below the first table that has any; on a page below the first that has them.

use std::collections::BTreeSet;

use super::view::{ColumnView, RowView, TableView};
use crate::analysis::experiment::ColumnFigure;
use crate::stats::{Description, QuantileEstimate};
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

/// What is shown of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ShownQuantile {
    Absent,
    /// It is infinite: supported, or farther out than such a quantile, or even its lower bound is infinite.
    Lost,
    /// The value of a supported quantile.
    Supported(f64),
    /// The value in this sample, `None` if infinite, and the one-sided 95 % lower bound, if one exists.
    Unsupported {
        value: Option<f64>,
        bound: Option<f64>,
    },
}

impl ShownQuantile {
    /// Of `estimate`, which is one of the quantiles of `described`.
    pub(super) fn of(estimate: &QuantileEstimate, described: &Description) -> ShownQuantile {
        match (estimate.supported, estimate.value) {
            _ if described.n == 0 => ShownQuantile::Absent,
            _ if estimate.is_surely_lost() => ShownQuantile::Lost,
            (false, value) => ShownQuantile::Unsupported { value, bound: estimate.lower_bound },
            (true, value) => value.map_or(ShownQuantile::Absent, ShownQuantile::Supported),
        }
    }

    /// Of quantile `q` of a run; absent if the run was not asked for it.
    pub(super) fn at(q: f64, described: Option<&Description>) -> ShownQuantile {
        let estimate = described.and_then(|described| described.quantiles.iter().find(|estimate| estimate.q == q));
        estimate.zip(described).map_or(ShownQuantile::Absent, |(estimate, all)| ShownQuantile::of(estimate, all))
    }

    /// Of a column: a figure over runs. A median among the lost probes is lost with or without support: it has no figure to
    /// doubt.
    pub(super) fn of_column(figure: ColumnFigure) -> ShownQuantile {
        match figure {
            ColumnFigure::Known(value) => ShownQuantile::Supported(value),
            ColumnFigure::Lost | ColumnFigure::Unsupported { value: None, .. } => ShownQuantile::Lost,
            ColumnFigure::Unsupported { value, bound } => ShownQuantile::Unsupported { value, bound },
            ColumnFigure::Nothing => ShownQuantile::Absent,
        }
    }

    /// Formats as `4.18`, `lost` or `–`; without support as `(4.18)` or `(lost)` with `≥ 3.10` or `n/a` below. A value that is
    /// interpolated between few observations can be below its own lower bound.
    pub(super) fn cells(self, figure: impl Fn(f64) -> String) -> Cells {
        match self {
            ShownQuantile::Absent => [ABSENT.into(), String::new()],
            ShownQuantile::Lost => [LOST.into(), String::new()],
            ShownQuantile::Supported(value) => [figure(value), String::new()],
            ShownQuantile::Unsupported { value, bound } => [
                format!("({})", value.map_or_else(|| LOST.into(), &figure)),
                bound.map_or_else(|| NO_BOUND.into(), |bound| format!("{AT_LEAST}{}", figure(bound))),
            ],
        }
    }

    /// Formats for a sentence, as `(4.18), ≥ 3.10 with 95 % confidence` without support.
    pub(super) fn words(self, figure: impl Fn(f64) -> String) -> String {
        let [shown, _] = self.cells(&figure);
        match self {
            ShownQuantile::Unsupported { bound: Some(bound), .. } => {
                format!("{shown}, {AT_LEAST}{} with 95 % confidence", figure(bound))
            }
            ShownQuantile::Unsupported { bound: None, .. } => format!("{shown}, without a lower bound"),
            _ => shown,
        }
    }
}

/// Returns two rows for each label: one for figures, and one for what stands below them, omitted where that is nothing.
pub(super) fn rows_of_two(labels: impl IntoIterator<Item = String>) -> Vec<RowView> {
    let rows = |label| [RowView { label, quiet: false }, RowView { label: String::new(), quiet: true }];
    labels.into_iter().flat_map(rows).collect()
}

/// A column for a table with [`rows_of_two`].
pub(super) fn column_of_two(heading: &str, cells: impl IntoIterator<Item = Cells>) -> ColumnView {
    ColumnView { heading: heading.into(), cells: cells.into_iter().flatten().collect() }
}

/// A column of figures with nothing below them.
pub(super) fn column_above(heading: &str, figures: impl IntoIterator<Item = String>) -> ColumnView {
    column_of_two(heading, figures.into_iter().map(|figure| [figure, String::new()]))
}

/// Explains the marks of unsupported quantiles in `tables` below the first table that has any.
pub(super) fn explain_marks(tables: &mut [TableView]) {
    let Some(explanation) = legend(tables.iter().flat_map(cells_of)) else { return };
    if let Some(first) = tables.iter_mut().find(|table| legend(cells_of(table)).is_some()) {
        explain_first(first, explanation);
    }
}

/// Explains the marks of each table below it, unless the same line stands below a table before it.
pub(super) fn explain_marks_of_each(tables: &mut [TableView]) {
    let mut known = BTreeSet::new();
    for table in tables {
        let lines = legend(cells_of(table)).unwrap_or_default();
        let new: Vec<&str> = lines.lines().filter(|line| known.insert((*line).to_owned())).collect();
        explain_first(table, new.join("\n"));
    }
}

/// Puts an `explanation`, which may be empty, before the other lines of the legend.
fn explain_first(table: &mut TableView, explanation: String) {
    let others = std::mem::take(&mut table.legend);
    table.legend = [explanation, others].into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
}

fn cells_of(table: &TableView) -> impl Iterator<Item = &String> {
    table.groups.iter().flat_map(|group| &group.columns).flat_map(|column| &column.cells)
}

/// Explains the marks in `cells` in lines of at most 80 characters; `None` without marks.
pub(super) fn legend<'a>(cells: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let (mut has_bound, mut has_no_bound, mut has_upper_end) = (false, false, false);
    for cell in cells {
        has_upper_end |= cell.starts_with(AT_MOST);
        has_bound |= cell.starts_with(AT_LEAST);
        has_no_bound |= cell == NO_BOUND;
    }
    let bound = match (has_bound, has_no_bound) {
        (false, false) => None,
        (true, false) => Some("≥ lower bound (95 %)"),
        (false, true) => Some("n/a: no bound exists"),
        (true, true) => Some("≥ bound (95 %) · n/a: no bound"),
    };
    let bound = bound.map(|bound| format!("( ) too few effective observations beyond it · {bound}"));
    let upper = has_upper_end.then(|| "≤ upper end of an interval without a useful lower end".to_owned());
    bound.into_iter().chain(upper).reduce(|one, other| format!("{one}\n{other}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::width;
    use crate::report::view::GroupView;

    #[test]
    fn a_quantile_is_shown_with_what_the_data_say_of_it() {
        let unsupported = |value, bound| ShownQuantile::Unsupported { value, bound };
        for (shown, cells, words) in [
            (ShownQuantile::Absent, ["–", ""], "–"),
            (ShownQuantile::Lost, ["lost", ""], "lost"),
            (ShownQuantile::Supported(4.18), ["4.18", ""], "4.18"),
            (unsupported(Some(4.18), Some(3.1)), ["(4.18)", "≥ 3.10"], "(4.18), ≥ 3.10 with 95 % confidence"),
            (unsupported(Some(4.18), Some(4.2)), ["(4.18)", "≥ 4.20"], "(4.18), ≥ 4.20 with 95 % confidence"),
            (unsupported(Some(4.18), None), ["(4.18)", "n/a"], "(4.18), without a lower bound"),
            (unsupported(None, Some(3.1)), ["(lost)", "≥ 3.10"], "(lost), ≥ 3.10 with 95 % confidence"),
            (unsupported(None, None), ["(lost)", "n/a"], "(lost), without a lower bound"),
        ] {
            let figure = |value: f64| format!("{value:.2}");
            assert_eq!((shown.cells(figure), shown.words(figure).as_str()), (cells.map(str::to_owned), words));
        }
    }

    #[test]
    fn a_figure_over_runs_among_the_lost_has_no_bound() {
        for (figure, shown) in [
            (ColumnFigure::Unsupported { value: None, bound: Some(3.1) }, ShownQuantile::Lost),
            (ColumnFigure::Unsupported { value: None, bound: None }, ShownQuantile::Lost),
            (ColumnFigure::Lost, ShownQuantile::Lost),
            (
                ColumnFigure::Unsupported { value: Some(4.18), bound: None },
                ShownQuantile::Unsupported { value: Some(4.18), bound: None },
            ),
        ] {
            assert_eq!(ShownQuantile::of_column(figure), shown);
        }
    }

    fn table(cells: [&str; 2]) -> TableView {
        let columns = vec![column_of_two("p99", [cells.map(str::to_owned)])];
        TableView { groups: vec![GroupView { heading: String::new(), columns }], ..TableView::default() }
    }

    #[test]
    fn marks_of_each_table_are_explained_below_the_first_that_has_them() {
        let cells = [["(4.18)", "≥ 3.10"], ["4.18", "≤ 9.01"], ["(4.18)", "n/a"], ["(4.18)", "n/a"], ["4.18", ""]];
        let mut tables = cells.map(table);
        tables[1].legend = "other".into();
        explain_marks_of_each(&mut tables);
        let begin = "( ) too few effective observations beyond it · ";
        let expected = [
            format!("{begin}≥ lower bound (95 %)"),
            "≤ upper end of an interval without a useful lower end\nother".into(),
            format!("{begin}n/a: no bound exists"),
            String::new(),
            String::new(),
        ];
        assert_eq!(tables.map(|table| table.legend), expected);
    }

    #[test]
    fn marks_are_explained_in_one_line_below_the_first_table_that_has_them() {
        let (supported, bound, no_bound) = (["4.18", "±0.2"], ["(4.18)", "≥ 3.10"], ["(4.18)", "n/a"]);
        for (tables, expected) in [
            (vec![supported, ["lost", ""], ["–", ""]], vec!["", "", ""]),
            (vec![supported, bound, bound], vec!["", " · ≥ lower bound (95 %)", ""]),
            (vec![no_bound, supported], vec![" · n/a: no bound exists", ""]),
            (vec![no_bound, bound], vec![" · ≥ bound (95 %) · n/a: no bound", ""]),
            (vec![["4.18", "≤ 9.01"]], vec!["≤ upper end of an interval without a useful lower end"]),
        ] {
            let mut tables: Vec<TableView> = tables.into_iter().map(table).collect();
            explain_marks(&mut tables);
            for (table, expected) in tables.iter().zip(expected) {
                assert!(
                    table.legend.ends_with(expected) && table.legend.is_empty() == expected.is_empty(),
                    "{table:?}"
                );
                assert!(width(&table.legend) <= 80, "{table:?}");
            }
        }
    }
}
