//! This end of the talk with an agent: requests, replies, and the heart that beats where no run is armed.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::frame::{self, FORMAT, FrameError, Inbox, NOISE_MAX_BYTES, Piece, READ_BYTES};
use super::message::{Greeting, Reply, Request, frame_of};
use crate::host::placement;
use crate::plan::defaults::{AGENT_ARMED, AGENT_BEAT};
use crate::units::Nanos;

/// How long a greeting may take: a connection of ssh has 10 s, and slow hosts think about keys.
const GREETING_WITHIN: Duration = Duration::from_secs(30);
/// How long a reply may take: twice what a reflector may need to get ready.
const REPLY_WITHIN: Duration = Duration::from_secs(10);
/// How often whoever waits for a greeting looks whether somebody interrupted.
const NAP: Duration = Duration::from_millis(50);
/// Replies that nobody has asked for yet: one, and the end.
const REPLIES: usize = 4;

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// The stream ended or broke.
    Gone,
    /// What came is no agent's word.
    Malformed(FrameError),
    /// A frame that is no reply.
    Unknown(String),
    /// The agent speaks another format.
    Format(u16),
    /// Nothing came in time.
    Silent(Duration),
    /// Somebody interrupted before there was a greeting.
    Interrupted,
}

enum Heard {
    Preamble(u16),
    Reply(Reply),
    End(Quiet),
}

/// What the heart does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heart {
    /// No preamble was sent yet.
    Waiting,
    Beating,
    /// A run is armed; where nobody knows its end, a beat now and then starts the timer of the agent anew.
    Armed {
        renew: bool,
    },
    Over,
}

/// What is shared with the threads that listen and beat.
struct Line {
    out: Mutex<Option<Box<dyn Write + Send>>>,
    heart: Mutex<Heart>,
    changed: Condvar,
}

/// A conversation with one agent; over when this is dropped.
pub(super) struct Conversation {
    line: Arc<Line>,
    heard: Receiver<Heard>,
    beater: Option<JoinHandle<()>>,
    /// From now on the agent's end is no loss.
    leaving: Arc<AtomicBool>,
    /// Once something went wrong nothing more is said: a late reply would be taken for the next one.
    failed: Option<Quiet>,
}

/// The streams of an agent, and who shall know what becomes of them.
pub(super) struct Wires {
    /// From the agent.
    pub(super) from: Box<dyn Read + Send>,
    /// To it. Must not block: an agent that reads nothing is lost.
    pub(super) to: Box<dyn Write + Send>,
    /// Set when the agent is lost, so that a run ends early.
    pub(super) stop: Arc<AtomicBool>,
    /// CPUs that measure: the threads of the conversation stay off them.
    pub(super) measuring: Vec<u16>,
}

impl Conversation {
    /// Waits for the greeting and answers it.
    pub(super) fn begin(wires: Wires) -> Result<(Conversation, Greeting), Quiet> {
        let Wires { from, to, stop, measuring } = wires;
        let (says, heard) = sync_channel(REPLIES);
        let leaving = Arc::new(AtomicBool::new(false));
        let line =
            Arc::new(Line { out: Mutex::new(Some(to)), heart: Mutex::new(Heart::Waiting), changed: Condvar::new() });
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
        let beater = beater.map_err(|_| Quiet::Gone)?;
        let mut conversation = Conversation { line, heard, beater: Some(beater), leaving, failed: None };
        let greeting = conversation.meet(&stop)?;
        Ok((conversation, greeting))
    }

