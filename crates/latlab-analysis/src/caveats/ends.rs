//! The two ends of a run, and what the samples of their hosts say of other work there.

use super::remedies::{self, peer_here, share_a_cpu};
use super::rule::Topic;
use crate::facts::HostFacts;
use crate::host_samples::{HostAccumulator, HostAccumulators};
use crate::limits::{FOREIGN_NOTE, JUDGED_SPAN, TICKS_OF_A_CPU};
use crate::plan::{EndSpec, LoadKind, LoadSpec, Side, Target, WaitMode};
use crate::recording::manifest::{EndFacts, Manifest};

/// One end of a run, with its host.
pub(super) struct End<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) side: Side,
    hosts: &'a HostAccumulators,
    pub(super) samples: Option<&'a HostAccumulator>,
    /// Whether the agent of the other end samples this same machine too, as one behind `cmd:` in another namespace.
    is_sampled_twice: bool,
    /// CPU time of latlab on this host that its samples do not count as latlab's own.
    also_own_ns: i64,
}

impl Topic for End<'static> {
    type Of<'a> = End<'a>;
}

/// Whether both ends ran in one boot of one machine.
pub(crate) fn same_machine(manifest: &Manifest) -> bool {
    let boot = |end: &EndFacts| end.before.as_ref().and_then(|facts| facts.boot_id.clone());
    boot(&manifest.here).is_some() && boot(&manifest.here) == boot(&manifest.peer)
}

/// Whether an end on the host of `side` had to share its CPUs: with other processes, a CPU load or the other end. An end
/// that spins there waits whole time slices.
pub(super) fn is_contended(manifest: &Manifest, hosts: &HostAccumulators, side: Side) -> bool {
    let one_host = manifest.spec.target.is_this_host();
    let takes_cpus = |load: &LoadSpec| {
        let is_there = load.at == side || load.at == Side::Both || one_host;
        is_there && matches!(load.kind, LoadKind::Cpu { .. } | LoadKind::Heaters { .. } | LoadKind::Memory { .. })
    };
    manifest.spec.loads.iter().any(takes_cpus)
        || peer_here(manifest).is_some_and(|peer| share_a_cpu(manifest, peer))
        || End::of(manifest, hosts, side).foreign_share().is_some_and(|share| share >= FOREIGN_NOTE)
}

/// The ends of a run, one for each machine.
pub(super) fn ends<'a>(manifest: &'a Manifest, hosts: &'a HostAccumulators) -> impl Iterator<Item = End<'a>> {
    let sides = [Side::Local, Side::Peer].into_iter().filter(|side| side.is_local() || !same_machine(manifest));
    sides.map(|side| End::of(manifest, hosts, side))
}

impl<'a> End<'a> {
    fn of(manifest: &'a Manifest, hosts: &'a HostAccumulators, side: Side) -> End<'a> {
        let is_sampled_twice = hosts.len() > 1 && same_machine(manifest);
        let other = hosts.get(&Side::Peer).filter(|_| is_sampled_twice);
        End {
            manifest,
            side,
            hosts,
            samples: hosts.get(&side).filter(|_| side.is_local() || !is_sampled_twice),
            is_sampled_twice,
            also_own_ns: other.and_then(HostAccumulator::own_ns).unwrap_or(0),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        host_at(self.side)
    }

