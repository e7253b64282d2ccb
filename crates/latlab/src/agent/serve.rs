//! The agent's loop, on the far host: input, output and signals under one timer, and everything undone at its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use latlab_sys::errno::explain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::error::RequestFailure;
use super::far::RequestHandler;
use super::frame::{self, FORMAT, FrameDecoder, FrameError, FrameEvent, READ_BYTES};
use super::message::{Greeting, Reply, Request, frame_of};
use super::watch::{DeadManTimer, SilencePolicy};

use crate::diagnostics::{Explain, Failure};

/// A pipe that is ready takes so much at once without blocking (PIPE_BUF).
const WRITE_BYTES: usize = 4_096;

/// What an agent speaks and listens to.
#[derive(Debug)]
pub struct ServeStreams {
    /// Requests.
    pub input: OwnedFd,
    /// Replies.
    pub output: OwnedFd,
    /// Becomes readable when a signal asks for the end.
    pub signals: OwnedFd,
}

/// Why an agent ended, where it was not by the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum AgentEnd {
    /// A signal asked for it.
    #[error("a signal ended the agent")]
    Signal,
    /// The other end was silent for too long.
    #[error("the other end of this agent is silent")]
    Silent {
        /// For so long.
        within: Duration,
        /// What it should have said.
        awaited: &'static str,
    },
    /// What came cannot be read.
    #[error("cannot understand the other end of this agent")]
    Malformed(#[source] FrameError),
    /// The other end speaks another format.
    #[error("cannot talk to a latlab of format `{0}`")]
    Format(u16),
    /// A stream broke.
    #[error("lost the other end of this agent")]
    Broken(#[source] io::Error),
}

impl Explain for AgentEnd {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        let undone = "what this agent had changed on its host is undone";
        match self {
            AgentEnd::Signal => failure.hint(undone),
            AgentEnd::Silent { within, awaited } => {
                failure.because(format!("no {awaited} for {} s", within.as_secs_f64())).hint(undone)
            }
            AgentEnd::Malformed(FrameError::Foreign { seen }) => failure
                .because(format!("it begins with `{seen}`"))
                .hint("this command is for latlab itself: `latlab ping ssh:HOST` starts it"),
            AgentEnd::Malformed(error) => failure.because(error.to_string()).hint(undone),
            AgentEnd::Format(_) => failure
                .because(format!("this is latlab {}, format {FORMAT}", env!("CARGO_PKG_VERSION")))
                .hint("run the same version of latlab on both hosts"),
            AgentEnd::Broken(source) => failure.because(explain(source)).hint(undone),
        }
    }
}

/// Greets, and answers requests until the input ends. Whatever ends it, `far` is as if it had never been when this
/// returns.
///
/// # Errors
/// [`AgentEnd`] where anything but the end of the input ended it.
pub fn serve(streams: &ServeStreams, greeting: Greeting, far: &mut RequestHandler) -> Result<(), AgentEnd> {
    let mut agent =
        Serving { streams, far, inbox: FrameDecoder::after_noise(0), watch: DeadManTimer::new(Instant::now()) };
    let ended = agent.greet(greeting).and_then(|()| agent.converse());
    // What could not be undone is in the journal of the host; the connection is closed.
    let _ = agent.far.undo();
    ended
}

struct Serving<'a> {
    streams: &'a ServeStreams,
    far: &'a mut RequestHandler,
    inbox: FrameDecoder,
    watch: DeadManTimer,
}

