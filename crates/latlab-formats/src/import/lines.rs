//! The reading of a log to its end: the one driver of all formats.

use std::io::{self, ErrorKind, Read};

use thiserror::Error;

use super::check::note;
use super::csv;
use super::json::Documents;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows, OtherLines};

pub(super) const LINE_BYTES_MAX: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 18;

/// The most rows of a log: so many, and as many again for each of its bytes. A line may stand for many rows.
const ROWS_FREE: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    pub facts: LogFacts,
    pub skipped: u64,
    pub first_skipped: Option<LogFault>,
    pub others: OtherLines,
    /// Where what the log prints as totals contradicts its rows.
    pub contradictions: Vec<String>,
}

#[derive(Debug, Error)]
pub enum LogError {
    #[error("{}", .0.what)]
    Fault(LogFault),
    #[error("cannot read the log")]
    Unreadable(#[source] io::Error),
    #[error("cannot write the rows")]
    Unwritable(#[source] io::Error),
}

impl From<LogFault> for LogError {
    fn from(fault: LogFault) -> LogError {
        LogError::Fault(fault)
    }
}

/// Reads the log `input` of `format` to its end, into `rows`. Lines without a row are skipped and counted; malformed rows
/// are, if `skip_bad`. A document is one value, of which no part is skipped.
///
/// # Errors
/// The first fault, or that of the system. An option that the format has no use for is a fault before the log is read.
pub fn read_log(
    format: &LogFormat,
    input: &mut dyn Read,
    options: &LogOptions,
    skip_bad: bool,
    mut rows: LogRows<'_>,
) -> Result<LogEnd, LogError> {
    if let Some(unused) = options.given().find(|option| !format.options.contains(option)) {
        let what = format!("`{unused}` has no meaning for this format: {}", format.title);
        return Err(LogFault::whole(what).hint("leave it out").into());
    }
    let end = match format.reader {
        LogReader::Document(read) => {
            let mut documents = Documents::new(input, BUFFER_BYTES);
            let read = read(&mut documents, options, &mut rows);
            let end = LogEnd { others: documents.messages, ..LogEnd::default() };
            read.map(|facts| end.with(facts)).map_err(|fault| LogError::Fault(fault.of_all_rows()))
        }
        LogReader::Lines(open) => LineReading::of(open(options)?, skip_bad).read(input, &mut rows),
        LogReader::Table(kind) => {
            let mut bytes = Vec::new();
            input.take(BUFFER_BYTES as u64).read_to_end(&mut bytes).map_err(LogError::Unreadable)?;
            let parser = csv::open(kind, options, &LogHead { bytes: &bytes, is_whole: bytes.len() < BUFFER_BYTES })?;
            LineReading::of(parser, skip_bad).read(&mut bytes.chain(input), &mut rows)
        }
    };
    let (metric, figures, failed) = rows.finish();
    if let Some(error) = failed {
        return Err(LogError::Unwritable(error));
    }
    end.map(|mut end| {
        end.facts.metric = metric;
        end.contradictions = figures.contradictions(&end.facts.totals, end.facts.lost);
        end
    })
}

impl LogEnd {
    fn with(self, mut facts: LogFacts) -> LogEnd {
        facts.notes.extend(note(facts.cut_off, "value", "beyond the histogram, counted as its end: at least that"));
        LogEnd { facts, ..self }
    }
}

struct LineReading {
    parser: Box<dyn LineParser>,
    skip_bad: bool,
    line: u64,
    bytes: u64,
    end: LogEnd,
}

impl LineReading {
    fn of(parser: Box<dyn LineParser>, skip_bad: bool) -> LineReading {
        LineReading { parser, skip_bad, line: 0, bytes: 0, end: LogEnd::default() }
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
            self.bytes += read as u64;
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
        Ok(self.end.with(facts))
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
            _ if rows.count() > ROWS_FREE + self.bytes => {
                let fault = LogFault::whole(format!("{} bytes stand for {} rows", self.bytes, rows.count()));
                return Err(
                    LogFault { line: Some(self.line), ..fault }.hint("check it: logs have fewer rows than bytes")
                );
            }
            Ok(LineUse::Taken) => {}
            Ok(LineUse::Other) if line.trim_ascii().is_empty() => {}
            Ok(LineUse::Other) => self.end.others.take(self.line, line),
            Err(fault) => {
                let fault = LogFault { line: fault.line.or(Some(self.line)), ..fault };
                if !self.skip_bad || !fault.is_skippable {
                    return Err(fault);
                }
                self.end.skipped += 1;
                self.end.first_skipped.get_or_insert(fault);
            }
        }
        Ok(())
    }
}

#[cold]
fn too_long(line: u64) -> LogFault {
    LogFault { line: Some(line), ..LogFault::whole(format!("a line has more than {LINE_BYTES_MAX} bytes")) }
}
