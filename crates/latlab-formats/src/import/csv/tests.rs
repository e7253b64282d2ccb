//! Tests of the parser of CSV files.

use super::super::testing::{is_detected, read};
use super::super::{LogBlock, LogEnd};
use super::*;

/// The log of a round trip experiment.
const LOG: &str = "id,roundtrip_time [s]\n   0, 0.000296000\n   1, 0.000283123\n   2, 0.001000000\n";

fn options(column: &str, unit: Option<TimeUnit>) -> LogOptions {
    LogOptions { column: Some(column.to_owned()).filter(|name| !name.is_empty()), unit, ..LogOptions::default() }
}

fn read_csv(options: &LogOptions, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
    read(&FORMAT, options, false, text.as_bytes())
}

/// Numbers and values of a log that needs no option.
fn rows_of(options: &LogOptions, text: &str) -> Vec<(u64, i64)> {
    let (block, _) = read_csv(options, text).expect(text);
    let row = |row: &LoggedValue| (row.seq.expect("a number"), row.value_ns.expect("a value"));
    block.values.iter().map(row).collect()
}

#[test]
fn a_padded_log_with_ids_has_its_values_in_order() {
    assert_eq!(rows_of(&LogOptions::default(), LOG), [(0, 296_000), (1, 283_123), (2, 1_000_000)]);
    assert_eq!(rows_of(&LogOptions::default(), &LOG.replace('\n', "\r\n")).len(), 3);
    let (block, end) = read_csv(&LogOptions::default(), LOG).expect("a log");
    assert_eq!((&*end.facts.tool, end.facts.metric), ("csv", Some(Metric::RoundTripDelay)));
    assert!(block.values.iter().all(|row| row.count == 1));
}

#[test]
fn ids_that_repeat_or_run_backwards_are_numbered_on() {
    let text = "id,rtt_us\n7,1\n9,2\n9,3\n3,4\n5,5\n";
    let numbers: Vec<u64> = rows_of(&LogOptions::default(), text).iter().map(|row| row.0).collect();
    assert_eq!(numbers, [7, 9, 10, 11, 13]);
    let (_, end) = read_csv(&LogOptions::default(), text).expect("a log");
    assert_eq!((end.facts.irregular_ids, end.facts.missing_ids), (2, 2));
    let text = "a,rtt_us\n7,1\n7,2\n";
    assert_eq!(rows_of(&options("rtt", None), text), [(0, 1_000), (1, 2_000)]);
    let (_, end) = read_csv(&options("rtt", None), text).expect("a log without ids");
    assert_eq!((end.facts.irregular_ids, end.facts.missing_ids), (0, 0));
}

#[test]
fn a_unit_is_that_of_the_heading_or_of_the_user() {
    for heading in ["x [ns]", "x(ns)", "x_ns", "x ns", "X-NS", "x [ nsec ]", "ns", "nanoseconds"] {
        assert_eq!(rows_of(&LogOptions::default(), &format!("id;{heading}\n1;5\n")), [(1, 5)], "{heading}");
    }
    for heading in ["x [us]", "x (\u{b5}s)", "x [\u{3bc}s]", "x_us"] {
        assert_eq!(rows_of(&LogOptions::default(), &format!("id\t{heading}\n1\t5\n")), [(1, 5_000)], "{heading}");
    }
    for heading in ["x", "x [class]", "packets/s", "class"] {
        let text = format!("id,{heading}\n1,5\n");
        let fault = read_csv(&LogOptions::default(), &text).expect_err(heading);
        assert_eq!((fault.column, fault.hint.as_deref()), (None, Some("add `--unit ns|us|ms|s`")), "{heading}");
        assert_eq!(rows_of(&options("", Some(TimeUnit::Millis)), &text), [(1, 5_000_000)]);
    }
    assert!(read_csv(&options("", Some(TimeUnit::Millis)), LOG).is_err(), "two units");
    assert!(read_csv(&options("", Some(TimeUnit::Seconds)), LOG).is_ok());
}

