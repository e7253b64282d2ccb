//! `latlab compare --ministat`: the classic form.

use super::Outcome;
use super::observation_groups::{self, PathGroup};
use crate::analysis::comparison::{RunFigure, parse_estimand};
use crate::cli::resolve::{Grouping, MinistatJob};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::formats::numbers::STDIN;
use crate::plan::defaults::{MINISTAT_GROUPS_MAX, MINISTAT_VALUES_MIN, PLOT_WIDTH, PLOT_WIDTHS};
use crate::report::ministat::{MinistatForm, MinistatGroup, render};
use crate::stats::Outline;

pub(super) fn run(job: &MinistatJob, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = observation_groups::path_groups(&job.sources)?;
    if paths.is_empty() {
        paths.push(PathGroup { name: STDIN.into(), paths: vec!["-".into()] });
    }
    let groups = observations(job, &paths, console)?;
    if groups.len() > MINISTAT_GROUPS_MAX {
        return Err(Failure::request(format!("{} groups are too many for the ministat form", groups.len()))
            .because(format!("it has {MINISTAT_GROUPS_MAX} symbols"))
            .hint("leave `--ministat` out, or compare fewer at a time"));
    }
    let groups =
        groups.into_iter().map(|(name, observations)| outlined(name, observations)).collect::<Result<Vec<_>, _>>()?;
    let form = MinistatForm {
        plot_width: job.plot.then(|| job.width.unwrap_or_else(|| width(console))),
        separate_bars: job.separate_bars,
        headed: job.headed,
        tested_at: job.test.then(|| job.confidence.percent()),
    };
    console.data(&render(&groups, form))?;
    Ok(Outcome::Done)
}

/// Name and observations of each group: lines of files, or a figure of each run.
fn observations(job: &MinistatJob, paths: &[PathGroup], console: &Console) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    if observation_groups::are_numbers(paths)? {
        numbers_alone(job)?;
        let read =
            |group: &PathGroup| Ok((group.name.clone(), observation_groups::numbers(group, &job.sources.column)?));
        return paths.iter().map(read).collect();
    }
    let found = observation_groups::find(paths, console)?;
    let metric = job.metric.as_deref().or_else(|| observation_groups::usual_metric(&found));
    let statistic = job.statistic.as_deref().unwrap_or("mean");
    let subject = parse_estimand(metric, statistic)?;
    let groups = observation_groups::of_recordings(found, &job.sources, &[subject], console)?;
    groups.exclusion_caveat().iter().for_each(|caveat| console.caveat(caveat));
    if let Some(run) = groups.groups.iter().flat_map(|group| &group.runs).find(|run| run.figures[0].value().is_none()) {
        let cause = match run.figures[0] {
            RunFigure::Lost => "it fell among the lost probes",
            _ => "there was nothing to compute it from",
        };
        return Err(Failure::request(format!("`{}` has no {statistic} that can be compared", run.name))
            .because(cause)
            .hint("leave it out, or compare another `--statistic`, such as `loss_ratio` or a lower quantile"));
    }
    Ok(groups.groups.iter().map(|group| (group.name.clone(), group.values(0))).collect())
}

/// Refuses options that apply to recordings only.
fn numbers_alone(job: &MinistatJob) -> Result<(), Failure> {
    let by = matches!(job.sources.grouping, Grouping::By(_));
    let asked = [("--metric", job.metric.is_some()), ("--statistic", job.statistic.is_some()), ("--by", by)];
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
            .because(format!("it has {} observations, and the least is {MINISTAT_VALUES_MIN}", observations.len()))
            .hint("of a file see the column, `-C N`; of recordings each run is one observation: `--by`, `--group`")),
    }
}

/// Columns of the terminal between two borders of the plot.
pub(super) fn width(console: &Console) -> usize {
    let columns = console.data_screen().columns;
    columns.map_or(PLOT_WIDTH, |columns| usize::from(columns).saturating_sub(2).max(*PLOT_WIDTHS.start() as usize))
}
