//! iperf3: the JSON of `iperf3 -u -J` (3.7 to 3.21). A UDP stream is a flow; the flows are numbered in the order of the log.
//!
//! The intervals of the end that wrote the log are rows; those of its other end are rows if the log contains its document,
//! for which that end runs with `-J` and the writer with `--get-server-output`. Each end counts time on its own clock,
//! from 0. In an interval of a receiver, `packets` is by how much the highest sequence number rose: the packets that were
//! sent in it, lost ones included; what was delivered is `packets` less `lost_packets`. A late packet is taken from
//! `lost_packets`, which may be negative; a duplicate counts as a late packet. Intervals that `--omit` leaves out of the
//! results are left out here too: their time begins anew.
//!
//! An end without intervals has its totals as one interval: of a receiver with one flow `sum_received`, of a sender the
//! `packets` of each stream. The totals of several flows at a receiver do not say which flow lost the packets after the
//! last one that arrived: such a log is refused, as are both directions in one log, and TCP, whose intervals count bytes.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::field::{TOTAL_MAX, bounded};
use super::json::{self, Stopped, each};
use super::{LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{IntervalCounts, LogFacts, StreamEnd, StreamInterval};
use crate::plan::Kind;
use crate::probe::Phase;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "iperf3",
    title: "JSON of iperf3",
    rows: Kind::Stream,
    is_generic: false,
    options: &[],
    states_losses: true,
    detects,
    reader: LogReader::Document(read),
};

/// The most flows of a log.
const FLOWS_MAX: usize = 1_024;
/// Intervals end before this one, which is after 31 years.
const SECONDS_END: f64 = 1e9;
/// The most characters of an error that a message shows.
const SHOWN: usize = 200;
const TCP: &str = "TCP intervals count bytes, not packets";

fn detects(head: &LogHead<'_>) -> bool {
    let has = |key: &str| memchr::memmem::find(head.bytes, key.as_bytes()).is_some();
    head.bytes.trim_ascii_start().starts_with(b"{")
        && (has("\"iperf 3") || (has("\"intervals\"") && has("\"bits_per_second\"")))
}

fn read(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut reading = IperfReading {
        rows,
        facts: LogFacts::of("iperf3"),
        written: EndIntervals::default(),
        other: EndIntervals::default(),
        totals: None,
        size_bytes: None,
        stopped: None,
    };
    json::read(input, &mut reading).map_err(|fault| match reading.stopped.take() {
        Some(stopped) => LogFault { line: fault.line, ..stopped },
        None => fault,
    })?;
    reading.finish()
}

/// The reading of a document.
struct IperfReading<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    facts: LogFacts,
    /// Those of the end that wrote the log.
    written: EndIntervals,
    /// Those of the document of its other end, within the log.
    other: EndIntervals,
    totals: Option<Totals>,
    /// Payload of a packet.
    size_bytes: Option<u32>,
    /// Why the log was refused.
    stopped: Option<LogFault>,
}

/// What is known about the intervals of an end.
#[derive(Debug, Default)]
struct EndIntervals {
    /// The sockets of its flows.
    sockets: Vec<i64>,
    /// Whether it sends or receives; `None` before its first interval.
    end: Option<StreamEnd>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Start,
    Intervals,
    End,
    Error,
    #[serde(rename = "server_output_json")]
    Other,
    /// Of a line of `--json-stream`.
    Event,
    #[serde(other)]
    Unused,
}

#[derive(Deserialize)]
struct Start {
    version: Option<String>,
    timestamp: Option<Timestamp>,
    test_start: Option<TestStart>,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: Option<i64>,
}

#[derive(Deserialize)]
struct TestStart {
    protocol: Option<String>,
    /// Payload of a packet.
    blksize: Option<u32>,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default, deserialize_with = "json::few")]
    streams: Vec<StreamCounts>,
}

