//! Conditions in turns: short runs, shuffled inside of blocks, each a recording that knows its place.

use std::collections::BTreeMap;
use std::time::Instant;

use super::trials::RemedyTrials;
use crate::analysis::Estimand;
use crate::analysis::comparison::ObservedRun;
use crate::commands::measure_and_report::OpenOutput;
use crate::commands::measure_and_report::{self, ProgressLine};
use crate::console::{Console, Progress};
use crate::diagnostics::{Failure, refused};
use crate::facts::ExperimentFacts;
use crate::host::HostRoot;
use crate::measure::RecordingTarget;
use crate::plan::{BetweenBlocks, Design, RunOrder, RunsRule, ScheduledRun, defaults};
use crate::platform::SignalWatch;
use crate::recording::{Recording, fresh_run_id};
use crate::units::Nanos;

/// Runs of each condition.
pub(super) const RUNS: u32 = defaults::REMEDY_BLOCKS * defaults::REMEDY_RUNS;
const DESIGN: Design = Design {
    runs: RunsRule::PerBlock(defaults::REMEDY_RUNS),
    warmup_runs: 0,
    blocks: defaults::REMEDY_BLOCKS,
    between: BetweenBlocks::Nothing,
    order: RunOrder::Randomized,
    seed: defaults::EXPERIMENT_SEED,
    settle: Nanos::ZERO,
};

/// What was measured.
#[derive(Default)]
pub(super) struct TrialRuns {
    /// In the order in which it was.
    pub(super) observed: Vec<ObservedRun>,
    /// Where.
    pub(super) recordings: Vec<String>,
}

/// Measures `trials` in turns, each run asked for `subjects`; ends early where it is interrupted.
pub(super) fn take(
    trials: &RemedyTrials,
    subjects: &[Estimand],
    keep: &OpenOutput,
    (interrupt, console): (&SignalWatch, &Console),
) -> Result<TrialRuns, Failure> {
    let id = fresh_run_id().map_err(refused("draw an id"))?;
    let boot_id = HostRoot::live().text("proc/sys/kernel/random/boot_id").ok();
    let all = u64::from(RUNS) * trials.tried.len() as u64;
    let (mut taken, start) = (TrialRuns::default(), Instant::now());
    let turns = (1..=defaults::REMEDY_BLOCKS)
        .flat_map(|block| DESIGN.schedule(trials.tried.len(), block).into_iter().map(move |turn| (block, turn)));
    for (block, turn) in turns {
        let trial = &trials.tried[turn.condition];
        let facts = facts((&id, boot_id.as_deref()), &trial.words, (block, turn));
        let place = RecordingTarget { experiment: Some(&facts), ..keep.target() };
        let done = taken.recordings.len() as u64;
        let progress = console.progress("remedies", Some(all));
        let mut tick = |progress: &Progress| {
            progress.show(done, &format!("{:.0} s · {}", start.elapsed().as_secs_f64(), trial.words));
        };
        let conducted = measure_and_report::measure(
            &trial.plan,
            None,
            place,
            interrupt,
            console,
            ProgressLine { progress, draw: &mut tick },
        )?;
        let Some(conducted) = conducted.filter(|_| interrupt.outcome().is_none()) else { break };
        if let Some(failure) = conducted.failure {
            return Err(failure.into());
        }
        for finished in conducted.recordings {
            if let Some(failure) = finished.failure {
                return Err(failure.into());
            }
            taken.observed.push(ObservedRun::of(&Recording::open(&finished.path)?, subjects)?);
            taken.recordings.push(finished.path.display().to_string());
        }
    }
    Ok(taken)
}

/// As in an experiment whose one factor is the remedy: `latlab compare --by remedy` finds it again.
fn facts((id, boot_id): (&str, Option<&str>), words: &str, (block, turn): (u32, ScheduledRun)) -> ExperimentFacts {
    ExperimentFacts {
        experiment: id.to_owned(),
        condition: turn.condition as u32 + 1,
        factors: BTreeMap::from([("remedy".to_owned(), words.to_owned())]),
        block,
        position: turn.position,
        boot_id: boot_id.map(str::to_owned),
        warmup: false,
    }
}
