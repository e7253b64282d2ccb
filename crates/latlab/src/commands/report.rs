//! `latlab report PATH…`: reads runs one after the other, and writes one page about all of them, or one of its figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::compare::CompareJob;
use super::observation_groups::settle_directory;
use super::observation_groups::{self, FoundRecordings, PathGroup};
use super::output_file::OutputTarget;
use super::summary::NEEDS_BOTH_STAMPS;
use super::{Outcome, compare, measure_and_report};
use crate::analysis::comparison::{Comparisons, RunGroup, parse_estimand};
use crate::analysis::distribution::{RunDistribution, StreamRates, distribution};
use crate::analysis::experiment::ExperimentReport;
use crate::analysis::explain::{Explanation, explain};
use crate::analysis::{Summary, SummaryOptions, summarise};
use crate::cli::args::{ComparingArgs, FigureFormat};
use crate::cli::resolve::{FigureRequest, Grouping, ReportDestination, ReportJob};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{ReportReader, file_text, is_experiment, read_named_state, runs_directory};
use crate::facts::CommandLine;
use crate::metric::Metric;
use crate::plan::{Kind, RunSpec, defaults, distinct_names};
use crate::platform::ownership::quoted;
use crate::platform::parallel_map;
use crate::recipe;
use crate::recording::Recording;
use crate::report::comparison::names_of_groups;
use crate::report::figure::{Figure, svg, table};
use crate::report::html;
use crate::report::page::{PageCondition, PageExperiment, PageInput, ReportedRun, page_view};
use crate::report::plots::{PlotCondition, PlotInput, figures};
use crate::report::view::Showing;
use crate::units::human::{counted, nearest};

/// Reads what `job` names, and writes the report, which is made by `command_line`.
pub(super) fn run(job: &ReportJob, command_line: &CommandLine, console: &Console) -> Result<Outcome, Failure> {
    let found = found(job, console)?;
    let runs = read_runs(&found, job, console)?;
    if job.one_way && runs.summaries.iter().all(|one| one.one_way.is_none()) {
        console.note(&format!("{NEEDS_BOTH_STAMPS}: it changes nothing here"));
    }
    let figures = figures_of(&found, runs.distributions);
    let several = counted(runs.facts.len(), "recording");
    let document = match &job.figure {
        None => Document::Page(html::page(&page_view(PageInput {
            name: found.name.as_deref().unwrap_or(&several),
            summaries: &runs.summaries,
            explanations: &runs.explanations,
            showing: Showing { half: runs.half, wide: true, kept: true, ..Showing::default() },
            runs: &runs.facts,
            experiment: found.experiment.as_ref().map(|it| PageExperiment { report: &it.report, file: &it.file }),
            comparisons: found.comparisons.as_ref(),
            conditions: &found.conditions.iter().map(FoundCondition::on_page).collect::<Vec<_>>(),
            figures,
            command: &command_line.in_shell(),
        }))),
        Some(FigureRequest::Names) => {
            let lines: Vec<String> = figures.iter().map(|it| format!("{:<16}  {}", it.name, it.title)).collect();
            console.data(&lines.join("\n"))?;
            return Ok(Outcome::Done);
        }
        Some(FigureRequest::One { name, format }) => Document::of_figure(named(&figures, name)?, *format),
    };
    let stem = document.stem(found.name.as_deref().unwrap_or("latlab-report"));
    let usual = || PathBuf::from(format!("{stem}.{}", document.extension()));
    match &job.destination {
        ReportDestination::Stdout => console.values(document.text())?,
        ReportDestination::Usual => document.save(&usual(), job.force, console)?,
        ReportDestination::File(path) => document.save(path, job.force, console)?,
    }
    Ok(Outcome::Done)
}

/// What is reported, before its runs are read.
struct FoundReport {
    /// The name of what was given, without a path; `None` if there are several.
    name: Option<String>,
    experiment: Option<ReadExperiment>,
    comparisons: Option<Comparisons>,
    conditions: Vec<FoundCondition>,
}

struct ReadExperiment {
    report: ExperimentReport,
    file: String,
}

/// A condition whose runs are not read yet.
struct FoundCondition {
    name: String,
    levels: BTreeMap<String, String>,
    runs: Vec<PathBuf>,
}

impl FoundCondition {
    fn on_page(&self) -> PageCondition<'_> {
        PageCondition { name: &self.name, runs: self.runs.len() }
    }
}

