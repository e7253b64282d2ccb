//! The CPUs of a host: topology, frequencies, idle states, usage, and throttling.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// The CPUs. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorFacts {
    pub topology: Option<ByCpu<CpuTopology>>,
    /// Whether cores run more than one thread at a time.
    pub smt_active: Option<bool>,
    pub frequencies: Option<ByCpu<Frequency>>,
    /// Whether CPUs may run above their base frequency.
    pub turbo: Option<bool>,
    pub idle_driver: Option<String>,
    pub idle_governor: Option<String>,
    /// The idle states of each CPU, the shallowest first.
    pub idle_states: Option<ByCpu<Vec<IdleState>>>,
}

/// The position of a CPU in the hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTopology {
    pub package: Option<i32>,
    pub core: Option<i32>,
    /// The CPUs of this core, itself included, as the kernel lists them.
    pub siblings: Option<String>,
}

/// The frequency limits of a CPU, and its frequency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    pub driver: Option<String>,
    pub governor: Option<String>,
    /// The lowest that the governor may choose.
    pub minimum_khz: Option<u64>,
    /// The highest that the governor may choose.
    pub maximum_khz: Option<u64>,
    /// The highest of the hardware, turbo included.
    pub hardware_maximum_khz: Option<u64>,
    /// The frequency when it was read.
    pub current_khz: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// The name that the driver gives it.
    pub name: String,
    /// The longest time to leave it, as the driver states.
    pub exit_latency_us: u32,
    pub disabled: bool,
    /// Times that it was entered since boot.
    pub entered: u64,
    pub resident_us: u64,
}

/// The use of an idle state between two readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleUse<'a> {
    /// The state, as last read.
    pub state: &'a IdleState,
    /// Times that it was entered.
    pub entered: u64,
    pub resident_us: u64,
}

impl ProcessorFacts {
    /// The use of the idle states of `cpu` between `earlier` and `self`; empty if either is unknown.
    pub fn idle_since<'a>(&'a self, earlier: &ProcessorFacts, cpu: u16) -> Vec<IdleUse<'a>> {
        let states = |facts: &'a ProcessorFacts| facts.idle_states.as_ref()?.get(&cpu);
        let (Some(now), Some(then)) = (states(self), earlier.idle_states.as_ref().and_then(|each| each.get(&cpu)))
        else {
            return Vec::new();
        };
        let both = now.iter().zip(then).filter(|(now, then)| now.name == then.name);
        both.map(|(now, then)| IdleUse {
            state: now,
            // A CPU that was offline in between may count from 0 again.
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

/// A value for each CPU; in JSON an object whose keys are CPU numbers.
///
/// A type of its own, because facts are part of messages, and serde cannot read a map with integer keys inside of a
/// tagged enum (its buffer keeps keys as strings).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, T>")]
pub struct ByCpu<T>(BTreeMap<u16, T>);

impl<T> Default for ByCpu<T> {
    fn default() -> Self {
        ByCpu(BTreeMap::new())
    }
}

impl<T> Deref for ByCpu<T> {
    type Target = BTreeMap<u16, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for ByCpu<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T> FromIterator<(u16, T)> for ByCpu<T> {
    fn from_iter<I: IntoIterator<Item = (u16, T)>>(pairs: I) -> Self {
        ByCpu(pairs.into_iter().collect())
    }
}

impl<T> TryFrom<BTreeMap<String, T>> for ByCpu<T> {
    type Error = String;

    fn try_from(named: BTreeMap<String, T>) -> Result<Self, String> {
        let numbered =
            |(name, value): (String, T)| Ok((name.parse().map_err(|_| format!("`{name}` is not a CPU"))?, value));
        named.into_iter().map(numbered).collect::<Result<_, String>>().map(ByCpu)
    }
}

/// Clock ticks since boot, of one CPU or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    pub busy: u64,
    /// Idle, or waiting for a disk.
    pub idle: u64,
    /// Ready to run, while the hypervisor ran another guest.
    pub steal: u64,
}

/// The ticks of all CPUs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    pub all: Ticks,
    /// Of each CPU that is online.
    pub each: ByCpu<Ticks>,
}

impl CpuTicks {
    /// The activity from `earlier` to `self`.
    pub fn since(&self, earlier: &CpuTicks) -> Activity {
        let each = self.each.iter().filter_map(|(cpu, now)| Some((*cpu, share(now, earlier.each.get(cpu)?))));
        Activity { all: share(&self.all, &earlier.all), each: each.collect() }
    }
}

/// How a CPU spent a period, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuShare {
    /// Running anything, 0 to 1.
    pub busy: f64,
    /// Stolen by the hypervisor, 0 to 1.
    pub steal: f64,
}

