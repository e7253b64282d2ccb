//! A seeded network without sockets or sleep: delay, loss, reordering, duplication, slow ends.
//!
//! Time stands still but for what the network does: a receive jumps to the next arrival or to the end
//! of its patience. The far end is a function, so that tests can put the real reflector there.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Transport;
use super::burst::BurstTransport;
use crate::clock::Clock;
use crate::units::{Nanos, SenderClock, Stamp};

/// What the network does to datagrams. Each direction draws for itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Least one-way delay.
    pub delay: Nanos,
    /// Uniform extra delay: more than a gap between probes reorders them.
    pub jitter: Nanos,
    /// Share of datagrams lost, 0 to 1.
    pub loss: f64,
    /// Share of datagrams delivered twice.
    pub duplication: f64,
    /// What one clock read costs; keeps simulated time moving.
    pub clock_read: Nanos,
    /// What one send call costs.
    pub send_cost: Nanos,
    /// Seed of every draw.
    pub seed: u64,
    /// Things that go wrong at given send calls.
    pub faults: Vec<Fault>,
}

/// Something that goes wrong once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th send (from 0) is refused with this errno.
    Refuse {
        /// Which send.
        send: u64,
        /// errno.
        errno: i32,
    },
    /// The sender's CPU is taken away for so long at the n-th send.
    Stall {
        /// Which send.
        send: u64,
        /// For how long.
        span: Nanos,
    },
    /// The answer to the n-th send is held back for so long.
    Hold {
        /// Which send.
        send: u64,
        /// For how long.
        span: Nanos,
    },
}

/// What the far end makes of a datagram that reaches it at an instant: at most one reply.
pub type SimulatedReflector<'a> = Box<dyn FnMut(&[u8], Stamp<SenderClock>) -> Option<Vec<u8>> + 'a>;

/// The sender's side of a simulated network.
pub struct SimTransport<'a> {
    network: Network,
    far_end: SimulatedReflector<'a>,
    now: SimClock,
    sends: u64,
    rng: Pcg64Mcg,
    arrivals: BinaryHeap<Reverse<(i64, u64, Vec<u8>)>>,
    delivered: u64,
}

/// Simulated time, shared with the network that moves it.
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
    /// A network that starts at time `start`, with `far_end` on its other side.
    pub fn new(network: Network, start: Stamp<SenderClock>, far_end: SimulatedReflector<'a>) -> SimTransport<'a> {
        let rng = Pcg64Mcg::seed_from_u64(network.seed);
        let now = SimClock { nanos: Rc::new(RefCell::new(start.as_nanos())), read_cost: network.clock_read };
        SimTransport { network, far_end, now, sends: 0, rng, arrivals: BinaryHeap::new(), delivered: 0 }
    }

    /// The clock that this network moves.
    pub fn clock(&self) -> SimClock {
        self.now.clone()
    }

    fn chance(&mut self, share: f64) -> bool {
        ((self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < share
    }

    fn one_way(&mut self) -> i64 {
        let jitter = self.network.jitter.0.max(0) as u64;
        self.network.delay.0 + (self.rng.next_u64() % (jitter + 1)) as i64
    }

    /// Delivery instants of a datagram that leaves at `left`: none, one, or two.
    fn crossings(&mut self, left: i64) -> Vec<i64> {
        if self.chance(self.network.loss) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.chance(self.network.duplication));
        (0..copies).map(|_| left + self.one_way()).collect()
    }

    fn faults_of(&self, send: u64) -> (Option<i32>, Nanos) {
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
        let (errno, held) = self.faults_of(send);
        if let Some(errno) = errno {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.now.advance_to(self.now.peek() + self.network.send_cost.0);
        for there in self.crossings(self.now.peek()) {
            let Some(reply) = (self.far_end)(datagram, Stamp::from_nanos(there)) else { continue };
            for back in self.crossings(there + held.0) {
                self.delivered += 1;
                self.arrivals.push(Reverse((back, self.delivered, reply.clone())));
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        let until = self.now.peek().saturating_add(patience.0.max(0));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Network {
        Network {
            delay: Nanos(1_000),
            jitter: Nanos(0),
            loss: 0.0,
            duplication: 0.0,
            clock_read: Nanos(20),
            send_cost: Nanos(100),
            seed: 1,
            faults: Vec::new(),
        }
    }

    fn echo() -> SimulatedReflector<'static> {
        Box::new(|datagram, _| Some(datagram.to_vec()))
    }

    #[test]
    fn a_quiet_network_takes_twice_its_delay() {
        let mut network = SimTransport::new(quiet(), Stamp::from_nanos(0), echo());
        let mut buffer = [0; 64];
        network.send(b"probe").unwrap();
        assert_eq!(network.receive(&mut buffer, Nanos(500)).unwrap(), None);
        assert_eq!(network.receive(&mut buffer, Nanos(5_000)).unwrap(), Some(5));
        assert_eq!(network.clock().peek(), 100 + 2 * 1_000);
    }

    #[test]
    fn loss_and_duplication_keep_their_shares() {
        let network = Network { loss: 0.1, duplication: 0.2, ..quiet() };
        let mut network = SimTransport::new(network, Stamp::from_nanos(0), echo());
        let mut buffer = [0; 8];
        (0..10_000).for_each(|_| network.send(b"x").unwrap());
        let arrived = std::iter::from_fn(|| network.receive(&mut buffer, Nanos::from_secs(1)).unwrap()).count();
        let expected = 10_000.0 * (0.9 * 1.2) * (0.9 * 1.2);
        assert!((arrived as f64 / expected - 1.0).abs() < 0.02, "{arrived} of {expected}");
    }

    #[test]
    fn faults_strike_once() {
        let faults = vec![Fault::Refuse { send: 0, errno: 105 }, Fault::Stall { send: 1, span: Nanos(9_000) }];
        let mut network = SimTransport::new(Network { faults, ..quiet() }, Stamp::from_nanos(0), echo());
        assert_eq!(network.send(b"x").unwrap_err().raw_os_error(), Some(105));
        network.send(b"x").unwrap();
        assert_eq!(network.clock().peek(), 9_100);
    }
}
