//! Measured streams over real sockets: every way of sending, counted by a reflector that receives many packets at a time.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use latlab::clock::{Clock, Monotonic};
use latlab::diagnostics::Explain;
use latlab::measure::stream::{DownReceiver, MeterPoint, StreamError, StreamMeter, StreamSender, TokenSchedule};
use latlab::plan::Schedule;
use latlab::plan::{PathSpec, SendMode, SenderSocketOptions, WaitMode};
use latlab::probe::Seq;
use latlab::session::{
    DownStream, NativeSession, PreSharedKey, ProbeCodec, ReflectorAction, ReflectorLimits, Requests, SessionParams,
    SessionReflector, UpStream, open, random_bytes, serve,
};
use latlab::transport::sim::{Network, SimTransport};
use latlab::transport::{
    BurstTransport, Packets, SendModeError, Transport, UdpReflector, UdpStream, UdpTransport, WaitStrategy,
};
use latlab::units::{Nanos, Stamp};
use latlab::wire::SocketTerms;

#[allow(dead_code, reason = "shared with tests of the binary")]
mod scheduling;

use scheduling::precedence;

const WAITING: WaitStrategy = WaitStrategy::Until { busy_poll: false };
const SECOND: Nanos = Nanos::from_secs(1);
const BATCHED: SocketTerms = SocketTerms { batched: true, unchecked: false, stamped: false };
static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs `story` with a reflector on the address `loopback`.
fn served<T>(loopback: &str, wait: WaitMode, key: &PreSharedKey, story: impl FnOnce(SocketAddr) -> T) -> T {
    // The threads of the scope inherit the niceness that this sets.
    let _first = precedence();
    let loopback: SocketAddr = loopback.parse().expect("an address");
    let mut socket = UdpReflector::bind(loopback, wait).expect("a port");
    let address = SocketAddr::new(
        if loopback.ip().is_unspecified() { [127, 0, 0, 1].into() } else { loopback.ip() },
        socket.local_address().port(),
    );
    let limits = ReflectorLimits { down_bps: 80_000_000, ..ReflectorLimits::DEFAULT };
    let mut reflector = SessionReflector::new(limits, Some(key), random_bytes().expect("chance"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let requests = Requests { stop: &stop, counters: &NEVER };
        let serving = scope.spawn({
            let (socket, reflector) = (&mut socket, &mut reflector);
            move || serve(socket, reflector, &Monotonic, requests, || None, |_| {})
        });
        let ending = Ending(&stop);
        let result = story(address);
        drop(ending);
        serving.join().expect("no panic").expect("the socket works");
        result
    })
}

/// Ends the reflector even if `story` panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn params(size: u32) -> SessionParams {
    let nonce = random_bytes().expect("chance");
    SessionParams::new("loopback", nonce, size, Schedule::Closed, None, SECOND)
}

fn session(transport: &mut impl Transport, key: &PreSharedKey, size: u32, stream: SocketTerms) -> NativeSession {
    open(transport, &Monotonic, Some(key), &params(size).with_socket(stream), &NEVER).expect("a session")
}

fn stream(
    peer: SocketAddr,
    key: &PreSharedKey,
    size: u32,
    sending: SenderSocketOptions,
    terms: SocketTerms,
) -> StreamSender<UdpStream, Monotonic> {
    let mut transport = UdpStream::open(&PathSpec::SYSTEM, peer, WAITING, sending).expect("a path");
    let session = session(&mut transport, key, size, terms);
    assert_eq!(session.terms().socket, terms, "granted");
    StreamSender::measured(transport, Monotonic, UpStream::with_options(session, sending)).expect("armed")
}

/// Streams `pps` for 200 ms and returns the counts of both ends.
fn streamed(stream: &mut StreamSender<UdpStream, Monotonic>, pps: u64, burst: u16) -> MeterPoint {
    let begin = Monotonic.now();
    let mut schedule = TokenSchedule::new(begin, 1, pps).in_bursts_of(burst);
    let mut meter = StreamMeter::new(begin);
    stream.run(&mut schedule, &mut meter, begin + Nanos::from_millis(200), &NEVER).expect("it runs");
    stream.settle(&mut StreamMeter::new(Monotonic.now())).expect("a last TALLY")
}

