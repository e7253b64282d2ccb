//! Logs of cyclictest: the latencies of `-v`, and the histograms of `-h` and `-H`.
//!
//! Values are in us, with `-N` in ns. Rows and histograms do not state which of the two; only the lines `T:` do, by their
//! width. So the unit is that which the user states, else us, and lines `T:` that show the other one are a fault. Where
//! neither states it, it is assumed, and the facts of the log say so.
//!
//! `-v` writes the latencies of each thread in blocks, so those of several threads have no order. A latency of 0 has the cycle
//! of an earlier line. With `-o N` only the maximum of N cycles is written, which shows in cycles that are missing and is
//! refused. (Read in the source of rt-tests, and tried with 2.4.)

use super::field::{LogField, bounded, cells, unit_of, words};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, counted};

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "cyclictest",
    title: "output of cyclictest -v",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit"],
    states_losses: false,
    detects: |head| detected(head) == Some(false),
    reader: LogReader::Lines(|options| Ok(Box::new(CycleLog::new(options)))),
};

pub(super) const HISTOGRAM_FORMAT: LogFormat = LogFormat {
    name: "cyclictest-histogram",
    title: "histogram of cyclictest -h",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit"],
    states_losses: false,
    detects: |head| detected(head) == Some(true),
    reader: LogReader::Lines(|options| Ok(Box::new(HistogramLog::new(options)))),
};

/// The most threads: Linux has fewer CPUs.
const THREADS_MAX: usize = 1 << 16;
/// The most bins that are not empty; cyclictest has at most 1,000,000.
const BINS_MAX: usize = 1 << 20;
/// The characters of a latency in a line `T:` with `-N`; without it 5.
const NANOS_WIDTH: usize = 8;

/// Whether a log of cyclictest is a histogram; `None` for other logs. Rows go before the histogram of the same run.
fn detected(head: &LogHead<'_>) -> Option<bool> {
    let (mut has_totals, mut has_histogram) = (false, false);
    for line in head.lines() {
        if CycleRow::of(line).is_ok() {
            return Some(false);
        }
        has_totals |= is_totals(line);
        has_histogram |= line.starts_with(b"# Histogram");
    }
    (has_totals || has_histogram).then_some(has_histogram)
}

/// Whether a line is `T: 0 (28056) P: 0 I:1000 C: 10 Min: 63 Act: 64 Avg: 64 Max: 67`.
fn is_totals(line: &[u8]) -> bool {
    line.starts_with(b"T:") && memchr::memmem::find(line, b" Act:").is_some()
}

/// The text of `line` between `start` and `end`.
fn between<'a>(line: &'a [u8], start: &[u8], end: &[u8]) -> Option<&'a [u8]> {
    let from = memchr::memmem::find(line, start)? + start.len();
    let length = memchr::memmem::find(&line[from..], end)?;
    Some(&line[from..from + length])
}

/// What lines other than latencies state about the run.
struct CyclictestRun {
    /// The unit of the latencies.
    unit: TimeUnit,
    /// Whether the user states it.
    is_given: bool,
    /// That of the lines `T:`.
    shown: Option<TimeUnit>,
    /// The interval of each cycle according to the last line `T:`, in us.
    interval_us: Option<i64>,
    are_intervals_mixed: bool,
}

impl CyclictestRun {
    fn new(options: &LogOptions) -> CyclictestRun {
        let unit = options.unit.unwrap_or(TimeUnit::Micros);
        CyclictestRun {
            unit,
            is_given: options.unit.is_some(),
            shown: None,
            interval_us: None,
            are_intervals_mixed: false,
        }
    }

    /// Takes a line that has no latency.
    ///
    /// # Errors
    /// It is not of cyclictest.
    fn line(&mut self, line: &[u8]) -> Result<(), LogFault> {
        if is_totals(line) {
            self.totals(line);
            return Ok(());
        }
        let begins =
            ["#", "Max CPUs", "Online CPUs", "Using ", "Thread ", "policy:", "\u{1b}[", "WARN:", "INFO:", "T:"];
        let is_known = begins.into_iter().any(|start| line.starts_with(start.as_bytes()));
        if is_known || line.trim_ascii().is_empty() {
            return Ok(());
        }
        Err(LogField { text: line, column: 1 }.is_not("a line of cyclictest"))
    }

