//! Caveats: what to know about a run before believing it, each with numbers, effect and remedy. The tables of this folder,
//! and that of `comparison/caveats.rs`, have all of them; docs/metrics.md lists their codes. The tables, and the rows of
//! each, are in the order in which caveats of one severity are shown.

mod ends;
mod figures;
mod hosts;
mod imports;
mod probes;
mod recording;
mod remedies;
mod rule;
mod run;
mod streams;

pub(super) use ends::same_machine;
pub use hosts::{real_time_warning, unreached_loads};
pub(super) use rule::{Rule, Topic, raised};
pub(super) use run::Run;

use crate::diagnostics::{Caveat, Severity};
use crate::recording::manifest::Manifest;

#[cfg(test)]
mod tests;

/// Codes of notes that nearly every run or comparison carries: they are no news, and are listed only on demand.
const ROUTINE: [&str; 5] = ["idle-states", "imported", "not-interleaved", "steal", "unpinned-placement"];

/// Codes of what the failure of a command whose probes were not answered says, with what was tried and what to do.
const SILENCE: [&str; 3] = ["ended-early", "no-answer", "socket-errors"];

/// Whether nearly every run or comparison carries such a note.
pub fn is_routine(caveat: &Caveat) -> bool {
    caveat.severity == Severity::Note && ROUTINE.contains(&caveat.code.as_str())
}

/// Whether the failure of a command whose probes were not answered says the same.
pub fn repeats_silence(caveat: &Caveat) -> bool {
    SILENCE.contains(&caveat.code.as_str())
}

impl Run<'_> {
    /// The caveats raised while the run was measured, and those of its facts; worst first.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = raised(recording::RULES, self);
        if self.is_imported() {
            caveats.extend(raised(imports::RULES, self));
        } else {
            caveats.extend(raised(probes::RULES, self));
            caveats.extend(raised(streams::RULES, self));
            caveats.extend(unreached_loads(&self.manifest.loads));
            caveats.extend(hosts::of_settings(self.manifest));
            caveats.extend(ends::ends(self.manifest, self.hosts).flat_map(|end| raised(hosts::OF_ENDS, &end)));
            caveats.extend(raised(streams::OF_PATH, self));
        }
        caveats.extend(raised(figures::RULES, self));
        caveats.extend(self.manifest.caveats.iter().cloned());
        caveats.sort_by_key(Caveat::worst_first);
        caveats
    }
}

/// What the log of an imported run does not say, or says wrongly.
pub fn of_import(manifest: &Manifest) -> Vec<Caveat> {
    raised(imports::RULES, &Run::of(manifest, &Default::default()))
}
