//! `latlab compare`, settled: recordings or files of numbers, their groups, and what is compared.

use std::path::PathBuf;

use super::environment::verbosity;
use super::{RequestError, value};
use crate::cli::args::{CompareArgs, ComparingArgs, FormatWord, GroupingArgs, MinistatArgs, OverWord};
use crate::console::Verbosity;
use crate::formats::numbers::TextColumn;
use crate::plan::defaults;
use crate::units::human;

/// `latlab compare`, settled: one of its two forms.
#[derive(Clone, Debug, PartialEq)]
pub enum CompareJob {
    /// What FreeBSD's ministat prints.
    Ministat(MinistatJob),
    /// Runs compared inside of their blocks, with verdicts.
    Judge(VerdictJob),
}

impl CompareJob {
    /// How much it says.
    pub const fn verbosity(&self) -> Verbosity {
        match self {
            CompareJob::Ministat(job) => job.verbosity,
            CompareJob::Judge(job) => job.verbosity,
        }
    }
}

/// The classic form.
#[derive(Clone, Debug, PartialEq)]
pub struct MinistatJob {
    /// What is compared.
    pub sources: Sources,
    /// Of recordings: the metric as typed; none: the main one of their kind.
    pub metric: Option<String>,
    /// Of recordings: the statistic of each run as typed; none: the mean.
    pub statistic: Option<String>,
    /// Of Student's t.
    pub confidence: Confidence,
    /// Whether there is a plot.
    pub plot: bool,
    /// Whether there is a test.
    pub test: bool,
    /// Whether the groups are named and the figures have a heading.
    pub headed: bool,
    /// Whether each group's bar has a line of its own.
    pub separate_bars: bool,
    /// Characters between the borders of the plot; none: what the terminal takes.
    pub width: Option<usize>,
    /// How much to say on stderr.
    pub verbosity: Verbosity,
}

/// The form with verdicts. Metric, statistics and gates are as typed: the analysis reads them.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictJob {
    /// What is compared.
    pub sources: Sources,
    /// The metric; none: the main one of the recordings' kind.
    pub metric: Option<String>,
    /// The statistics; none typed: those of an experiment file, else mean, p50 and p99.
    pub statistics: Vec<String>,
    /// Of intervals and verdicts.
    pub confidence: Confidence,
    /// The margin within which a difference counts as none, as a share (or a difference of shares); none: no margin.
    pub equivalence: Option<f64>,
    /// What the answer holds for.
    pub over: OverWord,
    /// Whether to add the differences at the deciles and in the tails.
    pub shift: bool,
    /// Whether to say how each answer was found.
    pub explain: bool,
    /// The conditions of `--gate`.
    pub gates: Vec<String>,
    /// Whether an undecided gate fails.
    pub gate_strict: bool,
    /// The form of the table.
    pub format: FormatWord,
    /// One JSON document instead of a table.
    pub json: bool,
    /// How much to say on stderr.
    pub verbosity: Verbosity,
}

/// How often an interval made like this one covers the truth, in per cent: above 0, below 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence {
    percent: f64,
}

impl Confidence {
    /// In per cent: `95`.
    pub const fn percent(self) -> f64 {
        self.percent
    }

    /// As a share: `0.95`.
    pub fn share(self) -> f64 {
        self.percent / 100.0
    }
}

/// Settles `typed`.
pub fn compare(typed: &CompareArgs) -> Result<CompareJob, RequestError> {
    let sources = sources(&typed.grouping, &typed.paths)?;
    if typed.ministat.ministat {
        ministat(typed, sources).map(CompareJob::Ministat)
    } else {
        judge(typed, sources).map(CompareJob::Judge)
    }
}

