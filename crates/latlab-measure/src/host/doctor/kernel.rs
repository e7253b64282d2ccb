//! Findings on the kernel: its version and settings, its clocks and timers, and the privileges of the process.

use super::evidence::HostEvidence;
use crate::facts::{Capability, Finding, FindingSeverity, RealTimePause, Rights};
use crate::plan::WaitMode;

const MINIMUM: (u32, u32) = (5, 10);
const SOURCES: &str = "sys/devices/system/clocksource/clocksource0";

pub(super) fn check(evidence: &HostEvidence<'_>) -> Vec<Finding> {
    let checks = [version, throttling, busy_polling, preemption, clocksource, timer_slack, synchronisation];
    let mut found: Vec<Finding> = checks.iter().filter_map(|check| check(evidence)).collect();
    found.extend(rights(evidence));
    found
}

fn version(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let release = evidence.facts.kernel.as_deref()?.strip_prefix("Linux ")?;
    (evidence.facts.kernel_version()? < MINIMUM).then(|| {
        Finding::new(
            FindingSeverity::Blocker,
            "kernel-version",
            format!("the kernel is {release}: older than {}.{}", MINIMUM.0, MINIMUM.1),
            "install a newer kernel",
        )
    })
}

/// The kernel limits the share of a CPU that real-time threads get.
fn throttling(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let endless = evidence.intent.any(|end| end.fifo.is_some() && end.wait == WaitMode::Spin);
    let limit = evidence.facts.real_time_pause().filter(|_| evidence.intent.any(|end| end.fifo.is_some()))?;
    let pause = limit.in_words();
    let (severity, code, message, fix) = match limit {
        RealTimePause::Throttling { .. } => {
            let (severity, message) = if endless {
                (FindingSeverity::Blocker, format!("RT throttling would stop a spinning FIFO thread for {pause}"))
            } else {
                (FindingSeverity::Note, format!("RT throttling stops FIFO threads that never sleep for {pause}"))
            };
            (severity, "rt-throttling", message, "sudo sysctl kernel.sched_rt_runtime_us=-1")
        }
        RealTimePause::FairShare { assumed, .. } => {
            let whence = if assumed { " (the kernel's default: debugfs cannot be read)" } else { "" };
            let message = format!(
                "the fair server may stop a spinning FIFO thread for {pause}{whence}, whenever a normal thread waits \
                 for its CPU"
            );
            let fix = "sudo sh -c \"echo 0 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime\"";
            (FindingSeverity::Warning, "fair-server", message, fix)
        }
    };
    (endless || code == "rt-throttling").then(|| Finding::new(severity, code, message, fix))
}

/// On a schedule an end waits in poll(2), which polls the driver only if `net.core.busy_poll` is set ([socket(7)]).
///
/// [socket(7)]: https://man7.org/linux/man-pages/man7/socket.7.html
fn busy_polling(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let span_us = evidence.facts.network.busy_poll_us?;
    (evidence.intent.waits(WaitMode::BusyPoll) && span_us == 0).then(|| {
        Finding::new(
            FindingSeverity::Warning,
            "busy-poll-off",
            "`net.core.busy_poll` is 0: on a schedule `--wait busy-poll` sleeps like `block`",
            "sudo sysctl net.core.busy_poll=50",
        )
    })
}

fn preemption(evidence: &HostEvidence<'_>) -> Option<Finding> {
    (evidence.facts.kernel_settings.preemption.as_deref()? == "none").then(|| {
        Finding::new(
            FindingSeverity::Note,
            "preemption",
            "the kernel is built without preemption: a thread that wakes up waits until a system call of another \
             one ends, milliseconds in bad cases",
            "boot a kernel with PREEMPT_DYNAMIC and `preempt=full`, or PREEMPT_RT",
        )
    })
}

