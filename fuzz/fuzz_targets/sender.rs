//! The sender's end of a session behind a path that loses, alters, repeats and invents replies: the session opens or is
//! refused, only genuine answers to probes that were sent are accepted, and the counts of a stream add up.
#![no_main]

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use arbitrary::Arbitrary;
use latlab::clock::Clock;
use latlab::plan::Schedule;
use latlab::probe::Seq;
use latlab::session::{
    DownDue, DownMessage, DownStream, NativeSession, PreSharedKey, ProbeCodec, ReflectorAction, ReflectorLimits,
    SessionParams, SessionReflector, UpStream, open,
};
use latlab::transport::Transport;
use latlab::units::{Nanos, ReflectorClock, SenderClock, Stamp};
use latlab::wire::PROBE_MIN_BYTES;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script {
    keyed: bool,
    kind: Kind,
    size: u16,
    replies: VecDeque<Delivery>,
    acts: Vec<u64>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Probes,
    Up,
    Down,
}

#[derive(Arbitrary, Clone, Debug)]
enum Delivery {
    Genuine,
    Twice,
    Lost,
    Altered(u16, u8),
    Cut(u16),
    Noise(Vec<u8>),
}

/// The clock of both ends: it advances while the sender waits.
#[derive(Default)]
struct PathClock(Cell<i64>);

impl PathClock {
    fn reflector(&self) -> Stamp<ReflectorClock> {
        Stamp::from_nanos(self.0.get() + 77_000_000_000_000)
    }
}

impl Clock for PathClock {
    fn now(&self) -> Stamp<SenderClock> {
        Stamp::from_nanos(self.0.get())
    }
}

struct Path<'a> {
    reflector: SessionReflector,
    clock: &'a PathClock,
    replies: VecDeque<Delivery>,
    /// With the reply that each was made from, of which noise has an empty one; `None`: as it was sent.
    inbox: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Path<'_> {
    fn reply(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (mut buffer, from) = (datagram.to_vec(), SocketAddr::from(([127, 0, 0, 1], 4_000)));
        let now = self.clock.reflector();
        let bytes = match self.reflector.handle(&mut buffer, from, now) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => return None,
            ReflectorAction::Reply(bytes) => bytes,
            ReflectorAction::Reflect(pending) => pending.seal(now + Nanos(250), Some(1), &mut buffer),
        };
        buffer.truncate(bytes);
        Some(buffer)
    }

    fn deliver(&mut self, datagram: Vec<u8>) {
        let altered = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = datagram.clone();
            change(&mut changed);
            (changed, Some(datagram.clone()))
        };
        match self.replies.pop_front().unwrap_or(Delivery::Genuine) {
            Delivery::Genuine => self.inbox.push_back((datagram, None)),
            Delivery::Twice => self.inbox.extend([(datagram.clone(), None), (datagram, None)]),
            Delivery::Lost => (),
            Delivery::Altered(at, with) => self.inbox.push_back(altered(&|bytes| {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= with;
            })),
            Delivery::Cut(to) => self.inbox.push_back(altered(&|bytes| bytes.truncate(to.into()))),
            Delivery::Noise(noise) => self.inbox.extend([(noise, Some(Vec::new())), (datagram, None)]),
        }
    }
}

impl Transport for Path<'_> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        if let Some(reply) = self.reply(datagram) {
            self.deliver(reply);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        let Some((datagram, _)) = self.inbox.pop_front() else {
            self.clock.0.set(self.clock.0.get() + max_wait.0);
            return Ok(None);
        };
        // As recv(2) does: the rest of a datagram that is too long is lost.
        let bytes = datagram.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&datagram[..bytes]);
        Ok(Some(bytes))
    }
}

/// Sends one probe for each act and decodes everything that has come.
fn probes(mut session: NativeSession, path: &mut Path<'_>, acts: &[u64]) -> NativeSession {
    let authenticated = session.authenticated();
    for (sent, skip) in acts.iter().enumerate() {
        path.clock.0.set(path.clock.0.get() + (skip % 1_000_000_000) as i64);
        path.send(session.encode(Seq(sent as u64))).expect("it never fails");
        while let Some((datagram, original)) = path.inbox.pop_front() {
            let answer = session.decode(&datagram, path.clock.now());
            assert!(answer.is_none_or(|answer| answer.seq.0 <= sent as u64), "an answer to a probe that was not sent");
            let Some(original) = original.filter(|_| authenticated) else { continue };
            let covered = |bytes: &[u8]| (bytes.len(), bytes.get(..PROBE_MIN_BYTES).map(<[u8]>::to_vec));
            assert!(answer.is_none() || covered(&original) == covered(&datagram), "an altered answer was accepted");
        }
    }
    session
}

