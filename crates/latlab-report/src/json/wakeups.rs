//! The objects `wakeups` and `coincidence` of `latlab.summary/1`.

use serde_json::{Value, json};

use super::statistics::{delays, without_nulls};
use crate::analysis::{Coincidence, LateBeyond, Wakeups};
use crate::stats::Description;

pub(super) fn wakeups(wakeups: &Wakeups) -> Value {
    let of_cpu = |(cpu, described): &(u16, Description)| json!({ "cpu": cpu, "wakeup_latency": delays(described) });
    let lateness = &wakeups.lateness;
    let document = json!({
        "cpus": wakeups.by_cpu.iter().map(of_cpu).collect::<Vec<_>>(),
        "overrun_slots": wakeups.overrun_slots,
        "not_slept": wakeups.not_slept,
        "timer_slack_ns": lateness.timer_slack_ns,
        "stretch": lateness.stretch,
        "allowed_ns": lateness.allowed_ns,
        "rounding_ns": lateness.rounding_ns,
        "rest_ns": lateness.rest.known(),
        "meanwhile": wakeups.cpu_activity,
        "broke": wakeups.broke,
        "cut_short": wakeups.cut_short,
        "trace": wakeups.trace,
    });
    without_nulls(document, &["trace"])
}

pub(super) fn coincidence(found: &Coincidence) -> Value {
    let named = |stated: bool, name| if stated { name } else { "p99" };
    // The threshold of every CPU, and those of each.
    let (beyond_ns, by_cpu) = match &found.late_beyond {
        LateBeyond::Stated(beyond_ns) => (Some(beyond_ns), Vec::new()),
        LateBeyond::Tails(tails) => {
            let only = tails.values().next().filter(|_| tails.len() == 1);
            (only, tails.iter().map(|(cpu, beyond)| json!({ "cpu": cpu, "beyond_ns": beyond })).collect())
        }
    };
    json!({
        "interval_ns": found.interval_ns,
        "cpus": found.cpus,
        "wakeup_latency": delays(&found.wakeup_latency),
        "overrun_slots": found.overrun_slots,
        "late_beyond_ns": beyond_ns,
        "late_beyond": named(matches!(found.late_beyond, LateBeyond::Stated(_)), "stated"),
        "late_beyond_by_cpu": by_cpu,
        "late": found.late,
        "slow_beyond_ns": found.slow_beyond.beyond_ns,
        "slow_beyond": named(found.slow_beyond.stated, "deadline"),
        "slow": found.slow.n,
        "coincident": found.slow.hits,
        "coincident_ratio": found.slow.value,
        "coincident_ratio_interval": found.slow.interval,
        "chance_ratio": found.chance,
    })
}
