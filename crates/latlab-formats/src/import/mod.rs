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
mod plain;
mod rt_tests_json;
mod sockperf;
mod unsampled;
mod utf16;

use std::io::Read;

pub use check::LogTotals;
pub use fault::LogFault;
pub use lines::{LogEnd, LogError};
pub use log::{
    LineParser, LineUse, LogBlock, LogFacts, LogFormat, LogHead, LogOptions, LogReader, LogRows, OpenedLog, OtherLines,
};
pub use utf16::Utf16;

/// Every format, in the order of the documentation.
pub const FORMATS: &[LogFormat] = &[
    csv::FORMAT,
    cyclictest::FORMAT,
    columns::CYCLICTEST,
    fio::FORMAT,
    fio::JSON_FORMAT,
    four_times::FORMAT,
    fping::FORMAT,
    hdr_histogram::FORMAT,
    hdr_percentiles::FORMAT,
    known_csv::HEY,
    iperf3::FORMAT,
    irtt::FORMAT,
    known_csv::JMETER,
    columns::OSLAT,
    perftest::FORMAT,
    perftest::JSON_FORMAT,
    ping::FORMAT,
    ping_windows::FORMAT,
    plain::FORMAT,
    columns::RTLA,
    rt_tests_json::FORMAT,
    sockperf::FORMAT,
    known_csv::VEGETA,
];

/// The format that is called `name`.
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
    let mut agreeing: Vec<&LogFormat> = FORMATS.iter().filter(|format| (format.detects)(head)).collect();
    if agreeing.iter().any(|format| !format.is_generic) {
        agreeing.retain(|format| !format.is_generic);
    } else if let Some(fault) = unsampled::fault_of(head) {
        return Err(fault);
    }
    // Lines around a document, and within it, may look like those of another tool.
    if agreeing.iter().any(|format| matches!(format.reader, LogReader::Document(_))) {
        agreeing.retain(|format| matches!(format.reader, LogReader::Document(_)));
    }
    let names = |formats: &mut dyn Iterator<Item = &LogFormat>| {
        formats.map(|format| format!("`--from {}`", format.name)).collect::<Vec<_>>()
    };
    match agreeing.as_slice() {
        [one] => Ok(one),
        [] => Err(unknown(head, &names(&mut FORMATS.iter()).join(", "))),
        several => Err(LogFault::whole("it may be of several formats")
            .hint(format!("state it: {}", names(&mut several.iter().copied()).join(" or ")))),
    }
}

/// Refuses an option that logs of `format` have no use for.
fn expect_used(format: &LogFormat, options: &LogOptions) -> Result<(), LogFault> {
    let Some(unused) = options.given().find(|option| !format.options.contains(option)) else { return Ok(()) };
    let using = FORMATS.iter().filter(|format| format.options.contains(&unused));
    let names: Vec<_> = using.map(|format| format!("`{}`", format.name)).collect();
    Err(LogFault::whole(format!("`{unused}` has no meaning for this format: {}", format.title))
        .hint(format!("leave it out; formats that use it: {}", names.join(", "))))
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
    rows: LogRows<'_>,
) -> Result<LogEnd, LogError> {
    expect_used(format, options)?;
    lines::read(format, input, options, skip_bad, rows)
}

/// Refuses lines that end with a carriage return alone, which outnumber the other ends: a line may have one within it.
fn expect_line_ends(head: &LogHead<'_>) -> Result<(), LogFault> {
    let text = head.bytes.trim_ascii();
    let lone = memchr::memchr_iter(b'\r', text).filter(|at| text.get(at + 1) != Some(&b'\n')).count();
    match !head.is_json() && lone > memchr::memchr_iter(b'\n', text).count() {
        true => Err(LogFault::whole("its lines end with a carriage return alone (`\\r`)")
            .hint("`tr '\\r' '\\n' < FILE | latlab import -`")),
        false => Ok(()),
    }
}

