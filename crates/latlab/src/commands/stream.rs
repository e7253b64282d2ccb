//! `latlab stream`: send, have it counted, record both, summarise, show.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Outcome, keys, ping};
use crate::cli::resolve::StreamJob;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::measure::{LiveCounts, LiveRates};
use crate::units::human::{bit_rate, percent, span};

/// Carries out `job`.
pub(super) fn run(job: &StreamJob, console: &Console) -> Result<Outcome, Failure> {
    let key = keys::find(&job.key)?;
    keys::require_key_for_other_hosts(&job.plan)?;
    tell_how_long(job, console);
    let live = Arc::new(LiveRates::default());
    let beside = StreamProgress::of(&live);
    ping::carry_out_watched(&job.plan, key.as_ref(), (&job.keeping, job.json), console, (&live, &|| beside.words()))
}

/// A search is not seen to end: it says beforehand when it will have.
fn tell_how_long(job: &StreamJob, console: &Console) {
    let search = job.plan.runs.first().and_then(|run| run.stream()?.search.as_ref());
    if let (Some(search), Some(longest)) = (search, job.plan.duration()) {
        let goals = search.goals.iter().map(|goal| percent(goal.loss_ratio)).collect::<Vec<_>>().join(" and ");
        console.note(&format!(
            "searching for the highest rate with a loss of up to {goals}: measuring takes at most {}",
            span(longest)
        ));
    }
}

/// From one line to the next: what is read faster is not read.
const LINE: Duration = Duration::from_secs(1);

/// What stands beside the progress bar: the rates of the last whole second.
struct StreamProgress<'a> {
    live: &'a LiveRates,
    last: RefCell<(Instant, LiveCounts, String)>,
}

impl StreamProgress<'_> {
    fn of(live: &LiveRates) -> StreamProgress<'_> {
        StreamProgress { live, last: RefCell::new((Instant::now(), live.read(), String::new())) }
    }

    fn words(&self) -> String {
        let mut last = self.last.borrow_mut();
        let (since, gone) = (last.1, last.0.elapsed());
        if gone >= LINE {
            let now = self.live.read();
            let rate = |to: u64, from: u64| bit_rate(to.saturating_sub(from) as f64 / gone.as_secs_f64());
            let sent = rate(now.sent_bits, since.sent_bits);
            let delivered = rate(now.delivered_bits, since.delivered_bits);
            *last = (Instant::now(), now, format!(" · sent {sent} · delivered {delivered}"));
        }
        last.2.clone()
    }
}
