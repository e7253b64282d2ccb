//! Groups of numbers from files. Each line is an observation; if lines depend on each other, the variance of their mean
//! allows for it. Of several files in a group each is one observation.

use super::grouping_error::GroupingError;
use super::groups::{LOG_LINES, NumberFacts, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use crate::diagnostics::{Caveat, Severity};
use crate::stats::{MeanVariance, Outline};
use crate::units::human;

/// The numbers of a group by file, in the order of their lines.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberFiles {
    pub name: String,
    /// Of each file its name and its numbers; at least one number in all.
    pub files: Vec<(String, Vec<f64>)>,
}

impl NumberFiles {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.files.iter().flat_map(|(_, values)| values).copied()
    }

    /// The group of its observations, which are means of logarithms if `as_logs`; each file is one if `by_file`.
    fn group(self, as_logs: bool, by_file: bool) -> RunGroup {
        let lines = self.values().count() as u64;
        let most = if by_file { 1 } else { OBSERVATIONS_MAX };
        let own = |(file, values): &(String, Vec<f64>)| observations(file, values, most, as_logs);
        let runs: Vec<ObservedRun> = self.files.iter().flat_map(own).collect();
        let files: Vec<&Vec<f64>> = self.files.iter().map(|(_, values)| values).filter(|it| !it.is_empty()).collect();
        let mean = match files.as_slice() {
            [values] if values.len() >= LOG_LINES && !by_file => Some(MeanVariance::of(&scaled(values, as_logs))),
            _ => None,
        };
        let files = files.len() as u64;
        let taken = if by_file { files } else { lines };
        let effective_n = mean.map_or(taken as f64, |mean| mean.effective_n);
        let outline = Outline::of(&mut self.values().collect::<Vec<f64>>());
        let facts = NumberFacts { lines, files, effective_n, mean, outline };
        RunGroup { numbers: Some(facts), ..RunGroup::named(self.name, runs) }
    }
}

/// Most observations of a file.
const OBSERVATIONS_MAX: usize = 10_000;

fn scaled(values: &[f64], as_logs: bool) -> Vec<f64> {
    values.iter().map(|value| if as_logs { value.ln() } else { *value }).collect()
}

/// The lines of a file, or the means of equally many consecutive ones if there are more than `most`. Each is named by its
/// first line.
fn observations(file: &str, values: &[f64], most: usize, as_logs: bool) -> Vec<ObservedRun> {
    let length = values.len().div_ceil(most).max(1);
    let observation = |(batch, values): (usize, &[f64])| {
        let value = match values {
            [value] => *value,
            several => {
                let mean = scaled(several, as_logs).iter().sum::<f64>() / several.len() as f64;
                if as_logs { mean.exp() } else { mean }
            }
        };
        ObservedRun::bare(format!("{file}:{}", batch * length + 1), value)
    };
    values.chunks(length).enumerate().map(observation).collect()
}

impl RunGroups {
    /// Groups of numbers, in the given order.
    ///
    /// # Errors
    /// Without a group.
    pub fn of_numbers(groups: Vec<NumberFiles>) -> Result<RunGroups, GroupingError> {
        let as_logs = groups.iter().flat_map(NumberFiles::values).all(|value| value > 0.0);
        // Files of one group differ as runs do, which the lines of a single file do not show.
        let with_numbers = |group: &NumberFiles| group.files.iter().filter(|(_, values)| !values.is_empty()).count();
        let by_file = groups.iter().any(|group| with_numbers(group) > 1);
        let made = groups.into_iter().map(|group| group.group(as_logs, by_file)).collect();
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
        format!("the {lines} lines of {} count as {effective} independent ones", group.name)
    };
    let worth: Vec<_> = dependent().map(worth).collect();
    let is_striking = dependent().any(|(_, facts)| facts.mean.is_some_and(|mean| mean.is_striking));
    let worth = worth.join(", ");
    (!worth.is_empty()).then(|| {
        Caveat::new(
            if is_striking { Severity::Warning } else { Severity::Note },
            "dependent-lines",
            if is_striking { worth } else { format!("lines may depend on each other: in their order {worth}") },
            "intervals and verdicts allow for that, but not for differences between runs",
            "measure several runs and compare one number of each",
        )
    })
}

fn files_caveat(groups: &RunGroups) -> Option<Caveat> {
    let several =
        with_facts(groups).filter(|(group, facts)| group.runs.len() as u64 == facts.files && facts.lines > facts.files);
    let count = |(group, facts): (&RunGroup, NumberFacts)| match facts.files {
        1 => format!("{} (1 file)", group.name),
        files => format!("{} ({files} files)", group.name),
    };
    let names: Vec<_> = several.map(count).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "dependent-lines",
            format!("each file is one observation, the mean of its lines: {}", names.join(", ")),
            "the lines of one file may come from one run, and then resemble each other",
            "to compare lines, put those of a group into one file",
        )
    })
}

