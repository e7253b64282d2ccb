//! HdrHistogram: logs of histograms of versions 0 to 2, which programs in Java, C, Rust and others write:
//!
//! ```text
//! #[StartTime: 1700000000.474 (seconds since epoch), …]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! Tag=read,0.127,1.007,2.752,HISTFAAAANZ4nC1Pw…
//! ```
//!
//! A bucket stands for a range of values. Each is a row with its count, in no order, and the highest value of its range, as
//! quantiles and the maximum of HdrHistogram are; its minimum is the lowest one, and its mean takes the middle. A range is at
//! most 10^-digits of its value wide, where the digits (0 to 5) are those of the histogram: how far values may be above what
//! was recorded is noted where it is more than 0.2 %.
//!
//! The log does not state the unit of its values (programs in Java usually record ns), unless latlab wrote it, with a comment
//! such as `#[latlab: round_trip_delay in ns]`; then the last `#[lost: N]` in front of a histogram is its number of probes
//! without an answer, and the log states its losses if each histogram has one. Histograms of different tags are of different
//! things, and are refused.
//!
//! A histogram may expand to at most 16 MiB, which is checked before memory is taken for it.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer};

use super::field::{LogField, TOTAL_MAX, bounded, cells, unit_of, whole};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "hdr-histogram",
    title: "log of HdrHistogram",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(|options| {
        let log = HistogramLog { unit: options.unit, metric: options.metric, ..HistogramLog::default() };
        Ok(Box::new(log))
    }),
};

/// The begin of the line with the names of the columns.
const LEGEND: &[u8] = b"\"StartTimestamp\"";
const VERSION: &[u8] = b"#[Histogram log format version";
const START: &str = "#[StartTime: ";
const METRIC: &str = "#[latlab: ";
/// The begin of the comment with the number of values without an answer, of latlab.
const LOST: &str = "#[lost: ";
/// The begin of the comment with the name of a run, in front of its other comments, of latlab.
const RUN: &str = "#[run: ";
/// The begin of every encoded histogram of versions 0 to 2.
const ENCODED: &[u8] = b"HIST";
/// The first bytes of a histogram of version 2.
const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
/// The bits of the first four bytes that are the size of a count.
const COUNT_SIZE: u32 = 0xf0;
/// The bytes of a histogram in front of its counts: cookie, length of the counts, offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;
/// The most bytes of a histogram.
const HISTOGRAM_BYTES_MAX: usize = 1 << 24;

fn detects(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| line.starts_with(LEGEND) || line.starts_with(VERSION) || has_histogram(line))
}

/// Whether `line` has four cells, and a histogram in the last one.
fn has_histogram(line: &[u8]) -> bool {
    let line =
        line.strip_prefix(b"Tag=").and_then(|rest| Some(&rest[memchr::memchr(b',', rest)? + 1..])).unwrap_or(line);
    line.splitn(4, |byte| *byte == b',').nth(3).is_some_and(|cell| cell.trim_ascii().starts_with(ENCODED))
}

#[derive(Default)]
struct HistogramLog {
    unit: Option<TimeUnit>,
    metric: Option<Metric>,
    started_ns: Option<i64>,
    /// The widest range that a bucket with a value stands for.
    widest: u64,
    /// How far a value may be above what was recorded, as a share of the latter.
    excess: f64,
    /// Whether latlab wrote the log.
    is_of_latlab: bool,
    /// The values without an answer of the next histogram, according to the last comment in front of it.
    lost: Option<u64>,
    /// Whether a histogram is without their number.
    lacks_losses: bool,
    /// That of the first histogram, which may have none.
    tag: Option<Option<Vec<u8>>>,
    deserializer: Deserializer,
}

