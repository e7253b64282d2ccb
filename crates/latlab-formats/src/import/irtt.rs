//! irtt: the JSON that `irtt client -o FILE.json` writes (json_format 1, irtt 0.9.0 to 0.9.2). Instants and durations are
//! integers in nanoseconds.
//!
//! Each round trip has the instants of both ends by the wall clock and by a monotonic clock; the monotonic one is taken if the
//! first instant of that end has it. The reflector's instants are those that `--tstamp` asked for: with `midpoint` both are one
//! instant between receiving and sending, and neither is taken. `seqno` is the number of a probe, from 0; a lost one (`true`,
//! `true_up`, `true_down`) has its row. If numbers are missing, or `stats.packets_sent` is not the number of rows, rows were
//! removed from the log: it does not state its losses then. `stats.rtt` is without the time at the reflector, and
//! `packets_received` counts duplicates. The size is the UDP payload. The run began with its first probe.

use std::io::BufRead;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess};

use super::check::{LogTotals, StatedValue, note};
use super::field::bounded;
use super::json::{self, Members, Object, each};
use super::{LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{LoggedProbe, RowNumbers};
use crate::plan::Kind;
use crate::units::Nanos;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "irtt",
    title: "JSON of irtt",
    rows: Kind::Ping,
    is_generic: false,
    options: &[],
    states_losses: true,
    detects,
    reader: LogReader::Document(read),
};

/// Whether it is that document, or the text beside which it is written.
fn detects(head: &LogHead<'_>) -> bool {
    json::has_any(head, &["\"irtt\":", "\"round_trips\":"])
}

fn read(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut log = IrttLog {
        rows,
        facts: LogFacts::of("irtt"),
        params: Params::default(),
        sender_clock: None,
        reflector_clock: None,
        numbers: RowNumbers::default(),
        first: None,
        trips: 0,
    };
    json::read(input, Object(&mut log)).map_err(|fault| match fault.line {
        None if fault.hint.is_none() => fault.hint("`irtt client -o FILE` writes it"),
        _ => fault,
    })?;
    let IrttLog { facts, numbers, first, trips, .. } = log;
    // Every probe has its row; where rows are missing the losses are unknown.
    let is_cut = first.is_some_and(|first| first > 0) || facts.totals.sent.is_some_and(|sent| sent != trips);
    match trips > 0 {
        true => Ok(LogFacts { states_losses: (numbers.missing > 0 || is_cut).then_some(false), ..facts }),
        false => Err(LogFault::whole("the log has no `round_trips`").hint("`irtt client -o FILE` writes them")),
    }
}

/// The reading of a document.
struct IrttLog<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    facts: LogFacts,
    params: Params,
    sender_clock: Option<IrttClock>,
    reflector_clock: Option<IrttClock>,
    numbers: RowNumbers,
    /// The number of the first row.
    first: Option<u64>,
    trips: u64,
}

/// A clock of an end.
#[derive(Clone, Copy)]
enum IrttClock {
    Monotonic,
    Wall,
}

#[derive(Deserialize)]
struct Version {
    irtt: Option<String>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    interval: Option<i64>,
    length: Option<u32>,
    /// The word of `--tstamp`.
    stamp_at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Totals {
    packets_sent: Option<u64>,
    packets_received: Option<u64>,
    duplicates: u64,
    rtt: Option<Delays>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delays {
    n: u64,
    min: i64,
    mean: i64,
    max: i64,
}

#[derive(Deserialize)]
struct RoundTrip {
    seqno: u64,
    lost: String,
    timestamps: Stamps,
}

#[derive(Deserialize)]
struct Stamps {
    #[serde(rename = "client")]
    sender: EndStamps,
    #[serde(default, rename = "server")]
    reflector: EndStamps,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EndStamps {
    receive: IrttInstant,
    send: IrttInstant,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(default)]
struct IrttInstant {
    #[serde(deserialize_with = "instant")]
    wall: Option<i64>,
    #[serde(deserialize_with = "instant")]
    monotonic: Option<i64>,
}

fn instant<'de, D: Deserializer<'de>>(number: D) -> Result<Option<i64>, D::Error> {
    let Some(nanos) = Option::<i64>::deserialize(number)? else { return Ok(None) };
    let too_large = || D::Error::custom(format!("{nanos} ns is not an instant below 146 years"));
    bounded(nanos).ok_or_else(too_large).map(Some)
}

impl IrttInstant {
    /// The instant by `clock`, which is the clock of the first instant that is present.
    fn by(self, clock: &mut Option<IrttClock>) -> Option<i64> {
        let own = self.monotonic.map(|_| IrttClock::Monotonic).or(self.wall.map(|_| IrttClock::Wall));
        *clock = clock.or(own);
        match (*clock)? {
            IrttClock::Monotonic => self.monotonic,
            IrttClock::Wall => self.wall,
        }
    }
}

impl Members for IrttLog<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "version" => self.facts.version = object.next_value::<Version>()?.irtt,
            "config" => {
                self.params = object.next_value::<Config>()?.params;
                let interval = self.params.interval.filter(|interval| *interval > 0);
                self.facts.interval_ns = interval.and_then(bounded).map(Nanos);
                self.params.length = self.params.length.filter(|length| *length > 0);
            }
            "stats" => self.sum_up(object.next_value()?),
            "round_trips" => object.next_value_seed(each(|trip: RoundTrip| self.take(&trip)))?,
            _ => json::ignore(object)?,
        }
        Ok(())
    }
}

