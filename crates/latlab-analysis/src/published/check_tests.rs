//! Synthetic samples with the faults of published experiments, and each mistake alone.

use super::*;
use crate::analysis::published::claim::StatedClaims;
use crate::analysis::published::raw_values::Halving;

/// Numbers between 0 and 1 without a trend, the same in every test.
fn noise(step: u64) -> f64 {
    let mixed = (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Delays of about `centre` ns with a long tail.
fn delays(n: u64, centre: f64) -> Vec<i64> {
    (0..n).map(|step| (centre * (0.8 - 0.25 * noise(step).ln())) as i64).collect()
}

pub(super) fn round_trips(values: Vec<i64>) -> PublishedData {
    let data = PublishedData::of_values(values, ValueScale::NANOS);
    PublishedData { halving: Halving::Whole, knows_losses: true, ..data }
}

/// The check of claims, if the data decide all of them.
pub(super) fn judged(data: &PublishedData, claims: &str, unit: Option<TimeUnit>) -> Result<FigureCheck, Failure> {
    let mut stated = StatedClaims::default();
    stated.add(claims).expect(claims);
    let check = check_figures(data, &stated.figures, unit)?;
    check.refusal().map_or(Ok(check), Err)
}

fn checked(data: &PublishedData, claims: &str) -> FigureCheck {
    judged(data, claims, None).expect("units")
}

pub(super) fn verdicts(check: &FigureCheck) -> Vec<&'static str> {
    check.claims.iter().map(|claim| claim.verdict.word()).collect()
}

/// The codes of the mistakes that explain most claims.
pub(super) fn codes(check: &FigureCheck) -> Vec<String> {
    check.groups.first().map(|group| group.hypothesis.mistakes.iter().map(|it| it.code()).collect()).unwrap_or_default()
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
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
    let data = round_trips(vec![100_400, 100_600, 101_000, 105_960]);
    let check = checked(&data, "n=4 min=100us max=105us mean=101.99us median=100.8us lost=0 loss=0.0%");
    assert!(check.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Holds), "{check:#?}");
    let cut: Vec<bool> = check.claims.iter().map(|claim| claim.is_truncated).collect();
    assert_eq!(cut, [false, false, true, false, false, false, false]);
    assert!(checked(&data, "min=100.4us").all_hold());
    assert!(check.all_hold() && check.tried == 0 && check.groups.is_empty());
    for claim in ["min=101us", "max=106.1us", "mean=102.00us", "n=5", "lost=1"] {
        assert!(!checked(&data, claim).all_hold(), "{claim}");
    }
}

#[test]
fn packet_ids_among_halves_less_dwell_are_found() {
    // Lesson A: a table of ids and of ((t4 − t1) − (t3 − t2)) / 2, of which all figures were taken.
    let n = 10_000_u64;
    let dwell: Vec<i64> = (0..n).map(|step| 9_000 + (noise(step + 77) * 90_000.0) as i64).collect();
    let values: Vec<i64> = delays(n, 7.2e6).iter().zip(&dwell).map(|(delay, dwell)| delay + dwell).collect();
    let ids: Vec<u64> = (1..=n).collect();
    let table: Vec<f64> = values.iter().zip(&dwell).map(|(value, dwell)| (value - dwell) as f64 / 2.0).collect();
    let both: Vec<f64> = table.iter().copied().chain(ids.iter().map(|id| *id as f64)).collect();
    let data = PublishedData { ids: Some(ids), dwell: Some(dwell), ..round_trips(values) };
    let ms = |value: f64| value / 1e6;
    let claims = format!(
        "avg={:.3}ms p99.9={:.3}ms p99={:.3}ms max={:.3}ms",
        ms(mean(both.iter().copied())),
        ms(quantile(&both, 0.999)),
        ms(quantile(&both, 0.99)),
        ms(quantile(&both, 1.0)),
    );
    let check = checked(&data, &claims);
    assert_eq!(codes(&check)[..], ["dwell-subtracted", "half-round-trip", "ids-included"], "{check:#?}");
    assert_eq!(verdicts(&check), ["explained"; 4]);
    assert!(check.groups[0].chance < 1e-4 && check.groups[0].claims.len() >= 3, "{:#?}", check.groups);
    // With the stated definition one mistake is left.
    let stated = PublishedData { halving: Halving::Halved, less_dwell: true, ..data };
    let check = checked(&stated, &format!("{claims} min=1ns"));
    assert_eq!(codes(&check)[..], ["ids-included"], "{check:#?}");
    assert_eq!(check.claims[4].verdict, ClaimVerdict::Explained, "the minimum is an id");
    assert_eq!(check.claims[3].verdict, ClaimVerdict::Holds, "the maximum is the same");
    // Half of the mean, which is far from the truth, and the quantiles of the values alone.
    assert!((check.claims[0].recomputed.expect("values") / check.claims[0].published - 2.0).abs() < 0.01);
}

