//! `latlab compare`: compares groups of runs or of numbers, or prints them in the ministat form (`--ministat`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::observation_groups::{self, FoundRecordings, PathGroup, settle_directory};
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, Look, NumberFiles, QuestionScope, RunFigure, RunGroup, compare,
    default_estimands, independence_caveat, missing_runs, parse_estimand,
};
use crate::analysis::experiment::add_contrasts;
use crate::analysis::{
    ChangeGate, ChangeGateResult, Estimand, MetricHistogram, UndecidedGate, change_gates_outcome, expect_few_gates,
    undecided_gates,
};
use crate::cli::args::{CompareArgs, ComparingArgs, FormatWord, MinistatArgs, OverWord};
use crate::cli::resolve::{Grouping, Sources, expect_ministat, sources};
use crate::cli::value::out_of_place;
use crate::console::Console;
use crate::diagnostics::{Failure, Severity};
use crate::experiment::{is_experiment, read_state};
use crate::formats::numbers::STDIN;
use crate::metric::Metric;
use crate::plan::Contrast;
use crate::plan::defaults::{MINISTAT_GROUPS_MAX, MINISTAT_VALUES_MIN};
use crate::recording::Recording;
use crate::report::comparison::{self, Companions};
use crate::report::ministat::{MinistatForm, MinistatGroup, render};
use crate::report::{markdown, text};
use crate::stats::Outline;

pub(super) struct CompareJob<'a> {
    pub(super) sources: Sources,
    pub(super) comparing: &'a ComparingArgs,
    /// Whether the differences at the deciles and in the tails are added.
    pub(super) shift: bool,
}

impl CompareJob<'_> {
    fn confidence(&self) -> f64 {
        self.comparing.confidence.unwrap_or_default().share()
    }
}

pub(super) fn run(typed: &CompareArgs, console: &Console) -> Result<Outcome, Failure> {
    let sources = sources(&typed.grouping, &typed.column, &typed.paths)?;
    if typed.ministat.ministat {
        expect_ministat(&typed.comparing)?;
        return ministat(typed, &sources, console);
    }
    let job = CompareJob { sources, comparing: &typed.comparing, shift: typed.showing.shift };
    with_verdicts(&job, typed, console)
}

fn with_verdicts(job: &CompareJob<'_>, typed: &CompareArgs, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = observation_groups::path_groups(&job.sources)?;
    let (gates, request, runs, look) = if observation_groups::are_numbers(&paths)? {
        // Before a gate is parsed: an unknown statistic would be answered with one that runs have.
        let request = request_of_numbers(job)?;
        let gates = gates(job, None)?;
        observation_groups::once_each(&mut paths, console)?;
        (gates, request, observation_groups::of_numbers(&paths, &job.sources, typed.lines)?, Look::FIRST)
    } else {
        if typed.lines.is_some() {
            return Err(out_of_place("--lines", "recordings", "it says what the lines of a file are", "leave it out"));
        }
        let found = observation_groups::find(&paths, job.sources.kind, console)?;
        let metric = job.comparing.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
        let gates = gates(job, metric)?;
        let request = request_of_recordings(job, metric, &gates)?;
        let look = strictest_look(&found.experiments, job.confidence());
        let runs = observation_groups::of_recordings(found, &job.sources, &request.estimands(), console)?;
        (gates, request, runs, look)
    };
    gates.iter().try_for_each(|gate| gate.expect_judgeable(&runs))?;
    let comparisons = compare(runs, &request, &options(job, look))?;
    let gated: Vec<ChangeGateResult> = gates.iter().flat_map(|gate| gate.judge(&comparisons)).collect();
    show(typed, &comparisons, &gated, console)?;
    if typed.plots.plot {
        let distributions = distributions(&comparisons)?;
        console.plots(&comparison::plots(&comparisons, &distributions, console.data_style()), typed.plots.ascii)?;
    }
    warn_of_undecided_changes(&gated, console);
    Ok(change_gates_outcome(&gated, typed.comparing.gate_strict))
}

pub(super) fn warn_of_undecided_changes(gated: &[ChangeGateResult], console: &Console) {
    for UndecidedGate { gate, hint } in undecided_gates(gated) {
        console.warning(&format!("the gate `{gate}` is undecided"), Some(hint));
    }
}

/// The comparisons of the recordings `found` that `job` asks for; its gates are left out.
pub(super) fn of_recordings(
    job: &CompareJob<'_>,
    found: FoundRecordings,
    console: &Console,
) -> Result<Comparisons, Failure> {
    let metric = job.comparing.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
    let request = request_of_recordings(job, metric, &[])?;
    let look = strictest_look(&found.experiments, job.confidence());
    let runs = observation_groups::of_recordings(found, &job.sources, &request.estimands(), console)?;
    Ok(compare(runs, &request, &options(job, look))?)
}

fn options(job: &CompareJob<'_>, look: Look) -> ComparisonOptions {
    let options = ComparisonOptions { scope: over(job), ..ComparisonOptions::at(job.confidence()) };
    options.paying_for(look)
}

