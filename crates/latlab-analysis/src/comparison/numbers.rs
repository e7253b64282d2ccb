//! Groups of numbers from files. A line is a run, which is an observation, or a probe: then its file is one.

use super::grouping_error::GroupingError;
use super::groups::{NumberFacts, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use crate::diagnostics::{Caveat, Severity};
use crate::stats::{Outline, effective_size};
use crate::units::human;

crate::worded! {
    /// What a line of a file is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lines: word {
        Runs = "runs",
        /// Of one run, which is the file.
        Probes = "probes",
    }
}

/// A longer file may be that of one run, if nothing says what its lines are.
const RUNS_MAX: usize = 100;

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

    /// Files with numbers.
    fn used(&self) -> impl Iterator<Item = &Vec<f64>> {
        self.files.iter().map(|(_, values)| values).filter(|values| !values.is_empty())
    }

    /// The group of its observations, which are means of logarithms if `as_logs`; each file is one, its mean, if `by_file`.
    fn group(self, as_logs: bool, by_file: bool) -> RunGroup {
        let most = if by_file { 1 } else { OBSERVATIONS_MAX };
        let own = |(file, values): &(String, Vec<f64>)| observations(file, values, most, as_logs && !by_file);
        let runs: Vec<ObservedRun> = self.files.iter().flat_map(own).collect();
        // What of each file its lines are worth, if that is less than chance makes it.
        let worth = |values: &Vec<f64>| effective_size(&scaled(values, as_logs)).unwrap_or(values.len() as f64);
        let effective_n = (!by_file).then(|| self.used().map(worth).sum());
        let (lines, files) = (self.values().count() as u64, self.used().count() as u64);
        let outline = Outline::of(&mut self.values().collect::<Vec<f64>>());
        RunGroup {
            numbers: Some(NumberFacts { lines, files, effective_n, outline }),
            ..RunGroup::named(self.name, runs)
        }
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
    /// Groups of numbers, in the given order. If nothing says what `lines` are, those of a group of one short file are runs.
    ///
    /// # Errors
    /// Without a group.
    pub fn of_numbers(groups: Vec<NumberFiles>, lines: Option<Lines>) -> Result<RunGroups, GroupingError> {
        let as_logs = groups.iter().flat_map(NumberFiles::values).all(|value| value > 0.0);
        let may_be_probes =
            |group: &NumberFiles| group.used().count() > 1 || group.used().any(|values| values.len() > RUNS_MAX);
        let by_file = lines.map_or_else(|| groups.iter().any(may_be_probes), |lines| lines == Lines::Probes);
        let made = groups.into_iter().map(|group| group.group(as_logs, by_file)).collect();
        Ok(RunGroups { is_linear: !as_logs, ..RunGroups::of_groups(made)? })
    }
}

/// The caveats of lines that depend on each other, or are not the observations.
pub(super) fn line_caveats(groups: &RunGroups) -> Vec<Caveat> {
    [dependence_caveat(groups), files_caveat(groups)].into_iter().flatten().collect()
}

fn with_facts(groups: &RunGroups) -> impl Iterator<Item = (&RunGroup, NumberFacts)> {
    groups.groups.iter().filter_map(|group| Some((group, group.numbers?)))
}

fn dependence_caveat(groups: &RunGroups) -> Option<Caveat> {
    let worth = |(group, facts): (&RunGroup, NumberFacts)| {
        let effective_n = facts.effective_n.filter(|worth| *worth < facts.lines as f64)?;
        let (lines, effective) = (human::grouped(facts.lines), human::significant(effective_n));
        Some(format!("the {lines} lines of {} count as {effective} independent ones", group.name))
    };
    let worth: Vec<_> = with_facts(groups).filter_map(worth).collect();
    (!worth.is_empty()).then(|| {
        Caveat::new(
            Severity::Warning,
            "dependent-lines",
            format!("in their order {}", worth.join(", ")),
            "a difference may be one of the times at which they were measured",
            "`--lines probes` if the lines of a file are one run; otherwise measure the groups in random order",
        )
    })
}

fn files_caveat(groups: &RunGroups) -> Option<Caveat> {
    let by_file = with_facts(groups).filter(|(_, facts)| facts.effective_n.is_none() && facts.lines > facts.files);
    let count = |(group, facts): (&RunGroup, NumberFacts)| {
        format!("{} ({} in {})", group.name, human::grouped(facts.lines), human::counted(facts.files as usize, "file"))
    };
    let names: Vec<_> = by_file.map(count).collect();
    (!names.is_empty()).then(|| {
        Caveat::new(
            Severity::Note,
            "dependent-lines",
            format!("each file is one run, and its lines are probes of it: {}", names.join(", ")),
            "the mean of a file is one observation, since the lines of a run resemble each other",
            "`--lines runs` if each line is a run",
        )
    })
}

