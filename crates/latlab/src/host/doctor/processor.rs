//! CPUs: how many, how fast, how busy, whose.

use super::Seen;
use crate::facts::{Finding, FindingSeverity};
use crate::host::cpu_list;
use crate::plan::WaitMode;

const CPUS: &str = "sys/devices/system/cpu";
/// A CPU that is busier than this shares its time with somebody.
const BUSY: f64 = 0.1;
/// Stolen time above this shows in the upper quantiles.
const STOLEN: f64 = 0.001;

pub(super) fn look(seen: &Seen<'_>) -> Vec<Finding> {
    let online = seen.facts.cpus_online.as_deref().and_then(cpu_list::parse).unwrap_or_default();
    let mut found: Vec<Finding> =
        [one_cpu(seen, &online), same_cpu(seen), governor(seen), idle_states(seen), steal(seen)]
            .into_iter()
            .flatten()
            .collect();
    let mut pins: Vec<u16> = seen.intent.ends().filter_map(|end| end.cpu).collect();
    pins.dedup();
    for cpu in pins {
        found.extend([absent(seen, &online, cpu), busy(seen, cpu), sibling(seen, cpu)].into_iter().flatten());
    }
    found
}

fn one_cpu(seen: &Seen<'_>, online: &[u16]) -> Option<Finding> {
    if online.len() != 1 {
        return None;
    }
    let (severity, message) = if seen.intent.waits(WaitMode::Spin) {
        (FindingSeverity::Blocker, "one CPU only: an end that spins keeps the other from answering")
    } else {
        (FindingSeverity::Warning, "one CPU only: both ends and the recording take turns on it")
    };
    Some(Finding::new(severity, "one-cpu", message, "measure against another host: latlab ping HOST"))
}

fn same_cpu(seen: &Seen<'_>) -> Option<Finding> {
    let cpu = seen.intent.here.cpu?;
    let both = seen.intent.peer?.cpu == Some(cpu) && seen.intent.waits(WaitMode::Spin);
    both.then(|| {
        let message = format!("both ends share CPU {cpu} and spin: each waits for the other's time slice to end");
        let fix = "give the ends different CPUs with --cpu and --peer-cpu, or use --wait block";
        Finding::new(FindingSeverity::Warning, "same-cpu", message, fix)
    })
}

fn absent(seen: &Seen<'_>, online: &[u16], cpu: u16) -> Option<Finding> {
    let list = seen.facts.cpus_online.as_deref()?;
    (!online.contains(&cpu)).then(|| {
        let message = format!("CPU {cpu} is not online: the CPUs online are {list}");
        Finding::new(FindingSeverity::Blocker, "cpu-absent", message, "choose one of these")
    })
}

fn governor(seen: &Seen<'_>) -> Option<Finding> {
    let governors = seen.facts.governors.as_deref()?;
    let slow: Vec<_> = governors.iter().filter(|name| *name != "performance").map(|name| format!("`{name}`")).collect();
    if slow.is_empty() {
        return Some(Finding::fine("governor", "governor performance"));
    }
    let message = format!("governor is {}: an idle host answers later than a busy one", slow.join(", "));
    let fix = "sudo cpupower frequency-set -g performance";
    Some(Finding::new(FindingSeverity::Warning, "governor", message, fix))
}

/// Deep idle states: who sleeps in them wakes late.
fn idle_states(seen: &Seen<'_>) -> Option<Finding> {
    const SHALLOW_US: u32 = 10;
    if !seen.intent.any(|end| end.wait != WaitMode::Spin) {
        return None;
    }
    let states = format!("{CPUS}/cpu0/cpuidle");
    let exit_us = |state: &String| -> Option<u32> {
        let disabled: u32 = seen.root.number(&format!("{states}/{state}/disable")).unwrap_or(0);
        let latency_us = seen.root.number(&format!("{states}/{state}/latency")).ok()?;
        (disabled == 0).then_some(latency_us)
    };
    let deepest_us = seen.root.names(&states).iter().filter_map(exit_us).max().filter(|us| *us > SHALLOW_US)?;
    let message = format!("an idle CPU may take {deepest_us} µs to wake up: blocked ends measure that too");
    Some(Finding::new(FindingSeverity::Note, "idle-states", message, "latlab ping --wait spin"))
}

