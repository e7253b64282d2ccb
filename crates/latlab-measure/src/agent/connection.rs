//! The controller's end of the connection to an agent: requests, replies, and heartbeats while no run is armed.

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

/// The time for the greeting: ssh connects within 10 s, and key exchange takes seconds on slow hosts.
const GREETING_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for a reply: twice the time that a reflector may take to start.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the wait for the greeting checks the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Capacity of the queue of received messages, which holds at most one reply and the end.
const QUEUE_LENGTH: usize = 4;

/// Why no reply was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DisconnectReason {
    /// The stream ended or broke.
    Gone,
    /// The stream does not have the format of the agent protocol.
    Malformed(FrameError),
    /// A frame that is not a reply.
    Unknown(String),
    /// The agent speaks another format.
    Format(u16),
    /// No message came in time.
    Silent(Duration),
    /// The stop flag was set before the greeting.
    Interrupted,
}

enum ReceivedMessage {
    Preamble(u16),
    Reply(Reply),
    End(DisconnectReason),
}

/// The state of the thread that sends heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeartbeatState {
    /// The preamble has not been sent yet.
    Waiting,
    Sending,
    /// A run is armed; if its duration is unknown, heartbeats restart the timer of the agent.
    Armed {
        renew: bool,
    },
    Ended,
}

/// The state shared with the thread that sends heartbeats.
struct SendState {
    out: Mutex<Option<Box<dyn Write + Send>>>,
    heartbeat: Mutex<HeartbeatState>,
    changed: Condvar,
}

/// A connection to an agent; closed when this is dropped.
pub(super) struct AgentConnection {
    send: Arc<SendState>,
    received: Receiver<ReceivedMessage>,
    heartbeat_thread: Option<JoinHandle<()>>,
    /// Set before the controller ends the agent: its end is then not a loss.
    end_expected: Arc<AtomicBool>,
    /// After a failure nothing more is sent: a late reply would be taken for that of the next request.
    failed: Option<DisconnectReason>,
}

/// The streams of an agent, and the flag that its loss sets.
pub(super) struct AgentStreams {
    pub(super) from: Box<dyn Read + Send>,
    /// To the agent; non-blocking: an agent that reads nothing counts as lost.
    pub(super) to: Box<dyn Write + Send>,
    /// Set when the agent is lost: the run ends early.
    pub(super) stop: Arc<AtomicBool>,
    /// CPUs that measure: the threads of the connection avoid them.
    pub(super) measuring: Vec<u16>,
}

impl AgentConnection {
    /// Waits for the greeting and sends the preamble.
    pub(super) fn open(streams: AgentStreams) -> Result<(AgentConnection, Greeting), DisconnectReason> {
        let AgentStreams { from, to, stop, measuring } = streams;
        let (sender, received) = sync_channel(QUEUE_LENGTH);
        let end_expected = Arc::new(AtomicBool::new(false));
        let send = Arc::new(SendState {
            out: Mutex::new(Some(to)),
            heartbeat: Mutex::new(HeartbeatState::Waiting),
            changed: Condvar::new(),
        });
        // The receiving thread is not joined: it ends with the stream, which a stopped process can keep open.
        let shared = (Arc::clone(&end_expected), Arc::clone(&stop), measuring.clone());
        let receiving = thread::Builder::new().name("agent-listen".into()).spawn(move || {
            let (end_expected, stop, measuring) = shared;
            placement::keep_off(&measuring);
            receive_messages(from, &sender, || {
                if !end_expected.load(Ordering::Relaxed) {
                    stop.store(true, Ordering::Relaxed);
                }
            });
        });
        let shared = Arc::clone(&send);
        let heartbeat_thread = receiving.and_then(|_| {
            thread::Builder::new().name("agent-beat".into()).spawn(move || {
                placement::keep_off(&measuring);
                send_heartbeats(&shared);
            })
        });
        let heartbeat_thread = Some(heartbeat_thread.map_err(|_| DisconnectReason::Gone)?);
        let mut connection = AgentConnection { send, received, heartbeat_thread, end_expected, failed: None };
        let greeting = connection.wait_for_greeting(&stop)?;
        Ok((connection, greeting))
    }