/// A stream in an interval.
#[derive(Deserialize)]
struct StreamCounts {
    socket: i64,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    packets: Option<i64>,
    lost_packets: Option<i64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

/// The totals of the run.
#[derive(Deserialize)]
struct Totals {
    #[serde(default, deserialize_with = "json::few")]
    streams: Vec<StreamTotal>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamTotal {
    udp: Option<FlowTotal>,
}

#[derive(Deserialize)]
struct FlowTotal {
    packets: i64,
    out_of_order: Option<u32>,
}

#[derive(Deserialize)]
struct Sum {
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    packets: Option<i64>,
    lost_packets: Option<i64>,
}

/// What an end counted in a span of time.
struct Span {
    flow: u16,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
}

impl Span {
    /// The interval with `seen`.
    ///
    /// # Errors
    /// It ends before it begins, or an end of it is not a time of a run.
    fn with(&self, seen: IntervalCounts) -> Result<StreamInterval, LogFault> {
        let is_time = |seconds: f64| (0.0..SECONDS_END).contains(&seconds);
        if !(is_time(self.start) && is_time(self.end) && self.start <= self.end) {
            return Err(LogFault::whole(format!("an interval from {} s to {} s", self.start, self.end)));
        }
        let [start_ns, end_ns] = [self.start, self.end].map(nanos);
        Ok(StreamInterval { flow: self.flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen })
    }
}

/// `seconds`, which are below 10^9 and have at most 6 decimal places.
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// What a sender counted.
fn offered(packets: i64) -> Result<IntervalCounts, LogFault> {
    Ok(IntervalCounts::Offered { packets: count(packets)?, refused: 0, skipped: 0 })
}

/// What a receiver counted: the packets that were sent until its last one, and those of them that are missing.
fn counted(packets: i64, lost: i64, late: Option<u32>) -> Result<IntervalCounts, LogFault> {
    Ok(IntervalCounts::Counted {
        polled: count(packets)?,
        delivered: count(packets.saturating_sub(lost))?,
        reordered: late.unwrap_or(0),
        duplicates: 0,
        outside_window: 0,
        socket_drops: None,
    })
}

fn count(packets: i64) -> Result<u64, LogFault> {
    let count = u64::try_from(packets).ok().filter(|count| *count <= TOTAL_MAX);
    count.ok_or_else(|| LogFault::whole(format!("{packets} packets in an interval")))
}

impl EndIntervals {
    /// The number of the flow of `counts`, whose end must be that of the intervals before.
    fn flow(&mut self, counts: &StreamCounts) -> Result<u16, LogFault> {
        let end = match counts.sender.unwrap_or(counts.lost_packets.is_none()) {
            true => StreamEnd::Sender,
            false => StreamEnd::Receiver,
        };
        if *self.end.get_or_insert(end) != end {
            return Err(LogFault::whole("the log has streams in both directions, which are different measurements")
                .hint("measure each direction in a run of its own, without `--bidir`"));
        }
        let flow = self.sockets.iter().position(|socket| *socket == counts.socket).unwrap_or_else(|| {
            self.sockets.push(counts.socket);
            self.sockets.len() - 1
        });
        match u16::try_from(flow) {
            Ok(number) if flow < FLOWS_MAX => Ok(number),
            _ => Err(LogFault::whole(format!("the log has more than {FLOWS_MAX} streams"))),
        }
    }

    /// The interval of `counts`; `None` if it does not count.
    fn interval(&mut self, counts: &StreamCounts) -> Result<Option<StreamInterval>, LogFault> {
        let packets = counts.packets.ok_or_else(|| LogFault::whole(TCP))?;
        let flow = self.flow(counts)?;
        if counts.omitted {
            return Ok(None);
        }
        let seen = match self.end {
            Some(StreamEnd::Sender) => offered(packets)?,
            _ => counted(packets, counts.lost_packets.unwrap_or(0), None)?,
        };
        Span { flow, start: counts.start, end: counts.end }.with(seen).map(Some)
    }
}

impl IperfReading<'_, '_> {
    /// Keeps `fault`, and stops.
    fn stop(&mut self, fault: LogFault) -> Stopped {
        self.stopped = Some(fault);
        Stopped
    }