fn steal(seen: &Seen<'_>) -> Option<Finding> {
    let share = seen.activity?.all.steal;
    let message = format!("steal {:.1} %", share * 100.0);
    if share <= STOLEN {
        return Some(Finding::fine("steal", message));
    }
    let message = format!("{message}: the hypervisor runs other guests while we wait");
    let fix = "move to a host with dedicated CPUs, or measure when the neighbours sleep";
    Some(Finding::new(FindingSeverity::Warning, "steal", message, fix))
}

fn busy(seen: &Seen<'_>, cpu: u16) -> Option<Finding> {
    let share = seen.activity?.each.get(&cpu)?.busy;
    (share > BUSY).then(|| {
        let message = format!("CPU {cpu} was {:.0} % busy before we came", share * 100.0);
        Finding::new(FindingSeverity::Warning, "cpu-busy", message, "choose another CPU, or find out who with `top -1`")
    })
}

/// Threads of one core share its execution units.
fn sibling(seen: &Seen<'_>, cpu: u16) -> Option<Finding> {
    let list = seen.root.text(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list")).ok()?;
    let siblings = cpu_list::parse(&list)?;
    let share = |sibling: &u16| Some((*sibling, seen.activity?.each.get(sibling)?.busy));
    let others = siblings.iter().filter(|sibling| **sibling != cpu);
    let (sibling, share) = others.filter_map(share).find(|(_, share)| *share > BUSY)?;
    let message = format!("CPU {sibling}, the sibling of CPU {cpu} on one core, was {:.0} % busy", share * 100.0);
    let fix = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    Some(Finding::new(FindingSeverity::Warning, "sibling-busy", message, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BLOCKING, SPINNING, find, on, severity};
    use super::super::{Intent, findings};
    use super::*;
    use crate::host::activity::{Activity, Share};
    use crate::host::root::tests::FakeHost;
    use crate::plan::EndSpec;

    fn host(online: &str) -> FakeHost {
        FakeHost::new().with("sys/devices/system/cpu/online", online)
    }

    #[test]
    fn one_cpu_blocks_who_spins() {
        assert_eq!(severity(&on(&host("0"), &BLOCKING), "one-cpu"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&on(&host("0"), &SPINNING), "one-cpu"), Some(FindingSeverity::Blocker));
        assert_eq!(severity(&on(&host("0-1"), &SPINNING), "one-cpu"), None);
    }

    #[test]
    fn pins_are_checked_against_the_cpus_online() {
        let found = on(&host("0-1,3"), &EndSpec { cpu: Some(2), ..BLOCKING });
        assert!(find(&found, "cpu-absent").expect("found").message.contains("0-1,3"));
        assert_eq!(severity(&on(&host("0-1,3"), &EndSpec { cpu: Some(3), ..BLOCKING }), "cpu-absent"), None);
    }

    #[test]
    fn slow_governors_and_deep_sleep_are_named() {
        let sleepy = host("0-1")
            .with("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "ondemand")
            .with("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2")
            .with("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133")
            .with("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "400")
            .with("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1");
        let found = on(&sleepy, &BLOCKING);
        assert!(find(&found, "governor").expect("found").message.contains("`ondemand`"));
        assert!(find(&found, "idle-states").expect("found").message.contains("133 µs"));
        assert_eq!(severity(&on(&sleepy, &SPINNING), "idle-states"), None);
    }

    #[test]
    fn busy_cpus_busy_siblings_and_thieves_are_named() {
        let host = host("0-1").with("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1");
        let end = EndSpec { cpu: Some(0), ..SPINNING };
        let share = |busy, steal| Share { busy, steal };
        let look = |all, first, second| {
            let activity = Activity { all, each: [(0, first), (1, second)].into() };
            let facts = crate::host::facts::read(&host.root);
            findings(&host.root, &facts, Some(&activity), Intent { here: &end, peer: Some(&end) })
        };
        let found = look(share(0.5, 0.02), share(0.3, 0.0), share(0.7, 0.0));
        assert!(find(&found, "cpu-busy").expect("found").message.contains("30 %"));
        assert!(find(&found, "sibling-busy").expect("found").message.contains("70 %"));
        assert!(find(&found, "steal").expect("found").message.contains("2.0 %"));
        assert_eq!(severity(&found, "same-cpu"), Some(FindingSeverity::Warning));
        let calm = look(share(0.0, 0.0), share(0.0, 0.0), share(0.0, 0.0));
        assert_eq!(severity(&calm, "steal"), Some(FindingSeverity::Fine));
        assert!(find(&calm, "cpu-busy").is_none() && find(&calm, "sibling-busy").is_none());
    }
}
