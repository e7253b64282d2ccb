//! Tests of the parser of JSON logs of iperf3.

use super::super::testing::{is_detected, read};
use super::*;

const BLOCK: i64 = 1_000;

/// Socket, start and end of an interval, its packets and those that are lost.
type Counts = (i64, f64, f64, i64, i64);

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
    other: Option<Box<Log>>,
}

impl Log {
    /// With one interval of one flow, in which so many were sent and received.
    fn new(sends: bool, sent: i64, received: i64) -> Log {
        let intervals = vec![(5, 0.0, 1.0, if sends { sent } else { received }, 0)];
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
        let intervals = self.intervals.iter().map(|(socket, start, end, packets, lost)| {
            let lost = if self.sends { String::new() } else { format!("\"lost_packets\": {lost},") };
            format!(
                r#"{{ "streams": [{{ "socket": {socket}, "start": {start}, "end": {end},
  {lost} "packets": {packets}, "omitted": false, "sender": {} }}], "sum": {{ "packets": 1 }} }}"#,
                self.sends
            )
        });
        let total = |socket, end, packets, lost| {
            format!(
                r#"{{ "socket": {socket}, "start": 0, "end": {end}, "packets": {packets}, "lost_packets": {lost}, "out_of_order": 3 }}"#
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
        let (_, end) = read("iperf3", &LogOptions::default(), false, self.text().as_bytes()).expect("a log");
        (end.facts.states_losses.is_none(), end.facts.notes)
    }
}

fn rows(text: &str) -> Vec<StreamInterval> {
    read("iperf3", &LogOptions::default(), false, text.as_bytes()).expect(text).0.intervals
}

fn fault(text: &str) -> LogFault {
    read("iperf3", &LogOptions::default(), true, text.as_bytes()).expect_err(text)
}

fn row(flow: u16, start_ns: i64, end_ns: i64, seen: Result<IntervalCounts, LogFault>) -> StreamInterval {
    StreamInterval { flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen: seen.expect("counts") }
}

#[test]
fn an_end_has_its_intervals_and_the_totals_of_the_other() {
    let (first, second) = ((5, 0.0, 1.000104, 1_249, 0), (5, 1.000104, 2.000106, 1_250, 0));
    let sender = Log {
        intervals: vec![first, second],
        flows: vec![(2_499, 20)],
        received: Some((2_497, 20)),
        ..Log::new(true, 2_499, 0)
    };
    let text = sender.text();
    let (block, end) = read("iperf3", &LogOptions::default(), false, text.as_bytes()).expect(&text);
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
    assert!(is_detected("iperf3", text.as_bytes()));
    let [start, intervals, end] = sender.members();
    assert_eq!(
        rows(&format!("{{{end}, {intervals}, {start}}}").replace('\n', "\r\n")),
        block.intervals,
        "in any order"
    );
    assert_eq!(rows(&text.replacen("\"omitted\": false", "\"omitted\": true", 1)), block.intervals[1..]);

    let intervals = vec![(5, 0.0, 1.0, 100, 40), (7, 0.0, 1.5, 50, -2)];
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
}

#[test]
fn what_is_omitted_is_left_out_and_losses_are_unknown() {
    let intervals = vec![(5, 0.1, 0.2, 3, 2), (5, 0.2, 0.3, 10, 1)];
    let receiver = Log { omits: true, intervals, ..Log::new(false, 13, 0) };
    let sender = Log { omits: true, ..receiver.clone() };
    let sender = Log { sends: true, ..sender };
    let kept = row(0, 200_000_000, 300_000_000, counted(10, 1, None));
    assert_eq!((receiver.rows(), sender.clone().with(receiver.clone()).rows()), (vec![kept], vec![kept]));
    assert_eq!(receiver.is_known(), (false, vec![OMITTED.to_owned()]));
    assert!(fault(&sender.text()).hint.is_some_and(|hint| hint.contains(BOTH_ENDS)));
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
    assert!(is_detected("iperf3", run.as_bytes()));
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
        ("{ \"error\": \"no \\u001b server\" }".into(), "iperf3 ended with an error: no \\u{1b} server"),
        (text.replace("\"intervals\"", "\"x\""), "the log has no intervals"),
        (text.replace("\"end\": {", "\"x\": {"), "the log has no totals: it was cut short"),
        (text.replace("\"blksize\": 1000,", "\"blksize\": 0,"), "the log does not state the size of its packets"),
        (of((5, 0.0, 1.0, 1, 4)), "-3 packets in an interval"),
        (of((5, 0.0, 1.0, TOTAL_MAX as i64 + 1, 0)), "1099511627777 packets in an interval"),
        (of((5, 2.0, 1.0, 1, 0)), "an interval from 2 s to 1 s"),
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
}
