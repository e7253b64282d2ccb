//! `latlab compare --ministat`: the classic form.

use super::Outcome;
use super::groups::{self, PathGroup};
use super::recorded;
use crate::cli::resolve::{Grouping, MinistatJob};
use crate::console::Console;
use crate::error::Failure;
use crate::numbers::STDIN;
use crate::plan::defaults::{MINISTAT_GROUPS_MAX, MINISTAT_VALUES_MIN, PLOT_WIDTH, PLOT_WIDTHS};
use crate::report::ministat::{MinistatForm, MinistatGroup, render};
use crate::stats::Outline;

/// Prints what ministat prints.
pub(super) fn run(job: &MinistatJob, console: &Console) -> Result<Outcome, Failure> {
    let mut paths = groups::of(&job.sources)?;
    if paths.is_empty() {
        paths.push(PathGroup { name: STDIN.into(), paths: vec!["-".into()] });
    }
    let groups = observations(job, &paths, console)?;
    if groups.len() > MINISTAT_GROUPS_MAX {
        return Err(Failure::request(format!("{} groups are too many for the ministat form", groups.len()))
            .because(format!("it has {MINISTAT_GROUPS_MAX} symbols"))
            .hint("leave `--ministat` out, or compare fewer at a time"));
    }
    let groups = groups.into_iter().map(outlined).collect::<Result<Vec<_>, _>>()?;
    let form = MinistatForm {
        plot_width: job.plot.then(|| job.width.unwrap_or_else(|| width(console))),
        separate_bars: job.separate_bars,
        headed: job.headed,
        tested_at: job.test.then(|| job.confidence.percent()),
    };
    console.data(&render(&groups, form))?;
    Ok(Outcome::Done)
}

/// Name and observations of each group: lines of files, or runs.
fn observations(
    job: &MinistatJob,
    groups: &[PathGroup],
    console: &Console,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let is_text = |group: &PathGroup| group.paths.iter().map(|path| groups::is_text(path)).collect::<Vec<_>>();
    let of_text: Vec<bool> = groups.iter().flat_map(is_text).collect();
    if of_text.iter().all(|is_text| *is_text) && !matches!(job.sources.grouping, Grouping::By(_)) {
        let asked = [("--metric", job.metric.is_some()), ("--statistic", job.statistic.is_some())];
        if let Some((option, _)) = asked.into_iter().find(|(_, asked)| *asked) {
            return Err(Failure::request(format!("`{option}` cannot go with a file of numbers"))
                .because("each line is an observation as it stands")
                .hint("leave it out, or name recordings"));
        }
        let read = |group: &PathGroup| Ok((group.name.clone(), groups::numbers(group, &job.sources.column)?));
        return groups.iter().map(read).collect();
    }
    if of_text.contains(&true) && of_text.contains(&false) {
        return Err(Failure::request("files of numbers cannot be compared with recordings")
            .because("nobody knows what the numbers are of")
            .hint("name either files or recordings"));
    }
    recorded::observations(job, groups, console)
}

fn outlined((name, mut observations): (String, Vec<f64>)) -> Result<MinistatGroup, Failure> {
    match Outline::of(&mut observations) {
        Some(outline) if observations.len() >= MINISTAT_VALUES_MIN => Ok(MinistatGroup { name, observations, outline }),
        _ => Err(Failure::request(format!("the group `{name}` is too small for the ministat form"))
            .because(format!("it has {} observations, and the least is {MINISTAT_VALUES_MIN}", observations.len()))
            .hint("of a file see the column, `-C N`; of recordings each run is one observation: `--by`, `--group`")),
    }
}

/// What a line of the terminal takes between two borders.
fn width(console: &Console) -> usize {
    let columns = console.data_screen().columns;
    columns.map_or(PLOT_WIDTH, |columns| usize::from(columns).saturating_sub(2).max(*PLOT_WIDTHS.start() as usize))
}
