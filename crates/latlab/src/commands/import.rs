//! `latlab import`: the log of another tool becomes a recording.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Outcome;
use crate::analysis::{import_caveats, is_routine};
use crate::cli::resolve::ImportJob;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::facts::{CommandLine, ImportFacts};
use crate::formats::import::{
    LogBlock, LogEnd, LogError, LogFacts, LogFault, LogFormat, LogHead, LogRows, OtherLines, expect_text, format_of,
    from_utf16, read_log,
};
use crate::metric::Metric;
use crate::plan::{ImportSpec, Kind, RunSpec};
use crate::platform::{SignalWatch, input_file};
use crate::recording::manifest::{Manifest, Software};
use crate::recording::{ImportWriter, Recording, Store, fresh_run_id, started_at};
use crate::report::import::ImportView;
use crate::units::human::counted;

/// The bytes by which the format is found.
const HEAD_BYTES: usize = 1 << 16;
/// What some programs write before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The most bytes of a log in UTF-16 behind its beginning.
const UTF_16_BYTES_MAX: u64 = 1 << 24;
/// Rows in a block, and in a row group of the table.
const BLOCK_ROWS: usize = 1 << 17;
/// The longest time for which a pipe is waited for before an interrupt is noticed.
const PIPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Carries out `job`, which was typed as `line`.
pub(super) fn run(job: &ImportJob, line: &CommandLine, console: &Console) -> Result<Outcome, Failure> {
    let interrupt = SignalWatch::listen().map_err(refused("listen to signals"))?;
    let name = job.file.display().to_string();
    let input = LogInput::open(&job.file, interrupt.stop())?;
    let imported = OpenLog::of(input, &name).and_then(|mut log| {
        let format = log.format(job.format)?;
        Ok((import(job, line, &mut log, format, console)?, format))
    });
    let (Imported { recording, values, others }, format) = match (imported, interrupt.outcome()) {
        (Err(_), Some(outcome)) => {
            console.note("interrupted: nothing was imported");
            return Ok(outcome);
        }
        (imported, _) => imported?,
    };
    let (manifest, path) = (recording.manifest(), recording.path().display().to_string());
    let caveats = import_caveats(manifest);
    let view = ImportView {
        manifest,
        recording: &path,
        log: &name,
        title: format.title,
        values,
        others: others.count,
        first_others: &others.first,
        caveats: &caveats,
    };
    if job.json {
        console.document(&view.json())?
    } else {
        console.data(&view.text())?
    }
    caveats.iter().filter(|caveat| !is_routine(caveat)).for_each(|caveat| console.caveat(caveat));
    Ok(interrupt.outcome().unwrap_or(Outcome::Done))
}

/// A log that was imported.
pub(super) struct Imported {
    pub(super) recording: Recording,
    /// The sum of the counts of its values.
    values: u64,
    others: OtherLines,
}

/// The recording of `log`, which has this `format`.
pub(super) fn import(
    job: &ImportJob,
    line: &CommandLine,
    log: &mut OpenLog,
    format: &'static LogFormat,
    console: &Console,
) -> Result<Imported, Failure> {
    let OpenLog { input, head, name, .. } = log;
    let name = name.as_str();
    expect_delays(name, format)?;
    let store = store(job)?;
    let run_id = fresh_run_id().map_err(refused("make a run id"))?;
    let mut sink = Sink {
        writer: ImportWriter::create(store.path(), &run_id, format.rows)?,
        order: RowOrder::default(),
        size_bytes: None,
        sizes_differ: false,
    };
    let progress = console.progress(&format!("import {name}"), input.length);
    let stop = Arc::clone(&input.stop);
    let read = Arc::clone(&input.read);
    let mut pass = |block: &LogBlock| {
        progress.show(read.load(Ordering::Relaxed), || counted(sink.writer.rows() as usize, "row"));
        if stop.load(Ordering::Relaxed) { Err(io::ErrorKind::Interrupted.into()) } else { sink.take(block) }
    };
    let mut whole = head.as_slice().chain(input);
    let rows = LogRows::new(BLOCK_ROWS, &mut pass);
    let end = read_log(format, &mut whole, &job.options, job.skip_bad, rows).map_err(|error| match error {
        LogError::Fault(fault) => refused_log(name, fault),
        LogError::Unreadable(error) => unreadable(name, &error),
        LogError::Unwritable(error) => {
            input_file::failure(format!("cannot write to `{}`", store.path().display()), &error)
        }
    })?;
    drop(progress);
    if sink.writer.rows() == 0 {
        return Err(refusal(name, LogFault::whole("it has no rows").hint(format!("it was read as {}", format.title))));
    }
    let others = end.others.clone();
    let manifest = Manifest { command: Some(line.clone()), ..sink.manifest(job, name, format, end, run_id) };
    let values = sink.writer.values_counted();
    let recording = sink.writer.finish(manifest, &store, job.output.as_deref())?;
    Ok(Imported { recording, values, others })
}

