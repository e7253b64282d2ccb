//! Resolution of `latlab compare`: sources of observations, grouping and test parameters.

use std::path::PathBuf;

use super::environment::verbosity;
use super::{RequestError, value};
use crate::cli::args::{
    ColumnArgs, CompareArgs, ComparingArgs, FormatWord, GroupingArgs, MinistatArgs, OverWord, PlotArgs,
};
use crate::console::Verbosity;
use crate::formats::numbers::TextColumn;
use crate::plan::{Kind, defaults};
use crate::units::human;

#[derive(Clone, Debug, PartialEq)]
pub enum CompareJob {
    /// Output in the form of FreeBSD's ministat.
    Ministat(MinistatJob),
    /// Comparison of runs within blocks, with verdicts.
    Judge(VerdictJob),
}

impl CompareJob {
    pub const fn verbosity(&self) -> Verbosity {
        match self {
            CompareJob::Ministat(job) => job.verbosity,
            CompareJob::Judge(job) => job.verbosity,
        }
    }
}

/// Comparison in the form of ministat.
#[derive(Clone, Debug, PartialEq)]
pub struct MinistatJob {
    /// Sources and groups of the observations.
    pub sources: Sources,
    /// Metric of recordings as typed; `None` selects the main metric of their kind.
    pub metric: Option<String>,
    /// Statistic of each recording as typed; `None` selects the mean.
    pub statistic: Option<String>,
    /// Confidence level of Student's t test.
    pub confidence: Confidence,
    /// True if the plot is printed.
    pub plot: bool,
    /// True if the groups are tested against the first.
    pub test: bool,
    /// True if group names and the table heading are printed.
    pub headed: bool,
    /// True if each group's bar is on a separate line.
    pub separate_bars: bool,
    /// Width of the plot between its borders in characters; `None` selects the terminal's width.
    pub width: Option<usize>,
    pub verbosity: Verbosity,
}

/// Comparison with verdicts. Metric, statistics and gates are kept as typed; the analysis parses them.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictJob {
    /// Sources and groups of the observations.
    pub sources: Sources,
    /// Metric; `None` selects the main metric of the recordings' kind.
    pub metric: Option<String>,
    /// Statistics; if empty, those of the experiment file, else mean, p50 and p99.
    pub statistics: Vec<String>,
    /// Confidence level of intervals and verdicts.
    pub confidence: Confidence,
    /// Equivalence margin as a ratio (or a difference of ratios); `None` for no margin.
    pub equivalence: Option<f64>,
    /// Population to which the inference applies.
    pub over: OverWord,
    /// True to add the differences at the deciles and in the tails.
    pub shift: bool,
    /// True to explain the method of each verdict.
    pub explain: bool,
    /// The plots below the table.
    pub plots: PlotArgs,
    pub gates: Vec<String>,
    /// True if an undecided gate fails.
    pub gate_strict: bool,
    /// Output format of the table.
    pub format: FormatWord,
    /// True for one JSON document instead of a table.
    pub json: bool,
    pub verbosity: Verbosity,
}

impl VerdictJob {
    /// A comparison with the differences along the distribution, and with every other option at its default.
    pub fn usual(sources: Sources, metric: Option<String>, verbosity: Verbosity) -> VerdictJob {
        VerdictJob {
            sources,
            metric,
            statistics: Vec::new(),
            confidence: Confidence::USUAL,
            equivalence: None,
            over: OverWord::Blocks,
            shift: true,
            explain: false,
            gates: Vec::new(),
            gate_strict: false,
            format: FormatWord::Text,
            plots: PlotArgs::default(),
            json: false,
            verbosity,
        }
    }
}

/// Confidence level in per cent, from 50 to below 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence {
    percent: f64,
}

impl Confidence {
    /// The default of intervals and tests.
    pub const USUAL: Confidence = Confidence { percent: defaults::CONFIDENCE_PERCENT };

