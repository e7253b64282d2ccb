//! Options of `latlab ping`.

use clap::Args;

use super::{EndArgs, MeasuringArgs, PeerArgs, ProbeArgs, RemedyArgs, ScheduleArgs, StopArgs, TraceArgs};
use crate::cli::options::{DdsArgs, PathArgs, XdpArgs};
use crate::cli::value::{self, TypedTarget, WakeupsBeside};

#[derive(Clone, Debug, Args)]
pub struct PingArgs {
    /// `local`, `lab`, HOST[:PORT], ssh:HOST or cmd:COMMAND [default: local, port 9862]
    ///
    /// local: a reflector process on loopback, started by latlab.
    /// lab: two private network namespaces and a veth pair (needs root).
    /// HOST[:PORT], [V6]:PORT: a running `latlab serve`, or any UDP echo with --protocol echo.
    /// ssh:[USER@]HOST: latlab on that host, started over ssh.
    /// 'cmd:COMMAND …': like ssh:, through any command that connects to `latlab agent --stdio`; needs --peer-addr.
    #[arg(value_name = "TARGET", verbatim_doc_comment, value_parser = value::target)]
    pub target: Option<TypedTarget>,
    #[command(flatten)]
    pub stop: StopArgs,
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub ends: EndArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// Also measure timer wake-ups, every T on the sender's CPU [default: none]
    ///
    /// Shows whether slow probes coincide with late wake-ups. If they do, this host's scheduler
    /// is the cause, else the network. T:late=T2: wake-ups later than T2 count as late [default:
    /// their p99].
    #[arg(
        long,
        value_name = "T[:late=T2]",
        allow_hyphen_values = true,
        hide_short_help = true,
        help_heading = "Concurrent measurement", value_parser = value::wakeups_beside
    )]
    pub with_wakeup: Option<WakeupsBeside>,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub remedies: RemedyArgs,
    #[command(flatten)]
    pub path: PathArgs,
    #[command(flatten)]
    pub dds: DdsArgs,
    #[command(flatten)]
    pub xdp: XdpArgs,
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}
