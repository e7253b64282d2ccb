//! The order of caveats by their effect, and effects that are worded differently for each kind of run.

use std::cmp::Reverse;

use crate::diagnostics::{Caveat, Severity};
use crate::plan::Kind;

/// Every code, the one that spoils the figures most first: comparisons of what differs otherwise, figures that do not exist
/// or belong to another condition, parts that are missing, delays by the host, doubts about intervals and comparisons,
/// notes.
const BY_EFFECT: &str = "confounded reflector-died answers-ended suspended clock-stepped schedule-lost host-throttled \
    socket-drops none-answered no-answer no-probe-measured none-delivered no-packet-sent no-rate-found \
    unfinished recovered ended-early interrupted missing-runs untrusted-runs recording-gap unreadable-events orphan-answers \
    load-unreached rate-unreached stage-unreached setting-changed spin-on-one-cpu spin-contended \
    slow-receiver undecided-packets not-sent not-slept send-failed socket-errors overrun-slots foreign-load \
    unequal-placement unpinned-placement frequency-drift rt-throttling fair-server steal send-slip \
    unit-assumed skipped-lines lost-without-row missing-ids irregular-ids negative-delays \
    late lost coarse-clock slow-clock fragmentation probes-load unsent-probes stages-left-out \
    found-rate-lossy search-undecided not-interleaved dependent-lines broke-runs not-possible lost-quantile \
    unsupported-comparison unsupported-gate \
    slow-changes rare-bursts tcp-retransmits setting-not-restored host-samples-lost \
    runs-left-out broke cut-short trace-missing search-ceiling looked-before \
    unequal-spread few-observations wide-mean few-lines files-as-runs undecided-probes reordered duplicates strays send-refused \
    small-buffers software-checksums no-checksum governor idle-states order-unknown values-unordered halves-doubled imported \
    unchecked-events no-checksums";

/// Codes of notes that nearly every run or comparison carries: they are no news, and are listed only on demand.
const ROUTINE: [&str; 5] = ["idle-states", "imported", "order-unknown", "steal", "unpinned-placement"];

/// Codes of what the failure of a command whose probes were not answered says, with what was tried and what to do.
const SILENCE: [&str; 3] = ["none-answered", "no-answer", "socket-errors"];

/// Whether the failure of a command whose probes were not answered says the same.
pub fn repeats_silence(caveat: &Caveat) -> bool {
    SILENCE.contains(&caveat.code.as_str())
}

/// The place of `caveat` among others: by severity, then by what it does to the figures.
pub fn effect_order(caveat: &Caveat) -> (Reverse<Severity>, usize) {
    let place = BY_EFFECT.split_whitespace().position(|code| code == caveat.code).unwrap_or(usize::MAX);
    (Reverse(caveat.severity), place)
}

/// Whether nearly every run or comparison carries such a note.
pub fn is_routine(caveat: &Caveat) -> bool {
    caveat.severity == Severity::Note && ROUTINE.contains(&caveat.code.as_str())
}

/// Texts of the common caveats for one kind of run.
pub(super) struct Wording {
    pub(super) rows_missing: &'static str,
    /// Effect of a process that died.
    pub(super) cut_off: &'static str,
    pub(super) stolen: &'static str,
    /// Effect of other processes' work.
    pub(super) foreign: &'static str,
    /// Effect of a change of the CPU frequency.
    pub(super) drifted: &'static str,
    /// Effect of a suspended host.
    pub(super) suspended: &'static str,
    /// Effect of a slow clock.
    pub(super) clock_read: &'static str,
}

impl Wording {
    pub(super) const fn of(kind: Kind) -> &'static Wording {
        match kind {
            Kind::Ping | Kind::Values => &PING,
            Kind::Wakeup => &WAKEUP,
            Kind::Stream => &STREAM,
        }
    }
}

const PING: Wording = Wording {
    rows_missing: "probes are missing in every count, also among the due ones of response time and deadlines, or answered \
                   probes are counted as lost",
    cut_off: "up to the last second is missing; probes in flight at the end are in no count",
    stolen: "high quantiles may show the hypervisor, not the network",
    foreign: "some probes waited for these processes; high quantiles include this waiting",
    drifted: "the CPU time in each round trip changed as much: smaller differences between runs cannot be seen",
    suspended: "probes waited while the clock stood still",
    clock_read: "each round trip contains one such read",
};

const WAKEUP: Wording = Wording {
    rows_missing: "wake-ups are missing",
    cut_off: "up to the last second is missing",
    stolen: "high quantiles may show the hypervisor, not this host's kernel",
    foreign: "some wake-ups waited for these processes; high quantiles include this waiting",
    drifted: "the CPU time in each wake-up changed as much: smaller differences between runs cannot be seen",
    suspended: "threads slept while the clock stood still",
    clock_read: "each wake-up contains one such read",
};

const STREAM: Wording = Wording {
    rows_missing: "intervals are missing",
    cut_off: "up to the last second is missing",
    stolen: "low rates may show the hypervisor, not the path",
    foreign: "both ends sometimes waited for these processes: the rate is limited by it as much as by the path",
    drifted: "the CPU time of each packet changed as much: smaller differences between runs cannot be seen",
    suspended: "nothing was sent while the clock stood still",
    clock_read: "a paced sender reads it between its bursts",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_code_has_one_place_in_the_order() {
        let page = include_str!("../../../../docs/metrics.md");
        let (_, page) = page.split_once("\n## Caveats\n").expect("a section");
        let mut documented: Vec<&str> =
            page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0)).collect();
        let mut ordered: Vec<&str> = BY_EFFECT.split_whitespace().collect();
        documented.sort_unstable();
        ordered.sort_unstable();
        assert_eq!(ordered, documented);
        assert!(ROUTINE.iter().chain(&SILENCE).all(|code| ordered.contains(code)));
    }

    #[test]
    fn severity_comes_first_and_then_the_effect() {
        let none = String::new;
        let caveat = |severity, code: &str| Caveat {
            code: code.into(),
            severity,
            message: none(),
            effect: none(),
            hint: none(),
        };
        let mut caveats = [
            caveat(Severity::Note, "lost"),
            caveat(Severity::Warning, "slow-changes"),
            caveat(Severity::Warning, "of-a-later-version"),
            caveat(Severity::Warning, "none-answered"),
            caveat(Severity::Fatal, "socket-drops"),
        ];
        caveats.sort_by_key(effect_order);
        let codes = caveats.map(|caveat| caveat.code);
        assert_eq!(codes, ["socket-drops", "none-answered", "slow-changes", "of-a-later-version", "lost"]);
        assert!(is_routine(&caveat(Severity::Note, "steal")) && !is_routine(&caveat(Severity::Warning, "steal")));
    }
}
