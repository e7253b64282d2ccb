//! Tables of text with a column of values: a comma, a semicolon, a tab or blanks separate the cells, and a heading is optional.
//! Lines of text in front of the table and behind it are skipped. Rows have the numbers of a column of ids, else their numbers in
//! the file.

use super::prelude::*;
mod heading;
mod layout;

use super::field::{Commas, Scan, commas_of, is_blank_or_comment, is_not_finite};
use heading::{Heading, column_called};
use layout::{BLANKS, LOST, Layout, begins_as_number, cells_of, is_lost, is_number};
pub(super) use layout::{NOTHING, detects};

pub(super) const UNKNOWN: TableKind = TableKind { tool: "csv", delimiter: None, column: None, unit: None, only: &[] };

struct Table {
    tool: &'static str,
    delimiter: u8,
    columns: usize,
    value: usize,
    count: Option<usize>,
    id: Option<usize>,
    only: Vec<(usize, &'static [&'static str])>,
    run: Option<Vec<u8>>,
    unit: TimeUnit,
    metric: Metric,
    lost: String,
    states_losses: bool,
    heading: Option<(u64, Vec<u8>)>,
    start: u64,
    line: u64,
    is_decimal: bool,
    is_open: bool,
    text_below: Option<LogFault>,
    numbers: RowNumbers,
    has_finer_digits: bool,
    negatives: u64,
}

pub(super) fn open(kind: TableKind, options: &LogOptions, head: &LogHead<'_>) -> OpenedLog {
    let layout = Layout::of(head, kind.delimiter).filter(|_| kind.column.is_none());
    let Some(layout) = layout.or_else(|| Layout::from_first_line(head, kind.delimiter)) else {
        return Err(LogFault::whole(format!("its first {} bytes have no row", head.bytes.len())));
    };
    let cells = layout.heading.map_or(Vec::new(), |(_, line)| cells_of(line, layout.delimiter).0);
    let headings: Vec<Heading> = cells.iter().map(Heading::of).collect();
    let wanted = options.column.as_deref().or(kind.column);
    let column_of = |wanted: &str| column_called(&headings, layout.columns, wanted);
    let count = options.count_column.as_deref().map(column_of).transpose()?;
    let value = match (wanted, count) {
        (Some(wanted), _) => column_of(wanted)?,
        (None, Some(count)) if layout.columns == 2 => 1 - count,
        _ => layout.only_column(&headings)?,
    };
    let heading = headings.get(value);
    if let (Some(heading), None) = (heading, wanted) {
        heading.expect_samples().map_err(|fault| LogFault { line: layout.heading.map(|(line, _)| line), ..fault })?;
    }
    let stated = kind.unit.or_else(|| heading.and_then(|heading| heading.unit));
    let id = (0..headings.len()).find(|at| *at != value && Some(*at) != count && headings[*at].counts_rows());
    let only = kind.only.iter().filter_map(|(name, words)| Some((column_of(name).ok()?, *words))).collect();
    Ok(Box::new(Table {
        tool: kind.tool,
        delimiter: layout.delimiter,
        columns: layout.columns,
        value,
        count,
        id,
        only,
        run: None,
        unit: unit_of(stated, options.unit)?,
        metric: options.metric.unwrap_or(heading.map_or(Metric::Delay, Heading::metric)),
        lost: options.lost.clone().unwrap_or_else(|| LOST.to_owned()),
        states_losses: options.lost.is_some(),
        heading: layout.heading.map(|(line, text)| (line, text.to_owned())),
        start: layout.start,
        line: 0,
        is_decimal: layout.has_decimal_commas(value),
        is_open: false,
        text_below: None,
        numbers: RowNumbers::default(),
        has_finer_digits: false,
        negatives: 0,
    }))
}

impl Table {
    /// The value of `cell` in ns; `None` if it stands for a lost probe.
    fn value(&mut self, cell: &LogField<'_>) -> Result<Option<i64>, LogFault> {
        if is_lost(&self.lost, cell.text) {
            return Ok(None);
        }
        let pointed;
        let mut read = *cell;
        if self.is_decimal && matches!(commas_of(cell.text), Some(Commas::Decimal | Commas::Either)) {
            pointed = cell.text.split(|byte| *byte == b',').collect::<Vec<_>>().join(&b'.');
            read.text = &pointed;
        } else if self.is_decimal && cell.text.contains(&b'.') {
            let what = format!("`{}` has a point, and values in front of it have decimal commas", cell.shown());
            return Err(LogFault::at(cell.column, what).hint("write all of them with a point").of_all_rows());
        }
        let (value, is_rounded) = read.rounded_time(self.unit).map_err(|fault| no_value(cell, fault))?;
        self.has_finer_digits |= is_rounded;
        let is_negative = value < 0 && is_lost(&self.lost, b"negative");
        self.negatives += u64::from(is_negative);
        Ok(Some(value).filter(|_| !is_negative))
    }

