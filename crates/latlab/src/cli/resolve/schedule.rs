//! Resolution of schedules, stop conditions and time-outs.

use super::{Environment, RequestError, value};
use crate::cli::args::{ScheduleArgs, StopArgs};
use crate::plan::{RunSpec, Schedule, StopWhen, Warmup, defaults};
use crate::units::{Nanos, human};

/// Resolves the stop condition; a count without a duration removes the default duration.
pub(super) fn stop(typed: &StopArgs) -> Result<StopWhen, RequestError> {
    let count = typed.count.as_deref().map(|count| value::whole("--count", count, 1..=u64::MAX)).transpose()?;
    let duration = typed.duration.as_deref().map(|span| value::span("--duration", span, defaults::DURATION_MAX));
    let default = count.is_none().then_some(defaults::DURATION);
    Ok(StopWhen { count, duration_ns: duration.transpose()?.or(default) })
}

/// Resolves the warm-up: a count, a time or, by default, the shorter of both. 0 disables it.
pub(super) fn warmup(typed: &StopArgs) -> Result<Warmup, RequestError> {
    let Some(typed) = typed.warmup.as_deref() else {
        return Ok(Warmup { count: Some(defaults::WARMUP_PROBES), duration_ns: Some(defaults::WARMUP) });
    };
    if let Ok(count) = human::parse_count(typed) {
        return Ok(Warmup { count: Some(count).filter(|count| *count > 0), duration_ns: None });
    }
    match human::parse_duration(typed) {
        Ok(Nanos::ZERO) => Ok(Warmup { count: None, duration_ns: None }),
        _ => Ok(Warmup { count: None, duration_ns: Some(value::span("--warmup", typed, defaults::DURATION_MAX)?) }),
    }
}

pub(super) fn schedule(typed: &ScheduleArgs, environment: &Environment) -> Result<Schedule, RequestError> {
    nothing_stands_alone(typed)?;
    let Some(interval) = typed.interval.as_deref() else {
        return Ok(Schedule::Closed);
    };
    let interval_ns = value::span("--interval", interval, defaults::INTERVAL_MAX)?;
    let seed = typed.seed.as_deref().map(|seed| value::whole("--seed", seed, 0..=u64::MAX)).transpose()?;
    Ok(match typed.poisson {
        true => Schedule::Poisson { mean_ns: interval_ns, seed: seed.unwrap_or(environment.seed) },
        false => Schedule::Periodic { interval_ns },
    })
}

/// Refuses intervals of probes below [`defaults::INTERVAL_MIN`] in `runs` that are to begin. The resolution of a schedule
/// accepts them: experiments of versions without this limit are still read, compared and continued.
pub fn expect_feasible_intervals<'a>(runs: impl IntoIterator<Item = &'a RunSpec>) -> Result<(), RequestError> {
    let mut intervals = runs.into_iter().filter_map(|run| run.ping()?.schedule.interval());
    let Some(interval) = intervals.find(|interval| *interval < defaults::INTERVAL_MIN) else { return Ok(()) };
    let least = human::typed_span(defaults::INTERVAL_MIN);
    let cause = format!("it is shorter than {least}: a host cannot send probes one by one that often");
    let hint = format!("{least} or longer; without it the next probe leaves when the last one was answered");
    Err(value::unusable("--interval", human::typed_span(interval), cause, hint))
}

/// Refuses options of a schedule without `--interval`.
fn nothing_stands_alone(typed: &ScheduleArgs) -> Result<(), RequestError> {
    let (needed, cause) = ("--interval", "a closed loop has no schedule");
    let alone = |option, hint| Err(RequestError::Alone { option, needed, cause, hint });
    match typed {
        ScheduleArgs { interval: None, poisson: true, .. } => alone("--poisson", "such as `-i 1ms --poisson`"),
        ScheduleArgs { interval: None, max_backlog: Some(_), .. } => {
            alone("--max-backlog", "such as `-i 1ms --max-backlog 100ms`")
        }
        ScheduleArgs { poisson: false, seed: Some(_), .. } => Err(RequestError::Alone {
            option: "--seed",
            needed: "--poisson",
            cause: "only exponential gaps are random",
            hint: "such as `-i 1ms --poisson --seed 7`",
        }),
        _ => Ok(()),
    }
}

