//! HdrHistogram: logs of histograms of versions 0 to 2, a line `[Tag=NAME,]start,length,max,HISTFAAAA…` for each.
//!
//! A bucket stands for a range of values. Each is a row with its count, in no order, and the highest value of its range, as
//! quantiles and the maximum of HdrHistogram are: how far that may be above what was recorded is noted beyond 0.2 %.
//!
//! The log does not state the unit of its values, unless latlab wrote it, with a comment `#[latlab: round_trip_delay in ns]`; then
//! the last `#[lost: N]` in front of a histogram is its number of probes without an answer, and the log states its losses if each
//! histogram has one. Counts are walked where they lie, so that the work is bounded by their bytes.

use super::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use std::io::Read;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    Ok(Box::new(HistogramLog { unit: options.unit, metric: options.metric, ..HistogramLog::default() }))
}

const LEGEND: &[u8] = b"\"StartTimestamp\"";
const HISTOGRAM_BYTES_MAX: u64 = 1 << 24;

pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_row = |line| captured::<0>(whole(line), "*,*,*,HIST*").is_some();
    head.lines().any(|line| line.starts_with(LEGEND) || line.starts_with(b"#[Histogram log format") || is_row(line))
}

#[derive(Default)]
struct HistogramLog {
    unit: Option<TimeUnit>,
    metric: Option<Metric>,
    started_ns: Option<i64>,
    widest: u64,
    excess: f64,
    is_of_latlab: bool,
    /// The values without an answer of the next histogram, according to the last comment in front of it.
    lost: Option<u64>,
    lacks_losses: bool,
    tag: Option<Option<Vec<u8>>>,
}

impl LineParser for HistogramLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if line.starts_with(b"#") {
            return self.comment(whole(line)).map(|()| LineUse::Taken);
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
        let end = || LogFault::at(line.len() + 1, "the line ends before its histogram");
        for _ in 0..3 {
            cells.next().ok_or_else(end)?.time(TimeUnit::Nanos)?;
        }
        let encoded = cells.next().ok_or_else(end)?;
        let histogram = EncodedHistogram::of(&encoded)?;
        if *self.tag.get_or_insert_with(|| tag.clone()) != tag {
            let fault = LogFault::whole("the log has histograms of several tags, which are of different things");
            return Err(fault.hint("import the lines of one tag: `grep -e '^#' -e '^Tag=NAME,' LOG`"));
        }
        let unit = unit_of(None, self.unit)
            .map_err(|fault| fault.hint("give it: `--unit ns` is usual for programs in Java"))?;
        let nanos = |value: u64| bounded(i64::try_from(value).ok()?.checked_mul(unit.nanos() as i64)?);
        let (mut total, mut is_short) = (0_u64, true);
        let is_whole = histogram.buckets(&mut |_, high, count| {
            total = total.saturating_add(count);
            is_short &= nanos(high).is_some();
        });
        is_whole.ok_or_else(|| encoded.is_not("a whole histogram"))?;
        if total > TOTAL_MAX || !is_short {
            return Err(encoded.is_not("a histogram of up to 2^40 times below 146 years"));
        }
        self.lacks_losses |= lost.is_none();
        rows.are_of(self.metric.unwrap_or(Metric::Delay));
        if let Some(count @ 1..) = lost {
            rows.value(LoggedValue { seq: None, value_ns: None, count });
        }
        histogram.buckets(&mut |low, high, count| {
            self.widest = self.widest.max(high - low + 1);
            self.excess = self.excess.max((high - low) as f64 / low.max(1) as f64);
            rows.value(LoggedValue { seq: None, value_ns: nanos(high), count });
        });
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        if self.tag.is_none() {
            return Err(LogFault::whole("the log has no histogram"));
        }
        let percent = (self.excess * 1e3).ceil() / 10.0;
        let edges = format!("values are the upper edges of buckets, up to {percent} % above what was recorded");
        let width = |unit: TimeUnit| bounded(i64::try_from(self.widest).ok()?.checked_mul(unit.nanos() as i64)?);
        Ok(LogFacts {
            started_ns: self.started_ns,
            resolution_ns: self.unit.and_then(width).map(Nanos),
            notes: if percent > 0.2 { vec![edges] } else { Vec::new() },
            states_losses: (self.is_of_latlab && !self.lacks_losses).then_some(true),
            ..LogFacts::of("HdrHistogram")
        })
    }
}

