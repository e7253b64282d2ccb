//! Histograms with a column of counts for each CPU or thread, and lines of totals behind them: `cyclictest -h` and `-H`, oslat,
//! `rtla timerlat hist` and `rtla osnoise hist`.
//!
//! ```text
//! # Histogram                            Core:  0 1           Index   IRQ-000   Thr-000
//! 000002 000004 000003               002 (us):  8520 7246     2          3282    122584
//! # Min Latencies: 00002 00002        Minimum:  1 1 (us)      min:          0         1
//! ```
//!
//! The columns are counted together, in no order. Bins of cyclictest and rtla have the lower edge of what they count, those of
//! oslat the upper one. What is beyond the last bin is at least its end, of oslat at least its value. The last column of `-H` is
//! the sum of the others. Of the columns of timerlat those of the woken threads (`Thr`) are taken.
//!
//! cyclictest does not state its unit: it is that which the user states, else us, which is noted as assumed.

use super::check::{LogTotals, StatedValue, note};
use super::cyclictest::{is_cycle, shown_unit};
use super::field::{LogField, TOTAL_MAX, bounded, unit_of, whole, words};
use super::form::captured;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::{TimeUnit, counted};

pub(super) const CYCLICTEST: LogFormat = LogFormat {
    name: "cyclictest-histogram",
    title: "histogram of cyclictest -h",
    options: &["--unit"],
    detects: |head| head.lines().any(|line| line == b"# Histogram") && !head.lines().any(is_cycle),
    reader: LogReader::Lines(|options| open("cyclictest", "# Histogram$", options)),
    ..FORMAT
};

pub(super) const OSLAT: LogFormat = LogFormat {
    name: "oslat",
    title: "output of oslat",
    detects: |head| head.lines().any(|line| captured(whole(line), "{} (us):*").is_some_and(|[label]| is_number(label))),
    reader: LogReader::Lines(|options| open("oslat", "Core:", options)),
    ..FORMAT
};

pub(super) const RTLA: LogFormat = LogFormat {
    name: "rtla",
    title: "histogram of rtla timerlat or osnoise",
    options: &["--unit"],
    detects: |head: &LogHead<'_>| head.lines().any(|line| !names(line).is_empty()),
    reader: LogReader::Lines(|options| open("rtla", "Index", options)),
    ..FORMAT
};

/// What the three have in common.
const FORMAT: LogFormat = LogFormat {
    name: "",
    title: "",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit", "--metric"],
    states_losses: false,
    detects: |_| false,
    reader: LogReader::Lines(|options| open("", "", options)),
};

/// What a line of totals has for each column.
#[derive(Clone, Copy)]
pub(super) enum Total {
    Min,
    Mean,
    Max,
    /// Values in the bins.
    Within,
    /// Values beyond the last bin.
    Beyond,
    /// All of them.
    All,
}

/// The begins of the lines of totals: of cyclictest, oslat, rtla.
const TOTALS: [(&str, Total); 13] = [
    ("# Total:", Total::Within),
    ("# Min Latencies:", Total::Min),
    ("# Avg Latencies:", Total::Mean),
    ("# Max Latencies:", Total::Max),
    ("# Histogram Overflows:", Total::Beyond),
    ("Minimum:", Total::Min),
    ("Average:", Total::Mean),
    ("Maximum:", Total::Max),
    ("over:", Total::Beyond),
    ("count:", Total::All),
    ("min:", Total::Min),
    ("avg:", Total::Mean),
    ("max:", Total::Max),
];

/// The most bins that are not empty; cyclictest has at most 1,000,000.
const BINS_MAX: usize = 1 << 20;

fn is_number(field: LogField<'_>) -> bool {
    field.time(TimeUnit::Micros).is_ok()
}

