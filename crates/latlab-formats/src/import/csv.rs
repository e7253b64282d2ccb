//! CSV files with a column of values. The delimiter is a comma, a semicolon or a tab; a header is optional.
//!
//! The column is that which the user names, else the only one that is not an id or an instant by its name. Its unit is that of
//! its heading (`rtt [s]`, `rtt (us)`, `rtt_ms`), else that which the user states. Rows have the numbers of a column of ids,
//! else their numbers in the file.
//!
//! A column has round trips only if its whole name says so (`rtt`, `round_trip_time`), else delays. One that has averages or
//! halves by its name is refused unless the user names it.

use super::field::{LogField, cells, is_blank_or_comment, is_decimal_comma, is_not_finite, signed, unit_of};
use super::log::are_rows;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{LoggedValue, RowNumbers};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::{TimeUnit, counted};

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "csv",
    title: "CSV file with a column of values",
    rows: Kind::Values,
    is_generic: true,
    options: &["--unit", "--column", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(open),
};

/// Headings of numbers that count the rows.
const IDS: [&str; 8] = ["id", "seq", "seqno", "icmp_seq", "packet", "n", "index", "cycle"];
const INSTANTS: [&str; 5] = ["timestamp", "time", "date", "datetime", "ts"];
/// Headings of round trips, in lower case, with blanks between words and without unit.
const ROUND_TRIPS: [&str; 10] = [
    "rtt",
    "rtts",
    "round trip",
    "roundtrip",
    "round trip time",
    "roundtrip time",
    "round trip delay",
    "roundtrip delay",
    "round trip latency",
    "roundtrip latency",
];
/// Words of headings of figures that are not samples, and what these figures are.
const SUMMARIES: [(&str, &[&str]); 6] = [
    ("halves", &["half", "halves", "halved"]),
    ("averages", &["avg", "average", "averages", "mean", "means"]),
    ("minima", &["min", "minimum", "minima"]),
    ("maxima", &["max", "maximum", "maxima"]),
    ("quantiles", &["median", "medians", "percentile", "percentiles", "quantile", "quantiles", "pctl"]),
    ("deviations", &["std", "stddev", "stdev", "stdevs", "mdev", "sd", "sigma", "deviation", "variance", "var"]),
];
/// The most columns that a message names.
const LISTED: usize = 20;
/// The rows that must agree with the first line before a file is taken for CSV.
const AGREEING: usize = 20;

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    let metric = options.metric.unwrap_or(Metric::Delay);
    Ok(Box::new(CsvLog { options: options.clone(), column: None, metric }))
}

/// Whether the first lines have cells with numbers, or numbers below one heading.
fn detects(head: &LogHead<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.starts_with(b"#"));
    match lines.next() {
        // A document of JSON has commas too.
        None | Some([b'{' | b'[', ..]) => false,
        Some(first) => {
            let mut rows = lines.take(AGREEING).peekable();
            let is_lone = head.is_whole && rows.peek().is_none();
            match delimiter_of(first) {
                // A file without rows is a fault later.
                _ if is_lone && has_unit(first) && has_names(first) => true,
                Some(delimiter) => are_cells(first, delimiter, rows),
                None => has_unit(first) && are_rows(rows, is_lone_number),
            }
        }
    }
}

/// Whether `head` has numbers below a line that may be their heading, and has no unit.
pub(super) fn has_numbers_below_a_line(head: &LogHead<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.starts_with(b"#"));
    let is_heading = |line| delimiter_of(line).is_none() && is_header(line, &cells_of(line, b',').unwrap_or_default());
    lines.next().is_some_and(is_heading) && are_rows(lines.take(AGREEING), is_lone_number)
}

/// Whether `line` is a header, and a heading has a unit.
fn has_unit(line: &[u8]) -> bool {
    let cells = cells_of(line, delimiter_of(line).unwrap_or(b',')).unwrap_or_default();
    is_header(line, &cells) && cells.iter().any(|cell| Heading::of(cell).unit.is_some())
}

/// Whether the headings of `line` are names: a blank is in none, except in front of a unit in brackets. Prose has blanks.
fn has_names(line: &[u8]) -> bool {
    let is_name = |cell: &LogField<'_>| {
        cell.text.last().is_some_and(|end| b"])".contains(end)) || !cell.text.iter().any(u8::is_ascii_whitespace)
    };
    cells_of(line, delimiter_of(line).unwrap_or(b',')).is_ok_and(|cells| cells.iter().all(is_name))
}

