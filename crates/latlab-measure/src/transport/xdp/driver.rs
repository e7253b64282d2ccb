//! Answers in the network driver: a program that runs for each packet of an interface answers the probes of the sessions
//! that the reflector offers it, and sends them back (`XDP_TX`). All other packets pass to the socket.

use std::io;
use std::net::SocketAddr;

use latlab_sys::bpf::{AttachMode, Link, Map, MapKind, Program};

use super::program::answering;
use super::queue::places;
use super::route::{self, EthernetInterface};
use super::slot::Slot;
use crate::facts::XdpFacts;
use crate::transport::error::TransportError;
use crate::transport::interface::{DriverCounts, DriverSession};

/// As many as a reflector has sessions at most.
const SLOTS_MAX: u16 = 1 << 15;

/// A program at the interface that has the reflector's address. It ends with the process.
#[derive(Debug)]
pub(in crate::transport) struct DriverAnswers {
    local: SocketAddr,
    slots: Map,
    /// A power of two: a session number leads to its slot by a mask, as in the reflector's table.
    count: u16,
    /// The sessions that are answered.
    offered: Vec<u16>,
    /// Those that are to be answered; empty between two offers.
    wanted: Vec<DriverSession>,
    facts: XdpFacts,
    _link: Link,
}

impl DriverAnswers {
    /// Answers at `local`, an address with a port, where nothing is offered yet, for `sessions` at a time.
    ///
    /// # Errors
    /// A permission is missing, the interface has a program, or the kernel refuses ours.
    pub(in crate::transport) fn open(local: SocketAddr, sessions: u16) -> Result<DriverAnswers, TransportError> {
        let count = sessions.clamp(1, SLOTS_MAX).next_power_of_two();
        let interface = route::holding(local.ip()).map_err(|source| TransportError::Bind { local, source })?;
        let refused = |source| TransportError::XdpProgram { interface: interface.name.clone(), source };
        let slots = Map::new(MapKind::Array, Slot::BYTES as u32, count.into()).map_err(refused)?;
        let program = Program::load(&answering(local, slots.number(), count)).map_err(refused)?;
        let (link, native) = attached(&program, &interface).map_err(refused)?;
        let facts = XdpFacts { interface: interface.name, queue: None, native, zero_copy: false };
        let (offered, wanted) = (Vec::with_capacity(count.into()), Vec::with_capacity(count.into()));
        Ok(DriverAnswers { local, slots, count, offered, wanted, facts, _link: link })
    }

    pub(in crate::transport) const fn facts(&self) -> &XdpFacts {
        &self.facts
    }

    /// Answers `sessions` and no others. A slot that the kernel does not set stays as it is: its session has its own end.
    pub(in crate::transport) fn offer(&mut self, sessions: &mut dyn Iterator<Item = DriverSession>) {
        let DriverAnswers { local, slots, count, offered, wanted, .. } = self;
        wanted.extend(sessions);
        offered.retain(|number| {
            let is_wanted = wanted.iter().any(|session| session.session == *number);
            is_wanted || slots.set(slot_of(*number, *count), &Slot::EMPTY).is_err()
        });
        for session in wanted.drain(..) {
            let is_new = !offered.contains(&session.session);
            if is_new && slots.set(slot_of(session.session, *count), &Slot::of(&session, local.ip())).is_ok() {
                offered.push(session.session);
            }
        }
    }

    /// Calls `visit` with each session that was answered, and its counts.
    pub(in crate::transport) fn read(&self, visit: &mut dyn FnMut(u16, DriverCounts)) {
        for session in &self.offered {
            let mut slot = Slot::EMPTY;
            if self.slots.get(slot_of(*session, self.count), &mut slot).is_ok()
                && let Some(counts) = Slot::counts(&slot)
            {
                visit(*session, counts);
            }
        }
    }
}

fn slot_of(session: u16, count: u16) -> u32 {
    u32::from(session & (count - 1))
}

