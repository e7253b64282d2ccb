//! Caveats of the set-up of both hosts and of the path between them: shared CPUs, deep idle states, low frequencies,
//! throttling, steal, settings that did not hold, fragmented datagrams. And the remedies that a run does not have already.

use super::wording::Wording;
use crate::analysis::limits::{STEAL, STEAL_WARNING};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::{HostFacts, RealTimePause, Restoration, SettingFacts};
use crate::plan::{
    DdsSpec, Direction, EndSpec, Kind, Pace, Plan, Reliability, RunSpec, SendMode, Setting, Side, Target, WaitMode,
    defaults,
};
use crate::recording::manifest::{EndFacts, Manifest, UNFRAGMENTED_BYTES};
use crate::units::human::{bytes, percent};

/// The payload of an Ethernet frame, used if the MTU of the path is unknown.
const USUAL_MTU: u32 = 1_500;

/// `a`, `a, or b`, `a, b, or c` of the remedies that apply.
pub(crate) fn any_of<'a>(remedies: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let remedies: Vec<&str> = remedies.into_iter().flatten().collect();
    match remedies.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{}, or {last}", others.join(", ")),
        one => one.concat(),
    }
}

/// `--wait spin` for the sender; `None` if it spins, or if that would make the run worse: a CPU that it has to share, a
/// real-time priority, whose threads the kernel stops if they never sleep, or concurrent wake-ups, which exclude it.
pub(crate) fn spin(manifest: &Manifest, is_contended: bool) -> Option<&'static str> {
    let RunSpec { here, .. } = &manifest.spec;
    let is_refused = is_contended || here.fifo.is_some() || manifest.spec.concurrent_wakeups().is_some();
    (here.wait != WaitMode::Spin && !is_refused).then_some("`--wait spin`")
}

/// A CPU of its own for the sender; `None` if it has a pin, or if there is one CPU.
pub(crate) fn own_cpu(manifest: &Manifest) -> Option<&'static str> {
    let is_possible = manifest.spec.here.cpu.is_none() && !host(manifest).is_some_and(HostFacts::has_one_cpu);
    is_possible.then_some(match manifest.experiment {
        None => "a CPU of its own with `--cpu`",
        Some(_) => "a CPU of its own with `cpu` in `[base]`",
    })
}

/// A CPU of its own for the reflector; `None` if it has a pin.
pub(crate) fn reflector_cpu(manifest: &Manifest) -> Option<&'static str> {
    match &manifest.spec.peer {
        Some(end) => end.cpu.is_none().then_some(match manifest.experiment {
            None => "a CPU of its own for the reflector with `--peer-cpu`",
            Some(_) => "a CPU of its own for the reflector with `peer-cpu` in `[base]`",
        }),
        None => Some("a CPU of its own for the reflector with `serve --cpu`"),
    }
}

/// A CPU for each end; `None` if each has one, or if there is one CPU.
pub(crate) fn cpu_for_each_end(manifest: &Manifest) -> Option<&'static str> {
    let is_pinned =
        manifest.spec.here.cpu.is_some() && manifest.spec.peer.as_ref().is_some_and(|end| end.cpu.is_some());
    let is_shared = peer_here(manifest).is_some_and(|peer| share_a_cpu(manifest, peer));
    let is_possible = !host(manifest).is_some_and(HostFacts::has_one_cpu) && (!is_pinned || is_shared);
    is_possible.then_some(match manifest.experiment {
        None => "a CPU for each end with `--cpu` and `--peer-cpu`",
        Some(_) => "a CPU for each end with `cpu` and `peer-cpu` in `[base]`",
    })
}

