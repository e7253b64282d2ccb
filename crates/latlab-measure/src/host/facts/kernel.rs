//! The kernel: version, settings, memory, and counters (ticks, switches, interrupts).

use std::collections::BTreeMap;

use super::reader::{FactReader, value_of};
use crate::facts::{ByCpu, CounterFacts, CpuTicks, InterruptSource, KernelFacts, MemoryFacts, Ticks};
use crate::host::root::HostRoot;

pub(super) fn version(root: &HostRoot) -> Result<String, String> {
    Ok(format!("{} {}", root.text("proc/sys/kernel/ostype")?, root.text("proc/sys/kernel/osrelease")?))
}

pub(super) fn architecture(root: &HostRoot) -> Result<String, String> {
    // Since Linux 6.1; before that, the architecture of this program.
    root.text("proc/sys/kernel/arch").or_else(|_| Ok(std::env::consts::ARCH.into()))
}

pub(super) fn settings(root: &HostRoot, known: &mut FactReader) -> KernelFacts {
    const CPUS: &str = "sys/devices/system/cpu";
    const FAIR_SHARE: &str = "sys/kernel/debug/sched/fair_server/cpu0";
    let mut fact =
        |field: &str, read: &dyn Fn() -> Result<String, String>| known.fact(&format!("kernel_settings.{field}"), read);
    let command_line = fact("command_line", &|| root.text("proc/cmdline"));
    let preemption = fact("preemption", &|| preemption(root));
    let isolated_cpus = fact("isolated_cpus", &|| root.text(&format!("{CPUS}/isolated")));
    let tickless_cpus = fact("tickless_cpus", &|| {
        // Kernels up to 6.6 print a null pointer for an empty set.
        root.text(&format!("{CPUS}/nohz_full")).map(|cpus| cpus.replace("(null)", ""))
    });
    KernelFacts {
        command_line,
        preemption,
        isolated_cpus,
        tickless_cpus,
        rt_period_us: known.fact("kernel_settings.rt_period_us", || root.number("proc/sys/kernel/sched_rt_period_us")),
        fair_share_runtime_ns: known
            .fact("kernel_settings.fair_share_runtime_ns", || root.number(&format!("{FAIR_SHARE}/runtime"))),
        fair_share_period_ns: known
            .fact("kernel_settings.fair_share_period_ns", || root.number(&format!("{FAIR_SHARE}/period"))),
    }
}

/// `Linux version … #1 SMP PREEMPT_DYNAMIC …`
fn preemption(root: &HostRoot) -> Result<String, String> {
    let version = root.text("proc/version")?;
    let word = version.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    Ok(word.unwrap_or("none").into())
}

pub(super) fn memory_bytes(root: &HostRoot) -> Result<u64, String> {
    bytes(root, "MemTotal")
}

/// Memory and swap ([proc_meminfo(5)](https://man7.org/linux/man-pages/man5/proc_meminfo.5.html)).
pub(super) fn memory(root: &HostRoot, known: &mut FactReader) -> MemoryFacts {
    MemoryFacts {
        available_bytes: known.fact("memory.available_bytes", || bytes(root, "MemAvailable")),
        free_bytes: known.fact("memory.free_bytes", || bytes(root, "MemFree")),
        swap_bytes: known.fact("memory.swap_bytes", || bytes(root, "SwapTotal")),
        swap_free_bytes: known.fact("memory.swap_free_bytes", || bytes(root, "SwapFree")),
        major_faults: known.fact("memory.major_faults", || count(root, "proc/vmstat", "pgmajfault")),
    }
}

fn bytes(root: &HostRoot, key: &str) -> Result<u64, String> {
    let text = root.text("proc/meminfo")?;
    let kib = value_of(&text, key).and_then(|value| value.strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| format!("/proc/meminfo states no {key}"))
}

/// The count on the line of `file` that begins with `key`.
fn count(root: &HostRoot, file: &str, key: &str) -> Result<u64, String> {
    let text = root.text(file)?;
    let count = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok());
    count.ok_or_else(|| format!("/{file} states no {key}"))
}

