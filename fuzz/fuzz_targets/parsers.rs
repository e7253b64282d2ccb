//! Every parser of the wire and of the agent's frames is total, and an accepted message is written as it was read.
#![no_main]

use latlab::agent::frame::{FrameDecoder, preamble};
use latlab::wire::*;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = MessageHeader::parse(bytes);
    let _ = Hello::parse(bytes);
    if let Ok(cookie) = Cookie::parse(bytes) {
        let mut again = [0; COOKIE_BYTES];
        cookie.write(&mut again);
        assert_eq!(Cookie::parse(&again), Ok(cookie));
    }
    if let Ok(open) = Open::parse(bytes) {
        let mut again = [0; OPEN_BYTES];
        open.write(&Codes::None, &mut again);
        assert_eq!(Open::parse(&again), Ok(open));
    }
    if let Ok(accept) = Accept::parse(bytes) {
        let mut again = [0; ACCEPT_BYTES];
        accept.write(&Codes::None, &mut again);
        assert_eq!(Accept::parse(&again), Ok(accept));
    }
    if let Ok(refuse) = Refuse::parse(bytes) {
        let mut again = [0; REFUSE_BYTES];
        refuse.write(&Codes::None, &mut again);
        assert_eq!(Refuse::parse(&again), Ok(refuse));
    }
    if let Ok(close) = Close::parse(bytes) {
        let mut again = [0; CLOSE_BYTES];
        close.write(&Codes::None, &mut again);
        assert_eq!(Close::parse(&again), Ok(close));
    }
    if let Ok(report) = Report::parse(bytes) {
        let mut again = [0; REPORT_BYTES];
        report.write(&Codes::None, &mut again);
        assert_eq!(Report::parse(&again), Ok(report));
        let mut short = [0; SHORT_REPORT_BYTES];
        report.write_short(&Codes::None, &mut short);
        assert_eq!(Report::parse(&short), Ok(Report { socket_drops: None, ..report }));
    }
    if let Ok(poll) = StreamPoll::parse(bytes) {
        let mut again = [0; POLL_BYTES];
        poll.write(&Codes::None, &mut again);
        assert_eq!(StreamPoll::parse(&again), Ok(poll));
    }
    if let Ok(tally) = StreamTally::parse(bytes) {
        let mut again = [0; TALLY_BYTES];
        tally.write(&Codes::None, &mut again);
        assert_eq!(StreamTally::parse(&again), Ok(tally));
    }
    for message in [MessageType::Probe, MessageType::Data] {
        let Ok(header) = ProbeHeader::parse(bytes, message) else { continue };
        let _ = header.verify(Some(&TagKey::new(&[1; 16])), 7, bytes);
    }
    if let Ok(answer) = SealedAnswer::parse(bytes) {
        let _ = answer.open(None, 7);
    }
    let mut decoder = FrameDecoder::after_noise(64);
    for part in [&preamble(), bytes] {
        decoder.push(part);
        while let Ok(Some(_)) = decoder.next_event() {}
    }
});
