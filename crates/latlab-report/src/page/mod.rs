//! Builds the content of a report page from what was measured: summaries, the report of an experiment, comparisons, and
//! facts of each run. Pure, like all of `report`.

mod input;
mod methods;
mod reported_run;
mod sentences;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::experiment::{other_results, published_parts};
use super::html::{PageSection, PageView};
use super::loads::loads_table;
use super::over_runs::TableRow;
use super::quantiles::explain_marks;
use super::summary_view::{self, condition_tables, heading_and_tables, names_on_page, recordings};
use super::view::{CaveatView, Part, TableView, TextBlock};
use super::{comparison, explain, gates, one_way, remarks};
use crate::analysis::Summary;
use crate::analysis::experiment::PublishedResults;
use crate::analysis::explain::Explanation;
use crate::facts::LoadReport;
use crate::metric::Metric;
use crate::recipe;
use crate::units::human::shell_word;

pub use input::{PageCondition, PageExperiment, PageInput};
pub use reported_run::ReportedRun;

/// The content of a page.
pub fn page_view(input: PageInput<'_>) -> PageView {
    let conditions = condition_rows(&input);
    let names = names_on_page(input.summaries, &conditions);
    let (question, verdict) = (sentences::question(&input), sentences::verdict(&input, &names));
    let (heading, of_runs) = heading_and_tables(input.summaries, &names, input.showing);
    let compared = input.comparisons.map(|comparisons| comparison::parts(comparisons, &[], false));
    let (of_comparison, compared): (Vec<Part>, Vec<Part>) =
        compared.into_iter().flatten().partition(|part| matches!(part, Part::Caveats(_)));
    let section = |id, title, parts| PageSection { id, title, parts };
    PageView {
        title: title(&input, &heading),
        question,
        verdict,
        gates: gates::lines(input.summaries, &names),
        sections: vec![
            section("results", "Results", results(&input, &conditions, of_runs)),
            section("comparison", "Comparison", compared),
            section("one-way", "One-way delay", each_way(&input, &names)),
            section("plots", "Plots", plots(&input)),
            section("slow", "Why it was slow", slow(&input, &names)),
            section("caveats", "Caveats", vec![Part::Caveats(caveats(&input, &names, of_comparison))]),
            section("conditions", "Conditions and hosts", conditions_and_hosts(&input, &names)),
            section("methods", "Methods", vec![Part::Notes(methods::methods(&input))]),
            section("reproduce", "How to reproduce", reproduce(&input)),
        ],
        made: reported_run::made(input.runs),
    }
}

fn title(input: &PageInput<'_>, heading: &str) -> String {
    match input.experiment {
        Some(PageExperiment { report, .. }) if format!("{}.toml", report.name) != FILE => {
            format!("Experiment {}", report.name)
        }
        _ if heading.is_empty() => input.name.to_owned(),
        of => {
            let what = if of.is_some() { "Experiment " } else { "" };
            format!("{what}{}: {}", heading.split(" · ").next().unwrap_or_default(), input.name)
        }
    }
}

/// Published figures beside measured ones, then tables of conditions, with those of the runs to be opened, or of runs, and
/// what only some experiments have.
fn results(input: &PageInput<'_>, conditions: &[TableRow<'_>], of_runs: Vec<TableView>) -> Vec<Part> {
    // Of runs on a schedule, and of streams.
    let further = [Metric::ResponseTime, Metric::OfferedRate];
    let (compared, others) = ("The comparison is", "the tables of conditions and runs are");
    let mut parts = vec![Part::Notes(sentences::other_metric(input, compared, others, &further).into_iter().collect())];
    let tables = |tables: Vec<TableView>| tables.into_iter().map(Part::Table);
    parts.push(Part::Notes(set_ups(input).into_iter().collect()));
    parts.extend(input.experiment.into_iter().flat_map(|it| published_parts(it.report)));
    let of_conditions = condition_tables(conditions, input.showing);
    if of_conditions.is_empty() {
        parts.extend(tables(of_runs));
    } else {
        parts.extend(tables(of_conditions));
        parts.push(Part::Details("Every run".into(), tables(of_runs).collect()));
    }
    parts.extend(input.experiment.into_iter().flat_map(|it| other_results(it.report)));
    parts
}

