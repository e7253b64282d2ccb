//! Inputs from the process environment, and options common to all commands.

use std::path::PathBuf;

use crate::cli::args::VerbosityArgs;
use crate::console::Verbosity;
use crate::diagnostics::Failure;

/// Inputs of a command other than its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `LATLAB_STORE`; `None` if unset or empty.
    pub store: Option<PathBuf>,
    /// Random seed for options without an explicit seed.
    pub seed: u64,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// Returns an error if the kernel provides no random number.
    pub fn of_this_process() -> Result<Environment, Failure> {
        let store = std::env::var_os("LATLAB_STORE").filter(|store| !store.is_empty());
        // A seed of 32 bits is short enough to be typed again with `--seed`.
        let seed = getrandom::u32().map_err(|error| {
            Failure::world("cannot draw a random seed").because(error.to_string()).hint("`--seed N` needs no chance")
        })?;
        Ok(Environment { store: store.map(Into::into), seed: u64::from(seed) })
    }
}

/// Source of the pre-shared key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// No key: probes carry no tag.
    None,
    /// A generated key, passed to both ends, which latlab starts itself.
    Fresh,
    /// A key file.
    File(PathBuf),
    /// An inherited file descriptor.
    Descriptor(i32),
}

/// The verbosity that `-q` and `-v` select.
pub(super) const fn verbosity(typed: &VerbosityArgs) -> Verbosity {
    match (typed.quiet, typed.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Usual,
    }
}
