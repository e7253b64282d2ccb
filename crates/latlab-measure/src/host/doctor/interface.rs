//! Findings on the interface of the path, and on the limits of sockets.

use super::evidence::HostEvidence;
use crate::facts::{Capability, Finding, FindingSeverity, InterfaceFacts, XdpAbilities};
use crate::plan::defaults;
use crate::units::human;

/// Queueing disciplines that delay packets.
const SHAPERS: [&str; 7] = ["netem", "tbf", "htb", "hfsc", "cake", "cbq", "etf"];
/// A longer coalescing delay shows in the median of a local network.
const COLLECTS_US: u32 = 10;
/// At 500,000 packets a second this many descriptors last half a millisecond.
const SHORT_RING: u32 = 256;

pub(super) fn check(evidence: &HostEvidence<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = socket_buffers(evidence).into_iter().collect();
    if let Some(interface) = &evidence.facts.network.interface {
        let checks = [link, qdisc, coalescing, offloads, ring, stamps, past_the_stack, xdp_program];
        found.extend(checks.into_iter().filter_map(|check| check(interface)));
    }
    found
}

fn link(interface: &InterfaceFacts) -> Option<Finding> {
    let state = interface.state.as_deref().filter(|state| !matches!(*state, "up" | "unknown" | "dormant"))?;
    let name = &interface.name;
    let fix = format!("sudo ip link set {name} up, or check the cable");
    Some(Finding::new(FindingSeverity::Blocker, "link-down", format!("{name} carries no packets: it is {state}"), fix))
}

fn qdisc(interface: &InterfaceFacts) -> Option<Finding> {
    let kind = interface.qdisc.as_deref().filter(|kind| SHAPERS.contains(kind))?;
    let name = &interface.name;
    let message = format!("packets leave {name} through the queueing discipline `{kind}`, which delays them");
    let fix = format!("sudo tc qdisc del dev {name} root");
    Some(Finding::new(FindingSeverity::Warning, "qdisc", message, fix))
}

fn coalescing(interface: &InterfaceFacts) -> Option<Finding> {
    const CODE: &str = "coalescing";
    let name = &interface.name;
    let state = interface.coalescing?;
    if state.receive_us == 0 && !state.adaptive_receive {
        return Some(Finding::fine(CODE, format!("{name} interrupts at once")));
    }
    let wait = match (state.adaptive_receive, state.receive_us) {
        (true, _) => {
            "for a time that its driver chooses, which differs by tens of microseconds from run to run".to_owned()
        }
        (false, wait_us) => format!("for up to {wait_us} µs"),
    };
    let severe = state.adaptive_receive || state.receive_us >= COLLECTS_US;
    let severity = if severe { FindingSeverity::Warning } else { FindingSeverity::Note };
    let adaptive = if state.adaptive_receive { " adaptive-rx off" } else { "" };
    let fix = format!("sudo ethtool -C {name}{adaptive} rx-usecs 0");
    Some(Finding::new(severity, CODE, format!("{name} collects packets {wait} before it interrupts"), fix))
}

/// Offloads that delay a packet to merge it with the next.
fn offloads(interface: &InterfaceFacts) -> Option<Finding> {
    const COLLECTORS: [(&str, &str); 2] = [("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")];
    let on = |name: &str| interface.offloads.as_ref()?.get(name).copied();
    let active: Vec<_> = COLLECTORS.into_iter().filter(|(name, _)| on(name) == Some(true)).collect();
    if active.is_empty() {
        return None;
    }
    let name = &interface.name;
    let message = format!(
        "{name} merges received segments ({}): a segment may wait for the next one",
        active.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    );
    let switches: Vec<_> = active.iter().map(|(_, switch)| format!(" {switch} off")).collect();
    let fix = format!("sudo ethtool -K {name}{}", switches.concat());
    Some(Finding::new(FindingSeverity::Note, "offloads", message, fix))
}

fn ring(interface: &InterfaceFacts) -> Option<Finding> {
    let ring = interface.ring?;
    (ring.receive < SHORT_RING && ring.receive_maximum > ring.receive).then(|| {
        let name = &interface.name;
        let message = format!(
            "{name} has a receive ring of {} packets: at 500,000 packets/s it overflows after {:.1} ms",
            ring.receive,
            f64::from(ring.receive) / 500.0
        );
        let fix = format!("sudo ethtool -G {name} rx {}", ring.receive_maximum);
        Finding::new(FindingSeverity::Note, "ring-short", message, fix)
    })
}

