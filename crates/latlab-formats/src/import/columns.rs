//! Histograms with a column of counts for each CPU or thread, and lines of totals behind them: `cyclictest -h` and `-H` (bins
//! `000002 000004 000003`), oslat (`002 (us):  8520 7246`), `rtla timerlat hist` and `rtla osnoise hist` (`2  3282  122584`).
//!
//! The columns are counted together. Bins of oslat have the upper edge of what they count, others the lower one; what is beyond
//! the last bin is at least its end. Of the columns of timerlat those of the woken threads (`Thr`) are taken.

use super::cyclictest::{is_cycle, shown_unit};
use super::prelude::*;

pub(super) fn is_cyclictest(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| line == b"# Histogram") && !head.lines().any(is_cycle)
}

pub(super) fn is_oslat(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| captured(whole(line), "{} (us):*").is_some_and(|[label]| is_number(label)))
}

pub(super) fn is_rtla(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| !names(line).is_empty())
}

#[derive(Clone, Copy)]
pub(super) enum Total {
    Min,
    Mean,
    Max,
    Within,
    Beyond,
    All,
}

/// The beginnings of the lines of totals: of cyclictest, oslat, rtla.
const TOTALS: &[(&[&str], Total)] = &[
    (&["# Min Latencies:", "Minimum:", "min:"], Total::Min),
    (&["# Avg Latencies:", "Average:", "avg:"], Total::Mean),
    (&["# Max Latencies:", "Maximum:", "max:"], Total::Max),
    (&["# Total:"], Total::Within),
    (&["# Histogram Overflows:", "over:"], Total::Beyond),
    (&["count:"], Total::All),
];

const BINS_MAX: usize = 1 << 20;

fn is_number(field: LogField<'_>) -> bool {
    field.time(TimeUnit::Micros).is_ok()
}

fn names(line: &[u8]) -> Vec<&[u8]> {
    let mut names: Vec<_> = words(line).map(|word| word.text).collect();
    let is_heading = names.first() == Some(&&b"Index"[..]);
    names.retain(|name| is_heading && [&b"IRQ-"[..], b"Thr-", b"Usr-", b"CPU-"].contains(&&name[..name.len().min(4)]));
    names
}

#[derive(Default)]
pub(super) struct Columns {
    /// Value in ns and sum of the counts.
    pub(super) bins: Vec<(i64, u64)>,
    /// Value of the last bin, also an empty one.
    pub(super) latest: Option<i64>,
    /// The least difference of two bins, ns.
    pub(super) width_ns: Option<i64>,
    pub(super) sums: Vec<u64>,
    /// By [`Total`], in ns or counts.
    pub(super) totals: [Vec<Option<i64>>; 6],
    /// Whether the last bin has all that is beyond it, and its value is an upper edge.
    pub(super) is_open: bool,
}

impl Columns {
    pub(super) fn bin(&mut self, value_ns: i64, counts: &[u64]) -> Result<(), LogFault> {
        let width = self.latest.map(|latest| value_ns.saturating_sub(latest));
        self.width_ns = [self.width_ns, width].into_iter().flatten().min();
        self.latest = Some(value_ns);
        self.sums.resize(counts.len().max(self.sums.len()), 0);
        self.sums.iter_mut().zip(counts).for_each(|(column, count)| *column = column.saturating_add(*count));
        let sum = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if sum > TOTAL_MAX || self.bins.len() == BINS_MAX {
            return Err(LogFault::whole(format!("the histogram has more than {BINS_MAX} bins, or 2^40 values in one")));
        }
        self.bins.extend((sum > 0).then_some((value_ns, sum)));
        Ok(())
    }

    fn stated(&self, total: Total) -> impl Iterator<Item = (u64, i64)> {
        let figures = self.sums.iter().zip(&self.totals[total as usize]);
        figures.filter_map(|(sum, figure)| Some((*sum, (*figure)?)))
    }

    fn sum(&self, total: Total) -> Option<u64> {
        let is_stated = !self.totals[total as usize].is_empty();
        is_stated.then(|| self.stated(total).fold(0, |sum: u64, (_, count)| sum.saturating_add(count.max(0) as u64)))
    }