fn ministat(typed: &CompareArgs, sources: Sources) -> Result<MinistatJob, RequestError> {
    ministat_alone(typed)?;
    let statistic = match typed.comparing.statistic.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => {
            let cause = "the ministat form shows one figure of each run";
            let hint = "name one, or leave `--ministat` out";
            return Err(value::unusable("--statistic", several.join(" "), cause, hint));
        }
    };
    let confidence = confidence(&typed.comparing)?;
    if !defaults::MINISTAT_CONFIDENCES.contains(&confidence.percent) {
        let known = defaults::MINISTAT_CONFIDENCES.map(|percent| percent.to_string()).join(", ");
        let (cause, hint) = ("ministat knows six levels", format!("one of {known}; without `--ministat` any"));
        return Err(value::unusable("--confidence", confidence.percent, cause, hint));
    }
    let MinistatArgs { no_plot, figures_only, separate_bars, .. } = typed.ministat;
    Ok(MinistatJob {
        sources,
        metric: typed.comparing.metric.clone(),
        statistic,
        confidence,
        plot: !no_plot && !figures_only,
        test: !figures_only,
        headed: !typed.verbosity.quiet,
        separate_bars,
        width: typed.ministat.width.as_deref().map(width).transpose()?,
        verbosity: verbosity(&typed.verbosity),
    })
}

fn judge(typed: &CompareArgs, sources: Sources) -> Result<VerdictJob, RequestError> {
    judge_alone(&typed.ministat)?;
    if sources.paths.is_empty() && !matches!(sources.grouping, Grouping::Globs(_)) {
        return Err(RequestError::Alone {
            option: "latlab compare",
            needed: "PATH",
            cause: "there is nothing to compare",
            hint: "name an experiment's directory, recordings or files of numbers, or give groups by `--group NAME=GLOB`",
        });
    }
    let ComparingArgs { metric, statistic, equivalence, over, gate, gate_strict, .. } = &typed.comparing;
    let unreadable = |source| value::unreadable("--equivalence", source);
    Ok(VerdictJob {
        sources,
        metric: metric.clone(),
        statistics: statistic.clone(),
        confidence: confidence(&typed.comparing)?,
        equivalence: equivalence.as_deref().map(human::parse_percent).transpose().map_err(unreadable)?,
        over: over.unwrap_or(OverWord::Blocks),
        shift: typed.showing.shift,
        explain: typed.showing.explain,
        gates: gate.clone(),
        gate_strict: *gate_strict,
        format: typed.showing.format.unwrap_or(FormatWord::Text),
        json: typed.json.json,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// What the ministat form has no place for.
fn ministat_alone(typed: &CompareArgs) -> Result<(), RequestError> {
    let comparing = &typed.comparing;
    let asked = [
        ("--equivalence", comparing.equivalence.is_some()),
        ("--over", comparing.over.is_some()),
        ("--gate", !comparing.gate.is_empty()),
        ("--shift", typed.showing.shift),
        ("--explain", typed.showing.explain),
        ("--format", typed.showing.format.is_some()),
        ("--json", typed.json.json),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((option, _)) => Err(RequestError::OutOfPlace {
            option,
            with: "--ministat".into(),
            cause: "the ministat form has no more than ministat has",
            hint: "leave one of them out",
        }),
    }
}

/// ministat's flags say nothing about the other form.
fn judge_alone(typed: &MinistatArgs) -> Result<(), RequestError> {
    let asked =
        [("-A", typed.no_plot), ("-n", typed.figures_only), ("-s", typed.separate_bars), ("-w", typed.width.is_some())];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((option, _)) => Err(RequestError::Alone {
            option,
            needed: "--ministat",
            cause: "it is one of ministat's flags",
            hint: "add `--ministat`, or leave it out",
        }),
    }
}

fn confidence(typed: &ComparingArgs) -> Result<Confidence, RequestError> {
    let Some(typed) = typed.confidence.as_deref() else {
        return Ok(Confidence { percent: defaults::CONFIDENCE_PERCENT });
    };
    let refuse =
        |cause: &str| value::unusable("--confidence", typed, cause, "per cent between 50 and 100: `95`, `99.5`");
    match typed.trim().trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (50.0..100.0).contains(&percent) => Ok(Confidence { percent }),
        Ok(percent) if percent.is_finite() => Err(refuse("it does not lie between 50 and 100")),
        _ => Err(refuse("it is no number")),
    }
}

fn width(typed: &str) -> Result<usize, RequestError> {
    value::whole("-w", typed, defaults::PLOT_WIDTHS).map(|width| width as usize)
}

/// Where observations come from, and which belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// As typed: a directory of an experiment, recordings, files of numbers; `-` is standard input. Empty where globs
    /// name the groups.
    pub paths: Vec<PathBuf>,
    /// Which belong together.
    pub grouping: Grouping,
    /// The name of the group that others are compared with, as typed; none: the first.
    pub baseline: Option<String>,
    /// Where the numbers stand in a file of numbers.
    pub column: TextColumn,
}

