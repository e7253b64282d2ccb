//! Rights and limits.

use super::Seen;
use crate::facts::{Capability, Finding, FindingSeverity, Rights};

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    let Some(rights) = &seen.facts.rights else { return Vec::new() };
    let mut found: Vec<Finding> =
        [real_time(seen, rights), memory_lock(seen, rights), lab(rights)].into_iter().flatten().collect();
    if found.is_empty() {
        found.push(Finding::fine("rights", "rights for real-time priority, locked memory and `lab`"));
    }
    found
}

fn real_time(seen: &Seen<'_>, rights: &Rights) -> Option<Finding> {
    const GRANT: &str = "sudo setcap cap_sys_nice+ep $(command -v latlab)";
    let wanted = seen.intent.ends().filter_map(|end| end.fifo).max();
    match wanted {
        Some(priority) if !rights.may_run_fifo(priority) => Some(Finding::new(
            FindingSeverity::Blocker,
            "no-real-time-right",
            format!(
                "no right to run with SCHED_FIFO priority {priority}: the limit is {}",
                rights.real_time_priority.unwrap_or_default()
            ),
            GRANT,
        )),
        None if !rights.may_run_fifo(1) => Some(Finding::new(
            FindingSeverity::Note,
            "no-real-time-right",
            "no right for `--fifo`: other threads can take the CPU from the measuring one",
            GRANT,
        )),
        _ => None,
    }
}

fn memory_lock(seen: &Seen<'_>, rights: &Rights) -> Option<Finding> {
    let limit = rights.memory_lock_bytes.filter(|_| !rights.may_lock_all())?;
    // What both processes of a run may take together; each has the limit for itself.
    const ENOUGH: u64 = 64 << 20;
    let short = seen.intent.any(|end| end.mlock) && limit < ENOUGH;
    Some(Finding::new(
        if short { FindingSeverity::Blocker } else { FindingSeverity::Note },
        "memory-lock-limit",
        format!("memory can be locked up to {} KiB only", limit / 1024),
        "sudo setcap cap_ipc_lock+ep $(command -v latlab)",
    ))
}

fn lab(rights: &Rights) -> Option<Finding> {
    (!rights.has(Capability::SysAdmin) || !rights.has(Capability::NetAdmin)).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "no-lab-right",
            "no right to build network namespaces: the target `lab` is closed",
            "sudo latlab ping lab",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, find, on, severity};
    use super::*;
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    fn with_rights(mask: &str, locked: &str) -> FakeHost {
        let limits = format!("Max locked memory {locked} unlimited bytes\nMax realtime priority 0 0\n");
        FakeHost::new().with("proc/self/status", &format!("CapEff:\t{mask}\n")).with("proc/self/limits", &limits)
    }

    #[test]
    fn a_missing_right_blocks_only_what_asks_for_it() {
        let poor = with_rights("0", "8388608");
        assert_eq!(severity(&on(&poor, &BLOCKING), "no-real-time-right"), Some(FindingSeverity::Note));
        let found = on(&poor, &EndSpec { fifo: Some(40), mlock: true, ..BLOCKING });
        assert_eq!(severity(&found, "no-real-time-right"), Some(FindingSeverity::Blocker));
        assert!(find(&found, "no-real-time-right").expect("found").message.contains("40"));
        assert_eq!(severity(&found, "memory-lock-limit"), Some(FindingSeverity::Blocker));
        assert!(find(&found, "memory-lock-limit").expect("found").message.contains("8192 KiB"));
        assert_eq!(severity(&found, "no-lab-right"), Some(FindingSeverity::Note));
    }

    #[test]
    fn root_has_every_right() {
        let found =
            on(&with_rights("000001ffffffffff", "8388608"), &EndSpec { fifo: Some(99), mlock: true, ..BLOCKING });
        assert_eq!(severity(&found, "rights"), Some(FindingSeverity::Fine));
        assert_eq!(found.len(), 1);
    }
}