/// Where the published figures come from, and those measured here.
fn set_ups(input: &PageInput<'_>) -> Option<String> {
    let facts = input.experiment?.report.recipe.as_ref()?;
    let recipe = recipe::find(&facts.name).filter(|recipe| recipe.published.is_some())?;
    let is_joint = input.experiment?.report.published.as_ref().is_some_and(PublishedResults::is_joint);
    let machine = reported_run::machine(input.runs).filter(|_| !is_joint);
    let here = machine.map(|machine| format!(" Here: {machine}; target `{}`.", facts.target)).unwrap_or_default();
    Some(format!("Published: {}.{here} Compare directions, not values.", recipe.origin))
}

fn plots(input: &PageInput<'_>) -> Vec<Part> {
    let metric = sentences::other_metric(input, "Plots of changes are", "all other plots are", &[]);
    let notes =
        metric.filter(|_| !input.figures.is_empty()).into_iter().chain(sentences::without_plots(input.summaries));
    std::iter::once(Part::Notes(notes.collect())).chain(input.figures.iter().cloned().map(Part::Figure)).collect()
}

/// The delays of each way of the only run, or those of several runs to be opened.
fn each_way(input: &PageInput<'_>, names: &[String]) -> Vec<Part> {
    let part = |(summary, name): (&Summary, &String)| {
        let mut table = one_way::table(summary, name)?;
        explain_marks(std::slice::from_mut(&mut table));
        Some(match input.summaries {
            _ if table.rows.is_empty() => Part::Notes(vec![table.title]),
            [_] => Part::Table(table),
            _ => Part::Details(std::mem::replace(&mut table.title, name.clone()), vec![Part::Table(table)]),
        })
    };
    input.summaries.iter().zip(names).filter_map(part).collect()
}

/// The explanation of the only run, or those of several runs to be opened.
fn slow(input: &PageInput<'_>, names: &[String]) -> Vec<Part> {
    // The page has a heading.
    let parts = |found: &Explanation| explain::parts(found, "", true);
    let explained =
        input.explanations.iter().zip(names).filter_map(|(found, name)| Some((name, parts(found.as_ref()?))));
    match input.explanations {
        [_] => explained.flat_map(|(_, parts)| parts).collect(),
        _ => explained.map(|(name, parts)| Part::Details(name.clone(), parts)).collect(),
    }
}

/// The warnings of the experiment, and the caveats of the runs and of their comparison, each once, most severe first.
fn caveats(input: &PageInput<'_>, names: &[String], of_comparison: Vec<Part>) -> Vec<CaveatView> {
    let warnings = input.experiment.into_iter().flat_map(|it| it.report.warnings()).map(CaveatView::warning);
    let compared = input.comparisons.map_or(&[][..], |comparisons| &comparisons.caveats);
    let of_runs = summary_view::caveats(input.summaries, names, compared);
    let mut all: Vec<CaveatView> = Vec::new();
    let of_comparison = of_comparison.into_iter().flat_map(|part| match part {
        Part::Caveats(caveats) => caveats,
        _ => Vec::new(),
    });
    for caveat in warnings.chain(of_runs).chain(of_comparison) {
        if !all.contains(&caveat) {
            all.push(caveat);
        }
    }
    all.sort_by_key(|caveat| Reverse(caveat.severity));
    all
}

fn conditions_and_hosts(input: &PageInput<'_>, names: &[String]) -> Vec<Part> {
    let mut parts = vec![Part::Remarks(remarks::remarks(input.summaries, names))];
    parts.extend(reported_run::hosts(input.runs));
    let titled = |table| Part::Table(TableView { title: "Loads, offered and achieved".into(), ..table });
    parts.extend(loads_table(&reached_loads(input.summaries)).map(titled));
    parts
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

fn reproduce(input: &PageInput<'_>) -> Vec<Part> {
    let block = |title: &str, text: String| TextBlock { title: title.into(), text };
    let versions = block("Versions", reported_run::versions(input.runs).join("\n"));
    let blocks = match input.experiment {
        Some(PageExperiment { report, file }) => {
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
        None => {
            let mut blocks = vec![block("Commands", commands(input)), versions];
            for run in input.runs {
                if blocks.len() < MOST_RUNS + 2 && blocks.iter().all(|known| known.text != run.specification()) {
                    blocks.push(block(&run.title_of_specification(), run.specification().to_owned()));
                }
            }
            blocks
        }
    };
    let mut parts: Vec<Part> = blocks.into_iter().map(Part::Text).collect();
    if !input.summaries.is_empty() {
        parts.extend([Part::Heading("Recordings".into()), recordings(input.summaries, input.showing)]);
    }
    parts
}