fn clocksource(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let source = evidence.facts.clocksource.as_deref()?;
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
    let available = evidence.facts.clock.clocksources.as_deref().unwrap_or_default();
    let fix = if available.iter().any(|name| name == "tsc") {
        format!("echo tsc | sudo tee /{SOURCES}/current_clocksource")
    } else {
        "the kernel has no better one (`dmesg | grep -i clocksource` says why): judge small delays with care".into()
    };
    Some(Finding::new(FindingSeverity::Warning, "clocksource", message, fix))
}

/// How much later than due the kernel may wake a thread; real-time threads have no slack
/// ([PR_SET_TIMERSLACK(2const)](https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html)).
fn timer_slack(evidence: &HostEvidence<'_>) -> Option<Finding> {
    const NEGLIGIBLE_NS: u64 = 1_000;
    let slack_ns = evidence.facts.timer_slack_ns.filter(|slack| *slack > NEGLIGIBLE_NS)?;
    evidence.intent.any(|end| end.fifo.is_none() && end.wait != WaitMode::Spin).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "timer-slack",
            format!(
                "timer slack is {} µs: threads that measure wake-ups may wake up to that much late; the sender of ping and \
                 stream sets its own to 1 ns",
                slack_ns / 1_000
            ),
            "latlab wakeup --set timer-slack=1ns",
        )
    })
}

/// Delays in one direction are differences between two hosts' clocks; round trips need one clock only.
fn synchronisation(evidence: &HostEvidence<'_>) -> Option<Finding> {
    const CODE: &str = "clock-unsynchronised";
    let state = evidence.facts.clock.discipline.as_ref()?;
    let keeper = evidence.facts.clock.keeper.as_ref();
    if state.synchronised && keeper.is_none_or(|keeper| keeper.synchronised != Some(false)) {
        let bound_ns = keeper.and_then(|keeper| keeper.error_bound_ns());
        let bound_us = bound_ns.map_or(state.maximum_error_us as f64, |bound_ns| bound_ns / 1e3);
        let name = keeper.map_or("clock synchronised", |keeper| &keeper.name);
        return Some(Finding::fine(CODE, format!("{name} ±{bound_us:.0} µs")));
    }
    let message = "no daemon synchronises CLOCK_REALTIME: one-way delays to another host would be wrong by an \
     unknown offset that drifts by about 10 µs per second (round trips are not affected)";
    Some(Finding::new(FindingSeverity::Note, CODE, message, "sudo systemctl enable --now chrony"))
}

fn rights(evidence: &HostEvidence<'_>) -> Vec<Finding> {
    let Some(rights) = &evidence.facts.rights else { return Vec::new() };
    let mut found: Vec<Finding> =
        [real_time(evidence, rights), memory_lock(evidence, rights), lab(rights)].into_iter().flatten().collect();
    if found.is_empty() {
        found.push(Finding::fine("rights", "rights for real-time priority, locked memory and `lab`"));
    }
    found
}

/// The command that grants what the process lacks of real-time priority and locked memory. It is the same for both, since
/// setcap(8) replaces what an earlier command granted.
fn grant(evidence: &HostEvidence<'_>, rights: &Rights) -> String {
    let priority = wanted_priority(evidence).unwrap_or(1);
    let lacking =
        [(!rights.may_run_fifo(priority), Capability::SysNice), (!rights.may_lock_all(), Capability::IpcLock)];
    let lacking: Vec<Capability> = lacking.into_iter().filter(|(lacks, _)| *lacks).map(|(_, one)| one).collect();
    Capability::grant(&lacking, rights.capabilities)
}

fn wanted_priority(evidence: &HostEvidence<'_>) -> Option<u8> {
    evidence.intent.ends().filter_map(|end| end.fifo).max()
}

fn real_time(evidence: &HostEvidence<'_>, rights: &Rights) -> Option<Finding> {
    match wanted_priority(evidence) {
        Some(priority) if !rights.may_run_fifo(priority) => Some(Finding::new(
            FindingSeverity::Blocker,
            "no-real-time-right",
            format!(
                "no right to run with SCHED_FIFO priority {priority}: the limit is {}",
                rights.real_time_priority.unwrap_or_default()
            ),
            grant(evidence, rights),
        )),
        None if !rights.may_run_fifo(1) => Some(Finding::new(
            FindingSeverity::Note,
            "no-real-time-right",
            "no right for `--fifo`: other threads can take the CPU from the measuring one",
            grant(evidence, rights),
        )),
        _ => None,
    }
}

