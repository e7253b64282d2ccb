//! The runs that `latlab export` was asked for, and how their export may end: what rows and figures share.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::{Outcome, summary};
use crate::analysis::AvailableFigures;
use crate::analysis::comparison::ExclusionReason;
use crate::cli::resolve::ExportJob;
use crate::console::Console;
use crate::diagnostics::{Explain, Failure};
use crate::facts::ExperimentFacts;
use crate::formats::import::format_named;
use crate::plan::{Kind, RunSpec};
use crate::recording::manifest::Manifest;
use crate::recording::{RecordedTable, Recording, RecordingError};
use crate::units::human::counted;

pub(super) struct Export<'a> {
    /// At least one, all of one kind.
    pub(super) runs: &'a [ExportedRun],
    pub(super) kind: Kind,
    pub(super) console: &'a Console,
    /// The outcome of the command if a signal that ends it has arrived.
    pub(super) stop: &'a dyn Fn() -> Option<Outcome>,
}

impl Export<'_> {
    /// Ends the export if a signal has arrived. To be called for every run, and within the rows of a run at intervals.
    pub(super) fn expect_no_signal(&self) -> Result<(), ExportBreak> {
        (self.stop)().map_or(Ok(()), |outcome| Err(ExportBreak::Signal(outcome)))
    }
}

pub(super) enum ExportBreak {
    /// The target refuses bytes; also if the reader of a pipe has gone.
    Refused(io::Error),
    /// A recording cannot be read, or has nothing that could be written.
    Failed(Failure),
    /// A signal ended the command.
    Signal(Outcome),
}

impl From<io::Error> for ExportBreak {
    fn from(error: io::Error) -> ExportBreak {
        ExportBreak::Refused(error)
    }
}

impl From<RecordingError> for ExportBreak {
    fn from(error: RecordingError) -> ExportBreak {
        ExportBreak::Failed(error.explain())
    }
}

impl From<Failure> for ExportBreak {
    fn from(failure: Failure) -> ExportBreak {
        ExportBreak::Failed(failure)
    }
}

/// A run that is exported, without its rows.
pub(super) struct ExportedRun {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) spec: RunSpec,
    pub(super) experiment: Option<ExperimentFacts>,
    pub(super) available: AvailableFigures,
    /// Whether it is the log of another tool, of which only that is known which the log states.
    pub(super) is_imported: bool,
    /// Whether the metric of its values was decided when it was imported.
    pub(super) takes_metric: bool,
    /// Whether it is known what it lost.
    pub(super) states_losses: bool,
    /// Whether a comparison would leave it out.
    pub(super) is_excluded: bool,
    /// When it began, since the epoch; 0 if its manifest does not say so. Of a log without a start, when it was imported.
    pub(super) started: Duration,
    pub(super) tables: Vec<RecordedTable>,
}

impl ExportedRun {
    fn of(recording: &Recording) -> Result<ExportedRun, Failure> {
        let Manifest { run_id, kind, experiment, started_at, spec, .. } = recording.manifest();
        let canonical = recording.path().canonicalize().unwrap_or_else(|_| recording.path().to_owned());
        let name = canonical.file_name().map(|name| name.to_string_lossy().into_owned());
        let started = started_at
            .parse::<Timestamp>()
            .ok()
            .and_then(|at| Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH)).ok());
        let format = spec.import().and_then(|import| format_named(&import.format));
        Ok(ExportedRun {
            path: recording.path().to_owned(),
            name: name.unwrap_or_default(),
            id: run_id.clone(),
            kind: *kind,
            spec: spec.clone(),
            experiment: experiment.clone(),
            available: AvailableFigures::of_recorded(recording, spec.judging.deadline_ns)?,
            is_imported: spec.import().is_some(),
            takes_metric: format.is_some_and(|format| format.options.contains(&"--metric")),
            states_losses: spec.knows_losses(),
            is_excluded: ExclusionReason::of(recording.manifest()).is_some(),
            started: started.unwrap_or_default(),
            tables: RecordedTable::ALL.into_iter().filter(|table| recording.can_have(*table)).collect(),
        })
    }

    /// Whether it is a warm-up run of an experiment.
    pub(super) fn is_warmup(&self) -> bool {
        self.experiment.as_ref().is_some_and(|experiment| experiment.warmup)
    }
}

/// The runs that `job` names, each once, of one kind; at least one.
pub(super) fn exported_runs(job: &ExportJob, console: &Console) -> Result<Vec<ExportedRun>, Failure> {
    let paths = summary::recordings(&job.recordings, false, console)?.paths;
    let (mut runs, mut known, mut repeated) = (Vec::new(), BTreeSet::new(), 0);
    for path in paths {
        let recording = Recording::open(&path)?;
        recording.note().into_iter().for_each(|note| console.note(note));
        if !known.insert(path.canonicalize().unwrap_or(path)) {
            repeated += 1;
        } else {
            runs.push(ExportedRun::of(&recording)?);
        }
    }
    if repeated > 0 {
        console.note(&format!("{} named more than once, and exported once", counted(repeated, "recording")));
    }
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| runs.iter().any(|run| run.kind == *kind)).collect();
    let options = || kinds.iter().map(|kind| format!("`--kind {}`", kind.word())).collect::<Vec<_>>().join(" or ");
    match job.kind {
        Some(kind) if !kinds.contains(&kind) => {
            Err(Failure::request(format!("no run of `{}` to be exported", kind.word())).hint(options()))
        }
        Some(kind) => {
            runs.retain(|run| run.kind == kind);
            Ok(runs)
        }
        None if kinds.len() > 1 => {
            let words = kinds.iter().map(|kind| format!("`{}`", kind.word())).collect::<Vec<_>>().join(" and ");
            Err(Failure::request(format!("cannot export runs of {words} together"))
                .because("an export is of runs of one kind, whose rows have the same columns")
                .hint(format!("choose one: {}", options())))
        }
        None => Ok(runs),
    }
}
