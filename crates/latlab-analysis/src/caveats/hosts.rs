//! Caveats of the hosts of both ends: clocks, throttling, work of others, frequencies, idle states; of loads and settings.

use super::ends::{End, host_at};
use super::remedies::{any_of, cpu_for_each_end, fifo, peer_here, performance_governor, share_a_cpu};
use super::rule::{Rule, Topic, raised};
use crate::diagnostics::Severity::{Fatal, Note, Warning};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::load::{CPUS, SHARE};
use crate::facts::{ClockAnchor, HostFacts, LoadReport, RealTimePause, Restoration, SettingFacts};
use crate::host_samples::HostAccumulator;
use crate::limits::{
    FOREIGN_EVERYWHERE, FOREIGN_NOTE, FOREIGN_WARNING, FREQUENCY_DRIFT, FREQUENCY_READINGS, STEAL, STEAL_IN_A_SECOND,
    STEAL_WARNING, STEP,
};
use crate::plan::{Kind, Plan, RunSpec, Setting, Side, WaitMode, defaults};
use crate::recording::manifest::Manifest;
use crate::units::Nanos;
use crate::units::human::{general, grouped, load_figure, percent, significant, span};

pub(super) const OF_ENDS: &[Rule<End<'_>>] = &[
    Rule {
        code: "clock-stepped",
        raise: |end| {
            let asleep = advance(end, |anchor| anchor.boottime_ns)?;
            let message = || format!("{} was suspended for {} during the run", end.name(), span(asleep));
            (asleep > tolerance(end)?).then(|| (Fatal, message()))
        },
        effect: "nothing was measured while the clock stood still",
        hint: |_| "inhibit sleep while measuring: `systemd-inhibit latlab …`".into(),
    },
    Rule {
        code: "clock-stepped",
        raise: |end| {
            let asleep = advance(end, |anchor| anchor.boottime_ns)?;
            let step = advance(end, |anchor| anchor.realtime_ns)?.0.saturating_sub(asleep.0);
            let (way, size) = (if step > 0 { "forward" } else { "back" }, Nanos(step.abs()));
            let name = end.name();
            let message = || format!("the calendar clock of {name} was stepped {way} by {} during the run", span(size));
            (size > tolerance(end)?).then(|| (Fatal, message()))
        },
        effect: "time stamps from before and after the step cannot be compared",
        hint: |_| "wait until the time daemon has settled (`chronyc waitsync`), then measure again".into(),
    },
    Rule {
        code: "host-throttled",
        raise: |end| {
            let reasons = throttled(end)?;
            let heat = end.samples?.hottest_millicelsius.filter(|heat| *heat > 0);
            let heat = heat.map(|heat| format!(" at up to {} °C", significant(heat as f64 / 1e3)));
            let message =
                format!("{} throttled during the run: {}{}", end.name(), reasons.join(", "), heat.unwrap_or_default());
            (!reasons.is_empty()).then_some((Fatal, message))
        },
        effect: "the CPUs ran slower in a part of the run: the results mix two clock rates",
        hint: |_| "better cooling, a stronger power supply, or pauses between runs".into(),
    },
    Rule {
        code: "cpu-quota",
        raise: |end| {
            let (before, after) = (&end.host()?.cgroup, &end.facts().after.as_ref()?.cgroup);
            let periods = after.throttled_periods?.checked_sub(before.throttled_periods?).filter(|more| *more > 0)?;
            let (quota, periods) = (general(after.cpu_quota?, 3), grouped(periods));
            let name = end.name();
            Some((
                Warning,
                format!(
                    "a quota of {quota} CPU(s) stopped the control group of latlab on {name} in {periods} periods of the run"
                ),
            ))
        },
        effect: "what was due in such a pause is late by up to a period of the quota, usually 100 ms",
        hint: |_| {
            "lift the quota: `cpu.max` of the control group, `--cpus` of a container, `CPUQuota=` of a unit".into()
        },
    },
    Rule {
        code: "rt-throttling",
        raise: |end| Some((Warning, real_time_pause(end.host()?, restless(&end.manifest.spec, end.side)?, end.side)?)),
        effect: REAL_TIME_EFFECT,
        hint: |end| end.host().map_or_else(String::new, |facts| real_time_hint(facts, end.side)),
    },
    Rule {
        code: "steal",
        raise: steal,
        effect: "the extreme values may show the hypervisor, not what was measured",
        hint: |_| "measure on a host without other guests, or on dedicated CPUs".into(),
    },
    Rule {
        code: "foreign-load",
        raise: |end| {
            let share = end.foreign_share().filter(|share| *share >= FOREIGN_NOTE)?;
            // A spinning end waits for the whole time slice of another thread on its CPU.
            let severity = if share >= FOREIGN_WARNING || end.spins() { Warning } else { Note };
            let what = match end.measuring_cpus() {
                Some(pins) if pins.len() == 1 => "the measuring CPU",
                Some(_) => "the measuring CPUs",
                None => "all CPUs",
            };
            Some((severity, format!("other processes on {} used {} of {what}", end.name(), percent(share))))
        },
        effect: "what was measured sometimes waited for them, a spinning end for whole time slices of milliseconds",
        hint: |end| {
            let sampled = end.samples.map(HostAccumulator::cpus).unwrap_or_default();
            let is_everywhere = end.foreign_share_of(&sampled).is_some_and(|share| share > FOREIGN_EVERYWHERE);
            let remedies = match end.manifest.kind {
                Kind::Wakeup | Kind::Command => [fifo(end.manifest), None],
                _ if is_everywhere => [None, None],
                _ => [cpu_for_each_end(end.manifest), end.spins().then_some("`--wait block`")],
            };
            any_of([Some("stop the other processes")].into_iter().chain(remedies))
        },
    },
    Rule {
        code: "frequency-drift",
        raise: |end| {
            let rates =
                |cpu| end.samples?.rates_of_halves_khz(cpu, FREQUENCY_READINGS).filter(|(early, _)| *early > 0.0);
            let change = |(early, late): &(f64, f64)| late / early - 1.0;
            let cpus = end.relevant_cpus().into_iter().filter_map(|cpu| Some((cpu, rates(cpu)?)));
            let (cpu, rates) = cpus.max_by(|one, other| change(&one.1).abs().total_cmp(&change(&other.1).abs()))?;
            let (change, megahertz) = (change(&rates), |khz: f64| significant(khz / 1e3));
            let message = format!(
                "the clock rate of CPU {cpu} of {} {} by {} between the two halves of the run: {} to {} MHz",
                end.name(),
                if change > 0.0 { "rose" } else { "fell" },
                percent(change.abs()),
                megahertz(rates.0),
                megahertz(rates.1)
            );
            (change.abs() >= FREQUENCY_DRIFT).then_some((Warning, message))
        },
        effect: "the CPU time in each value changed as much: smaller differences between runs cannot be seen",
        hint: |end| any_of([performance_governor(end.manifest, end.side), Some("a longer `--warmup`")]),
    },
    Rule {
        code: "governor",
        // A governor that the run sets is its condition.
        raise: |end| {
            performance_governor(end.manifest, end.side)?;
            let governors = end.host()?.governors.as_ref()?;
            let slow: Vec<_> = governors.iter().filter(|name| *name != "performance").cloned().collect();
            let message = format!("the frequency governor of {} is `{}`", end.name(), slow.join("`, `"));
            (!slow.is_empty()).then_some((Note, message))
        },
        effect: "the CPUs run at a lower clock rate while there is little work",
        hint: |end| performance_governor(end.manifest, end.side).unwrap_or_default().into(),
    },
    Rule {
        code: "idle-states",
        raise: |end| {
            let message = match (end.side, end.manifest.kind, peer_here(end.manifest)) {
                // The ends of a stream do not wait for each other, and a command keeps its CPU awake.
                (_, Kind::Stream | Kind::Command, _) => return None,
                _ if end.spec().wait != WaitMode::Block || keeps_awake(end) => return None,
                (Side::Peer, ..) => {
                    end.host()?;
                    "the reflector's CPU may enter idle states: each round trip includes the time to leave them"
                }
                (_, Kind::Wakeup, _) => "the CPU may enter idle states: each wake-up includes the time to leave one",
                (.., Some(peer)) if share_a_cpu(end.manifest, peer) => return None,
                (.., Some(_)) => "both CPUs may enter idle states: each round trip includes the time to leave them",
                (.., None) => "this CPU may enter idle states: each round trip includes the time to leave them",
            };
            Some((Note, message.into()))
        },
        effect: "an idle host answers later than a busy one",
        hint: |end| {
            let awake = format!("`--set cpu-dma-latency{}=0`", suffix_of(end.side));
            any_of([end.spin().filter(|_| end.manifest.kind != Kind::Wakeup), Some(&awake)])
        },
    },
];

