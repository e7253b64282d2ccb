//! The work of each kind of load: `cpu=P%`, `heaters=N`, `mem=RATE`.

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use latlab_sys::clock::{process_cpu_ns, thread_cpu_ns};

use super::LoadError;
use super::pacing::{self, PacedWork, RateControl, pin_to, spawn};
use crate::facts::load::{BYTES_PER_SECOND, CPUS, SHARE};
use crate::units::Nanos;

/// Counts what a load has done since its start.
pub(super) struct Meter {
    /// The unit of the figures.
    pub(super) unit: &'static str,
    /// Factor from the total per nanosecond to that unit.
    pub(super) per_ns: f64,
    /// The total since the start.
    pub(super) total: Box<dyn Fn() -> f64>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Meter").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// The largest backlog of a CPU load. A window of 5 s that begins after a disturbance has at most this much CPU time too
/// much: 40 ms of the 50 ms by which it may differ. The rest allows for a burst that is cut by the end of the window, or is
/// late within its period: half a period at most, 8 ms by default.
pub(super) const BACKLOG_MAX: Nanos = Nanos::from_millis(40);

/// `cpu=P%`: starts a worker on each of `cpus`, controlled by the CPU time that it has used.
pub(super) fn start_cpu(share: f64, cpus: &[u16], period: Nanos) -> Result<Meter, LoadError> {
    pacing::start(cpus, &cpu_control(share, period), |worker| Ok(CpuTime::new(worker)))?;
    Ok(Meter { unit: SHARE, per_ns: 1.0 / cpus.len() as f64, total: Box::new(|| process_cpu_ns() as f64) })
}

/// The control of a share of one CPU, in nanoseconds of CPU time.
pub(super) fn cpu_control(share: f64, period: Nanos) -> RateControl {
    RateControl::new(share, period.0, BACKLOG_MAX.0 as f64)
}

/// Hashing, counted in nanoseconds of CPU time of the thread, wake-ups and readings of clocks included.
pub(super) struct CpuTime {
    chain: HashChain,
    origin_ns: i64,
}

impl CpuTime {
    /// The work of the calling thread.
    pub(super) fn new(worker: usize) -> CpuTime {
        CpuTime { chain: HashChain::new(worker), origin_ns: thread_cpu_ns() }
    }
}

impl PacedWork for CpuTime {
    fn done(&self) -> f64 {
        (thread_cpu_ns() - self.origin_ns) as f64
    }

    fn do_unit(&mut self) {
        self.chain.hash_block();
    }
}

/// A chain of hashes: each depends on the one before it, and all of it fits into the first-level cache.
#[derive(Debug)]
struct HashChain {
    block: Box<[u8; Self::BLOCK_BYTES]>,
}

impl HashChain {
    /// About 8 µs of hashing on a current core, 80 µs on a small one.
    const BLOCK_BYTES: usize = 8_192;

    fn new(worker: usize) -> HashChain {
        HashChain { block: Box::new([worker as u8; Self::BLOCK_BYTES]) }
    }

