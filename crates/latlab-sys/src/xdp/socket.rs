//! Sockets that pass frames between a queue of a network interface and this process.
//! [AF_XDP](https://docs.kernel.org/networking/af_xdp.html),
//! [linux/if_xdp.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/if_xdp.h)

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use super::memory::{Frame, Mapping, Received, Umem};
use super::ring::{Consumer, Layout, Producer};
use crate::socket::set;
use crate::{datagram, done};

/// musl's libc crate lacks it.
const AF_XDP: c_int = 44;
/// SO_PREFER_BUSY_POLL and SO_BUSY_POLL_BUDGET of
/// [asm-generic/socket.h](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/asm-generic/socket.h).
const PREFER_BUSY_POLL: c_int = 69;
const BUSY_POLL_BUDGET: c_int = 70;
/// The frames that one busy poll takes at most.
const BUDGET_FRAMES: c_int = 64;
/// Entries of a ring: half of the frames are for each direction.
const RING_ENTRIES: u32 = 1_024;
/// Of the ring that frames are given back by: the kernel passes a packet on before it counts its frame as taken from here.
const FILL_ENTRIES: u32 = 2 * RING_ENTRIES;
/// Likewise: older kernels return a sent frame before they count its entry as taken.
const TRANSMIT_ENTRIES: u32 = 2 * RING_ENTRIES;

/// Looks of one [`XdpSocket::spin`]: together they take about as long as a reading of the clock if all hit the cache.
const SPINS: u32 = 16;

/// The kernel keeps this space before each received packet (`XDP_PACKET_HEADROOM`).
pub const HEADROOM_BYTES: u32 = 256;

/// How the kernel passes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMode {
    /// Each packet is copied into a frame.
    Copy,
    /// The device writes into the frames: few drivers can.
    ZeroCopy,
}

/// Packets that were lost at a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpDrops {
    /// The ring of received packets was full.
    pub ring_full: u64,
    /// No frame was free, or for other reasons.
    pub other: u64,
}

/// A socket at one queue of one interface, its memory and its rings. Nothing arrives before a program redirects packets to
/// it.
#[derive(Debug)]
pub struct XdpSocket {
    // Fields are dropped in this order: the kernel keeps the memory until the socket is closed.
    fd: OwnedFd,
    umem: Umem,
    /// Frames of this process for sending: as many as the ring has entries.
    free: Vec<Frame>,
    /// Frames that the kernel can get for receiving, if a burst needs them.
    spare: Vec<Frame>,
    /// Frames that the kernel has for receiving, or that have arrived.
    given: u32,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    receive: Consumer<libc::xdp_desc>,
    transmit: Producer<libc::xdp_desc>,
}

