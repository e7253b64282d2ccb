//! Findings on the CPUs: number, frequency, idle states, sharing, heat and throttling.

use super::evidence::HostEvidence;
use super::work::BUSY;
use crate::facts::{Finding, FindingSeverity, Frequency, HeatFacts, IdleState};
use crate::host::root::parse_cpu_list;
use crate::plan::WaitMode;

/// A shorter exit latency is below the cost of the calls.
const SHALLOW_US: u32 = 10;
/// From this exit latency on waking up is the larger part of a round trip on one host.
const DEEP_US: u32 = 50;
/// A larger change of frequency between two readings of the facts is a finding.
const DRIFT: f64 = 0.1;

/// Where a Raspberry Pi begins to throttle; other processors do between 90 and 105 °C.
const HOT_CELSIUS: f64 = 80.0;
const COOL: &str = "cool it better, or pause longer between runs";

pub(super) fn check(evidence: &HostEvidence<'_>) -> Vec<Finding> {
    let online = evidence.facts.usable_cpus().and_then(parse_cpu_list).unwrap_or_default();
    let of_host = [
        one_cpu(evidence, &online),
        same_cpu(evidence),
        one_core(evidence),
        governor(evidence),
        frequency_drift(evidence),
        turbo(evidence),
        idle_states(evidence),
        throttled(evidence),
        hot(evidence),
    ];
    let mut found: Vec<Finding> = of_host.into_iter().flatten().collect();
    for cpu in evidence.intent.pins() {
        found.extend(
            [absent(evidence, &online, cpu), sibling(evidence, cpu), isolation(evidence, cpu)].into_iter().flatten(),
        );
    }
    found
}

fn one_cpu(evidence: &HostEvidence<'_>, online: &[u16]) -> Option<Finding> {
    if online.len() != 1 {
        return None;
    }
    let (severity, message) = if evidence.intent.waits(WaitMode::Spin) {
        (FindingSeverity::Blocker, "only one CPU: a spinning end keeps the other end from answering")
    } else {
        (FindingSeverity::Warning, "only one CPU: both ends and the recording share it")
    };
    Some(Finding::new(severity, "one-cpu", message, "measure against another host: latlab ping HOST"))
}

fn same_cpu(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let cpu = evidence.intent.here.cpu?;
    let both = evidence.intent.peer?.cpu == Some(cpu) && evidence.intent.waits(WaitMode::Spin);
    both.then(|| {
        let message = format!("both ends share CPU {cpu} and spin: each waits for the other's time slice to end");
        let fix = "give the ends different CPUs with --cpu and --peer-cpu, or use --wait block";
        Finding::new(FindingSeverity::Warning, "same-cpu", message, fix)
    })
}

fn absent(evidence: &HostEvidence<'_>, online: &[u16], cpu: u16) -> Option<Finding> {
    let list = evidence.facts.usable_cpus()?;
    (!online.contains(&cpu)).then(|| {
        let message = format!("CPU {cpu} is not usable here: usable are {list}");
        Finding::new(FindingSeverity::Blocker, "cpu-absent", message, "choose one of these")
    })
}

/// `600 to 1500 MHz`, over all CPUs; `None` if unknown.
fn range(evidence: &HostEvidence<'_>) -> Option<String> {
    let each = evidence.facts.processor.frequencies.as_ref()?;
    let lowest = each.values().filter_map(|cpu| cpu.minimum_khz).min()?;
    let highest = each.values().filter_map(|cpu| cpu.maximum_khz).max()?;
    Some(format!("{} to {} MHz", lowest / 1_000, highest / 1_000))
}

fn governor(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let governors = evidence.facts.governors.as_deref()?;
    let slow: Vec<_> = governors.iter().filter(|name| *name != "performance").map(|name| format!("`{name}`")).collect();
    if slow.is_empty() {
        return Some(Finding::fine("governor", "governor performance"));
    }
    let range = range(evidence).map(|range| format!(" ({range})")).unwrap_or_default();
    let message = format!("governor is {}{range}: an idle host answers later than a busy one", slow.join(", "));
    let fix = "latlab ping --set governor=performance";
    Some(Finding::new(FindingSeverity::Warning, "governor", message, fix))
}

