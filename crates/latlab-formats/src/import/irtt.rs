//! irtt: the JSON that `irtt client -o FILE.json` writes (json_format 1, irtt 0.9). Instants and durations are integers in
//! nanoseconds.
//!
//! Each round trip has the instants of both ends by the wall clock and by a monotonic clock that begins with the process;
//! the monotonic one is taken if the first instant of that end has it. The reflector's instants are those that
//! `--tstamp` asked for: with `midpoint` both are one instant between receiving and sending, and neither is taken. `seqno`
//! is the number of a probe, from 0; a lost one (`true`, `true_up`, `true_down`) has its row. If numbers are missing, or
//! `stats.packets_sent` is not the number of rows, rows were removed from the log: it does not state its losses then. The size
//! is the UDP payload.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use super::field::bounded;
use super::json::{self, Stopped, each};
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

fn detects(head: &LogHead<'_>) -> bool {
    let has = |key: &str| memchr::memmem::find(head.bytes, key.as_bytes()).is_some();
    head.bytes.trim_ascii_start().starts_with(b"{") && (has("\"irtt\":") || has("\"round_trips\":"))
}

fn read(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut reading = IrttReading {
        rows,
        facts: LogFacts::of("irtt"),
        size_bytes: None,
        stamps: None,
        sender_clock: None,
        reflector_clock: None,
        numbers: RowNumbers::default(),
        first: None,
        trips: 0,
        sent: None,
        has_round_trips: false,
        stopped: None,
    };
    json::read(input, &mut reading).map_err(|fault| match reading.stopped.take() {
        Some(stopped) => LogFault { line: fault.line, column: fault.column, ..stopped },
        None => fault,
    })?;
    let IrttReading { facts, numbers, first, trips, sent, has_round_trips, .. } = reading;
    // Every probe has its row; where rows are missing the losses are unknown.
    let is_cut = first.is_some_and(|first| first > 0) || sent.is_some_and(|sent| sent != trips);
    let states_losses = (numbers.missing > 0 || is_cut).then_some(false);
    match has_round_trips {
        true => Ok(LogFacts { states_losses, ..facts }),
        false => Err(LogFault::whole("the log has no `round_trips`")),
    }
}

/// The reading of a document.
struct IrttReading<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    facts: LogFacts,
    size_bytes: Option<u32>,
    /// The word of `--tstamp`, once the configuration was read.
    stamps: Option<String>,
    sender_clock: Option<IrttClock>,
    reflector_clock: Option<IrttClock>,
    numbers: RowNumbers,
    /// The number of the first row.
    first: Option<u64>,
    trips: u64,
    /// Probes that were sent, as the totals state it.
    sent: Option<u64>,
    has_round_trips: bool,
    /// Why a round trip was refused.
    stopped: Option<LogFault>,
}

/// A clock of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IrttClock {
    Monotonic,
    Wall,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Version,
    Config,
    Stats,
    RoundTrips,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Version {
    irtt: Option<String>,
}

#[derive(Deserialize)]
struct Config {
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    interval: Option<i64>,
    length: Option<u32>,
    stamp_at: Option<String>,
}

#[derive(Deserialize)]
struct Totals {
    start_time: Option<String>,
    packets_sent: Option<u64>,
}

#[derive(Deserialize)]
struct RoundTrip {
    seqno: u64,
    lost: Lost,
    timestamps: Stamps,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
enum Lost {
    #[serde(rename = "false")]
    Not,
    #[serde(rename = "true", alias = "true_up", alias = "true_down")]
    Lost,
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
    #[serde(deserialize_with = "json::instant")]
    wall: Option<i64>,
    #[serde(deserialize_with = "json::instant")]
    monotonic: Option<i64>,
}

impl IrttInstant {
    /// The instant by `clock`, which is the clock of the first instant that is present.
    fn by(self, clock: &mut Option<IrttClock>) -> Option<i64> {
        let own = match self {
            IrttInstant { monotonic: Some(_), .. } => Some(IrttClock::Monotonic),
            IrttInstant { wall: Some(_), .. } => Some(IrttClock::Wall),
            _ => None,
        };
        *clock = clock.or(own);
        match clock {
            Some(IrttClock::Monotonic) => self.monotonic,
            Some(IrttClock::Wall) => self.wall,
            None => None,
        }
    }
}

impl IrttReading<'_, '_> {
    fn configure(&mut self, config: Config) {
        let Some(params) = config.params else { return };
        self.facts.interval_ns = params.interval.filter(|interval| *interval > 0).and_then(bounded).map(Nanos);
        self.size_bytes = params.length.filter(|length| *length > 0);
        self.stamps = params.stamp_at;
    }

    /// The beginning of the run and the probes of it, as the totals state them.
    fn sum_up(&mut self, totals: &Totals) {
        self.sent = totals.packets_sent;
        let start = totals.start_time.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let start_ns = start.and_then(|start| bounded(i64::try_from(start.as_nanosecond()).ok()?));
        self.facts.started_ns = start_ns.or(self.facts.started_ns);
    }

