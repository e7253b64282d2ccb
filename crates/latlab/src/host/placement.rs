//! Where and how the calling thread runs.

use std::io;

use rustix::mm::MlockAllFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::cpu_list;
use super::refusal::HostError;
use super::root::HostRoot;
use crate::facts::Rights;
use crate::plan::EndSpec;
use crate::units::Nanos;

/// Gives the calling thread what `end` asks for: its CPU, locked memory (of the whole process), SCHED_FIFO.
///
/// Threads and processes that it starts later inherit the CPU, but not the priority: start writers and
/// children before, or let them call [`keep_off`].
///
/// # Errors
/// The CPU is absent or not for us, a right or a limit is missing.
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

/// Puts the calling thread, and those it starts from now on, back to normal scheduling where it has a real-time policy.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub fn leave_real_time() -> io::Result<()> {
    latlab_sys::scheduler::leave_real_time()
}

/// The CPUs that the calling thread may use, ascending.
pub fn allowed_cpus() -> Vec<u16> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).filter_map(|cpu| u16::try_from(cpu).ok()).collect()
}

/// The timer slack of the calling thread; none where the kernel does not tell.
pub fn timer_slack() -> Option<Nanos> {
    let slack = rustix::thread::current_timer_slack().ok()?;
    i64::try_from(slack).ok().map(Nanos)
}

fn pin(cpu: u16) -> Result<(), HostError> {
    if let Ok(online) = HostRoot::live().text("sys/devices/system/cpu/online")
        && cpu_list::parse(&online).is_some_and(|cpus| !cpus.contains(&cpu))
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

/// Locks what is mapped, and what will be where no limit could make a later allocation fail.
fn lock_memory() -> Result<(), HostError> {
    let rights = Rights::read(&HostRoot::live()).ok();
    let boundless = rights.is_some_and(|rights| rights.may_lock_all());
    let flags = if boundless { MlockAllFlags::CURRENT | MlockAllFlags::FUTURE } else { MlockAllFlags::CURRENT };
    rustix::mm::mlockall(flags).map_err(|source| HostError::MemoryLock {
        limit_bytes: rights.and_then(|rights| rights.memory_lock_bytes),
        source: source.into(),
    })
}

/// How the calling thread stood before a run: put back when this is dropped, so that the next run of the same process
/// finds what the first one found.
#[derive(Debug)]
pub struct AffinityGuard {
    cpus: Option<CpuSet>,
    locks: bool,
}

impl AffinityGuard {
    /// As it is now, before a run that locks memory or not.
    pub fn before(locks: bool) -> AffinityGuard {
        AffinityGuard { cpus: sched_getaffinity(None).ok(), locks }
    }

    /// Puts the calling thread on the same CPUs: one that was started by a pinned thread has its pin. Best effort, as
    /// [`keep_off`].
    pub fn stand(&self) {
        if let Some(cpus) = &self.cpus {
            let _ = sched_setaffinity(None, cpus);
        }
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // Best effort, as [`keep_off`]: a thread that stays where it is measures nothing wrong but a wider `all`.
        self.stand();
        if self.locks {
            let _ = rustix::mm::munlockall();
        }
    }
}

/// Keeps the calling thread, and those it starts from now on, off the measuring CPUs; where nothing else is left to
/// it, off as many as can be, the first before the others: what disturbs the reflector delays an answer, what
/// disturbs the sender delays its schedule as well. Best effort: a writer on a measuring CPU disturbs, but does not
/// falsify.
pub fn keep_off(measuring: &[u16]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let rest =
        (0..=measuring.len()).rev().map(|left| without(allowed, &measuring[..left])).find(|rest| rest.count() > 0);
    if let Some(rest) = rest.filter(|rest| *rest != allowed) {
        // Refused: stay where we are, as said above.
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

    /// Placement outlives the call, so each case runs in a thread that ends.
    fn in_a_thread<T: Send>(case: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(case).join().expect("no panic"))
    }

    #[test]
    fn a_pin_moves_the_thread_and_keep_off_moves_it_away() {
        let allowed = sched_getaffinity(None).expect("the kernel tells");
        let cpus: Vec<u16> = (0..1024).filter(|cpu| allowed.is_set(usize::from(*cpu))).collect();
        let cpu = cpus[cpus.len() - 1];
        in_a_thread(|| {
            place(&EndSpec { cpu: Some(cpu), ..FREE }).expect("an allowed CPU");
            let now = sched_getaffinity(None).expect("the kernel tells");
            assert!(now.is_set(cpu.into()) && now.count() == 1);
            keep_off(&[cpu]);
            assert!(sched_getaffinity(None).expect("the kernel tells").is_set(cpu.into()), "nothing else is left");
        });
        in_a_thread(|| {
            keep_off(&[cpu]);
            let now = sched_getaffinity(None).expect("the kernel tells");
            assert_eq!(now.is_set(cpu.into()), cpus.len() == 1);
        });
        in_a_thread(|| {
            // Every CPU measures, this one the sender: it is the one to be left alone.
            let others = cpus.iter().copied().filter(|other| *other != cpu);
            keep_off(&std::iter::once(cpu).chain(others).collect::<Vec<u16>>());
            let now = sched_getaffinity(None).expect("the kernel tells");
            assert_eq!((now.is_set(cpu.into()), now.count() > 0), (cpus.len() == 1, true));
        });
    }

    #[test]
    fn after_a_run_a_thread_stands_where_it_stood() {
        in_a_thread(|| {
            let before = sched_getaffinity(None).expect("the kernel tells");
            let footing = AffinityGuard::before(false);
            keep_off(&[allowed_cpus()[0]]);
            drop(footing);
            assert_eq!(sched_getaffinity(None).expect("the kernel tells"), before);
        });
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named_with_those_that_are() {
        for absent in [1_000, 2_000] {
            let error = in_a_thread(|| place(&EndSpec { cpu: Some(absent), ..FREE })).expect_err("no such CPU");
            assert_eq!(error.exit_code(), 3);
            assert!(error.to_string().contains(&format!("`{absent}`")), "{error}");
            assert!(error.cause().is_some_and(|cause| cause.contains("online are")));
        }
    }

    #[test]
    fn a_priority_that_does_not_exist_is_refused_with_a_hint() {
        let error = in_a_thread(|| place(&EndSpec { fifo: Some(120), ..FREE })).expect_err("99 is the highest");
        assert!(error.to_string().contains("`120`") && error.hint().is_some());
    }
}
