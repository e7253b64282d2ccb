//! Every parser of the wire is total, an accepted message is written as it was read, and a train of packets verifies as each
//! of its packets does.
#![no_main]

use latlab::wire::*;
use libfuzzer_sys::fuzz_target;

/// Requires that `written` is the accepted message `read`. Bytes that the protocol does not define are ignored when they are
/// read, and written as zeros; so are the undefined bits of a byte of flags, and the code.
fn assert_same(read: &[u8], written: &[u8], flags_at: &[usize], ignored: &[std::ops::Range<usize>]) {
    assert_eq!(read.len(), written.len());
    for (at, (read, written)) in read.iter().zip(written).enumerate() {
        if flags_at.contains(&at) {
            assert_eq!(written & !read, 0, "byte {at} has a flag that was not read");
        } else if ignored.iter().any(|range| range.contains(&at)) {
            assert_eq!(*written, 0, "byte {at} is not defined");
        } else {
            assert_eq!(read, written, "byte {at}");
        }
    }
}

fn handshake(bytes: &[u8]) {
    if let Ok(hello) = Hello::parse(bytes) {
        assert!(bytes.len() >= HELLO_MIN_BYTES);
        assert_eq!(hello_datagram(&hello.nonce)[8..24], bytes[8..24]);
    }
    if let Ok(cookie) = Cookie::parse(bytes) {
        let mut again = [0xee; COOKIE_BYTES];
        cookie.write(&mut again);
        assert_same(bytes, &again, &[40], &[2..4, 41..48]);
        assert_eq!(Cookie::parse(&again), Ok(cookie));
    }
    if let Ok(open) = Open::parse(bytes) {
        let mut again = [0xee; OPEN_BYTES];
        open.write(&Codes::None, &mut again);
        assert_same(bytes, &again, &[44], &[2..4, 45..48, 72..128]);
        assert_eq!(Open::parse(&again), Ok(open));
    }
    if let Ok(accept) = Accept::parse(bytes) {
        let mut again = [0xee; ACCEPT_BYTES];
        accept.write(&Codes::None, &mut again);
        assert_same(bytes, &again, &[52], &[53..56, 80..112]);
        assert_eq!(Accept::parse(&again), Ok(accept));
    }
    if let Ok(refuse) = Refuse::parse(bytes) {
        let mut again = [0xee; REFUSE_BYTES];
        refuse.write(&Codes::None, &mut again);
        assert_same(bytes, &again, &[], &[2..4, 26..32, 40..72]);
        assert_eq!(Refuse::parse(&again), Ok(refuse));
    }
}

fn end_and_counts(bytes: &[u8]) {
    if let Ok(close) = Close::parse(bytes) {
        let mut again = [0xee; CLOSE_BYTES];
        close.write(&Codes::None, &mut again);
        assert_same(bytes, &again, &[24], &[25..128]);
        assert_eq!(Close::parse(&again), Ok(close));
    }
    if let Ok(report) = Report::parse(bytes) {
        let mut again = [0xee; REPORT_BYTES];
        report.write(&Codes::None, &mut again);
        assert_eq!(Report::parse(&again), Ok(report));
        let mut short = [0xee; SHORT_REPORT_BYTES];
        report.write_short(&Codes::None, &mut short);
        assert_eq!(Report::parse(&short), Ok(Report { socket_drops: None, ..report }));
        match bytes.len() {
            SHORT_REPORT_BYTES => assert_same(bytes, &short, &[], &[64..96]),
            _ if report.socket_drops.is_some() => assert_same(bytes, &again, &[72], &[73..112]),
            _ => assert_same(bytes, &again, &[72], &[64..72, 73..112]),
        }
    }
    if let Ok(poll) = StreamPoll::parse(bytes) {
        let mut again = [0xee; POLL_BYTES];
        poll.write(&Codes::None, &mut again);
        assert_same(bytes, &again, &[32], &[33..40, 48..160]);
        assert_eq!(StreamPoll::parse(&again), Ok(poll));
    }
    if let Ok(tally) = StreamTally::parse(bytes) {
        let mut again = [0xee; TALLY_BYTES];
        tally.write(&Codes::None, &mut again);
        let ignored = |absent: bool, range: std::ops::Range<usize>| if absent { range } else { 0..0 };
        let (drops, cpu) = (ignored(tally.socket_drops.is_none(), 104..112), ignored(tally.cpu.is_none(), 120..128));
        assert_same(bytes, &again, &[112], &[drops, 113..120, cpu, 128..160]);
        assert_eq!(StreamTally::parse(&again), Ok(tally));
    }
}

/// A header determines its bytes, and what is verified without a key is what is written without one.
fn probes(bytes: &[u8], key: &TagKey) {
    type Write = fn(u16, u64, Option<&TagKey>, &mut [u8]);
    let requests: [(MessageType, Write); 2] =
        [(MessageType::Probe, ProbeHeader::write_probe), (MessageType::Data, ProbeHeader::write_data)];
    for (message, write) in requests {
        let Ok(header) = ProbeHeader::parse(bytes, message) else { continue };
        let counter = u64::from(header.counter_low);
        let mut again = [0xee; PROBE_MIN_BYTES];
        write(header.session, counter, None, &mut again);
        assert_eq!(ProbeHeader::parse(&again, message), Ok(ProbeHeader { flags: 0, ..header }));
        assert!(header.verify(None, counter, bytes) == (bytes[1] == 0 && bytes[16..24] == [0; 8]));
        assert!(!header.verify(Some(key), counter, bytes) || header.tagged());
    }
    if let Ok(answer) = SealedAnswer::parse(bytes)
        && let Some(facts) = answer.open(None, u64::from(answer.counter_low()))
    {
        assert_eq!(facts.received.is_some(), bytes.len() >= FULL_STAMP_MIN_BYTES);
        assert!(facts.received.is_none_or(|stamp| stamp.as_nanos() as u32 == facts.received_low as u32));
        assert!(facts.received_low < 1 << 36);
        assert!(bytes.len() >= KERNEL_STAMP_MIN_BYTES || (facts.kernel_lead, facts.cpu) == (None, None));
    }
}

/// What [`Train`] accepts is accepted packet by packet, with counters that follow each other; and the other way round.
fn trains(bytes: &[u8]) {
    for each_bytes in [PROBE_MIN_BYTES, 40, bytes.len()] {
        let Some(train) = Train::parse(bytes, each_bytes) else { continue };
        assert_eq!((train.each_bytes(), train.packets() as usize), (each_bytes, bytes.len() / each_bytes));
        let first = u64::from(train.counter_low());
        let each = bytes.chunks(each_bytes).zip(first..).all(|(packet, counter)| {
            ProbeHeader::parse(packet, MessageType::Data).is_ok_and(|header| {
                let follows = header.session == train.session() && u64::from(header.counter_low) == counter;
                follows && header.verify(None, counter, packet)
            })
        });
        assert_eq!(train.verify(None, first), each);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = MessageHeader::parse(bytes) {
        assert_eq!(MessageType::of(bytes), Ok(header.message));
        assert_eq!((header.message as u8, header.version), (bytes[0], bytes[1]));
    }
    handshake(bytes);
    end_and_counts(bytes);
    probes(bytes, &TagKey::new(&[1; 16]));
    trains(bytes);
});