    fn totals(&mut self, line: &[u8]) {
        let widths = [between(line, b" Act:", b" Avg:"), between(line, b" Avg:", b" Max:")];
        if let [Some(last), Some(mean)] = widths {
            let is_nanos = last.len().min(mean.len()) >= NANOS_WIDTH;
            self.shown = Some(if is_nanos { TimeUnit::Nanos } else { TimeUnit::Micros });
        }
        let interval = between(line, b" I:", b" ").and_then(|text| LogField { text, column: 1 }.nanos().ok());
        if let Some(interval) = interval {
            self.are_intervals_mixed |= *self.interval_us.get_or_insert(interval) != interval;
        }
    }

    fn facts(&self) -> Result<LogFacts, LogFault> {
        if let Some(shown) = self.shown {
            unit_of(Some(shown), Some(self.unit))
                .map_err(|fault| fault.hint(format!("add `--unit {}`", shown.word())))?;
        }
        let interval_us = self.interval_us.filter(|_| !self.are_intervals_mixed);
        let unit_assumed = self.shown.is_none() && !self.is_given;
        Ok(LogFacts {
            metric: Some(Metric::WakeupLatency),
            interval_ns: interval_us.and_then(|interval| bounded(interval.checked_mul(1_000)?)).map(Nanos),
            resolution_ns: Some(Nanos(self.unit.nanos() as i64)).filter(|_| !unit_assumed),
            unit_assumed,
            ..LogFacts::of("cyclictest")
        })
    }
}

/// A line `thread: cycle: latency`.
struct CycleRow<'a> {
    thread: LogField<'a>,
    cycle: LogField<'a>,
    value: LogField<'a>,
}

impl CycleRow<'_> {
    /// The row of a line.
    ///
    /// # Errors
    /// It is not three whole numbers.
    fn of(line: &[u8]) -> Result<CycleRow<'_>, LogFault> {
        let mut cells = cells(line, b':');
        let mut cell = |part: &str| {
            let end = line.trim_ascii_end().len() + 1;
            cells
                .next()
                .ok_or_else(|| LogFault::at(end, format!("{part} is missing: a line is `thread: cycle: latency`")))
        };
        let row = CycleRow { thread: cell("thread")?, cycle: cell("cycle")?, value: cell("latency")? };
        row.thread.count()?;
        row.cycle.count()?;
        row.value.nanos()?;
        match cells.next() {
            None => Ok(row),
            Some(more) => Err(LogFault::at(more.column, format!("`{}` is more than a latency", more.shown()))),
        }
    }
}

/// The cycles of a thread.
#[derive(Clone, Copy)]
struct ThreadCycles {
    /// The cycle of the next line.
    due: u64,
    /// Whether a malformed line since the last one may have had that cycle.
    is_doubtful: bool,
}

struct CycleLog {
    run: CyclictestRun,
    /// Threads that have a line `Thread`.
    announced: usize,
    /// Cycles by the number of the thread.
    threads: Vec<Option<ThreadCycles>>,
    /// Number of threads that have rows.
    seen: usize,
    /// The histogram of the same run, once it began: its lines are checked and left out.
    histogram: Option<HistogramLog>,
}

impl CycleLog {
    fn new(options: &LogOptions) -> CycleLog {
        let run = CyclictestRun::new(options);
        CycleLog { run, announced: 0, threads: Vec::new(), seen: 0, histogram: None }
    }