    fn take(&mut self, trip: &RoundTrip) -> Result<(), Stopped> {
        let Stamps { sender, reflector } = &trip.timestamps;
        self.facts.started_ns = self.facts.started_ns.or(sender.send.wall);
        let sent_ns = sender.send.by(&mut self.sender_clock);
        let received_ns = match trip.lost {
            Lost::Lost => None,
            Lost::Not => {
                let received_ns = sender.receive.by(&mut self.sender_clock);
                if received_ns.is_none() {
                    let what = format!("round trip {} is neither lost nor has an instant of receiving", trip.seqno);
                    self.stopped = Some(LogFault::whole(what));
                    return Err(Stopped);
                }
                received_ns
            }
        };
        let [reflector_received_ns, reflector_sent_ns] = match self.are_midpoints(reflector) {
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
            size_bytes: self.size_bytes,
        });
        if self.rows.has_failed() { Err(Stopped) } else { Ok(()) }
    }

    /// Whether the instants of the reflector are one instant, between receiving and sending. As long as the configuration
    /// was not read, they are if they are equal.
    fn are_midpoints(&self, stamps: &EndStamps) -> bool {
        match &self.stamps {
            Some(word) => word == "midpoint",
            None => stamps.receive == stamps.send,
        }
    }
}

impl<'de> Visitor<'de> for &mut IrttReading<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the object that irtt writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key()? {
            match key {
                Key::Version => self.facts.version = document.next_value::<Version>()?.irtt,
                Key::Config => self.configure(document.next_value()?),
                Key::Stats => self.sum_up(&document.next_value()?),
                Key::RoundTrips => {
                    self.has_round_trips = true;
                    document.next_value_seed(each(|trip: RoundTrip| self.take(&trip)))?;
                }
                Key::Other => {
                    document.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const HEAD: &str = r#"{
    "version": { "irtt": "0.9.0", "protocol": 1, "json_format": 1 },
    "system_info": { "os": "linux", "cpus": 2, "go_version": "go1.19.8", "hostname": "vm" },
    "config": {
        "local_address": "127.0.0.1:52081",
        "params": { "proto_version": 1, "duration": 1000000000, "interval": 100000000, "length": 64,
            "received_stats": "both", "stamp_at": "both", "clock": "both", "dscp": 0, "server_fill": "" },
        "supplied": { "params": { "interval": 5, "length": 0 } }
    },
    "stats": { "start_time": "2026-11-27T12:16:03.671177993Z", "rtt": { "total": 1279660, "n": 10 }, "duplicates": 0 },
"#;
    const TRIPS: &str = r#"    "round_trips": [
        { "seqno": 0, "lost": "false",
          "timestamps": {
            "client": { "receive": { "wall": 1795781764471370000, "monotonic": 808989000 },
                        "send": { "wall": 1795781764471230000, "monotonic": 808850000 } },
            "server": { "receive": { "wall": 1795781764471322409, "monotonic": 17969030380 },
                        "send": { "wall": 1795781764471329850, "monotonic": 17969037821 } } },
          "delay": { "receive": 46590, "rtt": 136634, "send": 90044 }, "ipdv": {} },
        { "seqno": 7, "lost": "true",
          "timestamps": {
            "client": { "receive": {}, "send": { "wall": 1795781978810995014, "monotonic": 704574791 } },
            "server": { "receive": {}, "send": {} } },
          "delay": {}, "ipdv": {} }
    ]
}
"#;

    fn whole() -> String {
        format!("{HEAD}{TRIPS}")
    }

    fn probes(text: &str) -> Vec<LoggedProbe> {
        read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log").0.probes
    }

