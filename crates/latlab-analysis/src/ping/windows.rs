//! `--window`: statistics of the round trips in each window of the run, which show drift and bursts of delay.

use crate::metric::Metric;
use crate::probe::Fate;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::{INFINITE, Sample};
use crate::source::{RowVisitor, for_each_measured, value_at};
use crate::stats::{DescribeOptions, Description, describe};
use crate::units::Nanos;

/// More windows than this are a mistake in the unit, and more rows than anyone reads.
pub(crate) const MAX_WINDOWS: usize = 100_000;

/// The round trips of the probes that were due (in a closed loop: sent) in one span of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its start, since the first measured probe.
    pub start_ns: Nanos,
    /// Its round trips; n is 0 without a probe.
    pub round_trip_delay: Description,
}

/// Windows, probe by probe. Rows come in order of due time, so that one window is open at a time.
pub(crate) struct Windows {
    length: Nanos,
    options: DescribeOptions,
    origin_ns: Option<i64>,
    open: Vec<i64>,
    done: Vec<Window>,
    too_many: bool,
}

impl Windows {
    /// No windows yet, each `length` long.
    pub(crate) fn of(length: Nanos, options: &DescribeOptions) -> Windows {
        let options = DescribeOptions { intervals: false, ..options.clone() };
        Windows { length, options, origin_ns: None, open: Vec::new(), done: Vec::new(), too_many: false }
    }

    /// All windows; `None` if there are more than [`MAX_WINDOWS`].
    pub(crate) fn finish(mut self) -> Option<Vec<Window>> {
        if self.origin_ns.is_some() {
            self.close();
        }
        (!self.too_many).then_some(self.done)
    }

    fn close(&mut self) {
        let start_ns = self.length.saturating_mul(self.done.len() as i64);
        let sample = Sample::new(Metric::RoundTripDelay, std::mem::take(&mut self.open));
        self.done.push(Window { start_ns, round_trip_delay: describe(&sample, &self.options) });
    }

    fn take(&mut self, at_ns: i64, singleton: i64) {
        let origin = *self.origin_ns.get_or_insert(at_ns);
        let index = (at_ns.saturating_sub(origin) / self.length.0.max(1)).max(0) as usize;
        self.too_many |= index >= MAX_WINDOWS;
        while !self.too_many && self.done.len() < index {
            self.close();
        }
        if !self.too_many {
            self.open.push(singleton);
        }
    }
}

impl RowVisitor for Windows {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::SentNs, ProbeColumn::ReceivedNs]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_measured(batch, |row, fate| {
            let sent = value_at(&batch.sent_ns, row);
            let (Some(at_ns), Some(sent)) = (value_at(&batch.due_ns, row).or(sent), sent) else { return };
            match (fate, value_at(&batch.received_ns, row)) {
                (Fate::Answered, Some(received)) => self.take(at_ns, received.saturating_sub(sent)),
                (Fate::Late | Fate::Lost, _) => self.take(at_ns, INFINITE),
                _ => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnostics::Explain;
    use crate::in_memory::{EVERY_MS, InMemory, but, scheduled};
    use crate::probe::Fate;
    use crate::recording::RecordingError;
    use crate::units::Nanos;
    use crate::{AnalysisError, SummaryOptions, summarise};

    /// `(start in µs, n, lost, max in µs)`
    type Row = (i64, u64, u64, Option<i64>);

    /// Each window of `length`, or the refusal.
    fn windows(source: &InMemory, length: Nanos) -> Result<Vec<Row>, String> {
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.judging.window_ns = Some(length);
        match summarise(source, &options) {
            Ok(summary) => Ok(summary
                .windows
                .iter()
                .map(|window| {
                    let described = &window.round_trip_delay;
                    (window.start_ns.0 / 1_000, described.n, described.lost, described.max.map(|ns| ns as i64 / 1_000))
                })
                .collect()),
            Err(AnalysisError::TooManyWindows { duration, window }) => {
                let failure = AnalysisError::<RecordingError>::TooManyWindows { duration, window }.explain();
                Err(format!("{failure}: {}", failure.hint.as_deref().unwrap_or_default()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_probe_belongs_to_the_window_in_which_it_was_due() {
        let source = InMemory::of(
            EVERY_MS,
            vec![
                scheduled(0, 5_000, 0, 10),
                scheduled(1, 6_999, 900, 20), // sent in the next window, due in this one
                but(scheduled(2, 7_000, 0, 0), Fate::Lost),
                but(scheduled(3, 8_000, 0, 0), Fate::NotSent),
                scheduled(4, 11_500, 0, 30),
            ],
        );
        let expected = [(0, 2, 0, Some(20)), (2_000, 1, 1, None), (4_000, 0, 0, None), (6_000, 1, 0, Some(30))];
        assert_eq!(windows(&source, Nanos::from_millis(2)).as_deref(), Ok(expected.as_slice()));
    }

    #[test]
    fn a_run_without_probes_has_no_windows() {
        assert_eq!(windows(&InMemory::of(EVERY_MS, Vec::new()), Nanos::from_secs(1)), Ok(Vec::new()));
    }

    #[test]
    fn too_many_windows_are_refused_with_a_length_that_fits() {
        let source = InMemory::of(EVERY_MS, vec![scheduled(0, 0, 0, 1), scheduled(1, 10_000_000, 0, 1)]);
        let refusal = windows(&source, Nanos(10)).expect_err("a billion windows");
        assert_eq!(refusal, "cannot divide 10 s into windows of `10 ns`: `--window 100001us` gives a hundred");
        assert!(windows(&source, Nanos::from_micros(100_001)).is_ok());
    }
}
