//! `latlab keygen FILE`: a fresh pre-shared key that only its owner can read.

use std::path::Path;

use super::Outcome;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::session::PreSharedKey;

/// Writes a fresh key into a new file at `path`; an existing one is left alone.
pub(super) fn run(path: &Path, console: &Console) -> Result<Outcome, Failure> {
    PreSharedKey::fresh()?.write_new(path)?;
    console.note(&format!(
        "wrote a fresh 256-bit key to `{0}`; copy it to the other host (`scp -p {0} HOST:`) and give it to both ends as `--psk-file {0}`",
        path.display()
    ));
    Ok(Outcome::Done)
}
