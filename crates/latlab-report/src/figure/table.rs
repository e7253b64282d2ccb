//! The data of figures as tables: a short one behind each plot, and CSV with every mark.

use super::marks::{Datum, MarkValue, axis, data, drawable};
use super::scale::words;
use super::{AxisUnit, Figure, Marks, Scale, Series};
use crate::report::comparison::quoted;
use crate::units::human::{ABSENT, general};

/// Most rows of the table behind a plot.
pub const TABLE_ROWS: usize = 200;
/// Significant digits of CSV: all that two `f64` of different sources agree on.
const CSV_DIGITS: usize = 15;

/// The data of a figure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureTable {
    pub columns: Vec<String>,
    /// Rows, each with one cell for each column; at most [`TABLE_ROWS`].
    pub rows: Vec<Vec<String>>,
    /// Number of rows that are left out, evenly over the data; CSV has them.
    pub omitted: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Series,
    /// A value of an axis; that of the field does not count.
    Value(MarkValue),
    /// Value in words, of cells and of what is infinite.
    Text,
}

/// A mark with the name of its series.
struct Row<'a> {
    series: &'a str,
    datum: Datum,
}

impl Row<'_> {
    /// The value of a column that has values; `None` if the mark has none there.
    fn value(&self, column: MarkValue) -> Option<f64> {
        self.datum.fields.iter().find(|field| is_same(field, &column))?.value
    }
}

fn is_same(a: &MarkValue, b: &MarkValue) -> bool {
    a.dimension == b.dimension && a.role == b.role
}

/// The known and finite values of a mark.
fn known(datum: &Datum) -> impl Iterator<Item = &MarkValue> {
    datum.fields.iter().filter(|field| field.value.is_some())
}

/// The marks of all series. One that the legend leaves out has the name of the series whose colour it has, such as the band
/// of a line. Its marks that only repeat values of the line of its colour, which may lack a name too, are left out.
fn rows(figure: &Figure) -> Vec<Row<'_>> {
    let is_line = |series: &Series| matches!(series.marks, Marks::Steps(_) | Marks::Line(_));
    let line_of = |colour: usize| figure.series.iter().find(|series| series.colour == colour && is_line(series));
    let named = |colour: usize| figure.series.iter().find(|series| series.colour == colour && !series.name.is_empty());
    let of_series = figure.series.iter().flat_map(|series| {
        let owner = if series.name.is_empty() { named(series.colour) } else { None };
        let name = owner.map_or(series.name.as_str(), |owner| &owner.name);
        let line = if series.name.is_empty() && !is_line(series) { line_of(series.colour) } else { None };
        let line = line.map(|line| data(figure, line)).unwrap_or_default();
        let repeats = move |datum: &Datum| datum.text.is_none() && line.iter().any(|it| known(it).eq(known(datum)));
        let own = data(figure, series).into_iter().filter(move |datum| !repeats(datum));
        own.map(move |datum| Row { series: name, datum })
    });
    of_series.collect()
}

/// The columns of `rows`: series, values in the order of the axes, texts; only those that a row has.
fn columns(rows: &[Row]) -> Vec<Column> {
    let mut fields: Vec<MarkValue> = Vec::new();
    for field in rows.iter().flat_map(|row| &row.datum.fields).filter(|field| field.value.is_some()) {
        if !fields.iter().any(|known| is_same(known, field)) {
            fields.push(*field);
        }
    }
    fields.sort_by_key(|field| field.dimension);
    let series = rows.iter().any(|row| !row.series.is_empty()).then_some(Column::Series);
    let text = rows.iter().any(|row| row.datum.text.is_some()).then_some(Column::Text);
    series.into_iter().chain(fields.into_iter().map(Column::Value)).chain(text).collect()
}

/// The data of `figure` in words.
pub fn table(figure: &Figure) -> FigureTable {
    let figure = drawable(figure);
    let rows = rows(&figure);
    let columns = columns(&rows);
    let heading = |column: &Column| match column {
        Column::Series => "series".into(),
        Column::Value(field) => format!("{} {}", axis(&figure, field.dimension).label, field.role).trim().into(),
        Column::Text => "value".into(),
    };
    let cell = |row: &Row, column: &Column| match column {
        Column::Series => row.series.into(),
        Column::Value(field) => {
            row.value(*field).map_or_else(|| ABSENT.into(), |value| words(axis(&figure, field.dimension), value))
        }
        Column::Text => row.datum.text.clone().unwrap_or_default(),
    };
    let shown = rows.len().min(TABLE_ROWS);
    // Evenly over all rows, with the first and the last one.
    let index = |place: usize| if shown < 2 { 0 } else { place * (rows.len() - 1) / (shown - 1) };
    let of_row = |row: &Row| columns.iter().map(|column| cell(row, column)).collect();
    FigureTable {
        columns: columns.iter().map(heading).collect(),
        rows: (0..shown).map(|place| of_row(&rows[index(place)])).collect(),
        omitted: rows.len() - shown,
    }
}

/// The data of `figure` as CSV with a header line and a final newline: `series,round_trip_delay_ns,quantile`.
pub fn csv(figure: &Figure) -> String {
    let figure = drawable(figure);
    let rows = rows(&figure);
    let columns = columns(&rows);
    let heading = |column: &Column| match column {
        Column::Series => "series".into(),
        Column::Value(field) => csv_name(&figure, field),
        Column::Text => "value".into(),
    };
    let cell = |row: &Row, column: &Column| match column {
        Column::Series => quoted(row.series),
        Column::Value(field) => row.value(*field).map(|value| csv_value(&figure, field, value)).unwrap_or_default(),
        Column::Text => quoted(row.datum.text.as_deref().unwrap_or_default()),
    };
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let lines = rows.iter().map(|row| line(columns.iter().map(|column| cell(row, column)).collect()));
    [line(columns.iter().map(heading).collect())].into_iter().chain(lines).collect()
}

/// The name of a column with its unit: `round_trip_delay_from_ns`.
fn csv_name(figure: &Figure, field: &MarkValue) -> String {
    let axis = axis(figure, field.dimension);
    let unit = match axis.unit {
        _ if matches!(axis.scale, Scale::Categories(_)) => "",
        AxisUnit::Tail => return snake_case(&format!("quantile {}", field.role)),
        AxisUnit::Time => "ns",
        AxisUnit::PacketRate => "packets per second",
        AxisUnit::ByteRate => "bytes per second",
        AxisUnit::BitRate => "bits per second",
        AxisUnit::Frequency => "hz",
        AxisUnit::Bytes => "bytes",
        // The label names the unit already: `share of probes`.
        AxisUnit::Share if axis.label.contains("share") => "",
        AxisUnit::Share => "share",
        AxisUnit::Change => "relative",
        AxisUnit::Count | AxisUnit::Plain => "",
    };
    snake_case(&format!("{} {} {unit}", axis.label, field.role))
}

fn snake_case(text: &str) -> String {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// A value without rounding: names of places, and quantiles instead of their distance from 1.
fn csv_value(figure: &Figure, field: &MarkValue, value: f64) -> String {
    let axis = axis(figure, field.dimension);
    match axis.unit {
        _ if matches!(axis.scale, Scale::Categories(_)) => quoted(&words(axis, value)),
        AxisUnit::Tail => general(1.0 - value, CSV_DIGITS),
        _ => general(value, CSV_DIGITS),
    }
}
