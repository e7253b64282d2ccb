use super::*;
use crate::facts::ConnectionFacts;
use crate::plan::TransportKind;

fn connection(retransmitted: u64) -> ConnectionFacts {
    ConnectionFacts { congestion_control: Some("cubic".into()), send_segment_bytes: 1_448, retransmitted }
}

#[test]
fn over_tcp_nothing_is_fragmented_and_few_retransmissions_are_a_note() {
    let rows: Vec<_> = (0..200).map(|seq| closed(seq, seq as i64 * 60, 50)).collect();
    let mut source = quiet(Schedule::Closed, rows);
    source.manifest.spec.target = Target::Host { host: "10.0.0.7".into(), port: 9862 };
    ping(&mut source.manifest).size_bytes = 60_000;
    ping(&mut source.manifest).transport = TransportKind::Tcp;
    source.manifest.run.connection = Some(connection(0));
    for code in ["fragmentation", "tcp-retransmits"] {
        assert_eq!(find(&source, code), None);
    }
    source.manifest.run.connection = Some(connection(1));
    let found = find(&source, "tcp-retransmits").expect("one was sent again");
    assert!(found.severity == Severity::Note && !found.effect.is_empty() && !found.hint.is_empty(), "{found:?}");
    assert!(found.message.contains("again: 1, with 200 probes"), "{found:?}");
    source.manifest.run.connection = Some(connection(2));
    assert_eq!(find(&source, "tcp-retransmits").map(|caveat| caveat.severity), Some(Severity::Warning));
}