impl Serving<'_> {
    fn greet(&self, greeting: Greeting) -> Result<(), AgentEnd> {
        self.write(&[&frame::preamble()[..], &frame_of(&Reply::Greeting(greeting))].concat())
    }

    fn converse(&mut self) -> Result<(), AgentEnd> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.wait(self.streams.input.as_fd(), PollFlags::IN)?;
            let bytes = match rustix::io::read(&self.streams.input, &mut buffer[..]) {
                Ok(0) => return self.inbox.end().map_err(AgentEnd::Malformed),
                Ok(bytes) => bytes,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(error) => return Err(AgentEnd::Broken(error.into())),
            };
            self.inbox.push(&buffer[..bytes]);
            while let Some(piece) = self.inbox.next_piece().map_err(AgentEnd::Malformed)? {
                match piece {
                    FrameEvent::Preamble(FORMAT) => self.watch.expect_beats(Instant::now()),
                    FrameEvent::Preamble(format) => return Err(AgentEnd::Format(format)),
                    FrameEvent::Frame(payload) => self.hear(&payload)?,
                }
            }
        }
    }

    fn hear(&mut self, payload: &[u8]) -> Result<(), AgentEnd> {
        self.watch.hear(Instant::now());
        let reply = match serde_json::from_slice(payload) {
            Ok(Request::Heartbeat) => return Ok(()),
            Ok(request) => self.obey(request).unwrap_or_else(Reply::Error),
            Err(error) => Reply::Error(unknown(&error)),
        };
        self.write(&reply_frame(&reply))
    }

    fn obey(&mut self, request: Request) -> Result<Reply, RequestFailure> {
        let (arm, disarm) = match &request {
            Request::Arm { planned_ns } => (Some(*planned_ns), false),
            request => (None, matches!(request, Request::Disarm)),
        };
        let answer = self.far.answer(request);
        // After the deed: a slow request at this end must not count as silence of the other.
        match (arm, disarm) {
            (Some(planned), _) => self.watch.arm(planned, Instant::now()),
            (None, true) => self.watch.expect_beats(Instant::now()),
            (None, false) => self.watch.hear(Instant::now()),
        }
        answer
    }

    /// Writes all of `bytes`, unless they are not read before the timer ends.
    fn write(&self, bytes: &[u8]) -> Result<(), AgentEnd> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.wait(self.streams.output.as_fd(), PollFlags::OUT)?;
            match rustix::io::write(&self.streams.output, &rest[..rest.len().min(WRITE_BYTES)]) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(AgentEnd::Broken(error.into())),
            }
        }
        Ok(())
    }

    /// Waits until `stream` is ready: data, buffer space, or its end.
    fn wait(&self, stream: BorrowedFd<'_>, ready: PollFlags) -> Result<(), AgentEnd> {
        let deadline = self.watch.deadline();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| AgentEnd::Broken(io::ErrorKind::InvalidInput.into()))?;
            let mut waiting = [
                PollFd::from_borrowed_fd(self.streams.signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stream, ready),
            ];
            match poll(&mut waiting, Some(&left)) {
                Ok(0) => return Err(self.silent()),
                Ok(_) if !waiting[0].revents().is_empty() => return Err(AgentEnd::Signal),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(AgentEnd::Broken(error.into())),
            }
        }
    }

    fn silent(&self) -> AgentEnd {
        let (silence, within) = self.watch.state();
        let awaited = match silence {
            SilencePolicy::Unmet => "preamble",
            SilencePolicy::Idle => "heartbeat",
            SilencePolicy::Armed => "end of the armed run",
        };
        AgentEnd::Silent { within, awaited }
    }
}

/// A reply that no frame holds would end the conversation: it is a refusal instead.
fn reply_frame(reply: &Reply) -> Vec<u8> {
    let frame = frame_of(reply);
    let bytes = frame.len();
    if bytes <= frame::PAYLOAD_MAX_BYTES {
        return frame;
    }
    frame_of(&Reply::Error(RequestFailure::world("cannot send the reply", format!("it has {bytes} bytes"))))
}

fn unknown(error: &serde_json::Error) -> RequestFailure {
    RequestFailure {
        hint: Some("run the same version of latlab on both hosts".into()),
        ..RequestFailure::world(
            format!("latlab {} does not know this request", env!("CARGO_PKG_VERSION")),
            error.to_string(),
        )
    }
}
