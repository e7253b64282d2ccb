//! The stressor of a load, as the measuring process controls it: a child process, its request and its events.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LoadError;
use crate::diagnostics::Failure;
use crate::facts::LoadReport;
use crate::facts::load::{BITS_PER_SECOND, BYTES_PER_SECOND, CPUS, SHARE};
use crate::plan::LoadKind;
use crate::platform::ChildProcess;

/// The hidden command that a load's process runs.
pub(crate) const STRESSOR_COMMAND: &str = "stressor";

/// The command with which the figures begin.
pub(super) const BEGIN: &str = "begin";
/// The command that ends the load and asks for its report.
pub(super) const END: &str = "end";

/// The time until every worker works: the largest buffer, 4 GiB, is filled first, on a slow board with other loads.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The time for its report: with the most heaters on one CPU a thread gets it once a second.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);
/// It is killed at once: it has nothing to restore.
const END_TIMEOUT: Duration = Duration::ZERO;

/// The request to the process of a load: one line of JSON on its standard input. The commands `begin` and `end` may follow,
/// one a line; if the input closes before, the process ends at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StressorRequest {
    pub load: LoadKind,
    /// Its end of the path: `local` or `peer`.
    pub at: String,
    /// The requesting process: the child ends with it.
    pub parent: u32,
}

impl StressorRequest {
    /// A report of this load that has only what was requested.
    pub(crate) fn blank_report(&self) -> LoadReport {
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

/// An event of the process: one line of JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StressorEvent {
    Ready,
    /// The load could not be started.
    Refused(Failure),
    /// The report; the process ends.
    Reached(Box<LoadReport>),
}

impl StressorEvent {
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A running load. It ends when this is dropped, or when the thread that started it or its process ends: its standard input
/// closes, and the kernel kills it.
#[derive(Debug)]
pub struct Stressor {
    request: StressorRequest,
    process: ChildProcess,
    end_requested: bool,
}

impl Stressor {
    /// Starts the load and waits until every worker works.
    ///
    /// # Errors
    /// The process or a worker cannot be started, a CPU is not usable, or memory is short.
    pub fn start(request: StressorRequest) -> Result<Stressor, LoadError> {
        let failed = |source| LoadError::Process { load: request.load.to_string(), source };
        let mut process = ChildProcess::spawn(STRESSOR_COMMAND, &request, END_TIMEOUT).map_err(failed)?;
        let line = process.receive_line(READY_TIMEOUT).map_err(failed)?;
        match serde_json::from_str(&line) {
            Ok(StressorEvent::Ready) => Ok(Stressor { request, process, end_requested: false }),
            Ok(StressorEvent::Refused(failure)) => Err(LoadError::Refused { load: request.load.to_string(), failure }),
            _ => Err(failed(io::Error::other("it ended before it was ready"))),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Begins the interval that is reported.
    pub fn begin(&mut self) {
        self.process.send_line(BEGIN);
    }

    /// Ends the load and the reported interval.
    pub fn end(&mut self) {
        if !self.end_requested {
            self.process.send_line(END);
            self.end_requested = true;
        }
    }

    /// Ends the load, if [`end`](Stressor::end) has not, and returns its report since [`begin`](Stressor::begin). The
    /// report of a load that died, or got no CPU, has a reason instead of figures.
    pub fn stop(mut self) -> LoadReport {
        self.end();
        let line = self.process.receive_line(REPORT_TIMEOUT);
        match line.as_ref().ok().and_then(|line| serde_json::from_str(line).ok()) {
            Some(StressorEvent::Reached(report)) => *report,
            _ => self.request.blank_report().that_ended_early(self.process.failure_reason(&line)),
        }
    }
}
