//! All caveats of one run.

use super::clocks::same_machine;
use super::{clocks, host_samples, hosts, loads, recording};
use crate::analysis::host_samples::HostAccumulators;
use crate::diagnostics::Caveat;
use crate::plan::Side;
use crate::recording::manifest::Manifest;

/// The caveats raised while the run was measured, those of its recording, `of_kind`, and those of hosts, settings and
/// loads; worst first.
pub(in crate::analysis) fn of_run(
    manifest: &Manifest,
    samples: &HostAccumulators,
    of_kind: impl IntoIterator<Item = Caveat>,
) -> Vec<Caveat> {
    let mut caveats = manifest.caveats.clone();
    caveats.extend(recording::caveats(manifest));
    caveats.extend(of_kind);
    caveats.extend(clocks::caveats(manifest));
    caveats.extend(hosts::caveats(manifest));
    let is_far_host_known = manifest.spec.target.has_agent() && !same_machine(manifest);
    if is_far_host_known {
        caveats.extend(hosts::of_far_host(manifest));
    }
    caveats.extend(host_samples::caveats(manifest, samples));
    // Samples show steal more precisely than the facts before and after the run, which are used without samples.
    if !samples.contains_key(&Side::Local) {
        caveats.extend(hosts::steal(manifest.kind, "this host", &manifest.here));
    }
    if is_far_host_known && !samples.contains_key(&Side::Peer) {
        caveats.extend(hosts::steal(manifest.kind, "the reflector's host", &manifest.peer));
    }
    caveats.extend(hosts::of_settings(manifest));
    caveats.extend(loads::unreached_loads(&manifest.loads));
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}
