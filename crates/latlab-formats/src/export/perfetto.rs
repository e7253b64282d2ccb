//! Traces of [Perfetto](https://perfetto.dev/docs/reference/trace-packet-proto): tracks with slices, instants and counters, in
//! protocol buffers. Fields have the numbers of `trace_packet.proto`, `track_event.proto` and `track_descriptor.proto`.

use std::io::{self, Write};

/// A track of the trace that [`TraceWriter::track`] has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    Slices,
    /// Values with this unit behind them.
    Counter(&'static str),
}

/// Part of a slice: a name, its begin and its end, in ns.
pub type Part = (&'static str, i64, i64);

/// Writes a trace. Memory does not grow with it.
#[derive(Debug)]
pub struct TraceWriter<W> {
    target: W,
    tracks: u64,
    packet: Message,
}

/// The name of the first track, by which a trace of latlab is known.
pub const TRACE_MARK: &str = "latlab trace";

/// `TrackEvent.Type`
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// All packets are of one sequence; its number is any but 0.
const SEQUENCE: u64 = 1;

impl<W: Write> TraceWriter<W> {
    /// # Errors
    /// If the target refuses bytes; so for all methods.
    pub fn new(target: W) -> io::Result<TraceWriter<W>> {
        let mut trace = TraceWriter { target, tracks: 0, packet: Message::default() };
        trace.track(TRACE_MARK, None, TrackKind::Slices)?;
        Ok(trace)
    }

    /// Begins a track, below another one.
    pub fn track(&mut self, name: &str, parent: Option<Track>, kind: TrackKind) -> io::Result<Track> {
        self.tracks += 1;
        let track = Track(self.tracks);
        let mut descriptor = Message::default();
        descriptor.number(1, track.0);
        descriptor.bytes(2, name.as_bytes());
        if let Some(parent) = parent {
            descriptor.number(5, parent.0);
        }
        if let TrackKind::Counter(unit) = kind {
            let mut counter = Message::default();
            counter.bytes(6, unit.as_bytes());
            descriptor.bytes(8, &counter.0);
        }
        self.packet.number(10, SEQUENCE);
        self.packet.bytes(60, &descriptor.0);
        self.end_packet()?;
        Ok(track)
    }

    /// A slice with `parts` one after the other inside; arrows join all slices with the number `flow`.
    pub fn slice(
        &mut self,
        track: Track,
        name: &str,
        (begin, end): (i64, i64),
        parts: &[Part],
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.event(track, BEGIN, begin, |event| {
            event.bytes(23, name.as_bytes());
            if let Some(flow) = flow {
                event.fixed(47, flow);
            }
        })?;
        for (part, begin, end) in parts {
            self.event(track, BEGIN, *begin, |event| event.bytes(23, part.as_bytes()))?;
            self.event(track, END, *end, |_| {})?;
        }
        self.event(track, END, end, |_| {})
    }

    pub fn instant(&mut self, track: Track, name: &str, at: i64) -> io::Result<()> {
        self.event(track, INSTANT, at, |event| event.bytes(23, name.as_bytes()))
    }

    /// The value of a counter from `at` on.
    pub fn value(&mut self, track: Track, at: i64, value: f64) -> io::Result<()> {
        self.event(track, COUNTER, at, |event| event.fixed(44, value.to_bits()))
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.target.flush()
    }

    fn event(&mut self, track: Track, kind: u64, at: i64, more: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut event = Message::default();
        event.number(9, kind);
        event.number(11, track.0);
        more(&mut event);
        self.packet.number(8, at.max(0).unsigned_abs());
        self.packet.number(10, SEQUENCE);
        self.packet.bytes(11, &event.0);
        self.end_packet()
    }

    fn end_packet(&mut self) -> io::Result<()> {
        let mut framed = Message::default();
        framed.bytes(1, &self.packet.0);
        self.packet.0.clear();
        self.target.write_all(&framed.0)
    }
}

/// Fields of a protocol buffer ([encoding](https://protobuf.dev/programming-guides/encoding/)).
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_length_and_its_fields() {
        let mut bytes = Vec::new();
        let mut trace = TraceWriter { target: &mut bytes, tracks: 0, packet: Message::default() };
        let track = trace.track("a", None, TrackKind::Slices).expect("memory");
        trace.instant(track, "lost", 300).expect("memory");
        trace.finish().expect("memory");
        let descriptor = [0x0a, 0x0a, 0x50, 1, 0xe2, 0x03, 5, 0x08, 1, 0x12, 1, b'a'];
        let instant = [0x40, 0xac, 2, 0x50, 1, 0x5a, 11, 0x48, 3, 0x58, 1, 0xba, 1, 4, b'l', b'o', b's', b't'];
        assert_eq!(bytes, [&descriptor[..], &[0x0a, 18], &instant].concat());
    }
}
