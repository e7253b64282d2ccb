//! Rings of entries between one producer and one consumer, of which one is the kernel.
//! [AF_XDP](https://docs.kernel.org/networking/af_xdp.html#rings)

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::memory::Mapping;

/// A ring in memory: numbers of the next entries, which overflow, and the entries themselves.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
    _memory: Arc<Mapping>,
    _entries: PhantomData<T>,
}

// SAFETY: the pointers are into the mapping, which belongs to no thread; entries are plain numbers.
unsafe impl<T: Copy + Send> Send for Ring<T> {}

/// Where the parts of a ring are, in bytes from the beginning of its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

impl From<libc::xdp_ring_offset> for Layout {
    fn from(offsets: libc::xdp_ring_offset) -> Layout {
        let libc::xdp_ring_offset { producer, consumer, desc, flags } = offsets;
        let [producer, consumer, flags, entries] = [producer, consumer, flags, desc].map(|offset| offset as usize);
        Layout { producer, consumer, flags, entries }
    }
}

impl<T: Copy> Ring<T> {
    /// `count`: a power of two.
    fn new(memory: &Arc<Mapping>, layout: Layout, count: u32) -> Ring<T> {
        assert!(count.is_power_of_two(), "a ring of {count} entries");
        Ring {
            producer: memory.place(layout.producer, 1),
            consumer: memory.place(layout.consumer, 1),
            flags: memory.place(layout.flags, 1),
            entries: memory.place(layout.entries, count as usize),
            mask: count - 1,
            _memory: Arc::clone(memory),
            _entries: PhantomData,
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the number is in the mapping, which lives as long as this, and both ends use it atomically.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the mask keeps the index below the number of entries.
        unsafe { self.entries.add((number & self.mask) as usize) }
    }

    fn needs_wakeup(&self) -> bool {
        // SAFETY: as for `producer`.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end that adds entries.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    next: u32,
    /// The number of the consumer as it was last read.
    consumer: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn new(memory: &Arc<Mapping>, layout: Layout, count: u32) -> Producer<T> {
        let ring = Ring::new(memory, layout, count);
        let next = ring.producer().load(Ordering::Relaxed);
        Producer { next, consumer: ring.consumer().load(Ordering::Acquire), ring }
    }

    /// Adds `entry`, which the consumer sees at once; `false`: the ring is full.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.is_full() {
            return false;
        }
        // SAFETY: the consumer does not read this entry before the number below has passed it.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        self.ring.producer().store(self.next, Ordering::Release);
        true
    }

    #[inline]
    fn is_full(&mut self) -> bool {
        if self.next.wrapping_sub(self.consumer) <= self.ring.mask {
            return false;
        }
        self.consumer = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(self.consumer) > self.ring.mask
    }

    /// Whether the consumer has taken every entry.
    #[inline]
    pub(super) fn is_drained(&mut self) -> bool {
        self.consumer = self.ring.consumer().load(Ordering::Acquire);
        self.consumer == self.next
    }

    /// Whether the kernel waits for a system call before it looks at the ring.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

impl Producer<u64> {
    /// What is in the place of the entry with this number (modulo 2^32): that entry, a later one, or an earlier one or zero
    /// before it was added.
    #[inline]
    pub(super) fn entry(&self, number: u32) -> u64 {
        // SAFETY: the place is in the ring, only this end writes it, and zeros are a number too.
        unsafe { self.ring.entry(number).read() }
    }
}

/// The end that takes entries.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    next: u32,
    /// The number of the producer as it was last read.
    producer: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn new(memory: &Arc<Mapping>, layout: Layout, count: u32) -> Consumer<T> {
        let ring = Ring::new(memory, layout, count);
        let next = ring.consumer().load(Ordering::Relaxed);
        Consumer { next, producer: next, ring }
    }

    #[inline]
    pub(super) fn has_entry(&mut self) -> bool {
        if self.next == self.producer {
            self.producer = self.ring.producer().load(Ordering::Acquire);
        }
        self.next != self.producer
    }

    /// Takes the oldest entry, whose place the producer may use again at once; `None`: the ring is empty.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if !self.has_entry() {
            return None;
        }
        // SAFETY: the producer has written this entry, and does not write it again before the number below has passed it.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        self.ring.consumer().store(self.next, Ordering::Release);
        Some(entry)
    }

    /// The number of the oldest entry, modulo 2^32, counted from the first that was ever added.
    #[inline]
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    /// Entries that were there when the ring was last found empty, less those that were taken since.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.producer.wrapping_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };
    const ENTRIES: u32 = 8;

    /// Both ends of a ring whose numbers begin at `first`.
    fn ring(first: u32) -> (Producer<u64>, Consumer<u64>) {
        let memory = Arc::new(Mapping::anonymous(4_096).expect("a page"));
        for place in [LAYOUT.producer, LAYOUT.consumer] {
            // SAFETY: the place is in the mapping, and nothing else uses it yet.
            unsafe { memory.place::<u32>(place, 1).write(first) };
        }
        (Producer::new(&memory, LAYOUT, ENTRIES), Consumer::new(&memory, LAYOUT, ENTRIES))
    }

    #[test]
    fn a_full_ring_refuses_and_takes_again_what_was_taken_from_it() {
        // The numbers overflow in the second case.
        for first in [0, u32::MAX - 3] {
            let (mut producer, mut consumer) = ring(first);
            assert_eq!(consumer.pop(), None);
            assert!((0..8).all(|entry| producer.push(entry)), "{first}");
            assert!(!producer.push(8), "it is full");
            assert!(!producer.is_drained());
            assert_eq!((consumer.pop(), consumer.pop()), (Some(0), Some(1)));
            assert_eq!(consumer.waiting(), 6);
            assert!(producer.push(8) && producer.push(9) && !producer.push(10));
            let rest: Vec<u64> = std::iter::from_fn(|| consumer.pop()).collect();
            assert_eq!(rest, [2, 3, 4, 5, 6, 7, 8, 9]);
            assert!(producer.is_drained());
        }
    }

    #[test]
    fn entries_are_read_again_by_their_numbers() {
        let (mut producer, _) = ring(0);
        assert!((10..15).all(|entry| producer.push(entry)));
        assert_eq!([0, 4, 5].map(|number| producer.entry(number)), [10, 14, 0], "the last was not added");
    }

    #[test]
    fn two_threads_pass_every_entry_once_and_in_order() {
        const SENT: u64 = 200_000;
        let (mut producer, mut consumer) = ring(u32::MAX - 1_000);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for entry in 0..SENT {
                    while !producer.push(entry) {
                        std::thread::yield_now();
                    }
                }
            });
            for expected in 0..SENT {
                let entry = loop {
                    match consumer.pop() {
                        Some(entry) => break entry,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(entry, expected);
            }
        });
    }

    #[test]
    #[should_panic(expected = "exceed 4096 bytes")]
    fn a_ring_outside_of_its_memory_is_refused() {
        let memory = Arc::new(Mapping::anonymous(4_096).expect("a page"));
        _ = Producer::<u64>::new(&memory, LAYOUT, 512);
    }

    #[test]
    fn the_flag_of_the_kernel_asks_for_a_wakeup() {
        let memory = Arc::new(Mapping::anonymous(4_096).expect("a page"));
        let producer: Producer<u64> = Producer::new(&memory, LAYOUT, ENTRIES);
        assert!(!producer.needs_wakeup());
        // SAFETY: the place is in the mapping and aligned, and is used atomically.
        unsafe { memory.place::<AtomicU32>(LAYOUT.flags, 1).as_ref() }.store(1, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }
}
