//! The CPUs of both ends of a run on one host: without pins the scheduler chooses them, and the round trip depends on its
//! choice more than on most settings. A spinning end that has to share its CPU waits whole time slices.

use std::collections::BTreeSet;

use crate::analysis::caveats::{any_of, cpu_for_each_end, same_machine, spin_on_one_cpu_caveat};
use crate::analysis::limits::{
    PLACEMENT_CONTRAST, PLACEMENT_MOST, PLACEMENT_SHARE, STALLED, STALLED_CONTRAST, STALLED_SHARE,
};
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

/// Whether an end of a run with this far end spins.
fn spins(manifest: &Manifest, peer: &EndSpec) -> bool {
    manifest.spec.here.wait == WaitMode::Spin || peer.wait == WaitMode::Spin
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

    /// That of a sender and a reflector on these CPUs of the host of `manifest`.
    fn of(manifest: &Manifest, sent: u16, reflected: u16) -> Placement {
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
    /// The options that keep both ends there; `None` if their CPUs varied, or if they may not share one.
    pub pins: Option<String>,
    /// Whether both ends were on one CPU.
    pub is_shared: bool,
    /// Whether an end spun, which keeps the other from a CPU that they share.
    pub spins: bool,
    /// Whether pins of both ends determined it.
    pub is_pinned: bool,
}

impl RunPlacement {
    /// By the pins of both ends on one host; `None` if an end is not pinned, or on another host.
    pub(crate) fn of_pins(manifest: &Manifest) -> Option<RunPlacement> {
        let peer = peer_here(manifest)?;
        let (here, there, spins) = (manifest.spec.here.cpu?, peer.cpu?, spins(manifest, peer));
        Some(RunPlacement {
            words: Placement::of(manifest, here, there).words(),
            pins: (here != there || !spins).then(|| pins(manifest, here, there)),
            is_shared: here == there,
            spins,
            is_pinned: true,
        })
    }

    /// By the probes: that of `found` with the largest share, which is first.
    fn of_probes(found: &[PlacementFigures], spins: bool) -> RunPlacement {
        let most = found.first().filter(|most| most.share >= PLACEMENT_MOST);
        RunPlacement {
            words: most.map_or("on CPUs that varied", |most| most.placement.words()),
            pins: most.and_then(|most| most.pins.clone()),
            is_shared: most.is_some_and(|most| most.placement == Placement::OneCpu),
            spins,
            is_pinned: false,
        }
    }
}

/// The options, or the keys of an experiment's file, that pin both ends.
fn pins(manifest: &Manifest, here: u16, there: u16) -> String {
    match manifest.experiment {
        None => format!("`--cpu {here} --peer-cpu {there}`"),
        Some(_) => format!("`cpu = {here}` and `peer-cpu = {there}` in `[base]`"),
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
pub(crate) struct Placements<'a> {
    manifest: &'a Manifest,
    peer: &'a EndSpec,
    placed: [PlacedProbes; Placement::ALL.len()],
    /// Answered probes for which the CPU of an end is not known.
    unknown: u64,
    /// The CPUs of the sender and of the reflector in these, as far as they are known.
    seen: [BTreeSet<u16>; 2],
}

/// What the CPUs of both ends say of a run.
pub(crate) struct PlacementFindings {
    /// The caveats of ends that were not pinned.
    pub(crate) caveats: Vec<Caveat>,
    /// `None` if the CPUs are not known.
    pub(crate) placement: Option<RunPlacement>,
}

impl<'a> Placements<'a> {
    /// For a run whose ends are on one host of several CPUs and are not both pinned; `None` for any other.
    pub(crate) fn of(manifest: &'a Manifest) -> Option<Placements<'a>> {
        let peer = peer_here(manifest)?;
        let is_pinned = manifest.spec.here.cpu.is_some() && peer.cpu.is_some();
        let has_one_cpu = manifest.here.before.as_ref().is_some_and(|facts| facts.has_one_cpu());
        (!is_pinned && !has_one_cpu).then(|| Placements {
            manifest,
            peer,
            placed: Default::default(),
            unknown: 0,
            seen: Default::default(),
        })
    }

    /// The placement of the run, and its caveats: the share of each placement, and an end that spins on a shared CPU.
    pub(crate) fn finish(mut self) -> PlacementFindings {
        let known: usize = self.placed.iter().map(|placed| placed.round_trips_ns.len()).sum();
        if known == 0 {
            let caveats = (self.unknown > 0).then(|| self.without_cpus()).into_iter().collect();
            return PlacementFindings { caveats, placement: None };
        }
        let found = self.figures(known);
        let unpinned = match found.as_slice() {
            [one] => one.alone(),
            several => varied(several),
        };
        let caveats = self.spin_on_one_cpu(&found).into_iter().chain([unpinned]).collect();
        PlacementFindings { caveats, placement: Some(RunPlacement::of_probes(&found, spins(self.manifest, self.peer))) }
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
                pins: placed.first.filter(|_| may_stay).map(|[here, there]| pins(manifest, here, there)),
            })
        };
        let mut found: Vec<PlacementFigures> =
            Placement::ALL.into_iter().zip(&mut self.placed).filter_map(figures).collect();
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        found
    }

    /// The caveat of ends that shared a CPU without pins while one of them spun. Each round trip may then contain a
    /// time slice, so that no fast one shows that the slow ones are not the path's.
    fn spin_on_one_cpu(&self, found: &[PlacementFigures]) -> Option<Caveat> {
        let shared = found.iter().find(|placed| placed.placement == Placement::OneCpu)?;
        spins(self.manifest, self.peer).then(|| {
            let share = percent(shared.share);
            let message = format!("both ends shared one CPU for {share} of the probes, and at least one of them spins");
            spin_on_one_cpu_caveat(self.manifest, message)
        })
    }

    /// The caveat if the CPUs of both ends are known for no probe.
    fn without_cpus(&self) -> Caveat {
        let is_short = self.manifest.spec.size_bytes().is_some_and(|size| size < REPORTING_BYTES);
        let reported = if is_short { "; answers of 40 B and more report the reflector's CPU" } else { "" };
        let [sender, reflector] = self.seen.each_ref().map(cpus);
        let known = match (sender, reflector) {
            (Some(cpu), None) => format!(": the sender was on {cpu}, and the reflector's CPU is not known"),
            (None, Some(cpu)) => format!(": the reflector was on {cpu}, and the sender's CPU is not known"),
            _ => ", and their CPUs are not known".into(),
        };
        let missing = match (self.manifest.spec.here.cpu, self.peer.cpu) {
            (Some(_), None) => "`--peer-cpu`",
            (None, Some(_)) => "`--cpu`",
            _ => BOTH_PINS,
        };
        let message = format!("the ends were not both pinned{known}");
        Caveat::new(Severity::Note, UNPINNED_PLACEMENT, message, OTHERWISE, format!("{missing}{reported}"))
    }
}

