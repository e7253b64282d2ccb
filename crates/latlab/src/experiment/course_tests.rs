use super::*;
use crate::experiment::event::{JournalEntry, RunOutcome};
use crate::plan::{Design, ExperimentCondition, Factors, Kind, Plan, RunOrder};

fn experiment(runs: RunsRule, blocks: u32, between: BetweenBlocks) -> Experiment {
    let condition = |value: &str| ExperimentCondition {
        factors: Factors::from([("load".to_owned(), value.to_owned())]),
        plan: Plan { runs: Vec::new(), rounds: 1 },
    };
    let design =
        Design { runs, warmup_runs: 1, blocks, between, order: RunOrder::Randomized, seed: 3, settle: Nanos::ZERO };
    let conditions = vec![condition("none"), condition("cpu=80%")];
    Experiment { name: "x".into(), kind: Kind::Ping, conditions, design, contrasts: Vec::new() }
}

/// Goes on as a process would, each run ending as `outcome` says, until a step is none that it can take by itself.
fn go_on(
    experiment: &Experiment,
    standing: &mut ExperimentState,
    boot: &str,
    outcome: &mut dyn FnMut(&DueRun) -> RunOutcome,
) -> NextStep {
    let mut course = RunScheduler::of(experiment);
    let boot_id = || Some(boot.to_owned());
    for _ in 0..10_000 {
        match course.next(standing, Some(boot)) {
            NextStep::BeginBlock { block, .. } => standing.take(JournalEntry::BlockBegan { block, boot_id: boot_id() }),
            NextStep::EndBlock { block } => standing.take(JournalEntry::BlockEnded { block, boot_id: boot_id() }),
            NextStep::Run(due) => {
                standing.take(JournalEntry::RunBegan { key: due.key.clone(), place: due.place });
                let outcome = outcome(&due);
                let (block, position, recording) = (due.key.block, due.place.position, Some("r".into()));
                standing.take(JournalEntry::RunEnded { block, position, outcome, recording, reason: None });
            }
            step => return step,
        }
    }
    panic!("it never ends");
}