    fn take(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        if let Some(histogram) = &mut self.histogram {
            return histogram.line(line, rows).map(|_| ());
        }
        if line.starts_with(b"# Histogram") {
            self.histogram = Some(HistogramLog::new(&LogOptions::default()));
            return Ok(());
        }
        if !line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) {
            let is_thread = line.starts_with(b"Thread ") && memchr::memmem::find(line, b" Interval:").is_some();
            self.announced += usize::from(is_thread);
            return self.run.line(line);
        }
        let row = CycleRow::of(line)?;
        let value_ns = row.value.time(self.run.unit)?;
        let cycle = self.cycle(&row, value_ns)?;
        let seq = Some(cycle).filter(|_| self.announced <= 1);
        rows.are_of(Metric::WakeupLatency);
        rows.value(LoggedValue { seq, value_ns: Some(value_ns), count: 1 });
        Ok(())
    }

    /// The cycle of a row.
    fn cycle(&mut self, row: &CycleRow<'_>, value_ns: i64) -> Result<u64, LogFault> {
        let index = usize::try_from(row.thread.count()?).ok().filter(|index| *index < THREADS_MAX);
        let index = index.ok_or_else(|| row.thread.is_not("a thread"))?;
        if self.threads.len() <= index {
            self.threads.resize(index + 1, None);
        }
        let cycle = row.cycle.count()?;
        let shown = match self.threads[index] {
            None => {
                self.seen += 1;
                cycle
            }
            Some(known) if cycle == known.due || value_ns <= 0 => known.due,
            Some(known) if known.is_doubtful && cycle > known.due => cycle,
            Some(known) => {
                let what = format!("cycle {cycle} follows {}", known.due.saturating_sub(1));
                return Err(LogFault::whole(what)
                    .hint("logs of `-o`, parts of logs and several runs in one log cannot be imported"));
            }
        };
        if self.seen > 1 && self.announced <= 1 {
            let fault = LogFault::whole("the log has several threads and no lines `Thread N Interval`");
            return Err(fault.hint("import the whole log, or the lines of one thread"));
        }
        self.threads[index] = Some(ThreadCycles { due: shown.saturating_add(1), is_doubtful: false });
        Ok(shown)
    }
}

impl CycleLog {
    fn read_line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let result = self.take(line, rows);
        if result.is_err() {
            self.threads.iter_mut().flatten().for_each(|thread| thread.is_doubtful = true);
        }
        result
    }
}

impl LineParser for CycleLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        self.read_line(line, rows).map(|()| LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.seen == 0 && self.histogram.is_some() {
            let fault = LogFault::whole("the log has a histogram and no latencies");
            return Err(fault.hint("`--from cyclictest-histogram` imports it"));
        }
        if self.seen == 0 && self.run.shown.is_some() {
            let fault = LogFault::whole("the log has totals and no latencies");
            return Err(fault.hint("`cyclictest -v` writes latencies, `-h US` a histogram"));
        }
        self.run.facts()
    }
}

/// A bin that is not empty.
struct HistogramBin {
    /// Latency in the unit of the run.
    value: i64,
    count: u64,
    last: u64,
}

struct HistogramLog {
    run: CyclictestRun,
    bins: Vec<HistogramBin>,
    /// The latency of the last bin.
    latest: Option<i64>,
    columns: Vec<u64>,
    totals: Option<Vec<u64>>,
    minima: Option<Vec<u64>>,
    overflows: Option<Vec<u64>>,
}

impl HistogramLog {
    fn new(options: &LogOptions) -> HistogramLog {
        let run = CyclictestRun::new(options);
        let (bins, columns) = (Vec::new(), Vec::new());
        HistogramLog { run, bins, latest: None, columns, totals: None, minima: None, overflows: None }
    }