impl LineParser for HistogramLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if line.starts_with(b"#") {
            return self.comment(&String::from_utf8_lossy(line)).map(|()| LineUse::Taken);
        }
        if line.starts_with(LEGEND) {
            return Ok(LineUse::Taken);
        }
        if !line.starts_with(b"Tag=") && !line.contains(&b',') {
            return Ok(LineUse::Other);
        }
        let lost = self.lost.take();
        let mut cells = cells(line, b',').peekable();
        let tag = cells.next_if(|cell| cell.text.starts_with(b"Tag=")).map(|cell| cell.text.to_vec());
        let mut next =
            || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the line ends before its histogram"));
        for _ in 0..3 {
            next()?.time(TimeUnit::Nanos)?;
        }
        let encoded = next()?;
        let histogram = self.histogram(&encoded)?;
        self.check_tag(tag)?;
        let unit = self.unit.ok_or_else(|| {
            LogFault::whole("the log does not state the unit of its values")
                .hint("give it: `--unit ns` is usual for programs in Java")
        })?;
        let most =
            histogram.iter_recorded().last().map_or(0, |last| histogram.highest_equivalent(last.value_iterated_to()));
        nanos(most, unit).ok_or_else(|| encoded.is_not("a histogram of times below 146 years"))?;
        if histogram.len() > TOTAL_MAX {
            return Err(encoded.is_not("a histogram of up to 2^40 values"));
        }
        self.lacks_losses |= lost.is_none();
        rows.are_of(self.metric.unwrap_or(Metric::Delay));
        if let Some(count @ 1..) = lost {
            rows.value(LoggedValue { seq: None, value_ns: None, count });
        }
        for recorded in histogram.iter_recorded() {
            let value = recorded.value_iterated_to();
            let (low, high) = (histogram.lowest_equivalent(value), histogram.highest_equivalent(value));
            self.widest = self.widest.max(high - low + 1);
            self.excess = self.excess.max((high - low) as f64 / low.max(1) as f64);
            let value_ns = nanos(high, unit);
            rows.value(LoggedValue { seq: None, value_ns, count: recorded.count_at_value() });
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.tag.is_none() {
            return Err(LogFault::whole("the log has no histogram"));
        }
        let percent = (self.excess * 1e3).ceil() / 10.0;
        let edges = format!("values are the upper edges of buckets, up to {percent} % above what was recorded");
        Ok(LogFacts {
            metric: Some(self.metric.unwrap_or(Metric::Delay)),
            started_ns: self.started_ns,
            resolution_ns: self.unit.and_then(|unit| nanos(self.widest, unit)).map(Nanos),
            notes: if percent > 0.2 { vec![edges] } else { Vec::new() },
            states_losses: (self.is_of_latlab && !self.lacks_losses).then_some(true),
            ..LogFacts::of("HdrHistogram")
        })
    }
}

/// `value` of `unit` in ns, if it is below 146 years.
fn nanos(value: u64, unit: TimeUnit) -> Option<i64> {
    bounded(i64::try_from(value).ok()?.checked_mul(unit.nanos() as i64)?)
}

impl HistogramLog {
    /// Takes what a comment states.
    ///
    /// # Errors
    /// The number of values without an answer is malformed, or the values are not those that the user states.
    fn comment(&mut self, text: &str) -> Result<(), LogFault> {
        if text.starts_with(RUN) {
            self.lost = None;
        }
        if let Some(lost) = text.strip_prefix(LOST).filter(|_| self.is_of_latlab) {
            let digits = lost.trim_ascii_end().strip_suffix(']').unwrap_or(lost);
            // A malformed number does not leave that of another histogram.
            self.lost = None;
            self.lost = Some(LogField { text: digits.as_bytes(), column: LOST.len() + 1 }.total()?);
        }
        if let Some(stated) = text.strip_prefix(METRIC) {
            self.values_of_latlab(stated)?;
        }
        if let Some(seconds) = text.strip_prefix(START).and_then(|rest| rest.split(' ').next()) {
            let start = whole(seconds.as_bytes()).time(TimeUnit::Seconds).ok();
            self.started_ns = self.started_ns.or(start);
        }
        Ok(())
    }

