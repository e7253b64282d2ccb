//! What was thrown away at our own socket: losses of the instrument, not of the network.

use super::limits::OWN_DROPS;
use crate::analysis::tally::Counts;
use crate::caveat::{Caveat, Severity};
use crate::recording::manifest::Manifest;
use crate::units::human::{grouped, percent};

/// The caveat of drops at the sender's socket.
pub(super) fn derive(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let drops = manifest.run.socket_drops.filter(|drops| *drops > 0)?;
    let share = drops as f64 / counts.sent.max(1) as f64;
    Some(Caveat::new(
        if share >= OWN_DROPS { Severity::Fatal } else { Severity::Warning },
        "socket-drops",
        format!("this host's own socket threw {} datagrams away ({} of the probes)", grouped(drops), percent(share)),
        "the probes behind them count as lost, although their answers came",
        "a larger buffer (`sysctl net.core.rmem_max`), a CPU of its own with `--cpu`, or a lower rate",
    ))
}
