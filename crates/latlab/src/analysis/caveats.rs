//! Caveats derived from a recording: each a cause with its numbers, its effect and its remedy.
//! Every code stands in docs/metrics.md.

mod clocks;
mod ends;
mod fates;

use std::collections::BTreeMap;

use super::tally::{Refusals, Tally};
use crate::caveat::Caveat;
use crate::metric::Metric;
use crate::recording::manifest::Manifest;
use crate::stats::Description;

/// Every caveat of a run, those that the run raised itself included; worst first.
pub(super) fn derive(
    manifest: &Manifest,
    tally: &Tally,
    refusals: &Refusals,
    metrics: &BTreeMap<Metric, Description>,
) -> Vec<Caveat> {
    let mut caveats = manifest.caveats.clone();
    caveats.extend(fates::derive(manifest, tally, refusals));
    caveats.extend(fates::few_observations(metrics.get(&Metric::RoundTripDelay)));
    caveats.extend(clocks::derive(manifest));
    caveats.extend(ends::derive(manifest));
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

#[cfg(test)]
mod tests;
