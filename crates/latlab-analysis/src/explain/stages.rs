//! The stages of a round trip: the times between the stamps of a probe, which add up to its round trip.

use serde::Serialize;

use crate::recording::reader::{IntColumn, ProbeBatch, ProbeColumn};
use crate::singletons::StampColumn;
use crate::source::value_at;

/// The stamps of a probe in the order of its way. Those from [`PEER_FIRST`] to [`PEER_LAST`] are of the reflector's clock.
pub(super) const STAMPS: [StampColumn; 9] = [
    stamp(ProbeColumn::SentNs, |batch| &batch.sent_ns),
    stamp(ProbeColumn::TxSchedNs, |batch| &batch.tx_sched_ns),
    stamp(ProbeColumn::TxSoftwareNs, |batch| &batch.tx_software_ns),
    stamp(ProbeColumn::ReflectorRxSoftwareNs, |batch| &batch.reflector_rx_software_ns),
    stamp(ProbeColumn::ReflectorReceivedNs, |batch| &batch.reflector_received_ns),
    stamp(ProbeColumn::ReflectorSentNs, |batch| &batch.reflector_sent_ns),
    stamp(ProbeColumn::ReflectorTxSoftwareNs, |batch| &batch.reflector_tx_software_ns),
    stamp(ProbeColumn::RxSoftwareNs, |batch| &batch.rx_software_ns),
    stamp(ProbeColumn::ReceivedNs, |batch| &batch.received_ns),
];
const SENT: usize = 0;
const PEER_FIRST: usize = 3;
pub(super) const PEER_RECEIVED: usize = 4;
pub(super) const PEER_SENT: usize = 5;
const PEER_LAST: usize = 6;
const RECEIVED: usize = STAMPS.len() - 1;
/// Between which stamps the programs ran: the others are those of the kernels.
const OF_PROGRAMS: [usize; 4] = [SENT, PEER_RECEIVED, PEER_SENT, RECEIVED];

/// The share of the answered probes that must have a stamp for it to divide their way.
pub(super) const PRESENT: f64 = 0.99;

const fn stamp(column: ProbeColumn, of: fn(&ProbeBatch) -> &IntColumn) -> StampColumn {
    StampColumn { column, of }
}

/// The stamps of a row, in the order of [`STAMPS`].
pub(super) type RowStamps = [Option<i64>; STAMPS.len()];

pub(super) fn stamps_of(batch: &ProbeBatch, row: usize) -> RowStamps {
    STAMPS.map(|stamp| value_at((stamp.of)(batch), row))
}

/// A part of the way of a probe, between two stamps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    pub name: &'static str,
    /// What it depends on, and so what to do about it.
    #[serde(skip)]
    pub subject: StageSubject,
    /// Columns of `probes.parquet` in which it begins and ends.
    pub from: &'static str,
    pub to: &'static str,
    /// Whether the time that the reflector had the probe is taken out of it: its stamps are of another clock.
    pub less_peer: bool,
    #[serde(skip)]
    ends: [usize; 2],
}

/// A stage over the probes of a run. Shares are of round trips, and add up to 1 over the stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageShares {
    #[serde(flatten)]
    pub stage: Stage,
    pub median_ns: i64,
    /// Whether the median is below the error of the kernel's stamps.
    pub is_below_error: bool,
    /// Of the tenth of the round trips around the median.
    pub share_of_median: f64,
    /// Of the round trips from p99 on.
    pub share_of_p99: f64,
    pub share_of_worst: f64,
    /// The mean of the stage in the round trips from p99 on, less its median.
    pub excess_ns: f64,
}

/// What a stage mainly consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageSubject {
    SendCall,
    Queue,
    Network,
    PeerWakeup,
    PeerProcess,
    PeerReply,
    Wakeup,
    Path,
}