    /// Takes a line `latency count…`.
    fn bin(&mut self, line: &[u8]) -> Result<(), LogFault> {
        let mut fields = words(line);
        let Some(first) = fields.next() else { return Ok(()) };
        let latency = first.nanos()?;
        if self.latest.is_some_and(|latest| latency <= latest) {
            return Err(first.is_not("above the latency of the line before"));
        }
        let counts = fields.map(|field| field.total()).collect::<Result<Vec<u64>, LogFault>>()?;
        let columns = if self.latest.is_none() { counts.len() } else { self.columns.len() };
        if counts.len() != columns || counts.is_empty() {
            let end = line.trim_ascii_end().len() + 1;
            return Err(LogFault::at(end, format!("{} instead of {}", counted(counts.len(), "count"), columns.max(1))));
        }
        self.columns.resize(columns, 0);
        let sums = self.columns.iter().zip(&counts).map(|(sum, count)| sum.checked_add(*count));
        let sums = sums.collect::<Option<Vec<u64>>>();
        let count = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        let (Some(sums), Some(count)) = (sums, count) else {
            return Err(first.is_not("the latency of counts below 2^64"));
        };
        self.columns = sums;
        self.latest = Some(latency);
        if count > 0 {
            let last = counts.last().copied().unwrap_or(0);
            self.bins.push(HistogramBin { value: latency, count, last });
        }
        match self.bins.len() > BINS_MAX {
            true => Err(LogFault::whole(format!("the histogram has more than {BINS_MAX} bins"))),
            false => Ok(()),
        }
    }

    /// Takes a line `# Total: …` or of the same form.
    fn comment(&mut self, line: &[u8]) -> Result<(), LogFault> {
        let known = [
            (&b"# Total:"[..], &mut self.totals),
            (b"# Min Latencies:", &mut self.minima),
            (b"# Histogram Overflows:", &mut self.overflows),
        ];
        for (start, place) in known {
            if let Some(rest) = line.strip_prefix(start) {
                let counts = words(rest).map(|word| LogField { column: start.len() + word.column, ..word }.total());
                *place = Some(counts.collect::<Result<_, _>>()?);
            }
        }
        Ok(())
    }

    /// The number of threads; the columns of `-H` have one more, the sum of the others.
    fn threads(&self) -> Result<usize, LogFault> {
        let (Some(totals), Some(minima), Some(overflows)) = (&self.totals, &self.minima, &self.overflows) else {
            let fault = LogFault::whole("`# Total:`, `# Min Latencies:` or `# Histogram Overflows:` is missing");
            return Err(fault.hint("import the whole output: cyclictest writes them at its end"));
        };
        let (threads, columns) = (minima.len(), self.columns.len());
        let has_sums = threads > 1 && columns == threads + 1;
        if totals.len() != columns || overflows.len() != columns || !(columns == threads || has_sums) {
            return Err(LogFault::whole(format!("{columns} columns of counts, totals of {threads} threads")));
        }
        if let Some(column) = (0..columns).find(|column| totals[*column] != self.columns[*column]) {
            let (sum, total) = (self.columns[column], totals[column]);
            let what = format!("column {} has {sum} latencies, {total} according to `# Total:`", column + 1);
            return Err(LogFault::whole(what).hint("lines are missing or malformed"));
        }
        match overflows[..threads].iter().fold(0_u64, |sum, count| sum.saturating_add(*count)) {
            0 => Ok(threads),
            count => {
                let (limit, unit) = (self.latest.map_or(0, |latest| latest.saturating_add(1)), self.run.unit.symbol());
                let what =
                    format!("the histogram was cut off: {count} latencies of {limit} {unit} and more are missing");
                Err(LogFault::whole(what).hint("repeat with a larger `-h`"))
            }
        }
    }
}

impl LineParser for HistogramLog {
    fn line(&mut self, line: &[u8], _: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        match line.trim_ascii_start().first() {
            Some(byte) if byte.is_ascii_digit() => self.bin(line),
            Some(b'#') => self.comment(line),
            _ => self.run.line(line),
        }
        .map(|()| LineUse::Taken)
    }