fn up(session: NativeSession, path: &mut Path<'_>, acts: &[u64]) -> UpStream {
    let mut stream = UpStream::new(session);
    for act in acts {
        let size = stream.size_bytes() as usize;
        let packet = stream.packets(1 + act % 4).bytes()[..size].to_vec();
        path.send(&packet).expect("it never fails");
        stream.advance(1);
        let poll = stream.poll().1.to_vec();
        path.send(&poll).expect("it never fails");
        while let Some((datagram, original)) = path.inbox.pop_front() {
            let tally = stream.decode_tally(&datagram).filter(|_| original.is_none());
            assert!(tally.is_none_or(|tally| tally.packets <= stream.sent()), "more packets than were sent");
        }
    }
    stream
}

fn down(mut stream: DownStream, path: &mut Path<'_>, acts: &[u64]) -> DownStream {
    let mut buffer = [0; 2_048];
    for act in acts {
        let poll = stream.poll(act % 16, u64::MAX).1.to_vec();
        path.send(&poll).expect("it never fails");
        for _ in 0..act % 8 {
            if let DownDue::Packet { bytes, .. } = path.reflector.down_due(path.clock.reflector(), &mut buffer) {
                path.deliver(buffer[..bytes].to_vec());
            }
        }
        path.clock.0.set(path.clock.0.get() + (act >> 8) as i64 % 1_000_000_000);
        while let Some((datagram, original)) = path.inbox.pop_front() {
            let before = stream.counts();
            let message = stream.decode(&datagram);
            let counts = stream.counts();
            assert_eq!(counts.packets - before.packets, u64::from(message == DownMessage::Packet));
            let is_altered = original.is_some_and(|original| original.get(..24) != datagram.get(..24));
            assert!(!is_altered || message == DownMessage::Other, "an altered packet was accepted");
        }
        let counts = stream.counts();
        assert!(counts.reordered <= counts.packets && counts.packets <= counts.spanned);
        assert_eq!(counts.bytes, counts.packets * u64::from(stream.size_bytes()));
    }
    stream
}

fuzz_target!(|script: Script| {
    let Script { keyed, kind, size, replies, acts } = script;
    let line = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";
    let key = keyed.then(|| PreSharedKey::from_reader("fuzz", &line[..]).expect("a key"));
    let limits = ReflectorLimits { sessions: 2, down_bps: 1_000_000_000, ..ReflectorLimits::DEFAULT };
    let clock = PathClock::default();
    let reflector = SessionReflector::new(limits, key.as_ref(), [3; 32]);
    let mut path = Path { reflector, clock: &clock, replies, inbox: VecDeque::new() };
    let (second, size_bytes) = (Nanos::from_secs(1), 24 + u32::from(size) % 1_500);
    let params = SessionParams::new("fuzz:1", [1; 16], size_bytes, Schedule::Closed, Some(second), second);
    let params = match kind {
        Kind::Down => params.with_down_stream(Nanos::ZERO),
        Kind::Probes | Kind::Up => params,
    };
    let Ok(session) = open(&mut path, &clock, key.as_ref(), &params, &AtomicBool::new(false)) else { return };
    assert_eq!((session.authenticated(), session.terms().size_bytes), (keyed, size_bytes));
    let acts = &acts[..acts.len().min(64)];
    let _ = match kind {
        Kind::Probes => probes(session, &mut path, acts).close(&mut path, &clock),
        Kind::Up => up(session, &mut path, acts).close(&mut path, &clock),
        Kind::Down => match DownStream::new(session) {
            Some(stream) => down(stream, &mut path, acts).close(&mut path, &clock),
            None => return assert!(!keyed, "a session with a key has no down-stream"),
        },
    };
});
