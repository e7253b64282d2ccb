//! `latlab ping`: measure, record, summarise, show.

use std::time::Instant;

use super::interrupt::Interrupt;
use super::{Outcome, keys, stores, verdict};
use crate::analysis::{Counts, Summary, SummaryWishes};
use crate::cli::resolve::{Keeping, PingJob};
use crate::console::{Console, Talk};
use crate::error::{Failure, refused};
use crate::measure::{self, Conducted};
use crate::plan::Plan;
use crate::recording::Recording;
use crate::report::view::Showing;
use crate::units::{Nanos, human};

/// Carries out `job`.
pub(super) fn run(job: &PingJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    keys::refuse_strangers(&job.plan)?;
    let keep = stores::open(&job.keeping)?;
    let interrupt = Interrupt::listen().map_err(refused("listen to signals"))?;
    let expected = job.plan.duration();
    let progress = console.progress(&title(&job.plan), expected.map(|span| (span.0 / 1_000_000) as u64));
    let start = Instant::now();
    let mut heartbeat = || {
        let gone = Nanos::from(start.elapsed());
        progress.show((gone.0 / 1_000_000) as u64, &human::typed_span(gone));
    };
    let conducted = measure::conduct(&job.plan, key.as_ref(), keep.place(), interrupt.stop(), &mut heartbeat)?;
    drop(progress);
    let shown = show(&conducted, job, console);
    ending(conducted, shown, &interrupt)
}

/// Reads the recordings back and shows what they say: the summary of a run is that of its recording.
fn show(conducted: &Conducted, job: &PingJob, console: &Console) -> Result<Outcome, Failure> {
    let every_metric = console.talk() > Talk::Usual;
    let mut summaries = Vec::new();
    let mut half = false;
    for finished in &conducted.recordings {
        let recording = Recording::open(&finished.path)?;
        let spec = &recording.manifest().spec;
        half |= spec.judging.half;
        let wishes = SummaryWishes { metrics: verdict::metrics(job.json || every_metric), ..SummaryWishes::of(spec) };
        summaries.push(verdict::summary_of(&recording, &wishes)?);
    }
    verdict::show(
        &summaries,
        Showing { half, every_metric, kept: job.keeping != Keeping::Nothing },
        job.json,
        console,
    )?;
    if summaries.iter().all(|summary| summary.counts.answered == 0) {
        return Err(silence(&summaries));
    }
    Ok(verdict::outcome(&summaries))
}

/// No probe was answered: the recording is kept, but there is no measurement.
fn silence(summaries: &[Summary]) -> Failure {
    let total = |count: fn(&Counts) -> u64| summaries.iter().map(|summary| count(&summary.counts)).sum::<u64>();
    let target = summaries.first().map(|summary| summary.condition.target.clone()).unwrap_or_default();
    Failure::world(format!("no probe was answered by `{target}`"))
        .because(match (total(|counts| counts.sent), total(|counts| counts.send_failed)) {
            (0, 0) => "the run ended before one could be sent".to_owned(),
            (0, refused) => format!("the kernel refused to send all {refused} of them"),
            (sent, _) => format!("{sent} probes were sent, nothing valid came back in time"),
        })
        .hint("see that the target still runs and that nothing on the path drops UDP; `--timeout` sets how long an answer may take")
}

/// What is measured, in one line.
fn title(plan: &Plan) -> String {
    match plan.runs.as_slice() {
        [one] => format!("ping {} · {} B", one.target, one.ping().size_bytes),
        several => format!("ping {} · {} runs", several[0].target, several.len()),
    }
}

/// What broke comes first, then who interrupted, then what the summary says.
fn ending(conducted: Conducted, shown: Result<Outcome, Failure>, interrupt: &Interrupt) -> Result<Outcome, Failure> {
    if let Some(error) = conducted.failure {
        return Err(error.into());
    }
    for finished in conducted.recordings {
        if let Some(error) = finished.failure {
            return Err(error.into());
        }
    }
    let outcome = shown?;
    Ok(interrupt.outcome().unwrap_or(outcome))
}
