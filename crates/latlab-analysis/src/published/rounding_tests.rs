//! Claims that the rounding of values decides, and claims beside them.

use super::tests::{codes, judged, round_trips, verdicts};
use super::*;
use crate::analysis::published::claim::StatedClaims;

#[test]
fn claims_that_rounding_decides_are_refused() {
    let refused =
        |data: &PublishedData, claim: &str| judged(data, claim, Some(TimeUnit::Micros)).map(|check| check.all_hold());
    let log = PublishedData { finer: FinerDigits::Unknown, ..round_trips(vec![281_412, 282_512]) };
    for claim in ["min=281.41234us", "min=281.4116us", "max=282.51185us"] {
        let error = refused(&log, claim).expect_err(claim);
        assert!(error.cause.is_some_and(|cause| cause.contains("finer than 1 ns")) && error.exit_code == 2);
    }
    for (claim, holds) in [("min=281.412us", true), ("min=281.413us", false), ("min=281.4130us", false)] {
        assert_eq!(refused(&log, claim), Ok(holds), "{claim}");
    }
    // A figure that was rounded to them says nothing about finer digits that it has.
    for claim in ["min=281.4120us", "min=281.41200us", "mean=281.9620us"] {
        for finer in [FinerDigits::Unknown, FinerDigits::BelowNanosecond] {
            let error = refused(&PublishedData { finer, ..log.clone() }, claim).expect_err(claim);
            assert!(error.cause.is_some_and(|cause| cause.contains("finer than 1 ns")) && error.exit_code == 2);
        }
    }
    let exact = PublishedData { finer: FinerDigits::Absent, ..log };
    assert_eq!(refused(&exact, "min=281.41234us"), Ok(false));
    let numbers = PublishedData::of_numbers(&[1e10, 0.000000016], None, None).expect("they fit");
    assert_eq!((numbers.values[1], numbers.finer), (2, FinerDigits::Merged));
    let error = refused(&numbers, "min=0.000000016").expect_err("it has finer digits");
    assert!(error.cause.is_some_and(|cause| cause.contains("more digits than are kept")));
    assert_eq!(refused(&numbers, "max=10000000000 mean=5000000000"), Ok(true));
    refused(&numbers, "min=0.0000000200").expect_err("as many digits as are kept, and more");
    assert_eq!(refused(&exact, "min=281.4120us mean=281.9620us"), Ok(true), "whole nanoseconds are exact");
}

#[test]
fn half_a_nanosecond_of_rounding_decides_no_claim() {
    use FinerDigits::{Absent, BelowNanosecond, Unknown};
    let of = |values: &[i64], finer, claim: &str| {
        let data = PublishedData { finer, ..PublishedData::of_values(values.to_vec(), ValueScale::NANOS) };
        judged(&data, claim, None).map(|check| verdicts(&check)[0]).ok()
    };
    // 0.1234 µs six times and 0.1244 µs four times: the mean is 123.8 ns, and that of distinct values is not 124 ns.
    let table = [[123; 6].as_slice(), &[124; 4]].concat();
    for finer in [BelowNanosecond, Unknown] {
        for (values, claim, verdict) in [
            (&table[..], "mean=0.124us", None),
            (&table, "mean=123ns", Some("holds")),
            (&table, "mean=0.12us", Some("holds")),
            (&table, "mean=0.125us", Some("contradicted")),
            // 0.1236, 0.1229 and 0.1221 µs: the maximum is cut off, and p90 is something else.
            (&[124, 123, 122], "max=0.123us", None),
            (&[124, 123, 122], "max=0.124us", Some("holds")),
            (&[124, 123, 122], "max=0.122us", Some("contradicted")),
            (&[-124, -123], "min=-0.123us", None),
            // 0.1235 and 0.1245 µs: 124.0 ns.
            (&[124, 125], "mean=0.125us", None),
            // The standard deviation moves by up to 0.7 ns.
            (&[100, 102], "sd=2ns", None),
            (&[100, 130], "sd=0.02us", Some("holds")),
            // A mistake multiplies the rounding.
            (&table, "mean=123.8us", None),
            (&table, "mean=124us", None),
            (&table, "mean=0.12ms", Some("contradicted")),
            (&table, "mean=127.5us", Some("contradicted")),
            (&[123, 123], "max=247ns", None),
            (&[123, 123], "max=248ns", Some("contradicted")),
        ] {
            assert_eq!(of(values, finer, claim), verdict, "{claim} of {values:?}");
        }
    }
    assert_eq!(of(&table, Absent, "mean=123.4us"), Some("explained"));
    assert_eq!(of(&table, Absent, "mean=124ns"), Some("explained"), "if the values are exact");
}

