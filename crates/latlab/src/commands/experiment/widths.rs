//! The stop rule: are the intervals narrow enough? Widths are looked at, and nothing else (decision 0012).

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::runs;
use crate::error::Failure;
use crate::experiment::OpenExperiment;
use crate::metric::Metric;
use crate::plan::{Experiment, RunsRule, defaults};
use crate::stats::{self, DRAWS, GroupBlocks, WidthGoal};

/// The statistic of each run that was looked at, so that a recording is read once.
#[derive(Debug, Default)]
pub(super) struct Widths {
    logs: BTreeMap<String, Option<f64>>,
}

impl Widths {
    /// Whether the 95 % interval of every difference to the first condition is as narrow as the rule demands.
    pub(super) fn are_narrow(&mut self, experiment: &Experiment, open: &OpenExperiment) -> Result<bool, Failure> {
        let RunsRule::Until { statistic, half_width, .. } = &experiment.design.runs else { return Ok(false) };
        let metric = experiment.contrasts.first().map_or(experiment.kind.metric(), |contrast| contrast.metric);
        let blocks = open.standing().blocks.len();
        let mut groups: Vec<GroupBlocks> = vec![vec![Vec::new(); blocks]; experiment.conditions.len()];
        for (run, name) in runs::judged(open.standing()) {
            let is_own = |condition: &&crate::plan::ExperimentCondition| condition.factors == run.key.factors;
            let place = experiment.conditions.iter().position(|condition| is_own(&condition));
            // A statistic that is infinite has no width that could be narrow.
            let Some(log) = self.log(open, name, metric, statistic)? else { return Ok(false) };
            if let Some(group) = place {
                groups[group][run.key.block as usize - 1].push(log);
            }
        }
        let dropped = |group: usize| open.standing().is_dropped(&experiment.conditions[group].factors);
        let groups: Vec<GroupBlocks> =
            groups.into_iter().enumerate().filter(|(group, _)| !dropped(*group)).map(|(_, blocks)| blocks).collect();
        let goal = WidthGoal { half_width: (1.0 + half_width).ln(), confidence: defaults::CONFIDENCE, draws: DRAWS };
        Ok(stats::reached(&groups, goal, &mut Pcg64::seed_from_u64(experiment.design.seed)))
    }

    /// The logarithm of the run's statistic: differences of logarithms are shares.
    fn log(
        &mut self,
        open: &OpenExperiment,
        name: &str,
        metric: Metric,
        statistic: &str,
    ) -> Result<Option<f64>, Failure> {
        if let Some(known) = self.logs.get(name) {
            return Ok(*known);
        }
        let q =
            statistic.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()).map(|percent| percent / 100.0);
        let summary = runs::summary(open.path(), name, metric, q.as_slice())?;
        let description = summary.metrics.get(&metric);
        let value = description.and_then(|description| match q {
            None => description.mean,
            Some(_) => description.quantiles.first().and_then(|quantile| quantile.value),
        });
        let log = value.filter(|value| *value > 0.0).map(f64::ln);
        self.logs.insert(name.to_owned(), log);
        Ok(log)
    }
}
