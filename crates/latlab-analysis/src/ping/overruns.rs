//! Slots of wake-ups during probes that were past when their thread returned from the one before.

use std::collections::BTreeMap;

use crate::probe::Phase;
use crate::source::{ProbeSource, cpu_at};

/// Measured slots of wake-ups during probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchedSlots {
    pub(crate) n: u64,
    pub(crate) overrun: u64,
}

/// `None` without wake-ups during the probes of `source`.
pub(crate) fn watched_slots<S: ProbeSource>(source: &S) -> Result<Option<WatchedSlots>, S::Error> {
    if source.manifest().spec.concurrent_wakeups().is_none() {
        return Ok(None);
    }
    let (mut slots, mut woke_last) = (WatchedSlots::default(), BTreeMap::new());
    source.visit_wakeups(&mut |batch| {
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let before = woke_last.insert(cpu_at(&batch.cpu, row), batch.woke_ns.values[row]);
            slots.n += 1;
            slots.overrun += u64::from(before.is_some_and(|before| before > batch.due_ns.values[row]));
        }
    })?;
    Ok(Some(slots))
}