impl XdpSocket {
    /// A socket at `queue` of the interface with the number `interface`, whose frames have `frame_bytes` (2,048 or 4,096).
    /// The kernel gets `first_frames` of them for receiving, and twice as many after a burst that has used half of them. The
    /// fewer are in use, the more of them stay in caches.
    ///
    /// # Errors
    /// The kernel's: a permission is missing, the queue does not exist or has a socket, the driver cannot do it, or the
    /// memory exceeds RLIMIT_MEMLOCK.
    pub fn open(
        interface: u32,
        queue: u32,
        mode: CopyMode,
        frame_bytes: u32,
        first_frames: u32,
    ) -> io::Result<XdpSocket> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::socket(AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        done(fd)?;
        // SAFETY: the call has just made this descriptor, which has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let (umem, mut free) = Umem::new(frame_bytes, 2 * RING_ENTRIES)?;
        let spare = free.split_off(RING_ENTRIES as usize);
        set(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &umem.registration())?;
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, FILL_ENTRIES),
            (libc::XDP_UMEM_COMPLETION_RING, RING_ENTRIES),
            (libc::XDP_RX_RING, RING_ENTRIES),
            (libc::XDP_TX_RING, TRANSMIT_ENTRIES),
        ] {
            set(fd.as_fd(), libc::SOL_XDP, ring, &entries)?;
        }
        let mut socket = XdpSocket::map_rings(fd, umem, free, spare)?;
        socket.give(first_frames);
        socket.bind(interface, queue, mode)?;
        Ok(socket)
    }

    fn map_rings(fd: OwnedFd, umem: Umem, free: Vec<Frame>, spare: Vec<Frame>) -> io::Result<XdpSocket> {
        let offsets = mmap_offsets(fd.as_fd())?;
        let map = |offsets: libc::xdp_ring_offset, page_offset: u64, entries: u32, entry_bytes: usize| {
            let bytes = offsets.desc as usize + entries as usize * entry_bytes;
            let mapping = Mapping::of_socket(fd.as_fd(), page_offset as libc::off_t, bytes)?;
            io::Result::Ok((Arc::new(mapping), Layout::from(offsets)))
        };
        let number = size_of::<u64>();
        let map_descriptors = |offsets, page_offset: libc::off_t, entries| {
            map(offsets, page_offset as u64, entries, size_of::<libc::xdp_desc>())
        };
        let (fill, fill_layout) = map(offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING, FILL_ENTRIES, number)?;
        let (completion, completion_layout) =
            map(offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING, RING_ENTRIES, number)?;
        let (receive, receive_layout) = map_descriptors(offsets.rx, libc::XDP_PGOFF_RX_RING, RING_ENTRIES)?;
        let (transmit, transmit_layout) = map_descriptors(offsets.tx, libc::XDP_PGOFF_TX_RING, TRANSMIT_ENTRIES)?;
        Ok(XdpSocket {
            fill: Producer::new(&fill, fill_layout, FILL_ENTRIES),
            completion: Consumer::new(&completion, completion_layout, RING_ENTRIES),
            receive: Consumer::new(&receive, receive_layout, RING_ENTRIES),
            transmit: Producer::new(&transmit, transmit_layout, TRANSMIT_ENTRIES),
            fd,
            umem,
            free,
            spare,
            given: 0,
        })
    }

    /// Gives the kernel `count` more frames for receiving.
    #[cold]
    fn give(&mut self, count: u32) {
        for _ in 0..count {
            if let Some(frame) = self.spare.pop() {
                self.give_back(frame);
                self.given += 1;
            }
        }
    }

    /// Gives the kernel all frames that can be for receiving: as many as the ring of received packets has entries.
    pub fn give_all(&mut self) {
        self.give(self.spare.len() as u32);
    }

    fn bind(&self, interface: u32, queue: u32, mode: CopyMode) -> io::Result<()> {
        let flags = match mode {
            CopyMode::Copy => libc::XDP_COPY,
            CopyMode::ZeroCopy => libc::XDP_ZEROCOPY,
        };
        let address = libc::sockaddr_xdp {
            sxdp_family: AF_XDP as u16,
            sxdp_flags: flags | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let bytes = size_of_val(&address) as libc::socklen_t;
        // SAFETY: pointer and length describe `address`, which outlives the call.
        done(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), bytes) })
    }

    /// Polls the driver for up to `span_us` when packets are waited for, and keeps interrupts off meanwhile. Linux 5.11.
    ///
    /// # Errors
    /// CAP_NET_ADMIN is missing, or the kernel has no busy polling.
    pub fn set_busy_poll(&self, span_us: u32) -> io::Result<()> {
        set(self.fd.as_fd(), libc::SOL_SOCKET, PREFER_BUSY_POLL, &1)?;
        crate::socket::set_busy_poll(self.fd.as_fd(), span_us)?;
        set(self.fd.as_fd(), libc::SOL_SOCKET, BUSY_POLL_BUDGET, &BUDGET_FRAMES)
    }

    /// Whether a packet is there. Looks 16 times before it says no, so that a spinning caller, which does other work
    /// after each call (a sender reads its clock), notices a packet sooner.
    #[inline]
    pub fn spin(&mut self) -> bool {
        (0..SPINS).any(|_| self.receive.has_entry())
    }

    /// The oldest packet; `None` without one.
    #[inline]
    pub fn receive(&mut self) -> Option<Received> {
        if !self.receive.has_entry() {
            return None;
        }
        // A kernel that copies uses frames in the order in which it got them, so the frame is known before the descriptor,
        // which another CPU has just written too. With zero copy it may be another frame; then nothing is gained.
        self.umem.prefetch(self.fill.entry(self.receive.next_number()).wrapping_add(HEADROOM_BYTES.into()));
        let descriptor = self.receive.pop()?;
        if !self.spare.is_empty() && 2 * self.receive.waiting() > self.given {
            self.give(self.given);
        }
        self.umem.received(&descriptor)
    }

    /// The bytes of a packet, from its Ethernet header on.
    #[inline]
    pub fn packet(&self, received: &Received) -> &[u8] {
        self.umem.packet(received)
    }

    /// Copies a packet into a frame and returns its length.
    #[inline]
    pub fn copy_packet(&mut self, received: &Received, frame: &mut Frame) -> usize {
        self.umem.copy(received, frame)
    }

    /// Gives a frame to the kernel for a packet to come.
    #[inline]
    pub fn give_back(&mut self, frame: Frame) {
        // The ring has a place for each frame that it has ever had.
        let given = self.fill.push(self.umem.address_of(frame));
        debug_assert!(given, "more frames than entries");
    }

    /// A frame to write a packet into; `None`: the kernel has not sent the earlier ones yet.
    #[inline]
    pub fn free_frame(&mut self) -> Option<Frame> {
        while let Some(address) = self.completion.pop() {
            self.free.extend(self.umem.completed(address));
        }
        self.free.pop()
    }

    #[inline]
    pub fn bytes_mut(&mut self, frame: &mut Frame) -> &mut [u8] {
        self.umem.bytes_mut(frame)
    }

    /// Queues the first `bytes` of a frame for sending. They leave at the next [`XdpSocket::kick`].
    #[inline]
    pub fn transmit(&mut self, frame: Frame, bytes: usize) {
        let descriptor = libc::xdp_desc { addr: self.umem.address_of(frame), len: bytes as u32, options: 0 };
        // Half as many frames are for sending as the ring has entries.
        let queued = self.transmit.push(descriptor);
        debug_assert!(queued, "more frames than entries");
    }

    /// Makes the kernel send what is queued, if it has to be asked. One call may send a part of it.
    /// [sendto(2)](https://man7.org/linux/man-pages/man2/send.2.html)
    ///
    /// # Errors
    /// The interface is down or gone. A full queue passes: the next call tries again.
    #[inline]
    pub fn kick(&self) -> io::Result<()> {
        if !self.transmit.needs_wakeup() {
            return Ok(());
        }
        passing(datagram::send_now(self.fd.as_fd(), &[]))
    }

    /// Whether the kernel has taken everything that was queued.
    #[inline]
    pub fn is_sent(&mut self) -> bool {
        self.transmit.is_drained()
    }

    /// Makes the kernel look for packets, if it waits for being asked or `polls` the driver.
    /// [recvfrom(2)](https://man7.org/linux/man-pages/man2/recv.2.html)
    ///
    /// # Errors
    /// As [`XdpSocket::kick`].
    #[inline]
    pub fn wake(&self, polls: bool) -> io::Result<()> {
        if !polls && !self.fill.needs_wakeup() {
            return Ok(());
        }
        passing(datagram::receive_now(self.fd.as_fd(), &mut []))
    }

    /// Packets that were lost here since the socket was made (XDP_STATISTICS).
    ///
    /// # Errors
    /// The kernel's.
    pub fn drops(&self) -> io::Result<XdpDrops> {
        // SAFETY: any bits are a valid value of this structure of numbers.
        let mut statistics: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        read_option(self.fd.as_fd(), libc::XDP_STATISTICS, &mut statistics)?;
        Ok(XdpDrops {
            ring_full: statistics.rx_ring_full,
            // A lack of frames is counted here too when packets are copied, and as attempts of the driver when not.
            other: statistics.rx_dropped + statistics.rx_invalid_descs,
        })
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A full queue, or a driver that is busy, is tried again by the next call.
#[inline]
fn passing(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        },
    }
}

fn mmap_offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: any bits are a valid value of this structure of numbers.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    read_option(socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

/// Reads a structure of numbers. [getsockopt(2)](https://man7.org/linux/man-pages/man2/getsockopt.2.html)
fn read_option<T>(socket: BorrowedFd<'_>, option: c_int, value: &mut T) -> io::Result<()> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    let place: *mut T = value;
    // SAFETY: the kernel writes at most `bytes` bytes into `value`, and any bits are a valid value of its numbers.
    done(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, place.cast(), &mut bytes) })?;
    // Before Linux 5.4 the structures were shorter.
    if bytes as usize == size_of::<T>() { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}
