//! Caveats derived from a recording: each a cause with its numbers, its effect and its remedy.
//! Every code stands in docs/metrics.md.

mod clocks;
mod connection;
mod drops;
mod ends;
mod fates;
mod kept;
mod limits;
mod loads;
mod samples;
mod searches;
mod settings;
mod streams;
mod wakeups;
mod words;

pub use ends::real_time_warning;
pub(super) use limits::{BEHIND_INTERVALS, BEHIND_SPAN};
pub use loads::unreached_loads;

use std::collections::BTreeMap;

use super::coincidence::Coincidence;
use super::host_course::HostAccumulator;
use super::streams::StreamFigures;
use super::tally::{Refusals, RunCounts};
use super::wakeups::Wakeups;
use crate::diagnostics::Caveat;
use crate::metric::Metric;
use crate::plan::Side;
use crate::recording::manifest::Manifest;
use crate::stats::Description;

/// Every caveat of a run, those that the run raised itself included; worst first.
pub(super) fn derive(
    manifest: &Manifest,
    (tally, refusals): (&RunCounts, &Refusals),
    metrics: &BTreeMap<Metric, Description>,
    (hosts, wakeups, beside): (&BTreeMap<Side, HostAccumulator>, Option<&Wakeups>, Option<&Coincidence>),
) -> Vec<Caveat> {
    let mut caveats = kept::derive(manifest);
    caveats.extend(fates::derive(manifest, tally, refusals));
    caveats.extend(fates::few_observations(metrics.get(&manifest.kind.metric())));
    caveats.extend(wakeups.into_iter().flat_map(|wakeups| wakeups::derive(wakeups, tally.counts.answered)));
    caveats.extend(beside.and_then(wakeups::overrun_beside));
    caveats.extend(drops::derive(manifest, &tally.counts));
    caveats.extend(connection::derive(manifest, &tally.counts));
    worst_first(manifest, hosts, caveats)
}

/// The same of a run of a stream.
pub(super) fn derive_of_stream(
    manifest: &Manifest,
    stream: &StreamFigures,
    metrics: &BTreeMap<Metric, Description>,
    hosts: &BTreeMap<Side, HostAccumulator>,
) -> Vec<Caveat> {
    let mut caveats = kept::of_the_recording(manifest);
    caveats.extend(streams::derive(manifest, stream, metrics.get(&Metric::DeliveredRate)));
    caveats.extend(searches::derive(manifest, stream));
    caveats.extend(connection::of_stream(manifest));
    worst_first(manifest, hosts, caveats)
}

/// `of_rows`, what the run raised itself, and what its conditions say, whatever was measured.
fn worst_first(manifest: &Manifest, hosts: &BTreeMap<Side, HostAccumulator>, of_rows: Vec<Caveat>) -> Vec<Caveat> {
    let mut caveats = manifest.caveats.clone();
    caveats.extend(of_rows);
    caveats.extend(clocks::derive(manifest));
    caveats.extend(ends::derive(manifest));
    let far_is_known = manifest.spec.target.has_agent() && !clocks::same_machine(manifest);
    if far_is_known {
        caveats.extend(ends::of_far_host(manifest));
    }
    caveats.extend(samples::derive(manifest, hosts));
    // Samples tell it better than the facts before and after, from which it is derived where there are none.
    if !hosts.contains_key(&Side::Local) {
        caveats.extend(ends::steal(manifest.kind, "this host", &manifest.here));
    }
    if far_is_known && !hosts.contains_key(&Side::Peer) {
        caveats.extend(ends::steal(manifest.kind, "the reflector's host", &manifest.peer));
    }
    caveats.extend(settings::derive(manifest));
    caveats.extend(unreached_loads(&manifest.loads));
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

#[cfg(test)]
mod tests;