fn found(job: &ReportJob, console: &Console) -> Result<FoundReport, Failure> {
    let paths = observation_groups::path_groups(&job.sources)?;
    let file = paths.iter().flat_map(|group| &group.members).find(|path| path.is_file());
    if file.is_some() || observation_groups::are_numbers(&paths)? {
        let what = file.map_or("numbers".into(), |file| format!("the file `{}`", file.display()));
        return Err(Failure::request(format!("cannot report {what}"))
            .because("a report is of recordings, which are directories")
            .hint("name recordings alone; `latlab compare FILE…` compares files of numbers"));
    }
    let name = name_of(&paths);
    let is_plain = job.sources.grouping == Grouping::Paths && job.metric.is_none();
    let is_asked = |it: &ReadExperiment| is_plain && job.sources.kind.is_none_or(|kind| kind == it.report.kind);
    let experiment = match paths.as_slice() {
        [PathGroup { members, .. }] if members.len() == 1 && is_experiment(&members[0]) => {
            Some(read_experiment(&members[0], console)?)
        }
        _ => None,
    };
    if let Some(experiment) = experiment.filter(is_asked) {
        let conditions = conditions_of_experiment(&experiment.report);
        let is_rehearsal =
            experiment.report.published.as_ref().is_some_and(|published| published.recipe.is_rehearsal());
        let comparisons = experiment.report.comparisons.clone().filter(|_| !is_rehearsal);
        return Ok(FoundReport { name, experiment: Some(experiment), comparisons, conditions });
    }
    if let Some(joint) = joint(&paths, console)?.filter(|_| is_plain) {
        return Ok(joint);
    }
    let recordings = observation_groups::find(&paths, job.sources.kind, console)?;
    expect_one_kind(&recordings)?;
    let is_grouped = job.sources.grouping != Grouping::Paths;
    let is_of_experiment =
        paths.len() == 1 && !recordings.experiments.is_empty() && have_several_conditions(&recordings);
    if is_grouped || is_of_experiment || recordings.has_groups_of_runs() {
        let comparing = ComparingArgs { metric: job.metric.clone(), ..ComparingArgs::default() };
        let asked = CompareJob { sources: job.sources.clone(), comparing: &comparing, shift: true };
        let comparisons = compare::of_recordings(&asked, recordings, console)?;
        let conditions = conditions_of(&comparisons);
        return Ok(FoundReport { name, experiment: None, comparisons: Some(comparisons), conditions });
    }
    expect_no_metric(job.metric.as_deref())?;
    let conditions = conditions_by_label(&recordings, console)?;
    Ok(FoundReport { name, experiment: None, comparisons: None, conditions })
}

/// Several experiments of one recipe with a publication, such as those of several pairs of hosts: what they measured of each of
/// its rows, without comparing them.
fn joint(paths: &[PathGroup], console: &Console) -> Result<Option<FoundReport>, Failure> {
    let directories: Vec<&PathBuf> = paths.iter().flat_map(|group| &group.members).collect();
    if directories.len() < 2 || !directories.iter().all(|path| is_experiment(path)) {
        return Ok(None);
    }
    let recipe = |path: &&PathBuf| Ok(read_named_state(path)?.recipe.map(|facts| facts.name));
    let recipes: BTreeSet<_> = directories.iter().map(recipe).collect::<Result<_, Failure>>()?;
    let known = recipes.first().cloned().flatten().and_then(|name| recipe::find(&name));
    if recipes.len() > 1 || known.is_none_or(|recipe| recipe.published.is_none()) {
        return Ok(None);
    }
    let mut all = directories.iter().map(|path| read_experiment(path, console)).collect::<Result<Vec<_>, _>>()?;
    let target = |it: &ReadExperiment| it.report.recipe.as_ref().map(|facts| facts.target.clone()).unwrap_or_default();
    let file_name = |path: &&PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directories: Vec<String> = directories.iter().map(file_name).collect();
    let names = distinct_names(all.iter().map(target).collect(), &directories);
    let mut conditions = Vec::new();
    for (experiment, name) in all.iter_mut().zip(names) {
        for condition in conditions_of_experiment(&experiment.report) {
            conditions.push(FoundCondition { name: format!("{name}: {}", condition.name), ..condition });
        }
        let systems = experiment.report.published.as_mut().into_iter().flat_map(|published| &mut published.systems);
        systems.for_each(|system| system.name.clone_from(&name));
    }
    let joined = all.into_iter().reduce(|one, other| ReadExperiment { report: one.report.joined(other.report), ..one });
    Ok(joined.map(|joined| FoundReport { name: None, experiment: Some(joined), comparisons: None, conditions }))
}

