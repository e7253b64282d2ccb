//! A load from inside of its process: the workers, and what is read of them.

use std::io::Read;
use std::os::fd::AsFd;

use latlab_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bursts::usable_cpus;
use super::meter::{Meter, MeterFigures, Reading, WINDOW};
use super::stressor::{BEGIN, END};
use super::{LoadError, StressorRequest, cpu, heaters, memory};
use crate::facts::LoadReport;
use crate::plan::LoadKind;

/// The workers of one load. They run until their process ends, which exists for them alone.
#[derive(Debug)]
pub struct Workers {
    blank: LoadReport,
    meter: Meter,
}

impl Workers {
    /// Starts what `order` says; returns when every worker works.
    ///
    /// # Errors
    /// A worker could not be started, a CPU is not there, memory is short.
    pub fn start(order: &StressorRequest) -> Result<Workers, LoadError> {
        let all_if_none = |cpus: &[u16]| if cpus.is_empty() { usable_cpus() } else { Ok(cpus.to_vec()) };
        let (meter, cpus) = match &order.load {
            LoadKind::Cpu { share, cpus, period_ns } => {
                let cpus = all_if_none(cpus)?;
                (cpu::start(*share, &cpus, *period_ns)?, cpus)
            }
            LoadKind::Heaters { workers, cpus } => (heaters::start(*workers, cpus)?, cpus.clone()),
            LoadKind::Net(_) => return Err(LoadError::NeedsPath),
            LoadKind::Memory { bytes_per_second, cpus, period_ns, buffer_bytes } => {
                let cpus = all_if_none(cpus)?;
                (memory::start(*bytes_per_second, &cpus, *period_ns, *buffer_bytes)?, cpus)
            }
        };
        Ok(Workers { blank: LoadReport { cpus, ..order.blank_report() }, meter })
    }

    /// Reads what the workers do, every 100 ms from the word `begin` to the word `end`, and says what that was.
    /// `None` if `words` ended without the last command: the parent is gone.
    pub fn watch(&self, words: impl Read + AsFd) -> Option<LoadReport> {
        let mut words = WorkerCommands { source: words, heard: String::new() };
        let mut readings: Option<Vec<Reading>> = None;
        let mut next_ns = monotonic_ns() + WINDOW.0;
        loop {
            let word = words.next(next_ns)?;
            let reading = self.read();
            match (word.as_deref(), &mut readings) {
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
            // A late reading does not shift those after it.
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

/// Lines of a pipe, taken as they come.
struct WorkerCommands<S> {
    source: S,
    heard: String,
}

impl<S: Read + AsFd> WorkerCommands<S> {
    /// The next word, or none of them until `until_ns`; nothing at all when the pipe is closed.
    fn next(&mut self, until_ns: i64) -> Option<Option<String>> {
        loop {
            if let Some((word, rest)) = self.heard.split_once('\n') {
                let (word, rest) = (word.to_owned(), rest.to_owned());
                self.heard = rest;
                return Some(Some(word));
            }
            if !self.is_readable(until_ns) {
                return Some(None);
            }
            let mut bytes = [0; 64];
            match self.source.read(&mut bytes) {
                Ok(1..) if self.heard.len() > bytes.len() => return None,
                Ok(length @ 1..) => self.heard.push_str(&String::from_utf8_lossy(&bytes[..length])),
                Ok(0) | Err(_) => return None,
            }
        }
    }

    fn is_readable(&self, until_ns: i64) -> bool {
        let left_ns = (until_ns - monotonic_ns()).max(0);
        let patience = Timespec { tv_sec: left_ns / 1_000_000_000, tv_nsec: (left_ns % 1_000_000_000) as _ };
        matches!(poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&patience)), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::load::BYTES_PER_SECOND;
    use std::cell::Cell;
    use std::io::{PipeWriter, Write, pipe};

    /// Workers that make 8 at every reading.
    fn workers() -> Workers {
        let order =
            StressorRequest { load: LoadKind::Heaters { workers: 2, cpus: Vec::new() }, at: "local".into(), parent: 0 };
        let made = Cell::new(0.0);
        let total = move || made.replace(made.get() + 8.0);
        let meter = Meter { unit: BYTES_PER_SECOND, per_ns: 1e9, total: Box::new(total) };
        Workers { blank: order.blank_report(), meter }
    }

    fn saying(text: &str) -> (std::io::PipeReader, PipeWriter) {
        let (reader, mut writer) = pipe().expect("two descriptors");
        writer.write_all(text.as_bytes()).expect("room in the pipe");
        (reader, writer)
    }

    #[test]
    fn words_that_end_early_end_the_watch() {
        for text in ["", "begin\n", "begin\nend", "no such word\n", &"x".repeat(1_000)] {
            let (words, writer) = saying(text);
            drop(writer);
            assert_eq!(workers().watch(words), None, "{text}");
        }
    }

    #[test]
    fn the_figures_are_those_between_the_words() {
        let (words, mut writer) = saying("begin\n");
        let watching = std::thread::spawn(move || workers().watch(words));
        std::thread::sleep(std::time::Duration::from_millis(350));
        writer.write_all(b"end\n").expect("still read");
        let report = watching.join().expect("no panic").expect("both words were said");
        let measured = report.measured_ns.expect("from word to word");
        assert!(measured.0 >= 300_000_000, "{report:?}");
        let achieved = report.achieved.expect("longer than a window");
        // Eight bytes at each reading: at the end surely, and at the windows if this thread was let run.
        assert!(achieved * measured.0 as f64 / 1e9 >= 7.9, "{report:?}");
        assert!(report.min.is_some() && report.min <= report.max, "{report:?}");
        assert_eq!((report.kind.as_str(), report.unit.as_str()), ("heaters", BYTES_PER_SECOND));
    }

    #[test]
    fn an_end_without_a_beginning_has_no_figures() {
        let (words, _writer) = saying("end\n");
        let report = workers().watch(words).expect("the last word was said");
        assert_eq!((report.achieved, report.min, report.measured_ns), (None, None, Some(Default::default())));
        assert_eq!(report.offered, Some(2.0));
    }
}
