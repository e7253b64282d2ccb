//! What else the host is doing: other guests, other threads, memory that runs short.

use super::Seen;
use crate::facts::{Finding, FindingSeverity};
use crate::host::cpu_list;
use crate::units::human;

/// A CPU that is busier than this shares its time with somebody.
pub(super) const BUSY: f64 = 0.1;
/// Stolen time above this shows in the upper quantiles.
const STOLEN: f64 = 0.001;
/// Threads that want to run, for each CPU: above this they take turns.
const CROWDED: f64 = 0.7;
/// With less memory than this share at hand the kernel starts to look for pages to take away.
const SHORT: f64 = 0.05;

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = [steal(seen), virtualisation(seen), load_average(seen), memory(seen), swap(seen)]
        .into_iter()
        .flatten()
        .collect();
    found.extend(seen.intent.pins().into_iter().filter_map(|cpu| busy(seen, cpu)));
    found
}

fn steal(seen: &Seen<'_>) -> Option<Finding> {
    let share = seen.activity.as_ref()?.all.steal;
    let message = format!("steal {:.1} %", share * 100.0);
    if share <= STOLEN {
        return Some(Finding::fine("steal", message));
    }
    let message = format!("{message}: the hypervisor runs other guests while we wait, for milliseconds at a time");
    let fix = "move to a host with dedicated CPUs, or measure when the neighbours sleep";
    Some(Finding::new(FindingSeverity::Warning, "steal", message, fix))
}

fn virtualisation(seen: &Seen<'_>) -> Option<Finding> {
    let kind = seen.facts.virtualisation.as_deref().filter(|kind| *kind != "none")?;
    let message = format!("this is a virtual machine ({kind}): the hypervisor adds delays that nobody here can see");
    let ticks = seen.facts.counters.cpu_ticks.as_ref().map(|ticks| ticks.all);
    let share = ticks.map(|all| all.steal as f64 / (all.busy + all.idle + all.steal).max(1) as f64);
    match share {
        Some(share) if share > STOLEN => Some(Finding::new(
            FindingSeverity::Warning,
            "virtualised",
            format!("{message}; {:.1} % of its time was stolen since boot", share * 100.0),
            "measure on a host of your own, or on dedicated CPUs",
        )),
        Some(_) => Some(Finding::note("virtualised", format!("{message}; next to nothing was stolen since boot"))),
        None => Some(Finding::note("virtualised", message)),
    }
}

fn busy(seen: &Seen<'_>, cpu: u16) -> Option<Finding> {
    let share = seen.activity.as_ref()?.each.get(&cpu)?.busy;
    (share > BUSY).then(|| {
        let message = format!("CPU {cpu} was {:.0} % busy before we came: we wait for our turn there", share * 100.0);
        Finding::new(FindingSeverity::Warning, "cpu-busy", message, "choose another CPU, or find out who with `top -1`")
    })
}

fn load_average(seen: &Seen<'_>) -> Option<Finding> {
    let [lately, ..] = seen.facts.load_average?;
    let cpus = cpu_list::parse(seen.facts.cpus_online.as_deref()?)?.len();
    if lately <= CROWDED * cpus as f64 {
        return None;
    }
    let severity = if lately >= cpus as f64 { FindingSeverity::Warning } else { FindingSeverity::Note };
    let message = format!(
        "load average {lately:.1} on {cpus} CPU(s) over the last minute: a thread that wakes up may wait for a \
         time slice of 1 to 4 ms"
    );
    Some(Finding::new(severity, "load-average", message, "find out who with `top`, and let them end first"))
}

fn memory(seen: &Seen<'_>) -> Option<Finding> {
    let (available, whole) = (seen.facts.memory.available_bytes?, seen.facts.memory_bytes?);
    ((available as f64) < SHORT * whole as f64).then(|| {
        let message = format!(
            "{} of {} MiB of memory are left: taking pages back from others stops threads for milliseconds",
            human::grouped(available >> 20),
            human::grouped(whole >> 20)
        );
        Finding::new(
            FindingSeverity::Warning,
            "memory-short",
            message,
            "latlab ping --mlock, and end what is not needed",
        )
    })
}

fn swap(seen: &Seen<'_>) -> Option<Finding> {
    let memory = &seen.facts.memory;
    let used_mib = memory.swap_bytes?.checked_sub(memory.swap_free_bytes?).map(|bytes| bytes >> 20)?;
    if used_mib == 0 {
        return None;
    }
    seen.intent.any(|end| !end.mlock).then(|| {
        Finding::new(
            FindingSeverity::Note,
            "swap",
            format!(
                "{} MiB of swap are in use: a page brought back from there costs milliseconds",
                human::grouped(used_mib)
            ),
            "latlab ping --mlock",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, find, judged, message, on, severity};
    use super::super::{Intent, findings};
    use super::*;
    use crate::facts::{ByCpu, CpuTicks, HostFacts, Ticks};
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    fn ticking(all: Ticks, first: Ticks) -> HostFacts {
        let ticks = CpuTicks { all, each: ByCpu::from_iter([(0, first)]) };
        let mut facts = HostFacts::default();
        facts.counters.cpu_ticks = Some(ticks);
        facts
    }

    #[test]
    fn busy_cpus_and_thieves_are_named() {
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
        let calm = look(idle, idle);
        assert_eq!(severity(&calm, "steal"), Some(FindingSeverity::Fine));
        assert!(find(&calm, "cpu-busy").is_none());
        assert_eq!(severity(&judged(&ticking(idle, idle), &end), "steal"), None, "one look shows nothing");
    }

    #[test]
    fn a_virtual_machine_is_judged_by_what_was_stolen_from_it() {
        let mut facts = HostFacts { virtualisation: Some("kvm".into()), ..HostFacts::default() };
        assert_eq!(severity(&judged(&facts, &BLOCKING), "virtualised"), Some(FindingSeverity::Note));
        facts.counters = ticking(Ticks { busy: 9_000, idle: 90_000, steal: 1_000 }, Ticks::default()).counters;
        let found = judged(&facts, &BLOCKING);
        assert_eq!(severity(&found, "virtualised"), Some(FindingSeverity::Warning));
        assert!(message(&found, "virtualised").ends_with("1.0 % of its time was stolen since boot"));
        facts.virtualisation = Some("none".into());
        assert_eq!(judged(&facts, &BLOCKING), []);
    }

    #[test]
    fn crowds_are_named_by_their_size() {
        for (load, expected) in
            [("0.90", None), ("1.50", Some(FindingSeverity::Note)), ("2.00", Some(FindingSeverity::Warning))]
        {
            let host = FakeHost::new()
                .with("sys/devices/system/cpu/online", "0-1")
                .with("proc/loadavg", &format!("{load} 0.10 0.10 1/100 9\n"));
            assert_eq!(severity(&on(&host, &BLOCKING), "load-average"), expected, "{load}");
        }
    }

    #[test]
    fn memory_that_runs_short_and_swap_are_named() {
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
}
