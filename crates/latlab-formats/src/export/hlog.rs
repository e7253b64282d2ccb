//! The interval log of HdrHistogram, version 1.3, with a histogram in its compressed V2 encoding for each run.
//!
//! Values are nanoseconds (or bits a second) with three significant digits. A histogram has no infinite values: a comment in
//! front of each has their number, as that of the lost ones if they are known to be these.

use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use thiserror::Error;

use super::in_one_line;
use crate::metric::Metric;
use crate::sample::INFINITE;

/// Significant decimal digits of the values.
const DIGITS: u8 = 3;

/// A run as a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HlogRun<'a> {
    /// What names its condition; the runs of one condition share it.
    pub tag: &'a str,
    pub run: &'a str,
    /// The name of its directory.
    pub recording: &'a str,
    /// When it began, since the epoch.
    pub started: Duration,
    pub length: Duration,
    /// Whether its infinite values are its losses, and all of them.
    pub shows_losses: bool,
}

/// Why a run cannot be a line.
#[derive(Debug, Error)]
pub enum HlogError {
    /// A singleton is negative, which an HdrHistogram cannot hold.
    #[error("cannot write {metric} as a histogram: {value} is negative")]
    Negative {
        metric: &'static str,
        /// The first negative value, in the unit of the metric.
        value: i64,
    },
    /// The target refuses bytes.
    #[error(transparent)]
    Refused(#[from] io::Error),
}

/// Writes the lines of runs to `W`.
pub struct HlogWriter<W> {
    target: W,
    metric: Metric,
    /// When the first run began.
    base: Duration,
}

impl<W: Write> HlogWriter<W> {
    /// Writes the header of a log of `metric`. `base`: when the first of the runs began, since the epoch.
    ///
    /// # Errors
    /// If the target refuses it.
    pub fn new(mut target: W, metric: Metric, base: Duration) -> io::Result<HlogWriter<W>> {
        let (seconds, millis) = (base.as_secs(), base.subsec_millis());
        let begin = format!("{seconds}.{millis:03} (seconds since epoch)");
        writeln!(target, "#[Logged with latlab {}]", env!("CARGO_PKG_VERSION"))?;
        writeln!(target, "#[Histogram log format version 1.3]")?;
        writeln!(target, "#[latlab: {} in {}]", metric.name(), metric.unit())?;
        writeln!(target, "#[StartTime: {begin}]\n#[BaseTime: {begin}]")?;
        writeln!(target, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        Ok(HlogWriter { target, metric, base })
    }

    /// Writes the line of `run`, and in front of it comments with its name and the number of its infinite values: `lost` if these
    /// are its losses, so that an import states them; else `infinite`, if it has any. `values`, in the unit of the metric, have
    /// their counts.
    ///
    /// # Errors
    /// If a value is negative, or the target refuses bytes.
    pub fn append(&mut self, run: &HlogRun<'_>, values: impl Iterator<Item = (i64, u64)>) -> Result<(), HlogError> {
        let mut histogram = Histogram::<u64>::new(DIGITS).map_err(io::Error::other)?;
        let mut infinite = 0_u64;
        for (value, count) in values {
            match u64::try_from(value) {
                Ok(_) if value == INFINITE => infinite += count,
                Ok(value) => histogram.record_n(value, count).map_err(io::Error::other)?,
                Err(_) => return Err(HlogError::Negative { metric: self.metric.name(), value }),
            }
        }
        let (id, recording) = (in_one_line(run.run), in_one_line(run.recording));
        writeln!(self.target, "#[run: {id}, recording: {recording}]")?;
        if run.shows_losses {
            writeln!(self.target, "#[lost: {infinite}]")?;
        } else if infinite > 0 {
            writeln!(self.target, "#[infinite: {infinite}]")?;
        }
        let tag = tag_of(run.tag);
        let mut serializer = V2DeflateSerializer::new();
        let mut line = IntervalLogWriterBuilder::new().begin_log_with(&mut self.target, &mut serializer)?;
        let start = run.started.saturating_sub(self.base);
        line.write_histogram(&histogram, start, run.length, Tag::new(&tag)).map_err(io::Error::other)?;
        Ok(())
    }

    /// Ends the log.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn finish(mut self) -> io::Result<()> {
        self.target.flush()
    }
}

/// `text` without the characters that end a tag: a comma becomes `;`, blanks and control characters `_`.
fn tag_of(text: &str) -> String {
    let replaced = |char: char| match char {
        ',' => ';',
        char if char.is_whitespace() || super::is_control(char) => '_',
        char => char,
    };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn log(singletons: &[i64], shows_losses: bool) -> Result<String, HlogError> {
        let mut text = Vec::new();
        let mut writer = HlogWriter::new(&mut text, Metric::RoundTripDelay, Duration::from_millis(1_800_000_000_250))?;
        for (seconds, tag) in [(1_800_000_000, "load=cpu=20%, size=64"), (1_800_000_007, "b c")] {
            let (started, length) = (Duration::from_secs(seconds) + Duration::from_millis(250), Duration::from_secs(2));
            let run = HlogRun { tag, run: "0123", recording: "a\nb", started, length, shows_losses };
            writer.append(&run, singletons.iter().map(|value| (*value, 1)))?;
        }
        writer.finish()?;
        Ok(String::from_utf8(text).expect("text"))
    }

    /// The bytes of base64 (RFC 4648, section 4).
    fn decoded(text: &str) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sextets = text.bytes().filter_map(|byte| ALPHABET.iter().position(|known| *known == byte));
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
        for sextet in sextets {
            (bits, held) = (bits << 6 | sextet as u32, held + 6);
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        bytes
    }

    #[test]
    fn lines_come_back_with_tags_times_and_values() {
        let text = log(&[0, 1, 45_000, 45_001, 3_000_000_000, INFINITE, INFINITE], true).expect("values from 0 on");
        assert!(text.starts_with("#[Logged with latlab "), "{text}");
        for part in ["#[latlab: round_trip_delay in ns]\n", "#[lost: 2]\n", "#[run: 0123, recording: a b]\n"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let legend_end = text.find("Interval_Compressed_Histogram\"\n").expect("a legend") + 31;
        let entries: Vec<_> =
            IntervalLogIterator::new(&text.as_bytes()[legend_end..]).map(|it| it.expect("parses")).collect();
        let mut tags = Vec::new();
        for (entry, start) in entries.iter().zip([0, 7]) {
            let LogEntry::Interval(interval) = entry else { panic!("{entry:?}") };
            assert_eq!((interval.start_timestamp().as_secs(), interval.duration().as_secs()), (start, 2));
            tags.push(interval.tag().expect("a tag").as_str());
            let bytes = decoded(interval.encoded_histogram());
            let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
            assert_eq!((read.len(), read.count_at(1), read.min()), (5, 1, 0));
            assert!((read.max() as f64 / 3e9 - 1.0).abs() < 1e-3);
        }
        assert_eq!(tags, ["load=cpu=20%;_size=64", "b_c"]);
    }

    #[test]
    fn a_negative_value_is_refused() {
        assert!(matches!(log(&[5, -3], true), Err(HlogError::Negative { value: -3, .. })));
    }

    #[test]
    fn infinite_values_that_are_not_the_losses_have_a_comment_that_no_import_takes_for_losses() {
        let text = log(&[5, INFINITE], false).expect("values from 0 on");
        assert!(!text.contains("lost") && text.contains("#[infinite: 1]\n"), "{text}");
        assert!(!log(&[5], false).expect("values from 0 on").contains("infinite"));
        assert!(log(&[5], true).expect("values from 0 on").contains("#[lost: 0]\n"));
    }
}