#[test]
fn distinct_values_that_rounding_may_have_merged_decide_no_claim() {
    // 120.0000 to 120.0009 µs once each, and 130.0001 µs fifty times: the mean of distinct values is 120.91 µs.
    let values = [[120_000; 5].as_slice(), &[120_001; 5], &[130_000; 50]].concat();
    let of = |finer, claim: &str| {
        let data = PublishedData { finer, ..PublishedData::of_values(values.clone(), ValueScale::NANOS) };
        judged(&data, claim, None).map(|check| verdicts(&check)[0]).ok()
    };
    for finer in [FinerDigits::BelowNanosecond, FinerDigits::Unknown, FinerDigits::Merged] {
        for (claim, verdict) in [
            ("mean=120.91us", None),
            ("mean=123.334us", None),
            ("n=11", None),
            ("median=120.01us", None),
            ("mean=128.33us", Some("holds")),
            ("mean=130.00us max=130us", Some("explained")),
            ("mean=118.2us", Some("contradicted")),
            ("mean=131us", Some("contradicted")),
            ("n=2", Some("contradicted")),
            ("max=133us", Some("contradicted")),
            ("mean=64.17us", Some("explained")),
        ] {
            assert_eq!(of(finer, claim), verdict, "{claim} with {finer:?}");
        }
    }
    assert_eq!(of(FinerDigits::Absent, "mean=123.334us"), Some("explained"), "the values are exact");
    assert_eq!(of(FinerDigits::Absent, "mean=120.91us"), Some("contradicted"));
}

#[test]
fn all_claims_that_rounding_decides_are_named() {
    let log = PublishedData { finer: FinerDigits::BelowNanosecond, ..round_trips(vec![281_412, 282_512]) };
    let claims = "min=281.41234us mean=281.962us max=282.51185us median=7us";
    let error = judged(&log, claims, None).expect_err("finer digits");
    assert_eq!(error.to_string(), "cannot check the claims `min=281.41234us` and `max=282.51185us`");
}

#[test]
fn the_digits_of_a_claim_are_counted_whatever_the_first_one_is() {
    for first in [1.0, 2.0, 9.0] {
        // The standard deviation of 0, x and 2x is x.
        let data = PublishedData::of_numbers(&[0.0, first, 2.0 * first], None, None).expect("they fit");
        for (figure, decimals) in [("mean", 14), ("sd", 11)] {
            let check = |decimals| judged(&data, &format!("{figure}={first:.decimals$}"), None);
            assert!(check(decimals).is_ok_and(|check| check.all_hold()), "{figure} {first}");
            assert!(check(decimals + 1).is_err(), "{figure} {first}");
        }
    }
}

#[test]
fn digits_that_doubles_do_not_have_are_refused() {
    let of = |number: f64, unit, claim: &str| {
        let data = PublishedData::of_numbers(&[number, number], unit, None).expect("it fits");
        judged(&data, claim, None).map(|check| check.all_hold()).map_err(|error| error.cause)
    };
    let seconds = Some(TimeUnit::Seconds);
    assert_eq!(of(0.1234567890123, seconds, "max=0.1234567890123s"), Ok(true));
    assert_eq!(of(0.1234567890123, seconds, "max=0.1234567890124s"), Ok(false));
    let clock = 1_700_000_000.123_456_7;
    assert_eq!(of(clock, seconds, "max=1700000000.12346s"), Ok(true));
    assert_eq!(of(clock, seconds, "max=1700000000.123999s"), Ok(false));
    for (number, unit, claim) in [
        (clock, seconds, "max=1700000000.123457s"),
        (0.00010514259338378906, seconds, "max=105.14259338378906us"),
        (9_007_199_254_740_992.0, None, "max=9007199254740993"),
        (9_007_199_254_740_992.0, None, "max=9007199254740992"),
    ] {
        let cause = of(number, unit, claim).expect_err(claim);
        assert!(cause.is_some_and(|cause| cause.contains("more digits than are kept")), "{claim}");
    }
    let cause = of(0.12, None, "mean=0.1200000000000000").expect_err("16 digits");
    assert!(cause.is_some_and(|cause| cause.contains("more digits than figures are computed with")));
    let data = PublishedData::of_numbers(&[0.1234567890123], None, None).expect("it fits");
    let two = judged(&data, "max=0.1234567890123 max=0.1234567890124", None).expect_err("two values");
    assert!(two.message.starts_with("cannot check both"), "{two:?}");
}

/// The check of claims, decided or not.
fn all_checked(data: &PublishedData, claims: &str) -> FigureCheck {
    let mut stated = StatedClaims::default();
    stated.add(claims).expect(claims);
    check_figures(data, &stated.figures, None).expect("no conflict")
}