#[test]
fn every_packet_of_each_way_of_sending_is_counted() {
    let key = PreSharedKey::generate().expect("chance");
    for (loopback, wait) in
        [("127.0.0.1:0", WaitMode::Block), ("[::1]:0", WaitMode::Spin), ("0.0.0.0:0", WaitMode::Block)]
    {
        served(loopback, wait, &key, |peer| {
            for mode in SendMode::ALL {
                for size in [24, 1_400] {
                    let sending = SenderSocketOptions { mode, connect: size == 24, ..SenderSocketOptions::PLAIN };
                    let mut stream = stream(peer, &key, size, sending, BATCHED);
                    let point = streamed(&mut stream, 20_000, sending.burst_packets(size));
                    let tally = point.tally;
                    let what = format!("{loopback} {sending:?} {size} B: {point:?}");
                    assert!(point.sent.packets >= 100, "more than one burst: {what}");
                    assert_eq!(tally.packets, point.sent.packets, "{what}");
                    assert_eq!(tally.bytes, u64::from(size) * tally.packets, "{what}");
                    assert_eq!((tally.spanned, tally.reordered, tally.seen_before), (tally.packets, 0, 0), "{what}");
                    assert_eq!((tally.forged, tally.wrong_size, tally.socket_drops), (0, 0, Some(0)), "{what}");
                    assert!(tally.cpu.is_some_and(|cpu| cpu > Nanos::ZERO && cpu < SECOND + SECOND), "{what}");
                    stream.close();
                }
            }
        });
    }
}

#[test]
fn socket_drops_count_merged_buffers_after_merged_buffers_have_arrived() {
    let key = PreSharedKey::generate().expect("chance");
    served("127.0.0.1:0", WaitMode::Block, &key, |peer| {
        let merged = |mode, terms| {
            let sending = SenderSocketOptions { mode, ..SenderSocketOptions::PLAIN };
            let mut stream = stream(peer, &key, 1_000, sending, terms);
            let merged = streamed(&mut stream, 100_000, sending.burst_packets(1_000)).tally.drops_merged;
            stream.close();
            merged
        };
        assert!(!merged(SendMode::Sendmmsg, BATCHED), "nothing merges those on loopback");
        assert!(!merged(SendMode::Gso, SocketTerms::NONE), "it was not requested");
        assert!(merged(SendMode::Gso, BATCHED));
    });
}

#[test]
fn packets_without_a_checksum_are_taken_while_a_session_asks_for_it() {
    let key = PreSharedKey::generate().expect("chance");
    for (loopback, always_taken) in [("127.0.0.1:0", true), ("[::1]:0", false)] {
        served(loopback, WaitMode::Block, &key, |peer| {
            for (terms, taken) in [
                (SocketTerms { batched: true, unchecked: true, stamped: false }, true),
                (SocketTerms { batched: false, unchecked: true, stamped: false }, true),
                (SocketTerms::NONE, always_taken),
            ] {
                let sending =
                    SenderSocketOptions { mode: SendMode::Sendmmsg, checksum: false, ..SenderSocketOptions::PLAIN };
                let mut stream = stream(peer, &key, 100, sending, terms);
                let begin = Monotonic.now();
                let mut schedule = TokenSchedule::new(begin, 1, 5_000).in_bursts_of(64);
                let mut meter = StreamMeter::new(begin);
                let ran = stream.run(&mut schedule, &mut meter, begin + Nanos::from_millis(200), &NEVER);
                assert!(ran.is_ok() && stream.sent_and_refused().0 >= 100);
                let counted = stream.settle(&mut StreamMeter::new(Monotonic.now()));
                match taken {
                    true => {
                        assert_eq!(counted.map(|point| point.tally.packets).ok(), Some(stream.sent_and_refused().0))
                    }
                    // The POLL does not arrive either.
                    false => assert!(matches!(counted, Err(StreamError::Silent { .. })), "{counted:?}"),
                }
                stream.close();
            }
        });
    }
}