fn conditions_of_experiment(report: &ExperimentReport) -> Vec<FoundCondition> {
    match &report.comparisons {
        Some(comparisons) => conditions_of(comparisons),
        None => vec![single_condition(report)],
    }
}

/// Whether the runs are of several conditions of an experiment. One that cannot be opened is an error of its reader.
fn have_several_conditions(recordings: &FoundRecordings) -> bool {
    let mut conditions = recordings.runs().map(|run| {
        let recording = Recording::open(run.as_ref()).ok()?;
        Some(recording.manifest().experiment.as_ref()?.factors.clone())
    });
    let first = conditions.next();
    conditions.any(|condition| first.as_ref() != Some(&condition))
}

/// Refuses `--metric` for runs that are not compared.
fn expect_no_metric(metric: Option<&str>) -> Result<(), Failure> {
    let Some(metric) = metric else { return Ok(()) };
    parse_estimand(Some(metric), "mean")?;
    Err(Failure::request("`--metric` needs a comparison")
        .because("it chooses what is compared, and these runs are not compared")
        .hint("leave it out, or say what a group is: `--by FACTOR` or `--group NAME=GLOB`"))
}

fn name_of(paths: &[PathGroup]) -> Option<String> {
    let only = match paths {
        [PathGroup { members, .. }] if members.len() == 1 => members[0].canonicalize().ok(),
        _ => None,
    };
    only.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
}

fn read_experiment(directory: &Path, console: &Console) -> Result<ReadExperiment, Failure> {
    let (state, job) = (read_named_state(directory)?, settle_directory(directory)?);
    let (experiment, impossible) = (&job.experiment, job.impossible.as_slice());
    let note = |text: &str| console.note(text);
    let reader =
        ReportReader { directory, state: &state, experiment, impossible, shift: true, gates: None, note: &note };
    let partial = reader.read();
    if let Some(failure) = partial.failure {
        return Err(failure);
    }
    let report = partial.report;
    if !report.is_judged() || report.is_all_missing() {
        report.outcome()?;
    }
    if !report.finished {
        console.note("the experiment is not finished: the report is of the runs so far");
    }
    Ok(ReadExperiment { report, file: file_text(directory)? })
}

/// The conditions that are compared, without those that are impossible here: a note names these.
fn conditions_of(comparisons: &Comparisons) -> Vec<FoundCondition> {
    let impossible =
        |levels: &BTreeMap<String, String>| comparisons.groups.impossible.iter().any(|it| it.factors == *levels);
    let groups = comparisons.groups.groups.iter().zip(names_of_groups(&comparisons.groups));
    let groups = groups.filter(|(group, _)| !group.runs.is_empty() || !impossible(&group.levels));
    let condition = |(group, name): (&RunGroup, String)| FoundCondition {
        name,
        levels: group.levels.clone(),
        runs: group.runs.iter().map(|run| PathBuf::from(&run.name)).collect(),
    };
    groups.map(condition).collect()
}

/// The judged runs of an experiment with one condition.
fn single_condition(report: &ExperimentReport) -> FoundCondition {
    let directory = runs_directory(Path::new(&report.directory));
    let judged = report.runs.iter().filter_map(|run| run.judged()).filter(|name| !report.missing.contains(*name));
    let levels = report.runs.first().map(|run| run.key.factors.clone()).unwrap_or_default();
    FoundCondition { name: String::new(), levels, runs: judged.map(|name| directory.join(name)).collect() }
}

/// Refuses runs of several kinds.
fn expect_one_kind(recordings: &FoundRecordings) -> Result<(), Failure> {
    let found: BTreeSet<&str> = recordings.runs().filter_map(|run| run.kind()).map(Kind::word).collect();
    let options: Vec<String> = found.iter().map(|kind| format!("`--kind {kind}`")).collect();
    expect_one_of(&found, "a page is of runs of one kind", &format!("choose one: {}", options.join(" or ")))
}

/// Refuses runs with several of what is `found`, kinds or main metrics, because of `cause`. `hint` says how to choose one.
fn expect_one_of(found: &BTreeSet<&str>, cause: &str, hint: &str) -> Result<(), Failure> {
    if found.len() < 2 {
        return Ok(());
    }
    let names: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
    Err(Failure::request(format!("cannot report runs of {} on one page", names.join(" and ")))
        .because(cause)
        .hint(hint))
}

