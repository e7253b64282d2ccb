use std::path::PathBuf;

use super::{RequestError, judging, talk};
use crate::cli::args::SummaryArgs;
use crate::console::Verbosity;
use crate::plan::{CompatOutput, Judging};
use crate::units::Nanos;

/// `latlab summary`, settled as far as it can be before the recordings are open: see [`SummarySpec::over`].
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySpec {
    /// The recordings, in the order typed.
    pub recordings: Vec<PathBuf>,
    /// What was typed about the summary itself.
    wishes: SummaryRequest,
    /// Whether to compute intervals.
    pub intervals: bool,
    /// The conditions of `--fail-if`, as typed: the analysis reads them.
    pub fail_if: Vec<String>,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub talk: Verbosity,
}

/// None: as the recording says.
#[derive(Clone, Debug, PartialEq)]
struct SummaryRequest {
    quantiles: Option<Vec<f64>>,
    window_ns: Option<Nanos>,
    deadline_ns: Option<Nanos>,
    half: bool,
    like: Option<CompatOutput>,
}

impl SummarySpec {
    /// What the summary of a recording says whose run was given `recorded`.
    pub fn over(&self, recorded: &Judging) -> Judging {
        Judging {
            quantiles: self.wishes.quantiles.clone().unwrap_or_else(|| recorded.quantiles.clone()),
            window_ns: self.wishes.window_ns.or(recorded.window_ns),
            deadline_ns: self.wishes.deadline_ns.or(recorded.deadline_ns),
            half: self.wishes.half || recorded.half,
            like: self.wishes.like.or(recorded.like),
        }
    }
}

/// Settles `typed`.
pub fn summary(typed: &SummaryArgs) -> Result<SummarySpec, RequestError> {
    Ok(SummarySpec {
        recordings: typed.recordings.clone(),
        wishes: SummaryRequest {
            quantiles: judging::quantiles(&typed.judging.quantiles)?,
            window_ns: judging::window(&typed.judging)?,
            deadline_ns: judging::deadline(&typed.judging)?,
            half: typed.judging.half,
            like: typed.like.like,
        },
        intervals: !typed.no_intervals,
        fail_if: typed.fail_if.clone(),
        json: typed.json.json,
        talk: talk(&typed.talk),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn settle(line: &str) -> SummarySpec {
        let typed = ["latlab", "summary", "rec"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Summary(args) => summary(&args).expect(line),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_typed_is_as_the_run_was_told() {
        let recorded =
            Judging { quantiles: vec![0.25], window_ns: Some(Nanos(5)), deadline_ns: None, half: true, like: None };
        assert_eq!(settle("").over(&recorded), recorded);
        let typed = settle("--quantiles 0.75 --deadline 1ms").over(&recorded);
        assert_eq!((typed.quantiles, typed.deadline_ns), (vec![0.75], Some(Nanos::from_millis(1))));
        assert_eq!((typed.window_ns, typed.half), (Some(Nanos(5)), true));
    }
}
