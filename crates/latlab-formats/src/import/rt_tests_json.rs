//! The histograms of `cyclictest -h US --json=FILE` and `oslat --json=FILE`:
//!
//! ```json
//! { "thread": { "0": { "histogram": { "2": 4, "3": 1 }, "cycles": 5, "min": 2, "max": 3, "avg": 2.2 } } }
//! ```
//!
//! They are counted together, in no order. Values of cyclictest are in us, with `-N` in ns (`resolution_in_ns`); its latencies
//! beyond the histogram are the cycles that are in no bin, and count as at least one step above the last one. Values of oslat are
//! upper edges in us, and its last bin has all that is beyond it; with bins of parts of a us its extremes are in ns.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde::Deserialize;

use super::columns::{Columns, Total};
use super::field::{LogField, unit_of};
use super::{LogFacts, LogFault, LogFormat, LogOptions, LogReader, LogRows};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "rt-tests-json",
    title: "JSON of cyclictest or oslat",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit"],
    states_losses: false,
    detects: |head| memchr::memmem::find(head.bytes, b"\"rt_test_version").is_some(),
    reader: LogReader::Document(read),
};

/// The most bytes of a document.
const BYTES_MAX: u64 = 1 << 25;

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: Option<String>,
    start_time: Option<String>,
    resolution_in_ns: Option<u64>,
    thread: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    cycles: Option<u64>,
    min: Option<f64>,
    avg: Option<f64>,
    max: Option<f64>,
}

fn read(input: &mut dyn BufRead, options: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut text = Vec::new();
    let read = input.take(BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| LogFault::whole(format!("cannot read the log: {error}")))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(LogFault::whole(format!("the document has more than {BYTES_MAX} bytes")));
    }
    let document: Document = serde_json::from_slice(&text).map_err(|error| LogFault {
        line: Some(error.line() as u64),
        ..LogFault::at(error.column().max(1), error.to_string())
    })?;
    let is_cyclictest = document.thread.values().any(|thread| thread.cycles.is_some());
    let (tool, metric) = match is_cyclictest {
        true => ("cyclictest", Metric::WakeupLatency),
        false => ("oslat", Metric::Delay),
    };
    let unit = if document.resolution_in_ns == Some(1) { TimeUnit::Nanos } else { TimeUnit::Micros };
    unit_of(Some(unit), options.unit)?;
    if document.thread.values().all(|thread| thread.histogram.is_empty()) {
        return Err(LogFault::whole("the document has no values").hint("repeat with `-h US`, above the latencies"));
    }
    let mut columns = columns_of(&document, unit, is_cyclictest)?;
    let facts = columns.pass(tool, metric, unit, rows)?;
    let started = document.start_time.as_deref().and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
    Ok(LogFacts {
        version: document.version,
        started_ns: started.and_then(|at| i64::try_from(at.timestamp().as_nanosecond()).ok()),
        ..facts
    })
}

fn columns_of(document: &Document, unit: TimeUnit, is_cyclictest: bool) -> Result<Columns, LogFault> {
    let threads = || document.thread.values().enumerate();
    let mut bins: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let mut is_finer = false;
    for (place, thread) in threads() {
        for (label, count) in &thread.histogram {
            is_finer |= label.contains('.');
            let value_ns = LogField { text: label.as_bytes(), column: 1 }.time(unit)?;
            let counts = bins.entry(value_ns).or_insert_with(|| vec![0; document.thread.len()]);
            counts[place] = counts[place].saturating_add(*count);
        }
    }
    let mut columns = Columns { is_open: !is_cyclictest, ..Columns::default() };
    for (value_ns, counts) in &bins {
        columns.bin(*value_ns, counts)?;
    }
    let extremes_ns = if is_finer { 1.0 } else { unit.nanos() };
    for (place, thread) in threads() {
        let mut state =
            |total: Total, figure: Option<f64>| columns.totals[total as usize].push(figure.map(|ns| ns as i64));
        state(Total::Min, thread.min.map(|min| min * extremes_ns));
        state(Total::Max, thread.max.map(|max| max * extremes_ns));
        state(Total::Mean, thread.avg.map(|mean| mean * unit.nanos()));
        if let Some(cycles) = thread.cycles {
            let beyond = cycles.saturating_sub(columns.sums[place]);
            columns.totals[Total::Beyond as usize].push(Some(beyond as i64));
            columns.totals[Total::All as usize].push(Some(cycles as i64));
        }
    }
    if is_cyclictest {
        columns.width_ns = Some(unit.nanos() as i64);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read as read_log};
    use super::super::{LogBlock, LogEnd};
    use super::*;

    fn document(resolution: &str, threads: &str) -> String {
        format!(
            "{{\"file_version\": 1, \"cmdline:\": \"x\", \"rt_test_version:\": \"2.40\",\n\
             \"start_time\": \"Sat, 28 Nov 2026 23:15:34 +0000\",{resolution} \"thread\": {{ {threads} }} }}"
        )
    }

    fn import(unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read_log(&FORMAT, &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(i64, u64)> {
        block.values.iter().map(|row| (row.value_ns.expect("a value"), row.count)).collect()
    }

    const CYCLES: &str = r#""0": {"histogram": {"2": 4, "10": 1}, "cycles": 7, "min": 2, "max": 40, "avg": 12.2, "cpu": 0},
        "1": {"histogram": {      }, "cycles": 1, "min": 50, "max": 50, "avg": 50.00}"#;

    #[test]
    fn cycles_of_cyclictest_in_no_bin_are_beyond_the_last_one() {
        let micros = document(r#""resolution_in_ns": 0,"#, CYCLES);
        assert!(is_detected(&FORMAT, micros.as_bytes()));
        let (block, end) = import(None, &micros).expect("a document");
        assert_eq!(rows(&block), [(2_000, 4), (10_000, 1), (11_000, 3)]);
        assert_eq!((end.facts.cut_off, &*end.facts.tool, end.contradictions.len()), (3, "cyclictest", 0));
        assert_eq!(end.facts.started_ns, Some(1_795_907_734_000_000_000));
        let nanos = import(None, &document(r#""resolution_in_ns": 1,"#, CYCLES)).expect("a document").0;
        assert_eq!(rows(&nanos)[0], (2, 4));
        assert!(import(Some(TimeUnit::Nanos), &micros).is_err_and(|fault| fault.what.contains("in µs, not in ns")));
        let wrong = micros.replace("\"min\": 2", "\"min\": 7");
        assert_eq!(import(None, &wrong).expect("a document").1.contradictions.len(), 1);
        let empty = document("", r#""0": {"histogram": {}, "cycles": 9}"#);
        assert!(import(None, &empty).is_err_and(|fault| fault.hint.is_some_and(|hint| hint.contains("-h US"))));
        assert!(import(None, &micros[..99]).is_err_and(|fault| fault.column.is_some()));
    }

    #[test]
    fn the_last_bin_of_oslat_has_what_is_beyond_it() {
        let text =
            document("", r#""0": {"min": 23, "avg": 47.3, "max": 17606215, "histogram": {"0.500": 13, "1.000": 7}}"#);
        let (block, end) = import(None, &text).expect("a document");
        assert_eq!((rows(&block), end.facts.cut_off, &*end.facts.tool), (vec![(500, 13), (1_000, 7)], 7, "oslat"));
        assert_eq!((end.facts.resolution_ns.map(|step| step.0), end.contradictions.len()), (Some(500), 0));
    }
}
