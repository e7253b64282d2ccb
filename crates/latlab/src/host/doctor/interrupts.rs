//! Interrupts that come to the CPUs that measure.

use super::Seen;
use crate::facts::{Finding, FindingSeverity, HostFacts};
use crate::host::cpu_list;
use crate::units::human;

/// Fewer in a second than this are the odd one.
const FEW: f64 = 10.0;
/// From here on one of a hundred round trips of 100 µs meets one.
const MANY: f64 = 100.0;

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    seen.intent.pins().into_iter().filter_map(|cpu| on(seen, cpu)).collect()
}

/// Only those with a number: timer ticks and calls between CPUs cannot be sent elsewhere.
fn on(seen: &Seen<'_>, cpu: u16) -> Option<Finding> {
    let earlier = seen.earlier?;
    let seconds = seconds_between(earlier, seen.facts)?;
    let used = seen.facts.counters.interrupts_since(&earlier.counters, cpu);
    let used: Vec<_> = used.iter().filter(|used| used.name.parse::<u32>().is_ok()).collect();
    let busiest = used.first()?;
    let rate = used.iter().map(|used| used.times).sum::<u64>() as f64 / seconds;
    if rate < FEW {
        return None;
    }
    let severity = if rate >= MANY { FindingSeverity::Warning } else { FindingSeverity::Note };
    let message = format!(
        "{} interrupts a second come to CPU {cpu}, most of them {} ({}): each takes it away for some microseconds",
        human::grouped(rate.round() as u64),
        busiest.name,
        busiest.interrupt.source
    );
    let online = cpu_list::parse(seen.facts.cpus_online.as_deref().unwrap_or_default()).unwrap_or_default();
    let pins = seen.intent.pins();
    let fix = match online.iter().find(|other| !pins.contains(other)) {
        Some(other) => format!("echo {other} | sudo tee /proc/irq/{}/smp_affinity_list", busiest.name),
        None => "measure on another CPU: no other is left that the interrupts could go to".into(),
    };
    Some(Finding::new(severity, "irqs-on-cpu", message, fix))
}

fn seconds_between(earlier: &HostFacts, facts: &HostFacts) -> Option<f64> {
    let span_ns = facts.monotonic_ns? - earlier.monotonic_ns?;
    (span_ns > 0).then_some(span_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, message, severity};
    use super::super::{Intent, findings};
    use super::*;
    use crate::facts::{ByCpu, InterruptSource};
    use crate::plan::EndSpec;

    fn counted(monotonic_ns: i64, eth: u64, ticks: u64) -> HostFacts {
        let interrupt = |source: &str, times| InterruptSource {
            source: source.into(),
            affinity: None,
            counts: ByCpu::from_iter([(1, times)]),
        };
        let interrupts =
            [("41".into(), interrupt("PCI-MSI eth0-rx-1", eth)), ("LOC".into(), interrupt("Local timer", ticks))];
        let mut facts = HostFacts { monotonic_ns: Some(monotonic_ns), ..HostFacts::default() };
        facts.cpus_online = Some("0-3".into());
        facts.counters.interrupts = Some(interrupts.into());
        facts
    }

    #[test]
    fn interrupts_on_the_measuring_cpu_are_named_with_another_cpu() {
        let look = |cpu, facts: &HostFacts| {
            let end = EndSpec { cpu: Some(cpu), ..BLOCKING };
            findings(facts, Some(&counted(0, 100, 0)), Intent { here: &end, peer: None })
        };
        let found = look(1, &counted(500_000_000, 1_100, 900));
        assert!(
            message(&found, "irqs-on-cpu")
                .starts_with("2,000 interrupts a second come to CPU 1, most of them 41 (PCI-MSI")
        );
        assert_eq!(found[0].fix.as_deref(), Some("echo 0 | sudo tee /proc/irq/41/smp_affinity_list"));
        assert_eq!(severity(&found, "irqs-on-cpu"), Some(FindingSeverity::Warning));
        let some = look(1, &counted(1_000_000_000, 150, 900));
        assert_eq!(severity(&some, "irqs-on-cpu"), Some(FindingSeverity::Note));
        assert_eq!(severity(&look(1, &counted(1_000_000_000, 101, 900)), "irqs-on-cpu"), None);
        assert_eq!(severity(&look(2, &counted(1_000_000_000, 9_000, 900)), "irqs-on-cpu"), None);
    }
}