    fn row(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let (mut cells, is_open) = cells_of(line, self.delimiter);
        if cells.len() == self.columns + 1 && cells.last().is_some_and(|cell| cell.text.is_empty()) {
            cells.pop();
        }
        let is_repeated = self.heading.as_ref().is_some_and(|(_, heading)| heading == line.trim_ascii());
        if is_repeated || cells.iter().all(|cell| self.columns > 1 && cell.text.is_empty()) {
            return Ok(LineUse::Other);
        }
        if cells.len() == self.columns && self.is_left_out(&cells)? {
            return Ok(LineUse::Other);
        }
        let looks_like_value = |cell: &LogField<'_>| begins_as_number(cell) || is_not_finite(cell.text);
        let has_number = cells.iter().any(is_number);
        self.is_open = is_open
            && self.count.is_none()
            && self.value + 1 < cells.len()
            && self.id.is_none_or(|id| id + 1 < cells.len());
        let (value_ns, is_row) = match cells.get(self.value) {
            Some(value) if cells.len() == self.columns || self.is_open => {
                (self.value(value), has_number || looks_like_value(value))
            }
            value => (Err(self.miscounted(line, &cells)), value.map_or(has_number, looks_like_value)),
        };
        let value_ns = match value_ns {
            Err(fault) if !is_row => return Ok(self.text(fault)),
            value_ns => value_ns?,
        };
        let id = match self.id.map(|id| cells[id]) {
            Some(id) if !id.text.iter().any(u8::is_ascii_digit) => return Ok(self.text(id.is_not("a whole number"))),
            id => id.map(|id| id.count()).transpose()?,
        };
        let count = self.count.and_then(|count| cells.get(count)).map_or(Ok(1), LogField::total)?;
        self.take(id, value_ns, count, rows);
        self.text_below.take().map_or(Ok(LineUse::Taken), Err)
    }

    fn is_left_out(&mut self, cells: &[LogField<'_>]) -> Result<bool, LogFault> {
        for (at, words) in &self.only {
            let word = cells[*at].text;
            match words.is_empty() {
                true if self.run.get_or_insert_with(|| word.to_vec()) == word => {}
                true => return Err(LogFault::whole("it has several runs").hint("`latlab export` one of them")),
                false if words.iter().any(|known| known.as_bytes() == word) => {}
                false => return Ok(true),
            }
        }
        Ok(false)
    }

    #[cold]
    fn miscounted(&self, line: &[u8], cells: &[LogField<'_>]) -> LogFault {
        let column = cells.get(self.columns).map_or(line.trim_ascii_end().len() + 1, |cell| cell.column);
        let fault = LogFault::at(column, format!("{} instead of {}", counted(cells.len(), "cell"), self.columns));
        let joined = cells.get(self.value).zip(cells.get(self.value + 1));
        let number = joined.map(|(one, other)| &line[one.column - 1..other.column - 1 + other.text.len()]);
        match number.filter(|_| self.delimiter == b',' && cells.len() > self.columns).and_then(commas_of) {
            Some(_) => fault.hint("decimals need a point, not a comma, and thousands no separator").of_all_rows(),
            None => fault,
        }
    }

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

#[cold]
fn no_value(cell: &LogField<'_>, fault: LogFault) -> LogFault {
    match (cell.text, commas_of(cell.text)) {
        ([], _) => LogFault::at(cell.column, "a cell without a value"),
        (_, Some(Commas::Either)) => {
            let what = format!("`{}` has a decimal comma or a separator of thousands", cell.shown());
            let fault = LogFault { what, ..fault }.of_all_rows();
            fault.hint("write decimals with a point, and thousands without a separator")
        }
        (_, Some(_)) => fault.of_all_rows(),
        // Blanks of other kinds are separators of thousands: without such rows the large values are missing.
        (text, _) if text[0].is_ascii_digit() && !text.is_ascii() => fault.of_all_rows(),
        (text, _) if text.iter().any(u8::is_ascii_digit) => fault,
        (text, _) => {
            let fault = fault.hint(format!("if it stands for a lost probe: `--lost '{}'`", cell.shown()));
            if is_not_finite(text) { fault.of_all_rows() } else { fault }
        }
    }
}

impl LineParser for Table {
    fn plain_rows(&mut self, text: &[u8], rows: &mut LogRows<'_>) -> (usize, u64) {
        let mut scan = Scan { text, at: 0 };
        let (mut end, mut taken) = (0, 0);
        let is_plain = self.line + 1 >= self.start
            && !self.is_decimal
            && self.count.is_none()
            && self.only.is_empty()
            && !self.is_open;
        // Of the words for lost probes those that are usual are no numbers.
        if is_plain && self.text_below.is_none() && self.lost == LOST {
            rows.are_of(self.metric);
            while let Some((value, id)) = self.plain_row(&mut scan) {
                self.take(id, Some(value), 1, rows);
                (end, taken) = (scan.at, taken + 1);
            }
        }
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
        if self.is_open {
            self.is_open = memchr::memchr_iter(b'"', line).count().is_multiple_of(2);
            return Ok(LineUse::Taken);
        }
        if is_blank_or_comment(line) { Ok(LineUse::Taken) } else { self.row(line, rows) }
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        if self.is_open {
            return Err(LogFault::whole("a quote is not closed"));
        }
        let numbers = self.id.map_or(RowNumbers::default(), |_| self.numbers);
        let kept = "stood for a lost probe; `--lost WORDS` without `negative` keeps it";
        let decimal = self.is_decimal.then(|| "commas of values were read as decimal commas".to_owned());
        Ok(LogFacts {
            // Rows may be missing where ids are.
            states_losses: (self.states_losses && numbers.missing + numbers.irregular == 0).then_some(true),
            irregular_ids: numbers.irregular,
            missing_ids: numbers.missing,
            value_unit: Some(self.unit),
            finer_digits: Some(self.has_finer_digits),
            notes: decimal.into_iter().chain(note(self.negatives, "negative number", kept)).collect(),
            ..LogFacts::of(self.tool)
        })
    }
}

#[cfg(test)]
mod tests;
