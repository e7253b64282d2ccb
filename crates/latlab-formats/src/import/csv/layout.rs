//! Where a table is in a file, and how it is divided.

use super::super::field::{Commas, LogField, commas_of, is_decimal_comma, is_not_finite, signed, whole, words};
use super::super::log::are_rows;
use super::super::{LogFault, LogHead};
use super::heading::{Heading, listed};
use crate::units::human::TimeUnit;

/// What stands for a lost probe unless the user says it: the first word is the empty cell, the last one any number below 0.
pub(super) const LOST: &str = ",timeout,*,nan,negative";
/// What separates cells, in the order in which it is tried: a comma may be that of a decimal number.
const DELIMITERS: [u8; 5] = [b';', b'\t', b',', BLANKS, NOTHING];
pub(super) const BLANKS: u8 = b' ';
/// No byte of a line: each is one cell.
pub(in super::super) const NOTHING: u8 = b'\n';
const AGREEING: usize = 20;
const IN_FRONT_MAX: usize = 100;

pub(in super::super) fn detects(head: &LogHead<'_>) -> bool {
    let layout = Layout::of(head, None).filter(|_| !head.is_json());
    layout.is_some_and(|layout| match (layout.delimiter, layout.heading) {
        (NOTHING, heading) => heading.is_some(),
        (BLANKS, None) => layout.rows.iter().all(|row| words(row).all(|word| is_numeric(&word))),
        _ => true,
    })
}

