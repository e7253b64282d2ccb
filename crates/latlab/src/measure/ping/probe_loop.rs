//! The hot loops of `ping`. Once armed they make no system call but send, receive, clock and the
//! transport's wait, and allocate, lock, format and log nothing (invariant 4; tests/alloc.rs).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sequence::{LINGER, ProbeSequence};
use crate::clock::Clock;
use crate::measure::{CpuSource, Slice};
use crate::plan::{PingSpec, Schedule};
use crate::probe::{Phase, Seq};
use crate::recording::EventLog;
use crate::recording::SpoolEvent;
use crate::session::{Answer, ProbeCodec};
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};

/// How long a closed loop pauses after a send that the kernel refused: nothing can come of it, but a path that
/// refuses every probe must not become a busy loop. At most 1,000 system calls a second, and a run of 10,000
/// refusals ends after 10 s.
const REFUSED_PAUSE: Nanos = Nanos::from_millis(1);

/// Runs one slice of a ping run. `stop` ends it early: no further probe leaves, but the answers in
/// flight are still awaited for a second at most. An error means that the socket broke and measuring cannot go on.
pub fn run_slice<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    course: &mut ProbeSequence,
    slice: &Slice,
    ping: &PingSpec,
    stop: &AtomicBool,
) -> io::Result<()> {
    match ping.schedule {
        Schedule::Closed => closed_loop(ends, course, slice, ping.timeout_ns, stop),
        Schedule::Periodic { .. } | Schedule::Poisson { .. } => scheduled(ends, course, slice, ping, stop),
    }
}

/// One probe at a time: the next leaves when the last was answered or timed out.
fn closed_loop<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    course: &mut ProbeSequence,
    slice: &Slice,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut now = ends.now();
    let end = slice.end(now);
    let mut left = slice.count;
    while left > 0 && now < end && !stop.load(Ordering::Relaxed) {
        let seq = course.take();
        let (sent, taken) = ends.send(seq, slice.phase, None);
        let patience = if taken { timeout } else { timeout.min(REFUSED_PAUSE) };
        let waited = await_answer(ends, seq, sent, patience, stop)?;
        if waited.in_vain {
            ends.waited_in_vain(seq, waited.until - sent);
        }
        now = waited.until;
        left -= 1;
    }
    Ok(())
}

/// How a wait ended.
struct Waited {
    /// The last clock read.
    until: Stamp<SenderClock>,
    /// The time-out passed without the answer.
    in_vain: bool,
}

/// Waits for the answer to `seq`, writing down any other that comes.
#[inline]
fn await_answer<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    seq: Seq,
    sent: Stamp<SenderClock>,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<Waited> {
    let deadline = sent + timeout;
    let mut until = sent;
    loop {
        match ends.receive(deadline - until)? {
            Some((answered, received)) if answered == seq => return Ok(Waited { until: received, in_vain: false }),
            Some((_, received)) => until = received,
            None => until = ends.now(),
        }
        let in_vain = until >= deadline;
        if in_vain || (stop.load(Ordering::Relaxed) && until >= sent + LINGER) {
            return Ok(Waited { until, in_vain });
        }
    }
}

/// Probes leave when due, whatever comes back; one thread sends and receives. A due probe is sent
/// late rather than skipped, unless the backlog is past its limit: then it is written down as given up.
fn scheduled<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    course: &mut ProbeSequence,
    slice: &Slice,
    ping: &PingSpec,
    stop: &AtomicBool,
) -> io::Result<()> {
    // Before the clock is read: what the slice before gave up is not waited for any more.
    course.flight.clear();
    let start = ends.now();
    let end = slice.end(start);
    course.begin(start);
    let mut left = slice.count;
    let mut last_sent = start;
    while left > 0 && course.due() < end && !stop.load(Ordering::Relaxed) {
        let now = ends.now();
        let due = course.due();
        if now < due {
            receive_into(ends, course, due - now)?;
            continue;
        }
        let seq = course.take();
        if now - due > ping.max_backlog_ns {
            ends.give_up(seq, slice.phase, due);
        } else {
            let (sent, taken) = ends.send(seq, slice.phase, Some(due));
            last_sent = sent;
            if taken {
                course.flight.sent(seq);
            }
        }
        left -= 1;
        // Between two due probes one look at the socket: a backlog must not starve the answers.
        receive_into(ends, course, Nanos::ZERO)?;
    }
    drain(ends, course, last_sent, ping.timeout_ns, stop)
}

