//! Resolution of the options of a path past the network stack: queues, and what answers.

use super::{RequestError, value};
use crate::cli::args::XdpArgs;
use crate::plan::{Family, PathSpec, Reflect, Target, TransportKind, XdpSpec};

const QUEUE: &str = "--queue";
const PEER_QUEUE: &str = "--peer-queue";
const REFLECT: &str = "--reflect";
/// Far more than devices have.
const QUEUE_MAX: u64 = 65_535;

/// Adds queues and what answers to `path`. On loopback packets are IPv6 unless IPv4 is asked for, which the kernel refuses
/// there: it takes no packet from 127.0.0.0/8 that comes from a device.
pub(super) fn path(
    typed: &XdpArgs,
    transport: TransportKind,
    path: PathSpec,
    target: &Target,
) -> Result<PathSpec, RequestError> {
    let xdp = spec(typed, transport, target)?;
    let is_on_loopback = xdp.is_some() && *target == Target::Local;
    let family = path.family.or(is_on_loopback.then_some(Family::Ipv6));
    Ok(PathSpec { xdp, family, ..path })
}

/// `None` if both ends have sockets of the kernel.
fn spec(typed: &XdpArgs, transport: TransportKind, target: &Target) -> Result<Option<XdpSpec>, RequestError> {
    let is_sender = transport == TransportKind::Xdp;
    if typed.queue.is_some() && !is_sender {
        let hint = "add `--transport xdp`, or leave it out";
        return Err(out_of_place(QUEUE, transport, "it applies to an AF_XDP socket of this end", hint));
    }
    let reflect = match typed.reflect {
        Some(reflect) => fitting(reflect, transport, target)?,
        None if is_sender && (*target == Target::Lab || target.has_agent()) => Reflect::Xdp,
        None => Reflect::Socket,
    };
    if typed.peer_queue.is_some() && reflect != Reflect::Xdp {
        let hint = "add `--reflect xdp`, or leave it out";
        return Err(out_of_place(PEER_QUEUE, transport, "the reflector has no AF_XDP socket", hint));
    }
    if !is_sender && reflect == Reflect::Socket {
        return Ok(None);
    }
    let queue = |option, typed: &Option<String>| match typed {
        Some(typed) => value::whole(option, typed, 0..=QUEUE_MAX).map(|queue| queue as u32),
        None => Ok(0),
    };
    Ok(Some(XdpSpec { queue: queue(QUEUE, &typed.queue)?, reflect, peer_queue: queue(PEER_QUEUE, &typed.peer_queue)? }))
}

/// `reflect`, if latlab starts such a reflector for `target`.
fn fitting(reflect: Reflect, transport: TransportKind, target: &Target) -> Result<Reflect, RequestError> {
    if !matches!(transport, TransportKind::Udp | TransportKind::Xdp) {
        return Err(out_of_place(REFLECT, transport, "it answers UDP", "add `--transport xdp`, or leave it out"));
    }
    match (reflect, target) {
        (_, Target::Host { .. }) => Err(RequestError::Alone {
            option: REFLECT,
            needed: "a target whose reflector latlab starts",
            cause: "the reflector of this target runs already",
            hint: "`lab`, or `ssh:HOST`",
        }),
        (Reflect::Xdp, Target::Local) if transport == TransportKind::Xdp => {
            Err(not_on_loopback(reflect, "loopback has one queue for both ends, and a queue has one AF_XDP socket"))
        }
        (Reflect::XdpTx, Target::Local) => Err(not_on_loopback(
            reflect,
            "the kernel leaves checksums on loopback unfinished, and a program cannot finish them",
        )),
        _ => Ok(reflect),
    }
}

fn not_on_loopback(reflect: Reflect, cause: &'static str) -> RequestError {
    value::unusable(REFLECT, reflect.word(), cause, "`latlab ping lab`, or `--reflect socket`")
}

/// Refuses a program that answers for packets that nothing answers.
pub(super) fn not_in_driver(typed: &XdpArgs) -> Result<(), RequestError> {
    match typed.reflect {
        Some(reflect @ Reflect::XdpTx) => Err(value::unusable(
            REFLECT,
            reflect.word(),
            "packets of a stream are counted and not answered",
            "`--reflect xdp`, or leave it out",
        )),
        _ => Ok(()),
    }
}

/// The error of an `option` on sockets of the kernel.
pub(super) fn no_kernel_socket(option: &'static str) -> RequestError {
    out_of_place(option, TransportKind::Xdp, "packets do not pass a socket of the kernel", "leave it out")
}

/// The error of several flows.
pub(super) fn one_flow() -> RequestError {
    let cause = "each flow needs a socket, and a queue has one AF_XDP socket";
    out_of_place("--flows", TransportKind::Xdp, cause, "use one flow; for more, start a run for each `--queue`")
}

/// The error of an `option` that makes the kernel pass on packets that it has not cut yet.
pub(super) fn no_merged_packets(option: &'static str) -> RequestError {
    let cause = "an AF_XDP socket receives single packets, and a virtual device passes on what it has not cut";
    RequestError::OutOfPlace { option, with: "--reflect xdp".into(), cause, hint: "`--mode sendmmsg`" }
}

/// Refuses a service over AF_XDP: on the wire it would be that over UDP.
pub(super) fn not_served(transport: TransportKind) -> Result<(), RequestError> {
    match transport {
        TransportKind::Xdp => Err(value::unusable(
            "--transport",
            transport.word(),
            "a service has sockets of the kernel",
            "leave it out: `latlab serve` answers senders of `--transport xdp`, whose packets are UDP",
        )),
        _ => Ok(()),
    }
}

fn out_of_place(
    option: &'static str,
    transport: TransportKind,
    cause: &'static str,
    hint: &'static str,
) -> RequestError {
    RequestError::OutOfPlace { option, with: format!("--transport {}", transport.word()), cause, hint }
}
