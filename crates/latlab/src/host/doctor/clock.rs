//! The clocks and the timers.

use super::Seen;
use crate::facts::{Finding, FindingSeverity};
use crate::plan::WaitMode;

const SOURCES: &str = "sys/devices/system/clocksource/clocksource0";

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    [clocksource(seen), timer_slack(seen), synchronisation(seen)].into_iter().flatten().collect()
}

fn clocksource(seen: &Seen<'_>) -> Option<Finding> {
    let source = seen.facts.clocksource.as_deref()?;
    match source {
        "tsc" | "arch_sys_counter" => return Some(Finding::fine("clocksource", format!("clocksource {source}"))),
        // The vDSO reads these two without a system call, but they cost more than the counter itself.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => {
            let message = format!("clocksource is `{source}`: a read costs more than with `tsc`");
            return Some(Finding::note("clocksource", message));
        }
        _ => {}
    }
    let message =
        format!("clocksource is `{source}`: every clock read enters the kernel and takes about a microsecond");
    let available = seen.facts.clock.clocksources.as_deref().unwrap_or_default();
    let fix = if available.iter().any(|name| name == "tsc") {
        format!("echo tsc | sudo tee /{SOURCES}/current_clocksource")
    } else {
        "the kernel has no better one (`dmesg | grep -i clocksource` says why): judge small delays with care".into()
    };
    Some(Finding::new(FindingSeverity::Warning, "clocksource", message, fix))
}

/// How late a sleeping thread may be woken on purpose; real-time threads have none
/// ([PR_SET_TIMERSLACK(2const)](https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html)).
fn timer_slack(seen: &Seen<'_>) -> Option<Finding> {
    const NEGLIGIBLE_NS: u64 = 1_000;
    let slack_ns = seen.facts.timer_slack_ns.filter(|slack| *slack > NEGLIGIBLE_NS)?;
    seen.intent.any(|end| end.fifo.is_none() && end.wait != WaitMode::Spin).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "timer-slack",
            format!(
                "timer slack is {} µs: on a schedule a sleeping sender starts up to that much late",
                slack_ns / 1_000
            ),
            "latlab ping --fifo 50, or --wait spin",
        )
    })
}

/// Delays in one direction are differences between two hosts' clocks; round trips need one clock only.
fn synchronisation(seen: &Seen<'_>) -> Option<Finding> {
    const CODE: &str = "clock-unsynchronised";
    let state = seen.facts.clock.discipline.as_ref()?;
    let keeper = seen.facts.clock.keeper.as_ref();
    if state.synchronised && keeper.is_none_or(|keeper| keeper.synchronised != Some(false)) {
        let bound_ns = keeper.and_then(|keeper| keeper.error_bound_ns());
        let bound_us = bound_ns.map_or(state.maximum_error_us as f64, |bound_ns| bound_ns / 1e3);
        let name = keeper.map_or("clock in step", |keeper| &keeper.name);
        return Some(Finding::fine(CODE, format!("{name} ±{bound_us:.0} µs")));
    }
    let message = "nobody keeps CLOCK_REALTIME in step: delays in one direction against another host would be \
                   wrong by an unknown offset that drifts by some 10 µs a second (round trips are not touched)";
    Some(Finding::new(FindingSeverity::Note, CODE, message, "sudo systemctl enable --now chrony"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, SPINNING, find, judged, message, on, severity};
    use super::*;
    use crate::facts::{ClockDiscipline, ClockKeeper, HostFacts};
    use crate::host::root::tests::FakeHost;

    fn ticking(current: &str, available: &str) -> FakeHost {
        FakeHost::new()
            .with("sys/devices/system/clocksource/clocksource0/current_clocksource", current)
            .with("sys/devices/system/clocksource/clocksource0/available_clocksource", available)
    }

    #[test]
    fn a_slow_clock_is_named_with_the_better_one() {
        let found = on(&ticking("hpet", "tsc hpet acpi_pm"), &BLOCKING);
        let finding = find(&found, "clocksource").expect("found");
        assert_eq!(finding.severity, FindingSeverity::Warning);
        assert!(finding.message.contains("`hpet`"));
        assert!(finding.fix.as_ref().expect("a fix").starts_with("echo tsc | sudo tee /sys/"));
        let found = on(&ticking("acpi_pm", "acpi_pm"), &BLOCKING);
        assert!(!find(&found, "clocksource").expect("found").fix.as_ref().expect("a fix").contains("tee"));
    }

    #[test]
    fn counters_are_fine() {
        for counter in ["tsc", "arch_sys_counter"] {
            assert_eq!(
                severity(&on(&ticking(counter, counter), &BLOCKING), "clocksource"),
                Some(FindingSeverity::Fine)
            );
        }
        assert_eq!(severity(&on(&ticking("kvm-clock", "tsc"), &BLOCKING), "clocksource"), Some(FindingSeverity::Note));
    }

    #[test]
    fn slack_concerns_sleepers_only() {
        let host = FakeHost::new().with("proc/self/timerslack_ns", "50000");
        assert!(find(&on(&host, &BLOCKING), "timer-slack").expect("found").message.contains("50 µs"));
        assert_eq!(severity(&on(&host, &SPINNING), "timer-slack"), None);
    }

    #[test]
    fn a_clock_that_nobody_keeps_is_noted() {
        let state = |synchronised| ClockDiscipline {
            synchronised,
            estimated_error_us: 3,
            maximum_error_us: 1_500,
            frequency_ppm: 0.0,
            tai_offset_s: 37,
            status: 0,
        };
        let mut facts = HostFacts::default();
        facts.clock.discipline = Some(state(false));
        assert_eq!(severity(&judged(&facts, &BLOCKING), "clock-unsynchronised"), Some(FindingSeverity::Note));
        facts.clock.discipline = Some(state(true));
        assert_eq!(message(&judged(&facts, &BLOCKING), "clock-unsynchronised"), "clock in step ±1500 µs");
        facts.clock.keeper = Some(ClockKeeper {
            name: "chrony".into(),
            offset_ns: Some(-4_000.0),
            root_delay_ns: Some(100_000.0),
            root_dispersion_ns: Some(30_000.0),
            ..ClockKeeper::default()
        });
        assert_eq!(message(&judged(&facts, &BLOCKING), "clock-unsynchronised"), "chrony ±84 µs");
        facts.clock.keeper = Some(ClockKeeper { synchronised: Some(false), ..ClockKeeper::default() });
        assert_eq!(severity(&judged(&facts, &BLOCKING), "clock-unsynchronised"), Some(FindingSeverity::Note));
    }
}
