//! What a command takes from its process beside arguments, and options that every command has.

use std::path::PathBuf;

use crate::cli::args::VerbosityArgs;
use crate::console::Verbosity;
use crate::diagnostics::Failure;

/// The inputs of a command beside its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `LATLAB_STORE`, unless empty.
    pub store: Option<PathBuf>,
    /// A random seed for options that were given none.
    pub seed: u64,
}

impl Environment {
    /// That of this process.
    ///
    /// # Errors
    /// If the kernel gives no random number.
    pub fn of_this_process() -> Result<Environment, Failure> {
        let store = std::env::var_os("LATLAB_STORE").filter(|store| !store.is_empty());
        // 32 bits: short enough to be typed again with `--seed`.
        let seed = getrandom::u32().map_err(|error| {
            Failure::world("cannot draw a random seed").because(error.to_string()).hint("`--seed N` needs no chance")
        })?;
        Ok(Environment { store: store.map(Into::into), seed: u64::from(seed) })
    }
}

/// Where the pre-shared key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// No key: probes carry no tag.
    None,
    /// A fresh key, passed to both ends, which latlab starts itself.
    Fresh,
    /// A file.
    File(PathBuf),
    /// An inherited descriptor.
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