fn share(now: &Ticks, earlier: &Ticks) -> CpuShare {
    // The idle counters of the kernel may go back a little; that counts as 0.
    let busy = now.busy.saturating_sub(earlier.busy);
    let steal = now.steal.saturating_sub(earlier.steal);
    let total = busy + steal + now.idle.saturating_sub(earlier.idle);
    if total == 0 {
        return CpuShare::default();
    }
    CpuShare { busy: busy as f64 / total as f64, steal: steal as f64 / total as f64 }
}

/// How the CPUs spent a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    pub all: CpuShare,
    pub each: BTreeMap<u16, CpuShare>,
}

/// Temperatures, and throttling because of heat or power. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatFacts {
    pub temperatures_celsius: Option<BTreeMap<String, f64>>,
    /// Times since boot that each CPU was throttled for heat (x86).
    pub throttle_counts: Option<ByCpu<u64>>,
    /// Throttling as reported by the firmware of a Raspberry Pi.
    pub firmware_throttling: Option<FirmwareThrottling>,
}

/// The answer of `vcgencmd get_throttled`
/// ([documentation](https://www.raspberrypi.com/documentation/computers/os.html#vcgencmd)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct FirmwareThrottling(pub u32);

impl FirmwareThrottling {
    /// Bit of each condition that holds now; 16 bits higher: it held at some time since boot.
    const WORDS: [(u32, &'static str); 4] =
        [(2, "throttled"), (0, "under-voltage"), (1, "frequency capped"), (3, "soft temperature limit")];

    pub fn now(self) -> Vec<&'static str> {
        self.words(0)
    }

    /// Conditions that held at some time since boot.
    pub fn since_boot(self) -> Vec<&'static str> {
        self.words(16)
    }

    fn words(self, shift: u32) -> Vec<&'static str> {
        let set = Self::WORDS.iter().filter(|(bit, _)| self.0 >> (bit + shift) & 1 == 1);
        set.map(|(_, word)| *word).collect()
    }
}

impl From<u32> for FirmwareThrottling {
    fn from(bits: u32) -> Self {
        FirmwareThrottling(bits)
    }
}

impl From<FirmwareThrottling> for u32 {
    fn from(flags: FirmwareThrottling) -> u32 {
        flags.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_by_cpu_can_be_read_inside_of_a_tagged_enum() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        enum Message {
            Counts { counts: ByCpu<u64> },
        }
        let message = Message::Counts { counts: [(0, 7), (11, 8)].into_iter().collect() };
        let text = serde_json::to_string(&message).expect("plain data");
        assert_eq!(text, r#"{"kind":"Counts","counts":{"0":7,"11":8}}"#);
        assert_eq!(serde_json::from_str::<Message>(&text).expect("the same"), message);
        assert!(serde_json::from_str::<ByCpu<u64>>(r#"{"one":7}"#).is_err());
    }

    fn sleeping(entered: u64, resident_us: u64) -> ProcessorFacts {
        let state = |name: &str, entered| IdleState { name: name.into(), entered, resident_us, ..IdleState::default() };
        ProcessorFacts {
            idle_states: Some([(3, vec![state("POLL", 5), state("C6", entered)])].into_iter().collect()),
            ..ProcessorFacts::default()
        }
    }

    #[test]
    fn the_use_of_an_idle_state_is_the_difference_of_two_readings() {
        let (before, after) = (sleeping(10, 1_000), sleeping(14, 61_000));
        let used = after.idle_since(&before, 3);
        let seen: Vec<_> = used.iter().map(|used| (&*used.state.name, used.entered, used.resident_us)).collect();
        assert_eq!(seen, [("POLL", 0, 60_000), ("C6", 4, 60_000)]);
        assert_eq!(before.idle_since(&after, 3)[1].entered, 0, "a counter that went back counts as 0");
        assert!(after.idle_since(&before, 0).is_empty() && after.idle_since(&ProcessorFacts::default(), 3).is_empty());
    }

    #[test]
    fn shares_are_of_the_time_between_two_readings() {
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

    #[test]
    fn firmware_flags_are_decoded() {
        let flags = FirmwareThrottling(0x5_0005);
        assert_eq!(flags.now(), ["throttled", "under-voltage"]);
        assert_eq!(flags.since_boot(), ["throttled", "under-voltage"]);
        assert_eq!(FirmwareThrottling(0x8_0002).now(), ["frequency capped"]);
        assert_eq!(FirmwareThrottling(0x8_0002).since_boot(), ["soft temperature limit"]);
        assert_eq!(FirmwareThrottling(0).now(), [""; 0]);
    }
}
