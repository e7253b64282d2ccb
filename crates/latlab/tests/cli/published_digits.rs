//! The digits of raw data and of the figures that `latlab check-published` checks: what is exact, rounded, or too large.

use serde_json::json;

use crate::check_published::{checked, direct_and_imported, document, verdicts};
use crate::harness::{Latlab, contains, empty, lacks};

#[test]
fn figures_hold_with_all_digits_that_the_file_has() {
    checked(&[0.2, 0.3, 0.4], "--unit ns", "mean=0.3ns max=0.4ns min=0.2ns", 0);
    let micros = [281.41234, 282.51234, 283.6];
    checked(&micros, "--unit us", "min=281.41234us max=283.60000us median=282.51234us", 0);
    checked(&micros, "--unit us", "min=281.41235us", 1);
    let fine = [0.000123456781, 0.000123456792, 0.000123456787];
    checked(&fine, "", "min=0.000123456781 max=0.000123456792 median=0.000123456787", 0);
    checked(&fine, "", "max=0.000123456793", 1);
    let found = document(&checked(&micros, "--unit us --json", "min=281.41234us", 0));
    assert_eq!(found["figures"][0]["recomputed"], json!(281_412.34));
    // Of the clock of Python, with numbers of 17 digits, of which a double holds 15.
    let seconds = [0.00010514259338378906, 0.00011086463928222656];
    checked(&seconds, "--unit s", "min=105.142593383789us max=110.864639282227us", 0);
    let refused = checked(&seconds, "--unit s", "min=105.14259338378906us", 2);
    assert!(refused.stderr.contains("more digits than are kept, which is 15"), "{}", refused.stderr);
    checked(&[0.1234567890123], "--unit s", "max=0.1234567890123s", 0);
    checked(&[0.1234567890123], "--unit s", "max=0.1234567890124s", 1);
}

#[test]
fn claims_that_differ_by_the_rounding_of_values_alone_are_refused() {
    let check = |text: &str, args: &str, claim: &str| {
        let lab = Latlab::new().file("log", text).line("check-published log").line(args).args(["--claims", claim]);
        lab.stderr(lacks("panicked"))
    };
    let log = "id,rtt_us\n0,281.41234\n1,282.51234\n2,283.6\n";
    let refused = check(log, "", "min=281.41234us").stdout(empty()).stderr(contains("`min=281.41234us`"));
    refused.stderr(contains("finer than 1 ns")).failure(2);
    check(log, "", "min=281.412us").success();
    check(log, "", "min=281.413us").stdout(contains("contradicted")).failure(1);
    // Digits that rounding made hold nothing: 281.4120 is false, and 281.4123 is true.
    for claim in ["min=281.4120us", "min=281.41200us", "min=281.4123us"] {
        check(log, "", claim).stdout(empty()).stderr(contains("finer than 1 ns")).failure(2);
    }
    // Neither those of a mistake: p99 is not the maximum, which is 283.6001.
    let log = "id,rtt_us\n1,281.4123\n2,282.5124\n3,283.6001\n";
    for claim in ["p99=283.6001us", "p99=283.6000us"] {
        check(log, "", claim).stdout(empty()).stderr(contains("finer than 1 ns")).failure(2);
    }
    // Neither does half a nanosecond decide what is published to a nanosecond, nor 1,000 times that of figures in ms.
    let rows = |micros: &[&str]| micros.iter().fold("rtt_us\n".to_owned(), |log, micros| log + micros + "\n");
    let table = [["0.1234"; 6].as_slice(), &["0.1244"; 4]].concat();
    for (micros, claim) in [
        (&table[..], "mean=0.124us"),
        (&table, "mean=123.8us"),
        (&["0.1236", "0.1229", "0.1221"], "max=0.123us"),
        (&["0.1235", "0.1245"], "mean=0.125us"),
    ] {
        check(&rows(micros), "", claim).stdout(empty()).stderr(contains("finer than 1 ns")).failure(2);
    }
    check(&rows(&table), "", "mean=0.12us max=0.12us").success();
    for claim in ["mean=0.124us", "mean=0.1238us"] {
        check(&table.join("\n"), "--unit us", claim).success();
    }
    check("281.41234\n282.51234\n283.6\n", "--unit us", "min=281.4120us").stdout(contains("contradicted")).failure(1);
    let wide = "4000000000.5\n0.0000000000123\n";
    check(wide, "", "min=0.0000000000000").stdout(empty()).stderr(contains("more digits than are kept")).failure(2);
    check(wide, "", "max=4000000000.5").success();
    let refused = check(wide, "", "min=0.0000000000123").stdout(empty());
    refused.stderr(contains("the values have more digits than are kept")).failure(2);
}

