//! irtt: the JSON that `irtt client -o FILE.json` writes (json_format 1, irtt 0.9.0 to 0.9.2). Instants and durations are
//! integers in nanoseconds.
//!
//! The monotonic clock of an end is taken if its first instant has it. With `--tstamp=midpoint` both instants of the reflector are
//! one between receiving and sending, and neither is taken. If numbers are missing, or `stats.packets_sent` is not the number of
//! rows, rows were removed from the log: it does not state its losses then.

use super::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

use super::json::{Each, expect_one};

pub(super) fn read(input: &mut Documents<'_>, _: &LogOptions, rows: &mut LogRows<'_>) -> ReadLog {
    let facts = LogFacts::of("irtt");
    let (params, numbers) = (Params::default(), RowNumbers::default());
    let mut log = IrttLog { rows, facts, params, clocks: [None; 2], numbers, first: None, trips: 0 };
    let mut is_first = true;
    let count = input.read_each(|document| match std::mem::take(&mut is_first) {
        true => document.deserialize_map(&mut log),
        false => IgnoredAny::deserialize(document).map(|_| ()),
    })?;
    expect_one(count, "documents")?;
    let IrttLog { facts, numbers, first, trips, .. } = log;
    let is_cut = first.is_some_and(|first| first > 0) || facts.totals.sent.is_some_and(|sent| sent != trips);
    match trips > 0 {
        true => Ok(LogFacts { states_losses: (numbers.missing > 0 || is_cut).then_some(false), ..facts }),
        false => Err(LogFault::whole("the log has no `round_trips`").hint("`irtt client -o FILE` writes them")),
    }
}

struct IrttLog<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    facts: LogFacts,
    params: Params,
    /// Whether the clock of the sender, and that of the reflector, is monotonic: that of its first instant.
    clocks: [Option<bool>; 2],
    numbers: RowNumbers,
    first: Option<u64>,
    trips: u64,
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
    stamp_at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Totals {
    packets_sent: Option<u64>,
    packets_received: Option<u64>,
    duplicates: u64,
    rtt: StatedTimes,
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
    /// The instant by the clock that `is_monotonic` states, which is the clock of the first instant that is present.
    fn by(self, is_monotonic: &mut Option<bool>) -> Option<i64> {
        *is_monotonic = is_monotonic.or(self.monotonic.map(|_| true)).or(self.wall.map(|_| false));
        if (*is_monotonic)? { self.monotonic } else { self.wall }
    }
}

impl<'de> Visitor<'de> for &mut IrttLog<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = object.next_key::<String>()? {
            match &*name {
                "version" => self.facts.version = object.next_value::<Version>()?.irtt,
                "config" => {
                    self.params = object.next_value::<Config>()?.params;
                    let interval = self.params.interval.filter(|interval| *interval > 0);
                    self.facts.interval_ns = interval.and_then(bounded).map(Nanos);
                    self.params.length = self.params.length.filter(|length| *length > 0);
                }
                "stats" => self.sum_up(object.next_value()?),
                "round_trips" => object.next_value_seed(Each(|trip: RoundTrip| self.take(&trip), PhantomData))?,
                _ => _ = object.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

impl IrttLog<'_, '_> {
    fn sum_up(&mut self, stats: Totals) {
        let received = stats.packets_received.map(|received| received.saturating_sub(stats.duplicates));
        self.facts.totals = LogTotals { sent: stats.packets_sent, received, ..stats.rtt.within(|_| 1) };
        self.facts.notes.extend(note(stats.duplicates, "duplicate answer", "left out"));
    }

    fn take(&mut self, trip: &RoundTrip) -> Result<(), String> {
        let Stamps { sender, reflector } = &trip.timestamps;
        self.facts.started_ns = self.facts.started_ns.or(sender.send.wall);
        let sent_ns = sender.send.by(&mut self.clocks[0]);
        let received_ns = sender.receive.by(&mut self.clocks[0]).filter(|_| trip.lost == "false");
        if received_ns.is_none() && !trip.lost.starts_with("true") {
            return Err(format!("round trip {} is neither lost nor has an instant of receiving", trip.seqno));
        }
        let [reflector_received_ns, reflector_sent_ns] = match self.params.stamp_at.as_deref() == Some("midpoint") {
            true => [None; 2],
            false => [reflector.receive, reflector.send].map(|instant| instant.by(&mut self.clocks[1])),
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
        read_log("irtt", &LogOptions::default(), false, text.as_bytes()).expect(text)
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
        assert!(is_detected("irtt", LOG.as_bytes()));
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
            assert!(is_detected("irtt", text.as_bytes()));
        }
    }

    #[test]
    fn totals_check_the_rows() {
        for (from, to, due) in [
            ("\"packets_sent\": 3", "\"packets_sent\": 20", "20 sent, 3 in its rows"),
            ("\"duplicates\": 1", "\"duplicates\": 0", "3 received, 2 in its rows"),
            ("\"max\": 195000", "\"max\": 211000", "a maximum of 211 µs, 195 µs in its rows"),
        ] {
            let (_, end) = log(&LOG.replace(from, to));
            assert_eq!(end.contradictions, [due]);
            assert_eq!(end.facts.states_losses, (due.contains("sent")).then_some(false), "rows were removed");
        }
        assert_eq!(log(&LOG.replace("\"seqno\": 2", "\"seqno\": 3")).1.facts.states_losses, Some(false), "a gap");
    }

    #[test]
    fn a_malformed_log_is_a_fault_with_line_and_column() {
        let fault = |text: &str| read_log("irtt", &LogOptions::default(), true, text.as_bytes()).expect_err(text);
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
        assert!(fault("{}").hint.is_some_and(|hint| hint.contains("irtt client -o FILE")));
    }
}
