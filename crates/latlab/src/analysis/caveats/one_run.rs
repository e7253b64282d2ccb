//! Caveats of what a single run does not show, however many probes it has: what a slow change does next, and how frequent
//! rare bursts are. Limits: docs/statistics.md, "What no single run can know".

use crate::diagnostics::{Caveat, Severity};
use crate::plan::Kind;
use crate::stats::{Description, Share};
use crate::units::human::{grouped, significant};

/// Fewer hits are too few to call them a burst.
const HITS_MIN: u64 = 10;
/// Fewer bursts do not show how frequent they are.
const BURSTS_MIN: f64 = 3.5;

const SEVERAL_RUNS: &str =
    "measure several runs (`latlab run`, `latlab compare`): they show how much a run differs from the next";

/// The caveats of `described`, the main metric of a run of `kind`, and of its `lost` probes.
pub(in crate::analysis) fn of_one_run(kind: Kind, described: Option<&Description>, lost: Option<Share>) -> Vec<Caveat> {
    let slow = described.and_then(|described| slow_changes(kind, described));
    let bursts = lost.and_then(bursts_of_losses).or_else(|| rare_bursts(kind, described?.rare_bursts?));
    slow.into_iter().chain(bursts).collect()
}

fn slow_changes(kind: Kind, described: &Description) -> Option<Caveat> {
    let effective_n = described.effective_n.filter(|_| described.slow_changes)?;
    let (metric, n) = (kind.metric().name().replace('_', " "), grouped(described.n));
    let worth = significant(effective_n);
    Some(Caveat::new(
        if described.quantiles.iter().all(|quantile| quantile.supported) { Severity::Note } else { Severity::Warning },
        "slow-changes",
        format!(
            "the {metric} changed slowly: long parts of the run differ more than short ones do, and for the mean its {n} values are worth {worth} independent ones"
        ),
        "a quantile takes 100 effective observations beyond it; intervals are about the time of this run, not the next one",
        match kind {
            Kind::Stream => SEVERAL_RUNS.to_owned(),
            Kind::Ping | Kind::Wakeup => format!("{SEVERAL_RUNS}; `--window` shows the change within this one"),
        },
    ))
}

fn rare_bursts(kind: Kind, bursts: f64) -> Option<Caveat> {
    let metric = kind.metric().name().replace('_', " ");
    let message = format!("the mean or the 99th percentile of the {metric} comes from {}", about(bursts));
    Some(of_bursts(message, "their intervals may be too narrow"))
}

fn bursts_of_losses(lost: Share) -> Option<Caveat> {
    let rarer = lost.hits.min(lost.n - lost.hits);
    let bursts = lost.effective_n? * rarer as f64 / lost.n as f64;
    (rarer >= HITS_MIN && bursts < BURSTS_MIN).then(|| {
        let message = format!("{} probes without an answer came in {}", grouped(lost.hits), about(bursts));
        of_bursts(
            message,
            "the interval of the loss ratio may be too narrow, and the next run may lose none or many more",
        )
    })
}

fn of_bursts(message: String, effect: &str) -> Caveat {
    let effect = format!("so few do not show how frequent they are: {effect}");
    Caveat::new(Severity::Warning, "rare-bursts", message, effect, SEVERAL_RUNS)
}

/// Bursts differ in length, which makes their number a rough figure.
fn about(bursts: f64) -> String {
    match bursts.round() {
        ..2.0 => "about one burst".into(),
        several => format!("about {several:.0} bursts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use crate::sample::{INFINITE, Sample};
    use crate::stats::{DescribeOptions, describe, share};

    fn codes(value: impl Fn(i64) -> i64) -> Vec<String> {
        let sample = Sample::new(Metric::RoundTripDelay, (0..20_000).map(value).collect());
        let options = DescribeOptions { quantiles: vec![0.5], confidence: 0.95, intervals: false };
        let lost = share(&sample, 0.95, |value| value == INFINITE);
        let found = of_one_run(Kind::Ping, Some(&describe(&sample, &options)), Some(lost));
        found.into_iter().map(|caveat| format!("{}: {}", caveat.code, caveat.message)).collect()
    }

    #[test]
    fn drift_bursts_and_outages_are_named_and_noise_is_not() {
        let noise = |place: i64| place.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64).rotate_left(31).rem_euclid(1_000);
        assert_eq!(codes(noise), Vec::<String>::new());
        let drift = codes(|place| noise(place) + place / 20);
        assert!(drift.len() == 1 && drift[0].starts_with("slow-changes"), "{drift:?}");
        let outage = codes(|place| if (7_000..7_300).contains(&place) { INFINITE } else { noise(place) });
        assert_eq!(outage, ["rare-bursts: 300 probes without an answer came in about one burst"]);
        let scattered = codes(|place| if noise(place) < 15 { INFINITE } else { noise(place) });
        assert_eq!(scattered, Vec::<String>::new());
        let bursts = codes(|place| noise(place) + if place % 9_000 < 150 { 9_000 } else { 0 });
        assert!(bursts.iter().any(|caveat| caveat.starts_with("rare-bursts: the mean or the 99th")), "{bursts:?}");
        assert_eq!(codes(|_| INFINITE), Vec::<String>::new(), "a run without an answer has a caveat of its own");
    }
}
