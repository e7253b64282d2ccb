//! Tables of text with a column of values, as CSV: a comma, a semicolon, a tab or blanks separate the cells, and a heading is
//! optional. Lines of text in front of the table and behind it are skipped.
//!
//! The column is that which the user names, else the only one with numbers that is not an id or an instant by its name. Its
//! unit is that of its heading (`rtt [s]`, `rtt (us)`, `rtt_ms`), else that which the user states. Rows have the numbers of a
//! column of ids, else their numbers in the file.
//!
//! A column has round trips only if its whole name says so (`rtt`, `round_trip_time`), else delays. One that has averages or
//! halves by its name is refused unless the user names it.

mod heading;

use super::check::note;
use super::field::{
    Commas, LogField, Scan, commas_of, is_blank_or_comment, is_decimal_comma, is_not_finite, signed, unit_of, whole,
    words,
};
use super::log::are_rows;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use heading::{Heading, column_called, listed};

use crate::facts::{LoggedValue, RowNumbers};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::{TimeUnit, counted};

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "csv",
    title: "CSV file with a column of values",
    rows: Kind::Values,
    is_generic: true,
    options: &["--unit", "--column", "--count-column", "--lost", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Table(|options, head| open(UNKNOWN, options, head)),
};

/// What stands for a lost probe unless the user says it: the first word is the empty cell, the last one any number below 0.
const LOST: &str = ",timeout,*,nan,negative";
/// What separates cells, in the order in which it is tried: a comma may be that of a decimal number.
const DELIMITERS: [u8; 5] = [b';', b'\t', b',', BLANKS, NOTHING];
/// Runs of blanks.
const BLANKS: u8 = b' ';
/// No byte of a line: each is one cell.
pub(super) const NOTHING: u8 = b'\n';
/// The most bytes of a row with a cell of several lines.
const CELL_BYTES_MAX: usize = 1 << 16;
const NOT_CLOSED: &str = "a quote is not closed";
/// The rows that must agree before lines are taken for a table, and the most lines in front of it.
const AGREEING: usize = 20;
const IN_FRONT_MAX: usize = 100;

/// What a table is known to be.
#[derive(Clone, Copy)]
pub(super) struct TableKind {
    pub(super) tool: &'static str,
    pub(super) delimiter: Option<u8>,
    /// Name or number of the column of values.
    pub(super) column: Option<&'static str>,
    pub(super) unit: Option<TimeUnit>,
}

/// Of a table of which nothing is known.
const UNKNOWN: TableKind = TableKind { tool: "csv", delimiter: None, column: None, unit: None };

/// Whether there is a table whose cells are not only words of prose.
fn detects(head: &LogHead<'_>) -> bool {
    if head.is_json() {
        return false;
    }
    let Some(layout) = Layout::of(head, None) else {
        // A heading without rows is a fault later.
        let mut lines = head.lines().filter(|line| !line.starts_with(b"#"));
        let only = lines.next().filter(|_| head.is_whole && lines.next().is_none());
        return only.is_some_and(|line| DELIMITERS.iter().any(|by| has_unit(line, *by)) && has_names(line));
    };
    match (layout.delimiter, layout.heading) {
        (NOTHING, heading) => heading.is_some_and(|(_, line)| has_unit(line, NOTHING)),
        (BLANKS, None) => layout.rows.iter().all(|row| cells_of(row, BLANKS).0.iter().all(is_numeric)),
        _ => true,
    }
}

/// Whether there are numbers below a line that may be their heading, and has no unit.
pub(super) fn has_numbers_below_a_line(head: &LogHead<'_>) -> bool {
    Layout::of(head, Some(NOTHING)).is_some_and(|layout| layout.heading.is_some())
}

/// Whether `line` is a heading with a unit.
fn has_unit(line: &[u8], delimiter: u8) -> bool {
    let cells = cells_of(line, delimiter).0;
    is_heading(&cells) && cells.iter().any(|cell| Heading::of(cell).unit.is_some())
}