/// `hint` without the remedies that name CPUs for the ends, unless it has no other: a caveat beside it names them.
pub(crate) fn without_cpus_of_ends(hint: &str) -> String {
    let remedies = || hint.split(", ").map(|one| one.strip_prefix("or ").unwrap_or(one));
    let names_a_cpu = |one: &&str| one.starts_with("a CPU ");
    // Other hints are sentences, not lists of remedies.
    match any_of(remedies().filter(|one| !names_a_cpu(one)).map(Some)) {
        others if others.is_empty() || !remedies().any(|one| names_a_cpu(&one)) => hint.to_owned(),
        others => others,
    }
}

/// `--fifo` for the threads of this host; `None` if they have a priority, or if they spin, which the kernel stops then.
pub(crate) fn fifo(manifest: &Manifest) -> Option<&'static str> {
    let RunSpec { here, .. } = &manifest.spec;
    (here.fifo.is_none() && here.wait != WaitMode::Spin).then_some("`--fifo 80`")
}

/// Whether the run sets `knob` at `side`.
pub(super) fn is_set(manifest: &Manifest, knob: &str, side: Side) -> bool {
    let one_host = manifest.spec.target.is_this_host();
    let settings = manifest.spec.settings.iter().filter(|spec| spec.setting.knob() == knob);
    settings.map(|spec| spec.ends(one_host)).any(|ends| ends == side || ends == Side::Both || one_host)
}

/// `--set governor=performance` at `side`; `None` if the run sets the governor.
pub(super) fn performance_governor(manifest: &Manifest, side: Side) -> Option<&'static str> {
    (!is_set(manifest, "governor", side)).then_some(match side.is_local() {
        true => "`--set governor=performance` for the time of the measurement",
        false => "`--set governor@peer=performance` for the time of the measurement",
    })
}

