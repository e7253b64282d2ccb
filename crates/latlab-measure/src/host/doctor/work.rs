//! Findings on other work of the host: other guests and threads, interrupts, and shortage of memory.

use super::evidence::{HostEvidence, Intent};
use crate::facts::{CpuShare, Finding, FindingSeverity, HostFacts};
use crate::host::root::parse_cpu_list;
use crate::units::human;

/// A busier CPU is shared with other threads.
pub(super) const BUSY: f64 = 0.1;
/// More stolen time shows in the upper quantiles.
const STOLEN: f64 = 0.001;
/// More runnable threads per CPU wait for each other.
const CROWDED: f64 = 0.7;
/// With less available memory the kernel begins to reclaim pages.
const SHORT: f64 = 0.05;

/// Fewer interrupts per second are negligible.
const FEW: f64 = 10.0;
/// At this rate of interrupts or above, at least one of a hundred round trips of 100 µs is interrupted.
const MANY: f64 = 100.0;

pub(super) fn check(evidence: &HostEvidence<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = [cpu_quota, steal, virtualisation, load_average, memory, swap]
        .into_iter()
        .filter_map(|of| of(evidence))
        .collect();
    for cpu in evidence.intent.pins() {
        found.extend([busy(evidence, cpu), interrupts(evidence, cpu)].into_iter().flatten());
    }
    found
}

fn cpu_quota(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let group = &evidence.facts.cgroup;
    let (quota, periods) = (human::general(group.cpu_quota?, 3), human::grouped(group.throttled_periods.unwrap_or(0)));
    let message =
        format!("the control group gets the time of {quota} CPU(s), and was stopped in {periods} periods so far");
    let fix = "lift the quota: `cpu.max` of the group, `--cpus` of a container, `CPUQuota=` of a unit";
    Some(Finding::new(FindingSeverity::Warning, "cpu-quota", message, fix))
}

fn steal(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let share = evidence.activity.as_ref()?.all.steal;
    let message = format!("steal {:.1} %", share * 100.0);
    if share <= STOLEN {
        return Some(Finding::fine("steal", message));
    }
    let message = format!("{message}: the hypervisor runs other guests for milliseconds at a time");
    let fix = "use a host with dedicated CPUs, or measure when the other guests are idle";
    Some(Finding::new(FindingSeverity::Warning, "steal", message, fix))
}

fn virtualisation(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let kind = evidence.facts.virtualisation.as_deref().filter(|kind| *kind != "none")?;
    let message = format!("this is a virtual machine ({kind}): the hypervisor adds delays that this host cannot see");
    let ticks = evidence.facts.counters.cpu_ticks.as_ref().map(|ticks| ticks.all);
    let share = ticks.map(|all| all.steal as f64 / (all.busy + all.idle + all.steal).max(1) as f64);
    match share {
        Some(share) if share > STOLEN => Some(Finding::new(
            FindingSeverity::Warning,
            "virtualised",
            format!("{message}; {:.1} % of its time was stolen since boot", share * 100.0),
            "measure on a host of your own, or on dedicated CPUs",
        )),
        Some(_) => Some(Finding::note("virtualised", format!("{message}; hardly any time was stolen since boot"))),
        None => Some(Finding::note("virtualised", message)),
    }
}

/// The pinned CPUs that were busy between `earlier` and `facts`.
pub fn busy_cpus(facts: &HostFacts, earlier: &HostFacts, intent: Intent<'_>) -> Vec<u16> {
    let Some(activity) = facts.activity_since(earlier) else { return Vec::new() };
    let is_busy = |cpu: &u16| activity.each.get(cpu).is_some_and(|share| share.busy > BUSY);
    intent.pins().into_iter().filter(is_busy).collect()
}

fn busy(evidence: &HostEvidence<'_>, cpu: u16) -> Option<Finding> {
    let each = &evidence.activity.as_ref()?.each;
    let share = each.get(&cpu)?.busy;
    let pins = evidence.intent.pins();
    let is_better = |(other, used): (&u16, &CpuShare)| !pins.contains(other) && used.busy + BUSY < share;
    (share > BUSY).then(|| {
        let message =
            format!("CPU {cpu} was {:.0} % busy before the measurement: a thread there has to wait", share * 100.0);
        let fix = if each.iter().any(is_better) {
            "choose another CPU, or find the process with `top -1`"
        } else {
            "find the process with `top -1`, and wait until it ends"
        };
        Finding::new(FindingSeverity::Warning, "cpu-busy", message, fix)
    })
}

