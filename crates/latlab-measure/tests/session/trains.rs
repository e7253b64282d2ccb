//! Streams counted by the buffer: the counts always equal those of packets that are checked one by one.

use proptest::collection::vec;
use proptest::prelude::*;

use latlab_measure::session::{PreSharedKey, ReflectorLimits, UpStream, open};
use latlab_plan::plan::{SendMode, SenderSocketOptions};
use latlab_terms::units::Nanos;

use super::stage::{NEVER, Stage, key, wishes};

const SIZE: usize = 64;

/// An event of the simulated stream.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many packets arrive in one buffer.
    Arrive(u8),
    /// So many packets are lost.
    Lose(u8),
    /// More packets are lost than the replay window has.
    LoseMany,
    /// The last buffer arrives again.
    Repeat,
    /// So many packets arrive in reverse order.
    Reverse(u8),
    /// So many packets arrive, and the middle one has one bit of this byte inverted.
    Forge(u8, u8),
    /// So many packets arrive, and the last is truncated.
    Cut(u8),
    /// The sender polls the counts.
    Ask,
    /// Nothing happens for this time.
    Rest(u8),
}

fn events() -> impl Strategy<Value = Event> {
    let some = 1..=64u8;
    prop_oneof![
        6 => some.clone().prop_map(Event::Arrive),
        2 => some.clone().prop_map(Event::Lose),
        1 => Just(Event::LoseMany),
        1 => Just(Event::Repeat),
        1 => some.clone().prop_map(Event::Reverse),
        1 => (some.clone(), 0..64u8).prop_map(|(packets, byte)| Event::Forge(packets, byte)),
        1 => some.prop_map(Event::Cut),
        2 => Just(Event::Ask),
        1 => (1..12u8).prop_map(Event::Rest),
    ]
}

/// A simulation, its stream, and the last received buffer.
struct Counted {
    stage: Stage,
    stream: UpStream,
    last: Vec<u8>,
    /// Whether buffers are counted as trains if possible.
    by_buffer: bool,
    /// Packets that were counted as trains.
    in_trains: u64,
}

impl Counted {
    fn new(key: Option<&PreSharedKey>, by_buffer: bool) -> Counted {
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, key);
        let clock = stage.clock.clone();
        let session = open(&mut stage, &clock, key, &wishes(1), &NEVER).expect("a session");
        let stream =
            UpStream::with_options(session, SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN });
        Counted { stage, stream, last: Vec::new(), by_buffer, in_trains: 0 }
    }

    fn packets(&mut self, count: u8) -> Vec<u8> {
        let bytes = self.stream.packets(u64::from(count)).bytes().to_vec();
        assert_eq!(bytes.len(), usize::from(count) * SIZE);
        self.stream.advance(u64::from(count));
        bytes
    }

    /// Handles a buffer as the reflector's loop does.
    fn arrive(&mut self, bytes: Vec<u8>) {
        let (from, received) = (self.stage.from, self.stage.clock.reflector());
        if self.by_buffer && self.stage.reflector.count_train(&bytes, SIZE, from, received) {
            self.in_trains += (bytes.len() / SIZE) as u64;
        } else {
            bytes.chunks(SIZE).for_each(|packet| assert_eq!(self.stage.ask(packet), None, "R2"));
        }
        self.last = bytes;
    }

    fn live_through(&mut self, event: Event) -> String {
        match event {
            Event::Arrive(count) => {
                let bytes = self.packets(count);
                self.arrive(bytes);
            }
            Event::Lose(count) => self.stream.advance(u64::from(count)),
            Event::LoseMany => self.stream.advance(70_000),
            Event::Repeat => self.arrive(self.last.clone()),
            Event::Reverse(count) => {
                let bytes = self.packets(count);
                self.arrive(bytes.chunks(SIZE).rev().flatten().copied().collect());
            }
            Event::Forge(count, byte) => {
                let mut bytes = self.packets(count);
                bytes[usize::from(count / 2) * SIZE + usize::from(byte)] ^= 4;
                self.arrive(bytes);
            }
            Event::Cut(count) => {
                let mut bytes = self.packets(count);
                bytes.truncate(bytes.len() - 10);
                self.arrive(bytes);
            }
            Event::Ask => {
                let poll = self.stream.poll().1.to_vec();
                let reply = self.stage.ask(&poll);
                return format!("{:?}", reply.and_then(|reply| self.stream.decode_tally(&reply)));
            }
            Event::Rest(seconds) => self.stage.clock.advance(Nanos::from_secs(i64::from(seconds))),
        }
        let now = self.stage.clock.reflector();
        format!("{:?}", self.stage.reflector.counters(now))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffers_are_counted_as_their_packets_would_be(keyed: bool, events in vec(events(), 1..60)) {
        let key = keyed.then(|| key(1));
        let [mut whole, mut single] = [true, false].map(|by_buffer| Counted::new(key.as_ref(), by_buffer));
        for event in events {
            prop_assert_eq!(whole.live_through(event), single.live_through(event), "{:?}", event);
        }
        let end = [Event::Arrive(64), Event::Arrive(64), Event::Ask].map(|event| {
            (whole.live_through(event), single.live_through(event))
        });
        prop_assert!(end.iter().all(|(one, other)| one == other), "{:?}", end);
        prop_assert_eq!(single.in_trains, 0);
    }
}

#[test]
fn packets_in_order_are_counted_by_the_buffer() {
    for key in [None, Some(key(1))] {
        let mut counted = Counted::new(key.as_ref(), true);
        let mut live = |event| _ = counted.live_through(event);
        // The first packet is always checked separately, since no older counter exists.
        live(Event::Arrive(3));
        [Event::Arrive(60), Event::Lose(7), Event::Arrive(64), Event::LoseMany, Event::Arrive(1)]
            .into_iter()
            .for_each(&mut live);
        assert_eq!(counted.in_trains, 125);
        // Buffers with an irregular packet are checked packet by packet.
        for event in [Event::Repeat, Event::Reverse(2), Event::Forge(9, 3), Event::Cut(2)] {
            counted.live_through(event);
        }
        assert_eq!(counted.in_trains, 125);
        let elsewhere = std::net::SocketAddr::from(([127, 0, 0, 1], 40_001));
        let (bytes, received) = (counted.packets(2), counted.stage.clock.reflector());
        assert!(!counted.stage.reflector.count_train(&bytes, SIZE, elsewhere, received));
        assert!(counted.stage.reflector.count_train(&bytes, SIZE, counted.stage.from, received));
        assert!(!counted.stage.reflector.count_train(&bytes, SIZE, counted.stage.from, received), "R6: once");
    }
}
