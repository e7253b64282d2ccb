//! The loop of a stream and the reflector that counts it.

use std::sync::atomic::{AtomicBool, Ordering};

use latlab::clock::{Clock, Monotonic};
use latlab::measure::stream::Stream;
use latlab::measure::stream_meter::StreamMeter;
use latlab::measure::token_schedule::TokenSchedule;
use latlab::plan::{PathSpec, WaitMode};
use latlab::schedule::Schedule;
use latlab::session::{PreSharedKey, SessionWishes, UpStream, open};
use latlab::transport::reflector::UdpReflector;
use latlab::transport::udp::{UdpTransport, Waiting};
use latlab::units::Nanos;

use crate::armed::reflect;
use crate::calls_of;

#[test]
fn a_stream_and_its_counting_allocate_nothing() {
    let key = PreSharedKey::fresh().expect("chance");
    let socket = UdpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block).expect("a port");
    let waiting = Waiting::Until { busy_poll: false };
    let mut transport = UdpTransport::open(&PathSpec::SYSTEM, socket.local_address(), waiting).expect("a path");
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reflecting = reflect(scope, socket, Some(&key), &stop);
        let second = Nanos::from_secs(1);
        let wishes = SessionWishes::new("loopback", [7; 16], 1_400, Schedule::Closed, None, second);
        let opened = open(&mut transport, &Monotonic, Some(&key), &wishes, &never);
        let ran = opened.map(|session| {
            let mut stream = Stream::new(transport, Monotonic, UpStream::new(session));
            let begin = Monotonic.now();
            let mut meter = StreamMeter::new(begin);
            let mut paced = TokenSchedule::new(begin, 1, 2_000);
            let calls = calls_of(|| {
                stream.run(&mut paced, &mut meter, begin + Nanos::from_millis(350), &never).expect("it runs");
                let mut at_will = TokenSchedule::at_will(Monotonic.now());
                let end = Monotonic.now() + Nanos::from_millis(20);
                stream.run(&mut at_will, &mut meter, end, &never).expect("it runs");
            });
            (calls, meter.last().copied(), stream.sent_and_refused().0)
        });
        stop.store(true, Ordering::Relaxed);
        let (reflector_calls, answered) = reflecting.join().expect("no panic");
        let (sender_calls, last, sent) = ran.expect("a session");
        assert_eq!((sender_calls, reflector_calls), (0, 0));
        assert!(answered == 0 && sent > 600, "{sent} sent");
        assert!(last.is_some_and(|point| point.tally.packets > 100), "{last:?}");
    });
}
