//! What the host samples say: time stolen, heat, foreign work, clock rates that moved.

use std::collections::BTreeMap;

use super::ends::{host_at, place_of};
use super::limits::{
    FOREIGN_NOTE, FOREIGN_WARNING, FREQUENCY_DRIFT, FREQUENCY_READINGS, JUDGED_SPAN, STEAL, STEAL_IN_A_SECOND,
    TICKS_OF_A_CPU,
};
use super::{clocks, words};
use crate::analysis::host_course::HostAccumulator;
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{Kind, Side, Target};
use crate::recording::manifest::Manifest;
use crate::units::human::{percent, significant};

/// The caveats of the hosts that were sampled.
pub(super) fn derive(manifest: &Manifest, courses: &BTreeMap<Side, HostAccumulator>) -> Vec<Caveat> {
    // An agent on this same machine (`cmd:` into another namespace) samples it once more: both know half of our own
    // work, and every finding would stand there twice.
    let twice = courses.len() > 1 && clocks::same_machine(manifest);
    let of_host = |(side, course): (&Side, &HostAccumulator)| {
        if twice && side.is_peer() {
            return [None, None, None, None];
        }
        let measuring = measuring_cpus(manifest, (*side, twice), course);
        let also_own_ns = courses.get(&Side::Peer).filter(|_| twice).and_then(HostAccumulator::own_ns).unwrap_or(0);
        let (kind, name) = (manifest.kind, host_at(*side));
        let host = Host { kind, side: *side, name, measuring, course, also_own_ns };
        let foreign = host.foreign_load().filter(|_| knows_its_own(manifest, *side));
        [host.throttled(), host.steal(), foreign, host.frequency_drift()]
    };
    courses.iter().flat_map(of_host).flatten().collect()
}

/// The CPUs of that host on which ends of this run are pinned; none where one of them may run anywhere.
fn measuring_cpus(manifest: &Manifest, (side, twice): (Side, bool), course: &HostAccumulator) -> Option<Vec<u16>> {
    if let Some(wakeup) = manifest.spec.wakeup() {
        return Some(wakeup.cpus.known().to_vec()).filter(|cpus| !cpus.is_empty());
    }
    let here = &manifest.spec.here;
    let peer = manifest.spec.peer.as_ref();
    let both_here = twice || manifest.spec.target.is_this_host();
    let ends = match side {
        Side::Peer => vec![peer?.cpu],
        _ if both_here => vec![here.cpu, peer?.cpu],
        _ => vec![here.cpu],
    };
    let sampled = course.cpus();
    let mut pins = ends.into_iter().collect::<Option<Vec<u16>>>()?;
    pins.sort_unstable();
    pins.dedup();
    pins.iter().all(|cpu| sampled.contains(cpu)).then_some(pins)
}

/// Whether all that the measurement itself does on that host is counted as its own. A reflector that somebody else
/// started on this host is not, and its work is no foreign load.
fn knows_its_own(manifest: &Manifest, side: Side) -> bool {
    let made_here = !matches!(manifest.spec.target, Target::Host { .. });
    let address = manifest.run.peer_address.as_deref().unwrap_or_default();
    let own_address = manifest.run.local_address.as_deref().and_then(|own| own.rsplit_once(':')).map(|(own, _)| own);
    let at_home = address.starts_with("127.") || address.starts_with("[::1]");
    let at_home =
        at_home || own_address.is_some_and(|own| address.rsplit_once(':').is_some_and(|(peer, _)| peer == own));
    made_here || side.is_peer() || !at_home
}

struct Host<'a> {
    kind: Kind,
    side: Side,
    name: &'static str,
    /// The CPUs that measured; none: any of them.
    measuring: Option<Vec<u16>>,
    course: &'a HostAccumulator,
    /// Our own work on it that its samples do not know.
    also_own_ns: i64,
}

