//! The hot loops of `ping`. Once armed they make no system call but send, receive, clock and the wait of the transport,
//! and do not allocate, lock, format or log (invariant 4; tests/alloc.rs).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sent_probes::SentProbes;
use super::sequence::{LINGER, ProbeSequence};
use crate::clock::Clock;
use crate::measure::{CpuSource, Slice};
use crate::plan::{PingSpec, Schedule};
use crate::probe::{Phase, Seq};
use crate::recording::EventLog;
use crate::recording::{ProbeStamps, SpoolEvent};
use crate::session::{Answer, ProbeCodec};
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};

/// The pause of a closed loop after a send that the kernel refused, so that a path that refuses every probe does not become
/// a busy loop: at most 1,000 system calls a second.
const REFUSED_PAUSE: Nanos = Nanos::from_millis(1);

/// Measures one slice. `stop` ends it early: no further probe is sent, and answers in flight are awaited for a second at
/// most.
///
/// # Errors
/// The socket failed.
pub fn run_slice<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    sequence: &mut ProbeSequence,
    slice: &Slice,
    ping: &PingSpec,
    stop: &AtomicBool,
) -> io::Result<()> {
    match ping.schedule {
        Schedule::Closed => closed_loop(sender, sequence, slice, ping.timeout_ns, stop),
        Schedule::Periodic { .. } | Schedule::Poisson { .. } => scheduled(sender, sequence, slice, ping, stop),
    }
}

/// One probe at a time: the next one is sent when the last was answered or timed out.
fn closed_loop<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    sequence: &mut ProbeSequence,
    slice: &Slice,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut now = sender.now();
    let end = slice.end(now);
    let mut left = slice.count;
    while left > 0 && now < end && !stop.load(Ordering::Relaxed) {
        let seq = sequence.take();
        let (sent, taken) = sender.send(seq, slice.phase, None);
        let patience = if taken { timeout } else { timeout.min(REFUSED_PAUSE) };
        let waited = await_answer(sender, seq, sent, patience, stop)?;
        if waited.timed_out {
            sender.timed_out(seq, waited.until - sent);
        }
        now = waited.until;
        left -= 1;
    }
    Ok(())
}

struct Waited {
    /// The last reading of the clock.
    until: Stamp<SenderClock>,
    /// Whether the time-out passed without the answer.
    timed_out: bool,
}

/// Waits for the answer to `seq`; records all others.
#[inline]
fn await_answer<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    seq: Seq,
    sent: Stamp<SenderClock>,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<Waited> {
    let deadline = sent + timeout;
    let mut until = sent;
    loop {
        match sender.receive(deadline - until)? {
            Some((answered, received)) if answered == seq => return Ok(Waited { until: received, timed_out: false }),
            Some((_, received)) => until = received,
            None => until = sender.now(),
        }
        let timed_out = until >= deadline;
        if timed_out || (stop.load(Ordering::Relaxed) && until >= sent + LINGER) {
            return Ok(Waited { until, timed_out });
        }
    }
}

/// Probes are sent when due, independent of answers; one thread sends and receives. A probe is sent late rather than
/// skipped, unless it is later than the permitted backlog: then it is recorded as not sent.
fn scheduled<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    sequence: &mut ProbeSequence,
    slice: &Slice,
    ping: &PingSpec,
    stop: &AtomicBool,
) -> io::Result<()> {
    // Probes of the slice before are not awaited any more. Before the clock is read.
    sequence.flight.clear();
    let start = sender.now();
    let end = slice.end(start);
    sequence.begin(start);
    let mut left = slice.count;
    let mut last_sent = start;
    while left > 0 && sequence.due() < end && !stop.load(Ordering::Relaxed) {
        let now = sender.now();
        let due = sequence.due();
        if now < due {
            receive_into(sender, sequence, due - now)?;
            continue;
        }
        let seq = sequence.take();
        if now - due > ping.max_backlog_ns {
            sender.give_up(seq, slice.phase, due);
        } else {
            let (sent, taken) = sender.send(seq, slice.phase, Some(due));
            last_sent = sent;
            if taken {
                sequence.flight.sent(seq);
            }
        }
        left -= 1;
        // One receive call between two probes, so that answers are received during a backlog.
        receive_into(sender, sequence, Nanos::ZERO)?;
    }
    drain(sender, sequence, last_sent, ping.timeout_ns, stop)
}

/// Waits for answers in flight, until a time-out after the last probe.
fn drain<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    sequence: &mut ProbeSequence,
    last_sent: Stamp<SenderClock>,
    timeout: Nanos,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut now = sender.now();
    while !sequence.flight.is_empty() && now < last_sent + timeout {
        if stop.load(Ordering::Relaxed) && now >= last_sent + sequence.linger {
            break;
        }
        receive_into(sender, sequence, last_sent + timeout - now)?;
        now = sender.now();
    }
    Ok(())
}