fn stamps(interface: &InterfaceFacts) -> Option<Finding> {
    let stamping = interface.stamping?;
    let is_device = interface.kind.is_none() && interface.name != "lo";
    let lacks = !stamping.receive_hardware || !stamping.transmit_hardware;
    (is_device && lacks).then(|| {
        let message =
            format!("no NIC time stamps on {}: the time in the device cannot be measured separately", interface.name);
        Finding::note("no-nic-stamps", message)
    })
}

/// How AF_XDP sockets and programs would run.
fn past_the_stack(interface: &InterfaceFacts) -> Option<Finding> {
    const CODE: &str = "xdp";
    let InterfaceFacts { name, driver, .. } = interface;
    let queues = interface.channels.map_or(1, |channels| channels.combined.max(channels.receive)).max(1);
    let driver = driver.as_ref().map_or("?", |driver| driver.name.as_str());
    let at = format!("at {queues} {}", if queues == 1 { "queue" } else { "queues" });
    let abilities = interface.xdp?;
    let how = match abilities {
        XdpAbilities { native: true, zero_copy: true, .. } => {
            format!("{name} runs XDP programs in its driver, and AF_XDP without copies, {at}")
        }
        XdpAbilities { native: true, .. } => {
            format!(
                "{name} runs XDP programs in its driver, {at}; AF_XDP copies each packet: `{driver}` has no zero copy"
            )
        }
        XdpAbilities { native: false, .. } => {
            format!("{name} runs XDP programs in the network stack (generic), {at}: `{driver}` has no XDP support")
        }
    };
    let (polling, fix) = match (abilities.polled_queues, abilities.defers_interrupts) {
        (Some(0), _) => ("; no queue of it can be polled now (`--wait busy-poll`)", None),
        (_, Some(true)) => ("; `--wait busy-poll` keeps its interrupts off", None),
        (_, Some(false)) => {
            let of = format!("/sys/class/net/{name}");
            let fix =
                format!("echo 2 | sudo tee {of}/napi_defer_hard_irqs; echo 200000 | sudo tee {of}/gro_flush_timeout");
            ("; `--wait busy-poll` polls it with its interrupts on", Some(fix))
        }
        (_, None) => ("", None),
    };
    let message = how + polling;
    Some(match (abilities.zero_copy, fix) {
        (true, None) => Finding::fine(CODE, message),
        (_, Some(fix)) => Finding::new(FindingSeverity::Note, CODE, message, fix),
        (false, None) => Finding::note(CODE, message),
    })
}

fn xdp_program(interface: &InterfaceFacts) -> Option<Finding> {
    let (name, number) = (&interface.name, interface.xdp_program?);
    let message = format!("{name} has XDP program {number}: `--transport xdp` cannot attach its own");
    let fix = format!("sudo ip link set dev {name} xdp off, if it is not needed: `sudo bpftool prog show id {number}`");
    Some(Finding::new(FindingSeverity::Note, "xdp-program", message, fix))
}