#[test]
fn the_mean_of_distinct_values_is_found() {
    // Lesson C: most values are ties, and a few large ones are not.
    let typical = |step: u64| 240_000 + 1_000 * (noise(step) * 60.0) as i64;
    let rare = |step: u64| if step.is_multiple_of(50) { (noise(step + 5) * 9e6) as i64 } else { 0 };
    let values: Vec<i64> = (0..20_000).map(|step| typical(step) + rare(step)).collect();
    let mut distinct = values.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let data = round_trips(values.clone());
    let false_mean = mean(distinct.iter().map(|value| *value as f64)) / 1e3;
    let (min, max) = (distinct[0] as f64 / 1e3, distinct[distinct.len() - 1] as f64 / 1e3);
    let check = checked(&data, &format!("min={min:.0}us max={max:.0}us mean={false_mean:.1}us"));
    assert_eq!(verdicts(&check), ["holds", "holds", "explained"], "{check:#?}");
    assert_eq!(codes(&check), ["distinct-values"]);
    assert!(check.groups[0].against.is_empty() && check.groups[0].chance < 0.05);
}

#[test]
fn a_quantile_that_rests_on_a_part_of_a_value_is_unsupported() {
    // Lesson D: halves, and p99.99 of 5,000 values.
    let values = delays(5_000, 60e3);
    let halves: Vec<f64> = values.iter().map(|value| *value as f64 / 2e3).collect();
    let largest = sorted(&halves)[4_999];
    let data = round_trips(values.clone());
    let whole = format!("p99={:.2}us p99.99={:.2}us", 2.0 * quantile(&halves, 0.99), 2.0 * quantile(&halves, 0.9999));
    let check = checked(&data, &whole);
    assert_eq!(verdicts(&check), ["holds", "unsupported"]);
    assert!((check.claims[1].beyond.expect("a quantile") - 0.5).abs() < 1e-9 && !check.all_hold());
    let as_max = checked(&data, &format!("p99.99={:.2}us", 2.0 * largest));
    assert_eq!(verdicts(&as_max), ["unsupported"], "it is the maximum: {as_max:#?}");
    assert!(!as_max.claims[0].explanations.is_empty());
    let halved = format!(
        "ave={:.2}us p50={:.2}us p99={:.2}us",
        mean(halves.iter().copied()),
        quantile(&halves, 0.5),
        quantile(&halves, 0.99)
    );
    let check = checked(&data, &halved.replace("ave", "avg"));
    assert_eq!((verdicts(&check), codes(&check)), (vec!["explained"; 3], vec!["half-round-trip".to_owned()]));
}