/// The caveats of this host, of the ends on it and of the path. `is_contended`: spinning does not help here.
pub(super) fn caveats(manifest: &Manifest, is_contended: bool) -> Vec<Caveat> {
    [
        reflector_died(manifest),
        spin_on_one_cpu(manifest),
        idle_states(manifest, is_contended),
        host(manifest).and_then(|facts| governor(manifest, facts, Side::Local)),
        host(manifest).and_then(|facts| real_time_pause(facts, restless(&manifest.spec), Side::Local)),
        fragmentation(manifest),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The caveats of the reflector's host, if it is another one with an agent.
pub(super) fn of_far_host(manifest: &Manifest, is_contended: bool) -> Vec<Caveat> {
    let Some(facts) = &manifest.peer.before else { return Vec::new() };
    let end = manifest.spec.peer.as_ref().unwrap_or(&manifest.spec.here);
    let pause = real_time_pause(facts, spinning(end), Side::Peer);
    let governor = governor(manifest, facts, Side::Peer);
    [idle_states_there(manifest, end, is_contended), governor, pause].into_iter().flatten().collect()
}

fn reflector_died(manifest: &Manifest) -> Option<Caveat> {
    let how = manifest.run.reflector_died.as_ref()?;
    Some(Caveat::new(
        Severity::Fatal,
        "reflector-died",
        format!("the reflector process of this run ended before the run did: {how}"),
        "every probe after that is lost, and the probes shortly before may be slow for the same reason",
        "`journalctl -k` or `dmesg` may show the reason (out of memory, a crash); then measure again",
    ))
}

/// The far end, if it runs on this host.
pub(super) fn peer_here(manifest: &Manifest) -> Option<&EndSpec> {
    manifest.spec.peer.as_ref().filter(|_| manifest.spec.target.is_this_host())
}

fn host(manifest: &Manifest) -> Option<&HostFacts> {
    manifest.here.before.as_ref()
}

/// Whether both ends are on one CPU, by their pins or for lack of another.
pub(super) fn share_a_cpu(manifest: &Manifest, peer: &EndSpec) -> bool {
    let pinned_together = manifest.spec.here.cpu.is_some() && manifest.spec.here.cpu == peer.cpu;
    pinned_together || host(manifest).is_some_and(HostFacts::has_one_cpu)
}

fn spin_on_one_cpu(manifest: &Manifest) -> Option<Caveat> {
    let peer = peer_here(manifest)?;
    let spins = manifest.spec.here.wait == WaitMode::Spin || peer.wait == WaitMode::Spin;
    let message = "both ends share one CPU and at least one of them spins";
    (spins && share_a_cpu(manifest, peer)).then(|| spin_on_one_cpu_caveat(manifest, message))
}

/// The caveat of two ends on one CPU of which one spins, whether pins put them there or the scheduler.
pub(crate) fn spin_on_one_cpu_caveat(manifest: &Manifest, message: impl Into<String>) -> Caveat {
    Caveat::new(
        Severity::Warning,
        "spin-on-one-cpu",
        message,
        match manifest.kind {
            Kind::Stream => "each end waits until the other's time slice ends, which takes milliseconds",
            Kind::Ping | Kind::Wakeup | Kind::Values => {
                "round trips contain time slices of the scheduler, which last milliseconds"
            }
        },
        any_of([Some("`--wait block`"), cpu_for_each_end(manifest)]),
    )
}

fn idle_states(manifest: &Manifest, is_contended: bool) -> Option<Caveat> {
    // The ends of a stream do not wait for each other.
    let waits = manifest.spec.here.wait == WaitMode::Block && manifest.kind != Kind::Stream;
    if !waits || keeps_awake(manifest, Side::Local) {
        return None;
    }
    let message = match peer_here(manifest) {
        _ if manifest.kind == Kind::Wakeup => {
            "the CPU may enter idle states: each wake-up includes the time to leave one"
        }
        Some(peer) if share_a_cpu(manifest, peer) => return None,
        Some(_) => "both CPUs may enter idle states: each round trip includes the time to leave them",
        None => "this CPU may enter idle states: each round trip includes the time to leave them",
    };
    Some(Caveat::new(
        Severity::Note,
        "idle-states",
        message,
        "an idle host answers later than a busy one",
        match manifest.kind {
            Kind::Wakeup => "`--set cpu-dma-latency=0` prevents that for the time of the run".into(),
            Kind::Ping | Kind::Stream | Kind::Values => {
                any_of([spin(manifest, is_contended), Some("`--set cpu-dma-latency=0`")])
            }
        },
    ))
}

fn idle_states_there(manifest: &Manifest, end: &EndSpec, is_contended: bool) -> Option<Caveat> {
    let waits = end.wait == WaitMode::Block && manifest.kind != Kind::Stream;
    (waits && !keeps_awake(manifest, Side::Peer)).then(|| {
        Caveat::new(
            Severity::Note,
            "idle-states",
            "the reflector's CPU may enter idle states: each round trip includes the time to leave them",
            "an idle host answers later than a busy one",
            any_of([spin(manifest, is_contended), Some("`--set cpu-dma-latency@peer=0`")]),
        )
    })
}

/// A governor that the run sets is its condition.
fn governor(manifest: &Manifest, facts: &HostFacts, side: Side) -> Option<Caveat> {
    let hint = performance_governor(manifest, side)?;
    let governors = facts.governors.as_ref()?;
    let slow: Vec<_> = governors.iter().filter(|name| name.as_str() != "performance").cloned().collect();
    (!slow.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "governor",
            format!("the frequency governor of {} is `{}`", host_at(side), slow.join("`, `")),
            "the CPUs run at a lower clock rate while there is little work",
            hint,
        )
    })
}

/// Name of the FIFO thread of this end that never sleeps, if it has one.
fn spinning(end: &EndSpec) -> Option<&'static str> {
    (end.fifo.is_some() && end.wait == WaitMode::Spin).then_some("spinning FIFO thread")
}

