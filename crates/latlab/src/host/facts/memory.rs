//! Memory and swap ([proc_meminfo(5)](https://man7.org/linux/man-pages/man5/proc_meminfo.5.html)).

use super::known::FactReader;
use super::value_of;
use crate::facts::MemoryFacts;
use crate::host::root::HostRoot;

pub(super) fn total_bytes(root: &HostRoot) -> Result<u64, String> {
    bytes(root, "MemTotal")
}

pub(super) fn read(root: &HostRoot, known: &mut FactReader) -> MemoryFacts {
    MemoryFacts {
        available_bytes: known.fact("memory.available_bytes", || bytes(root, "MemAvailable")),
        free_bytes: known.fact("memory.free_bytes", || bytes(root, "MemFree")),
        swap_bytes: known.fact("memory.swap_bytes", || bytes(root, "SwapTotal")),
        swap_free_bytes: known.fact("memory.swap_free_bytes", || bytes(root, "SwapFree")),
        major_faults: known.fact("memory.major_faults", || major_faults(root)),
    }
}

fn bytes(root: &HostRoot, key: &str) -> Result<u64, String> {
    let text = root.text("proc/meminfo")?;
    let kib = value_of(&text, key).and_then(|value| value.strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| format!("/proc/meminfo states no {key}"))
}

fn major_faults(root: &HostRoot) -> Result<u64, String> {
    let text = root.text("proc/vmstat")?;
    let count = text.lines().find_map(|line| line.strip_prefix("pgmajfault ")?.trim().parse().ok());
    count.ok_or_else(|| "/proc/vmstat states no pgmajfault".into())
}
