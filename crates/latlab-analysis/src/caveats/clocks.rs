//! Caveats of the clocks: steps, suspends, and clocks too slow or too coarse.

use super::wording::Wording;
use crate::analysis::limits::STEP;
use crate::diagnostics::{Caveat, Severity};
use crate::facts::ClockAnchor;
use crate::plan::Kind;
use crate::recording::manifest::{EndFacts, Manifest};
use crate::units::human::span;
use crate::units::{Nanos, human};

/// A clock read through the vDSO takes about 20 ns; a system call takes several times that.
const SLOW_READ_NS: f64 = 150.0;

/// The caveats of the clocks of both ends.
pub(super) fn caveats(manifest: &Manifest) -> Vec<Caveat> {
    let ends = [("this host", &manifest.here), ("the reflector's host", &manifest.peer)];
    let mut caveats: Vec<Caveat> = ends.into_iter().flat_map(|(host, end)| of_end(manifest.kind, host, end)).collect();
    // Ends on one machine have the same clocks: a step or a suspension is reported once.
    let mut reported = std::collections::BTreeSet::new();
    caveats.retain(|caveat| reported.insert(caveat.code.clone()) || !same_machine(manifest));
    caveats.extend(slow_clock(manifest));
    caveats.extend(coarse_clock(manifest));
    caveats
}

/// Whether both ends ran in one boot of one machine.
pub(crate) fn same_machine(manifest: &Manifest) -> bool {
    let boot = |end: &EndFacts| end.before.as_ref().and_then(|facts| facts.boot_id.clone());
    boot(&manifest.here).is_some() && boot(&manifest.here) == boot(&manifest.peer)
}

fn of_end(kind: Kind, host: &str, end: &EndFacts) -> Vec<Caveat> {
    let Some((start, finish)) = end.clock_start.zip(end.clock_end) else { return Vec::new() };
    let difference = |clock: fn(&ClockAnchor) -> i64| {
        (clock(&finish) - clock(&start)).saturating_sub(finish.monotonic_ns - start.monotonic_ns)
    };
    let tolerance = STEP.0.max(start.width_ns.saturating_add(finish.width_ns));
    let slept = difference(|anchor| anchor.boottime_ns);
    let step = difference(|anchor| anchor.realtime_ns).saturating_sub(slept);
    let mut caveats = Vec::new();
    if slept > tolerance {
        caveats.push(Caveat::new(
            Severity::Fatal,
            "suspended",
            format!("{host} was suspended for {} during the run", span(Nanos(slept))),
            Wording::of(kind).suspended,
            "inhibit sleep while measuring: `systemd-inhibit latlab …`",
        ));
    }
    if step.abs() > tolerance {
        let way = if step > 0 { "forward" } else { "back" };
        caveats.push(Caveat::new(
            Severity::Fatal,
            "clock-stepped",
            format!("the calendar clock of {host} was stepped {way} by {} during the run", span(Nanos(step.abs()))),
            "time stamps from before and after the step cannot be compared",
            "wait until the time daemon has settled (`chronyc waitsync`), then measure again",
        ));
    }
    caveats
}

fn slow_clock(manifest: &Manifest) -> Option<Caveat> {
    let cost = manifest.instrument.clock_read_ns.filter(|cost| *cost > SLOW_READ_NS)?;
    let source = manifest.here.before.as_ref().and_then(|facts| facts.clocksource.as_deref()).unwrap_or("unknown");
    Some(Caveat::new(
        Severity::Warning,
        "slow-clock",
        format!("one clock read takes {} ns (clocksource {source})", human::significant(cost)),
        Wording::of(manifest.kind).clock_read,
        "`latlab doctor` names a faster clocksource if the kernel has one",
    ))
}

fn coarse_clock(manifest: &Manifest) -> Option<Caveat> {
    let resolution = manifest.instrument.clock_resolution_ns.filter(|resolution| resolution.0 > 1_000)?;
    Some(Caveat::new(
        Severity::Warning,
        "coarse-clock",
        format!("the clock ticks only every {}", span(resolution)),
        "figures are rounded to that step",
        "boot with high-resolution timers (`highres=on`)",
    ))
}
