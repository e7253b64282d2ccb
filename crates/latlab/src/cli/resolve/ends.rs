use super::{RequestError, value};
use crate::cli::args::{EndArgs, PeerArgs};
use crate::plan::{EndSpec, Target, WaitMode, defaults};

/// This end.
pub(super) fn here(typed: &EndArgs) -> Result<EndSpec, RequestError> {
    let fifo = typed.fifo.as_deref().map(|fifo| value::whole("--fifo", fifo, 1..=u64::from(defaults::FIFO_MAX)));
    Ok(EndSpec {
        wait: typed.wait.unwrap_or(WaitMode::Block),
        cpu: typed.cpu.as_deref().map(|cpu| value::cpu("--cpu", cpu)).transpose()?,
        fifo: fifo.transpose()?.map(|priority| priority as u8),
        mlock: typed.mlock,
    })
}

/// The other end where latlab starts it: as this one, on a CPU of its own.
pub(super) fn peer(typed: &PeerArgs, here: EndSpec) -> Result<EndSpec, RequestError> {
    let cpu = typed.peer_cpu.as_deref().map(|cpu| value::cpu("--peer-cpu", cpu)).transpose()?;
    Ok(EndSpec { cpu, ..here })
}

/// The other end of `target`; none where it is not ours to say.
pub(super) fn peer_of(target: &Target, typed: &PeerArgs, here: EndSpec) -> Result<Option<EndSpec>, RequestError> {
    match target {
        Target::Local | Target::Lab | Target::Ssh { .. } | Target::Command { .. } => peer(typed, here).map(Some),
        Target::Host { .. } if typed.peer_cpu.is_some() => Err(RequestError::OutOfPlace {
            option: "--peer-cpu",
            with: target.to_string(),
            cause: "latlab does not start the reflector on that host",
            hint: "`latlab serve --cpu N` pins it there",
        }),
        Target::Host { .. } => Ok(None),
    }
}
