//! What a format of logs is: how it is detected and read, the rows that it gives, and why a log is refused.

use std::io::{self, BufRead};

use super::check::{LogTotals, RowFigures};
use super::fault::LogFault;
use super::field::whole;
use crate::facts::{LoggedProbe, LoggedValue, StreamInterval};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

/// What the user states about a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The unit of the values, for formats that do not state it.
    pub unit: Option<TimeUnit>,
    /// The column of a CSV file: its name, or its number from 1.
    pub column: Option<String>,
    /// The column that says how often each value occurred, in the same way.
    pub count_column: Option<String>,
    /// What stands for a lost probe in place of its value, between commas; `None` for the usual words.
    pub lost: Option<String>,
    /// The metric of the values, for formats that do not state it.
    pub metric: Option<Metric>,
    /// Which of the directions of an fio log: `read`, `write` or `trim`.
    pub direction: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct LogFormat {
    pub name: &'static str,
    /// For people: `full log of sockperf`.
    pub title: &'static str,
    /// The kind of its rows: probes, values, or intervals of a stream.
    pub rows: Kind,
    /// Whether it stands for logs of no tool in particular: another format that agrees is preferred.
    pub is_generic: bool,
    /// The options that it uses: `--unit`, `--column`, `--count-column`, `--lost`, `--metric`, `--direction`.
    pub options: &'static [&'static str],
    /// Whether its logs can say that a probe got no answer; otherwise a log without losses says nothing about them.
    pub states_losses: bool,
    /// Whether a log that begins with these bytes is of this format. `LogHead::lines` gives its complete lines.
    pub detects: fn(&LogHead<'_>) -> bool,
    pub reader: LogReader,
}

impl LogFormat {
    /// A format of lines with round trips in ms, as the programs called ping write them; `open` opens its parser.
    pub(super) const fn of_ping(
        name: &'static str,
        title: &'static str,
        detects: fn(&LogHead<'_>) -> bool,
        open: fn(&LogOptions) -> OpenedLog,
    ) -> LogFormat {
        let (is_generic, states_losses, rows) = (false, true, Kind::Values);
        let (options, reader) = (&["--unit"], LogReader::Lines(open));
        LogFormat { name, title, rows, is_generic, options, states_losses, detects, reader }
    }
}

impl LogOptions {
    /// The options that are given.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--unit", self.unit.is_some()),
            ("--column", self.column.is_some()),
            ("--count-column", self.count_column.is_some()),
            ("--lost", self.lost.is_some()),
            ("--metric", self.metric.is_some()),
            ("--direction", self.direction.is_some()),
        ];
        all.into_iter().filter_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// Formats differ by their names.
impl PartialEq for LogFormat {
    fn eq(&self, other: &LogFormat) -> bool {
        self.name == other.name
    }
}

/// What a log states about all of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    pub tool: String,
    /// The version of that tool, if the log has it.
    pub version: Option<String>,
    /// What its values are; `None` for probes and intervals, whose metrics follow from their instants.
    pub metric: Option<Metric>,
    /// When the run began, ns of CLOCK_REALTIME, if the log has it.
    pub started_ns: Option<i64>,
    /// The interval between two rows that was asked for, if the log has it.
    pub interval_ns: Option<Nanos>,
    /// Whether its values were half round trips, which were doubled.
    pub halves_doubled: bool,
    /// Probes that were sent and not answered according to its totals, and are not among the rows.
    pub lost: u64,
    /// Whether this log says which probes got no answer; `None` if that is the same for every log of its format.
    pub states_losses: Option<bool>,
    /// Numbers of rows that repeat or run backwards, which were replaced.
    pub irregular_ids: u64,
    /// Numbers without a row between the first and the last one, of rows that its parser numbers by the ids of the log.
    pub missing_ids: u64,
    /// How the values were rounded by the tool, ns: its resolution; `None` if unknown.
    pub resolution_ns: Option<Nanos>,
    /// Whether neither the log nor the user states the unit of the values, which is the usual one of the tool.
    pub unit_assumed: bool,
    /// The unit in which the log has its values, if that is not the same for every log of its format.
    pub value_unit: Option<TimeUnit>,
    /// Whether values have digits below a nanosecond, to which they were rounded; `None` if that was not looked at.
    pub finer_digits: Option<bool>,
    /// What it prints about all of its rows.
    pub totals: LogTotals,
    /// What was left out of its values, or read otherwise than it is printed, a sentence for each.
    pub notes: Vec<String>,
    /// How many values are known as at least the largest of the others only.
    pub cut_off: u64,
}

impl LogFacts {
    /// Those of a log of `tool` that has nothing but its rows.
    pub fn of(tool: &str) -> LogFacts {
        LogFacts { tool: tool.to_owned(), ..LogFacts::default() }
    }
}

/// The parser of a log that was opened.
pub type OpenedLog = Result<Box<dyn LineParser>, LogFault>;

