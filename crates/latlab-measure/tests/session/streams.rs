//! The wire rules for streams: DATA is counted and never answered, POLL is answered once.

use std::net::SocketAddr;

use latlab_measure::session::{DropReason, ProbeCodec, ReflectorLimits, UpStream, open};
use latlab_measure::wire::{Codes, MessageType, POLL_BYTES, SocketTerms, StreamPoll, StreamTally, TALLY_BYTES};
use latlab_terms::probe::Seq;
use latlab_terms::units::Nanos;

use super::stage::{NEVER, SOCKET_DROPS, Stage, key, wishes};

fn streaming(keyed: bool) -> (Stage, UpStream) {
    let key = keyed.then(|| key(1));
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, key.as_ref());
    let clock = stage.clock.clone();
    let session = open(&mut stage, &clock, key.as_ref(), &wishes(1), &NEVER).expect("a session");
    (stage, UpStream::new(session))
}

fn next(stream: &mut UpStream) -> Vec<u8> {
    let packet = stream.packets(1).bytes().to_vec();
    stream.advance(1);
    packet
}

fn tally(stage: &mut Stage, stream: &mut UpStream) -> StreamTally {
    let poll = stream.poll().1.to_vec();
    let reply = stage.ask(&poll).expect("a TALLY");
    assert!(reply.len() <= poll.len(), "R2");
    stream.decode_tally(&reply).expect("genuine")
}

fn dropped(stage: &mut Stage, reason: DropReason) -> u64 {
    let now = stage.clock.reflector();
    stage.reflector.counters(now).dropped(reason)
}

#[test]
fn data_is_counted_and_never_answered() {
    for keyed in [true, false] {
        let (mut stage, mut stream) = streaming(keyed);
        let before = tally(&mut stage, &mut stream);
        assert_eq!((before.packets, before.spanned), (0, 0));
        for _ in 0..100 {
            let packet = next(&mut stream);
            assert_eq!(stage.ask(&packet), None, "R2");
        }
        stage.clock.advance(Nanos::from_millis(100));
        let after = tally(&mut stage, &mut stream);
        assert_eq!((after.packets, after.bytes, after.spanned), (100, 6_400, 100));
        assert_eq!((after.at - before.at, after.socket_drops), (Nanos::from_millis(100), Some(SOCKET_DROPS)));
        assert_eq!(tally(&mut stage, &mut stream).packets, 100, "asking changes nothing");
        let now = stage.clock.reflector();
        let counters = *stage.reflector.counters(now);
        assert_eq!((counters.counted, counters.tallies, counters.answered), (100, 4, 0));
        let clock = stage.clock.clone();
        let report = stream.close(&mut stage, &clock).expect("a report");
        assert_eq!((report.answered, report.replayed), (0, 0));
    }
}

#[test]
fn a_tally_has_the_cpu_time_since_the_opening_if_requested() {
    let (mut stage, mut stream) = streaming(true);
    stage.clock.advance(Nanos::from_millis(100));
    let asked = stream.poll().1.to_vec();
    let reply = stage.ask(&asked).expect("a TALLY");
    // The simulated thread uses half of the time.
    assert_eq!(stream.decode_tally(&reply).and_then(|tally| tally.cpu), Some(Nanos::from_millis(50)));

    let (mut stage, mut stream) = streaming(false);
    let asked = StreamPoll::parse(stream.poll().1).expect("a POLL");
    let mut older = [0; POLL_BYTES];
    StreamPoll { wants_cpu: false, ..asked }.write(&Codes::None, &mut older);
    let reply = stage.ask(&older).expect("a TALLY");
    assert_eq!(stream.decode_tally(&reply).map(|tally| tally.cpu), Some(None), "an older sender receives no CPU time");
}

#[test]
fn terms_that_the_socket_does_not_support_are_not_granted() {
    for (abilities, granted) in
        [(SocketTerms::NONE, false), (SocketTerms { batched: true, unchecked: true, stamped: false }, true)]
    {
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, None);
        stage.reflector.set_supported_terms(abilities);
        let clock = stage.clock.clone();
        let asked = wishes(1).with_socket(SocketTerms { batched: true, unchecked: false, stamped: false });
        let session = open(&mut stage, &clock, None, &asked, &NEVER).expect("a session");
        assert_eq!(session.terms().socket, SocketTerms { batched: granted, unchecked: false, stamped: false });
        assert_eq!(stage.reflector.required_terms(clock.reflector()), session.terms().socket);
        session.close(&mut stage, &clock).expect("a report");
        assert_eq!(stage.reflector.required_terms(clock.reflector()), SocketTerms::NONE);
    }
}

#[test]
fn a_tally_counts_losses_duplicates_and_reordering() {
    let (mut stage, mut stream) = streaming(true);
    let packets: Vec<Vec<u8>> = (0..70_000).map(|_| next(&mut stream)).collect();
    // 3 and 5 are lost, 7 comes after 8, 9 comes twice, 2 below the replay window.
    for number in [0, 1, 4, 6, 8, 7, 9, 9, 69_999, 2] {
        assert_eq!(stage.ask(&packets[number]), None);
    }
    let tally = tally(&mut stage, &mut stream);
    assert_eq!((tally.packets, tally.spanned, tally.reordered), (8, 70_000, 1));
    assert_eq!((tally.seen_before, tally.left_window), (1, 1));
}

