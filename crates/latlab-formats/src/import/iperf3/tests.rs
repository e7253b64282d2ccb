//! Tests of the parser of JSON logs of iperf3.

use super::super::testing::{is_detected, read};
use super::*;

const TCP: &str = "intervals of TCP and SCTP count bytes, not packets: `iperf3 -u`";

fn start(protocol: &str) -> String {
    format!(
        r#""start": {{ "connected": [{{ "socket": 5, "local_host": "127.0.0.1" }}], "version": "iperf 3.12",
  "timestamp": {{ "time": "Fri, 27 Nov 2026 12:16:13 GMT", "timesecs": 1795781773 }}, "sock_bufsize": 0, "sock_bufsize": 0,
  "test_start": {{ "protocol": "{protocol}", "num_streams": 2, "blksize": 1000, "omit": 0, "duration": 3, "reverse": 0 }} }}"#
    )
}

fn sending(socket: u8, start: &str, end: &str, packets: u64) -> String {
    format!(
        r#"{{ "socket": {socket}, "start": {start}, "end": {end}, "seconds": 1.0001039505004883, "bytes": 1249000,
  "bits_per_second": 9990961.43, "packets": {packets}, "omitted": false, "sender": true }}"#
    )
}

fn receiving(socket: u8, start: &str, end: &str, packets: u64, lost: i64) -> String {
    format!(
        r#"{{ "socket": {socket}, "start": {start}, "end": {end}, "seconds": 1, "bytes": 1, "bits_per_second": 99.8,
  "jitter_ms": 0.005, "lost_packets": {lost}, "packets": {packets}, "lost_percent": 0, "omitted": false, "sender": false }}"#
    )
}

/// A list of intervals, each of which has the given streams.
fn intervals(streams: &[&[String]]) -> String {
    let sum = r#""sum": { "start": 0, "end": 1.000104, "packets": 2498, "omitted": false, "sender": true }"#;
    let each = streams.iter().map(|streams| format!("{{ \"streams\": [{}], {sum} }}", streams.join(", ")));
    format!("\"intervals\": [{}]", each.collect::<Vec<_>>().join(",\n"))
}

/// The totals of streams with these packets. The losses of a stream are those of all, if it is the only one.
fn end(streams: &[u64], sent: u64, received: u64, lost: i64) -> String {
    let of_stream = if streams.len() == 1 { format!("\"lost_packets\": {lost}, ") } else { String::new() };
    let udp = |packets: &u64| {
        format!(r#"{{ "udp": {{ "socket": 5, "end": 2, "packets": {packets}, {of_stream}"out_of_order": 3 }} }}"#)
    };
    let streams: Vec<_> = streams.iter().map(udp).collect();
    format!(
        r#""end": {{ "streams": [{}], "sum": {{ "start": 0, "end": 9, "packets": 1 }},
  "sum_sent": {{ "start": 0, "end": 2.000112, "packets": {sent}, "lost_packets": 0, "sender": true }},
  "sum_received": {{ "start": 0, "end": 2.00017, "packets": {received}, "lost_packets": {lost}, "sender": false }},
  "cpu_utilization_percent": {{ "host_total": 2.9 }} }}"#,
        streams.join(", ")
    )
}

fn document(members: &[String]) -> String {
    format!("{{\n{}\n}}\n", members.join(",\n"))
}

fn one_flow() -> [String; 3] {
    let streams = [[sending(5, "0", "1.000104", 1_249)], [sending(5, "1.000104", "2.000106", 1_250)]];
    [start("UDP"), intervals(&streams.each_ref().map(|streams| &streams[..])), end(&[2_499], 2_499, 2_497, 20)]
}

fn rows(text: &str) -> Vec<StreamInterval> {
    read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log").0.intervals
}

fn fault(text: &str) -> LogFault {
    read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text)
}

fn states_losses(text: &str) -> Option<bool> {
    let (_, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text);
    end.facts.states_losses
}

fn row(flow: u16, start_ns: i64, end_ns: i64, seen: IntervalCounts) -> StreamInterval {
    StreamInterval { flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen }
}