/// The warning, before `plan` starts, of FIFO threads that hardly sleep: the kernel will stop them, and they may make
/// this host unreachable. Only for runs that measure wake-ups; `facts` reads the host, only if there are such threads.
pub fn real_time_warning(plan: &Plan, facts: impl FnOnce() -> HostFacts) -> Option<Caveat> {
    let sleeping = |run: &&RunSpec| run.wakeup().is_some() || run.concurrent_wakeups().is_some();
    let (run, thread) = plan.runs.iter().filter(sleeping).find_map(|run| Some((run, restless(run)?)))?;
    let facts = facts();
    // The setting lifts the throttling of older kernels, and has no effect on the fair server of newer ones.
    let lifted = matches!(facts.real_time_pause(), Some(RealTimePause::Throttling { .. }))
        && run.settings.iter().any(|spec| spec.setting == Setting::RtRuntime(-1));
    real_time_pause(&facts, Some(thread), Side::Local).filter(|_| !lifted)
}

/// Name of the thread that `run` has on this host and that never or hardly sleeps, if it has one.
fn restless(run: &RunSpec) -> Option<&'static str> {
    let concurrent = run.concurrent_wakeups().map(|wakeups| wakeups.interval_ns);
    let absolute = run.wakeup().filter(|wakeup| !wakeup.relative);
    let interval = absolute.map(|wakeup| wakeup.interval_ns).or(concurrent);
    let hardly_sleeps = run.here.fifo.is_some() && interval.is_some_and(|every| every < defaults::RESTLESS_INTERVAL);
    spinning(&run.here).or_else(|| hardly_sleeps.then_some("FIFO thread that rarely sleeps"))
}

/// The caveat of the FIFO thread `restless`, which never or hardly sleeps; `latlab doctor` has a finding of that code.
fn real_time_pause(facts: &HostFacts, restless: Option<&str>, side: Side) -> Option<Caveat> {
    let (thread, limit) = restless.zip(facts.real_time_pause())?;
    let (pause, host) = (limit.in_words(), host_at(side));
    let effect = "quantiles above p95 may contain such a pause";
    Some(match limit {
        RealTimePause::Throttling { .. } => Caveat::new(
            Severity::Warning,
            "rt-throttling",
            format!("the kernel of {host} stops a {thread} for {pause}"),
            effect,
            format!("`--set rt-runtime{}=-1`", suffix_of(side)),
        ),
        RealTimePause::FairShare { assumed, .. } => Caveat::new(
            Severity::Warning,
            "fair-server",
            format!(
                "the fair server of {host} may stop a {thread} for {pause}{}, whenever a normal thread waits",
                if assumed { " by default" } else { "" }
            ),
            effect,
            format!("on {host}: `sudo sh -c \"echo 0 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime\"`"),
        ),
    })
}

/// The name of the host at that end in caveats.
pub(super) fn host_at(side: Side) -> &'static str {
    if side.is_local() { "this host" } else { "the reflector's host" }
}

/// The suffix of a knob in `--set` for the host at that end.
pub(super) fn suffix_of(side: Side) -> &'static str {
    if side.is_local() { "" } else { "@peer" }
}

/// Time taken by the hypervisor, from the facts before and after the run.
pub(super) fn steal(kind: Kind, name: &str, end: &EndFacts) -> Option<Caveat> {
    let before = end.before.as_ref()?.steal_ticks?;
    let after = end.after.as_ref()?.steal_ticks?;
    let clocks = end.clock_start.zip(end.clock_end);
    let elapsed_ns = clocks.map(|(start, end)| end.monotonic_ns - start.monotonic_ns).filter(|ns| *ns > 0)?;
    // USER_HZ is 100 on every architecture that latlab supports.
    let share = after.saturating_sub(before) as f64 * 1e7 / elapsed_ns as f64;
    (share >= STEAL).then(|| {
        Caveat::new(
            if share >= STEAL_WARNING { Severity::Warning } else { Severity::Note },
            "steal",
            format!("the hypervisor took {} of one CPU's time from {name} during the run", percent(share)),
            Wording::of(kind).stolen,
            "measure on a host without other guests, or on dedicated CPUs",
        )
    })
}

