//! Packets too small for IPv6. Below 1280 bytes (RFC 8200, section 5) Linux takes IPv6 off an interface: addresses,
//! routes and its settings go, and do not come back with the old size. That is no change that could be put back.

use super::ground::{NetnsInterface, PathInterfaces, within};
use super::knob_refusal::KnobError;
use super::root::HostRoot;
use crate::plan::SettingSpec;

/// RFC 8200, section 5.
const IPV6_LEAST_BYTES: u32 = 1_280;

/// Refuses `bytes` at `spot` where that would take away what nobody puts back, or what the run itself needs.
///
/// Where IPv6 is switched off for the interface alone (`disable_ipv6`) the kernel forgets that too, and gives it
/// addresses with the old size; so it is refused there as well.
pub(super) fn refuse(
    spec: &SettingSpec,
    bytes: u32,
    spot: &NetnsInterface,
    ground: &PathInterfaces,
) -> Result<(), KnobError> {
    if bytes >= IPV6_LEAST_BYTES {
        return Ok(());
    }
    let absent =
        |cause: String, hint: &str| Err(KnobError::Absent { setting: spec.to_string(), cause, hint: hint.into() });
    let name = &spot.interface;
    match (&spot.network, ground.over_ipv6) {
        (Some(_), false) => Ok(()),
        (Some(_), true) => absent(
            format!("an interface below {IPV6_LEAST_BYTES} bytes has no IPv6, and this path is IPv6"),
            "measure over IPv4 (`-4`), or set 1280 or more",
        ),
        (None, _) if has_ipv6(spot) => absent(
            format!(
                "below {IPV6_LEAST_BYTES} bytes the kernel takes IPv6 off `{name}`: its addresses and routes would be \
                 lost for good"
            ),
            "set 1280 or more; `latlab ping lab -4` has interfaces of its own, which can be smaller",
        ),
        (None, _) => Ok(()),
    }
}

/// Whether the kernel has IPv6 on the interface: settings of it, with addresses or without.
fn has_ipv6(spot: &NetnsInterface) -> bool {
    let settings = format!("proc/sys/net/ipv6/conf/{}", spot.interface);
    within(spot.network.as_ref(), || Ok(!HostRoot::live().names(&settings).is_empty())).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Setting;

    #[test]
    fn only_what_keeps_ipv6_alive_is_set() {
        let spec = SettingSpec { setting: Setting::Mtu(1_279), interface: None, side: None };
        let at = |name: &str| NetnsInterface { interface: name.into(), network: None };
        let ground = PathInterfaces::loopback();
        // A name without settings of IPv6 stands for an interface without it.
        for (bytes, name, refused) in [(1_280, "lo", false), (1_279, "lo", has_ipv6(&at("lo"))), (68, "none", false)] {
            let error = refuse(&spec, bytes, &at(name), &ground).err();
            assert_eq!(error.is_some(), refused, "{bytes} {name}: {error:?}");
        }
        let here = std::sync::Arc::new(std::fs::File::open("/proc/self/ns/net").expect("Linux"));
        let in_a_lab = NetnsInterface { interface: "lab0".into(), network: Some(here) };
        for over_ipv6 in [true, false] {
            let ground = PathInterfaces { over_ipv6, ..PathInterfaces::loopback() };
            assert_eq!(refuse(&spec, 1_279, &in_a_lab, &ground).is_err(), over_ipv6);
        }
    }
}