/// Stages that have a name of their own, by the places of their stamps.
const NAMES: [([usize; 2], &str, StageSubject); 12] = [
    ([0, 1], "send call", StageSubject::SendCall),
    ([1, 2], "queue", StageSubject::Queue),
    ([0, 2], "send call and queue", StageSubject::SendCall),
    ([2, 3], "network, there", StageSubject::Network),
    ([2, 4], "network and peer's wake-up", StageSubject::Path),
    ([3, 4], "peer's wake-up", StageSubject::PeerWakeup),
    ([4, 5], "peer's process", StageSubject::PeerProcess),
    ([5, 6], "peer's reply path", StageSubject::PeerReply),
    ([5, 7], "peer's reply path and network", StageSubject::Path),
    ([6, 7], "network, back", StageSubject::Network),
    ([7, 8], "stack and wake-up here", StageSubject::Wakeup),
    ([6, 8], "network, back, and wake-up here", StageSubject::Path),
];

/// The stages into which the stamps of a run divide the round trips of its probes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stages {
    pub(super) each: Vec<Stage>,
    /// Places of the stamps of the sender before the stages that both clocks span, and of those of the reflector.
    chosen: Vec<usize>,
    peer: Option<[usize; 2]>,
}

impl Stages {
    /// By the stamps that most of `answered` probes have, of which `present` counts each. On one clock the ways there and back
    /// are stages; on two they are one, since only differences of stamps of one clock are times.
    pub(super) fn of(present: &[u64; STAMPS.len()], answered: u64, one_clock: bool) -> Stages {
        let has = |place: &usize| {
            *place == SENT || *place == RECEIVED || present[*place] as f64 >= PRESENT * answered.max(1) as f64
        };
        let is_peers = |place: usize| (PEER_FIRST..=PEER_LAST).contains(&place);
        let mut chosen: Vec<usize> = (0..STAMPS.len()).filter(has).collect();
        let peers: Vec<usize> = chosen.iter().copied().filter(|place| is_peers(*place)).collect();
        let peer = match peers.as_slice() {
            [first, .., last] if !one_clock => Some([*first, *last]),
            _ => None,
        };
        if !one_clock && peer.is_none() {
            chosen.retain(|place| !is_peers(*place));
        }
        let mut each = Vec::new();
        for pair in chosen.windows(2) {
            let [from, to] = [pair[0], pair[1]];
            match (is_peers(from), is_peers(to), peer) {
                // The way back is in the stage of both ways.
                (true, false, Some(_)) => {}
                (false, true, Some(peer)) => each.push(across(from, peer, &chosen)),
                _ => each.push(stage(from, to)),
            }
        }
        Stages { each, chosen, peer }
    }

    /// The length of each stage, ns; `None` if the probe lacks a stamp. Their sum is the round trip.
    pub(super) fn divide(&self, stamps: &RowStamps) -> Option<Vec<i64>> {
        let has_all = self.chosen.iter().all(|place| stamps[*place].is_some());
        let at = |place: usize| stamps[place].unwrap_or_default();
        let length = |stage: &Stage| {
            let [from, to] = stage.ends;
            let of_peer = self.peer.filter(|_| stage.less_peer).map_or(0, |[first, last]| at(last) - at(first));
            at(to) - at(from) - of_peer
        };
        has_all.then(|| self.each.iter().map(length).collect())
    }

    pub(super) fn columns(&self) -> Vec<ProbeColumn> {
        self.chosen.iter().map(|place| STAMPS[*place].column).collect()
    }
}

fn stage(from: usize, to: usize) -> Stage {
    let known = NAMES.iter().find(|(ends, ..)| *ends == [from, to]).map(|(_, name, subject)| (*name, *subject));
    let merged = match (from, to) {
        (SENT, RECEIVED) => "path, kernels and peer",
        (_, to) if to <= PEER_RECEIVED => "path and kernels, there",
        (from, _) if from >= PEER_SENT => "path and kernels, back",
        _ => "path and kernels, both ways",
    };
    let (name, subject) = known.unwrap_or((merged, StageSubject::Path));
    let [from_column, to_column] = [from, to].map(|place| STAMPS[place].column.name());
    Stage { name, subject, from: from_column, to: to_column, less_peer: false, ends: [from, to] }
}

