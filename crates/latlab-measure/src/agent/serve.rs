//! The agent's end of a connection: reads requests, writes replies and waits for signals, with a dead-man timer. When
//! it ends, every change to the host is undone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use latlab_sys::errno::explain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::frame::{self, FORMAT, FrameDecoder, FrameError, FrameEvent, READ_BYTES};
use super::handler::RequestHandler;
use super::message::{Greeting, Reply, Request, frame_of};
use crate::diagnostics::{Explain, Failure};
use crate::plan::defaults::{AGENT_DEAD_MAN, AGENT_SILENCE, SERVE_DURATION_MAX};
use crate::units::Nanos;

/// A pipe that is ready for writing takes this much without blocking (PIPE_BUF, pipe(7)).
const WRITE_BYTES: usize = 4_096;
/// The time for the controller's preamble.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct ServeStreams {
    pub input: OwnedFd,
    pub output: OwnedFd,
    /// Becomes readable when a signal asks the agent to end.
    pub signals: OwnedFd,
}

/// Why an agent ended before the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum AgentEnd {
    #[error("a signal ended the agent")]
    Signal,
    /// The controller was silent for too long.
    #[error("the other end of this agent does not answer")]
    Silent {
        within: Duration,
        /// The message that was due.
        awaited: &'static str,
    },
    /// The input cannot be decoded.
    #[error("unknown message from the other end of this agent")]
    Malformed(#[source] FrameError),
    /// The controller has another version of the protocol.
    #[error("cannot work with a latlab of format `{0}`")]
    Format(u16),
    #[error("lost the other end of this agent")]
    Broken(#[source] io::Error),
}

impl Explain for AgentEnd {
    fn explain(&self) -> Failure {
        let failure = Failure::world(self);
        let undone = "the changes of this agent on its host were undone";
        match self {
            AgentEnd::Signal => failure.hint(undone),
            AgentEnd::Silent { within, awaited } => {
                failure.because(format!("no {awaited} was received for {} s", within.as_secs_f64())).hint(undone)
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

/// Sends the greeting and answers requests until the input ends; then undoes every change of `handler` to the host.
///
/// # Errors
/// [`AgentEnd`] if anything but the end of the input ended it.
pub fn serve(streams: &ServeStreams, greeting: Greeting, handler: &mut RequestHandler) -> Result<(), AgentEnd> {
    let timer = DeadManTimer::new(Instant::now());
    let mut agent = AgentLoop { streams, handler, decoder: FrameDecoder::after_noise(0), timer };
    let ended = agent.greet(greeting).and_then(|()| agent.answer_requests());
    // A change that cannot be undone stays in the journal of the host; the connection is closed.
    let _ = agent.handler.undo();
    ended
}

struct AgentLoop<'a> {
    streams: &'a ServeStreams,
    handler: &'a mut RequestHandler,
    decoder: FrameDecoder,
    timer: DeadManTimer,
}

impl AgentLoop<'_> {
    fn greet(&self, greeting: Greeting) -> Result<(), AgentEnd> {
        self.write(&[&frame::preamble()[..], &frame_of(&Reply::Greeting(greeting))].concat())
    }

    fn answer_requests(&mut self) -> Result<(), AgentEnd> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.wait(self.streams.input.as_fd(), PollFlags::IN)?;
            let bytes = match rustix::io::read(&self.streams.input, &mut buffer[..]) {
                Ok(0) => return self.decoder.end().map_err(AgentEnd::Malformed),
                Ok(bytes) => bytes,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(error) => return Err(AgentEnd::Broken(error.into())),
            };
            self.decoder.push(&buffer[..bytes]);
            while let Some(event) = self.decoder.next_event().map_err(AgentEnd::Malformed)? {
                match event {
                    FrameEvent::Preamble(FORMAT) => self.timer.expect_heartbeats(Instant::now()),
                    FrameEvent::Preamble(format) => return Err(AgentEnd::Format(format)),
                    FrameEvent::Frame(payload) => self.receive(&payload)?,
                }
            }
        }
    }

    fn receive(&mut self, payload: &[u8]) -> Result<(), AgentEnd> {
        self.timer.restart(Instant::now());
        let reply = match serde_json::from_slice(payload) {
            Ok(Request::Heartbeat) => return Ok(()),
            Ok(request) => self.carry_out(request).unwrap_or_else(Reply::Error),
            Err(_) => Reply::Error(unknown_request()),
        };
        self.write(&reply_frame(&reply))
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply, Failure> {
        let planned = if let Request::Arm { planned_ns } = request { Some(planned_ns) } else { None };
        let is_disarm = matches!(request, Request::Disarm);
        let answer = self.handler.answer(request);
        // After the request: the time that it takes here must not count as silence of the controller.
        match planned {
            Some(planned) => self.timer.arm(planned, Instant::now()),
            None if is_disarm => self.timer.expect_heartbeats(Instant::now()),
            None => self.timer.restart(Instant::now()),
        }
        answer
    }

    /// Writes all of `bytes`; fails if they are not read before the timer expires.
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

    /// Waits until `stream` has data or buffer space, or has ended.
    fn wait(&self, stream: BorrowedFd<'_>, ready: PollFlags) -> Result<(), AgentEnd> {
        let deadline = self.timer.deadline();
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
        AgentEnd::Silent { within: self.timer.limit, awaited: self.timer.awaited }
    }
}

/// `reply` as a frame. One above the limit would end the connection: a failure is sent instead.
fn reply_frame(reply: &Reply) -> Vec<u8> {
    let frame = frame_of(reply);
    let bytes = frame.len();
    if bytes <= frame::PAYLOAD_MAX_BYTES {
        return frame;
    }
    frame_of(&Reply::Error(Failure::world("cannot send the reply").because(format!("it has {bytes} bytes"))))
}

fn unknown_request() -> Failure {
    Failure::world(format!("latlab {} does not know this request", env!("CARGO_PKG_VERSION")))
        .hint("run the same version of latlab on both hosts")
}

/// The dead-man timer: how long the controller may be silent. Pure: the clock is an argument.
#[derive(Clone, Copy, Debug)]
struct DeadManTimer {
    /// The message that is due, for the error.
    awaited: &'static str,
    limit: Duration,
    started: Instant,
}

impl DeadManTimer {
    fn new(now: Instant) -> DeadManTimer {
        DeadManTimer { awaited: "preamble", limit: PREAMBLE_TIMEOUT, started: now }
    }

    /// A complete frame was received.
    fn restart(&mut self, now: Instant) {
        self.started = now;
    }

    /// No run is armed: heartbeats are due from `now` on.
    fn expect_heartbeats(&mut self, now: Instant) {
        *self = DeadManTimer { awaited: "heartbeat", limit: AGENT_SILENCE.to_duration(), started: now };
    }

    /// A run of at most `planned` begins `now`. The limit is that of a session.
    fn arm(&mut self, planned: Nanos, now: Instant) {
        let limit = (planned.min(SERVE_DURATION_MAX) + AGENT_DEAD_MAN).to_duration();
        *self = DeadManTimer { awaited: "end of the armed run", limit, started: now };
    }

    fn deadline(&self) -> Instant {
        self.started + self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permitted_silence_depends_on_the_state_of_the_connection() {
        let start = Instant::now();
        let after = |span: Duration| start + span;
        let mut timer = DeadManTimer::new(start);
        assert_eq!(timer.deadline(), after(PREAMBLE_TIMEOUT));
        timer.expect_heartbeats(after(Duration::from_secs(1)));
        assert_eq!(timer.deadline(), after(Duration::from_millis(2_500)));
        for (planned, seconds) in [(Nanos::from_secs(10), 15), (Nanos(-7), 4), (Nanos::MAX, 7 * 24 * 3_600 + 5)] {
            timer.arm(planned, start);
            let deadline = timer.deadline();
            assert!(
                deadline >= after(Duration::from_secs(seconds)) && deadline < after(Duration::from_secs(seconds + 1))
            );
        }
        timer.arm(Nanos::from_secs(60), start);
        timer.restart(after(Duration::from_secs(30)));
        assert_eq!(timer.deadline(), after(Duration::from_secs(95)), "a heartbeat restarts the interval");
    }
}
