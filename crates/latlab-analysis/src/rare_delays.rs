//! How bad can it get: the levels of the main metric that are rarer than a run shows well.

use super::metric_sample::MetricSample;
use super::source::ProbeSource;
use super::summary::Summary;
use crate::plan::Kind;
use crate::stats::{Extremes, NoExtremes, Rarity, extremes};
use crate::units::Nanos;

/// The quantiles that are asked for, and the periods besides that of the run.
const QUANTILES: [f64; 3] = [0.9999, 0.99999, 0.999999];
const PERIODS: [Nanos; 3] = [Nanos::from_secs(60), Nanos::from_secs(3_600), Nanos::from_secs(86_400)];

/// The rare levels of the run of `source`, whose `summary` this is; `None` of a stream and of executions.
///
/// # Errors
/// The rows cannot be read.
pub fn rare_delays<S: ProbeSource>(
    source: &S,
    summary: &Summary,
) -> Result<Option<Result<Extremes, NoExtremes>>, S::Error> {
    let has_instants = matches!(summary.kind, Kind::Ping | Kind::Wakeup | Kind::Values);
    let Some(described) = summary.metrics.get(&summary.metric).filter(|_| has_instants) else { return Ok(None) };
    let sample = MetricSample::of(source, summary.metric)?;
    let Some(sample) = sample.ordered() else { return Ok(Some(Err(NoExtremes::Unordered))) };
    // Values of a log have no instants.
    let periods = PERIODS.into_iter().chain([summary.duration_ns]).filter(|_| summary.duration_ns > Nanos::ZERO);
    let once = periods.map(|period| Rarity::OnceIn {
        period,
        singletons: sample.n() as f64 * period.0 as f64 / summary.duration_ns.0 as f64,
    });
    let rarities: Vec<Rarity> = QUANTILES.map(Rarity::Quantile).into_iter().chain(once).collect();
    Ok(Some(extremes(sample, described, &rarities)))
}
