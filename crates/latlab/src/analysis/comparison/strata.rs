//! Inside of what runs are exchanged: blocks, and in each the levels of the factors that are not compared.

use std::collections::BTreeSet;

use super::group::{RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use super::scale::FigureScale;
use super::wishes::QuestionScope;
use crate::stats::BlockRuns;

/// An experiment and a block of it; none where no experiment saw to that.
pub(super) type StratumBlock = Option<(String, u32)>;
/// What a run may be exchanged in.
pub(super) type Stratum = (StratumBlock, Vec<String>);

/// The runs of two groups on the scale on which they are compared, ready to be exchanged.
pub(super) struct Strata {
    /// Boot by boot, and in each stratum by stratum; one boot where the answer is for blocks: runs without an experiment
    /// share a block even if the host was booted between them.
    pub(super) boots: Vec<Vec<BlockRuns>>,
    /// Strata with runs of both groups.
    pub(super) common: usize,
    /// Blocks that these lie in.
    pub(super) blocks: usize,
}

impl Strata {
    /// The runs of `pair`, baseline and candidate, by boot and stratum in the order in which these were met; `value` is a
    /// run's figure. Where the groups have no stratum in common, blocks are left out of account (decision 0011.2).
    pub(super) fn of(
        groups: &RunGroups,
        pair: (usize, usize),
        (scale, over): (FigureScale, QuestionScope),
        value: impl Fn(&ObservedRun) -> Option<f64>,
    ) -> Strata {
        let sides = [&groups.groups[pair.0], &groups.groups[pair.1]];
        let pooled = groups.common_strata(pair).is_empty();
        let mut boots = Vec::new();
        let mut found: Vec<Vec<(Stratum, BlockRuns)>> = Vec::new();
        for (side, run) in
            sides.into_iter().enumerate().flat_map(|(side, group)| group.runs.iter().map(move |run| (side, run)))
        {
            let Some(value) = value(run) else { continue };
            let boot = place_of(&mut boots, &run.place.boot.as_ref().filter(|_| over == QuestionScope::Boots));
            if found.len() <= boot {
                found.push(Vec::new());
            }
            let (block, levels) = groups.stratum(run);
            let stratum = (block.filter(|_| !pooled), levels);
            let known = found[boot].iter().position(|(other, _)| *other == stratum);
            let place = known.unwrap_or_else(|| {
                found[boot].push((stratum, BlockRuns::default()));
                found[boot].len() - 1
            });
            let runs = &mut found[boot][place].1;
            if side == 0 { &mut runs.baseline } else { &mut runs.candidate }.push(scale.from_figure(value));
        }
        let common = || found.iter().flatten().filter(|(_, runs)| runs.difference().is_some());
        let blocks = common().map(|((block, _), _)| block).collect::<BTreeSet<_>>().len();
        let common = common().count();
        let boots = found.into_iter().map(|strata| strata.into_iter().map(|(_, runs)| runs).collect()).collect();
        Strata { boots, common, blocks }
    }
}

/// Where `wanted` stands among those seen so far; new ones come last.
fn place_of<T: Clone + PartialEq>(seen: &mut Vec<T>, wanted: &T) -> usize {
    seen.iter().position(|other| other == wanted).unwrap_or_else(|| {
        seen.push(wanted.clone());
        seen.len() - 1
    })
}

impl RunGroups {
    /// What a run may be exchanged in: its block, with what else varied beside it.
    pub(super) fn stratum(&self, run: &ObservedRun) -> Stratum {
        let level = |factor: &String| run.levels.get(factor).cloned().unwrap_or_default();
        (run.place.block.clone(), self.strata.iter().map(level).collect())
    }

    /// The strata in which both groups have runs.
    pub(super) fn common_strata(&self, (baseline, candidate): (usize, usize)) -> BTreeSet<Stratum> {
        let strata = |group: &RunGroup| group.runs.iter().map(|run| self.stratum(run)).collect::<BTreeSet<_>>();
        &strata(&self.groups[baseline]) & &strata(&self.groups[candidate])
    }

    /// Whether the runs of both groups took turns by chance: all belong to blocks, and some of these have runs of both.
    pub fn are_interleaved(&self, pair: (usize, usize)) -> bool {
        let mut runs = [pair.0, pair.1].into_iter().flat_map(|place| &self.groups[place].runs);
        runs.all(|run| run.place.block.is_some()) && !self.common_strata(pair).is_empty()
    }
}