    fn finish(&mut self, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        let is_empty = self.latest.is_none() && self.totals.is_none() && self.run.shown.is_none();
        let threads = if is_empty { 0 } else { self.threads()? };
        let has_sums = self.columns.len() > threads;
        rows.are_of(Metric::WakeupLatency);
        for bin in &self.bins {
            let count = if has_sums { bin.count.saturating_sub(bin.last) } else { bin.count };
            if has_sums && count != bin.last {
                let what = format!("the last column is not the sum of the others at {}", bin.value);
                return Err(LogFault::whole(what));
            }
            let value_ns = bin.value.checked_mul(self.run.unit.nanos() as i64).and_then(bounded);
            let value_ns = value_ns.ok_or_else(|| LogFault::whole(format!("{} is too large a latency", bin.value)))?;
            rows.value(LoggedValue { seq: None, value_ns: Some(value_ns), count });
        }
        self.run.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogEnd};
    use super::*;

    /// `cyclictest -l 4 -v -q -t1`.
    const ONE_THREAD: &str = "Max CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1500\n       \
        0:       0:      67\n       0:       1:      65\n       0:       2:      64\n       0:       3:      64\n\
        T: 0 (28056) P: 0 I:1000 C:      4 Min:     64 Act:   64 Avg:   65 Max:      67\n";

    /// `cyclictest -l 2 -v -q -N -t2`.
    const TWO_THREADS: &str = "Max CPUs = 2\nThread 0 Interval: 1500\nThread 1 Interval: 2000\n\
        \x20      0:       0:   73641\n       0:       1:   66332\n       1:       0:   68629\n       1:       1:   65662\n\
        T: 0 ( 1101) P: 0 I:1000 C:      2 Min:  66332 Act:   66332 Avg:   69986 Max:   73641\n\
        T: 1 ( 1102) P: 0 I:1500 C:      2 Min:  65662 Act:   65662 Avg:   67145 Max:   68629\n";

    /// `cyclictest -h 4 -q -l 5 -t2`, with smaller latencies.
    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
        000000 000000\t000000\n000001 000002\t000001\n000002 000003\t000000\n000003 000000\t000004\n\
        # Total: 000000005 000000005\n# Min Latencies: 00001 00001\n# Avg Latencies: 00001 00002\n\
        # Max Latencies: 00002 00003\n# Histogram Overflows: 00000 00000\n\
        # Histogram Overflow at cycle number:\n# Thread 0: \n# Thread 1: \n\n";

