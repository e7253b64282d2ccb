//! Remedies that a run does not have already.

use crate::facts::HostFacts;
use crate::plan::{EndSpec, RunSpec, Side, WaitMode};
use crate::recording::manifest::Manifest;

/// `a`, `a, or b`, `a, b, or c` of the remedies that apply.
pub(super) fn any_of<'a>(remedies: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let remedies: Vec<&str> = remedies.into_iter().flatten().collect();
    match remedies.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{}, or {last}", others.join(", ")),
        one => one.concat(),
    }
}

/// `--wait spin` for the sender; `None` if it spins, or if that would make the run worse: a CPU that it has to share, a
/// real-time priority, whose threads the kernel stops if they never sleep, or concurrent wake-ups, which exclude it.
pub(super) fn spin(manifest: &Manifest, is_contended: bool) -> Option<&'static str> {
    let RunSpec { here, .. } = &manifest.spec;
    let is_refused = is_contended || here.fifo.is_some() || manifest.spec.concurrent_wakeups().is_some();
    (here.wait != WaitMode::Spin && !is_refused).then_some("`--wait spin`")
}

/// A CPU of its own for the sender; `None` if it has a pin, or if there is one CPU.
pub(super) fn own_cpu(manifest: &Manifest) -> Option<&'static str> {
    let is_possible = manifest.spec.here.cpu.is_none() && !host(manifest).is_some_and(HostFacts::has_one_cpu);
    is_possible.then_some("a CPU of its own with `--cpu`")
}

/// A CPU of its own for the reflector; `None` if it has a pin.
pub(super) fn reflector_cpu(manifest: &Manifest) -> Option<&'static str> {
    match &manifest.spec.peer {
        Some(end) => end.cpu.is_none().then_some("a CPU of its own for the reflector with `--peer-cpu`"),
        None => Some("a CPU of its own for the reflector with `serve --cpu`"),
    }
}

/// A CPU for each end; `None` if each has one, or if there is one CPU.
pub(super) fn cpu_for_each_end(manifest: &Manifest) -> Option<&'static str> {
    let is_pinned =
        manifest.spec.here.cpu.is_some() && manifest.spec.peer.as_ref().is_some_and(|end| end.cpu.is_some());
    let is_shared = peer_here(manifest).is_some_and(|peer| share_a_cpu(manifest, peer));
    let is_possible = !host(manifest).is_some_and(HostFacts::has_one_cpu) && (!is_pinned || is_shared);
    is_possible.then_some("a CPU for each end with `--cpu` and `--peer-cpu`")
}

/// `--fifo` for the threads of this host; `None` if they have a priority, or if they spin, which the kernel stops then.
pub(super) fn fifo(manifest: &Manifest) -> Option<&'static str> {
    let RunSpec { here, .. } = &manifest.spec;
    (here.fifo.is_none() && here.wait != WaitMode::Spin).then_some("`--fifo 80`")
}

/// `--set governor=performance` at `side`; `None` if the run sets the governor.
pub(super) fn performance_governor(manifest: &Manifest, side: Side) -> Option<&'static str> {
    let one_host = manifest.spec.target.is_this_host();
    let mut settings = manifest.spec.settings.iter().filter(|spec| spec.setting.knob() == "governor");
    let is_set = |ends: Side| ends == side || ends == Side::Both || one_host;
    (!settings.any(|spec| is_set(spec.ends(one_host)))).then_some(if side.is_local() {
        "`--set governor=performance` for the time of the measurement"
    } else {
        "`--set governor@peer=performance` for the time of the measurement"
    })
}

/// The far end, if it runs on this host.
pub(super) fn peer_here(manifest: &Manifest) -> Option<&EndSpec> {
    manifest.spec.peer.as_ref().filter(|_| manifest.spec.target.is_this_host())
}

/// Whether both ends are on one CPU, by their pins or for lack of another.
pub(super) fn share_a_cpu(manifest: &Manifest, peer: &EndSpec) -> bool {
    let pinned_together = manifest.spec.here.cpu.is_some() && manifest.spec.here.cpu == peer.cpu;
    pinned_together || host(manifest).is_some_and(HostFacts::has_one_cpu)
}

fn host(manifest: &Manifest) -> Option<&HostFacts> {
    manifest.here.before.as_ref()
}
