//! Caveats of datagrams and samples that are cut into fragments.

use super::*;

fn unfragmented(bytes: Option<&str>) -> Option<(String, String)> {
    bytes.map(|bytes| (UNFRAGMENTED_BYTES.into(), bytes.into()))
}

/// Of samples of `size_bytes` in batches, over a path whose packets carry samples of `known` bytes, by a library with these
/// settings.
fn cut_samples(
    size_bytes: u32,
    batch: u16,
    known: Option<&str>,
    (message_bytes, set): (Option<u16>, &[&str]),
) -> Option<Caveat> {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.target = Target::Host { host: "h".into(), port: 9862 };
    source.manifest.run.conditions.extend(unfragmented(known));
    let configuration = set.iter().map(|line| (*line).to_owned()).collect();
    source.manifest.run.dds = Some(DdsFacts { configuration, ..DdsFacts::default() });
    let usual = StreamRunSpec::at(Pace::Max);
    let sending = SenderSocketOptions { mode: SendMode::Batch, batch, ..usual.sending };
    let path = PathSpec { dds: Some(DdsSpec { message_bytes, ..DdsSpec::default() }), ..PathSpec::SYSTEM };
    let (size, transport) = (PacketSize::Bytes(size_bytes), TransportKind::Dds);
    source.manifest.spec.work = Work::Stream(StreamRunSpec { sending, path, size, transport, ..usual });
    find(&source, "fragmentation")
}

#[test]
fn samples_and_batches_beyond_the_mtu_may_be_fragmented() {
    let set = ["Domain/General/FragmentSize/#text: 1344 B"];
    let (warning, note) = (Some(Severity::Warning), Some(Severity::Note));
    // RTPS adds 64 bytes to a sample: 20 for the message, and 44 for each sample in it.
    for (size, batch, known, set, severity) in [
        (1_408, 1, None, (None, &[][..]), None),
        (1_409, 1, None, (None, &[]), warning),
        (1_357, 1, Some("1356"), (None, &[]), warning),
        (64, 13, None, (None, &[]), None),
        (64, 14, None, (None, &[]), warning),
        // The library cuts long samples itself.
        (65_507, 1, Some("65440"), (None, &[]), None),
        (8_000, 1, Some("1408"), (None, &set), note),
        (8_000, 1, Some("1408"), (Some(1_472), &set), None),
        (8_000, 1, Some("1408"), (Some(1_473), &set), warning),
    ] {
        let found = cut_samples(size, batch, known, set).map(|caveat| caveat.severity);
        assert_eq!(found, severity, "{batch} of {size} B, {known:?}");
    }
}

#[test]
fn datagrams_within_the_mtu_are_not_fragmented() {
    for (size, peer, dont_fragment, mtu, fragmented) in [
        (1_472, "10.0.0.7:9862", false, None, false),
        (1_473, "10.0.0.7:9862", false, None, true),
        (1_473, "10.0.0.7:9862", true, None, false),
        (1_453, "[fd00::7]:9862", false, None, true),
        (8_972, "10.0.0.7:9862", false, Some("8972"), false),
        (8_973, "10.0.0.7:9862", false, Some("8972"), true),
    ] {
        let mut source = quiet(CLOSED, closed_loop());
        source.manifest.spec.target = Target::Host { host: "h".into(), port: 9862 };
        source.manifest.run.peer_address = Some(peer.into());
        source.manifest.run.conditions.extend(unfragmented(mtu));
        ping(&mut source.manifest).size_bytes = size;
        ping(&mut source.manifest).path.dont_fragment = dont_fragment;
        assert_eq!(find(&source, "fragmentation").is_some(), fragmented, "{size} to {peer}, mtu {mtu:?}");
    }
    for (size, mtu, fragmented) in
        [(65_507, Some("65488"), true), (65_507, Some("65508"), false), (65_507, None, false)]
    {
        let mut source = quiet(CLOSED, closed_loop());
        source.manifest.run.conditions.extend(unfragmented(mtu));
        ping(&mut source.manifest).size_bytes = size;
        assert_eq!(find(&source, "fragmentation").is_some(), fragmented, "{size} on this host, mtu {mtu:?}");
    }
}
