//! The wire with random bytes: parsers are total, messages round-trip, and a reflector never sends more bytes than it
//! receives.

#[path = "session/stage.rs"]
mod stage;

use std::net::SocketAddr;

use latlab_measure::session::{ProbeCodec, ReflectorLimits, UpStream, open};
use latlab_measure::wire::*;
use latlab_terms::probe::Seq;
use latlab_terms::units::{Nanos, Stamp};
use proptest::collection::vec;
use proptest::prelude::*;

use stage::{NEVER, Stage, key, wishes};

/// Random bytes that often begin like a message, so that parsers read beyond the first byte.
fn datagrams() -> impl Strategy<Value = Vec<u8>> {
    let heads: Vec<u8> = (0..=u8::MAX).filter(|byte| MessageType::of(&[*byte]).is_ok()).collect();
    let lengths = prop_oneof![
        0..300usize,
        Just(COOKIE_BYTES),
        Just(OPEN_BYTES),
        Just(ACCEPT_BYTES),
        Just(REPORT_BYTES),
        Just(SHORT_REPORT_BYTES),
        Just(POLL_BYTES)
    ];
    (lengths, prop::sample::select(heads), 0..4u8, any::<u64>()).prop_flat_map(|(length, head, disguise, seed)| {
        vec(any::<u8>(), length).prop_map(move |mut bytes| {
            let mark = [head, 1, seed as u8 & 1, seed as u8, b'l', b'l', b't', b'b'];
            let known = [0, 1, 4, 8][usize::from(disguise)].min(bytes.len());
            bytes[..known].copy_from_slice(&mark[..known]);
            bytes
        })
    })
}

fn terms() -> impl Strategy<Value = Terms> {
    let spans = (0..=i64::MAX, 0..=i64::MAX, 0..=i64::MAX);
    (24..=u32::MAX, spans, any::<[bool; 3]>()).prop_map(|(size_bytes, spans, [batched, unchecked, stamped])| Terms {
        size_bytes,
        interval: Nanos(spans.0),
        duration: Nanos(spans.1),
        idle: Nanos(spans.2),
        socket: SocketTerms { batched, unchecked, stamped },
        down: batched && !unchecked,
        confirms: unchecked,
        in_driver: batched == unchecked,
    })
}