/// By how much one of the host's clocks advanced more than its monotonic clock.
fn advance(end: &End<'_>, clock: fn(&ClockAnchor) -> i64) -> Option<Nanos> {
    let (start, finish) = end.facts().clock_start.as_ref().zip(end.facts().clock_end.as_ref())?;
    Some(Nanos((clock(finish) - clock(start)).saturating_sub(finish.monotonic_ns - start.monotonic_ns)))
}

/// The difference of two clocks that a reading can explain.
fn tolerance(end: &End<'_>) -> Option<Nanos> {
    let (start, finish) = end.facts().clock_start.as_ref().zip(end.facts().clock_end.as_ref())?;
    Some(STEP.max(Nanos(start.width_ns.saturating_add(finish.width_ns))))
}

/// Why the host throttled; empty if it did not.
fn throttled(end: &End<'_>) -> Option<Vec<String>> {
    let samples = end.samples?;
    let counted = end.relevant_cpus().into_iter().filter_map(|cpu| samples.moved(cpu, |cpu| cpu.throttles)).max();
    let flags = samples.firmware_flags();
    let firmware = [(1, "under-voltage"), (2, "frequency capped"), (4, "throttled"), (8, "soft temperature limit")];
    let named = firmware.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name);
    let mut reasons: Vec<String> = named.map(|name| format!("the firmware reports {name}")).collect();
    let counted = counted.filter(|counted| *counted > 0);
    reasons.extend(counted.map(|counted| format!("thermal events counted by its CPUs: {counted}")));
    if samples.cooling_state > 0 {
        reasons.push(format!("a cooling device slowed its CPUs (step {})", samples.cooling_state));
    }
    Some(reasons)
}