fn few_lines_caveat(groups: &RunGroups) -> Option<Caveat> {
    let is_short = |facts: &NumberFacts| (2..LOG_LINES as u64).contains(&facts.lines);
    let short = with_facts(groups).filter(|(group, facts)| is_short(facts) && group.runs.len() as u64 == facts.lines);
    let short = short.filter(|(_, facts)| facts.files == 1);
    let names: Vec<_> = short.map(|(group, _)| group.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "dependent-lines",
            format!("fewer than {LOG_LINES} lines do not show whether they depend on each other: {}", names.join(", ")),
            "they are treated as independent, like one number per run",
            "if they come from one run, measure several runs, or compare more lines",
        )
    })
}

/// The caveat of lines that depend on each other where a form takes them as independent, if there are any.
pub fn independence_caveat(groups: &[NumberFiles]) -> Option<Caveat> {
    if let Some(caveat) = RunGroups::of_numbers(groups.to_vec()).ok().as_ref().and_then(files_caveat) {
        let message = caveat.message.replace("each file is", "each file would be");
        return Some(taking_lines_as_independent(Caveat { severity: Severity::Warning, message, ..caveat }));
    }
    let single = |file: &(String, Vec<f64>)| NumberFiles { name: file.0.clone(), files: vec![file.clone()] };
    let files = groups.iter().flat_map(|group| &group.files).filter(|(_, values)| !values.is_empty()).map(single);
    let groups = RunGroups::of_numbers(files.collect()).ok()?;
    let strong = dependence_caveat(&groups).filter(|caveat| caveat.severity == Severity::Warning);
    strong.map(taking_lines_as_independent)
}

fn taking_lines_as_independent(caveat: Caveat) -> Caveat {
    let message = format!("{}; this form treats all lines as independent", caveat.message);
    Caveat { message, effect: "it reports differences that do not exist".into(), ..caveat }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow wave around 100 with a little noise: neighbouring lines are nearly equal, and the wave is longer than most
    /// files, so that it does not average out.
    fn wave(lines: usize) -> Vec<f64> {
        let line = |line: usize| 100.0 + (line as f64 / 400.0).sin() + 0.01 * ((line * 7_919) % 97) as f64;
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
        assert!(caveat.message.contains("the 4,000 lines of a count as"), "{caveat:?}");
        assert_eq!(few_lines_caveat(&groups), None);
        let too_dependent = |values: Vec<f64>| {
            let groups = RunGroups::of_numbers(vec![group("a", values), group("b", wave(9))]).expect("two");
            groups.groups[0].numbers.expect("numbers").is_too_dependent()
        };
        assert!(too_dependent((0..300).map(|line| 100.0 + f64::from(line)).collect()), "one slow rise");
        assert!(!too_dependent((0..300).map(|line| ((line * 7_919) % 97) as f64).collect()));
        assert!(independence_caveat(&[group("a", wave(4_000))]).is_some());
    }

    #[test]
    fn many_lines_are_means_of_consecutive_ones() {
        let groups = RunGroups::of_numbers(vec![group("a", wave(25_000)), group("b", wave(9))]).expect("two");
        let own = &groups.groups[0];
        assert_eq!((own.runs.len(), own.runs[1].name.as_str()), (8_334, "a.txt:4"), "three lines each");
        // A pattern of three lines has the same mean in batches of two.
        let pattern: Vec<f64> = (0..15_000).map(|line| [1.0, 2.0, 4.0][line % 3]).collect();
        let means = observations("p", &pattern, 10_000, false);
        let mean = means.iter().filter_map(|run| run.figures[0].value()).sum::<f64>() / means.len() as f64;
        assert!((mean - 7.0 / 3.0).abs() < 1e-9, "{mean}");
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
        let against_one = RunGroups::of_numbers(vec![files("logs", 50), group("single", noise(9))]).expect("two");
        assert_eq!(against_one.groups[1].runs.len(), 1, "lines do not show how files differ");
        let mut with_empty = NumberFiles { files: vec![("e.txt".into(), Vec::new())], ..files("x", 1) };
        with_empty.files.push(("x.txt".into(), noise(3)));
        let empty = RunGroups::of_numbers(vec![with_empty.clone(), group("single", noise(9))]).expect("two");
        assert_eq!(empty.groups[0].runs.len(), 50, "an empty file does not count");
        assert!(empty.groups[0].numbers.is_some_and(|facts| facts.mean.is_some()));
        let ministat = independence_caveat(&[files("logs", 50)]).expect("several files of several lines");
        assert_eq!((ministat.code.as_ref(), ministat.severity), ("dependent-lines", Severity::Warning));
        assert_eq!((dependence_caveat(&groups), few_lines_caveat(&groups)), (None, None));
    }

    #[test]
    fn ten_lines_show_whether_they_depend_on_each_other() {
        let mean = |lines: usize| group("a", wave(lines)).group(true, false).numbers.and_then(|facts| facts.mean);
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
