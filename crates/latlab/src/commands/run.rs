//! `latlab run`: conduct an experiment from where it stands, and show what it says.

use super::experiment::{Bench, ask, boot_id, ending, plan, reporting, take_on, unit};
use super::{Outcome, measure_and_report, wakeup};
use crate::cli::resolve::RunJob;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::experiment::{RunPolicy, conduct};
use crate::report::Style;
use crate::report::experiment::plan::render;

/// Carries out `job`.
pub(super) fn run(job: &RunJob, console: &Console) -> Result<Outcome, Failure> {
    let asked = ask(job)?;
    if job.going_on.print_unit {
        return unit::print(&asked, job, console);
    }
    let standing = asked.standing()?;
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    if job.going_on.dry_run {
        console.data(&render(&plan::view(&asked, standing.as_ref(), plan::Detail::EveryBlock), style))?;
        return Ok(Outcome::Done);
    }
    // What was edited is not what is finished.
    let finished = standing.filter(|standing| standing.finished && !asked.is_edited);
    if let (Some(directory), Some(_)) = (&asked.directory, &finished) {
        console.note(&format!("the experiment in `{}` is finished", directory.display()));
        return reporting::report(directory, &asked, job.json, console);
    }
    let mut open = take_on(&asked, job, console)?;
    let detail = plan::view(&asked, Some(open.standing()), plan::Detail::Outline);
    console.lines(&render(&detail, Style { colour: console.message_screen().colour, ..style }));
    let plans = || asked.job.experiment.conditions.iter().map(|condition| &condition.plan);
    wakeup::warn(plans(), console);
    let interrupt = measure_and_report::listen(plans(), console).map_err(refused("listen to signals"))?;
    let manners = RunPolicy {
        boot_id: boot_id(&asked)?,
        keep_going: job.going_on.keep_going,
        drop_impossible: open.standing().recipe.is_some(),
    };
    let mut bench = Bench::new(&asked.job, &interrupt, console);
    let end = conduct(&asked.job.experiment, &mut open, &manners, &mut bench)?;
    let failure = bench.into_failure();
    // From here on others may read and go on with it.
    let (path, standing) = open.close();
    let signalled = interrupt.outcome();
    ending::end(end, &ending::Ended { path, standing, failure, signalled }, &asked, (job, console))
}
