//! A load as whoever ordered it sees it: a child process.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::LoadError;
use crate::facts::LoadReport;
use crate::facts::load::{BITS_PER_SECOND, BYTES_PER_SECOND, CPUS, SHARE};
use crate::plan::LoadKind;

/// The hidden command that a load's process runs.
pub const STRESSOR_COMMAND: &str = "stressor";

/// Says that the figures begin.
pub(super) const BEGIN: &str = "begin";
/// Asks for the figures, and ends the load.
pub(super) const END: &str = "end";

/// How long its report may take: with the most heaters on one CPU a turn comes every second.
const ANSWERS_WITHIN_S: i64 = 30;

/// What a load's process is told, as one line of JSON on its standard input. The words `begin` and `end`
/// may follow, a line each; when the input closes without them, the process ends at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StressorOrder {
    /// The load.
    pub load: LoadKind,
    /// The end that it is made at: `local` or `peer`.
    pub at: String,
    /// The process that gives the order: the child ends with it.
    pub parent: u32,
}

impl StressorOrder {
    /// A report of this load in which nothing is known yet but what was asked for.
    pub fn blank_report(&self) -> LoadReport {
        let (unit, offered, period_ns, cpus) = match &self.load {
            LoadKind::Cpu { share, cpus, period_ns } => (SHARE, *share, Some(*period_ns), cpus),
            LoadKind::Heaters { workers, cpus } => (CPUS, f64::from(*workers), None, cpus),
            LoadKind::Memory { bytes_per_second, cpus, period_ns, .. } => {
                (BYTES_PER_SECOND, *bytes_per_second, Some(*period_ns), cpus)
            }
            // Not made by a stressor.
            LoadKind::Net(_) => (BITS_PER_SECOND, 0.0, None, &Vec::new()),
        };
        LoadReport {
            load: self.load.to_string(),
            kind: self.load.word().into(),
            at: self.at.clone(),
            unit: unit.into(),
            offered: Some(offered),
            achieved: None,
            min: None,
            max: None,
            five_seconds: None,
            measured_ns: None,
            period_ns,
            cpus: cpus.clone(),
            stream: None,
        }
    }
}

/// What it says, a line of JSON each on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StressorNews {
    /// Every worker works.
    Ready,
    /// It cannot.
    Refused {
        /// What was attempted.
        message: String,
        /// Why it failed.
        cause: Option<String>,
        /// What to do.
        hint: Option<String>,
        /// 2: the request is wrong. 3: the world refuses.
        exit_code: u8,
    },
    /// What was reached; the process ends.
    Reached(Box<LoadReport>),
}

impl StressorNews {
    /// As one line of JSON; plain data always becomes one.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A running load. Ends when this is dropped, or when the thread that started it ends, or its process, however:
/// the load's standard input closes, and the kernel kills it.
#[derive(Debug)]
pub struct Stressor {
    order: StressorOrder,
    child: Child,
    words: ChildStdin,
    news: BufReader<ChildStdout>,
}

impl Stressor {
    /// Starts the load `order` and waits until every worker works.
    ///
    /// # Errors
    /// The process or a worker could not be started, a CPU is not there, memory is short.
    pub fn start(order: StressorOrder) -> Result<Stressor, LoadError> {
        let failed = |source| LoadError::Process { load: order.load.to_string(), source };
        let (child, words, mut news) = spawn(&order).map_err(failed)?;
        let mut line = String::new();
        let heard = news.read_line(&mut line);
        let mut stressor = Stressor { order, child, words, news };
        match (heard, serde_json::from_str(&line)) {
            (Ok(_), Ok(StressorNews::Ready)) => Ok(stressor),
            (Ok(_), Ok(StressorNews::Refused { message, cause, hint, exit_code })) => {
                let load = stressor.order.load.to_string();
                Err(LoadError::Refused { load, message, cause, hint, exit_code })
            }
            (heard, _) => {
                let source = heard.err().unwrap_or_else(|| io::Error::other("it ended before it was ready"));
                stressor.kill();
                Err(LoadError::Process { load: stressor.order.load.to_string(), source })
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// From now on the load's figures count.
    pub fn begin(&mut self) {
        self.say(BEGIN);
    }

    /// Ends the load and says what it reached since [`begin`](Stressor::begin). A load that died before has no
    /// figures.
    pub fn stop(mut self) -> LoadReport {
        self.say(END);
        match self.hear().map(|line| serde_json::from_str(&line)) {
            Some(Ok(StressorNews::Reached(report))) => *report,
            _ => self.order.blank_report(),
        }
    }

    /// Its next line. None: it is gone, or kept from every CPU.
    fn hear(&mut self) -> Option<String> {
        let patience = Timespec { tv_sec: ANSWERS_WITHIN_S, tv_nsec: 0 };
        poll(&mut [PollFd::new(self.news.get_ref(), PollFlags::IN)], Some(&patience))
            .ok()
            .filter(|ready| *ready > 0)?;
        let mut line = String::new();
        self.news.read_line(&mut line).ok().map(|_| line)
    }

    /// A process that is gone shows when its report is missing.
    fn say(&mut self, word: &str) {
        let _ = writeln!(self.words, "{word}");
    }

    fn kill(&mut self) {
        // It owns nothing that must be put in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Stressor {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(order: &StressorOrder) -> io::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(STRESSOR_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A group of its own: Ctrl-C goes to the whole group of the terminal, and what the load reached is
        // still asked for then.
        .process_group(0)
        .spawn()?;
    let missing = || io::Error::other("no pipe to the process");
    let mut words = child.stdin.take().ok_or_else(missing)?;
    let news = child.stdout.take().ok_or_else(missing)?;
    let line = serde_json::to_string(order)? + "\n";
    // A process that ended already says so by its silence.
    let _ = words.write_all(line.as_bytes());
    Ok((child, words, BufReader::new(news)))
}
