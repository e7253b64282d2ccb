//! Packets and POLLs of a session's stream, repeated, altered, out of order, in trains, and noise: the counts never fall and
//! never exceed what was sent, a reply never exceeds its request, and a train is counted as its packets are one by one.
#![no_main]

use std::net::SocketAddr;

use arbitrary::Arbitrary;
use latlab::session::{PreSharedKey, ReflectorAction, ReflectorLimits, SessionReflector};
use latlab::units::{Nanos, Stamp};
use latlab::wire::*;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Act {
    Data { counter: u64, packets: u8, altered: Option<(u16, u8)> },
    Poll { number: u64, wants_cpu: bool, altered: Option<(u8, u8)> },
    Noise(Vec<u8>),
}

const SIZE: usize = 64;

fn from() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_000))
}

/// The bytes of the reply, which is written over `datagram`; 0 without one.
fn send(reflector: &mut SessionReflector, datagram: &mut [u8]) -> usize {
    let (length, now) = (datagram.len(), Stamp::from_nanos(0));
    let bytes = match reflector.handle(datagram, from(), now) {
        ReflectorAction::Drop(_) | ReflectorAction::Counted => 0,
        ReflectorAction::Reply(bytes) => bytes,
        ReflectorAction::Reflect(pending) => pending.seal(now, None, datagram),
    };
    assert!(bytes <= length);
    bytes
}

/// A reflector with one open session, its ACCEPT and its keys.
fn open(key: Option<&PreSharedKey>) -> (SessionReflector, Accept, Option<SessionKeys>) {
    let setup = key.map(PreSharedKey::setup_key);
    let codes = setup.as_ref().map_or(Codes::None, SetupKey::codes);
    let limits = ReflectorLimits { sessions: 2, ..ReflectorLimits::DEFAULT };
    let mut reflector = SessionReflector::new(limits, key, [3; 32]);
    let mut hello = hello_datagram(&[1; 16]);
    let bytes = send(&mut reflector, &mut hello);
    let cookie = Cookie::parse(&hello[..bytes]).expect("a COOKIE");
    let (size_bytes, second) = (SIZE as u32, Nanos::from_secs(1));
    let terms = Terms {
        size_bytes,
        interval: Nanos::ZERO,
        duration: second,
        idle: second,
        socket: SocketTerms::NONE,
        down: false,
        confirms: true,
        in_driver: false,
    };
    let mut opening = [0; OPEN_BYTES];
    Open { nonce: [1; 16], token: cookie.token, terms }.write(&codes, &mut opening);
    let bytes = send(&mut reflector, &mut opening);
    let accept = Accept::parse(&opening[..bytes]).expect("an ACCEPT");
    let keys = setup.map(|setup| setup.session(&[1; 16], &accept.reflector_nonce, accept.session));
    (reflector, accept, keys)
}

fn alter(datagram: &mut [u8], altered: Option<(usize, u8)>) {
    if let Some((at, with)) = altered.filter(|_| !datagram.is_empty()) {
        let at = at % datagram.len();
        datagram[at] ^= with;
    }
}

fuzz_target!(|script: (bool, Vec<Act>)| {
    let (keyed, script) = script;
    let line = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";
    let key = keyed.then(|| PreSharedKey::from_reader("fuzz", &line[..]).expect("a key"));
    let (mut one_by_one, accept, keys) = open(key.as_ref());
    let (mut by_trains, ..) = open(key.as_ref());
    let close = keys.as_ref().map_or(Codes::None, |keys| keys.close.clone());
    let (mut sent, mut last) = (0u64, 0);
    for act in script {
        match act {
            Act::Data { counter, packets, altered } => {
                let mut train = vec![0; (1 + usize::from(packets % 8)) * SIZE];
                for (packet, counter) in train.chunks_mut(SIZE).zip((0..8).map(|more| counter.wrapping_add(more))) {
                    ProbeHeader::write_data(accept.session, counter, keys.as_ref().map(|keys| &keys.probes), packet);
                }
                alter(&mut train, altered.map(|(at, with)| (usize::from(at), with)));
                sent += (train.len() / SIZE) as u64;
                let counted = by_trains.count_train(&train, SIZE, from(), Stamp::from_nanos(0));
                for packet in train.chunks_mut(SIZE) {
                    if !counted {
                        send(&mut by_trains, &mut packet.to_vec());
                    }
                    send(&mut one_by_one, packet);
                }
            }
            Act::Poll { number, wants_cpu, altered } => {
                let mut poll = [0; POLL_BYTES];
                let (session, nonce, credit_bytes) = (accept.session, [1; 16], number);
                StreamPoll { session, nonce, number, wants_cpu, credit_bytes }.write(&close, &mut poll);
                alter(&mut poll, altered.map(|(at, with)| (usize::from(at), with)));
                sent += 1;
                let mut same = poll;
                let bytes = send(&mut one_by_one, &mut poll);
                let same_bytes = send(&mut by_trains, &mut same);
                assert_eq!(poll[..bytes], same[..same_bytes], "a train is counted as its packets");
                if let Ok(tally) = StreamTally::parse(&poll[..bytes]) {
                    assert!(close.verify(&poll[..bytes]));
                    assert!(tally.packets >= last && tally.packets < sent && tally.bytes == 64 * tally.packets);
                    assert!(tally.reordered <= tally.packets && tally.packets <= tally.spanned);
                    last = tally.packets;
                }
            }
            Act::Noise(mut noise) => {
                sent += 1;
                send(&mut by_trains, &mut noise.clone());
                send(&mut one_by_one, &mut noise);
            }
        }
        let now = Stamp::from_nanos(0);
        assert_eq!(one_by_one.counters(now), by_trains.counters(now));
    }
});
