//! Tests of the parser of tables.

use super::super::testing::{is_detected, read};
use super::super::{LogBlock, LogEnd, format_of};
use super::heading::unit_named;
use super::*;

/// The log of a round trip experiment.
const LOG: &str = "id,roundtrip_time [s]\n   0, 0.000296000\n   1, 0.000283123\n   2, 0.001000000\n";

/// Options as they are typed: `--column 2 --unit ms`.
fn typed(line: &str) -> LogOptions {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut options = LogOptions::default();
    for pair in words.chunks(2) {
        let text = Some(pair[1].replace('_', " "));
        match pair[0] {
            "--unit" => options.unit = unit_named(pair[1]),
            "--column" => options.column = text,
            "--count-column" => options.count_column = text,
            _ => options.lost = text,
        }
    }
    options
}

fn read_csv(options: &LogOptions, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
    read("csv", options, false, text.as_bytes())
}

fn fault(line: &str, text: &str) -> LogFault {
    read_csv(&typed(line), text).expect_err(text)
}

/// Numbers and values of a log; a lost probe is -1.
#[track_caller]
fn rows_of(line: &str, text: &str) -> Vec<(u64, i64)> {
    let (block, _) = read_csv(&typed(line), text).expect(text);
    block.values.iter().map(|row| (row.seq.expect("a number"), row.value_ns.unwrap_or(-1))).collect()
}

#[test]
fn a_unit_is_that_of_the_heading_or_of_the_user() {
    for heading in ["x [ns]", "x(ns)", "x_ns", "x ns", "X-NS", "x [ nsec ]", "ns", "nanoseconds"] {
        assert_eq!(rows_of("", &format!("id;{heading}\n1;5\n")), [(1, 5)], "{heading}");
    }
    for heading in ["x", "x [class]", "packets/s", "class"] {
        let text = format!("id,{heading}\n1,5\n");
        let fault = fault("", &text);
        assert_eq!((fault.column, fault.hint.as_deref()), (None, Some("add `--unit ns|us|ms|s`")), "{heading}");
        assert_eq!(rows_of("--unit ms", &text), [(1, 5_000_000)]);
    }
    assert!(read_csv(&typed("--unit ms"), LOG).is_err(), "two units");
    assert!(read_csv(&typed("--unit s"), LOG).is_ok());
}

#[test]
fn a_column_is_found_by_its_heading_or_number() {
    let text = "time_s,Up [us],down_us,x\n1,2,3,4\n";
    for (column, value) in [("up", 2_000), ("_UP_[us]_", 2_000), ("DOWN", 3_000), ("2", 2_000)] {
        assert_eq!(rows_of(&format!("--column {column}"), text), [(0, value)], "{column}");
    }
    for column in ["left", "0", "5", "-1"] {
        let fault = fault(&format!("--column {column}"), text);
        assert!(fault.what.ends_with("columns: `time_s`, `Up [us]`, `down_us`, `x`"), "{}", fault.what);
    }
    assert!(read_csv(&typed("--column a"), "a_us,a_us\n1,2\n").is_err(), "two of that name");
    let bare = "2026-11-28 13:00:00,192.0.2.2,OK,20.4,38.5\n2026-11-28 13:01:00,192.0.2.2,OK,21.4,39.5\n";
    assert_eq!(rows_of("--column 4 --unit ms", bare), [(0, 20_400_000), (1, 21_400_000)]);
    for text in ["1 0.5\n2 0.7\n", "  1   0.5\n  2\t0.7\n", "n  rtt\n1  0.5\n2  0.7\n"] {
        let values: Vec<i64> = rows_of("--column 2 --unit ms", text).iter().map(|row| row.1).collect();
        assert_eq!(values, [500_000, 700_000], "blanks separate: {text}");
        assert!(is_detected("csv", text.as_bytes()), "{text}");
    }
}