    /// Passes the bins on as rows; the facts are of a log of `tool` in `unit`.
    pub(super) fn pass(&mut self, tool: &str, unit: TimeUnit, rows: &mut LogRows<'_>) -> ReadLog {
        if self.totals.iter().all(Vec::is_empty) {
            let fault = LogFault::whole("the end of the histogram is missing");
            return Err(fault.hint("import the whole output, with the totals behind the histogram"));
        }
        let (Some(latest), false) = (self.latest, self.bins.is_empty()) else {
            return Err(LogFault::whole("the histogram has no values").hint("repeat with more bins, or longer"));
        };
        // The last column of `cyclictest -H` is the sum of the others.
        let has_sums = self.sums.len() > 1 && self.totals[Total::Min as usize].len() + 1 == self.sums.len();
        if has_sums {
            self.sums.pop();
        }
        for (value_ns, sum) in &self.bins {
            let count = if has_sums { *sum / 2 } else { *sum };
            rows.value(LoggedValue { seq: None, value_ns: Some(*value_ns), count });
        }
        let step_ns = self.width_ns.unwrap_or(unit.nanos() as i64);
        let max = self.stated(Total::Max).map(|(_, max)| max).max();
        let cut_off = match self.is_open {
            true => self.bins.last().filter(|(value, _)| max > Some(*value)).map_or(0, |(_, count)| *count),
            false => self.sum(Total::Beyond).unwrap_or(0),
        };
        if !self.is_open && cut_off > 0 {
            rows.value(LoggedValue { seq: None, value_ns: bounded(latest.saturating_add(step_ns)), count: cut_off });
        }
        let edge = if self.is_open { "upper" } else { "lower" };
        let is_wide = self.is_open || step_ns > unit.nanos() as i64;
        let widths = is_wide.then(|| format!("values are the {edge} edges of bins of {step_ns} ns"));
        Ok(LogFacts {
            resolution_ns: Some(Nanos(step_ns)),
            cut_off,
            notes: widths.into_iter().collect(),
            totals: self.totals(step_ns, max, cut_off > 0),
            ..LogFacts::of(tool)
        })
    }

    fn totals(&self, step_ns: i64, max: Option<i64>, is_cut_off: bool) -> LogTotals {
        let about = |ns| StatedValue { ns, step_ns };
        let within = self.sum(Total::Within).map(|within| within + self.sum(Total::Beyond).unwrap_or(0));
        let min = self.stated(Total::Min).filter(|(count, _)| *count > 0).map(|(_, min)| min).min();
        let (sum, count) = self.stated(Total::Mean).fold((0, 0), |(sum, count), (weight, mean)| {
            (sum + i128::from(mean) * i128::from(weight), count + i128::from(weight))
        });
        let mean = (count > 0).then(|| about((sum / count) as i64));
        LogTotals {
            received: self.sum(Total::All).or(within),
            min: min.map(about),
            mean: mean.filter(|_| !is_cut_off),
            max: max.filter(|_| !is_cut_off).map(about),
            row_step_ns: step_ns,
            ..LogTotals::default()
        }
    }
}

fn counted_of<T>(left_out: &[bool], figures: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    figures.enumerate().filter(|(column, _)| left_out.get(*column) != Some(&true)).map(|(_, figure)| figure)
}

pub(super) fn open(tool: &'static str, begin: &'static str, options: &LogOptions) -> OpenedLog {
    let stated = (tool == "oslat").then_some(TimeUnit::Micros);
    let (given, metric) = (options.unit, options.metric);
    unit_of(stated, given.or(Some(TimeUnit::Micros)))?;
    let columns = Columns { is_open: stated.is_some(), ..Columns::default() };
    Ok(Box::new(ColumnLog { tool, begin, given, stated, metric, has_begun: false, left_out: Vec::new(), columns }))
}

struct ColumnLog {
    tool: &'static str,
    begin: &'static str,
    given: Option<TimeUnit>,
    stated: Option<TimeUnit>,
    metric: Option<Metric>,
    has_begun: bool,
    left_out: Vec<bool>,
    columns: Columns,
}