/// The names of the columns of rtla: `IRQ-000`, `Thr-000`.
fn names(line: &[u8]) -> Vec<&[u8]> {
    let mut names: Vec<_> = words(line).map(|word| word.text).collect();
    let is_heading = names.first() == Some(&&b"Index"[..]);
    names.retain(|name| is_heading && [&b"IRQ-"[..], b"Thr-", b"Usr-", b"CPU-"].contains(&&name[..name.len().min(4)]));
    names
}

/// The counts of a histogram, and what its log states about each column.
#[derive(Default)]
pub(super) struct Columns {
    /// Value in ns, sum of the counts, last count.
    pub(super) bins: Vec<(i64, u64, u64)>,
    /// Value of the last bin, also an empty one.
    pub(super) latest: Option<i64>,
    /// The least difference of two bins, ns.
    pub(super) width_ns: Option<i64>,
    pub(super) sums: Vec<u64>,
    /// By [`Total`], in ns or counts.
    pub(super) totals: [Vec<Option<i64>>; 6],
    /// Columns that are not counted.
    pub(super) left_out: Vec<bool>,
    /// Whether the last bin has all that is beyond it, and its value is an upper edge.
    pub(super) is_open: bool,
}

impl Columns {
    /// Takes a bin.
    ///
    /// # Errors
    /// The histogram is too large.
    pub(super) fn bin(&mut self, value_ns: i64, counts: &[u64]) -> Result<(), LogFault> {
        let width = self.latest.map(|latest| value_ns.saturating_sub(latest));
        self.width_ns = [self.width_ns, width].into_iter().flatten().min();
        self.latest = Some(value_ns);
        self.sums.resize(counts.len().max(self.sums.len()), 0);
        let (mut sum, mut last) = (0_u64, 0);
        for (column, count) in counts.iter().enumerate() {
            if !self.counts(column) {
                continue;
            }
            (sum, last) = (sum.saturating_add(*count), *count);
            self.sums[column] = self.sums[column].saturating_add(*count);
        }
        if sum > TOTAL_MAX || self.bins.len() == BINS_MAX {
            return Err(LogFault::whole(format!("the histogram has more than {BINS_MAX} bins, or 2^40 values in one")));
        }
        self.bins.extend((sum > 0).then_some((value_ns, sum, last)));
        Ok(())
    }

    fn counts(&self, column: usize) -> bool {
        self.left_out.get(column) != Some(&true)
    }

    /// Count and figure of each column that is counted.
    fn stated(&self, total: Total) -> impl Iterator<Item = (u64, i64)> {
        let sums = self.sums.iter().enumerate().filter(|(column, _)| self.counts(*column));
        sums.filter_map(move |(column, sum)| Some((*sum, (*self.totals[total as usize].get(column)?)?)))
    }

    fn sum(&self, total: Total) -> Option<u64> {
        let is_stated = !self.totals[total as usize].is_empty();
        is_stated.then(|| self.stated(total).fold(0, |sum: u64, (_, count)| sum.saturating_add(count.max(0) as u64)))
    }

