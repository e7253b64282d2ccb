//! Groups of numbers from files. Each line is an observation; if lines depend on each other, the variance of their mean
//! allows for it. Of several files in a group each is one observation.

use super::groups::{GroupingError, NumberFacts, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use crate::diagnostics::{Caveat, Severity};
use crate::stats::{MeanVariance, Outline};
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
        let lines = self.values().count() as u64;
        let most = if self.files.len() > 1 { 1 } else { OBSERVATIONS_MAX };
        let own = |(file, values): &(String, Vec<f64>)| observations(file, values, most, as_logs);
        let runs: Vec<ObservedRun> = self.files.iter().flat_map(own).collect();
        let mean = match self.files.as_slice() {
            [(_, values)] if values.len() >= LOG_LINES => Some(MeanVariance::of(&scaled(values, as_logs))),
            _ => None,
        };
        let files = self.files.iter().filter(|(_, values)| !values.is_empty()).count() as u64;
        let taken = if files > 1 { files } else { lines };
        let effective_n = mean.map_or(taken as f64, |mean| mean.effective_n);
        let outline = Outline::of(&mut self.values().collect::<Vec<f64>>());
        let facts = NumberFacts { lines, files, effective_n, mean, outline };
        RunGroup { numbers: Some(facts), ..RunGroup::named(self.name, runs) }
    }
}

/// Fewer lines do not show whether they depend on each other.
const LOG_LINES: usize = 10;
/// Most observations of a file.
const OBSERVATIONS_MAX: usize = 10_000;

/// Numbers on the scale of the comparison.
fn scaled(values: &[f64], as_logs: bool) -> Vec<f64> {
    values.iter().map(|value| if as_logs { value.ln() } else { *value }).collect()
}

/// The lines of a file, or the means of consecutive ones if there are more than `most`. Each is named by its first line.
fn observations(file: &str, values: &[f64], most: usize, as_logs: bool) -> Vec<ObservedRun> {
    let count = values.len().min(most);
    let observation = |batch: usize| {
        let begin = batch * values.len() / count;
        let value = match &values[begin..(batch + 1) * values.len() / count] {
            [value] => *value,
            several => {
                let mean = scaled(several, as_logs).iter().sum::<f64>() / several.len() as f64;
                if as_logs { mean.exp() } else { mean }
            }
        };
        ObservedRun::bare(format!("{file}:{}", begin + 1), value)
    };
    (0..count).map(observation).collect()
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

/// The caveats of groups whose lines depend on each other, or are too few to show it.
pub(super) fn line_caveats(groups: &RunGroups) -> Vec<Caveat> {
    [dependence_caveat(groups), files_caveat(groups), few_lines_caveat(groups)].into_iter().flatten().collect()
}

fn with_facts(groups: &RunGroups) -> impl Iterator<Item = (&RunGroup, NumberFacts)> {
    groups.groups.iter().filter_map(|group| Some((group, group.numbers?)))
}

fn dependence_caveat(groups: &RunGroups) -> Option<Caveat> {
    let dependent = || with_facts(groups).filter(|(_, facts)| facts.is_dependent());
    let worth = |(group, facts): (&RunGroup, NumberFacts)| {
        let (lines, effective) = (human::grouped(facts.lines), human::significant(facts.effective_n));
        format!("the {lines} lines of {} are worth {effective} independent ones", group.name)
    };
    let worth: Vec<_> = dependent().map(worth).collect();
    let is_strong = dependent().any(|(_, facts)| facts.effective_n < facts.lines as f64 / 2.0);
    (!worth.is_empty()).then(|| {
        Caveat::new(
            if is_strong { Severity::Warning } else { Severity::Note },
            "dependent-lines",
            worth.join(", "),
            "intervals and verdicts allow for it, but not for how much runs differ",
            "measure several runs and compare one number of each",
        )
    })
}

fn files_caveat(groups: &RunGroups) -> Option<Caveat> {
    let several = with_facts(groups).filter(|(_, facts)| facts.files > 1 && facts.lines > facts.files);
    let count = |(group, facts): (&RunGroup, NumberFacts)| format!("{} ({} files)", group.name, facts.files);
    let names: Vec<_> = several.map(count).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "files-as-runs",
            format!("each file is one observation, the mean of its lines: {}", names.join(", ")),
            "the lines of a file may have the level of their run in common",
            "to compare lines, put those of a group into one file",
        )
    })
}