#[test]
fn distinct_values_of_rounded_rows_decide_no_claim() {
    let rows: Vec<String> = (0..10).map(|step| format!("120.000{step}")).chain(vec!["130.0001".into(); 50]).collect();
    let text = rows.join("\n");
    let check = |text: &str, args: &str| {
        let lab = Latlab::new().file("log", text).line("check-published log --claims mean=120.91us");
        lab.line(args)
    };
    check(&format!("rtt_us\n{text}"), "").stdout(empty()).stderr(contains("finer than 1 ns")).failure(2);
    check(&text, "--unit us").stdout(contains("explained")).failure(1);
}

#[test]
fn noise_of_doubles_does_not_count_as_digits_below_a_nanosecond() {
    let log = "id,rtt_us\n0,282.894\n1,306.0\n2,262.37199999999996\n3,2.8137200000000007e2\n";
    let claims = "min=262.372us max=306.000us mean=283.1595us median=282.133us sd=17.861us";
    direct_and_imported(log, "", "", claims, 0);
}

#[test]
fn claims_beside_an_undecided_one_have_their_verdicts() {
    let log = "id,rtt_us\n0,281.41234\n1,282.51234\n2,283.6\n";
    let check = |claims: &str, args: &str| {
        Latlab::new().file("log", log).line("check-published log").args(["--claims", claims]).line(args)
    };
    let claims = "min=281.4120us max=283.6us median=282.5120us mean=290us";
    let named = contains("cannot check the claims `min=281.4120us` and `median=282.5120us`");
    let shown = check(claims, "").stderr(named).stdout(contains("holds")).stdout(contains("contradicted"));
    shown.stdout(lacks("281.4")).failure(2);
    let found = document(&check(claims, "--json").stderr(contains("`median=282.5120us`")).failure(2));
    assert_eq!(
        (verdicts(&found, "figures"), &found["all_hold"]),
        (vec!["holds".into(), "contradicted".into()], &json!(false))
    );
    let undecided = |at: usize| [&found["undecided"][at]["claim"], &found["undecided"][at]["reason"]];
    assert_eq!(undecided(0), [&json!("min=281.4120us"), &json!("too-fine")], "{found:#}");
    assert_eq!(undecided(1)[0], &json!("median=282.5120us"));
    // An undecided quantile stays a possible maximum, and a claim that fails is named although another one is undecided.
    let text = check("p75=283.0562us max=283.056us", "").stderr(contains("claim `p75=283.0562us`")).failure(2).stdout;
    assert!(text.contains("explained by 1") && text.contains("what is called maximum is p75"), "{text}");
    // Losses and units that the data do not state leave the others their verdicts as well.
    let text = check("lost=0 loss=0% mean=282.5us max=7", "").stdout(contains("holds")).failure(2);
    assert!(text.stderr.contains("the claims `lost=0`, `loss=0%` and `max=7`"), "{}", text.stderr);
    let none = document(&check("lost=0", "--json").failure(2));
    assert_eq!((&none["figures"], &none["undecided"][0]["reason"]), (&json!([]), &json!("losses-unknown")));
}