pub(super) struct Layout<'a> {
    pub(super) delimiter: u8,
    pub(super) columns: usize,
    pub(super) heading: Option<(u64, &'a [u8])>,
    pub(super) start: u64,
    rows: Vec<&'a [u8]>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(head: &LogHead<'a>, delimiter: Option<u8>) -> Option<Layout<'a>> {
        let lines = head.numbered_lines().filter(|(_, line)| !line.starts_with(b"#"));
        let lines: Vec<_> = lines.take(IN_FRONT_MAX + AGREEING).collect();
        let mut possible = DELIMITERS.into_iter().filter(|by| delimiter.is_none_or(|known| known == *by));
        possible.find_map(|by| Layout::by(by, &lines))
    }

    fn by(delimiter: u8, lines: &[(u64, &'a [u8])]) -> Option<Layout<'a>> {
        let cells: Vec<_> = lines.iter().map(|(_, line)| cells_of(line, delimiter).0).collect();
        let is_row = |at: usize, columns: usize| cells[at].len() == columns && cells[at].iter().any(is_numeric);
        let begins = |at: &usize| {
            let columns = cells[*at].len();
            let ends = lines.len().min(*at + AGREEING);
            (columns > 1) == (delimiter != NOTHING) && are_rows(*at..ends, |row| is_row(row, columns))
        };
        let mut first = (0..lines.len().min(IN_FRONT_MAX)).find(begins)?;
        let columns = cells[first].len();
        // Rows without a number may be in front of it.
        while first > 0 && cells[first - 1].len() == columns && !is_heading(&cells[first - 1]) {
            first -= 1;
        }
        let rows: Vec<&[u8]> = lines[first..].iter().take(AGREEING).map(|(_, line)| *line).collect();
        let above = first.checked_sub(1).filter(|at| is_heading(&cells[*at]));
        let is_lone = above.is_some_and(|at| cells[at].len() == 1);
        let is_decimal = |word: LogField<'_>| !word.text.contains(&b',') || is_decimal_comma(word.text);
        let is_one = delimiter == b',' && is_lone && rows.iter().all(|row| words(row).all(is_decimal));
        if is_one || lines[..first].iter().any(|(_, line)| words(line).all(|word| is_numeric(&word))) {
            return None;
        }
        // Rows that have another number of cells than the heading are faults later.
        let above = above.filter(|at| cells[*at].len() == columns || (delimiter != BLANKS && !is_lone));
        let (heading, columns) = (above.map(|at| lines[at]), above.map_or(columns, |at| cells[at].len()));
        Some(Layout { delimiter, columns, heading, start: lines[first].0, rows })
    }

    pub(super) fn from_first_line(head: &LogHead<'a>, delimiter: Option<u8>) -> Option<Layout<'a>> {
        let first = head.numbered_lines().find(|(_, line)| !line.starts_with(b"#"))?;
        let divides = |by: &u8| cells_of(first.1, *by).0.len() > 1;
        let delimiter = delimiter.or_else(|| DELIMITERS.into_iter().find(divides)).unwrap_or(NOTHING);
        let cells = cells_of(first.1, delimiter).0;
        let heading = is_heading(&cells).then_some(first);
        let start = first.0 + u64::from(heading.is_some());
        Some(Layout { delimiter, columns: cells.len(), heading, start, rows: Vec::new() })
    }

    /// Whether the values of a column have decimal commas: where a comma may be that of thousands, it is one of decimals only
    /// beside semicolons.
    pub(super) fn has_decimal_commas(&self, column: usize) -> bool {
        let rows = self.rows.iter().map(|row| cells_of(row, self.delimiter).0);
        let values: Vec<_> = rows.filter_map(|row| row.get(column).map(|cell| cell.text)).collect();
        let is_decimal = |text: &&[u8]| match commas_of(text) {
            Some(Commas::Either) => self.delimiter == b';',
            commas => commas == Some(Commas::Decimal),
        };
        values.iter().any(is_decimal) && !values.iter().any(|text| text.contains(&b'.') && commas_of(text).is_none())
    }

    /// The index of the only column that can have values. A column `count` counts rows if it is the first one; elsewhere it may
    /// say how often a value occurred. Nor is it clear which column it is where instants count up beside whole numbers.
    pub(super) fn only_column(&self, headings: &[Heading]) -> Result<usize, LogFault> {
        if self.delimiter == b',' && headings.is_empty() && self.rows.iter().all(|row| is_decimal_comma(row)) {
            return Err(LogFault::whole("the commas may be decimal commas, or separate columns").hint(
                "`--from numbers` reads decimal commas; of two columns choose one: `--column 1` or `--column 2`",
            ));
        }
        let rows: Vec<_> = self.rows.iter().map(|row| cells_of(row, self.delimiter).0).collect();
        let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
        let counts_up = || (0..).zip(column(0)).all(|(due, cell)| cell.count().is_ok_and(|own| own == due));
        let are_whole = || column(1).all(|cell| cell.count().is_ok());
        let has_no_unit = headings.iter().all(|own| own.unit.is_none());
        let is_histogram = self.columns == 2 && rows.len() > 2 && has_no_unit && counts_up() && are_whole();
        let is_candidate = |at: &usize| {
            let is_other = headings.get(*at).is_some_and(|heading| {
                let is_instant = heading.is_instant() && !is_histogram;
                heading.counts_rows() || is_instant || (*at == 0 && heading.name == "count")
            });
            self.columns == 1 || (!is_other && (rows.is_empty() || column(*at).any(is_numeric)))
        };
        let mut candidates = (0..self.columns).filter(is_candidate);
        if let (Some(column), None) = (candidates.next(), candidates.next()) {
            return Ok(column);
        }
        let what = format!("which column has the values is not clear; columns: {}", listed(headings, self.columns));
        let hint = "choose one by its heading or number: `--column`; a histogram has its counts in another one: \
                    `--count-column`";
        Err(LogFault::whole(what).hint(hint))
    }
}

/// The cells of `line`, which may be in quotes, and whether the quotes of the last one are open. Two quotes in a cell stand for
/// one, and are kept.
pub(super) fn cells_of(line: &[u8], delimiter: u8) -> (Vec<LogField<'_>>, bool) {
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

pub(super) fn is_number(cell: &LogField<'_>) -> bool {
    cell.time(TimeUnit::Nanos).is_ok()
}

pub(super) fn is_numeric(cell: &LogField<'_>) -> bool {
    is_number(cell) || commas_of(cell.text).is_some() || is_not_finite(cell.text)
}

/// Whether `cells` are headings: one has a letter, and none is a number or stands for one.
fn is_heading(cells: &[LogField<'_>]) -> bool {
    let has_letter = |cell: &LogField<'_>| cell.text.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
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

pub(super) fn begins_as_number(cell: &LogField<'_>) -> bool {
    signed(cell.text).1.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// Whether `text` is one of the `words` that stand for a lost probe, in any case; `nan` may have a sign.
pub(super) fn is_lost(words: &str, text: &[u8]) -> bool {
    let text = if is_not_finite(text) { signed(text).1 } else { text };
    words.split(',').any(|word| word.trim().as_bytes().eq_ignore_ascii_case(text))
}
