//! The order that a hidden command gets from the latlab that starts it: one line of JSON on standard input.

use std::io::{self, BufRead};

use serde::de::DeserializeOwned;

use crate::diagnostics::{Failure, refused};
use crate::host::{lifeline, placement};

/// Reads it. Whoever typed the hidden command is told what is meant for people: `instead`.
pub(super) fn read<Order: DeserializeOwned>(instead: &str) -> Result<Order, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(refused("read the order"))?;
    serde_json::from_str(&line).map_err(|error| {
        Failure::request("cannot understand the order on standard input")
            .because(error.to_string())
            .hint(format!("this command is for latlab itself; {instead}"))
    })
}

/// From now on this process ends with the thread of `parent` that gave the order.
pub(super) fn tie_to_parent(parent: u32) -> Result<(), Failure> {
    match lifeline::tie_to_parent(parent).map_err(refused("tie this process to its parent"))? {
        true => Ok(()),
        false => Err(Failure::world("the process that gave the order is gone")),
    }
}

/// A load of this process competes with normal threads, under whatever policy latlab was started (`chrt -f`): one with
/// the right of way would keep the host, and whoever measures, from its CPUs for good.
pub(super) fn work_as_usual() -> Result<(), Failure> {
    placement::leave_real_time().map_err(refused("leave real-time scheduling"))
}