    /// Takes what latlab states about the values: `round_trip_delay in ns]`.
    ///
    /// # Errors
    /// They are not times, or others than the user or a line before states.
    fn values_of_latlab(&mut self, stated: &str) -> Result<(), LogFault> {
        let stated = stated.trim_ascii_end().strip_suffix(']').unwrap_or(stated);
        let (name, unit) = stated.rsplit_once(" in ").unwrap_or((stated, ""));
        if unit != TimeUnit::Nanos.word() {
            let shown = whole(stated.as_bytes()).shown();
            let what = format!("the log has values of `{shown}`, which are not delays in ns");
            return Err(LogFault::whole(what).hint("export a metric of times, such as `round_trip_delay`"));
        }
        self.unit = Some(unit_of(Some(TimeUnit::Nanos), self.unit)?);
        let metric = Metric::from_name(name);
        let differs = self.metric != metric;
        if differs && (self.is_of_latlab || self.tag.is_some()) {
            return Err(LogFault::whole("the log has histograms of several metrics")
                .hint("import each of the logs as a file of its own"));
        }
        if let Some(typed) = self.metric.filter(|_| differs) {
            let shown = whole(name.as_bytes()).shown();
            let what = format!("the log states that its values are of `{shown}`, not of `{}`", typed.name());
            return Err(LogFault::whole(what).hint("leave out `--metric`"));
        }
        (self.metric, self.is_of_latlab) = (metric, true);
        Ok(())
    }

    fn check_tag(&mut self, tag: Option<Vec<u8>>) -> Result<(), LogFault> {
        if *self.tag.get_or_insert_with(|| tag.clone()) == tag {
            return Ok(());
        }
        let what = "the log has histograms of several tags, which are of different things";
        let hint = "import the lines of one tag: `grep -e '^#' -e '^Tag=NAME,' LOG`";
        Err(LogFault::whole(what).hint(hint))
    }

    /// The histogram that `encoded` is, in base 64.
    fn histogram(&mut self, encoded: &LogField<'_>) -> Result<Histogram<u64>, LogFault> {
        let fault = |what: &str| LogFault::at(encoded.column, format!("the histogram {what}"));
        let mut bytes = STANDARD.decode(encoded.text).map_err(|_| encoded.is_not("a histogram in base 64"))?;
        match bytes.first_chunk().map(|first| u32::from_be_bytes(*first) & !COUNT_SIZE) {
            // Compressed: the length of the rest stands in front of it.
            Some(0x1c84_9302 | 0x1c84_9304 | 0x1c84_9309) => {
                let compressed = bytes.split_off(bytes.len().min(8));
                let mut inflated = ZlibDecoder::new(&*compressed).take(HISTOGRAM_BYTES_MAX as u64 + 1);
                bytes.clear();
                inflated.read_to_end(&mut bytes).map_err(|_| fault("is cut off or damaged"))?;
            }
            Some(0x1c84_9301 | 0x1c84_9303 | 0x1c84_9308) => {}
            Some(0x0c72_120e | 0x0c72_120f) => {
                return Err(LogFault::whole("the log has histograms of values that are not whole numbers")
                    .hint("HistogramLogProcessor makes a table of percentiles of it, which can be imported"));
            }
            _ => return Err(encoded.is_not("a histogram")),
        }
        if bytes.len() > HISTOGRAM_BYTES_MAX {
            return Err(fault(&format!("has more than {HISTOGRAM_BYTES_MAX} bytes")));
        }
        if !bytes.starts_with(&COOKIE) {
            bytes = as_version_2(&bytes).ok_or_else(|| fault("is damaged"))?;
        }
        // The deserializer takes as much memory as the header says.
        let stated = bytes.get(4..8).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes);
        if stated.map(|stated| stated as usize) != bytes.len().checked_sub(HEADER_BYTES) {
            return Err(fault("has another length than it states"));
        }
        self.deserializer.deserialize(&mut &bytes[..]).map_err(|error| match error {
            DeserializeError::UnsupportedFeature => fault("has values that are not whole numbers, or shifted ones"),
            _ => fault("is damaged"),
        })
    }
}