#[test]
fn the_unit_and_the_digits_below_a_nanosecond_are_stated() {
    for (text, stated, finer) in [
        ("id,x_ms\n1,5\n2,0.000001\n", TimeUnit::Millis, false),
        ("id,x_us\n1,281.41234\n2,7\n", TimeUnit::Micros, true),
    ] {
        let (_, end) = read_csv(&LogOptions::default(), text).expect("a log");
        assert_eq!((end.facts.value_unit, end.facts.finer_digits), (Some(stated), Some(finer)), "{text}");
    }
}

#[test]
fn a_column_is_found_by_its_heading_or_number() {
    let text = "time_s,Up [us],down_us,\"3\"\n1,2,3,4\n";
    for (column, value) in [("up", 2_000), (" UP [us] ", 2_000), ("down_us", 3_000), ("down", 3_000), ("2", 2_000)] {
        assert_eq!(rows_of(&options(column, None), text), [(0, value)], "{column}");
    }
    assert_eq!(rows_of(&options("3", Some(TimeUnit::Nanos)), text), [(0, 4)], "a heading goes before a number");
    for column in ["left", "0", "5", "-1"] {
        let fault = read_csv(&options(column, None), text).expect_err(column);
        assert!(fault.what.ends_with("columns: `time_s`, `Up [us]`, `down_us`, `3`"), "{}", fault.what);
    }
    assert!(read_csv(&options("a", None), "a_us,a_us\n1,2\n").is_err(), "two of that name");
}

#[test]
fn a_column_is_chosen_only_if_it_is_the_only_one() {
    for text in ["seq,timestamp,x_us\n4,99,5\n", "count,x_us\n4,5\n", "time [us]\n5\n", "x_us\n5\n", "time,x_us\n7,5\n"]
    {
        assert_eq!(rows_of(&LogOptions::default(), text)[0].1, 5_000, "{text}");
    }
    for text in ["a_us,b_us\n1,2\n", "x_us,count\n1,2\n", "id,time_us\n1,2\n", "id,seq\n1,2\n", "1;2\n3;4\n"] {
        let fault = read_csv(&options("", Some(TimeUnit::Micros)), text).expect_err(text);
        assert!(fault.column.is_none() && fault.hint.is_some_and(|hint| hint.contains("--column")), "{text}");
    }
    let fault = read_csv(&LogOptions::default(), "1;2\n").expect_err("two columns");
    assert!(fault.what.ends_with("columns: 1, 2"), "{}", fault.what);
    assert_eq!(rows_of(&options("2", Some(TimeUnit::Nanos)), "1;2\n3;4\n"), [(0, 2), (1, 4)]);
}

#[test]
fn the_metric_is_that_of_the_user_or_of_the_heading() {
    for (heading, metric) in [
        "rtt_us",
        "RTT [us]",
        "Round Trip [us]",
        "round-trip_time (us)",
        "roundtrip_delay_us",
        "Round  Trip Latency us",
    ]
    .map(|heading| (heading, Metric::RoundTripDelay))
    .into_iter()
    .chain(["x_us", "rtts_lost_us", "round_us", "rtt_to_server_us"].map(|heading| (heading, Metric::Delay)))
    {
        let text = format!("id,{heading}\n1,5\n");
        let given = LogOptions { metric: Some(Metric::WakeupLatency), ..LogOptions::default() };
        for (options, metric) in [(LogOptions::default(), metric), (given, Metric::WakeupLatency)] {
            let (block, end) = read_csv(&options, &text).expect("a log");
            assert_eq!((block.metric, end.facts.metric), (Some(metric), Some(metric)));
        }
    }
}

