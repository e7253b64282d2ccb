//! `heaters=N`: workers that hash without end, placed by the system.

use std::sync::{Arc, Barrier};

use latlab_sys::clock::process_cpu_ns;

use super::LoadError;
use super::bursts::{keep_to, spawn};
use super::heat::HashChain;
use super::meter::Meter;
use crate::facts::load::CPUS;

/// Starts `workers` threads, on `cpus` where some are named.
pub(super) fn start(workers: u32, cpus: &[u16]) -> Result<Meter, LoadError> {
    if !cpus.is_empty() {
        // The workers inherit it.
        keep_to(cpus)?;
    }
    // Nobody begins before the last one stands: this thread would have to wait for a turn among all of those that
    // work already before it could start the next, and a thousand would take an hour.
    let gate = Arc::new(Barrier::new(workers as usize + 1));
    for worker in 0..workers as usize {
        let standing = Arc::clone(&gate);
        spawn(move || {
            standing.wait();
            let mut heat = HashChain::new(worker);
            loop {
                heat.stir();
            }
        })?;
    }
    gate.wait();
    Ok(Meter { unit: CPUS, per_ns: 1.0, total: Box::new(|| process_cpu_ns() as f64) })
}
