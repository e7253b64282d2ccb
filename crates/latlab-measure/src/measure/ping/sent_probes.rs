//! Probes that have left and whose stamps by the kernel are to come. Reading them takes system calls, which the loop makes
//! outside of the delays that it measures.

use std::io;

use latlab_sys::stamps::{TransmitPoint, TransmitStamp};

use crate::clock::RealtimeOffset;
use crate::facts::StampFacts;
use crate::measure::MeasureError;
use crate::plan::{StampLayer, WaitMode};
use crate::probe::Seq;
use crate::recording::ProbeStamps;
use crate::transport::{Transport, stamp_cost_ns};
use crate::units::{Nanos, SenderClock, Stamp};

/// More than the queues of a host hold: stamps of older probes are absent.
const PROBES: usize = 4_096;

#[derive(Clone, Copy, Debug)]
struct SentProbe {
    number: u32,
    seq: Seq,
    sent: Stamp<SenderClock>,
    queue: Option<Stamp<SenderClock>>,
}

impl SentProbe {
    fn stamps(&self, driver: Option<Stamp<SenderClock>>) -> ProbeStamps {
        ProbeStamps { seq: self.seq, tx_sched: self.queue, tx_software: driver, reflector_tx_lag: None }
    }
}

#[derive(Debug)]
pub struct SentProbes {
    clock: RealtimeOffset,
    facts: StampFacts,
    probes: Box<[Option<SentProbe>]>,
    /// The last probe that left, and the last one whose stamp of the driver came.
    newest: Option<u32>,
    left: Option<u32>,
    /// A thread that spins must not read stamps while it waits.
    spins: bool,
}

impl SentProbes {
    /// Requests stamps of `transport`, of which the last message before the first probe has been answered.
    ///
    /// # Errors
    /// The kernel's, or `layer` is that of the NIC.
    pub(super) fn request(
        transport: &mut impl Transport,
        layer: StampLayer,
        wait: WaitMode,
    ) -> Result<SentProbes, MeasureError> {
        let mut request = || {
            if layer == StampLayer::Nic {
                return Err(io::ErrorKind::Unsupported.into());
            }
            transport.request_stamps()?;
            stamp_cost_ns()
        };
        let cost_ns = request().map_err(|source| MeasureError::Stamps { layer, source })?;
        let clock = RealtimeOffset::read();
        let facts = StampFacts { error_ns: clock.error_ns(), clock_steps: 0, cost_ns };
        Ok(SentProbes::new(clock, facts, wait == WaitMode::Spin))
    }

    fn new(clock: RealtimeOffset, facts: StampFacts, spins: bool) -> SentProbes {
        let probes = vec![None; PROBES].into_boxed_slice();
        SentProbes { clock, facts, probes, newest: None, left: None, spins }
    }

    pub(super) fn facts(&self) -> StampFacts {
        self.facts
    }

    /// Probe `seq` left as datagram `number`.
    #[inline]
    pub(super) fn sent(
        &mut self,
        number: u32,
        seq: Seq,
        sent: Stamp<SenderClock>,
        mut record: impl FnMut(ProbeStamps),
    ) {
        let place = &mut self.probes[number as usize % PROBES];
        if let Some(unmatched) = place.filter(|probe| probe.queue.is_some()) {
            record(unmatched.stamps(None));
        }
        *place = Some(SentProbe { number, seq, sent, queue: None });
        self.newest = Some(number);
    }

    /// The stamp of the answer that came last.
    #[inline]
    pub(super) fn arrival(&mut self, transport: &impl Transport) -> Option<Stamp<SenderClock>> {
        let realtime_ns = transport.stamps()?.received_ns?;
        self.clock_holds().then(|| self.clock.to_monotonic(realtime_ns))
    }

    /// Reads the stamps of the probes that have left, before the thread sleeps: an error queue that holds something ends
    /// its sleep.
    #[inline]
    pub(super) fn read_before_sleep(&mut self, transport: &impl Transport, record: impl FnMut(ProbeStamps)) {
        if !self.spins {
            self.read(transport, record);
        }
    }

    /// Reads the stamps of the probes that have left.
    #[inline]
    pub(super) fn read(&mut self, transport: &impl Transport, record: impl FnMut(ProbeStamps)) {
        if let Some(stamps) = transport.stamps() {
            self.take_all(|| stamps.next_transmitted(), record);
        }
    }