#[inline]
fn receive_into<T: Transport, C: Clock, D: ProbeCodec>(
    sender: &mut SessionSender<'_, T, C, D>,
    sequence: &mut ProbeSequence,
    patience: Nanos,
) -> io::Result<()> {
    sender.read_stamps();
    if let Some((seq, _)) = sender.receive(patience)? {
        sequence.flight.answered(seq);
    }
    Ok(())
}

/// Larger than the largest UDP payload.
const BUFFER_BYTES: usize = 1 << 16;

/// The sender of a session, armed: all that a loop uses. Nothing in here allocates after `new`.
pub struct SessionSender<'a, T, C, D> {
    transport: &'a mut T,
    clock: &'a C,
    codec: &'a mut D,
    log: &'a mut EventLog,
    cpu: CpuSource,
    buffer: Box<[u8]>,
    /// With stamps of the kernel.
    stamps: Option<&'a mut SentProbes>,
}

impl<'a, T: Transport, C: Clock, D: ProbeCodec> SessionSender<'a, T, C, D> {
    pub fn new(transport: &'a mut T, clock: &'a C, codec: &'a mut D, log: &'a mut EventLog, cpu: CpuSource) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        SessionSender { transport, clock, codec, log, cpu, buffer, stamps: None }
    }

    /// The same with stamps of the kernel, which the transport takes.
    #[must_use]
    pub fn with_stamps(self, stamps: Option<&'a mut SentProbes>) -> Self {
        SessionSender { stamps, ..self }
    }

    #[inline]
    pub fn now(&self) -> Stamp<SenderClock> {
        self.clock.now()
    }

    /// Sends probe `seq` and records it, or the error. Returns the stamp, taken after encoding and just before the send
    /// call, and whether the kernel took the probe.
    #[inline]
    pub fn send(&mut self, seq: Seq, phase: Phase, due: Option<Stamp<SenderClock>>) -> (Stamp<SenderClock>, bool) {
        let datagram = self.codec.encode(seq);
        let sent = self.clock.now();
        let outcome = self.transport.send(datagram);
        // Two calls, so that each event is built in the ring and not copied to it.
        match &outcome {
            Ok(()) => {
                self.log.push(SpoolEvent::Sent { seq, phase, due, sent, cpu: self.cpu.now() });
                if let Some(stamps) = &mut self.stamps
                    && let Some(number) = self.transport.stamps().and_then(|stamps| stamps.last_number)
                {
                    stamps.sent(number, seq, sent, |stamps| self.log.push(SpoolEvent::Stamped(stamps)));
                }
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                self.log.push(SpoolEvent::SendFailed { seq, phase, due, tried: sent, errno });
            }
        }
        (sent, outcome.is_ok())
    }

    /// Records a probe that is not sent.
    pub(crate) fn give_up(&mut self, seq: Seq, phase: Phase, due: Stamp<SenderClock>) {
        self.log.push(SpoolEvent::NotSent { seq, phase, due });
    }

    /// Records that a closed loop stopped waiting for `seq` after `waited`, which after a refused send is the pause.
    pub fn timed_out(&mut self, seq: Seq, waited: Nanos) {
        self.log.push(SpoolEvent::TimedOut { seq, waited });
    }

    /// Receives one valid answer, waiting about `patience`. The stamp is taken just after the receive call, before the
    /// answer is decoded.
    #[inline]
    pub fn receive(&mut self, patience: Nanos) -> io::Result<Option<(Seq, Stamp<SenderClock>)>> {
        let Some(length) = self.transport.receive(&mut self.buffer, patience)? else { return Ok(None) };
        let received = self.transport.received_at().unwrap_or_else(|| self.clock.now());
        let Some(answer) = self.codec.decode(&self.buffer[..length], received) else { return Ok(None) };
        let stamp = self.stamps.as_mut().and_then(|stamps| stamps.arrival(self.transport));
        self.log.push(self.arrival(answer, received, stamp));
        if let Some(stamps) = &mut self.stamps {
            if let Some((seq, lag)) = answer.passage {
                let reflector_tx_lag = Some(lag);
                let stamps = ProbeStamps { seq, tx_sched: None, tx_software: None, reflector_tx_lag };
                self.log.push(SpoolEvent::Stamped(stamps));
            }
            stamps.read(self.transport, |stamps| self.log.push(SpoolEvent::Stamped(stamps)));
        }
        Ok(Some((answer.seq, received)))
    }

    /// Before the thread sleeps for something else than one answer.
    #[inline]
    fn read_stamps(&mut self) {
        if let Some(stamps) = &mut self.stamps {
            stamps.read_before_sleep(self.transport, |stamps| self.log.push(SpoolEvent::Stamped(stamps)));
        }
    }

    #[inline]
    fn arrival(
        &self,
        answer: Answer,
        received: Stamp<SenderClock>,
        rx_software: Option<Stamp<SenderClock>>,
    ) -> SpoolEvent {
        SpoolEvent::Arrived {
            seq: answer.seq,
            received,
            reflector_received: answer.reflector_received,
            reflector_sent: answer.reflector_sent,
            rx_software,
            reflector_rx_software: answer.reflector_rx_software,
            cpu: self.cpu.now(),
            reflector_cpu: answer.reflector_cpu,
        }
    }
}
