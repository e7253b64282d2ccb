//! What is known of a run when its caveats are raised.

use super::ends::is_contended;
use super::remedies;
use super::rule::Topic;
use crate::counts::{Counts, RunCounts, SendErrors};
use crate::host_samples::HostAccumulators;
use crate::ping::{Placed, SpinStalls, WatchedSlots};
use crate::plan::Side;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::stats::{Description, Share};
use crate::stream::StreamFigures;
use crate::wakeup::Wakeups;

/// The facts of a run, and what was computed from its rows: of each kind of run a part, and less if no figure of a single run
/// is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) hosts: &'a HostAccumulators,
    /// Of measured probes or wake-ups; `None` of streams, of commands and of logs.
    pub(crate) counts: Option<&'a RunCounts>,
    pub(crate) errors: Option<&'a SendErrors>,
    pub(crate) stalls: Option<&'a SpinStalls>,
    pub(crate) placed: Option<&'a Placed>,
    /// The main metric.
    pub(crate) described: Option<&'a Description>,
    pub(crate) lost: Option<Share>,
    pub(crate) wakeups: Option<&'a Wakeups>,
    /// Of the wake-ups during its probes.
    pub(crate) watched: Option<WatchedSlots>,
    pub(crate) stream: Option<&'a StreamFigures>,
}

impl Topic for Run<'static> {
    type Of<'a> = Run<'a>;
}

impl<'a> Run<'a> {
    /// That of which only the manifest and the host samples are known.
    pub(crate) const fn of(manifest: &'a Manifest, hosts: &'a HostAccumulators) -> Run<'a> {
        Run {
            manifest,
            hosts,
            counts: None,
            errors: None,
            stalls: None,
            placed: None,
            described: None,
            lost: None,
            wakeups: None,
            watched: None,
            stream: None,
        }
    }

    pub(super) fn is_imported(&self) -> bool {
        self.manifest.spec.import().is_some()
    }

    /// Whether its silent target ended the run, which then is complete and has a reason.
    pub(super) fn was_ended_by_silence(&self) -> bool {
        self.manifest.ending == RunEnding::Completed && self.manifest.reason.is_some()
    }

    pub(super) fn counts(&self) -> Option<&'a Counts> {
        self.counts.map(|run| &run.counts)
    }

    /// Whether a library with threads of its own carries messages, which may be several datagrams each: DDS.
    pub(super) fn is_over_library(&self) -> bool {
        self.manifest.spec.transport().is_some_and(|transport| transport.properties().has_own_threads)
    }

    /// What the transport carries: `packet`, `sample`.
    pub(super) fn message(&self) -> &'static str {
        self.manifest.spec.transport().unwrap_or_default().properties().message
    }

    /// [`remedies::spin`], unless this end has to share its CPU.
    pub(super) fn spin(&self) -> Option<&'static str> {
        remedies::spin(self.manifest, is_contended(self.manifest, self.hosts, Side::Local))
    }
}
