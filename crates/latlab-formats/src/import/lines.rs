//! The reading of a log to its end: the one driver of all formats.

use std::io::{self, BufReader, ErrorKind, Read};

use thiserror::Error;

use super::check::note;
use super::json::Documents;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows, OtherLines};

/// The most bytes of a line.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;
/// The bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// A log that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnd {
    pub facts: LogFacts,
    /// Malformed rows that were skipped.
    pub skipped: u64,
    pub first_skipped: Option<LogFault>,
    /// Lines that say nothing to this format.
    pub others: OtherLines,
    /// Where what the log prints as totals contradicts its rows.
    pub contradictions: Vec<String>,
}

/// Why a log was not read to its end.
#[derive(Debug, Error)]
pub enum LogError {
    /// It is malformed, or cannot be imported.
    #[error("{}", .0.what)]
    Fault(LogFault),
    #[error("cannot read the log")]
    Unreadable(#[source] io::Error),
    /// Its rows cannot be written.
    #[error("cannot write the rows")]
    Unwritable(#[source] io::Error),
}

impl From<LogFault> for LogError {
    fn from(fault: LogFault) -> LogError {
        LogError::Fault(fault)
    }
}

pub(super) fn read(
    format: &LogFormat,
    input: &mut dyn Read,
    options: &LogOptions,
    skip_bad: bool,
    mut rows: LogRows<'_>,
) -> Result<LogEnd, LogError> {
    let end = match format.reader {
        LogReader::Document(read) => {
            let mut documents = Documents::new(input);
            let read = read(&mut BufReader::with_capacity(BUFFER_BYTES, &mut documents), options, &mut rows);
            let end = read.map(|facts| LogEnd { others: documents.messages, ..LogEnd::of(facts) });
            end.map_err(|fault| LogError::Fault(fault.of_all_rows()))
        }
        LogReader::Lines(open) => LineReading::of(open(options)?, skip_bad).read(input, &mut rows),
        LogReader::Table(open) => {
            let mut bytes = Vec::new();
            input.take(BUFFER_BYTES as u64).read_to_end(&mut bytes).map_err(LogError::Unreadable)?;
            let parser = open(options, &LogHead { bytes: &bytes, is_whole: bytes.len() < BUFFER_BYTES })?;
            LineReading::of(parser, skip_bad).read(&mut bytes.chain(input), &mut rows)
        }
    };
    let figures = rows.figures();
    match (rows.finish(), end) {
        (Some(error), _) => Err(LogError::Unwritable(error)),
        (None, end) => end.map(|end| {
            let contradictions = figures.contradictions(&end.facts.totals, end.facts.lost);
            LogEnd { contradictions, ..end }
        }),
    }
}

impl LogEnd {
    fn of(mut facts: LogFacts) -> LogEnd {
        facts.notes.extend(note(facts.cut_off, "value", "beyond the histogram, counted as its end: at least that"));
        let others = OtherLines::default();
        LogEnd { facts, skipped: 0, first_skipped: None, others, contradictions: Vec::new() }
    }
}

/// The reading of a format of lines.
struct LineReading {
    parser: Box<dyn LineParser>,
    skip_bad: bool,
    /// Number of lines so far.
    line: u64,
    skipped: u64,
    first_skipped: Option<LogFault>,
    others: OtherLines,
}

impl LineReading {
    fn of(parser: Box<dyn LineParser>, skip_bad: bool) -> LineReading {
        let others = OtherLines::default();
        LineReading { parser, skip_bad, line: 0, skipped: 0, first_skipped: None, others }
    }

    fn read(mut self, input: &mut dyn Read, rows: &mut LogRows<'_>) -> Result<LogEnd, LogError> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut kept = 0;
        while !rows.has_failed() {
            let read = match input.read(&mut buffer[kept..]) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(LogError::Unreadable(error)),
            };
            let filled = kept + read;
            if read == 0 {
                if kept > 0 {
                    self.line(&buffer[..kept], rows)?;
                }
                break;
            }
            let whole = self.lines(&buffer[..filled], kept, rows)?;
            buffer.copy_within(whole..filled, 0);
            kept = filled - whole;
            if kept > LINE_BYTES_MAX {
                return Err(LogError::Fault(too_long(self.line + 1)));
            }
            if kept == buffer.len() {
                buffer.resize(2 * kept, 0);
            }
        }
        let facts = self.parser.finish(rows)?;
        let LineReading { skipped, first_skipped, others, .. } = self;
        Ok(LogEnd { skipped, first_skipped, others, ..LogEnd::of(facts) })
    }

    /// Takes the complete lines at the beginning of `text`, whose first `searched` bytes have no end of a line; returns their
    /// bytes.
    fn lines(&mut self, text: &[u8], searched: usize, rows: &mut LogRows<'_>) -> Result<usize, LogFault> {
        let (mut start, mut search) = (0, searched);
        loop {
            let (bytes, lines) = self.parser.plain_rows(&text[start..], rows);
            (start, self.line) = (start + bytes, self.line + lines);
            search = search.max(start);
            let Some(length) = memchr::memchr(b'\n', &text[search..]) else { return Ok(start) };
            self.line(&text[start..search + length], rows)?;
            start = search + length + 1;
            search = start;
        }
    }

    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        self.line += 1;
        if line.len() > LINE_BYTES_MAX {
            return Err(too_long(self.line));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.parser.line(line, rows) {
            Ok(LineUse::Taken) => {}
            Ok(LineUse::Other) if line.trim_ascii().is_empty() => {}
            Ok(LineUse::Other) => self.others.take(self.line, line),
            Err(fault) => {
                let fault = LogFault { line: fault.line.or(Some(self.line)), ..fault };
                if !self.skip_bad || !fault.is_skippable {
                    return Err(fault);
                }
                self.skipped += 1;
                self.first_skipped.get_or_insert(fault);
            }
        }
        Ok(())
    }
}

/// The fault that line `line` is longer than any line of a log.
#[cold]
fn too_long(line: u64) -> LogFault {
    LogFault { line: Some(line), ..LogFault::whole(format!("a line has more than {LINE_BYTES_MAX} bytes")) }
}