proptest! {
    #[test]
    fn every_parser_accepts_any_bytes(bytes in datagrams()) {
        let _ = MessageType::of(&bytes);
        let _ = MessageHeader::parse(&bytes);
        let _ = Hello::parse(&bytes);
        let _ = Cookie::parse(&bytes);
        let _ = Open::parse(&bytes);
        let _ = Accept::parse(&bytes);
        let _ = Refuse::parse(&bytes);
        let _ = Close::parse(&bytes);
        let _ = Report::parse(&bytes);
        let _ = StreamPoll::parse(&bytes);
        let _ = StreamTally::parse(&bytes);
        let _ = Codes::None.verify(&bytes);
        let tag_key = TagKey::new(&[1; 16]);
        for key in [None, Some(&tag_key)] {
            if let Ok(header) = ProbeHeader::parse(&bytes, MessageType::Probe) {
                let _ = header.verify(key, 7, &bytes);
            }
            if let Ok(header) = ProbeHeader::parse(&bytes, MessageType::Data) {
                let _ = header.verify(key, 7, &bytes);
            }
            if let Ok(answer) = SealedAnswer::parse(&bytes) {
                let _ = answer.open(key, 7);
            }
        }
    }

    #[test]
    fn messages_round_trip(
        nonce: [u8; 16], token: [u8; 16], other: [u8; 16], terms in terms(), session: u16, stamp: i64, limit: u64,
        counts: [u64; 5], socket_drops: Option<u64>, secret in vec(any::<u8>(), 16..40),
    ) {
        let codes = SetupKey::derive(&secret).codes();
        prop_assert_eq!(Hello::parse(&hello_datagram(&nonce)).map(|hello| hello.nonce), Ok(nonce));

        let cookie = Cookie::new(nonce, token, limit % 2 == 0);
        let mut bytes = [0; COOKIE_BYTES];
        cookie.write(&mut bytes);
        prop_assert_eq!(Cookie::parse(&bytes), Ok(cookie));

        let opened = Open { nonce, token, terms };
        let mut bytes = [0; OPEN_BYTES];
        opened.write(&codes, &mut bytes);
        prop_assert_eq!(Open::parse(&bytes), Ok(opened));
        prop_assert!(codes.verify(&bytes));

        let accept = Accept { session, nonce, reflector_nonce: other, anchor: Stamp::from_nanos(stamp), terms };
        let mut bytes = [0; ACCEPT_BYTES];
        accept.write(&codes, &mut bytes);
        prop_assert_eq!(Accept::parse(&bytes), Ok(accept));

        let refuse = Refuse { nonce, reason: RefuseReason::ALL[usize::from(session % 7)], limit };
        let mut bytes = [0; REFUSE_BYTES];
        refuse.write(&codes, &mut bytes);
        prop_assert_eq!(Refuse::parse(&bytes), Ok(refuse));

        let close = Close { session, nonce, wants_socket_drops: limit % 2 == 0 };
        let mut bytes = [0; CLOSE_BYTES];
        close.write(&codes, &mut bytes);
        prop_assert_eq!(Close::parse(&bytes), Ok(close));

        let [answered, seen_before, left_window, forged, wrong_size] = counts;
        let report = Report { session, nonce, answered, seen_before, left_window, forged, wrong_size, socket_drops };
        let mut bytes = [0; REPORT_BYTES];
        report.write(&codes, &mut bytes);
        prop_assert_eq!(Report::parse(&bytes), Ok(report));
        let mut short = [0; SHORT_REPORT_BYTES];
        report.write_short(&codes, &mut short);
        prop_assert_eq!(Report::parse(&short), Ok(Report { socket_drops: None, ..report }));
    }

    #[test]
    fn polls_and_tallies_round_trip(
        nonce: [u8; 16], session: u16, number: u64, stamp: i64, counts: [u64; 8], socket_drops: Option<u64>,
        wants_cpu: bool, drops_merged: bool, cpu_ns: Option<i64>, secret in vec(any::<u8>(), 16..40),
    ) {
        let codes = SetupKey::derive(&secret).codes();
        let poll = StreamPoll { session, nonce, number, wants_cpu, credit_bytes: counts[0] };
        let mut bytes = [0; POLL_BYTES];
        poll.write(&codes, &mut bytes);
        prop_assert_eq!(StreamPoll::parse(&bytes), Ok(poll));
        prop_assert!(codes.verify(&bytes));

        let [packets, counted_bytes, spanned, reordered, seen_before, left_window, forged, wrong_size] = counts;
        let tally = StreamTally {
            session, nonce, number, at: Stamp::from_nanos(stamp), packets, bytes: counted_bytes, spanned, reordered,
            seen_before, left_window, forged, wrong_size, socket_drops, drops_merged,
            cpu: cpu_ns.map(Nanos),
        };
        let mut bytes = [0; TALLY_BYTES];
        tally.write(&codes, &mut bytes);
        prop_assert_eq!(StreamTally::parse(&bytes), Ok(tally));
        prop_assert!(codes.verify(&bytes));
        prop_assert!(StreamPoll::parse(&bytes).is_err());
    }

    #[test]
    fn data_packets_round_trip_and_are_no_probes(session: u16, counter: u64, size in 24..200usize, keyed: bool) {
        let key = keyed.then(|| TagKey::new(&[9; 16]));
        let mut datagram = vec![7; size];
        ProbeHeader::write_data(session, counter, key.as_ref(), &mut datagram);
        let header = ProbeHeader::parse(&datagram, MessageType::Data).unwrap();
        prop_assert_eq!((header.session, header.counter_low), (session, counter as u32));
        prop_assert!(header.verify(key.as_ref(), counter, &datagram));
        prop_assert!(ProbeHeader::parse(&datagram, MessageType::Probe).is_err());
    }

    #[test]
    fn the_counts_of_a_stream_agree_with_the_received_packets(
        script in vec((0..3u8, 0..40u64), 1..200), keyed: bool,
    ) {
        let key = keyed.then(|| key(1));
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, key.as_ref());
        let clock = stage.clock.clone();
        let mut stream = UpStream::new(open(&mut stage, &clock, key.as_ref(), &wishes(1), &NEVER).expect("a session"));
        let mut packets = Vec::new();
        let (mut seen, mut newest, mut reordered, mut twice) = (std::collections::HashSet::new(), 0, 0, 0);
        for (kind, back) in script {
            packets.push(stream.packets(1).bytes().to_vec());
            stream.advance(1);
            let last = packets.len() as u64 - 1;
            // Lost, in order, or an earlier one again.
            let arrived = match kind { 0 => continue, 1 => last, _ => last.saturating_sub(back) };
            prop_assert_eq!(stage.ask(&packets[arrived as usize]), None);
            if seen.insert(arrived) {
                reordered += u64::from(arrived < newest);
            } else {
                twice += 1;
            }
            newest = newest.max(arrived);
        }
        let poll = stream.poll().1.to_vec();
        let reply = stage.ask(&poll).expect("a TALLY");
        let tally = stream.decode_tally(&reply).expect("genuine");
        prop_assert_eq!(tally.packets, seen.len() as u64);
        prop_assert_eq!(tally.bytes, 64 * tally.packets);
        prop_assert_eq!(tally.spanned, if seen.is_empty() { 0 } else { newest + 1 });
        prop_assert_eq!((tally.reordered, tally.seen_before), (reordered, twice));
    }

    #[test]
    fn probes_and_answers_round_trip(
        session: u16, counter: u64, received_ns in 0..i64::MAX / 2, dwell_ns in 0..0xffff_ffffi64,
        lead_ns in 0..0xffff_ffffi64, cpu: u16, size in 24..200usize, keyed: bool, counter_low: u32,
    ) {
        let key = keyed.then(|| TagKey::new(&[9; 16]));
        let mut datagram = vec![0; size];
        ProbeHeader::write_probe(session, counter, key.as_ref(), &mut datagram);
        let header = ProbeHeader::parse(&datagram, MessageType::Probe).unwrap();
        prop_assert_eq!((header.session, header.counter_low), (session, counter as u32));
        prop_assert!(header.verify(key.as_ref(), counter, &datagram));

        let received = Stamp::from_nanos(received_ns);
        let kernel_received = Some(received - Nanos(lead_ns));
        let passage = Passage { counter_low, lag: Nanos(dwell_ns) };
        let (stamped, sent) = (true, Some(passage));
        let reflection = Reflection { session, counter, key, received, stamped, kernel_received, passage: sent };
        reflection.write(received + Nanos(dwell_ns), Some(cpu), &mut datagram);
        prop_assert!(ProbeHeader::parse(&datagram, MessageType::Probe).is_err());
        let facts = SealedAnswer::parse(&datagram).unwrap().open(key.as_ref(), counter).expect("genuine");
        prop_assert_eq!(facts.received_low, received_ns as u64 & 0xf_ffff_ffff);
        prop_assert_eq!(facts.dwell, Some(Nanos(dwell_ns)));
        prop_assert_eq!(facts.received, (size >= FULL_STAMP_MIN_BYTES).then_some(received));
        prop_assert_eq!(facts.cpu, (size >= KERNEL_STAMP_MIN_BYTES).then_some(cpu));
        prop_assert_eq!(facts.passage, (size >= PASSAGE_MIN_BYTES).then_some(passage));
        prop_assert_eq!(facts.kernel_lead, (size >= KERNEL_STAMP_MIN_BYTES).then_some(Nanos(lead_ns)));
    }

    #[test]
    fn counters_are_extended_anywhere_in_the_window(newest: u64, back in 0..65_536u64, ahead in 1..(1u64 << 32) - 65_536) {
        if let Some(counter) = newest.checked_sub(back) {
            prop_assert_eq!(extend_receive_counter(newest, REPLAY_WINDOW, counter as u32), counter);
            prop_assert_eq!(extend_sent_counter(newest, counter as u32), Some(counter));
        }
        if let Some(counter) = newest.checked_add(ahead) {
            prop_assert_eq!(extend_receive_counter(newest, REPLAY_WINDOW, counter as u32), counter);
        }
    }

    #[test]
    fn a_reflector_never_sends_more_than_it_receives(
        script in vec((datagrams(), any::<u16>(), 0..8u8, any::<u16>()), 1..60),
    ) {
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
        let clock = stage.clock.clone();
        let mut session = open(&mut stage, &clock, Some(&key(1)), &wishes(1), &NEVER).expect("a session");
        let streaming = open(&mut stage, &clock, Some(&key(1)), &wishes(2), &NEVER).expect("another session");
        let mut stream = UpStream::new(streaming);
        let mut genuine = stage.requests.clone();
        for (seq, (noise, port, kind, at)) in script.into_iter().enumerate() {
            let probe = session.encode(Seq(seq as u64)).to_vec();
            let mut datagram = match kind {
                0 => probe,
                6 => stream.poll().1.to_vec(),
                7 => {
                    stream.advance(1);
                    stream.packets(1).bytes().to_vec()
                }
                1 => hello_datagram(&[port as u8; 16]).to_vec(),
                2 => genuine[usize::from(at) % genuine.len()].clone(),
                3 => {
                    let mut altered = genuine[usize::from(at) % genuine.len()].clone();
                    let place = usize::from(port) % altered.len();
                    altered[place] ^= 1 << (at % 8);
                    altered
                }
                _ => noise,
            };
            if kind == 2 && at % 5 == 0 {
                datagram.truncate(usize::from(port) % (datagram.len() + 1));
            }
            let from = if port % 3 == 0 { SocketAddr::from(([192, 0, 2, 1], port)) } else { stage.from };
            if let Some(reply) = stage.ask_from(from, &datagram) {
                prop_assert!(reply.len() <= datagram.len());
                prop_assert!(MessageType::of(&reply).is_ok_and(MessageType::is_reply));
            }
            if !datagram.is_empty() {
                genuine.push(datagram);
            }
            stage.clock.advance(Nanos::from_millis(i64::from(port)));
        }
        let now = stage.clock.reflector();
        let counters = *stage.reflector.counters(now);
        prop_assert!(counters.replied_bytes <= counters.received_bytes);
        let judged: u64 = counters.rows().filter(|(name, _)| name.starts_with("drop-")).map(|(_, count)| count).sum();
        let answered_or_counted = counters.replied + counters.counted;
        prop_assert_eq!(counters.received, answered_or_counted + judged, "each is answered, counted or dropped");
    }

    #[test]
    fn a_sender_accepts_any_bytes(noise in vec(datagrams(), 1..40)) {
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
        let clock = stage.clock.clone();
        let mut session = open(&mut stage, &clock, Some(&key(1)), &wishes(1), &NEVER).expect("a session");
        session.encode(Seq(3));
        for (index, datagram) in noise.iter().enumerate() {
            prop_assert_eq!(session.decode(datagram, Stamp::from_nanos(index as i64)), None);
        }
        prop_assert_eq!(session.strays().values().sum::<u64>(), noise.len() as u64);
    }
}
