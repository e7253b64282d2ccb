//! Options of `latlab serve`.

use std::net::SocketAddr;

use clap::Args;

use super::{EndArgs, VerbosityArgs};
use crate::cli::options::{DdsDomainArgs, KeyFileArgs};
use crate::cli::value;
use crate::plan::TransportKind;
use crate::session::ReflectorLimits;
use crate::units::Nanos;

#[derive(Clone, Debug, Args)]
// the options of a measuring end; what their help says about measuring and the other end is replaced
#[command(
    mut_arg("wait", |wait| wait.long_help(
        "How to wait for datagrams: block, spin or busy-poll [default: block]\n\n\
         block: sleep in the kernel.\n\
         spin: poll the socket in a loop; uses one core completely.\n\
         busy-poll: the kernel polls the network driver before it sleeps (SO_BUSY_POLL).\n\
         It applies to this end only; the sender has its own `--wait`."
    )),
    mut_arg("cpu", |cpu| cpu.help("Pin the answering thread to CPU N [default: any]"))
)]
pub struct ServeArgs {
    #[command(flatten)]
    pub key: ServeKeyArgs,
    #[command(flatten)]
    pub dds: DdsDomainArgs,
    #[command(flatten)]
    pub end: EndArgs,
    #[command(flatten)]
    pub caps: CapArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Where to listen, and under which key.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Listening")]
pub struct ServeKeyArgs {
    /// Listen on this address; repeatable [default: every address, port 9862]
    ///
    /// Without a key only loopback addresses are served, and they are the default.
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = value::listening)]
    pub bind: Vec<SocketAddr>,
    /// Also listen for TCP connections, on the same addresses and port [default: UDP only]
    ///
    /// Each address then has a second thread with its own sessions and limits.
    #[arg(long)]
    pub tcp: bool,
    /// Listen on this transport only: udp, tcp or dds [default: udp]
    ///
    /// dds: answer senders in a DDS domain; one address, loopback unless --interface names another.
    #[arg(
        long, value_name = "WORD", value_parser = value::transport(), conflicts_with = "tcp",
        hide_possible_values = true
    )]
    pub transport: Option<TransportKind>,
    #[command(flatten)]
    pub file: KeyFileArgs,
    /// Read the key from the open descriptor N instead [default: none]
    #[arg(long, value_name = "N", conflicts_with = "psk_file", allow_hyphen_values = true, value_parser = value::whole::<i32>(0..=i32::MAX as u32))]
    pub psk_fd: Option<i32>,
}

/// Caps; none can be raised past what is compiled in (docs/protocol.md).
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub struct CapArgs {
    /// Concurrent sessions, 1 to 1024 [default: 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u16>(1..=ReflectorLimits::MAX.sessions))]
    pub max_sessions: Option<u16>,
    /// Concurrent sessions from one /24 (IPv4) or /64 (IPv6), 1 to 1024 [default: 128]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u16>(1..=ReflectorLimits::MAX.sessions_per_prefix))]
    pub max_sessions_per_prefix: Option<u16>,
    /// New sessions per second, 1 to 1000 [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u32>(1..=ReflectorLimits::MAX.new_sessions_per_second))]
    pub max_new_sessions: Option<u32>,
    /// Duration of a session, up to 168h [default: 25h]
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(ReflectorLimits::MAX.duration))]
    pub max_duration: Option<Nanos>,
    /// End a session after T without a probe, up to 10h [default: 10m]
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(ReflectorLimits::MAX.idle))]
    pub idle_timeout: Option<Nanos>,
    /// Largest probe in bytes, 24 to 65507 [default: 65507]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = value::size)]
    pub max_size: Option<u32>,
    /// Allow down-streams to holders of the key, at most RATE, such as 1Gbit/s [default: none]
    ///
    /// Needs a key. One stream at a time on each served address, and only to the address that asked for it. The stream
    /// never exceeds the credit that the receiver grants, and ends 1 s after its last grant.
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = value::down_rate)]
    pub allow_down: Option<u64>,
}
