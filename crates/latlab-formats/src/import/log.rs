//! What a format of logs is: how it is detected and read, and the rows that it gives.

use std::io;

use super::check::{LogTotals, RowFigures};
use super::fault::LogFault;
use super::json::Documents;
use crate::facts::{LoggedProbe, LoggedValue, StreamInterval};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub unit: Option<TimeUnit>,
    /// The column of a table, and that of counts: the name, or the number from 1.
    pub column: Option<String>,
    pub count_column: Option<String>,
    /// What stands for a lost probe in place of its value, between commas; `None` for the usual words.
    pub lost: Option<String>,
    pub metric: Option<Metric>,
    /// Which of the directions of an fio log: `read`, `write` or `trim`.
    pub direction: Option<String>,
}

impl LogOptions {
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
    pub detects: fn(&LogHead<'_>) -> bool,
    pub reader: LogReader,
}

#[derive(Clone, Copy, Debug)]
pub struct TableKind {
    pub(super) tool: &'static str,
    pub(super) delimiter: Option<u8>,
    pub(super) column: Option<&'static str>,
    pub(super) unit: Option<TimeUnit>,
    /// Columns in which a row has one of these words, else it is left out; without words all rows have the same one.
    pub(super) only: &'static [(&'static str, &'static [&'static str])],
}

pub type OpenedLog = Result<Box<dyn LineParser>, LogFault>;

pub type ReadLog = Result<LogFacts, LogFault>;

#[derive(Clone, Copy, Debug)]
pub enum LogReader {
    Lines(fn(&LogOptions) -> OpenedLog),
    Table(TableKind),
    Document(fn(&mut Documents<'_>, &LogOptions, &mut LogRows<'_>) -> ReadLog),
}

impl LogFormat {
    /// The same with rows of that kind, whose logs may state losses or do not.
    pub(super) const fn of(self, rows: Kind, states_losses: bool) -> LogFormat {
        LogFormat { rows, states_losses, ..self }
    }
}

impl PartialEq for LogFormat {
    fn eq(&self, other: &LogFormat) -> bool {
        self.name == other.name
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    pub tool: String,
    pub version: Option<String>,
    /// What its values are; `None` for probes and intervals, whose metrics follow from their instants.
    pub metric: Option<Metric>,
    /// When the run began, ns of CLOCK_REALTIME.
    pub started_ns: Option<i64>,
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
    /// How the values were rounded by the tool, ns.
    pub resolution_ns: Option<Nanos>,
    /// Whether neither the log nor the user states the unit of the values, which is the usual one of the tool.
    pub unit_assumed: bool,
    /// The unit of the values, if it is not the same for every log of its format.
    pub value_unit: Option<TimeUnit>,
    /// Whether values have digits below a nanosecond, to which they were rounded; `None` if that was not looked at.
    pub finer_digits: Option<bool>,
    pub totals: LogTotals,
    pub notes: Vec<String>,
    /// How many values are known as at least the largest of the others only.
    pub cut_off: u64,
}

impl LogFacts {
    pub fn of(tool: &str) -> LogFacts {
        LogFacts { tool: tool.to_owned(), ..LogFacts::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    Taken,
    /// It says nothing to this format: it is skipped, and counted unless it is blank.
    Other,
}

pub trait LineParser {
    /// [`LogFault::at`] if it is a malformed row, which `--skip-bad` skips; [`LogFault::whole`] if the log cannot be imported
    /// at all.
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault>;

    /// Takes the plain rows at the beginning of `text`, and returns their bytes and their number: a faster way for lines that
    /// need no care. It stops in front of any other line.
    fn plain_rows(&mut self, _: &[u8], _: &mut LogRows<'_>) -> (usize, u64) {
        (0, 0)
    }

    /// [`LogFault::whole`] if something is missing.
    fn finish(&mut self, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault>;
}

#[derive(Clone, Copy, Debug)]
pub struct LogHead<'a> {
    /// At most 256 KiB, which may end within a line.
    pub bytes: &'a [u8],
    /// Whether the log has no further bytes.
    pub is_whole: bool,
}

impl<'a> LogHead<'a> {
    pub(super) fn is_json(&self) -> bool {
        matches!(self.bytes.trim_ascii_start(), [b'{' | b'[', ..])
    }

    /// Whether a document begins in it, on a line of its own behind messages, and has one of these texts.
    pub(super) fn has_document(&self, texts: &[&str]) -> bool {
        let begins = self.bytes.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"{"));
        begins && texts.iter().any(|text| memchr::memmem::find(self.bytes, text.as_bytes()).is_some())
    }

    /// Its complete lines that are not blank, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.numbered_lines().map(|(_, line)| line)
    }

    pub(super) fn numbered_lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let complete = memchr::memrchr(b'\n', self.bytes).map_or(0, |last| last + 1);
        let end = if self.is_whole { self.bytes.len() } else { complete };
        let lines = self.bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        (1..).zip(lines).filter(|(_, line)| !line.is_empty())
    }
}

/// Whether the first of `lines` is a row, and at least half of them are: a few may be damaged.
pub(super) fn are_rows<T>(lines: impl IntoIterator<Item = T>, is_row: impl Fn(T) -> bool) -> bool {
    let each: Vec<bool> = lines.into_iter().map(is_row).collect();
    each.first() == Some(&true) && 2 * each.iter().filter(|is_row| **is_row).count() >= each.len()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBlock {
    /// What its values are; `None` if the format does not say it.
    pub metric: Option<Metric>,
    pub size_bytes: Option<u32>,
    pub probes: Vec<LoggedProbe>,
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
}

pub struct LogRows<'a> {
    block: LogBlock,
    block_rows: usize,
    passed: u64,
    pass: &'a mut dyn FnMut(&LogBlock) -> io::Result<()>,
    failed: Option<io::Error>,
    figures: RowFigures,
}

impl<'a> LogRows<'a> {
    pub fn new(block_rows: usize, pass: &'a mut dyn FnMut(&LogBlock) -> io::Result<()>) -> LogRows<'a> {
        let (block, figures) = (LogBlock::default(), RowFigures::default());
        LogRows { block, block_rows, passed: 0, pass, failed: None, figures }
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

    pub fn interval(&mut self, interval: StreamInterval) {
        self.block.intervals.push(interval);
        self.pass_if_full();
    }

    pub(super) fn are_of(&mut self, metric: Metric) {
        self.block.metric = Some(metric);
    }

    pub(super) fn have_packets_of(&mut self, size_bytes: u32) {
        self.block.size_bytes = Some(size_bytes);
    }

    #[inline]
    fn pass_if_full(&mut self) {
        if self.block.len() >= self.block_rows {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        self.passed += self.block.len() as u64;
        if self.failed.is_none() && !self.block.is_empty() {
            self.failed = (self.pass)(&self.block).err();
        }
        self.block.probes.clear();
        self.block.values.clear();
        self.block.intervals.clear();
    }

    pub(super) fn count(&self) -> u64 {
        self.passed + self.block.len() as u64
    }

    /// Whether the rows could not be passed on: reading on has no use.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Passes on what is left; returns the metric and the figures of all rows, and the error of those that could not be passed on.
    pub(super) fn finish(mut self) -> (Option<Metric>, RowFigures, Option<io::Error>) {
        self.pass_on();
        (self.block.metric, self.figures, self.failed)
    }
}
