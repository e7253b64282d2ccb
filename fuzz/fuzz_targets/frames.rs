//! A connection's bytes, cut anywhere: messages do not depend on the cuts, and what was framed comes out.
#![no_main]

use arbitrary::Arbitrary;
use latlab::transport::frame::{Incoming, NoMessage, Outgoing};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Connection {
    messages: Vec<Vec<u8>>,
    noise: Vec<u8>,
    cuts: Vec<u16>,
}

/// What comes of `stream` in pieces of these sizes, the rest in one, and whether it ended with a length of no message.
fn fed(stream: &[u8], cuts: &[u16]) -> (Vec<Vec<u8>>, bool) {
    let (mut incoming, mut messages) = (Incoming::default(), Vec::new());
    let mut buffer = vec![0; 65_536];
    let (mut left, mut cuts) = (stream, cuts.iter());
    while !left.is_empty() {
        let piece = cuts.next().map_or(left.len(), |cut| usize::from(*cut).clamp(1, left.len()));
        let room = incoming.room();
        assert!(!room.is_empty(), "there is always room for a message");
        let fits = piece.min(room.len());
        room[..fits].copy_from_slice(&left[..fits]);
        incoming.came(fits);
        left = &left[fits..];
        loop {
            match incoming.take(&mut buffer) {
                Ok(Some(length)) => messages.push(buffer[..length].to_vec()),
                Ok(None) => break,
                Err(NoMessage) => return (messages, true),
            }
        }
    }
    (messages, false)
}

fuzz_target!(|connection: Connection| {
    let Connection { messages, noise, cuts } = connection;
    let (mut outgoing, mut stream, mut framed) = (Outgoing::default(), Vec::new(), Vec::new());
    for message in messages.into_iter().filter(|message| message.len() >= 24) {
        if let Some(frame) = outgoing.frame(&message) {
            stream.extend_from_slice(frame);
            framed.push(message);
        }
    }
    stream.extend_from_slice(&noise);
    let (in_pieces, ended) = fed(&stream, &cuts);
    assert_eq!(fed(&stream, &[]), (in_pieces.clone(), ended));
    assert_eq!(in_pieces.get(..framed.len()), Some(framed.as_slice()));
});
