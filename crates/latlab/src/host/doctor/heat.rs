//! Heat, power, and what was slowed down because of them.

use super::Seen;
use crate::facts::{Finding, FindingSeverity, HeatFacts};

/// Where a Raspberry Pi begins to slow down; other processors do between 90 and 105 °C.
const HOT_CELSIUS: f64 = 80.0;
const COOL: &str = "cool it better, or leave longer pauses between runs";

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    [throttled(seen), hot(seen)].into_iter().flatten().collect()
}

/// The firmware of a Raspberry Pi tells what holds now and what held since boot; x86 counts.
fn throttled(seen: &Seen<'_>) -> Option<Finding> {
    const CODE: &str = "throttled";
    let flags = seen.facts.heat.firmware_throttling;
    let now = flags.map(|flags| flags.now()).unwrap_or_default();
    if !now.is_empty() {
        let message = format!("the firmware slows this host down right now: {}", now.join(", "));
        return Some(Finding::new(FindingSeverity::Blocker, CODE, message, remedy(&now)));
    }
    let counted = count(&seen.facts.heat);
    let lately = counted.zip(seen.earlier.and_then(|earlier| count(&earlier.heat)));
    if let Some((now, before)) = lately.filter(|(now, before)| now > before) {
        let message = format!("CPUs were slowed down for heat {} times while we looked", now - before);
        return Some(Finding::new(FindingSeverity::Blocker, CODE, message, COOL));
    }
    let since_boot = flags.map(|flags| flags.since_boot()).unwrap_or_default();
    if !since_boot.is_empty() {
        let message = format!("the firmware has slowed this host down since boot: {}", since_boot.join(", "));
        return Some(Finding::new(FindingSeverity::Warning, CODE, message, remedy(&since_boot)));
    }
    match counted {
        Some(times) if times > 0 => {
            let message = format!("CPUs were slowed down for heat {times} times since boot");
            Some(Finding::new(FindingSeverity::Warning, CODE, message, COOL))
        }
        None if flags.is_none() => None,
        _ => Some(Finding::fine(CODE, "no throttling since boot")),
    }
}

fn remedy(words: &[&str]) -> &'static str {
    if words.contains(&"under-voltage") { "use the power supply made for this board, and a short cable" } else { COOL }
}

fn count(heat: &HeatFacts) -> Option<u64> {
    heat.throttle_counts.as_ref().map(|counts| counts.values().sum())
}

fn hot(seen: &Seen<'_>) -> Option<Finding> {
    let sensors = seen.facts.heat.temperatures_celsius.as_ref()?.iter();
    let (sensor, celsius) = sensors.max_by(|one, other| one.1.total_cmp(other.1))?;
    if *celsius < HOT_CELSIUS {
        return Some(Finding::fine("hot", format!("{celsius:.0} °C")));
    }
    let message = format!("{sensor} is at {celsius:.0} °C: soon the CPUs are slowed down");
    Some(Finding::new(FindingSeverity::Note, "hot", message, COOL))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, find, judged, message, severity};
    use super::super::{Intent, findings};
    use super::*;
    use crate::facts::{ByCpu, FirmwareThrottling, HostFacts};

    #[test]
    fn firmware_that_slows_the_host_down_blocks_and_is_remembered() {
        let look = |bits| {
            let mut facts = HostFacts::default();
            facts.heat.firmware_throttling = Some(FirmwareThrottling(bits));
            judged(&facts, &BLOCKING)
        };
        let now = look(0x5_0005);
        assert_eq!(severity(&now, "throttled"), Some(FindingSeverity::Blocker));
        assert!(message(&now, "throttled").ends_with("throttled, under-voltage"));
        assert!(
            find(&now, "throttled").and_then(|found| found.fix.as_deref()).is_some_and(|fix| fix.contains("power"))
        );
        assert_eq!(severity(&look(0x8_0000), "throttled"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&look(0), "throttled"), Some(FindingSeverity::Fine));
        assert_eq!(judged(&HostFacts::default(), &BLOCKING), []);
    }

    #[test]
    fn throttling_is_counted_between_two_looks() {
        let counted = |times| {
            let mut facts = HostFacts::default();
            facts.heat.throttle_counts = Some(ByCpu::from_iter([(0, 3), (1, times)]));
            facts
        };
        let look = |now| findings(&counted(now), Some(&counted(4)), Intent { here: &BLOCKING, peer: None });
        assert!(message(&look(9), "throttled").contains("5 times while we looked"));
        assert_eq!(severity(&look(9), "throttled"), Some(FindingSeverity::Blocker));
        assert!(message(&look(4), "throttled").contains("7 times since boot"));
    }

    #[test]
    fn the_hottest_sensor_counts() {
        let look = |celsius| {
            let mut facts = HostFacts::default();
            facts.heat.temperatures_celsius = Some([("a".into(), 30.0), ("b".into(), celsius)].into());
            judged(&facts, &BLOCKING)
        };
        assert_eq!(message(&look(82.4), "hot"), "b is at 82 °C: soon the CPUs are slowed down");
        assert_eq!(message(&look(61.6), "hot"), "62 °C");
        assert_eq!(severity(&look(61.6), "hot"), Some(FindingSeverity::Fine));
    }
}
