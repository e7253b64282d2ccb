//! Groups of numbers from files. Each line is an observation; if lines depend on each other, the means of consecutive
//! ones are, as many as the effective sample size supports. Of several logs in a group each is one.

use super::groups::{GroupingError, NumberFacts, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use crate::diagnostics::{Caveat, Severity};
use crate::stats::{BatchMeans, Outline};
use crate::units::human;

/// The numbers of a group by file, in the order of their lines.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberFiles {
    /// Name of the group.
    pub name: String,
    /// Of each file its name and its numbers; at least one number in all.
    pub files: Vec<(String, Vec<f64>)>,
}

impl NumberFiles {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.files.iter().flat_map(|(_, values)| values).copied()
    }

    /// The group of its observations, which are means of logarithms if `as_logs`.
    fn group(self, as_logs: bool) -> RunGroup {
        let (mut runs, mut lines, mut effective_n) = (Vec::new(), 0, 0.0);
        let is_log_of_several = |values: &[f64]| self.files.len() > 1 && values.len() >= LOG_LINES;
        for (file, values) in &self.files {
            let scaled: Vec<f64> = values.iter().map(|value| if as_logs { value.ln() } else { *value }).collect();
            let own = if is_log_of_several(values) { whole(&scaled) } else { BatchMeans::of(&scaled) };
            let back = |mean: f64| if as_logs { mean.exp() } else { mean };
            lines += values.len() as u64;
            effective_n += own.effective_n;
            match own.means.len() == values.len() {
                true => runs.extend(values.iter().enumerate().map(|(line, value)| observation(file, line + 1, *value))),
                false => {
                    runs.extend(own.means.iter().enumerate().map(|(batch, mean)| {
                        observation(file, 1 + batch * values.len() / own.means.len(), back(*mean))
                    }))
                }
            }
        }
        let mut all: Vec<f64> = self.values().collect();
        let facts = NumberFacts { lines, effective_n, outline: Outline::of(&mut all) };
        RunGroup { numbers: Some(facts), ..RunGroup::named(self.name, runs) }
    }
}

/// From so many lines on, each of several files of a group is taken as the log of a run: their lines have the level of the
/// run in common.
const LOG_LINES: usize = 10;

/// A file as a single observation.
fn whole(values: &[f64]) -> BatchMeans {
    BatchMeans { means: vec![values.iter().sum::<f64>() / values.len() as f64], effective_n: 1.0 }
}

/// An observation that begins at `line` of `file`.
fn observation(file: &str, line: usize, value: f64) -> ObservedRun {
    ObservedRun::bare(format!("{file}:{line}"), value)
}

impl RunGroups {
    /// Groups of numbers, in the given order.
    ///
    /// # Errors
    /// Without a group.
    pub fn of_numbers(groups: Vec<NumberFiles>) -> Result<RunGroups, GroupingError> {
        let as_logs = groups.iter().flat_map(NumberFiles::values).all(|value| value > 0.0);
        let made = groups.into_iter().map(|group| group.group(as_logs)).collect();
        Ok(RunGroups { is_linear: !as_logs, ..RunGroups::of_groups(made)? })
    }
}

/// The caveat of groups whose lines depend on each other, if there are any.
pub(super) fn dependence_caveat(groups: &RunGroups) -> Option<Caveat> {
    let dependent =
        || groups.groups.iter().filter_map(|group| Some((group, group.numbers.filter(NumberFacts::is_dependent)?)));
    let worth = |(group, facts): (&RunGroup, NumberFacts)| {
        let (lines, effective) = (human::grouped(facts.lines), human::significant(facts.effective_n));
        format!("the {lines} lines of {} are worth {effective} independent ones", group.name)
    };
    let means = |(group, _): (&RunGroup, NumberFacts)| human::grouped(group.runs.len() as u64);
    let (worth, means): (Vec<_>, Vec<_>) = (dependent().map(worth).collect(), dependent().map(means).collect());
    (!worth.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "dependent-lines",
            worth.join(", "),
            format!("means of consecutive lines are compared instead: {}", means.join(" and ")),
            "measure several runs and compare one number of each: one run does not show how much runs differ",
        )
    })
}

