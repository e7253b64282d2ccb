//! This end of the talk with an agent: requests, replies, and the heart that beats where no run is armed.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::frame::{self, FORMAT, FrameDecoder, FrameError, FrameEvent, NOISE_MAX_BYTES, READ_BYTES};
use super::message::{Greeting, Reply, Request, frame_of};
use crate::host::placement;
use crate::plan::defaults::{AGENT_ARMED, AGENT_BEAT};
use crate::units::Nanos;

/// How long a greeting may take: a connection of ssh has 10 s, and slow hosts think about keys.
const GREETING_WITHIN: Duration = Duration::from_secs(30);
/// How long a reply may take: twice what a reflector may need to get ready.
const REPLY_WITHIN: Duration = Duration::from_secs(10);
/// How often a wait for the greeting checks for an interrupt.
const NAP: Duration = Duration::from_millis(50);
/// Replies that wait to be read: one, and the end.
const REPLIES: usize = 4;

/// Why a reply is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DisconnectReason {
    /// The stream ended or broke.
    Gone,
    /// The bytes are not those of an agent.
    Malformed(FrameError),
    /// A frame that is not a reply.
    Unknown(String),
    /// The agent speaks another format.
    Format(u16),
    /// Nothing came in time.
    Silent(Duration),
    /// Somebody interrupted before there was a greeting.
    Interrupted,
}

enum ReceivedMessage {
    Preamble(u16),
    Reply(Reply),
    End(DisconnectReason),
}

/// What the heart does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeartbeatState {
    /// No preamble was sent yet.
    Waiting,
    Beating,
    /// A run is armed; if its end is unknown, a heartbeat restarts the timer of the agent.
    Armed {
        renew: bool,
    },
    Over,
}

/// What is shared with the threads that listen and beat.
struct ConnectionState {
    out: Mutex<Option<Box<dyn Write + Send>>>,
    heart: Mutex<HeartbeatState>,
    changed: Condvar,
}

/// A conversation with one agent; over when this is dropped.
pub(super) struct AgentConnection {
    line: Arc<ConnectionState>,
    heard: Receiver<ReceivedMessage>,
    beater: Option<JoinHandle<()>>,
    /// From now on the end of the agent is expected.
    leaving: Arc<AtomicBool>,
    /// Once something went wrong nothing more is said: a late reply would be taken for the next one.
    failed: Option<DisconnectReason>,
}

/// The streams of an agent, and who shall know what becomes of them.
pub(super) struct AgentStreams {
    /// From the agent.
    pub(super) from: Box<dyn Read + Send>,
    /// To it. Must not block: an agent that reads nothing is lost.
    pub(super) to: Box<dyn Write + Send>,
    /// Set when the agent is lost, so that a run ends early.
    pub(super) stop: Arc<AtomicBool>,
    /// CPUs that measure: the threads of the conversation stay off them.
    pub(super) measuring: Vec<u16>,
}

impl AgentConnection {
    /// Waits for the greeting and answers it.
    pub(super) fn begin(wires: AgentStreams) -> Result<(AgentConnection, Greeting), DisconnectReason> {
        let AgentStreams { from, to, stop, measuring } = wires;
        let (says, heard) = sync_channel(REPLIES);
        let leaving = Arc::new(AtomicBool::new(false));
        let line = Arc::new(ConnectionState {
            out: Mutex::new(Some(to)),
            heart: Mutex::new(HeartbeatState::Waiting),
            changed: Condvar::new(),
        });
        // Nobody waits for the listener: it ends with the stream, which a stopped process can keep open.
        let ends = (Arc::clone(&leaving), Arc::clone(&stop), measuring.clone());
        let listening = thread::Builder::new().name("agent-listen".into()).spawn(move || {
            let (leaving, stop, measuring) = ends;
            placement::keep_off(&measuring);
            listen(from, &says, || {
                if !leaving.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
            });
        });
        let beating = Arc::clone(&line);
        let beater = listening.and_then(|_| {
            thread::Builder::new().name("agent-beat".into()).spawn(move || {
                placement::keep_off(&measuring);
                beat(&beating);
            })
        });
        let beater = beater.map_err(|_| DisconnectReason::Gone)?;
        let mut conversation = AgentConnection { line, heard, beater: Some(beater), leaving, failed: None };
        let greeting = conversation.meet(&stop)?;
        Ok((conversation, greeting))
    }