#[test]
fn what_is_decided_does_not_depend_on_undecided_claims() {
    // From 1.47 µs to 1,000.47 µs, so that p97 is 970.5 µs.
    let values = (1..=1_000).map(|step| 1_000 * step + 470).collect();
    let log =
        PublishedData { finer: FinerDigits::BelowNanosecond, ..PublishedData::of_values(values, ValueScale::NANOS) };
    let others = "max=970.500us mean=500.97us";
    let decided = all_checked(&log, &format!("p97=970.500us {others}"));
    assert_eq!((verdicts(&decided), decided.undecided.len()), (vec!["holds", "explained", "holds"], 0), "{decided:#?}");
    let check = all_checked(&log, &format!("p97=970.5002us {others}"));
    assert_eq!((verdicts(&check), codes(&check)), (vec!["explained", "holds"], vec!["p97-as-max".to_owned()]));
    let group = &check.groups[0];
    assert_eq!((&group.claims[..], group.against.len(), group.chance), (&[0][..], 0, decided.groups[0].chance));
    let too_fine = Undecidable::TooFine { finer: FinerDigits::BelowNanosecond, can_be_shorter: true };
    let undecided: Vec<(&str, Undecidable)> =
        check.undecided.iter().map(|one| (one.claim.text.as_str(), one.reason)).collect();
    assert_eq!((undecided, check.all_hold()), (vec![("p97=970.5002us", too_fine)], false));
}

#[test]
fn every_undecided_claim_is_named_with_its_reason() {
    let log = PublishedData { finer: FinerDigits::Unknown, missing_ids: 3, ..round_trips(vec![281_412, 282_512]) };
    let log = PublishedData { knows_losses: false, ..log };
    let check = all_checked(&log, "lost=0 min=281.41234us mean=281.962us n=2 loss=0% max=7");
    assert_eq!(verdicts(&check), ["holds"], "{check:#?}");
    let codes: Vec<String> = check.undecided.iter().map(|one| one.reason.words()[0].clone()).collect();
    assert_eq!(codes, ["losses-unknown", "too-fine", "probes-missing", "losses-unknown", "unit-missing"]);
    let refusal = check.refusal().expect("undecided claims");
    assert_eq!(refusal.message, "cannot check the claims `lost=0`, `min=281.41234us`, `n=2`, `loss=0%` and `max=7`");
    let cause = refusal.cause.expect("a cause");
    for part in
        ["`lost=0` and `loss=0%`: the log does not state", "; `n=2`: its rows leave out 3", "; `max=7`: its unit"]
    {
        assert!(cause.contains(part), "{cause}");
    }
}

#[test]
fn packet_ids_and_zeros_have_no_rounding() {
    let values: Vec<i64> = (0..400).map(|step| 110_698 + 731 * step).collect();
    let log =
        PublishedData { finer: FinerDigits::BelowNanosecond, ..PublishedData::of_values(values, ValueScale::NANOS) };
    let ids = |first: u64| PublishedData { ids: Some((first..first + 400).collect()), id_ticks: 1_000, ..log.clone() };
    let lossy = PublishedData { lost: 3, ..log.clone() };
    for (data, claim, verdict) in [
        (&ids(0), "min=127ns", "contradicted"),
        (&ids(0), "min=1ns", "contradicted"),
        (&ids(1), "min=1ns", "contradicted"),
        (&ids(1), "min=1.0002ms", "contradicted"),
        (&lossy, "min=127ns", "contradicted"),
        (&ids(1), "min=1.000000us", "explained"),
    ] {
        assert_eq!(judged(data, claim, None).map(|check| verdicts(&check)[0]), Ok(verdict), "{claim}");
    }
    // A thousandth of the minimum may be 110.6978 ns.
    assert!(judged(&log, "min=110.6978ns", None).is_err());
}

#[test]
fn a_claim_of_one_digit_has_a_remedy_that_can_be_followed() {
    let hint = |value: i64, finer, claim: &str| {
        let data = PublishedData { finer, ..PublishedData::of_values(vec![value; 3], ValueScale::NANOS) };
        judged(&data, claim, None).expect_err(claim).hint.expect("a remedy")
    };
    for (value, claim, shorter) in [(500, "min=1ns", false), (1_234, "min=1.2341us", true), (0, "min=0.0000us", true)] {
        let of_log = hint(value, FinerDigits::BelowNanosecond, claim);
        assert_eq!(
            (of_log.contains("leave the last digits out"), of_log.contains("`--unit`")),
            (shorter, true),
            "{claim}"
        );
        let of_numbers = hint(value, FinerDigits::Merged, claim);
        assert_eq!(of_numbers.contains("leave the last digits out"), shorter, "{of_numbers}");
    }
}
