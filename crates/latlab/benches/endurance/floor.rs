//! Lateness that the machine alone causes: one thread only reads the clock while a thread on a second CPU spins.
//!
//! Without a hypervisor this lateness is about the duration of one timer interrupt. Under a hypervisor it includes
//! the time that the hypervisor takes, which no program can avoid.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// The lateness of each instant of a schedule in a loop that only reads the clock, in ns, ascending.
pub(crate) fn slips_ns(cpus: (u16, u16), period: Duration, length: Duration) -> Result<Vec<f64>, String> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let spinner = scope.spawn(|| pin(cpus.1).map(|()| spin_until(&stop)));
        let clock_reader = scope.spawn(|| pin(cpus.0).map(|()| read_clock(period, length)));
        let slips = clock_reader.join().map_err(|_| "the clock-reading thread panicked".to_string());
        stop.store(true, Ordering::Relaxed);
        spinner.join().map_err(|_| "the spinning thread panicked".to_string())??;
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

fn read_clock(period: Duration, length: Duration) -> Vec<f64> {
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
