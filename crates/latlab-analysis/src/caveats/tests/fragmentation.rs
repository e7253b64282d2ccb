//! Caveats of datagrams and samples that are cut into fragments.

use super::*;

fn unfragmented(bytes: Option<&str>) -> Option<(String, String)> {
    bytes.map(|bytes| (UNFRAGMENTED_BYTES.into(), bytes.into()))
}

/// The caveat about fragments of samples of `size_bytes`, of a host with the MTU of Ethernet unless `known` is the most, and a
/// library with these settings.
fn cut_samples(dds: DdsSpec, size_bytes: u32, known: Option<&str>, set: &[&str]) -> Option<Caveat> {
    let mut source = quiet(CLOSED, closed_loop());
    source.manifest.spec.target = Target::Host { host: "h".into(), port: 9862 };
    source.manifest.run.conditions.extend(unfragmented(known));
    let configuration = set.iter().map(|line| (*line).to_owned()).collect();
    source.manifest.run.dds = Some(DdsFacts { configuration, ..DdsFacts::default() });
    let ping = ping(&mut source.manifest);
    (ping.transport, ping.path.dds, ping.size_bytes) = (TransportKind::Dds, Some(dds), size_bytes);
    find(&source, "fragmentation")
}

#[test]
fn samples_within_the_mtu_are_not_fragmented() {
    let reliable = DdsSpec { reliability: Reliability::Reliable, keyed: true, ..DdsSpec::default() };
    // RTPS adds 64 bytes, with a key and reliability 100, and fills a sample up to 4 bytes.
    for (dds, most, known) in
        [(DdsSpec::default(), 1_408, None), (reliable, 1_372, None), (DdsSpec::default(), 1_356, Some("1356"))]
    {
        assert_eq!(cut_samples(dds, most, known, &[]), None);
        let found = cut_samples(dds, most + 1, known, &[]).expect("it is longer than a packet");
        assert!(found.message.starts_with("samples of 1,"), "{found:?}");
        assert!(found.hint.contains(&format!("`--size {most}`")) && found.hint.contains("CYCLONEDDS_URI"), "{found:?}");
        assert!(!found.hint.contains("--df"), "{found:?}");
    }
    assert_eq!(DdsSpec::default().sample_bytes(1_422), 1_356);
    for (reliability, keyed, most) in [
        (Reliability::BestEffort, false, [1_408, 1_388]),
        (Reliability::BestEffort, true, [1_404, 1_384]),
        (Reliability::Reliable, false, [1_376, 1_356]),
        (Reliability::Reliable, true, [1_372, 1_352]),
    ] {
        let dds = DdsSpec { reliability, keyed, ..DdsSpec::default() };
        assert_eq!([1_472, 1_452].map(|datagram_bytes| dds.sample_bytes(datagram_bytes)), most, "{dds:?}");
    }
    // Not every reliable sample has a HEARTBEAT, and above some MTUs a long sample is in shorter datagrams than others.
    let reliable = DdsSpec { reliability: Reliability::Reliable, ..DdsSpec::default() };
    for (dds, size_bytes, known, surely) in [
        (reliable, 1_377, "1376", "may be"),
        (reliable, 1_408, "1376", "may be"),
        (reliable, 1_409, "1376", "are"),
        (DdsSpec::default(), 20_000, "13468", "are"),
        (DdsSpec::default(), 20_000, "13472", "may be"),
    ] {
        let found = cut_samples(dds, size_bytes, Some(known), &[]).expect("a caveat");
        assert!(found.message.contains(&format!(" B {surely} cut")), "{size_bytes} B: {found:?}");
    }
    // The library cuts long samples itself.
    assert_eq!(cut_samples(DdsSpec::default(), 65_507, Some("65440"), &[]), None);
}