/// The number of the line that does not end within `head`, if there are too few lines in front of it to find a format by them.
fn endless_line(head: &LogHead<'_>) -> Option<usize> {
    let start = memchr::memrchr(b'\n', head.bytes).map_or(0, |end| end + 1);
    let (lines, rest) = head.bytes.split_at(start);
    let is_row = |line: &[u8]| !matches!(line.trim_ascii(), [] | [b'#', ..]);
    let is_early = lines.split(|byte| *byte == b'\n').filter(|line| is_row(line)).count() <= 1;
    let is_endless = !head.is_whole && !head.is_json() && is_early && (start == 0 || is_row(rest));
    is_endless.then(|| memchr::memchr_iter(b'\n', lines).count() + 1)
}

/// The fault of a log whose format none agrees with, of `all`.
fn unknown(head: &LogHead<'_>, all: &str) -> LogFault {
    if head.bytes.trim_ascii().is_empty() {
        let what = format!("its first {} bytes are blank", head.bytes.len());
        return LogFault::whole(what).hint(format!("remove them, or state the format: {all}"));
    }
    if let Some(line) = endless_line(head) {
        let what = format!("line {line} does not end within the first {} bytes", head.bytes.len());
        return LogFault::whole(what).hint(format!("write each row on a line of its own, or state the format: {all}"));
    }
    if csv::has_numbers_below_a_line(head) {
        return LogFault::whole("its format is unknown: the numbers are below a heading without a unit")
            .hint(format!("`--from csv --unit ns|us|ms|s` takes them as a column; other formats: {all}"));
    }
    LogFault::whole("its format is unknown").hint(format!("state it: {all}"))
}

/// The beginnings of files that are not text, and what to do with them.
const NO_TEXT: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "it is compressed by gzip", "`gunzip -c FILE | latlab import -`"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd", "`zstd -dc FILE | latlab import -`"),
    (b"\xfd7zXZ", "it is compressed by xz", "`xz -dc FILE | latlab import -`"),
    (b"BZh", "it is compressed by bzip2", "`bunzip2 -c FILE | latlab import -`"),
    (b"PAR1", "it is a Parquet file", "logs are text; recordings of latlab need no import"),
];

/// Refuses a log that is empty or not text, or whose lines end with a carriage return alone.
///
/// # Errors
/// What it is instead.
pub fn expect_text(head: &LogHead<'_>) -> Result<(), LogFault> {
    if head.is_whole && head.bytes.trim_ascii().is_empty() {
        return Err(LogFault::whole("it is empty"));
    }
    match NO_TEXT.iter().find(|(start, ..)| head.bytes.starts_with(start)) {
        Some((_, what, hint)) => Err(LogFault::whole(*what).hint(*hint)),
        None if head.bytes.contains(&0) => Err(LogFault::whole("it is binary").hint("logs are text")),
        None => expect_line_ends(head),
    }
}

/// What the parsers are tested with.
#[cfg(test)]
mod testing {
    use super::*;

