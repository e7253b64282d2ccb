//! `latlab run`: conduct an experiment from where it stands, and show what it says.

use super::experiment::{Asked, Bench, ask, boot_id, ending, plan, reporting, unit};
use super::{Outcome, measuring, wakeup};
use crate::cli::resolve::{RunJob, RunSource};
use crate::console::Console;
use crate::error::{Failure, refused};
use crate::experiment::{Manners, OpenExperiment, Standing, conduct};
use crate::report::Style;
use crate::report::experiment::render;

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
    if let (Some(directory), Some(Standing { finished: true, .. })) = (&asked.directory, &standing) {
        console.note(&format!("the experiment in `{}` is finished", directory.display()));
        return reporting::report(directory, &asked, job.json, console);
    }
    let mut open = take_on(&asked, job, console)?;
    let detail = plan::view(&asked, Some(open.standing()), plan::Detail::Outline);
    console.tell(&render(&detail, Style { colour: console.talk_screen().colour, ..style }));
    let plans = || asked.job.experiment.conditions.iter().map(|condition| &condition.plan);
    wakeup::warn(plans(), console);
    let interrupt = measuring::listen(plans(), console).map_err(refused("listen to signals"))?;
    let manners = Manners {
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

/// Opens what there is to go on with, or begins.
fn take_on(asked: &Asked, job: &RunJob, console: &Console) -> Result<OpenExperiment, Failure> {
    let (Some(directory), false) = (&asked.directory, job.going_on.new) else {
        let Some(origin) = asked.origin.clone() else {
            return Err(Failure::request(format!("`{}` cannot begin again", asked.file))
                .because("a directory is one experiment")
                .hint("`latlab run FILE --new` begins another one of its file"));
        };
        return Ok(OpenExperiment::begin(&job.store, &asked.text, origin)?);
    };
    let mut open = OpenExperiment::open(directory)?;
    // Without `--force`, `ask` has refused a changed file.
    if open.text() != asked.text {
        open.change(&asked.text)?;
        let message = format!("`{}` goes on with a changed file: it is no longer one experiment", directory.display());
        console.warning(&message, Some("compare runs from before and after with care, or begin another: `--new`"));
    }
    if let RunSource::Path(_) = job.source {
        console.note(&format!("going on with `{}`", directory.display()));
    }
    Ok(open)
}