/// The program where the interface runs programs fastest, and whether that is its driver.
fn attached(program: &Program, interface: &EthernetInterface) -> io::Result<(Link, bool)> {
    let mut last = None;
    for place in places(interface) {
        match program.attach(interface.index, place) {
            Ok(link) => return Ok((link, place == AttachMode::Native)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}

#[cfg(test)]
#[path = "../../../../latlab/tests/skip/mod.rs"]
mod skip;

/// The kernel runs the program here without an interface, for root.
#[cfg(test)]
mod tests {
    use latlab_sys::bpf::Program;

    use super::super::headers::{Flow, HeaderTemplate, header_bytes, parse};
    use super::*;
    use crate::units::{Nanos, ReflectorClock, Stamp};
    use crate::wire::{ProbeHeader, SealedAnswer, TagKey};

    const DROP: u32 = 1;
    const PASS: u32 = 2;
    const SEND_BACK: u32 = 3;
    const SESSION: u16 = 0x8123;
    const SLOTS: u16 = 16;

    struct Driver {
        slots: Map,
        program: Program,
        flow: Flow,
        size_bytes: usize,
    }

    fn now() -> Stamp<ReflectorClock> {
        Stamp::from_nanos(latlab_sys::clock::monotonic_ns())
    }

    fn session(flow: &Flow, size_bytes: usize) -> DriverSession {
        DriverSession {
            session: SESSION,
            peer: flow.local,
            size_bytes: size_bytes as u32,
            ends_at: now() + Nanos::from_secs(60),
            idle: Nanos::from_secs(10),
            newest_at: now(),
        }
    }

    impl Driver {
        /// A program that answers one session; `None` without the rights for it.
        fn new(ipv6: bool, size_bytes: usize) -> Option<Driver> {
            let address = |ipv4: &str, ipv6_address: &str| (if ipv6 { ipv6_address } else { ipv4 }).parse();
            let flow = Flow {
                local: address("10.98.62.1:4000", "[fd98:6200::1]:4000").expect("an address"),
                peer: address("10.98.62.2:9862", "[fd98:6200::2]:9862").expect("an address"),
                local_hardware: [2, 0, 0, 0, 0, 1],
                peer_hardware: [2, 0, 0, 0, 0, 2],
            };
            let slots = match Map::new(MapKind::Array, Slot::BYTES as u32, SLOTS.into()) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    skip::skip(format_args!("programs need CAP_BPF and CAP_NET_ADMIN: {error}"));
                    return None;
                }
                slots => slots.expect("a map"),
            };
            let program = Program::load(&answering(flow.peer, slots.number(), SLOTS)).expect("a program");
            let driver = Driver { slots, program, flow, size_bytes };
            driver.offer(&session(&flow, size_bytes));
            Some(driver)
        }

        fn offer(&self, session: &DriverSession) {
            self.slots.set(slot_of(SESSION, SLOTS), &Slot::of(session, self.flow.peer.ip())).expect("a slot");
        }

        /// Both families, with probes of each form.
        fn all() -> impl Iterator<Item = Driver> {
            let sizes = [24, 31, 32, 39, 40, 64, 1_452];
            sizes
                .into_iter()
                .flat_map(|size| [false, true].map(|ipv6| (ipv6, size)))
                .filter_map(|(ipv6, size)| Driver::new(ipv6, size))
        }

        fn probe(&self, counter: u64) -> Vec<u8> {
            self.packet(counter, None)
        }

        fn packet(&self, counter: u64, key: Option<&TagKey>) -> Vec<u8> {
            let mut payload: Vec<u8> = (0..self.size_bytes).map(|at| (at * 7) as u8).collect();
            ProbeHeader::write_probe(SESSION, counter, key, &mut payload);
            self.carrying(&payload)
        }

        fn carrying(&self, payload: &[u8]) -> Vec<u8> {
            let mut packet = vec![0; header_bytes(true) + payload.len()];
            let bytes = HeaderTemplate::new(&self.flow, 0).write(&mut packet, payload);
            packet.truncate(bytes);
            packet
        }

        fn verdict(&self, packet: &[u8]) -> u32 {
            self.program.run_with(packet).expect("a run").0
        }

        fn counts(&self) -> Option<DriverCounts> {
            let mut slot = Slot::EMPTY;
            self.slots.get(slot_of(SESSION, SLOTS), &mut slot).expect("a slot");
            Slot::counts(&slot)
        }
    }

    #[test]
    fn a_probe_is_turned_into_the_answer_of_a_reflector() {
        for driver in Driver::all() {
            let before = now();
            let (verdict, answered) = driver.program.run_with(&driver.probe(0)).expect("a run");
            assert_eq!(verdict, SEND_BACK, "{} B", driver.size_bytes);
            // The checksum is right, or there would be no datagram.
            let datagram = parse(&answered).expect("a datagram");
            assert_eq!((datagram.from, datagram.to), (driver.flow.peer, driver.flow.local));
            assert_eq!(datagram.from_hardware, driver.flow.peer_hardware);
            assert_eq!(datagram.payload.len(), driver.size_bytes);
            let facts = SealedAnswer::parse(datagram.payload).expect("an answer").open(None, 0).expect("without a tag");
            let received = facts.received.unwrap_or(before).as_nanos();
            assert!((before.as_nanos()..=now().as_nanos()).contains(&received), "{received}");
            let since = (now().as_nanos() as u64).wrapping_sub(facts.received_low) & 0xf_ffff_ffff;
            assert!(since < 1_000_000_000, "{since} ns ago");
            assert_eq!(
                (facts.received.is_some(), facts.cpu.is_some()),
                (driver.size_bytes >= 32, driver.size_bytes >= 40)
            );
            assert_eq!(facts.kernel_lead, None);
            assert!(facts.dwell.is_some_and(|dwell| dwell.0 < 1_000_000_000), "{:?}", facts.dwell);
            let head = [40, 32, 24].into_iter().find(|head| driver.size_bytes >= *head).expect("a form");
            assert!(datagram.payload[head..].iter().zip(head..).all(|(byte, at)| *byte == (at * 7) as u8), "padding");
            let counts = driver.counts().expect("counts");
            assert_eq!((counts.answered, counts.seen_before, counts.left_window), (1, 0, 0));
        }
    }

    #[test]
    fn each_counter_is_answered_once_within_a_window_of_64() {
        for driver in Driver::all() {
            let verdict = |counter: u64| driver.verdict(&driver.probe(counter));
            assert_eq!([5, 4, 5, 4, 6].map(verdict), [SEND_BACK, SEND_BACK, DROP, DROP, SEND_BACK]);
            assert_eq!([70, 6, 7, 69].map(verdict), [SEND_BACK, DROP, SEND_BACK, SEND_BACK], "6 has left the window");
            assert_eq!([1_000, 937, 936].map(verdict), [SEND_BACK, SEND_BACK, DROP]);
            // The low half of the counter overflows.
            assert_eq!([0x7fff_ffff, 0xffff_fff0, 0x1_0000_0005, 0xffff_fff1].map(verdict), [SEND_BACK; 4]);
            let counts = driver.counts().expect("counts");
            assert_eq!((counts.answered, counts.seen_before, counts.left_window), (12, 2, 2));
        }
    }

    #[test]
    fn what_cannot_be_checked_passes_to_the_socket() {
        for driver in Driver::all() {
            let header = header_bytes(driver.flow.local.is_ipv6());
            let key = TagKey::new(&[7; 16]);
            assert_eq!(driver.verdict(&driver.packet(0, Some(&key))), PASS, "a tag");
            let probe = driver.probe(0);
            let payload = &probe[header..];
            let changed = |at: usize, by: u8| {
                let mut changed = payload.to_vec();
                changed[at] ^= by;
                driver.carrying(&changed)
            };
            assert_eq!(driver.verdict(&changed(0, 0x11 ^ 0x13)), PASS, "DATA");
            assert_eq!(driver.verdict(&changed(1, 0x01)), PASS, "an unknown flag");
            assert_eq!(driver.verdict(&changed(3, 0x01)), PASS, "another session");
            assert_eq!(driver.verdict(&changed(23, 0x01)), PASS, "a tag without its flag");
            let longer = [payload, &[0]].concat();
            assert_eq!(driver.verdict(&driver.carrying(&longer)), PASS, "a byte more");
            let mut unchecked = probe.clone();
            unchecked[header - 2..header].fill(0);
            assert_eq!(driver.verdict(&unchecked), PASS, "no checksum");
            let head = [40, 32, 24].into_iter().find(|head| driver.size_bytes >= *head).expect("a form");
            for cut in driver.size_bytes - head + 1..=probe.len() - 14 {
                assert_eq!(driver.verdict(&probe[..probe.len() - cut]), PASS, "{cut} bytes less");
            }
            assert_eq!(driver.counts(), None);
            let stranger =
                Driver { flow: Flow { local: with_port(driver.flow.local, 4_001), ..driver.flow }, ..driver };
            assert_eq!(stranger.verdict(&stranger.probe(0)), PASS, "another port");
        }
    }

    fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
        address.set_port(port);
        address
    }

    /// The kernel of the sender leaves checksums to its device: all are the same, and a program cannot finish them.
    #[test]
    fn unfinished_checksums_pass_from_the_second_on() {
        for driver in Driver::all() {
            let header = header_bytes(driver.flow.local.is_ipv6());
            let slot = Slot::of(&session(&driver.flow, driver.size_bytes), driver.flow.peer.ip());
            let unfinished = &slot[Slot::UNFINISHED_CHECKSUM as usize..][..2];
            let verdicts = [0, 1, 2].map(|counter| {
                let mut probe = driver.probe(counter);
                probe[header - 2..header].copy_from_slice(unfinished);
                assert!(parse(&probe).is_some(), "an AF_XDP socket accepts it");
                driver.verdict(&probe)
            });
            assert_eq!(verdicts, [SEND_BACK, PASS, PASS]);
        }
    }

    #[test]
    fn a_session_that_has_ended_is_not_answered() {
        for driver in Driver::all() {
            let fresh = session(&driver.flow, driver.size_bytes);
            for ended in [
                DriverSession { ends_at: now() - Nanos(1), ..fresh },
                DriverSession { newest_at: now() - Nanos::from_secs(11), ..fresh },
            ] {
                driver.offer(&ended);
                assert_eq!(driver.verdict(&driver.probe(0)), PASS);
            }
            driver.offer(&fresh);
            assert_eq!(driver.verdict(&driver.probe(0)), SEND_BACK);
            driver.slots.set(slot_of(SESSION, SLOTS), &Slot::EMPTY).expect("a slot");
            assert_eq!(driver.verdict(&driver.probe(1)), PASS, "withdrawn");
        }
    }
}
