//! Tests of the parser of JSON logs of iperf3.

use super::super::testing::{is_detected, read};
use super::*;

const BLOCK: i64 = 1_000;

/// Socket, start, end and `seconds` of an interval, its packets, those that are lost and those of its bytes.
#[derive(Clone, Copy)]
struct Counts(i64, f64, f64, f64, i64, i64, i64);

/// An interval without omission.
fn at(socket: i64, start: f64, end: f64, packets: i64, lost: i64) -> Counts {
    Counts(socket, start, end, end - start, packets, lost, packets - lost)
}

/// A log. Its totals are of 2.000112 s at the sender and 2.00017 s at the receiver.
#[derive(Clone, Default)]
struct Log {
    sends: bool,
    has_accepted: bool,
    omits: bool,
    intervals: Vec<Counts>,
    /// Packets and lost ones of each flow.
    flows: Vec<(i64, i64)>,
    /// Packets of the sum of the sender.
    sent: Option<i64>,
    /// Packets of the sum of the receiver, and those that are lost.
    received: Option<(i64, i64)>,
    /// Packets of the bytes of the totals.
    arrived: Option<i64>,
    other: Option<Box<Log>>,
}

impl Log {
    /// With one interval of one flow, in which so many were sent and received.
    fn new(sends: bool, sent: i64, received: i64) -> Log {
        let intervals = vec![at(5, 0.0, 1.0, if sends { sent } else { received }, 0)];
        let (flows, sent, received) = (vec![(sent, 0)], Some(sent), Some((received, 0)));
        Log { sends, intervals, flows, sent, received, ..Log::default() }
    }

    fn with(self, other: Log) -> Log {
        Log { other: Some(Box::new(other)), ..self }
    }

    fn members(&self) -> [String; 3] {
        let accepted = if self.has_accepted { "\"accepted_connection\": { \"port\": 1 }," } else { "" };
        let start = format!(
            r#""start": {{ {accepted} "version": "iperf 3.12", "timestamp": {{ "timesecs": 1795781773 }}, "sock_bufsize": 0, "sock_bufsize": 0,
  "test_start": {{ "protocol": "UDP", "num_streams": 2, "blksize": {BLOCK}, "omit": {} }} }}"#,
            u8::from(self.omits)
        );
        let intervals = self.intervals.iter().map(|Counts(socket, start, end, seconds, packets, lost, arrived)| {
            let lost = if self.sends { String::new() } else { format!("\"lost_packets\": {lost},") };
            format!(
                r#"{{ "streams": [{{ "socket": {socket}, "start": {start}, "end": {end}, "seconds": {seconds}, "bytes": {},
  {lost} "packets": {packets}, "omitted": false, "sender": {} }}], "sum": {{ "packets": 1 }} }}"#,
                arrived * BLOCK,
                self.sends
            )
        });
        let bytes = self.arrived.map(|packets| format!("\"bytes\": {},", packets * BLOCK)).unwrap_or_default();
        let total = |socket, end, packets, lost| {
            format!(
                r#"{{ "socket": {socket}, "start": 0, "end": {end}, {bytes} "packets": {packets}, "lost_packets": {lost}, "out_of_order": 3 }}"#
            )
        };
        let flows = self.flows.iter().zip([5, 7]);
        let flows: Vec<_> = flows
            .map(|((sent, lost), socket)| format!("{{ \"udp\": {} }}", total(socket, 2.000112, *sent, *lost)))
            .collect();
        let sent = self.sent.map(|sent| format!(", \"sum_sent\": {}", total(0, 2.000112, sent, 0)));
        let received =
            self.received.map(|(packets, lost)| format!(", \"sum_received\": {}", total(0, 2.00017, packets, lost)));
        let end =
            format!("\"streams\": [{}]{}{}", flows.join(", "), sent.unwrap_or_default(), received.unwrap_or_default());
        let other = self.other.as_ref().map(|other| format!(", \"server_output_json\": {}", other.text()));
        let intervals: Vec<_> = intervals.collect();
        [
            start,
            format!("\"intervals\": [{}]", intervals.join(",\n")),
            format!("\"end\": {{ {end} }}{}", other.unwrap_or_default()),
        ]
    }

    fn text(&self) -> String {
        format!("{{\n{}\n}}\n", self.members().join(",\n"))
    }

    fn rows(&self) -> Vec<StreamInterval> {
        rows(&self.text())
    }

    /// Whether its losses are known, and what it notes.
    fn is_known(&self) -> (bool, Vec<String>) {
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, self.text().as_bytes()).expect("a log");
        (end.facts.states_losses.is_none(), end.facts.notes)
    }
}

