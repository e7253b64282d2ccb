//! Resolution of `latlab wakeup`.

use super::measuring::{self, expect_settings_of_this_host, remedy_runs, rounds};
use super::{Environment, MeasureJob};
use crate::cli::args::WakeupArgs;
use crate::cli::options::KeySource;
use crate::cli::value::{too_many, unusable};
use crate::diagnostics::Failure;
use crate::plan::{EndSpec, Plan, RunSpec, Target, Via, WaitMode, WakeupCpus, WakeupSpec, Work, defaults};
use crate::units::Nanos;
use crate::units::human::typed_span;

/// Resolves the arguments and checks them against each other.
pub fn wakeup(typed: &WakeupArgs, environment: &Environment) -> Result<MeasureJob, Failure> {
    let sleep = &typed.sleep;
    let intervals = if sleep.interval.is_empty() { vec![defaults::WAKEUP_INTERVAL] } else { sleep.interval.clone() };
    let ways = if sleep.via.is_empty() { vec![Via::ClockNanosleep] } else { sleep.via.clone() };
    expect_each_once(&intervals, &ways)?;
    let work = |via, interval_ns| {
        Work::Wakeup(WakeupSpec {
            via,
            interval_ns,
            relative: sleep.relative,
            cpus: typed.threads.cpu.clone().unwrap_or(WakeupCpus::Anywhere),
            break_ns: sleep.break_after,
        })
    };
    let base = RunSpec {
        stop: typed.stop.stop(),
        warmup: typed.stop.warmup(),
        trace: typed.trace.trace,
        here: EndSpec { fifo: typed.threads.fifo, mlock: typed.threads.mlock, ..EndSpec::SYSTEM },
        ..measuring::run(&typed.measuring, work(ways[0], intervals[0]), Target::Local)?
    };
    expect_settings_of_this_host(&base)?;
    if let (Some(duration), Some(longest)) = (base.stop.duration_ns, intervals.iter().max())
        && *longest > duration
    {
        let cause = format!("no wake-up is due within {}", typed_span(duration));
        let hint = "a longer `--duration`, or `-n` without `--duration`";
        return Err(unusable("--interval", typed_span(*longest), cause, hint));
    }
    let count = intervals.len() * ways.len();
    if count > defaults::RUNS_MAX {
        let cause = "every interval makes a run with every way of sleeping";
        return Err(too_many(count, "runs", defaults::RUNS_MAX, cause, "give fewer intervals, or one way at a time"));
    }
    let pairs = intervals.iter().flat_map(|interval| ways.iter().map(move |via| (*via, *interval)));
    let runs: Vec<RunSpec> = pairs.map(|(via, interval)| run(&base, work(via, interval))).collect();
    let (runs, recordings) = remedy_runs(runs, typed.remedies, &typed.stop, "several ways or intervals")?;
    let rounds = slices_with_a_slot(&runs).min(rounds(&runs));
    let plan = Plan { runs, rounds };
    Ok(MeasureJob::of(plan, KeySource::None, recordings, &typed.measuring, environment))
}

/// Builds a run; a thread that never sleeps has the wait mode `spin`.
fn run(base: &RunSpec, work: Work) -> RunSpec {
    let spins = matches!(&work, Work::Wakeup(wakeup) if wakeup.via == Via::Spin);
    let wait = if spins { WaitMode::Spin } else { base.here.wait };
    RunSpec { work, here: EndSpec { wait, ..base.here }, ..base.clone() }
}

/// Returns the largest number of slices of which each has a slot of the longest interval.
fn slices_with_a_slot(runs: &[RunSpec]) -> u32 {
    let slots = runs.iter().filter_map(|run| Some(run.stop.duration_ns?.0 / run.schedule().interval()?.0.max(1)));
    slots.min().map_or(u32::MAX, |slots| u32::try_from(slots.max(1)).unwrap_or(u32::MAX))
}

fn expect_each_once(intervals: &[Nanos], ways: &[Via]) -> Result<(), Failure> {
    let cause = "it was given twice";
    if let Some(twice) = (1..intervals.len()).find(|place| intervals[..*place].contains(&intervals[*place])) {
        return Err(unusable("--interval", typed_span(intervals[twice]), cause, "give each interval once"));
    }
    if let Some(twice) = (1..ways.len()).find(|place| ways[..*place].contains(&ways[*place])) {
        return Err(unusable("--via", ways[twice].word(), cause, "give each way once"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::plan::{Kind, Remedy};

    fn remedy_job(line: &str) -> MeasureJob {
        let line = format!("latlab wakeup {line}");
        let cli = crate::cli::parse(line.split_whitespace().map(Into::into)).expect(&line);
        let Command::Wakeup(args) = cli.command else { panic!("{line}") };
        wakeup(&args, &Environment::default()).expect(&line)
    }

    #[test]
    fn a_remedy_equals_its_options() {
        let run = remedy_job("-i 1ms").plan.runs[0].clone();
        for remedy in Remedy::of(Kind::Wakeup).iter().filter(|remedy| **remedy != Remedy::ClockNanosleep) {
            let typed = remedy_job(&format!("-i 1ms {}", remedy.words())).plan.runs[0].clone();
            assert_eq!(remedy.applied(&run), Ok(typed), "{remedy:?}");
        }
        let run = remedy_job("-i 1ms --via poll").plan.runs[0].clone();
        assert_eq!(
            Remedy::ClockNanosleep.applied(&run),
            Ok(remedy_job("-i 1ms --via clock_nanosleep").plan.runs[0].clone())
        );
    }
}
