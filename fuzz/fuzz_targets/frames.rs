//! The bytes of a connection, cut anywhere: decoded messages do not depend on the cuts, and every encoded one is decoded.
#![no_main]

use arbitrary::Arbitrary;
use latlab::transport::{InvalidLength, MessageDecoder, MessageEncoder};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Connection {
    messages: Vec<Vec<u8>>,
    noise: Vec<u8>,
    cuts: Vec<u16>,
}

/// The messages decoded from `stream` in pieces of these sizes, the rest in one, and whether a length was invalid.
fn decoded(stream: &[u8], cuts: &[u16]) -> (Vec<Vec<u8>>, bool) {
    let (mut decoder, mut messages) = (MessageDecoder::default(), Vec::new());
    let mut buffer = vec![0; 65_536];
    let (mut left, mut cuts) = (stream, cuts.iter());
    while !left.is_empty() {
        let piece = cuts.next().map_or(left.len(), |cut| usize::from(*cut).clamp(1, left.len()));
        let space = decoder.space();
        assert!(!space.is_empty(), "there is always space for a message");
        let fits = piece.min(space.len());
        space[..fits].copy_from_slice(&left[..fits]);
        decoder.filled(fits);
        left = &left[fits..];
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(length)) => messages.push(buffer[..length].to_vec()),
                Ok(None) => break,
                Err(InvalidLength) => return (messages, true),
            }
        }
    }
    (messages, false)
}

fuzz_target!(|connection: Connection| {
    let Connection { messages, noise, cuts } = connection;
    let (mut encoder, mut stream, mut framed) = (MessageEncoder::default(), Vec::new(), Vec::new());
    for message in messages.into_iter().filter(|message| message.len() >= 24) {
        if let Some(frame) = encoder.encode(&message) {
            stream.extend_from_slice(frame);
            framed.push(message);
        }
    }
    stream.extend_from_slice(&noise);
    let (in_pieces, ended) = decoded(&stream, &cuts);
    assert_eq!(decoded(&stream, &[]), (in_pieces.clone(), ended));
    assert_eq!(in_pieces.get(..framed.len()), Some(framed.as_slice()));
});