    fn start(&mut self, start: Start) -> Result<(), LogFault> {
        let version = start.version.map(|version| version.trim_start_matches("iperf ").to_owned());
        self.facts.version = version.or(self.facts.version.take());
        let began = start.timestamp.and_then(|timestamp| timestamp.timesecs);
        self.facts.started_ns = began.and_then(|seconds| bounded(seconds.checked_mul(1_000_000_000)?));
        let Some(test) = start.test_start else { return Ok(()) };
        match test.protocol.as_deref() {
            None | Some("UDP") => {
                self.size_bytes = test.blksize.filter(|size_bytes| *size_bytes > 0);
                if self.rows.has_passed() {
                    return Err(LogFault::whole("the log states the size of its packets behind its intervals"));
                }
                self.size_bytes.into_iter().for_each(|size_bytes| self.rows.have_packets_of(size_bytes));
                Ok(())
            }
            Some("TCP") => Err(LogFault::whole(TCP)),
            Some(protocol) => Err(LogFault::whole(format!("intervals of {protocol} do not count packets"))),
        }
    }

    fn take(&mut self, interval: &Interval, is_other: bool) -> Result<(), Stopped> {
        for counts in &interval.streams {
            let end = if is_other { &mut self.other } else { &mut self.written };
            match end.interval(counts) {
                Ok(Some(interval)) => self.rows.interval(interval),
                Ok(None) => {}
                Err(fault) => return Err(self.stop(fault)),
            }
        }
        if self.rows.has_failed() { Err(Stopped) } else { Ok(()) }
    }

