//! The flow of a down-stream: the far end sends within the credit that this end gives, and this end counts. Its intervals
//! are those of an up-stream with the sides changed: the sender's are told in TALLYs, the receiver's are seen here.

use std::sync::atomic::{AtomicBool, Ordering};

use super::down_rows::{CountingCost, DownRow, DownRows};
use super::down_stream::{DownReceiver, TallyPoint};
use super::stream::StreamError;
use super::stream_flow::{FlowCounts, FlowSlice, set_exact_timers, tell};
use crate::clock::{Monotonic, thread_cpu_time};
use crate::facts::StreamInterval;
use crate::recording::EventLog;
use crate::transport::udp::UdpTransport;

/// The flow, open.
pub(super) struct DownFlow {
    down: DownReceiver<UdpTransport, Monotonic>,
    log: EventLog,
    settled: bool,
    stretch: FlowCounts,
}

impl DownFlow {
    /// The flow that tells `log` what both ends see.
    pub(super) fn new(down: DownReceiver<UdpTransport, Monotonic>, log: EventLog) -> DownFlow {
        DownFlow { down, log, settled: true, stretch: FlowCounts::default() }
    }

    /// Whether the far end has told all that it sent.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// What the last slice came to.
    pub(super) fn stretch(&self) -> FlowCounts {
        self.stretch
    }

    /// Ends the session, unless the far end `is_gone` or has fallen silent.
    pub(super) fn close(self, is_gone: bool) -> (Option<UdpTransport>, EventLog) {
        ((self.settled && !is_gone).then(|| self.down.close()), self.log)
    }

    /// Has the far end send for a slice, or until `stop`, and writes down each interval of both ends. The far end is asked
    /// before the first credit and after the last one, so that both ends tell of the same packets. What passes before the
    /// first packet and after the last one, while nothing is sent, is in no interval.
    ///
    /// # Errors
    /// The socket broke, or the far end fell silent.
    pub(super) fn run(&mut self, slice: &FlowSlice<'_>, stop: &AtomicBool) -> Result<(), StreamError> {
        set_exact_timers(slice);
        (self.settled, self.stretch) = (false, FlowCounts::default());
        let ready = self.down.ready()?;
        let ready = TallyPoint { tally: self.down.last().map_or(ready.tally, |last| last.tally), ..ready };
        let begin = self.down.now();
        let end = begin + slice.span;
        let most = self.down.begin(begin, slice.span, ready.tally.packets, slice.packets_per_second.is_some());
        let mut rows = DownRows::new((self.down.gap(), most), begin, ready, self.cost());
        let ended = loop {
            let ran = self.down.run(rows.due(), end, stop);
            self.tell_latest(slice, &mut rows, true);
            if ran.is_err() || self.down.now() >= end || stop.load(Ordering::Relaxed) {
                break ran;
            }
        };
        let last = ended.and_then(|()| self.down.settle());
        self.settled = last.is_ok();
        match &last {
            Ok(last) => {
                let told = rows.last(*last, self.cost(), self.down.came(), self.down.now());
                told.into_iter().flatten().for_each(|row| self.tell(slice, row));
            }
            Err(_) => self.tell_latest(slice, &mut rows, false),
        }
        let (sent, delivered, sending, counting) = rows.totals();
        self.stretch = FlowCounts { sent, delivered, sending, counting };
        match last {
            Err(error) if !stop.load(Ordering::Relaxed) => Err(error),
            _ => Ok(()),
        }
    }

    fn cost(&self) -> CountingCost {
        CountingCost { drops: self.down.transport().socket_drops(), cpu: thread_cpu_time() }
    }

    /// Writes down what both ends did until the latest TALLY, unless that comes too soon and more `is_to_follow`.
    fn tell_latest(&mut self, slice: &FlowSlice<'_>, rows: &mut DownRows, is_to_follow: bool) {
        let Some(latest) = self.down.last().copied() else { return };
        let told = rows.told(latest, self.cost(), self.down.came(), is_to_follow);
        told.into_iter().flatten().for_each(|row| self.tell(slice, row));
    }

    fn tell(&mut self, slice: &FlowSlice<'_>, row: DownRow) {
        let DownRow { start_ns, end_ns, cpu, seen } = row;
        tell(&mut self.log, slice, StreamInterval { flow: 0, phase: slice.phase, start_ns, end_ns, cpu, seen });
    }
}
