//! The bytes of a connection, cut anywhere: decoded messages do not depend on the cuts, and every encoded one is decoded. The
//! length prefix of TCP, and the frames of the agent protocol with the messages in them.
#![no_main]

use arbitrary::Arbitrary;
use latlab::agent::frame::{FrameDecoder, FrameError, FrameEvent, PAYLOAD_MAX_BYTES, framed, preamble};
use latlab::agent::{Greeting, Reply, Request};
use latlab::transport::{InvalidLength, MessageDecoder, MessageEncoder};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Arbitrary, Debug)]
struct Connection {
    is_agent: bool,
    messages: Vec<Vec<u8>>,
    noise: Vec<u8>,
    cuts: Vec<u16>,
}

/// Bytes of noise that the decoder of frames skips.
const NOISE_BYTES: usize = 64;

/// `stream` in pieces of these sizes, the rest in one.
fn pieces<'a>(stream: &'a [u8], cuts: &'a [u16]) -> impl Iterator<Item = &'a [u8]> {
    let (mut left, mut cuts) = (stream, cuts.iter());
    std::iter::from_fn(move || {
        let bytes = cuts.next().map_or(left.len(), |cut| usize::from(*cut).clamp(1, left.len().max(1)));
        let (piece, rest) = left.split_at_checked(bytes).filter(|(piece, _)| !piece.is_empty())?;
        left = rest;
        Some(piece)
    })
}

/// The messages decoded from `stream`, and whether a length was invalid.
fn messages_of(stream: &[u8], cuts: &[u16]) -> (Vec<Vec<u8>>, bool) {
    let (mut decoder, mut messages) = (MessageDecoder::default(), Vec::new());
    let mut buffer = vec![0; 65_536];
    for piece in pieces(stream, cuts) {
        let mut left = piece;
        while !left.is_empty() {
            let space = decoder.space();
            assert!(!space.is_empty(), "there is always space for a message");
            let fits = left.len().min(space.len());
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
    }
    (messages, false)
}

fn tcp(connection: Connection) {
    let Connection { messages, noise, cuts, .. } = connection;
    let (mut encoder, mut stream, mut framed) = (MessageEncoder::default(), Vec::new(), Vec::new());
    for message in messages.into_iter().filter(|message| message.len() >= 24) {
        if let Some(frame) = encoder.encode(&message) {
            stream.extend_from_slice(frame);
            framed.push(message);
        }
    }
    stream.extend_from_slice(&noise);
    let (in_pieces, ended) = messages_of(&stream, &cuts);
    assert_eq!(messages_of(&stream, &[]), (in_pieces.clone(), ended));
    assert_eq!(in_pieces.get(..framed.len()), Some(framed.as_slice()));
}

/// The frames decoded from `stream`, and the error that ended it or will end it.
fn frames_of(stream: &[u8], cuts: &[u16]) -> (Vec<FrameEvent>, Result<(), FrameError>) {
    let (mut decoder, mut events) = (FrameDecoder::after_noise(NOISE_BYTES), Vec::new());
    for piece in pieces(stream, cuts) {
        decoder.push(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Err(error)),
            }
        }
    }
    (events, decoder.end())
}

/// A message of the agent protocol is read or refused; what is written for an accepted one is read and written again.
fn message<T: DeserializeOwned + Serialize>(payload: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(payload) else { return };
    let written = serde_json::to_vec(&message).expect("plain data");
    let again = serde_json::from_slice::<T>(&written).expect("as it was written");
    assert_eq!(serde_json::to_vec(&again).expect("plain data"), written);
}

fn agent(connection: Connection) {
    let Connection { messages, noise, cuts, .. } = connection;
    let allowed = |message: &Vec<u8>| (1..=PAYLOAD_MAX_BYTES).contains(&message.len());
    let messages: Vec<_> = messages.into_iter().filter(allowed).collect();
    let well_formed = [preamble().to_vec(), messages.iter().flat_map(|message| framed(message)).collect()].concat();
    let (events, ending) = frames_of(&well_formed, &cuts);
    let expected = messages.iter().cloned().map(FrameEvent::Frame);
    assert!(events.into_iter().skip(1).eq(expected), "every frame is decoded");
    assert_eq!(ending, Ok(()));

    let any = [noise, well_formed].concat();
    let (events, ending) = frames_of(&any, &cuts);
    let whole = frames_of(&any, &[]);
    // An error quotes the bytes that were read so far.
    assert_eq!((&events, ending.is_ok()), (&whole.0, whole.1.is_ok()), "the cuts do not matter");
    for payload in &messages {
        message::<Request>(payload);
        message::<Reply>(payload);
        message::<Greeting>(payload);
    }
}

fuzz_target!(|connection: Connection| if connection.is_agent { agent(connection) } else { tcp(connection) });