/// Waits for the answers in flight, at most a time-out after the last probe left.
fn drain<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    course: &mut ProbeSequence,
    last_sent: Stamp<SenderClock>,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut now = ends.now();
    while !course.flight.is_empty() && now < last_sent + timeout {
        if stop.load(Ordering::Relaxed) && now >= last_sent + course.linger {
            break;
        }
        receive_into(ends, course, last_sent + timeout - now)?;
        now = ends.now();
    }
    Ok(())
}

#[inline]
fn receive_into<T: Transport, C: Clock, D: ProbeCodec>(
    ends: &mut SessionSender<'_, T, C, D>,
    course: &mut ProbeSequence,
    patience: Nanos,
) -> io::Result<()> {
    if let Some((seq, _)) = ends.receive(patience)? {
        course.flight.answered(seq);
    }
    Ok(())
}

/// Room for the largest UDP payload and then some.
const BUFFER_BYTES: usize = 1 << 16;

/// Everything a loop touches while armed. Nothing in here allocates after `new`.
pub struct SessionSender<'a, T, C, D> {
    transport: &'a mut T,
    clock: &'a C,
    dialogue: &'a mut D,
    log: &'a mut EventLog,
    cpu: CpuSource,
    buffer: Box<[u8]>,
}

impl<'a, T: Transport, C: Clock, D: ProbeCodec> SessionSender<'a, T, C, D> {
    /// Arms the end.
    pub fn new(transport: &'a mut T, clock: &'a C, dialogue: &'a mut D, log: &'a mut EventLog, cpu: CpuSource) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        SessionSender { transport, clock, dialogue, log, cpu, buffer }
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// Sends probe `seq` and writes down that it left, or why not. Returns the stamp taken just
    /// before the send call and whether the kernel took it. Encoding comes before the stamp.
    #[inline]
    pub(crate) fn send(
        &mut self,
        seq: Seq,
        phase: Phase,
        due: Option<Stamp<SenderClock>>,
    ) -> (Stamp<SenderClock>, bool) {
        let datagram = self.dialogue.encode(seq);
        let sent = self.clock.now();
        let outcome = self.transport.send(datagram);
        // An event of a known kind goes straight into the ring; one of either kind would be put together first.
        match &outcome {
            Ok(()) => self.log.push(SpoolEvent::Sent { seq, phase, due, sent, cpu: self.cpu.now() }),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                self.log.push(SpoolEvent::SendFailed { seq, phase, due, tried: sent, errno });
            }
        }
        (sent, outcome.is_ok())
    }

    /// Gives up a due probe.
    pub(crate) fn give_up(&mut self, seq: Seq, phase: Phase, due: Stamp<SenderClock>) {
        self.log.push(SpoolEvent::NotSent { seq, phase, due });
    }

    /// Writes down that a closed loop stopped waiting for `seq`; of a probe that was refused it is the pause.
    pub(crate) fn waited_in_vain(&mut self, seq: Seq, waited: Nanos) {
        self.log.push(SpoolEvent::TimedOut { seq, waited });
    }

    /// Takes one valid answer, waiting about `patience`; the stamp is taken just after the receive
    /// call, before the answer is understood.
    #[inline]
    pub(crate) fn receive(&mut self, patience: Nanos) -> io::Result<Option<(Seq, Stamp<SenderClock>)>> {
        let Some(length) = self.transport.receive(&mut self.buffer, patience)? else { return Ok(None) };
        let received = self.clock.now();
        let Some(answer) = self.dialogue.decode(&self.buffer[..length], received) else { return Ok(None) };
        self.log.push(self.arrival(answer, received));
        Ok(Some((answer.seq, received)))
    }

    #[inline]
    fn arrival(&self, answer: Answer, received: Stamp<SenderClock>) -> SpoolEvent {
        SpoolEvent::Arrived {
            seq: answer.seq,
            received,
            reflector_received: answer.reflector_received,
            reflector_sent: answer.reflector_sent,
            rx_software: None,
            reflector_rx_software: answer.reflector_rx_software,
            cpu: self.cpu.now(),
            reflector_cpu: answer.reflector_cpu,
        }
    }
}