    /// Confidence level in per cent, such as `95`.
    pub const fn percent(self) -> f64 {
        self.percent
    }

    /// Confidence level as a ratio, such as `0.95`.
    pub fn share(self) -> f64 {
        self.percent / 100.0
    }
}

/// Resolves the arguments and checks them against each other.
pub fn compare(typed: &CompareArgs) -> Result<CompareJob, RequestError> {
    let sources = sources(&typed.grouping, &typed.column, &typed.paths)?;
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
    if let Some(format) = typed.showing.format.filter(|format| typed.plots.plot && *format != FormatWord::Text) {
        return Err(RequestError::OutOfPlace {
            option: "--plot",
            with: format!("--format {}", if format == FormatWord::Csv { "csv" } else { "markdown" }),
            cause: "the plots are for a terminal",
            hint: "leave one of them out",
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
        plots: typed.plots,
        gates: gate.clone(),
        gate_strict: *gate_strict,
        format: typed.showing.format.unwrap_or(FormatWord::Text),
        json: typed.json.json,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// Refuses options that require the form with verdicts.
fn ministat_alone(typed: &CompareArgs) -> Result<(), RequestError> {
    let comparing = &typed.comparing;
    let given = [
        ("--equivalence", comparing.equivalence.is_some()),
        ("--over", comparing.over.is_some()),
        ("--gate", !comparing.gate.is_empty()),
        ("--shift", typed.showing.shift),
        ("--explain", typed.showing.explain),
        ("--plot", typed.plots.plot),
        ("--format", typed.showing.format.is_some()),
        ("--json", typed.json.json),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(RequestError::OutOfPlace {
            option,
            with: "--ministat".into(),
            cause: "the ministat form has only the options of ministat",
            hint: "leave one of them out",
        }),
    }
}

/// Refuses options that require the form of ministat.
fn judge_alone(typed: &MinistatArgs) -> Result<(), RequestError> {
    let given =
        [("-A", typed.no_plot), ("-n", typed.figures_only), ("-s", typed.separate_bars), ("-w", typed.width.is_some())];
    match given.into_iter().find(|(_, given)| *given) {
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
        return Ok(Confidence::USUAL);
    };
    let refuse =
        |cause: &str| value::unusable("--confidence", typed, cause, "per cent between 50 and 100: `95`, `99.5`");
    match typed.trim().trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (50.0..100.0).contains(&percent) => Ok(Confidence { percent }),
        Ok(percent) if percent.is_finite() => Err(refuse("it does not lie between 50 and 100")),
        _ => Err(refuse("it is not a number")),
    }
}

fn width(typed: &str) -> Result<usize, RequestError> {
    value::whole("-w", typed, defaults::PLOT_WIDTHS).map(|width| width as usize)
}

/// Sources and grouping of observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Experiment directories, recordings or files of numbers as typed; `-` is standard input. Empty if
    /// `grouping` is by globs.
    pub paths: Vec<PathBuf>,
    /// Assignment of observations to groups.
    pub grouping: Grouping,
    /// Name of the baseline group as typed; `None` selects the first group.
    pub baseline: Option<String>,
    /// Kind of the recordings that are compared; `None` for all.
    pub kind: Option<Kind>,
    /// Column of the values in a file of numbers.
    pub column: TextColumn,
}

/// Rule by which observations are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// One group for each path; runs of an experiment are grouped by condition.
    Paths,
    /// One group for each level of this factor of the recordings, as typed: `load`, `tag:build` …
    By(String),
    /// One group for each named glob.
    Globs(Vec<NamedGlob>),
}

/// A group of `--group NAME=GLOB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGlob {
    pub name: String,
    /// Pattern of the paths in the group.
    pub glob: String,
}