impl Host<'_> {
    /// The CPUs whose state matters.
    fn relevant(&self) -> Vec<u16> {
        self.measuring.clone().unwrap_or_else(|| self.course.cpus())
    }

    fn throttled(&self) -> Option<Caveat> {
        let course = self.course;
        let counted: i64 =
            self.relevant().into_iter().filter_map(|cpu| course.moved(cpu, |cpu| cpu.throttles)).max().unwrap_or(0);
        let flags = course.firmware_flags();
        let firmware = [(1, "under-voltage"), (2, "frequency capped"), (4, "throttled"), (8, "soft temperature limit")];
        let named = firmware.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name);
        let mut reasons: Vec<String> = named.map(|name| format!("firmware says {name}")).collect();
        if counted > 0 {
            reasons.push(format!("its CPUs counted {counted}×"));
        }
        if course.cooling_state > 0 {
            reasons.push(format!("cooling slowed its CPUs to step {}", course.cooling_state));
        }
        let heat = course
            .hottest_millicelsius
            .filter(|heat| *heat > 0)
            .map(|heat| format!(" at up to {} °C", significant(heat as f64 / 1e3)));
        (!reasons.is_empty()).then(|| {
            Caveat::new(
                Severity::Fatal,
                "host-throttled",
                format!("{} throttled during the run: {}{}", self.name, reasons.join(", "), heat.unwrap_or_default()),
                "the CPUs ran slower for a part of the run: it has figures of two machines in it",
                "better cooling or supply, a lower `governor` frequency, or pauses between runs",
            )
        })
    }

    fn steal(&self) -> Option<Caveat> {
        let span = self.course.span();
        let share = self.course.stolen_ns()? as f64 / span.0.max(1) as f64;
        let worst = if self.course.worst_steal > share {
            format!(", and {} in its worst second", percent(self.course.worst_steal))
        } else {
            String::new()
        };
        (share >= STEAL || self.course.worst_steal >= STEAL_IN_A_SECOND).then(|| {
            Caveat::new(
                Severity::Warning,
                "steal",
                format!(
                    "the hypervisor took {} of one CPU's time from {} during the run{worst}",
                    percent(share),
                    self.name
                ),
                words::stolen(self.kind),
                "measure on a host without neighbours, or on dedicated CPUs",
            )
        })
    }

    /// Work that neither latlab nor interrupts did, as a share of the CPUs that measured: at least that much. Where
    /// ends are pinned, as much of it as may be is thought to have run on the other CPUs.
    fn foreign_load(&self) -> Option<Caveat> {
        let course = self.course;
        let all = course.cpus();
        let span = course.span();
        if span < JUDGED_SPAN || all.is_empty() {
            return None;
        }
        let worked = |cpus: &[u16]| cpus.iter().map(|cpu| course.worked_ns(*cpu)).sum::<Option<i64>>();
        let doubt = TICKS_OF_A_CPU.0 * all.len() as i64;
        let foreign = worked(&all)? - course.own_ns()? - self.also_own_ns - doubt;
        let measuring = self.relevant();
        let others: Vec<u16> = all.iter().copied().filter(|cpu| !measuring.contains(cpu)).collect();
        let share = (foreign - worked(&others)?) as f64 / span.0 as f64 / measuring.len() as f64;
        let severity = match share {
            share if share >= FOREIGN_WARNING => Severity::Warning,
            share if share >= FOREIGN_NOTE => Severity::Note,
            _ => return None,
        };
        let what = match &self.measuring {
            Some(pins) if pins.len() == 1 => "the measuring CPU".to_owned(),
            Some(_) => "the measuring CPUs".to_owned(),
            None => "all CPUs".to_owned(),
        };
        let (effect, hint) = words::foreign(self.kind);
        Some(Caveat::new(
            severity,
            "foreign-load",
            format!("other processes on {} used {} of {what}", self.name, percent(share)),
            effect,
            hint,
        ))
    }

    fn frequency_drift(&self) -> Option<Caveat> {
        let rates = |cpu: &u16| self.course.rates_khz(*cpu, FREQUENCY_READINGS);
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
                words::drifted(self.kind),
                format!(
                    "`--set governor{}=performance` for the time of the measurement, and a longer `--warmup`",
                    place_of(self.side)
                ),
            )
        })
    }
}
