//! The designs that find a change, and the spread of the pilot that they follow from, as text.

use super::plan::rough_span;
use crate::analysis::experiment::{
    AdvisedDesign, DesignAdvice, FOUND, PILOT_CONFIDENCE, PilotSpread, RUNS_MAX, WantedChange,
};
use crate::analysis::{Estimand, Kind, StopWhen};
use crate::text::{Style, render};
use crate::units::Nanos;
use crate::units::human::{ABSENT, counted, grouped, percent, span};
use crate::view::{ColumnView, Part, RowView, TableView};

/// What was asked, and what was found.
#[derive(Clone, Copy, Debug)]
pub struct DesignsView<'a> {
    pub kind: Kind,
    pub wanted: &'a WantedChange,
    pub spread: &'a PilotSpread,
    pub advice: &'a DesignAdvice,
    /// The experiment has one condition: a second one is assumed.
    pub is_single: bool,
}

/// The quickest design, all designs, and the components of the spread.
pub fn designs(view: &DesignsView<'_>, style: Style) -> String {
    let table = (!view.advice.designs.is_empty()).then(|| Part::Table(designs_table(view)));
    let parts: Vec<Part> = [Some(Part::Notes(vec![answer(view)])), table, Some(Part::Table(spread_table(view)))]
        .into_iter()
        .flatten()
        .collect();
    render(&parts, style)
}

fn answer(view: &DesignsView<'_>) -> String {
    let WantedChange { metric, statistic, change } = *view.wanted;
    let what = format!("a change of {} in {}", percent(change), Estimand::Statistic(metric, statistic));
    let Some(AdvisedDesign { runs, range: (low, high), scale, found, duration }) = view.advice.designs.first() else {
        return format!("{RUNS_MAX} runs of each condition find {what} in fewer than {} of cases.", percent(FOUND));
    };
    let runs = match view.advice.blocks {
        1 => format!("{runs} runs"),
        blocks => format!("{blocks} blocks of {} runs", runs / blocks),
    };
    format!(
        "{runs} of each condition, each of {}, find {what} in {:.0} % of cases, in about {}. By this pilot, {low} to {high} \
         runs may be needed.",
        length(view, *scale),
        100.0 * found,
        rough_span(*duration)
    )
}

fn designs_table(view: &DesignsView<'_>) -> TableView {
    let DesignAdvice { designs, conditions, blocks, comparisons } = view.advice;
    let cells = |cell: &dyn Fn(&AdvisedDesign) -> String| designs.iter().map(cell).collect::<Vec<_>>();
    let columns = vec![
        ColumnView::figures("runs", cells(&|design| design.runs.to_string())),
        ColumnView::words("by the pilot", cells(&|AdvisedDesign { range, .. }| format!("{} to {}", range.0, range.1))),
        ColumnView::figures("found", cells(&|design| format!("{:.0} %", 100.0 * design.found))),
        ColumnView::words("time", cells(&|design| rough_span(design.duration))),
    ];
    let rows = designs.iter().map(|design| RowView::of(length(view, design.scale))).collect();
    let [comparisons, blocks] =
        [(*comparisons, "comparison"), (*blocks as usize, "block")].map(|(n, noun)| counted(n, noun));
    let assumed = if view.is_single { " (one assumed)" } else { "" };
    let title =
        format!("all runs of each of {conditions} conditions{assumed}, in {blocks}, for verdicts on {comparisons}");
    let legend = format!("by the pilot: {} interval of the runs that are needed", percent(PILOT_CONFIDENCE));
    TableView { legend, ..TableView::of(title, rows, columns) }
}

/// What ends a run that is `scale` times as long as one of the pilot.
fn length(view: &DesignsView<'_>, scale: f64) -> String {
    let StopWhen { count, duration_ns } = view.spread.stop;
    let rows = view.kind.rows();
    let count = count.map(|count| format!("{} {rows}", grouped((count as f64 * scale).round() as u64)));
    let duration = duration_ns.map(|time| span(Nanos((time.0 as f64 * scale) as i64)));
    count.into_iter().chain(duration).collect::<Vec<_>>().join(" or ")
}

fn spread_table(view: &DesignsView<'_>) -> TableView {
    let PilotSpread { runs, blocks, boots, probe, components, .. } = view.spread;
    let probe = probe.map(|probe| probe.min(components.run));
    let lines = [
        ("within runs", probe),
        ("between runs", Some(components.run - probe.unwrap_or_default())),
        ("slow changes", Some(components.drift)),
        ("between blocks", components.block),
        ("between boots", components.boot),
    ];
    let all: f64 = lines.iter().filter_map(|(_, variance)| *variance).sum();
    let cell = |of: &dyn Fn(f64) -> String| {
        lines.iter().map(|(_, variance)| variance.map_or(ABSENT.into(), of)).collect::<Vec<_>>()
    };
    let columns = vec![
        ColumnView::figures("deviation", cell(&|variance| percent(variance.sqrt()))),
        ColumnView::figures(
            "of the variance",
            cell(&|variance| format!("{:.0} %", 100.0 * variance / all.max(f64::MIN_POSITIVE))),
        ),
    ];
    let [runs, blocks, boots] =
        [(*runs, "run"), (*blocks, "block"), (*boots, "boot")].map(|(n, noun)| counted(n, noun));
    let title = format!("spread of the pilot: {runs} in {blocks} of {boots}");
    let legend = "\
        what slow changes, blocks and boots do to both conditions cancels in the change\n\
        –: not shown by the pilot, or part of the next line";
    TableView {
        legend: legend.into(),
        ..TableView::of(title, lines.iter().map(|line| RowView::of(line.0)).collect(), columns)
    }
}
