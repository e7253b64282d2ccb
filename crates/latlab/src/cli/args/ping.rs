//! Options of `latlab ping`.

use clap::Args;

use super::{
    DdsArgs, EndArgs, GateArgs, JsonArgs, JudgingArgs, LiveArgs, LoadArgs, OutputArgs, PathArgs, PeerArgs, ProbeArgs,
    ScheduleArgs, SettingArgs, StopArgs, VerbosityArgs, XdpArgs,
};

/// `latlab ping`.
#[derive(Clone, Debug, Args)]
pub struct PingArgs {
    /// `local`, `lab`, HOST[:PORT], ssh:HOST or cmd:COMMAND [default: local, port 9862]
    ///
    /// local: a reflector process of latlab's own on loopback.
    /// lab: two private network namespaces and a veth pair (needs root).
    /// HOST[:PORT], [V6]:PORT: a running `latlab serve`, or any UDP echo with --protocol echo.
    /// ssh:[USER@]HOST: latlab on that host, started over ssh.
    /// 'cmd:COMMAND …': the same through any command that connects to `latlab agent --stdio`; needs --peer-addr.
    #[arg(value_name = "TARGET", verbatim_doc_comment)]
    pub target: Option<String>,
    /// How long.
    #[command(flatten)]
    pub stop: StopArgs,
    /// When probes leave.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// What a probe is.
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// This end, and the other where it is ours.
    #[command(flatten)]
    pub ends: EndArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
    /// What it is loaded with.
    #[command(flatten)]
    pub loads: LoadArgs,
    /// Measure wake-ups beside the probes, every T on the sender's CPU [default: none]
    ///
    /// Says whether slow probes coincide with late wake-ups of this host: its scheduler, or
    /// the network. T:late=T2 counts wake-ups later than T2 as late [default: their p99].
    #[arg(
        long,
        value_name = "T[:late=T2]",
        allow_hyphen_values = true,
        hide_short_help = true,
        help_heading = "What runs beside it"
    )]
    pub with_wakeup: Option<String>,
    /// The way there.
    #[command(flatten)]
    pub path: PathArgs,
    /// Over DDS.
    #[command(flatten)]
    pub dds: DdsArgs,
    /// Past the network stack.
    #[command(flatten)]
    pub xdp: XdpArgs,
    /// What is set on the hosts meanwhile.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// What the summary says.
    #[command(flatten)]
    pub judging: JudgingArgs,
    /// What must hold.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Where the recording goes.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What is printed.
    #[command(flatten)]
    pub json: JsonArgs,
    /// The view meanwhile.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How much is said.
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}