/// Which observations belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each path is a group; the runs of an experiment are grouped by their conditions.
    Paths,
    /// Recordings that have this factor in common, as typed: `load`, `tag:build` …
    By(String),
    /// Whatever a glob matches.
    Globs(Vec<NamedGlob>),
}

/// A group by `--group NAME=GLOB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGlob {
    /// Its name.
    pub name: String,
    /// The pattern of its paths.
    pub glob: String,
}

/// Settles where observations come from.
pub(super) fn sources(typed: &GroupingArgs, paths: &[PathBuf]) -> Result<Sources, RequestError> {
    once_from_stdin(paths)?;
    let baseline = typed.baseline.as_deref().map(|level| level.trim().to_owned());
    Ok(Sources { paths: paths.to_vec(), grouping: grouping(typed, paths)?, baseline, column: column(typed)? })
}

fn grouping(typed: &GroupingArgs, paths: &[PathBuf]) -> Result<Grouping, RequestError> {
    if let Some(factor) = &typed.by {
        return Ok(Grouping::By(factor.clone()));
    }
    if typed.group.is_empty() {
        return Ok(Grouping::Paths);
    }
    if let Some(path) = paths.first() {
        return Err(RequestError::OutOfPlace {
            option: "--group",
            with: path.display().to_string(),
            cause: "a group is what its glob matches; the path belongs to none",
            hint: "give it to a group, quoted so that the shell leaves it alone: `--group 'before=runs/*'`",
        });
    }
    typed.group.iter().map(|typed| named_glob(typed)).collect::<Result<_, _>>().map(Grouping::Globs)
}

fn named_glob(typed: &str) -> Result<NamedGlob, RequestError> {
    let refuse =
        |cause: &str| value::unusable("--group", typed, cause, "`NAME=GLOB`, such as `'before=runs/*-ping-*'`");
    let (name, glob) = typed.split_once('=').ok_or_else(|| refuse("it has no `=`"))?;
    match (name.trim(), glob) {
        ("", _) => Err(refuse("the group has no name")),
        (_, "") => Err(refuse("nothing says what belongs to it")),
        (name, glob) => Ok(NamedGlob { name: name.into(), glob: glob.into() }),
    }
}

fn column(typed: &GroupingArgs) -> Result<TextColumn, RequestError> {
    let number = match typed.column.as_deref() {
        None => 1,
        Some(typed) => value::whole("-C", typed, 1..=defaults::TEXT_COLUMN_MAX)? as usize,
    };
    let delimiters = match typed.delimiters.as_deref() {
        None => defaults::TEXT_DELIMITERS,
        Some("") => return Err(value::unusable("-d", "", "nothing would stand between columns", "such as `-d ,`")),
        Some(typed) => typed.as_bytes(),
    };
    Ok(TextColumn { number, delimiters: delimiters.to_vec() })
}

