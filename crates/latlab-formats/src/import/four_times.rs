//! The log of det-bypass: each line has the number of a packet and four instants, `id t1 t2 t3 t4`, in ns. The packet was sent
//! at t1 and its answer arrived at t4, by the sender's clock; it arrived at the reflector at t2 and was answered at t3, by the
//! reflector's clock.
//!
//! Instants are taken as they are: the log has no mark of a lost packet, and a 0 is not one.

use super::field::{LogField, Scan, bounded, is_blank_or_comment, unit_of, words};
use super::log::are_rows;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedProbe;
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "four-times",
    title: "four-times log of det-bypass",
    rows: Kind::Ping,
    is_generic: false,
    options: &["--unit"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(open),
};

/// What a line consists of.
const PARTS: [&str; 5] = ["id", "t1", "t2", "t3", "t4"];

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    unit_of(Some(TimeUnit::Nanos), options.unit)?;
    Ok(Box::new(FourTimes))
}

/// Whether the lines consist of five whole numbers. Those of histograms of cyclictest for four threads do too, below a heading.
fn detects(head: &LogHead<'_>) -> bool {
    // The bins of a histogram of four threads have as many numbers.
    let is_histogram = head.lines().any(|line| line.starts_with(b"# Histogram"));
    !is_histogram && are_rows(head.lines().filter(|line| !line.starts_with(b"#")), |line| probe_of(line).is_ok())
}

/// The probe of a line.
fn probe_of(line: &[u8]) -> Result<LoggedProbe, LogFault> {
    let mut words = words(line);
    let mut found = [LogField { text: b"", column: 0 }; PARTS.len()];
    for (field, part) in found.iter_mut().zip(PARTS) {
        *field = words.next().ok_or_else(|| missing(line, part))?;
    }
    if let Some(more) = words.next() {
        return Err(LogFault::at(more.column, format!("`{}` is more than `{}`", more.shown(), PARTS.join(" "))));
    }
    let [id, sent, reflector_received, reflector_sent, received] = found;
    Ok(LoggedProbe {
        id: Some(id.count()?),
        sent_ns: Some(sent.nanos()?),
        reflector_received_ns: Some(reflector_received.nanos()?),
        reflector_sent_ns: Some(reflector_sent.nanos()?),
        received_ns: Some(received.nanos()?),
        ..LoggedProbe::default()
    })
}

#[cold]
fn missing(line: &[u8], part: &str) -> LogFault {
    let end = line.trim_ascii_end().len();
    LogFault::at(end + 1, format!("{part} is missing: a line is `{}`", PARTS.join(" ")))
}

struct FourTimes;

/// The probe of a line of five plain numbers.
#[inline]
fn plain_probe(scan: &mut Scan<'_>) -> Option<LoggedProbe> {
    let id = scan.count()?;
    let mut next = || i64::try_from(scan.blanks(0).then(|| scan.count())??).ok().and_then(bounded);
    let (sent, arrived, answered, received) = (next()?, next()?, next()?, next()?);
    scan.blanks(0);
    scan.end()?;
    Some(LoggedProbe {
        id: Some(id),
        sent_ns: Some(sent),
        reflector_received_ns: Some(arrived),
        reflector_sent_ns: Some(answered),
        received_ns: Some(received),
        ..LoggedProbe::default()
    })
}

impl LineParser for FourTimes {
    fn plain_rows(&mut self, text: &[u8], rows: &mut LogRows<'_>) -> (usize, u64) {
        let mut scan = Scan { text, at: 0, has_point: false };
        let (mut end, mut taken) = (0, 0);
        while let Some(probe) = plain_probe(&mut scan) {
            rows.probe(probe);
            (end, taken) = (scan.at, taken + 1);
        }
        (end, taken)
    }

    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if !is_blank_or_comment(line) {
            rows.probe(probe_of(line)?);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        Ok(LogFacts::of("det-bypass"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "# id t1 t2 t3 t4\n\
        1 1650000000000001000 1650000000003001000 1650000000003009000 1650000000004001000\n\
        \n  2\t1000 \t 900 910 1200  \r\n\
        2 0 0 0 0\n";

    #[test]
    fn each_line_is_a_probe_with_its_instants() {
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, LOG.as_bytes()).expect("a log");
        let first = 1_650_000_000_000_000_000;
        let all = [
            [1, first + 1_000, first + 3_001_000, first + 3_009_000, first + 4_001_000],
            [2, 1_000, 900, 910, 1_200],
            [2, 0, 0, 0, 0],
        ];
        let probes = all.map(|[id, sent, arrived, answered, received]| LoggedProbe {
            id: Some(id as u64),
            sent_ns: Some(sent),
            reflector_received_ns: Some(arrived),
            reflector_sent_ns: Some(answered),
            received_ns: Some(received),
            ..LoggedProbe::default()
        });
        assert_eq!(block.probes, probes);
        assert_eq!((end.facts, end.skipped), (LogFacts::of("det-bypass"), 0));
    }

    #[test]
    fn a_line_with_too_few_too_many_or_other_fields_is_a_fault_at_its_column() {
        for (line, column, what) in [
            ("3 1 2 3 ", 8, "t4 is missing: a line is `id t1 t2 t3 t4`"),
            ("3", 2, "t1 is missing: a line is `id t1 t2 t3 t4`"),
            ("3 1 2 3 4 5", 11, "`5` is more than `id t1 t2 t3 t4`"),
            ("3 1 x 3 4", 5, "`x` is not a whole number"),
            ("3 1 2.5 3 4", 5, "`2.5` is not a whole number"),
            ("-3 1 2 3 4", 1, "`-3` is not a whole number"),
            ("3,1,2,3,4", 10, "t1 is missing: a line is `id t1 t2 t3 t4`"),
        ] {
            let text = [LOG, line].concat();
            let fault = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect_err(line);
            assert_eq!((fault.line, fault.column, &*fault.what), (Some(6), Some(column), what), "{line}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect(line);
            assert_eq!((block.probes.len(), end.skipped, end.first_skipped), (3, 1, Some(fault)));
        }
    }

    #[test]
    fn logs_of_which_half_the_lines_are_five_whole_numbers_are_detected() {
        assert!(is_detected(&FORMAT, LOG.as_bytes()) && is_detected(&FORMAT, b"1 2 3 4 5"));
        assert!(is_detected(&FORMAT, b"1 2 3 4 5\n1 2 3\n"), "one line is damaged");
        for text in [
            "",
            "# c\n",
            "1 2 3 4\n",
            "1 2 3 4 5\n1 2\n4 5\n",
            "1 2\n1 2 3 4 5\n",
            "1 2 3 4 5.5\n",
            "# Histogram\n1 2 3 4 5\n",
        ] {
            assert!(!is_detected(&FORMAT, text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn another_unit_than_nanoseconds_is_refused() {
        let options = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        assert!(read(&FORMAT, &options, false, LOG.as_bytes()).is_err());
    }
}
