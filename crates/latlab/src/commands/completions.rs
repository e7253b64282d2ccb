//! `latlab completions SHELL`: from the definition of the command line.

use clap_complete::{Shell, generate};

use super::Outcome;
use crate::cli;
use crate::console::Console;
use crate::diagnostics::Failure;

/// Prints the completions of `shell`.
pub(super) fn run(shell: Shell, console: &Console) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    generate(shell, &mut cli::definition(), "latlab", &mut script);
    console.data(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
