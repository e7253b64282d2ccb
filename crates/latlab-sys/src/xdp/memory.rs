//! Memory that is shared with the kernel, and the frames of packets in it (UMEM), of which each belongs to one owner at a
//! time.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::prefetch;

/// Pages of memory, unmapped when this is dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process and not to a thread. Its users say who writes which part of it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New pages of zeros. [mmap(2)](https://man7.org/linux/man-pages/man2/mmap.2.html)
    pub(super) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the place, so no memory in use is replaced.
        let place = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        Mapping::of(place, bytes)
    }

    /// The pages of `socket` from `page_offset` on.
    pub(super) fn of_socket(socket: BorrowedFd<'_>, page_offset: libc::off_t, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: as above.
        let place = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), bytes, access, flags, socket.as_raw_fd(), page_offset)
        };
        Mapping::of(place, bytes)
    }

    fn of(place: *mut libc::c_void, bytes: usize) -> io::Result<Mapping> {
        match NonNull::new(place.cast()) {
            Some(begin) if place != libc::MAP_FAILED => Ok(Mapping { begin, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The place of `count` values of `T`, `offset` bytes from the beginning.
    ///
    /// # Panics
    /// They are not within the pages, or not aligned.
    pub(super) fn place<T>(&self, offset: usize, count: usize) -> NonNull<T> {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(end.is_some_and(|end| end <= self.bytes), "{count} values at {offset} exceed {} bytes", self.bytes);
        assert!(offset.is_multiple_of(align_of::<T>()), "values at {offset} are not aligned");
        // SAFETY: the place is within the pages.
        unsafe { self.begin.add(offset) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped with this length, and nothing refers to them any more.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

/// A frame that belongs to this process. It moves to the kernel when it is filled or transmitted, and comes back with a
/// received packet or when it has been sent.
#[derive(Debug)]
pub struct Frame {
    /// The offset of the frame in the memory.
    address: u64,
    umem: u32,
}

/// A packet that the kernel has put into a frame.
#[derive(Debug)]
pub struct Received {
    frame: Frame,
    offset: usize,
    bytes: usize,
}

impl Received {
    /// The frame, whose bytes are not needed any more.
    pub fn into_frame(self) -> Frame {
        self.frame
    }
}

/// Memories for frames that were made so far.
static NEXT_UMEM: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Umem {
    /// Of all in this process, so that frames of one are not taken for those of another.
    number: u32,
    memory: Mapping,
    frame_bytes: usize,
    count: usize,
}

impl Umem {
    /// `count` frames of `frame_bytes`, a power of two.
    pub(super) fn new(frame_bytes: u32, count: u32) -> io::Result<(Umem, Vec<Frame>)> {
        let (frame_bytes, count) = (frame_bytes as usize, count as usize);
        assert!(frame_bytes.is_power_of_two(), "frames of {frame_bytes} bytes");
        let memory = Mapping::anonymous(frame_bytes * count)?;
        let umem = NEXT_UMEM.fetch_add(1, Ordering::Relaxed);
        let frames = (0..count).map(|number| Frame { address: (number * frame_bytes) as u64, umem }).collect();
        Ok((Umem { number: umem, memory, frame_bytes, count }, frames))
    }

    /// The offset of `frame` in this memory.
    ///
    /// # Panics
    /// It is a frame of another memory.
    #[inline]
    fn offset_of(&self, frame: &Frame) -> usize {
        assert_eq!(frame.umem, self.number, "a frame of another socket");
        frame.address as usize
    }

    /// The frame leaves: the kernel owns the memory at this offset from now on.
    ///
    /// # Panics
    /// As [`Umem::offset_of`].
    #[inline]
    pub(super) fn address_of(&self, frame: Frame) -> u64 {
        self.offset_of(&frame) as u64
    }

    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.memory.place::<u8>(0, 1).as_ptr() as u64,
            len: (self.frame_bytes * self.count) as u64,
            chunk_size: self.frame_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    pub(super) fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        let begin = self.memory.place::<u8>(self.offset_of(frame), self.frame_bytes);
        // SAFETY: the place is within the memory, and the frame is the only one for it: the kernel does not own it.
        unsafe { slice::from_raw_parts_mut(begin.as_ptr(), self.frame_bytes) }
    }

    /// Brings the first two cache lines of a packet at `address` into the cache while other memory is read. Any address is
    /// permitted.
    #[inline]
    pub(super) fn prefetch(&self, address: u64) {
        let begin = self.memory.begin.as_ptr().wrapping_add(address as usize);
        for line in [begin, begin.wrapping_add(prefetch::LINE_BYTES)] {
            prefetch::to_read(line);
        }
    }

    /// The bytes of a packet.
    pub(super) fn packet(&self, received: &Received) -> &[u8] {
        let begin = self.memory.place::<u8>(self.offset_of(&received.frame) + received.offset, received.bytes);
        // SAFETY: as above; the packet is within its frame, as `received` has checked.
        unsafe { slice::from_raw_parts(begin.as_ptr(), received.bytes) }
    }

    /// Copies a packet into a frame and returns its length.
    pub(super) fn copy(&mut self, received: &Received, frame: &mut Frame) -> usize {
        let packet = self.memory.place::<u8>(self.offset_of(&received.frame) + received.offset, received.bytes);
        let to = self.memory.place::<u8>(self.offset_of(frame), self.frame_bytes);
        // SAFETY: both places are within the memory and belong to this process; two frames do not overlap, and a packet is
        // not longer than its frame.
        unsafe { ptr::copy_nonoverlapping(packet.as_ptr(), to.as_ptr(), received.bytes) };
        received.bytes
    }

    /// The frame that the kernel has sent; `None` outside of the memory.
    pub(super) fn completed(&self, address: u64) -> Option<Frame> {
        Some(self.frame_of(address)?.0)
    }

    /// The packet that the kernel describes; `None` if it is not within one frame.
    pub(super) fn received(&self, descriptor: &libc::xdp_desc) -> Option<Received> {
        let (frame, offset) = self.frame_of(descriptor.addr)?;
        let bytes = descriptor.len as usize;
        (offset + bytes <= self.frame_bytes).then_some(Received { frame, offset, bytes })
    }

    /// The frame around `address`, and the offset in it. The kernel says that this process owns it now.
    fn frame_of(&self, address: u64) -> Option<(Frame, usize)> {
        let address = usize::try_from(address).ok()?;
        let offset = address & (self.frame_bytes - 1);
        (address / self.frame_bytes < self.count)
            .then_some((Frame { address: (address - offset) as u64, umem: self.number }, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(addr: u64, len: u32) -> libc::xdp_desc {
        libc::xdp_desc { addr, len, options: 0 }
    }

    #[test]
    fn a_packet_is_read_where_it_was_written() {
        let (mut umem, mut frames) = Umem::new(2_048, 4).expect("memory");
        assert_eq!(frames.len(), 4);
        let mut frame = frames.pop().expect("four");
        umem.bytes_mut(&mut frame)[256..260].copy_from_slice(b"ping");
        let address = umem.address_of(frame);
        let received = umem.received(&descriptor(address + 256, 4)).expect("within the frame");
        assert_eq!(umem.packet(&received), b"ping");
        assert_eq!(umem.address_of(received.into_frame()), address);
    }

    #[test]
    fn descriptors_outside_of_the_memory_are_refused() {
        let (umem, _frames) = Umem::new(2_048, 4).expect("memory");
        for (addr, len) in [(4 * 2_048, 1), (u64::MAX, 1), (2_048 + 2_000, 49), (0, u32::MAX)] {
            assert!(umem.received(&descriptor(addr, len)).is_none(), "{len} at {addr}");
        }
        umem.prefetch(u64::MAX);
        assert!(umem.completed(4 * 2_048).is_none());
        assert_eq!(umem.completed(3 * 2_048 + 7).map(|frame| umem.address_of(frame)), Some(3 * 2_048));
    }

    #[test]
    #[should_panic(expected = "a frame of another socket")]
    fn a_frame_of_another_memory_is_refused() {
        let [(mut one, _frames), (_other, mut foreign)] = [(); 2].map(|()| Umem::new(2_048, 4).expect("memory"));
        _ = one.bytes_mut(&mut foreign.pop().expect("four"));
    }
}
