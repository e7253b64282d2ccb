//! CPU, priority and memory locks of the calling thread.

use std::io;
use std::num::NonZeroU64;

use rustix::mm::MlockAllFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::error::HostError;
use super::root::{HostRoot, parse_cpu_list};
use crate::facts::{ByCpu, CpuTopology};
use crate::host::facts::{rights, topology};
use crate::plan::EndSpec;
use crate::units::Nanos;

/// Applies the placement of `end` to the calling thread: its CPU, locked memory (of the whole process), SCHED_FIFO.
///
/// Threads and processes that it starts later inherit the CPU, but not the priority: start writers and
/// children before, or let them call [`keep_off`].
///
/// # Errors
/// The CPU is absent or not allowed, or a privilege or limit is missing.
pub fn place(end: &EndSpec) -> Result<(), HostError> {
    if let Some(cpu) = end.cpu {
        pin(cpu)?;
    }
    if end.mlock {
        lock_memory()?;
    }
    if let Some(priority) = end.fifo {
        latlab_sys::scheduler::set_fifo(priority).map_err(|source| HostError::Fifo { priority, source })?;
    }
    Ok(())
}

/// Returns the calling thread, and threads that it starts later, to normal scheduling if it has a real-time policy.
///
/// # Errors
/// The kernel refused.
pub fn leave_real_time() -> io::Result<()> {
    latlab_sys::scheduler::leave_real_time()
}

/// The CPUs that the calling thread may use, ascending.
pub fn allowed_cpus() -> Vec<u16> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).filter_map(|cpu| u16::try_from(cpu).ok()).collect()
}

/// Two CPUs for the two ends of a measurement on this host: of two cores of one package where there are two, and without that
/// of CPU 0, which serves most interrupts, where there are three. `None` if the calling thread may use one CPU only.
pub fn two_cores() -> Option<[u16; 2]> {
    two_of(&allowed_cpus(), &topology(&HostRoot::live()).unwrap_or_default())
}

fn two_of(allowed: &[u16], topology: &ByCpu<CpuTopology>) -> Option<[u16; 2]> {
    let core = |cpu: &u16| topology.get(cpu).and_then(|it| it.siblings.as_deref());
    let package = |cpu: &u16| topology.get(cpu).and_then(|it| it.package);
    let is_first = |cpu: &u16| core(cpu).is_none() || allowed.iter().find(|it| core(it) == core(cpu)) == Some(cpu);
    let cores: Vec<u16> = allowed.iter().copied().filter(is_first).collect();
    let close: Vec<u16> = cores.iter().copied().filter(|cpu| package(cpu) == package(&cores[0])).collect();
    let best = [&close, &cores, allowed].into_iter().find(|cpus| cpus.len() > 1)?;
    match *best {
        [0, one, other, ..] | [one, other, ..] => Some([one, other]),
        _ => None,
    }
}

/// The timer slack of the calling thread; `None` if unknown.
pub fn timer_slack() -> Option<Nanos> {
    let slack = rustix::thread::current_timer_slack().ok()?;
    i64::try_from(slack).ok().map(Nanos)
}

/// Gives the calling thread, and threads that it starts later, the smallest timer slack: with the usual 50 µs a sleep ends
/// that much late. Real-time threads have none. Best effort: if the kernel refuses, sends are late, which is recorded.
pub fn minimise_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
}

fn pin(cpu: u16) -> Result<(), HostError> {
    if let Ok(online) = HostRoot::live().text("sys/devices/system/cpu/online")
        && parse_cpu_list(&online).is_some_and(|cpus| !cpus.contains(&cpu))
    {
        return Err(HostError::CpuAbsent { cpu, online });
    }
    if usize::from(cpu) >= CpuSet::MAX_CPU {
        return Err(HostError::CpuAbsent { cpu, online: format!("below {}", CpuSet::MAX_CPU) });
    }
    let mut cpus = CpuSet::new();
    cpus.set(cpu.into());
    sched_setaffinity(None, &cpus).map_err(|source| HostError::Affinity { cpu, source: source.into() })
}

/// Locks mapped memory, and later mappings unless a limit could make an allocation fail.
fn lock_memory() -> Result<(), HostError> {
    let rights = rights(&HostRoot::live()).ok();
    let unlimited = rights.is_some_and(|rights| rights.may_lock_all());
    let flags = if unlimited { MlockAllFlags::CURRENT | MlockAllFlags::FUTURE } else { MlockAllFlags::CURRENT };
    rustix::mm::mlockall(flags).map_err(|source| HostError::MemoryLock {
        limit_bytes: rights.and_then(|rights| rights.memory_lock_bytes),
        source: source.into(),
    })
}

/// The CPUs and memory locks of the calling thread before a run, restored when this is dropped, so that each run of a
/// process begins alike.
#[derive(Debug)]
pub(crate) struct AffinityGuard {
    cpus: Option<CpuSet>,
    unlock: bool,
}

