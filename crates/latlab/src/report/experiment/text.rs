//! The report of an experiment as text.

use super::{aa_test, published, single_condition, spread, timeout_slack};
use crate::analysis::experiment::ExperimentReport;
use crate::report::Style;
use crate::report::comparison::{self, ComparisonShowing, ComparisonView};

/// The report; plots in the form of ministat are `plot_width` characters wide.
pub fn text(report: &ExperimentReport, plot_width: usize, style: Style) -> String {
    let view = |comparisons| ComparisonView::of(comparisons, &[], ComparisonShowing { explain: false });
    let sections = [
        report.published.as_ref().map(|results| published::text(results, style)),
        report.spread.as_ref().and_then(|runs| spread::classic(runs, plot_width)),
        report.spread.as_ref().map(|runs| spread::text(runs, style)),
        report.aa_test.as_ref().map(|test| aa_test::text(test, style)),
        report.timeout_slack.as_ref().map(|slack| timeout_slack::text(slack.as_ref(), style)),
        report.comparisons.as_ref().map(|comparisons| comparison::text(&view(comparisons), style)),
        report.single_condition.as_ref().map(|rows| single_condition::text(rows, style)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
}