fn memory_lock(evidence: &HostEvidence<'_>, rights: &Rights) -> Option<Finding> {
    let limit = rights.memory_lock_bytes.filter(|_| !rights.may_lock_all())?;
    // More than one process of a run needs: as much as both together. The limit applies to each process separately.
    const ENOUGH: u64 = 64 << 20;
    let short = evidence.intent.any(|end| end.mlock) && limit < ENOUGH;
    Some(Finding::new(
        if short { FindingSeverity::Blocker } else { FindingSeverity::Note },
        "memory-lock-limit",
        format!("at most {} KiB of memory can be locked", limit / 1024),
        grant(evidence, rights),
    ))
}

fn lab(rights: &Rights) -> Option<Finding> {
    (!rights.has(Capability::SysAdmin) || !rights.has(Capability::NetAdmin)).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "no-lab-right",
            "no right to make network namespaces: the target `lab` cannot be used",
            "sudo latlab ping lab",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{BLOCKING, SPINNING, find, judged, message, on, severity};
    use super::*;
    use crate::facts::{ClockDiscipline, ClockKeeper, HostFacts};
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    #[test]
    fn an_old_kernel_is_a_finding() {
        for (release, old) in [("5.9.16-1-amd64", true), ("5.10.0", false), ("4.19.0", true), ("6.18.44-x", false)] {
            let host =
                FakeHost::new().with("proc/sys/kernel/ostype", "Linux").with("proc/sys/kernel/osrelease", release);
            assert_eq!(find(&on(&host, &BLOCKING), "kernel-version").is_some(), old, "{release}");
        }
    }

    #[test]
    fn an_unsynchronised_clock_is_a_note() {
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
        assert_eq!(message(&judged(&facts, &BLOCKING), "clock-unsynchronised"), "clock synchronised ±1500 µs");
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

    #[test]
    fn throttling_blocks_only_threads_that_never_sleep() {
        let host = FakeHost::new()
            .with("proc/sys/kernel/sched_rt_runtime_us", "950000")
            .with("proc/sys/kernel/sched_rt_period_us", "1000000");
        let found = on(&host, &EndSpec { fifo: Some(50), ..SPINNING });
        let finding = find(&found, "rt-throttling").expect("found");
        assert_eq!(finding.message, "RT throttling would stop a spinning FIFO thread for 50 ms every second");
        assert_eq!(finding.severity, FindingSeverity::Blocker);
        let blocking = on(&host, &EndSpec { fifo: Some(50), ..BLOCKING });
        assert_eq!(severity(&blocking, "rt-throttling"), Some(FindingSeverity::Note));
        assert_eq!(severity(&on(&host, &SPINNING), "rt-throttling"), None);
        let free = host.with("proc/sys/kernel/sched_rt_runtime_us", "-1");
        assert_eq!(severity(&on(&free, &EndSpec { fifo: Some(50), ..SPINNING }), "rt-throttling"), None);
    }

    #[test]
    fn the_scheduler_keeps_a_share_for_other_tasks_since_linux_6_12() {
        let host = FakeHost::new()
            .with("proc/sys/kernel/ostype", "Linux")
            .with("proc/sys/kernel/osrelease", "6.12.3-rt")
            .with("proc/sys/kernel/sched_rt_runtime_us", "950000");
        let endless = EndSpec { fifo: Some(50), ..SPINNING };
        let found = on(&host, &endless);
        assert_eq!(severity(&found, "rt-throttling"), None);
        assert!(message(&found, "fair-server").contains("50 ms every second (the kernel's default"), "{found:?}");
        let debugfs = "sys/kernel/debug/sched/fair_server/cpu0";
        let limited =
            host.with(&format!("{debugfs}/runtime"), "20000000").with(&format!("{debugfs}/period"), "1000000000");
        assert!(message(&on(&limited, &endless), "fair-server").contains("for 20 ms every second, whenever"));
        assert_eq!(severity(&on(&limited, &EndSpec { fifo: Some(50), ..BLOCKING }), "fair-server"), None);
        let off = limited.with(&format!("{debugfs}/runtime"), "0");
        assert_eq!(severity(&on(&off, &endless), "fair-server"), None);
    }

    #[test]
    fn disabled_busy_polling_and_a_kernel_without_preemption_are_findings() {
        let host =
            FakeHost::new().with("proc/sys/net/core/busy_poll", "0").with("proc/version", "Linux version 6.1 SMP");
        let found = on(&host, &EndSpec { wait: WaitMode::BusyPoll, ..BLOCKING });
        assert_eq!(severity(&found, "busy-poll-off"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&found, "preemption"), Some(FindingSeverity::Note));
        let host = host.with("proc/version", "Linux version 6.1 #1 SMP PREEMPT_DYNAMIC Debian");
        assert_eq!(on(&host, &BLOCKING), []);
    }

    fn ticking(current: &str, available: &str) -> FakeHost {
        FakeHost::new()
            .with("sys/devices/system/clocksource/clocksource0/current_clocksource", current)
            .with("sys/devices/system/clocksource/clocksource0/available_clocksource", available)
    }

    #[test]
    fn a_slow_clocksource_is_a_finding_with_the_better_one() {
        let found = on(&ticking("hpet", "tsc hpet acpi_pm"), &BLOCKING);
        let finding = find(&found, "clocksource").expect("found");
        assert_eq!(finding.severity, FindingSeverity::Warning);
        assert!(finding.message.contains("`hpet`"));
        assert!(finding.fix.as_ref().expect("a fix").starts_with("echo tsc | sudo tee /sys/"));
        let found = on(&ticking("acpi_pm", "acpi_pm"), &BLOCKING);
        assert!(!find(&found, "clocksource").expect("found").fix.as_ref().expect("a fix").contains("tee"));
    }

    fn with_rights(mask: &str, locked: &str) -> FakeHost {
        let limits = format!("Max locked memory {locked} unlimited bytes\nMax realtime priority 0 0\n");
        FakeHost::new().with("proc/self/status", &format!("CapEff:\t{mask}\n")).with("proc/self/limits", &limits)
    }

    #[test]
    fn a_missing_privilege_blocks_only_ends_that_need_it() {
        let poor = with_rights("0", "8388608");
        assert_eq!(severity(&on(&poor, &BLOCKING), "no-real-time-right"), Some(FindingSeverity::Note));
        let found = on(&poor, &EndSpec { fifo: Some(40), mlock: true, ..BLOCKING });
        assert_eq!(severity(&found, "no-real-time-right"), Some(FindingSeverity::Blocker));
        assert!(find(&found, "no-real-time-right").expect("found").message.contains("40"));
        assert_eq!(severity(&found, "memory-lock-limit"), Some(FindingSeverity::Blocker));
        assert!(find(&found, "memory-lock-limit").expect("found").message.contains("8192 KiB"));
        assert_eq!(severity(&found, "no-lab-right"), Some(FindingSeverity::Note));
        for code in ["no-real-time-right", "memory-lock-limit"] {
            let fix = find(&found, code).and_then(|finding| finding.fix.as_deref());
            assert_eq!(fix, Some("sudo setcap cap_ipc_lock,cap_sys_nice+ep $(command -v latlab)"), "{code}");
        }
        // CAP_NET_RAW, which `--transport xdp` needs, stays.
        let found = on(&with_rights("0000000000802000", "8388608"), &BLOCKING);
        let fix = find(&found, "memory-lock-limit").and_then(|finding| finding.fix.as_deref());
        assert_eq!(fix, Some("sudo setcap cap_net_raw,cap_ipc_lock,cap_sys_nice+ep $(command -v latlab)"));
    }
}