#[test]
fn a_column_is_chosen_only_if_it_is_the_only_one() {
    for text in [
        "seq,timestamp,x_us\n4,99,5\n",
        "count,x_us\n4,5\n",
        "time [us]\n5\n",
        "x_us\n5\n",
        "time,x_us\n7,5\n",
        "host,state,x_us\na,ok,5\n",
    ] {
        assert_eq!(rows_of("", text)[0].1, 5_000, "{text}");
    }
    for text in ["a_us,b_us\n1,2\n", "x_us,count\n1,2\n", "id,time_us\n1,2\n", "id,seq\n1,2\n", "1;2\n3;4\n"] {
        let fault = fault("--unit us", text);
        assert!(fault.column.is_none() && fault.hint.is_some_and(|hint| hint.contains("--column")), "{text}");
    }
    assert!(fault("", "1;2\n").what.ends_with("columns: 1, 2"));
}

#[test]
fn a_histogram_has_its_counts_in_another_column() {
    let text = "time,core1\n0,0\n1,0\n2,4\n3,1\n";
    let hint = fault("--unit us", text).hint.expect("a hint");
    assert!(hint.contains("--count-column"), "{hint}");
    for line in ["--count-column core1 --unit us", "--column 1 --count-column 2 --unit us"] {
        let (block, _) = read_csv(&typed(line), text).expect("a histogram");
        let bins: Vec<_> = block.values.iter().map(|row| (row.value_ns, row.count)).collect();
        assert_eq!(bins, [(Some(2_000), 4), (Some(3_000), 1)], "{line}");
    }
    assert_eq!(fault("--count-column core1 --unit us", "time,core1\n1,x\n").column, Some(3));
    assert_eq!(rows_of("--unit us", "time,x\n0,5\n1,2.5\n2,7\n").len(), 3, "no counts");
}

#[test]
fn a_lost_probe_is_a_row_without_a_value() {
    let text = "id,rtt_ms\n1,1.5\n2,\n3,2.5\n";
    assert_eq!(rows_of("", text), [(1, 1_500_000), (2, -1), (3, 2_500_000)]);
    let (_, end) = read_csv(&LogOptions::default(), text).expect("a log");
    assert_eq!((end.facts.states_losses, end.skipped, end.others.count), (Some(true), 0, 0));
    for cell in ["timeout", "Timeout", "*", "NaN", "-nan", "-1", "-0.5", "\"\""] {
        assert_eq!(rows_of("", &format!("id,rtt_ms\n1,{cell}\n2,5\n"))[0], (1, -1), "{cell}");
    }
    let (_, end) = read_csv(&LogOptions::default(), "id,rtt_ms\n1,-1\n2,5\n").expect("a log");
    assert!(end.facts.notes[0].starts_with("1 negative number"), "{:?}", end.facts.notes);
    assert_eq!(rows_of("--lost -,gone", "id,x_us\n1,-\n2,GONE\n3,-5\n"), [(1, -1), (2, -1), (3, -5_000)]);
    assert_eq!(rows_of("--lost 9999", "id,rtt_ms\n1,1.5\n2,9999\n")[1], (2, -1));
    assert_eq!(rows_of("--column 2", "id,rtt_ms,timeout\n1,5,0\n"), [(1, 5_000_000)], "a heading");
    let (_, gap) = read_csv(&LogOptions::default(), "id,rtt_ms\n1,5\n2,\n5,6\n").expect("a log");
    assert_eq!((gap.facts.states_losses, gap.facts.missing_ids), (None, 2), "losses are not known");
    let word = fault("", "id,rtt_ms\n1,5\n2,gone\n");
    assert_eq!((word.line, word.hint.as_deref()), (Some(3), Some("if it stands for a lost probe: `--lost 'gone'`")));
    assert!(!fault("", "id,rtt_ms\n1,5\n2,inf\n").is_skippable, "the slowest ones");
}

#[test]
fn text_around_the_table_is_skipped_and_counted() {
    let text = "Measured in a lab, by us\n\n# c\nid,rtt_us\n1,5\n2,6\n\nmean,5.5\n2 probes, no losses\nid,rtt_us\n";
    assert_eq!(rows_of("", text), [(1, 5_000), (2, 6_000)]);
    let (_, end) = read_csv(&LogOptions::default(), text).expect("a log");
    let lines: Vec<u64> = end.others.first.iter().map(|(line, _)| *line).collect();
    assert_eq!((end.others.count, lines), (4, vec![1, 8, 9, 10]));
    let inside = fault("", "host,rtt_us\na,5\nb,dead\nc,6\n");
    assert_eq!((inside.line, &*inside.what), (Some(3), "`dead` is not a number"), "it is not behind the table");
    assert_eq!(rows_of("", "id,x_us\n1,2,\n3,4,\n").len(), 2, "a delimiter at the end");
}

