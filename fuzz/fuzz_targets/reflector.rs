//! A reflector, with and without a key, hears anything from anywhere at any time, and never says more than it hears.
#![no_main]

use std::net::SocketAddr;

use arbitrary::Arbitrary;
use latlab::session::{Judgement, PreSharedKey, ReceiverState, ReflectorLimits, SessionReflector};
use latlab::units::Stamp;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Heard {
    from: ([u8; 4], u16),
    after_ns: u32,
    datagram: Vec<u8>,
    socket_drops: Option<u32>,
    /// Send the reply back as the next datagram, as another reflector would.
    echo: bool,
}

fuzz_target!(|script: (bool, Vec<Heard>)| {
    let (keyed, script) = script;
    let line = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";
    let key = PreSharedKey::from_reader("fuzz", &line[..]).expect("a key");
    let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, keyed.then_some(&key), [3; 32]);
    let mut now_ns = 0i64;
    for heard in script {
        now_ns += i64::from(heard.after_ns);
        let mut datagram = heard.datagram;
        let length = datagram.len();
        let from = SocketAddr::from(heard.from);
        let socket_drops = heard.socket_drops.map(u64::from);
        reflector.note_receiver(ReceiverState { socket_drops, ..ReceiverState::default() });
        let bytes = match reflector.judge(&mut datagram, from, Stamp::from_nanos(now_ns)) {
            Judgement::Drop(_) | Judgement::Counted => continue,
            Judgement::Reply(bytes) => bytes,
            Judgement::Reflect(pending) => pending.seal(Stamp::from_nanos(now_ns), None, &mut datagram),
        };
        assert!(bytes <= length);
        if heard.echo {
            let again = reflector.judge(&mut datagram[..bytes], from, Stamp::from_nanos(now_ns));
            assert!(matches!(again, Judgement::Drop(_)), "a reply was answered");
        }
    }
    let counters = *reflector.counters(Stamp::from_nanos(now_ns));
    assert!(counters.replied_bytes <= counters.received_bytes);
});