/// Whether `line` is a number, which may have a decimal comma: that is a fault with a hint later.
fn is_lone_number(line: &[u8]) -> bool {
    let cells = cells_of(line, b';').unwrap_or_default();
    cells.len() == 1
        && cells.iter().all(|cell| is_number(cell) || is_decimal_comma(cell.text) || is_not_finite(cell.text))
}

/// Whether `first` and the lines behind it have the same number of cells, with numbers in all of them or below a header. Rows
/// with decimal commas have more, which is a fault with a hint later.
fn are_cells<'a>(first: &'a [u8], delimiter: u8, others: impl Iterator<Item = &'a [u8]>) -> bool {
    let Ok(headings) = cells_of(first, delimiter) else { return false };
    let has_header = is_header(first, &headings);
    let agrees = |line: &[u8]| {
        let cells = cells_of(line, delimiter).unwrap_or_default();
        let are_numbers = if has_header { cells.iter().any(is_number) } else { cells.iter().all(is_number) };
        let surplus = cells.len().checked_sub(headings.len());
        are_numbers && surplus.is_some_and(|surplus| surplus == 0 || surplus <= decimal_commas(line, &cells, delimiter))
    };
    // A damaged first row is a fault later.
    let has_value = |cell: &LogField<'_>| is_number(cell) || is_not_finite(cell.text);
    let is_damaged = headings.iter().any(has_value) && !agrees(first);
    let first_row = Some(first).filter(|_| !has_header && !is_damaged);
    are_rows(first_row.into_iter().chain(others), agrees)
}

/// The most commas of `line` that can be those of decimal numbers: between digits, and not two in one number.
fn decimal_commas(line: &[u8], cells: &[LogField<'_>], delimiter: u8) -> usize {
    let end = |cell: &LogField<'_>| cell.column - 1 + cell.text.len();
    let (mut commas, mut rest) = (0, cells);
    while let [whole, places, ..] = rest
        && delimiter == b','
    {
        let is_one = is_decimal_comma(&line[whole.column - 1..end(places)]);
        commas += usize::from(is_one);
        rest = &rest[1 + usize::from(is_one)..];
    }
    commas
}

/// What separates the cells of the first line. A semicolon or a tab goes before a comma, which may be that of a decimal number;
/// a tab behind a comma is white space.
fn delimiter_of(line: &[u8]) -> Option<u8> {
    let has = |delimiter: u8| memchr::memchr(delimiter, line).is_some();
    let pads = memchr::memmem::find(line, b",\t").is_some();
    [b';', b'\t', b','].into_iter().find(|delimiter| has(*delimiter) && !(*delimiter == b'\t' && pads))
}

/// The cells of `line`, which may be in quotes.
fn cells_of(line: &[u8], delimiter: u8) -> Result<Vec<LogField<'_>>, LogFault> {
    match memchr::memchr(b'"', line) {
        Some(_) => quoted_cells(line, delimiter),
        None => Ok(cells(line, delimiter).collect()),
    }
}

/// The cells of a line that has quotes. Two quotes in a cell stand for one, and are kept.
fn quoted_cells(line: &[u8], delimiter: u8) -> Result<Vec<LogField<'_>>, LogFault> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let rest = &line[start..];
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace() && **byte != delimiter).count();
        let quote = start + blanks;
        if line.get(quote) != Some(&b'"') {
            let length = memchr::memchr(delimiter, rest).unwrap_or(rest.len());
            found
                .extend(cells(&rest[..length], delimiter).map(|cell| LogField { column: start + cell.column, ..cell }));
            start += length;
        } else {
            let end = closing_quote(line, quote + 1).ok_or_else(|| LogFault::at(quote + 1, "a quote is not closed"))?;
            found.push(LogField { text: line[quote + 1..end].trim_ascii(), column: quote + 2 });
            let behind = &line[end + 1..];
            let length = memchr::memchr(delimiter, behind).unwrap_or(behind.len());
            if !behind[..length].trim_ascii().is_empty() {
                return Err(LogFault::at(end + 2, "text behind a closing quote"));
            }
            start = end + 1 + length;
        }
        if start == line.len() {
            return Ok(found);
        }
        start += 1;
    }
}