pub(super) fn counters(root: &HostRoot, known: &mut FactReader) -> CounterFacts {
    let interrupts = known.fact("counters.interrupts", || interrupts(root));
    // /proc/irq has only numbered interrupts.
    if interrupts.iter().flatten().any(|(_, interrupt)| interrupt.affinity.is_none()) {
        known.lacks(
            "counters.interrupts.affinity".into(),
            "the kernel moves only interrupts with a number, and not all of those",
        );
    }
    CounterFacts {
        cpu_ticks: known.fact("counters.cpu_ticks", || cpu_ticks(root)),
        context_switches: known.fact("counters.context_switches", || count(root, "proc/stat", "ctxt")),
        interrupts,
        softirqs: known.fact("counters.softirqs", || softirqs(root)),
    }
}

/// `/proc/interrupts`: a header of CPUs, then for each interrupt its name, its counts and its source.
fn interrupts(root: &HostRoot) -> Result<BTreeMap<String, InterruptSource>, String> {
    let text = root.text("proc/interrupts")?;
    let cpus = header(&text).ok_or("/proc/interrupts: the first line names no CPU")?;
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
    let cpus = header(&text).ok_or("/proc/softirqs: the first line names no CPU")?;
    let rows = text.lines().skip(1).filter_map(|line| row(line, &cpus));
    Ok(rows.filter(|(_, counts, _)| !counts.is_empty()).map(|(name, counts, _)| (name, counts)).collect())
}

/// `CPU0 CPU2`
fn header(text: &str) -> Option<Vec<u16>> {
    let cpus = text.lines().next()?.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok());
    cpus.collect::<Option<Vec<u16>>>().filter(|cpus| !cpus.is_empty())
}

/// Name, counts that are not 0, and the text behind them. `None` for lines of another form: `ERR` and `MIS` have one count
/// for the whole machine.
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

/// The ticks now ([proc_stat(5)](https://man7.org/linux/man-pages/man5/proc_stat.5.html)), or why they are unknown.
pub(super) fn cpu_ticks(root: &HostRoot) -> Result<CpuTicks, String> {
    let text = root.text("proc/stat")?;
    let mut ticks = CpuTicks::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let (name, numbers) = line.split_once(' ').ok_or("/proc/stat: a line without numbers")?;
        let counted = ticks_of(numbers).ok_or("/proc/stat: fewer than 8 numbers for a CPU")?;
        match name.parse() {
            Ok(cpu) => drop(ticks.each.insert(cpu, counted)),
            Err(_) => ticks.all = counted,
        }
    }
    Ok(ticks)
}

/// user nice system idle iowait irq softirq steal
fn ticks_of(numbers: &str) -> Option<Ticks> {
    let numbers: Vec<u64> = numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = numbers[..] else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn interrupts_are_counted_by_cpu() {
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
        let mut known = FactReader::new(Instant::now());
        let counters = counters(&host.root, &mut known);
        let interrupts = counters.interrupts.expect("interrupts");
        assert_eq!(interrupts.keys().collect::<Vec<_>>(), ["1", "LOC"], "only those with a count");
        assert_eq!(interrupts["1"].affinity.as_deref(), Some("0-2"));
        assert_eq!(interrupts["1"].source, "IO-APIC 1-edge i8042");
        assert_eq!(interrupts["1"].counts.iter().collect::<Vec<_>>(), [(&2, &9)]);
        assert_eq!((interrupts["LOC"].affinity.as_ref(), interrupts["LOC"].counts[&0]), (None, 812));
        let softirqs = counters.softirqs.expect("softirqs");
        assert_eq!(softirqs.keys().collect::<Vec<_>>(), ["NET_RX"]);
        assert_eq!(counters.context_switches, Some(1_234));
        assert_eq!(known.reasons().keys().collect::<Vec<_>>(), ["counters.interrupts.affinity"], "that of LOC");
    }

    #[test]
    fn ticks_are_read_for_all_cpus_and_for_each() {
        let host = FakeHost::new().with("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu3 10 0 10 80 0 0 0 9 0 0\nintr 5\n");
        let ticks = cpu_ticks(&host.root).expect("ticks");
        assert_eq!(ticks.all, Ticks { busy: 19, idle: 9, steal: 8 });
        assert_eq!(ticks.each[&3], Ticks { busy: 20, idle: 80, steal: 9 });
    }
}