/// The caveat of lines that depend on each other where a form takes them as independent, if there are any.
pub fn independence_caveat(groups: &[NumberFiles]) -> Option<Caveat> {
    let groups = RunGroups::of_numbers(groups.to_vec()).ok()?;
    let effect = "this form takes each line as independent: it finds differences that do not exist";
    dependence_caveat(&groups).map(|caveat| Caveat { effect: effect.into(), ..caveat })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow wave around 100 with a little noise: neighbouring lines are nearly equal.
    fn wave(lines: usize) -> Vec<f64> {
        let line = |line: usize| 100.0 + (line as f64 / 40.0).sin() + 0.01 * ((line * 7_919) % 97) as f64;
        (0..lines).map(line).collect()
    }

    fn group(name: &str, values: Vec<f64>) -> NumberFiles {
        NumberFiles { name: name.into(), files: vec![(format!("{name}.txt"), values)] }
    }

    #[test]
    fn independent_lines_are_observations() {
        let noise: Vec<f64> = (0..50_u64).map(|line| 1.0 + (line * 7_919 % 97) as f64).collect();
        let groups = RunGroups::of_numbers(vec![group("a", noise.clone()), group("b", vec![3.0, 5.0])]).expect("two");
        assert_eq!((groups.groups[0].values(0), groups.groups[1].values(0)), (noise, vec![3.0, 5.0]));
        assert_eq!((groups.groups[1].runs[1].name.as_str(), dependence_caveat(&groups)), ("b.txt:2", None));
    }

    #[test]
    fn dependent_lines_are_compared_by_their_means() {
        let groups = RunGroups::of_numbers(vec![group("a", wave(4_000)), group("b", wave(4_000))]).expect("two");
        let own = &groups.groups[0];
        let facts = own.numbers.expect("numbers");
        assert!(own.runs.len() < 100 && facts.lines == 4_000 && facts.effective_n < 400.0, "{facts:?}");
        assert_eq!(facts.outline.expect("numbers").n, 4_000);
        let caveat = dependence_caveat(&groups).expect("dependent lines");
        assert!(caveat.message.contains("the 4,000 lines of a are worth"), "{caveat:?}");
        assert!(independence_caveat(&[group("a", wave(4_000))]).is_some());
    }

    #[test]
    fn each_of_several_logs_is_one_observation() {
        let noise = |seed: u64| (0..50).map(|line| 1.0 + ((line * 7_919 + seed) % 97) as f64).collect::<Vec<f64>>();
        let file = |seed: u64| (format!("{seed}.txt"), noise(seed));
        let logs = NumberFiles { name: "logs".into(), files: (0..4).map(file).collect() };
        let short = |seed: u64| (format!("{seed}.txt"), noise(seed)[..3].to_vec());
        let runs = NumberFiles { name: "runs".into(), files: (0..4).map(short).collect() };
        let groups = RunGroups::of_numbers(vec![logs, runs]).expect("two");
        let sizes: Vec<_> = groups.groups.iter().map(|group| group.runs.len()).collect();
        assert_eq!(sizes, [4, 12], "a log each, and every line of short files");
        assert_eq!(groups.groups[0].numbers.map(|facts| facts.effective_n), Some(4.0));
    }

    #[test]
    fn numbers_that_are_not_all_positive_are_compared_without_logarithms() {
        let mut values = wave(4_000);
        values[7] = -1.0;
        let groups = RunGroups::of_numbers(vec![group("a", values), group("b", wave(4_000))]).expect("two");
        assert!(groups.is_linear && groups.groups[0].values(0).iter().all(|mean| *mean > 0.0));
    }
}
