//! Builds the content of a report page from what was measured: summaries, the report of an experiment, comparisons, and
//! facts of each run. Pure, like all of `report`.

mod input;
mod methods;
mod reported_run;
mod sentences;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::comparison::{ComparisonShowing, ComparisonView};
use super::experiment::{published_tables, text_blocks};
use super::html::{PageView, TextBlock};
use super::loads::loads_table;
use super::over_runs::TableRow;
use super::summary_view::{condition_tables, names_on_page, page_report};
use super::view::{CaveatView, ReportView, TableView};
use crate::analysis::Summary;
use crate::diagnostics::Severity;
use crate::facts::LoadReport;
use crate::metric::Metric;
use crate::units::human::shell_word;

pub use input::{PageCondition, PageExperiment, PageInput};
pub use reported_run::ReportedRun;

/// Columns of texts of fixed width: a printed page has no more.
const TEXT_COLUMNS: usize = 100;

/// The content of a page.
pub fn page_view(input: PageInput<'_>) -> PageView {
    let view = |comparisons| ComparisonView::of(comparisons, &[], ComparisonShowing { explain: false });
    let comparisons: Vec<ComparisonView> = input.comparisons.into_iter().map(view).collect();
    let conditions = condition_rows(&input);
    let names = names_on_page(input.summaries, &conditions);
    let (question, verdict) = (sentences::question(&input), sentences::verdict(&input, &names));
    let ReportView { heading, tables: of_runs, gates, remarks, mut caveats, recordings, .. } =
        page_report(input.summaries, &names, &conditions, input.showing);
    let mut tables = input.experiment.map(|it| published_tables(it.report)).unwrap_or_default();
    let of_conditions = condition_tables(&conditions, input.showing);
    let (shown, every_run) = if of_conditions.is_empty() { (of_runs, Vec::new()) } else { (of_conditions, of_runs) };
    tables.extend(shown);
    if let Some(PageExperiment { report, .. }) = input.experiment {
        caveats.splice(0..0, report.warnings().into_iter().map(warning));
    }
    let title = match input.experiment {
        Some(PageExperiment { report, .. }) if format!("{}.toml", report.name) != FILE => {
            format!("Experiment {}", report.name)
        }
        _ if heading.is_empty() => input.name.to_owned(),
        of => {
            let what = if of.is_some() { "Experiment " } else { "" };
            format!("{what}{}: {}", heading.split(" · ").next().unwrap_or_default(), input.name)
        }
    };
    PageView {
        title,
        question,
        verdict,
        gates,
        tables,
        every_run,
        texts: input.experiment.map(|it| text_blocks(it.report, TEXT_COLUMNS)).unwrap_or_default(),
        methods: methods::methods(&input),
        comparisons,
        caveats,
        remarks,
        hosts: reported_run::hosts(input.runs),
        loads: loads(input.summaries),
        reproduce: reproduce(&input),
        recordings,
        made: reported_run::made(input.runs),
        metric_of_tables: sentences::other_metric(
            &input,
            "The comparison is",
            "the tables of conditions and runs are",
            // Of runs on a schedule, and of streams.
            &[Metric::ResponseTime, Metric::OfferedRate],
        ),
        metric_of_plots: sentences::other_metric(&input, "Plots of changes are", "all other plots are", &[]),
        without_plots: sentences::without_plots(input.summaries),
        figures: input.figures,
    }
}

/// The conditions with their summaries.
fn condition_rows<'a>(input: &PageInput<'a>) -> Vec<TableRow<'a>> {
    let mut left = input.summaries;
    let row = |condition: &PageCondition<'a>| {
        let (own, others) = left.split_at(condition.runs.min(left.len()));
        left = others;
        TableRow::of_condition(condition.name, own)
    };
    input.conditions.iter().map(row).collect()
}

fn warning(message: String) -> CaveatView {
    let (effect, hint) = (String::new(), String::new());
    CaveatView { severity: Severity::Warning, is_routine: false, message, effect, hint }
}

fn loads(summaries: &[Summary]) -> Vec<TableView> {
    let titled = |table| TableView { title: "Loads, offered and achieved".into(), ..table };
    loads_table(&reached_loads(summaries)).map(titled).into_iter().collect()
}

/// The loads of all runs, each once: what was achieved is the mean over the runs, extremes are those of all runs.
fn reached_loads(summaries: &[Summary]) -> Vec<LoadReport> {
    let mut loads: BTreeMap<(&str, &str), Vec<&LoadReport>> = BTreeMap::new();
    for load in summaries.iter().flat_map(|summary| &summary.loads) {
        loads.entry((&load.load, &load.at)).or_default().push(load);
    }
    let merged = |loads: Vec<&LoadReport>| {
        let achieved: Vec<f64> = loads.iter().filter_map(|load| load.achieved).collect();
        let extreme = |end: fn(&LoadReport) -> Option<f64>, of: fn(f64, f64) -> f64| {
            loads.iter().filter_map(|load| end(load)).reduce(of)
        };
        LoadReport {
            achieved: (!achieved.is_empty()).then(|| achieved.iter().sum::<f64>() / achieved.len() as f64),
            min: extreme(|load| load.min, f64::min),
            max: extreme(|load| load.max, f64::max),
            ..loads[0].clone()
        }
    };
    loads.into_values().map(merged).collect()
}

/// The name of an experiment's file in the commands of a page. Its stem is the name of an experiment whose file has none.
const FILE: &str = "experiment.toml";
/// Most command lines, or specifications, of runs.
const MOST_RUNS: usize = 12;

/// The command lines of the runs, each once, and below them that of the page.
fn commands(input: &PageInput<'_>) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in input.runs.iter().filter_map(ReportedRun::command) {
        if lines.len() < MOST_RUNS && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.push(input.command);
    lines.join("\n") + "\n"
}

fn reproduce(input: &PageInput<'_>) -> Vec<TextBlock> {
    let block = |title: &str, text: String| TextBlock { title: title.into(), text };
    let versions = block("Versions", reported_run::versions(input.runs).join("\n"));
    let Some(PageExperiment { report, file }) = input.experiment else {
        let mut specs: Vec<TextBlock> = Vec::new();
        for run in input.runs {
            if specs.len() == MOST_RUNS {
                break;
            }
            let title = run.title_of_specification();
            if specs.iter().all(|known| known.text != run.specification()) {
                specs.push(block(&title, run.specification().to_owned()));
            }
        }
        return [block("Commands", commands(input)), versions].into_iter().chain(specs).collect();
    };
    let again = match &report.recipe {
        Some(recipe) => {
            let scale = if recipe.scale == "usual" { String::new() } else { format!(" --{}", recipe.scale) };
            format!("latlab run {} {}{scale}", shell_word(&recipe.name), shell_word(&recipe.target))
        }
        None => format!("latlab run {FILE}"),
    };
    let commands = block("Commands", format!("{again}\n{}\n", input.command));
    vec![commands, block(&format!("Experiment file (`{FILE}`)"), file.to_owned()), versions]
}
