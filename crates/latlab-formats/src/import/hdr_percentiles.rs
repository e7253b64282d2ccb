//! Percentile tables of HdrHistogram (`.hgrm`, HistogramLogProcessor), and those of wrk2 with other text around them: lines
//! `Value Percentile TotalCount 1/(1-Percentile)`. Each is a row: as many values as its total count is above that of the line
//! before, at the upper end of their step. Of the two tables of `wrk2 -U` the first is read, which counts from when a request was due.

use super::prelude::*;
use crate::units::human::span;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    Ok(Box::new(PercentileLog { given: options.unit, metric: options.metric, ..PercentileLog::default() }))
}

pub(super) fn is_heading(line: &[u8]) -> bool {
    captured::<0>(whole(line), "*Value*Percentile*TotalCount*1/(1-Percentile)*").is_some()
}

#[derive(Default)]
struct PercentileLog {
    given: Option<TimeUnit>,
    metric: Option<Metric>,
    stated: Option<TimeUnit>,
    is_wrk: bool,
    has_begun: bool,
    is_uncorrected: bool,
    last: (i64, i64, u64),
    /// Sum of the differences of the upper and the lower ends of the steps, ns.
    spread: i128,
    left_out: u64,
    sub_buckets: i64,
    totals: LogTotals,
}

impl LineParser for PercentileLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if memmem::find(line, b"Latency Distribution (HdrHistogram").is_some() {
            (self.is_wrk, self.is_uncorrected) = (true, memmem::find(line, b"Uncorrected").is_some());
        } else if is_heading(line) {
            if self.has_begun && !self.is_uncorrected {
                return Err(LogFault::whole("two runs in one log: it has a second table of percentiles")
                    .hint("import each by itself: `csplit FILE '/TotalCount/' '{*}'`"));
            }
            self.has_begun = true;
            self.stated = captured(whole(line), "*Value({})*").and_then(|[unit]| TimeUnit::from_word(&unit.shown()));
        } else if self.is_uncorrected {
            self.left_out += u64::from(row_of(line).is_some());
        } else if let Some(row) = row_of(line).filter(|_| self.has_begun) {
            self.row(row, rows)?;
        } else if !self.footer(whole(line)) {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        let (_, percentile, count) = self.last;
        if percentile != 1_000_000_000 {
            let fault = LogFault::whole("the table ends before its last line, percentile 1");
            return Err(fault.hint("import the whole table"));
        }
        // The mean of what was recorded is below that of the upper ends, by at most their steps.
        let spread = (self.spread / i128::from(count.max(1))) as i64;
        let mean = self.totals.mean.map(|mean| StatedValue { ns: mean.ns, step_ns: spread });
        // Some versions print the lowest value of the last bucket, others the highest.
        let bucket = |ns: i64| 2 * ns / self.sub_buckets.max(2);
        let max = self.totals.max.map(|max| StatedValue { ns: max.ns, step_ns: bucket(max.ns) });
        let steps = "values are the upper ends of the steps of the table, which are on average";
        let steps = (count > 0).then(|| format!("{steps} {} wide", span(Nanos(spread))));
        Ok(LogFacts {
            notes: steps.into_iter().chain(note(self.left_out, "line", "of the uncorrected table left out")).collect(),
            totals: LogTotals { mean, max, ..self.totals.clone() },
            ..LogFacts::of(if self.is_wrk { "wrk2" } else { "HdrHistogram" })
        })
    }
}

/// Value, percentile and total count of a line, which in CSV has commas; the last line of Java ends with them.
fn row_of(line: &[u8]) -> Option<[LogField<'_>; 3]> {
    let fields: Vec<_> = if line.contains(&b',') { cells(line, b',').collect() } else { words(line).collect() };
    let [value, percentile, count] = *fields.first_chunk()?;
    (fields.len() <= 4 && value.text.first().is_some_and(u8::is_ascii_digit)).then_some([value, percentile, count])
}

impl PercentileLog {
    fn unit(&self) -> Result<TimeUnit, LogFault> {
        unit_of(self.is_wrk.then_some(TimeUnit::Millis).or(self.stated), self.given)
    }

