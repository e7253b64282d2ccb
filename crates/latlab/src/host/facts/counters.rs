//! What the kernel counts: ticks, switches, interrupts.

use std::collections::BTreeMap;

use super::known::FactReader;
use crate::facts::{ByCpu, CounterFacts, CpuTicks, InterruptSource};
use crate::host::root::HostRoot;

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> CounterFacts {
    let interrupts = known.fact("counters.interrupts", || interrupts(root));
    // In /proc/irq there are only those with a number.
    if interrupts.iter().flatten().any(|(_, interrupt)| interrupt.affinity.is_none()) {
        known.lacks(
            "counters.interrupts.affinity".into(),
            "the kernel moves only interrupts with a number, and not all of those",
        );
    }
    CounterFacts {
        cpu_ticks: known.fact("counters.cpu_ticks", || CpuTicks::read(root)),
        context_switches: known.fact("counters.context_switches", || context_switches(root)),
        interrupts,
        softirqs: known.fact("counters.softirqs", || softirqs(root)),
    }
}

fn context_switches(root: &HostRoot) -> Result<u64, String> {
    let text = root.text("proc/stat")?;
    let count = text.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok());
    count.ok_or_else(|| "/proc/stat states no ctxt".into())
}

/// `/proc/interrupts`: a headline of CPUs, then for each interrupt its name, its counts and its source.
fn interrupts(root: &HostRoot) -> Result<BTreeMap<String, InterruptSource>, String> {
    let text = root.text("proc/interrupts")?;
    let cpus = headline(&text).ok_or("/proc/interrupts: the first line names no CPU")?;
    let rows = text.lines().skip(1).filter_map(|line| row(line, &cpus));
    let mut interrupts = BTreeMap::new();
    for (name, counts, source) in rows.filter(|(_, counts, _)| !counts.is_empty()) {
        let affinity = name.parse::<u32>().ok();
        let affinity = affinity.and_then(|number| root.text(&format!("proc/irq/{number}/smp_affinity_list")).ok());
        interrupts.insert(name, InterruptSource { source, affinity, counts });
    }
    Ok(interrupts)
}

fn softirqs(root: &HostRoot) -> Result<BTreeMap<String, ByCpu<u64>>, String> {
    let text = root.text("proc/softirqs")?;
    let cpus = headline(&text).ok_or("/proc/softirqs: the first line names no CPU")?;
    let rows = text.lines().skip(1).filter_map(|line| row(line, &cpus));
    Ok(rows.filter(|(_, counts, _)| !counts.is_empty()).map(|(name, counts, _)| (name, counts)).collect())
}

/// `CPU0 CPU2`
fn headline(text: &str) -> Option<Vec<u16>> {
    let cpus = text.lines().next()?.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok());
    cpus.collect::<Option<Vec<u16>>>().filter(|cpus| !cpus.is_empty())
}

/// Name, counts that are not 0, and what stands behind them. None for lines of another form: `ERR` and `MIS`
/// have one count for the whole machine.
fn row(line: &str, cpus: &[u16]) -> Option<(String, ByCpu<u64>, String)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus.len()).map(str::parse).collect::<Result<_, _>>().ok()?;
    if counts.len() < cpus.len() {
        return None;
    }
    let counts = cpus.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect();
    Some((name.trim().into(), counts, words.collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn interrupts_are_counted_where_they_came() {
        let host = FakeHost::new()
            .with(
                "proc/interrupts",
                "           CPU0       CPU2\n  1:          0          9   IO-APIC   1-edge      i8042\n \
                 24:          0          0   PCI-MSI 1-edge  nvme0q0\nLOC:        812        714   Local timer interrupts\n\
                 ERR:          3\n",
            )
            .with("proc/irq/1/smp_affinity_list", "0-2\n")
            .with("proc/softirqs", "   CPU0 CPU2\n  NET_RX:  7 8\n HI: 0 0\n")
            .with("proc/stat", "cpu  1 2 3 4 5 6 7 8\nintr 900 1\nctxt 1234\n");
        let mut known = FactReader::from(Instant::now());
        let counters = read(&host.root, &mut known);
        let interrupts = counters.interrupts.expect("interrupts");
        assert_eq!(interrupts.keys().collect::<Vec<_>>(), ["1", "LOC"], "only those that came");
        assert_eq!(interrupts["1"].affinity.as_deref(), Some("0-2"));
        assert_eq!(interrupts["1"].source, "IO-APIC 1-edge i8042");
        assert_eq!(interrupts["1"].counts.iter().collect::<Vec<_>>(), [(&2, &9)]);
        assert_eq!((interrupts["LOC"].affinity.as_ref(), interrupts["LOC"].counts[&0]), (None, 812));
        let softirqs = counters.softirqs.expect("softirqs");
        assert_eq!(softirqs.keys().collect::<Vec<_>>(), ["NET_RX"]);
        assert_eq!(counters.context_switches, Some(1_234));
        assert_eq!(known.reasons().keys().collect::<Vec<_>>(), ["counters.interrupts.affinity"], "that of LOC");
    }
}