/// The sources of recordings or of numbers.
pub(super) fn sources(
    typed: &GroupingArgs,
    typed_column: &ColumnArgs,
    paths: &[PathBuf],
) -> Result<Sources, RequestError> {
    once_from_stdin(paths)?;
    let baseline = typed.baseline.as_deref().map(|level| level.trim().to_owned());
    let (grouping, column) = (grouping(typed, paths)?, column(typed_column)?);
    Ok(Sources { paths: paths.to_vec(), grouping, baseline, kind: typed.kind, column })
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
            cause: "with `--group` each path must belong to a group",
            hint: "put it into a group, in quotes: `--group 'before=runs/*'`",
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
        (_, "") => Err(refuse("the pattern of the group is missing")),
        (name, glob) => Ok(NamedGlob { name: name.into(), glob: glob.into() }),
    }
}

fn column(typed: &ColumnArgs) -> Result<TextColumn, RequestError> {
    let number = match typed.column.as_deref() {
        None => 1,
        Some(typed) => value::whole("-C", typed, 1..=defaults::TEXT_COLUMN_MAX)? as usize,
    };
    let delimiters = match typed.delimiters.as_deref() {
        None => defaults::TEXT_DELIMITERS,
        Some("") => {
            return Err(value::unusable("-d", "", "there would be no separator between columns", "such as `-d ,`"));
        }
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
    use crate::diagnostics::Explain;

    fn resolve(line: &str) -> Result<CompareJob, RequestError> {
        let typed = ["latlab", "compare"].into_iter().chain(line.split(' ').filter(|word| !word.is_empty()));
        match crate::cli::parse(typed.map(Into::into)).expect(line).command {
            Command::Compare(args) => compare(&args),
            other => panic!("{other:?}"),
        }
    }

    fn judged(line: &str) -> VerdictJob {
        match resolve(line).expect(line) {
            CompareJob::Judge(job) => job,
            CompareJob::Ministat(job) => panic!("{job:?}"),
        }
    }

    fn classic(line: &str) -> MinistatJob {
        match resolve(line).expect(line) {
            CompareJob::Ministat(job) => job,
            CompareJob::Judge(job) => panic!("{job:?}"),
        }
    }

    #[test]
    fn omitted_options_have_their_defaults() {
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
    fn flags_of_ministat_keep_their_meaning() {
        let job = classic("--ministat -A -s -q -w 60 -c 99.5 -C 2 -d , a");
        assert_eq!((job.plot, job.test, job.headed, job.separate_bars), (false, true, false, true));
        assert_eq!((job.width, job.confidence.percent(), job.verbosity), (Some(60), 99.5, Verbosity::Quiet));
        assert_eq!(job.sources.column, TextColumn { number: 2, delimiters: b",".to_vec() });
        let job = classic("--ministat -n a b");
        assert_eq!((job.plot, job.test, job.headed), (false, false, true));
    }

    #[test]
    fn named_groups_have_a_glob() {
        let named = |name: &str, glob: &str| NamedGlob { name: name.into(), glob: glob.into() };
        let job = judged("--group before=runs/a* --group after=runs/b=*");
        let groups = vec![named("before", "runs/a*"), named("after", "runs/b=*")];
        assert_eq!(job.sources.grouping, Grouping::Globs(groups));
        assert_eq!(judged("--by tag:build a").sources.grouping, Grouping::By("tag:build".into()));
        assert_eq!(judged("a --equivalence 3%").equivalence, Some(0.03));
        assert_eq!(judged("a -c 99%").confidence.percent(), 99.0);
    }

    #[test]
    fn contradictions_are_refused_with_the_value_and_a_hint() {
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
            let error = resolve(line).expect_err(line);
            assert!(error.to_string().contains(value), "{line}: {error}");
            assert!(error.explain().hint.is_some() && error.explain().exit_code == 2, "{line}: {error:?}");
        }
        let typed = ["latlab", "compare", "a", "-d", ""].into_iter().map(Into::into);
        let Command::Compare(args) = crate::cli::parse(typed).expect("readable").command else { panic!("not compare") };
        assert!(compare(&args).is_err_and(|error| error.to_string().contains("`-d`")));
    }
}
