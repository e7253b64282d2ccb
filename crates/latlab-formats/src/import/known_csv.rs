//! CSV files of tools, known by their first line: JMeter's JTL files, and what hey and vegeta write.
//!
//! Samples that failed keep their values, as in the tools' own reports.

use super::csv::{self, TableKind};
use super::{LogFormat, LogHead, LogReader};
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const HEY: LogFormat = LogFormat {
    name: "hey",
    title: "CSV file of hey",
    detects: |head| first_line(head).starts_with(b"response-time,DNS+dialup,"),
    reader: LogReader::Table(|options, head| csv::open(KIND_OF_HEY, options, head)),
    ..JMETER
};

pub(super) const JMETER: LogFormat = LogFormat {
    name: "jmeter",
    title: "JTL file of JMeter",
    rows: Kind::Values,
    is_generic: false,
    options: &["--metric"],
    states_losses: false,
    detects: |head| {
        first_line(head).starts_with(b"timeStamp") && memchr::memmem::find(first_line(head), b"elapsed").is_some()
    },
    reader: LogReader::Table(|options, head| csv::open(KIND_OF_JMETER, options, head)),
};

pub(super) const VEGETA: LogFormat = LogFormat {
    name: "vegeta",
    title: "CSV file of vegeta",
    detects: is_vegeta,
    reader: LogReader::Table(|options, head| csv::open(KIND_OF_VEGETA, options, head)),
    ..JMETER
};

const KIND_OF_HEY: TableKind =
    TableKind { tool: "hey", delimiter: Some(b','), column: Some("response-time"), unit: Some(TimeUnit::Seconds) };
const KIND_OF_JMETER: TableKind =
    TableKind { tool: "JMeter", delimiter: None, column: Some("elapsed"), unit: Some(TimeUnit::Millis) };
const KIND_OF_VEGETA: TableKind =
    TableKind { tool: "vegeta", delimiter: Some(b','), column: Some("3"), unit: Some(TimeUnit::Nanos) };

fn first_line<'a>(head: &LogHead<'a>) -> &'a [u8] {
    head.lines().next().unwrap_or_default()
}

/// Whether the first line has a time in ns, a status of HTTP, a latency in ns, and at least the five cells of old versions.
fn is_vegeta(head: &LogHead<'_>) -> bool {
    let cells: Vec<&[u8]> = first_line(head).split(|byte| *byte == b',').collect();
    let is_number = |cell: &&[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
    cells.len() >= 6 && cells[..5].iter().all(is_number) && cells[0].len() == 19 && cells[1].len() <= 3
}