#[test]
fn a_column_of_averages_or_halves_is_refused_unless_it_is_named() {
    let known = "avg_rtt_us;rttAvg [us];min_us;rtt max us;median_us;rtt p99.9 [us];99% (us);95th_us;rtt-stddev-us";
    for heading in known.split(';').chain(["half_rtt_us", "RTT/2 [us]", "rtt / 2 us"]) {
        let text = format!("id,{heading}\n1,5\n");
        let fault = fault("", &text);
        assert_eq!((fault.line, fault.column), (Some(1), None), "{heading}");
        assert!(fault.what.starts_with(&format!("the column `{heading}` has statistics (`")), "{}", fault.what);
        let (block, _) = read_csv(&typed("--column 2"), &text).expect(heading);
        assert_eq!((block.metric, block.values[0].value_ns), (Some(Metric::Delay), Some(5_000)), "{heading}");
    }
    for heading in ["minute_us", "maximal_us", "p1_us", "x/20 us", "meaning_us", "stdout_us"] {
        assert!(read_csv(&LogOptions::default(), &format!("id,{heading}\n1,5\n")).is_ok(), "{heading}");
    }
}

#[test]
fn a_column_by_itself_is_detected_by_a_heading() {
    for text in ["rtt_us\n10\n20\n", "rtt [s]\n0,000296\n0,000301\n", "\"rtt (ms)\"\n\"10\"\nx\n", "# c\nus\n1"] {
        assert!(is_detected("csv", text.as_bytes()), "{text}");
    }
    for text in ["dear diary, late by us", "it was late by us\n", "it was late, by us\nand the cat, too\n"] {
        assert!(!is_detected("csv", text.as_bytes()), "prose: {text}");
    }
    assert!(is_detected("csv", b"rtt\n10\n20\n") && !is_detected("csv", b"rtt\n"));
    assert_eq!(fault("", "rtt\n10\n20\n").hint.as_deref(), Some("add `--unit ns|us|ms|s`"));
    assert_eq!(rows_of("", "rtt [s]\n0,000296\n0,000301\n"), [(0, 296_000), (1, 301_000)], "decimal commas");
    assert_eq!(
        fault("--column 2 --unit ns", "1,1x\n2,13\n3,14\n").line,
        Some(1),
        "a damaged row is not taken for a heading"
    );
}

#[test]
fn cells_may_be_in_quotes() {
    let text = "\"id\";\"x; the \"\"second\"\" [us]\"\n\"1\"; \"2.5\" \n2;\"3\"\n";
    assert_eq!(rows_of("", text), [(1, 2_500), (2, 3_000)]);
    let pipes = "id,rtt_us,note\n1,2,a 5\" pipe\n2,3,\"lines\nwith, a comma\nin it\"\n3,4,x\n";
    assert_eq!(rows_of("--column rtt", pipes), [(1, 2_000), (2, 3_000), (3, 4_000)]);
    assert_eq!(fault("--column 2", "id;x_us;y\n1;2;\"z\n5;6;7\n").what, "a quote is not closed");
}

#[test]
fn a_bad_row_is_a_fault_with_its_column_or_skipped() {
    for (line, column, what) in [
        ("3", 2, "1 cell instead of 2"),
        ("3, 4, 5", 7, "3 cells instead of 2"),
        ("3, x", 4, "`x` is not a number"),
        ("1x,1", 1, "`1x` is not a whole number"),
        ("3,1\u{2}", 3, "`1\\u{2}` is not a number"),
    ] {
        let text = [LOG, "# comment\n\n", line].concat();
        let fault = fault("", &text);
        assert_eq!((fault.line, fault.column, &*fault.what), (Some(7), Some(column), what), "{line}");
        let (block, end) = read("csv", &LogOptions::default(), true, text.as_bytes()).expect(line);
        assert_eq!((block.values.len(), end.skipped, end.first_skipped), (3, 1, Some(fault)));
    }
}

