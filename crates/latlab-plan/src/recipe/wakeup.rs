//! Wake-up latency of a loop by governor, load, interval and the call that sleeps.

use super::definition::{Column, FiguresOf, Published, PublishedRow, Recipe, no_words};
use crate::metric::Metric;

/// Governors and heaters, for every scale.
const CONDITIONS: &str = "load = [\"none\", \"heaters=30\"]    # 30 endless sha1sums\n\
    set = [\"governor=as-found\", \"governor=ondemand\", \"governor=performance\"]\n";
/// Left out of the quick scale: longer intervals under load or with a governor, and both through the call of which
/// nothing was published.
const LEAVE_OUT: &str = "\n[[leave-out]]\nload = \"heaters=30\"\ninterval = \"100ms\"\n\
    \n[[leave-out]]\nload = \"heaters=30\"\ninterval = \"1s\"\n\
    \n[[leave-out]]\nset = \"governor=ondemand\"\ninterval = \"100ms\"\n\
    \n[[leave-out]]\nset = \"governor=ondemand\"\ninterval = \"1s\"\n\
    \n[[leave-out]]\nset = \"governor=performance\"\ninterval = \"100ms\"\n\
    \n[[leave-out]]\nset = \"governor=performance\"\ninterval = \"1s\"\n\
    \n[[leave-out]]\nload = \"heaters=30\"\nvia = \"clock_nanosleep\"\n\
    \n[[leave-out]]\nset = \"governor=ondemand\"\nvia = \"clock_nanosleep\"\n\
    \n[[leave-out]]\nset = \"governor=performance\"\nvia = \"clock_nanosleep\"\n";
const CONTRASTS: &str = "\n[[compare]]\nmetric = \"wakeup_latency\"\nstatistic = \"mean\"\n\
    baseline = { load = \"none\" }\n\n[[compare]]\nmetric = \"wakeup_latency\"\nstatistic = \"mean\"\n\
    baseline = { set = \"governor=as-found\" }\n";

pub(super) const GOVERNOR: Recipe = Recipe {
    name: "wakeup-governor",
    title: "wake-up latency by governor, load, interval and the call that sleeps",
    origin: "training material, Raspberry Pi 4B: before = time(); sleep(INTERVAL); after = time() in Python, 100 loops a row; \
             the value is after - before - INTERVAL",
    lesson: "Why longer sleeps wake later was left open there. Python slept in select() until 3.11, whose time-out the kernel may \
             stretch by 0.1 % of itself, and at least by the thread's timer slack (50 us): 1 ms at 1 s, 100 us at 100 ms, \
             the slack at 10 ms. How one sleeps is a factor; and the wall clock, which can be set, measures nothing.",
    template: include_str!("../../recipes/wakeup-governor.toml"),
    words: [
        &[
            // One wake-up a run at 1 s: four runs of each condition are what fits in a minute.
            ("COUNT", "30"),
            ("DURATION", "duration = \"1100ms\"\n"),
            ("CONDITIONS", CONDITIONS),
            ("LEAVE_OUT", LEAVE_OUT),
            ("CONTRASTS", ""),
            ("RUNS", "4"),
            ("BLOCKS", "1"),
        ],
        &[
            ("COUNT", "100"),
            ("DURATION", "duration = \"5s\"\n"),
            ("CONDITIONS", CONDITIONS),
            ("LEAVE_OUT", ""),
            ("CONTRASTS", CONTRASTS),
            ("RUNS", "4"),
            ("BLOCKS", "2"),
        ],
        &[
            ("COUNT", "100"),
            ("DURATION", ""),
            ("CONDITIONS", CONDITIONS),
            ("LEAVE_OUT", ""),
            ("CONTRASTS", CONTRASTS),
            ("RUNS", "3"),
            ("BLOCKS", "3"),
        ],
    ],
    usual_target: "local",
    words_of_target: no_words,
    published: Some(&PUBLISHED),
};

const PUBLISHED: Published = Published {
    heading: "wake-up latency through select",
    metric: Metric::WakeupLatency,
    own_units: 1e3,
    unit: "µs",
    decimals: 1,
    half: false,
    sources: Published::FROM_RAW_DATA,
    whole: None,
    figures_of: FiguresOf::Singletons,
    columns: &[Column::Mean, Column::Stddev],
    rows: &[
        row(
            "10 ms, idle, ondemand",
            &[VIA, ("interval", "10ms"), ("load", "none"), ("set", "governor=ondemand")],
            &[Some(105.2), Some(14.6)],
        ),
        row(
            "10 ms, 30 × sha1sum, ondemand",
            &[VIA, ("interval", "10ms"), ("load", "heaters=30"), ("set", "governor=ondemand")],
            &[Some(67.3), Some(2.9)],
        ),
        row(
            "10 ms, idle, performance",
            &[VIA, ("interval", "10ms"), ("load", "none"), ("set", "governor=performance")],
            &[Some(67.0), Some(1.3)],
        ),
        row(
            "10 ms, 30 × sha1sum, performance",
            &[VIA, ("interval", "10ms"), ("load", "heaters=30"), ("set", "governor=performance")],
            &[Some(65.2), Some(2.4)],
        ),
        row(
            "100 ms, idle, performance",
            &[VIA, ("interval", "100ms"), ("load", "none"), ("set", "governor=performance")],
            &[Some(142.6), Some(5.0)],
        ),
        row(
            "1 s, idle, performance",
            &[VIA, ("interval", "1s"), ("load", "none"), ("set", "governor=performance")],
            &[Some(1042.4), Some(17.1)],
        ),
        row("10 ms, idle, governor as found", &[VIA, ("interval", "10ms"), ("load", "none"), AS_FOUND], &[]),
        row(
            "10 ms, 30 × sha1sum, governor as found",
            &[VIA, ("interval", "10ms"), ("load", "heaters=30"), AS_FOUND],
            &[],
        ),
        row("100 ms, idle, governor as found", &[VIA, ("interval", "100ms"), ("load", "none"), AS_FOUND], &[]),
        row("1 s, idle, governor as found", &[VIA, ("interval", "1s"), ("load", "none"), AS_FOUND], &[]),
    ],
    implied: &[("load", "none"), AS_FOUND],
};

const VIA: (&str, &str) = ("via", "select");
const AS_FOUND: (&str, &str) = ("set", "governor=as-found");

const fn row(
    label: &'static str,
    factors: &'static [(&'static str, &'static str)],
    published: &'static [Option<f64>],
) -> PublishedRow {
    PublishedRow { label, factors, published, recomputed: &[], against_first: None }
}
