//! `latlab stream`: one-way throughput.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::measure_and_report::{LiveView, MeasureJob, measure_and_report};
use super::{Outcome, keys};
use crate::cli::resolve::StreamJob;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::measure::{LiveCounts, LiveRates};
use crate::units::human::{bit_rate, percent, span};

/// Carries out `job`.
pub(super) fn run(job: &StreamJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    keys::require_key_for_other_hosts(&job.plan)?;
    announce_duration(job, console);
    let live = Arc::new(LiveRates::default());
    let progress = StreamProgress::of(&live);
    let measured = MeasureJob { plan: &job.plan, key: key.as_ref(), output: &job.keeping, json: job.json };
    measure_and_report(&measured, &LiveView { rates: &live, text: &|| progress.text() }, console)
}

/// Says before a search how long it takes at most, since its progress does not show it.
fn announce_duration(job: &StreamJob, console: &Console) {
    let search = job.plan.runs.first().and_then(|run| run.stream()?.search.as_ref());
    if let (Some(search), Some(longest)) = (search, job.plan.duration()) {
        let goals = search.goals.iter().map(|goal| percent(goal.loss_ratio)).collect::<Vec<_>>().join(" and ");
        console.note(&format!(
            "searching for the highest rate with a loss of up to {goals}: measuring takes at most {}",
            span(longest)
        ));
    }
}

/// The interval between two updates: a person reads no faster.
const UPDATE: Duration = Duration::from_secs(1);

/// The text behind the progress bar: the rates of the last whole second.
struct StreamProgress<'a> {
    live: &'a LiveRates,
    last: RefCell<(Instant, LiveCounts, String)>,
}

impl StreamProgress<'_> {
    fn of(live: &LiveRates) -> StreamProgress<'_> {
        StreamProgress { live, last: RefCell::new((Instant::now(), live.read(), String::new())) }
    }

    fn text(&self) -> String {
        let mut last = self.last.borrow_mut();
        let (since, elapsed) = (last.1, last.0.elapsed());
        if elapsed >= UPDATE {
            let now = self.live.read();
            let rate = |to: u64, from: u64| bit_rate(to.saturating_sub(from) as f64 / elapsed.as_secs_f64());
            let sent = rate(now.sent_bits, since.sent_bits);
            let delivered = rate(now.delivered_bits, since.delivered_bits);
            *last = (Instant::now(), now, format!(" · sent {sent} · delivered {delivered}"));
        }
        last.2.clone()
    }
}