    fn read_with(format: &LogFormat, unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read(format, &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(Option<u64>, i64, u64)> {
        block.values.iter().map(|row| (row.seq, row.value_ns.expect("a value"), row.count)).collect()
    }

    #[test]
    fn counts_above_2_to_40_are_malformed() {
        for (good, line, column) in [("\t000004\n", 6, 15), (" 000000005\n", 7, 20)] {
            let text = HISTOGRAM.replace(good, &format!("{}1099511627777\n", &good[..1]));
            let fault = read_with(&HISTOGRAM_FORMAT, None, &text).expect_err(good);
            assert_eq!((fault.line, fault.column), (Some(line), Some(column)), "{fault:?}");
            assert_eq!(fault.what, "`1099511627777` is not a count up to 2^40");
        }
    }

    #[test]
    fn latencies_of_one_thread_are_numbered_by_their_cycles() {
        for text in [ONE_THREAD.to_owned(), ONE_THREAD.replace('\n', "\r\n")] {
            let (block, end) = read_with(&FORMAT, None, &text).expect("a log");
            let expected = [(0, 67_000), (1, 65_000), (2, 64_000), (3, 64_000)];
            assert_eq!(rows(&block), expected.map(|(cycle, value)| (Some(cycle), value, 1)));
            let facts = LogFacts {
                metric: Some(Metric::WakeupLatency),
                interval_ns: Some(Nanos(1_000_000)),
                resolution_ns: Some(Nanos(1_000)),
                ..LogFacts::of("cyclictest")
            };
            assert_eq!(end.facts, facts);
        }
    }

    #[test]
    fn latencies_of_several_threads_have_no_order() {
        let (block, end) = read_with(&FORMAT, Some(TimeUnit::Nanos), TWO_THREADS).expect("a log");
        assert_eq!(rows(&block), [73_641, 66_332, 68_629, 65_662].map(|value| (None, value, 1)));
        assert_eq!((end.facts.interval_ns, end.facts.resolution_ns), (None, Some(Nanos(1))));
        let headless = TWO_THREADS.replace(" Interval", "");
        let fault = read_with(&FORMAT, Some(TimeUnit::Nanos), &headless).expect_err("two threads");
        assert!(fault.column.is_none() && fault.what.contains("several threads"), "{}", fault.what);
    }

    #[test]
    fn a_unit_that_contradicts_the_lines_of_totals_is_a_fault() {
        let fault = read_with(&FORMAT, None, TWO_THREADS).expect_err("ns");
        assert_eq!((fault.column, fault.hint.as_deref()), (None, Some("add `--unit ns`")));
        let fault = read_with(&FORMAT, Some(TimeUnit::Nanos), ONE_THREAD).expect_err("us");
        assert_eq!(fault.hint.as_deref(), Some("add `--unit us`"));
        let unstated = ONE_THREAD.split("T:").next().expect("rows");
        let (block, _) = read_with(&FORMAT, Some(TimeUnit::Nanos), unstated).expect("a log without totals");
        assert_eq!(block.values[0].value_ns, Some(67));
    }

    #[test]
    fn a_unit_that_neither_the_log_nor_the_user_states_is_assumed() {
        let unstated = ONE_THREAD.split("T:").next().expect("rows");
        let micros = Some(TimeUnit::Micros);
        for (text, unit, is_assumed) in
            [(unstated, None, true), (unstated, micros, false), (ONE_THREAD, None, false), (ONE_THREAD, micros, false)]
        {
            let (block, end) = read_with(&FORMAT, unit, text).expect("a log");
            let resolution = (!is_assumed).then_some(Nanos(1_000));
            assert_eq!((end.facts.unit_assumed, end.facts.resolution_ns), (is_assumed, resolution));
            assert_eq!(block.values[0].value_ns, Some(67_000));
        }
        let shown = [HISTOGRAM, &ONE_THREAD[ONE_THREAD.find("T:").expect("totals")..]].concat();
        let (_, end) = read_with(&HISTOGRAM_FORMAT, None, &shown).expect("a histogram with totals");
        assert_eq!((end.facts.unit_assumed, end.facts.resolution_ns), (false, Some(Nanos(1_000))));
    }

    #[test]
    fn lines_behind_latencies_and_a_histogram_must_be_of_it() {
        for bad in ["0: 4: 70", "abc", "000001 000002\t000001"] {
            let text = [ONE_THREAD, HISTOGRAM, bad, "\n"].concat();
            let fault = read_with(&FORMAT, None, &text).expect_err(bad);
            assert_eq!((fault.line, fault.column.is_some()), (Some(25), true), "{fault:?}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect(bad);
            assert_eq!((block.len(), end.skipped), (4, 1), "{bad}");
        }
    }

    #[test]
    fn a_latency_of_zero_has_the_cycle_of_an_earlier_line() {
        let text = "0: 7: 3\n0: 7: 0\n0: 7: 0\n0: 10: 2\n";
        let (block, _) = read_with(&FORMAT, None, text).expect("a log");
        let expected = [(7, 3_000), (8, 0), (9, 0), (10, 2_000)];
        assert_eq!(rows(&block), expected.map(|(cycle, value)| (Some(cycle), value, 1)));
    }

    #[test]
    fn a_reduced_log_or_one_of_two_runs_is_a_fault() {
        let reduced = "       0:       1:      76\n       0:       5:      70\n       0:       8:      65\n";
        for (text, what) in [(reduced, "cycle 5 follows 1"), ("0: 0: 1\n0: 1: 1\n0: 0: 1\n", "cycle 0 follows 1")] {
            let fault = read_with(&FORMAT, None, text).expect_err(what);
            assert_eq!((fault.column, &*fault.what), (None, what));
        }
    }

    #[test]
    fn a_malformed_line_is_a_fault_with_its_column_or_skipped() {
        for (line, column, what) in [
            ("       0:       4:      x", 25, "`x` is not a whole number"),
            ("0: 4: 64 3", 7, "`64 3` is not a whole number"),
            ("0: 4: 64: 3", 11, "`3` is more than a latency"),
            ("0: 4", 5, "latency is missing: a line is `thread: cycle: latency`"),
            ("0: -4: 1", 4, "`-4` is not a whole number"),
            ("99999: 4: 1", 1, "`99999` is not a thread"),
            ("0: 4: 1,5", 7, "`1,5` is not a whole number"),
            ("FATAL: x", 1, "`FATAL: x` is not a line of cyclictest"),
        ] {
            let text = [ONE_THREAD, line, "\n0: 5: 70\n"].concat();
            let options = LogOptions::default();
            let fault = read(&FORMAT, &options, false, text.as_bytes()).expect_err(line);
            assert_eq!((fault.line, fault.column, &*fault.what), (Some(10), Some(column), what), "{line}");
            let (block, end) = read(&FORMAT, &options, true, text.as_bytes()).expect(line);
            assert_eq!((rows(&block)[4], end.skipped, end.first_skipped), ((Some(5), 70_000, 1), 1, Some(fault)));
        }
    }

    #[test]
    fn a_log_without_latencies_is_a_fault() {
        let totals = "policy: other/other: loadavg: 0.49 0.52 1.25 3/92 1095\n\n\
            T: 0 ( 1094) P: 0 I:1000 C:      9 Min:     64 Act:   64 Avg:   65 Max:      70\n\x1b[4Apolicy: x\n";
        assert!(read_with(&FORMAT, None, totals).is_err_and(|fault| fault.what.contains("totals")));
        assert!(read_with(&FORMAT, None, HISTOGRAM).is_err_and(|fault| fault.what.contains("histogram")));
        assert!(read_with(&FORMAT, None, "").expect("an empty log").0.is_empty());
        let both = ONE_THREAD.to_owned() + HISTOGRAM;
        assert_eq!(read_with(&FORMAT, None, &both).expect("rows and a histogram").0.len(), 4);
        assert!(is_detected(&FORMAT, totals.as_bytes()) && is_detected(&FORMAT, both.as_bytes()));
        assert!(is_detected(&HISTOGRAM_FORMAT, [totals, HISTOGRAM].concat().as_bytes()));
    }

    #[test]
    fn a_histogram_has_its_bins_for_all_threads_together() {
        for text in [HISTOGRAM.to_owned(), HISTOGRAM.replace('\n', "\r\n")] {
            let (block, end) = read_with(&HISTOGRAM_FORMAT, None, &text).expect("a histogram");
            assert_eq!(rows(&block), [(None, 1_000, 3), (None, 2_000, 3), (None, 3_000, 4)]);
            assert_eq!((block.metric, end.facts.metric), (Some(Metric::WakeupLatency), Some(Metric::WakeupLatency)));
            assert_eq!((end.facts.resolution_ns, end.facts.interval_ns), (None, None));
            assert!(end.facts.unit_assumed);
        }
        let (block, end) = read_with(&HISTOGRAM_FORMAT, Some(TimeUnit::Nanos), HISTOGRAM).expect("a histogram of -N");
        assert_eq!((rows(&block)[0], end.facts.resolution_ns), ((None, 1, 3), Some(Nanos(1))));
        assert!(!end.facts.unit_assumed);
    }

    #[test]
    fn the_column_of_sums_is_not_counted_twice() {
        let text = "# Histogram\n000063 000001\t000000\t000001\n000069 000000\t000002\t000002\n\
            # Total: 000000001 000000002 000000003\n# Min Latencies: 00063 00069\n# Max Latencies: 63 69 69\n\
            # Histogram Overflows: 00000 00000 00000\n";
        let (block, _) = read_with(&HISTOGRAM_FORMAT, None, text).expect("a histogram of -H");
        assert_eq!(rows(&block), [(None, 63_000, 1), (None, 69_000, 2)]);
        let wrong =
            text.replace("000000\t000001", "000001\t000000").replace("000000002 000000003", "000000003 000000002");
        assert!(read_with(&HISTOGRAM_FORMAT, None, &wrong).is_err_and(|fault| fault.what.contains("at 63")));
    }

    #[test]
    fn a_histogram_that_was_cut_off_is_refused() {
        let text = HISTOGRAM.replace("Overflows: 00000 00000", "Overflows: 00002 00001");
        let fault = read_with(&HISTOGRAM_FORMAT, None, &text).expect_err("overflows");
        assert_eq!(fault.what, "the histogram was cut off: 3 latencies of 4 µs and more are missing");
        assert_eq!((fault.column, fault.hint.as_deref()), (None, Some("repeat with a larger `-h`")));
    }

    #[test]
    fn a_histogram_without_its_totals_or_with_other_ones_is_refused() {
        for (part, instead) in [
            ("# Total:", "# Tot:"),
            ("# Min", "# M"),
            ("# Histogram Overflows:", "#"),
            ("000002 000003", "000002 000004"),
            ("000000005 000000005", "000000005"),
            ("000000005 000000005", "000000005 000000006"),
            ("Latencies: 00001 00001", "Latencies: 00001"),
        ] {
            let text = HISTOGRAM.replace(part, instead);
            let fault = read_with(&HISTOGRAM_FORMAT, None, &text).expect_err(part);
            assert!(fault.line.is_none() && fault.column.is_none(), "{part}: {}", fault.what);
        }
        assert!(read_with(&HISTOGRAM_FORMAT, None, "").expect("an empty log").0.is_empty());
    }

    #[test]
    fn a_malformed_line_of_a_histogram_is_a_fault_with_its_column() {
        for (line, column) in [
            ("000004 x\t0", 8),
            ("000004 1", 9),
            ("4 1 2 3", 8),
            ("000001 0 0", 1),
            ("1.5 0 0", 1),
            ("0x4 0 0", 1),
            ("abc", 1),
        ] {
            let text = HISTOGRAM.replace("# Total", &format!("{line}\n# Total"));
            let fault = read_with(&HISTOGRAM_FORMAT, None, &text).expect_err(line);
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{line}: {}", fault.what);
            let options = LogOptions::default();
            let (block, end) = read(&HISTOGRAM_FORMAT, &options, true, text.as_bytes()).expect(line);
            assert_eq!((block.len(), end.skipped), (3, 1));
        }
        let huge = HISTOGRAM.replace("000003 000000", "4611686018427387903 000000");
        assert!(read_with(&HISTOGRAM_FORMAT, None, &huge).is_err_and(|fault| fault.what.contains("too large")));
    }

    #[test]
    fn each_log_is_detected_as_one_of_the_two() {
        assert!(is_detected(&FORMAT, ONE_THREAD.as_bytes()) && is_detected(&FORMAT, TWO_THREADS.as_bytes()));
        assert!(is_detected(&HISTOGRAM_FORMAT, HISTOGRAM.as_bytes()));
        let four = "# Histogram\n000000 000000\t000000\t000000\t000000\n";
        assert!(is_detected(&HISTOGRAM_FORMAT, four.as_bytes()));
        let utf_16: Vec<u8> = ONE_THREAD.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for text in [&utf_16[..], b"", b"\x7fELF\0\n", b"1 2 3\n", b"a: b: c\n"] {
            assert!([&FORMAT, &HISTOGRAM_FORMAT].iter().all(|format| !is_detected(format, text)));
            let is_fault = |format| read(format, &LogOptions::default(), false, text).is_err();
            assert!(text.is_empty() || (is_fault(&FORMAT) && is_fault(&HISTOGRAM_FORMAT)));
        }
    }
}
