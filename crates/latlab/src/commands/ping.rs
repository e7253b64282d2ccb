//! `latlab ping`: measure, record, summarise, show.

use std::sync::Arc;
use std::time::Instant;

use super::{Outcome, keys, measuring, stores, title, verdict, wakeup};
use crate::analysis::{Summary, SummaryOptions, run_outcome};
use crate::cli::resolve::{OutputSpec, PingJob};
use crate::console::{Console, Progress, Verbosity};
use crate::diagnostics::{Failure, refused};
use crate::measure::{LiveRates, PlanOutcome, RecordingTarget};
use crate::plan::Plan;
use crate::platform::SignalWatch;
use crate::recording::Recording;
use crate::report::view::Showing;
use crate::session::PreSharedKey;

/// Carries out `job`.
pub(super) fn run(job: &PingJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    keys::require_key_for_other_hosts(&job.plan)?;
    wakeup::warn([&job.plan], console);
    carry_out(&job.plan, key.as_ref(), (&job.keeping, job.json), console)
}

/// Measures `plan`, then shows what the recordings say.
pub(super) fn carry_out(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    showing: (&OutputSpec, bool),
    console: &Console,
) -> Result<Outcome, Failure> {
    carry_out_watched(plan, key, showing, console, (&Arc::default(), &String::new))
}

/// The same, with the rates of streams for whoever watches and what shall stand beside the progress bar.
pub(super) fn carry_out_watched(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    (keeping, json): (&OutputSpec, bool),
    console: &Console,
    (live, beside): (&Arc<LiveRates>, &dyn Fn() -> String),
) -> Result<Outcome, Failure> {
    let keep = stores::open(keeping)?;
    let interrupt = measuring::listen([plan], console).map_err(refused("listen to signals"))?;
    let expected = plan.duration();
    let progress = console.progress(&title::of(plan), expected.map(|span| (span.0 / 1_000_000) as u64));
    let start = Instant::now();
    let mut tick = |progress: &Progress| {
        let gone = start.elapsed();
        progress.show(gone.as_millis() as u64, &format!("{:.1} s{}", gone.as_secs_f64(), beside()));
    };
    let place = RecordingTarget { live: Some(live), ..keep.place() };
    let conducted = measuring::measure(plan, key, place, &interrupt, console, (progress, &mut tick));
    let Some(conducted) = conducted? else {
        console.note("interrupted before anything was measured");
        return Ok(interrupt.outcome().unwrap_or(Outcome::Interrupted));
    };
    let shown = show(&conducted, (keeping, json), console);
    ending(conducted, shown, &interrupt)
}

/// Reads the recordings back and shows what they say: the summary of a run is that of its recording.
fn show(
    conducted: &PlanOutcome,
    (keeping, json): (&OutputSpec, bool),
    console: &Console,
) -> Result<Vec<Summary>, Failure> {
    let every_metric = console.verbosity() > Verbosity::Usual;
    let mut summaries = Vec::new();
    let (mut half, mut like) = (false, None);
    for finished in &conducted.recordings {
        let recording = Recording::open(&finished.path)?;
        let spec = &recording.manifest().spec;
        half |= spec.judging.half;
        like = like.or(spec.judging.like);
        let wishes = SummaryOptions { metrics: verdict::metrics(json || every_metric), ..SummaryOptions::of(spec) };
        summaries.push(verdict::summary_of(&recording, &wishes)?);
    }
    let kept = *keeping != OutputSpec::Nothing;
    verdict::show(&summaries, Showing { half, every_metric, kept, like }, json, console)?;
    Ok(summaries)
}

/// What broke comes first, then who interrupted, then what the summaries say.
fn ending(conducted: PlanOutcome, shown: Result<Vec<Summary>, Failure>, by: &SignalWatch) -> Result<Outcome, Failure> {
    if let Some(error) = conducted.failure {
        return Err(error.into());
    }
    if let Some(error) = conducted.recordings.into_iter().find_map(|finished| finished.failure) {
        return Err(error.into());
    }
    // Who hung up took the terminal along, and with it the place where a summary could have been shown.
    if by.outcome() == Some(Outcome::HungUp) {
        return Ok(Outcome::HungUp);
    }
    let summaries = shown?;
    by.outcome().map_or_else(|| run_outcome(&summaries), Ok)
}
