//! Datagrams that cross the path in several packets.

use super::*;
use crate::recording::manifest::UNFRAGMENTED_BYTES;

fn unfragmented(bytes: Option<&str>) -> Option<(String, String)> {
    bytes.map(|bytes| (UNFRAGMENTED_BYTES.into(), bytes.into()))
}

#[test]
fn datagrams_that_fit_are_not_cut() {
    for (size, peer, dont_fragment, mtu, cut) in [
        (1_472, "10.0.0.7:9862", false, None, false),
        (1_473, "10.0.0.7:9862", false, None, true),
        (1_473, "10.0.0.7:9862", true, None, false),
        (1_453, "[fd00::7]:9862", false, None, true),
        (8_972, "10.0.0.7:9862", false, Some("8972"), false),
        (8_973, "10.0.0.7:9862", false, Some("8972"), true),
    ] {
        let mut source = quiet(Schedule::Closed, closed_loop());
        source.manifest.spec.target = Target::Host { host: "h".into(), port: 9862 };
        source.manifest.run.peer_address = Some(peer.into());
        source.manifest.run.conditions.extend(unfragmented(mtu));
        ping(&mut source.manifest).size_bytes = size;
        ping(&mut source.manifest).path.dont_fragment = dont_fragment;
        assert_eq!(find(&source, "fragmentation").is_some(), cut, "{size} to {peer}, mtu {mtu:?}");
    }
    for (size, mtu, cut) in [(65_507, Some("65488"), true), (65_507, Some("65508"), false), (65_507, None, false)] {
        let mut source = quiet(Schedule::Closed, closed_loop());
        source.manifest.run.conditions.extend(unfragmented(mtu));
        ping(&mut source.manifest).size_bytes = size;
        assert_eq!(find(&source, "fragmentation").is_some(), cut, "{size} on this host, mtu {mtu:?}");
    }
}
