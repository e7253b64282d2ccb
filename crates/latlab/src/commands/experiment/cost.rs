//! What an experiment takes and leaves, as far as that is known before it begins.

use crate::plan::{BetweenBlocks, Experiment, Plan, defaults};
use crate::report::experiment::plan::PlanCost;
use crate::units::Nanos;

/// What the runs that are not done take and leave: as if each were an average one.
pub(super) fn cost(experiment: &Experiment, done: u64) -> PlanCost {
    let design = &experiment.design;
    let conditions = experiment.conditions.len().max(1) as f64;
    let all = design.runs_at_most(experiment.conditions.len()) as f64;
    let left = (all - done as f64).max(0.0);
    let (mut duration_ns, mut bytes, mut guessed) = (0.0, 0.0, false);
    for condition in &experiment.conditions {
        let (run_ns, probes, is_guess) = one_run(&condition.plan);
        duration_ns += run_ns / conditions;
        bytes += (defaults::RUN_BYTES + probes * defaults::PROBE_BYTES) / conditions;
        guessed |= is_guess;
    }
    // Of randomized runs one in so many is of the same condition as the one before.
    let switches = left * (1.0 - 1.0 / conditions);
    let pauses = match design.between {
        BetweenBlocks::Pause(pause) => pause.saturating_mul(i64::from(design.blocks_at_most()) - 1).0 as f64,
        _ => 0.0,
    };
    let duration = left * duration_ns + switches * design.settle.0 as f64 + pauses * left / all.max(1.0);
    let guessed = guessed.then_some(defaults::ROUND_TRIP_GUESS);
    PlanCost { duration: Nanos(duration as i64), guessed, bytes: left * bytes }
}

/// How long a run takes, how many rows it leaves (probes, wake-ups, intervals), and whether the time of a round trip had to be guessed.
pub(super) fn one_run(plan: &Plan) -> (f64, f64, bool) {
    let (guess, settling) = (defaults::ROUND_TRIP_GUESS.0 as f64, plan.runs.iter().any(|run| !run.loads.is_empty()));
    let mut total = (defaults::RUN_OVERHEAD.0 as f64, 0.0, false);
    for run in &plan.runs {
        // A row of either end of each flow in every interval, whatever is sent.
        let of_stream = |flows: u16| defaults::STREAM_WINDOW.0 as f64 / 2.0 / f64::from(flows);
        let gap = match run.stream() {
            Some(stream) => Some(of_stream(stream.flows)),
            None => run.schedule().interval().map(|interval| interval.0 as f64),
        };
        let trip = gap.unwrap_or(guess);
        let counted = |count: Option<u64>| count.map_or(f64::INFINITY, |count| count as f64 * trip);
        let timed = |span: Option<Nanos>| span.map_or(f64::INFINITY, |span| span.0 as f64);
        let shorter = |span, count| Some(f64::min(timed(span), counted(count))).filter(|ns| ns.is_finite());
        let warmup = shorter(run.warmup.duration_ns, run.warmup.count).unwrap_or_default();
        let length = warmup + shorter(run.stop.duration_ns, run.stop.count).unwrap_or_default();
        // A limit of time says how long it takes, but not how much it sends.
        total = (total.0 + length, total.1 + length / trip, total.2 || gap.is_none());
    }
    (total.0 + if settling { defaults::LOAD_SETTLE.0 as f64 } else { 0.0 }, total.1, total.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::resolve::{ConditionSelection, Environment, experiment};
    use crate::plan::Factors;
    use crate::recipe::{Between, PublishedRow, RECIPES, RecipeScale};

    #[test]
    fn a_minute_has_room_for_most_of_what_was_published() {
        let recipe = crate::recipe::find("wakeup-governor").expect("there is one");
        let text = recipe.file("local", RecipeScale::Quick, Between::AsItsFileSays);
        let surroundings = Environment { store: None, seed: 7 };
        let job = experiment(recipe.name, &text, ConditionSelection::Possible, &surroundings).expect("well typed");
        let rows = recipe.published.expect("published").rows;
        let is_measured = |row: &&PublishedRow| {
            let has = |factors: &Factors| {
                row.factors.iter().all(|(key, text)| factors.get(*key).is_some_and(|value| value == text))
            };
            job.experiment.conditions.iter().any(|condition| has(&condition.factors))
        };
        let missing: Vec<_> = rows.iter().filter(|row| !is_measured(row)).map(|row| row.label).collect();
        assert_eq!(missing, ["100 ms, idle, performance", "1 s, idle, performance"]);
    }

    /// Contract, section 7.
    #[test]
    fn recipes_keep_their_promises_by_their_plan() {
        let surroundings = Environment { store: None, seed: 7 };
        for recipe in RECIPES {
            for target in ["local", "lab", "127.0.0.1"] {
                let seconds = [RecipeScale::Quick, RecipeScale::Usual, RecipeScale::Full].map(|scale| {
                    let text = recipe.file(target, scale, Between::AsItsFileSays);
                    let job =
                        experiment(recipe.name, &text, ConditionSelection::Possible, &surroundings).expect(recipe.name);
                    cost(&job.experiment, 0).duration.0 as f64 / 1e9
                });
                let [quick, usual, full] = seconds;
                assert!(quick <= 60.0 && usual <= 1_800.0, "{} {target}: {seconds:?} s", recipe.name);
                assert!(quick < usual && usual < full, "{} {target}: {seconds:?} s", recipe.name);
            }
        }
    }
}
