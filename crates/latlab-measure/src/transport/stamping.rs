//! The kernel's stamps on a UDP socket: which are requested, and the numbers of the datagrams that leave.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use latlab_sys::sleep;
use latlab_sys::stamps::{self, TransmitStamp};

use crate::clock::{Clock, Monotonic};

/// The stamps of one socket, while they are requested.
#[derive(Debug)]
pub(super) struct Stamping {
    /// Datagrams sent since the count of the kernel began.
    sent: u32,
    /// Of the last received datagram, on CLOCK_REALTIME.
    pub(super) received_ns: Option<i64>,
    /// Whether datagrams are stamped before the queueing discipline too.
    queue: bool,
}

impl Stamping {
    /// # Errors
    /// The kernel's.
    pub(super) fn request(socket: BorrowedFd<'_>, queue: bool) -> io::Result<Stamping> {
        stamps::request(socket, queue)?;
        Ok(Stamping { sent: 0, received_ns: None, queue })
    }

    #[inline]
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8], sleeps: bool) -> io::Result<usize> {
        let (bytes, received_ns) = stamps::receive(socket, buffer, sleeps)?;
        self.received_ns = received_ns;
        Ok(bytes)
    }

    /// Counts a datagram that the kernel took.
    #[inline]
    pub(super) fn count(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// Begins the count anew: kernels differ in whether a refused datagram has a number.
    #[cold]
    pub(super) fn restart(&mut self, socket: BorrowedFd<'_>) {
        // If this fails there are no stamps from here on, which is seen.
        let _ = stamps::request(socket, self.queue);
        self.sent = 0;
    }

    #[inline]
    pub(super) fn stamps<'a>(&self, socket: BorrowedFd<'a>) -> KernelStamps<'a> {
        KernelStamps { socket, received_ns: self.received_ns, last_number: self.sent.checked_sub(1) }
    }
}

/// What the kernel stamped on one socket.
#[derive(Clone, Copy, Debug)]
pub struct KernelStamps<'a> {
    socket: BorrowedFd<'a>,
    /// Of the last received message, on CLOCK_REALTIME.
    pub received_ns: Option<i64>,
    /// The number of the last sent message in [`KernelStamps::next_transmitted`]; `None` before the first.
    pub last_number: Option<u32>,
}

impl KernelStamps<'_> {
    /// The next stamp of a message that left. It never waits.
    #[inline]
    pub fn next_transmitted(self) -> Option<TransmitStamp> {
        stamps::next_transmitted(self.socket)
    }
}

/// What stamps add to one passage of the kernel on this host, send and receive call on loopback, in ns: the median over pairs
/// of passages, one of each kind.
///
/// # Errors
/// The kernel's.
pub(crate) fn stamp_cost_ns() -> io::Result<i64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    let (fd, mut buffer) = (socket.as_fd(), [0; 64]);
    // The kernel begins to stamp receipts a moment after the first request.
    let mut stamping = Stamping::request(fd, true)?;
    for _ in 0..RECEIPT_TRIES {
        latlab_sys::datagram::send(fd, &buffer)?;
        stamping.receive(fd, &mut buffer, false)?;
        while stamps::next_transmitted(fd).is_some() {}
        if stamping.received_ns.is_some() {
            break;
        }
        // A signal may end it early.
        let _ = sleep::clock_nanosleep_for(1_000_000);
    }
    let mut differences = Vec::with_capacity(COST_PAIRS);
    for _ in 0..COST_PAIRS {
        stamps::end(fd)?;
        let start = Monotonic.now();
        latlab_sys::datagram::send(fd, &buffer)?;
        latlab_sys::datagram::receive_now(fd, &mut buffer)?;
        let plain = Monotonic.now() - start;
        let mut stamping = Stamping::request(fd, true)?;
        let start = Monotonic.now();
        latlab_sys::datagram::send(fd, &buffer)?;
        stamping.receive(fd, &mut buffer, false)?;
        differences.push((Monotonic.now() - start).0 - plain.0);
        while stamps::next_transmitted(fd).is_some() {}
    }
    differences.sort_unstable();
    Ok(differences[COST_PAIRS / 2])
}

/// Some 2 ms.
const COST_PAIRS: usize = 301;
const RECEIPT_TRIES: usize = 100;