    /// Passes the bins on as rows of `metric`; the facts are of a log of `tool` in `unit`.
    ///
    /// # Errors
    /// It has no values, or its end is missing.
    pub(super) fn pass(
        &mut self,
        tool: &str,
        metric: Metric,
        unit: TimeUnit,
        rows: &mut LogRows<'_>,
    ) -> Result<LogFacts, LogFault> {
        if self.totals.iter().all(Vec::is_empty) {
            let fault = LogFault::whole("the end of the histogram is missing");
            return Err(fault.hint("import the whole output, with the totals behind the histogram"));
        }
        let (Some(latest), false) = (self.latest, self.bins.is_empty()) else {
            return Err(LogFault::whole("the histogram has no values").hint("repeat with more bins, or longer"));
        };
        let has_sums = self.sums.len() > 1 && self.totals[Total::Min as usize].len() + 1 == self.sums.len();
        if has_sums {
            self.sums.pop();
        }
        rows.are_of(metric);
        for (value_ns, sum, last) in &self.bins {
            let count = if has_sums { *last } else { *sum };
            rows.value(LoggedValue { seq: None, value_ns: Some(*value_ns), count });
        }
        let step_ns = self.width_ns.unwrap_or(unit.nanos() as i64);
        let max = self.stated(Total::Max).map(|(_, max)| max).max();
        let cut_off = match self.is_open {
            true => self.bins.last().filter(|(value, ..)| max > Some(*value)).map_or(0, |(_, count, _)| *count),
            false => self.sum(Total::Beyond).unwrap_or(0),
        };
        if !self.is_open && cut_off > 0 {
            rows.value(LoggedValue { seq: None, value_ns: bounded(latest.saturating_add(step_ns)), count: cut_off });
        }
        let edge = if self.is_open { "upper" } else { "lower" };
        let is_wide = self.is_open || step_ns > unit.nanos() as i64;
        let widths = is_wide.then(|| format!("values are the {edge} edges of bins of {step_ns} ns"));
        let left_out = self.left_out.iter().filter(|is_left_out| **is_left_out).count();
        let other = note(left_out as u64, "column", "of interrupts (IRQ) or returns (Usr) left out");
        Ok(LogFacts {
            metric: Some(metric),
            resolution_ns: Some(Nanos(step_ns)),
            cut_off,
            notes: widths.into_iter().chain(other).collect(),
            totals: self.totals(step_ns, cut_off > 0),
            ..LogFacts::of(tool)
        })
    }

    fn totals(&self, step_ns: i64, is_cut_off: bool) -> LogTotals {
        let about = |ns| StatedValue::within(ns, step_ns);
        let (sum, count) = self.stated(Total::Mean).fold((0, 0), |(sum, count), (weight, mean)| {
            (sum + i128::from(mean) * i128::from(weight), count + i128::from(weight))
        });
        let mean = (count > 0).then(|| about((sum / count) as i64));
        let within = self.sum(Total::Within).map(|within| within + self.sum(Total::Beyond).unwrap_or(0));
        LogTotals {
            received: self.sum(Total::All).or(within),
            min: self
                .stated(Total::Min)
                .filter(|(count, _)| *count > 0)
                .map(|(_, min)| about(min))
                .min_by_key(|min| min.ns),
            mean: mean.filter(|_| !is_cut_off),
            max: self.stated(Total::Max).map(|(_, max)| about(max)).max_by_key(|max| max.ns).filter(|_| !is_cut_off),
            row_step_ns: step_ns,
            ..LogTotals::default()
        }
    }
}

/// `begin`: how the line in front of the bins begins; with `$` at its end it is the whole line.
fn open(tool: &'static str, begin: &'static str, options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    let stated = (tool == "oslat").then_some(TimeUnit::Micros);
    let (given, metric) = (options.unit, options.metric);
    unit_of(stated, given.or(Some(TimeUnit::Micros)))?;
    let columns = Columns { is_open: stated.is_some(), ..Columns::default() };
    Ok(Box::new(ColumnLog { tool, begin, given, stated, metric, has_begun: false, columns }))
}

struct ColumnLog {
    tool: &'static str,
    begin: &'static str,
    given: Option<TimeUnit>,
    /// The unit that the log states.
    stated: Option<TimeUnit>,
    metric: Option<Metric>,
    has_begun: bool,
    columns: Columns,
}

