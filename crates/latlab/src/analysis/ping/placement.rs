//! The CPUs of both ends of a run on one host: without pins the scheduler chooses them, and the round trip depends on its
//! choice more than on most settings. A spinning end that has to share its CPU waits whole time slices.

use crate::analysis::caveats::same_machine;
use crate::analysis::limits::{PLACEMENT_CONTRAST, PLACEMENT_SHARE, STALLED, STALLED_CONTRAST, STALLED_SHARE};
use crate::analysis::source::{RowVisitor, cpu_at, for_each_measured, value_at};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::CpuTopology;
use crate::plan::{EndSpec, Kind, WaitMode};
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::units::Nanos;
use crate::units::human::{percent, span};

/// The end of the far side, if it is on this host.
fn peer_here(manifest: &Manifest) -> Option<&EndSpec> {
    let one_host = manifest.spec.target.is_this_host() || (manifest.spec.target.has_agent() && same_machine(manifest));
    manifest.spec.peer.as_ref().filter(|_| one_host && manifest.kind == Kind::Ping)
}

/// How the CPUs of both ends of a probe are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    OneCpu,
    OneCore,
    TwoCores,
    /// The topology is not known.
    TwoCpus,
    /// The sender was on another CPU when it received the answer.
    Moved,
}

impl Placement {
    const ALL: [Placement; 5] =
        [Placement::OneCpu, Placement::OneCore, Placement::TwoCores, Placement::TwoCpus, Placement::Moved];

    const fn words(self) -> &'static str {
        match self {
            Placement::OneCpu => "on one CPU",
            Placement::OneCore => "on two CPUs of one core",
            Placement::TwoCores => "on two cores",
            Placement::TwoCpus => "on two CPUs",
            Placement::Moved => "on CPUs that changed during the probe",
        }
    }
}

/// The round trips of the probes with one placement.
#[derive(Default)]
struct PlacedProbes {
    /// In ns; four bytes each, since there may be ten million.
    round_trips_ns: Vec<u32>,
    /// The CPUs of the sender and of the reflector in the first of them.
    first: Option<[u16; 2]>,
}

impl PlacedProbes {
    fn median(&mut self) -> Nanos {
        let middle = self.round_trips_ns.len() / 2;
        if self.round_trips_ns.is_empty() {
            return Nanos::ZERO;
        }
        let is_even = self.round_trips_ns.len().is_multiple_of(2);
        let (below, upper, _) = self.round_trips_ns.select_nth_unstable(middle);
        let lower = below.iter().max().copied().filter(|_| is_even).unwrap_or(*upper);
        Nanos(i64::midpoint(lower.into(), (*upper).into()))
    }
}

/// Answered probes by placement, row by row.
pub(in crate::analysis) struct Placements<'a> {
    manifest: &'a Manifest,
    placed: [PlacedProbes; Placement::ALL.len()],
    /// Answered probes for which a CPU is not known.
    unknown: u64,
}

impl<'a> Placements<'a> {
    /// For a run whose ends are on one host of several CPUs and are not both pinned; `None` for any other.
    pub(in crate::analysis) fn of(manifest: &'a Manifest) -> Option<Placements<'a>> {
        let peer = peer_here(manifest)?;
        let is_pinned = manifest.spec.here.cpu.is_some() && peer.cpu.is_some();
        let has_one_cpu = manifest.here.before.as_ref().is_some_and(|facts| facts.has_one_cpu());
        (!is_pinned && !has_one_cpu).then(|| Placements { manifest, placed: Default::default(), unknown: 0 })
    }

    fn placement(&self, sent: u16, reflected: u16, received: Option<u16>) -> Placement {
        let topology = self.manifest.here.before.as_ref().and_then(|facts| facts.processor.topology.as_ref());
        let siblings = |cpu| topology?.get(&cpu).and_then(|of: &CpuTopology| of.siblings.as_deref());
        match (siblings(sent), siblings(reflected)) {
            _ if received.is_some_and(|received| received != sent) => Placement::Moved,
            _ if sent == reflected => Placement::OneCpu,
            (Some(one), Some(other)) if one == other => Placement::OneCore,
            (Some(_), Some(_)) => Placement::TwoCores,
            _ => Placement::TwoCpus,
        }
    }

    /// The caveat of ends that were not pinned: the share of each placement, and its median.
    pub(in crate::analysis) fn caveat(mut self) -> Option<Caveat> {
        let known: usize = self.placed.iter().map(|placed| placed.round_trips_ns.len()).sum();
        if known == 0 {
            return (self.unknown > 0).then(|| self.without_cpus());
        }
        let found = Placement::ALL.into_iter().zip(&mut self.placed).filter_map(|(placement, placed)| {
            let share = placed.round_trips_ns.len() as f64 / known as f64;
            (share >= PLACEMENT_SHARE).then(|| PlacementFigures {
                placement,
                share,
                median: placed.median(),
                first: placed.first,
            })
        });
        let mut found: Vec<PlacementFigures> = found.collect();
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        Some(match found.as_slice() {
            [one] => one.alone(),
            several => varied(several),
        })
    }

    fn without_cpus(&self) -> Caveat {
        let is_short = self.manifest.spec.size_bytes().is_some_and(|size| size < REPORTING_BYTES);
        let reported = if is_short { "; answers of 40 B and more report the reflector's CPU" } else { "" };
        Caveat::new(
            Severity::Note,
            CODE,
            "the ends were not both pinned, and it is not known on which CPUs they were",
            OTHERWISE,
            format!("`--cpu` and `--peer-cpu`{reported}"),
        )
    }
}

const CODE: &str = "unpinned-placement";
const OTHERWISE: &str = "another run may be placed otherwise, and its round trips then differ";
/// Length of the shortest answer that reports the reflector's CPU (docs/protocol.md).
const REPORTING_BYTES: u32 = 40;

/// What is shown of one placement.
struct PlacementFigures {
    placement: Placement,
    share: f64,
    median: Nanos,
    first: Option<[u16; 2]>,
}

impl PlacementFigures {
    fn words(&self) -> String {
        format!("{} {}, median {}", percent(self.share), self.placement.words(), span(self.median))
    }