/// The CPU whose frequency changed most between the two readings.
fn frequency_drift(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let (now, then) =
        evidence.facts.processor.frequencies.as_ref().zip(evidence.earlier?.processor.frequencies.as_ref())?;
    let rate = |frequency: &Frequency| frequency.current_khz.filter(|khz| *khz > 0);
    let changes = now.iter().filter_map(|(cpu, now)| {
        let (before, after) = (rate(then.get(cpu)?)?, rate(now)?);
        let share = before.max(after) as f64 / before.min(after) as f64 - 1.0;
        (share > DRIFT).then_some((share, *cpu, before, after))
    });
    let (share, cpu, before, after) = changes.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let message = format!(
        "CPU {cpu} ran at {} MHz, and a moment later at {}: the CPU time of a round trip is up to {:.0} % longer",
        before / 1_000,
        after / 1_000,
        share * 100.0
    );
    let fix = "sudo cpupower frequency-set -g performance";
    Some(Finding::new(FindingSeverity::Warning, "frequency-drift", message, fix))
}

fn turbo(evidence: &HostEvidence<'_>) -> Option<Finding> {
    evidence.facts.processor.turbo.filter(|on| *on)?;
    let driver = evidence.facts.processor.frequencies.as_ref().and_then(|each| each.values().next()?.driver.clone());
    let fix = if driver.is_some_and(|driver| driver.starts_with("intel_")) {
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    } else {
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    };
    let message = "turbo is on: the clock rate of a CPU depends on the other CPUs and on the temperature";
    Some(Finding::new(FindingSeverity::Note, "turbo", message, fix))
}

/// Deep idle states, from which a CPU wakes up late.
fn idle_states(evidence: &HostEvidence<'_>) -> Option<Finding> {
    if !evidence.intent.any(|end| end.wait != WaitMode::Spin) {
        return None;
    }
    let pins = evidence.intent.pins();
    let each = evidence.facts.processor.idle_states.as_ref()?;
    let chosen = each.iter().filter(|(cpu, _)| pins.is_empty() || pins.contains(cpu));
    let states = chosen.flat_map(|(cpu, states)| states.iter().map(move |state| (*cpu, state)));
    let open = states.filter(|(_, state)| !state.disabled && state.exit_latency_us > SHALLOW_US);
    let (cpu, deepest) = open.max_by_key(|(cpu, state)| (state.exit_latency_us, std::cmp::Reverse(*cpu)))?;
    let message = format!(
        "an idle CPU may take {} µs to wake up (`{}`{}): round trips of ends that block include it",
        deepest.exit_latency_us,
        deepest.name,
        used_lately(evidence, cpu, deepest).unwrap_or_default()
    );
    let severe = deepest.exit_latency_us >= DEEP_US;
    let severity = if severe { FindingSeverity::Warning } else { FindingSeverity::Note };
    let fix = format!("sudo cpupower idle-set -D {SHALLOW_US}, or latlab ping --wait spin");
    Some(Finding::new(severity, "idle-states", message, fix))
}

/// `, entered 17 times by CPU 0 during this check`; `None` without an earlier reading.
fn used_lately(evidence: &HostEvidence<'_>, cpu: u16, deepest: &IdleState) -> Option<String> {
    let used = evidence.facts.processor.idle_since(&evidence.earlier?.processor, cpu);
    let used = used.iter().find(|used| used.state.name == deepest.name)?;
    Some(format!(", entered {} times by CPU {cpu} during this check", used.entered))
}

