//! The report of an experiment as text, as Markdown, and as `latlab.compare/1` (docs/schemas/compare-1.json).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{aa_test, published, single_condition, spread};
use crate::analysis::comparison::impossible_words;
use crate::analysis::experiment::ExperimentReport;
use crate::plan::Factors;
use crate::recipe;
use crate::report::comparison::{self, Companions, ComparisonShowing, ComparisonView};
use crate::report::gates;
use crate::report::html::TextBlock;
use crate::report::summary_view::caveat_views;
use crate::report::text::{Style, caveat_lines, wrap};
use crate::report::view::TableView;

/// The report as text; plots in the form of ministat are `plot_width` characters wide.
pub fn text(report: &ExperimentReport, plot_width: usize, style: Style) -> String {
    let shown = |section| match section {
        Section::Columns(text) => text,
        Section::Comparisons(view) => comparison::text(&view, style),
    };
    sections(report, plot_width, style).map(shown).collect::<Vec<_>>().join("\n")
}

/// The report as Markdown, with its warnings: a comment has no standard error. Tables with the columns of a publication and
/// plots are blocks of fixed-width text.
pub fn markdown(report: &ExperimentReport, plot_width: usize) -> String {
    let shown = |section| match section {
        Section::Columns(text) => block(text.trim_end()),
        Section::Comparisons(view) => comparison::markdown(&view),
    };
    let warnings = report.warnings_of_journal().into_iter().map(|warning| comparison::markdown_warning(&warning));
    sections(report, plot_width, Style::PLAIN).map(shown).chain(warnings).collect::<Vec<_>>().join("\n")
}

/// A block of fixed-width `text`, which a line of `text` cannot end.
fn block(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{text}\n{fence}\n")
}

/// The published figures beside the measured ones; empty if nothing was published.
pub fn published_tables(report: &ExperimentReport) -> Vec<TableView> {
    report.published.as_ref().map(published::tables).unwrap_or_default()
}

/// The results of the report that have columns of fixed width, of `width` characters. Comparisons and published figures are
/// left out.
pub fn text_blocks(report: &ExperimentReport, width: usize) -> Vec<TextBlock> {
    let block = |section| match section {
        // The first line of a section is its heading.
        Section::Columns(text) => {
            let (title, text) = text.split_once('\n').unwrap_or((&text, ""));
            Some(TextBlock { title: title.to_owned(), text: text.to_owned() })
        }
        Section::Comparisons(_) => None,
    };
    own_results(report, width, Style { width, ..Style::PLAIN }).filter_map(block).collect()
}

/// A part of the report.
enum Section {
    /// Text in columns of fixed width.
    Columns(String),
    Comparisons(ComparisonView),
}

/// The parts of the report in their order.
fn sections(report: &ExperimentReport, plot_width: usize, style: Style) -> impl Iterator<Item = Section> {
    let columns = |text: Option<String>| text.map(Section::Columns);
    let closing = [columns(missing_lines(report, style)), columns(gate_lines(report, style))];
    results(report, plot_width, style).chain(closing.into_iter().flatten())
}

/// What was found, in its order: published figures and what they teach first.
fn results(report: &ExperimentReport, plot_width: usize, style: Style) -> impl Iterator<Item = Section> {
    let published = report.published.as_ref().map(|results| Section::Columns(published::text(results, style)));
    let recipe = report.recipe.as_ref().filter(|_| published.is_some()).and_then(|facts| recipe::find(&facts.name));
    let lesson = recipe.map(|recipe| Section::Columns(wrap(&recipe.lesson, style.width).join("\n") + "\n"));
    published.into_iter().chain(lesson).chain(own_results(report, plot_width, style))
}

/// What was found, without published figures.
fn own_results(report: &ExperimentReport, plot_width: usize, style: Style) -> impl Iterator<Item = Section> {
    let view = |comparisons| ComparisonView::of(comparisons, &[], ComparisonShowing { explain: false });
    let columns = |text: Option<String>| text.map(Section::Columns);
    let only = report.only_condition();
    let sections = [
        columns(report.spread.as_ref().and_then(|runs| spread::classic(runs, plot_width))),
        columns(report.spread.as_ref().map(|runs| spread::text(runs, style))),
        columns(report.aa_test.as_ref().map(|test| aa_test::text(test, style))),
        report.comparisons.as_ref().map(|comparisons| Section::Comparisons(view(comparisons))),
        columns(report.single_condition.as_ref().map(|rows| single_condition::text(rows, only.as_deref(), style))),
        columns(impossible_lines(report, style)),
    ];
    sections.into_iter().flatten()
}

/// The conditions that cannot be measured here, which a comparison names itself.
fn impossible_lines(report: &ExperimentReport, style: Style) -> Option<String> {
    report.single_condition.as_ref()?;
    let measured: BTreeSet<&Factors> = report.runs.iter().map(|run| &run.key.factors).collect();
    let impossible = [report.dropped.as_slice(), &report.impossible].concat();
    let possible: Vec<&Factors> =
        measured.into_iter().filter(|own| impossible.iter().all(|other| other.factors != **own)).collect();
    let words = impossible_words(&impossible, &possible)?;
    Some(wrap(&format!("not possible here: {words}"), style.width).join("\n") + "\n")
}

/// The caveat of recordings that cannot be read, which a comparison has itself.
fn missing_lines(report: &ExperimentReport, style: Style) -> Option<String> {
    let caveats: Vec<_> = report.missing_caveat().filter(|_| report.comparisons.is_none()).into_iter().collect();
    let lines = caveat_lines(&caveat_views(&caveats), style);
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// A line for each gate; `None` without gates.
fn gate_lines(report: &ExperimentReport, style: Style) -> Option<String> {
    let lines = gates::lines_over_runs(&report.gates);
    let wrapped: Vec<String> = lines.iter().flat_map(|line| wrap(line, style.width)).collect();
    (!wrapped.is_empty()).then(|| wrapped.join("\n") + "\n")
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

#[cfg(test)]
mod tests {
    use super::block;

    #[test]
    fn no_line_of_a_block_ends_it() {
        assert_eq!(block("gate `p50 <= 1s` met"), "```text\ngate `p50 <= 1s` met\n```\n");
        assert_eq!(block("a\n````\n<b>"), "`````text\na\n````\n<b>\n`````\n");
    }
}
