use super::{KeySource, RequestError, load, path, talk, target, value};
use crate::cli::args::HoldArgs;
use crate::console::Talk;
use crate::plan::{LoadKind, LoadSpec, Protocol, Target, defaults};
use crate::units::Nanos;

/// `latlab load`, settled.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldJob {
    /// Whose path a network load takes.
    pub target: Target,
    /// What to make.
    pub loads: Vec<LoadSpec>,
    /// Where the key of network loads comes from.
    pub key: KeySource,
    /// How long, after they have settled.
    pub duration: Nanos,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub talk: Talk,
}

/// Settles `typed`.
pub fn hold(typed: &HoldArgs) -> Result<HoldJob, RequestError> {
    let target = target::target(typed.target.as_deref(), Protocol::Native)?;
    let loads = load::loads(&typed.loads, &target)?;
    if typed.loads.load.is_empty() {
        return Err(RequestError::Alone {
            option: "load",
            needed: "--load",
            cause: "it has nothing to make",
            hint: "such as `latlab load --load cpu=80%`",
        });
    }
    // Whoever loads the far end needs its agent, and the agent wants a key.
    let needs_path = loads.iter().any(|load| load.at.is_peer() || matches!(load.kind, LoadKind::Net(_)));
    let key = if needs_path { path::key(&typed.file, &target, Protocol::Native)? } else { KeySource::None };
    let duration = typed.duration.as_deref().map(|span| value::span("--duration", span, defaults::DURATION_MAX));
    let duration = duration.transpose()?.unwrap_or(defaults::DURATION);
    Ok(HoldJob { target, loads, key, duration, json: typed.json.json, talk: talk(&typed.talk) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn settle(line: &str) -> Result<HoldJob, RequestError> {
        let typed = ["latlab", "load"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Load(args) => hold(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn loads_are_held_for_ten_seconds_unless_told_otherwise() {
        let job = settle("--load cpu=80% --load heaters=2").expect("well typed");
        assert_eq!((job.loads.len(), job.duration, job.target), (2, Nanos::from_secs(10), Target::Local));
        assert_eq!(
            settle("--load none -d 250ms").map(|job| (job.loads, job.duration)),
            Ok((vec![], Nanos::from_millis(250)))
        );
        for line in ["", "-d 1s", "--load cpu=80% -d 0s", "--load cpu=80% -d 25h", "10.0.0.7 --load cpu=80%@peer"] {
            assert!(settle(line).is_err(), "{line}");
        }
    }
}