/// The next quote at or behind `from` that is not one of two.
fn closing_quote(line: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let quote = from + memchr::memchr(b'"', line.get(from..)?)?;
        if line.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        from = quote + 2;
    }
}

fn is_number(cell: &LogField<'_>) -> bool {
    cell.time(TimeUnit::Nanos).is_ok()
}

/// Whether `line` with these cells is a header: a cell has a letter, and is neither a number nor `nan` or `inf`, and the others
/// are not numbers, except in quotes. A line with a number beside a damaged one is a row.
fn is_header(line: &[u8], cells: &[LogField<'_>]) -> bool {
    let has_letter = |cell: &LogField<'_>| cell.text.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    let is_quoted = |cell: &LogField<'_>| cell.column > 1 && line.get(cell.column - 2) == Some(&b'"');
    // The only cell of a row may be damaged too.
    let is_value = |cell: &LogField<'_>| {
        let begins_with_digit = signed(cell.text).1.first().is_some_and(u8::is_ascii_digit);
        is_number(cell) || is_decimal_comma(cell.text) || (cells.len() == 1 && begins_with_digit)
    };
    cells.iter().any(|cell| has_letter(cell) && !is_number(cell) && !is_not_finite(cell.text))
        && !cells.iter().any(|cell| is_value(cell) && !is_quoted(cell))
}

struct Heading {
    whole: String,
    /// In lower case, without its unit.
    name: String,
    unit: Option<TimeUnit>,
}

impl Heading {
    fn of(cell: &LogField<'_>) -> Heading {
        let whole = String::from_utf8_lossy(cell.text).into_owned();
        let lower = whole.to_lowercase();
        let (name, unit) = name_and_unit(&lower);
        Heading { name: name.to_owned(), unit, whole }
    }

    fn is_called(&self, name: &str) -> bool {
        !name.is_empty() && (self.name == name || self.whole.to_lowercase() == name)
    }

    fn counts_rows(&self) -> bool {
        IDS.contains(&&*self.name)
    }

    fn is_instant(&self) -> bool {
        INSTANTS.contains(&&*self.name)
    }

    fn metric(&self) -> Metric {
        let name = self.name.split([' ', '_', '-']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if ROUND_TRIPS.contains(&&*name) { Metric::RoundTripDelay } else { Metric::Delay }
    }

    /// What its figures are if they are not samples: `averages`.
    fn summary(&self) -> Option<&'static str> {
        let words = words_of(&self.whole);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&&**word));
        let compact: String = self.whole.split_whitespace().collect();
        let is_halved = compact.split("/2").skip(1).any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
        let found = SUMMARIES.iter().find(|(_, known)| has(known)).map(|(figures, _)| *figures);
        let is_quantile = || words.iter().any(|word| is_quantile(word));
        found.or(is_halved.then_some("halves")).or_else(|| is_quantile().then_some("quantiles"))
    }

    /// Refuses figures that are not samples.
    fn expect_samples(&self) -> Result<(), LogFault> {
        let Some(figures) = self.summary() else { return Ok(()) };
        let shown = LogField { text: self.whole.as_bytes(), column: 1 }.shown();
        let what = match figures {
            "halves" => format!("the column `{shown}` has halves, not whole values"),
            _ => format!("the column `{shown}` has {figures}, not samples"),
        };
        Err(LogFault::whole(what).hint(format!("`--column '{shown}'` imports its figures as delays, as they are")))
    }
}

/// The words of a heading in lower case; `avgRtt` has two.
fn words_of(heading: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for char in heading.chars() {
        let is_part = char.is_alphanumeric() || char == '%';
        if !is_part || (was_small && char.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| is_part) {
            word.extend(char.to_lowercase());
        }
        was_small = char.is_lowercase();
    }
    words
}

/// Whether a word is `p50`, `p999`, `99th` or `99%`.
fn is_quantile(word: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.strip_prefix('p').is_some_and(|digits| digits.len() > 1 && is_digits(digits))
        || [word.strip_suffix("th"), word.strip_suffix('%')].into_iter().flatten().any(is_digits)
}

