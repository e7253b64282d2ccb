//! `latlab compare`: is there a difference, how big, how sure; and the classic form, `--ministat`.

use super::{Outcome, ministat};
use crate::cli::resolve::{CompareJob, JudgeJob, RequestError};
use crate::console::Console;
use crate::error::Failure;

/// Compares as `job` says.
pub(super) fn run(job: &CompareJob, console: Console) -> Result<Outcome, Failure> {
    match job {
        CompareJob::Ministat(job) => ministat::run(job, &console.with_talk(job.talk)),
        CompareJob::Judge(job) => judge(job, &console.with_talk(job.talk)),
    }
}

fn judge(_job: &JudgeJob, _console: &Console) -> Result<Outcome, Failure> {
    let instead = "`latlab compare --ministat` prints the classic form";
    Err(RequestError::Later { what: "latlab compare".into(), instead }.into())
}
