//! How CPUs spent their time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ByCpu;

/// Clock ticks since boot, of one CPU or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    /// Running anything.
    pub busy: u64,
    /// Idle, or waiting for a disk.
    pub idle: u64,
    /// Wanted to run, but the hypervisor ran another guest.
    pub steal: u64,
}

/// The ticks of every CPU at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    /// All together.
    pub all: Ticks,
    /// Each that is online.
    pub each: ByCpu<Ticks>,
}

impl CpuTicks {
    /// What happened from `earlier` to `self`.
    pub fn since(&self, earlier: &CpuTicks) -> Activity {
        let each = self.each.iter().filter_map(|(cpu, now)| Some((*cpu, share(now, earlier.each.get(cpu)?))));
        Activity { all: share(&self.all, &earlier.all), each: each.collect() }
    }
}

/// How a CPU spent a while, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuShare {
    /// Running anything, 0 to 1.
    pub busy: f64,
    /// Stolen by the hypervisor, 0 to 1.
    pub steal: f64,
}

fn share(now: &Ticks, earlier: &Ticks) -> CpuShare {
    // The kernel's idle counters may go back a little; that counts as nothing.
    let busy = now.busy.saturating_sub(earlier.busy);
    let steal = now.steal.saturating_sub(earlier.steal);
    let total = busy + steal + now.idle.saturating_sub(earlier.idle);
    if total == 0 {
        return CpuShare::default();
    }
    CpuShare { busy: busy as f64 / total as f64, steal: steal as f64 / total as f64 }
}

/// What the CPUs did for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// All together.
    pub all: CpuShare,
    /// Each.
    pub each: BTreeMap<u16, CpuShare>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_while_between() {
        let at = |busy, idle, steal| {
            let all = Ticks { busy, idle, steal };
            CpuTicks { all, each: [(0, all)].into_iter().collect() }
        };
        let (before, after) = (at(20, 80, 0), at(45, 130, 25));
        let activity = after.since(&before);
        assert_eq!(activity.all, CpuShare { busy: 0.25, steal: 0.25 });
        assert_eq!(activity.each[&0], activity.all);
        assert_eq!(before.since(&before).all, CpuShare::default());
    }
}
