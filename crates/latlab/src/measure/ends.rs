//! This end of the path, armed: a transport, a clock, what to say, and where to write it down.

use std::io;

use crate::clock::Clock;
use crate::probe::{Phase, Seq};
use crate::recording::EventLog;
use crate::recording::event::SpoolEvent;
use crate::session::{Answer, ProbeCodec};
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};

/// Room for the largest UDP payload and then some.
const BUFFER_BYTES: usize = 1 << 16;

/// How the loop learns on which CPU it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuOf {
    /// Pinned: there is nothing to ask.
    Pinned(u16),
    /// Asked each time, where that needs no system call; else unknown.
    Running,
    /// Not known (simulations).
    Unknown,
}

impl CpuOf {
    #[inline]
    pub(super) fn now(self) -> Option<u16> {
        match self {
            CpuOf::Pinned(cpu) => Some(cpu),
            CpuOf::Running => latlab_sys::scheduler::current_cpu(),
            CpuOf::Unknown => None,
        }
    }
}

/// Everything a loop touches while armed. Nothing in here allocates after `new`.
pub struct Ends<'a, T, C, D> {
    transport: &'a mut T,
    clock: &'a C,
    dialogue: &'a mut D,
    log: &'a mut EventLog,
    cpu: CpuOf,
    buffer: Box<[u8]>,
}

impl<'a, T: Transport, C: Clock, D: ProbeCodec> Ends<'a, T, C, D> {
    /// Arms the end.
    pub fn new(transport: &'a mut T, clock: &'a C, dialogue: &'a mut D, log: &'a mut EventLog, cpu: CpuOf) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Ends { transport, clock, dialogue, log, cpu, buffer }
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
