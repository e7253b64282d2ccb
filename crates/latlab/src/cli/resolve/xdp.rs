//! Resolution of the options of a path past the network stack: queues, and what answers.

use crate::cli::args::XdpArgs;
use crate::plan::{Family, PathSpec, Reflect, Target, TransportKind, XdpSpec};

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