/// The longest message of the DDS library, of one long sample the longest, and the longest that can be configured.
const DDS_MESSAGE_BYTES: u32 = 14_720;
const DDS_LONG_SAMPLE_BYTES: u32 = 13_536;
const DDS_CONFIGURED_BYTES: u32 = 65_500;

fn fragmentation(manifest: &Manifest) -> Option<Caveat> {
    let path = manifest.spec.path()?;
    let size_bytes = manifest.spec.size_bytes()?;
    let transport = manifest.spec.transport().unwrap_or_default().properties();
    let known: Option<u32> = manifest.run.conditions.get(UNFRAGMENTED_BYTES).and_then(|bytes| bytes.parse().ok());
    // Loopback is not Ethernet: if its MTU is unknown, it is usually 65,536.
    let is_loopback = known.is_none() && manifest.spec.target == Target::Local;
    if path.dont_fragment || transport.connection_oriented || is_loopback {
        return None;
    }
    let version_6 = manifest.run.peer_address.as_deref().is_some_and(|address| address.starts_with('['));
    let datagram_bytes = USUAL_MTU - if version_6 { 48 } else { 28 };
    let usual = path.dds.map_or(datagram_bytes, |dds| dds.sample_bytes(datagram_bytes));
    let max_bytes: u32 = known.unwrap_or(usual);
    let surely = if known.is_some() { "are" } else { "are probably" };
    if let Some(dds) = path.dds {
        return sample_fragmentation(manifest, dds, max_bytes, surely);
    }
    (size_bytes > max_bytes).then(|| {
        Caveat::new(
            Severity::Warning,
            "fragmentation",
            format!(
                "datagrams of {} {surely} cut into IP fragments: a packet carries up to {}",
                bytes(size_bytes.into()),
                bytes(max_bytes.into())
            ),
            "one lost fragment loses the datagram, and reassembly takes time",
            format!("`--size {max_bytes}`"),
        )
    })
}

/// Fragments of IP over DDS, whose library puts samples, or parts of long ones, into datagrams. `max_bytes`: the longest
/// sample in one packet. Settings of the library may keep datagrams short, or make them longer.
fn sample_fragmentation(manifest: &Manifest, dds: DdsSpec, max_bytes: u32, surely: &str) -> Option<Caveat> {
    let is_set = sets_message_sizes(manifest, dds);
    let datagram_bytes = dds.datagram_bytes(max_bytes);
    let longest = if is_set { DDS_CONFIGURED_BYTES } else { DDS_MESSAGE_BYTES };
    if longest <= datagram_bytes {
        return None;
    }
    let (stream, size_bytes) = (manifest.spec.stream(), manifest.spec.size_bytes()?);
    let batched = stream.filter(|stream| stream.sending.mode == SendMode::Batch);
    let batch = batched.map_or(1, |stream| u32::from(stream.sending.batch));
    // A writer does not append a HEARTBEAT to every message, a paced sender fills few batches, and of a down-stream only
    // the other end writes.
    let without_heartbeat = datagram_bytes + dds.heartbeat_bytes();
    let is_down = stream.is_some_and(|stream| stream.direction == Direction::Down);
    let (what, fit, remedy, is_certain) = if size_bytes > max_bytes {
        let samples = format!("samples of {}", bytes(size_bytes.into()));
        let is_certain = dds.datagram_bytes(size_bytes) > without_heartbeat && datagram_bytes < DDS_LONG_SAMPLE_BYTES;
        (samples, bytes(max_bytes.into()), format!("`--size {max_bytes}`"), is_certain)
    } else {
        let fit = dds.samples_in(datagram_bytes, size_bytes);
        let is_paced = batched.filter(|_| batch > fit)?.pace != Pace::Max;
        let is_certain = !is_paced && dds.samples_in(without_heartbeat, size_bytes) < batch;
        let samples = format!("batches of up to {batch} samples");
        (samples, fit.to_string(), format!("`--batch {fit}`, `--mode send`"), is_certain)
    };
    let effect = "one lost fragment loses its samples, or delays reliable ones, and reassembly takes time";
    let limit = bytes(datagram_bytes.into());
    if is_set {
        let unless = "unless the settings of the DDS library at both ends keep datagrams within";
        let message = format!("{what} may be cut into IP fragments, {unless} {limit}");
        let hint = "see MaxMessageSize, MaxRexmitMessageSize and FragmentSize in `CYCLONEDDS_URI` (docs/dds.md)";
        return Some(Caveat::new(Severity::Note, "fragmentation", message, effect, hint));
    }
    let surely = if is_certain && !is_down { surely } else { "may be" };
    Some(Caveat::new(
        Severity::Warning,
        "fragmentation",
        format!("{what} {surely} cut into IP fragments: a packet carries {fit}"),
        effect,
        format!("{remedy}, or datagrams of at most {limit} by `CYCLONEDDS_URI` of both ends (docs/dds.md)"),
    ))
}