#[test]
fn a_sender_has_its_intervals_and_the_total_of_the_receiver() {
    let text = document(&one_flow());
    let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log");
    let expected = [
        row(0, 0, 1_000_104_000, offered(1_249).expect("a count")),
        row(0, 1_000_104_000, 2_000_106_000, offered(1_250).expect("a count")),
        row(0, 0, 2_000_170_000, counted(2_497, 20, Some(3)).expect("counts")),
    ];
    assert_eq!(block.intervals, expected);
    let began = Some(1_795_781_773_000_000_000);
    // Of 2,499 packets the receiver counted 2,497.
    let states_losses = Some(false);
    let facts = LogFacts { version: Some("3.12".into()), started_ns: began, states_losses, ..LogFacts::of("iperf3") };
    assert_eq!(end.facts, facts);
    assert!(is_detected(&FORMAT, text.as_bytes()));
    let mut reversed = one_flow();
    reversed.reverse();
    assert_eq!(rows(&document(&reversed).replace('\n', "\r\n")), block.intervals, "in any order");
}

#[test]
fn a_receiver_has_its_intervals_and_the_totals_of_the_sender() {
    let streams = [[receiving(5, "0", "1", 100, 40), receiving(7, "0", "1.5", 50, -2)]];
    let intervals = intervals(&[&streams[0]]);
    let text = |end: String| document(&[start("UDP"), intervals.clone(), end]);
    let received = [
        row(0, 0, 1_000_000_000, counted(100, 40, None).expect("counts")),
        row(1, 0, 1_500_000_000, counted(50, -2, None).expect("counts")),
    ];
    let sent = |flow, packets| row(flow, 0, 2_000_112_000, offered(packets).expect("a count"));
    assert_eq!(rows(&text(end(&[110, 50], 160, 150, 38))), [&received[..], &[sent(0, 110), sent(1, 50)]].concat());
    assert_eq!(states_losses(&text(end(&[100, 50], 150, 150, 38))), None);
    for sent in [[101, 50], [100, 51]] {
        let stopped = states_losses(&text(end(&sent, sent.iter().sum(), 150, 38)));
        assert_eq!(stopped, Some(false), "{sent:?}: what one flow lost at the end is unknown");
    }
    for sum in [0, 18_446_744_073_709_551_612] {
        let alone = text(end(&[110, 50], sum, 150, 38));
        assert_eq!(rows(&alone), received, "the log of a receiver alone");
        assert_eq!(states_losses(&alone), Some(false), "what was lost behind its last packet is unknown");
    }
    let accepting = text(end(&[110, 50], 160, 150, 38)).replace("\"connected\"", "\"accepted_connection\": {}, \"x\"");
    assert_eq!((rows(&accepting), states_losses(&accepting)), (received.to_vec(), Some(false)));
    let IntervalCounts::Counted { polled, delivered, .. } = received[1].seen else { panic!("a receiver") };
    assert_eq!((polled, delivered), (50, 52), "two late packets of the interval before");
}

#[test]
fn losses_are_unknown_if_the_sender_counted_more_than_its_receiver_could_miss_at_the_end() {
    let sender = |sent, received| {
        document(&[start("UDP"), intervals(&[&[sending(5, "0", "1", sent)]]), end(&[sent], sent, received, 0)])
    };
    let receiver = |sent, received| {
        let counts = intervals(&[&[receiving(5, "0", "1", received, 0)]]);
        document(&[start("UDP"), counts, end(&[sent], sent, received, 0)])
    };
    let both = |sent, received| {
        let counts = intervals(&[&[receiving(5, "0", "1", received, 0)]]);
        let other = document(&[start("UDP"), counts, end(&[0], 0, received, 0)]);
        with_other(&sender(sent, received), &other)
    };
    for (sent, received, due) in
        [(300, 300, None), (300, 299, Some(false)), (300, 146, Some(false)), (300, 0, Some(false)), (300, 301, None)]
    {
        for text in [sender(sent, received), receiver(sent, received), both(sent, received)] {
            assert_eq!(states_losses(&text), due, "{text}");
            assert_eq!(rows(&text).len(), 2, "the counts are rows all the same");
        }
    }
}

/// `log` of a client, with the document of the other end.
fn with_other(log: &str, other: &str) -> String {
    let members = log.trim_end().strip_suffix('}').expect("a document");
    format!("{members}, \"server_output_json\": {other} }}\n")
}

