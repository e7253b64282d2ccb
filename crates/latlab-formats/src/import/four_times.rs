//! The log of det-bypass: each line has the number of a packet and four instants, `id t1 t2 t3 t4`, in ns: of sending and receiving
//! by the sender's clock (t1, t4), and at the reflector by its own (t2, t3). It has no mark of a lost packet, and a 0 is not one.

use super::field::{Scan, is_blank_or_comment};
use super::prelude::*;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    unit_of(Some(TimeUnit::Nanos), options.unit)?;
    Ok(Box::new(FourTimes))
}

/// Whether the lines consist of five whole numbers. Those of histograms of cyclictest for four threads do too, below a heading.
pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_histogram = head.lines().any(|line| line.starts_with(b"# Histogram"));
    !is_histogram && are_rows(head.lines().filter(|line| !line.starts_with(b"#")), |line| probe_of(line).is_ok())
}

fn probe(id: u64, [sent, reflector_received, reflector_sent, received]: [i64; 4]) -> LoggedProbe {
    LoggedProbe {
        id: Some(id),
        sent_ns: Some(sent),
        reflector_received_ns: Some(reflector_received),
        reflector_sent_ns: Some(reflector_sent),
        received_ns: Some(received),
        ..LoggedProbe::default()
    }
}

fn probe_of(line: &[u8]) -> Result<LoggedProbe, LogFault> {
    let words: Vec<LogField<'_>> = words(line).collect();
    let end = words.get(5).map_or(line.trim_ascii_end().len() + 1, |more| more.column);
    let fault = || LogFault::at(end, "a line is `id t1 t2 t3 t4`");
    let [id, sent, reflector_received, reflector_sent, received] =
        *words.first_chunk().filter(|_| words.len() == 5).ok_or_else(fault)?;
    let instants = [sent.nanos()?, reflector_received.nanos()?, reflector_sent.nanos()?, received.nanos()?];
    Ok(probe(id.count()?, instants))
}

struct FourTimes;

#[inline]
fn plain_probe(scan: &mut Scan<'_>) -> Option<LoggedProbe> {
    let id = scan.count()?;
    let mut next = || i64::try_from(scan.blanks(0).then(|| scan.count())??).ok().and_then(bounded);
    let instants = [next()?, next()?, next()?, next()?];
    scan.blanks(0);
    scan.end()?;
    Some(probe(id, instants))
}

impl LineParser for FourTimes {
    fn plain_rows(&mut self, text: &[u8], rows: &mut LogRows<'_>) -> (usize, u64) {
        let mut scan = Scan { text, at: 0 };
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

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        Ok(LogFacts::of("det-bypass"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    const LOG: &str = "# id t1 t2 t3 t4\n\
        1 1650000000000001000 1650000000003001000 1650000000003009000 1650000000004001000\n\
        \n  2\t1000 \t 900 910 1200  \r\n\
        2 0 0 0 0\n";

    #[test]
    fn a_line_with_too_few_too_many_or_other_fields_is_a_fault_at_its_column() {
        for (line, column, what) in [
            ("3 1 2 3 ", 8, "a line is `id t1 t2 t3 t4`"),
            ("3", 2, "a line is `id t1 t2 t3 t4`"),
            ("3 1 2 3 4 5", 11, "a line is `id t1 t2 t3 t4`"),
            ("3 1 x 3 4", 5, "`x` is not a whole number"),
            ("3 1 2.5 3 4", 5, "`2.5` is not a whole number"),
            ("-3 1 2 3 4", 1, "`-3` is not a whole number"),
            ("3,1,2,3,4", 10, "a line is `id t1 t2 t3 t4`"),
        ] {
            let text = [LOG, line].concat();
            let fault = read("four-times", &LogOptions::default(), false, text.as_bytes()).expect_err(line);
            assert_eq!((fault.line, fault.column, &*fault.what), (Some(6), Some(column), what), "{line}");
            let (block, end) = read("four-times", &LogOptions::default(), true, text.as_bytes()).expect(line);
            assert_eq!((block.probes.len(), end.skipped, end.first_skipped), (3, 1, Some(fault)));
        }
    }
}
