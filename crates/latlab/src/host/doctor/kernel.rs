//! The kernel's version and its switches.

use super::Seen;
use crate::facts::{Finding, FindingSeverity, RealTimePause};
use crate::plan::WaitMode;

/// The oldest kernel that is supported.
const MINIMUM: (u32, u32) = (5, 10);

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    [version(seen), throttling(seen), busy_polling(seen), preemption(seen)].into_iter().flatten().collect()
}

fn version(seen: &Seen<'_>) -> Option<Finding> {
    let release = seen.facts.kernel.as_deref()?.strip_prefix("Linux ")?;
    (seen.facts.kernel_version()? < MINIMUM).then(|| {
        Finding::new(
            FindingSeverity::Blocker,
            "kernel-version",
            format!("the kernel is {release}: older than {}.{}", MINIMUM.0, MINIMUM.1),
            "install a newer kernel",
        )
    })
}

/// Real-time threads do not get all of a CPU for ever.
fn throttling(seen: &Seen<'_>) -> Option<Finding> {
    let endless = seen.intent.any(|end| end.fifo.is_some() && end.wait == WaitMode::Spin);
    let limit = seen.facts.real_time_pause().filter(|_| seen.intent.any(|end| end.fifo.is_some()))?;
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

/// The poll call of a schedule polls the driver only where this is set ([socket(7)], SO_BUSY_POLL).
///
/// [socket(7)]: https://man7.org/linux/man-pages/man7/socket.7.html
fn busy_polling(seen: &Seen<'_>) -> Option<Finding> {
    let span_us = seen.facts.network.busy_poll_us?;
    (seen.intent.waits(WaitMode::BusyPoll) && span_us == 0).then(|| {
        Finding::new(
            FindingSeverity::Warning,
            "busy-poll-off",
            "`net.core.busy_poll` is 0: on a schedule `--wait busy-poll` sleeps like `block`",
            "sudo sysctl net.core.busy_poll=50",
        )
    })
}

fn preemption(seen: &Seen<'_>) -> Option<Finding> {
    (seen.facts.kernel_settings.preemption.as_deref()? == "none").then(|| {
        Finding::new(
            FindingSeverity::Note,
            "preemption",
            "the kernel is built without preemption: a thread that wakes up waits until a system call of another \
             one ends, milliseconds in bad cases",
            "boot a kernel with PREEMPT_DYNAMIC and `preempt=full`, or PREEMPT_RT",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, SPINNING, find, message, on, severity};
    use super::*;
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    #[test]
    fn an_old_kernel_is_named() {
        for (release, old) in [("5.9.16-1-amd64", true), ("5.10.0", false), ("4.19.0", true), ("6.18.44-x", false)] {
            let host =
                FakeHost::new().with("proc/sys/kernel/ostype", "Linux").with("proc/sys/kernel/osrelease", release);
            assert_eq!(find(&on(&host, &BLOCKING), "kernel-version").is_some(), old, "{release}");
        }
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
    fn newer_kernels_keep_a_fair_share_instead() {
        let host = FakeHost::new()
            .with("proc/sys/kernel/ostype", "Linux")
            .with("proc/sys/kernel/osrelease", "6.12.3-rt")
            .with("proc/sys/kernel/sched_rt_runtime_us", "950000");
        let endless = EndSpec { fifo: Some(50), ..SPINNING };
        let found = on(&host, &endless);
        assert_eq!(severity(&found, "rt-throttling"), None);
        assert!(message(&found, "fair-server").contains("50 ms every second (the kernel's default"), "{found:?}");
        let debugfs = "sys/kernel/debug/sched/fair_server/cpu0";
        let told =
            host.with(&format!("{debugfs}/runtime"), "20000000").with(&format!("{debugfs}/period"), "1000000000");
        assert!(message(&on(&told, &endless), "fair-server").contains("for 20 ms every second, whenever"));
        assert_eq!(severity(&on(&told, &EndSpec { fifo: Some(50), ..BLOCKING }), "fair-server"), None);
        let off = told.with(&format!("{debugfs}/runtime"), "0");
        assert_eq!(severity(&on(&off, &endless), "fair-server"), None);
    }

    #[test]
    fn busy_polling_that_does_not_poll_and_kernels_that_do_not_preempt_are_named() {
        let host =
            FakeHost::new().with("proc/sys/net/core/busy_poll", "0").with("proc/version", "Linux version 6.1 SMP");
        let found = on(&host, &EndSpec { wait: WaitMode::BusyPoll, ..BLOCKING });
        assert_eq!(severity(&found, "busy-poll-off"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&found, "preemption"), Some(FindingSeverity::Note));
        let host = host.with("proc/version", "Linux version 6.1 #1 SMP PREEMPT_DYNAMIC Debian");
        assert_eq!(on(&host, &BLOCKING), []);
    }
}
