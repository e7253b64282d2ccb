use super::{KeySource, RequestError, load, path, talk, target, value};
use crate::cli::args::{AddressArgs, HoldArgs};
use crate::console::Verbosity;
use crate::plan::{LoadKind, LoadSpec, PathSpec, Protocol, Target, defaults};
use crate::units::Nanos;

/// `latlab load`, settled.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadJob {
    /// Whose path a network load takes.
    pub target: Target,
    /// The way that its packets take.
    pub path: PathSpec,
    /// What to make.
    pub loads: Vec<LoadSpec>,
    /// Where the key of network loads comes from.
    pub key: KeySource,
    /// How long, after they have settled.
    pub duration: Nanos,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub talk: Verbosity,
}

/// Settles `typed`.
pub fn hold(typed: &HoldArgs) -> Result<LoadJob, RequestError> {
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
    let path = path::path(&typed.way, &target)?;
    let sends = loads.iter().any(|load| matches!(load.kind, LoadKind::Net(_)));
    if sends {
        path::address_needed(&path, &target)?;
    } else {
        sends_nothing(&typed.way)?;
    }
    // Whoever loads the far end needs its agent, and the agent wants a key.
    let needs_peer = sends || loads.iter().any(|load| load.at.is_peer());
    let key = if needs_peer { path::key(&typed.way.key, &target, Protocol::Native)? } else { KeySource::None };
    let duration = typed.duration.as_deref().map(|span| value::span("--duration", span, defaults::DURATION_MAX));
    let duration = duration.transpose()?.unwrap_or(defaults::DURATION);
    Ok(LoadJob { target, path, loads, key, duration, json: typed.json.json, talk: talk(&typed.talk) })
}

/// Refuses what is about packets where no load sends any.
fn sends_nothing(typed: &AddressArgs) -> Result<(), RequestError> {
    let asked = [("--bind", typed.bind.is_some()), ("--dscp", typed.dscp.is_some()), ("--df", typed.df)];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(RequestError::Alone {
            option,
            needed: "--load net=…",
            cause: "it says how packets leave, and these loads send none",
            hint: "leave it out, or add a load such as `--load net=100Mbit/s`",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;

    fn settle(line: &str) -> Result<LoadJob, RequestError> {
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
        let job = settle("cmd:x --peer-addr 10.0.0.7 --bind 10.0.0.2 --load net=1Mbit/s@both").expect("well typed");
        assert_eq!((job.path.peer_address, job.path.bind_address), ("10.0.0.7".parse().ok(), "10.0.0.2".parse().ok()));
        assert!(settle("cmd:x --load cpu=10%@both").is_ok(), "no packet is sent");
        for (line, told) in [
            ("cmd:x --load net=1Mbit/s@peer", "`cmd:` needs `--peer-addr`"),
            ("--bind eth0 --load cpu=10%", "`--bind` needs `--load net=…`"),
            ("--peer-addr 10.0.0.7 --load net=1Mbit/s", "`--peer-addr` cannot go with `local`"),
        ] {
            assert_eq!(settle(line).expect_err(line).to_string(), told);
        }
        for line in ["", "-d 1s", "--load cpu=80% -d 0s", "--load cpu=80% -d 25h", "10.0.0.7 --load cpu=80%@peer"] {
            assert!(settle(line).is_err(), "{line}");
        }
    }
}
