//! What is known about a run before its first probe and after its last, gathered for the manifest.

use std::collections::BTreeMap;

use super::remote_host::RemoteHost;
use super::{MeasureError, Peer};
use crate::clock;
use crate::facts::{BareLoop, HostFacts, Instrument, ReflectorReport};
use crate::host::HostRoot;
use crate::host::calibration::Calibrations;
use crate::host::facts::{self, Interface};
use crate::plan::{RunSpec, Target};
use crate::recording::manifest::{EndFacts, Manifest, RunFacts, UNFRAGMENTED_BYTES};
use crate::recording::{fresh_run_id, started_at};
use crate::session::KeyError;
use crate::transport::OpenPath;
use crate::wire::TagKey;

/// The manifest of a run that is about to start.
pub(crate) fn opening_manifest(spec: &RunSpec, peer: &Peer, path: OpenPath) -> Result<Manifest, MeasureError> {
    let start = clock::anchor();
    let host = facts::read(&HostRoot::live(), path_interface(spec, path));
    let instrument = instrument(spec, &host);
    let here = EndFacts { before: Some(host), clock_start: Some(start), ..EndFacts::default() };
    let run_id = fresh_run_id().map_err(|error| KeyError::NoRandomness { cause: error.to_string() })?;
    let mut manifest = Manifest::new(spec.clone(), run_id, started_at(start.realtime_ns));
    manifest.run = RunFacts {
        local_address: Some(path.local.to_string()),
        peer_address: Some(peer.address().to_string()),
        conditions: conditions(peer, path),
        ..RunFacts::default()
    };
    manifest.peer = peer_facts(&spec.target, &here, peer.far().map(RemoteHost::facts));
    manifest.settings = peer.settings();
    (manifest.here, manifest.instrument) = (here, instrument);
    Ok(manifest)
}

/// The same for a run that has no path.
pub(crate) fn opening_manifest_here(spec: &RunSpec) -> Result<Manifest, MeasureError> {
    let start = clock::anchor();
    let host = facts::read(&HostRoot::live(), Interface::Named("lo"));
    let instrument = instrument(spec, &host);
    let run_id = fresh_run_id().map_err(|error| KeyError::NoRandomness { cause: error.to_string() })?;
    let mut manifest = Manifest::new(spec.clone(), run_id, started_at(start.realtime_ns));
    manifest.here = EndFacts { before: Some(host), clock_start: Some(start), ..EndFacts::default() };
    manifest.instrument = instrument;
    Ok(manifest)
}

/// Adds what is known after its end.
pub(crate) fn closing_facts_here(manifest: &mut Manifest) {
    manifest.here.clock_end = Some(clock::anchor());
    manifest.here.after = Some(facts::read(&HostRoot::live(), Interface::Named("lo")));
}

/// Conditions of the path, and the largest payload that crosses it in one piece.
fn conditions(peer: &Peer, path: OpenPath) -> BTreeMap<String, String> {
    let mut conditions = peer.conditions();
    if let Some(bytes) = path.unfragmented_bytes {
        conditions.insert(UNFRAGMENTED_BYTES.into(), bytes.to_string());
    }
    conditions
}

/// Adds what is known after the last probe on `path`.
pub(crate) fn closing_facts(
    manifest: &mut Manifest,
    path: OpenPath,
    report: Option<ReflectorReport>,
    strays: BTreeMap<String, u64>,
    socket_errors: BTreeMap<String, u64>,
) {
    // The clocks first: reading facts may take a while, and a step of the clock in it is not the run's.
    manifest.here.clock_end = Some(clock::anchor());
    manifest.here.after = Some(facts::read(&HostRoot::live(), path_interface(&manifest.spec, path)));
    // What an agent told stands there already.
    manifest.peer = peer_facts(&manifest.spec.target, &manifest.here, Some(&manifest.peer));
    manifest.run.reflector = report;
    manifest.run.strays = strays;
    manifest.run.socket_errors = socket_errors;
}

/// The interface through which probes leave.
fn path_interface(spec: &RunSpec, path: OpenPath) -> Interface<'_> {
    match &spec.expect_path().bind_interface {
        Some(name) => Interface::Named(name),
        None => Interface::Towards { local: Some(path.local.ip()), peer: path.peer.ip() },
    }
}

/// `local` and `lab` have both ends on one host, with one clock. Of other targets only an agent tells.
fn peer_facts(target: &Target, here: &EndFacts, told: Option<&EndFacts>) -> EndFacts {
    match target {
        Target::Local => here.clone(),
        Target::Lab => {
            let mut there = here.clone();
            for facts in [&mut there.before, &mut there.after].into_iter().flatten() {
                facts.network.interface = None;
                facts.unknown.retain(|field, _| !field.starts_with("network.interface"));
                facts.unknown.insert("network.interface".into(), "it is in the reflector's namespace".into());
            }
            there
        }
        Target::Host { .. } => EndFacts::default(),
        Target::Ssh { .. } | Target::Command { .. } => told.cloned().unwrap_or_default(),
    }
}

/// The floor of this run: measured now, but for the bare loop, which `latlab doctor --calibrate` measures.
fn instrument(spec: &RunSpec, host: &HostFacts) -> Instrument {
    let tag = TagKey::new(&[0x5a; 16]);
    // A probe covers three words; black_box keeps the compiler from doing it once.
    let tag_cost = || clock::cost_ns(|| tag.tag(std::hint::black_box(&[1, 2, 3])));
    Instrument {
        clock_resolution_ns: Some(clock::resolution()),
        clock_read_ns: Some(clock::read_cost_ns()),
        tag_ns: spec.authenticated.then(tag_cost),
        bare_loop: Calibrations::of_user().and_then(|kept| kept.find(&place_of(spec, host)?)),
    }
}

/// Which bare loop would be this run's floor; none where latlab does not know the other end, or where
/// the path is no loopback.
fn place_of(spec: &RunSpec, host: &HostFacts) -> Option<BareLoop> {
    let peer = spec.peer.filter(|_| spec.target == Target::Local)?;
    Some(BareLoop {
        p50_ns: 0.0,
        p99_ns: 0.0,
        n: 0,
        size_bytes: spec.ping()?.size_bytes,
        wait: spec.here.wait.word().into(),
        cpu: spec.here.cpu,
        peer_cpu: peer.cpu,
        measured_at: String::new(),
        boot_id: host.boot_id.clone(),
    })
}