fn rows(text: &str) -> Vec<StreamInterval> {
    read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text).0.intervals
}

fn fault(text: &str) -> LogFault {
    read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text)
}

fn row(flow: u16, start_ns: i64, end_ns: i64, seen: Result<IntervalCounts, LogFault>) -> StreamInterval {
    StreamInterval { flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen: seen.expect("counts") }
}

#[test]
fn an_end_has_its_intervals_and_the_totals_of_the_other() {
    let (first, second) = (at(5, 0.0, 1.000104, 1_249, 0), at(5, 1.000104, 2.000106, 1_250, 0));
    let sender = Log {
        intervals: vec![first, second],
        flows: vec![(2_499, 20)],
        received: Some((2_497, 20)),
        ..Log::new(true, 2_499, 0)
    };
    let text = sender.text();
    let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(&text);
    let sent = [row(0, 0, 1_000_104_000, offered(1_249)), row(0, 1_000_104_000, 2_000_106_000, offered(1_250))];
    let received = row(0, 0, 2_000_170_000, counted(2_497, 20, Some(3)));
    assert_eq!(block.intervals, [sent[0], sent[1], received]);
    let (version, started_ns) = (Some("3.12".into()), Some(1_795_781_773_000_000_000));
    let states_losses = Some(false);
    assert_eq!(
        end.facts,
        LogFacts { version, started_ns, states_losses, ..LogFacts::of("iperf3") },
        "2 more were sent"
    );
    assert!(is_detected(&FORMAT, text.as_bytes()));
    let [start, intervals, end] = sender.members();
    assert_eq!(
        rows(&format!("{{{end}, {intervals}, {start}}}").replace('\n', "\r\n")),
        block.intervals,
        "in any order"
    );
    assert_eq!(rows(&text.replacen("\"omitted\": false", "\"omitted\": true", 1)), block.intervals[1..]);

    let intervals = vec![at(5, 0.0, 1.0, 100, 40), at(7, 0.0, 1.5, 50, -2)];
    let receiver =
        Log { intervals, flows: vec![(110, 40), (50, -2)], received: Some((150, 38)), ..Log::new(false, 160, 0) };
    let counts = [row(0, 0, 1_000_000_000, counted(100, 40, None)), row(1, 0, 1_500_000_000, counted(50, -2, None))];
    let of = |flow, packets| row(flow, 0, 2_000_112_000, offered(packets));
    assert_eq!(receiver.rows(), [counts[0], counts[1], of(0, 110), of(1, 50)]);
    assert!(
        !receiver.is_known().0
            && Log { flows: vec![(100, 40), (50, -2)], sent: Some(150), ..receiver.clone() }.is_known().0
    );
    // iperf3 writes a number near 2^64 for a sum that it does not know.
    for log in [
        Log { sent: Some(0), ..receiver.clone() },
        Log { sent: Some(i64::MAX), ..receiver.clone() },
        Log { has_accepted: true, ..receiver.clone() },
    ] {
        assert_eq!((log.rows(), log.is_known().0), (counts.to_vec(), false), "a receiver alone");
    }
    let of_bytes = |arrived| Log { arrived: Some(arrived), ..Log::new(false, 110, 100) }.rows()[1].seen;
    assert_eq!(of_bytes(108), offered(108).expect("the packets of bytes that a receiver wrote"));
}

