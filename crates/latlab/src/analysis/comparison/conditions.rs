//! The groups of an experiment: one for each of its conditions, in the order of its file, whether or not it has a run.

use std::collections::{BTreeMap, BTreeSet};

use super::group::{RunGroup, RunGroups, name_of};
use super::observed_run::ObservedRun;

/// Factor → value, as typed.
type Levels = BTreeMap<String, String>;

impl RunGroups {
    /// A group for each of `conditions`, and for each that only a run knows of. A condition without a run that can be
    /// judged keeps its empty group, so that none stands in for it as the baseline.
    pub fn of_conditions(conditions: &[Levels], runs: Vec<ObservedRun>) -> RunGroups {
        let group = |levels: &Levels| RunGroup { name: name_of(levels), levels: levels.clone(), runs: Vec::new() };
        let mut groups: Vec<RunGroup> = conditions.iter().map(group).collect();
        let mut left_out = BTreeMap::new();
        for run in runs {
            if let Some(reason) = run.left_out {
                *left_out.entry(reason).or_default() += 1;
                continue;
            }
            let levels = run.factors.clone().unwrap_or_default();
            let place = groups.iter().position(|group| group.levels == levels).unwrap_or_else(|| {
                groups.push(group(&levels));
                groups.len() - 1
            });
            groups[place].runs.push(run);
        }
        let factors: BTreeSet<&String> = groups.iter().flat_map(|group| group.levels.keys()).collect();
        let title = factors.into_iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        RunGroups { factor: Some(title).filter(|title| !title.is_empty()), groups, left_out, strata: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::observed_run::ExclusionReason;

    #[test]
    fn a_condition_without_a_run_keeps_its_place() {
        let levels = |load: &str| Levels::from([("load".to_owned(), load.to_owned())]);
        let run = |load: &str, left_out| {
            let factors = Some(levels(load));
            ObservedRun { factors, left_out, ..ObservedRun::bare("r".into(), 1.0) }
        };
        let runs = vec![run("b", None), run("c", None), run("a", Some(ExclusionReason::Failed)), run("b", None)];
        let groups = RunGroups::of_conditions(&[levels("a"), levels("b")], runs);
        let sizes: Vec<_> = groups.groups.iter().map(|group| (group.name.as_str(), group.runs.len())).collect();
        assert_eq!(sizes, [("a", 0), ("b", 2), ("c", 1)]);
        assert_eq!((groups.factor.as_deref(), groups.left_out[&ExclusionReason::Failed]), (Some("load"), 1));
        assert_eq!(groups.against_first(), [(0, 1), (0, 2)]);
    }
}
