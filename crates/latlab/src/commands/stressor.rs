//! `latlab stressor` (hidden): one load, as a process of its own.

use std::io::{self, BufRead};

use super::Outcome;
use crate::console::Console;
use crate::error::{Failure, refused};
use crate::host::lifeline;
use crate::load::{StressorNews, StressorOrder, Workers};

/// Takes the order from standard input, says that every worker works, and says at the end what was reached. The
/// workers end with this process.
pub(super) fn run(console: &Console) -> Result<Outcome, Failure> {
    let order = read_order()?;
    match prepare(&order) {
        Ok(workers) => {
            console.data(&StressorNews::Ready.line())?;
            if let Some(report) = workers.watch(io::stdin().lock()) {
                console.data(&StressorNews::Reached(Box::new(report)).line())?;
            }
            Ok(Outcome::Done)
        }
        Err(Failure { message, cause, hint, exit_code }) => {
            console.data(&StressorNews::Refused { message, cause, hint, exit_code }.line())?;
            Ok(Outcome::AnswerIsNo)
        }
    }
}

fn read_order() -> Result<StressorOrder, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(refused("read the order"))?;
    serde_json::from_str(&line).map_err(|error| {
        Failure::request("cannot understand the order on standard input")
            .because(error.to_string())
            .hint("this command is for latlab itself; loads for people are `latlab load`")
    })
}

fn prepare(order: &StressorOrder) -> Result<Workers, Failure> {
    if !lifeline::tie_to_parent(order.parent).map_err(refused("tie the load to its parent"))? {
        return Err(Failure::world("the process that ordered the load is gone"));
    }
    Ok(Workers::start(order)?)
}
