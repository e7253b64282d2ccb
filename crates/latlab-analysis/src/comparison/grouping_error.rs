//! Why runs cannot be grouped or compared.

use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human;

/// Why runs cannot be grouped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupingError {
    /// No run has that factor.
    #[error("cannot group the runs by `{factor}`")]
    NoFactor {
        factor: String,
        /// The factors in which the runs differ.
        varying: Vec<String>,
    },
    /// No group has the name of the baseline.
    #[error("no group to compare with has the name `{name}`")]
    NoBaseline {
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No factor varied, or all runs are excluded.
    #[error("cannot compare {} of runs", if *groups == 1 { "one group".to_owned() } else { format!("{groups} groups") })]
    TooFewGroups {
        groups: usize,
        /// Why there are so few.
        cause: String,
        hint: String,
    },
    /// The runs are of several kinds.
    #[error("cannot compare {}", unlike(.kinds))]
    Kinds {
        /// The kinds, in the order of their first runs.
        kinds: Vec<RunsOfKind>,
    },
    /// Runs of this kind, or some of them, have no such metric.
    #[error("cannot compare `{}` of runs of `{}`", .metric.name(), .kind.word())]
    NoMetric {
        metric: Metric,
        kind: Kind,
        /// What they have: each a metric of some of the runs.
        known: Vec<Metric>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunsOfKind {
    pub kind: Kind,
    pub runs: usize,
    /// The factors in which they differ.
    pub varying: Vec<String>,
}

impl Explain for GroupingError {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        let names = |known: &[String]| known.join(", ");
        match self {
            GroupingError::NoFactor { varying, .. } if varying.is_empty() => {
                failure.because("no run has it, and the runs do not differ in any other factor").hint(NAME_GROUPS)
            }
            GroupingError::NoFactor { factor, varying } => failure
                .because(format!("no run has it; what varies is {}", names(varying)))
                .hint(match varying.iter().find(|one| one.split_once(':').is_some_and(|(_, name)| name == factor)) {
                    Some(prefixed) => format!("write it `--by {prefixed}`"),
                    None => nearest_or(factor, varying, "name one of these, or groups by `--group NAME=GLOB`"),
                }),
            GroupingError::NoBaseline { name, known } => failure
                .because(format!("the groups are {}", names(known)))
                .hint(nearest_or(name, known, "name one of these")),
            GroupingError::TooFewGroups { cause, hint, .. } => failure.because(cause).hint(hint),
            GroupingError::Kinds { kinds } => failure
                .because(join(kinds, |one| format!("{} of {}", one.runs, one.kind.word()), ", "))
                .hint(format!("choose one: {}", join(kinds, |one| format!("`--kind {}`", one.kind.word()), " or "))),
            GroupingError::NoMetric { metric, .. } if Metric::ONE_WAY.contains(metric) => failure
                .because("it has a bound from the offset of two clocks, which more runs do not narrow")
                .hint("compare `round_trip_delay`; `latlab summary --one-way` shows both ways of each run"),
            GroupingError::NoMetric { kind, known, .. } => {
                let metrics = known.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
                match (kind, known.as_slice()) {
                    (Kind::Values, [_, _, ..]) => failure
                        .because(format!("a log has values of one metric, and these have {metrics}"))
                        .hint("choose recordings of one metric"),
                    _ => failure
                        .because(format!("what they have is {metrics}"))
                        .hint("name one of these with `--metric`, or none"),
                }
            }
        }
    }
}

fn unlike(kinds: &[RunsOfKind]) -> String {
    join(kinds, |one| format!("runs of `{}`", one.kind.word()), " with ")
}

/// The words for each of `kinds`, joined by `separator`.
fn join(kinds: &[RunsOfKind], words: fn(&RunsOfKind) -> String, separator: &str) -> String {
    kinds.iter().map(words).collect::<Vec<_>>().join(separator)
}

/// The hint where the runs do not differ in a factor.
pub(super) const NAME_GROUPS: &str = "name recordings that differ, or groups by `--group NAME=GLOB`";
/// What is said of judged runs, or files of an experiment, that cannot be read as they were written.
pub const MISSING: &str = "gone, damaged or edited";
/// The hint where runs of an experiment are [`MISSING`].
pub const RESTORE: &str = "restore what is missing, or measure again: `latlab run FILE --new`";

impl GroupingError {
    /// The same, which names the `missing` recordings as a cause of too few groups.
    #[must_use]
    pub fn beside_missing(self, missing: &[String]) -> GroupingError {
        match self {
            GroupingError::TooFewGroups { groups, cause, .. } if !missing.is_empty() => {
                let cause = format!("{cause}; {MISSING}: {}", missing.join(", "));
                GroupingError::TooFewGroups { groups, cause, hint: RESTORE.into() }
            }
            other => other,
        }
    }
}

/// The hint to use the known word nearest to `typed`; `otherwise` if none is near.
fn nearest_or(typed: &str, known: &[String], otherwise: &str) -> String {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    human::nearest(typed, &names).map_or_else(|| otherwise.into(), |name| format!("did you mean `{name}`?"))
}

pub(super) fn no_run() -> GroupingError {
    too_few(0, "no run was found", "name recordings, an experiment's directory or files of numbers")
}

pub(super) fn too_few(groups: usize, cause: impl Into<String>, hint: &str) -> GroupingError {
    GroupingError::TooFewGroups { groups, cause: cause.into(), hint: hint.into() }
}