    /// The rows and the end of `text` as a log of `format`.
    pub(super) fn read(
        format: &LogFormat,
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
        match read_log(format, &mut input, options, skip_bad, LogRows::new(3, &mut pass)) {
            Ok(end) => Ok((all, end)),
            Err(LogError::Fault(fault)) => Err(fault),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Whether `format` and no other detects `text`.
    pub(super) fn is_detected(format: &LogFormat, text: &[u8]) -> bool {
        let head = LogHead { bytes: text, is_whole: true };
        format_of(&head, None).is_ok_and(|found| found.name == format.name)
    }
}

#[cfg(test)]
mod tests {
    use super::lines::LINE_BYTES_MAX;
    use super::testing::read;
    use super::*;
    use crate::units::human::TimeUnit;

    fn micros() -> LogOptions {
        LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() }
    }

    #[test]
    fn a_line_that_is_too_long_is_a_fault_whether_or_not_it_ends() {
        for end in ["", "\n", "\n1\n"] {
            for (length, is_read) in [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)] {
                let text = ["7\n#", &"x".repeat(length - 1), end].concat();
                match read(&plain::FORMAT, &micros(), true, text.as_bytes()) {
                    Ok((block, _)) => assert!(is_read && block.values[0].value_ns == Some(7_000), "{length} {end:?}"),
                    Err(fault) => {
                        assert_eq!((is_read, fault.line, fault.column), (false, Some(2), None), "{length} {end:?}");
                        assert_eq!(fault.what, "a line has more than 1048576 bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn a_log_whose_format_is_unknown_has_its_cause() {
        let fault = |bytes: &[u8], is_whole| format_of(&LogHead { bytes, is_whole }, None).expect_err("unknown");
        let long = vec![b'1'; 1 << 16];
        let endless = fault(&long, false);
        assert_eq!(endless.what, "line 1 does not end within the first 65536 bytes");
        assert!(endless.hint.expect("a hint").starts_with("write each row on a line of its own"));
        assert_eq!(fault(&[b"{", &*long].concat(), false).what, "its format is unknown", "a document");
        for (text, line) in [("rtt_us\r\n", 2), ("# c\n\nrtt_us\n#\n", 5)] {
            let endless = fault(&[text.as_bytes(), &*long].concat(), false);
            assert!(endless.what.starts_with(&format!("line {line} does not end within the first ")), "{endless:?}");
        }
        assert_eq!(fault(&[b"dear diary\nit was late\n", &*long].concat(), false).what, "its format is unknown");
        let blank = [b' '; 1 << 16];
        assert_eq!(fault(&blank, false).what, "its first 65536 bytes are blank");
        assert!(fault(&blank, false).hint.is_some_and(|hint| hint.contains("--from numbers")));
        assert_eq!(fault(&blank, true).what, "it is empty");
        for returns in ["rtt_us\r1\r2\r", "# c\nid,rtt_us\r1,5\r2,6\r\n", "1\r2"] {
            for typed in [None, Some(&csv::FORMAT)] {
                let head = LogHead { bytes: returns.as_bytes(), is_whole: true };
                let fault = format_of(&head, typed).expect_err("old line ends");
                assert_eq!(fault.what, "its lines end with a carriage return alone (`\\r`)", "{returns:?}");
            }
        }
        for returns in ["1\r\r\n2\r\r\n", "PING a\n\r1/1 packets, 0% loss\n", "12\r", "{\r\"irtt\": 1\r}"] {
            assert!(format_of(&LogHead { bytes: returns.as_bytes(), is_whole: true }, None).is_ok(), "{returns:?}");
        }
        let heading = fault(b"rtt\n10\n20\n", true);
        assert_eq!(heading.what, "its format is unknown: the numbers are below a heading without a unit");
        assert!(heading.hint.expect("a hint").starts_with("`--from csv --unit "));
        assert_eq!(fault(b"dear diary\nit was late\n", true).what, "its format is unknown");
    }

    #[test]
    fn an_option_without_a_meaning_for_the_format_is_refused_before_the_log_is_read() {
        let column = LogOptions { column: Some("2".into()), ..micros() };
        let fault = read(&plain::FORMAT, &column, true, b"x").expect_err("an option of csv");
        assert_eq!(fault.what, "`--column` has no meaning for this format: one number on each line");
        assert_eq!(fault.hint.as_deref(), Some("leave it out; formats that use it: `csv`"));
        let fault = read(&sockperf::FORMAT, &micros(), true, b"").expect_err("a unit");
        assert!(fault.what.starts_with("`--unit` has no meaning for this format: full log of sockperf"), "{fault:?}");
        let direction = LogOptions { direction: Some("read".into()), ..LogOptions::default() };
        let fault = read(&csv::FORMAT, &direction, true, b"a_us\n1\n").expect_err("a direction");
        assert!(fault.hint.expect("a hint").ends_with(": `fio`, `fio-json`"));
    }

    #[test]
    fn each_option_of_a_format_is_a_known_one() {
        let some = Some("1".to_owned());
        let all = LogOptions {
            column: some.clone(),
            count_column: some.clone(),
            lost: some.clone(),
            metric: Some(crate::metric::Metric::Delay),
            direction: some,
            ..micros()
        };
        let all: Vec<_> = all.given().collect();
        assert_eq!(all, ["--unit", "--column", "--count-column", "--lost", "--metric", "--direction"]);
        assert!(FORMATS.iter().all(|format| format.options.iter().all(|option| all.contains(option))));
        assert!(LogOptions::default().given().next().is_none());
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused_or_read() {
        let column = |number: &str| LogOptions { column: Some(number.into()), ..micros() };
        for (bytes, what) in [(&b""[..], "it is empty"), (b"\x1f\x8b\x08\0\0", "it is compressed by gzip")] {
            assert_eq!(expect_text(&LogHead { bytes, is_whole: true }).expect_err(what).what, what);
        }
        let mut endless = std::io::repeat(b'1');
        let mut pass = |_: &LogBlock| Ok(());
        for (format, options) in
            [(&plain::FORMAT, micros()), (&csv::FORMAT, column("1")), (&ping::FORMAT, LogOptions::default())]
        {
            let fault =
                read_log(format, &mut endless, &options, true, LogRows::new(3, &mut pass)).expect_err("endless");
            let is_bounded = matches!(&fault, LogError::Fault(fault) if fault.what.contains(" bytes"));
            assert!(is_bounded, "{fault:?}");
        }
        let deep = [&b"{\"round_trips\": "[..], &b"[".repeat(100_000)].concat();
        assert!(read(&irtt::FORMAT, &LogOptions::default(), false, &deep).is_err());
        let wide = "1,".repeat(99_999) + "7\n";
        let (block, _) = read(&csv::FORMAT, &column("100000"), false, wide.as_bytes()).expect("100,000 columns");
        assert_eq!(block.values[0].value_ns, Some(7_000));
        let fault =
            read(&csv::FORMAT, &column("2"), false, "name,".repeat(100_000).as_bytes()).expect_err("a long heading");
        assert!(fault.what.starts_with("its first 262144 bytes have no row"), "{fault:?}");
    }

    #[test]
    fn outputs_without_samples_are_named() {
        for (text, named, option) in [
            ("sockperf: ====> avg-latency=10.0\nsockperf: ---> <MAX> observation =   12.4\n", "sockperf", "--full-log"),
            ("seq=0 rtt=151µs rd=90.5µs sd=61µs ipdv=n/a\n", "irtt", "client -o"),
            ("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n", "wrk", "wrk2 --latency"),
            ("tcp_lat:\n    latency  =  8.4 us\n", "qperf", "--full-log"),
            ("MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0\n1 1 10.00 12507.4\n", "netperf", "latlab"),
            ("[1] 2.000  size 12 mean 13us min 4us 50% 5us 90% 10us 99% 12us max 47us cnt 35\n", "ddsperf", "dds"),
            ("  Requests/sec:\t501.68\nResponse time histogram:\n  0.000 [1]\t|x\n", "hey", "hey -o csv"),
            ("HOST: vm   Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- b  0.0%  2  0.1\n", "mtr", "--raw"),
            ("Mtr_Version,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst\nMTR.0.95,b,1,b,0.0,2,0,1,1,1\n", "mtr", "--raw"),
            ("x 0 33000\nh 0 192.0.2.1\np 0 207 33000\n", "mtr", "--raw"),
            ("[ ID] Interval         Bandwidth\n[  1] 0.0000-1.0252 sec   134 KBytes\n", "iperf", "--json"),
            ("metric_name,timestamp,metric_value,check\nhttp_reqs,1700000000,1.0,\n", "k6", "http_req_duration"),
        ] {
            let fault = format_of(&LogHead { bytes: text.as_bytes(), is_whole: true }, None).expect_err(named);
            assert!(fault.what.starts_with(&format!("it is {named}'s ")), "{fault:?}");
            assert!(fault.hint.is_some_and(|hint| hint.contains(option)), "{named}");
        }
    }
}
