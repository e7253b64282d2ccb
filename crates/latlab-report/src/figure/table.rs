//! The data of figures as tables: a short one behind each plot, and CSV with every mark.

use super::axis::{Axis, AxisUnit};
use super::{Figure, Mark, Series, Shape, spread};
use crate::units::human::{ABSENT, csv_field, general};

/// Most rows of the table behind a plot.
pub(crate) const TABLE_ROWS: usize = 200;
/// Significant digits of CSV: all that two `f64` of different sources agree on.
const CSV_DIGITS: usize = 15;

/// The data of a figure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureTable {
    pub columns: Vec<String>,
    /// Rows, each with one cell for each column; at most `TABLE_ROWS`.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that are left out, evenly over the data; CSV has them.
    pub omitted: usize,
}

/// What a finite value of a mark is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    is_y: bool,
    /// Its role where the mark has several on the axis, else empty.
    role: &'static str,
}

impl Column {
    fn axis(self, figure: &Figure) -> &Axis {
        if self.is_y { &figure.y } else { &figure.x }
    }

    /// The name with the unit: `round_trip_delay_from_ns`.
    fn csv_name(self, figure: &Figure) -> String {
        let Axis { label, unit, .. } = self.axis(figure);
        let unit = match unit {
            AxisUnit::Tail => return snake_case(&format!("quantile {}", self.role)),
            AxisUnit::Time => "ns",
            AxisUnit::PacketRate => "packets per second",
            AxisUnit::ByteRate => "bytes per second",
            AxisUnit::BitRate => "bits per second",
            AxisUnit::Frequency => "hz",
            AxisUnit::Bytes => "bytes",
            // The label names the unit already: `share of probes`.
            AxisUnit::Share if label.contains("share") => "",
            AxisUnit::Share => "share",
            AxisUnit::Change => "relative",
            AxisUnit::Count | AxisUnit::Plain => "",
        };
        snake_case(&format!("{label} {} {unit}", self.role))
    }

    /// A value without rounding: names of places, and quantiles instead of their distance from 1.
    fn csv_value(self, figure: &Figure, value: f64) -> String {
        let axis = self.axis(figure);
        match axis.unit {
            _ if axis.names().is_some() => axis.words(value),
            AxisUnit::Tail => general(1.0 - value, CSV_DIGITS),
            _ => general(value, CSV_DIGITS),
        }
    }
}

fn snake_case(text: &str) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// A mark with the name of its series.
struct Row<'a> {
    panel: &'a str,
    series: &'a str,
    values: Vec<(Column, f64)>,
    text: &'a str,
}

/// The finite values of a mark: an infinite one has no number.
fn values(shape: Shape, mark: &Mark) -> Vec<(Column, f64)> {
    let of_axis = |values: &[f64], is_y: bool| -> Vec<(Column, f64)> {
        let role = |place: usize| if values.len() == 1 { "" } else { shape.roles()[place] };
        let named = values.iter().enumerate().map(|(place, value)| (Column { is_y, role: role(place) }, *value));
        named.filter(|(_, value)| value.is_finite()).collect()
    };
    [of_axis(&mark.x, false), of_axis(&mark.y, true)].concat()
}

struct FigureData<'a> {
    rows: Vec<Row<'a>>,
    columns: Vec<Column>,
    has_panels: bool,
    has_series: bool,
    has_texts: bool,
}

impl<'a> FigureData<'a> {
    /// One row for each mark. A series that the legend leaves out has the name of the series whose colour it has, such as the
    /// band of a line. Points of the colour of a line repeat values of it, and are left out, like a band without an end.
    fn of(figure: &'a Figure) -> FigureData<'a> {
        let of_colour =
            |it: &Series, is: fn(&Series) -> bool| figure.series.iter().find(|other| it.belongs_to(other) && is(other));
        let mut rows = Vec::new();
        for series in &figure.series {
            let is_unnamed = series.name.is_empty();
            if is_unnamed && series.shape == Shape::Points && of_colour(series, |it| it.shape.is_line()).is_some() {
                continue;
            }
            let owner = of_colour(series, |it| !it.name.is_empty()).filter(|_| is_unnamed).unwrap_or(series);
            let panel = figure.panels.get(series.panel).map_or("", String::as_str);
            let row = |mark: &'a Mark| Row {
                panel,
                series: &owner.name,
                values: values(series.shape, mark),
                text: &mark.text,
            };
            rows.extend(series.marks.iter().map(row).filter(|row| !series.shape.is_band() || row.values.len() > 1));
        }
        let mut columns: Vec<Column> = Vec::new();
        for (column, _) in rows.iter().flat_map(|row| &row.values) {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns.sort_by_key(|column| column.is_y);
        let has_panels = rows.iter().any(|row| !row.panel.is_empty());
        let has_series = rows.iter().any(|row| !row.series.is_empty());
        let has_texts = rows.iter().any(|row| !row.text.is_empty());
        FigureData { rows, columns, has_panels, has_series, has_texts }
    }

    /// A line of the table: the cells of the panel, of the series and of the texts are there if any mark has one.
    fn line(&self, panel: &str, series: &str, values: impl Iterator<Item = String>, text: &str) -> Vec<String> {
        let names = [self.has_panels.then_some(panel), self.has_series.then_some(series)];
        names
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .chain(values)
            .chain(self.has_texts.then(|| text.to_owned()))
            .collect()
    }

    fn headings(&self, name: impl Fn(&Column) -> String) -> Vec<String> {
        self.line("panel", "series", self.columns.iter().map(name), "value")
    }

    fn cells(&self, row: &Row, absent: &str, cell: impl Fn(&Column, f64) -> String) -> Vec<String> {
        let value = |column: &Column| {
            let found = row.values.iter().find(|(of, _)| of == column);
            found.map_or_else(|| absent.into(), |(_, value)| cell(column, *value))
        };
        self.line(row.panel, row.series, self.columns.iter().map(value), row.text)
    }
}

/// The data of `figure` in words.
pub fn table(figure: &Figure) -> FigureTable {
    let data = FigureData::of(figure);
    let rows: Vec<&Row> = spread(&data.rows, TABLE_ROWS).collect();
    let words = |column: &Column, value: f64| column.axis(figure).words(value);
    FigureTable {
        columns: data.headings(|column| format!("{} {}", column.axis(figure).label, column.role).trim().into()),
        rows: rows.iter().map(|row| data.cells(row, ABSENT, words)).collect(),
        omitted: data.rows.len() - rows.len(),
    }
}

/// The data of `figure` as CSV with a header line and a final newline: `series,round_trip_delay_ns,quantile`.
pub fn csv(figure: &Figure) -> String {
    let data = FigureData::of(figure);
    let rows = data.rows.iter().map(|row| data.cells(row, "", |column, value| column.csv_value(figure, value)));
    let lines = std::iter::once(data.headings(|column| column.csv_name(figure))).chain(rows);
    lines.map(|cells| cells.iter().map(|cell| csv_field(cell)).collect::<Vec<_>>().join(",") + "\n").collect()
}