fn once_from_stdin(paths: &[PathBuf]) -> Result<(), RequestError> {
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        let cause = "standard input can be read once";
        return Err(value::unusable("PATH", "-", cause, "give it once"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::resolve::NamedGlob;

    fn settle(line: &str) -> Result<CompareJob, RequestError> {
        let typed = ["latlab", "compare"].into_iter().chain(line.split(' ').filter(|word| !word.is_empty()));
        match crate::cli::parse(typed.map(Into::into)).expect(line).command {
            Command::Compare(args) => compare(&args),
            other => panic!("{other:?}"),
        }
    }

    fn judged(line: &str) -> VerdictJob {
        match settle(line).expect(line) {
            CompareJob::Judge(job) => job,
            CompareJob::Ministat(job) => panic!("{job:?}"),
        }
    }

    fn classic(line: &str) -> MinistatJob {
        match settle(line).expect(line) {
            CompareJob::Ministat(job) => job,
            CompareJob::Judge(job) => panic!("{job:?}"),
        }
    }

    #[test]
    fn what_is_not_typed_has_its_default() {
        let job = judged("a b");
        assert_eq!(job.sources.paths, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(job.sources.grouping, Grouping::Paths);
        assert_eq!(job.sources.column, TextColumn { number: 1, delimiters: b" \t".to_vec() });
        assert_eq!((job.confidence.percent(), job.confidence.share()), (95.0, 0.95));
        assert_eq!((job.over, job.format, job.equivalence), (OverWord::Blocks, FormatWord::Text, None));
        let job = classic("--ministat");
        assert_eq!((job.plot, job.test, job.headed, job.separate_bars), (true, true, true, false));
        assert_eq!((job.width, job.statistic, job.sources.paths.len()), (None, None, 0));
    }

    #[test]
    fn flags_of_ministat_are_flags_of_ministat() {
        let job = classic("--ministat -A -s -q -w 60 -c 99.5 -C 2 -d , a");
        assert_eq!((job.plot, job.test, job.headed, job.separate_bars), (false, true, false, true));
        assert_eq!((job.width, job.confidence.percent(), job.verbosity), (Some(60), 99.5, Verbosity::Quiet));
        assert_eq!(job.sources.column, TextColumn { number: 2, delimiters: b",".to_vec() });
        let job = classic("--ministat -n a b");
        assert_eq!((job.plot, job.test, job.headed), (false, false, true));
    }

    #[test]
    fn groups_have_names_and_patterns() {
        let named = |name: &str, glob: &str| NamedGlob { name: name.into(), glob: glob.into() };
        let job = judged("--group before=runs/a* --group after=runs/b=*");
        let groups = vec![named("before", "runs/a*"), named("after", "runs/b=*")];
        assert_eq!(job.sources.grouping, Grouping::Globs(groups));
        assert_eq!(judged("--by tag:build a").sources.grouping, Grouping::By("tag:build".into()));
        assert_eq!(judged("a --equivalence 3%").equivalence, Some(0.03));
        assert_eq!(judged("a -c 99%").confidence.percent(), 99.0);
    }

    #[test]
    fn contradictions_are_refused_with_the_value_and_a_way_out() {
        for (line, value) in [
            ("", "latlab compare"),
            ("a - -", "`-`"),
            ("a -A", "`-A`"),
            ("a -s", "`-s`"),
            ("a -n", "`-n`"),
            ("a -w 60", "`-w`"),
            ("a --group before=x", "`--group`"),
            ("--group before", "`before`"),
            ("--group =x", "`=x`"),
            ("--group before=", "`before=`"),
            ("a -C 0", "`0`"),
            ("a -C x", "`x`"),
            ("a -c 100", "`100`"),
            ("a -c NaN", "`NaN`"),
            ("a -c 0.95", "`0.95`"),
            ("a -c -5", "`-5`"),
            ("a --equivalence 3us", "`3us`"),
            ("a --ministat -c 97", "`97`"),
            ("a --ministat -w 1", "`1`"),
            ("a --ministat -w 10001", "`10001`"),
            ("a --ministat --json", "`--json`"),
            ("a --ministat --shift", "`--shift`"),
            ("a --ministat --gate p99<=+5%", "`--gate`"),
            ("a --ministat --statistic p50 --statistic p99", "`p50 p99`"),
        ] {
            let error = settle(line).expect_err(line);
            assert!(error.to_string().contains(value), "{line}: {error}");
            assert!(error.hint().is_some() && error.exit_code() == 2, "{line}: {error:?}");
        }
        let typed = ["latlab", "compare", "a", "-d", ""].into_iter().map(Into::into);
        let Command::Compare(args) = crate::cli::parse(typed).expect("readable").command else { panic!("not compare") };
        assert!(compare(&args).is_err_and(|error| error.to_string().contains("`-d`")));
    }
}
