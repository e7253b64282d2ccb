//! The workers of a load, inside of its stressor, and the figures of their work.

use std::io::Read;
use std::os::fd::AsFd;

use latlab_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::kinds::{self, Meter};
use super::pacing::usable_cpus;
use super::stressor::{BEGIN, END};
use super::{LoadError, StressorRequest};
use crate::facts::LoadReport;
use crate::plan::LoadKind;
use crate::units::Nanos;

/// The workers of one load. They run until their process ends, which has no other purpose.
#[derive(Debug)]
pub struct Workers {
    blank: LoadReport,
    meter: Meter,
}

impl Workers {
    /// Starts the requested load; returns when every worker works.
    ///
    /// # Errors
    /// A worker cannot be started, a CPU is not usable, or memory is short.
    pub fn start(request: &StressorRequest) -> Result<Workers, LoadError> {
        let all_if_none = |cpus: &[u16]| if cpus.is_empty() { usable_cpus() } else { Ok(cpus.to_vec()) };
        let (meter, cpus) = match &request.load {
            LoadKind::Cpu { share, cpus, period_ns } => {
                let cpus = all_if_none(cpus)?;
                (kinds::start_cpu(*share, &cpus, *period_ns)?, cpus)
            }
            LoadKind::Heaters { workers, cpus } => (kinds::start_heaters(*workers, cpus)?, cpus.clone()),
            LoadKind::Net(_) => return Err(LoadError::NeedsPath),
            LoadKind::Memory { bytes_per_second, cpus, period_ns, buffer_bytes } => {
                let cpus = all_if_none(cpus)?;
                (kinds::start_memory(*bytes_per_second, &cpus, *period_ns, *buffer_bytes)?, cpus)
            }
        };
        Ok(Workers { blank: LoadReport { cpus, ..request.blank_report() }, meter })
    }

    /// Reads the meter every 100 ms from the command `begin` to the command `end`, and returns the report. `None` if
    /// `commands` ends before: the parent has ended.
    pub fn watch(&self, commands: impl Read + AsFd) -> Option<LoadReport> {
        let mut commands = WorkerCommands { source: commands, unread: String::new() };
        let mut readings: Option<Vec<Reading>> = None;
        let mut next_ns = monotonic_ns() + WINDOW.0;
        loop {
            let command = commands.next(next_ns)?;
            let reading = self.read();
            match (command.as_deref(), &mut readings) {
                (Some(BEGIN), _) => {
                    readings = Some(vec![reading]);
                    next_ns = reading.at_ns + WINDOW.0;
                }
                (Some(END), _) => {
                    let readings = readings.iter().flatten().copied().chain([reading]);
                    return Some(self.report(&MeterFigures::of(&readings.collect::<Vec<_>>())));
                }
                (None, Some(readings)) if reading.at_ns >= next_ns => readings.push(reading),
                _ => {}
            }
            // A late reading does not delay the next ones.
            next_ns += (reading.at_ns - next_ns).div_euclid(WINDOW.0).max(-1) * WINDOW.0 + WINDOW.0;
        }
    }

    fn read(&self) -> Reading {
        Reading { at_ns: monotonic_ns(), total: (self.meter.total)() }
    }

    fn report(&self, figures: &MeterFigures) -> LoadReport {
        let scaled = |rate: f64| rate * self.meter.per_ns;
        LoadReport {
            unit: self.meter.unit.into(),
            achieved: figures.mean.map(scaled),
            min: figures.windows.map(|[least, _]| scaled(least)),
            max: figures.windows.map(|[_, most]| scaled(most)),
            five_seconds: figures.long_windows.map(|windows| windows.map(scaled)),
            measured_ns: Some(figures.measured),
            ..self.blank.clone()
        }
    }
}

/// Commands from a pipe, one a line.
struct WorkerCommands<S> {
    source: S,
    unread: String,
}

impl<S: Read + AsFd> WorkerCommands<S> {
    /// The next command; `Some(None)` if none arrives until `until_ns`, `None` if the pipe is closed.
    fn next(&mut self, until_ns: i64) -> Option<Option<String>> {
        loop {
            if let Some((command, rest)) = self.unread.split_once('\n') {
                let (command, rest) = (command.to_owned(), rest.to_owned());
                self.unread = rest;
                return Some(Some(command));
            }
            if !self.is_readable(until_ns) {
                return Some(None);
            }
            let mut bytes = [0; 64];
            match self.source.read(&mut bytes) {
                Ok(1..) if self.unread.len() > bytes.len() => return None,
                Ok(length @ 1..) => self.unread.push_str(&String::from_utf8_lossy(&bytes[..length])),
                Ok(0) | Err(_) => return None,
            }
        }
    }

    fn is_readable(&self, until_ns: i64) -> bool {
        let left_ns = (until_ns - monotonic_ns()).max(0);
        let timeout = Timespec { tv_sec: left_ns / 1_000_000_000, tv_nsec: (left_ns % 1_000_000_000) as _ };
        matches!(poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&timeout)), Ok(1..))
    }
}

/// The interval of readings; minimum and maximum are over windows of this length.
const WINDOW: Nanos = Nanos::from_millis(100);
/// The windows over which a CPU load guarantees its share.
const LONG_WINDOW: Nanos = Nanos::from_secs(5);
/// The part of a window that must have passed for it to count: readings are late when the reader waits for a CPU.
const WINDOW_PART_MIN: f64 = 0.9;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at_ns: i64,
    /// The total since the start.
    total: f64,
}