/// The parts of a heading: `rtt [s]`, `rtt(us)`, `rtt_ms`, `rtt ns`.
fn name_and_unit(heading: &str) -> (&str, Option<TimeUnit>) {
    let bracketed = [('[', ']'), ('(', ')')].into_iter().find_map(|(open, close)| {
        let (name, unit) = heading.strip_suffix(close)?.rsplit_once(open)?;
        Some((name.trim_end(), unit_named(unit.trim())?))
    });
    let suffixed = || {
        let (name, unit) = heading.rsplit_once([' ', '_', '-', '.'])?;
        Some((name.trim_end(), unit_named(unit)?))
    };
    match bracketed.or_else(suffixed) {
        Some((name, unit)) => (name, Some(unit)),
        None => (heading, unit_named(heading)),
    }
}

/// The unit of that name in lower case.
fn unit_named(name: &str) -> Option<TimeUnit> {
    match name {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => Some(TimeUnit::Nanos),
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "usecs" | "microsecond" | "microseconds" => Some(TimeUnit::Micros),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(TimeUnit::Millis),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(TimeUnit::Seconds),
        _ => None,
    }
}

/// The index of the column of values among `columns`, which have `headings` if there is a header.
fn value_column(headings: &[Heading], columns: usize, wanted: Option<&str>) -> Result<usize, LogFault> {
    let Some(wanted) = wanted.map(str::trim) else { return only_column(headings, columns) };
    let lower = wanted.to_lowercase();
    let mut called = (0..headings.len()).filter(|at| headings[*at].is_called(&lower));
    match (called.next(), called.next(), wanted.parse::<usize>()) {
        (Some(column), None, _) => Ok(column),
        (Some(_), Some(_), _) => {
            Err(LogFault::whole(format!("several columns are called `{wanted}`"))
                .hint("`--column NUMBER` counts from 1"))
        }
        (None, _, Ok(number)) if (1..=columns).contains(&number) => Ok(number - 1),
        (None, ..) => {
            let what = format!("a column `{wanted}` is missing; columns: {}", listed(headings, columns));
            Err(LogFault::whole(what).hint("choose one by its heading or number: `--column`"))
        }
    }
}

/// The index of the only column that can be of values. A column `count` counts rows if it is the first one; elsewhere it may
/// say how often a value occurred.
fn only_column(headings: &[Heading], columns: usize) -> Result<usize, LogFault> {
    let is_candidate = |at: &usize| {
        let counts = |heading: &Heading| heading.counts_rows() || (*at == 0 && heading.name == "count");
        !headings.get(*at).is_some_and(|heading| counts(heading) || heading.is_instant())
    };
    let mut candidates = (0..columns).filter(|at| columns == 1 || is_candidate(at));
    match (candidates.next(), candidates.next()) {
        (Some(column), None) => Ok(column),
        _ => {
            let what = format!("which column has the values is not clear; columns: {}", listed(headings, columns));
            Err(LogFault::whole(what).hint("choose one by its heading or number: `--column`"))
        }
    }
}

/// The headings of the columns, or their numbers.
fn listed(headings: &[Heading], columns: usize) -> String {
    let shown = |at: usize| match headings.get(at) {
        Some(heading) => format!("`{}`", LogField { text: heading.whole.as_bytes(), column: 1 }.shown()),
        None => (at + 1).to_string(),
    };
    let more = if columns > LISTED { ", …" } else { "" };
    (0..columns.min(LISTED)).map(shown).collect::<Vec<_>>().join(", ") + more
}

/// Where the values of a file are.
struct CsvColumn {
    delimiter: u8,
    /// Number of cells of each line.
    columns: usize,
    /// Index of the column of values.
    value: usize,
    unit: TimeUnit,
    /// Index of the column of ids.
    id: Option<usize>,
    numbers: RowNumbers,
    /// Whether a value has digits below a nanosecond.
    has_finer_digits: bool,
}

/// What is of use in a line.
#[derive(Default)]
struct Picked<'a> {
    value: Option<LogField<'a>>,
    id: Option<LogField<'a>>,
    cells: usize,
}