/// Time taken by the hypervisor, by the samples; without samples by the facts before and after the run.
fn steal(end: &End<'_>) -> Option<(Severity, String)> {
    let (share, worst) = match end.samples {
        Some(samples) => (samples.stolen_ns()? as f64 / samples.span().0.max(1) as f64, samples.worst_steal),
        None => {
            let (before, after) = (end.host()?.steal_ticks?, end.facts().after.as_ref()?.steal_ticks?);
            let (start, finish) = end.facts().clock_start.as_ref().zip(end.facts().clock_end.as_ref())?;
            let elapsed_ns = Some(finish.monotonic_ns - start.monotonic_ns).filter(|ns| *ns > 0)?;
            // USER_HZ is 100 on every architecture that latlab supports.
            (after.saturating_sub(before) as f64 * 1e7 / elapsed_ns as f64, 0.0)
        }
    };
    let in_worst = if worst > share { format!(", and {} in its worst second", percent(worst)) } else { String::new() };
    let is_long = worst >= STEAL_IN_A_SECOND;
    let severity = if is_long || share >= STEAL_WARNING { Warning } else { Note };
    let (taken, name) = (percent(share), end.name());
    let message = format!("the hypervisor took {taken} of one CPU's time from {name} during the run{in_worst}");
    (share >= STEAL || is_long).then_some((severity, message))
}

/// Whether the settings of the run keep the CPUs of the host out of deep idle states.
fn keeps_awake(end: &End<'_>) -> bool {
    let one_host = end.manifest.spec.target.is_this_host();
    end.manifest.settings.iter().filter(|fact| one_host || fact.at == end.side.word()).any(|fact| {
        let (knob, value) = fact.setting.split_once('=').unwrap_or((&fact.setting, ""));
        let knob = knob.split_once('@').map_or(knob, |(knob, _)| knob);
        matches!((knob, value), ("cpu-dma-latency", "0us") | ("idle-states", "max-us:0"))
    })
}