    /// Adds the totals of an end without intervals.
    fn finish(self) -> Result<LogFacts, LogFault> {
        let Some(written) = self.written.end else {
            return Err(LogFault::whole("the log has no intervals"));
        };
        if self.size_bytes.is_none() {
            return Err(LogFault::whole("the log does not state the size of its packets"));
        }
        if self.other.end == Some(written) {
            return Err(LogFault::whole("both ends of the log have the same role"));
        }
        if self.other.end.is_none() {
            let flows = self.written.sockets.len();
            let totals = match (written, &self.totals) {
                (StreamEnd::Sender, totals) => vec![received(totals.as_ref(), flows)?],
                (StreamEnd::Receiver, Some(totals)) => sent(totals, flows)?,
                (StreamEnd::Receiver, None) => Vec::new(),
            };
            totals.into_iter().for_each(|total| self.rows.interval(total));
        }
        Ok(self.facts)
    }
}

/// The total of a receiver with one flow.
fn received(totals: Option<&Totals>, flows: usize) -> Result<StreamInterval, LogFault> {
    let sum = totals.and_then(|totals| totals.sum_received.as_ref()).filter(|_| flows == 1);
    let counts = sum.and_then(|sum| Some((sum, sum.packets?, sum.lost_packets?)));
    let Some((sum, packets, lost)) = counts else {
        let what = "the log does not say how many packets of each stream arrived";
        let hint = "run the other end as `iperf3 -s -J`, and this one with `--get-server-output`";
        return Err(LogFault::whole(what).hint(hint));
    };
    let late = totals.and_then(|totals| totals.streams.first()?.udp.as_ref()?.out_of_order);
    Span { flow: 0, start: sum.start, end: sum.end }.with(counted(packets, lost, late)?)
}

/// The totals of each flow of a sender; empty if the log does not have them.
fn sent(totals: &Totals, flows: usize) -> Result<Vec<StreamInterval>, LogFault> {
    let Some(sum) = &totals.sum_sent else { return Ok(Vec::new()) };
    let packets: Vec<_> = totals.streams.iter().filter_map(|stream| Some(stream.udp.as_ref()?.packets)).collect();
    // A log of a receiver alone has its own counts there, and a sum of 0.
    if packets.len() != flows || sum.packets != packets.iter().try_fold(0_i64, |sum, packets| sum.checked_add(*packets))
    {
        return Ok(Vec::new());
    }
    let span = |flow| Span { flow, start: sum.start, end: sum.end };
    (0..).zip(packets).map(|(flow, packets)| span(flow).with(offered(packets)?)).collect()
}

/// The document of the other end, within the log.
struct OtherEnd<'s, 'a, 'r>(&'s mut IperfReading<'a, 'r>);

impl<'de> DeserializeSeed<'de> for OtherEnd<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OtherEnd<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the object that iperf3 writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key()? {
            match key {
                Key::Intervals => {
                    document.next_value_seed(each(|interval: Interval| self.0.take(&interval, true)))?;
                }
                _ => {
                    document.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut IperfReading<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the object that iperf3 writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key()? {
            let result = match key {
                Key::Start => self.start(document.next_value()?),
                Key::Intervals => {
                    document.next_value_seed(each(|interval: Interval| self.take(&interval, false)))?;
                    Ok(())
                }
                Key::End => {
                    self.totals = Some(document.next_value()?);
                    Ok(())
                }
                Key::Other => {
                    document.next_value_seed(OtherEnd(self))?;
                    Ok(())
                }
                Key::Error => {
                    let text: String = document.next_value()?;
                    let shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                    Err(LogFault::whole(format!("iperf3 ended with an error: {shown}")))
                }
                Key::Event => {
                    let what = "the log is of `--json-stream`, which has a document on each line";
                    Err(LogFault::whole(what).hint("measure with `-J` alone"))
                }
                Key::Unused => document.next_value::<IgnoredAny>().map(|_| Ok(()))?,
            };
            result.map_err(|fault| serde::de::Error::custom(self.stop(fault)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

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

    /// The totals of streams with these packets.
    fn end(streams: &[u64], sent: u64, received: u64, lost: i64) -> String {
        let udp = |packets: &u64| {
            format!(
                r#"{{ "udp": {{ "socket": 5, "end": 2, "packets": {packets}, "lost_packets": {lost}, "out_of_order": 3 }} }}"#
            )
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
        [start("UDP"), intervals(&streams.each_ref().map(|streams| &streams[..])), end(&[2_499], 2_499, 2_490, 20)]
    }

    fn rows(text: &str) -> Vec<StreamInterval> {
        read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log").0.intervals
    }

    fn fault(text: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text)
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
            row(0, 0, 2_000_170_000, counted(2_490, 20, Some(3)).expect("counts")),
        ];
        assert_eq!(block.intervals, expected);
        let began = Some(1_795_781_773_000_000_000);
        let facts = LogFacts { version: Some("3.12".into()), started_ns: began, ..LogFacts::of("iperf3") };
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
        assert_eq!(rows(&text(end(&[110, 50], 0, 150, 38))), received, "the log of a receiver alone");
        let IntervalCounts::Counted { polled, delivered, .. } = received[1].seen else { panic!("a receiver") };
        assert_eq!((polled, delivered), (50, 52), "two late packets of the interval before");
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
        assert_eq!(refused.what, "the log does not say how many packets of each stream arrived");
    }

    #[test]
    fn omitted_intervals_are_left_out() {
        let text = document(&one_flow());
        assert_eq!(rows(&text.replacen("\"omitted\": false", "\"omitted\": true", 1)), rows(&text)[1..]);
    }

    #[test]
    fn what_does_not_count_packets_in_one_direction_is_refused() {
        let [_, sent, totals] = one_flow();
        assert_eq!(fault(&document(&[start("TCP"), sent.clone(), totals.clone()])).what, TCP);
        let bytes = sent.replace("\"packets\": 1250, ", "");
        assert_eq!(fault(&document(&[bytes, totals.clone()])).what, TCP);
        assert!(fault(&document(&[start("SCTP")])).what.contains("SCTP"));
        let both = intervals(&[&[sending(5, "0", "1", 100), receiving(7, "0", "1", 50, 0)]]);
        assert!(fault(&document(&[start("UDP"), both, totals])).hint.expect("a hint").contains("--bidir"));
        let error = "\"intervals\": [], \"end\": {}, \"error\": \"unable to connect to \\u001b server\"".to_owned();
        assert_eq!(fault(&document(&[error])).what, "iperf3 ended with an error: unable to connect to \\u{1b} server");
        assert!(fault("{\"event\":\"start\",\"data\":{}}\n").what.contains("--json-stream"));
        assert_eq!(fault("{}").what, "the log has no intervals");
        let negative = document(&[intervals(&[&[receiving(5, "0", "1", 1, 4)]])]);
        assert_eq!(fault(&negative).what, "-3 packets in an interval");
        let many = document(&[intervals(&[&[sending(5, "0", "1", TOTAL_MAX + 1)]])]);
        assert_eq!(fault(&many).what, "1099511627777 packets in an interval");
    }

    #[test]
    fn a_log_without_the_size_of_its_packets_is_refused() {
        let [start, sent, totals] = one_flow();
        let without = start.replace("\"blksize\": 1000, ", "");
        let without_test = start.replace("\"test_start\"", "\"test\"");
        for start in [Some(without), Some(start.replace("1000", "0")), Some(without_test), None] {
            let members: Vec<_> = start.into_iter().chain([sent.clone(), totals.clone()]).collect();
            assert_eq!(fault(&document(&members)).what, "the log does not state the size of its packets");
        }
        let late = intervals(&[&[sending(5, "0", "1", 9), sending(6, "0", "1", 9), sending(7, "0", "1", 9)]]);
        let late = fault(&document(&[late, start, totals]));
        assert_eq!(late.what, "the log states the size of its packets behind its intervals");
    }

    #[test]
    fn an_interval_that_is_not_a_span_of_a_run_is_refused() {
        for (start_s, end_s) in [("2", "1"), ("-1", "1"), ("0", "1e9"), ("1e300", "1e300"), ("0", "-0.5")] {
            let text = document(&[start("UDP"), intervals(&[&[receiving(5, start_s, end_s, 10, 0)]])]);
            assert!(fault(&text).what.starts_with("an interval from "), "{start_s} {end_s}");
        }
        let sum = document(&one_flow()).replace("\"end\": 2.00017,", "\"end\": 2e18,");
        assert_eq!(fault(&sum).what, "an interval from 0 s to 2000000000000000000 s");
        let empty = document(&[start("UDP"), intervals(&[&[receiving(5, "1", "1", 0, 0)]])]);
        assert_eq!(rows(&empty)[0].start_ns, 1_000_000_000);
        let late = document(&one_flow()).replace("\"timesecs\": 1795781773", "\"timesecs\": 5000000000");
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, late.as_bytes()).expect("a log");
        assert_eq!(end.facts.started_ns, None, "beyond 146 years");
    }

    #[test]
    fn a_malformed_log_is_a_fault_with_line_and_column() {
        let text = document(&one_flow());
        let bad = fault(&text.replace("\"packets\": 1250", "\"packets\": \"x\""));
        assert_eq!((bad.line, bad.column), (Some(8), Some(47)), "{bad:?}");
        for length in (0..text.len() - 2).step_by(7) {
            assert!(fault(&text[..length]).line.is_some(), "{length}");
        }
    }

    #[test]
    fn other_text_is_not_detected() {
        for bytes in [&b"{\"version\": {\"irtt\": \"0.9.0\"}}"[..], b"1,2\n", b"\xff\xfe{\x00", b"\x1f\x8b\x08", b""] {
            assert!(!detects(&LogHead { bytes, is_whole: true }), "{bytes:?}");
        }
    }
}
