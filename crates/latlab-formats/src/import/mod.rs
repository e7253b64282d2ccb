//! Logs of other tools: which format a log has, and its rows. A parser is pure: bytes in, rows or an error with line and
//! column out. Where the rows go is decided by the caller.

mod check;
mod columns;
mod csv;
mod cyclictest;
mod fault;
mod field;
mod fio;
mod form;
mod four_times;
mod fping;
mod hdr_histogram;
mod hdr_percentiles;
mod iperf3;
mod irtt;
mod json;
mod known_csv;
mod lines;
mod log;
mod perftest;
mod ping;
mod ping_windows;
mod prelude;
mod rt_tests_json;
mod sockperf;
mod unsampled;
mod utf16;

use crate::plan::Kind;

use LogReader::{Document, Lines, Table};
pub use check::{LogTotals, OtherLines};
pub use fault::LogFault;
pub use json::Documents;
pub use lines::{LogEnd, LogError, read_log};
pub use log::{
    LineParser, LineUse, LogBlock, LogFacts, LogFormat, LogHead, LogOptions, LogReader, LogRows, OpenedLog, ReadLog,
    TableKind,
};
pub use utf16::from_utf16;

const UNIT: &str = "--unit";
const METRIC: &str = "--metric";
const OF_TABLES: &[&str] = &[UNIT, "--column", "--count-column", "--lost", METRIC];
const CYCLES: LogReader = Lines(|options| columns::open("cyclictest", "# Histogram", options));
const OSLAT: LogReader = Lines(|options| columns::open("oslat", "Core:*", options));
const RTLA: LogReader = Lines(|options| columns::open("rtla", "Index*", options));

/// Every format, in the order of the documentation.
#[rustfmt::skip]
pub const FORMATS: &[LogFormat] = &[
    LogFormat { is_generic: true, ..values("csv", "CSV file with a column of values", OF_TABLES, csv::detects,
        Table(csv::UNKNOWN)) },
    values("cyclictest", "output of cyclictest -v", &[UNIT], cyclictest::detects, Lines(cyclictest::open)),
    values("cyclictest-histogram", "histogram of cyclictest -h", &[UNIT], columns::is_cyclictest, CYCLES),
    values("fio", "latency log of fio", &[UNIT, METRIC, "--direction"],
        |head| log::are_rows(head.lines(), fio::looks_like_row), Lines(fio::open)),
    values("fio-json", "JSON of fio with bins", &[METRIC, "--direction"],
        |head| head.has_document(&["\"fio version\""]), Document(fio::read_json)),
    values("four-times", "four-times log of det-bypass", &[UNIT], four_times::detects, Lines(four_times::open))
        .of(Kind::Ping, false),
    values("fping", "output of fping", &[UNIT], fping::detects, Lines(fping::open)).of(Kind::Values, true),
    values("hdr-histogram", "log of HdrHistogram", &[UNIT, METRIC], hdr_histogram::detects, Lines(hdr_histogram::open)),
    values("hdr-percentiles", "percentile table of HdrHistogram", &[UNIT, METRIC],
        |head| head.lines().any(hdr_percentiles::is_heading), Lines(hdr_percentiles::open)),
    values("hey", "CSV file of hey", &[METRIC], |head| known_csv::begins(head, &["response-time,DNS+dialup,"]),
        Table(known_csv::HEY)),
    values("iperf3", "JSON of iperf3", &[], |head| head.has_document(&["\"iperf 3", "\"bits_per_second\""]),
        Document(iperf3::read)).of(Kind::Stream, true),
    values("irtt", "JSON of irtt", &[], |head| head.has_document(&["\"irtt\":", "\"round_trips\":"]),
        Document(irtt::read)).of(Kind::Ping, true),
    values("jmeter", "JTL file of JMeter", &[METRIC], |head| known_csv::begins(head, &["timeStamp", "elapsed"]),
        Table(known_csv::JMETER)),
    values("latlab", "rows of latlab", &[], |head| known_csv::begins(head, &["_ns,seq,", ",run,recording,"]),
        Table(known_csv::LATLAB)).of(Kind::Values, true),
    values("oslat", "output of oslat", &[UNIT, METRIC], columns::is_oslat, OSLAT),
    values("perftest", "latencies of RTI Perftest", &[UNIT], perftest::detects, Lines(perftest::open)),
    values("perftest-json", "JSON of RTI Perftest", &[], |head| head.has_document(&["\"perftest\":"]),
        Document(perftest::read_json)),
    values("ping", "output of ping", &[UNIT], ping::detects, Lines(ping::open)).of(Kind::Values, true),
    values("ping-windows", "output of ping of Windows", &[UNIT], ping_windows::detects, Lines(ping_windows::open))
        .of(Kind::Values, true),
    LogFormat { is_generic: true, ..values("numbers", "one number on each line", &[UNIT, "--lost", METRIC],
        known_csv::are_numbers, Table(known_csv::NUMBERS)) },
    values("rtla", "histogram of rtla timerlat or osnoise", &[UNIT], columns::is_rtla, RTLA),
    values("rt-tests-json", "JSON of cyclictest or oslat", &[UNIT], |head| head.has_document(&["\"rt_test_version"]),
        Document(rt_tests_json::read)),
    values("sockperf", "full log of sockperf", &[], sockperf::detects, Lines(sockperf::open)).of(Kind::Ping, true),
    values("vegeta", "CSV file of vegeta", &[METRIC], known_csv::is_vegeta, Table(known_csv::VEGETA)),
];