    fn take_all(&mut self, mut next: impl FnMut() -> Option<TransmitStamp>, mut record: impl FnMut(ProbeStamps)) {
        while self.left != self.newest {
            let Some(stamp) = next() else { return };
            if self.clock_holds() {
                self.take(stamp).into_iter().for_each(&mut record);
            }
        }
    }

    /// Stamps that no stamp of the driver followed.
    pub(super) fn rest(&self) -> impl Iterator<Item = ProbeStamps> {
        self.probes.iter().flatten().filter(|probe| probe.queue.is_some()).map(|probe| probe.stamps(None))
    }

    /// A stamp counts if it is not before the stamp before, as it is if another datagram had its number.
    /// Returns the stamps of a probe that is in the driver.
    fn take(&mut self, stamp: TransmitStamp) -> Option<ProbeStamps> {
        let (at, error) = (self.clock.to_monotonic(stamp.realtime_ns), Nanos(self.clock.error_ns()));
        let place = &mut self.probes[stamp.number as usize % PROBES];
        let probe = place.as_mut().filter(|probe| probe.number == stamp.number)?;
        let at = Some(at).filter(|at| *at + error >= probe.queue.unwrap_or(probe.sent));
        if stamp.point == TransmitPoint::Queue {
            probe.queue = probe.queue.or(at);
            return None;
        }
        self.left = Some(stamp.number);
        place.take().map(|probe| probe.stamps(at))
    }

    fn clock_holds(&mut self) -> bool {
        let holds = self.clock.holds();
        self.facts.clock_steps += u64::from(!holds);
        self.facts.error_ns = self.facts.error_ns.max(self.clock.error_ns());
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Monotonic};

    /// Sends probes 10, 11 and 12 as datagrams 0, 1 and 2 at 0, 1,000 and 2,000 ns after now, and reads `stamps`: number, point,
    /// and ns after now. Returns seq and stamps of what was recorded.
    fn recorded(stamps: &[(u32, TransmitPoint, i64)]) -> Vec<(u64, Option<i64>, Option<i64>)> {
        let facts = StampFacts { error_ns: 0, clock_steps: 0, cost_ns: 0 };
        let mut probes = SentProbes::new(RealtimeOffset::read(), facts, false);
        let mut rows = Vec::new();
        let mut record = |stamps: ProbeStamps| rows.push(stamps);
        let start: Stamp<SenderClock> = Monotonic.now();
        let at = |after: i64| start + Nanos(after);
        for number in 0..3 {
            probes.sent(number, Seq(10 + u64::from(number)), at(1_000 * i64::from(number)), &mut record);
        }
        let offset_ns = -probes.clock.to_monotonic::<SenderClock>(0).as_nanos();
        let stamped =
            |&(number, point, after)| TransmitStamp { number, point, realtime_ns: at(after).as_nanos() + offset_ns };
        let mut stamps = stamps.iter().map(stamped);
        probes.take_all(|| stamps.next(), &mut record);
        rows.extend(probes.rest());
        let after = |stamp: Option<Stamp<SenderClock>>| stamp.map(|stamp| (stamp - start).0);
        rows.into_iter().map(|row| (row.seq.0, after(row.tx_sched), after(row.tx_software))).collect()
    }

    const QUEUE: TransmitPoint = TransmitPoint::Queue;
    const DRIVER: TransmitPoint = TransmitPoint::Driver;

    #[test]
    fn each_stamp_belongs_to_the_probe_of_its_number_in_any_order() {
        let stamps = [(1, QUEUE, 1_100), (0, QUEUE, 100), (1, DRIVER, 9_000), (0, DRIVER, 20_000), (2, DRIVER, 2_500)];
        let expected = [(11, Some(1_100), Some(9_000)), (10, Some(100), Some(20_000)), (12, None, Some(2_500))];
        assert_eq!(recorded(&stamps), expected);
    }

    #[test]
    fn what_a_driver_does_not_stamp_is_absent() {
        assert_eq!(recorded(&[(0, QUEUE, 100), (2, QUEUE, 2_100)]), [(10, Some(100), None), (12, Some(2_100), None)]);
        assert_eq!(recorded(&[]), []);
    }

    #[test]
    fn a_stamp_before_its_probe_or_of_no_probe_is_left_out() {
        let long_before = -1_000_000;
        assert_eq!(recorded(&[(0, QUEUE, long_before), (0, DRIVER, 50), (9, DRIVER, 60)]), [(10, None, Some(50))]);
        assert_eq!(recorded(&[(1, QUEUE, 1_100), (1, DRIVER, long_before)]), [(11, Some(1_100), None)]);
    }
}