/// The suffix of a knob in `--set` for the host at that end.
fn suffix_of(side: Side) -> &'static str {
    if side.is_local() { "" } else { "@peer" }
}

const REAL_TIME_EFFECT: &str = "quantiles above p95 may contain such a pause";

/// The warning, before `plan` starts, of FIFO threads that hardly sleep: the kernel will stop them, and they may make
/// this host unreachable. Only for runs that measure wake-ups; `facts` reads the host, only if there are such threads.
pub fn real_time_warning(plan: &Plan, facts: impl FnOnce() -> HostFacts) -> Option<Caveat> {
    let sleeping = |run: &&RunSpec| run.wakeup().is_some() || run.concurrent_wakeups().is_some();
    let (run, thread) = plan.runs.iter().filter(sleeping).find_map(|run| Some((run, restless(run, Side::Local)?)))?;
    let facts = facts();
    // The setting lifts the throttling of older kernels, and has no effect on the fair server of newer ones.
    let lifted = matches!(facts.real_time_pause(), Some(RealTimePause::Throttling { .. }))
        && run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1));
    let message = real_time_pause(&facts, thread, Side::Local).filter(|_| !lifted)?;
    Some(Caveat::new(Warning, "rt-throttling", message, REAL_TIME_EFFECT, real_time_hint(&facts, Side::Local)))
}

/// Name of the FIFO thread that `run` has at `side` and that never or hardly sleeps, if it has one.
fn restless(run: &RunSpec, side: Side) -> Option<&'static str> {
    let end = if side.is_local() { &run.here } else { run.peer.as_ref().unwrap_or(&run.here) };
    end.fifo?;
    let concurrent = run.concurrent_wakeups().map(|wakeups| wakeups.interval_ns);
    let absolute = run.wakeup().filter(|wakeup| !wakeup.relative);
    let interval = absolute.map(|wakeup| wakeup.interval_ns).or(concurrent).filter(|_| side.is_local());
    if end.wait == WaitMode::Spin {
        return Some("spinning FIFO thread");
    }
    interval.is_some_and(|every| every < defaults::RESTLESS_INTERVAL).then_some("FIFO thread that rarely sleeps")
}

/// What the kernel does to the FIFO thread `restless`; `latlab doctor` has a finding of it.
fn real_time_pause(facts: &HostFacts, restless: &str, side: Side) -> Option<String> {
    let (limit, host) = (facts.real_time_pause()?, host_at(side));
    let pause = limit.in_words();
    Some(match limit {
        RealTimePause::Throttling { .. } => format!("the kernel of {host} stops a {restless} for {pause}"),
        RealTimePause::FairShare { assumed, .. } => format!(
            "the fair server of {host} may stop a {restless} for {pause}{}, whenever a normal thread waits",
            if assumed { " by default" } else { "" }
        ),
    })
}

fn real_time_hint(facts: &HostFacts, side: Side) -> String {
    match facts.real_time_pause() {
        Some(RealTimePause::FairShare { .. }) => format!(
            "on {}: `sudo sh -c \"echo 0 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime\"`",
            host_at(side)
        ),
        _ => format!("`--set rt-runtime{}=-1`", suffix_of(side)),
    }
}

impl Topic for SettingFacts {
    type Of<'a> = SettingFacts;
}

pub(super) const OF_SETTINGS: &[Rule<SettingFacts>] = &[
    Rule {
        code: "setting-changed",
        raise: |fact| {
            let SettingFacts { setting, place, .. } = fact;
            let Some(Restoration::Changed { found }) = &fact.ended else { return None };
            Some((Warning, format!("`{setting}` did not last: `{place}` was changed during the run ({found})")))
        },
        effect: "part of the run may have been measured without this setting",
        hint: |fact| format!("latlab left it as found; before the run it was `{}`", fact.before),
    },
    Rule {
        code: "setting-not-restored",
        raise: |fact| {
            let SettingFacts { setting, place, before, .. } = fact;
            let Some(Restoration::Failed { reason }) = &fact.ended else { return None };
            Some((Warning, format!("cannot restore `{place}` to `{before}` after `{setting}`: {reason}")))
        },
        effect: "the results are valid, but the host still has the setting",
        hint: |_| "`latlab doctor --restore` on that host tries again".into(),
    },
];