/// Recordings with equal conditions are runs of one condition, which is named by what differs.
fn conditions_by_label(recordings: &FoundRecordings, console: &Console) -> Result<Vec<FoundCondition>, Failure> {
    let (mut paths, mut recorded, mut metrics) = (Vec::new(), Vec::<RunSpec>::new(), BTreeSet::new());
    for run in recordings.runs() {
        let recording = Recording::open(run.as_ref())?;
        recording.note().into_iter().for_each(|note| console.note(note));
        paths.push(run.as_ref().to_owned());
        recorded.push(recording.manifest().spec.clone());
        metrics.insert(recording.manifest().metric().name());
    }
    expect_one_of(&metrics, "they have no metric in common", "name recordings of one metric")?;
    let labels = RunSpec::labels(&recorded.iter().collect::<Vec<_>>());
    let mut conditions: Vec<FoundCondition> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for ((label, spec), path) in labels.into_iter().zip(&recorded).zip(paths) {
        let index = *known.entry(label.clone()).or_insert(conditions.len());
        if index == conditions.len() {
            conditions.push(FoundCondition { name: label, levels: spec.levels(), runs: Vec::new() });
        }
        conditions[index].runs.push(path);
    }
    Ok(conditions)
}

/// The runs of all conditions in their order.
struct ReadRuns {
    distributions: Vec<RunDistribution>,
    /// Empty if a figure alone is written, like the next one.
    summaries: Vec<Summary>,
    explanations: Vec<Option<Explanation>>,
    facts: Vec<ReportedRun>,
    /// Whether halves of round trips are shown.
    half: bool,
}

/// A run as far as the report needs it.
struct ReadRun {
    note: Option<String>,
    distribution: RunDistribution,
    /// `None` if a figure alone is written.
    page: Option<RunOnPage>,
}

struct RunOnPage {
    summary: Summary,
    explanation: Option<Explanation>,
    facts: ReportedRun,
    half: bool,
}

/// With more runs than this a run is one observation of many: intervals of single runs, which take longer than everything
/// else, and explanations are left out.
const RUNS_WITH_INTERVALS: usize = 8;

/// Reads the runs of all `conditions`, several at a time, each with bounded memory.
fn read_runs(found: &FoundReport, job: &ReportJob, console: &Console) -> Result<ReadRuns, Failure> {
    let paths: Vec<&PathBuf> = found.conditions.iter().flat_map(|condition| &condition.runs).collect();
    let published = found.experiment.as_ref().and_then(|it| it.report.published.as_ref());
    let metric = published.map(|results| results.published.metric);
    let read = |path: &&PathBuf| match read_run(path, paths.len(), metric, job) {
        Ok(run) => ControlFlow::Continue(Ok(run)),
        Err(failure) => ControlFlow::Break(Err(failure)),
    };
    let mut all = ReadRuns {
        distributions: Vec::new(),
        summaries: Vec::new(),
        explanations: Vec::new(),
        facts: Vec::new(),
        half: false,
    };
    for run in parallel_map::each(&paths, parallel_map::available(), read) {
        let ReadRun { note, distribution, page } = run?;
        note.into_iter().for_each(|note| console.note(&note));
        all.distributions.push(distribution);
        if let Some(RunOnPage { summary, explanation, facts, half }) = page {
            all.summaries.push(summary);
            all.explanations.push(explanation);
            all.facts.push(facts);
            all.half |= half;
        }
    }
    Ok(all)
}

/// `metric` is what the page is about instead of the main metric of its runs.
fn read_run(path: &Path, count: usize, metric: Option<Metric>, job: &ReportJob) -> Result<ReadRun, Failure> {
    let recording = Recording::open(path)?;
    let kind = recording.manifest().kind;
    let metric =
        metric.filter(|metric| kind.metrics().contains(metric)).unwrap_or_else(|| recording.manifest().metric());
    let mut distribution = distribution(&recording, metric)?;
    if count > 1 {
        // Only the figures of a single run show them.
        distribution.over_time = None;
        distribution.rates = StreamRates::default();
        distribution.host.clear();
    }
    let note = recording.note().map(str::to_owned);
    if job.figure.is_some() {
        return Ok(ReadRun { note, distribution, page: None });
    }
    let manifest = recording.manifest();
    let judging = job.judging.over(&manifest.spec.judging)?;
    let half = judging.half;
    let metrics = measure_and_report::metrics(false).into_iter().chain([metric]).collect();
    let options = SummaryOptions { judging, intervals: count <= RUNS_WITH_INTERVALS, metrics, one_way: job.one_way };
    let summary = Summary { metric, ..summarise(&recording, &options)? };
    let explanation = if count <= RUNS_WITH_INTERVALS { explain(&recording, defaults::WORST_EPISODES)? } else { None };
    let page = RunOnPage { summary, explanation, facts: ReportedRun::of(manifest), half };
    Ok(ReadRun { note, distribution, page: Some(page) })
}

