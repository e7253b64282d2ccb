//! The parent's side of a load: a child process.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LoadError;
use crate::facts::LoadReport;
use crate::facts::load::{BITS_PER_SECOND, BYTES_PER_SECOND, CPUS, SHARE};
use crate::plan::LoadKind;
use crate::platform::ChildProcess;

/// The hidden command that a load's process runs.
pub const STRESSOR_COMMAND: &str = "stressor";

/// Says that the figures begin.
pub(super) const BEGIN: &str = "begin";
/// Asks for the figures, and ends the load.
pub(super) const END: &str = "end";

/// How long it may take until every worker works: the largest buffer, 4 GiB, is filled first, on a slow board beside
/// other loads.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long its report may take: with the most heaters on one CPU a turn comes every second.
const REPORTS_WITHIN: Duration = Duration::from_secs(30);
/// It is not waited for: it owns nothing that must be put in order.
const ENDS_WITHIN: Duration = Duration::ZERO;

/// The request to the process of a load, as one line of JSON on its standard input. The words `begin` and `end`
/// may follow, a line each; when the input closes without them, the process ends at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StressorRequest {
    /// The load.
    pub load: LoadKind,
    /// The end that it is made at: `local` or `peer`.
    pub at: String,
    /// The process that gives the order: the child ends with it.
    pub parent: u32,
}

impl StressorRequest {
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
            ended_early: None,
            stream: None,
        }
    }
}

/// What it says, a line of JSON each on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StressorEvent {
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

impl StressorEvent {
    /// As one line of JSON; plain data always becomes one.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A running load. Ends when this is dropped, or when the thread that started it ends, or its process, however:
/// the load's standard input closes, and the kernel kills it.
#[derive(Debug)]
pub struct Stressor {
    order: StressorRequest,
    process: ChildProcess,
    told_to_end: bool,
}

impl Stressor {
    /// Starts the load `order` and waits until every worker works.
    ///
    /// # Errors
    /// The process or a worker could not be started, a CPU is not there, memory is short.
    pub fn start(order: StressorRequest) -> Result<Stressor, LoadError> {
        let failed = |source| LoadError::Process { load: order.load.to_string(), source };
        let mut process = ChildProcess::spawn(STRESSOR_COMMAND, &order, ENDS_WITHIN).map_err(failed)?;
        let line = process.hear(READY_WITHIN).map_err(failed)?;
        match serde_json::from_str(&line) {
            Ok(StressorEvent::Ready) => Ok(Stressor { order, process, told_to_end: false }),
            Ok(StressorEvent::Refused { message, cause, hint, exit_code }) => {
                Err(LoadError::Refused { load: order.load.to_string(), message, cause, hint, exit_code })
            }
            _ => Err(failed(io::Error::other("it ended before it was ready"))),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// From now on the load's figures count.
    pub fn begin(&mut self) {
        self.process.say(BEGIN);
    }

    /// Tells the load to end: its figures end here.
    pub fn end(&mut self) {
        if !self.told_to_end {
            self.process.say(END);
            self.told_to_end = true;
        }
    }

    /// Ends the load, where that was not said, and says what it reached since [`begin`](Stressor::begin). A load that
    /// died before, or is kept from every CPU, has no figures but a reason.
    pub fn stop(mut self) -> LoadReport {
        self.end();
        let heard = self.process.hear(REPORTS_WITHIN);
        match heard.as_ref().ok().and_then(|line| serde_json::from_str(line).ok()) {
            Some(StressorEvent::Reached(report)) => *report,
            _ => self.order.blank_report().that_ended_early(self.process.silence(&heard)),
        }
    }
}
