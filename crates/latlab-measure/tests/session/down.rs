//! The exception of rule R2: a reflector sends a down-stream only to a sender that has proved address and key, within its
//! credit, and for at most a second after the last credit.

use latlab_measure::session::{DownDue, DownMessage, DownStream, DropReason, ReflectorLimits, SessionError, open};
use latlab_measure::wire::{MessageType, OPEN_BYTES, Open, POLL_BYTES, RefuseReason, StreamPoll, StreamTally};
use latlab_terms::units::Nanos;

use super::stage::{NEVER, Stage, key, wishes};

/// A megabyte a second in packets of 64 bytes: one per 64 µs.
const ALLOWED: ReflectorLimits = ReflectorLimits { down_bps: 8_000_000, ..ReflectorLimits::DEFAULT };
const GAP: Nanos = Nanos(64_000);

fn opened(stage: &mut Stage, keyed: bool, nonce: u8) -> Result<DownStream, SessionError> {
    let key = keyed.then(|| key(1));
    let clock = stage.clock.clone();
    let session = open(stage, &clock, key.as_ref(), &wishes(nonce).with_down_stream(Nanos::ZERO), &NEVER)?;
    Ok(DownStream::new(session).expect("a down-stream"))
}

fn streaming() -> (Stage, DownStream) {
    let mut stage = Stage::new(ALLOWED, Some(&key(1)));
    let down = opened(&mut stage, true, 1).expect("a session");
    (stage, down)
}

/// Everything that the reflector sends within `span` without a request, if it is called every 10 µs.
fn given(stage: &mut Stage, span: Nanos) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for _ in 0..span.0 / 10_000 {
        let mut buffer = [0; 128];
        while let DownDue::Packet { bytes, to } = stage.reflector.down_due(stage.clock.reflector(), &mut buffer) {
            assert_eq!(to, stage.from, "to the address that the session was opened from, and no other");
            packets.push(buffer[..bytes].to_vec());
        }
        stage.clock.advance(Nanos(10_000));
    }
    packets
}

