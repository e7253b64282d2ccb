//! Options of `latlab stream` and `latlab bare-stream`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::measuring::transport_words;
use super::{
    AddressArgs, CompatOutputArgs, DdsArgs, EndArgs, GateArgs, JsonArgs, JudgingArgs, LiveArgs, LoadArgs, OutputArgs,
    PeerArgs, SettingArgs, VerbosityArgs, XdpArgs,
};
use crate::plan::{Direction, SendMode};

/// `latlab stream`.
#[derive(Clone, Debug, Args)]
pub struct StreamArgs {
    /// `local`, `lab`, HOST[:PORT], ssh:HOST or cmd:COMMAND [default: local, port 9862]
    ///
    /// `latlab ping --help` explains each form.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// How long.
    #[command(flatten)]
    pub lasting: StreamStopArgs,
    /// What is sent.
    #[command(flatten)]
    pub packets: PacketArgs,
    /// What is looked for.
    #[command(flatten)]
    pub search: SearchArgs,
    /// This end, and the other where it is ours.
    #[command(flatten)]
    pub ends: EndArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
    /// What it is loaded with.
    #[command(flatten)]
    pub loads: LoadArgs,
    /// The way there.
    #[command(flatten)]
    pub way: AddressArgs,
    /// Send the first flow from UDP port N, the next from N + 1, … [default: the system's choice]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, help_heading = "Which way")]
    pub source_port: Option<String>,
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
    /// Which other tool's lines stand beside them.
    #[command(flatten)]
    pub like: CompatOutputArgs,
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

/// How long a stream lasts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How long")]
pub struct StreamStopArgs {
    /// Stop after a measuring time of T, such as 10s or 2m [default: 10s]
    ///
    /// Several sizes take that long each. With --search the whole search takes no longer, 60s unless said otherwise.
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Send for a time T before intervals count [default: 1s]
    ///
    /// The warm-up stays in the recording and out of every figure. 0 leaves it out.
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true)]
    pub warmup: Option<String>,
}

/// What is sent.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is sent")]
pub struct PacketArgs {
    /// Offer this rate, all flows together: max, 1Gbit/s, 500kpps [default: max]
    ///
    /// Bits are payload bits; 1Gbit/s:wire counts those on an Ethernet wire.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Payload of a packet, 24 to 65507 bytes; several make interleaved runs [default: a full packet]
    ///
    /// A full packet has 1472 bytes over IPv4, 1452 over IPv6, or what the path carries in one packet, if less.
    #[arg(short, long, value_name = "BYTES[,…]", value_delimiter = ',', allow_hyphen_values = true)]
    pub size: Vec<String>,
    /// Send N flows, each from a port and a thread of its own, 1 to 64 [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub flows: Option<String>,
    /// Hand packets over by send, sendmmsg, gso or batch [default: send]
    ///
    /// send: one call for each packet.
    /// sendmmsg: one call for a batch of them.
    /// gso: one call for a buffer that the kernel cuts (UDP_SEGMENT).
    /// batch: over DDS, the writer collects a batch of samples; with --transport xdp one call for a batch of packets.
    #[arg(
        long, value_name = "WORD", value_parser = mode_words(), verbatim_doc_comment,
        hide_possible_values = true
    )]
    pub mode: Option<SendMode>,
    /// How packets travel: udp, tcp, dds or xdp [default: udp]
    ///
    /// tcp: each flow is a connection, each packet a message in it; --mode send only. `latlab serve` needs --tcp.
    /// dds: each packet is a sample; `latlab serve` needs --transport dds.
    /// xdp: UDP past the network stack of this host (AF_XDP); --mode send or batch.
    #[arg(
        long, value_name = "WORD", value_parser = transport_words(), verbatim_doc_comment,
        hide_possible_values = true, hide_short_help = true
    )]
    pub transport: Option<String>,
    /// Send up to N packets in one burst, 1 to 1024 [default: 64]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true)]
    pub batch: Option<String>,
    /// UDP checksums on or off [default: on]
    ///
    /// off: SO_NO_CHECK, on IPv6 UDP_NO_CHECK6_TX and, at the receiver, UDP_NO_CHECK6_RX. See docs/stream.md for what that
    /// means.
    #[arg(
        long, value_name = "on|off", value_parser = on_or_off(), hide_possible_values = true,
        hide_short_help = true
    )]
    pub checksum: Option<bool>,
    /// Connect the sender's sockets, instead of naming the address with each packet
    #[arg(long, hide_short_help = true)]
    pub connect: bool,
    /// Send up, from here to TARGET, or down [default: up]
    #[arg(
        long, value_name = "up|down", value_parser = direction_words(), hide_possible_values = true,
        hide_short_help = true
    )]
    pub direction: Option<Direction>,
}

fn mode_words() -> impl TypedValueParser<Value = SendMode> {
    PossibleValuesParser::new(SendMode::ALL.map(SendMode::word)).map(|word| send_mode(&word))
}

fn send_mode(word: &str) -> SendMode {
    SendMode::ALL.into_iter().find(|mode| mode.word() == word).unwrap_or(SendMode::Send)
}

fn on_or_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|word| word == "on")
}

fn direction_words() -> impl TypedValueParser<Value = Direction> {
    PossibleValuesParser::new(["up", "down"]).map(|word| match word.as_str() {
        "down" => Direction::Down,
        _ => Direction::Up,
    })
}

/// The search for a rate, and probes beside the stream.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "What is sent")]
pub struct SearchArgs {
    /// Find the highest rate that loses no more than LOSS [default: 0,0.5%]
    ///
    /// Several goals are searched for at once, in the manner of MLRsearch (RFC 9971); --rate is the most that is tried.
    /// Then the first found rate is held, and 0, 50 and 90 % of it before that, beside probes. With -d, or within 60 s,
    /// all of it is over.
    // by default no loss (RFC 2544), and half a per cent, which single losses do not decide
    #[arg(
        long, value_name = "LOSS[,…]", value_delimiter = ',', num_args = 0..=1, default_missing_value = "0,0.5%"
    )]
    pub search: Vec<String>,
    /// Send a probe every T beside the stream [default: off, with --search 1ms]
    ///
    /// In a session of its own, answered by a process of its own where latlab starts it.
    #[arg(long, value_name = "T|off", allow_hyphen_values = true, hide_short_help = true)]
    pub probe: Option<String>,
}
