//! Caveats of the host samples: throttling, steal, work of other processes, changes of the clock rate.

use super::clocks::same_machine;
use super::hosts::{any_of, cpu_for_each_end, fifo, host_at, peer_here, performance_governor, share_a_cpu};
use super::wording::Wording;
use crate::analysis::host_samples::{HostAccumulator, HostAccumulators};
use crate::analysis::limits::{
    FOREIGN_EVERYWHERE, FOREIGN_NOTE, FOREIGN_WARNING, FREQUENCY_DRIFT, FREQUENCY_READINGS, JUDGED_SPAN, STEAL,
    STEAL_IN_A_SECOND, STEAL_WARNING, TICKS_OF_A_CPU,
};
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{Kind, LoadKind, LoadSpec, Side, Target, WaitMode};
use crate::recording::manifest::Manifest;
use crate::units::human::{percent, significant};

/// Effect of other processes on an end that spins.
const SPINNING_EFFECT: &str =
    "a spinning end waited for them for whole time slices of milliseconds: the median may show it";

/// The caveats of the sampled hosts.
pub(super) fn caveats(manifest: &Manifest, hosts: &HostAccumulators) -> Vec<Caveat> {
    let of_host = |host: SampledHost<'_>| {
        let foreign = host.foreign_load().filter(|_| is_own_work_known(manifest, host.side));
        [host.throttled(), host.steal(), foreign, host.frequency_drift()]
    };
    Side::ALL
        .into_iter()
        .filter_map(|side| SampledHost::of(manifest, hosts, side))
        .flat_map(of_host)
        .flatten()
        .collect()
}

/// Whether an end on the host of `side` had to share its CPUs: with other processes, a CPU load or the other end. An end
/// that spins there waits whole time slices.
pub(crate) fn is_contended(manifest: &Manifest, hosts: &HostAccumulators, side: Side) -> bool {
    let one_host = manifest.spec.target.is_this_host();
    let takes_cpus = |load: &LoadSpec| {
        let is_there = load.at == side || load.at == Side::Both || one_host;
        is_there && matches!(load.kind, LoadKind::Cpu { .. } | LoadKind::Heaters { .. } | LoadKind::Memory { .. })
    };
    let foreign = || SampledHost::of(manifest, hosts, side).and_then(|host| host.foreign_share());
    manifest.spec.loads.iter().any(takes_cpus)
        || peer_here(manifest).is_some_and(|peer| share_a_cpu(manifest, peer))
        || (is_own_work_known(manifest, side) && foreign().is_some_and(|share| share >= FOREIGN_NOTE))
}

/// The CPUs of that host to which ends of this run are pinned; `None` if one of the ends is not pinned, or its CPU has
/// no samples. `sampled_twice`: the peer's agent runs on this machine.
fn measuring_cpus(manifest: &Manifest, side: Side, sampled_twice: bool, samples: &HostAccumulator) -> Option<Vec<u16>> {
    if let Some(wakeup) = manifest.spec.wakeup() {
        return Some(wakeup.cpus.known().to_vec()).filter(|cpus| !cpus.is_empty());
    }
    let here = &manifest.spec.here;
    let peer = manifest.spec.peer.as_ref();
    let both_here = sampled_twice || manifest.spec.target.is_this_host();
    let ends = match side {
        Side::Peer => vec![peer?.cpu],
        _ if both_here => vec![here.cpu, peer?.cpu],
        _ => vec![here.cpu],
    };
    let sampled = samples.cpus();
    let mut pins = ends.into_iter().collect::<Option<Vec<u16>>>()?;
    pins.sort_unstable();
    pins.dedup();
    pins.iter().all(|cpu| sampled.contains(cpu)).then_some(pins)
}

/// Whether all work of the measurement on that host is counted as latlab's own. The work of a reflector on this host
/// that was not started by this command is not counted, and must not be reported as foreign load.
fn is_own_work_known(manifest: &Manifest, side: Side) -> bool {
    let is_started_here = !matches!(manifest.spec.target, Target::Host { .. });
    let address = manifest.run.peer_address.as_deref().unwrap_or_default();
    let own_address = manifest.run.local_address.as_deref().and_then(|own| own.rsplit_once(':')).map(|(own, _)| own);
    let is_loopback = address.starts_with("127.") || address.starts_with("[::1]");
    let is_this_host =
        is_loopback || own_address.is_some_and(|own| address.rsplit_once(':').is_some_and(|(peer, _)| peer == own));
    is_started_here || side.is_peer() || !is_this_host
}