    /// The options that keep both ends there; `None` if they moved.
    fn pins(&self) -> Option<String> {
        let [here, there] = self.first.filter(|_| self.placement != Placement::Moved)?;
        Some(format!("`--cpu {here} --peer-cpu {there}`"))
    }

    fn alone(&self) -> Caveat {
        Caveat::new(
            Severity::Note,
            CODE,
            format!("the ends were not both pinned; of the probes {}", self.words()),
            OTHERWISE,
            self.pins().map_or("`--cpu` and `--peer-cpu`".into(), |pins| format!("{pins} keeps them there")),
        )
    }
}

fn varied(found: &[PlacementFigures]) -> Caveat {
    let medians = || found.iter().map(|placed| placed.median.0 as f64);
    let contrast = medians().fold(0.0, f64::max) / medians().fold(f64::INFINITY, f64::min).max(1.0);
    let shares: Vec<String> = found.iter().map(PlacementFigures::words).collect();
    let pins = found.iter().filter_map(|placed| Some(format!("{} ({})", placed.pins()?, placed.placement.words())));
    let pins: Vec<String> = pins.collect();
    Caveat::new(
        if contrast >= PLACEMENT_CONTRAST { Severity::Warning } else { Severity::Note },
        CODE,
        format!("the ends were not both pinned, and their CPUs varied: {}", shares.join("; ")),
        "quantiles mix the round trips of these placements, whose shares differ from run to run",
        if pins.is_empty() { "`--cpu` and `--peer-cpu`".into() } else { pins.join(", or ") },
    )
}

impl RowVisitor for Placements<'_> {
    fn columns(&self) -> Vec<ProbeColumn> {
        use ProbeColumn::{ReceivedCpu, ReceivedNs, ReflectorCpu, SentCpu, SentNs};
        vec![SentNs, ReceivedNs, SentCpu, ReceivedCpu, ReflectorCpu]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            if fate != Fate::Answered {
                return;
            }
            let cpus = cpu_at(&batch.sent_cpu, row).zip(cpu_at(&batch.reflector_cpu, row));
            let stamps = value_at(&batch.sent_ns, row).zip(value_at(&batch.received_ns, row));
            let (Some((sent, reflected)), Some((from, to))) = (cpus, stamps) else {
                self.unknown += 1;
                return;
            };
            let placement = self.placement(sent, reflected, cpu_at(&batch.received_cpu, row));
            let placed = &mut self.placed[placement as usize];
            placed.first.get_or_insert([sent, reflected]);
            placed.round_trips_ns.push(u32::try_from((to - from).max(0)).unwrap_or(u32::MAX));
        });
    }
}

/// Round trips of a run of which an end spins, counted to see whether that end had to share its CPU.
pub(in crate::analysis) struct SpinStalls {
    answered: u64,
    stalled: u64,
    fastest_ns: i64,
}

impl SpinStalls {
    /// For a run on one host of which an end spins, without a load of the network, whose queues also delay; `None` for any
    /// other.
    pub(in crate::analysis) fn of(manifest: &Manifest) -> Option<SpinStalls> {
        let spins = peer_here(manifest)?.wait == WaitMode::Spin || manifest.spec.here.wait == WaitMode::Spin;
        (spins && manifest.spec.network_loads() == 0).then_some(SpinStalls {
            answered: 0,
            stalled: 0,
            fastest_ns: i64::MAX,
        })
    }

    pub(in crate::analysis) fn caveat(&self) -> Option<Caveat> {
        let share = self.stalled as f64 / self.answered.max(1) as f64;
        let is_usually_fast = self.fastest_ns.saturating_mul(STALLED_CONTRAST) <= STALLED.0;
        (share >= STALLED_SHARE && is_usually_fast).then(|| {
            Caveat::new(
                Severity::Warning,
                "spin-contended",
                format!(
                    "{} of the round trips took {} or longer, the fastest {}: a spinning end shared its CPU",
                    percent(share),
                    span(STALLED),
                    span(Nanos(self.fastest_ns))
                ),
                "round trips contain time slices of what else ran: they are the scheduler's, not the path's",
                "stop what else runs, a CPU for each end with `--cpu` and `--peer-cpu`, or `--wait block`",
            )
        })
    }
}

impl RowVisitor for SpinStalls {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::SentNs, ProbeColumn::ReceivedNs]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            let stamps = value_at(&batch.sent_ns, row).zip(value_at(&batch.received_ns, row));
            if let Some((from, to)) = stamps.filter(|_| fate == Fate::Answered) {
                self.answered += 1;
                self.stalled += u64::from(to - from >= STALLED.0);
                self.fastest_ns = self.fastest_ns.min(to - from);
            }
        });
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