fn load_average(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let [lately, ..] = evidence.facts.load_average?;
    let cpus = parse_cpu_list(evidence.facts.usable_cpus()?)?.len();
    if lately <= CROWDED * cpus as f64 {
        return None;
    }
    let severity = if lately >= cpus as f64 { FindingSeverity::Warning } else { FindingSeverity::Note };
    let message = format!(
        "load average {lately:.1} on {cpus} CPU(s) over the last minute: a thread that wakes up may wait for a \
         time slice of 1 to 4 ms"
    );
    Some(Finding::new(severity, "load-average", message, "find the processes with `top`, and wait until they end"))
}

fn memory(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let (available, whole) = (evidence.facts.memory.available_bytes?, evidence.facts.memory_bytes?);
    ((available as f64) < SHORT * whole as f64).then(|| {
        let message = format!(
            "{} of {} MiB of memory are free: reclaiming pages stops threads for milliseconds",
            human::grouped(available >> 20),
            human::grouped(whole >> 20)
        );
        Finding::new(
            FindingSeverity::Warning,
            "memory-short",
            message,
            "latlab ping --mlock, and end processes that are not needed",
        )
    })
}

fn swap(evidence: &HostEvidence<'_>) -> Option<Finding> {
    let memory = &evidence.facts.memory;
    let used_mib = memory.swap_bytes?.checked_sub(memory.swap_free_bytes?).map(|bytes| bytes >> 20)?;
    if used_mib == 0 {
        return None;
    }
    evidence.intent.any(|end| !end.mlock).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "swap",
            format!("{} MiB of swap are in use: reading a page back takes milliseconds", human::grouped(used_mib)),
            "latlab ping --mlock",
        )
    })
}

/// Only numbered interrupts: timer ticks and inter-processor interrupts cannot be moved.
fn interrupts(evidence: &HostEvidence<'_>, cpu: u16) -> Option<Finding> {
    let earlier = evidence.earlier?;
    let seconds = seconds_between(earlier, evidence.facts)?;
    let used = evidence.facts.counters.interrupts_since(&earlier.counters, cpu);
    let used: Vec<_> = used.iter().filter(|used| used.name.parse::<u32>().is_ok()).collect();
    let busiest = used.first()?;
    let rate = used.iter().map(|used| used.times).sum::<u64>() as f64 / seconds;
    if rate < FEW {
        return None;
    }
    let severity = if rate >= MANY { FindingSeverity::Warning } else { FindingSeverity::Note };
    let message = format!(
        "CPU {cpu} handles {} interrupts per second, most of them {} ({}): each takes some microseconds",
        human::grouped(rate.round() as u64),
        busiest.name,
        busiest.interrupt.source
    );
    let online = parse_cpu_list(evidence.facts.usable_cpus().unwrap_or_default()).unwrap_or_default();
    let pins = evidence.intent.pins();
    let fix = match online.iter().find(|other| !pins.contains(other)) {
        Some(other) => format!("echo {other} | sudo tee /proc/irq/{}/smp_affinity_list", busiest.name),
        None => "measure on another CPU: there is none to move the interrupts to".into(),
    };
    Some(Finding::new(severity, "irqs-on-cpu", message, fix))
}

