//! The latencies of `cyclictest -v`: lines `thread: cycle: latency`, and `T: 0 (28056) P: 0 I:1000 C: 10 Min: 63 Act: 64 Avg: 64
//! Max: 67` at the end, whose width alone states the unit: us, with `-N` ns.
//!
//! Latencies of several threads are written in blocks, and have no order. A latency of 0 has the cycle of an earlier line. With
//! `-o N` only the maximum of N cycles is written, which shows in cycles that are missing.

use std::collections::BTreeMap;

use super::prelude::*;
pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_histogram = || head.lines().any(|line| line == b"# Histogram");
    // Not the time of day: figures are padded.
    head.lines().any(|line| line.starts_with(b" ") && is_cycle(line))
        || (head.lines().any(|line| shown_unit(line).is_some()) && !is_histogram())
}

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    Ok(Box::new(CycleLog { given: options.unit, ..CycleLog::default() }))
}

/// Thread, cycle and latency of a line; with `--smi` a count follows the latency.
fn cycle_of(line: &[u8]) -> Option<[LogField<'_>; 3]> {
    let mut cells = cells(line, b':');
    let row = [cells.next()?, cells.next()?, cells.next()?];
    (cells.next().is_none() && row[..2].iter().all(|cell| cell.count().is_ok())).then_some(row)
}

pub(super) fn is_cycle(line: &[u8]) -> bool {
    cycle_of(line).is_some_and(|[_, _, value]| value.nanos().is_ok())
}

/// The unit of the figures of a line `T:`, which has 8 characters for them with `-N`, else 5.
pub(super) fn shown_unit(line: &[u8]) -> Option<TimeUnit> {
    let at = |text: &[u8]| memmem::find(line, text);
    let (last, mean, max) = (at(b" Act:")?, at(b" Avg:")?, at(b" Max:")?);
    let is_nanos = mean.checked_sub(last)?.min(max.checked_sub(mean)?) >= 5 + 8;
    line.starts_with(b"T:").then_some(if is_nanos { TimeUnit::Nanos } else { TimeUnit::Micros })
}

#[derive(Default)]
struct CycleLog {
    given: Option<TimeUnit>,
    shown: Option<TimeUnit>,
    totals: LogTotals,
    announced: usize,
    /// The next cycle of each thread that has rows; `None` behind a malformed row.
    threads: BTreeMap<u64, Option<u64>>,
    has_histogram: bool,
}

impl LineParser for CycleLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        self.has_histogram |= line == b"# Histogram";
        if self.has_histogram {
            return Ok(LineUse::Taken);
        }
        if let Some(shown) = shown_unit(line) {
            self.shown = Some(shown);
            self.take_totals(whole(line), shown);
        } else if let Some(row) = cycle_of(line) {
            self.row(row, rows).inspect_err(|_| self.threads.values_mut().for_each(|due| *due = None))?;
        } else if line.starts_with(b"Thread ") && memmem::find(line, b" Interval:").is_some() {
            self.announced += 1;
        } else {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        if self.threads.is_empty() {
            let fault = LogFault::whole("the log has totals or a histogram, and no latencies");
            return Err(fault.hint("`cyclictest -v` writes them; `--from cyclictest-histogram` imports a histogram"));
        }
        let unit = self.unit();
        if let Some(shown) = self.shown {
            unit_of(Some(shown), Some(unit)).map_err(|fault| fault.hint(format!("add `--unit {}`", shown.word())))?;
        }
        let unit_assumed = self.shown.is_none() && self.given.is_none();
        let step_ns = unit.nanos() as i64;
        Ok(LogFacts {
            resolution_ns: Some(Nanos(step_ns)).filter(|_| !unit_assumed),
            unit_assumed,
            totals: LogTotals { row_step_ns: step_ns, ..self.totals.clone() },
            ..LogFacts::of("cyclictest")
        })
    }
}

impl CycleLog {
    fn unit(&self) -> TimeUnit {
        self.given.unwrap_or(TimeUnit::Micros)
    }

    fn take_totals(&mut self, line: LogField<'_>, unit: TimeUnit) {
        let Some([cycles, min, max]) = captured(line, "*C:{}Min:{}Act:*Max:{}") else { return };
        let max = words(max.text).next().unwrap_or(max);
        let (Ok(min), Ok(max)) = (StatedValue::of(&min, unit), StatedValue::of(&max, unit)) else { return };
        let LogTotals { received, min: least, max: most, .. } = &mut self.totals;
        *received = Some(received.unwrap_or(0).saturating_add(cycles.total().unwrap_or(0)));
        *least = least.filter(|least| least.ns < min.ns).or(Some(min));
        *most = most.filter(|most| most.ns > max.ns).or(Some(max));
    }

