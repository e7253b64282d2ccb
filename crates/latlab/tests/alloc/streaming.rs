//! The loop of a stream and the reflector that counts it.

use std::sync::atomic::{AtomicBool, Ordering};

use latlab::clock::{Clock, Monotonic};
use latlab::measure::stream::{MeterPoint, StreamMeter, StreamSender, TokenSchedule};
use latlab::plan::Schedule;
use latlab::plan::{PathSpec, SendMode, SenderSocketOptions, WaitMode};
use latlab::session::{NativeSession, PreSharedKey, SessionParams, UpStream, open};
use latlab::transport::{BurstTransport, UdpReflector, UdpStream, UdpTransport, WaitStrategy};
use latlab::units::Nanos;
use latlab::wire::SocketTerms;

use crate::armed::{Reflected, reflect};
use crate::calls_of;

const WAITING: WaitStrategy = WaitStrategy::Until { busy_poll: false };

/// Calls to the allocator; the last counts received; packets sent.
type Sent = (u64, Option<MeterPoint>, u64);

/// Streams in a session as in `stream` over `transport` to a reflector on `socket`: paced, then as fast as it goes.
fn streamed<T: BurstTransport>(
    transport: impl FnOnce(std::net::SocketAddr) -> T,
    stream: SocketTerms,
    arm: impl FnOnce(T, NativeSession) -> StreamSender<T, Monotonic>,
) -> (Sent, Reflected) {
    let key = PreSharedKey::generate().expect("chance");
    let socket = UdpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block).expect("a port");
    let mut transport = transport(socket.local_address());
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reflecting = reflect(scope, socket, Some(&key), &stop);
        let second = Nanos::from_secs(1);
        let params = SessionParams::new("loopback", [7; 16], 1_400, Schedule::Closed, None, second).with_socket(stream);
        let opened = open(&mut transport, &Monotonic, Some(&key), &params, &never);
        let ran = opened.map(|session| {
            assert_eq!(session.terms().socket, stream, "granted");
            let mut stream = arm(transport, session);
            let begin = Monotonic.now();
            let mut meter = StreamMeter::new(begin);
            let mut paced = TokenSchedule::new(begin, 1, 2_000).in_bursts_of(64);
            let calls = calls_of(|| {
                stream.run(&mut paced, &mut meter, begin + Nanos::from_millis(350), &never).expect("it runs");
                let mut at_will = TokenSchedule::unpaced(Monotonic.now()).in_bursts_of(64);
                let end = Monotonic.now() + Nanos::from_millis(20);
                stream.run(&mut at_will, &mut meter, end, &never).expect("it runs");
            });
            (calls, meter.last().copied(), stream.sent_and_refused().0)
        });
        stop.store(true, Ordering::Relaxed);
        let reflected = reflecting.join().expect("no panic");
        (ran.expect("a session"), reflected)
    })
}

#[test]
fn a_load_and_its_counting_allocate_nothing() {
    let open = |peer| UdpTransport::open(&PathSpec::SYSTEM, peer, WAITING).expect("a path");
    let arm = |transport, session| StreamSender::new(transport, Monotonic, UpStream::new(session));
    let ((sender_calls, last, sent), (reflector_calls, answered)) = streamed(open, SocketTerms::NONE, arm);
    assert_eq!((sender_calls, reflector_calls), (0, 0));
    assert!(answered == 0 && sent > 0, "{sent} sent");
    assert!(last.is_some_and(|point| point.tally.packets > 0), "{last:?}");
}

#[test]
fn a_measured_stream_allocates_nothing_in_any_mode() {
    for mode in [SendMode::Send, SendMode::Sendmmsg, SendMode::Gso] {
        for connect in [true, false] {
            let sending = SenderSocketOptions { mode, connect, ..SenderSocketOptions::PLAIN };
            let open = |peer| UdpStream::open(&PathSpec::SYSTEM, peer, WAITING, sending).expect("a path");
            let arm = |transport, session| {
                StreamSender::measured(transport, Monotonic, UpStream::with_options(session, sending)).expect("armed")
            };
            let batched = SocketTerms { batched: true, unchecked: false, stamped: false };
            let ((sender_calls, last, sent), (reflector_calls, answered)) = streamed(open, batched, arm);
            assert_eq!((sender_calls, reflector_calls), (0, 0), "{sending:?}");
            assert!(answered == 0 && sent > 0, "{sending:?}: {sent} sent");
            let tally = last.expect("a TALLY").tally;
            assert!(tally.packets > 0 && tally.cpu.is_some_and(|cpu| cpu > Nanos::ZERO), "{sending:?}: {tally:?}");
        }
    }
}