impl IrttLog<'_, '_> {
    fn sum_up(&mut self, stats: Totals) {
        let figure = |figure: fn(&Delays) -> i64| {
            let delays = stats.rtt.as_ref().filter(|delays| delays.n > 0)?;
            bounded(figure(delays)).map(|ns| StatedValue::within(ns, 1))
        };
        self.facts.totals = LogTotals {
            sent: stats.packets_sent,
            received: stats.packets_received.map(|received| received.saturating_sub(stats.duplicates)),
            min: figure(|delays| delays.min),
            mean: figure(|delays| delays.mean),
            max: figure(|delays| delays.max),
            row_step_ns: 0,
        };
        self.facts.notes.extend(note(stats.duplicates, "duplicate answer", "left out"));
    }

    fn take(&mut self, trip: &RoundTrip) -> Result<(), String> {
        let Stamps { sender, reflector } = &trip.timestamps;
        self.facts.started_ns = self.facts.started_ns.or(sender.send.wall);
        let sent_ns = sender.send.by(&mut self.sender_clock);
        let received_ns = sender.receive.by(&mut self.sender_clock).filter(|_| trip.lost == "false");
        if received_ns.is_none() && !trip.lost.starts_with("true") {
            return Err(format!("round trip {} is neither lost nor has an instant of receiving", trip.seqno));
        }
        let [reflector_received_ns, reflector_sent_ns] = match self.params.stamp_at.as_deref() == Some("midpoint") {
            true => [None; 2],
            false => [reflector.receive, reflector.send].map(|instant| instant.by(&mut self.reflector_clock)),
        };
        self.numbers.next(Some(trip.seqno));
        self.first.get_or_insert(trip.seqno);
        self.trips += 1;
        self.rows.probe(LoggedProbe {
            id: Some(trip.seqno),
            due_ns: None,
            sent_ns,
            received_ns,
            reflector_received_ns,
            reflector_sent_ns,
            size_bytes: self.params.length,
        });
        if self.rows.has_failed() { Err("not imported".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogBlock;
    use super::super::lines::LogEnd;
    use super::super::testing::{is_detected, read as read_log};
    use super::*;

    /// Three probes, of which the last was lost: round trips of 200 and 150 µs, at the reflector for 5 µs each.
    const LOG: &str = r#"{
    "version": { "irtt": "0.9.2", "protocol": 1, "json_format": 1 },
    "config": { "params": { "interval": 50000000, "length": 60, "stamp_at": "both", "clock": "both", "dscp": 0 },
        "supplied": { "params": { "interval": 5, "length": 0 } } },
    "stats": { "start_time": { "wall": 1790000000000000500, "monotonic": 500 },
        "rtt": { "total": 340000, "n": 2, "min": 145000, "max": 195000, "mean": 170000, "stddev": 35355 },
        "packets_sent": 3, "packets_received": 3, "duplicates": 1, "late_packets": 0 },
    "round_trips": [
        { "seqno": 0, "lost": "false", "timestamps": {
            "client": { "send": { "wall": 1790000000000001000, "monotonic": 1000 },
                        "receive": { "wall": 1790000000000201000, "monotonic": 201000 } },
            "server": { "receive": { "wall": 1790000000000061000, "monotonic": 5061000 },
                        "send": { "wall": 1790000000000066000, "monotonic": 5066000 } }, "late": false },
          "delay": { "rtt": 195000 }, "ipdv": {} },
        { "seqno": 1, "lost": "false", "timestamps": {
            "client": { "send": { "wall": 1790000000050001000, "monotonic": 50001000 },
                        "receive": { "wall": 1790000000050151000, "monotonic": 50151000 } },
            "server": { "receive": { "wall": 1790000000050061000, "monotonic": 55061000 },
                        "send": { "wall": 1790000000050066000, "monotonic": 55066000 } } } },
        { "seqno": 2, "lost": "true_down", "timestamps": {
            "client": { "send": { "wall": 1790000000100001000, "monotonic": 100001000 }, "receive": {} },
            "server": { "receive": {}, "send": {} } } }
    ]
}
"#;

    fn log(text: &str) -> (LogBlock, LogEnd) {
        read_log(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text)
    }

    #[test]
    fn a_log_has_the_instants_of_both_ends_whatever_its_version_writes_beside_them() {
        let (block, end) = log(LOG);
        let first = LoggedProbe {
            id: Some(0),
            due_ns: None,
            sent_ns: Some(1_000),
            received_ns: Some(201_000),
            reflector_received_ns: Some(5_061_000),
            reflector_sent_ns: Some(5_066_000),
            size_bytes: Some(60),
        };
        let lost = LoggedProbe { id: Some(2), sent_ns: Some(100_001_000), size_bytes: Some(60), ..Default::default() };
        assert_eq!((block.probes[0], block.probes[2]), (first, lost));
        let facts = &end.facts;
        assert_eq!((facts.states_losses, facts.version.as_deref()), (None, Some("0.9.2")));
        assert_eq!((facts.started_ns, facts.interval_ns), (Some(1_790_000_000_000_001_000), Some(Nanos(50_000_000))));
        assert_eq!((end.contradictions.len(), &facts.notes[..]), (0, &["1 duplicate answer left out".to_owned()][..]));
        assert!(is_detected(&FORMAT, LOG.as_bytes()));
        let older = LOG.replace("{ \"wall\": 1790000000000000500, \"monotonic\": 500 }", "\"2026-09-21T13:33:20Z\"");
        let reordered = LOG.replace("\"stats\"", "\"x\"").replace(
            "\n    ]\n",
            &format!(
                "],{}",
                &LOG[LOG.find("\"stats\"").expect("totals")..LOG.find("    \"round_trips\"").expect("trips")]
                    .trim_end()
                    .trim_end_matches(',')
            ),
        );
        for text in
            [older, reordered, LOG.replace('\n', "\r\n"), format!("seq=0 rtt=1.5ms\nseq=1 rtt=2ms rd=1ms\n{LOG}")]
        {
            assert_eq!(log(&text).0.probes, block.probes, "{text}");
            assert!(is_detected(&FORMAT, text.as_bytes()));
        }
    }

    #[test]
    fn totals_check_the_rows() {
        for (from, to, due) in [
            ("\"packets_sent\": 3", "\"packets_sent\": 20", "20 sent, 3 in its rows"),
            ("\"duplicates\": 1", "\"duplicates\": 0", "3 received, 2 in its rows"),
            ("\"min\": 145000", "\"min\": 140000", "a minimum of 140 µs, 145 µs in its rows"),
        ] {
            let (_, end) = log(&LOG.replace(from, to));
            assert_eq!(end.contradictions, [due]);
            assert_eq!(end.facts.states_losses, (due.contains("sent")).then_some(false), "rows were removed");
        }
        assert_eq!(log(&LOG.replace("\"seqno\": 2", "\"seqno\": 3")).1.facts.states_losses, Some(false), "a gap");
    }

    #[test]
    fn stamps_that_were_not_asked_for_are_unknown() {
        let stamps = |text: &str| {
            let probe = log(text).0.probes[0];
            (probe.reflector_received_ns, probe.reflector_sent_ns)
        };
        let equal = LOG.replace("5066000", "5061000").replace("1790000000000066000", "1790000000000061000");
        let at = Some(5_061_000);
        assert_eq!(stamps(&equal), (at, at), "a clock of low resolution");
        assert_eq!(stamps(&equal.replace("\"stamp_at\": \"both\"", "\"stamp_at\": \"midpoint\"")), (None, None));
        let wall = LOG.replace(", \"monotonic\": 5061000", "").replace(", \"monotonic\": 5066000", "");
        assert_eq!(stamps(&wall), (Some(1_790_000_000_000_061_000), Some(1_790_000_000_000_066_000)));
        let negative = log(&LOG.replace("\"monotonic\": 201000", "\"monotonic\": 900")).0.probes[0];
        assert_eq!((negative.sent_ns, negative.received_ns), (Some(1_000), Some(900)));
    }

    #[test]
    fn a_malformed_log_is_a_fault_with_line_and_column() {
        let fault = |text: &str| read_log(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text);
        for (from, to, line, what) in [
            ("\"seqno\": 1", "\"seqno\": \"x\"", 15, "invalid type: string \"x\", expected u64"),
            ("201000 }", "9223372036854775807 }", 11, "9223372036854775807 ns is not an instant below 146 years"),
            ("true_down", "maybe", 23, "round trip 2 is neither lost nor has an instant of receiving"),
        ] {
            let bad = fault(&LOG.replacen(from, to, 1));
            assert_eq!((bad.line, bad.column.is_some(), &*bad.what), (Some(line), true, what));
        }
        for length in (1..LOG.len() - 2).step_by(7) {
            assert!(fault(&LOG[..length]).line.is_some(), "{length}");
        }
        let text = "[Connecting] connecting to 192.0.2.2:2112\nseq=0 rtt=1.51ms rd=1ms sd=0.5ms ipdv=n/a\n";
        for text in [text, "{}"] {
            assert!(fault(text).hint.is_some_and(|hint| hint.contains("irtt client -o FILE")), "{text}");
        }
    }
}