#[test]
fn packet_ids_are_exact_beside_rounded_values() {
    let rows = |first: usize| (0..400).map(move |row| (first + row, format!("{}.{:05}", 110 + row, 69_751 + 7 * row)));
    let log = |first| rows(first).fold("id,rtt_us\n".to_owned(), |log, (id, micros)| log + &format!("{id},{micros}\n"));
    for (first, claim) in [(0, "min=127ns"), (0, "min=1ns"), (1, "min=127ns"), (1, "min=1ns")] {
        let lab = Latlab::new().file("log", log(first)).line("check-published log --claims").arg(claim);
        lab.stdout(contains("contradicted")).failure(1);
    }
    // The remedy of an undecided claim decides it.
    let refused = Latlab::new().file("log", log(1)).line("check-published log --claims min=110.697ns").failure(2);
    assert!(refused.stderr.contains("one number on each line"), "{}", refused.stderr);
    let numbers = rows(1).fold(String::new(), |text, (_, micros)| text + &micros + "\n");
    let lab = Latlab::new().file("log", numbers).line("check-published log --unit us --claims min=110.697ns");
    lab.stdout(contains("explained by 1")).failure(1);
}

#[test]
fn logs_without_digits_below_a_nanosecond_are_exact() {
    let reply = |seq: u64| format!("64 bytes from 10.0.0.7: icmp_seq={seq} ttl=64 time=0.0{} ms\n", 30 + seq);
    let ping = format!(
        "PING 10.0.0.7 (10.0.0.7) 56(84) bytes of data.\n{}\n--- 10.0.0.7 ping statistics ---\n\
         5 packets transmitted, 5 received, 0% packet loss, time 4003ms\n",
        (1..=5).map(reply).collect::<String>()
    );
    let found = direct_and_imported(&ping, "", "", "mean=33.0003us max=35us", 1);
    assert_eq!(verdicts(&found, "figures"), ["contradicted", "holds"]);
    direct_and_imported(&ping, "", "", "mean=33.0000us max=35.00000us", 0);
    direct_and_imported("id,rtt_ns\n0,500\n1,701\n", "", "", "mean=600.5ns mean=600.50ns", 0);
    direct_and_imported("id,rtt_us\n0,0.500\n1,0.70100\n", "", "", "mean=600.50ns max=701.00ns", 0);
    direct_and_imported("0, 500, 0, 4096, 0\n1, 701, 0, 4096, 0\n", "", "", "mean=600.50ns", 0);
}

#[test]
fn numbers_that_do_not_fit_are_refused_with_line_and_value() {
    let check = |text: &str, args: &str| {
        let lab = Latlab::new().file("log.txt", text).line("check-published log.txt --claims n=3").line(args);
        lab.stdout(empty()).stderr(contains("cannot check figures of `log.txt`"))
    };
    let seconds = "# a comment\n1\n1e10\n3e10\n";
    check(seconds, "--unit s").stderr(contains("line 3: 10000000000 s is not a time below 146 years")).failure(2);
    check(seconds, "--unit s").stderr(contains("check the unit")).failure(2);
    check("1e20\n2e20\n3e20\n", "").stderr(contains("line 1: 1e20 is not a number below 2^62")).failure(2);
    let numbers = (1..=10_000).fold(String::new(), |text, number| text + &format!("{number} 5\n\n"));
    check(&(numbers + "1 -7e18\n"), "-C 2").stderr(contains("line 20001: -7e18 is")).failure(2);
    let stdin =
        Latlab::new().line("check-published - --unit s --claims n=2").file("n", "5\n2e10\n").stdin("n").stdout(empty());
    stdin.stderr(contains("number 2: 20000000000 s")).failure(2);
    let huge = Latlab::new().file("log.txt", seconds).line("check-published log.txt --unit ns --claims max=30s");
    huge.line("--claims n=3").success();
}
