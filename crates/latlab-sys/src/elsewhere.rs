//! Systems other than Linux: the same names, each of which returns `Unsupported`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Defines functions with the arguments of the Linux functions of the same names, which return `Unsupported`.
macro_rules! refuse {
    ($($name:ident($($argument:ty),*) -> $answer:ty;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of Linux: `Unsupported` here.")]
            pub fn $name($(_: $argument),*) -> std::io::Result<$answer> {
                super::unsupported()
            }
        )*
    };
}

pub mod address {
    use super::SocketAddr;

    /// Internet protocol version of a socket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AddressFamily {
        Ipv4,
        /// AF_INET6.
        Ipv6,
    }

    impl AddressFamily {
        pub const fn of(address: &SocketAddr) -> AddressFamily {
            if address.is_ipv4() { AddressFamily::Ipv4 } else { AddressFamily::Ipv6 }
        }
    }

    #[derive(Clone, Copy, Debug)]
    pub struct Address(Option<SocketAddr>);

    impl Address {
        pub const fn empty() -> Address {
            Address(None)
        }

        /// The address in the standard library's form.
        pub const fn to_socket_addr(&self) -> Option<SocketAddr> {
            self.0
        }
    }

    impl From<SocketAddr> for Address {
        fn from(address: SocketAddr) -> Address {
            Address(Some(address))
        }
    }
}