#[test]
fn losses_are_unknown_if_the_totals_of_a_sender_have_more_than_its_receiver_counted() {
    let sender =
        |flow, sum| document(&[start("UDP"), intervals(&[&[sending(5, "0", "1", 39)]]), end(&[flow], sum, 39, 0)]);
    let received = intervals(&[&[receiving(5, "0", "1", 39, 0)]]);
    let receiver = |sum| document(&[start("UDP"), received.clone(), end(&[39], sum, 39, 0)]);
    let serving =
        |flow, sum| document(&[start("UDP"), intervals(&[&[sending(5, "0", "1", 39)]]), end(&[flow], sum, 0, 0)]);
    for (text, due) in [
        (sender(39, 39), None),
        (sender(38, 38), None),
        (sender(45, 45), Some(false)),
        (sender(45, 39), Some(false)),
        (sender(39, 45), Some(false)),
        (with_other(&receiver(39), &serving(39, 39)), None),
        (with_other(&receiver(45), &serving(39, 39)), Some(false)),
        (with_other(&receiver(39), &serving(45, 39)), Some(false)),
        (with_other(&receiver(39), &serving(39, 45)), Some(false)),
    ] {
        assert_eq!(states_losses(&text), due, "{text}");
        assert!(rows(&text).iter().any(|row| row.seen == offered(39).expect("a count")), "{text}");
    }
    // Those of each flow are compared too: one may have counted a duplicate.
    let sent = intervals(&[&[sending(5, "0", "1", 39), sending(7, "0", "1", 39)]]);
    let received = intervals(&[&[receiving(5, "0", "1", 45, 0), receiving(6, "0", "1", 39, 0)]]);
    let other = document(&[start("UDP"), received, end(&[45, 39], 0, 84, 0)]);
    for (flows, due) in [([45, 39], None), ([39, 45], Some(false))] {
        let log = document(&[start("UDP"), sent.clone(), end(&flows, 84, 84, 0)]);
        assert_eq!(states_losses(&with_other(&log, &other)), due, "{flows:?}");
    }
}

