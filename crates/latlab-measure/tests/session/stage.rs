//! A simulation of sessions: a reflector and its sender in one thread, with a clock that advances only while the sender
//! waits, or when a test advances it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use latlab_measure::clock::Clock;
use latlab_measure::session::{
    PreSharedKey, ReceiverState, ReflectorAction, ReflectorLimits, SessionParams, SessionReflector,
};
use latlab_measure::transport::Transport;
use latlab_plan::plan::Schedule;
use latlab_terms::units::{Nanos, ReflectorClock, SenderClock, Stamp};

pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// The offset of the reflector's clock from the sender's.
pub(crate) const OFFSET: Nanos = Nanos::from_secs(77_000);

/// Drops of the socket before the first datagram.
pub(crate) const SOCKET_DROPS: u64 = 5;

/// The clock of both ends; only [`StageClock::advance`] changes it.
#[derive(Clone, Default)]
pub(crate) struct StageClock(Rc<Cell<i64>>);

impl StageClock {
    pub(crate) fn advance(&self, span: Nanos) {
        self.0.set(self.0.get() + span.0);
    }

    pub(crate) fn reflector(&self) -> Stamp<ReflectorClock> {
        Stamp::from_nanos(self.0.get() + OFFSET.0)
    }
}

impl Clock for StageClock {
    fn now(&self) -> Stamp<SenderClock> {
        Stamp::from_nanos(self.0.get())
    }
}

/// A path without delay to a reflector; datagrams of either direction can be dropped by number.
pub(crate) struct Stage {
    pub(crate) reflector: SessionReflector,
    pub(crate) clock: StageClock,
    pub(crate) from: SocketAddr,
    pub(crate) requests: Vec<Vec<u8>>,
    /// Every reply, in order, lost ones included.
    pub(crate) replies: Vec<Vec<u8>>,
    pub(crate) lose_requests: Vec<usize>,
    pub(crate) lose_replies: Vec<usize>,
    /// Datagrams of another host that arrive before each reply of the reflector.
    pub(crate) forgeries: Vec<Vec<u8>>,
    /// The drops that the socket reports.
    pub(crate) socket_drops: Option<u64>,
    inbox: VecDeque<Vec<u8>>,
}

impl Stage {
    pub(crate) fn new(limits: ReflectorLimits, key: Option<&PreSharedKey>) -> Stage {
        Stage {
            reflector: SessionReflector::new(limits, key, [42; 32]),
            clock: StageClock::default(),
            from: SocketAddr::from(([127, 0, 0, 1], 40_000)),
            requests: Vec::new(),
            replies: Vec::new(),
            lose_requests: Vec::new(),
            lose_replies: Vec::new(),
            forgeries: Vec::new(),
            socket_drops: Some(SOCKET_DROPS),
            inbox: VecDeque::new(),
        }
    }

    /// The reply to `datagram` from `from`; `None` if it is dropped. The dwell of a probe is 250 ns.
    pub(crate) fn ask_from(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut buffer = datagram.to_vec();
        let received = self.clock.reflector();
        self.reflector.set_receiver_state(ReceiverState {
            socket_drops: self.socket_drops,
            drops_merged: false,
            thread_cpu: Some(Nanos(self.clock.0.get() / 2)),
        });
        let bytes = match self.reflector.handle(&mut buffer, from, received) {
            ReflectorAction::Drop(_) | ReflectorAction::Counted => return None,
            ReflectorAction::Reply(bytes) => bytes,
            ReflectorAction::Reflect(pending) => pending.seal(received + Nanos(250), Some(1), &mut buffer),
        };
        buffer.truncate(bytes);
        Some(buffer)
    }

    pub(crate) fn ask(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.ask_from(self.from, datagram)
    }
}

impl Transport for Stage {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let number = self.requests.len();
        self.requests.push(datagram.to_vec());
        self.inbox.extend(self.forgeries.iter().cloned());
        if self.lose_requests.contains(&number) {
            return Ok(());
        }
        if let Some(reply) = self.ask(datagram) {
            if !self.lose_replies.contains(&self.replies.len()) {
                self.inbox.push_back(reply.clone());
            }
            self.replies.push(reply);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        let Some(datagram) = self.inbox.pop_front() else {
            self.clock.advance(patience);
            return Ok(None);
        };
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Ok(Some(datagram.len()))
    }
}

pub(crate) fn key(byte: u8) -> PreSharedKey {
    let line = format!("latlab-psk-1 {}", format!("{byte:02x}").repeat(32));
    PreSharedKey::from_reader("stage", line.as_bytes()).expect("a key")
}

pub(crate) fn wishes(nonce: u8) -> SessionParams {
    let second = Nanos::from_secs(1);
    SessionParams::new("stage:1", [nonce; 16], 64, Schedule::Closed, Some(second), second)
}