/// The stage from the stamp `from` of the sender to its next one after the reflector's, less what lies between those of the
/// `peer`.
fn across(from: usize, peer: [usize; 2], chosen: &[usize]) -> Stage {
    let to = chosen.iter().copied().find(|place| *place > PEER_LAST).unwrap_or(RECEIVED);
    let is_of_kernel = |place: usize| !OF_PROGRAMS.contains(&place);
    let of_kernels = [from, to, peer[0], peer[1]].into_iter().all(is_of_kernel);
    let (name, subject) = match (of_kernels, is_of_kernel(from) && is_of_kernel(to)) {
        (true, _) => ("network, both ways", StageSubject::Network),
        (false, true) => ("network and peer's kernel, both ways", StageSubject::Path),
        (false, false) => ("path and kernels, both ways", StageSubject::Path),
    };
    Stage { name, subject, less_peer: true, ..stage(from, to) }
}

impl Stage {
    /// Those of the CPUs of sending, receiving and reflecting on which a thread was waited for.
    pub(super) fn cpus(&self, [sent, received, reflector]: [Option<u16>; 3]) -> Vec<Option<u16>> {
        match self.ends {
            [_, to] if to < PEER_FIRST => vec![sent],
            [_, to] if to <= PEER_LAST => vec![reflector],
            [from, _] if from >= PEER_SENT => vec![received],
            _ => vec![sent, received, reflector],
        }
    }

    /// Whether it lies between stamps of the reflector's clock.
    pub(super) fn is_of_peer(&self) -> bool {
        self.ends.iter().all(|place| (PEER_FIRST..=PEER_LAST).contains(place))
    }

    /// When it began and ended.
    pub(super) fn span(&self, stamps: &RowStamps) -> Option<(i64, i64)> {
        stamps[self.ends[0]].zip(stamps[self.ends[1]])
    }

    /// Whether an end of it is a stamp of a kernel, whose conversion has an error.
    pub(super) fn is_converted(&self) -> bool {
        self.ends.iter().any(|place| !OF_PROGRAMS.contains(place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(present: [u64; 9], one_clock: bool) -> Vec<&'static str> {
        Stages::of(&present, 100, one_clock).each.iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn stamps_that_most_probes_have_divide_the_way() {
        let all = [100; 9];
        let full = ["send call", "queue", "network, there", "peer's wake-up", "peer's process", "peer's reply path"];
        assert_eq!(names(all, true), [&full[..], &["network, back", "stack and wake-up here"]].concat());
        let two = ["send call", "queue", "network, both ways", "peer's wake-up", "peer's process"];
        assert_eq!(names(all, false), [&two[..], &["peer's reply path", "stack and wake-up here"]].concat());
        let programs = [100, 0, 0, 0, 100, 100, 0, 0, 100];
        assert_eq!(names(programs, true), ["path and kernels, there", "peer's process", "path and kernels, back"]);
        assert_eq!(names(programs, false), ["path and kernels, both ways", "peer's process"]);
        assert_eq!(names([100, 0, 0, 0, 0, 0, 0, 0, 100], false), ["path, kernels and peer"]);
        // The stamp of a queue that two probes in a hundred lack.
        let rare = [100, 98, 100, 99, 100, 100, 99, 100, 100];
        assert_eq!(names(rare, true)[..2], ["send call and queue", "network, there"]);
        assert_eq!(names([100, 100, 100, 0, 100, 100, 0, 100, 100], false)[2], "network and peer's kernel, both ways");
    }

    proptest! {
        #[test]
        fn stages_add_up_to_the_round_trip(
            stamps in prop::array::uniform9(-1_000_000_000_i64..1_000_000_000),
            present in prop::array::uniform9(prop::bool::ANY),
            one_clock: bool,
        ) {
            let stages = Stages::of(&present.map(|has| if has { 100 } else { 0 }), 100, one_clock);
            let lengths = stages.divide(&stamps.map(Some)).expect("every stamp");
            prop_assert_eq!(lengths.iter().sum::<i64>(), stamps[8] - stamps[0]);
        }
    }
}