#[test]
fn losses_are_unknown_if_the_sender_counted_more_than_its_receiver() {
    let served = |packets| Log { flows: vec![(packets, 0)], sent: Some(0), ..Log::new(false, packets, packets) };
    for (sent, received) in [(300, 300), (300, 299), (300, 0), (300, 301)] {
        let both = Log::new(true, sent, received).with(served(received));
        for log in [Log::new(true, sent, received), Log::new(false, sent, received), both] {
            assert_eq!((log.is_known().0, log.rows().len()), (received >= sent, 2), "{sent} {received}");
        }
    }
    let sender = Log::new(true, 39, 39);
    let receiver = |sent| Log { sent: Some(sent), ..Log::new(false, 39, 39) };
    let serving =
        |flow, sum| Log { flows: vec![(flow, 0)], sent: Some(sum), received: Some((0, 0)), ..Log::new(true, 39, 0) };
    for (log, is_known) in [
        (Log { flows: vec![(45, 0)], ..sender.clone() }, false),
        (Log { sent: Some(45), ..sender }, false),
        (receiver(39).with(serving(39, 39)), true),
        (receiver(45).with(serving(39, 39)), false),
        (receiver(39).with(serving(45, 39)), false),
        (receiver(39).with(serving(39, 45)), false),
    ] {
        assert_eq!(log.is_known().0, is_known, "{}", log.text());
    }
}

#[test]
fn losses_are_unknown_if_the_totals_of_a_receiver_differ_from_its_intervals() {
    let receiver = |lost, of_flow, of_sum| Log {
        intervals: vec![at(5, 0.0, 1.0, 626, lost)],
        flows: vec![(626, of_flow)],
        received: Some(of_sum),
        ..Log::new(false, 626, 626)
    };
    let sender = Log { flows: vec![(626, 58)], received: Some((626, 58)), ..Log::new(true, 626, 626) };
    for (log, is_same) in [
        (receiver(58, 58, (626, 58)), true),
        (receiver(0, 58, (626, 58)), false),
        (receiver(58, 50, (626, 58)), false),
        (receiver(58, 58, (626, 50)), false),
        (receiver(58, 58, (628, 58)), false),
    ] {
        for log in [log.clone(), sender.clone().with(log)] {
            let notes: Vec<_> = (!is_same).then(|| DIFFERENT.to_owned()).into_iter().collect();
            assert_eq!(log.is_known(), (is_same, notes), "{}", log.text());
        }
    }
    assert!(!Log { flows: vec![(626, 50)], ..sender }.is_known().0, "its own totals contradict each other");
}

#[test]
fn several_flows_and_logs_before_3_12_have_the_losses_that_the_receiver_stated() {
    let intervals = vec![at(5, 0.0, 1.0, 100, 0), at(7, 0.0, 1.0, 50, 0)];
    let flows = vec![(100, 9), (50, 0)];
    let two = |received| Log { intervals: intervals.clone(), flows: flows.clone(), received, ..Log::new(true, 150, 0) };
    let counts =
        [row(0, 0, 2_000_112_000, counted(100, 9, Some(3))), row(1, 0, 2_000_112_000, counted(50, 0, Some(3)))];
    for (received, is_known) in [(None, false), (Some((149, 9)), false), (Some((150, 9)), true)] {
        let (found, notes) = two(received).is_known();
        assert_eq!((&two(received).rows()[2..], found, notes.is_empty()), (&counts[..], is_known, is_known));
    }
    let old = Log { flows: vec![(100, 2)], received: None, sent: None, ..Log::new(true, 100, 0) };
    assert_eq!((old.rows()[1].seen, old.is_known().0), (counted(100, 2, Some(3)).expect("counts"), false));
    assert!(fault(&Log { omits: true, ..old }.text()).what.contains("`--omit` leaves out"));
    let other = Log {
        intervals: vec![at(5, 0.0, 1.1, 100, 9), at(6, 0.0, 1.1, 50, 0)],
        flows: Vec::new(),
        ..Log::new(false, 0, 0)
    };
    let other = Log { received: None, sent: None, ..other };
    let ends: Vec<_> = two(Some((150, 9))).with(other).rows().iter().map(|row| (row.flow, row.end())).collect();
    let (sender, receiver) = (StreamEnd::Sender, StreamEnd::Receiver);
    assert_eq!(ends, [(0, sender), (1, sender), (0, receiver), (1, receiver)]);
}