impl LineParser for ColumnLog {
    fn line(&mut self, line: &[u8], _: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let text = line.trim_ascii();
        let begins = match self.begin.strip_suffix('$') {
            Some(whole) => text == whole.as_bytes(),
            None => text.starts_with(self.begin.as_bytes()),
        };
        if let Some([unit]) = captured(whole(text), "# Time unit is*({})") {
            self.stated = Some(if unit.text == b"ns" { TimeUnit::Nanos } else { TimeUnit::Micros });
        } else if let Some(shown) = shown_unit(text) {
            self.stated = Some(shown);
        } else if begins {
            self.begin(text)?;
        } else if let Some((start, total)) = TOTALS.iter().find(|(start, _)| text.starts_with(start.as_bytes())) {
            self.take_totals(&text[start.len()..], *total);
        } else {
            return self.bin(line);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        let is_cyclictest = self.tool == "cyclictest";
        let assumed = is_cyclictest.then_some(TimeUnit::Micros);
        if let Some(stated) = self.stated {
            let unit = unit_of(Some(stated), self.given.or(assumed));
            unit.map_err(|fault| fault.hint(format!("`--unit {}` is right", stated.word())))?;
        }
        let unit = self.unit();
        let unit_assumed = self.stated.is_none() && self.given.is_none();
        if is_cyclictest {
            self.columns.width_ns = Some(unit.nanos() as i64);
        }
        let usual = if is_cyclictest { Metric::WakeupLatency } else { Metric::Delay };
        let facts = self.columns.pass(self.tool, self.metric.unwrap_or(usual), unit, rows)?;
        Ok(LogFacts { unit_assumed, resolution_ns: facts.resolution_ns.filter(|_| !unit_assumed), ..facts })
    }
}

impl ColumnLog {
    /// The unit of the bins: lines `T:` of cyclictest may come behind them.
    fn unit(&self) -> TimeUnit {
        let stated = self.stated.filter(|_| self.tool != "cyclictest");
        stated.or(self.given).unwrap_or(TimeUnit::Micros)
    }

    fn second_run(&self) -> LogFault {
        LogFault::whole("two runs in one log: it has a second histogram")
            .hint(format!("import each by itself: `csplit FILE '/{}/' '{{*}}'`", self.begin))
    }

    /// Takes the line in front of the bins.
    fn begin(&mut self, text: &[u8]) -> Result<(), LogFault> {
        if self.has_begun || self.columns.latest.is_some() {
            return Err(self.second_run());
        }
        self.has_begun = true;
        let names = names(text);
        let is_thread = |name: &&[u8]| name.starts_with(b"Thr-");
        if names.iter().any(is_thread) {
            self.columns.left_out = names.iter().map(|name| !is_thread(name)).collect();
            self.metric = Some(Metric::WakeupLatency);
        }
        Ok(())
    }

    /// Takes a line of totals; those of all columns together follow in a second one.
    fn take_totals(&mut self, text: &[u8], total: Total) {
        let unit = if matches!(total, Total::Min | Total::Mean | Total::Max) { self.unit() } else { TimeUnit::Nanos };
        let list = &mut self.columns.totals[total as usize];
        if list.is_empty() {
            list.extend(words(text).filter(|word| !word.text.starts_with(b"(")).map(|word| word.time(unit).ok()));
        }
    }