/// Threads of one core share its execution units.
fn sibling(evidence: &HostEvidence<'_>, cpu: u16) -> Option<Finding> {
    let siblings = parse_cpu_list(evidence.facts.processor.siblings_of(cpu)?)?;
    let pins = evidence.intent.pins();
    let others: Vec<u16> = siblings.into_iter().filter(|other| *other != cpu && !pins.contains(other)).collect();
    let share = |sibling: &u16| Some((*sibling, evidence.activity.as_ref()?.each.get(sibling)?.busy));
    let fix = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    if let Some((sibling, share)) = others.iter().filter_map(share).find(|(_, share)| *share > BUSY) {
        let message = format!(
            "CPU {sibling}, the sibling of CPU {cpu} on one core, was {:.0} % busy: while both work, each gets \
             little more than half of the core",
            share * 100.0
        );
        return Some(Finding::new(FindingSeverity::Warning, "sibling-busy", message, fix));
    }
    let other = others.first()?;
    let message =
        format!("CPU {cpu} shares its core with CPU {other}, which is idle now: any thread there would slow it down");
    Some(Finding::new(FindingSeverity::Note, "sibling-free", message, fix))
}

fn one_core(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let (here, peer) = (evidence.intent.here.cpu?, evidence.intent.peer?.cpu?);
    let siblings = parse_cpu_list(evidence.facts.processor.siblings_of(here)?)?;
    (here != peer && siblings.contains(&peer)).then(|| {
        let message = format!(
            "CPUs {here} and {peer} are one core: the ends slow each other down, and share caches that two hosts \
             would not"
        );
        let fix = "give the ends CPUs of two cores with --cpu and --peer-cpu";
        Finding::new(FindingSeverity::Note, "ends-on-one-core", message, fix)
    })
}

/// For ends that need a CPU of their own.
fn isolation(evidence: &HostEvidence<'_>, cpu: u16) -> Option<Finding> {
    const CODE: &str = "cpu-not-isolated";
    let wants = evidence.intent.any(|end| end.cpu == Some(cpu) && (end.wait == WaitMode::Spin || end.fifo.is_some()));
    let isolated = parse_cpu_list(evidence.facts.kernel_settings.isolated_cpus.as_deref()?)?;
    if !wants {
        return None;
    }
    if isolated.contains(&cpu) {
        return Some(Finding::fine(CODE, format!("CPU {cpu} isolated")));
    }
    let message = format!(
        "CPU {cpu} is not isolated: other threads may run there, and its timer interrupts 100 to 1,000 times per second"
    );
    let fix = format!("boot with isolcpus=managed_irq,domain,{cpu} nohz_full={cpu} rcu_nocbs={cpu}");
    Some(Finding::new(FindingSeverity::Note, CODE, message, fix))
}