fn figures_of(found: &FoundReport, runs: Vec<RunDistribution>) -> Vec<Figure> {
    let mut runs = runs.into_iter();
    let condition = |condition: &FoundCondition| PlotCondition {
        // The runs of an experiment with one condition.
        name: if condition.name.is_empty() { "all runs".into() } else { condition.name.clone() },
        levels: condition.levels.clone(),
        runs: runs.by_ref().take(condition.runs.len()).collect(),
    };
    let measured = found.conditions.iter().filter(|condition| !condition.runs.is_empty());
    let conditions = measured.map(condition).collect();
    let recipe = found.experiment.as_ref().and_then(|it| it.report.recipe.as_ref());
    let recipe = recipe.and_then(|facts| recipe::find(&facts.name));
    figures(&PlotInput { conditions, comparisons: found.comparisons.as_ref(), recipe })
}

/// The figure of this name.
///
/// # Errors
/// If there is none; it names those that there are.
fn named<'a>(figures: &'a [Figure], name: &str) -> Result<&'a Figure, Failure> {
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    figures.iter().find(|figure| figure.name == name).ok_or_else(|| {
        let cause = match names.as_slice() {
            [] => "the runs have no values that could be drawn".to_owned(),
            names => format!("these runs have {}", names.join(", ")),
        };
        let hint = match nearest(name, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "docs/report.md says which data each plot needs".into(),
        };
        Failure::request(format!("these runs have no plot `{name}`")).because(cause).hint(hint)
    })
}

enum Document {
    Page(String),
    Figure { name: String, format: FigureFormat, text: String },
}

impl Document {
    fn of_figure(figure: &Figure, format: FigureFormat) -> Document {
        let text = match format {
            FigureFormat::Svg => svg::standalone(figure),
            FigureFormat::Csv => table::csv(figure),
        };
        Document::Figure { name: figure.name.clone(), format, text }
    }

    fn text(&self) -> &str {
        match self {
            Document::Page(text) | Document::Figure { text, .. } => text,
        }
    }

    /// The name of its usual file without the end; that of a page is `reported`.
    fn stem<'a>(&'a self, reported: &'a str) -> &'a str {
        match self {
            Document::Page(_) => reported,
            Document::Figure { name, .. } => name,
        }
    }

    const fn extension(&self) -> &'static str {
        match self {
            Document::Page(_) => "html",
            Document::Figure { format, .. } => format.extension(),
        }
    }

    /// Writes it to the file at `path`, which is replaced as a whole, and prints the path.
    fn save(&self, path: &Path, force: bool, console: &Console) -> Result<(), Failure> {
        let is_whole = OutputTarget::is_whole(path);
        let mut target = OutputTarget::open(Some(path), force, |path| self.has_written(path), console)?;
        let written = target.write_all(self.text().as_bytes());
        target.judge(written)?;
        target.conclude()?;
        if is_whole { console.data(&quoted(path)) } else { Ok(()) }
    }

    /// Whether the file at `path` begins like what latlab writes in this form.
    fn has_written(&self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(START_BYTES).read_to_end(&mut start)?;
        let has = |text: &str| start.windows(text.len()).any(|part| part == text.as_bytes());
        Ok(match self {
            Document::Page(_) => has(html::GENERATOR),
            Document::Figure { format: FigureFormat::Svg, .. } => has(svg::ROOT),
            // The line with the names of the columns.
            Document::Figure { format: FigureFormat::Csv, text, .. } => {
                text.split_inclusive('\n').next().is_some_and(|line| start.starts_with(line.as_bytes()))
            }
        })
    }
}

/// How much of a file shows who wrote it.
const START_BYTES: u64 = 4_096;
