//! The kernel's version and its switches.

use super::Seen;
use crate::facts::{Finding, FindingSeverity};
use crate::plan::WaitMode;

/// The oldest kernel that is supported.
const MINIMUM: (u32, u32) = (5, 10);

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    [version(seen), throttling(seen), busy_polling(seen), swap(seen), virtualisation(seen)]
        .into_iter()
        .flatten()
        .collect()
}

fn version(seen: &Seen<'_>) -> Option<Finding> {
    let kernel = seen.facts.kernel.as_deref()?;
    let release = kernel.strip_prefix("Linux ")?;
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
    let version = (numbers.next()?, numbers.next()?);
    (version < MINIMUM).then(|| {
        Finding::new(
            FindingSeverity::Blocker,
            "kernel-version",
            format!("the kernel is {release}: older than {}.{}", MINIMUM.0, MINIMUM.1),
            "install a newer kernel",
        )
    })
}

/// Real-time threads may run for `runtime` of every `period`
/// ([sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)).
fn throttling(seen: &Seen<'_>) -> Option<Finding> {
    let runtime_us = seen.facts.rt_runtime_us.filter(|runtime| *runtime >= 0)?;
    let period_us: i64 = seen.root.number("proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let pause_us = period_us - runtime_us;
    if pause_us <= 0 {
        return None;
    }
    let every = if period_us == 1_000_000 { "second".to_owned() } else { format!("{period_us} µs") };
    let pause = format!("{} ms every {every}", pause_us as f64 / 1e3);
    let endless = seen.intent.any(|end| end.fifo.is_some() && end.wait == WaitMode::Spin);
    let (severity, message) = if endless {
        (FindingSeverity::Blocker, format!("RT throttling would stop a spinning FIFO thread for {pause}"))
    } else if seen.intent.any(|end| end.fifo.is_some()) {
        (FindingSeverity::Note, format!("RT throttling stops FIFO threads that never sleep for {pause}"))
    } else {
        return None;
    };
    let fix = "sudo sysctl kernel.sched_rt_runtime_us=-1";
    Some(Finding::new(severity, "rt-throttling", message, fix))
}

/// The poll call of a schedule polls the driver only where this is set ([socket(7)], SO_BUSY_POLL).
///
/// [socket(7)]: https://man7.org/linux/man-pages/man7/socket.7.html
fn busy_polling(seen: &Seen<'_>) -> Option<Finding> {
    let span_us: u32 = seen.root.number("proc/sys/net/core/busy_poll").ok()?;
    (seen.intent.waits(WaitMode::BusyPoll) && span_us == 0).then(|| {
        Finding::new(
            FindingSeverity::Warning,
            "busy-poll-off",
            "`net.core.busy_poll` is 0: on a schedule `--wait busy-poll` sleeps like `block`",
            "sudo sysctl net.core.busy_poll=50",
        )
    })
}

fn swap(seen: &Seen<'_>) -> Option<Finding> {
    let swaps = seen.root.text("proc/swaps").ok()?;
    let areas = swaps.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    (areas > 0 && seen.intent.any(|end| !end.mlock)).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "swap",
            format!("{areas} swap area(s) in use: a page brought back from there costs milliseconds"),
            "latlab ping --mlock",
        )
    })
}

fn virtualisation(seen: &Seen<'_>) -> Option<Finding> {
    let kind = seen.facts.virtualisation.as_deref().filter(|kind| *kind != "none")?;
    Some(Finding::note(
        "virtualised",
        format!("this is a virtual machine ({kind}): the hypervisor adds delays that nobody here can see"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, SPINNING, find, on, severity};
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
    fn swap_and_busy_polling_are_looked_at() {
        let host = FakeHost::new()
            .with("proc/swaps", "Filename Type Size\n/dev/sda2 partition 99\n")
            .with("proc/sys/net/core/busy_poll", "0");
        let found = on(&host, &EndSpec { wait: WaitMode::BusyPoll, ..BLOCKING });
        assert_eq!(severity(&found, "swap"), Some(FindingSeverity::Note));
        assert_eq!(severity(&found, "busy-poll-off"), Some(FindingSeverity::Warning));
        let locked = on(&host, &EndSpec { mlock: true, ..BLOCKING });
        assert_eq!(locked, []);
    }
}
