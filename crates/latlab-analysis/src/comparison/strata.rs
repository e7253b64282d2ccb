//! Strata, within which runs are permuted: runs of one round, or of one block, with the same levels of all factors that are
//! not compared.

use std::collections::BTreeSet;

use super::groups::{GroupPair, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use super::request::QuestionScope;
use super::verdict::FigureScale;
use crate::stats::BlockRuns;

/// Experiment and block, if the run is of an experiment; its round; the levels of the factors that are not compared.
type Stratum = (Option<(String, u32)>, Option<u32>, Vec<String>);

/// The runs of two groups by stratum, on the scale of the comparison.
pub(super) struct Strata {
    /// By boot, then by stratum. If the scope is blocks, all runs are in one boot: runs without an experiment share
    /// a block even if the host was rebooted between them.
    pub(super) boots: Vec<Vec<BlockRuns>>,
    /// Strata with runs of both groups.
    pub(super) common: usize,
    pub(super) blocks: usize,
    /// Whether each is of one round.
    pub(super) by_round: bool,
}

impl Strata {
    /// The runs of `pair` by boot and stratum, in order of first occurrence; `value` is a run's figure. If the groups have
    /// no stratum in common, blocks are ignored (decision 0011.2).
    pub(super) fn of(
        groups: &RunGroups,
        pair: GroupPair,
        scale: FigureScale,
        scope: QuestionScope,
        value: impl Fn(&ObservedRun) -> Option<f64>,
    ) -> Strata {
        let sides = groups.pair(pair);
        let pooled = groups.common_strata(pair).is_empty();
        let mut boots = Vec::new();
        let mut found: Vec<Vec<(Stratum, BlockRuns)>> = Vec::new();
        for (side, run) in
            sides.into_iter().enumerate().flat_map(|(side, group)| group.runs.iter().map(move |run| (side, run)))
        {
            let Some(value) = value(run) else { continue };
            let boot = index_of(&mut boots, &run.origin.boot.as_ref().filter(|_| scope == QuestionScope::Boots));
            if found.len() <= boot {
                found.push(Vec::new());
            }
            let (block, round, levels) = groups.stratum(run);
            let stratum = (block.filter(|_| !pooled), round.filter(|_| !pooled), levels);
            let known = found[boot].iter().position(|(other, _)| *other == stratum);
            let index = known.unwrap_or_else(|| {
                found[boot].push((stratum, BlockRuns::default()));
                found[boot].len() - 1
            });
            let runs = &mut found[boot][index].1;
            if side == 0 { &mut runs.baseline } else { &mut runs.candidate }.push(scale.place(value));
        }
        let common = || found.iter().flatten().filter(|(_, runs)| runs.difference().is_some());
        let blocks = common().map(|((block, ..), _)| block).collect::<BTreeSet<_>>().len();
        let by_round = common().any(|((_, round, _), _)| round.is_some());
        let common = common().count();
        let boots = found.into_iter().map(|strata| strata.into_iter().map(|(_, runs)| runs).collect()).collect();
        Strata { boots, common, blocks, by_round }
    }
}

/// The index of `wanted` in `known`, to which it is appended if it is new.
fn index_of<T: Clone + PartialEq>(known: &mut Vec<T>, wanted: &T) -> usize {
    known.iter().position(|other| other == wanted).unwrap_or_else(|| {
        known.push(wanted.clone());
        known.len() - 1
    })
}

impl RunGroups {
    fn stratum(&self, run: &ObservedRun) -> Stratum {
        let level = |factor: &String| run.levels.get(factor).cloned().unwrap_or_default();
        (run.origin.block.clone(), run.origin.round, self.strata.iter().map(level).collect())
    }

    /// The strata in which both groups have runs.
    fn common_strata(&self, pair: GroupPair) -> BTreeSet<Stratum> {
        let strata = |group: &RunGroup| group.runs.iter().map(|run| self.stratum(run)).collect::<BTreeSet<_>>();
        let [baseline, candidate] = self.pair(pair);
        &strata(baseline) & &strata(candidate)
    }

    /// Whether the runs of both groups were randomised within blocks: all are of blocks, and some of these have runs of
    /// both groups.
    pub(super) fn are_interleaved(&self, pair: GroupPair) -> bool {
        let mut runs = self.pair(pair).into_iter().flat_map(|group| &group.runs);
        runs.all(|run| run.origin.block.is_some()) && !self.common_strata(pair).is_empty()
    }
}