#[test]
fn forged_data_is_dropped_without_effect() {
    let (mut stage, mut stream) = streaming(true);
    let genuine = next(&mut stream);
    for at in [1, 2, 3, 4, 7, 8, 15, 16, 23] {
        let mut forged = genuine.clone();
        forged[at] ^= 1;
        assert_eq!(stage.ask(&forged), None, "byte {at}");
    }
    let mut probe = genuine.clone();
    probe[0] = MessageType::Probe as u8;
    assert_eq!(stage.ask(&probe), None, "R3: DATA under another type is no probe, and gets no answer");
    assert_eq!(stage.ask(&genuine[..63]), None);
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], 40_001));
    assert_eq!(stage.ask_from(elsewhere, &genuine), None);
    assert_eq!(dropped(&mut stage, DropReason::WrongAddress), 1);
    let tally = tally(&mut stage, &mut stream);
    assert_eq!((tally.packets, tally.wrong_size, tally.spanned), (0, 1, 0));
    assert!(tally.forged >= 6, "{tally:?}");
    assert_eq!(stage.ask(&genuine), None);
    assert_eq!(self::tally(&mut stage, &mut stream).packets, 1);
}

#[test]
fn a_poll_is_answered_once_and_only_to_its_session() {
    let (mut stage, mut stream) = streaming(true);
    let first = stream.poll().1.to_vec();
    let second = stream.poll().1.to_vec();
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 40_000));
    assert_eq!(stage.ask_from(elsewhere, &second), None, "R2: to the validated address only");
    assert!(stage.ask(&second).is_some());
    assert_eq!(stage.ask(&second), None, "R6: a captured POLL is of no use");
    assert_eq!(stage.ask(&first), None, "nor an older one");
    assert_eq!(dropped(&mut stage, DropReason::SeenBefore), 2);

    let mut forged = [0; POLL_BYTES];
    StreamPoll { session: 0, nonce: [1; 16], number: 99, wants_cpu: false, credit_bytes: 0 }
        .write(&key(2).setup_key().codes(), &mut forged);
    forged[2..4].copy_from_slice(&second[2..4]);
    assert_eq!(stage.ask(&forged), None, "R1");
    assert_eq!(dropped(&mut stage, DropReason::Code), 1);

    let clock = stage.clock.clone();
    let late = stream.poll().1.to_vec();
    stream.close(&mut stage, &clock).expect("a report");
    assert_eq!(stage.ask(&late), None, "R1: the session is over");
    assert_eq!(dropped(&mut stage, DropReason::NoSession), 1);
}

#[test]
fn two_reflectors_cannot_loop_over_a_tally() {
    let (mut one, mut stream) = streaming(true);
    let (mut other, _) = streaming(true);
    let poll = stream.poll().1.to_vec();
    let reply = one.ask(&poll).expect("a TALLY");
    assert!(MessageType::of(&reply).is_ok_and(MessageType::is_reply));
    assert_eq!((one.ask(&reply), other.ask(&reply)), (None, None));
    // With the type of a request its code is wrong, since that covers the type.
    let mut renamed = reply.clone();
    renamed[0] = MessageType::Poll as u8;
    assert_eq!(one.ask(&renamed), None);
    assert_eq!(dropped(&mut one, DropReason::Code), 1);
}

#[test]
fn a_sender_accepts_replies_to_its_own_polls_only() {
    let (mut stage, mut stream) = streaming(true);
    let poll = stream.poll().1.to_vec();
    let reply = stage.ask(&poll).expect("a TALLY");
    assert!(stream.decode_tally(&reply).is_some());
    for at in (0..TALLY_BYTES).step_by(7) {
        let mut altered = reply.clone();
        altered[at] ^= 4;
        assert_eq!(stream.decode_tally(&altered), None, "byte {at}");
    }
    let mut unasked = [0; TALLY_BYTES];
    let genuine = StreamTally::parse(&reply).expect("a TALLY");
    StreamTally { number: 7, ..genuine }.write(&Codes::None, &mut unasked);
    assert_eq!(stream.decode_tally(&unasked), None);
}

#[test]
fn packets_and_probes_both_end_the_idle_time() {
    let (mut stage, mut stream) = streaming(true);
    for _ in 0..31 {
        stage.clock.advance(Nanos::from_secs(1));
        let packet = next(&mut stream);
        assert_eq!(stage.ask(&packet), None);
    }
    assert_eq!(tally(&mut stage, &mut stream).packets, 31);
    stage.clock.advance(Nanos::from_secs(601));
    let packet = next(&mut stream);
    assert_eq!(stage.ask(&packet), None);
    assert_eq!(dropped(&mut stage, DropReason::Ended), 1, "R4");
}

#[test]
fn a_reused_slot_counts_from_zero() {
    let limits = ReflectorLimits { sessions: 1, ..ReflectorLimits::DEFAULT };
    let mut stage = Stage::new(limits, Some(&key(1)));
    let clock = stage.clock.clone();
    for nonce in 1..4 {
        let session = open(&mut stage, &clock, Some(&key(1)), &wishes(nonce), &NEVER).expect("a session");
        let mut stream = UpStream::new(session);
        let packet = next(&mut stream);
        assert_eq!(stage.ask(&packet), None);
        assert_eq!(tally(&mut stage, &mut stream).packets, 1);
        stream.close(&mut stage, &clock).expect("a report");
    }
}

#[test]
fn probes_and_data_share_one_counter() {
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, None);
    let clock = stage.clock.clone();
    let mut session = open(&mut stage, &clock, None, &wishes(1), &NEVER).expect("a session");
    let probe = session.encode(Seq(0)).to_vec();
    assert!(stage.ask(&probe).is_some());
    let mut data = probe.clone();
    data[0] = MessageType::Data as u8;
    assert_eq!(stage.ask(&data), None);
    assert_eq!(dropped(&mut stage, DropReason::SeenBefore), 1, "one window for both");
}