fn few_lines_caveat(groups: &RunGroups) -> Option<Caveat> {
    let is_short = |facts: &NumberFacts| facts.files == 1 && (2..LOG_LINES as u64).contains(&facts.lines);
    let short = with_facts(groups).filter(|(_, facts)| is_short(facts));
    let names: Vec<_> = short.map(|(group, _)| group.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "few-lines",
            format!("fewer than {LOG_LINES} lines do not show whether they depend on each other: {}", names.join(", ")),
            "they are taken as independent, such as one number of each run",
            "if they are of one run, measure several runs, or compare more lines",
        )
    })
}

/// The caveat of lines that depend on each other where a form takes them as independent, if there are any.
pub fn independence_caveat(groups: &[NumberFiles]) -> Option<Caveat> {
    let groups = RunGroups::of_numbers(groups.to_vec()).ok()?;
    let effect = "this form takes each line as independent: it finds differences that do not exist";
    let strong = dependence_caveat(&groups).filter(|caveat| caveat.severity == Severity::Warning);
    strong.map(|caveat| Caveat { effect: effect.into(), ..caveat })
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
        let few = few_lines_caveat(&groups).expect("two lines");
        assert!(few.message.ends_with(": b"), "{few:?}");
    }

    #[test]
    fn dependent_lines_are_worth_fewer() {
        let groups = RunGroups::of_numbers(vec![group("a", wave(4_000)), group("b", wave(4_000))]).expect("two");
        let own = &groups.groups[0];
        let facts = own.numbers.expect("numbers");
        assert!(own.runs.len() == 4_000 && facts.lines == 4_000 && facts.effective_n < 400.0, "{facts:?}");
        assert_eq!(facts.outline.expect("numbers").n, 4_000);
        let caveat = dependence_caveat(&groups).expect("dependent lines");
        assert!(caveat.message.contains("the 4,000 lines of a are worth"), "{caveat:?}");
        assert_eq!(few_lines_caveat(&groups), None);
        assert!(independence_caveat(&[group("a", wave(4_000))]).is_some());
    }

    #[test]
    fn many_lines_are_means_of_consecutive_ones() {
        let groups = RunGroups::of_numbers(vec![group("a", wave(25_000)), group("b", wave(9))]).expect("two");
        let own = &groups.groups[0];
        assert_eq!((own.runs.len(), own.runs[1].name.as_str()), (10_000, "a.txt:3"));
        assert_eq!((groups.groups[1].runs.len(), groups.groups[1].numbers.and_then(|facts| facts.mean)), (9, None));
    }

    #[test]
    fn each_of_several_files_is_one_observation() {
        let noise = |seed: u64| (0..50).map(|line| 1.0 + ((line * 7_919 + seed) % 97) as f64).collect::<Vec<f64>>();
        let files = |name: &str, lines: usize| {
            let file = |seed: u64| (format!("{seed}.txt"), noise(seed)[..lines].to_vec());
            NumberFiles { name: name.into(), files: (0..4).map(file).collect() }
        };
        let groups =
            RunGroups::of_numbers(vec![files("logs", 50), files("short", 9), files("runs", 1)]).expect("three");
        for group in &groups.groups {
            let facts = group.numbers.expect("numbers");
            assert_eq!((group.runs.len(), facts.effective_n, facts.mean), (4, 4.0, None), "{}", group.name);
        }
        let caveat = files_caveat(&groups).expect("files of several lines");
        assert!(caveat.message.ends_with("logs (4 files), short (4 files)"), "{caveat:?}");
        assert_eq!((dependence_caveat(&groups), few_lines_caveat(&groups)), (None, None));
    }

    #[test]
    fn ten_lines_show_whether_they_depend_on_each_other() {
        let mean = |lines: usize| group("a", wave(lines)).group(true).numbers.and_then(|facts| facts.mean);
        assert!(mean(9).is_none() && mean(10).is_some());
    }

    #[test]
    fn numbers_that_are_not_all_positive_are_compared_without_logarithms() {
        let mut values = wave(4_000);
        values[7] = -1.0;
        let groups = RunGroups::of_numbers(vec![group("a", values), group("b", wave(4_000))]).expect("two");
        assert!(groups.is_linear);
        // The variance is that of the lines, not of their logarithms.
        let variance =
            |group: usize| groups.groups[group].numbers.and_then(|facts| facts.mean).map(|mean| mean.variance);
        let mean = MeanVariance::of(&wave(4_000)).variance;
        assert_eq!(variance(1), Some(mean));
    }
}