#[test]
fn probes_are_answered_while_a_stream_session_is_open() {
    let key = PreSharedKey::generate().expect("chance");
    served("127.0.0.1:0", WaitMode::Block, &key, |peer| {
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, peer, WAITING).expect("a path");
        let mut probing = session(&mut transport, &key, 64, SocketTerms::NONE);
        let mut answered = |seq: u64| {
            transport.send(probing.encode(Seq(seq))).expect("sent");
            let mut buffer = [0; 256];
            let heard = (0..100).find_map(|_| {
                let bytes = transport.receive(&mut buffer, Nanos::from_millis(50)).expect("a socket of our own")?;
                probing.decode(&buffer[..bytes], Monotonic.now())
            });
            let answer = heard.expect("an answer");
            assert_eq!(answer.seq, Seq(seq));
            assert!(answer.reflector_sent >= answer.reflector_received);
        };
        answered(0);
        let sending = SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN };
        let mut stream = stream(peer, &key, 1_000, sending, BATCHED);
        for seq in 1..4 {
            streamed(&mut stream, 50_000, 64);
            answered(seq);
        }
        stream.close();
        answered(4);
    });
}

#[test]
fn a_down_stream_arrives_within_its_credit_and_ends_with_it() {
    let key = PreSharedKey::generate().expect("chance");
    for (loopback, wait) in
        [("127.0.0.1:0", WaitMode::Block), ("[::1]:0", WaitMode::Spin), ("0.0.0.0:0", WaitMode::Block)]
    {
        served(loopback, wait, &key, |peer| {
            let mut transport = UdpTransport::open(&PathSpec::SYSTEM, peer, WAITING).expect("a path");
            let asked = params(1_000).with_down_stream(Nanos::ZERO);
            let session = open(&mut transport, &Monotonic, Some(&key), &asked, &NEVER).expect("a session");
            let mut down = DownReceiver::new(transport, Monotonic, DownStream::new(session).expect("a down-stream"));
            let end = down.now() + Nanos::from_millis(500);
            down.run(end, end, &NEVER).expect("it runs");
            let point = down.settle().expect("a last TALLY");
            let what = format!("{loopback}: {point:?}");
            // 10,000 packets a second are allowed, for half a second and the credit that was left.
            assert!((1_000..=8_500).contains(&point.tally.packets), "{what}");
            assert_eq!((point.counts.packets, point.counts.bytes), (point.tally.packets, point.tally.bytes), "{what}");
            assert_eq!((point.counts.reordered, point.counts.seen_before, point.counts.forged), (0, 0, 0), "{what}");
            let counted = down.counts().packets;
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(down.settle().expect("a last TALLY").tally.packets, counted, "{what}");
            down.close();
        });
    }
}

/// Refuses every burst with EIO, as Linux before 6.11 does if the device computes no checksums.
struct NoOffload;

impl Transport for NoOffload {
    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, _: &mut [u8], _: Nanos) -> io::Result<Option<usize>> {
        Ok(None)
    }
}

impl BurstTransport for NoOffload {
    fn burst(&mut self, _: Packets<'_>) -> io::Result<usize> {
        Err(rustix::io::Errno::IO.into())
    }
}

#[test]
fn a_device_without_checksum_offload_is_named() {
    let key = PreSharedKey::generate().expect("chance");
    served("127.0.0.1:0", WaitMode::Block, &key, |peer| {
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, peer, WAITING).expect("a path");
        let session = session(&mut transport, &key, 1_000, BATCHED);
        let gso = SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN };
        let armed = StreamSender::measured(NoOffload, Monotonic, UpStream::with_options(session, gso));
        let mut stream = armed.expect("armed");
        let begin = Monotonic.now();
        let (mut schedule, mut meter) = (TokenSchedule::unpaced(begin), StreamMeter::new(begin));
        let ran = stream.run(&mut schedule, &mut meter, begin + SECOND, &NEVER);
        let Err(StreamError::SendMode(refusal)) = ran else { panic!("{ran:?}") };
        assert_eq!((refusal, refusal.explain().exit_code), (SendModeError::NoChecksumOffload, 3));
    });
}