fn gates(job: &CompareJob<'_>, metric: Option<&str>) -> Result<Vec<ChangeGate>, Failure> {
    expect_few_gates(&job.comparing.gate)?;
    Ok(job.comparing.gate.iter().map(|text| ChangeGate::parse(text, metric)).collect::<Result<_, _>>()?)
}

/// The look with the lowest level at any of the `experiments`.
fn strictest_look(experiments: &BTreeSet<PathBuf>, confidence: f64) -> Look {
    let look = |directory: &PathBuf| {
        let declared = settle_directory(directory).ok().and_then(|job| job.experiment.design.looks);
        Some(read_state(directory).ok()?.look(declared))
    };
    let level = |look: &Look| look.level(1.0 - confidence);
    let looks = experiments.iter().filter_map(look);
    looks.min_by(|one, other| level(one).total_cmp(&level(other))).unwrap_or(Look::FIRST)
}

fn over(job: &CompareJob<'_>) -> QuestionScope {
    match job.comparing.over.unwrap_or_default() {
        OverWord::Blocks => QuestionScope::Blocks,
        OverWord::Boots => QuestionScope::Boots,
    }
}

/// Prints the comparisons as JSON, text, Markdown or CSV.
fn show(
    typed: &CompareArgs,
    comparisons: &Comparisons,
    gated: &[ChangeGateResult],
    console: &Console,
) -> Result<(), Failure> {
    let (json, format) = (typed.json.json, typed.showing.format.unwrap_or_default());
    if json || format == FormatWord::Csv {
        let serious = comparisons.caveats.iter().filter(|caveat| caveat.severity > Severity::Note);
        serious.for_each(|caveat| console.caveat(caveat));
    }
    let parts = || comparison::parts(comparisons, gated, typed.showing.explain);
    let style = console.data_style();
    match format {
        _ if json => console.document(&comparison::json(comparisons, gated, Companions::default())),
        FormatWord::Text => console.data(&text::render(&parts(), style)),
        FormatWord::Markdown => console.data(&markdown::render(&parts())),
        FormatWord::Csv => console.values(&comparison::csv(comparisons)),
    }
}

/// The singletons of all runs of each group; empty for groups of numbers.
fn distributions(comparisons: &Comparisons) -> Result<Vec<MetricHistogram>, Failure> {
    let Some(metric) = comparisons.distributed_metric() else { return Ok(Vec::new()) };
    let of_group = |group: &RunGroup| {
        let mut all = MetricHistogram::default();
        for run in &group.runs {
            all.add(&MetricHistogram::of(&Recording::open(Path::new(&run.name))?, metric)?);
        }
        Ok(all)
    };
    comparisons.groups.groups.iter().map(of_group).collect()
}

/// The request for recordings: statistics that were typed or that an experiment's file names, those of gates, and the
/// shift table.
fn request_of_recordings(
    job: &CompareJob<'_>,
    asked: Option<&str>,
    gates: &[ChangeGate],
) -> Result<ComparisonRequest, Failure> {
    let metric = match asked {
        None => Metric::RoundTripDelay,
        Some(name) => match parse_estimand(Some(name), "mean")? {
            Estimand::Statistic(metric, _) => metric,
            Estimand::Ratio(_) => Metric::RoundTripDelay,
        },
    };
    let mut request = ComparisonRequest::default();
    let named = job.comparing.statistic.iter().map(|statistic| parse_estimand(asked, statistic));
    let mut estimands = named.collect::<Result<Vec<_>, _>>()?;
    match contrasts_of_file(job)? {
        Some(contrasts) => add_contrasts(&mut request, &contrasts, job.comparing.equivalence)?,
        None if estimands.is_empty() => estimands = default_estimands(metric),
        None => {}
    }
    estimands.into_iter().for_each(|estimand| request.ask(estimand, None, job.comparing.equivalence));
    for gate in gates {
        request.include(gate.estimand().ok_or_else(gate_on_value)?);
    }
    if job.shift {
        request.shift(metric);
    }
    Ok(request)
}

/// The refusal of a gate on `value` where recordings are compared.
fn gate_on_value() -> Failure {
    let cause = "`value` is for files of numbers; a run has statistics";
    out_of_place("--gate value", "recordings", cause, "name one of these, such as `--gate 'p99 <= +5%'`")
}

/// The contrasts of an experiment's file, if its directory is all that was typed.
fn contrasts_of_file(job: &CompareJob<'_>) -> Result<Option<Vec<Contrast>>, Failure> {
    match (job.sources.paths.as_slice(), &job.sources.grouping) {
        ([path], Grouping::Paths) if job.comparing.statistic.is_empty() && job.comparing.metric.is_none() => {
            let directory = observation_groups::located(path)?;
            let job = is_experiment(&directory).then(|| settle_directory(&directory)).transpose()?;
            Ok(job.map(|job| job.experiment.contrasts))
        }
        _ => Ok(None),
    }
}

