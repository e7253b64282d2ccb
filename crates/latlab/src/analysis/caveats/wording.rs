//! Effects and hints that are worded differently for each kind of run.

use crate::plan::Kind;

/// Texts of the common caveats for one kind of run.
pub(super) struct Wording {
    /// Effect of lost events.
    pub(super) rows_missing: &'static str,
    /// Effect of a process that died.
    pub(super) cut_off: &'static str,
    /// Effect of stolen time.
    pub(super) stolen: &'static str,
    /// Effect of other processes' work.
    pub(super) foreign: &'static str,
    /// Hint against other processes' work.
    pub(super) foreign_hint: &'static str,
    /// Effect of a change of the CPU frequency.
    pub(super) drifted: &'static str,
    /// Effect of a suspended host.
    pub(super) suspended: &'static str,
    /// Effect of a slow clock.
    pub(super) clock_read: &'static str,
    /// Hint against idle states.
    pub(super) idle_hint: &'static str,
}

impl Wording {
    pub(super) const fn of(kind: Kind) -> &'static Wording {
        match kind {
            Kind::Ping => &PING,
            Kind::Wakeup => &WAKEUP,
            Kind::Stream => &STREAM,
        }
    }
}

const PING: Wording = Wording {
    rows_missing: "probes are missing in every count, also in the due ones of response time and deadlines, or answered ones \
                   are counted as lost",
    cut_off: "up to the last second is missing; probes in flight at the end are in no count",
    stolen: "high quantiles may be the hypervisor's, not the network's",
    foreign: "probes waited for them now and then; high quantiles show that more than the network",
    foreign_hint: "stop what else runs, or pin the ends to CPUs of their own with `--cpu` and `--peer-cpu`",
    drifted: "the computing part of each round trip changed as much; runs cannot be compared that finely",
    suspended: "probes waited while the clock stood still",
    clock_read: "each round trip contains one such read",
    idle_hint: "`--wait spin`, or `--set cpu-dma-latency=0`",
};

const WAKEUP: Wording = Wording {
    rows_missing: "wake-ups are missing",
    cut_off: "up to the last second is missing",
    stolen: "high quantiles may be the hypervisor's, not this host's",
    foreign: "threads waited for them now and then: high quantiles show that",
    foreign_hint: "stop what else runs, or give the thread the right of way: `--fifo 80`",
    drifted: "the computing part of each wake-up changed as much; runs cannot be compared that finely",
    suspended: "threads slept on while the clock stood still",
    clock_read: "each wake-up contains one such read",
    idle_hint: "`--set cpu-dma-latency=0` keeps it from them for the time of the run",
};

const STREAM: Wording = Wording {
    rows_missing: "intervals are missing",
    cut_off: "up to the last second is missing",
    stolen: "low rates may be the hypervisor's, not the path's",
    foreign: "both ends waited for them now and then: rates show that as much as the path",
    foreign_hint: "stop what else runs, or pin the ends to CPUs of their own with `--cpu` and `--peer-cpu`",
    drifted: "the computing part of each packet changed as much; runs cannot be compared that finely",
    suspended: "nothing was sent while the clock stood still",
    clock_read: "a paced sender reads it between its bursts",
    idle_hint: "`--wait spin`, or `--set cpu-dma-latency=0`",
};
