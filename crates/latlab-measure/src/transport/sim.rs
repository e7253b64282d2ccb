//! A simulated network with seeded randomness, without sockets or sleep: delay, loss, reordering, duplication, and
//! single faults.
//!
//! Simulated time advances by clock reads, send calls and receive calls. A receive call advances it to the next arrival
//! or to the end of the wait. The far end is a function, so that tests can run the real reflector there.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::interface::{BurstTransport, Transport};
use crate::clock::Clock;
use crate::units::{Nanos, SenderClock, Stamp};

/// The parameters of a simulated network. Delay, loss and duplication are drawn for each direction independently.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub delay: Nanos,
    /// Maximum of the additional delay, which is uniformly distributed. If it exceeds the interval between probes, they
    /// are reordered.
    pub jitter: Nanos,
    /// Share of datagrams lost, 0 to 1.
    pub loss: f64,
    /// Share of datagrams delivered twice.
    pub duplication: f64,
    /// The duration of a clock read. Above zero, so that loops that wait by reading the clock end.
    pub clock_read: Nanos,
    /// The duration of a send call.
    pub send_cost: Nanos,
    pub seed: u64,
    /// Faults at given send calls.
    pub faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Refuse {
        /// Number of the call, from 0.
        send: u64,
        errno: i32,
    },
    /// The sender loses its CPU during a send call.
    Stall {
        /// Number of the call, from 0.
        send: u64,
        span: Nanos,
    },
    /// The answer to a datagram is delayed.
    Hold {
        /// Number of the send call, from 0.
        send: u64,
        span: Nanos,
    },
}

/// The far end: takes a datagram and its time of arrival, and returns the reply, if any.
pub type SimulatedReflector<'a> = Box<dyn FnMut(&[u8], Stamp<SenderClock>) -> Option<Vec<u8>> + 'a>;

/// The sender's end of a simulated network.
pub struct SimTransport<'a> {
    network: Network,
    far_end: SimulatedReflector<'a>,
    now: SimClock,
    sends: u64,
    rng: Pcg64Mcg,
    /// Time of arrival in ns, number of the delivery (the order of equal times), datagram.
    arrivals: BinaryHeap<Reverse<(i64, u64, Vec<u8>)>>,
    delivered: u64,
}

/// Simulated time, shared with the network that advances it.
#[derive(Clone, Debug)]
pub struct SimClock {
    nanos: Rc<RefCell<i64>>,
    read_cost: Nanos,
}

impl SimClock {
    fn advance_to(&self, nanos: i64) {
        let mut now = self.nanos.borrow_mut();
        *now = nanos.max(*now);
    }

    fn peek(&self) -> i64 {
        *self.nanos.borrow()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Stamp<SenderClock> {
        let mut now = self.nanos.borrow_mut();
        *now += self.read_cost.0;
        Stamp::from_nanos(*now)
    }
}

impl<'a> SimTransport<'a> {
    /// A network that starts at `start`.
    pub fn new(network: Network, start: Stamp<SenderClock>, far_end: SimulatedReflector<'a>) -> SimTransport<'a> {
        let rng = Pcg64Mcg::seed_from_u64(network.seed);
        let now = SimClock { nanos: Rc::new(RefCell::new(start.as_nanos())), read_cost: network.clock_read };
        SimTransport { network, far_end, now, sends: 0, rng, arrivals: BinaryHeap::new(), delivered: 0 }
    }

    /// The clock that this network advances.
    pub fn clock(&self) -> SimClock {
        self.now.clone()
    }

    fn is_drawn(&mut self, share: f64) -> bool {
        ((self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < share
    }

    fn one_way(&mut self) -> i64 {
        let jitter = self.network.jitter.0.max(0) as u64;
        self.network.delay.0 + (self.rng.next_u64() % (jitter + 1)) as i64
    }

    /// The instants at which a datagram sent at `sent_ns` is delivered: none, one, or two.
    fn deliveries(&mut self, sent_ns: i64) -> Vec<i64> {
        if self.is_drawn(self.network.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.is_drawn(self.network.duplication));
        (0..copies).map(|_| sent_ns + self.one_way()).collect()
    }

    /// Applies the faults of send call `send`: advances simulated time by a stall, and returns the error of the call
    /// and the delay of its answer.
    fn apply_faults(&self, send: u64) -> (Option<i32>, Nanos) {
        let (mut errno, mut held) = (None, Nanos::ZERO);
        for fault in &self.network.faults {
            match *fault {
                Fault::Refuse { send: at, errno: number } if at == send => errno = Some(number),
                Fault::Stall { send: at, span } if at == send => self.now.advance_to(self.now.peek() + span.0),
                Fault::Hold { send: at, span } if at == send => held += span,
                _ => {}
            }
        }
        (errno, held)
    }
}

impl Transport for SimTransport<'_> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let send = self.sends;
        self.sends += 1;
        let (errno, held) = self.apply_faults(send);
        if let Some(errno) = errno {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.now.advance_to(self.now.peek() + self.network.send_cost.0);
        for there in self.deliveries(self.now.peek()) {
            let Some(reply) = (self.far_end)(datagram, Stamp::from_nanos(there)) else { continue };
            for back in self.deliveries(there + held.0) {
                self.delivered += 1;
                self.arrivals.push(Reverse((back, self.delivered, reply.clone())));
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        let until = self.now.peek().saturating_add(max_wait.0.max(0));
        match self.arrivals.peek() {
            Some(Reverse((at, ..))) if *at <= until => {}
            _ => {
                self.now.advance_to(until);
                return Ok(None);
            }
        }
        let Some(Reverse((at, _, datagram))) = self.arrivals.pop() else { return Ok(None) };
        self.now.advance_to(at);
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Ok(Some(datagram.len()))
    }
}

impl BurstTransport for SimTransport<'_> {}