#[test]
fn the_stretch_of_a_time_out_shows_in_long_sleeps() {
    // Lesson E: 100 sleeps of 1 s in select(), which may wake 1 ms later.
    let latency = |stretch: f64| (0..100).map(|step| (stretch + 40e3 + 9e3 * noise(step)) as i64).collect::<Vec<_>>();
    let asleep = |values: Vec<i64>, sleep: Nanos| PublishedData {
        halving: Halving::NotRoundTrip,
        sleep: Some(sleep),
        ..PublishedData::of_values(values, ValueScale::NANOS)
    };
    let stretched = latency(1e6);
    let published = mean(stretched.iter().map(|value| *value as f64)) / 1e3;
    let claims = format!("mean={published:.1}us");
    let check = checked(&asleep(stretched.clone(), Nanos::from_secs(1)), &claims);
    assert_eq!(verdicts(&check), ["holds"]);
    assert_eq!((check.claims[0].stretch, check.stretch), (Some(StretchPlace::InValues), Some(Nanos::from_millis(1))));
    let exact = checked(&asleep(latency(0.0), Nanos::from_secs(1)), &claims);
    assert_eq!((verdicts(&exact)[0], exact.claims[0].stretch), ("contradicted", Some(StretchPlace::InDifference)));
    let short = checked(&asleep(stretched, Nanos::from_millis(10)), &claims);
    assert_eq!((short.claims[0].stretch, short.stretch), (None, None), "the slack hides it");
}

/// Ten thousand values with a warm-up, losses and everything else that a mistake needs.
fn everything() -> PublishedData {
    let values = delays(10_100, 300e3);
    let values: Vec<i64> =
        values.iter().enumerate().map(|(row, value)| if row < 100 { value + 4_000_000 } else { *value }).collect();
    PublishedData {
        warmup: 100,
        ids: Some((100..10_200).collect()),
        dwell: Some((0..10_100).map(|step| 20_000 + (noise(step) * 5_000.0) as i64).collect()),
        lost: 40,
        warmup_lost: 7,
        ..round_trips(values)
    }
}

#[test]
fn each_mistake_alone_is_found_from_its_figures() {
    let data = everything();
    let measured: Vec<f64> = data.values[100..].iter().map(|value| *value as f64).collect();
    let dwell: Vec<f64> =
        data.dwell.as_ref().map(|dwell| dwell[100..].iter().map(|one| *one as f64).collect()).unwrap_or_default();
    let all: Vec<f64> = data.values.iter().map(|value| *value as f64).collect();
    let less: Vec<f64> = measured.iter().zip(&dwell).map(|(value, dwell)| value - dwell).collect();
    let zeros: Vec<f64> = measured.iter().copied().chain(std::iter::repeat_n(0.0, 40)).collect();
    let centre = mean(measured.iter().copied());
    let squares: f64 = measured.iter().map(|value| (value - centre).powi(2)).sum();
    let us = |value: f64| format!("{:.3}us", value / 1e3);
    let mean_of = |values: &[f64]| us(mean(values.iter().copied()));
    // The quantile that counts lost probes as infinite.
    let q = |values: &[f64], q: f64| us(quantile(&[values, &[f64::MAX; 40]].concat(), q));
    for (claims, code) in [
        (format!("mean={} min={}", us(centre / 2.0), us(sorted(&measured)[0] / 2.0)), "half-round-trip"),
        (format!("mean={} median={}", mean_of(&less), q(&less, 0.5)), "dwell-subtracted"),
        (format!("mean={} n=10147 lost=47", mean_of(&all)), "warmup-included"),
        (format!("p99={} p99.9={}", us(quantile(&measured, 0.99)), us(quantile(&measured, 0.999))), "lost-left-out"),
        (format!("mean={} min=0.000us", mean_of(&zeros)), "lost-as-zero"),
        (format!("mean={:.3}ns", centre / 1e3), "unit-by-1000"),
        (format!("mean={}", us(centre * 1e3)), "unit-times-1000"),
        (format!("mean={} median={}", q(&measured, 0.5), us(centre)), "mean-median-exchanged"),
        (format!("max={}", q(&measured, 0.99)), "p99-as-max"),
        (format!("p99={}", us(sorted(&measured)[9_999])), "max-as-quantile"),
        (format!("stddev={:.6}us", (squares / 10_000.0).sqrt() / 1e3), "population-stddev"),
    ] {
        let check = checked(&data, &claims);
        assert!(
            check.claims.iter().all(|claim| claim.verdict == ClaimVerdict::Explained),
            "{code}: {claims}: {check:#?}"
        );
        assert_eq!(codes(&check), [code], "{claims}");
    }
}