/// The firmware of a Raspberry Pi reports throttling now and since boot; x86 counts it.
fn throttled(evidence: &HostEvidence<'_>) -> Option<Finding> {
    const CODE: &str = "throttled";
    let flags = evidence.facts.heat.firmware_throttling;
    let now = flags.map(|flags| flags.now()).unwrap_or_default();
    if !now.is_empty() {
        let message = format!("the firmware slows this host down right now: {}", now.join(", "));
        return Some(Finding::new(FindingSeverity::Blocker, CODE, message, remedy(&now)));
    }
    let counted = count(&evidence.facts.heat);
    let lately = counted.zip(evidence.earlier.and_then(|earlier| count(&earlier.heat)));
    if let Some((now, before)) = lately.filter(|(now, before)| now > before) {
        let message = format!("CPUs were slowed down for heat {} times during this check", now - before);
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

fn hot(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let sensors = evidence.facts.heat.temperatures_celsius.as_ref()?.iter();
    let (sensor, celsius) = sensors.max_by(|one, other| one.1.total_cmp(other.1))?;
    if *celsius < HOT_CELSIUS {
        return Some(Finding::fine("hot", format!("{celsius:.0} °C")));
    }
    let message = format!("{sensor} is at {celsius:.0} °C: the CPUs will soon be slowed down");
    Some(Finding::new(FindingSeverity::Note, "hot", message, COOL))
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Intent;
    use super::super::findings::findings;
    use super::super::findings::tests::{BLOCKING, SPINNING, find, judged, message, on, severity};
    use super::*;
    use crate::facts::{ByCpu, CpuTicks, CpuTopology, FirmwareThrottling, HostFacts, Ticks};
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    fn host(online: &str) -> FakeHost {
        FakeHost::new().with("sys/devices/system/cpu/online", online)
    }

    fn pinned(cpu: u16) -> EndSpec {
        EndSpec { cpu: Some(cpu), ..SPINNING }
    }

    #[test]
    fn one_cpu_blocks_an_end_that_spins() {
        assert_eq!(severity(&on(&host("0"), &BLOCKING), "one-cpu"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&on(&host("0"), &SPINNING), "one-cpu"), Some(FindingSeverity::Blocker));
        assert_eq!(severity(&on(&host("0-1"), &SPINNING), "one-cpu"), None);
    }

    #[test]
    fn pins_are_checked_against_the_cpus_online() {
        let found = on(&host("0-1,3"), &EndSpec { cpu: Some(2), ..BLOCKING });
        assert!(message(&found, "cpu-absent").contains("0-1,3"));
        assert_eq!(severity(&on(&host("0-1,3"), &EndSpec { cpu: Some(3), ..BLOCKING }), "cpu-absent"), None);
    }

    fn state(name: &str, exit_latency_us: u32, entered: u64) -> IdleState {
        IdleState { name: name.into(), exit_latency_us, disabled: false, entered, resident_us: 0 }
    }

    #[test]
    fn the_deepest_enabled_idle_state_is_reported() {
        let sleepy = |entered| {
            let off = IdleState { disabled: true, ..state("C10", 400, 0) };
            let states = vec![state("POLL", 0, 0), state("C6", 133, entered), off];
            let mut facts = HostFacts::default();
            facts.processor.idle_states = Some(ByCpu::from_iter([(0, states), (1, vec![state("C1", 2, 0)])]));
            facts
        };
        let found = judged(&sleepy(5), &BLOCKING);
        assert!(message(&found, "idle-states").starts_with("an idle CPU may take 133 µs to wake up (`C6`): "));
        assert_eq!(severity(&found, "idle-states"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&judged(&sleepy(5), &SPINNING), "idle-states"), None);
        assert_eq!(severity(&judged(&sleepy(5), &EndSpec { cpu: Some(1), ..BLOCKING }), "idle-states"), None);
        let watched = findings(&sleepy(22), Some(&sleepy(5)), Intent { here: &BLOCKING, peer: None });
        assert!(message(&watched, "idle-states").contains("`C6`, entered 17 times by CPU 0"), "{watched:?}");
    }

    fn running(current_khz: u64, driver: &str) -> HostFacts {
        let frequency = Frequency {
            driver: Some(driver.into()),
            minimum_khz: Some(600_000),
            maximum_khz: Some(1_500_000),
            current_khz: Some(current_khz),
            ..Frequency::default()
        };
        let mut facts = HostFacts { governors: Some(vec!["ondemand".into()]), ..HostFacts::default() };
        facts.processor.frequencies = Some(ByCpu::from_iter([(0, frequency)]));
        facts
    }

    #[test]
    fn findings_on_slow_and_changing_frequencies_have_numbers() {
        let look = |before, after| {
            let (before, after) = (running(before, "cpufreq-dt"), running(after, "cpufreq-dt"));
            findings(&after, Some(&before), Intent { here: &BLOCKING, peer: None })
        };
        let found = look(600_000, 1_500_000);
        assert!(message(&found, "governor").starts_with("governor is `ondemand` (600 to 1500 MHz): "));
        assert!(message(&found, "frequency-drift").contains("at 600 MHz, and a moment later at 1500: "));
        assert!(message(&found, "frequency-drift").ends_with("150 % longer"));
        assert_eq!(severity(&look(1_500_000, 1_480_000), "frequency-drift"), None);
        for (driver, switch) in [("intel_pstate", "no_turbo"), ("acpi-cpufreq", "boost")] {
            let mut facts = running(1, driver);
            facts.processor.turbo = Some(true);
            let found = judged(&facts, &BLOCKING);
            assert!(
                find(&found, "turbo").and_then(|found| found.fix.as_deref()).is_some_and(|fix| fix.ends_with(switch))
            );
        }
    }

    #[test]
    fn siblings_are_busy_idle_or_the_other_end() {
        let look = |busy, here: u16, peer: Option<u16>| {
            let facts = |busy| {
                let mut facts = HostFacts { cpus_online: Some("0-2".into()), ..HostFacts::default() };
                let place = |siblings: &str| CpuTopology { siblings: Some(siblings.into()), ..CpuTopology::default() };
                facts.processor.topology =
                    Some(ByCpu::from_iter([(0, place("0-1")), (1, place("0-1")), (2, place("2"))]));
                let ticks = Ticks { busy, idle: 100, steal: 0 };
                let each = ByCpu::from_iter([(0, Ticks::default()), (1, ticks), (2, ticks)]);
                facts.counters.cpu_ticks = Some(CpuTicks { all: ticks, each });
                facts
            };
            let earlier = {
                let mut earlier = facts(0);
                earlier.counters.cpu_ticks = earlier.counters.cpu_ticks.map(|mut ticks| {
                    ticks.each.insert(1, Ticks::default());
                    ticks
                });
                earlier
            };
            let (here, peer) = (pinned(here), peer.map(pinned));
            findings(&facts(busy), Some(&earlier), Intent { here: &here, peer: peer.as_ref() })
        };
        assert!(message(&look(233, 0, None), "sibling-busy").contains("70 % busy"));
        assert_eq!(severity(&look(1, 0, None), "sibling-free"), Some(FindingSeverity::Note));
        let both = look(233, 0, Some(1));
        assert_eq!(severity(&both, "ends-on-one-core"), Some(FindingSeverity::Note));
        assert!(find(&both, "sibling-busy").is_none() && find(&both, "sibling-free").is_none());
        let apart = look(1, 0, Some(2));
        assert!(find(&apart, "ends-on-one-core").is_none() && find(&apart, "same-cpu").is_none());
        assert_eq!(severity(&look(1, 2, Some(2)), "same-cpu"), Some(FindingSeverity::Warning));
    }

    #[test]
    fn isolation_concerns_ends_that_need_a_cpu_of_their_own() {
        let isolated = |cpus: &str| host("0-3").with("sys/devices/system/cpu/isolated", cpus);
        let found = on(&isolated("\n"), &pinned(2));
        let fix = find(&found, "cpu-not-isolated").and_then(|found| found.fix.clone()).expect("a fix");
        assert!(fix.contains("isolcpus=managed_irq,domain,2 "), "{fix}");
        assert_eq!(severity(&on(&isolated("2-3\n"), &pinned(2)), "cpu-not-isolated"), Some(FindingSeverity::Fine));
        assert_eq!(severity(&on(&isolated("\n"), &EndSpec { cpu: Some(2), ..BLOCKING }), "cpu-not-isolated"), None);
    }

    #[test]
    fn throttling_by_firmware_blocks_now_and_warns_since_boot() {
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
    fn throttling_is_counted_between_two_readings() {
        let counted = |times| {
            let mut facts = HostFacts::default();
            facts.heat.throttle_counts = Some(ByCpu::from_iter([(0, 3), (1, times)]));
            facts
        };
        let look = |now| findings(&counted(now), Some(&counted(4)), Intent { here: &BLOCKING, peer: None });
        assert!(message(&look(9), "throttled").contains("5 times during this check"));
        assert_eq!(severity(&look(9), "throttled"), Some(FindingSeverity::Blocker));
        assert!(message(&look(4), "throttled").contains("7 times since boot"));
    }
}
