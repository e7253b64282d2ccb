//! `mem=RATE`: a stated traffic between CPUs and memory. Blocks are copied from one half of a buffer to the other;
//! each copied byte counts twice, once read and once written. What a cache fetches before it is overwritten, or
//! writes back later, is not counted: a core cannot see it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::LoadError;
use super::bursts::{self, WorkUnit};
use super::duty::Duty;
use super::meter::Meter;
use crate::facts::load::BYTES_PER_SECOND;
use crate::units::Nanos;

/// What is copied at a time: some 10 µs of a core.
const BLOCK_BYTES: usize = 64 << 10;
/// After its CPU was taken away a worker makes up for so much lost time at most.
const MAKES_UP: Nanos = Nanos::from_millis(100);

/// Starts a worker on each of `cpus`; together they copy `rate` bytes a second, counted twice, in `buffer_bytes`.
pub(super) fn start(rate: f64, cpus: &[u16], period: Nanos, buffer_bytes: u32) -> Result<Meter, LoadError> {
    let counts: Vec<Arc<Count>> = cpus.iter().map(|_| Arc::default()).collect();
    let rate_per_ns = rate / 1e9 / cpus.len() as f64;
    let duty = Duty::new(rate_per_ns, period.0, rate_per_ns * MAKES_UP.0 as f64);
    let half_bytes = (buffer_bytes as usize / cpus.len() / 2).max(4_096);
    let shared = counts.clone();
    bursts::start(cpus, period.0, &duty, move |worker| Copying::prepare(half_bytes, Arc::clone(&shared[worker])))?;
    let total = move || counts.iter().map(|count| count.bytes.load(Ordering::Relaxed)).sum::<u64>() as f64;
    Ok(Meter { unit: BYTES_PER_SECOND, per_ns: 1e9, total: Box::new(total) })
}

/// Bytes read and written by one worker; a cache line of its own, so that workers do not fight for it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count {
    bytes: AtomicU64,
}

struct Copying {
    from: Vec<u8>,
    to: Vec<u8>,
    place: usize,
    done: u64,
    count: Arc<Count>,
}

impl Copying {
    /// Takes the memory and touches every page of it: an untouched one would be a page of zeros in the cache.
    fn prepare(half_bytes: usize, count: Arc<Count>) -> Result<Copying, LoadError> {
        let half = |filling: u8| {
            let mut half = Vec::new();
            half.try_reserve_exact(half_bytes).map_err(|_| LoadError::Memory { bytes: half_bytes as u64 * 2 })?;
            half.resize(half_bytes, filling);
            Ok(half)
        };
        Ok(Copying { from: half(1)?, to: half(2)?, place: 0, done: 0, count })
    }
}

impl WorkUnit for Copying {
    fn done(&self) -> f64 {
        self.done as f64
    }

    fn make(&mut self) {
        let end = (self.place + BLOCK_BYTES).min(self.from.len());
        self.to[self.place..end].copy_from_slice(black_box(&self.from[self.place..end]));
        black_box(&self.to[self.place..end]);
        self.done += 2 * (end - self.place) as u64;
        self.count.bytes.store(self.done, Ordering::Relaxed);
        self.place = if end == self.from.len() { 0 } else { end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied_and_counted_twice() {
        let count = Arc::new(Count::default());
        let mut copying = Copying::prepare(BLOCK_BYTES + 100, Arc::clone(&count)).expect("little memory");
        copying.make();
        assert_eq!((copying.done(), copying.place), ((2 * BLOCK_BYTES) as f64, BLOCK_BYTES));
        assert_eq!((copying.to[BLOCK_BYTES - 1], copying.to[BLOCK_BYTES]), (1, 2));
        copying.make();
        assert_eq!((count.bytes.load(Ordering::Relaxed), copying.place), (2 * (BLOCK_BYTES as u64 + 100), 0));
        assert_eq!(copying.from, copying.to);
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        assert!(matches!(Copying::prepare(usize::MAX / 4, Arc::default()), Err(LoadError::Memory { .. })));
    }
}
