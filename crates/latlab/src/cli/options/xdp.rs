//! The path past the network stack: queues, and what answers.

use clap::Args;

use crate::cli::value;
use crate::plan::{Family, PathSpec, Reflect, Target, TransportKind, XdpSpec};

/// How packets pass the network stack by.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "AF_XDP")]
pub struct XdpArgs {
    /// Queue of the interface, with --transport xdp [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u32>(0..=value::QUEUE_MAX))]
    pub queue: Option<u32>,
    /// Reflector that latlab starts: socket, xdp or xdp-tx [default: as --transport; on local socket]
    ///
    /// socket: a UDP socket.
    /// xdp: an AF_XDP socket.
    /// xdp-tx: a program in the network driver, for ping; its probes are not authenticated.
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&Reflect::ALL, Reflect::word), hide_short_help = true,
        verbatim_doc_comment, hide_possible_values = true
    )]
    pub reflect: Option<Reflect>,
    /// Queue of the reflector's interface, with --reflect xdp [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u32>(0..=value::QUEUE_MAX))]
    pub peer_queue: Option<u32>,
}

/// Adds queues and what answers to `path`. On loopback packets are IPv6 unless IPv4 is asked for, which the kernel refuses
/// there: it takes no packet from 127.0.0.0/8 that comes from a device.
pub(super) fn with_queues(typed: &XdpArgs, transport: TransportKind, path: PathSpec, target: &Target) -> PathSpec {
    let is_sender = transport == TransportKind::Xdp;
    let starts_xdp = is_sender && (*target == Target::Lab || target.has_agent());
    let reflect = typed.reflect.unwrap_or(if starts_xdp { Reflect::Xdp } else { Reflect::Socket });
    if !is_sender && reflect == Reflect::Socket {
        return path;
    }
    let is_on_loopback = *target == Target::Local;
    let xdp = XdpSpec { queue: typed.queue.unwrap_or(0), reflect, peer_queue: typed.peer_queue.unwrap_or(0) };
    PathSpec { xdp: Some(xdp), family: path.family.or(is_on_loopback.then_some(Family::Ipv6)), ..path }
}