pub mod socket {
    use super::{BorrowedFd, OwnedFd, SocketAddr, address::AddressFamily};
    refuse! {
        udp(AddressFamily) -> OwnedFd;
        bind(BorrowedFd<'_>, SocketAddr) -> ();
        connect(BorrowedFd<'_>, SocketAddr) -> ();
        local_address(BorrowedFd<'_>) -> SocketAddr;
        bind_to_device(BorrowedFd<'_>, &str) -> ();
        set_receive_timeout(BorrowedFd<'_>, i64) -> ();
        set_send_timeout(BorrowedFd<'_>, i64) -> ();
        set_busy_poll(BorrowedFd<'_>, u32) -> ();
        set_receive_buffer(BorrowedFd<'_>, u32) -> u32;
        set_send_buffer(BorrowedFd<'_>, u32) -> u32;
        set_checksums(BorrowedFd<'_>, AddressFamily, bool) -> ();
        accept_unchecked(BorrowedFd<'_>, bool) -> ();
        set_merging(BorrowedFd<'_>, bool) -> ();
        set_dscp(BorrowedFd<'_>, AddressFamily, u8) -> ();
        forbid_fragments(BorrowedFd<'_>, AddressFamily) -> ();
        path_mtu_bytes(BorrowedFd<'_>, AddressFamily) -> u32;
        drops(BorrowedFd<'_>) -> u32;
        report_local_address(BorrowedFd<'_>, AddressFamily) -> ();
        set_ipv6_only(BorrowedFd<'_>, bool) -> ();
    }
}

pub mod connection {
    use super::{BorrowedFd, OwnedFd, SocketAddr, address::AddressFamily};

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ConnectionCounts {
        /// The largest segment that it sends, in bytes of payload.
        pub send_segment_bytes: u32,
        /// Segments sent again, since it was made.
        pub retransmitted: u32,
    }

    refuse! {
        tcp(AddressFamily) -> OwnedFd;
        tcp_listener(AddressFamily) -> OwnedFd;
        listen(BorrowedFd<'_>, u16) -> ();
        accept(BorrowedFd<'_>) -> (OwnedFd, SocketAddr);
        send_now(BorrowedFd<'_>, &[u8]) -> usize;
        set_no_delay(BorrowedFd<'_>) -> ();
        set_unsent_limit(BorrowedFd<'_>, u32) -> ();
        no_delay(BorrowedFd<'_>) -> bool;
        reuse_address(BorrowedFd<'_>) -> ();
        take_error(BorrowedFd<'_>) -> ();
        counts(BorrowedFd<'_>) -> ConnectionCounts;
        unacknowledged(BorrowedFd<'_>) -> u64;
        congestion_control(BorrowedFd<'_>) -> String;
    }
}

pub mod datagram {
    use super::{BorrowedFd, IpAddr, address::Address};

    /// Both addresses of a datagram.
    #[derive(Clone, Copy, Debug)]
    pub struct Envelope {
        pub peer: Address,
        pub local: Option<IpAddr>,
    }

    impl Envelope {
        pub const fn empty() -> Envelope {
            Envelope { peer: Address::empty(), local: None }
        }
    }

    refuse! {
        send(BorrowedFd<'_>, &[u8]) -> usize;
        receive(BorrowedFd<'_>, &mut [u8]) -> usize;
        receive_now(BorrowedFd<'_>, &mut [u8]) -> usize;
        send_to(BorrowedFd<'_>, &[u8], &Address) -> usize;
        receive_from(BorrowedFd<'_>, &mut [u8], &mut Address) -> usize;
        receive_from_now(BorrowedFd<'_>, &mut [u8], &mut Address) -> usize;
        receive_envelope(BorrowedFd<'_>, &mut [u8], &mut Envelope) -> usize;
        receive_envelope_now(BorrowedFd<'_>, &mut [u8], &mut Envelope) -> usize;
        send_envelope(BorrowedFd<'_>, &[u8], &Envelope) -> usize;
    }
}

/// Many datagrams with one system call.
pub mod batch {
    use super::{BorrowedFd, IpAddr, address::Address, unsupported};

    /// Sends many datagrams with one call.
    #[derive(Debug)]
    pub struct SendBatch;

    impl SendBatch {
        pub const fn new(_: usize, _: Option<Address>) -> SendBatch {
            SendBatch
        }

        pub fn send(&mut self, _: BorrowedFd<'_>, _: &[u8], _: usize, _: usize) -> std::io::Result<usize> {
            unsupported()
        }
    }

    refuse! { send_segmented(BorrowedFd<'_>, &[u8], u16, Option<&Address>) -> usize; }

    /// Receives many datagrams with one call.
    #[derive(Debug)]
    pub struct ReceiveBatch;

    #[derive(Debug)]
    pub struct Arrived<'a> {
        /// Its bytes.
        pub bytes: &'a mut [u8],
        pub peer: &'a Address,
        pub local: Option<IpAddr>,
        /// The length of each of several merged datagrams.
        pub segment: Option<usize>,
    }

    impl ReceiveBatch {
        pub const fn new(_: usize, _: usize) -> ReceiveBatch {
            ReceiveBatch
        }

        pub fn receive(&mut self, _: BorrowedFd<'_>, _: usize) -> std::io::Result<usize> {
            unsupported()
        }

        pub fn receive_now(&mut self, _: BorrowedFd<'_>, _: usize) -> std::io::Result<usize> {
            unsupported()
        }

        pub const fn arrived(&mut self, _: usize) -> Option<Arrived<'_>> {
            None
        }
    }
}

/// Waiting until sockets are ready.
pub mod readiness {
    use super::{BorrowedFd, unsupported};
    refuse! {
        readable_within(BorrowedFd<'_>, i64) -> bool;
        writable_within(BorrowedFd<'_>, i64) -> bool;
        either_within(BorrowedFd<'_>, i64) -> bool;
    }

    /// The readiness to report for a socket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Interest {
        /// Bytes, a connection, or an end.
        Read,
        /// Space in the send buffer.
        Write,
        /// Errors only.
        None,
    }

    #[derive(Debug)]
    pub struct ReadyList;

    impl ReadyList {
        pub const fn with_capacity(_: usize) -> ReadyList {
            ReadyList
        }

        /// No socket is ready here.
        pub const fn token(&self, _: usize) -> u64 {
            0
        }
    }

    /// An epoll instance, which cannot be made here.
    #[derive(Debug)]
    pub struct Epoll;

    impl Epoll {
        pub fn new() -> std::io::Result<Epoll> {
            unsupported()
        }

        pub fn add(&self, _: BorrowedFd<'_>, _: u64, _: Interest) -> std::io::Result<()> {
            unsupported()
        }

        pub fn modify(&self, _: BorrowedFd<'_>, _: u64, _: Interest) -> std::io::Result<()> {
            unsupported()
        }

        pub fn wait(&self, _: &mut ReadyList, _: i32) -> std::io::Result<usize> {
            unsupported()
        }
    }
}

/// Scheduling of the calling thread.
pub mod scheduler {
    refuse! {
        set_fifo(u8) -> ();
        leave_real_time() -> ();
    }

    pub const fn current_cpu() -> Option<u16> {
        None
    }
}

pub mod cpu_time {
    refuse! {
        of_this_thread() -> i64;
        of_this_process() -> i64;
        of_process(u32) -> i64;
        of_ended_children() -> i64;
    }
}

pub mod process {
    use super::BorrowedFd;

    /// Unknown; true is the safe answer.
    pub const fn started_with_more_rights() -> bool {
        true
    }

    /// Unknown; false as for a signal that is not ignored.
    pub const fn ignores(_: i32) -> bool {
        false
    }

    /// `OwnDescriptors` of Linux: `Unsupported` here.
    #[derive(Debug)]
    pub struct OwnDescriptors(());

    impl OwnDescriptors {
        /// `copy` of Linux: `Unsupported` here.
        pub fn copy() -> std::io::Result<OwnDescriptors> {
            super::unsupported()
        }
    }

    /// `lock_memory` of Linux: `Unsupported` here.
    pub fn lock_memory<T>(_: &[T]) -> std::io::Result<()> {
        super::unsupported()
    }

    refuse! {
        enter_fresh_network() -> ();
        network_cookie(BorrowedFd<'_>) -> u64;
    }

    /// No effect: children end when their standard input closes.
    pub fn end_with_parent(_: &mut std::process::Command) {}

    pub fn in_own_session(_: &mut std::process::Command) {}
}

/// The system calls by which a thread sleeps.
pub mod sleep {
    use super::{BorrowedFd, OwnedFd};
    refuse! {
        clock_nanosleep_until(i64) -> ();
        clock_nanosleep_for(i64) -> ();
        nanosleep(i64) -> ();
        select_nothing(i64) -> ();
        poll_nothing(i32) -> ();
        epoll() -> OwnedFd;
        epoll_nothing(BorrowedFd<'_>, i32) -> ();
        timerfd() -> OwnedFd;
        arm_timerfd(BorrowedFd<'_>, i64, bool) -> ();
        read_timerfd(BorrowedFd<'_>) -> ();
        futex_until(i64) -> ();
        futex_for(i64) -> ();
        allow_interrupts() -> ();
        interrupt(i32) -> ();
    }

    /// A timer that signals a thread.
    #[derive(Debug)]
    pub struct SignalTimer(());

    impl SignalTimer {
        pub fn new() -> std::io::Result<SignalTimer> {
            super::unsupported()
        }

        pub fn arm(&self, _: i64, _: bool) -> std::io::Result<()> {
            super::unsupported()
        }

        pub fn wait(&self) -> std::io::Result<()> {
            super::unsupported()
        }
    }

    pub const fn current_thread() -> i32 {
        0
    }

    pub const fn niceness() -> i32 {
        0
    }
}
