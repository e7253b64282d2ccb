//! Packets and POLLs of a session's stream, repeated, altered, out of order, and noise: the counts never fall and never
//! exceed what was sent, and a reply never exceeds its request.
#![no_main]

use std::net::SocketAddr;

use arbitrary::Arbitrary;
use latlab::session::{PreSharedKey, ReflectorAction, ReflectorLimits, SessionReflector};
use latlab::units::{Nanos, Stamp};
use latlab::wire::*;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Act {
    Data { counter: u64, altered: Option<(u8, u8)> },
    Poll { number: u64, wants_cpu: bool, altered: Option<(u8, u8)> },
    Noise(Vec<u8>),
}

fuzz_target!(|script: Vec<Act>| {
    let line = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";
    let setup = PreSharedKey::from_reader("fuzz", &line[..]).map(|key| (key.setup_key(), key)).expect("a key");
    let (setup, key) = setup;
    let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, Some(&key), [3; 32]);
    let from = SocketAddr::from(([127, 0, 0, 1], 4_000));
    let now = Stamp::from_nanos(0);
    let mut send = |datagram: &mut [u8]| match reflector.handle(datagram, from, now) {
        ReflectorAction::Drop(_) | ReflectorAction::Counted => 0,
        ReflectorAction::Reply(bytes) => bytes,
        ReflectorAction::Reflect(pending) => pending.seal(now, None, datagram),
    };
    let mut hello = hello_datagram(&[1; 16]);
    let bytes = send(&mut hello);
    let cookie = Cookie::parse(&hello[..bytes]).expect("a COOKIE");
    let second = Nanos::from_secs(1);
    let terms = Terms {
        size_bytes: 64,
        interval: Nanos::ZERO,
        duration: second,
        idle: second,
        stream: StreamTerms::NONE,
        down: false,
        confirms: true,
    };
    let mut opening = [0; OPEN_BYTES];
    Open { nonce: [1; 16], token: cookie.token, terms }.write(&setup.codes(), &mut opening);
    let bytes = send(&mut opening);
    let accept = Accept::parse(&opening[..bytes]).expect("an ACCEPT");
    let keys = setup.session(&[1; 16], &accept.reflector_nonce, accept.session);

    let (mut sent, mut last) = (0u64, 0);
    for act in script {
        let (mut datagram, altered) = match act {
            Act::Data { counter, altered } => {
                let mut datagram = vec![0; 64];
                ProbeHeader::write_data(accept.session, counter, Some(&keys.probes), &mut datagram);
                (datagram, altered)
            }
            Act::Poll { number, wants_cpu, altered } => {
                let mut datagram = [0; POLL_BYTES];
                StreamPoll { session: accept.session, nonce: [1; 16], number, wants_cpu, credit_bytes: number }
                    .write(&keys.close, &mut datagram);
                (datagram.to_vec(), altered)
            }
            Act::Noise(noise) => (noise, None),
        };
        if let Some((at, with)) = altered {
            let at = usize::from(at) % datagram.len();
            datagram[at] ^= with;
        }
        sent += 1;
        let length = datagram.len();
        let bytes = send(&mut datagram);
        assert!(bytes <= length);
        if let Ok(tally) = StreamTally::parse(&datagram[..bytes]) {
            assert!(keys.close.verify(&datagram[..bytes]));
            assert!(tally.packets >= last && tally.packets < sent && tally.bytes == 64 * tally.packets);
            assert!(tally.reordered <= tally.packets && tally.packets <= tally.spanned);
            last = tally.packets;
        }
    }
});