/// Whether the headings of `line` are names: a blank is in none, except in front of a unit in brackets. Prose has blanks.
fn has_names(line: &[u8]) -> bool {
    let is_name = |cell: &LogField<'_>| {
        cell.text.last().is_some_and(|end| b"])".contains(end)) || !cell.text.iter().any(u8::is_ascii_whitespace)
    };
    let delimiter = DELIMITERS.into_iter().filter(|by| *by != BLANKS).find(|by| line.contains(by)).unwrap_or(NOTHING);
    cells_of(line, delimiter).0.iter().all(is_name)
}

/// Where a table is, and how it is divided.
struct Layout<'a> {
    delimiter: u8,
    /// Cells of each row.
    columns: usize,
    /// Number and text of the line with the headings.
    heading: Option<(u64, &'a [u8])>,
    /// Number of the line with the first row.
    start: u64,
    /// The first rows.
    rows: Vec<&'a [u8]>,
}

impl<'a> Layout<'a> {
    /// The table at the beginning of a file, with cells between `delimiter` if that is known.
    fn of(head: &LogHead<'a>, delimiter: Option<u8>) -> Option<Layout<'a>> {
        let lines = head.numbered_lines().filter(|(_, line)| !line.starts_with(b"#"));
        let lines: Vec<_> = lines.take(IN_FRONT_MAX + AGREEING).collect();
        DELIMITERS
            .into_iter()
            .filter(|by| delimiter.is_none_or(|known| known == *by))
            .find_map(|by| Layout::by(by, &lines))
    }

    fn by(delimiter: u8, lines: &[(u64, &'a [u8])]) -> Option<Layout<'a>> {
        let columns_of = |at: usize| cells_of(lines[at].1, delimiter).0.len();
        let heads = |at: usize| is_heading(&cells_of(lines[at].1, delimiter).0);
        let is_row = |line: &[u8], columns: usize| {
            let cells = cells_of(line, delimiter).0;
            cells.len() == columns && cells.iter().any(is_numeric)
        };
        let begins = |at: &usize| {
            let columns = columns_of(*at);
            let rows = lines[*at..].iter().take(AGREEING).map(|(_, line)| *line);
            let is_one = (columns > 1) == (delimiter != NOTHING) && is_row(lines[*at].1, columns);
            is_one && are_rows(rows, |line| is_row(line, columns))
        };
        let mut first = (0..lines.len().min(IN_FRONT_MAX)).find(begins)?;
        let columns = columns_of(first);
        // Rows without a number may be in front of it.
        while first > 0 && columns_of(first - 1) == columns && !heads(first - 1) {
            first -= 1;
        }
        let rows: Vec<&[u8]> = lines[first..].iter().take(AGREEING).map(|(_, line)| *line).collect();
        let above = first.checked_sub(1).filter(|at| heads(*at));
        let has_decimals =
            |row: &&[u8]| words(row).all(|word| !word.text.contains(&b',') || is_decimal_comma(word.text));
        let is_lone = above.is_some_and(|at| columns_of(at) == 1);
        let is_decimal = delimiter == b',' && is_lone && rows.iter().all(has_decimals);
        if is_decimal || lines[..first].iter().any(|(_, line)| words(line).all(|word| is_numeric(&word))) {
            return None;
        }
        // The rows that have another number of cells are faults later.
        let names =
            |at: &usize| columns_of(*at) == columns || (delimiter != BLANKS && !is_lone && has_names(lines[*at].1));
        let above = above.filter(names);
        let (heading, columns) = (above.map(|at| lines[at]), above.map_or(columns, columns_of));
        Some(Layout { delimiter, columns, heading, start: lines[first].0, rows })
    }

    /// The table that begins with the first line, which may be a heading.
    fn from_first_line(head: &LogHead<'a>, delimiter: Option<u8>) -> Option<Layout<'a>> {
        let first = head.numbered_lines().find(|(_, line)| !line.starts_with(b"#"))?;
        let divides = |by: &u8| cells_of(first.1, *by).0.len() > 1;
        let delimiter = delimiter.or_else(|| DELIMITERS.into_iter().find(divides)).unwrap_or(NOTHING);
        let cells = cells_of(first.1, delimiter).0;
        let heading = is_heading(&cells).then_some(first);
        let start = first.0 + u64::from(heading.is_some());
        Some(Layout { delimiter, columns: cells.len(), heading, start, rows: Vec::new() })
    }

    /// The index of the only column that can have values. A column `count` counts rows if it is the first one; elsewhere it may
    /// say how often a value occurred. Nor is it clear which column it is where instants count up beside whole numbers.
    fn only_column(&self, headings: &[Heading]) -> Result<usize, LogFault> {
        let rows: Vec<_> = self.rows.iter().map(|row| cells_of(row, self.delimiter).0).collect();
        let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
        let counts_up = |at: usize| (0..).zip(column(at)).all(|(due, cell)| cell.count().is_ok_and(|own| own == due));
        let are_whole = |at: usize| column(at).all(|cell| cell.count().is_ok());
        let is_histogram = self.columns == 2 && rows.len() > 2 && counts_up(0) && are_whole(1);
        let is_candidate = |at: &usize| {
            let has_numbers = rows.is_empty() || column(*at).any(is_numeric);
            let is_other = |heading: &Heading| {
                let is_instant =
                    heading.is_instant() && !(is_histogram && headings.iter().all(|own| own.unit.is_none()));
                heading.counts_rows() || is_instant || (*at == 0 && heading.name == "count")
            };
            has_numbers && !headings.get(*at).is_some_and(is_other)
        };
        let mut candidates = (0..self.columns).filter(|at| self.columns == 1 || is_candidate(at));
        match (candidates.next(), candidates.next()) {
            (Some(column), None) => Ok(column),
            _ => {
                let what =
                    format!("which column has the values is not clear; columns: {}", listed(headings, self.columns));
                Err(LogFault::whole(what).hint(
                    "choose one by its heading or number: `--column`; a histogram has its counts in another one: \
                     `--count-column`",
                ))
            }
        }
    }
}

/// The cells of `line`, which may be in quotes, and whether the quotes of the last one are open. Two quotes in a cell stand for
/// one, and are kept.
fn cells_of(line: &[u8], delimiter: u8) -> (Vec<LogField<'_>>, bool) {
    if delimiter == BLANKS && !line.contains(&b'"') {
        return (words(line).collect(), false);
    }
    let (mut is_open, mut last, mut at) = (false, delimiter, 0);
    let ends = |byte: &u8| *byte == delimiter || (delimiter == BLANKS && byte.is_ascii_whitespace());
    let parts = line.split(|byte| {
        is_open ^= *byte == b'"' && (is_open || last == delimiter || last == b'"');
        last = match byte {
            byte if ends(byte) => delimiter,
            byte if byte.is_ascii_whitespace() => last,
            byte => *byte,
        };
        ends(byte) && !is_open
    });
    let cells = parts.map(|part| {
        let cell = whole(line).part(at, at + part.len());
        at += part.len() + 1;
        match cell.text {
            [b'"', inner @ .., b'"'] => LogField { text: inner, column: cell.column + 1 }.part(0, inner.len()),
            _ => cell,
        }
    });
    let cells = cells.filter(|cell| delimiter != BLANKS || !cell.text.is_empty()).collect();
    (cells, is_open)
}

fn is_number(cell: &LogField<'_>) -> bool {
    cell.time(TimeUnit::Nanos).is_ok()
}

/// Whether `cell` is a number in any notation, or stands for one.
fn is_numeric(cell: &LogField<'_>) -> bool {
    is_number(cell) || commas_of(cell.text).is_some() || is_not_finite(cell.text)
}

/// Whether `cells` are headings: one has a letter, and none is a number or stands for one.
fn is_heading(cells: &[LogField<'_>]) -> bool {
    let has_letter = |cell: &LogField<'_>| cell.text.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    // The only cell of a row may be damaged too.
    let is_value = |cell: &LogField<'_>| is_numeric(cell) || (cells.len() == 1 && begins_as_number(cell));
    let stands = |cell: &LogField<'_>| !cell.text.is_empty() && is_lost(LOST, cell.text);
    let is_known = |cell: &LogField<'_>| {
        let heading = Heading::of(cell);
        heading.unit.is_some() || heading.counts_rows() || heading.is_instant()
    };
    cells.iter().any(has_letter)
        && !cells.iter().any(is_value)
        && (!cells.iter().any(stands) || cells.iter().any(is_known))
}

fn begins_as_number(cell: &LogField<'_>) -> bool {
    signed(cell.text).1.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Whether `text` is one of the `words` that stand for a lost probe, in any case; `nan` may have a sign.
fn is_lost(words: &str, text: &[u8]) -> bool {
    let text = if is_not_finite(text) { signed(text).1 } else { text };
    words.split(',').any(|word| word.trim().as_bytes().eq_ignore_ascii_case(text))
}

/// Reads the rows of a table.
struct Table {
    tool: &'static str,
    delimiter: u8,
    columns: usize,
    /// Indices of the columns.
    value: usize,
    count: Option<usize>,
    id: Option<usize>,
    unit: TimeUnit,
    metric: Metric,
    /// What stands for a lost probe.
    lost: String,
    states_losses: bool,
    heading: Option<(u64, Vec<u8>)>,
    /// Number of the line with the first row, and of the last line so far up to there.
    start: u64,
    line: u64,
    /// The lines of a cell whose quotes are open.
    open: Vec<u8>,
    /// The first line behind rows that looks like none.
    text_below: Option<LogFault>,
    numbers: RowNumbers,
    has_finer_digits: bool,
    has_points: bool,
    /// Values with decimal commas, and negative ones that were lost probes.
    decimal_commas: u64,
    negatives: u64,
}

/// Opens a table of `kind`.
///
/// # Errors
/// It is not clear where its values are, or in which unit.
pub(super) fn open(kind: TableKind, options: &LogOptions, head: &LogHead<'_>) -> Result<Box<dyn LineParser>, LogFault> {
    let has_line = head.is_whole || head.bytes.contains(&b'\n');
    let layout = Layout::of(head, kind.delimiter).filter(|_| kind.column.is_none());
    let layout = layout.or_else(|| Layout::from_first_line(head, kind.delimiter));
    let Some(layout) = layout.filter(|_| has_line) else {
        let what = format!("its first {} bytes have no row: {}", head.bytes.len(), kind.tool);
        return Err(LogFault::whole(what).hint("each row needs a line of its own, and a column with numbers"));
    };
    let cells = layout.heading.map_or(Vec::new(), |(_, line)| cells_of(line, layout.delimiter).0);
    let headings: Vec<Heading> = cells.iter().map(Heading::of).collect();
    let wanted = options.column.as_deref().or(kind.column);
    let column_of = |wanted: &str| column_called(&headings, layout.columns, wanted);
    let count = options.count_column.as_deref().map(column_of).transpose()?;
    let value = match (wanted, count) {
        (Some(wanted), _) => column_of(wanted)?,
        (None, Some(count)) if layout.columns == 2 => 1 - count,
        _ if layout.delimiter == b',' && headings.is_empty() && layout.rows.iter().all(|row| is_decimal_comma(row)) => {
            return Err(LogFault::whole("the commas may be decimal commas, or separate columns").hint(
                "`--from numbers` reads decimal commas; of two columns choose one: `--column 1` or `--column 2`",
            ));
        }
        _ => layout.only_column(&headings)?,
    };
    let heading = headings.get(value);
    if let (Some(heading), None) = (heading, wanted) {
        heading.expect_samples().map_err(|fault| LogFault { line: layout.heading.map(|(line, _)| line), ..fault })?;
    }
    let stated = kind.unit.or_else(|| heading.and_then(|heading| heading.unit));
    let id = (0..headings.len()).find(|at| *at != value && Some(*at) != count && headings[*at].counts_rows());
    Ok(Box::new(Table {
        tool: kind.tool,
        delimiter: layout.delimiter,
        columns: layout.columns,
        value,
        count,
        id,
        unit: unit_of(stated, options.unit)?,
        metric: options.metric.unwrap_or(heading.map_or(Metric::Delay, Heading::metric)),
        lost: options.lost.clone().unwrap_or_else(|| LOST.to_owned()),
        states_losses: options.lost.is_some(),
        heading: layout.heading.map(|(line, text)| (line, text.to_owned())),
        start: layout.start,
        line: 0,
        open: Vec::new(),
        text_below: None,
        numbers: RowNumbers::default(),
        has_finer_digits: false,
        has_points: false,
        decimal_commas: 0,
        negatives: 0,
    }))
}

/// The fault of a row that does not have so many `columns`.
#[cold]
fn miscounted(line: &[u8], delimiter: u8, columns: usize, value: usize) -> LogFault {
    let cells = cells_of(line, delimiter).0;
    let column = cells.get(columns).map_or(line.trim_ascii_end().len() + 1, |cell| cell.column);
    let fault = LogFault::at(column, format!("{} instead of {columns}", counted(cells.len(), "cell")));
    let joined = cells.get(value).zip(cells.get(value + 1)).filter(|_| delimiter == b',' && cells.len() > columns);
    match joined.map(|(one, other)| &line[one.column - 1..other.column - 1 + other.text.len()]) {
        Some(number) if commas_of(number).is_some() => {
            fault.hint("decimals need a point, not a comma, and thousands no separator").of_all_rows()
        }
        _ => fault,
    }
}

impl Table {
    /// The value of `cell` in ns; `None` if it stands for a lost probe.
    fn value(&mut self, cell: &LogField<'_>) -> Result<Option<i64>, LogFault> {
        if is_lost(&self.lost, cell.text) {
            return Ok(None);
        }
        let is_decimal = match commas_of(cell.text) {
            Some(Commas::Either) => self.decimal_commas > 0 || (self.delimiter == b';' && !self.has_points),
            commas => commas == Some(Commas::Decimal) && !self.has_points,
        };
        self.decimal_commas += u64::from(is_decimal);
        let text =
            if is_decimal { cell.text.split(|byte| *byte == b',').collect::<Vec<_>>().join(&b'.') } else { Vec::new() };
        let cell = if is_decimal { &LogField { text: &text, ..*cell } } else { cell };
        let has_point = !is_decimal && cell.text.contains(&b'.');
        if has_point && self.decimal_commas > 0 {
            let what = format!("`{}` has a point, and values in front of it have decimal commas", cell.shown());
            return Err(LogFault::at(cell.column, what).hint("write all of them with a point").of_all_rows());
        }
        let (value, is_rounded) = cell.rounded_time(self.unit).map_err(|fault| self.no_value(cell, fault))?;
        self.has_points |= has_point;
        self.has_finer_digits |= is_rounded;
        let is_negative = value < 0 && is_lost(&self.lost, b"negative");
        self.negatives += u64::from(is_negative);
        Ok(Some(value).filter(|_| !is_negative))
    }

    #[cold]
    fn no_value(&self, cell: &LogField<'_>, fault: LogFault) -> LogFault {
        match (cell.text, commas_of(cell.text)) {
            ([], _) => LogFault::at(cell.column, "a cell without a value"),
            (_, Some(Commas::Either)) => {
                let what = format!("`{}` has a decimal comma or a separator of thousands", cell.shown());
                let fault = LogFault { what, ..fault }.of_all_rows();
                fault.hint("write decimals with a point, and thousands without a separator")
            }
            (_, Some(_)) => fault.of_all_rows(),
            (text, _) if text.iter().any(u8::is_ascii_digit) => fault,
            (text, _) => {
                let fault = fault.hint(format!("if it stands for a lost probe: `--lost '{}'`", cell.shown()));
                if is_not_finite(text) { fault.of_all_rows() } else { fault }
            }
        }
    }

    fn row(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let (mut cells, is_open) = cells_of(line, self.delimiter);
        if is_open {
            self.open = line.to_owned();
            return Ok(LineUse::Taken);
        }
        if cells.len() == self.columns + 1 && cells.last().is_some_and(|cell| cell.text.is_empty()) {
            cells.pop();
        }
        let is_repeated = self.heading.as_ref().is_some_and(|(_, heading)| heading == line.trim_ascii());
        if is_repeated || cells.iter().all(|cell| self.columns > 1 && cell.text.is_empty()) {
            return Ok(LineUse::Other);
        }
        let looks_like_value = |cell: &LogField<'_>| begins_as_number(cell) || is_not_finite(cell.text);
        let has_number = cells.iter().any(is_number);
        let (value_ns, is_row) = match cells.get(self.value) {
            Some(value) if cells.len() == self.columns => (self.value(value), has_number || looks_like_value(value)),
            value => {
                let fault = miscounted(line, self.delimiter, self.columns, self.value);
                (Err(fault), value.map_or(has_number, looks_like_value))
            }
        };
        let value_ns = match value_ns {
            Err(fault) if !is_row => return Ok(self.text(fault)),
            value_ns => value_ns?,
        };
        let id = match self.id.map(|id| cells[id]) {
            Some(id) if !id.text.iter().any(u8::is_ascii_digit) => return Ok(self.text(id.is_not("a whole number"))),
            id => id.map(|id| id.count()).transpose()?,
        };
        let count = self.count.map_or(Ok(1), |count| cells[count].total())?;
        self.take(id, value_ns, count, rows);
        self.text_below.take().map_or(Ok(LineUse::Taken), Err)
    }

    /// Takes a line without a row; it has this `fault` if a row follows.
    fn text(&mut self, fault: LogFault) -> LineUse {
        self.text_below.get_or_insert(LogFault { line: Some(self.line), ..fault });
        LineUse::Other
    }

    #[inline]
    fn take(&mut self, id: Option<u64>, value_ns: Option<i64>, count: u64, rows: &mut LogRows<'_>) {
        self.states_losses |= value_ns.is_none();
        if count > 0 {
            rows.value(LoggedValue { seq: Some(self.numbers.next(id)), value_ns, count });
        }
    }

    /// The value and the id of a row of plain cells.
    #[inline]
    fn plain_row(&self, scan: &mut Scan<'_>) -> Option<(i64, Option<u64>)> {
        let (mut value, mut id) = (0, None);
        for at in 0..self.columns {
            scan.blanks(self.delimiter);
            if at == self.value {
                value = scan.time(self.unit)?;
            } else if Some(at) == self.id {
                id = Some(scan.count()?);
            } else {
                scan.cell(self.delimiter)?;
            }
            let is_parted = scan.blanks(self.delimiter) && self.delimiter == BLANKS;
            if at + 1 < self.columns && !is_parted && !scan.takes(self.delimiter) {
                return None;
            }
        }
        scan.end().map(|()| (value, id))
    }
}

impl LineParser for Table {
    fn plain_rows(&mut self, text: &[u8], rows: &mut LogRows<'_>) -> (usize, u64) {
        let mut scan = Scan { text, at: 0, has_point: self.has_points };
        let (mut end, mut taken) = (0, 0);
        let is_plain = self.line + 1 >= self.start && self.decimal_commas == 0 && self.count.is_none();
        if is_plain && self.open.is_empty() && self.text_below.is_none() {
            rows.are_of(self.metric);
            while let Some((value, id)) = self.plain_row(&mut scan) {
                self.take(id, Some(value), 1, rows);
                (end, taken) = (scan.at, taken + 1);
            }
        }
        self.has_points = scan.has_point;
        self.line += taken;
        (end, taken)
    }

    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        self.line += 1;
        if self.line < self.start {
            let is_known = is_blank_or_comment(line) || self.heading.as_ref().is_some_and(|(at, _)| *at == self.line);
            return Ok(if is_known { LineUse::Taken } else { LineUse::Other });
        }
        rows.are_of(self.metric);
        if self.open.is_empty() {
            return if is_blank_or_comment(line) { Ok(LineUse::Taken) } else { self.row(line, rows) };
        }
        self.open.push(b' ');
        self.open.extend(line);
        match memchr::memchr(b'"', line) {
            _ if self.open.len() > CELL_BYTES_MAX => Err(LogFault::whole(NOT_CLOSED)),
            None => Ok(LineUse::Taken),
            Some(_) => {
                let whole = std::mem::take(&mut self.open);
                self.row(&whole, rows)
            }
        }
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if !self.open.is_empty() {
            return Err(LogFault::whole(NOT_CLOSED));
        }
        let numbers = self.id.map_or(RowNumbers::default(), |_| self.numbers);
        let kept = "stood for a lost probe; `--lost WORDS` without `negative` keeps it";
        let notes =
            [note(self.decimal_commas, "value", "had a decimal comma"), note(self.negatives, "negative number", kept)];
        Ok(LogFacts {
            metric: Some(self.metric),
            // Rows may be missing where ids are.
            states_losses: (self.states_losses && numbers.missing + numbers.irregular == 0).then_some(true),
            irregular_ids: numbers.irregular,
            missing_ids: numbers.missing,
            value_unit: Some(self.unit),
            finer_digits: Some(self.has_finer_digits),
            notes: notes.into_iter().flatten().collect(),
            ..LogFacts::of(self.tool)
        })
    }
}

#[cfg(test)]
mod tests;
