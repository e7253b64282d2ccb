//! The object `wakeups` of `latlab.summary/1`.

use serde_json::{Value, json};

use super::statistics::delays;
use crate::analysis::Wakeups;
use crate::stats::Description;

pub(super) fn wakeups(wakeups: &Wakeups) -> Value {
    let of_cpu = |(cpu, described): &(u16, Description)| json!({ "cpu": cpu, "wakeup_latency": delays(described) });
    let lateness = &wakeups.lateness;
    json!({
        "cpus": wakeups.by_cpu.iter().map(of_cpu).collect::<Vec<_>>(),
        "overrun_slots": wakeups.overrun_slots,
        "not_slept": wakeups.not_slept,
        "timer_slack_ns": lateness.timer_slack_ns,
        "stretch": lateness.stretch,
        "allowed_ns": lateness.allowed_ns,
        "rounding_ns": lateness.rounding_ns,
        "rest_ns": lateness.rest.known(),
        "broke": wakeups.broke,
        "cut_short": wakeups.cut_short,
    })
}
