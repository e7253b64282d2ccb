//! Synthetic samples with the faults of published experiments, and each mistake alone.

use super::*;
use crate::published::claim::parse_claims;
use crate::published::data::Halving;

/// Numbers between 0 and 1 without a trend, the same in every test.
fn noise(step: u64) -> f64 {
    let mixed = (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Delays of about `centre` ns with a long tail.
fn delays(n: u64, centre: f64) -> Vec<f64> {
    (0..n).map(|step| (centre * (0.8 - 0.25 * noise(step).ln())).trunc()).collect()
}

fn round_trips(values: Vec<f64>) -> PublishedData {
    PublishedData { halving: Halving::Whole, knows_losses: true, ..PublishedData::of_values(values, true) }
}

fn judged(data: &PublishedData, claims: &str, unit: Option<TimeUnit>) -> Result<FigureCheck, Failure> {
    check_figures(data, &parse_claims(claims).expect(claims), unit)
}

fn checked(data: &PublishedData, claims: &str) -> FigureCheck {
    judged(data, claims, None).expect("units")
}

fn verdicts(check: &FigureCheck) -> Vec<&'static str> {
    check.claims.iter().map(|claim| claim.verdict.word()).collect()
}

/// The codes of the mistakes that explain most claims.
fn codes(check: &FigureCheck) -> Vec<&'static str> {
    check.groups.first().map(|group| group.mistakes.iter().map(|it| it.code).collect()).unwrap_or_default()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Interpolated between order statistics, written out again as a check.
fn quantile(values: &[f64], q: f64) -> f64 {
    let sorted = sorted(values);
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

#[test]
fn figures_that_round_or_are_cut_off_to_the_published_digits_hold() {
    let data = round_trips(vec![100_400.0, 100_600.0, 101_000.0, 105_960.0]);
    let check = checked(&data, "n=4 min=100us max=105us mean=101.99us median=100.8us lost=0 loss=0.0%");
    assert!(check.all_hold() && check.tried == 0 && check.groups.is_empty(), "{check:#?}");
    let cut: Vec<bool> = check.claims.iter().map(|claim| claim.truncated).collect();
    assert_eq!(cut, [false, false, true, false, false, false, false]);
    assert!(checked(&data, "min=100.4us").all_hold());
    for claim in ["min=101us", "max=106.1us", "mean=102.00us", "n=5", "lost=1"] {
        assert!(!checked(&data, claim).all_hold(), "{claim}");
    }
}

#[test]
fn packet_ids_among_halves_less_dwell_are_found() {
    // Lesson A: a table of ids and of ((t4 − t1) − (t3 − t2)) / 2, of which all figures were taken.
    let n = 10_000_u64;
    let dwell: Vec<f64> = (0..n).map(|step| (9_000.0 + noise(step + 77) * 90_000.0).trunc()).collect();
    let values: Vec<f64> = delays(n, 7.2e6).iter().zip(&dwell).map(|(delay, dwell)| delay + dwell).collect();
    let ids: Vec<u64> = (1..=n).collect();
    let table = values.iter().zip(&dwell).map(|(value, dwell)| (value - dwell) / 2.0);
    let both: Vec<f64> = table.chain(ids.iter().map(|id| *id as f64)).collect();
    let data = PublishedData { ids: Some(ids), dwell: Some(dwell), ..round_trips(values) };
    let q = |q: f64| quantile(&both, q) / 1e6;
    let claims =
        format!("avg={:.3}ms p99.9={:.3}ms p99={:.3}ms max={:.3}ms", mean(&both) / 1e6, q(0.999), q(0.99), q(1.0));
    let check = checked(&data, &format!("{claims} min=1ns"));
    assert_eq!(codes(&check), ["dwell-subtracted", "half-round-trip", "ids-included"], "{check:#?}");
    assert_eq!(verdicts(&check), ["explained"; 5]);
    assert!(check.groups[0].chance < 1e-4, "{:#?}", check.groups);
    // With the stated definition one mistake is left.
    let stated = PublishedData { halving: Halving::Halved, less_dwell: true, ..data };
    let check = checked(&stated, &format!("{claims} min=1ns"));
    assert_eq!(codes(&check), ["ids-included"], "{check:#?}");
    assert_eq!(verdicts(&check), ["explained", "explained", "explained", "holds", "explained"]);
    assert!((check.claims[0].recomputed.expect("values") / check.claims[0].published - 2.0).abs() < 0.01);
    assert_eq!(verdicts(&checked(&stated, "min=1ns")), ["contradicted"], "one digit proves nothing alone");
}

#[test]
fn the_mean_of_distinct_values_is_found() {
    // Lesson C: most values are ties, and a few large ones are not.
    let typical = |step: u64| 240_000.0 + 1_000.0 * (noise(step) * 60.0).trunc();
    let rare = |step: u64| if step.is_multiple_of(50) { (noise(step + 5) * 9e6).trunc() } else { 0.0 };
    let values: Vec<f64> = (0..20_000).map(|step| typical(step) + rare(step)).collect();
    let mut distinct = sorted(&values);
    distinct.dedup();
    let (min, max) = (distinct[0] / 1e3, distinct[distinct.len() - 1] / 1e3);
    let check =
        checked(&round_trips(values), &format!("min={min:.0}us max={max:.0}us mean={:.1}us", mean(&distinct) / 1e3));
    assert_eq!(verdicts(&check), ["holds", "holds", "explained"], "{check:#?}");
    assert_eq!(codes(&check), ["distinct-values"]);
    assert!(check.groups[0].against.is_empty() && check.groups[0].chance < 0.05);
}

#[test]
fn a_quantile_that_rests_on_a_part_of_a_value_is_unsupported() {
    // Lesson D: p99.99 of 5,000 values.
    let values = delays(5_000, 60e3);
    let micros: Vec<f64> = values.iter().map(|value| value / 1e3).collect();
    let data = round_trips(values);
    let check =
        checked(&data, &format!("p99={:.2}us p99.99={:.2}us", quantile(&micros, 0.99), quantile(&micros, 0.9999)));
    assert_eq!(verdicts(&check), ["holds", "unsupported"]);
    assert!((check.claims[1].beyond.expect("a quantile") - 0.5).abs() < 1e-9 && !check.all_hold());
    let as_max = checked(&data, &format!("p99.99={:.3}us", sorted(&micros)[4_999]));
    assert_eq!(verdicts(&as_max), ["unsupported"], "it is the maximum: {as_max:#?}");
}

/// Ten thousand values with a warm-up, losses and everything else that a mistake needs.
fn everything() -> PublishedData {
    let values = delays(10_100, 300e3).into_iter().enumerate();
    let values = values.map(|(row, value)| if row < 100 { value + 4e6 } else { value }).collect();
    PublishedData {
        warmup: 100,
        ids: Some((100..10_200).collect()),
        dwell: Some((0..10_100).map(|step| (20_000.0 + noise(step) * 5_000.0).trunc()).collect()),
        lost: 40,
        warmup_lost: 7,
        ..round_trips(values)
    }
}

#[test]
fn each_mistake_alone_is_found_from_its_figures() {
    let data = everything();
    let (all, measured) = (data.values.as_slice(), &data.values[100..]);
    let dwell = data.dwell.as_ref().expect("dwell");
    let less: Vec<f64> = measured.iter().zip(&dwell[100..]).map(|(value, dwell)| value - dwell).collect();
    let ids = data.ids.as_ref().expect("ids");
    let with_ids: Vec<f64> = measured.iter().copied().chain(ids[100..].iter().map(|id| *id as f64)).collect();
    let zeros: Vec<f64> = measured.iter().copied().chain(std::iter::repeat_n(0.0, 40)).collect();
    let centre = mean(measured);
    let squares: f64 = measured.iter().map(|value| (value - centre).powi(2)).sum();
    let us = |value: f64| format!("{:.3}us", value / 1e3);
    // The quantile that counts lost probes as infinite.
    let q = |values: &[f64], q: f64| us(quantile(&[values, &[f64::MAX; 40]].concat(), q));
    let cut_off: Vec<f64> = measured.iter().map(|value| (value / 1e3).trunc() * 1e3).collect();
    let in_ms: Vec<f64> = measured.iter().map(|value| (value / 1e6).round() * 1e6).collect();
    let top = sorted(measured)[9_999];
    for (claims, code) in [
        (format!("mean={} min={}", us(centre / 2.0), us(sorted(measured)[0] / 2.0)), "half-round-trip"),
        (format!("mean={} median={}", us(mean(&less)), q(&less, 0.5)), "dwell-subtracted"),
        (format!("mean={} min=200ns", us(mean(&with_ids))), "ids-included"),
        (format!("mean={} n=10147 lost=47", us(mean(all))), "warmup-included"),
        (format!("p99={} p99.9={}", us(quantile(measured, 0.99)), us(quantile(measured, 0.999))), "lost-left-out"),
        (format!("mean={} min=0.000us", us(mean(&zeros))), "lost-as-zero"),
        (format!("mean={:.3}ns", centre / 1e3), "unit-by-1000"),
        (format!("mean={}", us(centre * 1e3)), "unit-times-1000"),
        (format!("mean={} median={}", q(measured, 0.5), us(centre)), "mean-median-exchanged"),
        (format!("max={}", q(measured, 0.99)), "p99-as-max"),
        (format!("p99={}", us(sorted(measured)[9_999])), "max-as-quantile"),
        (
            format!("mean={} max={}", us(mean(&sorted(measured)[..9_990])), us(sorted(measured)[9_989])),
            "slowest-0-1-left-out",
        ),
        (format!("mean={}", us(mean(&sorted(measured)[..9_900]))), "slowest-1-left-out"),
        (format!("mean={}", us(mean(&sorted(measured)[500..9_500]))), "ends-5-left-out"),
        (format!("mean={}", us(mean(&cut_off))), "cut-off-to-us"),
        (format!("mean={} max={}", us(mean(&in_ms)), us(1e6 * (top / 1e6).round())), "rounded-to-ms"),
        (format!("stddev={:.6}us", (squares / 10_000.0).sqrt() / 1e3), "population-stddev"),
    ] {
        let check = checked(&data, &claims);
        let is_explained = |claim: &CheckedClaim| claim.verdict == ClaimVerdict::Explained;
        assert!(check.claims.iter().all(is_explained), "{code}: {claims}: {check:#?}");
        assert_eq!(codes(&check), [code], "{claims}");
    }
    let data = PublishedData { halving: Halving::Halved, less_dwell: true, ..data };
    assert_eq!(codes(&checked(&data, &format!("mean={}", us(centre / 2.0)))), ["dwell-kept"]);
    assert_eq!(codes(&checked(&data, &format!("mean={}", us(centre)))), ["dwell-kept", "whole-round-trip"]);
}

#[test]
fn digits_that_fit_by_chance_are_not_an_explanation() {
    let data = everything();
    // One digit fits one of many hypotheses, six digits none.
    let coarse = checked(&data, "mean=0.2ms");
    assert_eq!(verdicts(&coarse), ["contradicted"], "{:#?}", coarse.groups);
    assert!(coarse.groups.iter().all(|group| group.chance > CHANCE_MAX));
    let fine = checked(&data, "mean=2.22222ms");
    assert_eq!(verdicts(&fine), ["contradicted"]);
    assert!(fine.groups.is_empty() && fine.tried > 50);
    // A claim that is repeated adds no evidence.
    let often = checked(&data, "mean=0.2ms avg=0.2ms average=0.2ms");
    assert_eq!((&often.groups[0].figures[..], often.groups[0].chance), (&[0, 1, 2][..], coarse.groups[0].chance));
}

#[test]
fn claims_and_data_have_units_or_neither_has_one() {
    let data = PublishedData::of_values([4117.36, 8328.19, 6137.8], false);
    let claims = "min=4117.36 median=6137.8 mean=6194.45 n=3";
    assert!(checked(&data, claims).all_hold());
    let error = judged(&data, &format!("{claims} max=8us"), None).expect_err("a unit");
    assert!(error.hint.is_some_and(|hint| hint.contains("--unit")));
    let times = round_trips(vec![1_000.0]);
    let error = judged(&times, "min=4117.36", None).expect_err("no unit");
    assert!(error.cause.is_some_and(|cause| cause.contains("missing")));
    assert!(judged(&times, "min=4117.36", Some(TimeUnit::Micros)).is_ok());
}

#[test]
fn without_values_no_figure_holds() {
    let lossy = PublishedData { lost: 3, ..round_trips(Vec::new()) };
    let check = checked(&lossy, "mean=1us p99=2us n=3 lost=3 loss=100%");
    assert_eq!(verdicts(&check), ["contradicted", "contradicted", "holds", "holds", "holds"]);
    assert_eq!(check.claims[0].recomputed, None);
}

#[test]
fn what_the_data_do_not_decide_is_refused() {
    let unstated = PublishedData { knows_losses: false, ..round_trips(vec![1_000.0, 3_000.0]) };
    let gaps = PublishedData { missing_ids: 2, ..unstated.clone() };
    let rounded = PublishedData { is_rounded: true, ..unstated.clone() };
    assert!(checked(&rounded, "min=1.0002us").all_hold() && !checked(&rounded, "min=1.0020us").all_hold());
    for (data, claim, cause) in [
        (&unstated, "lost=0", "does not state losses"),
        (&unstated, "loss=0%", "does not state losses"),
        (&gaps, "n=2", "leave out 2 numbers,"),
    ] {
        let error = judged(data, &format!("mean=2us {claim}"), None).map(drop).expect_err(claim);
        assert!(error.message.ends_with(&format!("`{claim}`")), "{error:?}");
        assert!(error.cause.as_deref().is_some_and(|own| own.contains(cause)) && error.exit_code == 2, "{error:?}");
    }
    for (data, claims) in [(&unstated, "n=2 max=3us"), (&gaps, "mean=2us"), (&rounded, "min=1.000us")] {
        assert!(checked(data, claims).all_hold(), "{claims}");
    }
}

#[test]
fn a_maximum_that_is_a_quantile_is_found_without_another_claim() {
    let values = delays(10_000, 300e3);
    let (data, sorted) = (round_trips(values.clone()), sorted(&values));
    for (max, code) in [(quantile(&values, 0.99), "p99-as-max"), (sorted[9_989], "p99-9-as-max")] {
        let check = checked(&data, &format!("mean={:.1}us max={:.1}us", mean(&values) / 1e3, max / 1e3));
        assert_eq!(verdicts(&check), ["holds", "explained"], "{check:#?}");
        assert_eq!(codes(&check)[..1], [code]);
        assert_eq!(codes(&checked(&data, &format!("max={:.1}us", max / 1e3)))[..1], [code]);
    }
}

/// A place from 1 and a weight of the next order statistic, as Hyndman and Fan (1996) define them: j = ⌊nq + m⌋ and g.
fn of_type(sorted: &[f64], q: f64, number: u32) -> f64 {
    let n = sorted.len() as f64;
    let m = match number {
        1 | 2 | 4 => 0.0,
        3 => -0.5,
        5 => 0.5,
        6 => q,
        7 => 1.0 - q,
        8 => (q + 1.0) / 3.0,
        _ => q / 4.0 + 0.375,
    };
    let at = n * q + m;
    let at = if (at - at.round()).abs() < 1e-9 { at.round() } else { at };
    let (j, g) = (at.floor(), at.fract());
    let weight = match number {
        1 => f64::from(u8::from(g > 0.0)),
        2 => {
            if g > 0.0 {
                1.0
            } else {
                0.5
            }
        }
        3 => f64::from(u8::from(g > 0.0 || j % 2.0 != 0.0)),
        _ => g,
    };
    let x = |rank: f64| sorted[(rank.max(1.0) as usize).min(sorted.len()) - 1];
    x(j) + weight * (x(j + 1.0) - x(j))
}

#[test]
fn quantiles_of_all_nine_types_hold_and_name_their_convention() {
    let values = delays(2_003, 300e3);
    let (data, sorted) = (round_trips(values.clone()), sorted(&values));
    for (number, code) in [
        (1, Some("quantile-nearest-rank")),
        (2, Some("quantile-nearest-rank")),
        (3, Some("quantile-type-3")),
        (4, Some("quantile-type-4")),
        (5, Some("quantile-type-5")),
        (6, Some("quantile-weibull")),
        (7, None),
        (8, Some("quantile-type-8")),
        (9, Some("quantile-type-9")),
    ] {
        let claim = |q: f64| format!("p{}={:.5}us ", 100.0 * q, of_type(&sorted, q, number) / 1e3);
        let check = checked(&data, &[0.3, 0.7, 0.99].map(claim).concat());
        assert!(check.all_hold() && check.groups.is_empty(), "type {number}: {check:#?}");
        assert_eq!(check.claims[1].convention.map(|rule| rule.code), code, "type {number}");
    }
    // Of whole qn, in which types 1 and 2 differ.
    let even = checked(&round_trips(values[..2_000].to_vec()), "p90=1us").claims[0].recomputed.expect("values");
    let half = of_type(&self::sorted(&values[..2_000]), 0.9, 2);
    let check = checked(&round_trips(values[..2_000].to_vec()), &format!("p90={:.4}us", half / 1e3));
    assert!(half != even && check.all_hold(), "{check:#?}");
    assert_eq!(check.claims[0].convention.map(|rule| rule.code), Some("quantile-type-2"));
    // Two values farther out it is none.
    let far = checked(&data, &format!("p99={:.5}us", sorted[1_985] / 1e3));
    assert_eq!(verdicts(&far), ["contradicted"], "{far:#?}");
}

#[test]
fn digits_that_doubles_do_not_have_are_not_compared() {
    let data = round_trips(vec![1_000.0, 3_000.0, 3_000.0]);
    assert!(checked(&data, "mean=2.33333333333333333333333333333us min=1.00000000000000000000000000us").all_hold());
    assert!(
        checked(&data, "mean=2333.3333333333335us min=1.000000000000000us").claims[1].verdict == ClaimVerdict::Holds
    );
    assert!(!checked(&data, "mean=2.33333333334333333333us").all_hold(), "the eleventh digit");
    assert!(!checked(&data, "min=1.00000000000002us").all_hold(), "the fifteenth digit");
}