/// Whether settings of this end change how long its datagrams are.
fn sets_message_sizes(manifest: &Manifest, dds: DdsSpec) -> bool {
    let configuration = manifest.run.dds.as_ref().map_or(&[][..], |dds| &dds.configuration);
    let is_set = |name: &str| configuration.iter().any(|line| line.contains(name));
    let is_repeated = dds.reliability == Reliability::Reliable && is_set("/MaxRexmitMessageSize/");
    is_set("/MaxMessageSize/") || is_set("/FragmentSize/") || is_repeated
}

/// The caveats of settings that did not hold or were not restored.
pub(super) fn of_settings(manifest: &Manifest) -> impl Iterator<Item = Caveat> {
    manifest.settings.iter().filter_map(setting)
}

/// Whether the settings of the run keep the CPUs of the host at that end out of deep idle states.
fn keeps_awake(manifest: &Manifest, end: Side) -> bool {
    let one_host = manifest.spec.target.is_this_host();
    manifest.settings.iter().filter(|fact| one_host || fact.at == end.word()).any(|fact| {
        let (knob, value) = fact.setting.split_once('=').unwrap_or((&fact.setting, ""));
        let knob = knob.split_once('@').map_or(knob, |(knob, _)| knob);
        matches!((knob, value), ("cpu-dma-latency", "0us") | ("idle-states", "max-us:0"))
    })
}

