//! `latlab doctor`: reports properties of a host that would spoil a measurement, and the commands that correct them.

use std::io;
use std::thread;
use std::time::Duration;

use super::{Outcome, recovery};
use crate::agent::remote_facts;
use crate::cli::args::DoctorArgs;
use crate::cli::value::Pin;
use crate::console::{Console, Verbosity};
use crate::diagnostics::{Failure, in_words};
use crate::facts::{Finding, FindingSeverity};
use crate::host::HostRoot;
use crate::host::calibration::Calibrations;
use crate::host::doctor::{Intent, busy_cpus, findings, for_remote_host};
use crate::host::facts::{self, Interface};
use crate::measure::MeasureError;
use crate::measure::baseline::{BareSpec, calibrate};
use crate::plan::{EndSpec, Protocol, Target, defaults};
use crate::report::doctor::{render_json, render_text};
use crate::units::{Nanos, human};

/// How long the host is observed: one per cent of it is a whole tick of most kernels.
const WATCH: Duration = Duration::from_millis(1_000);

/// Examines the host for the measurement in `typed`; `--calibrate` also measures the bare loop and stores it.
pub(super) fn run(typed: &DoctorArgs, console: &Console) -> Result<Outcome, Failure> {
    if typed.restore {
        return show(&recovery::findings(), typed, console);
    }
    let target = typed.target.as_ref().map_or(Target::Local, |target| target.over(Protocol::Native));
    if target.has_agent() {
        return show(&far_findings(typed, &target)?, typed, console);
    }
    let look = || facts::read(&HostRoot::live(), Interface::OfDefaultRoute);
    let earlier = look();
    thread::sleep(WATCH);
    let now = look();
    let bare = bare_spec(typed);
    let intent = Intent { here: &bare.here, peer: Some(&bare.peer) };
    let mut findings = findings(&now, Some(&earlier), intent);
    if typed.calibrate {
        findings.push(calibration(&bare, &busy_cpus(&now, &earlier, intent), console)?);
    }
    show(&findings, typed, console)
}

/// Findings about the agent's host, judged here; each names that host, where its remedy is to be typed.
fn far_findings(typed: &DoctorArgs, peer: &Target) -> Result<Vec<Finding>, Failure> {
    let (earlier, facts) = remote_facts(peer, typed.peer_addr, WATCH).map_err(MeasureError::from)?;
    if let (Some(address), None) = (typed.peer_addr, &facts.network.interface) {
        let failure = Failure::world(format!("cannot find the interface of `{address}` on `{peer}`"));
        let cause = facts.unknown.get("network.interface").cloned().unwrap_or_default();
        return Err(failure.because(cause).hint("`--peer-addr` is the address of that host on the path to measure"));
    }
    let intent = Intent { here: &bare_spec(typed).peer, peer: None };
    let found = findings(&facts, Some(&earlier), intent).into_iter();
    Ok(found.filter_map(|finding| for_remote_host(finding, peer)).collect())
}

/// The bare loop under the planned conditions.
fn bare_spec(typed: &DoctorArgs) -> BareSpec {
    let here = typed.ends.end();
    let peer = EndSpec { cpu: typed.peer.peer_cpu.and_then(Pin::cpu), ..here };
    BareSpec { size_bytes: typed.size.unwrap_or(defaults::SIZE_BYTES), here, peer }
}

fn show(findings: &[Finding], typed: &DoctorArgs, console: &Console) -> Result<Outcome, Failure> {
    let nothing = if typed.restore { "no settings to restore\n" } else { "nothing to report\n" };
    match render_text(findings, console.data_style()) {
        _ if typed.json.json => console.document(&render_json(findings)),
        text if text.is_empty() && console.verbosity() > Verbosity::Quiet => console.data(nothing),
        text => console.data(&text),
    }?;
    let blocked = findings.iter().any(|finding| finding.severity == FindingSeverity::Blocker);
    Ok(if blocked { Outcome::AnswerIsNo } else { Outcome::Done })
}

/// Measures and stores the bare loop on these pins, which summaries of such runs state. `busy`: the pinned CPUs on which
/// other threads ran.
fn calibration(bare: &BareSpec, busy: &[u16], console: &Console) -> Result<Finding, Failure> {
    let bare = calibrate(bare)?;
    let message = format!(
        "bare loop on loopback, {} B, {}: round trip p50 {}, p99 {}, n {}",
        bare.conditions.size_bytes,
        bare.conditions.wait,
        human::span(Nanos(bare.p50_ns as i64)),
        human::span(Nanos(bare.p99_ns as i64)),
        human::grouped(bare.n),
    );
    if !bare.conditions.is_pinned() {
        let text =
            "summaries will not show this calibration: both ends must be pinned, since other CPUs give other results";
        console.warning(text, Some("`latlab doctor --calibrate --cpu 0 --peer-cpu 1`, on the CPUs of the measurement"));
        return Ok(Finding::fine("bare-loop", message));
    }
    let kept = Calibrations::for_user().ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"));
    if let Err(error) = kept.and_then(|kept| kept.keep(&bare)) {
        // the measurement itself succeeded and is shown
        let text = format!("cannot store the calibration: {}; summaries will not show it", in_words(&error));
        console.warning(&text, Some("set XDG_STATE_HOME to a writable directory"));
    }
    Ok(calibrated(message, busy))
}

/// The finding of a calibration on pinned CPUs, which is not a lower limit if other threads ran there.
fn calibrated(message: String, busy: &[u16]) -> Finding {
    let (cpus, they) = match busy {
        [] => return Finding::fine("bare-loop", message),
        [one] => (format!("CPU {one} was"), "it is"),
        several => {
            let numbers: Vec<String> = several.iter().map(ToString::to_string).collect();
            (format!("CPUs {} were", numbers.join(" and ")), "they are")
        }
    };
    let doubt = format!("calibrated while {cpus} busy: not a lower limit; repeat it when {they} idle");
    Finding::note("bare-loop", format!("{message}; {doubt}"))
}
