//! The report of an experiment as text, as Markdown, and as `latlab.compare/1` (docs/schemas/compare-1.json).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{aa_test, lesson, published, single_condition, spread};
use crate::analysis::GateState;
use crate::analysis::comparison::{Comparisons, impossible_words};
use crate::analysis::experiment::ExperimentReport;
use crate::comparison::{self, Companions};
use crate::plan::Factors;
use crate::recipe;
use crate::summary_view::caveat_views;
use crate::text::{self, Style};
use crate::units::human::percent;
use crate::view::{CaveatView, Part};
use crate::{gates, markdown};

/// The report as text; plots in the form of ministat are `plot_width` characters wide.
pub fn text(report: &ExperimentReport, plot_width: usize, style: Style) -> String {
    text::render(&parts(report, plot_width, style.width), style)
}

/// The report as Markdown, with its warnings: a comment has no standard error. Plots are blocks of fixed-width text.
pub fn markdown(report: &ExperimentReport, plot_width: usize) -> String {
    let verdict = verdict(report).map_or_else(String::new, |verdict| verdict + "\n");
    let mut parts = parts(report, plot_width, Style::PLAIN.width);
    parts.push(Part::Caveats(report.warnings_of_journal().into_iter().map(CaveatView::warning).collect()));
    verdict + &markdown::render(&parts)
}

/// The line that says whether the gates hold, and why.
fn verdict(report: &ExperimentReport) -> Option<String> {
    let state = report.gate_state()?;
    let word = if state == GateState::Kept { "passed" } else { state.in_text() };
    let lines =
        gate_lines(report).into_iter().filter(|(own, _)| *own == state).map(|(_, line)| markdown::escaped(&line));
    let baseline = report.comparisons.as_ref().and_then(|comparisons| comparisons.groups.groups.first());
    let against = baseline.map(|group| markdown::escaped(&format!(" against `{}`", group.words()))).unwrap_or_default();
    let noise = report.comparisons.as_ref().and_then(noise).unwrap_or_default();
    let failed = report.has_failed_runs().then(|| "runs failed".to_owned());
    Some(format!("**{word}**{against}: {}{noise}\n", lines.chain(failed).collect::<Vec<_>>().join("; ")))
}

/// How much runs of the first condition differ among themselves, in what is compared first.
fn noise(comparisons: &Comparisons) -> Option<String> {
    let outline = comparisons.outlines.first().and_then(|quantities| *quantities.first()?)?;
    let share = Some(outline.stddev / outline.mean).filter(|share| outline.n > 1 && share.is_finite())?;
    let label = comparisons.quantities.first()?.label();
    Some(format!(". Without a change {label} differs by {} from run to run (standard deviation)", percent(share)))
}

/// State and line of each gate.
fn gate_lines(report: &ExperimentReport) -> Vec<(GateState, String)> {
    let changes =
        report.change_gates.iter().map(|result| (result.state, comparison::gate(result, report.comparisons.as_ref())));
    let values = report.gates.iter().map(|result| (result.state(), gates::line_over_runs(result)));
    changes.chain(values).collect()
}

/// The published figures beside the measured ones and what they teach; empty if nothing was published.
pub(crate) fn published_parts(report: &ExperimentReport) -> Vec<Part> {
    let Some(results) = &report.published else { return Vec::new() };
    let recipe = report.recipe.as_ref().and_then(|facts| recipe::find(&facts.name));
    let lesson = recipe.map(|recipe| recipe.lesson.clone());
    let comparisons = report.comparisons.as_ref().filter(|_| !results.recipe.is_rehearsal());
    let rehearsal = results.recipe.is_rehearsal().then(|| "`--quick` is a rehearsal: results without verdicts.".into());
    let notes = lesson.into_iter().chain(lesson::recomputed(results, comparisons)).chain(rehearsal);
    vec![Part::Table(published::table(results, not_possible(report))), Part::Notes(notes.collect())]
}

/// The conditions that cannot be measured here, and why.
fn not_possible(report: &ExperimentReport) -> Option<String> {
    let measured: BTreeSet<&Factors> = report.runs.iter().map(|run| &run.key.factors).collect();
    let impossible = [report.dropped.as_slice(), &report.impossible].concat();
    let possible: Vec<&Factors> =
        measured.into_iter().filter(|own| impossible.iter().all(|other| other.factors != **own)).collect();
    impossible_words(&impossible, &possible).map(|words| format!("not possible here: {words}"))
}

/// The results of the report but for comparisons, published figures and what a page has as a plot.
pub(crate) fn other_results(report: &ExperimentReport) -> Vec<Part> {
    [results(report, None), single_condition(report)].concat()
}

/// The parts of the report in their order, published figures first.
fn parts(report: &ExperimentReport, plot_width: usize, width: usize) -> Vec<Part> {
    let is_rehearsal = report.published.as_ref().is_some_and(|published| published.recipe.is_rehearsal());
    let comparisons = report.comparisons.as_ref().filter(|_| !is_rehearsal);
    let comparisons = comparisons.map(|comparisons| comparison::parts(comparisons, &[], false));
    let early = [(report.over_budget, "the budget was used up"), (report.decided_early, "every gate was decided")];
    let early = early.iter().find(|(is_it, _)| *is_it);
    let early = early.map(|(_, why)| format!("{why}: the remaining runs were not made"));
    // A comparison has this caveat itself.
    let missing: Vec<_> = report.missing_caveat().filter(|_| report.comparisons.is_none()).into_iter().collect();
    let mut parts: Vec<Part> =
        published_parts(report).into_iter().chain(results(report, Some([plot_width, width]))).collect();
    parts.extend(comparisons.into_iter().flatten());
    parts.extend(single_condition(report));
    parts.push(Part::Caveats(caveat_views(&missing)));
    parts.push(Part::Notes(early.into_iter().chain(gate_lines(report).into_iter().map(|(_, line)| line)).collect()));
    parts
}

fn results(report: &ExperimentReport, widths: Option<[usize; 2]>) -> Vec<Part> {
    let spread = report.spread.as_ref().map(|runs| spread::parts(runs, widths));
    let aa_test = report.aa_test.as_ref().map(|test| Part::Table(aa_test::table(test)));
    spread.into_iter().flatten().chain(aa_test).collect()
}

/// A single condition, and those that cannot be measured here, which a comparison or a publication names itself.
fn single_condition(report: &ExperimentReport) -> Vec<Part> {
    let Some(rows) = &report.single_condition else { return Vec::new() };
    let words = not_possible(report).filter(|_| report.published.is_none());
    let table = single_condition::table(rows, report.only_condition().as_deref());
    vec![Part::Table(table), Part::Notes(words.into_iter().collect())]
}

/// The document, ending in a newline; without comparisons these are empty.
pub fn json(report: &ExperimentReport) -> String {
    let (experiment, runs) = (experiment(report), json!(report.runs));
    match &report.comparisons {
        Some(comparisons) => comparison::json(
            comparisons,
            &report.change_gates,
            Companions { experiment: Some(experiment), runs: Some(runs) },
        ),
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
        ("over_budget", report.over_budget.then(|| json!(true))),
        ("decided_early", report.decided_early.then(|| json!(true))),
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