    fn meet(&mut self, stop: &AtomicBool) -> Result<Greeting, DisconnectReason> {
        let deadline = Instant::now() + GREETING_WITHIN;
        loop {
            match self.heard.recv_timeout(NAP) {
                Ok(ReceivedMessage::Preamble(FORMAT)) => {}
                Ok(ReceivedMessage::Preamble(format)) => return Err(DisconnectReason::Format(format)),
                Ok(ReceivedMessage::Reply(Reply::Greeting(greeting))) => {
                    self.write(&frame::preamble())?;
                    self.set(HeartbeatState::Beating);
                    return Ok(greeting);
                }
                Ok(ReceivedMessage::Reply(other)) => return Err(DisconnectReason::Unknown(format!("{other:?}"))),
                Ok(ReceivedMessage::End(why)) => return Err(why),
                Err(RecvTimeoutError::Disconnected) => return Err(DisconnectReason::Gone),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(DisconnectReason::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(DisconnectReason::Silent(GREETING_WITHIN));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks, and waits for the reply.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply, DisconnectReason> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let reply = self.write(&frame_of(request)).and_then(|()| match self.heard.recv_timeout(REPLY_WITHIN) {
            Ok(ReceivedMessage::Reply(reply)) => Ok(reply),
            Ok(ReceivedMessage::End(why)) => Err(why),
            Ok(ReceivedMessage::Preamble(format)) => Err(DisconnectReason::Format(format)),
            Err(RecvTimeoutError::Disconnected) => Err(DisconnectReason::Gone),
            Err(RecvTimeoutError::Timeout) => Err(DisconnectReason::Silent(REPLY_WITHIN)),
        });
        self.failed = reply.as_ref().err().cloned();
        reply
    }

    /// Why the agent is lost, if that was noticed; sends nothing.
    pub(super) fn lost(&mut self) -> Option<DisconnectReason> {
        if let (None, Ok(ReceivedMessage::End(why))) = (&self.failed, self.heard.try_recv()) {
            self.failed = Some(why);
        }
        self.failed.clone()
    }

    /// Arms a run; `None` if its duration is unknown.
    pub(super) fn arm(&mut self, planned: Option<Nanos>) -> Result<Reply, DisconnectReason> {
        // First the silence, then the agent that expects it: a beat in between would only be one more.
        self.set(HeartbeatState::Armed { renew: planned.is_none() });
        self.ask(&Request::Arm { planned_ns: planned.unwrap_or(AGENT_ARMED) })
    }

    /// The run is over.
    pub(super) fn disarm(&mut self) -> Result<Reply, DisconnectReason> {
        let reply = self.ask(&Request::Disarm);
        self.set(HeartbeatState::Beating);
        reply
    }

    /// From now on the end of the agent is expected.
    pub(super) fn leave(&mut self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Ends the stream to the agent, which is what it waits for.
    pub(super) fn hang_up(&mut self) {
        self.leave();
        self.set(HeartbeatState::Over);
        drop(lock(&self.line.out).take());
        if let Some(beater) = self.beater.take() {
            // It never panics, and what it could say has been said.
            let _ = beater.join();
        }
    }

    fn set(&self, heart: HeartbeatState) {
        *lock(&self.line.heart) = heart;
        self.line.changed.notify_all();
    }

    fn write(&self, bytes: &[u8]) -> Result<(), DisconnectReason> {
        self.line.write(bytes).map_err(|()| DisconnectReason::Gone)
    }
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl ConnectionState {
    /// Writes all of it, or closes the stream: half a frame cannot be completed.
    fn write(&self, bytes: &[u8]) -> Result<(), ()> {
        let mut out = lock(&self.out);
        let written = out.as_mut().is_some_and(|to| to.write_all(bytes).and_then(|()| to.flush()).is_ok());
        if !written {
            *out = None;
            return Err(());
        }
        Ok(())
    }
}

/// A thread that panicked leaves what it held as it was: nothing here is ever half done.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beat(line: &ConnectionState) {
    let beat = frame_of(&Request::Heartbeat);
    let mut heart = lock(&line.heart);
    loop {
        let pause = match *heart {
            HeartbeatState::Over => return,
            HeartbeatState::Waiting | HeartbeatState::Armed { renew: false } => None,
            HeartbeatState::Beating => Some(AGENT_BEAT.to_duration()),
            HeartbeatState::Armed { renew: true } => Some(AGENT_ARMED.to_duration() / 2),
        };
        let before = *heart;
        let Some(pause) = pause else {
            heart = line.changed.wait(heart).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let (now, waited) = line.changed.wait_timeout(heart, pause).unwrap_or_else(PoisonError::into_inner);
        heart = now;
        if waited.timed_out() && *heart == before {
            drop(heart);
            // A line that is broken is found by the next request, and by the listener.
            let _ = line.write(&beat);
            heart = lock(&line.heart);
        }
    }
}

fn listen(mut from: impl Read, says: &SyncSender<ReceivedMessage>, lost: impl FnOnce()) {
    let mut inbox = FrameDecoder::after_noise(NOISE_MAX_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let why = loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => break inbox.end().map_or_else(DisconnectReason::Malformed, |()| DisconnectReason::Gone),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break DisconnectReason::Gone,
        };
        inbox.push(&buffer[..bytes]);
        match pass_on(&mut inbox, says) {
            Ok(true) => {}
            // Nobody listens any more.
            Ok(false) => return,
            Err(why) => break why,
        }
    };
    lost();
    let _ = says.send(ReceivedMessage::End(why));
}

/// Sends every complete frame; `false` if the receiver is gone.
fn pass_on(inbox: &mut FrameDecoder, says: &SyncSender<ReceivedMessage>) -> Result<bool, DisconnectReason> {
    while let Some(piece) = inbox.next_piece().map_err(DisconnectReason::Malformed)? {
        let heard = match piece {
            FrameEvent::Preamble(format) => ReceivedMessage::Preamble(format),
            FrameEvent::Frame(payload) => ReceivedMessage::Reply(
                serde_json::from_slice(&payload).map_err(|error| DisconnectReason::Unknown(error.to_string()))?,
            ),
        };
        if says.send(heard).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