fn setting(fact: &SettingFacts) -> Option<Caveat> {
    let SettingFacts { setting, at, place, before, ended, .. } = fact;
    match ended.as_ref()? {
        Restoration::Restored => None,
        Restoration::Changed { found } => Some(Caveat::new(
            Severity::Warning,
            "setting-changed",
            format!("`{setting}` did not last: `{place}` was changed during the run ({found})"),
            "part of the run may have been measured without this setting",
            format!("latlab left it as found; before the run it was `{before}`"),
        )),
        Restoration::Failed { reason } => Some(Caveat::new(
            Severity::Warning,
            "setting-not-restored",
            format!("cannot restore `{place}` to `{before}` after `{setting}`: {reason}"),
            "the figures are valid, but the host still has the setting",
            match at.as_str() {
                "peer" => "`latlab doctor --restore` on the peer's host tries again",
                _ => "`latlab doctor --restore` tries again",
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory};
    use crate::plan::{ConcurrentWakeups, PingSpec, SettingSpec, Via, WakeupCpus, WakeupSpec, Work};
    use crate::units::Nanos;

    #[test]
    fn fifo_threads_that_do_not_sleep_are_recognised_by_wait_mode_or_interval() {
        let wakeup = |micros, relative| {
            let (via, cpus, interval_ns) = (Via::ClockNanosleep, WakeupCpus::Anywhere, Nanos::from_micros(micros));
            Work::Wakeup(WakeupSpec { via, interval_ns, relative, cpus, break_ns: None })
        };
        let concurrent = |micros| {
            let (cpus, interval_ns) = (WakeupCpus::These(vec![0]), Nanos::from_micros(micros));
            let with_wakeup = Some(ConcurrentWakeups { interval_ns, late_ns: None, cpus });
            Work::Ping(PingSpec { with_wakeup, ..PingSpec::on(CLOSED) })
        };
        for (work, fifo, wait, word) in [
            (wakeup(2, false), Some(80), WaitMode::Block, Some("rarely sleeps")),
            (wakeup(2, true), Some(80), WaitMode::Block, None),
            (wakeup(2, false), None, WaitMode::Block, None),
            (wakeup(50, false), Some(80), WaitMode::Block, None),
            (wakeup(10_000, false), Some(1), WaitMode::Spin, Some("spinning")),
            (concurrent(10), Some(5), WaitMode::Block, Some("rarely sleeps")),
            (concurrent(1_000), Some(5), WaitMode::Block, None),
        ] {
            let mut run = RunSpec::here(work);
            (run.here.fifo, run.here.wait) = (fifo, wait);
            let found = restless(&run);
            assert_eq!(found.is_some(), word.is_some(), "{run:?}");
            assert!(word.is_none_or(|word| found.is_some_and(|found| found.contains(word))), "{run:?}: {found:?}");
        }
    }

    #[test]
    fn a_plan_with_fifo_threads_that_do_not_sleep_has_a_warning_unless_it_lifts_the_throttling() {
        let (via, cpus, interval_ns) = (Via::ClockNanosleep, WakeupCpus::Anywhere, Nanos::from_micros(2));
        let spec = WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: None };
        let mut run = RunSpec::here(Work::Wakeup(spec));
        run.here.fifo = Some(80);
        let facts = |kernel: &str| HostFacts {
            kernel: Some(kernel.into()),
            rt_runtime_us: Some(950_000),
            ..HostFacts::default()
        };
        let lifting = RunSpec {
            settings: vec![SettingSpec { setting: Setting::RtRuntime(-1), interface: None, side: None }],
            ..run.clone()
        };
        for (run, kernel, code) in [
            (&run, "Linux 6.11.9", Some("rt-throttling")),
            (&lifting, "Linux 6.11.9", None),
            (&lifting, "Linux 6.12.3", Some("fair-server")),
        ] {
            let plan = Plan { runs: vec![run.clone()], rounds: 1 };
            assert_eq!(real_time_warning(&plan, || facts(kernel)).map(|found| found.code).as_deref(), code, "{kernel}");
        }
        let sleeps = RunSpec { here: EndSpec::SYSTEM, ..run };
        assert_eq!(real_time_warning(&Plan { runs: vec![sleeps], rounds: 1 }, || panic!("no such thread")), None);
    }

    #[test]
    fn a_setting_that_was_restored_has_no_caveat() {
        let fact = |ended| SettingFacts {
            setting: "governor=performance".into(),
            at: "local".into(),
            place: "/sys/x".into(),
            places: 4,
            root: None,
            before: "ondemand".into(),
            set: "performance".into(),
            read_back: Some("performance".into()),
            ended,
        };
        for (ended, code) in [
            (None, None),
            (Some(Restoration::Restored), None),
            (Some(Restoration::Changed { found: "schedutil".into() }), Some("setting-changed")),
            (Some(Restoration::Failed { reason: "gone".into() }), Some("setting-not-restored")),
        ] {
            let mut manifest = InMemory::of(CLOSED, Vec::new()).manifest;
            manifest.settings = vec![fact(ended)];
            let codes: Vec<_> = of_settings(&manifest).map(|caveat| caveat.code).collect();
            assert_eq!(codes.first().map(String::as_str), code);
            assert!(!keeps_awake(&manifest, Side::Local));
        }
    }
}
