//! Rendering of gates on the figures of runs: lines of text, and their form in JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::comparison::figure_beside;
use super::json::statistics::without_nulls;
use super::quantiles::in_words;
use crate::analysis::comparison::{MISSING, Quantity};
use crate::analysis::experiment::ColumnFigure;
use crate::analysis::{ExperimentGateResult, GateReason, GateState, JudgedRuns, Kind, Summary, ValueGateResult};
use crate::units::human::{counted, grouped};

/// A line for each gate of each run that can have its figure; of several runs with the name of the run, which is in `names`.
pub(super) fn lines(summaries: &[Summary], names: &[String]) -> Vec<String> {
    let of = |(summary, name): (&Summary, &String)| {
        let by = if summaries.len() > 1 { format!(" for `{name}`") } else { String::new() };
        let line = |result: &ValueGateResult| {
            format!("gate `{}` {}{by}: {}", result.gate, result.state.in_text(), words(result, summary.kind))
        };
        summary.gates.iter().map(line).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = summaries.iter().zip(names).flat_map(of).collect();
    let gates: BTreeSet<&str> = summaries.iter().flat_map(|summary| &summary.gates).map(|one| &*one.gate).collect();
    for gate in gates {
        let has = |summary: &&Summary| summary.gates.iter().any(|result| result.gate == gate);
        let without = summaries.len() - summaries.iter().filter(has).count();
        if without > 0 {
            lines.push(format!("gate `{gate}` does not apply to {}: no such figure", counted(without, "run")));
        }
    }
    lines
}

/// The line of a gate of an experiment, with its worst condition or run.
pub(super) fn line_over_runs(result: &ExperimentGateResult) -> String {
    let (gate, state) = (&result.gate, result.state());
    let noun = if result.judged == result.runs { "runs" } else { "conditions" };
    let all = grouped(result.judged as u64);
    let of_runs = |count: usize| format!("in {} of {all} {noun}", grouped(count as u64));
    let is_one = result.judged == 1 && result.missing == 0 && result.gone == 0;
    if let Some(only) = result.worst.as_ref().filter(|_| is_one) {
        return format!("gate `{gate}` {}: {}", state.in_text(), over_runs(only));
    }
    let count = match state {
        GateState::Kept => format!("in each of {all} {noun}"),
        GateState::Undecided => of_runs(result.undecided),
        GateState::Broken if result.gone > 0 && result.broken == 0 => {
            format!("without {} {MISSING}", runs_that_are(result.gone))
        }
        GateState::Broken if result.worst.is_none() || (result.missing > 0 && result.broken == 0) => {
            format!("without a run of {}", counted(result.missing, "condition"))
        }
        GateState::Broken => of_runs(result.broken),
    };
    let of_worst = |worst: &JudgedRuns| format!("; the worst, `{}`: {}", worst.name, over_runs(worst));
    let worst = result.worst.as_ref().map(of_worst).unwrap_or_default();
    format!("gate `{gate}` {} {count}{worst}", state.in_text())
}

fn over_runs(judged: &JudgedRuns) -> String {
    let words = words(&judged.result, judged.kind);
    // A run without a figure decides alone.
    let is_mean = judged.runs > 1 && judged.result.bounds.1.is_some();
    if is_mean { format!("{words} over {}", counted(judged.runs, "run")) } else { words }
}

fn runs_that_are(count: usize) -> String {
    if count == 1 { "1 run that is".into() } else { format!("{} runs that are", grouped(count as u64)) }
}

/// The value that was judged, and the reason if it is not the value alone.
fn words(result: &ValueGateResult, kind: Kind) -> String {
    let figure = |value: f64| figure_beside(Quantity::Of(result.estimand), value, result.limit);
    let value = result.value.map(figure);
    match (result.reason, value) {
        (Some(GateReason::Unanswered), _) => nothing_answered(kind).into(),
        (Some(GateReason::Infinite), _) => {
            format!("infinite, since it lies among {} that count as {}", kind.rows(), kind.infinite())
        }
        (Some(GateReason::Unsupported), _) => match result.bounds {
            (None, Some(upper)) => format!("at most {} with 95 % confidence", figure(upper)),
            (bound, _) => {
                let quantile = ColumnFigure::Unsupported { value: result.value, bound, is_small: false };
                format!("{}; too few effective observations lie beyond it", in_words(quantile, figure))
            }
        },
        (Some(GateReason::Losses), _) => format!("infinite in some runs: too many {} failed", kind.rows()),
        (Some(GateReason::NotSent), Some(value)) => format!("{value}, of the probes that left"),
        (Some(GateReason::MissingRuns), value) => {
            format!(
                "{}; runs or files of its experiment are missing, damaged or edited",
                value.unwrap_or_else(|| "–".into())
            )
        }
        (_, Some(value)) => match result.bounds {
            (Some(low), Some(high)) => format!("{value} [{}, {}]", figure(low), figure(high)),
            _ => value,
        },
        (_, None) => "there is no value".into(),
    }
}

const fn nothing_answered(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => "no probe was answered",
        Kind::Wakeup => "no wake-up was measured",
        Kind::Command => "no execution succeeded",
        Kind::Stream => "no packet arrived",
        Kind::Values => "no value is finite",
    }
}

