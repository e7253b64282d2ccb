//! `--try-remedies`: what was asked for all runs of a condition, as one of these runs.

use super::{RequestError, value};
use crate::cli::args::WakeupArgs;
use crate::plan::{RunSpec, StopWhen, Via, Warmup, defaults};
use crate::units::Nanos;
use crate::units::human::typed_span;

/// Runs of each condition.
pub(super) const RUNS: u32 = defaults::REMEDY_BLOCKS * defaults::REMEDY_RUNS;
const OPTION: &str = "--try-remedies";

/// One of the runs that `asked` is cut into.
pub(super) fn short(asked: Vec<RunSpec>, typed: &WakeupArgs) -> Result<RunSpec, RequestError> {
    let out_of_place =
        |with: &str, cause, hint| RequestError::OutOfPlace { option: OPTION, with: with.into(), cause, hint };
    let [run] = <[RunSpec; 1]>::try_from(asked).map_err(|_| {
        let cause = "each condition would be tried with each remedy";
        out_of_place("several ways or intervals", cause, "give one of each, or write an experiment: `latlab run`")
    })?;
    if run.wakeup().is_some_and(|wakeup| wakeup.via == Via::Spin) {
        return Err(out_of_place("--via spin", "a thread that spins does not sleep", "leave one of them out"));
    }
    if typed.sleep.break_after.is_some() {
        let cause = "runs that a late wake-up ends cannot be compared";
        return Err(out_of_place("--break", cause, "leave one of them out"));
    }
    let duration_ns = run.stop.duration_ns.map(|span| Nanos(span.0 / i64::from(RUNS)));
    let interval = run.schedule().interval().unwrap_or_default();
    if duration_ns.is_some_and(|span| span < interval) {
        let cause = format!("no slot lies within each of the {RUNS} runs that it is cut into");
        let hint =
            format!("`-d {}` or more, or `-n` alone, which lifts it", typed_span(interval.saturating_mul(RUNS.into())));
        return Err(value::unusable("--duration", typed_span(run.stop.duration_ns.unwrap_or_default()), cause, hint));
    }
    let count = run.stop.count.map(|count| count.div_ceil(RUNS.into()));
    let warmup = match typed.stop.warmup {
        Some(_) => run.warmup,
        None => Warmup { duration_ns: Some(defaults::REMEDY_WARMUP), ..run.warmup },
    };
    Ok(RunSpec { stop: StopWhen { count, duration_ns }, warmup, ..run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::resolve::{Environment, OutputSpec, WakeupJob, wakeup};
    use crate::plan::Remedy;

    fn settle(line: &str) -> WakeupJob {
        let line = format!("latlab wakeup {line}");
        let cli = crate::cli::parse(line.split_whitespace().map(Into::into)).expect(&line);
        let Command::Wakeup(args) = cli.command else { panic!("{line}") };
        wakeup(&args, &Environment::default()).expect(&line)
    }

    #[test]
    fn what_was_asked_is_cut_into_short_runs() {
        let job = settle("--try-remedies -d 9s -n 100 -o here");
        let run = &job.plan.runs[0];
        assert_eq!(run.stop, StopWhen { count: Some(12), duration_ns: Some(Nanos::from_secs(1)) });
        assert_eq!(run.warmup.duration_ns, Some(defaults::REMEDY_WARMUP));
        assert!(job.try_remedies && job.keeping == OutputSpec::InNewStore("here".into()), "{:?}", job.keeping);
        let typed = settle("--try-remedies --warmup 5").plan.runs[0].warmup;
        assert_eq!(typed, Warmup { count: Some(5), duration_ns: None });
    }

    #[test]
    fn a_remedy_does_what_its_words_would() {
        let asked = settle("-i 1ms").plan.runs[0].clone();
        for remedy in Remedy::ALL.into_iter().filter(|remedy| *remedy != Remedy::ClockNanosleep) {
            let typed = settle(&format!("-i 1ms {}", remedy.words())).plan.runs[0].clone();
            assert_eq!(remedy.applied(&asked), Ok(typed), "{remedy:?}");
        }
        let asked = settle("-i 1ms --via poll").plan.runs[0].clone();
        assert_eq!(
            Remedy::ClockNanosleep.applied(&asked),
            Ok(settle("-i 1ms --via clock_nanosleep").plan.runs[0].clone())
        );
    }
}
