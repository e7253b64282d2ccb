//! Temperatures, and what was slowed down because of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ByCpu;

/// Heat and power. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatFacts {
    /// Sensor → degrees Celsius.
    pub temperatures_celsius: Option<BTreeMap<String, f64>>,
    /// How often each CPU was slowed down for heat since boot (x86).
    pub throttle_counts: Option<ByCpu<u64>>,
    /// What the firmware of a Raspberry Pi says.
    pub firmware_throttling: Option<FirmwareThrottling>,
}

/// The answer of `vcgencmd get_throttled`
/// ([documentation](https://www.raspberrypi.com/documentation/computers/os.html#vcgencmd)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct FirmwareThrottling(pub u32);

impl FirmwareThrottling {
    /// Bit of a condition that holds now; 16 bits higher: it held at some time since boot.
    const WORDS: [(u32, &'static str); 4] =
        [(2, "throttled"), (0, "under-voltage"), (1, "frequency capped"), (3, "soft temperature limit")];

    /// What holds now.
    pub fn now(self) -> Vec<&'static str> {
        self.words(0)
    }

    /// What held at some time since boot.
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
    fn flags_become_words() {
        let flags = FirmwareThrottling(0x5_0005);
        assert_eq!(flags.now(), ["throttled", "under-voltage"]);
        assert_eq!(flags.since_boot(), ["throttled", "under-voltage"]);
        assert_eq!(FirmwareThrottling(0x8_0002).now(), ["frequency capped"]);
        assert_eq!(FirmwareThrottling(0x8_0002).since_boot(), ["soft temperature limit"]);
        assert_eq!(FirmwareThrottling(0).now(), [""; 0]);
    }
}
