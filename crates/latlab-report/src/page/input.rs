//! What a page reports, and words that its parts share.

use super::reported_run::ReportedRun;
use crate::analysis::Summary;
use crate::analysis::comparison::Comparisons;
use crate::analysis::experiment::ExperimentReport;
use crate::analysis::explain::Explanation;
use crate::figure::Figure;
use crate::view::Showing;

#[derive(Debug)]
pub struct PageInput<'a> {
    /// The recording or experiment, or how many recordings: `20261121T021500Z-ping-7f3a`.
    pub name: &'a str,
    /// Summaries of the runs, without those that are excluded.
    pub summaries: &'a [Summary],
    /// Why probes of each run were slow; of many runs none is explained.
    pub explanations: &'a [Option<Explanation>],
    /// How the summaries are shown.
    pub showing: Showing,
    /// Facts of the same runs.
    pub runs: &'a [ReportedRun],
    /// The experiment, if the runs are those of one.
    pub experiment: Option<PageExperiment<'a>>,
    /// Comparisons of the runs, with differences along the distribution.
    pub comparisons: Option<&'a Comparisons>,
    /// The conditions of the runs, in the order of the summaries.
    pub conditions: &'a [PageCondition<'a>],
    /// Figures of the runs and their comparisons.
    pub figures: Vec<Figure>,
    /// The command line that makes this page.
    pub command: &'a str,
}

/// A condition of the runs of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageCondition<'a> {
    /// Its name among the others; empty if it is the only one.
    pub name: &'a str,
    pub runs: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct PageExperiment<'a> {
    /// Its report; comparisons are those of [`PageInput`].
    pub report: &'a ExperimentReport,
    /// The text of its file.
    pub file: &'a str,
}