/// The CPUs as `CPU 3` or, if there are several, `2 CPUs`; `None` without any.
fn cpus(seen: &BTreeSet<u16>) -> Option<String> {
    let first = seen.first()?;
    Some(if seen.len() == 1 { format!("CPU {first}") } else { format!("{} CPUs", seen.len()) })
}

pub(crate) const UNPINNED_PLACEMENT: &str = "unpinned-placement";
const OTHERWISE: &str = "in another run they may be on other CPUs, and its round trips then differ";
const BOTH_PINS: &str = "`--cpu` and `--peer-cpu`";
/// Length of the shortest answer that reports the reflector's CPU (docs/protocol.md).
const REPORTING_BYTES: u32 = 40;

/// What is shown of one placement.
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

    fn alone(&self) -> Caveat {
        Caveat::new(
            Severity::Note,
            UNPINNED_PLACEMENT,
            format!("the ends were not both pinned; of the probes {}", self.words()),
            OTHERWISE,
            match &self.pins {
                Some(pins) => format!("{pins} to keep them there"),
                None if self.placement == Placement::OneCpu => format!("a CPU for each end with {BOTH_PINS}"),
                None => BOTH_PINS.into(),
            },
        )
    }
}

fn varied(found: &[PlacementFigures]) -> Caveat {
    let medians = || found.iter().map(|placed| placed.median.0 as f64);
    let contrast = medians().fold(0.0, f64::max) / medians().fold(f64::INFINITY, f64::min).max(1.0);
    let shares: Vec<String> = found.iter().map(PlacementFigures::words).collect();
    let pins =
        found.iter().filter_map(|placed| Some(format!("{} ({})", placed.pins.as_ref()?, placed.placement.words())));
    let pins: Vec<String> = pins.collect();
    Caveat::new(
        if contrast >= PLACEMENT_CONTRAST { Severity::Warning } else { Severity::Note },
        UNPINNED_PLACEMENT,
        format!("the ends were not both pinned, and their CPUs varied: {}", shares.join("; ")),
        "quantiles mix the round trips of these placements, whose shares differ from run to run",
        if pins.is_empty() { BOTH_PINS.into() } else { pins.join(", or ") },
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
            // An end that is pinned is on that CPU, whether the recording has it or not.
            let sent = cpu_at(&batch.sent_cpu, row).or(self.manifest.spec.here.cpu);
            let reflected = cpu_at(&batch.reflector_cpu, row).or(self.peer.cpu);
            let stamps = value_at(&batch.sent_ns, row).zip(value_at(&batch.received_ns, row));
            let (Some((sent, reflected)), Some((from, to))) = (sent.zip(reflected), stamps) else {
                self.unknown += 1;
                self.seen.iter_mut().zip([sent, reflected]).for_each(|(seen, cpu)| seen.extend(cpu));
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

    pub(crate) fn caveat(&self, manifest: &Manifest) -> Option<Caveat> {
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
                "round trips contain time slices of other threads: they show the scheduler, not the path",
                any_of([Some("stop the other processes"), cpu_for_each_end(manifest), Some("`--wait block`")]),
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
