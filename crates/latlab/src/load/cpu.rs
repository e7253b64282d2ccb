//! `cpu=P%`: a stated share of CPU time on each CPU, controlled by the CPU time that the load itself has used.

use latlab_sys::clock::{process_cpu_ns, thread_cpu_ns};

use super::LoadError;
use super::bursts::{self, WorkUnit};
use super::duty::Duty;
use super::heat::HashChain;
use super::meter::Meter;
use crate::facts::load::SHARE;
use crate::units::Nanos;

/// The CPU time that a worker makes up for at most after its CPU was taken away. What is made up is too much for every
/// window that begins after the disturbance: 40 ms are 0.8 of the 50 ms by which any 5 s may differ. The rest is for a
/// burst that is cut by the end of the window, or that came late within its period: half a period at most, 8 ms at the
/// default one.
pub(super) const MOST_OWED: Nanos = Nanos::from_millis(40);

/// Starts a worker on each of `cpus`.
pub(super) fn start(share: f64, cpus: &[u16], period: Nanos) -> Result<Meter, LoadError> {
    bursts::start(cpus, period.0, &duty(share, period), |worker| Ok(CpuBurner::new(worker)))?;
    Ok(Meter { unit: SHARE, per_ns: 1.0 / cpus.len() as f64, total: Box::new(|| process_cpu_ns() as f64) })
}

/// A share of a CPU, in nanoseconds of its time.
pub(super) fn duty(share: f64, period: Nanos) -> Duty {
    Duty::new(share, period.0, MOST_OWED.0 as f64)
}

/// Counts the nanoseconds for which its own thread had the CPU, waking up and looking at clocks included.
pub(super) struct CpuBurner {
    heat: HashChain,
    origin_ns: i64,
}

impl CpuBurner {
    /// For the calling thread, the worker of that number.
    pub(super) fn new(worker: usize) -> CpuBurner {
        CpuBurner { heat: HashChain::new(worker), origin_ns: thread_cpu_ns() }
    }
}

impl WorkUnit for CpuBurner {
    fn done(&self) -> f64 {
        (thread_cpu_ns() - self.origin_ns) as f64
    }

    fn make(&mut self) {
        self.heat.stir();
    }
}