    fn hash_block(&mut self) {
        let hash = blake3::hash(black_box(&self.block[..]));
        self.block[..blake3::OUT_LEN].copy_from_slice(hash.as_bytes());
    }
}

/// `heaters=N`: starts `workers` threads that hash without pause, on `cpus`, or on the CPUs that the scheduler chooses if
/// `cpus` is empty.
pub(super) fn start_heaters(workers: u32, cpus: &[u16]) -> Result<Meter, LoadError> {
    if !cpus.is_empty() {
        // The workers inherit the affinity.
        pin_to(cpus)?;
    }
    // All begin together: to start the next worker this thread would have to wait for its time slice among those that
    // already work, which takes an hour for a thousand workers.
    let barrier = Arc::new(Barrier::new(workers as usize + 1));
    for worker in 0..workers as usize {
        let shared = Arc::clone(&barrier);
        spawn(move || {
            shared.wait();
            let mut chain = HashChain::new(worker);
            loop {
                chain.hash_block();
            }
        })?;
    }
    barrier.wait();
    Ok(Meter { unit: CPUS, per_ns: 1.0, total: Box::new(|| process_cpu_ns() as f64) })
}

/// The bytes of one unit of copying: about 10 µs.
const BLOCK_BYTES: usize = 64 << 10;
/// The time whose traffic is the largest backlog of a memory load.
const MEMORY_BACKLOG: Nanos = Nanos::from_millis(100);

/// `mem=RATE`: starts a worker on each of `cpus`. Together they copy blocks between the halves of buffers of `buffer_bytes`
/// in all. `rate` is in bytes a second; each copied byte counts twice, once read and once written. Cache lines that are
/// fetched before they are overwritten, or written back later, are not counted: a core cannot observe them.
pub(super) fn start_memory(rate: f64, cpus: &[u16], period: Nanos, buffer_bytes: u32) -> Result<Meter, LoadError> {
    let counts: Vec<Arc<ByteCount>> = cpus.iter().map(|_| Arc::default()).collect();
    let rate_per_ns = rate / 1e9 / cpus.len() as f64;
    let control = RateControl::new(rate_per_ns, period.0, rate_per_ns * MEMORY_BACKLOG.0 as f64);
    let half_bytes = (buffer_bytes as usize / cpus.len() / 2).max(4_096);
    let shared = counts.clone();
    pacing::start(cpus, &control, move |worker| Copying::prepare(half_bytes, Arc::clone(&shared[worker])))?;
    let total = move || counts.iter().map(|count| count.bytes.load(Ordering::Relaxed)).sum::<u64>() as f64;
    Ok(Meter { unit: BYTES_PER_SECOND, per_ns: 1e9, total: Box::new(total) })
}

/// Bytes read and written by one worker, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ByteCount {
    bytes: AtomicU64,
}

struct Copying {
    from: Vec<u8>,
    to: Vec<u8>,
    position: usize,
    done: u64,
    count: Arc<ByteCount>,
}

impl Copying {
    /// Allocates the memory and writes to every page: an unwritten one would be the shared page of zeros, in the cache.
    fn prepare(half_bytes: usize, count: Arc<ByteCount>) -> Result<Copying, LoadError> {
        let half = |filling: u8| {
            let mut half = Vec::new();
            half.try_reserve_exact(half_bytes).map_err(|_| LoadError::Memory { bytes: half_bytes as u64 * 2 })?;
            half.resize(half_bytes, filling);
            Ok(half)
        };
        Ok(Copying { from: half(1)?, to: half(2)?, position: 0, done: 0, count })
    }
}

impl PacedWork for Copying {
    fn done(&self) -> f64 {
        self.done as f64
    }

    fn do_unit(&mut self) {
        let end = (self.position + BLOCK_BYTES).min(self.from.len());
        self.to[self.position..end].copy_from_slice(black_box(&self.from[self.position..end]));
        black_box(&self.to[self.position..end]);
        self.done += 2 * (end - self.position) as u64;
        self.count.bytes.store(self.done, Ordering::Relaxed);
        self.position = if end == self.from.len() { 0 } else { end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_counted_twice() {
        let count = Arc::new(ByteCount::default());
        let mut copying = Copying::prepare(BLOCK_BYTES + 100, Arc::clone(&count)).expect("little memory");
        copying.do_unit();
        assert_eq!((copying.done(), copying.position), ((2 * BLOCK_BYTES) as f64, BLOCK_BYTES));
        assert_eq!((copying.to[BLOCK_BYTES - 1], copying.to[BLOCK_BYTES]), (1, 2));
        copying.do_unit();
        assert_eq!((count.bytes.load(Ordering::Relaxed), copying.position), (2 * (BLOCK_BYTES as u64 + 100), 0));
        assert_eq!(copying.from, copying.to);
    }
}