    fn meet(&mut self, stop: &AtomicBool) -> Result<Greeting, Quiet> {
        let deadline = Instant::now() + GREETING_WITHIN;
        loop {
            match self.heard.recv_timeout(NAP) {
                Ok(Heard::Preamble(FORMAT)) => {}
                Ok(Heard::Preamble(format)) => return Err(Quiet::Format(format)),
                Ok(Heard::Reply(Reply::Greeting(greeting))) => {
                    self.write(&frame::preamble())?;
                    self.set(Heart::Beating);
                    return Ok(greeting);
                }
                Ok(Heard::Reply(other)) => return Err(Quiet::Unknown(format!("{other:?}"))),
                Ok(Heard::End(why)) => return Err(why),
                Err(RecvTimeoutError::Disconnected) => return Err(Quiet::Gone),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Err(Quiet::Interrupted),
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(Quiet::Silent(GREETING_WITHIN));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks, and waits for the reply.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply, Quiet> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let reply = self.write(&frame_of(request)).and_then(|()| match self.heard.recv_timeout(REPLY_WITHIN) {
            Ok(Heard::Reply(reply)) => Ok(reply),
            Ok(Heard::End(why)) => Err(why),
            Ok(Heard::Preamble(format)) => Err(Quiet::Format(format)),
            Err(RecvTimeoutError::Disconnected) => Err(Quiet::Gone),
            Err(RecvTimeoutError::Timeout) => Err(Quiet::Silent(REPLY_WITHIN)),
        });
        self.failed = reply.as_ref().err().cloned();
        reply
    }

    /// Why the agent is lost, if it is and somebody has noticed. Asks nothing.
    pub(super) fn lost(&mut self) -> Option<Quiet> {
        if let (None, Ok(Heard::End(why))) = (&self.failed, self.heard.try_recv()) {
            self.failed = Some(why);
        }
        self.failed.clone()
    }

    /// Arms a run; none: nobody knows how long it takes.
    pub(super) fn arm(&mut self, planned: Option<Nanos>) -> Result<Reply, Quiet> {
        // First the silence, then the agent that expects it: a beat in between would only be one more.
        self.set(Heart::Armed { renew: planned.is_none() });
        self.ask(&Request::Arm { planned_ns: planned.unwrap_or(AGENT_ARMED) })
    }

    /// The run is over.
    pub(super) fn disarm(&mut self) -> Result<Reply, Quiet> {
        let reply = self.ask(&Request::Disarm);
        self.set(Heart::Beating);
        reply
    }

    /// From now on the end of the agent is no loss.
    pub(super) fn leave(&mut self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Ends the stream to the agent, which is what it waits for.
    pub(super) fn hang_up(&mut self) {
        self.leave();
        self.set(Heart::Over);
        drop(lock(&self.line.out).take());
        if let Some(beater) = self.beater.take() {
            // It never panics, and what it could say has been said.
            let _ = beater.join();
        }
    }

    fn set(&self, heart: Heart) {
        *lock(&self.line.heart) = heart;
        self.line.changed.notify_all();
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Quiet> {
        self.line.write(bytes).map_err(|()| Quiet::Gone)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Line {
    /// Writes all of it, or nothing more for ever: half a frame cannot be mended.
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

fn beat(line: &Line) {
    let beat = frame_of(&Request::Heartbeat);
    let mut heart = lock(&line.heart);
    loop {
        let pause = match *heart {
            Heart::Over => return,
            Heart::Waiting | Heart::Armed { renew: false } => None,
            Heart::Beating => Some(AGENT_BEAT.to_duration()),
            Heart::Armed { renew: true } => Some(AGENT_ARMED.to_duration() / 2),
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

fn listen(mut from: impl Read, says: &SyncSender<Heard>, lost: impl FnOnce()) {
    let mut inbox = Inbox::after_noise(NOISE_MAX_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let why = loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => break inbox.end().map_or_else(Quiet::Malformed, |()| Quiet::Gone),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break Quiet::Gone,
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
    let _ = says.send(Heard::End(why));
}

/// Says every whole piece; whether somebody heard them.
fn pass_on(inbox: &mut Inbox, says: &SyncSender<Heard>) -> Result<bool, Quiet> {
    while let Some(piece) = inbox.next_piece().map_err(Quiet::Malformed)? {
        let heard = match piece {
            Piece::Preamble(format) => Heard::Preamble(format),
            Piece::Frame(payload) => {
                Heard::Reply(serde_json::from_slice(&payload).map_err(|error| Quiet::Unknown(error.to_string()))?)
            }
        };
        if says.send(heard).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
