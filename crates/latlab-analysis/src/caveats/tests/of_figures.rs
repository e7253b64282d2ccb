//! Caveats of what a single run does not show.

use crate::caveats::{Run, figures, raised};
use crate::diagnostics::Caveat;
use crate::host_samples::HostAccumulators;
use crate::in_memory::{CLOSED, InMemory, logged};
use crate::metric::Metric;
use crate::recording::manifest::Manifest;
use crate::sample::{INFINITE, Sample};
use crate::stats::{DescribeOptions, DescribedFigure, Description, Share, describe, share};

/// But for quantiles that are not supported.
fn of_one_run(manifest: &Manifest, described: Option<&Description>, lost: Option<Share>) -> Vec<Caveat> {
    let hosts = HostAccumulators::new();
    let run = Run { described, lost, ..Run::of(manifest, &hosts) };
    let found = raised(figures::RULES, &run).into_iter();
    found.filter(|caveat| !caveat.message.starts_with("fewer than 10")).collect()
}

fn codes(value: impl Fn(i64) -> i64) -> Vec<String> {
    let sample = Sample::new(Metric::RoundTripDelay, (0..20_000).map(value).collect());
    let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: false };
    let lost = share(&sample, 0.95, |value| value == INFINITE);
    let manifest = InMemory::of(CLOSED, Vec::new()).manifest;
    let found = of_one_run(&manifest, Some(&describe(&sample, &options)), Some(lost));
    found.into_iter().map(|caveat| format!("{}: {}", caveat.code, caveat.message)).collect()
}

#[test]
fn an_interval_of_the_mean_that_begins_below_the_smallest_delay_is_named() {
    let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: true };
    let described = |values: Vec<i64>| describe(&Sample::new(Metric::RoundTripDelay, values), &options);
    let is_it = |caveat: &Caveat| caveat.message.starts_with("the 95 % interval of the mean ");
    let of = |manifest: &Manifest, described: &Description| {
        of_one_run(manifest, Some(described), None).into_iter().find(is_it).map(|caveat| caveat.message)
    };
    let few = described(vec![10, 10, 10, 10, 100]);
    let (pings, stream) = (InMemory::of(CLOSED, Vec::new()).manifest, InMemory::of_stream(1, Vec::new()).manifest);
    assert!(of(&pings, &few).expect("28 ± 50").contains("of the mean round trip delay begins below"));
    assert!(of(&logged(Vec::new(), true).manifest, &few).expect("of a log").contains("of the mean delay begins below"));
    assert_eq!((of(&stream, &few), of(&pings, &described((0..1_000).map(noise).collect()))), (None, None));
    let changing = Description { slow_changes: Some((DescribedFigure::Mean, 3.0)), ..few };
    let codes = of_one_run(&pings, Some(&changing), None).into_iter().map(|caveat| caveat.code);
    assert_eq!(codes.collect::<Vec<_>>(), ["slow-changes"]);
}

fn noise(place: i64) -> i64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64).rotate_left(31).rem_euclid(1_000)
}

#[test]
fn drift_bursts_and_outages_are_named_and_noise_is_not() {
    assert_eq!(codes(noise), Vec::<String>::new());
    let drift = codes(|place| noise(place) + place / 20);
    assert!(drift.len() == 1 && drift[0].starts_with("slow-changes"), "{drift:?}");
    let outage = codes(|place| if (7_000..7_300).contains(&place) { INFINITE } else { noise(place) });
    assert_eq!(
        outage.last().expect("a caveat"),
        "rare-bursts: 300 probes without an answer in time came in about one burst"
    );
    let scattered = codes(|place| if noise(place) < 15 { INFINITE } else { noise(place) });
    assert_eq!(scattered, Vec::<String>::new());
    let bursts = codes(|place| noise(place) + if (place + 3_000) % 12_000 < 150 { 9_000 } else { 0 });
    assert_eq!(bursts, ["rare-bursts: p99 of the round trip delay comes from about one burst"]);
    assert_eq!(codes(|_| INFINITE), Vec::<String>::new(), "a run without an answer has a caveat of its own");
}

#[test]
fn slow_changes_name_the_figure_that_shows_them() {
    let step = codes(|place| noise(place) + if place < 10_000 { 0 } else { 2_000 });
    assert!(step[0].starts_with("slow-changes: ") && step[0].contains("20,000 values count as "), "{step:?}");
    // An outage changes how many probes lie above p90, and leaves the mean of the answered ones.
    let outage = codes(|place| if (7_000..7_300).contains(&place) { INFINITE } else { noise(place) });
    assert!(outage[0].contains("for p90)"), "{outage:?}");
}
