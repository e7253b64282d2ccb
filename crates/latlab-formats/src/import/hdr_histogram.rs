//! HdrHistogram: logs of histograms of version 2, which programs in Java, C, Rust and others write:
//!
//! ```text
//! #[StartTime: 1700000000.474 (seconds since epoch), …]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! Tag=read,0.127,1.007,2.752,HISTFAAAANZ4nC1Pw…
//! ```
//!
//! Each recorded value is a row with its count, in no order: the highest value that its bucket stands for, as HdrHistogram
//! reports it. A bucket is at most 10^-digits of its value wide, where the digits (0 to 5) are those of the histogram.
//! The log does not state the unit of its values (programs in Java usually record ns), unless latlab wrote it, with a comment
//! such as `#[latlab: round_trip_delay in ns]`; then the last `#[lost: N]` in front of a histogram is its number of probes
//! without an answer, and the log states its losses if each histogram has one. Histograms of different tags are of different
//! things, and are refused.
//!
//! A histogram may expand to at most 16 MiB, which is checked before memory is taken for it.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{DeserializeError, Deserializer};

use super::field::{LogField, TOTAL_MAX, bounded, cells, unit_of};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "hdr-histogram",
    title: "log of HdrHistogram",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(parser),
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
/// The first bytes of a compressed one; the length of the rest stands behind them.
const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
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

fn parser(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    Ok(Box::new(HistogramLog {
        unit: options.unit,
        metric: options.metric,
        facts: LogFacts::of("HdrHistogram"),
        is_of_latlab: false,
        lost: None,
        has_all_losses: true,
        tag: None,
        deserializer: Deserializer::new(),
        bytes: Vec::new(),
    }))
}

/// The reading of a log.
struct HistogramLog {
    unit: Option<TimeUnit>,
    metric: Option<Metric>,
    facts: LogFacts,
    /// Whether latlab wrote the log.
    is_of_latlab: bool,
    /// The values without an answer of the next histogram, according to the last comment in front of it.
    lost: Option<u64>,
    /// Whether every histogram so far has their number.
    has_all_losses: bool,
    /// That of the first histogram, which may have none.
    tag: Option<Option<Vec<u8>>>,
    deserializer: Deserializer,
    /// Memory for the bytes of a histogram.
    bytes: Vec<u8>,
}

impl LineParser for HistogramLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if line.starts_with(b"#") {
            return self.comment(&String::from_utf8_lossy(line)).map(|()| LineUse::Taken);
        }
        if line.starts_with(LEGEND) || line.trim_ascii().is_empty() {
            return Ok(LineUse::Taken);
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
        self.has_all_losses &= lost.is_some();
        rows.are_of(self.metric.unwrap_or(Metric::Delay));
        if let Some(count @ 1..) = lost {
            rows.value(LoggedValue { seq: None, value_ns: None, count });
        }
        for recorded in histogram.iter_recorded() {
            let value_ns = nanos(histogram.highest_equivalent(recorded.value_iterated_to()), unit);
            rows.value(LoggedValue { seq: None, value_ns, count: recorded.count_at_value() });
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.tag.is_none() {
            return Err(LogFault::whole("the log has no histogram"));
        }
        self.facts.metric = Some(self.metric.unwrap_or(Metric::Delay));
        self.facts.states_losses = (self.is_of_latlab && self.has_all_losses).then_some(true);
        Ok(self.facts.clone())
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
            let start = LogField { text: seconds.as_bytes(), column: 1 }.time(TimeUnit::Seconds).ok();
            self.facts.started_ns = self.facts.started_ns.or(start);
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
            let shown = LogField { text: stated.as_bytes(), column: 1 }.shown();
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
            let shown = LogField { text: name.as_bytes(), column: 1 }.shown();
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
        let bytes = base_64(encoded.text).ok_or_else(|| encoded.is_not("a histogram in base 64"))?;
        self.bytes.clear();
        match bytes.first_chunk() {
            Some(&COOKIE) => self.bytes.extend_from_slice(&bytes),
            Some(&COMPRESSED_COOKIE) => {
                let compressed = bytes.get(8..).unwrap_or_default();
                let mut inflated = ZlibDecoder::new(compressed).take(HISTOGRAM_BYTES_MAX as u64 + 1);
                inflated.read_to_end(&mut self.bytes).map_err(|_| fault("is cut off or damaged"))?;
            }
            Some([0x1c, 0x84, 0x93, _]) => return Err(fault("is of version 0 or 1, which is not supported")),
            _ => return Err(encoded.is_not("a histogram")),
        }
        if self.bytes.len() > HISTOGRAM_BYTES_MAX {
            return Err(fault(&format!("has more than {HISTOGRAM_BYTES_MAX} bytes")));
        }
        // The deserializer takes as much memory as the header says.
        let stated = self.bytes.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        if stated.map(|stated| stated as usize) != self.bytes.len().checked_sub(HEADER_BYTES) {
            return Err(fault("has another length than it states"));
        }
        self.deserializer.deserialize(&mut &self.bytes[..]).map_err(|error| match error {
            DeserializeError::UnsupportedFeature => fault("has values that are not whole numbers, or shifted ones"),
            _ => fault("is damaged"),
        })
    }
}

