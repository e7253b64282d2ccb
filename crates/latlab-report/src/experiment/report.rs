//! The report of an experiment as text, as Markdown, and as `latlab.compare/1` (docs/schemas/compare-1.json).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{aa_test, published, single_condition, spread};
use crate::analysis::comparison::impossible_words;
use crate::analysis::experiment::ExperimentReport;
use crate::comparison::{self, Companions};
use crate::plan::Factors;
use crate::recipe;
use crate::summary_view::caveat_views;
use crate::text::{self, Style};
use crate::view::{CaveatView, Part, TableView, TextBlock};
use crate::{gates, markdown};

/// The report as text; plots in the form of ministat are `plot_width` characters wide.
pub fn text(report: &ExperimentReport, plot_width: usize, style: Style) -> String {
    text::render(&parts(report, plot_width, style), style)
}

/// The report as Markdown, with its warnings: a comment has no standard error. Tables with the columns of a publication and
/// plots are blocks of fixed-width text.
pub fn markdown(report: &ExperimentReport, plot_width: usize) -> String {
    let mut parts = parts(report, plot_width, Style::PLAIN);
    parts.push(Part::Caveats(report.warnings_of_journal().into_iter().map(CaveatView::warning).collect()));
    markdown::render(&parts)
}

/// The published figures beside the measured ones; empty if nothing was published.
pub(crate) fn published_tables(report: &ExperimentReport) -> Vec<TableView> {
    report.published.as_ref().map(published::tables).unwrap_or_default()
}

/// The results of the report that have columns of fixed width, of `width` characters. Comparisons and published figures are
/// left out.
pub(crate) fn text_blocks(report: &ExperimentReport, width: usize) -> Vec<Part> {
    let mut parts = results(report, width, Style { width, ..Style::PLAIN });
    parts.extend(single_condition(report, Style { width, ..Style::PLAIN }));
    parts
}

/// The parts of the report in their order, published figures first.
fn parts(report: &ExperimentReport, plot_width: usize, style: Style) -> Vec<Part> {
    let published = report.published.as_ref().map(|results| block(published::text(results, style)));
    let comparisons = report.comparisons.as_ref().map(|comparisons| comparison::parts(comparisons, &[], false));
    // A comparison has this caveat itself.
    let missing: Vec<_> = report.missing_caveat().filter(|_| report.comparisons.is_none()).into_iter().collect();
    let recipe = report.recipe.as_ref().filter(|_| published.is_some()).and_then(|facts| recipe::find(&facts.name));
    let lesson = recipe.map(|recipe| Part::Notes(vec![recipe.lesson.clone()]));
    let mut parts: Vec<Part> = published.into_iter().chain(lesson).chain(results(report, plot_width, style)).collect();
    parts.extend(comparisons.into_iter().flatten());
    parts.extend(single_condition(report, style));
    parts.push(Part::Caveats(caveat_views(&missing)));
    parts.push(Part::Notes(gates::lines_over_runs(&report.gates)));
    parts
}

/// The results that only some experiments have.
fn results(report: &ExperimentReport, plot_width: usize, style: Style) -> Vec<Part> {
    let texts = [
        report.spread.as_ref().and_then(|runs| spread::classic(runs, plot_width)),
        report.spread.as_ref().map(|runs| spread::text(runs, style)),
        report.aa_test.as_ref().map(|test| aa_test::text(test, style)),
    ];
    texts.into_iter().flatten().map(block).collect()
}

/// A single condition, and those that cannot be measured here, which a comparison names itself.
fn single_condition(report: &ExperimentReport, style: Style) -> Vec<Part> {
    let Some(rows) = &report.single_condition else { return Vec::new() };
    let measured: BTreeSet<&Factors> = report.runs.iter().map(|run| &run.key.factors).collect();
    let impossible = [report.dropped.as_slice(), &report.impossible].concat();
    let possible: Vec<&Factors> =
        measured.into_iter().filter(|own| impossible.iter().all(|other| other.factors != **own)).collect();
    let words = impossible_words(&impossible, &possible).map(|words| format!("not possible here: {words}"));
    let text = single_condition::text(rows, report.only_condition().as_deref(), style);
    vec![block(text), Part::Notes(words.into_iter().collect())]
}

/// The first line of a text is its title.
fn block(text: String) -> Part {
    let (title, text) = text.split_once('\n').unwrap_or((&text, ""));
    Part::Text(TextBlock { title: title.to_owned(), text: text.to_owned() })
}

/// The document, ending in a newline; without comparisons these are empty.
pub fn json(report: &ExperimentReport) -> String {
    let (experiment, runs) = (experiment(report), json!(report.runs));
    match &report.comparisons {
        Some(comparisons) => {
            comparison::json(comparisons, &[], Companions { experiment: Some(experiment), runs: Some(runs) })
        }
        None => {
            let caveats: Vec<_> = report.missing_caveat().into_iter().collect();
            let document = json!({
                "schema": "latlab.compare/1", "baseline": null, "factor": null, "over": "blocks", "interleaved": true,
                "groups": [], "comparisons": [], "experiment": experiment, "runs": runs, "caveats": caveats,
            });
            format!("{document:#}\n")
        }
    }
}

/// The key `experiment`. Parts that only some experiments have are absent in others.
fn experiment(report: &ExperimentReport) -> Value {
    let mut document = json!({
        "id": report.id,
        "name": report.name,
        "directory": report.directory,
        "recipe": report.recipe,
        "finished": report.finished,
        "blocks": report.blocks_ended,
        "changed": report.changes,
        "dropped": report.dropped,
    });
    let parts = [
        ("published", report.published.as_ref().map(published::document)),
        ("spread", report.spread.as_ref().map(spread::document)),
        ("same", report.aa_test.as_ref().map(aa_test::document)),
        ("alone", report.single_condition.as_deref().map(single_condition::document)),
        ("gates", Some(&report.gates).filter(|gates| !gates.is_empty()).map(|gates| gates::document_over_runs(gates))),
    ];
    for (key, part) in parts {
        if let Some(part) = part {
            document[key] = part;
        }
    }
    document
}