/// The caveats of settings that did not hold or were not restored.
pub(super) fn of_settings(manifest: &Manifest) -> impl Iterator<Item = Caveat> {
    manifest.settings.iter().flat_map(|fact| raised(OF_SETTINGS, fact))
}

/// Tolerance of a CPU load, in shares of a CPU.
const POINT: f64 = 0.01;
/// Tolerance of every other load, relative to it: memory is copied and packets are sent in bursts.
const RELATIVE: f64 = 0.05;
/// Windows of this length keep to the tolerance.
const LONG: Nanos = Nanos::from_secs(5);
/// A shorter measurement has too few bursts to judge a load.
const SHORTEST: Nanos = Nanos::from_secs(1);

impl Topic for LoadReport {
    type Of<'a> = LoadReport;
}

pub(super) const OF_LOADS: &[Rule<LoadReport>] = &[
    Rule {
        code: "load-unreached",
        raise: |load| {
            let reason = load.ended_early.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let message = format!("the load `{}` at `{}` ended before the run did{reason}", load.load, load.at);
            is_lost(load).then_some((Warning, message))
        },
        effect: "an unknown part of the results was measured without this load",
        hint: |_| {
            "remove the cause and measure again; if its process was killed, the kernel log (`dmesg`) may show why"
                .into()
        },
    },
    Rule {
        code: "load-unreached",
        raise: |load| {
            let (offered, measured) = load.offered.zip(load.measured_ns)?;
            // Heaters may be more than the CPUs: the CPU time that they get is not promised.
            if is_lost(load) || load.unit == CPUS || measured < SHORTEST {
                return None;
            }
            let [least, most] = load.five_seconds.or(load.achieved.map(|mean| [mean, mean]))?;
            let deviation = allowed_deviation(load, offered, measured.min(LONG));
            let figure = |value: f64| load_figure(&load.unit, value);
            let range = load.five_seconds.map(|_| format!(", {} to {} over 5 s", figure(least), figure(most)));
            let (reached, range) = (figure(load.achieved.unwrap_or(least)), range.unwrap_or_default());
            (least < offered - deviation || most > offered + deviation)
                .then(|| (Warning, format!("the load `{}` at `{}` reached {reached}{range}", load.load, load.at)))
        },
        effect: "the results belong to a different load than the requested one",
        hint: |load| match load.offered.filter(|_| load.kind == "cpu").map(percent) {
            Some(share) => format!(
                "other threads use the same CPUs: leave {share} of each free, or choose other CPUs with `:cpus=`"
            ),
            None => "a smaller load, or less other work on the same CPUs or path".into(),
        },
    },
];

/// A caveat for each load that was not achieved, or whose rate is unknown.
pub fn unreached_loads(loads: &[LoadReport]) -> Vec<Caveat> {
    loads.iter().flat_map(|load| raised(OF_LOADS, load)).collect()
}

/// Whether it ended before the run. Without any figures it did too: recordings from before `ended_early` report it this
/// way. A network load that both ends counted, but for less than a window, was only too short.
fn is_lost(load: &LoadReport) -> bool {
    load.ended_early.is_some() || (load.measured_ns.is_none() && load.stream.is_none())
}

/// The allowed deviation of a load: its tolerance, and the effect of a burst cut by the end of the window (at most
/// P·(1 − P) of a period).
fn allowed_deviation(load: &LoadReport, offered: f64, window: Nanos) -> f64 {
    if load.unit != SHARE {
        return RELATIVE * offered;
    }
    let period = load.period_ns.unwrap_or_default();
    POINT + offered * (1.0 - offered) * period.0 as f64 / window.0 as f64
}
