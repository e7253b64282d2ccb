//! The answered probes of a run in memory, 22 B each: 220 MB for ten million.

use super::stages::{PEER_RECEIVED, PEER_SENT, PRESENT, STAMPS, stamps_of};
use crate::plan::{EndSpec, Kind};
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn};
use crate::source::{RowVisitor, cpu_at, for_each_measured, value_at};

/// A CPU that is not known.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// Of each answered probe in their order.
pub(super) struct Rows {
    pub(super) sent_ns: Vec<i64>,
    pub(super) delay_ns: Vec<i64>,
    /// CPUs of the send call, of the receive call, and of the reflector.
    pub(super) cpus: [Vec<u16>; 3],
    /// How many have each of [`STAMPS`].
    pub(super) present: [u64; STAMPS.len()],
    /// How many have the reflector's instants between those of the sender, as on one clock.
    nested: u64,
    /// Probes without an answer.
    pub(super) lost: u64,
    /// The CPUs to which both ends were pinned: their rows may lack them.
    pins: [Option<u16>; 3],
}

impl Rows {
    pub(super) fn of(manifest: &Manifest) -> Rows {
        // The probes of a stream have threads of their own.
        let of = |end: Option<EndSpec>| end.filter(|_| manifest.kind != Kind::Stream)?.cpu;
        let (here, there) = (of(Some(manifest.spec.here)), of(manifest.spec.peer));
        Rows {
            sent_ns: Vec::new(),
            delay_ns: Vec::new(),
            cpus: Default::default(),
            present: [0; STAMPS.len()],
            nested: 0,
            lost: 0,
            pins: [here, here, there],
        }
    }

    /// Whether the instants of both ends are of one clock: they are if both are on this host, but for a time namespace.
    pub(super) fn is_of_one_clock(&self, manifest: &Manifest) -> bool {
        manifest.spec.target.is_this_host() && self.nested as f64 >= PRESENT * self.len() as f64
    }

    pub(super) fn len(&self) -> usize {
        self.sent_ns.len()
    }
}

/// Sent and received of each measured answer of `batch`, with its row.
pub(super) fn for_each_answer(batch: &ProbeBatch, mut each: impl FnMut(usize, i64, i64)) {
    for_each_measured(batch, |row, fate| {
        let times = value_at(&batch.sent_ns, row).zip(value_at(&batch.received_ns, row));
        if let Some((sent, received)) = times.filter(|_| matches!(fate, Fate::Answered | Fate::Late)) {
            each(row, sent, received);
        }
    });
}

impl RowVisitor for Rows {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{ReceivedCpu, ReflectorCpu, SentCpu};
        STAMPS.iter().map(|stamp| stamp.column).chain([SentCpu, ReceivedCpu, ReflectorCpu]).collect()
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |_, fate| self.lost += u64::from(fate == Fate::Lost));
        let columns: [&IntColumn; 3] = [&batch.sent_cpu, &batch.received_cpu, &batch.reflector_cpu];
        for_each_answer(batch, |row, sent, received| {
            self.sent_ns.push(sent);
            self.delay_ns.push(received.saturating_sub(sent));
            for (known, (column, pin)) in self.cpus.iter_mut().zip(columns.into_iter().zip(self.pins)) {
                known.push(cpu_at(column, row).or(pin).unwrap_or(UNKNOWN));
            }
            let stamps = stamps_of(batch, row);
            for (count, stamp) in self.present.iter_mut().zip(stamps) {
                *count += u64::from(stamp.is_some());
            }
            let peer = stamps[PEER_RECEIVED].zip(stamps[PEER_SENT]);
            self.nested += u64::from(peer.is_none_or(|(from, to)| sent <= from && to <= received));
        });
    }
}