#[test]
fn every_run_is_taken_once_and_in_order() {
    let experiment = experiment(RunsRule::PerBlock(3), 2, BetweenBlocks::Nothing);
    let mut standing = ExperimentState::default();
    let end = go_on(&experiment, &mut standing, "one", &mut |_| RunOutcome::Completed);
    assert_eq!((end, standing.runs.len()), (NextStep::Finish, 2 * (2 + 6)));
    let places: Vec<_> = standing.runs.iter().map(|run| (run.key.block, run.place.position)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(standing.runs_done(), 16);
}

#[test]
fn what_was_cut_off_is_taken_again_and_what_ended_is_not() {
    let experiment = experiment(RunsRule::PerBlock(3), 2, BetweenBlocks::Nothing);
    let outcomes = [RunOutcome::Died, RunOutcome::Interrupted, RunOutcome::Refused, RunOutcome::Failed];
    let mut standing = ExperimentState::default();
    let mut taken = 0;
    let end = go_on(&experiment, &mut standing, "one", &mut |_| {
        taken += 1;
        if taken % 3 == 0 { outcomes[taken % outcomes.len()] } else { RunOutcome::Completed }
    });
    assert_eq!((end, standing.runs_done()), (NextStep::Finish, 16));
    let again = standing.runs.iter().filter(|run| !run.outcome.is_some_and(RunOutcome::is_final)).count();
    assert_eq!(standing.runs.len(), 16 + again);
    assert!(again > 3);
}

#[test]
fn a_block_waits_for_another_boot() {
    let experiment = experiment(RunsRule::PerBlock(2), 3, BetweenBlocks::Reboot);
    let mut standing = ExperimentState::default();
    let mut completed = |_: &DueRun| RunOutcome::Completed;
    assert_eq!(go_on(&experiment, &mut standing, "one", &mut completed), NextStep::Reboot { block: 2 });
    assert_eq!(go_on(&experiment, &mut standing, "one", &mut completed), NextStep::Reboot { block: 2 });
    assert_eq!(go_on(&experiment, &mut standing, "two", &mut completed), NextStep::Reboot { block: 3 });
    assert_eq!(standing.runs_done(), 2 * (2 + 4));
    // Nobody knows which boot this is: then it may be the same.
    assert_eq!(RunScheduler::of(&experiment).next(&standing, None), NextStep::Reboot { block: 3 });
    assert_eq!(go_on(&experiment, &mut standing, "three", &mut completed), NextStep::Finish);
}

#[test]
fn a_pause_lies_between_blocks_only() {
    let pause = Nanos::from_secs(60);
    let experiment = experiment(RunsRule::PerBlock(1), 2, BetweenBlocks::Pause(pause));
    let mut standing = ExperimentState::default();
    assert_eq!(RunScheduler::of(&experiment).next(&standing, None), NextStep::BeginBlock { block: 1, pause: None });
    standing.take(JournalEntry::BlockBegan { block: 1, boot_id: None });
    standing.take(JournalEntry::BlockEnded { block: 1, boot_id: None });
    assert_eq!(
        RunScheduler::of(&experiment).next(&standing, None),
        NextStep::BeginBlock { block: 2, pause: Some(pause) }
    );
}

#[test]
fn widths_are_looked_at_after_blocks_with_ten_runs_and_end_it() {
    let rule = RunsRule::Until { statistic: "p99".into(), half_width: 0.03, most: 25 };
    let experiment = experiment(rule, 2, BetweenBlocks::Nothing);
    let mut completed = |_: &DueRun| RunOutcome::Completed;
    let mut standing = ExperimentState::default();
    assert_eq!(go_on(&experiment, &mut standing, "one", &mut completed), NextStep::LookAtWidths { block: 2 });
    let mut narrow = standing.clone();
    narrow.take(JournalEntry::NarrowEnough { block: 2 });
    assert_eq!(go_on(&experiment, &mut narrow, "one", &mut completed), NextStep::Finish);
    for block in [3, 4] {
        let entered = RunScheduler::of(&experiment).enter(block, &standing, Some("one"));
        assert_eq!(entered, NextStep::BeginBlock { block, pause: None });
        standing.take(JournalEntry::BlockBegan { block, boot_id: None });
        assert_eq!(go_on(&experiment, &mut standing, "one", &mut completed), NextStep::LookAtWidths { block });
    }
    // The cap: nothing is to be decided any more.
    standing.take(JournalEntry::BlockBegan { block: 5, boot_id: None });
    assert_eq!(go_on(&experiment, &mut standing, "one", &mut completed), NextStep::Finish);
    assert_eq!(standing.runs_done(), 2 * (25 + 5));
}

#[test]
fn widths_are_not_looked_at_before_the_fewest_blocks() {
    // Two runs a block make ten after five of them.
    for (blocks, first) in [(5, 5), (6, 6), (12, 12)] {
        let rule = RunsRule::Until { statistic: "p50".into(), half_width: 0.9, most: 60 };
        let experiment = experiment(rule, blocks, BetweenBlocks::Nothing);
        let mut standing = ExperimentState::default();
        let step = go_on(&experiment, &mut standing, "one", &mut |_| RunOutcome::Completed);
        assert_eq!(step, NextStep::LookAtWidths { block: first });
        let own = |block| standing.runs.iter().filter(move |run| run.key.block == block && !run.key.warmup).count();
        assert!((1..=first).all(|block| own(block) == 2 * 2), "two conditions, two runs of each");
    }
}

#[test]
fn a_dropped_condition_is_passed_over() {
    let experiment = experiment(RunsRule::PerBlock(2), 2, BetweenBlocks::Nothing);
    let mut standing = ExperimentState::default();
    let factors = Factors::from([("load".to_owned(), "cpu=80%".to_owned())]);
    standing.take(JournalEntry::ConditionDropped { factors: factors.clone(), reason: "no CPU".into() });
    let end = go_on(&experiment, &mut standing, "one", &mut |_| RunOutcome::Completed);
    assert_eq!((end, standing.runs_done()), (NextStep::Finish, 6));
    assert!(standing.runs.iter().all(|run| run.key.factors != factors));
}

#[test]
fn more_runs_of_a_changed_file_are_taken_beside_the_old_ones() {
    let few = experiment(RunsRule::PerBlock(2), 1, BetweenBlocks::Nothing);
    let mut standing = ExperimentState::default();
    let mut completed = |_: &DueRun| RunOutcome::Completed;
    assert_eq!(go_on(&few, &mut standing, "one", &mut completed), NextStep::Finish);
    standing.take(JournalEntry::Finished);
    standing.take(JournalEntry::Changed { kept_as: "experiment.1.toml".into(), file_blake3: None });
    let more = experiment(RunsRule::PerBlock(3), 1, BetweenBlocks::Nothing);
    assert_eq!(go_on(&more, &mut standing, "one", &mut completed), NextStep::Finish);
    assert_eq!((standing.runs.len(), standing.runs_done()), (2 + 6, 2 + 6));
}
