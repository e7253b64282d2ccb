//! Collects the facts of the manifest about a run, before its first probe and after its last one.

use std::collections::BTreeMap;

use super::MeasureError;
use super::remote_host::RemoteHost;
use super::run::RunContext;
use crate::clock;
use crate::facts::{CommandLine, HostFacts, Instrument};
use crate::host::HostRoot;
use crate::host::calibration::Calibrations;
use crate::host::facts::{self, Interface};
use crate::plan::{RunSpec, Target};
use crate::recording::manifest::{EndFacts, Manifest, RunFacts, UNFRAGMENTED_BYTES};
use crate::recording::{fresh_run_id, started_at};
use crate::session::KeyError;
use crate::transport::OpenPath;
use crate::wire::TagKey;

/// The manifest of a run that is about to start, over `path` if it has a path.
pub(super) fn opening_manifest(
    spec: &RunSpec,
    context: &RunContext<'_>,
    path: Option<OpenPath>,
) -> Result<Manifest, MeasureError> {
    let start = clock::anchor();
    let host = facts::read(&HostRoot::live(), path_interface(spec, path));
    let instrument = instrument(spec, &host);
    let run_id = fresh_run_id().map_err(|error| KeyError::NoRandomness { cause: error.to_string() })?;
    let mut manifest = Manifest::new(spec.clone(), run_id, started_at(start.realtime_ns));
    manifest.here = EndFacts { before: Some(host), clock_start: Some(start), ..EndFacts::default() };
    manifest.instrument = instrument;
    manifest.settings = context.settings.to_vec();
    manifest.command = context.target.command_line.map(CommandLine::bounded);
    manifest.experiment = context.target.experiment.cloned();
    if let (Some(path), Some(peer)) = (path, context.peer) {
        manifest.run = RunFacts {
            local_address: Some(path.local.to_string()),
            peer_address: Some(peer.address().to_string()),
            conditions: conditions(peer.conditions(), path),
            xdp_reflector: peer.xdp().cloned(),
            ..RunFacts::default()
        };
        manifest.peer = peer_facts(&spec.target, &manifest.here, peer.remote_host().map(RemoteHost::facts));
    }
    manifest.run.service_counted = context.target.service.is_some();
    Ok(manifest)
}

/// Adds the clocks and the hosts after the last probe.
pub(super) fn add_closing_facts(manifest: &mut Manifest, path: Option<OpenPath>) {
    // The clocks first: reading facts takes time, and a clock step during that time does not belong to the run.
    manifest.here.clock_end = Some(clock::anchor());
    manifest.here.after = Some(facts::read(&HostRoot::live(), path_interface(&manifest.spec, path)));
    if path.is_some() {
        // Facts from an agent are in the manifest already.
        manifest.peer = peer_facts(&manifest.spec.target, &manifest.here, Some(&manifest.peer));
    }
}

/// `conditions` of the path, and the largest payload that crosses it unfragmented.
fn conditions(mut conditions: BTreeMap<String, String>, path: OpenPath) -> BTreeMap<String, String> {
    if let Some(bytes) = path.unfragmented_bytes {
        conditions.insert(UNFRAGMENTED_BYTES.into(), bytes.to_string());
    }
    conditions
}

/// The interface through which probes leave; loopback for a run without a path.
fn path_interface(spec: &RunSpec, path: Option<OpenPath>) -> Interface<'_> {
    match (path, spec.path().and_then(|path| path.bind_interface.as_deref())) {
        (None, _) => Interface::Named("lo"),
        (Some(_), Some(name)) => Interface::Named(name),
        (Some(path), None) => Interface::Towards { local: Some(path.local.ip()), peer: path.peer.ip() },
    }
}

/// The facts of the peer's host. `local` and `lab` have both ends on one host; for other targets only an agent knows them.
fn peer_facts(target: &Target, here: &EndFacts, from_agent: Option<&EndFacts>) -> EndFacts {
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
        Target::Host { .. } | Target::Log { .. } => EndFacts::default(),
        Target::Ssh { .. } | Target::Command { .. } => from_agent.cloned().unwrap_or_default(),
    }
}

/// The cost of the instrument in this run. It is measured here, except for the bare loop, which
/// `latlab doctor --calibrate` measures.
fn instrument(spec: &RunSpec, host: &HostFacts) -> Instrument {
    let tag = TagKey::new(&[0x5a; 16]);
    // The tag of a probe covers three words; black_box keeps the compiler from computing it only once.
    let conditions = spec.bare_conditions();
    let tag_cost = || clock::cost_ns(|| tag.tag(std::hint::black_box(&[1, 2, 3])));
    Instrument {
        clock_resolution_ns: Some(clock::resolution()),
        clock_read_ns: Some(clock::read_cost_ns()),
        tag_ns: spec.authenticated.then(tag_cost),
        bare_loop: Calibrations::for_user()
            .zip(conditions.ok())
            .and_then(|(kept, conditions)| kept.find(host.boot_id.as_deref(), &conditions)),
    }
}