#[test]
fn what_is_omitted_is_left_out() {
    let seconds = 0.20011900067329407;
    for (start, end, end_ns) in [(0.100042, 0.100077, 100_077_000), (0.100077, 0.100042, 100_042_000)] {
        let intervals = vec![Counts(5, start, end, seconds, 3, 0, 1), at(5, end, 0.200077, 5, 0)];
        let rows = Log { intervals, ..Log::new(true, 6, 6) }.rows();
        assert_eq!(rows[..2], [row(0, 0, end_ns, offered(1)), row(0, end_ns, 200_077_000, offered(5))], "{start}");
    }
    // Longer than the omission: only the first one is divided.
    let intervals = vec![Counts(5, 0.0, 5.0, 5.0, 8_750, 0, 6_251), Counts(5, 5.0, 6.0, 1.0, 1_249, 0, 1)];
    let log = Log { omits: true, intervals, arrived: Some(7_500), ..Log::new(true, 7_500, 7_500) };
    let sent = [row(0, 0, 5_000_000_000, offered(6_251)), row(0, 5_000_000_000, 6_000_000_000, offered(1_249))];
    assert_eq!(log.rows(), [sent[0], sent[1], row(0, 0, 2_000_170_000, counted(7_500, 0, Some(3)))]);
    assert!(
        fault(&log.text().replace("\"bytes\": 6251000", "\"bytes\": 6251001")).what.contains("bytes of whole packets")
    );

    let receiver = |packets, lost, arrived, total_lost| Log {
        intervals: vec![Counts(5, 0.1, 0.100077, 0.200077, packets, lost, arrived), at(5, 0.100077, 0.2, 10, 1)],
        flows: vec![(9, total_lost)],
        received: Some((9, total_lost)),
        ..Log::new(false, 0, 0)
    };
    for (log, packets, lost) in [
        (receiver(3, 0, 2, 1), 2, 0),
        (receiver(5, 2, 3, 3), 5, 2),
        (receiver(9, 3, 4, 3), 6, 2),
        (receiver(9, -1, 4, 0), 3, -1),
    ] {
        assert_eq!(log.rows()[0], row(0, 0, 100_077_000, counted(packets, lost, None)), "{packets} {lost}");
        let both = Log { sent: None, ..Log::new(true, 16, 16) }.with(log.clone());
        assert_eq!(both.rows()[1], log.rows()[0], "in the document of the other end");
    }
    assert!(fault(&receiver(9, 3, 4, 7).text()).what.contains("lost about the end of `--omit`"));

    let sender = |arrived, packets, lost| Log {
        omits: true,
        intervals: vec![at(5, 0.0, 1.0, 201, 0)],
        arrived: Some(arrived),
        received: Some((packets, lost)),
        ..Log::new(true, 201, 0)
    };
    for (arrived, packets, lost, is_known) in
        [(190, 201, 0, true), (204, 201, -1, true), (201, 200, 0, false), (190, 94, 0, false)]
    {
        let log = sender(arrived, packets, lost);
        assert_eq!(log.rows()[1].seen, counted(arrived, 0, Some(3)).expect("counts"));
        assert_eq!(log.is_known().0, is_known, "{arrived} {packets}: packets that were sent since 0");
    }
    for log in [sender(190, 201, 11), sender(201, 201, 1), Log { arrived: None, ..sender(201, 201, 0) }] {
        let fault = fault(&log.text());
        assert!(fault.what.contains("`--omit` leaves out") && fault.hint.is_some_and(|hint| hint.contains(BOTH_ENDS)));
    }
    assert!(!Log { omits: true, ..Log::new(false, 300, 300) }.is_known().0, "of a receiver that omits");
}