fn seconds_between(earlier: &HostFacts, facts: &HostFacts) -> Option<f64> {
    let span_ns = facts.monotonic_ns? - earlier.monotonic_ns?;
    (span_ns > 0).then_some(span_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::super::findings::findings;
    use super::super::findings::tests::{BLOCKING, find, judged, message, on, severity};
    use super::*;
    use crate::facts::{ByCpu, CpuTicks, InterruptSource, Ticks};
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    fn ticking(all: Ticks, first: Ticks) -> HostFacts {
        let ticks = CpuTicks { all, each: ByCpu::from_iter([(0, first)]) };
        let mut facts = HostFacts::default();
        facts.counters.cpu_ticks = Some(ticks);
        facts
    }

    #[test]
    fn the_limits_of_the_control_group_are_findings() {
        let host = FakeHost::new()
            .with("sys/devices/system/cpu/online", "0-3")
            .with("proc/self/cgroup", "0::/")
            .with("sys/fs/cgroup/cpu.max", "50000 100000")
            .with("sys/fs/cgroup/cpu.stat", "nr_throttled 1200")
            .with("sys/fs/cgroup/cpuset.cpus.effective", "2");
        let found = on(&host, &EndSpec { cpu: Some(1), ..BLOCKING });
        assert!(message(&found, "cpu-quota").contains("of 0.5 CPU(s), and was stopped in 1,200 periods"), "{found:?}");
        assert!(message(&found, "cpu-absent").ends_with("usable are 2"), "{found:?}");
        assert!(find(&found, "one-cpu").is_some());
    }

    #[test]
    fn busy_cpus_and_steal_are_findings() {
        let end = EndSpec { cpu: Some(0), ..BLOCKING };
        let look = |all, first| {
            let facts = ticking(all, first);
            let earlier = ticking(Ticks::default(), Ticks::default());
            findings(&facts, Some(&earlier), Intent { here: &end, peer: Some(&end) })
        };
        let idle = Ticks { busy: 0, idle: 100, steal: 0 };
        let found = look(Ticks { busy: 50, idle: 48, steal: 2 }, Ticks { busy: 30, ..idle });
        assert!(message(&found, "cpu-busy").contains("23 % busy"), "{found:?}");
        assert!(message(&found, "steal").starts_with("steal 2.0 %: "));
        let fix = |found: &[Finding]| find(found, "cpu-busy").and_then(|finding| finding.fix.clone());
        assert_eq!(fix(&found).as_deref(), Some("find the process with `top -1`, and wait until it ends"));
        let calm = look(idle, idle);
        assert_eq!(severity(&calm, "steal"), Some(FindingSeverity::Fine));
        assert!(find(&calm, "cpu-busy").is_none());
        assert_eq!(severity(&judged(&ticking(idle, idle), &end), "steal"), None, "one look shows nothing");
    }

    #[test]
    fn another_cpu_is_recommended_if_it_is_less_busy() {
        let looks = |busy: [u64; 3]| {
            let ticks = |busy| Ticks { busy, idle: 100 - busy, steal: 0 };
            let facts = |each: [Ticks; 3]| {
                let mut facts = HostFacts::default();
                facts.counters.cpu_ticks = Some(CpuTicks { all: each[0], each: ByCpu::from_iter((0..).zip(each)) });
                facts
            };
            (facts([Ticks::default(); 3]), facts(busy.map(ticks)))
        };
        let ends = [0, 1].map(|cpu| EndSpec { cpu: Some(cpu), ..BLOCKING });
        let intent = Intent { here: &ends[0], peer: Some(&ends[1]) };
        for (busy, cpus, expected) in
            [([90, 90, 20], &[0_u16, 1][..], true), ([90, 0, 90], &[0][..], false), ([90, 50, 85], &[0, 1][..], false)]
        {
            let (earlier, now) = looks(busy);
            assert_eq!(busy_cpus(&now, &earlier, intent), cpus);
            let found = findings(&now, Some(&earlier), intent);
            let fix = find(&found, "cpu-busy").and_then(|finding| finding.fix.as_deref()).expect("busy");
            assert_eq!(fix.starts_with("choose another CPU"), expected, "{busy:?}: {fix}");
        }
    }

    #[test]
    fn short_memory_and_used_swap_are_findings() {
        let host = |available: u32, used: u32| {
            let free = 4_194_304 - used;
            let text = format!(
                "MemTotal: 1000000 kB\nMemAvailable: {available} kB\nSwapTotal: 4194304 kB\nSwapFree: {free} kB\n"
            );
            FakeHost::new().with("proc/meminfo", &text)
        };
        let found = on(&host(40_000, 2_048), &BLOCKING);
        assert_eq!(severity(&found, "memory-short"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&found, "swap"), Some(FindingSeverity::Note));
        assert!(
            message(&found, "swap").starts_with("2 MiB of swap are in use"),
            "what is used, not what there is: {found:?}"
        );
        assert_eq!(on(&host(60_000, 0), &BLOCKING), []);
        assert_eq!(on(&host(60_000, 2_048), &EndSpec { mlock: true, ..BLOCKING }), []);
    }

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
    fn interrupts_on_the_measuring_cpu_are_a_finding_whose_fix_names_another_cpu() {
        let look = |cpu, facts: &HostFacts| {
            let end = EndSpec { cpu: Some(cpu), ..BLOCKING };
            findings(facts, Some(&counted(0, 100, 0)), Intent { here: &end, peer: None })
        };
        let found = look(1, &counted(500_000_000, 1_100, 900));
        assert!(
            message(&found, "irqs-on-cpu")
                .starts_with("CPU 1 handles 2,000 interrupts per second, most of them 41 (PCI-MSI")
        );
        assert_eq!(found[0].fix.as_deref(), Some("echo 0 | sudo tee /proc/irq/41/smp_affinity_list"));
        assert_eq!(severity(&found, "irqs-on-cpu"), Some(FindingSeverity::Warning));
        let some = look(1, &counted(1_000_000_000, 150, 900));
        assert_eq!(severity(&some, "irqs-on-cpu"), Some(FindingSeverity::Note));
        assert_eq!(severity(&look(1, &counted(1_000_000_000, 101, 900)), "irqs-on-cpu"), None);
        assert_eq!(severity(&look(2, &counted(1_000_000_000, 9_000, 900)), "irqs-on-cpu"), None);
    }
}