fn credit(stage: &mut Stage, down: &mut DownStream, ahead: Nanos) -> StreamTally {
    let poll = down.poll((ahead.0 / GAP.0) as u64, u64::MAX).1.to_vec();
    let reply = stage.ask(&poll).expect("a TALLY");
    match down.decode(&reply) {
        DownMessage::Tally(tally) => tally,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_down_stream_needs_permission_and_a_key() {
    for (limits, keyed, limit) in [
        (ReflectorLimits::DEFAULT, true, 0),
        (ALLOWED, false, 0),
        (ReflectorLimits { down_bps: u64::MAX, ..ReflectorLimits::own(1) }, false, 0),
        (ReflectorLimits::own(1), true, 0),
    ] {
        let own_key = keyed.then(|| key(1));
        let mut stage = Stage::new(limits, own_key.as_ref());
        let refused = opened(&mut stage, keyed, 1).expect_err("refused");
        let SessionError::Refused { reason, limit: refused_limit, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!((*reason, *refused_limit), (RefuseReason::Down, limit));
        assert!(refused.to_string().contains("down-streams"), "{refused}");
        assert_eq!(given(&mut stage, Nanos::from_millis(10)).len(), 0);
        assert_eq!(stage.reflector.down_peer(), None);
    }
}

#[test]
fn nothing_is_sent_beyond_the_credit() {
    let (mut stage, mut down) = streaming();
    assert_eq!(down.gap(), GAP, "no faster than allowed");
    assert_eq!(given(&mut stage, Nanos::from_millis(100)).len(), 0);
    assert_eq!(credit(&mut stage, &mut down, Nanos::ZERO).packets, 0);
    assert_eq!(given(&mut stage, Nanos::from_millis(100)).len(), 0, "a POLL without credit is none");
    credit(&mut stage, &mut down, Nanos::from_millis(64));
    let packets = given(&mut stage, Nanos::from_millis(200));
    assert_eq!(packets.len(), 1_000);
    let now = stage.clock.reflector();
    let counters = *stage.reflector.counters(now);
    assert_eq!((counters.down, counters.down_bytes), (1_000, 64_000));
    // 3 is lost, 5 is received after 6, 7 twice.
    for number in (0..3).chain([4, 6, 5, 7, 7]).chain(8..1_000) {
        let heard = down.decode(&packets[number]);
        assert!(matches!(heard, DownMessage::Packet | DownMessage::Other));
    }
    let tally = credit(&mut stage, &mut down, Nanos::ZERO);
    let counts = down.counts();
    assert_eq!((tally.packets, tally.bytes, counts.packets, counts.bytes), (1_000, 64_000, 999, 63_936));
    assert_eq!((counts.spanned, counts.reordered, counts.seen_before), (1_000, 1, 1));
    assert_eq!(given(&mut stage, Nanos::from_millis(500)).len(), 0, "asking for the TALLY was no credit");
}

#[test]
fn sending_stops_a_second_after_the_last_credit() {
    let (mut stage, mut down) = streaming();
    for _ in 0..3 {
        credit(&mut stage, &mut down, Nanos::from_secs(3_600));
        for packet in given(&mut stage, Nanos::from_millis(100)) {
            down.decode(&packet);
        }
    }
    let last_second = given(&mut stage, Nanos::from_secs(1)).len() as i64;
    assert!(last_second <= Nanos::from_secs(1).0 / GAP.0, "an hour of credit is used for a second: {last_second}");
    assert_eq!(given(&mut stage, Nanos::from_secs(2)).len(), 0);
    credit(&mut stage, &mut down, Nanos::from_secs(3_600));
    stage.clock.advance(Nanos::from_millis(1_001));
    assert_eq!(given(&mut stage, Nanos::from_millis(500)).len(), 0, "credit is left, but it is stale");
    credit(&mut stage, &mut down, Nanos::from_secs(3_600));
    assert!(!given(&mut stage, Nanos::from_millis(100)).is_empty(), "and goes on with a fresh one");
}

#[test]
fn replayed_and_forged_messages_cause_no_traffic() {
    let (mut stage, mut down) = streaming();
    let captured = stage.requests.iter().find(|request| request[0] == MessageType::Open as u8).cloned();
    let captured = captured.expect("an OPEN was sent");
    let old_poll = down.poll(1_000, u64::MAX).1.to_vec();
    stage.ask(&old_poll).expect("a TALLY");
    assert_eq!(given(&mut stage, Nanos::from_millis(200)).len(), 1_000);

    // OPEN again: from its own address, from another, and altered.
    assert!(stage.ask(&captured).is_some(), "its ACCEPT again, since that may have been lost");
    let elsewhere = "127.0.0.1:40001".parse().expect("an address");
    assert_eq!(stage.ask_from(elsewhere, &captured), None);
    let mut forged = [0; OPEN_BYTES];
    let genuine = Open::parse(&captured).expect("an OPEN");
    Open { nonce: [9; 16], ..genuine }.write(&key(2).setup_key().codes(), &mut forged);
    assert_eq!(stage.ask(&forged), None);
    // POLL again, and a forged one with a higher number and the largest credit.
    assert_eq!(stage.ask(&old_poll), None);
    let genuine = StreamPoll::parse(&old_poll).expect("a POLL");
    let mut forged = [0; POLL_BYTES];
    StreamPoll { number: 99, credit_bytes: u64::MAX, ..genuine }.write(&key(2).setup_key().codes(), &mut forged);
    assert_eq!(stage.ask(&forged), None);
    assert_eq!(given(&mut stage, Nanos::from_secs(2)).len(), 0, "and none of that was credit");
    let now = stage.clock.reflector();
    assert_eq!(stage.reflector.counters(now).dropped(DropReason::SeenBefore), 1);

    let clock = stage.clock.clone();
    credit(&mut stage, &mut down, Nanos::from_millis(64));
    down.close(&mut stage, &clock).expect("a report");
    assert_eq!(given(&mut stage, Nanos::from_millis(100)).len(), 0, "the session is over");
    assert_eq!(stage.ask(&captured), None, "and does not come back");
}

#[test]
fn one_down_stream_is_granted_at_a_time() {
    let (mut stage, down) = streaming();
    let refused = opened(&mut stage, true, 2).expect_err("one is open");
    let SessionError::Refused { reason: RefuseReason::Down, limit: 8_000_000, .. } = refused else {
        panic!("{refused:?}")
    };
    let clock = stage.clock.clone();
    down.close(&mut stage, &clock).expect("a report");
    let mut down = opened(&mut stage, true, 3).expect("there is room again");
    credit(&mut stage, &mut down, GAP);
    assert_eq!(given(&mut stage, Nanos::from_millis(10)).len(), 1);
}

#[test]
fn down_packets_are_no_requests_and_altered_ones_do_not_count() {
    let (mut stage, mut down) = streaming();
    credit(&mut stage, &mut down, Nanos::from_millis(64));
    let packet = given(&mut stage, Nanos::from_millis(10)).swap_remove(0);
    assert!(MessageType::of(&packet).is_ok_and(MessageType::is_reply));
    assert_eq!(stage.ask(&packet), None, "R3");
    for request in [MessageType::Probe, MessageType::Data] {
        let mut renamed = packet.clone();
        renamed[0] = request as u8;
        assert_eq!(stage.ask(&renamed), None, "R3: another key, another type");
    }
    for at in 0..24 {
        let mut altered = packet.clone();
        altered[at] ^= 1;
        assert_eq!(down.decode(&altered), DownMessage::Other, "byte {at}");
    }
    assert_eq!(down.decode(&packet[..63]), DownMessage::Other);
    assert_eq!(down.decode(&packet), DownMessage::Packet);
    assert_eq!(down.decode(&packet), DownMessage::Other, "only once");
}