impl HistogramLog {
    fn comment(&mut self, text: LogField<'_>) -> Result<(), LogFault> {
        if captured::<1>(text, "#[run: {}").is_some() {
            self.lost = None;
        } else if let Some([lost]) = captured(text, "#[lost: {}]").filter(|_| self.is_of_latlab) {
            // A malformed number does not leave that of another histogram.
            self.lost = None;
            self.lost = Some(lost.total()?);
        } else if let Some([stated]) = captured(text, "#[latlab: {}]") {
            self.values_of_latlab(stated)?;
        } else if let Some([seconds]) = captured(text, "#[StartTime: {} *") {
            self.started_ns = self.started_ns.or(seconds.time(TimeUnit::Seconds).ok());
        }
        Ok(())
    }

    /// Takes what latlab states about the values: `round_trip_delay in ns`.
    fn values_of_latlab(&mut self, stated: LogField<'_>) -> Result<(), LogFault> {
        let Some([name]) = captured(stated, "{} in ns") else {
            let what = format!("the log has values of `{}`, which are not delays in ns", stated.shown());
            return Err(LogFault::whole(what).hint("export a metric of times, such as `round_trip_delay`"));
        };
        self.unit = Some(unit_of(Some(TimeUnit::Nanos), self.unit)?);
        let metric = Metric::from_name(&name.shown());
        if self.metric != metric && (self.metric.is_some() || self.is_of_latlab || self.tag.is_some()) {
            let what = format!("the log states values of `{}`, and others were stated or read before", name.shown());
            return Err(LogFault::whole(what).hint("leave out `--metric`, and import each of several logs by itself"));
        }
        (self.metric, self.is_of_latlab) = (metric, true);
        Ok(())
    }
}

struct EncodedHistogram {
    counts: Vec<u8>,
    /// `None`: each count, or run of zeros, has as many bytes as it needs.
    count_bytes: Option<usize>,
    /// Bits of a value that the first bucket leaves out, and bits of the steps of each later one.
    unit_bits: u32,
    step_bits: u32,
}

impl EncodedHistogram {
    /// The histogram in `encoded`, in base 64. In front of its counts are the cookie, the length of the counts, an offset, the
    /// digits, the lowest value, the highest one and a ratio.
    fn of(encoded: &LogField<'_>) -> Result<EncodedHistogram, LogFault> {
        let fault = |what: &str| LogFault::at(encoded.column, format!("the histogram {what}"));
        let mut bytes = STANDARD.decode(encoded.text).map_err(|_| encoded.is_not("a histogram in base 64"))?;
        if let [0x1c, 0x84, 0x93, _, _, _, _, _, compressed @ ..] = bytes.as_slice()
            && matches!(bytes[3] & 0xf, 2 | 4 | 9)
        {
            // The length of the rest stands in front of it.
            let mut inflated = ZlibDecoder::new(compressed).take(HISTOGRAM_BYTES_MAX + 1);
            let mut whole = Vec::new();
            inflated.read_to_end(&mut whole).map_err(|_| fault("is cut off or damaged"))?;
            bytes = whole;
        }
        // Version 0 has no length and offset in front of the digits, and no ratio; counts of versions 0 and 1 have 2, 4 or 8 bytes.
        let (version, header_bytes) = match bytes.as_slice() {
            [0x1c, 0x84, 0x93, low, ..] if low & 0xf == 8 => (0, 32),
            [0x1c, 0x84, 0x93, low, ..] if low & 0xf == 1 => (1, 40),
            [0x1c, 0x84, 0x93, 0x13, ..] => (2, 40),
            [0x0c, 0x72, 0x12, ..] => {
                let hint = "HistogramLogProcessor makes a table of percentiles of it, which can be imported";
                return Err(LogFault::whole("the log has histograms of values that are not whole numbers").hint(hint));
            }
            _ => return Err(encoded.is_not("a histogram")),
        };
        if bytes.len() as u64 > HISTOGRAM_BYTES_MAX {
            return Err(fault(&format!("has more than {HISTOGRAM_BYTES_MAX} bytes")));
        }
        let (header, counts) = bytes.split_at_checked(header_bytes).ok_or_else(|| fault("is damaged"))?;
        let number = |at: usize| header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let at = if version == 0 { 4 } else { 12 };
        let (digits, lowest) = (number(at), number(at + 8));
        if digits > 5 || number(at + 4) != 0 || (version > 0 && number(8) != 0) {
            return Err(fault("is damaged, or has shifted values"));
        }
        let count_bytes = (version < 2).then_some(usize::from(header[3] >> 4 & 0xe));
        let is_whole = match count_bytes {
            None => number(4) as usize == counts.len(),
            Some(size) => matches!(size, 2 | 4 | 8) && counts.len().is_multiple_of(size),
        };
        if !is_whole {
            return Err(fault("has another length than it states"));
        }
        let step_bits = (2 * 10_u32.pow(digits)).next_power_of_two().ilog2() - 1;
        Ok(EncodedHistogram { counts: counts.to_vec(), count_bytes, unit_bits: lowest.max(1).ilog2(), step_bits })
    }

