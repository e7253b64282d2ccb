use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::*;
use crate::plan::DdsSpec;
use crate::transport::{ListenAddress, ListenOptions, Tcp, TransportFamily};

const CAPS: ConnectionCaps = ConnectionCaps { connections: 4, per_prefix: 4, per_second: 1_000 };

fn reflector(wait: WaitMode) -> TcpReflector {
    TcpReflector::bind(([127, 0, 0, 1], 0).into(), wait, CAPS).expect("a port")
}

fn connected(reflector: &TcpReflector) -> TcpStream {
    let stream = TcpStream::connect(reflector.local_address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    stream
}

/// Has `reflector` receive messages until `done` returns a value.
fn until<T>(
    reflector: &mut TcpReflector,
    mut done: impl FnMut(&mut TcpReflector, &[u8], SocketAddr) -> Option<T>,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut buffer = vec![0; 65_508];
    loop {
        if let Some((bytes, from)) = reflector.receive(&mut buffer).expect("epoll works")
            && let Some(done) = done(reflector, &buffer[..bytes], from)
        {
            return done;
        }
        assert!(Instant::now() < deadline, "time is up");
    }
}

/// Has `reflector` serve its connections, which send no message, until `done` returns true.
fn idle(reflector: &mut TcpReflector, mut done: impl FnMut(&TcpReflector) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done(reflector) {
        reflector.close_idle(|_| true);
        assert_eq!(reflector.receive(&mut [0; 128]).expect("epoll works"), None);
        assert!(Instant::now() < deadline, "time is up");
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

/// Sends `message`, has it answered with the same bytes, and reads the answer.
fn round_trip(reflector: &mut TcpReflector, stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(&framed(message)).expect("sent");
    let local = stream.local_addr().expect("connected");
    until(reflector, |reflector, came, from| {
        assert_eq!((came, from), (message, local));
        reflector.reply(came, from).expect("replied");
        Some(())
    });
    let mut answer = vec![0; 2 + message.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, framed(message));
}

#[test]
fn a_single_connection_and_several_get_their_own_answers() {
    for wait in [WaitMode::Block, WaitMode::Spin] {
        let mut reflector = reflector(wait);
        let mut one = connected(&reflector);
        round_trip(&mut reflector, &mut one, &[1; 24]);
        assert!(reflector.single.is_some());
        let mut other = connected(&reflector);
        for size in [24, 1_000, 65_507] {
            round_trip(&mut reflector, &mut other, &vec![2; size]);
            round_trip(&mut reflector, &mut one, &vec![1; size]);
        }
        assert!(reflector.single.is_none());
        let closed = other.local_addr().expect("connected");
        drop(other);
        idle(&mut reflector, |reflector| reflector.has_connection_work() && !reflector.closed.is_empty());
        assert_eq!((reflector.next_closed(), reflector.next_closed()), (Some(closed), None));
        round_trip(&mut reflector, &mut one, &[1; 24]);
        assert!(reflector.single.is_some(), "{wait:?}");
    }
}

#[test]
fn a_listener_on_every_address_accepts_both_families() {
    let address = ListenAddress::All { port: 0 };
    let options = ListenOptions {
        address,
        wait: WaitMode::Block,
        caps: CAPS,
        single_sender: false,
        dds: DdsSpec::default(),
        queue: 0,
        in_driver: false,
    };
    let mut reflector = Tcp::listen(&options).expect("a port").socket;
    let port = reflector.local_address().port();
    let mut addresses = vec![SocketAddr::from(([127, 0, 0, 1], port)), ([127, 0, 0, 77], port).into()];
    if reflector.local_address().is_ipv6() && std::net::UdpSocket::bind("[::1]:0").is_ok() {
        addresses.push((Ipv6Addr::LOCALHOST, port).into());
    }
    for address in addresses {
        let mut stream = TcpStream::connect(address).expect("a connection");
        assert_eq!(stream.peer_addr().expect("connected"), address);
        round_trip(&mut reflector, &mut stream, &[7; 30]);
    }
}

#[test]
fn connections_above_the_caps_are_closed_at_once() {
    for (caps, accepted) in [(CAPS, 4), (ConnectionCaps { per_second: 2, ..CAPS }, 2)] {
        let mut reflector = TcpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Spin, caps).expect("a port");
        // All connect in one second of the limit. If a new second begins meanwhile, more are accepted: allowed below.
        let mut streams: Vec<TcpStream> = (0..8).map(|_| connected(&reflector)).collect();
        idle(&mut reflector, |reflector| reflector.tally.accepted + reflector.tally.over_caps == 8);
        let tally = reflector.tally;
        assert!(
            (accepted..=accepted * 2).contains(&tally.accepted) && tally.accepted <= 4 && tally.over_caps > 0,
            "{tally:?}"
        );
        let mut closed = 0;
        for stream in &mut streams[tally.accepted as usize..] {
            closed += u64::from(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)));
        }
        assert_eq!(closed, tally.over_caps);
        // A free slot is used again.
        streams.truncate(1);
        idle(&mut reflector, |reflector| reflector.slots.iter().filter(|slot| slot.is_occupied()).count() == 1);
        std::thread::sleep(Duration::from_secs(1));
        let mut late = connected(&reflector);
        round_trip(&mut reflector, &mut late, &[7; 24]);
    }
}