impl AffinityGuard {
    /// Saves the present CPUs. `unlock` if the run locks memory.
    pub(crate) fn save(unlock: bool) -> AffinityGuard {
        AffinityGuard { cpus: sched_getaffinity(None).ok(), unlock }
    }

    /// Gives the calling thread the saved CPUs: one that was started by a pinned thread has inherited its CPU. Best effort,
    /// as [`keep_off`].
    pub(crate) fn restore(&self) {
        if let Some(cpus) = &self.cpus {
            let _ = sched_setaffinity(None, cpus);
        }
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        self.restore();
        if self.unlock {
            let _ = rustix::mm::munlockall();
        }
    }
}

/// Keeps the calling thread, and threads that it starts later, off the measuring CPUs. If it has no other CPUs, it leaves as
/// many as possible, beginning with the first, which is the sender's: a disturbed reflector delays an answer, a disturbed
/// sender its schedule as well. Best effort: a writer on a measuring CPU disturbs the run and does not falsify it.
pub fn keep_off(measuring: &[u16]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let rest =
        (0..=measuring.len()).rev().map(|left| without(allowed, &measuring[..left])).find(|rest| rest.count() > 0);
    if let Some(rest) = rest.filter(|rest| *rest != allowed) {
        let _ = sched_setaffinity(None, &rest);
    }
}

fn without(mut cpus: CpuSet, measuring: &[u16]) -> CpuSet {
    for cpu in measuring.iter().filter(|cpu| usize::from(**cpu) < CpuSet::MAX_CPU) {
        cpus.unset((*cpu).into());
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WaitMode;

    const FREE: EndSpec = EndSpec { wait: WaitMode::Block, cpu: None, fifo: None, mlock: false };

    #[test]
    fn two_ends_get_two_cores() {
        for (cores, packages, allowed, expected) in [
            (vec![], 1, vec![0, 1], Some([0, 1])),
            (vec![], 1, vec![3], None),
            (vec!["0", "1", "2", "3"], 1, vec![0, 1, 2, 3], Some([1, 2])),
            (vec!["0-1", "2-3"], 1, vec![0, 1, 2, 3], Some([0, 2])),
            (vec!["0", "1", "2", "3", "4", "5"], 2, vec![0, 1, 2, 3, 4, 5], Some([2, 4])),
            (vec!["0,4", "1,5", "2,6", "3,7"], 1, vec![3, 5, 7], Some([3, 5])),
        ] {
            let of_cpu = |core: &str, cpu: u16| {
                let (package, siblings) = (Some(i32::from(cpu) % packages), Some(core.to_owned()));
                (cpu, CpuTopology { package, siblings, ..CpuTopology::default() })
            };
            let of_core = |core: &&str| {
                parse_cpu_list(core).expect("a list").into_iter().map(|cpu| of_cpu(core, cpu)).collect::<Vec<_>>()
            };
            let topology = cores.iter().flat_map(of_core).collect();
            assert_eq!(two_of(&allowed, &topology), expected, "{cores:?}");
        }
    }

    /// Placement belongs to a thread, so each case runs in one of its own.
    fn in_a_thread<T: Send>(case: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(case).join().expect("no panic"))
    }

    #[test]
    fn a_pin_moves_the_thread_and_keep_off_moves_it_away() {
        let allowed = sched_getaffinity(None).expect("sched_getaffinity");
        let cpus: Vec<u16> = (0..1024).filter(|cpu| allowed.is_set(usize::from(*cpu))).collect();
        let cpu = cpus[cpus.len() - 1];
        in_a_thread(|| {
            place(&EndSpec { cpu: Some(cpu), ..FREE }).expect("an allowed CPU");
            let now = sched_getaffinity(None).expect("sched_getaffinity");
            assert!(now.is_set(cpu.into()) && now.count() == 1);
            keep_off(&[cpu]);
            assert!(sched_getaffinity(None).expect("sched_getaffinity").is_set(cpu.into()), "nothing else is left");
        });
        in_a_thread(|| {
            keep_off(&[cpu]);
            let now = sched_getaffinity(None).expect("sched_getaffinity");
            assert_eq!(now.is_set(cpu.into()), cpus.len() == 1);
        });
        in_a_thread(|| {
            // Every CPU measures, and this one is the sender's.
            let others = cpus.iter().copied().filter(|other| *other != cpu);
            keep_off(&std::iter::once(cpu).chain(others).collect::<Vec<u16>>());
            let now = sched_getaffinity(None).expect("sched_getaffinity");
            assert_eq!((now.is_set(cpu.into()), now.count() > 0), (cpus.len() == 1, true));
        });
    }

    #[test]
    fn a_dropped_guard_restores_the_cpus() {
        in_a_thread(|| {
            let before = sched_getaffinity(None).expect("sched_getaffinity");
            let guard = AffinityGuard::save(false);
            keep_off(&[allowed_cpus()[0]]);
            drop(guard);
            assert_eq!(sched_getaffinity(None).expect("sched_getaffinity"), before);
        });
    }
}
