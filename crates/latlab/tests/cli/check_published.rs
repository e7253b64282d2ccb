//! `latlab check-published`: samples with the faults of published experiments, made here, and a recording.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Finished, Latlab, check_schema, contains, empty, lacks};

/// Numbers between 0 and 1 without a trend, the same in every test.
fn noise(step: u64) -> f64 {
    let mixed = (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let sorted = sorted(values);
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

fn lines(values: &[f64]) -> String {
    values.iter().fold(String::new(), |mut text, value| {
        writeln!(text, "{value}").expect("a string takes it");
        text
    })
}

fn document(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "check-published/1");
    document
}

/// The verdicts of the document's figures.
fn verdicts(document: &Value) -> Vec<String> {
    let own = document["figures"].as_array().expect("a list").iter();
    own.map(|one| one["verdict"].as_str().expect("a word").to_owned()).collect()
}

/// The codes of the mistakes that explain most figures.
fn mistakes(document: &Value) -> Vec<String> {
    let own = document["mistakes"][0]["mistakes"].as_array().expect("a mistake").iter();
    own.map(|one| one["code"].as_str().expect("a word").to_owned()).collect()
}

/// The check of the figures `claims` of `values` in a file, which ends with `code`.
#[track_caller]
fn checked(values: &[f64], args: &str, claims: &str, code: i32) -> Finished {
    let lab = Latlab::new().file("log.txt", lines(values)).line("check-published log.txt").line(args);
    lab.args(["--claims", claims]).failure(code)
}

#[test]
fn ids_in_the_table_halve_every_mean() {
    // Lesson A. Delays of 1.2 ms and more, in ns, beside ids from 1 on.
    let delays: Vec<f64> = (0..10_000).map(|step| (1.2e6 - 2.4e6 * noise(step).ln()).round()).collect();
    let both: Vec<f64> = delays.iter().copied().chain((1..=10_000).map(f64::from)).collect();
    let ms = |value: f64| format!("{:.3}ms", value / 1e6);
    let claims = format!(
        "avg={} p99.9={} p99={} max={} min=1ns n=10000",
        ms(mean(&both)),
        ms(quantile(&both, 0.999)),
        ms(quantile(&both, 0.99)),
        ms(quantile(&both, 1.0))
    );
    let log = delays.iter().enumerate().fold(String::new(), |log, (id, delay)| log + &format!("{},{delay}\n", id + 1));
    let check = |form: &str| {
        let lab = Latlab::new().file("log.csv", &log).line("check-published log.csv -d , -C 2 --id-column 1 --unit ns");
        lab.line(form).args(["--claims", &claims])
    };
    let found = document(&check("--json").failure(1));
    let explained = "explained";
    assert_eq!(verdicts(&found), [explained, explained, explained, "holds", explained, "holds"]);
    assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
    assert!(found["mistakes"][0]["chance"].as_f64().is_some_and(|chance| chance < 1e-4), "{found:#}");
    // n is that of the values, which the table with ids has twice.
    assert_eq!(found["mistakes"][0]["against"], json!([5]));
    let text = check("").stdout(contains("explained by 1")).stdout(contains("packet ids")).failure(1);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    // Without the ids no mistake fits.
    let without = Latlab::new().file("log.csv", &log).line("check-published log.csv -d , -C 2 --unit ns --json");
    let found = document(&without.args(["--claims", &claims]).failure(1));
    assert_eq!(verdicts(&found)[0], "contradicted", "{found:#}");
}

/// The check of `claims` about the file `log` with `text`, as it is and imported with `--unit` and the like of `import`: the two
/// documents, whose sources alone may differ.
#[track_caller]
fn direct_and_imported(text: &str, import: &str, args: &str, claims: &str, code: i32) -> Value {
    let ran = Latlab::new().file("log", text).line("import log -o recording").line(import).success();
    let check = |path: &str| {
        let lab = Latlab::at(ran.directory()).arg("check-published").arg(path).line(args).line("--json");
        let mut found = document(&lab.args(["--claims", claims]).failure(code));
        found["source"].take();
        found
    };
    let (direct, imported) = (check("log"), check("recording"));
    assert_eq!(direct, imported, "{direct:#} {imported:#}");
    direct
}

/// Delays of about `centre` with a long tail.
fn delays(n: u64, centre: f64) -> impl Iterator<Item = i64> {
    (0..n).map(move |step| (centre * (0.8 - 0.25 * noise(step).ln())) as i64)
}

#[test]
fn ids_among_halves_less_dwell_are_found_in_a_four_times_log() {
    // Lesson A. The table held ids from 1 on, and ((t4 − t1) − (t3 − t2)) / 2.
    let dwell = |step: u64| 9_000 + (noise(step + 77) * 90_000.0) as i64;
    let (mut log, mut both) = (String::from("# id t1 t2 t3 t4\n"), Vec::new());
    for (step, delay) in (0_u64..).zip(delays(10_000, 7.2e6)) {
        let (sent, arrived) = (step as i64 * 20_000_000, step as i64 * 20_000_000 + 7_000_000_000);
        let (answered, received) = (arrived + dwell(step), sent + delay + dwell(step));
        writeln!(log, "{} {sent} {arrived} {answered} {received}", step + 1).expect("a string takes it");
        both.extend([(step + 1) as f64, delay as f64 / 2.0]);
    }
    let ms = |value: f64| format!("{:.3}ms", value / 1e6);
    let claims = format!(
        "avg={} p99.9={} p99={} max={} min=1ns",
        ms(mean(&both)),
        ms(quantile(&both, 0.999)),
        ms(quantile(&both, 0.99)),
        ms(quantile(&both, 1.0))
    );
    let found = direct_and_imported(&log, "", "", &claims, 1);
    assert_eq!(mistakes(&found), ["dwell-subtracted", "half-round-trip", "ids-included"], "{found:#}");
    // 1 ns is one digit, which many combinations have: it is explained by what the other figures prove.
    assert_eq!(verdicts(&found), ["explained"; 5], "{found:#}");
    let alone = direct_and_imported(&log, "", "", "min=1ns", 1);
    assert_eq!(verdicts(&alone), ["contradicted"], "{alone:#}");
    // With the stated definition one mistake is left, and the maximum holds.
    let stated = "--half --metric round_trip_delay_less_dwell";
    let found = direct_and_imported(&log, "", stated, &claims, 1);
    assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
    assert_eq!(verdicts(&found)[3..], ["holds", "explained"], "{found:#}");
}

#[test]
fn distinct_values_are_found_in_a_csv_with_ids() {
    // Lesson C, in the form of the log: ids that are padded, and seconds.
    let typical = |step: u64| 240_000 + 1_000 * (noise(step) * 60.0) as i64;
    let rare = |step: u64| if step.is_multiple_of(50) { (noise(step + 5) * 9e6) as i64 } else { 0 };
    let nanos: Vec<i64> = (0..20_000).map(|step| typical(step) + rare(step)).collect();
    let log = nanos
        .iter()
        .enumerate()
        .fold(String::from("id,roundtrip_time [s]\n"), |log, (id, nanos)| log + &format!("{id:8},0.{nanos:09}\n"));
    let mut distinct: Vec<f64> = nanos.iter().map(|nanos| *nanos as f64).collect();
    let true_mean = mean(&distinct) / 1e3;
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let (min, max) = (distinct[0] / 1e3, distinct[distinct.len() - 1] / 1e3);
    let claims = format!("min={min:.0}us max={max:.0}us mean={:.1}us", mean(&distinct) / 1e3);
    let found = direct_and_imported(&log, "", "", &claims, 1);
    assert_eq!(verdicts(&found), ["holds", "holds", "explained"], "{found:#}");
    assert_eq!(mistakes(&found), ["distinct-values"], "{found:#}");
    direct_and_imported(&log, "", "", &format!("min={min:.0}us mean={true_mean:.1}us n=20000"), 0);
}

#[test]
fn halves_of_a_log_of_perftest_hold_and_their_extreme_quantiles_are_unsupported() {
    // Lesson D. The log has whole microseconds of half round trips.
    let halves: Vec<f64> = delays(5_000, 60.0).map(|micros| micros as f64).collect();
    let log = halves
        .iter()
        .enumerate()
        .fold(String::from("Sample Number, Value\n"), |log, (number, micros)| log + &format!("{number}, {micros}\n"));
    let figures = |factor: f64| {
        format!(
            "avg={:.3}us min={:.1}us p90={:.1}us p99.99={:.2}us",
            factor * mean(&halves),
            factor * quantile(&halves, 0.0),
            factor * quantile(&halves, 0.9),
            factor * quantile(&halves, 0.9999)
        )
    };
    for args in ["", "--half"] {
        let found = direct_and_imported(&log, "", args, &figures(1.0), 1);
        assert_eq!(verdicts(&found), ["holds", "holds", "holds", "unsupported"], "{found:#}");
    }
    let found = direct_and_imported(&log, "", "", &figures(2.0), 1);
    assert_eq!(mistakes(&found), ["whole-round-trip"], "{found:#}");
    assert_eq!(verdicts(&found)[0], "explained", "{found:#}");
    direct_and_imported("Sample Number, Value\n0, 31\n1, 29\n2, 33\n", "", "", "mean=31.0us n=3 max=33us", 0);
}

#[test]
fn a_log_and_its_recording_get_the_same_verdicts() {
    let late = (0..100).fold(String::new(), |log, step| log + &format!("0: {step}: {}\n", 1_035 + step % 7));
    let totals = "T: 0 (28056) P: 0 I:1000000 C:    100 Min:   1035 Act: 1036 Avg: 1037 Max:    1041\n";
    direct_and_imported(&(late + totals), "", "", "min=1035us", 0);
    let ping = "PING 10.0.0.7 (10.0.0.7) 56(84) bytes of data.\n\
                64 bytes from 10.0.0.7: icmp_seq=1 ttl=64 time=0.250 ms\n\
                64 bytes from 10.0.0.7: icmp_seq=3 ttl=64 time=0.350 ms\n\n\
                --- 10.0.0.7 ping statistics ---\n\
                4 packets transmitted, 2 received, 50% packet loss, time 3003ms\n";
    direct_and_imported(ping, "", "", "n=4 lost=2 mean=0.300ms", 0);
    direct_and_imported(ping, "", "", "mean=0.150ms loss=0% p75=0.325ms", 1);
    let ids = "5 1000 0 0 900\n5 2000 0 0 2500\n3 3000 0 0 3100\n4 4000 0 0 4900\n";
    direct_and_imported(ids, "", "", "n=4 min=-100ns mean=200ns", 1);
    let numbers = lines(&(0..500).map(|step| (60_000.0 - 30_000.0 * noise(step).ln()).round()).collect::<Vec<_>>());
    direct_and_imported(&numbers, "--unit ns", "--unit ns", "mean=45us min=30us max=9ms", 1);
    let columns = numbers.lines().fold(String::from("a,b_ns\n"), |text, line| text + &format!("7,{line}\n"));
    let metric = "--column b_ns --metric round_trip_delay";
    direct_and_imported(&columns, metric, metric, "mean=45us min=30us", 1);
}

#[test]
fn claims_about_losses_that_a_log_does_not_state_are_refused() {
    let refused = |text: &str, import: &str, args: &str, claims: &str, said: &str| {
        let ran = Latlab::new().file("log", text).line("import log -o recording").line(import).success();
        for path in ["log", "recording"] {
            let lab = Latlab::at(ran.directory()).line("check-published --claims").arg(claims).arg(path).line(args);
            lab.stdout(empty()).stderr(contains(said)).stderr(lacks("panicked")).failure(2);
        }
    };
    let csv = "id,rtt_us\n0,5\n1,6\n2,7\n";
    let unstated = "the log does not state losses";
    refused(csv, "", "", "lost=0", unstated);
    refused("5\n6\n", "--unit us", "--unit us", "loss=0%", unstated);
    refused("0, 500, 0, 4096, 0\n1, 700, 0, 4096, 0\n", "", "", "loss=0%", "cannot check the claim `loss=0%`");
    let found = direct_and_imported(csv, "", "", "n=3 mean=6us", 0);
    assert_eq!(found["lost"], json!(null));
    let gaps = "id,rtt_us\n0,5\n1,6\n4,7\n";
    refused(gaps, "", "", "n=3", "leave out 2 numbers");
    refused("1 1000 0 0 1900\n3 2000 0 0 2500\n", "", "", "n=2", "leave out 1 number,");
    direct_and_imported(gaps, "", "", "mean=6us max=7us", 0);
    let numbers = Latlab::new().file("log.txt", "1 5\n2 6\n5 7\n").line("check-published log.txt --unit us -C 2");
    let numbers = numbers.line("--id-column 1 --claims n=3").stdout(empty());
    numbers.stderr(contains("leave out 2 numbers")).failure(2);
}

#[test]
fn logs_of_fio_are_of_latencies_and_of_one_direction() {
    let log = "0, 500, 0, 4096, 0\n1, 900, 1, 4096, 0\n2, 700, 0, 4096, 0\n3, 800, 1, 4096, 0\n";
    let check = |name: &str, args: &str| Latlab::new().file(name, log).arg("check-published").arg(name).line(args);
    check("io_lat.1.log", "--direction read --claims mean=600ns").arg("--claims").arg("n=2").success();
    check("io_lat.1.log", "--direction write --claims mean=850ns").success();
    check("io_lat.1.log", "--claims mean=600ns").stderr(contains("--direction")).stdout(empty()).failure(2);
    check("io_lat.1.log", "--claims mean=1us --direction up").stderr(contains("--direction")).failure(2);
    for name in ["io_bw.1.log", "io_iops.1.log"] {
        let lab = check(name, "--direction read --claims mean=600ns").stdout(empty());
        lab.stderr(contains("a log of bandwidth or of operations a second")).failure(2);
    }
    let numbers = Latlab::new().file("log.txt", "1\n2\n").line("check-published log.txt --claims n=2 --direction read");
    numbers.stderr(contains("`--direction` cannot go with a file of numbers")).stdout(empty()).failure(2);
}

#[test]
fn the_unit_is_that_of_the_claims_where_a_log_states_its_own() {
    let log = "test was performed using the following parameters: --mps=500 --burst=1 --reply-every=1 --msg-size=100 --time=1\n\
               sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0\n\
               ------------------------------\n\
               packet, txTime(sec), rxTime(sec), latency(usec)\n\
               0, 2.438679646, 2.438705646, 13.000\n1, 2.448679646, 2.448707646, 14.000\n\
               ------------------------------\n";
    direct_and_imported(log, "", "--unit us", "mean=27 max=28us n=2 lost=0", 0);
    direct_and_imported(log, "", "--unit ns", "mean=27000", 0);
}

#[test]
fn the_metric_of_a_log_is_that_which_it_has() {
    let log = "id,roundtrip_time [s]\n0,0.000296000\n1,0.000301500\n";
    for (text, args, said) in [
        (log, "--metric pdv", "a recording of `values` with round_trip_delay"),
        ("Sample Number, Value\n0, 31\n", "--metric delay", "with round_trip_delay"),
    ] {
        let lab = Latlab::new().file("log", text).line("check-published log --claims mean=1us").line(args);
        lab.stdout(empty()).stderr(contains(said)).failure(2);
    }
    let ran = Latlab::new().file("log", log).line("import log -o recording").success();
    let check = Latlab::at(ran.directory()).line("check-published recording --claims mean=1us --metric delay");
    check.stdout(empty()).stderr(contains("a recording of `values` with round_trip_delay")).failure(2);
}

#[test]
fn counts_beyond_the_limit_are_refused_with_the_reason() {
    let histogram = "# Histogram\n000010 100000000000\n# Total: 100000000000\n# Min Latencies: 00010\n\
                     # Avg Latencies: 00010\n# Max Latencies: 00010\n# Histogram Overflows: 00000\n";
    let ran = Latlab::new().file("log", histogram).line("import log -o recording").success();
    for path in ["log", "recording"] {
        let lab = Latlab::at(ran.directory()).line("check-published --claims mean=10us").arg(path);
        let refused = lab.stdout(empty()).stderr(contains("cannot check more than 100,000,000 values")).failure(2);
        assert!(refused.stderr.contains("kept in memory and sorted"), "{}", refused.stderr);
    }
}

#[test]
fn input_that_is_not_text_and_samples_without_a_value_are_refused_with_the_reason() {
    let utf_16: Vec<u8> = [0xff, 0xfe].into_iter().chain("1\n2\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (bytes, args, said) in [
        (&utf_16[..], "", "it is UTF-16"),
        (&utf_16, "-C 1", "latlab check-published -"),
        (b"1\n2\n\x00\x01\n", "--unit us", "it is binary"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "", "it is compressed by gzip"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "--from csv", "gunzip -c FILE | latlab check-published -"),
        (b"", "", "it is empty"),
        (b"\xef\xbb\xbf \n", "", "it is empty"),
        (b"# nothing\n", "", "it has no values"),
        (b"1 2\n3 4\n", "-C 3", "it has no values"),
        (b"id,rtt_us\n", "--from csv", "it has no rows"),
        (b"id,rtt_us\n0,5\n1,x\n2,6\n", "", "`latlab import --skip-bad`"),
    ] {
        let lab = Latlab::new().file("log", bytes).line("check-published log --claims n=1").line(args);
        lab.stdout(empty()).stderr(contains(said)).stderr(lacks("panicked")).failure(2);
    }
}

#[test]
fn ids_in_the_table_count_in_the_unit_of_the_log() {
    // Lesson A with the log of lesson C: ids that are padded, and seconds or milliseconds.
    let nanos: Vec<f64> = delays(4_000, 2.4e5).map(|nanos| nanos as f64).collect();
    for (heading, unit_ns, places) in [("roundtrip_time [s]", 1e9, 9), ("rtt [ms]", 1e6, 6)] {
        let numbers: Vec<f64> = nanos.iter().map(|nanos| nanos / unit_ns).collect();
        let rows =
            (1..).zip(&numbers).fold(String::new(), |log, (id, number)| log + &format!("{id:8},{number:.places$}\n"));
        let both: Vec<f64> = numbers.iter().copied().chain((1..=4_000).map(f64::from)).collect();
        let unit = if unit_ns > 1e6 { "s" } else { "ms" };
        let claims = format!(
            "mean={:.3}{unit} p90={:.1}{unit} max={:.0}{unit} n=4000",
            mean(&both),
            quantile(&both, 0.9),
            quantile(&both, 1.0)
        );
        let found = direct_and_imported(&format!("id,{heading}\n{rows}"), "", "", &claims, 1);
        assert_eq!(verdicts(&found), ["explained", "explained", "explained", "holds"], "{found:#}");
        assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
        let lab = Latlab::new().file("log", &rows).line("check-published log -d , -C 2 --id-column 1 --json");
        let direct = document(&lab.line(&format!("--unit {unit}")).args(["--claims", &claims]).failure(1));
        assert_eq!(mistakes(&direct), ["ids-included"], "{direct:#}");
        let without_unit = format!("id,rtt\n{rows}");
        let stated = format!("--unit {unit}");
        let found = direct_and_imported(&without_unit, &stated, &stated, &claims, 1);
        assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
    }
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/good").join(name)
}

#[test]
fn the_figures_of_a_recording_hold_as_its_summary_states_them() {
    let summary = Latlab::new().line("summary --json").arg(recording("closed")).success().json();
    let figures = &summary["metrics"]["round_trip_delay"];
    let number = |name: &str| figures[name].as_f64().expect("a figure");
    let claims = |half: f64| {
        format!("min={}ns max={}ns mean={:.3}ns", number("min") / half, number("max") / half, number("mean") / half)
    };
    let check = |claims: &str, args: &str| {
        Latlab::new().arg("check-published").arg(recording("closed")).line(args).args(["--claims", claims])
    };
    let n = figures["n"].as_u64().expect("a count");
    check(&format!("{} n={n} stddev={:.3}ns", claims(1.0), number("stddev")), "").success();
    let halved = document(&check(&claims(2.0), "--json").failure(1));
    assert_eq!((verdicts(&halved), mistakes(&halved)), (vec!["explained".into(); 3], vec!["half-round-trip".into()]));
    check(&claims(2.0), "--half").success();
    check("mean=1us", "--metric loss_ratio").stderr(contains("name a delay of it")).failure(2);
    check("mean=1us", "--metric offered_rate").stderr(contains("round_trip_delay")).failure(2);
}

#[test]
fn a_file_of_claims_is_read_like_the_option() {
    let lab =
        Latlab::new().file("log.txt", "1\n2\n3\n").file("table.txt", "# a table\nmin=1 max=3\nmean=2.0 # exact\n");
    let lab = lab.line("check-published log.txt --claims-file table.txt --claims n=3 --json");
    assert_eq!(verdicts(&document(&lab.success())), ["holds"; 4]);
}

#[test]
fn bad_requests_are_refused_with_a_hint() {
    for (args, claims, said) in [
        ("log.txt", "meen=3us", "`mean` is one"),
        ("log.txt", "mean=3us", "have no unit"),
        ("log.txt --unit ms", "mean=1,821ms", "it has a comma"),
        ("log.txt --unit us", "mean=--5us", "it is not a decimal number"),
        ("log.txt --unit us", "a > b", "`latlab compare` says"),
        ("log.txt --unit us --metric pdv", "mean=3", "file of numbers"),
        ("log.txt --id-column 2", "mean=3", "packet ids"),
        ("absent.txt", "mean=3", "no such file"),
        ("log.txt --claims-file absent", "mean=3", "absent"),
    ] {
        let lab =
            Latlab::new().file("log.txt", "1\n2\n3\n").line("check-published").line(args).args(["--claims", claims]);
        lab.stdout(empty()).stderr(contains(said)).stderr(lacks("panicked")).failure(2);
    }
    let lab = Latlab::new().file("log.txt", "1\n2\n").line("check-published log.txt --claims #none");
    lab.stderr(contains("there is nothing to check")).failure(2);
}

#[test]
fn all_digits_of_a_file_count_and_those_that_a_log_loses_are_not_judged() {
    checked(&[0.2, 0.3, 0.4], "--unit ns", "mean=0.3ns max=0.4ns min=0.2ns", 0);
    checked(&[281.41234, 282.51234, 283.6], "--unit us", "min=281.41234us max=283.60000us median=282.51234us", 0);
    checked(&[0.000123456781, 0.000123456792], "", "min=0.000123456781 max=0.000123456792", 0);
    checked(&[0.1234567890123], "--unit s", "max=0.1234567890124s", 1);
    let log = "id,rtt_us\n0,281.41234\n1,282.51234\n2,283.6\n";
    let check = |claims: &str, args: &str| {
        Latlab::new().file("log", log).line("check-published log").args(["--claims", claims]).line(args)
    };
    check("min=281.412us", "").stdout(contains("digits below 1 ns")).success();
    assert_eq!(document(&check("min=281.412us", "--json").success())["rounded"], json!(true));
    let refused = check("max=283.6us min=281.4120us", "").stderr(contains("cannot check the claim `min=281.4120us`"));
    refused.stdout(empty()).failure(2);
}