    fn row(&mut self, [value, percentile, count]: [LogField<'_>; 3], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let unit = self.unit()?;
        let (value_ns, percentile, total) = (value.time(unit)?, percentile.time(TimeUnit::Seconds)?, count.total()?);
        let (lower_ns, _, before) = self.last;
        if total < before || value_ns < lower_ns {
            return Err(LogFault::whole("the values or counts of the table descend").hint("import one table by itself"));
        }
        self.last = (value_ns, percentile, total);
        self.totals.row_step_ns = self.totals.row_step_ns.max(value.step_ns(unit));
        if total > before {
            self.spread += i128::from(value_ns - lower_ns) * i128::from(total - before);
            rows.are_of(self.metric.unwrap_or(Metric::Delay));
            rows.value(LoggedValue { seq: None, value_ns: Some(value_ns), count: total - before });
        }
        Ok(())
    }

    /// Takes `#[Mean = 2.500, StdDeviation = 1.100]` and `#[Max = 4.000, Total count = 10]`.
    fn footer(&mut self, line: LogField<'_>) -> bool {
        let value = |field: LogField<'_>| StatedValue::of(&field, self.unit().ok()?).ok();
        if let Some([mean]) = captured(line, "#[Mean*={},*") {
            self.totals.mean = value(mean);
        } else if let Some([max, count]) = captured(line, "#[Max*={},*={}]") {
            (self.totals.max, self.totals.received) = (value(max), count.total().ok());
        } else if let Some([count]) = captured(line, "#[Buckets*=*={}]") {
            self.sub_buckets = count.total().map_or(0, |count| count as i64);
        }
        line.text.starts_with(b"#[")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogEnd, LogOptions};
    use super::*;

    fn table(footer: &str) -> String {
        format!(
            "       Value     Percentile TotalCount 1/(1-Percentile)\n\n\
             \x20      1.000 0.000000000000          1           1.00\n\
             \x20      2.000 0.500000000000          5           2.00\n\
             \x20      2.000 0.600000000000          5           2.50\n\
             \x20      4.000 1.000000000000         10            inf\n\
             #[Mean    =        2.500, StdDeviation   =        1.100]\n\
             #[Max     =        4.000, Total count    =           {footer}]\n\
             #[Buckets =           27, SubBuckets     =         2048]\n"
        )
    }

    fn import(unit: Option<TimeUnit>, text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read("hdr-percentiles", &LogOptions { unit, ..LogOptions::default() }, false, text.as_bytes())
    }

    #[test]
    fn the_differences_of_the_counts_are_rows() {
        let (table, micros) = (table("10"), Some(TimeUnit::Micros));
        let csv = "\"Value\",\"Percentile\",\"TotalCount\",\"1/(1-Percentile)\"\n1.0,0.0,1,1.00\n2.0,0.5,5,2.00\n\
            4.0,1.0,10,Infinity\n";
        let wrk = format!(
            "Running 3s test @ http://127.0.0.1:80/\n  Latency Distribution (HdrHistogram - Recorded Latency)\n\
             50.000%    3.62ms\n{table}-----\n\
             \x20 Latency Distribution (HdrHistogram - Uncorrected Latency)\n{table}  151 requests in 3.01s, 316.01KB read\n"
        );
        let java = table.replace("         10            inf", "         10");
        for (text, unit, scale, notes) in [
            (&*java, micros, 1, 1),
            (&*table, micros, 1, 1),
            (csv, micros, 1, 1),
            (&*wrk, None, 1_000, 2),
            (&*wrk, Some(TimeUnit::Millis), 1_000, 2),
        ] {
            assert!(is_detected("hdr-percentiles", text.as_bytes()), "{text}");
            let (block, end) = import(unit, text).expect(text);
            let rows: Vec<_> = block.values.iter().map(|row| (row.value_ns.expect("a value"), row.count)).collect();
            assert_eq!(
                rows,
                [(1_000, 1), (2_000, 4), (4_000, 5)].map(|(value, count)| (value * scale, count)),
                "{text}"
            );
            assert_eq!((end.contradictions.as_slice(), end.facts.notes.len()), (&[][..], notes), "{text}");
        }
        assert!(import(None, &table).expect_err("no unit").hint.is_some_and(|hint| hint.contains("--unit ns|us")));
        assert_eq!(import(micros, &wrk).expect_err("ms").hint.as_deref(), Some("leave out `--unit`"));
    }

    #[test]
    fn a_table_is_checked_by_its_own_totals() {
        let micros = Some(TimeUnit::Micros);
        let contradictions = |text: &str| import(micros, text).expect(text).1.contradictions;
        assert_eq!(contradictions(&table("11")), ["11 received, 10 in its rows"]);
        assert_eq!(
            contradictions(&table("10").replace("2.500,", "2.950,")),
            [""; 0],
            "below the mean of the upper ends"
        );
        assert_eq!(contradictions(&table("10").replace("2.500,", "1.050,")).len(), 1);
        for (text, what) in [
            (table("10").repeat(2), "two runs in one log: it has a second table of percentiles"),
            (
                table("10").split("       4.000").next().expect("a part").into(),
                "the table ends before its last line, percentile 1",
            ),
            (table("10").replace("  5           2.00", " 5x           2.00"), "`5x` is not a whole number"),
        ] {
            assert_eq!(import(micros, &text).expect_err(what).what, what);
        }
    }
}
