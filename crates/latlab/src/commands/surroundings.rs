//! Where a command runs.

use crate::cli::resolve::Environment;
use crate::diagnostics::Failure;

/// What the process was given beside its arguments.
pub(super) fn surroundings() -> Result<Environment, Failure> {
    let store = std::env::var_os("LATLAB_STORE").filter(|store| !store.is_empty());
    // 32 bits: short enough to be typed again with `--seed`.
    let seed = getrandom::u32().map_err(|error| {
        Failure::world("cannot draw a random seed").because(error.to_string()).hint("`--seed N` needs no chance")
    })?;
    Ok(Environment { store: store.map(Into::into), seed: u64::from(seed) })
}
