//! The CPUs of both ends of a run on one host: without pins the scheduler chooses them, and the round trip depends on its
//! choice more than on most settings. A spinning end that has to share its CPU waits whole time slices.

use crate::caveats::same_machine;
use crate::facts::CpuTopology;
use crate::limits::{PLACEMENT_MOST, PLACEMENT_SHARE, STALLED, STALLED_CONTRAST, STALLED_SHARE};
use crate::plan::{EndSpec, Kind, WaitMode};
use crate::probe::Fate;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::source::{RowVisitor, cpu_at, for_each_measured, value_at};
use crate::units::Nanos;
use crate::units::human::{percent, span};

/// The end of the far side, if it is on this host.
fn peer_here(manifest: &Manifest) -> Option<&EndSpec> {
    let one_host = manifest.spec.target.is_this_host() || (manifest.spec.target.has_agent() && same_machine(manifest));
    manifest.spec.peer.as_ref().filter(|_| one_host && manifest.kind == Kind::Ping)
}

/// Whether an end of a run with this far end spins.
fn spins(manifest: &Manifest, peer: &EndSpec) -> bool {
    manifest.spec.here.wait == WaitMode::Spin || peer.wait == WaitMode::Spin
}

crate::worded! {
    /// How the CPUs of both ends of a probe are related.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Placement: words {
        OneCpu = "on one CPU",
        OneCore = "on two CPUs of one core",
        TwoCores = "on two cores",
        /// The topology is not known.
        TwoCpus = "on two CPUs",
        /// The sender was on another CPU when it received the answer.
        Moved = "on CPUs that changed during the probe",
    }
}

impl Placement {
    /// That of a sender and a reflector on these CPUs of the host of `manifest`.
    pub(crate) fn of(manifest: &Manifest, sent: u16, reflected: u16) -> Placement {
        let topology = manifest.here.before.as_ref().and_then(|facts| facts.processor.topology.as_ref());
        let siblings = |cpu| topology?.get(&cpu).and_then(|of: &CpuTopology| of.siblings.as_deref());
        match (siblings(sent), siblings(reflected)) {
            _ if sent == reflected => Placement::OneCpu,
            (Some(one), Some(other)) if one == other => Placement::OneCore,
            (Some(_), Some(_)) => Placement::TwoCores,
            _ => Placement::TwoCpus,
        }
    }
}

/// The placement of most probes of a run, to compare it with other runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlacement {
    /// In words: `on two cores`.
    pub words: &'static str,
    /// Whether pins of both ends determined it.
    pub is_pinned: bool,
}

impl RunPlacement {
    /// By the pins of both ends on one host; `None` if an end is not pinned, or on another host.
    pub(crate) fn of_pins(manifest: &Manifest) -> Option<RunPlacement> {
        let (here, there) = (manifest.spec.here.cpu?, peer_here(manifest)?.cpu?);
        Some(RunPlacement { words: Placement::of(manifest, here, there).words(), is_pinned: true })
    }
}

/// The options that pin both ends.
fn pins(here: u16, there: u16) -> String {
    format!("`--cpu {here} --peer-cpu {there}`")
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
pub(crate) struct Placements<'a> {
    manifest: &'a Manifest,
    peer: &'a EndSpec,
    placed: [PlacedProbes; Placement::ALL.len()],
    /// Answered probes for which the CPU of an end is not known.
    unknown: u64,
}

/// Where the probes of a run had both ends, though not both were pinned.
pub(crate) struct Placed {
    /// By falling share; empty if the CPUs are not known.
    figures: Vec<PlacementFigures>,
    spins: bool,
}

impl<'a> Placements<'a> {
    /// For a run whose ends are on one host of several CPUs and are not both pinned; `None` for any other.
    pub(crate) fn of(manifest: &'a Manifest) -> Option<Placements<'a>> {
        let peer = peer_here(manifest)?;
        let is_pinned = manifest.spec.here.cpu.is_some() && peer.cpu.is_some();
        let has_one_cpu = manifest.here.before.as_ref().is_some_and(|facts| facts.has_one_cpu());
        let placed = Default::default();
        (!is_pinned && !has_one_cpu).then_some(Placements { manifest, peer, placed, unknown: 0 })
    }

    /// `None` without an answered probe.
    pub(crate) fn finish(mut self) -> Option<Placed> {
        let known: usize = self.placed.iter().map(|placed| placed.round_trips_ns.len()).sum();
        let spins = spins(self.manifest, self.peer);
        (known > 0 || self.unknown > 0).then(|| Placed { figures: self.figures(known), spins })
    }

    /// The placements that are named, of `known` probes, by falling share.
    fn figures(&mut self, known: usize) -> Vec<PlacementFigures> {
        let manifest = self.manifest;
        let spins = spins(manifest, self.peer);
        let figures = |(placement, placed): (Placement, &mut PlacedProbes)| {
            let share = placed.round_trips_ns.len() as f64 / known as f64;
            // An end that spins keeps the other from a CPU that they share.
            let may_stay = placement != Placement::Moved && !(spins && placement == Placement::OneCpu);
            (share >= PLACEMENT_SHARE).then(|| PlacementFigures {
                placement,
                share,
                median: placed.median(),
                pins: placed.first.filter(|_| may_stay).map(|[here, there]| pins(here, there)),
            })
        };
        let mut found: Vec<PlacementFigures> =
            Placement::ALL.into_iter().zip(&mut self.placed).filter_map(figures).collect();
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        found
    }
}

struct PlacementFigures {
    placement: Placement,
    share: f64,
    median: Nanos,
    /// The options that keep both ends there; `None` if they moved, or may not share a CPU.
    pins: Option<String>,
}

impl PlacementFigures {
    fn words(&self) -> String {
        format!("{} {}, median {}", percent(self.share), self.placement.words(), span(self.median))
    }
}

impl Placed {
    /// That of most of its probes; `None` if the CPUs are not known.
    pub(crate) fn placement(&self) -> Option<RunPlacement> {
        let most = Some(self.figures.first()?).filter(|most| most.share >= PLACEMENT_MOST);
        Some(RunPlacement {
            words: most.map_or("on CPUs that varied", |most| most.placement.words()),
            is_pinned: false,
        })
    }