/// Where the recording is made: the store, or the directory that `-o` names.
fn store(job: &ImportJob) -> Result<Store, Failure> {
    let Some(output) = &job.output else { return Ok(Store::open(&job.store)?) };
    Store::expect_new(output)?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if parent.is_dir() {
        Ok(Store::at(parent))
    } else {
        Err(Failure::request(format!("cannot make the recording `{}`", output.display()))
            .because(format!("`{}` is not a directory", parent.display()))
            .hint("create it first (`mkdir -p`), or leave out `-o`"))
    }
}

/// Refuses logs of fio that have the form of latencies and are of something else.
fn expect_delays(name: &str, format: &LogFormat) -> Result<(), Failure> {
    let file = Path::new(name).file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    let is_other = ["_bw.", "_iops."].iter().any(|part| file.contains(part));
    if format.name == "fio" && is_other {
        Err(refusal(
            name,
            LogFault::whole("by its name it is a log of bandwidth or of operations a second, not of latencies")
                .hint("import `*_lat.*.log`, `*_clat.*.log` or `*_slat.*.log`; rename it if the name is wrong"),
        ))
    } else {
        Ok(())
    }
}

struct Sink {
    writer: ImportWriter,
    order: RowOrder,
    /// Transport payload of all probes so far.
    size_bytes: Option<u32>,
    sizes_differ: bool,
}

/// Whether the order of values is known.
#[derive(Default)]
struct RowOrder {
    last: Option<u64>,
    is_unknown: bool,
}

impl Sink {
    fn take(&mut self, block: &LogBlock) -> io::Result<()> {
        if !block.probes.is_empty() {
            for probe in &block.probes {
                self.sizes_differ |= self.size_bytes.is_some() && self.size_bytes != probe.size_bytes;
                self.size_bytes = self.size_bytes.or(probe.size_bytes);
            }
            self.writer.probes(&block.probes)?;
        }
        if !block.values.is_empty() {
            for value in &block.values {
                let follows = value.count == 1 && value.seq.is_some() && value.seq > self.order.last;
                self.order.is_unknown |= !follows;
                self.order.last = value.seq.or(self.order.last);
            }
            self.writer.values(block.metric.unwrap_or(Metric::Delay), &block.values)?;
        }
        match block.intervals.as_slice() {
            [] => Ok(()),
            intervals => {
                self.size_bytes = self.size_bytes.or(block.size_bytes);
                self.writer.intervals(block.size_bytes.unwrap_or(0), intervals)
            }
        }
    }

    fn manifest(&self, job: &ImportJob, name: &str, format: &LogFormat, end: LogEnd, run_id: String) -> Manifest {
        let LogEnd { facts, skipped, first_skipped, others: _, contradictions } = end;
        let LogFacts {
            tool,
            version,
            metric,
            started_ns,
            interval_ns,
            halves_doubled,
            lost,
            irregular_ids,
            missing_ids,
            unit_assumed,
            states_losses,
            resolution_ns,
            value_unit,
            finer_digits,
            totals: _,
            notes,
            cut_off: _,
        } = facts;
        let states_losses = states_losses.unwrap_or(format.states_losses);
        let is_values = format.rows == Kind::Values;
        let spec = ImportSpec {
            format: format.name.into(),
            file: name.into(),
            rows: format.rows,
            metric: is_values.then_some(metric.unwrap_or(Metric::Delay)),
            unit: job.options.unit.map(|unit| unit.word().into()),
            column: job.options.column.clone(),
            direction: job.options.direction.clone(),
            ordered: !is_values || !self.order.is_unknown,
            states_losses,
            unit_assumed,
            halves_doubled,
            size_bytes: self.size_bytes.filter(|_| !self.sizes_differ),
            interval_ns,
            resolution_ns,
        };
        let began = started_ns.unwrap_or_else(|| i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX));
        let mut manifest = Manifest::new(RunSpec::imported(spec, &tool, job.tags.clone()), run_id, started_at(began));
        manifest.software = Software { name: tool, version: version.unwrap_or_else(|| "unknown".into()) };
        let numbers = self.writer.numbers();
        manifest.run.import = Some(ImportFacts {
            start_known: started_ns.is_some(),
            skipped_lines: skipped,
            first_skipped: first_skipped.map(|fault| fault.in_words()),
            irregular_ids: numbers.irregular + irregular_ids,
            missing_ids: if states_losses { 0 } else { numbers.missing + missing_ids },
            negative_delays: self.writer.negative_delays(),
            lost_without_row: lost,
            value_unit: value_unit.map(|unit| unit.word().into()),
            finer_digits,
            contradictions,
            notes,
        });
        manifest
    }
}