impl LineParser for ColumnLog {
    fn line(&mut self, line: &[u8], _: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let text = line.trim_ascii();
        let start_of = |(starts, total): &(&[&str], Total)| {
            let start = starts.iter().find(|start| text.starts_with(start.as_bytes()))?;
            Some((&text[start.len()..], *total))
        };
        if let Some([unit]) = captured(whole(text), "# Time unit is*({})") {
            self.stated = Some(if unit.text == b"ns" { TimeUnit::Nanos } else { TimeUnit::Micros });
        } else if let Some(shown) = shown_unit(text) {
            self.stated = Some(shown);
        } else if captured::<0>(whole(text), self.begin).is_some() {
            self.begin(text)?;
        } else if let Some((figures, total)) = TOTALS.iter().find_map(start_of) {
            self.take_totals(figures, total);
        } else {
            return self.bin(line);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, rows: &mut LogRows<'_>) -> ReadLog {
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
        rows.are_of(self.metric.unwrap_or(usual));
        let facts = self.columns.pass(self.tool, unit, rows)?;
        let left_out = self.left_out.iter().filter(|is_left_out| **is_left_out).count() as u64;
        let other = note(left_out, "column", "of interrupts (IRQ) or returns (Usr) left out");
        let notes = facts.notes.into_iter().chain(other).collect();
        Ok(LogFacts { unit_assumed, notes, resolution_ns: facts.resolution_ns.filter(|_| !unit_assumed), ..facts })
    }
}

impl ColumnLog {
    /// The unit of the bins: lines `T:` of cyclictest may come behind them.
    fn unit(&self) -> TimeUnit {
        let stated = self.stated.filter(|_| self.tool != "cyclictest");
        stated.or(self.given).unwrap_or(TimeUnit::Micros)
    }

    fn second_run(&self) -> LogFault {
        let begin = format!("{}$", self.begin).replace("*$", "");
        LogFault::whole("two runs in one log: it has a second histogram")
            .hint(format!("import each by itself: `csplit FILE '/{begin}/' '{{*}}'`"))
    }

    fn begin(&mut self, text: &[u8]) -> Result<(), LogFault> {
        if self.has_begun || self.columns.latest.is_some() {
            return Err(self.second_run());
        }
        self.has_begun = true;
        let names = names(text);
        let is_thread = |name: &&[u8]| name.starts_with(b"Thr-");
        if names.iter().any(is_thread) {
            self.left_out = names.iter().map(|name| !is_thread(name)).collect();
            self.metric = Some(Metric::WakeupLatency);
        }
        Ok(())
    }

    fn take_totals(&mut self, text: &[u8], total: Total) {
        let unit = if matches!(total, Total::Min | Total::Mean | Total::Max) { self.unit() } else { TimeUnit::Nanos };
        let figures = words(text).filter(|word| !word.text.starts_with(b"(")).map(|word| word.time(unit).ok());
        let list = &mut self.columns.totals[total as usize];
        if list.is_empty() {
            list.extend(counted_of(&self.left_out, figures));
        }
    }

