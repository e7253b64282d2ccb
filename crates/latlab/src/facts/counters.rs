//! What a host counts from its boot on: two looks tell what happened between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ByCpu, CpuTicks};

/// Counters since boot. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterFacts {
    /// How the CPUs spent their ticks, stolen ones included.
    pub cpu_ticks: Option<CpuTicks>,
    /// Context switches of all CPUs.
    pub context_switches: Option<u64>,
    /// Interrupts that have come at least once: their number, or the kernel's short name of those that have none.
    pub interrupts: Option<BTreeMap<String, InterruptSource>>,
    /// Software interrupts that have run at least once: name → CPU → times.
    pub softirqs: Option<BTreeMap<String, ByCpu<u64>>>,
}

/// One source of interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptSource {
    /// Who raises it, with the controller it comes through.
    pub source: String,
    /// CPUs that may be asked to handle it; null for those that cannot be moved.
    pub affinity: Option<String>,
    /// How often it came, on each CPU on which it came.
    pub counts: ByCpu<u64>,
}

/// Interrupts that came to one CPU between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptUse<'a> {
    /// The number or short name.
    pub name: &'a str,
    /// The source.
    pub interrupt: &'a InterruptSource,
    /// How often.
    pub times: u64,
}

impl CounterFacts {
    /// The interrupts that came to `cpu` between `earlier` and `self`, the most frequent first.
    pub fn interrupts_since<'a>(&'a self, earlier: &CounterFacts, cpu: u16) -> Vec<InterruptUse<'a>> {
        let Some((now, then)) = self.interrupts.as_ref().zip(earlier.interrupts.as_ref()) else { return Vec::new() };
        let count = |interrupt: &InterruptSource| interrupt.counts.get(&cpu).copied().unwrap_or(0);
        let mut used: Vec<_> = now
            .iter()
            .map(|(name, interrupt)| InterruptUse {
                name,
                interrupt,
                // One that had never come is not in the earlier look.
                times: count(interrupt).saturating_sub(then.get(name).map_or(0, count)),
            })
            .filter(|used| used.times > 0)
            .collect();
        used.sort_by_key(|used| std::cmp::Reverse(used.times));
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(eth: u64, disk: Option<u64>) -> CounterFacts {
        let interrupt = |times| InterruptSource {
            source: "x".into(),
            affinity: None,
            counts: [(1, times), (2, 9)].into_iter().collect(),
        };
        let interrupts = [("41", Some(eth)), ("50", disk)].into_iter();
        let interrupts = interrupts.filter_map(|(name, times)| Some((name.to_owned(), interrupt(times?)))).collect();
        CounterFacts { interrupts: Some(interrupts), ..CounterFacts::default() }
    }

    #[test]
    fn interrupts_are_counted_between_two_looks() {
        let (before, after) = (counted(100, None), counted(107, Some(400)));
        let seen = |cpu| -> Vec<(String, u64)> {
            after.interrupts_since(&before, cpu).iter().map(|used| (used.name.to_owned(), used.times)).collect()
        };
        assert_eq!(seen(1), [("50".into(), 400), ("41".into(), 7)]);
        assert_eq!(seen(2), [("50".into(), 9)]);
        assert_eq!(seen(0), []);
    }
}