#[test]
fn other_definitions_are_found_in_the_other_direction() {
    let data = PublishedData { halving: Halving::Halved, less_dwell: true, ..everything() };
    let measured: Vec<f64> = data.values[100..].iter().map(|value| *value as f64).collect();
    let halves = mean(measured.iter().copied()) / 2e3;
    assert_eq!(codes(&checked(&data, &format!("mean={halves:.3}us"))), ["dwell-kept"]);
    let whole = checked(&data, &format!("mean={:.3}us", 2.0 * halves));
    assert_eq!(codes(&whole), ["dwell-kept", "whole-round-trip"]);
}

#[test]
fn a_quantile_of_another_rule_is_found() {
    let data = round_trips(delays(2_000, 50e3));
    let values: Vec<f64> = data.values.iter().map(|value| *value as f64).collect();
    let nearest = sorted(&values)[1_979] / 1e3;
    let check = checked(&data, &format!("p99={nearest:.3}us"));
    assert_eq!(verdicts(&check), ["explained"], "{check:#?}");
    let codes: Vec<String> = check.claims[0].explanations.iter().map(|one| one.hypothesis.mistakes[0].code()).collect();
    assert!(codes.iter().any(|code| code == "quantile-nearest-rank") && codes.len() > 1, "{codes:?}");
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
    assert!(fine.groups.is_empty() && fine.claims[0].explanations.is_empty() && fine.claims[0].nearest.is_some());
    assert!(fine.tried > 50);
}

#[test]
fn a_hypothesis_for_several_claims_is_preferred_to_one_for_each() {
    let data = everything();
    let measured: Vec<f64> = data.values[100..].iter().map(|value| *value as f64).collect();
    let half = |value: f64| value / 2e3;
    let claims = format!("mean={:.0}us min={:.0}us", half(mean(measured.iter().copied())), half(sorted(&measured)[0]));
    let check = checked(&data, &format!("{claims} n=10040"));
    assert_eq!(codes(&check), ["half-round-trip"]);
    assert_eq!((check.groups[0].claims.as_slice(), verdicts(&check)[2]), (&[0, 1][..], "holds"));
}

