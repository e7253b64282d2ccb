//! Sentences that are about probes in one kind of run and about wake-ups in another.

use crate::plan::Kind;

/// What a recording lacks that lost events.
pub(super) const fn torn(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "probes are missing, or answered ones are counted as lost",
        Kind::Wakeup => "wake-ups are missing",
        Kind::Stream => "intervals are missing",
    }
}

/// What a recording lacks whose process died.
pub(super) const fn cut_off(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "up to the last second is missing; probes in flight at the end are in no count",
        Kind::Wakeup => "up to the last second is missing",
        Kind::Stream => "up to the last second is missing",
    }
}

/// What stolen time does.
pub(super) const fn stolen(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "high quantiles may be the hypervisor's, not the network's",
        Kind::Wakeup => "high quantiles may be the hypervisor's, not this host's",
        Kind::Stream => "low rates may be the hypervisor's, not the path's",
    }
}

/// What work of others does, and what to do about it.
pub(super) const fn foreign(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Ping => (
            "probes waited for them now and then; high quantiles show that more than the network",
            "stop what else runs, or pin the ends to CPUs of their own with `--cpu` and `--peer-cpu`",
        ),
        Kind::Wakeup => (
            "threads waited for them now and then: high quantiles show that",
            "stop what else runs, or give the thread the right of way: `--fifo 80`",
        ),
        Kind::Stream => (
            "both ends waited for them now and then: rates show that as much as the path",
            "stop what else runs, or pin the ends to CPUs of their own with `--cpu` and `--peer-cpu`",
        ),
    }
}

/// What a clock rate does that moved.
pub(super) const fn drifted(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "the computing part of each round trip changed as much; runs cannot be compared that finely",
        Kind::Wakeup => "the computing part of each wake-up changed as much; runs cannot be compared that finely",
        Kind::Stream => "the computing part of each packet changed as much; runs cannot be compared that finely",
    }
}

/// What a suspended host does.
pub(super) const fn suspended(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "probes waited while the clock stood still",
        Kind::Wakeup => "threads slept on while the clock stood still",
        Kind::Stream => "nothing was sent while the clock stood still",
    }
}

/// What a slow clock is part of.
pub(super) const fn clock_read(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "each round trip contains one such read",
        Kind::Wakeup => "each wake-up contains one such read",
        Kind::Stream => "a paced sender reads it between its bursts",
    }
}
