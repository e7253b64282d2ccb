use super::{RequestError, ends, value};
use crate::cli::args::BareArgs;
use crate::plan::{EndSpec, TransportKind, defaults};

/// The bare loop to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareSpec {
    /// How they travel.
    pub transport: TransportKind,
    /// Round trips.
    pub count: u64,
    /// Payload.
    pub size_bytes: u32,
    /// The sender.
    pub here: EndSpec,
    /// The reflector.
    pub peer: EndSpec,
}

/// Settles `typed`.
pub fn bare(typed: &BareArgs) -> Result<BareSpec, RequestError> {
    let here = ends::here(&typed.ends)?;
    // the loop keeps its round trips in memory: 200 MB at the limit
    let count = typed.count.as_deref().map(|count| value::whole("--count", count, 1..=50_000_000)).transpose()?;
    let size = typed.size.as_deref().map(|size| value::size("--size", size)).transpose()?;
    Ok(BareSpec {
        transport: if typed.tcp { TransportKind::Tcp } else { TransportKind::Udp },
        count: count.unwrap_or(defaults::BARE_COUNT),
        size_bytes: size.unwrap_or(defaults::SIZE_BYTES),
        here,
        peer: ends::peer(&typed.peer, here)?,
    })
}
