//! The bare loop of wake-ups: the system call, clock reads, pins, priority and settings of `latlab wakeup` with
//! `--via clock_nanosleep`, without its other threads, host samples and recording. Only the latencies are kept.

use std::fs::File;
use std::io::{self, Write};

use latlab::host::placement;
use latlab::plan::EndSpec;
use latlab_sys::clock::monotonic_ns;
use latlab_sys::sleep::clock_nanosleep_until;
use serde::{Deserialize, Serialize};

/// The time from when the thread is placed to the origin of its schedule, as in `latlab wakeup`.
const LEAD_NS: i64 = 5_000_000;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Wakeups {
    /// The time between due times.
    pub(crate) interval_ns: i64,
    pub(crate) count: usize,
    pub(crate) warmup: usize,
    /// The placement of the thread; its wait mode has no effect.
    pub(crate) end: EndSpec,
    /// With a timer slack of 1 ns.
    pub(crate) is_exact: bool,
    /// With /dev/cpu_dma_latency at 0.
    pub(crate) keeps_awake: bool,
}

impl Wakeups {
    /// The latencies in ns.
    pub(crate) fn run(&self) -> Result<Vec<i64>, String> {
        let text = |error: io::Error| error.to_string();
        let mut _held = None;
        if self.keeps_awake {
            let mut latency = File::options().write(true).open("/dev/cpu_dma_latency").map_err(text)?;
            latency.write_all(&0_i32.to_ne_bytes()).map_err(text)?;
            _held = Some(latency);
        }
        if self.is_exact {
            placement::minimise_timer_slack();
        }
        placement::place(&self.end).map_err(|error| error.to_string())?;
        // Written before the loop, so that the loop causes no page faults.
        let mut latencies_ns = vec![i64::MAX; self.warmup + self.count];
        sleep(monotonic_ns() + LEAD_NS, self.interval_ns, &mut latencies_ns).map_err(text)?;
        Ok(latencies_ns.split_off(self.warmup))
    }
}

/// The loop. As in latlab, the thread also sleeps for a slot that is past.
fn sleep(start_ns: i64, interval_ns: i64, latencies_ns: &mut [i64]) -> io::Result<()> {
    let mut due_ns = start_ns;
    for latency_ns in latencies_ns {
        due_ns += interval_ns;
        clock_nanosleep_until(due_ns)?;
        *latency_ns = monotonic_ns() - due_ns;
    }
    Ok(())
}