    /// Passes the lowest and the highest value and the count of each bucket with values on; `None` if the counts are damaged.
    fn buckets(&self, take: &mut dyn FnMut(u64, u64, u64)) -> Option<()> {
        let (mut rest, mut index) = (&*self.counts, 0_u64);
        while !rest.is_empty() {
            let (count, zeros) = match self.count_bytes {
                Some(size) => (rest.split_off(..size)?.iter().fold(0, |count, byte| count << 8 | u64::from(*byte)), 1),
                None => next_count(&mut rest)?,
            };
            if count > 0 {
                let half = 1 << self.step_bits;
                let bucket = (index >> self.step_bits).saturating_sub(1);
                let step = if bucket == 0 { index } else { index % half + half };
                let shift = u32::try_from(bucket).ok().and_then(|bucket| bucket.checked_add(self.unit_bits));
                let shift = shift.filter(|shift| shift + self.step_bits < 62)?;
                take(step << shift, ((step + 1) << shift) - 1, count);
            }
            index = index.checked_add(zeros)?;
        }
        Some(())
    }
}

/// The next count, and how many buckets it is of: zeros may be of several.
fn next_count(rest: &mut &[u8]) -> Option<(u64, u64)> {
    // Groups of seven bits, the lowest first, of twice the count: odd numbers stand for runs of zeros. The ninth has eight.
    let (mut number, mut bits) = (0_u64, 0);
    loop {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        let is_last = bits == 56;
        number |= u64::from(if is_last { *byte } else { byte & 0x7f }) << bits;
        bits += 7;
        if is_last || byte & 0x80 == 0 {
            break;
        }
    }
    Some(if number.is_multiple_of(2) { (number / 2, 1) } else { (0, number / 2 + 1) })
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
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
        read("hdr-histogram", &nanoseconds(), false, log.as_bytes()).expect_err(log)
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
        let (block, _) = read("hdr-histogram", options, false, log.as_bytes()).expect(log);
        assert!(block.values.iter().all(|value| value.seq.is_none()));
        block.values.iter().map(|value| (value.value_ns.expect("a value"), value.count)).collect()
    }

    #[test]
    fn the_values_of_each_histogram_are_rows_with_counts() {
        let (block, end) = read("hdr-histogram", &nanoseconds(), false, LOG.as_bytes()).expect("a log");
        let most = block.values.iter().filter_map(|value| value.value_ns).max();
        let total: u64 = block.values.iter().map(|value| value.count).sum();
        assert_eq!((most, total), (Some(2_752_511), 1_491), "the log has 2.752 ms");
        let started_ns = Some(1_700_000_000_474_000_000);
        assert_eq!(
            (end.facts.started_ns, end.facts.metric, end.facts.notes.len()),
            (started_ns, Some(Metric::Delay), 1)
        );
        assert!(is_detected("hdr-histogram", LOG.as_bytes()));
    }

    #[test]
    fn a_value_is_the_highest_of_its_bucket() {
        let values = [0, 1, 1, 2_047, 2_048, 4_095, 1_000_000];
        let expected = [(0, 1), (1, 2), (2_047, 1), (2_049, 1), (4_095, 1), (1_000_447, 1)];
        for log in [log_of(&values, &mut V2Serializer::new()), log_of(&values, &mut V2DeflateSerializer::new())] {
            assert_eq!(rows(&nanoseconds(), &log), expected, "{log}");
            assert!(is_detected("hdr-histogram", log.as_bytes()), "{log}");
        }
        let micros = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        assert_eq!(rows(&micros, &log_of(&values, &mut V2Serializer::new()))[4], (4_095_000, 1));
        let long = log_of(&[u64::MAX / 8], &mut V2Serializer::new());
        let fault = read("hdr-histogram", &micros, true, long.as_bytes());
        assert!(fault.expect("a bad line").1.first_skipped.expect("a fault").what.contains("146 years"));
    }

    #[test]
    fn the_width_of_a_bucket_is_noted_and_older_versions_have_the_same_rows() {
        // One digit: HdrHistogram has a minimum of 992 and a maximum of 1023.
        let one_digit = "0.000,1.000,0.001,HISTFAAAAB94nJNpmSzMwMDAzAABjCg0v5OD/QeIwF1GEQBLlAP+\n";
        let (block, end) = read("hdr-histogram", &nanoseconds(), false, one_digit.as_bytes()).expect("a log");
        assert_eq!((block.values[0].value_ns, end.facts.resolution_ns), (Some(1_023), Some(Nanos(32))));
        assert!(end.facts.notes[0].contains("up to 3.2 % above"), "{:?}", end.facts.notes);
        // As HdrHistogram 1.2.1, 2.0.3 and 2.2.2 of Java write the same histogram, with two digits.
        for text in [
            "HISTiQAAAER4nJNpmdzBwMDAxAABjGCS38kByjViwA8YCciPglFAAmDUGWgXjIJRMApGwSgYBaNgFIyCUTAKRsEwA6zEKgQA39ACtg==",
            "HISTggAAAER4nJNpmdzIwMB/gwECmKA0I5jkd3Kw/8BADGAkStUoGAVEAUadgXbBKBgFo2AUjIJRMApGwSgYBaNgFAwzwAoAHckEkg==",
            "HISTFAAAACh4nJNpmSzMwMDAyQABTFCaEUzyOznYf4AIsDJNZLzBcp2NCwBnagVv",
        ] {
            assert_eq!(rows(&nanoseconds(), &format!("0,1,0.001,{text}\n")), [(3, 1), (77, 300), (1_003, 5)], "{text}");
        }
        let fault = fault("0,1,2,DHISTwAAAAMAAAAAAAAAAhyEkxQAAAAieJyTaZkszMDAwMgAAxARRgYGJgYACh0BEw==\n");
        assert!(fault.column.is_none() && fault.hint.is_some_and(|hint| hint.contains("Processor")));
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
            let (block, end) = read("hdr-histogram", &LogOptions::default(), true, log.as_bytes()).expect(&log);
            let found: u64 = block.values.iter().filter(|row| row.value_ns.is_none()).map(|row| row.count).sum();
            assert_eq!((found, end.facts.states_losses), (lost, states_losses), "{log}");
            assert_eq!(block.metric, Some(Metric::RoundTripDelay));
        }
        let foreign = own("#[lost: 2]\n", "#[lost: 0]\n").replace(head, "");
        let (_, end) = read("hdr-histogram", &nanoseconds(), false, foreign.as_bytes()).expect("a log of another tool");
        assert_eq!(end.facts.states_losses, None);
        let large = fault(&own("#[lost: 1099511627777]\n", ""));
        assert_eq!((large.line, large.column), (Some(6), Some(9)), "{large:?}");
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
        ] {
            let log = format!("{LOG}{bad}");
            let fault = fault(&log);
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{bad} {fault:?}");
            let (block, end) = read("hdr-histogram", &nanoseconds(), true, log.as_bytes()).expect("a log");
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
    fn the_size_and_the_work_of_a_histogram_are_bounded_by_its_bytes() {
        let header = |length: u32, digits: u32| {
            let bounds = [1_u64.to_be_bytes(), u64::MAX.to_be_bytes(), 1_f64.to_be_bytes()].concat();
            [&[0x1c, 0x84, 0x93, 0x13], &length.to_be_bytes()[..], &[0; 4], &digits.to_be_bytes(), &bounds].concat()
        };
        let bomb = compressed(&[header(1 << 30, 3), vec![0; HISTOGRAM_BYTES_MAX as usize]].concat());
        assert!(bomb.len() < 1 << 20 && fault(&bomb).what.contains("more than 16777216 bytes"));
        assert!(fault(&compressed(&header(u32::MAX, 3))).what.contains("another length"));
        assert!(fault(&compressed(&header(0, 6))).what.contains("is damaged"));
        assert!(fault(&compressed(b"")).what.contains("is not a histogram"));
        let past_its_end = [header(3, 0), vec![0xff, 0xff, 0x7f]].concat();
        assert_eq!(rows(&nanoseconds(), &compressed(&past_its_end)), [], "zeros");
        assert_eq!(rows(&nanoseconds(), &compressed(&[header(1, 0), vec![2]].concat())), [(0, 1)]);
        let many = compressed(&[header(1_200_000, 5), vec![2; 1_200_000]].concat());
        assert!(fault(&many).what.ends_with(" bytes stand for 1200000 rows"));
        let beyond = [header(4, 0), vec![0xff, 0xff, 0x7f, 2]].concat();
        assert!(fault(&compressed(&beyond)).what.contains("is not a whole histogram"));
    }
}