#[test]
fn decimal_commas_are_read_where_no_comma_separates() {
    let text = "Time;RTT (ms)\n0,000;12,5\n1,000;13,75\n";
    assert_eq!(rows_of("", text), [(0, 12_500_000), (1, 13_750_000)]);
    assert_eq!(rows_of("--column 2", text).len(), 2);
    let (_, end) = read_csv(&LogOptions::default(), text).expect("a log");
    assert_eq!(end.facts.notes, ["commas of values were read as decimal commas"]);
    for text in ["id\tx [s]\n1\t0,5\n", "id x_s\n1 0,5\n", "\"id\",\"x_s\"\n\"1\",\"0,5\"\n"] {
        assert_eq!(rows_of("", text), [(1, 500_000_000)], "{text}");
    }
    assert_eq!(rows_of("", "x_ms;y\n1,234;a\n"), [(0, 1_234_000)], "semicolons stand where a comma is in numbers");
    for (text, line, what) in [
        ("seq,latency_us\n1,999.5\n2,998.0\n3,\"1,234.5\"\n", 4, "`1,234.5` has separators of thousands"),
        ("id\tx_us\n1\t1,234\n", 2, "`1,234` has a decimal comma or a separator of thousands"),
        ("id;x_us\n1;2.5\n2;1,234\n", 3, "`1,234` has a decimal comma or a separator of thousands"),
        ("id;x_us\n1;2,5\n2;1.234\n", 2, "`2,5` is not a number"),
        ("seq,x_us\n1,5\n2,1,234.5\n", 3, "3 cells instead of 2"),
    ] {
        let fault = fault("", text);
        assert_eq!((fault.line, &*fault.what), (Some(line), what), "{text}");
        assert!(fault.hint.is_some() && !fault.is_skippable, "without such rows the tail is missing: {text}");
        assert!(read("csv", &LogOptions::default(), true, text.as_bytes()).is_err(), "{text}");
    }
    for text in ["0,5\n0,6\n", "# c\n12,25\r\n1,5\r\n"] {
        assert!(is_detected("csv", text.as_bytes()), "{text}");
        let fault = fault("--unit ms", text);
        assert!(fault.what.starts_with("the commas may be decimal commas"), "{fault:?}");
    }
    assert_eq!(rows_of("--column 2 --unit ms", "0,5\n0,6\n"), [(0, 5_000_000), (1, 6_000_000)]);
}

#[test]
fn files_of_tools_are_known_by_their_first_line() {
    let jtl = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,Latency\n\
               1700000000000,12,GET /,200,OK,Thread 1-1,true,500,11\n\
               1700000000020,40,GET /,500,\"no, really\nnot\",Thread 1-1,false,500,39\n";
    let hey = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n\
               0.0049,0.0012,0.0000,0.0001,0.0034,0.0001,200,0.0001\n";
    let vegeta = "1795908119123456789,200,1234567,0,6,,aGk=,,0,GET,http://127.0.0.1/,Q29udA==\n\
                  1795908119223456789,0,2345678,0,0,\"Get \"\"x\"\": refused, twice\",,,1,GET,http://127.0.0.1/,\n";
    for (name, text, values) in [
        ("jmeter", jtl, &[12_000_000, 40_000_000][..]),
        ("hey", hey, &[4_900_000]),
        ("vegeta", vegeta, &[1_234_567, 2_345_678]),
    ] {
        let head = LogHead { bytes: text.as_bytes(), is_whole: true };
        let format = format_of(&head, None).expect(name);
        assert_eq!(format.name, name);
        let (block, end) = read(name, &LogOptions::default(), false, text.as_bytes()).expect(name);
        let found: Vec<_> = block.values.iter().filter_map(|row| row.value_ns).collect();
        assert_eq!((&*found, end.facts.tool.to_lowercase()), (values, name.to_owned()));
    }
}