/// A process with CAP_NET_ADMIN may exceed the limit.
fn socket_buffers(evidence: &HostEvidence<'_>) -> Option<Finding> {
    /// What a small datagram takes with the kernel's overhead (`truesize`), for which the kernel doubles buffers.
    const SMALL_DATAGRAM_BYTES: u64 = 768;
    let limit = evidence.facts.network.receive_buffer_maximum_bytes?;
    let forced = evidence.facts.rights.is_some_and(|rights| rights.has(Capability::NetAdmin));
    let wanted = u64::from(defaults::RECEIVE_BUFFER_BYTES);
    (limit < wanted && !forced).then(|| {
        let message = format!(
            "sockets get receive buffers of {} KiB at most (`net.core.rmem_max`): about {} small datagrams, then the \
             kernel drops them",
            human::grouped(limit / 1_024),
            human::grouped(2 * limit / SMALL_DATAGRAM_BYTES)
        );
        let fix = format!("sudo sysctl net.core.rmem_max={wanted}");
        Finding::new(FindingSeverity::Note, "socket-buffers", message, fix)
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{BLOCKING, find, judged, message, severity};
    use super::*;
    use crate::facts::{Coalescing, HostFacts, Rights, RingSizes, Stamping};

    const STAMPING: Stamping =
        Stamping { transmit_software: true, receive_software: true, transmit_hardware: true, receive_hardware: true };
    const QUIET: Coalescing = Coalescing {
        receive_us: 0,
        receive_frames: 1,
        transmit_us: 0,
        transmit_frames: 1,
        adaptive_receive: false,
        adaptive_transmit: false,
    };

    fn on(interface: InterfaceFacts) -> Vec<Finding> {
        let mut facts = HostFacts::default();
        facts.network.interface = Some(InterfaceFacts { name: "eth0".into(), ..interface });
        judged(&facts, &BLOCKING)
    }

    fn fix<'a>(found: &'a [Finding], code: &str) -> Option<&'a str> {
        find(found, code)?.fix.as_deref()
    }

    #[test]
    fn coalescing_is_a_finding_with_its_switch() {
        let with = |coalescing| on(InterfaceFacts { coalescing: Some(coalescing), ..InterfaceFacts::default() });
        let slow = with(Coalescing { receive_us: 50, ..QUIET });
        assert_eq!(message(&slow, "coalescing"), "eth0 collects packets for up to 50 µs before it interrupts");
        assert_eq!(fix(&slow, "coalescing"), Some("sudo ethtool -C eth0 rx-usecs 0"));
        assert_eq!(severity(&slow, "coalescing"), Some(FindingSeverity::Warning));
        assert_eq!(severity(&with(Coalescing { receive_us: 3, ..QUIET }), "coalescing"), Some(FindingSeverity::Note));
        let adaptive = with(Coalescing { adaptive_receive: true, ..QUIET });
        assert_eq!(fix(&adaptive, "coalescing"), Some("sudo ethtool -C eth0 adaptive-rx off rx-usecs 0"));
        assert_eq!(severity(&with(QUIET), "coalescing"), Some(FindingSeverity::Fine));
    }

    #[test]
    fn links_qdiscs_rings_and_offloads_are_findings() {
        let ring = RingSizes { receive: 128, receive_maximum: 4_096, transmit: 128, transmit_maximum: 4_096 };
        let found = on(InterfaceFacts {
            state: Some("lowerlayerdown".into()),
            qdisc: Some("netem".into()),
            ring: Some(ring),
            offloads: Some([("rx-lro".into(), true), ("rx-gro-hw".into(), false), ("rx-gro".into(), true)].into()),
            stamping: Some(Stamping { receive_hardware: false, ..STAMPING }),
            ..InterfaceFacts::default()
        });
        assert_eq!(severity(&found, "link-down"), Some(FindingSeverity::Blocker));
        assert_eq!(fix(&found, "qdisc"), Some("sudo tc qdisc del dev eth0 root"));
        assert_eq!(fix(&found, "ring-short"), Some("sudo ethtool -G eth0 rx 4096"));
        assert_eq!(fix(&found, "offloads"), Some("sudo ethtool -K eth0 lro off"));
        assert_eq!(severity(&found, "no-nic-stamps"), Some(FindingSeverity::Note));
        let sound = on(InterfaceFacts {
            state: Some("up".into()),
            qdisc: Some("mq".into()),
            ring: Some(RingSizes { receive: 256, ..ring }),
            offloads: Some([("rx-gro".into(), true)].into()),
            stamping: Some(STAMPING),
            ..InterfaceFacts::default()
        });
        assert_eq!(sound, []);
        let virtual_one = InterfaceFacts {
            kind: Some("veth".into()),
            stamping: Some(Stamping { receive_hardware: false, ..STAMPING }),
            ..InterfaceFacts::default()
        };
        assert_eq!(on(virtual_one), [], "nobody expects a virtual interface to stamp");
    }

    #[test]
    fn a_small_receive_buffer_limit_is_a_finding_without_the_privilege_to_exceed_it() {
        let with = |limit, capabilities| {
            let mut facts = HostFacts::default();
            facts.network.receive_buffer_maximum_bytes = Some(limit);
            facts.rights = Some(Rights { capabilities, memory_lock_bytes: None, real_time_priority: None });
            judged(&facts, &BLOCKING)
        };
        let found = with(212_992, 0);
        assert!(message(&found, "socket-buffers").contains("about 554 small datagrams"), "{found:?}");
        assert_eq!(fix(&found, "socket-buffers"), Some("sudo sysctl net.core.rmem_max=4194304"));
        assert_eq!(severity(&with(212_992, 1 << 12), "socket-buffers"), None);
        assert_eq!(severity(&with(4 << 20, 0), "socket-buffers"), None);
    }
}