    fn row(&mut self, [thread, cycle, value]: [LogField<'_>; 3], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let number = thread.count()?;
        let latency = words(value.text).next().map_or(value, |word| LogField { text: word.text, ..value });
        let value_ns = latency.time(self.unit())?;
        let mut cycle = cycle.count()?;
        if let Some(due) = self.threads.get(&number).copied().flatten() {
            if cycle != due && value_ns > 0 {
                return Err(LogFault::whole(format!("cycle {cycle} follows {}", due.saturating_sub(1)))
                    .hint("logs of `-o`, parts of logs and several runs in one log cannot be imported"));
            }
            cycle = due;
        }
        self.threads.insert(number, Some(cycle.saturating_add(1)));
        if self.threads.len() > 1 && self.announced <= 1 {
            let fault = LogFault::whole("the log has several threads and no lines `Thread N Interval`");
            return Err(fault.hint("import the whole log, or the lines of one thread"));
        }
        rows.are_of(Metric::WakeupLatency);
        let seq = (self.announced <= 1).then_some(cycle);
        rows.value(LoggedValue { seq, value_ns: Some(value_ns), count: 1 });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogEnd};
    use super::*;

    /// `cyclictest -l 4 -v -q -t1`.
    const ONE: &str = "Max CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1500\n       \
        0:       0:      67\n       0:       1:      65\n       0:       2:      64\n       0:       3:      64\n\
        T: 0 (28056) P: 0 I:1000 C:      4 Min:     64 Act:   64 Avg:   65 Max:      67\n";

    /// `cyclictest -l 2 -v -q -N -t2`.
    const TWO: &str = "Max CPUs = 2\nThread 0 Interval: 1500\nThread 1 Interval: 2000\n\
        \x20      0:       0:   73641\n       0:       1:   66332\n       1:       0:   68629\n       1:       1:   65662\n\
        T: 0 ( 1101) P: 0 I:1000 C:      2 Min:  66332 Act:   66332 Avg:   69986 Max:   73641\n\
        T: 1 ( 1102) P: 0 I:1500 C:      2 Min:  65662 Act:   65662 Avg:   67145 Max:   68629\n";

    fn import(unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read("cyclictest", &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(Option<u64>, i64)> {
        block.values.iter().map(|row| (row.seq, row.value_ns.expect("a value"))).collect()
    }

    #[test]
    fn latencies_of_one_thread_have_an_order_and_those_of_several_have_none() {
        let expected = [(Some(0), 67_000), (Some(1), 65_000), (Some(2), 64_000), (Some(3), 64_000)];
        for text in [
            ONE,
            &ONE.replace('\n', "\r\n"),
            &ONE.replace("64\n", "64       0\n"),
            &ONE.replace("Max CPUs", "New banner"),
        ] {
            assert!(is_detected("cyclictest", text.as_bytes()), "{text}");
            let (block, end) = import(None, text).expect(text);
            assert_eq!((rows(&block), end.contradictions.len()), (expected.to_vec(), 0), "{text}");
            assert_eq!(end.facts.resolution_ns, Some(Nanos(1_000)));
            assert!(!end.facts.unit_assumed);
        }
        let (block, end) = import(Some(TimeUnit::Nanos), TWO).expect("two threads");
        assert_eq!(rows(&block), [73_641, 66_332, 68_629, 65_662].map(|value| (None, value)));
        assert_eq!(end.contradictions.len(), 0);
        let headless = TWO.replace(" Interval", "");
        assert!(import(Some(TimeUnit::Nanos), &headless).is_err_and(|fault| fault.what.contains("several threads")));
    }

    #[test]
    fn the_lines_of_totals_state_the_unit_and_check_the_latencies() {
        for (unit, text, hint) in [(None, TWO, "add `--unit ns`"), (Some(TimeUnit::Nanos), ONE, "add `--unit us`")] {
            assert_eq!(import(unit, text).expect_err(hint).hint.as_deref(), Some(hint));
        }
        let bare = ONE.split("T:").next().expect("rows");
        for (unit, is_assumed, first) in [(None, true, 67_000), (Some(TimeUnit::Nanos), false, 67)] {
            let (block, end) = import(unit, bare).expect("rows alone");
            assert_eq!((end.facts.unit_assumed, rows(&block)[0].1), (is_assumed, first));
        }
        // As version 2.4 may do.
        let short = ONE.replace("       0:       0:      67\n", "");
        assert_eq!(import(None, &short).expect("a log").1.contradictions, ["4 received, 3 in its rows"]);
    }

    #[test]
    fn cycles_that_are_missing_are_refused_and_malformed_lines_named() {
        let reduced = "       0:       1:      76\n       0:       5:      70\n";
        for (text, what) in [(reduced, "cycle 5 follows 1"), ("0: 0: 1\n0: 1: 1\n0: 0: 1\n", "cycle 0 follows 1")] {
            let fault = import(None, text).expect_err(what);
            assert_eq!((fault.column, &*fault.what), (None, what));
        }
        let late = import(None, "0: 7: 3\n0: 7: 0\n0: 7: 0\n0: 10: 2\n").expect("latencies of 0").0;
        assert_eq!(rows(&late), [(Some(7), 3_000), (Some(8), 0), (Some(9), 0), (Some(10), 2_000)]);
        let text = [ONE, "       0:       4:      x\n0: 5: 70\n"].concat();
        let fault = import(None, &text).expect_err("no number");
        assert_eq!((fault.line, fault.column, &*fault.what), (Some(10), Some(25), "`x` is not a number"));
        let (block, end) = read("cyclictest", &LogOptions::default(), true, text.as_bytes()).expect("one row less");
        assert_eq!((rows(&block)[4], end.skipped), ((Some(5), 70_000), 1));
    }
}