/// The caveat of lines that depend on each other where a form takes them as independent, if there are any.
pub fn independence_caveat(groups: &[NumberFiles]) -> Option<Caveat> {
    if groups.iter().any(|group| group.used().count() > 1) {
        let groups = RunGroups::of_numbers(groups.to_vec(), None).ok();
        let caveat = groups.as_ref().and_then(files_caveat)?;
        return Some(taking_lines_as_independent(Caveat { severity: Severity::Warning, ..caveat }));
    }
    let groups = RunGroups::of_numbers(groups.to_vec(), Some(Lines::Runs)).ok()?;
    dependence_caveat(&groups).map(taking_lines_as_independent)
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

    fn of(groups: Vec<NumberFiles>, lines: Option<Lines>) -> RunGroups {
        RunGroups::of_numbers(groups, lines).expect("groups")
    }

    fn noise(lines: usize, seed: u64) -> Vec<f64> {
        (0..lines as u64).map(|line| 1.0 + ((line * 7_919 + seed) % 97) as f64).collect()
    }

    #[test]
    fn the_lines_of_a_short_file_are_runs() {
        let groups = of(vec![group("a", noise(100, 0)), group("b", vec![3.0, 5.0])], None);
        assert_eq!((groups.groups[0].values(0), groups.groups[1].values(0)), (noise(100, 0), vec![3.0, 5.0]));
        assert_eq!((groups.groups[1].runs[1].name.as_str(), line_caveats(&groups)), ("b.txt:2", vec![]));
    }

    #[test]
    fn a_long_file_is_one_run_unless_its_lines_are() {
        let both = || vec![group("a", noise(101, 0)), group("b", noise(9, 0))];
        let groups = of(both(), None);
        assert_eq!(groups.groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), [1, 1]);
        let caveat = files_caveat(&groups).expect("one run each");
        assert!(caveat.message.ends_with(": a (101 in 1 file), b (9 in 1 file)"), "{caveat:?}");
        assert_eq!(of(both(), Some(Lines::Runs)).groups[0].runs.len(), 101);
        assert_eq!(of(vec![group("b", noise(9, 0))], Some(Lines::Probes)).groups[0].runs.len(), 1);
    }

    #[test]
    fn runs_that_depend_on_each_other_have_a_caveat() {
        let both = vec![group("a", wave(4_000)), group("b", noise(50, 0))];
        let groups = of(both.clone(), Some(Lines::Runs));
        let own = &groups.groups[0];
        assert_eq!((own.runs.len(), own.numbers.and_then(|facts| facts.outline).expect("numbers").n), (4_000, 4_000));
        let caveat = dependence_caveat(&groups).expect("dependent lines");
        assert!(caveat.message.starts_with("in their order the 4,000 lines of a count as "), "{caveat:?}");
        assert!(!caveat.message.contains("of b"), "{caveat:?}");
        assert!(independence_caveat(&both).is_some() && independence_caveat(&both[1..]).is_none());
    }

    #[test]
    fn many_lines_are_means_of_consecutive_ones() {
        let groups = of(vec![group("a", wave(25_000)), group("b", wave(9))], Some(Lines::Runs));
        let own = &groups.groups[0];
        assert_eq!((own.runs.len(), own.runs[1].name.as_str()), (8_334, "a.txt:4"), "three lines each");
        // A pattern of three lines has the same mean in batches of two.
        let pattern: Vec<f64> = (0..15_000).map(|line| [1.0, 2.0, 4.0][line % 3]).collect();
        let means = observations("p", &pattern, 10_000, false);
        let mean = means.iter().filter_map(|run| run.figures[0].value()).sum::<f64>() / means.len() as f64;
        assert!((mean - 7.0 / 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn each_of_several_files_is_one_observation() {
        let files = |name: &str, lines: usize| {
            let file = |seed: u64| (format!("{seed}.txt"), noise(lines, seed));
            NumberFiles { name: name.into(), files: (0..4).map(file).collect() }
        };
        let groups = of(vec![files("logs", 50), files("runs", 1), group("single", noise(9, 0))], None);
        assert_eq!(groups.groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), [4, 4, 1]);
        let caveat = files_caveat(&groups).expect("files of several lines");
        assert!(caveat.message.ends_with("logs (200 in 4 files), single (9 in 1 file)"), "{caveat:?}");
        let mut with_empty = NumberFiles { files: vec![("e.txt".into(), Vec::new())], ..files("x", 1) };
        with_empty.files.push(("x.txt".into(), noise(50, 3)));
        let empty = of(vec![with_empty, group("single", noise(9, 0))], None);
        assert_eq!(empty.groups[0].runs.len(), 50, "an empty file does not count");
        let ministat = independence_caveat(&[files("logs", 50)]).expect("several files of several lines");
        assert_eq!((ministat.code.as_ref(), ministat.severity), ("dependent-lines", Severity::Warning));
    }

    #[test]
    fn numbers_that_are_not_all_positive_are_compared_without_logarithms() {
        let mut values = wave(50);
        values[7] = -1.0;
        assert!(of(vec![group("a", values), group("b", wave(50))], None).is_linear);
    }
}
