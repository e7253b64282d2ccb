//! `latlab compare` with verdicts: what is asked, of which runs, and what comes of it.

use super::{Outcome, asking, groups, number_files, observing};
use crate::analysis::comparison::{
    ComparisonOptions, Comparisons, Gate, GateRow, QuestionScope, UndecidedGate, compare, gates_outcome,
    undecided_gates,
};
use crate::cli::args::{FormatWord, OverWord};
use crate::cli::resolve::VerdictJob;
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::diagnostics::Severity;
use crate::report::Style;
use crate::report::comparison::{self, Companions, ComparisonShowing, ComparisonView};

/// Compares as `job` says.
pub(super) fn run(job: &VerdictJob, console: &Console) -> Result<Outcome, Failure> {
    let paths = groups::of(&job.sources)?;
    let (gates, agenda, runs) = if number_files::are_numbers(&paths)? {
        let gates = gates(job, job.metric.as_deref())?;
        let agenda = asking::of_numbers(job, &gates)?;
        (gates, agenda, number_files::numbers(&paths, &job.sources)?)
    } else {
        let found = observing::find(&paths, console)?;
        let metric = job.metric.as_deref().or_else(|| observing::usual_metric(&found));
        let gates = gates(job, metric)?;
        let agenda = asking::of_recordings(job, metric, &gates)?;
        let runs = observing::recorded(found, &job.sources, &agenda.subjects(), console)?;
        (gates, agenda, runs)
    };
    let wishes = ComparisonOptions { over: over(job), ..ComparisonOptions::at(job.confidence.share()) };
    let comparisons = compare(runs, &agenda, &wishes)?;
    let gated: Vec<GateRow> = gates.iter().flat_map(|gate| gate.judge(&comparisons)).collect();
    show(job, &comparisons, &gated, console)?;
    for UndecidedGate { gate, hint } in undecided_gates(&gated) {
        console.warning(&format!("the gate `{gate}` is undecided"), Some(hint));
    }
    Ok(gates_outcome(&gated, job.gate_strict))
}

fn gates(job: &VerdictJob, metric: Option<&str>) -> Result<Vec<Gate>, Failure> {
    Ok(job.gates.iter().map(|text| Gate::parse(text, metric)).collect::<Result<_, _>>()?)
}

fn over(job: &VerdictJob) -> QuestionScope {
    match job.over {
        OverWord::Blocks => QuestionScope::Blocks,
        OverWord::Boots => QuestionScope::Boots,
    }
}

/// Prints the comparisons in the form that was asked for.
fn show(job: &VerdictJob, comparisons: &Comparisons, gated: &[GateRow], console: &Console) -> Result<(), Failure> {
    if job.json || job.format == FormatWord::Csv {
        let serious = comparisons.caveats.iter().filter(|caveat| caveat.severity > Severity::Note);
        serious.filter(|_| console.verbosity() > Verbosity::Quiet).for_each(|caveat| console.caveat(caveat));
    }
    let view = || ComparisonView::of(comparisons, gated, ComparisonShowing { explain: job.explain });
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    console.data(&match job.format {
        _ if job.json => comparison::json(comparisons, gated, Companions::default()),
        FormatWord::Text => comparison::text(&view(), style),
        FormatWord::Markdown => comparison::markdown(&view()),
        FormatWord::Csv => comparison::csv(comparisons),
    })
}
