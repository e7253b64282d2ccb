//! `latlab stressor` (hidden): one load, as a process of its own.

use std::io;

use super::{Outcome, order};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::load::{StressorEvent, StressorRequest, Workers};

/// Takes the order from standard input, says that every worker works, and says at the end what was reached. The
/// workers end with this process.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    let order: StressorRequest = order::read("loads for people are `latlab load`")?;
    match prepare(&order) {
        Ok(workers) => {
            console.data(&StressorEvent::Ready.line())?;
            if let Some(report) = workers.watch(io::stdin().lock()) {
                console.data(&StressorEvent::Reached(Box::new(report)).line())?;
            }
            Ok(Outcome::Done)
        }
        Err(Failure { message, cause, hint, exit_code }) => {
            console.data(&StressorEvent::Refused { message, cause, hint, exit_code }.line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn prepare(order: &StressorRequest) -> Result<Workers, Failure> {
    order::tie_to_parent(order.parent)?;
    order::work_as_usual()?;
    Ok(Workers::start(order)?)
}