#[test]
fn losses_are_unknown_if_the_totals_of_a_receiver_differ_from_its_intervals() {
    let receiver = |lost, totals: &str| {
        let counted = receiving(5, "0", "1", 626, lost);
        let counts = intervals(&[&[lasting(&counted, "1.0", 1_000 * 626_u64.saturating_add_signed(-lost))]]);
        document(&[start("UDP"), counts, totals.to_owned()])
    };
    let both = |lost, totals: &str| {
        let sent = intervals(&[&[lasting(&sending(5, "0", "1", 626), "1.0", 626_000)]]);
        with_other(&document(&[start("UDP"), sent, end(&[626], 626, 626, 58)]), &receiver(lost, totals))
    };
    let usual = end(&[626], 626, 626, 58);
    let of_sum = usual.replace("\"lost_packets\": 58, \"sender\"", "\"lost_packets\": 50, \"sender\"");
    let of_flow = end(&[626], 626, 626, 50).replace("\"lost_packets\": 50, \"s", "\"lost_packets\": 58, \"s");
    let beyond = end(&[626], 626, 628, 58);
    for (lost, totals) in [(58, &usual), (0, &usual), (62, &usual), (58, &of_flow), (58, &of_sum), (58, &beyond)] {
        for text in [receiver(lost, totals), both(lost, totals)] {
            let (_, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(&text);
            let is_same = (lost, totals) == (58, &usual);
            let notes: &[&str] = if is_same { &[] } else { &[DIFFERENT] };
            assert_eq!(end.facts.states_losses, (!is_same).then_some(false), "{text}");
            assert_eq!(end.facts.notes, notes, "{text}");
            // With `--omit` they count from another 0.
            assert!(rows(&omitting(&text)).len() > 1, "{text}");
        }
    }
    let sent = document(&[start("UDP"), intervals(&[&[sending(5, "0", "1", 626)]]), of_flow]);
    assert_eq!(states_losses(&sent), Some(false));
}

#[test]
fn the_totals_of_a_sender_that_omits_say_what_is_missing_at_the_end_and_not_the_0_of_the_receiver() {
    let log = |packets, arrived: u64| {
        let sent = intervals(&[&[lasting(&sending(5, "0", "1", 201), "1.0", 201_000)]]);
        let bytes = format!("\"sum_received\": {{ \"bytes\": {}, ", arrived * 1_000);
        let totals = end(&[201], 201, packets, 0).replace("\"sum_received\": {", &bytes);
        omitting(&document(&[start("UDP"), sent, totals]))
    };
    for arrived in [190, 201, 204] {
        for (packets, due) in [(201, None), (200, Some(false)), (94, Some(false))] {
            assert_eq!(states_losses(&log(packets, arrived)), due, "{arrived} {packets}");
        }
    }
}

#[test]
fn the_losses_of_a_receiver_that_omits_are_unknown() {
    let received = intervals(&[&[lasting(&receiving(5, "0", "1", 300, 0), "1.0", 300_000)]]);
    let log = document(&[start("UDP"), received, end(&[300], 300, 300, 0)]);
    assert_eq!((states_losses(&log), states_losses(&omitting(&log))), (None, Some(false)));
}

#[test]
fn what_a_sender_sent_is_the_bytes_of_its_totals_if_a_receiver_wrote_them() {
    let received = intervals(&[&[receiving(5, "0", "1", 100, 40)]]);
    let totals = end(&[110], 110, 100, 40).replace("\"packets\": 110,", "\"bytes\": 108000, \"packets\": 110,");
    let text = document(&[start("UDP"), received, totals]);
    let sent = |text: &str| rows(text)[1].seen;
    assert_eq!(sent(&text), offered(108).expect("a count"));
    for other in [
        text.replacen("\"bytes\": 108000, \"packets\": 110,", "\"bytes\": 9000, \"packets\": 110,", 1),
        text.replace("\"bytes\": 108000", "\"bytes\": 108001"),
    ] {
        assert_eq!(sent(&other), offered(110).expect("a count"), "{other}");
    }
}

#[test]
fn a_log_of_a_sender_that_accepted_the_connection_is_refused() {
    let [start, sent, _] = one_flow();
    let accepting =
        start.replace("\"connected\"", "\"accepted_connection\": { \"host\": \"a\", \"port\": 1 }, \"connected\"");
    let fault = fault(&document(&[accepting, sent, end(&[2_499], 2_499, 0, 0)]));
    assert!(fault.what.contains("a server that sends") && fault.hint.is_some_and(|hint| hint.contains("-R -J")));
}

#[test]
fn the_document_of_the_other_end_has_its_intervals() {
    let sent = intervals(&[&[sending(5, "0", "1", 100), sending(7, "0", "1", 50)]]);
    let received = intervals(&[&[receiving(5, "0", "1.1", 99, 9), receiving(6, "0", "1.1", 50, 0)]]);
    let other = format!("\"server_output_json\": {}", document(&[start("UDP"), received, end(&[0, 0], 0, 149, 9)]));
    let rows = rows(&document(&[start("UDP"), sent.clone(), end(&[100, 50], 150, 149, 9), other]));
    let ends: Vec<_> = rows.iter().map(|row| (row.flow, row.end())).collect();
    let (sender, receiver) = (StreamEnd::Sender, StreamEnd::Receiver);
    assert_eq!(ends, [(0, sender), (1, sender), (0, receiver), (1, receiver)]);
    let refused = fault(&document(&[start("UDP"), sent, end(&[100, 50], 150, 149, 9)]));
    assert_eq!(refused.what, "the log does not say how many packets of each stream were lost");
}

#[test]
fn the_totals_of_each_flow_of_a_sender_have_the_losses_that_the_receiver_stated() {
    let sent = intervals(&[&[sending(5, "0", "1", 100), sending(7, "0", "1", 50)]]);
    let total = |socket, packets, lost| {
        format!(
            r#"{{ "udp": {{ "socket": {socket}, "start": 0, "end": 2, "bytes": 1.5e5, "packets": {packets}, "lost_packets": {lost} }} }}"#
        )
    };
    // Until 3.11 there is no `sum_received`.
    let log = |sum: &str| {
        let end = format!(r#""end": {{ "streams": [{}, {}]{sum} }}"#, total(5, 100, 9), total(7, 50, 0));
        document(&[start("UDP"), sent.clone(), end])
    };
    let sum =
        |packets| format!(r#", "sum_received": {{ "start": 0, "end": 2, "packets": {packets}, "lost_packets": 9 }}"#);
    for (text, due) in [(log(""), Some(false)), (log(&sum(149)), Some(false)), (log(&sum(150)), None)] {
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(&text);
        let received = [(0, counted(100, 9, None)), (1, counted(50, 0, None))];
        let received = received.map(|(flow, seen)| row(flow, 0, 2_000_000_000, seen.expect("counts")));
        assert_eq!((&block.intervals[2..], end.facts.states_losses), (&received[..], due), "{text}");
        assert_eq!(end.facts.notes.is_empty(), due.is_none(), "what is not known is said");
    }
    assert!(fault(&omitting(&log(""))).what.contains("`--omit` leaves out"));
}

#[test]
fn the_events_of_a_stream_are_a_document_and_several_runs_are_refused() {
    let members = one_flow();
    let data = |member: &String| member.split_once(':').expect("a member").1.trim().replace('\n', " ");
    let event = |name: &str, data: &str| format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
    let intervals: Vec<serde_json::Value> = serde_json::from_str(&data(&members[1])).expect("intervals");
    let intervals: String = intervals.iter().map(|interval| event("interval", &interval.to_string())).collect();
    let other = document(&members).replace('\n', " ");
    let run = [event("start", &data(&members[0])), intervals, event("end", &data(&members[2]))].concat();
    assert!(is_detected(&FORMAT, run.as_bytes()));
    for text in [&run, &format!("{run}{}", document(&members)), &format!("iperf3: a warning\n{}", document(&members))] {
        assert_eq!(rows(text), rows(&document(&members)), "{text}");
    }
    let both = format!("{}{}", event("server_output_json", &other), run);
    assert_eq!(fault(&both).what, "both ends of the log have the same role", "that of the other end is read");
    for text in [format!("{run}{run}"), document(&members).repeat(2)] {
        let fault = fault(&text);
        assert_eq!(fault.what, "the log has 2 runs of iperf3, one behind the other");
        assert!(fault.hint.is_some_and(|hint| hint.starts_with("import each by itself")));
    }
}

#[test]
fn omitted_intervals_are_left_out() {
    let text = document(&one_flow());
    assert_eq!(rows(&text.replacen("\"omitted\": false", "\"omitted\": true", 1)), rows(&text)[1..]);
}

/// `stream` with other `seconds` and `bytes`.
fn lasting(stream: &str, seconds: &str, bytes: u64) -> String {
    let (head, rest) = stream.split_once("\"seconds\"").expect("seconds");
    let (_, tail) = rest.split_once("\"bits_per_second\"").expect("a rate");
    format!("{head}\"seconds\": {seconds}, \"bytes\": {bytes}, \"bits_per_second\"{tail}")
}

#[test]
fn an_interval_in_which_omission_ends_begins_at_0_with_the_packets_of_its_bytes() {
    let later = |start, packets| lasting(&sending(5, start, "0.200077", packets), "0.100000", 5_000);
    let sent = |start, end_s| lasting(&sending(5, start, end_s, 3), "0.20011900067329407", 1_000);
    let totals = end(&[6], 6, 6, 0);
    for (start_s, end_s, end_ns) in [("0.100042", "0.100077", 100_077_000), ("0.100077", "0.100042", 100_042_000)] {
        let intervals = intervals(&[&[sent(start_s, end_s)], &[later(end_s, 5)]]);
        let rows = rows(&document(&[start("UDP"), intervals, totals.clone()]));
        assert_eq!(rows[0], row(0, 0, end_ns, offered(1).expect("a count")), "{start_s}");
        assert_eq!(rows[1], row(0, end_ns, 200_077_000, offered(5).expect("a count")), "{start_s}");
    }
    let first = intervals(&[&[sent("0.100042", "0.100077")]]);
    let odd = first.replace("\"bytes\": 1000", "\"bytes\": 1001");
    assert!(fault(&document(&[start("UDP"), odd, totals])).what.contains("bytes of whole packets"));
}

#[test]
fn a_receiver_has_what_it_lost_since_omission_ended() {
    let later = lasting(&receiving(5, "0.100077", "0.2", 10, 1), "0.099923", 9_000);
    let log = |packets, lost, arrived: u64, total, total_lost| {
        let first = lasting(&receiving(5, "0.1", "0.100077", packets, lost), "0.200077", arrived * 1_000);
        let intervals = intervals(&[&[first], std::slice::from_ref(&later)]);
        let text = document(&[start("UDP"), intervals.clone(), end(&[total], 0, total, total_lost)]);
        let other = document(&[start("UDP"), intervals, end(&[total], u64::MAX - 3, total, total_lost)]);
        let sent = intervals_sent();
        let own = end(&[total], total, total, total_lost);
        [text, document(&[start("UDP"), sent, own, format!("\"server_output_json\": {other}")])]
    };
    let span = |packets, lost| row(0, 0, 100_077_000, counted(packets, lost, None).expect("counts"));
    for (texts, packets, lost) in [
        (log(3, 0, 2, 12, 1), 2, 0),
        (log(5, 2, 3, 15, 3), 5, 2),
        (log(9, 3, 4, 16, 3), 6, 2),
        (log(9, 3, 4, 20, 3), 6, 2),
        (log(9, -1, 4, 13, 0), 3, -1),
    ] {
        for text in &texts {
            assert!(rows(text).contains(&span(packets, lost)), "{text}");
        }
    }
    for text in log(9, 3, 4, 17, 7) {
        assert!(fault(&text).what.contains("lost about the end of `--omit`"), "{text}");
    }
}

/// `text` of a run that omits its beginning.
fn omitting(text: &str) -> String {
    text.replace("\"omit\": 0", "\"omit\": 1")
}

#[test]
fn an_interval_that_is_longer_than_the_omission_has_the_packets_of_its_bytes() {
    let sent = intervals(&[
        &[lasting(&sending(5, "0", "5", 8_750), "5.0", 6_251_000)],
        &[lasting(&sending(5, "5", "6", 1_249), "1.0", 1_000)],
    ]);
    let totals =
        end(&[7_500], 7_500, 7_500, 0).replace("\"sum_received\": {", "\"sum_received\": { \"bytes\": 7500000,");
    let text = omitting(&document(&[start("UDP"), sent.clone(), totals.clone()]));
    let expected = [
        row(0, 0, 5_000_000_000, offered(6_251).expect("a count")),
        row(0, 5_000_000_000, 6_000_000_000, offered(1_249).expect("a count")),
        row(0, 0, 2_000_170_000, counted(7_500, 0, Some(3)).expect("counts")),
    ];
    assert_eq!(rows(&text), expected, "only the first one is divided");
    let received = |packets, lost, arrived: u64, total_lost| {
        let first = lasting(&receiving(5, "0", "2", packets, lost), "2.0", arrived * 1_000);
        let last = lasting(&receiving(5, "2", "3", 121_930, 57_213), "1.0", 64_717_000);
        let text = document(&[start("UDP"), intervals(&[&[first], &[last]]), end(&[9], 0, 9, total_lost)]);
        rows(&omitting(&text))[..2].to_vec()
    };
    let first = |packets, lost| row(0, 0, 2_000_000_000, counted(packets, lost, None).expect("counts"));
    assert!(received(262_136, 80_839, 118_242, 129_464).contains(&first(190_493, 72_251)), "losses of the totals");
    assert_eq!(received(2_500, 0, 1_250, 57_213)[0], first(1_250, 0));
    assert_eq!(received(2_500, 100, 2_400, 57_313)[0], first(2_500, 100), "omission ended before it");
}

#[test]
fn a_sender_that_omits_is_refused_if_any_packet_was_lost() {
    let log = |arrived: u64, packets, lost| {
        let sent = intervals(&[&[lasting(&sending(5, "0", "1", 99_985), "1.0", 99_985_000)]]);
        let bytes = format!("\"sum_received\": {{ \"bytes\": {}, ", arrived * 1_000);
        let totals = end(&[99_985], 99_985, packets, lost).replace("\"sum_received\": {", &bytes);
        omitting(&document(&[start("UDP"), sent, totals]))
    };
    for (arrived, packets, lost) in [(1_249, 1_250, 0), (1_251, 1_250, 0), (1_250, 1_250, -1)] {
        let seen = counted(arrived as i64, 0, Some(3)).expect("counts");
        assert_eq!(rows(&log(arrived, packets, lost))[1].seen, seen, "{arrived} {packets} {lost}");
    }
    let text = log(7_500, 7_500, 0);
    for other in [
        log(7_278, 7_500, 222),
        log(9_998, 10_000, 2),
        log(1_234, 1_351, 116),
        log(1_250, 1_250, 751),
        log(1_900, 2_000, 98),
        text.replace("7500000", "7500001"),
        text.replace("\"bytes\": 7500000,", ""),
    ] {
        let fault = fault(&other);
        assert!(fault.what.contains("`--omit` leaves out"), "{fault:?}");
        assert!(fault.hint.is_some_and(|hint| hint.contains("--get-server-output")));
    }
}

fn intervals_sent() -> String {
    intervals(&[&[sending(5, "0", "0.2", 16)]])
}

#[test]
fn what_is_not_a_whole_run_over_udp_in_one_direction_is_refused() {
    let [start, sent, totals] = one_flow();
    let both = intervals(&[&[sending(5, "0", "1", 100), receiving(7, "0", "1", 50, 0)]]);
    let spans = |start_s, end_s| intervals(&[&[receiving(5, start_s, end_s, 10, 0)]]);
    let of = |packets, lost| intervals(&[&[receiving(5, "0", "1", packets, lost)]]);
    let error = "\"intervals\": [], \"end\": {}, \"error\": \"unable to connect to \\u001b server\"";
    let sum = totals.replace("\"end\": 2.00017,", "\"end\": 2e18,");
    let usual = &start;
    for (members, what) in [
        ([usual, &sent.replace("\"packets\": 1250, ", ""), &totals], TCP),
        ([usual, &both, &totals], "the log has streams in both directions, which are different measurements"),
        (
            [&error.to_owned(), &"\"x\": 1".into(), &"\"y\": 1".into()],
            "iperf3 ended with an error: unable to connect to \\u{1b} server",
        ),
        ([usual, &"\"x\": 1".into(), &totals], "the log has no intervals"),
        ([usual, &of(1, 4), &totals], "-3 packets in an interval"),
        ([usual, &of(TOTAL_MAX + 1, 0), &totals], "1099511627777 packets in an interval"),
        (
            [usual, &of(1, 0).replace("\"lost_packets\": 0,", ""), &totals],
            "an interval of a receiver without `lost_packets`",
        ),
        ([&start.replace("\"blksize\": 1000, ", ""), &sent, &totals], "the log does not state the size of its packets"),
        ([&start.replace("1000", "0"), &sent, &totals], "the log does not state the size of its packets"),
        ([usual, &sent, &"\"end\": {}".into()], "the log has no totals: it was cut short"),
        ([usual, &spans("2", "1"), &totals], "an interval from 2 s to 1 s"),
        ([usual, &spans("-1", "1"), &totals], "an interval from -1 s to 1 s"),
        ([usual, &spans("0", "1e9"), &totals], "an interval from 0 s to 1000000000 s"),
        ([usual, &sent, &sum], "an interval from 0 s to 2000000000000000000 s"),
    ] {
        assert_eq!(fault(&document(&members.map(Clone::clone))).what, what);
    }
    let late = document(&one_flow()).replace("\"timesecs\": 1795781773", "\"timesecs\": 5000000000");
    let (_, end) = read(&FORMAT, &LogOptions::default(), false, late.as_bytes()).expect("a log");
    assert_eq!(end.facts.started_ns, None, "beyond 146 years");
    let text = document(&one_flow());
    let bad = fault(&text.replace("\"packets\": 1250", "\"packets\": \"x\""));
    assert_eq!((bad.line, bad.column), (Some(8), Some(47)), "{bad:?}");
    for length in (2..text.len() - 2).step_by(7) {
        assert!(fault(&text[..length]).line.is_some(), "{length}");
    }
}
