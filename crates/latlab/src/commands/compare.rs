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
use crate::cli::args::{FormatWord, OverWord};
use crate::cli::resolve::{CompareJob, Grouping, MinistatJob, RequestError, VerdictJob};
use crate::console::Console;
use crate::diagnostics::{Failure, Severity};
use crate::experiment::{is_experiment, read_state};
use crate::formats::numbers::STDIN;
use crate::metric::Metric;
use crate::plan::Contrast;
use crate::plan::defaults::{MINISTAT_GROUPS_MAX, MINISTAT_VALUES_MIN};
use crate::recording::Recording;
use crate::report::comparison::{self, Companions, ComparisonShowing, ComparisonView};
use crate::report::ministat::{MinistatForm, MinistatGroup, render};
use crate::stats::Outline;

pub(super) fn run(job: &CompareJob, console: &Console) -> Result<Outcome, Failure> {
    match job {
        CompareJob::Ministat(job) => ministat(job, console),
        CompareJob::Judge(job) => with_verdicts(job, console),
    }
}

fn with_verdicts(job: &VerdictJob, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = observation_groups::path_groups(&job.sources)?;
    let (gates, request, runs, look) = if observation_groups::are_numbers(&paths)? {
        // Before a gate is parsed: an unknown statistic would be answered with one that runs have.
        let request = request_of_numbers(job)?;
        let gates = gates(job, None)?;
        observation_groups::once_each(&mut paths, console)?;
        (gates, request, observation_groups::of_numbers(&paths, &job.sources)?, Look::FIRST)
    } else {
        let found = observation_groups::find(&paths, job.sources.kind, console)?;
        let metric = job.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
        let gates = gates(job, metric)?;
        let request = request_of_recordings(job, metric, &gates)?;
        let look = strictest_look(&found.experiments, job.confidence.share());
        let runs = observation_groups::of_recordings(found, &job.sources, &request.estimands(), console)?;
        (gates, request, runs, look)
    };
    gates.iter().try_for_each(|gate| gate.expect_judgeable(&runs))?;
    let comparisons = compare(runs, &request, &options(job, look))?;
    let gated: Vec<ChangeGateResult> = gates.iter().flat_map(|gate| gate.judge(&comparisons)).collect();
    show(job, &comparisons, &gated, console)?;
    if job.plots.plot {
        let distributions = distributions(&comparisons)?;
        console.plots(&comparison::plots(&comparisons, &distributions, console.data_style()), job.plots.ascii)?;
    }
    for UndecidedGate { gate, hint } in undecided_gates(&gated) {
        console.warning(&format!("the gate `{gate}` is undecided"), Some(hint));
    }
    Ok(change_gates_outcome(&gated, job.gate_strict))
}

/// The comparisons of the recordings `found` that `job` asks for; its gates are left out.
pub(super) fn of_recordings(
    job: &VerdictJob,
    found: FoundRecordings,
    console: &Console,
) -> Result<Comparisons, Failure> {
    let metric = job.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
    let request = request_of_recordings(job, metric, &[])?;
    let look = strictest_look(&found.experiments, job.confidence.share());
    let runs = observation_groups::of_recordings(found, &job.sources, &request.estimands(), console)?;
    Ok(compare(runs, &request, &options(job, look))?)
}

fn options(job: &VerdictJob, look: Look) -> ComparisonOptions {
    let options = ComparisonOptions { scope: over(job), ..ComparisonOptions::at(job.confidence.share()) };
    options.paying_for(look)
}