    fn bin(&mut self, line: &[u8]) -> Result<LineUse, LogFault> {
        let mut fields = words(line).filter(|word| word.text != b"(us):");
        let Some(label) = fields.next().filter(|label| is_number(*label)) else { return Ok(LineUse::Other) };
        let counts = fields.take_while(|word| !word.text.starts_with(b"(")).map(|word| word.total());
        let counts = counted_of(&self.left_out, counts).collect::<Result<Vec<u64>, LogFault>>()?;
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

    fn import(format: &str, unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
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
            assert!(is_detected("cyclictest-histogram", text.as_bytes()), "{text}");
            let (block, end) = import("cyclictest-histogram", None, text).expect(text);
            assert_eq!(rows(&block), [(1_000, 3), (2_000, 3), (3_000, 4)], "{text}");
            assert_eq!((block.metric, end.contradictions.as_slice()), (Some(Metric::WakeupLatency), &[][..]), "{text}");
            assert_eq!((end.facts.unit_assumed, end.facts.resolution_ns, end.facts.cut_off), (true, None, 0));
        }
        let one_thread = "# Histogram\n000007 000002\t000002\n# Min Latencies: 00007\n# Histogram Overflows: 00000\n";
        assert_eq!(rows(&import("cyclictest-histogram", None, one_thread).expect("-H of 2.10").0), [(7_000, 2)]);
        assert!(is_detected("oslat", GAPS.as_bytes()) && is_detected("rtla", TIMERS.as_bytes()));
        let (block, end) = import("oslat", None, GAPS).expect("a log of oslat");
        assert_eq!((rows(&block), end.contradictions.len()), (vec![(1_000, 560), (2_000, 15), (3_000, 1)], 0));
        assert_eq!(end.facts.notes, ["values are the upper edges of bins of 1000 ns"]);
        assert!(
            import("rtla", Some(TimeUnit::Nanos), TIMERS).is_err_and(|fault| fault.what.contains("in µs, not in ns"))
        );
        let (block, end) = import("rtla", None, TIMERS).expect("a log of rtla");
        assert_eq!((rows(&block), end.contradictions.len()), (vec![(0, 1), (2_000, 15), (4_000, 2), (6_000, 2)], 0));
        assert_eq!((end.facts.cut_off, end.facts.notes.len(), block.metric), (2, 3, Some(Metric::WakeupLatency)));
        let noise = TIMERS.replace("IRQ-", "CPU-").replace("Thr-", "CPU-").replace("(us)", "(ns)");
        let (block, end) = import("rtla", None, &noise).expect("osnoise");
        assert_eq!((rows(&block)[0], end.facts.metric), ((0, 18), Some(Metric::Delay)));
    }

    #[test]
    fn what_is_beyond_the_last_bin_is_at_least_its_end() {
        let text = CYCLES
            .replace("Overflows: 00000 00000", "Overflows: 00002 00001")
            .replace("00002 00003\n", "00009 00008\n");
        let (block, end) = import("cyclictest-histogram", Some(TimeUnit::Nanos), &text).expect("a log");
        assert_eq!((rows(&block)[3], end.facts.cut_off, end.contradictions.len()), ((4, 3), 3, 0));
        let gaps = GAPS.replace("2 3 (us)", "2 90 (us)");
        let (block, end) = import("oslat", None, &gaps).expect("a log");
        assert_eq!((rows(&block)[2], end.facts.cut_off, end.contradictions.len()), ((3_000, 1), 1, 0));
    }

    #[test]
    fn totals_check_the_bins() {
        for (format, text, part, instead) in [
            ("cyclictest-histogram", CYCLES, "000002 000003", "000002 000004"),
            ("cyclictest-histogram", CYCLES, "Min Latencies: 00001", "Min Latencies: 00000\n#"),
            ("rtla", TIMERS, "count:        9        11", "count:        9        12"),
        ] {
            let text = text.replacen(part, instead, 1).replacen("00000\n# 00001", "00004 00009", 1);
            assert_eq!(import(format, None, &text).expect(part).1.contradictions.len(), 1, "{part}");
        }
    }

    #[test]
    fn two_runs_and_logs_without_an_end_are_refused() {
        for (format, text) in [("cyclictest-histogram", CYCLES), ("oslat", GAPS), ("rtla", TIMERS)] {
            let fault = import(format, None, &text.repeat(2)).expect_err("two runs");
            assert!(fault.column.is_none() && fault.hint.expect("a hint").contains("csplit"), "{}", fault.what);
            let end = text.find("# Total").or(text.find("     Min")).or(text.find("over:")).expect("totals");
            let fault = import(format, None, &text[..end]).expect_err("no end");
            assert_eq!((fault.column, &*fault.what), (None, "the end of the histogram is missing"));
        }
        for (bad, column) in [("000004 x\t0", 8), ("000004 1", 9), ("000004 1 1099511627777", 10)] {
            let text = CYCLES.replace("# Total", &format!("{bad}\n# Total"));
            let fault = import("cyclictest-histogram", None, &text).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{bad}");
        }
    }
}
