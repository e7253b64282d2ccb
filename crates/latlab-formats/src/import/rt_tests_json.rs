//! The histograms of `cyclictest -h US --json=FILE` and `oslat --json=FILE`, counted together:
//! `{"thread": {"0": {"histogram": {"2": 4, "3": 1}, "cycles": 5, "min": 2, "max": 3, "avg": 2.2}}}`
//!
//! Values of cyclictest are in us, with `-N` in ns; its latencies beyond the histogram are the cycles that are in no bin. Values of
//! oslat are upper edges in us, and its last bin has all beyond it; with bins of parts of a us its extremes are in ns.

use super::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;

use super::columns::{Columns, Total};

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
    max: Option<f64>,
}

pub(super) fn read(input: &mut Documents<'_>, options: &LogOptions, rows: &mut LogRows<'_>) -> ReadLog {
    let document: Document = input.read_one()?;
    let is_cyclictest = document.thread.values().any(|thread| thread.cycles.is_some());
    let (tool, metric) = if is_cyclictest { ("cyclictest", Metric::WakeupLatency) } else { ("oslat", Metric::Delay) };
    let unit = if document.resolution_in_ns == Some(1) { TimeUnit::Nanos } else { TimeUnit::Micros };
    unit_of(Some(unit), options.unit)?;
    if document.thread.values().all(|thread| thread.histogram.is_empty()) {
        return Err(LogFault::whole("the document has no values").hint("repeat with `-h US`, above the latencies"));
    }
    let mut columns = columns_of(&document, unit, is_cyclictest)?;
    rows.are_of(metric);
    let facts = columns.pass(tool, unit, rows)?;
    let started = document.start_time.as_deref().and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
    Ok(LogFacts {
        version: document.version,
        started_ns: started.and_then(|at| i64::try_from(at.timestamp().as_nanosecond()).ok()),
        ..facts
    })
}

fn columns_of(document: &Document, unit: TimeUnit, is_cyclictest: bool) -> Result<Columns, LogFault> {
    let mut columns = Columns { is_open: !is_cyclictest, ..Columns::default() };
    let mut bins: BTreeMap<i64, u64> = BTreeMap::new();
    let mut sums = Vec::new();
    let mut is_finer = false;
    for thread in document.thread.values() {
        for (label, count) in &thread.histogram {
            is_finer |= label.contains('.');
            let bin = bins.entry(LogField { text: label.as_bytes(), column: 1 }.time(unit)?).or_default();
            *bin = bin.saturating_add(*count);
        }
        sums.push(thread.histogram.values().fold(0, |sum: u64, count| sum.saturating_add(*count)));
    }
    for (value_ns, count) in &bins {
        columns.bin(*value_ns, &[*count])?;
    }
    columns.sums = sums;
    let extremes_ns = if is_finer { 1.0 } else { unit.nanos() };
    for (place, thread) in document.thread.values().enumerate() {
        let mut state =
            |total: Total, figure: Option<f64>| columns.totals[total as usize].push(figure.map(|ns| ns as i64));
        state(Total::Min, thread.min.map(|min| min * extremes_ns));
        state(Total::Max, thread.max.map(|max| max * extremes_ns));
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
        read_log("rt-tests-json", &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(i64, u64)> {
        block.values.iter().map(|row| (row.value_ns.expect("a value"), row.count)).collect()
    }

    const CYCLES: &str = r#""0": {"histogram": {"2": 4, "10": 1}, "cycles": 7, "min": 2, "max": 40, "avg": 12.2, "cpu": 0},
        "1": {"histogram": {      }, "cycles": 1, "min": 50, "max": 50, "avg": 50.00}"#;

    #[test]
    fn cycles_of_cyclictest_in_no_bin_are_beyond_the_last_one() {
        let micros = document(r#""resolution_in_ns": 0,"#, CYCLES);
        assert!(is_detected("rt-tests-json", micros.as_bytes()));
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
}
