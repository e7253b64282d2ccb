//! The CPUs of a host: where they sit, how fast they run, how deep they sleep.

use serde::{Deserialize, Serialize};

use super::ByCpu;

/// The processor. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorFacts {
    /// Where each CPU sits.
    pub topology: Option<ByCpu<CpuTopology>>,
    /// Whether cores run more than one thread at a time.
    pub smt_active: Option<bool>,
    /// How fast each CPU may run, and ran.
    pub frequencies: Option<ByCpu<Frequency>>,
    /// Whether CPUs may run above their base frequency.
    pub turbo: Option<bool>,
    /// Which driver puts CPUs to sleep.
    pub idle_driver: Option<String>,
    /// Which governor chooses the state.
    pub idle_governor: Option<String>,
    /// The idle states of each CPU, the shallowest first, with how often and how long they were used since boot.
    pub idle_states: Option<ByCpu<Vec<IdleState>>>,
}

/// Where a CPU sits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTopology {
    /// The socket.
    pub package: Option<i32>,
    /// The core within it.
    pub core: Option<i32>,
    /// The CPUs of this core, itself included, as the kernel lists them.
    pub siblings: Option<String>,
}

/// How fast a CPU may run, and ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    /// The driver that sets it.
    pub driver: Option<String>,
    /// The governor that chooses it.
    pub governor: Option<String>,
    /// The lowest that it may choose.
    pub minimum_khz: Option<u64>,
    /// The highest that it may choose.
    pub maximum_khz: Option<u64>,
    /// The highest that the hardware knows, turbo included.
    pub hardware_maximum_khz: Option<u64>,
    /// What the CPU ran at when it was asked.
    pub current_khz: Option<u64>,
}

/// An idle state of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// The driver's name of it.
    pub name: String,
    /// How long waking up from it takes at most, as the driver states.
    pub exit_latency_us: u32,
    /// Whether it is switched off.
    pub disabled: bool,
    /// How often it was entered since boot.
    pub entered: u64,
    /// How long the CPU was in it since boot.
    pub resident_us: u64,
}

/// How an idle state was used between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleUse<'a> {
    /// The state.
    pub state: &'a IdleState,
    /// How often it was entered.
    pub entered: u64,
    /// How long the CPU was in it.
    pub resident_us: u64,
}

impl ProcessorFacts {
    /// How `cpu` slept between `earlier` and `self`; nothing where either does not know.
    pub fn idle_since<'a>(&'a self, earlier: &ProcessorFacts, cpu: u16) -> Vec<IdleUse<'a>> {
        let states = |facts: &'a ProcessorFacts| facts.idle_states.as_ref()?.get(&cpu);
        let (Some(now), Some(then)) = (states(self), earlier.idle_states.as_ref().and_then(|each| each.get(&cpu)))
        else {
            return Vec::new();
        };
        let both = now.iter().zip(then).filter(|(now, then)| now.name == then.name);
        both.map(|(now, then)| IdleUse {
            state: now,
            // A CPU that was taken offline in between may count from 0 again.
            entered: now.entered.saturating_sub(then.entered),
            resident_us: now.resident_us.saturating_sub(then.resident_us),
        })
        .collect()
    }

    /// The other CPUs on the core of `cpu`, as the kernel lists the whole core.
    pub fn siblings_of(&self, cpu: u16) -> Option<&str> {
        self.topology.as_ref()?.get(&cpu)?.siblings.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping(entered: u64, resident_us: u64) -> ProcessorFacts {
        let state = |name: &str, entered| IdleState { name: name.into(), entered, resident_us, ..IdleState::default() };
        ProcessorFacts {
            idle_states: Some([(3, vec![state("POLL", 5), state("C6", entered)])].into_iter().collect()),
            ..ProcessorFacts::default()
        }
    }

    #[test]
    fn idle_use_is_the_difference_of_two_looks() {
        let (before, after) = (sleeping(10, 1_000), sleeping(14, 61_000));
        let used = after.idle_since(&before, 3);
        let seen: Vec<_> = used.iter().map(|used| (&*used.state.name, used.entered, used.resident_us)).collect();
        assert_eq!(seen, [("POLL", 0, 60_000), ("C6", 4, 60_000)]);
        assert_eq!(before.idle_since(&after, 3)[1].entered, 0, "a counter that went back counts as nothing");
        assert!(after.idle_since(&before, 0).is_empty() && after.idle_since(&ProcessorFacts::default(), 3).is_empty());
    }
}
