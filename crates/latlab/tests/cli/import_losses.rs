//! `latlab import` of logs of iperf3 whose losses are unknown or contradict each other.

use std::fs;

use serde_json::Value;

use crate::harness::Latlab;
use crate::import::{importing, summary};

/// The log of a server to which the given packets of 1,000 bytes came in each second.
fn log_of_receiver(packets: &[u32]) -> String {
    let interval = |(second, packets): (usize, &u32)| {
        let span = format!("\"start\": {second}, \"end\": {}, \"seconds\": 1", second + 1);
        let counts = format!("\"bytes\": {}, \"packets\": {packets}, \"lost_packets\": 0", packets * 1_000);
        format!("{{ \"streams\": [{{ \"socket\": 5, {span}, {counts}, \"omitted\": false, \"sender\": false }}] }}")
    };
    let intervals: Vec<String> = packets.iter().enumerate().map(interval).collect();
    format!(
        r#"{{ "start": {{ "version": "iperf 3.12", "accepted_connection": {{ "host": "10.0.0.7" }},
            "test_start": {{ "protocol": "UDP", "blksize": 1000 }} }}, "intervals": [{}],
            "end": {{ "streams": [{{ "udp": {{ "socket": 5, "packets": 9, "lost_packets": 0 }} }}] }} }}"#,
        intervals.join(", ")
    )
}

/// The log of a client that sent 625 packets of 1,000 bytes in a second, of which the server counted so many.
fn log_of_sender(counted: u32) -> String {
    let span = "\"start\": 0, \"end\": 1, \"seconds\": 1, \"bytes\": 625000, \"packets\": 625";
    let total = |name: &str, packets: u32| {
        format!("\"{name}\": {{ \"start\": 0, \"end\": 1, \"packets\": {packets}, \"lost_packets\": 0 }}")
    };
    format!(
        r#"{{ "start": {{ "version": "iperf 3.12", "test_start": {{ "protocol": "UDP", "blksize": 1000 }} }},
            "intervals": [{{ "streams": [{{ "socket": 5, {span}, "omitted": false, "sender": true }}] }}],
            "end": {{ "streams": [{{ {} }}], {}, {} }} }}"#,
        total("udp", 625),
        total("sum_sent", 625),
        total("sum_received", counted)
    )
}

#[test]
fn a_page_and_a_document_state_no_losses_of_a_path_that_died() {
    for (log, sent, is_known) in [
        (log_of_sender(625), 625.into(), true),
        (log_of_sender(312), 625.into(), false),
        (log_of_receiver(&[312, 0]), Value::Null, false),
    ] {
        let lab = importing(&log, "").success();
        let summary = summary(&lab);
        assert_eq!((&summary["sent"], summary["lost"].is_null()), (&sent, !is_known), "{summary:#}");
        Latlab::at(lab.directory()).line("report s -o page.html").success();
        let page = fs::read_to_string(lab.directory().join("page.html")).expect("a page");
        let (_, figure) = page.split_once("data-figure=\"rates\"").expect("rates over time");
        let (figure, _) = figure.split_once("</figure>").expect("the end of the figure");
        assert!(figure.contains("delivered"), "{figure}");
        assert_eq!(figure.contains("lost"), is_known, "{figure}");
    }
}
