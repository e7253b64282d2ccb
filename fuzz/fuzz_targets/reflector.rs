//! Any datagrams from any senders at any time, with and without a key: a reflector never sends more than it receives,
//! and never answers a reply.
#![no_main]

use std::net::SocketAddr;

use arbitrary::Arbitrary;
use latlab::session::{PreSharedKey, ReceiverState, ReflectorAction, ReflectorLimits, SessionReflector};
use latlab::units::Stamp;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Received {
    from: ([u8; 4], u16),
    after_ns: u32,
    datagram: Vec<u8>,
    socket_drops: Option<u32>,
    /// Send the reply back as the next datagram, as another reflector would.
    echo: bool,
}

fuzz_target!(|script: (bool, Vec<Received>)| {
    let (keyed, script) = script;
    let line = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";
    let key = PreSharedKey::from_reader("fuzz", &line[..]).expect("a key");
    let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, keyed.then_some(&key), [3; 32]);
    let mut now_ns = 0i64;
    for received in script {
        now_ns += i64::from(received.after_ns);
        let mut datagram = received.datagram;
        let length = datagram.len();
        let from = SocketAddr::from(received.from);
        let socket_drops = received.socket_drops.map(u64::from);
        reflector.set_receiver_state(ReceiverState { socket_drops, ..ReceiverState::default() });
        let bytes = match reflector.handle(&mut datagram, from, Stamp::from_nanos(now_ns)) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => continue,
            ReflectorAction::Reply(bytes) => bytes,
            ReflectorAction::Reflect(pending) => pending.seal(Stamp::from_nanos(now_ns), None, &mut datagram),
        };
        assert!(bytes <= length);
        if received.echo {
            let again = reflector.handle(&mut datagram[..bytes], from, Stamp::from_nanos(now_ns));
            assert!(matches!(again, ReflectorAction::Drop(_)), "a reply was answered");
        }
    }
    let counters = *reflector.counters(Stamp::from_nanos(now_ns));
    assert!(counters.replied_bytes <= counters.received_bytes);
});
