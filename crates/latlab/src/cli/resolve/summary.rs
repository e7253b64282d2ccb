//! Resolution of `latlab summary` and of the options quantiles, window and deadline.

use std::path::PathBuf;

use super::environment::verbosity;
use super::{RequestError, value};
use crate::cli::args::{GateArgs, JudgingArgs, PlotArgs, SummaryArgs};
use crate::console::Verbosity;
use crate::plan::{CompatOutput, SummaryDefaults, defaults};
use crate::units::{Nanos, human};

/// The resolved `latlab summary`; options of each recording are added by [`SummaryRequest::over`].
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySpec {
    /// Recordings in the order typed.
    pub recordings: Vec<PathBuf>,
    pub options: SummaryRequest,
    /// True to compute confidence intervals.
    pub intervals: bool,
    /// The plots below the summaries.
    pub plots: PlotArgs,
    /// What must hold; the analysis parses it.
    pub gates: GateArgs,
    /// True for one JSON document instead of text.
    pub json: bool,
    pub verbosity: Verbosity,
}

/// Options of summaries as typed: `None` selects the value of the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    quantiles: Option<Vec<f64>>,
    /// The length of a window.
    pub window_ns: Option<Nanos>,
    pub deadline_ns: Option<Nanos>,
    /// Whether halves of round trips are shown.
    pub half: bool,
    /// The tool whose output is repeated.
    pub like: Option<CompatOutput>,
}

impl SummaryRequest {
    pub(super) fn of(typed: &JudgingArgs, like: Option<CompatOutput>) -> Result<SummaryRequest, RequestError> {
        Ok(SummaryRequest {
            quantiles: quantiles(&typed.quantiles)?,
            window_ns: window(typed)?,
            deadline_ns: deadline(typed)?,
            half: typed.half,
            like,
        })
    }

    /// Returns the options of a summary: those given, else those of the recorded run.
    pub fn over(&self, recorded: &SummaryDefaults) -> SummaryDefaults {
        SummaryDefaults {
            quantiles: self.quantiles.clone().unwrap_or_else(|| recorded.quantiles.clone()),
            window_ns: self.window_ns.or(recorded.window_ns),
            deadline_ns: self.deadline_ns.or(recorded.deadline_ns),
            half: self.half || recorded.half,
            like: self.like.or(recorded.like),
        }
    }
}

/// Resolves the arguments and checks them against each other.
pub fn summary(typed: &SummaryArgs) -> Result<SummarySpec, RequestError> {
    Ok(SummarySpec {
        recordings: typed.recordings.clone(),
        options: SummaryRequest::of(&typed.judging, typed.like.like)?,
        intervals: !typed.no_intervals,
        plots: typed.plots,
        gates: typed.gates.clone(),
        json: typed.json.json,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// Resolves the summary options of a run.
pub(super) fn judging(typed: &JudgingArgs) -> Result<SummaryDefaults, RequestError> {
    Ok(SummaryDefaults {
        quantiles: quantiles(&typed.quantiles)?.unwrap_or_else(|| defaults::QUANTILES.to_vec()),
        window_ns: window(typed)?,
        deadline_ns: deadline(typed)?,
        half: typed.half,
        like: None,
    })
}

/// Returns distinct quantiles in ascending order; `None` if none was typed.
pub(super) fn quantiles(typed: &[String]) -> Result<Option<Vec<f64>>, RequestError> {
    if typed.is_empty() {
        return Ok(None);
    }
    if typed.len() > defaults::SUMMARY_QUANTILES_MAX {
        return Err(too_many_quantiles(typed.len(), defaults::SUMMARY_QUANTILES_MAX));
    }
    let mut quantiles = typed.iter().map(|one| quantile(one.trim())).collect::<Result<Vec<_>, _>>()?;
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    if quantiles.len() > defaults::QUANTILES_MAX {
        return Err(too_many_quantiles(quantiles.len(), defaults::QUANTILES_MAX));
    }
    Ok(Some(quantiles))
}

fn too_many_quantiles(count: usize, limit: usize) -> RequestError {
    RequestError::TooMany {
        count,
        noun: "quantiles",
        limit,
        cause: "each is a column of every table",
        hint: "`--quantiles` gives those that matter",
    }
}

pub(super) fn window(typed: &JudgingArgs) -> Result<Option<Nanos>, RequestError> {
    typed.window.as_deref().map(|span| value::span("--window", span, defaults::DURATION_MAX)).transpose()
}

pub(super) fn deadline(typed: &JudgingArgs) -> Result<Option<Nanos>, RequestError> {
    typed.deadline.as_deref().map(|span| value::span("--deadline", span, defaults::DURATION_MAX)).transpose()
}

fn quantile(typed: &str) -> Result<f64, RequestError> {
    let refuse = |cause: &str| {
        let hint = "between 0 and 1, neither included: `0.99` or `p99` is the 99th percentile";
        value::unusable("--quantiles", typed, cause, hint)
    };
    let number = || typed.strip_prefix(['p', 'q']).unwrap_or(typed).parse().ok();
    let out_of_range = |q: &f64| *q <= 0.0 || *q >= 1.0;
    let read = human::parse_quantile(typed).or_else(|| number().filter(out_of_range));
    match read.ok_or_else(|| refuse("it is not a quantile"))? {
        q if q > 0.0 && q < 1.0 => Ok(q),
        q if q.is_finite() => Err(refuse("it does not lie between 0 and 1")),
        _ => Err(refuse("it is not a quantile")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::diagnostics::Explain;

    fn resolve(line: &str) -> SummarySpec {
        let typed = ["latlab", "summary", "rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Summary(args) => summary(&args).expect(line),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn omitted_options_are_those_of_the_recorded_run() {
        let recorded = SummaryDefaults {
            quantiles: vec![0.25],
            window_ns: Some(Nanos(5)),
            deadline_ns: None,
            half: true,
            like: None,
        };
        assert_eq!(resolve("").options.over(&recorded), recorded);
        let typed = resolve("--quantiles 0.75 --deadline 1ms").options.over(&recorded);
        assert_eq!((typed.quantiles, typed.deadline_ns), (vec![0.75], Some(Nanos::from_millis(1))));
        assert_eq!((typed.window_ns, typed.half), (Some(Nanos(5)), true));
    }

    fn read(list: &str) -> Result<Option<Vec<f64>>, RequestError> {
        quantiles(&list.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn quantiles_are_sorted_and_distinct() {
        assert_eq!(read("0.99,0.5, 0.9,0.5"), Ok(Some(vec![0.5, 0.9, 0.99])));
        assert_eq!(read("p99.9,0.5,p50,0.999"), Ok(Some(vec![0.5, 0.999])));
        assert_eq!(quantiles(&[]), Ok(None));
    }

    #[test]
    fn malformed_quantiles_are_refused() {
        for typed in ["0", "1", "99", "-0.5", "NaN", "inf", "p0", "p100", "", "0.5,,0.9"] {
            let error = read(typed).expect_err(typed);
            assert!(error.explain().hint.is_some_and(|hint| hint.contains("0.99")), "{typed}");
        }
        let many: Vec<String> = (1..=33).map(|n| format!("0.{n:02}")).collect();
        assert!(quantiles(&many).is_err());
    }
}