/// Figures of some readings: rates are totals per nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct MeterFigures {
    /// The time from the first reading to the last.
    measured: Nanos,
    /// The mean; `None` if the readings span less than a window.
    mean: Option<f64>,
    /// Minimum and maximum over windows of 100 ms.
    windows: Option<[f64; 2]>,
    /// Minimum and maximum over windows of 5 s.
    long_windows: Option<[f64; 2]>,
}

impl MeterFigures {
    /// `readings` are in order of time.
    fn of(readings: &[Reading]) -> MeterFigures {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return MeterFigures::default() };
        let measured = Nanos(last.at_ns - first.at_ns);
        let mean = (measured >= WINDOW).then(|| rate(first, last));
        let whole = |pair: &&[Reading]| (pair[1].at_ns - pair[0].at_ns) as f64 >= WINDOW_PART_MIN * WINDOW.0 as f64;
        let windows = extremes(readings.windows(2).filter(whole).map(|pair| rate(&pair[0], &pair[1])));
        MeterFigures { measured, mean, windows, long_windows: extremes(long_rates(readings)) }
    }
}

/// The rate in each window of 5 s, which begins with a reading and ends with the first one that is late enough.
fn long_rates(readings: &[Reading]) -> impl Iterator<Item = f64> {
    let mut end = 0;
    readings.iter().map_while(move |first| {
        while readings.get(end)?.at_ns - first.at_ns < LONG_WINDOW.0 - WINDOW.0 / 2 {
            end += 1;
        }
        Some(rate(first, &readings[end]))
    })
}

fn rate(from: &Reading, to: &Reading) -> f64 {
    (to.total - from.total) / (to.at_ns - from.at_ns) as f64
}

fn extremes(rates: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    rates.fold(None, |found, rate| {
        let [least, most] = found.unwrap_or([rate, rate]);
        Some([least.min(rate), most.max(rate)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::load::BYTES_PER_SECOND;
    use std::cell::Cell;
    use std::io::{PipeWriter, Write, pipe};

    /// Workers that do 8 units between two readings.
    fn workers() -> Workers {
        let request =
            StressorRequest { load: LoadKind::Heaters { workers: 2, cpus: Vec::new() }, at: "local".into(), parent: 0 };
        let made = Cell::new(0.0);
        let total = move || made.replace(made.get() + 8.0);
        let meter = Meter { unit: BYTES_PER_SECOND, per_ns: 1e9, total: Box::new(total) };
        Workers { blank: request.blank_report(), meter }
    }

    fn pipe_with(text: &str) -> (std::io::PipeReader, PipeWriter) {
        let (reader, mut writer) = pipe().expect("two descriptors");
        writer.write_all(text.as_bytes()).expect("a pipe with free space");
        (reader, writer)
    }

    #[test]
    fn commands_that_end_early_end_the_watch() {
        for text in ["", "begin\n", "begin\nend", "no such word\n", &"x".repeat(1_000)] {
            let (commands, writer) = pipe_with(text);
            drop(writer);
            assert_eq!(workers().watch(commands), None, "{text}");
        }
    }

    const MS: i64 = 1_000_000;

    fn readings(list: impl IntoIterator<Item = (i64, i64)>) -> Vec<Reading> {
        list.into_iter().map(|(at, total)| Reading { at_ns: at * MS, total: (total * MS) as f64 }).collect()
    }

    #[test]
    fn windows_and_mean_are_rates_over_their_actual_duration() {
        // 80 % of a CPU for 300 ms: 60 % in the second window, 100 % in the third; one reading is late, the last window
        // short.
        let figures = MeterFigures::of(&readings([(0, 0), (100, 80), (200, 140), (310, 250), (320, 250)]));
        assert_eq!(figures.measured, Nanos::from_millis(320));
        assert_eq!((figures.mean, figures.windows), (Some(250.0 / 320.0), Some([0.6, 1.0])));
        assert_eq!(figures.long_windows, None);
    }

    #[test]
    fn readings_over_less_than_a_window_have_no_figures() {
        for list in [vec![], vec![(0, 0)], vec![(0, 0), (50, 40)]] {
            let figures = MeterFigures::of(&readings(list));
            assert_eq!((figures.mean, figures.windows, figures.long_windows), (None, None, None));
        }
    }

    #[test]
    fn the_minimum_over_5_s_finds_a_gap_that_others_surround() {
        // 50 %, but 0 % between 4 s and 5 s of 12 s.
        let total = |ms: i64| (ms - (ms - 4_000).clamp(0, 1_000)) / 2;
        let figures = MeterFigures::of(&readings((0..=120).map(|tenth| (tenth * 100, total(tenth * 100)))));
        assert_eq!(figures.long_windows, Some([0.4, 0.5]));
        assert_eq!(figures.windows, Some([0.0, 0.5]));
        // Exactly one window, with early readings.
        let figures = MeterFigures::of(&readings([(3, 0), (2_500, 1_000), (4_999, 2_498)]));
        assert_eq!(figures.long_windows, Some([0.5, 0.5]));
    }
}