/// A path with a delay of 100 µs to a far end that stops replying after 300 ms, and the arrival time of the last DATA.
fn abandoning(key: Option<&PreSharedKey>) -> (SimTransport<'static>, Rc<Cell<i64>>) {
    let network = Network {
        delay: Nanos::from_micros(100),
        jitter: Nanos::ZERO,
        loss: 0.0,
        duplication: 0.0,
        clock_read: Nanos(20),
        send_cost: Nanos(1_000),
        seed: 1,
        faults: Vec::new(),
    };
    let limits = ReflectorLimits { down_bps: 80_000_000, ..ReflectorLimits::DEFAULT };
    let mut reflector = SessionReflector::new(limits, key, [1; 32]);
    let from = SocketAddr::from(([127, 0, 0, 1], 40_000));
    let (gone, last) = (Nanos::from_millis(300), Rc::new(Cell::new(0)));
    let seen = Rc::clone(&last);
    let transport = SimTransport::new(
        network,
        Stamp::from_nanos(0),
        Box::new(move |datagram, at| {
            if datagram.first() == Some(&0x13) {
                seen.set(at.as_nanos());
            }
            if at.as_nanos() > gone.0 {
                return None;
            }
            let mut reply = datagram.to_vec();
            let ReflectorAction::Reply(bytes) = reflector.handle(&mut reply, from, Stamp::from_nanos(at.as_nanos()))
            else {
                return None;
            };
            reply.truncate(bytes);
            Some(reply)
        }),
    );
    (transport, last)
}

/// A stream to that far end.
fn abandoned() -> (StreamSender<SimTransport<'static>, impl Clock>, Rc<Cell<i64>>) {
    let (mut transport, last) = abandoning(None);
    let clock = transport.clock();
    let params = SessionParams::new("sim", [7; 16], 1_000, Schedule::Closed, None, SECOND);
    let session = open(&mut transport, &clock, None, &params, &NEVER).expect("a session");
    (StreamSender::measured(transport, clock, UpStream::new(session)).expect("armed"), last)
}

#[test]
fn a_stream_without_tallies_stops_sending_and_ends() {
    // The slice is long, or ends in the middle of the silence: the final POLL then has no time-out of its own.
    for slice in [Nanos::from_secs(60), Nanos::from_millis(1_700)] {
        let (mut stream, last) = abandoned();
        let begin = stream.now();
        let mut schedule = TokenSchedule::new(begin, 1, 20_000).in_bursts_of(64);
        let mut meter = StreamMeter::new(begin);
        let ran = stream.run(&mut schedule, &mut meter, begin + slice, &NEVER);
        let ended = ran.and_then(|()| stream.settle(&mut meter.after_last_packet(stream.now())).map(drop));
        assert!(matches!(ended, Err(StreamError::Silent { .. })), "{ended:?}");
        let (ended, held) = (stream.now().as_nanos(), last.get());
        assert!((1_600_000_000..2_000_000_000).contains(&ended), "{ended} ns");
        assert!((900_000_000..1_200_000_000).contains(&held), "the last DATA left at {held} ns");
    }
}

#[test]
fn a_down_stream_ends_within_two_seconds_if_its_sender_falls_silent() {
    for slice in [Nanos::from_secs(60), Nanos::from_millis(1_700), Nanos::from_millis(310)] {
        let key = PreSharedKey::generate().expect("chance");
        let (mut transport, _) = abandoning(Some(&key));
        let clock = transport.clock();
        let params =
            SessionParams::new("sim", [7; 16], 1_000, Schedule::Closed, None, SECOND).with_down_stream(Nanos::ZERO);
        let session = open(&mut transport, &clock, Some(&key), &params, &NEVER).expect("a session");
        let mut down = DownReceiver::new(transport, clock, DownStream::new(session).expect("a down-stream"));
        down.ready().expect("it is there");
        let begin = down.now();
        let end = begin + slice;
        down.begin(begin, slice, 0, false);
        let ended = down.run(end, end, &NEVER).and_then(|()| down.settle().map(drop));
        assert!(matches!(ended, Err(StreamError::Silent { .. })), "{ended:?}");
        let ended = down.now().as_nanos();
        assert!((1_600_000_000..2_000_000_000).contains(&ended), "{slice:?}: {ended} ns");
    }
}