struct SampledHost<'a> {
    manifest: &'a Manifest,
    wording: &'static Wording,
    side: Side,
    name: &'static str,
    /// The CPUs of the pinned ends; `None` if an end may run on any CPU.
    measuring: Option<Vec<u16>>,
    samples: &'a HostAccumulator,
    /// CPU time of latlab on this host that its samples do not count as latlab's own.
    also_own_ns: i64,
    /// Whether an end of the path spins there.
    spins: bool,
}

impl<'a> SampledHost<'a> {
    /// The host of `side`; `None` without samples. An agent on this same machine (`cmd:` into another namespace) samples it
    /// a second time: each sampler knows only a part of latlab's own work, and every caveat would appear twice.
    fn of(manifest: &'a Manifest, hosts: &'a HostAccumulators, side: Side) -> Option<SampledHost<'a>> {
        let samples = hosts.get(&side)?;
        let sampled_twice = hosts.len() > 1 && same_machine(manifest);
        let also_own = hosts.get(&Side::Peer).filter(|_| sampled_twice).and_then(HostAccumulator::own_ns);
        let spins_here = manifest.spec.path().is_some() && manifest.spec.here.wait == WaitMode::Spin;
        let spins_there = manifest.spec.peer.as_ref().is_some_and(|peer| peer.wait == WaitMode::Spin);
        let both_here = sampled_twice || manifest.spec.target.is_this_host();
        (!(sampled_twice && side.is_peer())).then(|| SampledHost {
            manifest,
            wording: Wording::of(manifest.kind),
            side,
            name: host_at(side),
            measuring: measuring_cpus(manifest, side, sampled_twice, samples),
            samples,
            also_own_ns: also_own.unwrap_or(0),
            spins: (side.is_local() && spins_here) || ((side.is_peer() || both_here) && spins_there),
        })
    }

    /// The CPUs on which an end of the run may have been.
    fn relevant(&self) -> Vec<u16> {
        self.measuring.clone().unwrap_or_else(|| self.samples.cpus())
    }

    fn throttled(&self) -> Option<Caveat> {
        let samples = self.samples;
        let counted: i64 =
            self.relevant().into_iter().filter_map(|cpu| samples.moved(cpu, |cpu| cpu.throttles)).max().unwrap_or(0);
        let flags = samples.firmware_flags();
        let firmware = [(1, "under-voltage"), (2, "frequency capped"), (4, "throttled"), (8, "soft temperature limit")];
        let named = firmware.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name);
        let mut reasons: Vec<String> = named.map(|name| format!("the firmware reports {name}")).collect();
        if counted > 0 {
            reasons.push(format!("thermal events counted by its CPUs: {counted}"));
        }
        if samples.cooling_state > 0 {
            reasons.push(format!("a cooling device slowed its CPUs (step {})", samples.cooling_state));
        }
        let heat = samples
            .hottest_millicelsius
            .filter(|heat| *heat > 0)
            .map(|heat| format!(" at up to {} °C", significant(heat as f64 / 1e3)));
        (!reasons.is_empty()).then(|| {
            Caveat::new(
                Severity::Fatal,
                "host-throttled",
                format!("{} throttled during the run: {}{}", self.name, reasons.join(", "), heat.unwrap_or_default()),
                "the CPUs ran slower in a part of the run: the figures mix two clock rates",
                "better cooling, a stronger power supply, or pauses between runs",
            )
        })
    }

    fn steal(&self) -> Option<Caveat> {
        let span = self.samples.span();
        let share = self.samples.stolen_ns()? as f64 / span.0.max(1) as f64;
        let worst = if self.samples.worst_steal > share {
            format!(", and {} in its worst second", percent(self.samples.worst_steal))
        } else {
            String::new()
        };
        let is_long = self.samples.worst_steal >= STEAL_IN_A_SECOND;
        (share >= STEAL || is_long).then(|| {
            Caveat::new(
                if is_long || share >= STEAL_WARNING { Severity::Warning } else { Severity::Note },
                "steal",
                format!(
                    "the hypervisor took {} of one CPU's time from {} during the run{worst}",
                    percent(share),
                    self.name
                ),
                self.wording.stolen,
                "measure on a host without other guests, or on dedicated CPUs",
            )
        })
    }

    /// Work of processes other than latlab, outside of interrupts, as a share of the measuring CPUs: a lower bound. If
    /// the ends are pinned, as much of it as possible is attributed to the other CPUs.
    fn foreign_share(&self) -> Option<f64> {
        self.foreign_share_of(&self.relevant())
    }

    /// The same as a share of `cpus`.
    fn foreign_share_of(&self, cpus: &[u16]) -> Option<f64> {
        let samples = self.samples;
        let all = samples.cpus();
        let span = samples.span();
        if span < JUDGED_SPAN || all.is_empty() {
            return None;
        }
        let worked = |cpus: &[u16]| cpus.iter().map(|cpu| samples.worked_ns(*cpu)).sum::<Option<i64>>();
        let uncertainty = TICKS_OF_A_CPU.0 * all.len() as i64;
        let foreign = worked(&all)? - samples.own_ns()? - self.also_own_ns - uncertainty;
        let others: Vec<u16> = all.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
        Some((foreign - worked(&others)?) as f64 / span.0 as f64 / cpus.len() as f64)
    }

    fn foreign_load(&self) -> Option<Caveat> {
        let share = self.foreign_share().filter(|share| *share >= FOREIGN_NOTE)?;
        // A spinning end waits for the whole time slice of another thread on its CPU.
        let is_warning = share >= FOREIGN_WARNING || self.spins;
        let what = match &self.measuring {
            Some(pins) if pins.len() == 1 => "the measuring CPU".to_owned(),
            Some(_) => "the measuring CPUs".to_owned(),
            None => "all CPUs".to_owned(),
        };
        let effect = if self.spins { SPINNING_EFFECT } else { self.wording.foreign };
        let is_everywhere = self.foreign_share_of(&self.samples.cpus()).is_some_and(|share| share > FOREIGN_EVERYWHERE);
        let remedies = match self.manifest.kind {
            Kind::Wakeup => [fifo(self.manifest), None],
            _ if is_everywhere => [None, None],
            _ => [cpu_for_each_end(self.manifest), self.spins.then_some("`--wait block`")],
        };
        let stop =
            if is_everywhere { "stop the other processes (`top` shows them)" } else { "stop the other processes" };
        let hint = any_of(std::iter::once(Some(stop)).chain(remedies));
        Some(Caveat::new(
            if is_warning { Severity::Warning } else { Severity::Note },
            "foreign-load",
            format!("other processes on {} used {} of {what}", self.name, percent(share)),
            effect,
            hint,
        ))
    }

    fn frequency_drift(&self) -> Option<Caveat> {
        let rates = |cpu: &u16| self.samples.rates_of_halves_khz(*cpu, FREQUENCY_READINGS);
        let change = |(early, late): &(f64, f64)| late / early - 1.0;
        let pairs = self.relevant();
        let pairs = pairs.iter().filter_map(|cpu| Some((*cpu, rates(cpu).filter(|(early, _)| *early > 0.0)?)));
        let (cpu, rates) = pairs.max_by(|one, other| change(&one.1).abs().total_cmp(&change(&other.1).abs()))?;
        (change(&rates).abs() >= FREQUENCY_DRIFT).then(|| {
            let way = if change(&rates) > 0.0 { "rose" } else { "fell" };
            let megahertz = |khz: f64| significant(khz / 1e3);
            Caveat::new(
                Severity::Warning,
                "frequency-drift",
                format!(
                    "the clock rate of CPU {cpu} of {} {way} by {} between the two halves of the run: {} to {} MHz",
                    self.name,
                    percent(change(&rates).abs()),
                    megahertz(rates.0),
                    megahertz(rates.1)
                ),
                self.wording.drifted,
                any_of([performance_governor(self.manifest, self.side), Some("a longer `--warmup`")]),
            )
        })
    }
}
