//! What the machine itself does to a schedule: a loop that only reads the clock, beside one that only spins.
//!
//! On a machine of one's own this floor is a tick's length. Under a hypervisor it is what the hypervisor takes away,
//! which no program can give back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// How late a loop that does nothing else sees each instant of a schedule, ascending, in ns.
pub(crate) fn slips_ns(cpus: (u16, u16), period: Duration, length: Duration) -> Result<Vec<f64>, String> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let beside = scope.spawn(|| pin(cpus.1).map(|()| spin_until(&stop)));
        let watching = scope.spawn(|| pin(cpus.0).map(|()| watch(period, length)));
        let slips = watching.join().map_err(|_| "the watching thread panicked".to_string());
        stop.store(true, Ordering::Relaxed);
        beside.join().map_err(|_| "the spinning thread panicked".to_string())??;
        let mut slips = slips??;
        slips.sort_by(f64::total_cmp);
        Ok(slips)
    })
}

fn pin(cpu: u16) -> Result<(), String> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu.into());
    sched_setaffinity(None, &cpus).map_err(|error| format!("cannot run on CPU `{cpu}`: {error}"))
}

fn spin_until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn watch(period: Duration, length: Duration) -> Vec<f64> {
    let instants = (length.as_nanos() / period.as_nanos()) as u32;
    let mut slips = Vec::with_capacity(instants as usize);
    let start = Instant::now();
    for instant in 0..instants {
        let due = period * instant;
        let mut now = start.elapsed();
        while now < due {
            now = start.elapsed();
        }
        slips.push((now - due).as_nanos() as f64);
    }
    slips
}
