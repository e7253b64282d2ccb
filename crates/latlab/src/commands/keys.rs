//! Pre-shared keys: `latlab keygen FILE` writes one, and commands read theirs from a file or descriptor.

use std::path::Path;

use super::Outcome;
use crate::cli::options::KeySource;
use crate::cli::options::dds::interface_needed;
use crate::cli::options::path::key_needed;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::plan::{Plan, Protocol, Target};
use crate::platform::input_file;
use crate::platform::ownership::{quoted, untrusted};
use crate::session::PreSharedKey;
use crate::transport::resolve;

/// Writes a fresh key into a new file at `path`; an existing one is left alone.
pub(super) fn run(path: &Path, console: &Console) -> Result<Outcome, Failure> {
    PreSharedKey::generate()?.write_new(path)?;
    if let Some(fault) = input_file::open_own(path).err().as_ref().and_then(untrusted) {
        let hint = format!("`{}`, or keep the key elsewhere", fault.remedy());
        console.warning(&format!("a key is not read from there: {}", fault.cause()), Some(&hint));
    }
    console.note(&format!(
        "wrote a fresh 256-bit key to `{}`; copy it to the other host (`scp -p {1} HOST:`) and give it to both ends as `--psk-file {1}`",
        path.display(),
        quoted(path)
    ));
    Ok(Outcome::Done)
}

/// The key that `source` names; `None` if the command needs none.
pub(super) fn find(source: &KeySource) -> Result<Option<PreSharedKey>, Failure> {
    Ok(match source {
        KeySource::None => None,
        KeySource::Fresh => Some(PreSharedKey::generate()?),
        KeySource::File(path) => Some(PreSharedKey::read(path)?),
        KeySource::Descriptor(number) => Some(PreSharedKey::from_descriptor(number.unsigned_abs())?),
    })
}

/// Refuses a plan whose target resolves to another host, without a key, or over DDS without an interface.
pub(super) fn check_other_host(plan: &Plan) -> Result<(), Failure> {
    let Some(run) = plan.runs.first() else { return Ok(()) };
    let Target::Host { host, port } = &run.target else { return Ok(()) };
    let path = run.expect_path();
    let needs_key = !run.authenticated && run.ping().is_none_or(|ping| ping.protocol == Protocol::Native);
    if needs_key || path.dds.is_some() {
        let address = resolve(host, *port, path.family)?.ip();
        if needs_key {
            key_needed(&run.target, address)?;
        }
        if path.dds.is_some() {
            interface_needed(&run.target, Some(address), path)?;
        }
    }
    Ok(())
}