/// The gates of a run in `latlab.summary/1`.
pub(super) fn documents(results: &[ValueGateResult]) -> Value {
    let of = |result: &ValueGateResult| {
        let document = json!({
            "gate": result.gate,
            "metric": result.estimand.metric_name(),
            "statistic": result.estimand.statistic_name(),
            "unit": Quantity::Of(result.estimand).unit(),
            "value": result.value,
            "lower_bound": result.bounds.0,
            "upper_bound": result.bounds.1,
            "state": result.state.word(),
            "reason": result.reason.map(GateReason::code),
        });
        without_nulls(document, &["lower_bound", "upper_bound"])
    };
    results.iter().map(of).collect()
}

/// The gates of an experiment in `latlab.compare/1`, each with the value of its worst run.
pub(super) fn document_over_runs(results: &[ExperimentGateResult]) -> Value {
    let of = |result: &ExperimentGateResult| {
        let worst = result.worst.as_ref();
        let document = json!({
            "gate": result.gate,
            "metric": result.estimand.metric_name(),
            "statistic": result.estimand.statistic_name(),
            "runs": result.runs,
            "judged": result.judged,
            "missing": result.missing,
            "broken": result.broken,
            "undecided": result.undecided,
            "worst": worst.map(|worst| &worst.name),
            "unit": worst.and_then(|worst| Quantity::Of(worst.result.estimand).unit()),
            "value": worst.and_then(|worst| worst.result.value),
            "lower_bound": worst.and_then(|worst| worst.result.bounds.0),
            "upper_bound": worst.and_then(|worst| worst.result.bounds.1),
            "state": result.state().word(),
            "reason": result.reason().map(GateReason::code),
        });
        without_nulls(document, &["lower_bound", "upper_bound"])
    };
    results.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{AvailableFigures, SummaryOptions, ValueGates, in_memory, summarise};
    use crate::probe::Fate;

    fn judged(delays_us: &[i64], fate: Fate, gate: &str) -> Summary {
        let gates = ValueGates::parse(&[gate.to_owned()], false).expect("a gate");
        let row = |(seq, delay): (usize, &i64)| {
            in_memory::but(in_memory::closed(seq as u64, seq as i64 * 1_000, *delay), fate)
        };
        let source = in_memory::InMemory::of(in_memory::CLOSED, delays_us.iter().enumerate().map(row).collect());
        let mut options = SummaryOptions::of(&source.manifest.spec);
        gates.include(&mut options);
        let mut summary = summarise(&source, &options).expect("no windows");
        gates.judge(&mut summary, &AvailableFigures::of(&source.manifest.spec, None));
        summary
    }

    #[test]
    fn a_value_near_the_limit_has_as_many_digits_as_separate_them() {
        let hundred: Vec<i64> = (0..100).map(|number| 1_040 + number % 3).collect();
        for (gate, line) in [
            ("max <= 1.0419ms", "gate `max <= 1.0419ms` failed: 1.0420 ms"),
            ("max <= 1.0421ms", "gate `max <= 1.0421ms` met: 1.0420 ms"),
            ("max <= 1.041999ms", "gate `max <= 1.041999ms` failed: 1.042000 ms"),
            ("max < 1.042ms", "gate `max < 1.042ms` failed: 1.04 ms"),
            ("max <= 1.046ms", "gate `max <= 1.046ms` met: 1.04 ms"),
        ] {
            assert_eq!(lines(&[judged(&hundred, Fate::Answered, gate)], &[String::new()]), [line]);
        }
    }

    #[test]
    fn a_line_of_an_experiment_names_its_worst_run() {
        let gates = ValueGates::parse(&["max <= 1ms".to_owned()], false).expect("a gate");
        let run = |name: &str, delay| Summary {
            recording: format!("e/runs/{name}"),
            ..judged(&[delay], Fate::Answered, "max <= 1ms")
        };
        let line = |runs: &[Summary], missing| line_over_runs(&gates.over_runs(Kind::Ping, runs, missing)[0]);
        let kept = "gate `max <= 1ms` met in each of 2 runs; the worst, `b`: 50.0 µs";
        assert_eq!(line(&[run("a", 40), run("b", 50)], 0), kept);
        let broken = "gate `max <= 1ms` failed in 1 of 2 runs; the worst, `b`: 2.00 ms";
        assert_eq!(line(&[run("a", 40), run("b", 2_000)], 1), broken);
        assert_eq!(line(&[], 2), "gate `max <= 1ms` failed without a run of 2 conditions");
        let missing = "gate `max <= 1ms` failed without a run of 1 condition; the worst, `a`: 40.0 µs";
        assert_eq!(line(&[run("a", 40)], 1), missing);
    }
}
