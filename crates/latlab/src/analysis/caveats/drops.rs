//! What was thrown away at a socket of either end: losses of the instrument, not of the network.

use super::limits::OWN_DROPS;
use crate::analysis::tally::Counts;
use crate::diagnostics::{Caveat, Severity};
use crate::recording::manifest::Manifest;
use crate::units::human::{grouped, percent};

/// The caveats of drops at the sender's and at the reflector's socket.
pub(super) fn derive(manifest: &Manifest, counts: &Counts) -> impl Iterator<Item = Caveat> {
    [here(manifest, counts), there(manifest, counts)].into_iter().flatten()
}

fn here(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
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

/// The reflector's socket may hear others, and it heard the warm-up: of what it dropped, no more were measured probes of
/// this run than were lost.
fn there(manifest: &Manifest, counts: &Counts) -> Option<Caveat> {
    let drops = manifest.run.reflector.as_ref()?.socket_drops.filter(|drops| *drops > 0)?;
    let ours = drops.min(counts.lost);
    let share = ours as f64 / counts.sent.max(1) as f64;
    let among = match ours {
        0 => "none of them a measured probe".to_owned(),
        ours if ours < drops => format!("up to {} of them measured probes ({})", grouped(ours), percent(share)),
        _ => format!("{} of the probes", percent(share)),
    };
    Some(Caveat::new(
        match ours {
            0 => Severity::Note,
            _ if share >= OWN_DROPS => Severity::Fatal,
            _ => Severity::Warning,
        },
        "socket-drops",
        format!("the reflector's own socket threw {} datagrams away, of all its sessions: {among}", grouped(drops)),
        match ours {
            0 => "none on this run: they were of its warm-up or of other sessions",
            _ => "the probes among them count as lost, although they reached the reflector's host",
        },
        "there a larger buffer (`sysctl net.core.rmem_max`) or a CPU of its own (`--peer-cpu`, `serve --cpu`); or a lower rate",
    ))
}