    pub(super) fn facts(&self) -> &'a EndFacts {
        if self.side.is_local() { &self.manifest.here } else { &self.manifest.peer }
    }

    /// The host before the run, if it is this one or has an agent.
    pub(super) fn host(&self) -> Option<&'a HostFacts> {
        let is_known = self.side.is_local() || self.manifest.spec.target.has_agent();
        self.facts().before.as_ref().filter(|_| is_known)
    }

    pub(super) fn spec(&self) -> &'a EndSpec {
        let spec = &self.manifest.spec;
        if self.side.is_local() { &spec.here } else { spec.peer.as_ref().unwrap_or(&spec.here) }
    }

    /// [`remedies::spin`], unless the sender has to share its CPU.
    pub(super) fn spin(&self) -> Option<&'static str> {
        remedies::spin(self.manifest, is_contended(self.manifest, self.hosts, self.side))
    }

    /// Whether an end of the path spins on this host.
    pub(super) fn spins(&self) -> bool {
        let spec = &self.manifest.spec;
        let spins_here = spec.path().is_some() && spec.here.wait == WaitMode::Spin;
        let spins_there = spec.peer.as_ref().is_some_and(|peer| peer.wait == WaitMode::Spin);
        (self.side.is_local() && spins_here) || ((self.side.is_peer() || self.has_both_ends()) && spins_there)
    }

    fn has_both_ends(&self) -> bool {
        self.is_sampled_twice || self.manifest.spec.target.is_this_host()
    }

    /// The CPUs to which the ends on this host are pinned; `None` if one of them is not pinned, or its CPU has no samples.
    pub(super) fn measuring_cpus(&self) -> Option<Vec<u16>> {
        let spec = &self.manifest.spec;
        if let Some(wakeup) = spec.wakeup() {
            return Some(wakeup.cpus.known().to_vec()).filter(|cpus| !cpus.is_empty());
        }
        let ends = match self.side {
            _ if spec.command().is_some() => vec![spec.here.cpu],
            Side::Peer => vec![spec.peer.as_ref()?.cpu],
            _ if self.has_both_ends() => vec![spec.here.cpu, spec.peer.as_ref()?.cpu],
            _ => vec![spec.here.cpu],
        };
        let sampled = self.samples?.cpus();
        let mut pins = ends.into_iter().collect::<Option<Vec<u16>>>()?;
        pins.sort_unstable();
        pins.dedup();
        pins.iter().all(|cpu| sampled.contains(cpu)).then_some(pins)
    }

    /// The CPUs on which an end of the run may have been.
    pub(super) fn relevant_cpus(&self) -> Vec<u16> {
        let sampled = || self.samples.map(HostAccumulator::cpus).unwrap_or_default();
        self.measuring_cpus().unwrap_or_else(sampled)
    }

    /// Work of processes other than latlab, outside of interrupts, as a share of the measuring CPUs: a lower bound. If
    /// the ends are pinned, as much of it as possible is attributed to the other CPUs.
    pub(super) fn foreign_share(&self) -> Option<f64> {
        self.foreign_share_of(&self.relevant_cpus())
    }

    /// The same as a share of `cpus`; `None` also if the work of the measurement itself is not known.
    pub(super) fn foreign_share_of(&self, cpus: &[u16]) -> Option<f64> {
        let samples = self.samples.filter(|_| self.is_own_work_known())?;
        let (all, span) = (samples.cpus(), samples.span());
        if span < JUDGED_SPAN || all.is_empty() {
            return None;
        }
        let worked = |cpus: &[u16]| cpus.iter().map(|cpu| samples.worked_ns(*cpu)).sum::<Option<i64>>();
        let uncertainty = TICKS_OF_A_CPU.0 * all.len() as i64;
        let foreign = worked(&all)? - samples.own_ns()? - self.also_own_ns - uncertainty;
        let others: Vec<u16> = all.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        Some((foreign - worked(&others)?) as f64 / span.0 as f64 / cpus.len() as f64)
    }

    /// Whether all work of the measurement on this host is counted as latlab's own. That of a reflector on this host is only
    /// if latlab started it.
    fn is_own_work_known(&self) -> bool {
        let run = &self.manifest.run;
        let is_started_here = !matches!(self.manifest.spec.target, Target::Host { .. });
        let address = run.peer_address.as_deref().unwrap_or_default();
        let own_address = run.local_address.as_deref().and_then(|own| own.rsplit_once(':')).map(|(own, _)| own);
        let is_loopback = address.starts_with("127.") || address.starts_with("[::1]");
        let is_this_host =
            is_loopback || own_address.is_some_and(|own| address.rsplit_once(':').is_some_and(|(peer, _)| peer == own));
        is_started_here || run.service_counted || self.side.is_peer() || !is_this_host
    }
}

/// The name of the host at that end in caveats.
pub(super) fn host_at(side: Side) -> &'static str {
    if side.is_local() { "this host" } else { "the reflector's host" }
}