/// The bytes of `text` in base 64; `None` if it is malformed.
fn base_64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text[..text.len() - padding].chunks(4) {
        let value = group.iter().try_fold(0_u32, |value, byte| Some(value << 6 | digit(*byte)?))?;
        let bits = 6 * group.len();
        bytes.extend_from_slice(&(value << (32 - bits)).to_be_bytes()[..bits / 8]);
    }
    Some(bytes)
}

/// The value of a digit of base 64.
fn digit(byte: u8) -> Option<u32> {
    match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};

    use super::super::LogBlock;
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
        assert_eq!(end.facts, LogFacts { started_ns, metric: Some(Metric::Delay), ..LogFacts::of("HdrHistogram") });
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
    fn the_unit_is_given_or_stated() {
        let fault = read(&FORMAT, &LogOptions::default(), true, LOG.as_bytes()).expect_err("without a unit");
        assert_eq!((fault.line, fault.column), (Some(5), None));
        assert!(fault.hint.expect("a hint").contains("--unit ns"));
        let log = format!("#[latlab: round_trip_delay in ns]\n{LOG}");
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect("a log");
        assert_eq!((block.values.is_empty(), end.facts.metric), (false, Some(Metric::RoundTripDelay)));
    }

    #[test]
    fn lost_values_of_a_log_of_latlab_are_rows_without_a_value() {
        let lost = LOG.replace("\n0.127", "\n#[lost: 2]\n0.127").replace("\n1.134", "\n#[lost: 0]\n1.134");
        let own = format!("#[latlab: round_trip_delay in ns]\n{lost}");
        let (block, _) = read(&FORMAT, &LogOptions::default(), false, own.as_bytes()).expect("a log");
        assert_eq!(block.values[0], LoggedValue { seq: None, value_ns: None, count: 2 });
        assert_eq!((block.values[1..].to_vec(), block.metric), (whole_log().values, Some(Metric::RoundTripDelay)));
        let (foreign, _) = read(&FORMAT, &nanoseconds(), false, lost.as_bytes()).expect("a log of another tool");
        assert_eq!(foreign.values, whole_log().values);
        for bad in ["x]", "-1]", ""] {
            let text = own.replace("lost: 2]", &format!("lost: {bad}"));
            let fault = read(&FORMAT, &nanoseconds(), false, text.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(6), Some(9)), "{fault:?}");
        }
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
    fn a_histogram_of_too_many_values_is_malformed() {
        let mut histogram = Histogram::<u64>::new(3).expect("digits");
        histogram.record_n(5, TOTAL_MAX + 1).expect("a value");
        let mut log = Vec::new();
        let mut serializer = V2Serializer::new();
        let mut writer = IntervalLogWriterBuilder::new().begin_log_with(&mut log, &mut serializer).expect("a log");
        writer.write_histogram(&histogram, Default::default(), Default::default(), None).expect("a histogram");
        let fault = read(&FORMAT, &nanoseconds(), false, &log).expect_err("2^40 + 1 values");
        assert!(fault.column.is_some() && fault.what.contains("up to 2^40 values"), "{fault:?}");
    }

    fn whole_log() -> LogBlock {
        read(&FORMAT, &nanoseconds(), false, LOG.as_bytes()).expect("a log").0
    }

    #[test]
    fn several_tags_are_refused() {
        let tagged = LOG.replace("\n0.127", "\nTag=a,0.127").replace("\n1.134", "\nTag=a,1.134");
        assert_eq!(rows(&nanoseconds(), &tagged), rows(&nanoseconds(), LOG));
        assert!(is_detected(&FORMAT, tagged.lines().last().expect("a line").as_bytes()));
        for log in [tagged.replace("Tag=a,1", "Tag=b,1"), tagged.replace("Tag=a,1", "1")] {
            assert!(fault(&log).what.contains("several tags"), "{log}");
        }
        assert!(Tag::new("a").is_some());
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
            ("\u{0}\u{1}", 1),
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
        let all = [&COMPRESSED_COOKIE[..], &length, &deflated].concat();
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::from("0,1,2,");
        for group in all.chunks(3) {
            let mut padded = [0; 4];
            padded[1..=group.len()].copy_from_slice(group);
            let value = u32::from_be_bytes(padded);
            for place in 0..4 {
                let digit = digits[(value >> (18 - 6 * place)) as usize & 63] as char;
                text.push(if place > group.len() { '=' } else { digit });
            }
        }
        text
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

    #[test]
    fn base_64_is_read_strictly() {
        for (text, bytes) in
            [("", &b""[..]), ("QQ==", b"A"), ("QUI=", b"AB"), ("QUJD", b"ABC"), ("+/+/", b"\xfb\xff\xbf")]
        {
            assert_eq!(base_64(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Q", "QQ", "QUI", "Q===", "QQ=A", "QU I", "====", "\u{e9}\u{e9}"] {
            assert_eq!(base_64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn other_text_is_not_detected() {
        let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [&utf_16[..], b"# a comment\n1,2,3,4\n", b"1,2,3,HIS\n", b"\xff\x00", b""] {
            assert!(!detects(&LogHead { bytes, is_whole: true }), "{bytes:?}");
        }
    }
}