fn gates(job: &VerdictJob, metric: Option<&str>) -> Result<Vec<ChangeGate>, Failure> {
    expect_few_gates(&job.gates)?;
    Ok(job.gates.iter().map(|text| ChangeGate::parse(text, metric)).collect::<Result<_, _>>()?)
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

fn over(job: &VerdictJob) -> QuestionScope {
    match job.over {
        OverWord::Blocks => QuestionScope::Blocks,
        OverWord::Boots => QuestionScope::Boots,
    }
}

/// Prints the comparisons as JSON, text, Markdown or CSV.
fn show(
    job: &VerdictJob,
    comparisons: &Comparisons,
    gated: &[ChangeGateResult],
    console: &Console,
) -> Result<(), Failure> {
    if job.json || job.format == FormatWord::Csv {
        let serious = comparisons.caveats.iter().filter(|caveat| caveat.severity > Severity::Note);
        serious.for_each(|caveat| console.caveat(caveat));
    }
    let view = || ComparisonView::of(comparisons, gated, ComparisonShowing { explain: job.explain });
    let style = console.data_style();
    match job.format {
        _ if job.json => console.document(&comparison::json(comparisons, gated, Companions::default())),
        FormatWord::Text => console.data(&comparison::text(&view(), style)),
        FormatWord::Markdown => console.data(&comparison::markdown(&view())),
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
    job: &VerdictJob,
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
    let named = job.statistics.iter().map(|statistic| parse_estimand(asked, statistic));
    let mut estimands = named.collect::<Result<Vec<_>, _>>()?;
    match contrasts_of_file(job)? {
        Some(contrasts) => add_contrasts(&mut request, &contrasts, job.equivalence)?,
        None if estimands.is_empty() => estimands = default_estimands(metric),
        None => {}
    }
    estimands.into_iter().for_each(|estimand| request.ask(estimand, None, job.equivalence));
    for gate in gates {
        request.include(gate.estimand().ok_or_else(gate_on_value)?);
    }
    if job.shift {
        request.shift(metric);
    }
    Ok(request)
}

/// The refusal of a gate on `value` where recordings are compared.
fn gate_on_value() -> RequestError {
    RequestError::OutOfPlace {
        option: "--gate value",
        with: "recordings".into(),
        cause: "`value` is for files of numbers; a run has statistics",
        hint: "name one of these, such as `--gate 'p99 <= +5%'`",
    }
}

/// The contrasts of an experiment's file, if its directory is all that was typed.
fn contrasts_of_file(job: &VerdictJob) -> Result<Option<Vec<Contrast>>, Failure> {
    match (job.sources.paths.as_slice(), &job.sources.grouping) {
        ([path], Grouping::Paths) if job.statistics.is_empty() && job.metric.is_none() => {
            let directory = observation_groups::located(path)?;
            let job = is_experiment(&directory).then(|| settle_directory(&directory)).transpose()?;
            Ok(job.map(|job| job.experiment.contrasts))
        }
        _ => Ok(None),
    }
}

/// The request for files of numbers, which have values only: options about statistics are refused.
fn request_of_numbers(job: &VerdictJob) -> Result<ComparisonRequest, Failure> {
    let asked = [
        ("--statistic", !job.statistics.is_empty()),
        ("--metric", job.metric.is_some()),
        ("--shift", job.shift),
        ("--by", matches!(job.sources.grouping, Grouping::By(_))),
        ("--kind", job.sources.kind.is_some()),
    ];
    job.gates.iter().try_for_each(|gate| ChangeGate::expect_value(gate))?;
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(ComparisonRequest::of_values(job.equivalence)),
        Some((option, _)) => Err(RequestError::OutOfPlace {
            option,
            with: "files of numbers".into(),
            cause: "each line is one observation: only its value is known",
            hint: match option {
                "--by" => "leave it out: each file is a group",
                _ => "leave it out: the values themselves are compared",
            },
        }
        .into()),
    }
}

fn ministat(job: &MinistatJob, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = observation_groups::path_groups(&job.sources)?;
    if paths.is_empty() {
        paths.push(PathGroup { name: STDIN.into(), members: vec!["-".into()] });
    }
    let groups = observations(job, &mut paths, console)?;
    if groups.len() > MINISTAT_GROUPS_MAX {
        return Err(Failure::request(format!("{} groups are too many for the ministat form", groups.len()))
            .because(format!("it has {MINISTAT_GROUPS_MAX} symbols"))
            .hint("leave `--ministat` out, or compare fewer at a time"));
    }
    let groups =
        groups.into_iter().map(|(name, observations)| outlined(name, observations)).collect::<Result<Vec<_>, _>>()?;
    let form = MinistatForm {
        plot_width: job.plot.then(|| job.width.unwrap_or_else(|| console.plot_width())),
        separate_bars: job.separate_bars,
        headed: job.headed,
        tested_at: job.test.then(|| job.confidence.percent()),
    };
    console.data(&render(&groups, form))?;
    Ok(Outcome::Done)
}

/// Name and observations of each group: lines of files, or a figure of each run.
fn observations(
    job: &MinistatJob,
    paths: &mut [PathGroup],
    console: &Console,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    if observation_groups::are_numbers(paths)? {
        numbers_alone(job)?;
        observation_groups::once_each(paths, console)?;
        let groups = observation_groups::all_numbers(paths, &job.sources.column)?;
        independence_caveat(&groups).iter().for_each(|caveat| console.caveat(caveat));
        let all = |group: NumberFiles| (group.name, group.files.into_iter().flat_map(|(_, values)| values).collect());
        return Ok(groups.into_iter().map(all).collect());
    }
    let found = observation_groups::find(paths, job.sources.kind, console)?;
    let metric = job.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
    let statistic = job.statistic.as_deref().unwrap_or("mean");
    let estimand = parse_estimand(metric, statistic)?;
    let groups = observation_groups::of_recordings(found, &job.sources, &[estimand], console)?;
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

/// Refuses options that apply to recordings only.
fn numbers_alone(job: &MinistatJob) -> Result<(), Failure> {
    let by = matches!(job.sources.grouping, Grouping::By(_));
    let asked = [
        ("--metric", job.metric.is_some()),
        ("--statistic", job.statistic.is_some()),
        ("--by", by),
        ("--kind", job.sources.kind.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::request(format!("`{option}` cannot go with a file of numbers"))
            .because("each line is an observation as it stands")
            .hint("leave it out, or name recordings")),
    }
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
