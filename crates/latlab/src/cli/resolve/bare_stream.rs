use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{RequestError, ends, value};
use crate::cli::args::BareStreamArgs;
use crate::plan::{EndSpec, SenderSocketOptions, defaults};
use crate::units::Nanos;

/// The bare stream to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareStreamSpec {
    /// How packets leave.
    pub sending: SenderSocketOptions,
    /// Payload.
    pub size_bytes: u32,
    /// For how long.
    pub span: Nanos,
    /// The loopback address of either family.
    pub loopback: IpAddr,
    /// The sender.
    pub here: EndSpec,
    /// The receiver.
    pub peer: EndSpec,
}

/// Settles `typed`.
pub fn bare_stream(typed: &BareStreamArgs) -> Result<BareStreamSpec, RequestError> {
    let here = ends::here(&typed.ends)?;
    let most = u64::from(defaults::STREAM_BATCH_MAX);
    let batch = typed.batch.as_deref().map(|batch| value::whole("--batch", batch, 1..=most)).transpose()?;
    let size = typed.size.as_deref().map(|size| value::size("--size", size)).transpose()?;
    let longest = defaults::DURATION_MAX;
    let span = typed.duration.as_deref().map(|span| value::span("--duration", span, longest)).transpose()?;
    let batch = batch.map_or(defaults::STREAM_BATCH, |batch| batch as u16);
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    Ok(BareStreamSpec {
        sending: SenderSocketOptions { mode: typed.mode, batch, checksum: true, connect: typed.connect },
        size_bytes: size.unwrap_or(1_472),
        span: span.unwrap_or(Nanos::from_secs(1)),
        loopback: if typed.ipv6 { v6 } else { v4 },
        here,
        peer: ends::peer(&typed.peer, here)?,
    })
}