#[test]
fn a_column_of_averages_or_halves_is_refused_unless_it_is_named() {
    for (heading, figures) in [
        ("avg_rtt_us", "averages"),
        ("rttAvg [us]", "averages"),
        ("Mean RTT (us)", "averages"),
        ("min_us", "minima"),
        ("rtt max us", "maxima"),
        ("median_us", "quantiles"),
        ("p99_us", "quantiles"),
        ("rtt p99.9 [us]", "quantiles"),
        ("99% (us)", "quantiles"),
        ("99th_us", "quantiles"),
        ("rtt-stddev-us", "deviations"),
    ] {
        let text = format!("id,{heading}\n1,5\n");
        let fault = read_csv(&LogOptions::default(), &text).expect_err(heading);
        assert_eq!((fault.line, fault.column), (Some(1), None), "{heading}");
        assert_eq!(fault.what, format!("the column `{heading}` has {figures}, not samples"));
        let (block, _) = read_csv(&options(heading, None), &text).expect(heading);
        assert_eq!((block.metric, block.values[0].value_ns), (Some(Metric::Delay), Some(5_000)), "{heading}");
    }
    for heading in ["half_rtt_us", "RTT/2 [us]", "rtt / 2 us"] {
        let text = format!("id,{heading}\n1,5\n");
        let fault = read_csv(&LogOptions::default(), &text).expect_err(heading);
        assert_eq!(fault.what, format!("the column `{heading}` has halves, not whole values"));
        assert_eq!(read_csv(&options("2", None), &text).expect(heading).0.metric, Some(Metric::Delay));
        let whole = LogOptions { metric: Some(Metric::RoundTripDelay), ..options("2", None) };
        assert_eq!(read_csv(&whole, &text).expect(heading).0.metric, Some(Metric::RoundTripDelay));
    }
    for heading in ["minute_us", "maximal_us", "p1_us", "x/20 us", "meaning_us", "stdout_us", "path_us"] {
        assert!(read_csv(&LogOptions::default(), &format!("id,{heading}\n1,5\n")).is_ok(), "{heading}");
    }
}