/// The histogram `bytes` of version 0 or 1, whose counts have 2, 4 or 8 bytes each, in version 2; `None` if it is neither.
fn as_version_2(bytes: &[u8]) -> Option<Vec<u8>> {
    let cookie = u32::from_be_bytes(*bytes.first_chunk()?);
    let (header, counts) = match cookie & !COUNT_SIZE {
        0x1c84_9308 => ([&[0; 4][..], bytes.get(4..24)?, &1_f64.to_be_bytes()].concat(), bytes.get(32..)?),
        0x1c84_9301 => (bytes.get(8..HEADER_BYTES)?.to_vec(), bytes.get(HEADER_BYTES..)?),
        _ => return None,
    };
    let size = usize::try_from(cookie >> 4 & 0xe).ok().filter(|size| [2, 4, 8].contains(size))?;
    let (mut encoded, mut used) = (Vec::new(), 0);
    for count in counts.chunks_exact(size) {
        let count = count.iter().fold(0, |count, byte| count << 8 | u64::from(*byte));
        // Groups of seven bits, the lowest first, of twice the count: odd numbers stand for runs of zeros.
        let mut rest = Some(count).filter(|count| *count <= TOTAL_MAX)? << 1;
        while rest >= 0x80 {
            encoded.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        encoded.push(rest as u8);
        used = if count > 0 { encoded.len() } else { used };
    }
    let length = u32::try_from(used).ok()?.to_be_bytes();
    Some([&COOKIE[..], &length, &header, &encoded[..used]].concat())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};

    use super::super::LogOptions;
    use super::super::testing::{is_detected, read};
    use super::*;

    /// Two intervals that the Python form of HdrHistogram encoded, in ns.
    const LOG: &str = "\
#[Logged with a test]
#[Histogram log format version 1.2]
#[StartTime: 1700000000.474 (seconds since epoch)]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
0.127,1.007,2.752,HISTFAAAANZ4nC1PwU0EMQxMHO9omLOiKLfaO8F96IAO+CFRDF3w4X0NUAat0AUlXHKLPZrE8VjOXD6vx5Tyc9rD/s+c\
Unl7+flOr3/7w+/RPuxkD/bkBzMrPoGCebfs2TKYffG9toFBMEJwDaWrehV6VJBsUCOrqPVch0SD2tqiMdC1RigYMaf7VhulcDVTiH1oFBE9Zt\
V0luSNCKcjKNRAVBeDgPOxXzZsMaNWacWYwljr9y8ByAKdNsXFOe1gdIzFM4stGM5sGa177saK7ThMKr7Yu3253QDYgg8R
1.134,0.999,0.181,HISTFAAAAKd4nC1PwRECMQgMmz2OYWLGyY0/i7ADf1ZmBzZgF9qLTViCmzkTCLAEWM73x1ZK+ZT94G+tlHq7vJ/l+t2B\
18ABGyoWYJWB1ABf9LIyDE64ka4USEI+LUBzhMR0CQTQ/Og+BsNbRmvpo0tU2TJxbC261DIj0PtE9TPBUAMPZyPUxw2WGjDHGj05eUh8JnwRky\
oOE1QIsV5ECpPirNYS2oUnOSt+bNsKZA==
";

    fn nanoseconds() -> LogOptions {
        LogOptions { unit: Some(TimeUnit::Nanos), ..LogOptions::default() }
    }

    fn fault(log: &str) -> LogFault {
        read(&FORMAT, &nanoseconds(), false, log.as_bytes()).expect_err(log)
    }

    fn log_of(values: &[u64], serializer: &mut impl Serializer<SerializeError = impl std::fmt::Debug>) -> String {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, u64::MAX / 4, 3).expect("bounds");
        values.iter().for_each(|value| histogram.record(*value).expect("a value"));
        let mut log = Vec::new();
        let mut writer = IntervalLogWriterBuilder::new().begin_log_with(&mut log, serializer).expect("a log");
        writer.write_histogram(&histogram, Default::default(), Default::default(), None).expect("a histogram");
        String::from_utf8(log).expect("text")
    }

    fn rows(options: &LogOptions, log: &str) -> Vec<(i64, u64)> {
        let (block, _) = read(&FORMAT, options, false, log.as_bytes()).expect(log);
        assert!(block.values.iter().all(|value| value.seq.is_none()));
        block.values.iter().map(|value| (value.value_ns.expect("a value"), value.count)).collect()
    }

    #[test]
    fn the_values_of_each_histogram_are_rows_with_counts() {
        let (block, end) = read(&FORMAT, &nanoseconds(), false, LOG.as_bytes()).expect("a log");
        let most = block.values.iter().filter_map(|value| value.value_ns).max();
        let total: u64 = block.values.iter().map(|value| value.count).sum();
        assert_eq!((most, total), (Some(2_752_511), 1_491), "the log has 2.752 ms");
        let started_ns = Some(1_700_000_000_474_000_000);
        assert_eq!(
            (end.facts.started_ns, end.facts.metric, end.facts.notes.len()),
            (started_ns, Some(Metric::Delay), 1)
        );
        assert!(is_detected(&FORMAT, LOG.as_bytes()));
        let dos = LOG.replace('\n', "\r\n");
        assert_eq!(read(&FORMAT, &nanoseconds(), false, dos.as_bytes()).expect("a log").0, block);
        assert!(is_detected(&FORMAT, dos.as_bytes()));
    }

    #[test]
    fn a_value_is_the_highest_of_its_bucket() {
        let values = [0, 1, 1, 2_047, 2_048, 4_095, 1_000_000];
        let expected = [(0, 1), (1, 2), (2_047, 1), (2_049, 1), (4_095, 1), (1_000_447, 1)];
        for log in [log_of(&values, &mut V2Serializer::new()), log_of(&values, &mut V2DeflateSerializer::new())] {
            assert_eq!(rows(&nanoseconds(), &log), expected, "{log}");
            assert!(is_detected(&FORMAT, log.as_bytes()), "{log}");
        }
        let micros = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        assert_eq!(rows(&micros, &log_of(&values, &mut V2Serializer::new()))[4], (4_095_000, 1));
        let long = log_of(&[u64::MAX / 8], &mut V2Serializer::new());
        let fault = read(&FORMAT, &micros, true, long.as_bytes());
        assert!(fault.expect("a bad line").1.first_skipped.expect("a fault").what.contains("146 years"));
    }

    #[test]
    fn a_log_of_an_older_version_has_the_same_rows() {
        // As HdrHistogram 1.2.1, 2.0.3 and 2.2.2 of Java write the same histogram, with two digits.
        let versions = [
            "HISTiQAAAER4nJNpmdzBwMDAxAABjGCS38kByjViwA8YCciPglFAAmDUGWgXjIJRMApGwSgYBaNgFIyCUTAKRsEwA6zEKgQA39ACtg==",
            "HISTggAAAER4nJNpmdzIwMB/gwECmKA0I5jkd3Kw/8BADGAkStUoGAVEAUadgXbBKBgFo2AUjIJRMApGwSgYBaNgFAwzwAoAHckEkg==",
            "HISTFAAAACh4nJNpmSzMwMDAyQABTFCaEUzyOznYf4AIsDJNZLzBcp2NCwBnagVv",
        ];
        for text in versions {
            let log = format!("0.000,1.000,0.001,{text}\n");
            let (block, end) = read(&FORMAT, &nanoseconds(), false, log.as_bytes()).expect(text);
            assert_eq!(rows(&nanoseconds(), &log), [(3, 1), (77, 300), (1_003, 5)], "{text}");
            assert_eq!((block.len(), end.facts.resolution_ns), (3, Some(Nanos(4))));
            assert_eq!(end.facts.notes, ["values are the upper edges of buckets, up to 0.3 % above what was recorded"]);
            assert!(is_detected(&FORMAT, log.as_bytes()));
        }
        // One digit: HdrHistogram has a minimum of 992 and a maximum of 1023.
        let one_digit = "0.000,1.000,0.001,HISTFAAAAB94nJNpmSzMwMDAzAABjCg0v5OD/QeIwF1GEQBLlAP+\n";
        let (block, end) = read(&FORMAT, &nanoseconds(), false, one_digit.as_bytes()).expect("a log");
        assert_eq!((block.values[0].value_ns, end.facts.resolution_ns), (Some(1_023), Some(Nanos(32))));
        assert!(end.facts.notes[0].contains("up to 3.2 % above"), "{:?}", end.facts.notes);
        let doubles = "0,1,2,DHISTwAAAAMAAAAAAAAAAhyEkxQAAAAieJyTaZkszMDAwMgAAxARRgYGJgYACh0BEw==\n";
        let fault = read(&FORMAT, &nanoseconds(), true, [LEGEND, b"\n", doubles.as_bytes()].concat().as_slice());
        assert!(fault.is_err_and(|fault| fault.column.is_none() && fault.what.contains("not whole numbers")));
    }

    #[test]
    fn the_unit_is_given() {
        let fault = read(&FORMAT, &LogOptions::default(), true, LOG.as_bytes()).expect_err("without a unit");
        assert_eq!((fault.line, fault.column), (Some(5), None));
        assert!(fault.hint.expect("a hint").contains("--unit ns"));
    }

    #[test]
    fn lost_values_are_those_of_the_last_comment_in_front_of_a_histogram() {
        let head = "#[latlab: round_trip_delay in ns]\n";
        let own = |first: &str, second: &str| {
            let log = LOG.replace("\n0.127", &format!("\n{first}0.127"));
            format!("{head}{}#[run: c]\n#[lost: 99]\n", log.replace("\n1.134", &format!("\n{second}1.134")))
        };
        for (first, second, lost, states_losses) in [
            ("#[lost: 7]\n#[lost: 2]\n", "#[lost: 0]\n", 2, Some(true)),
            ("#[run: a]\n#[lost: 7]\n#[run: b]\n#[lost: 2]\n", "#[lost: 5]\n", 7, Some(true)),
            ("#[lost: 2]\n", "", 2, None),
            ("#[lost: 7]\n#[run: b]\n", "#[lost: 1]\n", 1, None),
            ("#[lost: 7]\n#[lost: x]\n", "#[lost: 1]\n", 1, None),
            ("", "", 0, None),
        ] {
            let log = own(first, second);
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect(&log);
            let found: u64 = block.values.iter().filter(|row| row.value_ns.is_none()).map(|row| row.count).sum();
            assert_eq!((found, end.facts.states_losses), (lost, states_losses), "{log}");
            assert_eq!(block.metric, Some(Metric::RoundTripDelay));
        }
        let foreign = own("#[lost: 2]\n", "#[lost: 0]\n").replace(head, "");
        let (_, end) = read(&FORMAT, &nanoseconds(), false, foreign.as_bytes()).expect("a log of another tool");
        assert_eq!(end.facts.states_losses, None);
        let large = fault(&own("#[lost: 1099511627777]\n", ""));
        assert_eq!((large.line, large.column), (Some(6), Some(9)), "{large:?}");
    }

    #[test]
    fn what_contradicts_a_log_of_latlab_is_refused() {
        let own = format!("#[latlab: round_trip_delay in ns]\n{LOG}");
        let stated = LogOptions { metric: Some(Metric::RoundTripDelay), ..nanoseconds() };
        assert!(read(&FORMAT, &stated, false, own.as_bytes()).is_ok());
        let micros = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        let delay = LogOptions { metric: Some(Metric::Delay), ..LogOptions::default() };
        for (options, hint) in [(micros, "leave out `--unit`"), (delay, "leave out `--metric`")] {
            let fault = read(&FORMAT, &options, true, own.as_bytes()).expect_err(hint);
            assert_eq!((fault.line, fault.column, fault.hint.as_deref()), (Some(1), None, Some(hint)));
        }
        for stated in ["delivered_rate in bit/s", "round_trip_delay in us", "round_trip_delay"] {
            let fault = fault(&own.replace("round_trip_delay in ns", stated));
            assert_eq!((fault.line, fault.column), (Some(1), None), "{fault:?}");
            assert_eq!(fault.what, format!("the log has values of `{stated}`, which are not delays in ns"));
        }
        for other in [format!("{own}#[latlab: delay in ns]\n"), format!("{LOG}{own}")] {
            assert_eq!(fault(&other).what, "the log has histograms of several metrics");
        }
    }

    #[test]
    fn several_tags_are_refused() {
        let tagged = LOG.replace("\n0.127", "\nTag=a,0.127").replace("\n1.134", "\nTag=a,1.134");
        assert_eq!(rows(&nanoseconds(), &tagged), rows(&nanoseconds(), LOG));
        assert!(is_detected(&FORMAT, tagged.lines().last().expect("a line").as_bytes()));
        for log in [tagged.replace("Tag=a,1", "Tag=b,1"), tagged.replace("Tag=a,1", "1")] {
            assert!(fault(&log).what.contains("several tags"), "{log}");
        }
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_column() {
        let good = rows(&nanoseconds(), LOG);
        for (bad, column) in [
            ("2.133,1.001,0.426,HISTFAAAANZ4nC1PwUEM", 19),
            ("2.133,1.001,0.426,HISTFAAAANZ4nC1PwUE*", 19),
            ("Tag=a,2.133,x,0.426,HISTFAAA", 13),
            ("2.133,1.001,0.426", 18),
            ("2.133,1.001,0.426,AAAA", 19),
            ("2.133,1.001,0.426,HISTCAAA", 19),
        ] {
            let log = format!("{LOG}{bad}");
            let fault = fault(&log);
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{bad} {fault:?}");
            let (block, end) = read(&FORMAT, &nanoseconds(), true, log.as_bytes()).expect("a log");
            assert_eq!((block.values.len(), end.skipped, end.first_skipped), (good.len(), 1, Some(fault)));
        }
        assert_eq!(fault("#[Histogram log format version 1.3]\n").what, "the log has no histogram");
    }

    /// A line with a histogram of `bytes`, compressed.
    fn compressed(bytes: &[u8]) -> String {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).expect("memory");
        let deflated = encoder.finish().expect("memory");
        let length = (deflated.len() as u32).to_be_bytes();
        format!("0,1,2,{}", STANDARD.encode([&[0x1c, 0x84, 0x93, 0x14], &length[..], &deflated].concat()))
    }

    #[test]
    fn a_histogram_that_takes_too_much_memory_is_refused_before_it_does() {
        let header = |length: u32, digits: u32| {
            let bounds = [1_u64.to_be_bytes(), u64::MAX.to_be_bytes(), 1_f64.to_be_bytes()].concat();
            [&COOKIE[..], &length.to_be_bytes(), &[0; 4], &digits.to_be_bytes(), &bounds].concat()
        };
        let bomb = compressed(&[header(1 << 30, 3), vec![0; HISTOGRAM_BYTES_MAX]].concat());
        assert!(bomb.len() < 1 << 20 && fault(&bomb).what.contains("more than 16777216 bytes"));
        assert!(fault(&compressed(&header(u32::MAX, 3))).what.contains("another length"));
        assert!(fault(&compressed(&header(0, 6))).what.contains("is damaged"));
        assert!(fault(&compressed(b"")).what.contains("is damaged"));
        let past_its_end = [header(3, 0), vec![0xff, 0xff, 0x7f]].concat();
        assert_eq!(rows(&nanoseconds(), &compressed(&past_its_end)), [], "zeros");
        assert_eq!(rows(&nanoseconds(), &compressed(&[header(1, 0), vec![2]].concat())), [(0, 1)]);
    }
}