pub(super) fn timeout(typed: &ScheduleArgs) -> Result<Nanos, RequestError> {
    let timeout = typed.timeout.as_deref().map(|span| value::span("--timeout", span, defaults::TIMEOUT_MAX));
    Ok(timeout.transpose()?.unwrap_or(defaults::TIMEOUT))
}

pub(super) fn max_backlog(typed: &ScheduleArgs) -> Result<Nanos, RequestError> {
    let backlog = typed.max_backlog.as_deref().map(|span| value::span("--max-backlog", span, defaults::DURATION_MAX));
    Ok(backlog.transpose()?.unwrap_or(defaults::MAX_BACKLOG))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PingSpec;

    fn stopping(count: Option<&str>, duration: Option<&str>) -> StopWhen {
        let typed = StopArgs { count: count.map(Into::into), duration: duration.map(Into::into), warmup: None };
        stop(&typed).expect("well typed")
    }

    #[test]
    fn a_count_removes_the_default_duration() {
        let ten = Some(Nanos::from_secs(10));
        assert_eq!(stopping(None, None), StopWhen { count: None, duration_ns: ten });
        assert_eq!(stopping(Some("5k"), None), StopWhen { count: Some(5_000), duration_ns: None });
        assert_eq!(stopping(Some("5"), Some("10s")), StopWhen { count: Some(5), duration_ns: ten });
    }

    #[test]
    fn warmup_is_a_count_or_a_time() {
        let read = |typed: &str| warmup(&StopArgs { warmup: Some(typed.into()), ..StopArgs::default() });
        let none = Warmup { count: None, duration_ns: None };
        for (typed, expected) in [
            ("500", Warmup { count: Some(500), ..none }),
            ("1M", Warmup { count: Some(1_000_000), ..none }),
            ("1m", Warmup { duration_ns: Some(Nanos::from_secs(60)), ..none }),
            ("250ms", Warmup { duration_ns: Some(Nanos::from_millis(250)), ..none }),
            ("0", none),
            ("0s", none),
        ] {
            assert_eq!(read(typed), Ok(expected), "{typed}");
        }
        for typed in ["-1", "-1s", "soon", "25h", ""] {
            assert!(read(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn an_interval_that_no_sender_keeps_is_read_and_refused_where_runs_begin() {
        let begin = |interval: &str| {
            let typed = ScheduleArgs { interval: Some(interval.into()), ..ScheduleArgs::default() };
            let schedule = schedule(&typed, &Environment::default()).expect(interval);
            let runs = [Schedule::Closed, schedule].map(|schedule| RunSpec::local(PingSpec::on(schedule)));
            expect_feasible_intervals(&runs)
        };
        assert_eq!(begin("1us"), Ok(()));
        for typed in ["10ns", "999ns"] {
            let error = begin(typed).expect_err(typed);
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
        }
    }

    #[test]
    fn the_environment_seeds_poisson_unless_a_seed_is_given() {
        let environment = Environment { seed: 99, ..Environment::default() };
        let typed = |poisson, seed: Option<&str>| ScheduleArgs {
            interval: Some("1ms".into()),
            poisson,
            seed: seed.map(Into::into),
            ..ScheduleArgs::default()
        };
        let mean_ns = Nanos::from_millis(1);
        for (poisson, seed, expected) in [
            (false, None, Schedule::Periodic { interval_ns: mean_ns }),
            (true, None, Schedule::Poisson { mean_ns, seed: 99 }),
            (true, Some("7"), Schedule::Poisson { mean_ns, seed: 7 }),
        ] {
            assert_eq!(schedule(&typed(poisson, seed), &environment), Ok(expected));
        }
        assert_eq!(schedule(&ScheduleArgs::default(), &environment), Ok(Schedule::Closed));
    }
}