fn request_of_numbers(job: &CompareJob<'_>) -> Result<ComparisonRequest, Failure> {
    job.comparing.gate.iter().try_for_each(|gate| ChangeGate::expect_value(gate))?;
    expect_numbers(job.comparing, &job.sources, job.shift)?;
    Ok(ComparisonRequest::of_values(job.comparing.equivalence))
}

/// Refuses options about statistics where files of numbers are compared, which have values only.
fn expect_numbers(comparing: &ComparingArgs, sources: &Sources, shift: bool) -> Result<(), Failure> {
    let asked = [
        ("--statistic", !comparing.statistic.is_empty()),
        ("--metric", comparing.metric.is_some()),
        ("--shift", shift),
        ("--by", matches!(sources.grouping, Grouping::By(_))),
        ("--kind", sources.kind.is_some()),
    ];
    let Some((option, _)) = asked.into_iter().find(|(_, asked)| *asked) else { return Ok(()) };
    let hint = if option == "--by" {
        "leave it out: each file is a group"
    } else {
        "leave it out: the values themselves are compared"
    };
    let cause = "each line is one observation: only its value is known";
    Err(out_of_place(option, "files of numbers", cause, hint))
}

fn ministat(typed: &CompareArgs, sources: &Sources, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = observation_groups::path_groups(sources)?;
    if paths.is_empty() {
        paths.push(PathGroup { name: STDIN.into(), members: vec!["-".into()] });
    }
    let groups = observations(&typed.comparing, sources, &mut paths, console)?;
    if groups.len() > MINISTAT_GROUPS_MAX {
        return Err(Failure::request(format!("{} groups are too many for the ministat form", groups.len()))
            .because(format!("it has {MINISTAT_GROUPS_MAX} symbols"))
            .hint("leave `--ministat` out, or compare fewer at a time"));
    }
    let groups =
        groups.into_iter().map(|(name, observations)| outlined(name, observations)).collect::<Result<Vec<_>, _>>()?;
    let MinistatArgs { ministat: _, no_plot, figures_only, separate_bars, width } = typed.ministat;
    let form = MinistatForm {
        plot_width: (!no_plot && !figures_only).then(|| width.unwrap_or_else(|| console.plot_width())),
        separate_bars,
        headed: !typed.verbosity.quiet,
        tested_at: (!figures_only).then(|| typed.comparing.confidence.unwrap_or_default().percent()),
    };
    console.data(&render(&groups, form))?;
    Ok(Outcome::Done)
}

/// Name and observations of each group: lines of files, or a figure of each run.
fn observations(
    comparing: &ComparingArgs,
    sources: &Sources,
    paths: &mut [PathGroup],
    console: &Console,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    if observation_groups::are_numbers(paths)? {
        expect_numbers(comparing, sources, false)?;
        observation_groups::once_each(paths, console)?;
        let groups = observation_groups::all_numbers(paths, &sources.column)?;
        independence_caveat(&groups).iter().for_each(|caveat| console.caveat(caveat));
        let all = |group: NumberFiles| (group.name, group.files.into_iter().flat_map(|(_, values)| values).collect());
        return Ok(groups.into_iter().map(all).collect());
    }
    let found = observation_groups::find(paths, sources.kind, console)?;
    let metric = comparing.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
    let statistic = comparing.statistic.first().map(String::as_str).unwrap_or("mean");
    let estimand = parse_estimand(metric, statistic)?;
    let groups = observation_groups::of_recordings(found, sources, &[estimand], console)?;
    let caveats = [missing_runs(&groups.missing), groups.exclusion_caveat()];
    caveats.iter().flatten().for_each(|caveat| console.caveat(caveat));
    if let Some(run) = groups.groups.iter().flat_map(|group| &group.runs).find(|run| run.figures[0].value().is_none()) {
        let cause = match run.figures[0] {
            RunFigure::Infinite => "it is infinite: too many probes were not answered",
            _ => "there are no values to compute it from",
        };
        return Err(Failure::request(format!("`{}` has no {statistic} that can be compared", run.name))
            .because(cause)
            .hint("leave it out, or compare another `--statistic`, such as `loss_ratio` or a lower quantile"));
    }
    Ok(groups.groups.iter().map(|group| (group.words(), group.values(0))).collect())
}

fn outlined(name: String, mut observations: Vec<f64>) -> Result<MinistatGroup, Failure> {
    match Outline::of(&mut observations) {
        Some(outline) if observations.len() >= MINISTAT_VALUES_MIN => Ok(MinistatGroup { name, observations, outline }),
        _ => Err(Failure::request(format!("the group `{name}` is too small for the ministat form"))
            .because(format!("it has {} observations, and needs {MINISTAT_VALUES_MIN}", observations.len()))
            .hint(
                "for a file, check the column (`-C N`); of recordings each run is one observation (`--by`, `--group`)",
            )),
    }
}
