//! What an experiment is going to do, in words, with what it takes and leaves.

use super::Asked;
use super::cost::cost;
use crate::commands::measure_and_report;
use crate::experiment::ExperimentState;
use crate::plan::{BetweenBlocks, Design, Experiment, Plan, RunOrder, RunsRule, condition_words};
use crate::report::experiment::plan::PlanView;
use crate::units::Nanos;
use crate::units::human::{span, typed_percent};

/// How much of the order is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Detail {
    /// None of it.
    Outline,
    /// That of the blocks, as many as can be read.
    EveryBlock,
}

/// More blocks than this nobody reads.
const BLOCKS_SHOWN: u32 = 12;

pub(in crate::commands) fn view(asked: &Asked, standing: Option<&ExperimentState>, detail: Detail) -> PlanView {
    let Experiment { name, conditions, design, .. } = &asked.job.experiment;
    let shown = if detail == Detail::EveryBlock { design.blocks_at_most().min(BLOCKS_SHOWN) } else { 0 };
    let turns = |block| design.schedule(conditions.len(), block).iter().map(|turn| turn.condition as u32 + 1).collect();
    let done = standing.map_or(0, ExperimentState::runs_done);
    PlanView {
        name: name.clone(),
        work: work(&asked.job.experiment),
        conditions: conditions.iter().map(|condition| condition_words(&condition.factors)).collect(),
        impossible: asked
            .job
            .impossible
            .iter()
            .map(|row| (condition_words(&row.factors), row.reason.clone()))
            .collect(),
        runs: match &design.runs {
            RunsRule::PerBlock(1) => "1 run".into(),
            RunsRule::PerBlock(runs) => format!("{runs} runs"),
            RunsRule::Until { statistic, half_width, most } => {
                format!("until {statistic} ±{}, at most {most} runs", typed_percent(*half_width))
            }
        },
        warmup_runs: design.warmup_runs,
        blocks: design.blocks_at_most(),
        between: match design.between {
            BetweenBlocks::Nothing => String::new(),
            BetweenBlocks::Pause(pause) => format!("a pause of {} between them", span(pause)),
            BetweenBlocks::Reboot => "a reboot between them".into(),
        },
        order: order(design),
        all_runs: design.runs_at_most(conditions.len()),
        done,
        cost: cost(&asked.job.experiment, done),
        blocks_shown: (1..=shown).map(|block| (block, turns(block))).collect(),
        directory: asked.directory.as_ref().map(|directory| directory.display().to_string()),
    }
}

fn order(design: &Design) -> String {
    let order = match design.order {
        RunOrder::Randomized => format!("randomized inside of each block, seed {}", design.seed),
        RunOrder::Listed => "the conditions in turn".into(),
    };
    match design.settle {
        Nanos::ZERO => order,
        settle => format!("{order}; {} to settle at each switch", span(settle)),
    }
}

/// What all conditions have in common.
fn work(experiment: &Experiment) -> String {
    let runs = experiment.conditions.iter().flat_map(|condition| condition.plan.runs.iter().cloned()).collect();
    let title = measure_and_report::title(&Plan { runs, rounds: 1 });
    title.rsplit_once(" · ").filter(|(_, end)| end.ends_with(" runs")).map_or(title.clone(), |(title, _)| title.into())
}