#[test]
fn a_new_connection_takes_the_place_of_the_oldest_one_without_a_session() {
    let caps = ConnectionCaps { connections: 4, per_prefix: 2, ..CAPS };
    let mut reflector = TcpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block, caps).expect("a port");
    let peer = |network: u8, port: u16| SocketAddr::from(([192, 0, network, 7], port));
    let has_session = |other| [peer(2, 1), peer(7, 1)].contains(&other);
    for (new, replaced) in [
        (peer(2, 1), None),
        (peer(2, 2), None),
        // The network has its share.
        (peer(2, 3), Some(peer(2, 2))),
        (peer(3, 1), None),
        (peer(4, 1), None),
        // All places are taken.
        (peer(5, 1), Some(peer(2, 3))),
        (peer(6, 1), Some(peer(3, 1))),
        (peer(7, 1), Some(peer(4, 1))),
        (peer(7, 2), Some(peer(5, 1))),
        (peer(7, 3), Some(peer(7, 2))),
    ] {
        let connection = (connected(&reflector).into(), new);
        assert!(reflector.place(connection, has_session).is_none(), "{new}");
        assert_eq!(reflector.next_closed(), replaced, "for {new}");
    }
    assert!(reflector.place((connected(&reflector).into(), peer(8, 1)), |_| true).is_some(), "each has a session");
}

#[test]
fn an_invalid_length_closes_the_connection() {
    let mut reflector = reflector(WaitMode::Block);
    let mut stream = connected(&reflector);
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    stream.write_all(&[0, 3, 1, 2, 3]).expect("sent");
    // "GE" is a valid length, of a message that stays incomplete; 23 is below the shortest message.
    let mut other = connected(&reflector);
    other.write_all(&[0, 23, 1]).expect("sent");
    idle(&mut reflector, |reflector| reflector.tally.malformed == 1);
    assert_eq!(other.read(&mut [0; 8]).expect("closed in order"), 0);
}

#[test]
fn connections_without_session_or_progress_are_closed_after_their_time() {
    let mut reflector = reflector(WaitMode::Block);
    let (silent, mut half, mut kept) = (connected(&reflector), connected(&reflector), connected(&reflector));
    half.write_all(&[0, 100, 1, 2, 3]).expect("sent");
    round_trip(&mut reflector, &mut kept, &[7; 24]);
    idle(&mut reflector, |reflector| reflector.tally.accepted == 3);
    let kept_peer = kept.local_addr().expect("connected");
    let check = |reflector: &mut TcpReflector| {
        reflector.check_at_ns = 0;
        reflector.close_idle(|peer| peer == kept_peer);
    };
    (0..5).for_each(|_| check(&mut reflector));
    assert_eq!((reflector.tally.without_session, reflector.tally.stuck), (0, 0));
    check(&mut reflector);
    assert_eq!((reflector.tally.without_session, reflector.tally.stuck), (1, 1));
    // Half a message is tolerated longer in a connection with a session, but not without a limit.
    kept.write_all(&[0, 100, 1]).expect("sent");
    idle(&mut reflector, |reflector| {
        reflector.slots.iter().any(|slot| slot.is_occupied() && slot.has_partial_message())
    });
    (0..30).for_each(|_| check(&mut reflector));
    assert_eq!(reflector.tally.stuck, 1);
    check(&mut reflector);
    assert_eq!(reflector.tally.stuck, 2);
    drop((silent, half));
}

#[test]
fn a_peer_that_stops_reading_delays_no_other_and_gets_every_answer_whole() {
    let mut reflector = reflector(WaitMode::Block);
    let mut slow = connected(&reflector);
    let mut other = connected(&reflector);
    let message = vec![9; 60_000];
    let mut sending = slow.try_clone().expect("a second handle");
    let frame = framed(&message);
    let writing = std::thread::spawn(move || {
        (0..400).for_each(|_| sending.write_all(&frame).expect("sent"));
        sending.shutdown(Shutdown::Write).expect("closed for writing");
    });
    let slow_peer = slow.local_addr().expect("connected");
    let mut answered = until(&mut reflector, {
        let mut answered = 0;
        move |reflector, came, from| {
            reflector.reply(came, from).expect("kept until it can be sent");
            answered += 1;
            let is_stuck = reflector.slots.iter().any(|slot| slot.peer() == slow_peer && slot.has_unsent());
            is_stuck.then_some(answered)
        }
    });
    assert!(answered < 400, "the peer reads nothing");
    round_trip(&mut reflector, &mut other, &[1; 24]);
    let reading = std::thread::spawn(move || {
        let mut answer = vec![0; 60_002];
        (0..400).for_each(|_| {
            slow.read_exact(&mut answer).expect("an answer");
            assert!(answer[..2] == 60_000_u16.to_be_bytes() && answer[2..].iter().all(|byte| *byte == 9));
        });
    });
    while answered < 400 {
        answered = until(&mut reflector, |reflector, came, from| {
            reflector.reply(came, from).expect("the peer reads again");
            Some(answered + 1)
        });
    }
    while !reading.is_finished() {
        assert_eq!(reflector.receive(&mut [0; 128]).expect("epoll works"), None);
    }
    reading.join().expect("every answer is whole");
    writing.join().expect("every message was sent");
}

#[test]
fn a_reflector_dedicated_to_a_sender_closes_every_other_connection() {
    let mut reflector = reflector(WaitMode::Block).for_single_sender();
    let mut stranger = connected(&reflector);
    let mut sender = connected(&reflector);
    round_trip(&mut reflector, &mut sender, &[7; 24]);
    reflector.dedicate_to(sender.local_addr().expect("connected"));
    assert_eq!(stranger.read(&mut [0; 8]).expect("closed in order"), 0);
    TcpStream::connect(reflector.local_address()).expect_err("the listener is closed");
    round_trip(&mut reflector, &mut sender, &[8; 24]);
}