const fn values(
    name: &'static str,
    title: &'static str,
    options: &'static [&'static str],
    detects: fn(&LogHead<'_>) -> bool,
    reader: LogReader,
) -> LogFormat {
    LogFormat { name, title, rows: Kind::Values, is_generic: false, options, states_losses: false, detects, reader }
}

pub fn format_named(name: &str) -> Option<&'static LogFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format of the log that begins with `head`: that of the word `typed`, else the only one that agrees.
///
/// # Errors
/// If the log is not text, no format agrees, or several do.
pub fn format_of(head: &LogHead<'_>, typed: Option<&'static LogFormat>) -> Result<&'static LogFormat, LogFault> {
    expect_text(head)?;
    if let Some(typed) = typed {
        return Ok(typed);
    }
    // Lines around a document, and within it, may look like those of another tool.
    let rank = |format: &&LogFormat| (matches!(format.reader, Document(_)), !format.is_generic);
    let mut agreeing: Vec<&LogFormat> = FORMATS.iter().filter(|format| (format.detects)(head)).collect();
    let best = agreeing.iter().map(rank).max().unwrap_or_default();
    agreeing.retain(|format| rank(format) == best);
    if let Some(fault) = unsampled::fault_of(head).filter(|_| best == (false, false)) {
        return Err(fault);
    }
    let names = |formats: &mut dyn Iterator<Item = &LogFormat>| {
        formats.map(|format| format!("`--from {}`", format.name)).collect::<Vec<_>>()
    };
    match agreeing.as_slice() {
        [one] => Ok(one),
        [] => {
            let hint = "a table is read with `--column N --unit U`; docs/import.md lists the formats, for `--from`";
            Err(LogFault::whole("its format is unknown").hint(hint))
        }
        several => Err(LogFault::whole("it may be of several formats")
            .hint(format!("state it: {}", names(&mut several.iter().copied()).join(" or ")))),
    }
}

const NO_TEXT: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "it is compressed by gzip", "`gunzip -c FILE | latlab import -`"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd", "`zstd -dc FILE | latlab import -`"),
    (b"\xfd7zXZ", "it is compressed by xz", "`xz -dc FILE | latlab import -`"),
    (b"BZh", "it is compressed by bzip2", "`bunzip2 -c FILE | latlab import -`"),
    (b"PAR1", "it is a Parquet file", "logs are text; recordings of latlab need no import"),
];

/// Refuses a log that is empty or not text.
pub fn expect_text(head: &LogHead<'_>) -> Result<(), LogFault> {
    if head.is_whole && head.bytes.trim_ascii().is_empty() {
        return Err(LogFault::whole("it is empty"));
    }
    match NO_TEXT.iter().find(|(start, ..)| head.bytes.starts_with(start)) {
        Some((_, what, hint)) => Err(LogFault::whole(*what).hint(*hint)),
        None if head.bytes.contains(&0) => Err(LogFault::whole("it is binary").hint("logs are text")),
        None if !head.is_json() && head.bytes.contains(&b'\r') && !head.bytes.contains(&b'\n') => {
            Err(LogFault::whole("its lines end with a carriage return alone (`\\r`)")
                .hint("`tr '\\r' '\\n' < FILE | latlab import -`"))
        }
        None => Ok(()),
    }
}

/// What the parsers are tested with.
#[cfg(test)]
mod testing {
    use super::*;