/// What a setting does depends on others, and on the other end.
#[test]
fn with_settings_of_the_library_samples_may_be_fragmented() {
    let reliable = DdsSpec { reliability: Reliability::Reliable, ..DdsSpec::default() };
    for name in ["MaxMessageSize", "MaxRexmitMessageSize", "FragmentSize"] {
        let set = format!("Domain/General/{name}/#text: 1344 B");
        let found = cut_samples(reliable, 8_000, Some("1376"), &[&set]).expect("a caveat");
        assert_eq!(found.severity, Severity::Note);
        assert!(found.message.starts_with("samples of 8,000 B may be cut"), "{found:?}");
        assert!(found.message.ends_with("keep datagrams within 1,472 B"), "{found:?}");
        assert!(!found.hint.contains("--size"), "{found:?}");
        let best_effort = cut_samples(DdsSpec::default(), 8_000, Some("1408"), &[&set]).expect("a caveat");
        let is_note = best_effort.severity == Severity::Note;
        assert_eq!(is_note, name != "MaxRexmitMessageSize", "only reliable samples are sent again");
        // Over loopback every message is one packet.
        assert_eq!(cut_samples(reliable, 60_000, Some("65412"), &[&set]), None);
    }
    let other = "Domain/General/AllowMulticast/#text: false";
    let found = cut_samples(DdsSpec::default(), 8_000, Some("1408"), &[other]).expect("a caveat");
    assert!(found.severity == Severity::Warning && found.message.contains("are cut"), "{found:?}");
}

#[test]
fn long_batches_of_samples_are_fragmented() {
    let cut_to = |direction, dds, pace, batch, size_bytes| {
        let mut source = quiet(CLOSED, closed_loop());
        source.manifest.spec.target = Target::Host { host: "h".into(), port: 9862 };
        let usual = StreamRunSpec::at(pace);
        let sending = SenderSocketOptions { mode: SendMode::Batch, batch, ..usual.sending };
        let path = PathSpec { dds: Some(dds), ..PathSpec::SYSTEM };
        let (size, transport) = (PacketSize::Bytes(size_bytes), TransportKind::Dds);
        source.manifest.spec.work = Work::Stream(StreamRunSpec { sending, path, size, transport, direction, ..usual });
        find(&source, "fragmentation")
    };
    let cut_at = |pace, batch, size_bytes| cut_to(Direction::Up, DdsSpec::default(), pace, batch, size_bytes);
    let cut = |batch, size_bytes| cut_at(Pace::Max, batch, size_bytes).map(|caveat| caveat.hint);
    let paced = cut_at(Pace::Rate { bps: 1_000_000 }, 64, 64).expect("a caveat");
    assert!(paced.message.contains("batches of up to 64 samples may be cut"), "{paced:?}");
    // 20 bytes of the message, and 44 more for each sample, within 1,472.
    for (size_bytes, fit) in [(24, 21), (64, 13), (1_408, 1)] {
        assert_eq!(cut(fit, size_bytes), None, "{fit} of {size_bytes} B");
        let hint = cut(fit + 1, size_bytes).expect("a caveat");
        assert!(hint.starts_with(&format!("`--batch {fit}`, `--mode send`")), "{hint}");
    }
    let reliable = DdsSpec { reliability: Reliability::Reliable, ..DdsSpec::default() };
    for (dds, fit) in [(DdsSpec { keyed: true, ..DdsSpec::default() }, 12), (reliable, 13)] {
        assert_eq!(cut_to(Direction::Up, dds, Pace::Max, fit, 64), None);
        let found = cut_to(Direction::Up, dds, Pace::Max, fit + 2, 64).expect("a caveat");
        assert!(found.hint.starts_with(&format!("`--batch {fit}`, ")), "{found:?}");
        assert!(found.message.contains("are probably cut"), "{found:?}");
        // The other end writes.
        let down = cut_to(Direction::Down, dds, Pace::Max, fit + 2, 64).expect("a caveat");
        assert!(down.message.contains("may be cut"), "{down:?}");
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
