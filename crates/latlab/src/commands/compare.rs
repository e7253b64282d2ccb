//! `latlab compare`: is there a difference, how big, how sure; and the classic form, `--ministat`.

use super::{Outcome, comparing, ministat};
use crate::cli::resolve::CompareJob;
use crate::console::Console;
use crate::diagnostics::Failure;

/// Compares as `job` says.
pub(super) fn run(job: &CompareJob, console: &Console) -> Result<Outcome, Failure> {
    match job {
        CompareJob::Ministat(job) => ministat::run(job, console),
        CompareJob::Judge(job) => comparing::run(job, console),
    }
}