    /// The rows and the end of `text` as a log of `format`.
    pub(super) fn read(
        format: &str,
        options: &LogOptions,
        skip_bad: bool,
        text: &[u8],
    ) -> Result<(LogBlock, LogEnd), LogFault> {
        let mut all = LogBlock::default();
        let mut pass = |block: &LogBlock| {
            all.metric = block.metric;
            all.probes.extend(&block.probes);
            all.values.extend(&block.values);
            all.intervals.extend(&block.intervals);
            Ok(())
        };
        let mut input = text;
        let format = format_named(format).expect("a format");
        match read_log(format, &mut input, options, skip_bad, LogRows::new(3, &mut pass)) {
            Ok(end) => Ok((all, end)),
            Err(LogError::Fault(fault)) => Err(fault),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Whether `format` and no other detects `text`.
    pub(super) fn is_detected(format: &str, text: &[u8]) -> bool {
        let head = LogHead { bytes: text, is_whole: true };
        format_of(&head, None).is_ok_and(|found| found.name == format)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::read;
    use super::*;
    use crate::units::human::TimeUnit;

    fn micros() -> LogOptions {
        LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() }
    }

    #[test]
    fn a_log_whose_format_is_unknown_has_its_cause() {
        for (text, what) in [
            ("dear diary\nit was late\n", "its format is unknown"),
            (" \n\t\n", "it is empty"),
            ("id,rtt_us\r1,5\r", "its lines end with a carriage return alone (`\\r`)"),
        ] {
            let head = LogHead { bytes: text.as_bytes(), is_whole: true };
            assert_eq!(format_of(&head, None).expect_err(text).what, what);
        }
    }

    #[test]
    fn an_option_without_a_meaning_for_the_format_is_refused_before_the_log_is_read() {
        let column = LogOptions { column: Some("2".into()), ..micros() };
        let fault = read("numbers", &column, true, b"x").expect_err("an option of csv");
        assert_eq!(fault.what, "`--column` has no meaning for this format: one number on each line");
        assert_eq!(fault.hint.as_deref(), Some("leave it out"));
        let fault = read("sockperf", &micros(), true, b"").expect_err("a unit");
        assert!(fault.what.starts_with("`--unit` has no meaning for this format: full log of sockperf"), "{fault:?}");
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused_or_read() {
        let column = |number: &str| LogOptions { column: Some(number.into()), ..micros() };
        for (bytes, what) in [(&b""[..], "it is empty"), (b"\x1f\x8b\x08\0\0", "it is compressed by gzip")] {
            assert_eq!(expect_text(&LogHead { bytes, is_whole: true }).expect_err(what).what, what);
        }
        let mut endless = std::io::repeat(b'1');
        let mut pass = |_: &LogBlock| Ok(());
        for (format, options) in [("numbers", micros()), ("csv", column("1")), ("ping", LogOptions::default())] {
            let format = format_named(format).expect("a format");
            let fault =
                read_log(format, &mut endless, &options, true, LogRows::new(3, &mut pass)).expect_err("endless");
            let is_bounded = matches!(&fault, LogError::Fault(fault) if fault.what.contains(" bytes"));
            assert!(is_bounded, "{fault:?}");
        }
        let deep = [&b"{\"round_trips\": "[..], &b"[".repeat(100_000)].concat();
        assert!(read("irtt", &LogOptions::default(), false, &deep).is_err());
        let wide = "1,".repeat(99_999) + "7\n";
        let (block, _) = read("csv", &column("100000"), false, wide.as_bytes()).expect("100,000 columns");
        assert_eq!(block.values[0].value_ns, Some(7_000));
        let fault = read("csv", &column("2"), false, "name,".repeat(100_000).as_bytes()).expect_err("a long heading");
        assert_eq!(fault.what, "its first 262144 bytes have no row");
    }

    #[test]
    fn outputs_without_samples_are_named() {
        for (text, named, option) in [
            ("sockperf: ====> avg-latency=10.0\nsockperf: ---> <MAX> observation =   12.4\n", "sockperf", "--full-log"),
            ("seq=0 rtt=151µs rd=90.5µs sd=61µs ipdv=n/a\n", "irtt", "client -o"),
            ("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n", "wrk", "wrk2 --latency"),
            ("MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0\n1 1 10.00 12507.4\n", "netperf", "latlab"),
            ("[1] 2.000  size 12 mean 13us min 4us 50% 5us 90% 10us 99% 12us max 47us cnt 35\n", "ddsperf", "dds"),
            ("HOST: vm   Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- b  0.0%  2  0.1\n", "mtr", "--raw"),
            ("[ ID] Interval         Bandwidth\n[  1] 0.0000-1.0252 sec   134 KBytes\n", "iperf", "--json"),
            ("metric_name,timestamp,metric_value,check\nhttp_reqs,1700000000,1.0,\n", "k6", "http_req_duration"),
        ] {
            let fault = format_of(&LogHead { bytes: text.as_bytes(), is_whole: true }, None).expect_err(named);
            assert!(fault.what.starts_with(&format!("it is {named}'s ")), "{fault:?}");
            assert!(fault.hint.is_some_and(|hint| hint.contains(option)), "{named}");
        }
    }
}