    #[test]
    fn a_log_has_the_instants_of_both_ends() {
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, whole().as_bytes()).expect("a log");
        let answered = LoggedProbe {
            id: Some(0),
            due_ns: None,
            sent_ns: Some(808_850_000),
            received_ns: Some(808_989_000),
            reflector_received_ns: Some(17_969_030_380),
            reflector_sent_ns: Some(17_969_037_821),
            size_bytes: Some(64),
        };
        let lost =
            LoggedProbe { id: Some(7), sent_ns: Some(704_574_791), size_bytes: Some(64), ..LoggedProbe::default() };
        assert_eq!(block.probes, [answered, lost]);
        let facts = LogFacts {
            states_losses: Some(false),
            version: Some("0.9.0".into()),
            started_ns: Some(1_795_781_763_671_177_993),
            interval_ns: Some(Nanos(100_000_000)),
            ..LogFacts::of("irtt")
        };
        assert_eq!(end.facts, facts);
        assert!(is_detected(&FORMAT, whole().as_bytes()));
        assert_eq!(probes(&whole().replace('\n', "\r\n")), block.probes);
    }

    #[test]
    fn a_log_states_its_losses_unless_rows_are_missing() {
        let complete = whole().replace("\"seqno\": 7", "\"seqno\": 1");
        let sent = |count: u8| complete.replace("\"duplicates\": 0", &format!("\"packets_sent\": {count}"));
        let without_head = complete.replace("\"seqno\": 1", "\"seqno\": 9").replace("\"seqno\": 0", "\"seqno\": 8");
        for (text, states_losses) in [
            (whole(), Some(false)),
            (complete.clone(), None),
            (sent(2), None),
            (sent(20), Some(false)),
            (sent(1), Some(false)),
            (without_head, Some(false)),
        ] {
            let (_, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log");
            assert_eq!(end.facts.states_losses, states_losses, "{text}");
        }
    }

    #[test]
    fn keys_may_come_in_any_order() {
        let (body, tail) = (HEAD.trim_start().trim_start_matches('{'), TRIPS.trim_end().trim_end_matches('}'));
        let text = format!("{{{tail},{}}}", body.trim_end().trim_end_matches(','));
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log");
        assert_eq!((block.probes[0].sent_ns, block.probes[0].size_bytes), (Some(808_850_000), None));
        assert_eq!(end.facts.interval_ns, Some(Nanos(100_000_000)));
        assert_eq!(end.facts.started_ns, Some(1_795_781_763_671_177_993));
        assert!(is_detected(&FORMAT, text.as_bytes()));
    }

    #[test]
    fn a_midpoint_is_neither_receiving_nor_sending() {
        let equal = whole().replace("17969037821", "17969030380").replace("1795781764471329850", "1795781764471322409");
        let stamps = |text: &str| {
            let probe = probes(text)[0];
            (probe.reflector_received_ns, probe.reflector_sent_ns)
        };
        let at = Some(17_969_030_380);
        assert_eq!(stamps(&equal.replace("\"stamp_at\": \"both\"", "\"stamp_at\": \"midpoint\"")), (None, None));
        assert_eq!(stamps(&equal), (at, at), "a clock of low resolution");
        assert_eq!(stamps(&equal.replace("\"stamp_at\": \"both\",", "")), (None, None));
    }

    #[test]
    fn stamps_that_were_not_asked_for_are_unknown() {
        let one = "{ \"wall\": 1795781764471329850, \"monotonic\": 17969037821 }";
        let received = probes(&whole().replace(one, "{}"))[0];
        assert_eq!((received.reflector_received_ns, received.reflector_sent_ns), (Some(17_969_030_380), None));
        let wall = whole().replace(", \"monotonic\": 17969037821", "").replace(", \"monotonic\": 17969030380", "");
        let wall = probes(&wall)[0];
        assert_eq!((wall.sent_ns, wall.reflector_sent_ns), (Some(808_850_000), Some(1_795_781_764_471_329_850)));
        let without_clock = probes(&whole().replace("\"monotonic\"", "\"other\""))[0];
        assert_eq!(without_clock.sent_ns, Some(1_795_781_764_471_230_000));
    }

    #[test]
    fn a_negative_round_trip_is_kept() {
        let probe = probes(&whole().replace("808989000", "808840000"))[0];
        assert_eq!((probe.sent_ns, probe.received_ns), (Some(808_850_000), Some(808_840_000)));
    }

    #[test]
    fn a_malformed_log_is_a_fault_with_line_and_column() {
        let fault = |text: &str| read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text);
        let bad = fault(&whole().replace("\"seqno\": 7", "\"seqno\": \"x\""));
        assert_eq!((bad.line, bad.column), (Some(19), Some(22)), "{bad:?}");
        assert!(fault(&whole().replace("\"true\"", "\"maybe\"")).what.contains("maybe"));
        let late = fault(&whole().replace("808989000", "9223372036854775807"));
        assert_eq!((late.line, late.column.is_some()), (Some(14), true), "{late:?}");
        assert!(late.what.contains("9223372036854775807 ns is not an instant"), "{late:?}");
        let unknown = fault(&whole().replace("\"lost\": \"true\"", "\"lost\": \"false\""));
        assert_eq!(
            (unknown.line, unknown.what.as_str()),
            (Some(24), "round trip 7 is neither lost nor has an instant of receiving")
        );
        let text = whole();
        for length in (0..text.len() - 2).step_by(7) {
            let cut = fault(&text[..length]);
            assert!(cut.line.is_some(), "{length} {cut:?}");
        }
        assert_eq!(fault("{}").what, "the log has no `round_trips`");
        assert!(fault(&format!("{text}{text}")).what.contains("trailing"));
    }

    #[test]
    fn other_text_is_not_detected() {
        let head = |bytes: &'static [u8]| detects(&LogHead { bytes, is_whole: true });
        for bytes in [
            &b"{\"start\": {\"version\": \"iperf 3.12\"}}"[..],
            b"seq,rtt\n1,2\n",
            b"\xff\xfe{\x00",
            b"\x1f\x8b\x08",
            b"",
        ] {
            assert!(!head(bytes), "{bytes:?}");
        }
    }
}