#[test]
fn the_events_of_a_stream_are_a_document_and_several_runs_are_refused() {
    let log = Log::new(true, 39, 39);
    let text = log.text();
    let data = |member: &String| member.split_once(':').expect("a member").1.trim().replace('\n', " ");
    let event = |name: &str, data: &str| format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
    let [start, intervals, end] = log.members().map(|member| data(&member));
    let interval = intervals.trim_matches(['[', ']']);
    let run = [event("start", &start), event("interval", interval), event("end", &end)].concat();
    assert!(is_detected(&FORMAT, run.as_bytes()));
    for same in [&run, &format!("{run}{text}"), &format!("iperf3: a warning\n{text}")] {
        assert_eq!(rows(same), log.rows(), "{same}");
    }
    let both = event("server_output_json", &text.replace('\n', " "));
    assert_eq!(fault(&format!("{both}{run}")).what, "both ends of the log have the same role", "it is read");
    for text in [run.repeat(2), text.repeat(2)] {
        let fault = fault(&text);
        assert_eq!(fault.what, "the log has 2 runs of iperf3, one behind the other");
        assert!(fault.hint.is_some_and(|hint| hint.starts_with("import each by itself")));
    }
}

#[test]
fn what_is_not_a_whole_run_over_udp_in_one_direction_is_refused() {
    let log = Log::new(false, 39, 39);
    let text = log.text();
    let of = |counts| Log { intervals: vec![counts], ..log.clone() }.text();
    for (text, what) in [
        (
            text.replace("\"packets\": 39, \"omitted\"", "\"omitted\""),
            "intervals of TCP and SCTP count bytes, not packets: `iperf3 -u`",
        ),
        (
            text.replace("\"lost_packets\": 0, \"packets\": 39, \"om", "\"packets\": 39, \"om"),
            "an interval of a receiver without `lost_packets`",
        ),
        (
            Log { intervals: vec![at(5, 0.0, 1.0, 9, 0); 2], ..log.clone() }.text().replacen(
                "\"sender\": false",
                "\"sender\": true",
                1,
            ),
            "the log has streams in both directions, which are different measurements",
        ),
        ("{ \"error\": \"no \\u001b server\" }".into(), "iperf3 ended with an error: no \\u{1b} server"),
        (text.replace("\"intervals\"", "\"x\""), "the log has no intervals"),
        (text.replace("\"end\": {", "\"x\": {"), "the log has no totals: it was cut short"),
        (text.replace("\"blksize\": 1000,", ""), "the log does not state the size of its packets"),
        (text.replace("\"blksize\": 1000,", "\"blksize\": 0,"), "the log does not state the size of its packets"),
        (of(at(5, 0.0, 1.0, 1, 4)), "-3 packets in an interval"),
        (of(at(5, 0.0, 1.0, TOTAL_MAX as i64 + 1, 0)), "1099511627777 packets in an interval"),
        (of(at(5, 2.0, 1.0, 1, 0)), "an interval from 2 s to 1 s"),
        (of(at(5, -1.0, 1.0, 1, 0)), "an interval from -1 s to 1 s"),
        (of(at(5, 0.0, 1e9, 1, 0)), "an interval from 0 s to 1000000000 s"),
        (
            Log { has_accepted: true, ..Log::new(true, 9, 9) }.text(),
            "the log is of a server that sends: it does not say what arrived",
        ),
        (
            Log::new(true, 9, 9).text().replace("\"lost_packets\": 0,", "").replace("sum_r", "x"),
            "the log does not say how many packets of each stream were lost",
        ),
    ] {
        assert_eq!(fault(&text).what, what, "{text}");
    }
    let bad = fault(&text.replace("\"packets\": 39, \"o", "\"packets\": \"x\", \"o"));
    assert_eq!((bad.line, bad.column), (Some(5), Some(35)), "{bad:?}");
    for length in (2..text.len() - 2).step_by(7) {
        assert!(fault(&text[..length]).line.is_some(), "{length}");
    }
}