impl CsvColumn {
    #[inline]
    fn pick<'a>(&self, cells: impl Iterator<Item = LogField<'a>>) -> Picked<'a> {
        let mut picked = Picked::default();
        for cell in cells {
            if picked.cells == self.value {
                picked.value = Some(cell);
            } else if Some(picked.cells) == self.id {
                picked.id = Some(cell);
            }
            picked.cells += 1;
        }
        picked
    }

    fn row(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let picked = match memchr::memchr(b'"', line) {
            Some(_) => self.pick(quoted_cells(line, self.delimiter)?.into_iter()),
            None => self.pick(cells(line, self.delimiter)),
        };
        let Some(value) = picked.value.filter(|_| picked.cells == self.columns) else {
            return Err(self.miscounted(line, picked.cells));
        };
        if value.text.is_empty() {
            return Err(LogFault::at(value.column, "a cell without a value"));
        }
        let (value_ns, is_rounded) = value.rounded_time(self.unit)?;
        let id = picked.id.map(|id| id.count()).transpose()?;
        self.has_finer_digits |= is_rounded;
        rows.value(LoggedValue { seq: Some(self.numbers.next(id)), value_ns: Some(value_ns), count: 1 });
        Ok(())
    }

    /// The fault of a line that has `found` cells.
    #[cold]
    fn miscounted(&self, line: &[u8], found: usize) -> LogFault {
        let surplus =
            cells_of(line, self.delimiter).ok().and_then(|cells| cells.get(self.columns).map(|cell| cell.column));
        let column = surplus.unwrap_or(line.trim_ascii_end().len() + 1);
        let fault = LogFault::at(column, format!("{} instead of {}", counted(found, "cell"), self.columns));
        match self.delimiter {
            b',' if surplus.is_some() => fault.hint("decimals need a point, not a comma"),
            _ => fault,
        }
    }
}

struct CsvLog {
    options: LogOptions,
    /// `None` before the first line.
    column: Option<CsvColumn>,
    metric: Metric,
}

impl CsvLog {
    /// The columns according to the first line, and whether that is a header.
    fn first(&mut self, line: &[u8]) -> Result<(CsvColumn, bool), LogFault> {
        let delimiter = delimiter_of(line).unwrap_or(b',');
        let cells = cells_of(line, delimiter)?;
        let has_header = is_header(line, &cells);
        let headings: Vec<Heading> = if has_header { cells.iter().map(Heading::of).collect() } else { Vec::new() };
        let wanted = self.options.column.as_deref();
        if !has_header && wanted.is_none() && is_decimal_comma(line.trim_ascii()) {
            let what =
                "the commas may be decimal commas; if they separate columns, it is not clear which has the values";
            return Err(LogFault::whole(what).hint(
                "decimals need a point, not a comma: write the log with `LC_ALL=C`; if it has two columns, choose one: \
                 `--column 1` or `--column 2`",
            ));
        }
        let value = value_column(&headings, cells.len(), wanted)?;
        // A row whose other cells are words looks like a header.
        let heading = headings.get(value).filter(|heading| !is_not_finite(heading.whole.as_bytes()));
        if let (Some(heading), None) = (heading, &self.options.column) {
            heading.expect_samples()?;
        }
        let unit = unit_of(heading.and_then(|heading| heading.unit), self.options.unit)?;
        let stated = heading.map_or(Metric::Delay, Heading::metric);
        self.metric = self.options.metric.unwrap_or(stated);
        let has_header = heading.is_some();
        let id = (0..headings.len()).find(|at| *at != value && headings[*at].counts_rows());
        let columns = cells.len();
        let numbers = RowNumbers::default();
        let column = CsvColumn { delimiter, columns, value, unit, id, numbers, has_finer_digits: false };
        Ok((column, has_header))
    }
}

impl LineParser for CsvLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if is_blank_or_comment(line) {
            return Ok(LineUse::Taken);
        }
        if let Some(column) = &mut self.column {
            return column.row(line, rows).map(|()| LineUse::Taken);
        }
        let (column, has_header) = self.first(line)?;
        rows.are_of(self.metric);
        let column = self.column.insert(column);
        if !has_header {
            column.row(line, rows)?;
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        let numbers = self.column.as_ref().filter(|column| column.id.is_some()).map(|column| column.numbers);
        let RowNumbers { irregular: irregular_ids, missing: missing_ids, .. } = numbers.unwrap_or_default();
        let column = self.column.as_ref();
        Ok(LogFacts {
            metric: Some(self.metric),
            irregular_ids,
            missing_ids,
            value_unit: column.map(|column| column.unit),
            finer_digits: column.map(|column| column.has_finer_digits),
            ..LogFacts::of("csv")
        })
    }
}

#[cfg(test)]
mod tests;