    /// Takes `000002 000004 000003`, `002 (us): 8520 7246` or `2 3282 122584`.
    fn bin(&mut self, line: &[u8]) -> Result<LineUse, LogFault> {
        let mut fields = words(line).filter(|word| word.text != b"(us):");
        let Some(label) = fields.next().filter(|label| is_number(*label)) else { return Ok(LineUse::Other) };
        let counts = fields.take_while(|word| !word.text.starts_with(b"(")).map(|word| word.total());
        let counts = counts.collect::<Result<Vec<u64>, LogFault>>()?;
        let columns = self.columns.sums.len();
        if counts.is_empty() || (columns > 0 && counts.len() != columns) {
            let what = format!("{} instead of {}", counted(counts.len(), "count"), columns.max(1));
            return Err(LogFault::at(line.trim_ascii_end().len() + 1, what));
        }
        let value_ns = label.time(self.unit())?;
        if self.columns.latest.is_some_and(|latest| value_ns <= latest) {
            return Err(self.second_run());
        }
        self.columns.bin(value_ns, &counts).map(|()| LineUse::Taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogEnd};
    use super::*;

    /// `cyclictest -h 4 -q -l 5 -t2` of rt-tests 2.4; 2.10 writes neither empty bins nor `# Total`.
    const CYCLES: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n\
        000000 000000\t000000\n000001 000002\t000001\n000002 000003\t000000\n000003 000000\t000004\n\
        # Total: 000000005 000000005\n# Min Latencies: 00001 00001\n# Avg Latencies: 00001 00002\n\
        # Max Latencies: 00002 00003\n# Histogram Overflows: 00000 00000\n\
        # Histogram Overflow at cycle number:\n# Thread 0: \n# Thread 1: \n\n";

    /// `oslat -D 2 -c 0,1 -b 5` of rt-tests 2.4.
    const GAPS: &str = "oslat V 2.40\nTotal runtime: \t\t2 seconds\nTest completed.\n\n        Core:\t 0 1\n\
        Counter Freq:\t 2597 2598 (Mhz)\n    001 (us):\t 300 260\n    002 (us):\t 8 7\n    003 (us):\t 0 1 (including overflows)\n\
        \x20    Minimum:\t 1 1 (us)\n     Average:\t 1.026 1.034 (us)\n     Maximum:\t 2 3 (us)\n     Max-Min:\t 1 2 (us)\n\
        \x20   Duration:\t 2.014 2.049 (sec)\n\n";

    /// `rtla timerlat hist -b 2 -c 0,1`, by its source.
    const TIMERS: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:02\n\
        Index   IRQ-000   Thr-000   IRQ-001   Thr-001\n0             9         1         8         0\n\
        2             0         7         1         8\n4             0         1         0         1\n\
        over:         0         2         0         0\ncount:        9        11         9         9\n\
        min:          0         1         0         2\navg:          0         5         0         3\n\
        max:          1        80         2         5\nALL:        IRQ       Thr\ncount:       18        20\n\
        min:          0         1\navg:          0         4\nmax:          2        80\n";

    fn import(format: &LogFormat, unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read(format, &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(i64, u64)> {
        assert!(block.values.iter().all(|row| row.seq.is_none()));
        block.values.iter().map(|row| (row.value_ns.expect("a value"), row.count)).collect()
    }

    #[test]
    fn the_columns_are_counted_together() {
        let sparse = CYCLES.replace("000000 000000\t000000\n", "").replace("# Total: 000000005 000000005\n", "");
        let sums = "# Histogram\n000001 000002\t000001\t000003\n000002 000003\t000000\t000003\n000003 000000\t000004\t000004\n\
            # Total: 000000005 000000005 000000010\n# Min Latencies: 00001 00001\n# Max Latencies: 00002 00003 00003\n\
            # Histogram Overflows: 00000 00000 00000\n";
        for text in [CYCLES, &CYCLES.replace('\n', "\r\n"), &sparse, sums] {
            assert!(is_detected(&CYCLICTEST, text.as_bytes()), "{text}");
            let (block, end) = import(&CYCLICTEST, None, text).expect(text);
            assert_eq!(rows(&block), [(1_000, 3), (2_000, 3), (3_000, 4)], "{text}");
            assert_eq!((block.metric, end.contradictions.as_slice()), (Some(Metric::WakeupLatency), &[][..]), "{text}");
            assert_eq!((end.facts.unit_assumed, end.facts.resolution_ns, end.facts.cut_off), (true, None, 0));
        }
        let one_thread = "# Histogram\n000007 000002\t000002\n# Min Latencies: 00007\n# Histogram Overflows: 00000\n";
        assert_eq!(rows(&import(&CYCLICTEST, None, one_thread).expect("-H of 2.10").0), [(7_000, 2)]);
        assert!(is_detected(&OSLAT, GAPS.as_bytes()) && is_detected(&RTLA, TIMERS.as_bytes()));
        let (block, end) = import(&OSLAT, None, GAPS).expect("a log of oslat");
        assert_eq!((rows(&block), end.contradictions.len()), (vec![(1_000, 560), (2_000, 15), (3_000, 1)], 0));
        assert_eq!(end.facts.notes, ["values are the upper edges of bins of 1000 ns"]);
        assert!(
            import(&RTLA, Some(TimeUnit::Nanos), TIMERS).is_err_and(|fault| fault.what.contains("in µs, not in ns"))
        );
        let (block, end) = import(&RTLA, None, TIMERS).expect("a log of rtla");
        assert_eq!((rows(&block), end.contradictions.len()), (vec![(0, 1), (2_000, 15), (4_000, 2), (6_000, 2)], 0));
        assert_eq!((end.facts.cut_off, end.facts.notes.len(), block.metric), (2, 3, Some(Metric::WakeupLatency)));
        let noise = TIMERS.replace("IRQ-", "CPU-").replace("Thr-", "CPU-").replace("(us)", "(ns)");
        let (block, end) = import(&RTLA, None, &noise).expect("osnoise");
        assert_eq!((rows(&block)[0], end.facts.metric), ((0, 18), Some(Metric::Delay)));
    }

    #[test]
    fn what_is_beyond_the_last_bin_is_at_least_its_end() {
        let text = CYCLES
            .replace("Overflows: 00000 00000", "Overflows: 00002 00001")
            .replace("00002 00003\n", "00009 00008\n");
        let (block, end) = import(&CYCLICTEST, Some(TimeUnit::Nanos), &text).expect("a log");
        assert_eq!((rows(&block)[3], end.facts.cut_off, end.contradictions.len()), ((4, 3), 3, 0));
        let gaps = GAPS.replace("2 3 (us)", "2 90 (us)");
        let (block, end) = import(&OSLAT, None, &gaps).expect("a log");
        assert_eq!((rows(&block)[2], end.facts.cut_off, end.contradictions.len()), ((3_000, 1), 1, 0));
    }

    #[test]
    fn totals_check_the_bins() {
        for (format, text, part, instead) in [
            (&CYCLICTEST, CYCLES, "000002 000003", "000002 000004"),
            (&CYCLICTEST, CYCLES, "Min Latencies: 00001", "Min Latencies: 00000\n#"),
            (&OSLAT, GAPS, "1.026 1.034", "9.026 9.034"),
            (&RTLA, TIMERS, "count:        9        11", "count:        9        12"),
        ] {
            let text = text.replacen(part, instead, 1).replacen("00000\n# 00001", "00004 00009", 1);
            assert_eq!(import(format, None, &text).expect(part).1.contradictions.len(), 1, "{part}");
        }
    }

    #[test]
    fn two_runs_and_logs_without_an_end_are_refused() {
        for (format, text) in [(&CYCLICTEST, CYCLES), (&OSLAT, GAPS), (&RTLA, TIMERS)] {
            let fault = import(format, None, &text.repeat(2)).expect_err("two runs");
            assert!(fault.column.is_none() && fault.hint.expect("a hint").contains("csplit"), "{}", fault.what);
            let end = text.find("# Total").or(text.find("     Min")).or(text.find("over:")).expect("totals");
            let fault = import(format, None, &text[..end]).expect_err("no end");
            assert_eq!((fault.column, &*fault.what), (None, "the end of the histogram is missing"));
        }
        let bare: String =
            CYCLES.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        assert!(import(&CYCLICTEST, None, &bare.repeat(2)).is_err_and(|fault| fault.what.starts_with("two runs")));
        for (bad, column) in [("000004 x\t0", 8), ("000004 1", 9), ("000004 1 1099511627777", 10)] {
            let text = CYCLES.replace("# Total", &format!("{bad}\n# Total"));
            let fault = import(&CYCLICTEST, None, &text).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{bad}");
        }
        let none = CYCLES
            .replace("00002", "00000")
            .replace("00001", "00000")
            .replace("00003", "00000")
            .replace("00004", "00000");
        assert!(import(&CYCLICTEST, None, &none).is_err());
    }
}
