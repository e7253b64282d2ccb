//! `latlab compare`: is there a difference, how big, how sure; and the classic form, `--ministat`.

use super::Outcome;
use crate::cli::resolve::{CompareJob, JudgeJob, MinistatJob, RequestError};
use crate::console::Console;
use crate::error::Failure;

/// Compares as `job` says.
pub(super) fn run(job: &CompareJob, console: Console) -> Result<Outcome, Failure> {
    match job {
        CompareJob::Ministat(job) => ministat(job, &console.with_talk(job.talk)),
        CompareJob::Judge(job) => judge(job, &console.with_talk(job.talk)),
    }
}

fn judge(_job: &JudgeJob, _console: &Console) -> Result<Outcome, Failure> {
    let instead = "`latlab compare --ministat` prints the classic form";
    Err(RequestError::Later { what: "latlab compare".into(), instead }.into())
}

fn ministat(_job: &MinistatJob, _console: &Console) -> Result<Outcome, Failure> {
    let instead = "`latlab summary REC…` prints the statistics of recordings";
    Err(RequestError::Later { what: "latlab compare --ministat".into(), instead }.into())
}