    fn wait_for_greeting(&mut self, stop: &AtomicBool) -> Result<Greeting, DisconnectReason> {
        let deadline = Instant::now() + GREETING_TIMEOUT;
        loop {
            match self.received.recv_timeout(POLL_INTERVAL) {
                Ok(ReceivedMessage::Preamble(FORMAT)) => {}
                Ok(ReceivedMessage::Preamble(format)) => return Err(DisconnectReason::Format(format)),
                Ok(ReceivedMessage::Reply(Reply::Greeting(greeting))) => {
                    self.write(&frame::preamble())?;
                    self.set_heartbeat(HeartbeatState::Sending);
                    return Ok(greeting);
                }
                Ok(ReceivedMessage::Reply(other)) => return Err(DisconnectReason::Unknown(format!("{other:?}"))),
                Ok(ReceivedMessage::End(reason)) => return Err(reason),
                Err(RecvTimeoutError::Disconnected) => return Err(DisconnectReason::Gone),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(DisconnectReason::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(DisconnectReason::Silent(GREETING_TIMEOUT));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Sends `request` and waits for the reply.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply, DisconnectReason> {
        if let Some(reason) = &self.failed {
            return Err(reason.clone());
        }
        let reply = self.write(&frame_of(request)).and_then(|()| match self.received.recv_timeout(REPLY_TIMEOUT) {
            Ok(ReceivedMessage::Reply(reply)) => Ok(reply),
            Ok(ReceivedMessage::End(reason)) => Err(reason),
            Ok(ReceivedMessage::Preamble(format)) => Err(DisconnectReason::Format(format)),
            Err(RecvTimeoutError::Disconnected) => Err(DisconnectReason::Gone),
            Err(RecvTimeoutError::Timeout) => Err(DisconnectReason::Silent(REPLY_TIMEOUT)),
        });
        self.failed = reply.as_ref().err().cloned();
        reply
    }

    /// Why the agent is lost; `None` if no loss was noticed. Sends nothing.
    pub(super) fn lost(&mut self) -> Option<DisconnectReason> {
        if let (None, Ok(ReceivedMessage::End(reason))) = (&self.failed, self.received.try_recv()) {
            self.failed = Some(reason);
        }
        self.failed.clone()
    }

    /// Arms a run of at most `planned`; `None` if its duration is unknown.
    pub(super) fn arm(&mut self, planned: Option<Nanos>) -> Result<Reply, DisconnectReason> {
        // The heartbeats end before the run is armed: none may be sent during a run.
        self.set_heartbeat(HeartbeatState::Armed { renew: planned.is_none() });
        self.ask(&Request::Arm { planned_ns: planned.unwrap_or(AGENT_ARMED) })
    }

    /// Ends the armed run; heartbeats are sent again.
    pub(super) fn disarm(&mut self) -> Result<Reply, DisconnectReason> {
        let reply = self.ask(&Request::Disarm);
        self.set_heartbeat(HeartbeatState::Sending);
        reply
    }

    /// From now on the end of the agent does not set the stop flag.
    pub(super) fn expect_end(&mut self) {
        self.end_expected.store(true, Ordering::Relaxed);
    }

    /// Closes the stream to the agent, which ends the agent.
    fn close(&mut self) {
        self.expect_end();
        self.set_heartbeat(HeartbeatState::Ended);
        drop(lock(&self.send.out).take());
        if let Some(thread) = self.heartbeat_thread.take() {
            let _ = thread.join();
        }
    }

    fn set_heartbeat(&self, state: HeartbeatState) {
        *lock(&self.send.heartbeat) = state;
        self.send.changed.notify_all();
    }

    fn write(&self, bytes: &[u8]) -> Result<(), DisconnectReason> {
        self.send.write(bytes).map_err(|()| DisconnectReason::Gone)
    }
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl SendState {
    /// Writes all of `bytes`, or closes the stream: a truncated frame cannot be completed.
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

/// The state stays valid if a thread panics: each change is a single assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send_heartbeats(send: &SendState) {
    let frame = frame_of(&Request::Heartbeat);
    let mut state = lock(&send.heartbeat);
    loop {
        let pause = match *state {
            HeartbeatState::Ended => return,
            HeartbeatState::Waiting | HeartbeatState::Armed { renew: false } => None,
            HeartbeatState::Sending => Some(AGENT_BEAT.to_duration()),
            HeartbeatState::Armed { renew: true } => Some(AGENT_ARMED.to_duration() / 2),
        };
        let before = *state;
        let Some(pause) = pause else {
            state = send.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let (now, waited) = send.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
        state = now;
        if waited.timed_out() && *state == before {
            drop(state);
            // A broken stream is noticed by the next request and by the receiving thread.
            let _ = send.write(&frame);
            state = lock(&send.heartbeat);
        }
    }
}

fn receive_messages(mut from: impl Read, sender: &SyncSender<ReceivedMessage>, lost: impl FnOnce()) {
    let mut decoder = FrameDecoder::after_noise(NOISE_MAX_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let reason = loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => break decoder.end().map_or_else(DisconnectReason::Malformed, |()| DisconnectReason::Gone),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break DisconnectReason::Gone,
        };
        decoder.push(&buffer[..bytes]);
        match forward(&mut decoder, sender) {
            Ok(true) => {}
            Ok(false) => return,
            Err(reason) => break reason,
        }
    };
    lost();
    let _ = sender.send(ReceivedMessage::End(reason));
}

/// Sends every complete message to the requesting thread; `false` if it has ended.
fn forward(decoder: &mut FrameDecoder, sender: &SyncSender<ReceivedMessage>) -> Result<bool, DisconnectReason> {
    while let Some(event) = decoder.next_event().map_err(DisconnectReason::Malformed)? {
        let message = match event {
            FrameEvent::Preamble(format) => ReceivedMessage::Preamble(format),
            FrameEvent::Frame(payload) => ReceivedMessage::Reply(
                serde_json::from_slice(&payload).map_err(|error| DisconnectReason::Unknown(error.to_string()))?,
            ),
        };
        if sender.send(message).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
