//! What a TCP connection hides: loss becomes delay.

use crate::analysis::tally::Counts;
use crate::diagnostics::{Caveat, Severity};
use crate::recording::manifest::Manifest;
use crate::units::human::{grouped, percent};

/// From this share of the probes on the 99th percentile is made of retransmissions.
const MANY: f64 = 0.01;

/// The caveat of segments that were sent again.
pub(super) fn derive(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let again =
        manifest.run.connection.as_ref().map(|connection| connection.retransmitted).filter(|again| *again > 0)?;
    let share = again as f64 / counts.sent.max(1) as f64;
    Some(Caveat::new(
        if share >= MANY { Severity::Warning } else { Severity::Note },
        "tcp-retransmits",
        format!(
            "segments that this end sent again: {}, with {} probes ({}); what the other end sent again is not known",
            grouped(again),
            grouped(counts.sent),
            percent(share)
        ),
        "over UDP what they carried would be lost; here it is late, by a retransmission time-out at most, and so is what was \
         queued behind it",
        "`--transport udp` shows the loss itself; `nstat -az TcpRetransSegs` and `ip -s link` show where it is",
    ))
}

/// The same of a stream, whose segments nobody counts.
pub(super) fn of_stream(manifest: &Manifest) -> Option<Caveat> {
    let again =
        manifest.run.connection.as_ref().map(|connection| connection.retransmitted).filter(|again| *again > 0)?;
    Some(Caveat::new(
        Severity::Note,
        "tcp-retransmits",
        format!("segments that this end sent again: {}", grouped(again)),
        "a path that loses sets the rate of TCP by that: each loss slows its congestion control down",
        "`--transport udp` with a `--rate` shows the loss itself; `nstat -az TcpRetransSegs` shows where it is",
    ))
}
