//! `latlab load`: makes loads for a time, and reports the achieved values.

use std::time::{Duration, Instant};

use super::{Outcome, keys};
use crate::agent::AgentError;
use crate::cli::resolve::LoadJob;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::measure::{BackgroundLoads, MeasureError, Peer};
use crate::plan::Schedule;
use crate::plan::{PingSpec, RunSpec, defaults};
use crate::platform::SignalWatch;
use crate::report::loads::LoadsView;
use crate::session::wait_until;

/// Carries out `job`. Whatever ends it, the loads end with it.
pub(super) fn run(job: &LoadJob, json: bool, console: &Console) -> Result<Outcome, Failure> {
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    let whole = job.duration + defaults::LOAD_SETTLE;
    let words: Vec<_> = job.loads.iter().map(ToString::to_string).collect();
    let progress = console.progress(&format!("load {}", words.join(" · ")), Some((whole.0 / 1_000_000) as u64));
    let start = Instant::now();
    let mut heartbeat = || {
        interrupt.notice();
        let gone = start.elapsed();
        progress.show(gone.as_millis() as u64, || format!("{:.1} s", gone.as_secs_f64()));
    };
    let key = keys::find(&job.key)?;
    let spec = RunSpec {
        target: job.target.clone(),
        loads: job.loads.clone(),
        ..RunSpec::local(PingSpec { path: job.path.clone(), ..PingSpec::on(Schedule::Closed) })
    };
    let mut peer = match spec.network_loads() + spec.far_loads().count() {
        0 => None,
        _ => Some(Peer::of_loads(&spec, key.as_ref(), interrupt.stop())?),
    };
    let background =
        BackgroundLoads::start(&spec, peer.as_mut(), key.as_ref(), Some(whole), interrupt.stop(), &mut heartbeat)
            .map_err(without_recording)?;
    background.settle(interrupt.stop(), &mut heartbeat);
    peer.as_mut().map_or(Ok(()), |peer| peer.arm(Some(whole))).map_err(without_recording)?;
    background.begin();
    let end = Instant::now() + Duration::from_nanos(job.duration.0 as u64);
    wait_until(end, interrupt.stop(), &mut heartbeat);
    background.end();
    // If an agent was lost, this ended the wait; the achieved values of this host's loads are still reported.
    let lost = peer.as_mut().and_then(|peer| peer.disarm().err());
    let reports = background.finish(peer.as_mut());
    let parted = peer.and_then(|peer| peer.dismiss().err());
    drop(progress);
    let view = LoadsView::of(&reports);
    if json {
        view.caveats().iter().for_each(|caveat| console.caveat(caveat));
        console.document(&view.json())?;
    } else {
        console.data(&view.text(console.data_style()))?;
    }
    match lost.or(parted) {
        Some(failure) => Err(without_recording(failure)),
        None => Ok(interrupt.outcome().unwrap_or(Outcome::Done)),
    }
}

/// The failure of `error`. If an agent was lost, the hint does not refer to a recording, since `load` makes none.
fn without_recording(error: MeasureError) -> Failure {
    let lost = matches!(error, MeasureError::Agent(AgentError::Ended { .. } | AgentError::Silent { .. }));
    let failure = Failure::from(error);
    if lost { failure.hint("the loads of that host end with its agent") } else { failure }
}