#[test]
fn a_damaged_first_row_is_a_fault_and_not_a_header() {
    let second = options("2", Some(TimeUnit::Nanos));
    for text in ["1,1x\n2,13\n3,14\n", "1,nan\n2,13\n3,14\n", "1;\n2;13\n3;14\n"] {
        let fault = read_csv(&second, text).expect_err(text);
        assert_eq!((fault.line, fault.column), (Some(1), Some(3)), "{text}: {}", fault.what);
        let (block, end) = read(&FORMAT, &second, true, text.as_bytes()).expect(text);
        assert_eq!((block.values.len(), end.skipped), (2, 1), "{text}");
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    let one = options("", Some(TimeUnit::Nanos));
    assert_eq!(read_csv(&one, "1x\n13\n").expect_err("one column").line, Some(1));
    assert_eq!(rows_of(&second, "\"2024\",\"x\"\n2,13\n"), [(0, 13)]);
    assert_eq!(rows_of(&second, "size,\"64\"\n2,13\n"), [(0, 13)]);
}

#[test]
fn a_value_that_is_not_finite_or_damaged_is_not_a_heading() {
    let micros = options("", Some(TimeUnit::Micros));
    for value in ["nan", "NaN", "-nan", "+NAN", "inf", "-Inf", "INFINITY", "+infinity", "\"nan\"", "-5x", "+7us"] {
        let text = format!("# c\n{value}\n5\n6\n");
        let fault = read_csv(&micros, &text).expect_err(value);
        let bare = value.trim_matches('"');
        assert_eq!((fault.line, fault.what), (Some(2), format!("`{bare}` is not a number")));
        let (block, end) = read(&FORMAT, &micros, true, text.as_bytes()).expect(value);
        assert_eq!((block.values.len(), end.skipped), (2, 1), "{value}");
    }
    let second = options("2", Some(TimeUnit::Micros));
    for text in ["nan,inf\n1,5\n", "1,5e-3;x\n1;5\n"] {
        assert_eq!(read_csv(&second, text).expect_err(text).line, Some(1), "{text}");
    }
    assert!(is_detected(&FORMAT, b"nan,5\n1,5\n2,5\n"));
    assert_eq!(rows_of(&second, "inf,rtt\n1,5\n"), [(0, 5_000)], "beside the heading of the values it is one");
    let fault = read_csv(&options("1", Some(TimeUnit::Micros)), "nan,timeout\n12,ok\n").expect_err("a row");
    assert_eq!((fault.line, &*fault.what), (Some(1), "`nan` is not a number"));
    assert_eq!(rows_of(&second, "nanos,information\n1,5\n"), [(0, 5_000)], "headings that begin alike");
}

#[test]
fn a_column_by_itself_is_detected_by_a_heading_with_a_unit() {
    for text in ["rtt_us\n10\n20\n", "rtt [s]\n0,000296\n0,000301\n", "\"rtt (ms)\"\n\"10\"\nx\n", "# c\nus\n1"] {
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    for text in ["rtt_us\n", "id,rtt_us\n", "# c\nid, \"round trip [us]\"", "id, rtt (us)\n"] {
        assert!(is_detected(&FORMAT, text.as_bytes()), "it has no rows: {text}");
    }
    for text in ["dear diary, late by us", "it was late by us\n", "it was late, by us\nand the cat, too\n"] {
        assert!(!is_detected(&FORMAT, text.as_bytes()), "prose: {text}");
    }
    for text in ["rtt\n10\n", "rtt\n", "rtt_us\nx\n10\n20\n", "rtt us\n10 20\n", "5 ms\n10\n", "[us]\n10\n"] {
        assert!(!is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    assert_eq!(rows_of(&LogOptions::default(), "rtt_us\n10\n20"), [(0, 10_000), (1, 20_000)]);
    let fault = read_csv(&LogOptions::default(), "rtt [s]\n0,000296\n").expect_err("a decimal comma");
    assert!(fault.hint.is_some_and(|hint| hint.contains("point")));
}

#[test]
fn cells_may_be_in_quotes() {
    let text = "\"id\";\"x; the \"\"second\"\" [us]\"\n\"1\"; \"2.5\" \n2;\"3\"\n";
    assert_eq!(rows_of(&LogOptions::default(), text), [(1, 2_500), (2, 3_000)]);
    for (line, column) in [("\"1;2", 1), ("1;\"2", 3), ("\"1\"x;2", 4), ("\"1\";\"y\"", 6), ("\"1\";2;\"3\"", 8)] {
        let fault = read_csv(&LogOptions::default(), &[text, line].concat()).expect_err(line);
        assert_eq!((fault.line, fault.column), (Some(4), Some(column)), "{line}: {}", fault.what);
    }
}

#[test]
fn a_bad_line_is_a_fault_with_its_column_or_skipped() {
    for (line, column, what) in [
        ("3", 2, "1 cell instead of 2"),
        ("3,4,5", 5, "3 cells instead of 2"),
        ("3,", 3, "a cell without a value"),
        ("3, ", 4, "a cell without a value"),
        ("3, x", 4, "`x` is not a number"),
        ("x,1", 1, "`x` is not a whole number"),
        (",1", 1, "`` is not a whole number"),
        ("3,nan", 3, "`nan` is not a number"),
        ("\u{1},\u{2}", 3, "`\\u{2}` is not a number"),
    ] {
        let text = [LOG, "# comment\n\n", line].concat();
        let fault = read_csv(&LogOptions::default(), &text).expect_err(line);
        assert_eq!((fault.line, fault.column, &*fault.what), (Some(7), Some(column), what), "{line}");
        let (block, end) = read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect(line);
        assert_eq!((block.values.len(), end.skipped, end.first_skipped), (3, 1, Some(fault)));
    }
}

#[test]
fn a_decimal_comma_is_a_fault_with_a_hint() {
    for (text, column) in
        [("id;x [s]\n1;0,5\n", 3), ("id\tx [s]\n1\t0,5\n", 3), ("id,x [s]\n1,0,5\n", 5), ("x [s]\n0,5\n", 3)]
    {
        let fault = read_csv(&LogOptions::default(), text).expect_err(text);
        assert_eq!((fault.line, fault.column), (Some(2), Some(column)), "{text}");
        assert!(fault.hint.is_some_and(|hint| hint.contains("point")), "{text}");
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    for text in ["id,x [s],y\n1,0,5,7\n", "id,x [s],y [s]\n1,0,5,0,7\n2,0,5,7\n"] {
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    for text in ["id,x [s]\n1, 0, 5\n", "id,x [s]\n1,0,5,7,9\n", "id,x [s]\n1.5,0.5,7\n", "id\tx [s]\n1\t0\t5\n"] {
        assert!(!is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
}

#[test]
fn one_decimal_comma_on_each_line_is_not_taken_for_two_columns() {
    let millis = options("", Some(TimeUnit::Millis));
    for text in ["0,5\n0,6\n", "# c\n-12,25\r\n1,5\r\n", "+0,5\n+0,7\n", "1,5e-3\n2,5e-3\n"] {
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
        let fault = read_csv(&millis, text).expect_err(text);
        assert!(fault.what.starts_with("the commas may be decimal commas"), "{fault:?}");
        let hint = fault.hint.expect("a hint");
        assert!(hint.find("point").is_some_and(|point| hint.find("--column").is_some_and(|at| point < at)), "{hint}");
    }
    assert_eq!(rows_of(&options("2", Some(TimeUnit::Millis)), "0,5\n0,6\n"), [(0, 5_000_000), (1, 6_000_000)]);
    for text in ["0, 5\n", "0.1,5\n", "1,2,3\n", "1;2\n"] {
        let fault = read_csv(&millis, text).expect_err(text);
        assert!(fault.what.starts_with("which column has the values is not clear"), "{fault:?}");
    }
}

#[test]
fn text_in_utf_16_and_binary_junk_are_faults_and_an_empty_file_has_no_rows() {
    let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for text in [&utf_16[..], b"\x7fELF\0\0,\0\n", b"\xff\xfe,\xfd\n\x80,;\n"] {
        assert!(read(&FORMAT, &LogOptions::default(), false, text).is_err() && !is_detected(&FORMAT, text));
    }
    for text in ["", "\n# x\n", "id,x_us\n"] {
        assert!(read_csv(&LogOptions::default(), text).expect("no rows").0.is_empty());
    }
}

#[test]
fn files_with_cells_are_detected_and_those_of_other_formats_are_not() {
    for text in [
        LOG,
        "1;2\n3;4\n",
        "# c\na\tb\n1\t2",
        "\"a\",\"b\"\n\"1\",x\n",
        "1,2,3,4\n5,6,7,8\n",
        "1, 0.5",
        "1,2\n3\n",
        "1,2\n3,x\n",
    ] {
        assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "a,b\n",
        "a,b_us\nc,d\n",
        "x\n1\n",
        "1\n2\n",
        "1,2\n3\n4\n5\n",
        "1, 2 3\n",
        "a,b\nc,d\n",
        "1, 22000, 0, 4096\n1, 25000, 1, 4096\n",
        "0, 22000, 0, 4096, 8192, 0\n",
        "packet, txTime(sec), rxTime(sec)\n1, 0.5, 0.6\n",
        "#[StartTime: 1.5 (seconds since epoch)]\n1.5,1.0,2.5,HISTF\n",
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n1,2,3,HIST\n",
        "# Histogram\n000000 000001\t000000\n# Total: 000000001 000000000\n",
        "{\"a\": 1, \"b\": 2}\n",
        "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.\n1 packets transmitted, 1 received\n",
    ] {
        assert!(!is_detected(&FORMAT, text.as_bytes()), "{text}");
    }
}