#[test]
fn numbers_without_a_unit_take_claims_without_one() {
    let data = PublishedData::of_numbers(&[4117.36, 8328.19, 6137.8], None, None).expect("they fit");
    let claims = "min=4117.36 median=6137.8 mean=6194.45 n=3";
    assert!(checked(&data, claims).all_hold());
    let error = judged(&data, &format!("{claims} max=8us"), None).expect_err("a unit");
    assert!(error.hint.is_some_and(|hint| hint.contains("--unit")));
    let times = round_trips(vec![1_000]);
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
fn claims_about_losses_that_the_data_do_not_state_are_refused() {
    let refused = |data: &PublishedData, claims: &str| judged(data, claims, None).map(drop);
    let unstated = PublishedData { knows_losses: false, ..round_trips(vec![1_000, 3_000]) };
    for claim in ["lost=0", "loss=0%", "mean=2us loss_ratio=0.5", "lost=1"] {
        let error = refused(&unstated, claim).expect_err(claim);
        assert!(error.cause.as_deref().is_some_and(|cause| cause.contains("does not state losses")), "{error:?}");
        assert_eq!((error.exit_code, error.hint.is_some()), (2, true), "{claim}");
    }
    assert_eq!(refused(&unstated, "n=2 mean=2us max=3us"), Ok(()));
    let gaps = |missing_ids| PublishedData { missing_ids, ..unstated.clone() };
    for (missing, words) in [(1, "leave out 1 number,"), (2_000, "leave out 2,000 numbers,")] {
        let error = refused(&gaps(missing), "mean=2us n=2").expect_err("gaps");
        assert!(error.message.contains("`n=2`") && error.cause.is_some_and(|cause| cause.contains(words)));
    }
    assert_eq!(refused(&gaps(1), "mean=2us"), Ok(()));
    let stated = PublishedData { knows_losses: true, ..gaps(1) };
    assert_eq!(refused(&stated, "n=2 lost=0"), Ok(()), "every loss is stated");
}

#[test]
fn a_repeated_claim_is_one_piece_of_evidence() {
    let data = everything();
    let once = checked(&data, "mean=0.2ms");
    let often = checked(&data, "mean=0.2ms avg=0.2ms average=0.2ms");
    assert_eq!((verdicts(&once), verdicts(&often)), (vec!["contradicted"], vec!["contradicted"; 3]));
    assert_eq!((&often.groups[0].claims[..], often.groups[0].chance), (&[0, 1, 2][..], once.groups[0].chance));
    // Half of the mean is 150 µs. The claim with the most digits counts.
    let values = (0..1_000).map(|step| if step % 2 == 0 { 200_000 + step } else { 400_001 - step }).collect();
    let data = round_trips(values);
    let chance = |claims: &str| checked(&data, claims).groups[0].chance;
    assert_eq!(chance("mean=150us avg=150.00us mean=0.150ms"), chance("mean=150.00us"));
    assert!(chance("mean=150us") > chance("mean=150.00us"));
}

#[test]
fn two_values_of_one_figure_are_refused_with_both() {
    let refused = |claims: &str, unit| judged(&everything(), claims, unit).map(drop);
    for (claims, first, second) in [
        ("mean=1us avg=2us", "mean=1us", "avg=2us"),
        ("n=3 median=1us p50=1.1us", "median=1us", "p50=1.1us"),
        ("loss=0.5% loss_ratio=0.05", "loss=0.5%", "loss_ratio=0.05"),
        ("mean=1 mean=1ms", "mean=1", "mean=1ms"),
    ] {
        let error = refused(claims, Some(TimeUnit::Micros)).expect_err(claims);
        assert!(error.message.contains(first) && error.message.contains(second), "{error:?}");
        assert_eq!((error.exit_code, error.hint.is_some()), (2, true));
    }
    for same in ["mean=1us avg=1000ns mean=0.001ms average=1.00", "loss=0.5% loss=0.005", "p99.9=1us p99.90=1us"] {
        assert_eq!(refused(same, Some(TimeUnit::Micros)), Ok(()), "{same}");
    }
}

#[test]
fn the_maximum_is_explained_by_the_quantile_that_rounds_to_it() {
    for (n, claims, code, shown) in
        [(1_000, "max=999us mean=500.5us", "p99-9-as-max", 999_001.0), (100, "max=99us", "p99-as-max", 99_010.0)]
    {
        let check = checked(&round_trips((1..=n).map(|step| 1_000 * step).collect()), claims);
        assert_eq!((codes(&check), check.claims[0].explanations[0].computed), (vec![code.to_owned()], shown));
    }
}

#[test]
fn a_figure_is_shown_with_the_decimals_that_show_its_digits() {
    let data = round_trips(vec![1_000, 99_990]);
    let check = checked(&data, "max=99us min=1us");
    assert_eq!(verdicts(&check), ["holds", "holds"]);
    let decimals = |value: f64| check.claims[0].further_decimals(value);
    // 100.0 has other digits than 99, which 99.99 is cut off to, and 98.5 rounds to 99, which 98.499 does not.
    assert_eq!([99_990.0, 99_000.0, 99_400.0, 98_499.0, 120_000.0].map(decimals), [2, 1, 1, 3, 1]);
    assert_eq!(decimals(99_999.999_999_999), 12);
}

#[test]
fn an_accepted_mistake_explains_what_else_it_reproduces() {
    // Lesson A without `--half`: mean and quantiles need halves and ids, the minimum needs ids alone.
    let delays = delays(10_000, 7.2e6);
    let ids: Vec<u64> = (1..=10_000).collect();
    let halves = delays.iter().map(|delay| *delay as f64 / 2.0);
    let both: Vec<f64> = halves.chain(ids.iter().map(|id| *id as f64)).collect();
    let data = PublishedData { ids: Some(ids), ..round_trips(delays) };
    let q = |q: f64| quantile(&both, q) / 1e6;
    let fine =
        format!("mean={:.3}ms p99.9={:.3}ms p99.99={:.3}ms", mean(both.iter().copied()) / 1e6, q(0.999), q(0.9999));
    let alone = checked(&data, "min=1ns");
    assert_eq!(verdicts(&alone), ["contradicted"], "one digit: {:#?}", alone.groups);
    let check = checked(&data, &format!("{fine} max={:.3}ms min=1ns", q(1.0)));
    assert_eq!(verdicts(&check), ["explained"; 5], "{:#?}", check.groups);
    assert_eq!(codes(&check), ["half-round-trip", "ids-included"]);
    let group = &check.groups[0];
    assert!(group.claims.contains(&4) && group.uncounted == [4], "{group:#?}");
    assert_eq!(check.claims[4].explanations[0].computed, 1.0);
    // The chance is that of the figures that the mistake was found from.
    assert_eq!(group.chance, checked(&data, &format!("{fine} max={:.3}ms", q(1.0))).groups[0].chance);
    let other = checked(&data, &format!("{fine} min=7ns"));
    assert_eq!(other.claims[3].verdict, ClaimVerdict::Contradicted, "the least id is 1");
}

#[test]
fn mistakes_whose_numbers_do_not_fit_are_not_tried() {
    let large = |value: i64| PublishedData::of_values(vec![1_000, value], ValueScale::NANOS);
    let tries = |data: &PublishedData| {
        let check = checked(data, "mean=9us");
        (check.tried, check)
    };
    let (fitting, largest) = (tries(&large((1 << 61) - 1)).0, tries(&large((1 << 62) - 1)).0);
    assert!(largest < fitting, "doubles of 2^62 do not fit: {largest} of {fitting}");
    let with_ids = |id: u64| PublishedData { ids: Some(vec![1, id]), id_ticks: 1_000, ..large(2_000) };
    assert!(tries(&with_ids(u64::MAX / 1_000)).0 < tries(&with_ids(7)).0, "neither do ids");
    let lossy = |lost: u64| PublishedData { lost, ..large(2_000) };
    assert!(tries(&lossy(100_000_001)).0 < tries(&lossy(3)).0, "nor so many zeros");
}

#[test]
fn ids_are_in_the_unit_of_the_numbers() {
    let numbers = [20.5, 30.25, 41.75, 55.5];
    let data = PublishedData::of_numbers(&numbers, Some(TimeUnit::Micros), Some((1..=4).collect())).expect("they fit");
    let check = checked(&data, "mean=19.75us min=1.00us");
    assert_eq!(codes(&check), ["ids-included"], "{check:#?}");
    assert!(check.claims.iter().all(|claim| !claim.explanations.is_empty()));
}

#[test]
fn lost_probes_of_the_warm_up_belong_to_the_mistake_that_includes_it() {
    let values: Vec<i64> = delays(594, 300_000.0);
    let data = PublishedData { warmup: 98, lost: 4, warmup_lost: 2, ..round_trips(values) };
    for (claims, expected) in [
        ("n=500 lost=4", ["holds", "holds"]),
        ("n=600 lost=4", ["explained", "holds"]),
        ("n=600 lost=6", ["explained", "explained"]),
    ] {
        let check = checked(&data, claims);
        assert_eq!(verdicts(&check), expected, "{claims}: {:#?}", check.groups);
        if expected != ["holds"; 2] {
            assert_eq!(codes(&check), ["warmup-included"], "{claims}");
        }
    }
}
