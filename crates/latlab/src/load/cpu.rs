//! `cpu=P%`: a stated share of CPU time on each CPU, controlled by the CPU time that the load itself has used.

use latlab_sys::clock::{process_cpu_ns, thread_cpu_ns};

use super::LoadError;
use super::bursts::{self, Grain};
use super::duty::Duty;
use super::heat::Heat;
use super::meter::Meter;
use crate::facts::load::SHARE;
use crate::units::Nanos;

/// After its CPU was taken away a worker makes up for it for so long at most.
const MAKES_UP_FOR: Nanos = Nanos::from_millis(500);

/// Starts a worker on each of `cpus`.
pub(super) fn start(share: f64, cpus: &[u16], period: Nanos) -> Result<Meter, LoadError> {
    // Working all the time, a worker gains 1 − share on its schedule.
    let most_owed = (1.0 - share) * MAKES_UP_FOR.0 as f64;
    bursts::start(cpus, period.0, &Duty::new(share, period.0, most_owed), |worker| {
        Ok(Burning { heat: Heat::new(worker), origin_ns: thread_cpu_ns() })
    })?;
    Ok(Meter { unit: SHARE, per_ns: 1.0 / cpus.len() as f64, total: Box::new(|| process_cpu_ns() as f64) })
}

/// Counts the nanoseconds for which its own thread had the CPU, waking up and looking at clocks included.
struct Burning {
    heat: Heat,
    origin_ns: i64,
}

impl Grain for Burning {
    fn done(&self) -> f64 {
        (thread_cpu_ns() - self.origin_ns) as f64
    }

    fn make(&mut self) {
        self.heat.stir();
    }
}