/// How a format is read.
#[derive(Clone, Copy, Debug)]
pub enum LogReader {
    Lines(fn(&LogOptions) -> OpenedLog),
    /// Lines whose columns are found by the beginning of the log.
    Table(fn(&LogOptions, &LogHead<'_>) -> OpenedLog),
    Document(fn(&mut dyn BufRead, &LogOptions, &mut LogRows<'_>) -> Result<LogFacts, LogFault>),
}

/// What a format does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// It is a row, or states something.
    Taken,
    /// It says nothing to this format: it is skipped, and counted unless it is blank.
    Other,
}

/// Reads a format of lines.
pub trait LineParser {
    /// Takes the next line, without its end.
    ///
    /// # Errors
    /// [`LogFault::at`] if it is a malformed row, which `--skip-bad` skips; [`LogFault::whole`] if the log cannot be imported
    /// at all.
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault>;

    /// Takes the plain rows at the beginning of `text`, and returns their bytes and their number: a faster way for lines that
    /// need no care. It stops in front of any other line.
    fn plain_rows(&mut self, _: &[u8], _: &mut LogRows<'_>) -> (usize, u64) {
        (0, 0)
    }

    /// Takes the end of the log, and returns what it states.
    ///
    /// # Errors
    /// [`LogFault::whole`] if something is missing.
    fn finish(&mut self, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault>;
}

/// The beginning of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogHead<'a> {
    /// At most 64 KiB, which may end within a line.
    pub bytes: &'a [u8],
    /// Whether the log has no further bytes.
    pub is_whole: bool,
}

impl<'a> LogHead<'a> {
    /// Whether it begins as a document of JSON, which may be one line and may end lines as it wants.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.bytes.trim_ascii_start(), [b'{' | b'[', ..])
    }

    /// Its complete lines that are not blank, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.numbered_lines().map(|(_, line)| line)
    }

    /// The same with their numbers, from 1.
    pub(super) fn numbered_lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let end = match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) if !self.is_whole => last + 1,
            _ => self.bytes.len(),
        };
        let lines = self.bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        (1..).zip(lines).filter(|(_, line)| !line.is_empty())
    }
}

/// Whether the first of `lines` is a row, and at least half of them are: a few may be damaged.
pub(super) fn are_rows<'a>(lines: impl Iterator<Item = &'a [u8]>, is_row: impl Fn(&'a [u8]) -> bool) -> bool {
    let mut is_each = lines.map(is_row);
    let is_first = is_each.next().unwrap_or(false);
    let (mut rows, mut others) = (1, 0);
    is_each.for_each(|is_row| *(if is_row { &mut rows } else { &mut others }) += 1);
    is_first && rows >= others
}

/// The most kinds of lines without a row of which the first is kept.
const KINDS_MAX: usize = 5;

/// Lines without a row that the format does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherLines {
    pub count: u64,
    /// The first line of each kind, with its number; lines that differ in their digits alone are of one kind.
    pub first: Vec<(u64, String)>,
    kinds: Vec<Vec<u8>>,
}

impl OtherLines {
    pub(super) fn take(&mut self, number: u64, line: &[u8]) {
        self.count += 1;
        if self.kinds.len() < KINDS_MAX {
            let start = &line[..line.len().min(80)];
            let kind: Vec<u8> = start.iter().filter(|byte| !byte.is_ascii_digit()).copied().collect();
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
                self.first.push((number, whole(line).shown()));
            }
        }
    }
}

/// Rows that were read and not yet taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBlock {
    /// What its values are; `None` if the format does not say it.
    pub metric: Option<Metric>,
    /// Payload of the packets of its intervals.
    pub size_bytes: Option<u32>,
    /// Probes, in the order of the log.
    pub probes: Vec<LoggedProbe>,
    /// Values, in the order of the log.
    pub values: Vec<LoggedValue>,
    pub intervals: Vec<StreamInterval>,
}

impl LogBlock {
    pub fn len(&self) -> usize {
        self.probes.len() + self.values.len() + self.intervals.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.probes.clear();
        self.values.clear();
        self.intervals.clear();
    }
}

/// Takes the rows of a log, and passes them on in blocks.
pub struct LogRows<'a> {
    block: LogBlock,
    block_rows: usize,
    pass: &'a mut dyn FnMut(&LogBlock) -> io::Result<()>,
    failed: Option<io::Error>,
    figures: RowFigures,
}

impl<'a> LogRows<'a> {
    /// Rows that are passed to `pass` in blocks of `block_rows`.
    pub fn new(block_rows: usize, pass: &'a mut dyn FnMut(&LogBlock) -> io::Result<()>) -> LogRows<'a> {
        LogRows { block: LogBlock::default(), block_rows, pass, failed: None, figures: RowFigures::default() }
    }

    #[inline]
    pub fn probe(&mut self, probe: LoggedProbe) {
        self.figures.probe(&probe);
        self.block.probes.push(probe);
        self.pass_if_full();
    }

    #[inline]
    pub fn value(&mut self, value: LoggedValue) {
        self.figures.value(&value);
        self.block.values.push(value);
        self.pass_if_full();
    }

    /// States what the values are, before the first of them.
    pub(crate) fn are_of(&mut self, metric: Metric) {
        self.block.metric = Some(metric);
    }

    /// States the payload of the packets of intervals, before the first of them.
    pub(crate) fn have_packets_of(&mut self, size_bytes: u32) {
        self.block.size_bytes = Some(size_bytes);
    }

    /// Takes an interval of a stream.
    pub fn interval(&mut self, interval: StreamInterval) {
        self.block.intervals.push(interval);
        self.pass_if_full();
    }

    #[inline]
    fn pass_if_full(&mut self) {
        if self.block.len() >= self.block_rows {
            self.pass_on();
        }
    }

    /// Passes on what is left.
    fn pass_on(&mut self) {
        if self.failed.is_none() && !self.block.is_empty() {
            self.failed = (self.pass)(&self.block).err();
        }
        self.block.clear();
    }

    /// The figures of the probes and values so far.
    pub(super) fn figures(&self) -> RowFigures {
        self.figures.clone()
    }

    /// Passes on what is left; returns the error of the rows that could not be passed on.
    pub(super) fn finish(mut self) -> Option<io::Error> {
        self.pass_on();
        self.failed
    }

    /// Whether the rows could not be passed on: reading on has no use.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}
