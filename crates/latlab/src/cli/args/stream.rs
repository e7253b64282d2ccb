//! Options of `latlab stream`.

use clap::Args;

use super::{EndArgs, MeasuringArgs, PeerArgs, TraceArgs};
use crate::cli::options::{AddressArgs, DdsArgs, XdpArgs};
use crate::cli::value::{self, StreamRate, TypedTarget};
use crate::plan::{Direction, SendMode, TransportKind, Warmup, defaults};
use crate::units::Nanos;

#[derive(Clone, Debug, Args)]
pub struct StreamArgs {
    /// `local`, `lab`, HOST[:PORT], ssh:HOST or cmd:COMMAND [default: local, port 9862]
    ///
    /// `latlab ping --help` explains each form.
    #[arg(value_name = "TARGET", value_parser = value::target)]
    pub target: Option<TypedTarget>,
    #[command(flatten)]
    pub lasting: StreamStopArgs,
    #[command(flatten)]
    pub packets: PacketArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub ends: EndArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    #[command(flatten)]
    pub way: AddressArgs,
    /// Source port of the first flow; the next has N + 1, … [default: chosen by the system]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, help_heading = "Network path", value_parser = value::whole::<u16>(1..=u16::MAX))]
    pub source_port: Option<u16>,
    #[command(flatten)]
    pub dds: DdsArgs,
    #[command(flatten)]
    pub xdp: XdpArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}

/// How long a stream lasts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Duration")]
pub struct StreamStopArgs {
    /// Stop after a measuring time of T, such as 10s or 2m [default: 10s]
    ///
    /// Each of several sizes takes this time. With --search it is the time of the whole search [default: 60s].
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub duration: Option<Nanos>,
    /// Warm up for a time T [default: 1s]
    ///
    /// The warm-up is in the recording, but in no statistic. 0: no warm-up.
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::stream_warmup)]
    pub warmup: Option<Warmup>,
}

/// What is sent.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traffic")]
pub struct PacketArgs {
    /// Offered rate of all flows together: max, 1Gbit/s, 500kpps [default: max]
    ///
    /// Bits are payload bits; 1Gbit/s:wire counts those on an Ethernet wire.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = value::rate)]
    pub rate: Option<StreamRate>,
    /// Payload of a packet, 24 to 65507 bytes; several make interleaved runs [default: a full packet]
    ///
    /// A full packet has 1472 bytes over IPv4, 1452 over IPv6, or what the path carries in one packet, if less.
    #[arg(short, long, value_name = "BYTES[,…]", value_delimiter = ',', allow_hyphen_values = true, value_parser = value::size)]
    pub size: Vec<u32>,
    /// Number of flows, 1 to 64, each with its own source port and sending thread [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u16>(1..=defaults::STREAM_FLOWS_MAX))]
    pub flows: Option<u16>,
    /// How packets are sent: send, sendmmsg, gso or batch [default: send]
    ///
    /// send: one call for each packet.
    /// sendmmsg: one call for a batch of them.
    /// gso: one call for a buffer that the kernel segments (UDP_SEGMENT).
    /// batch: over DDS, the writer collects a batch of samples; with --transport xdp one call for a batch of packets.
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&SendMode::ALL, SendMode::word), verbatim_doc_comment,
        hide_possible_values = true
    )]
    pub mode: Option<SendMode>,
    /// Transport of the packets: udp, tcp, dds or xdp [default: udp]
    ///
    /// tcp: each flow is a connection, each packet a message in it; --mode send only. `latlab serve` needs --tcp.
    /// dds: each packet is a sample; `latlab serve` needs --transport dds.
    /// xdp: UDP over an AF_XDP socket, without the network stack of this host; --mode send or batch.
    #[arg(
        long, value_name = "WORD", value_parser = value::transport(), verbatim_doc_comment,
        hide_possible_values = true, hide_short_help = true
    )]
    pub transport: Option<TransportKind>,
    /// Largest burst in packets, 1 to 1024 [default: 64]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u16>(1..=defaults::STREAM_BATCH_MAX))]
    pub batch: Option<u16>,
    /// UDP checksums on or off [default: on]
    ///
    /// off: SO_NO_CHECK, on IPv6 UDP_NO_CHECK6_TX and, at the receiver, UDP_NO_CHECK6_RX; see docs/stream.md.
    #[arg(
        long, value_name = "on|off", value_parser = value::switch(), hide_possible_values = true,
        hide_short_help = true
    )]
    pub checksum: Option<bool>,
    /// Use connected sockets at the sender, instead of an address with each packet
    #[arg(long, hide_short_help = true)]
    pub connect: bool,
    /// Direction: up, from here to TARGET, or down, from TARGET to here [default: up]
    #[arg(
        long, value_name = "up|down", value_parser = value::one_of(&Direction::ALL, Direction::word), hide_possible_values = true,
        hide_short_help = true
    )]
    pub direction: Option<Direction>,
}

/// The search for a rate, and probes during the stream.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traffic")]
pub struct SearchArgs {
    /// Find the highest rate that loses no more than LOSS [default: 0,0.5%]
    ///
    /// Several goals are searched for at once, as in MLRsearch (RFC 9971). --rate is the highest rate that is tried. Then
    /// latency probes are sent while the stream has 0, 50, 90 and 100 % of the rate found for the first goal. All of this
    /// takes the time -d [default: 60s].
    // by default no loss (RFC 2544), and half a per cent, which single losses do not decide
    #[arg(
        long, value_name = "LOSS[,…]", value_delimiter = ',', num_args = 0..=1, default_missing_value = "0,0.5%", value_parser = value::loss_ratio
    )]
    pub search: Vec<f64>,
    /// Also send a latency probe every T during the stream [default: off, with --search 1ms]
    ///
    /// Probes have their own session, and their own reflector process if latlab starts it.
    #[arg(long, value_name = "T|off", allow_hyphen_values = true, hide_short_help = true, value_parser = value::probe_interval)]
    pub probe: Option<Nanos>,
}