/// The log as a stream of bytes, which an interrupt ends.
pub(super) struct LogInput {
    file: File,
    /// Bytes, if it is a regular file.
    length: Option<u64>,
    /// Bytes read so far.
    read: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    /// What is left of a log in UTF-16, which was read as a whole.
    decoded: io::Cursor<String>,
}

impl LogInput {
    pub(super) fn open(path: &Path, stop: &Arc<AtomicBool>) -> Result<LogInput, Failure> {
        let name = path.display();
        let file = if path.as_os_str() == "-" {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            input_file::open_stream(path)
        };
        let file = file.map_err(|error| unreadable(&name.to_string(), &error))?;
        let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|facts| facts.len());
        Ok(LogInput { file, length, read: Arc::default(), stop: Arc::clone(stop), decoded: io::Cursor::default() })
    }

    /// Its first bytes in UTF-8, at most `max`.
    fn head(&mut self, max: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.take(max as u64).read_to_end(&mut head)?;
        if from_utf16(&head).is_some() {
            if self.take(UTF_16_BYTES_MAX).read_to_end(&mut head)? as u64 == UTF_16_BYTES_MAX {
                return Err(io::Error::other("it has more than 16 MiB of UTF-16: `iconv -f UTF-16 -t UTF-8 FILE`"));
            }
            self.decoded = io::Cursor::new(from_utf16(&head).unwrap_or_default());
            head.clear();
            self.take(max as u64).read_to_end(&mut head)?;
        }
        Ok(head)
    }

    /// Its bytes as they are in the file.
    fn read_file(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let bytes = self.file.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Waits until a pipe has bytes, or an interrupt came.
    fn wait(&self) -> io::Result<()> {
        while self.length.is_none() && !self.stop.load(Ordering::Relaxed) {
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&PIPE_WAIT)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

impl Read for LogInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoded.read(buffer)? {
            0 => self.read_file(buffer),
            read => Ok(read),
        }
    }
}

/// A log whose beginning was read.
pub(super) struct OpenLog {
    pub(super) input: LogInput,
    /// The first bytes, without a byte order mark.
    pub(super) head: Vec<u8>,
    /// Whether there are no others.
    is_whole: bool,
    pub(super) name: String,
}

impl OpenLog {
    /// Reads the beginning of the log `name`; refuses one that is not text.
    pub(super) fn of(mut input: LogInput, name: &str) -> Result<OpenLog, Failure> {
        let mut head = input.head(HEAD_BYTES).map_err(|error| unreadable(name, &error))?;
        let is_whole = head.len() < HEAD_BYTES;
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        expect_text(&LogHead { bytes: &head, is_whole }).map_err(|fault| refusal(name, fault))?;
        Ok(OpenLog { input, head, is_whole, name: name.to_owned() })
    }

    /// Its format, which may be `typed`.
    pub(super) fn format(&self, typed: Option<&'static LogFormat>) -> Result<&'static LogFormat, Failure> {
        let head = LogHead { bytes: &self.head, is_whole: self.is_whole };
        format_of(&head, typed).map_err(|fault| refusal(&self.name, fault))
    }
}

/// The failure of a log that cannot be read.
fn unreadable(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::request(format!("cannot read `{name}`"))
            .because("no such file (ENOENT)")
            .hint("check the path; `-` is standard input"),
        _ => input_file::failure(format!("cannot read `{name}`"), error),
    }
}

/// The failure of a log that cannot be imported as it is.
fn refused_log(name: &str, fault: LogFault) -> Failure {
    let skippable = fault.is_skippable.then(|| "`--skip-bad` skips such lines, and counts them".to_owned());
    let hint = fault.hint.clone().into_iter().chain(skippable).reduce(|one, other| format!("{one}; {other}"));
    refusal(name, LogFault { hint, ..fault })
}

/// The failure of a log that cannot be imported.
fn refusal(name: &str, fault: LogFault) -> Failure {
    let failure = Failure::request(format!("cannot import `{name}`")).because(fault.in_words());
    match fault.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