    /// Share and median of each placement; empty if the CPUs are not known.
    pub(crate) fn words(&self) -> String {
        self.figures.iter().map(PlacementFigures::words).collect::<Vec<_>>().join("; ")
    }

    /// The ratio of the largest and the smallest median.
    pub(crate) fn contrast(&self) -> f64 {
        let medians = || self.figures.iter().map(|placed| placed.median.0 as f64);
        medians().fold(0.0, f64::max) / medians().fold(f64::INFINITY, f64::min).max(1.0)
    }

    /// The options that keep the ends in each placement.
    pub(crate) fn pins(&self) -> String {
        let pins =
            |placed: &PlacementFigures| Some(format!("{} ({})", placed.pins.as_ref()?, placed.placement.words()));
        let pins: Vec<String> = self.figures.iter().filter_map(pins).collect();
        if pins.is_empty() { "`--cpu` and `--peer-cpu`".into() } else { pins.join(", or ") }
    }

    /// The share of the probes for which ends, of which one spins, shared one CPU. Each round trip may then contain a time
    /// slice, so that no fast one shows that the slow ones are not the path's.
    pub(crate) fn shared_by_spinning(&self) -> Option<f64> {
        let shared = self.figures.iter().find(|placed| placed.placement == Placement::OneCpu)?;
        self.spins.then_some(shared.share)
    }
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
            // An end that is pinned is on that CPU, whether the recording has it or not.
            let sent = cpu_at(&batch.sent_cpu, row).or(self.manifest.spec.here.cpu);
            let reflected = cpu_at(&batch.reflector_cpu, row).or(self.peer.cpu);
            let stamps = value_at(&batch.sent_ns, row).zip(value_at(&batch.received_ns, row));
            let (Some((sent, reflected)), Some((from, to))) = (sent.zip(reflected), stamps) else {
                self.unknown += 1;
                return;
            };
            let has_moved = cpu_at(&batch.received_cpu, row).is_some_and(|received| received != sent);
            let placement = if has_moved { Placement::Moved } else { Placement::of(self.manifest, sent, reflected) };
            let placed = &mut self.placed[placement as usize];
            placed.first.get_or_insert([sent, reflected]);
            placed.round_trips_ns.push(u32::try_from((to - from).max(0)).unwrap_or(u32::MAX));
        });
    }
}

/// Round trips of a run of which an end spins, counted to see whether that end had to share its CPU.
pub(crate) struct SpinStalls {
    answered: u64,
    stalled: u64,
    fastest_ns: i64,
}

impl SpinStalls {
    /// For a run on one host of which an end spins, without a load of the network, whose queues also delay; `None` for any
    /// other.
    pub(crate) fn of(manifest: &Manifest) -> Option<SpinStalls> {
        (spins(manifest, peer_here(manifest)?) && manifest.spec.network_loads() == 0).then_some(SpinStalls {
            answered: 0,
            stalled: 0,
            fastest_ns: i64::MAX,
        })
    }

    /// What shows that a spinning end shared its CPU; `None` if nothing does.
    pub(crate) fn words(&self) -> Option<String> {
        let share = self.stalled as f64 / self.answered.max(1) as f64;
        let is_usually_fast = self.fastest_ns.saturating_mul(STALLED_CONTRAST) <= STALLED.0;
        let (share_word, fastest) = (percent(share), span(Nanos(self.fastest_ns)));
        let long = format!("{share_word} of the round trips took {} or longer, the fastest {fastest}", span(STALLED));
        (share >= STALLED_SHARE && is_usually_fast).then(|| format!("{long}: a spinning end shared its CPU"))
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
