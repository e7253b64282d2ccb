//! Resolution of `latlab wakeup`, and of the run that `--try-remedies` repeats.

use super::environment::verbosity;
use super::{Environment, OutputSpec, RequestError, environment, load, path, ping, schedule, setting, summary, value};
use crate::cli::args::{EndArgs, GateArgs, SleepArgs, WakeupArgs};
use crate::console::Verbosity;
use crate::plan::{
    EndSpec, LoadKind, LoadSpec, Plan, RunSpec, SettingSpec, StopWhen, Target, Via, WaitMode, WakeupCpus, WakeupSpec,
    Warmup, Work, defaults,
};
use crate::units::Nanos;
use crate::units::human::{self, typed_span};

#[derive(Clone, Debug, PartialEq)]
pub struct WakeupJob {
    /// Runs of every sleep method with every interval.
    pub plan: Plan,
    /// True to test remedies for late wake-ups; `plan` is then one short run to be repeated.
    pub try_remedies: bool,
    /// What must hold; the analysis parses it.
    pub gates: GateArgs,
    pub output: OutputSpec,
    /// True for one JSON document instead of text.
    pub json: bool,
    /// True for the full-screen view meanwhile.
    pub live: bool,
    pub verbosity: Verbosity,
}

/// Resolves the arguments and checks them against each other.
pub fn wakeup(typed: &WakeupArgs, environment: &Environment) -> Result<WakeupJob, RequestError> {
    if typed.judging.half {
        return Err(RequestError::OutOfPlace {
            option: "--half",
            with: "wakeup".into(),
            cause: "a wake-up is not a round trip: there is nothing to halve",
            hint: "leave it out",
        });
    }
    if typed.live.live && typed.sleep.try_remedies {
        return Err(RequestError::OutOfPlace {
            option: "--live",
            with: "--try-remedies".into(),
            cause: "the view is of one plan, and each remedy is a plan of its own",
            hint: "leave one of them out",
        });
    }
    let end = EndArgs { fifo: typed.threads.fifo.clone(), mlock: typed.threads.mlock, ..EndArgs::default() };
    let cpus = cpus(typed.threads.cpu.as_deref())?;
    let (intervals, ways) = (intervals(&typed.sleep)?, ways(&typed.sleep)?);
    let break_ns = typed.sleep.break_after.as_deref();
    let break_ns = break_ns.map(|span| value::span("--break", span, defaults::INTERVAL_MAX)).transpose()?;
    let work = |via, interval_ns| {
        Work::Wakeup(WakeupSpec { via, interval_ns, relative: typed.sleep.relative, cpus: cpus.clone(), break_ns })
    };
    let base = RunSpec {
        stop: schedule::stop(&typed.stop)?,
        warmup: schedule::warmup(&typed.stop)?,
        here: path::local_end(&end)?,
        loads: loads(load::loads(&typed.loads, &Target::Local)?)?,
        settings: settings(setting::settings(&typed.settings.set, &Target::Local)?)?,
        tags: environment::tags(&typed.output.tag)?,
        judging: summary::judging(&typed.judging)?,
        ..RunSpec::here(work(Via::ClockNanosleep, defaults::WAKEUP_INTERVAL))
    };
    if let (Some(duration), Some(longest)) = (base.stop.duration_ns, intervals.iter().max())
        && *longest > duration
    {
        let cause = format!("no wake-up is due within {}", human::typed_span(duration));
        let hint = "a longer `--duration`, or `-n` alone, which lifts it";
        return Err(value::unusable("--interval", human::typed_span(*longest), cause, hint));
    }
    let count = intervals.len() * ways.len();
    if count > defaults::RUNS_MAX {
        return Err(RequestError::TooMany {
            count,
            noun: "runs",
            limit: defaults::RUNS_MAX,
            cause: "every interval makes a run with every way of sleeping",
            hint: "give fewer intervals, or one way at a time",
        });
    }
    let pairs = intervals.iter().flat_map(|interval| ways.iter().map(move |via| (*via, *interval)));
    let runs: Vec<RunSpec> = pairs.map(|(via, interval)| run(&base, work(via, interval))).collect();
    let try_remedies = typed.sleep.try_remedies;
    let runs = if try_remedies { vec![remedy_run(runs, typed)?] } else { runs };
    let recordings = if try_remedies { REMEDY_RUNS as usize } else { runs.len() };
    let output = environment::output_spec(&typed.output, recordings, environment);
    let rounds = slices_with_a_slot(&runs).min(ping::rounds(&runs));
    let (json, live, verbosity) = (typed.json.json, typed.live.live, verbosity(&typed.verbosity));
    let gates = typed.gates.clone();
    Ok(WakeupJob { plan: Plan { runs, rounds }, try_remedies, gates, output, json, live, verbosity })
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

fn intervals(typed: &SleepArgs) -> Result<Vec<Nanos>, RequestError> {
    let read = |interval: &String| value::span("--interval", interval, defaults::INTERVAL_MAX);
    match typed.interval.as_slice() {
        [] => Ok(vec![defaults::WAKEUP_INTERVAL]),
        several => {
            let mut intervals = Vec::with_capacity(several.len());
            for typed in several {
                let interval = read(typed)?;
                if intervals.contains(&interval) {
                    return Err(value::unusable("--interval", typed, "it was given twice", "give each interval once"));
                }
                intervals.push(interval);
            }
            Ok(intervals)
        }
    }
}

fn ways(typed: &SleepArgs) -> Result<Vec<Via>, RequestError> {
    let words = Via::ALL.map(Via::word);
    let mut ways = Vec::new();
    for word in &typed.via {
        let via = Via::from_word(word).ok_or_else(|| {
            let hint = human::suggestion(word, &words);
            value::unusable("--via", word, "latlab knows no such way to sleep", hint)
        })?;
        if ways.contains(&via) {
            return Err(value::unusable("--via", word, "it was given twice", "give each way once"));
        }
        ways.push(via);
    }
    Ok(if ways.is_empty() { vec![Via::ClockNanosleep] } else { ways })
}

fn cpus(typed: Option<&str>) -> Result<WakeupCpus, RequestError> {
    match typed {
        None => Ok(WakeupCpus::Anywhere),
        Some("all") => Ok(WakeupCpus::All),
        Some(list) => human::parse_cpus(list, defaults::CPU_MAX)
            .map(WakeupCpus::These)
            .map_err(|source| value::unreadable("--cpu", source)),
    }
}

/// Refuses network loads, since a run of wake-ups has no path.
fn loads(loads: Vec<LoadSpec>) -> Result<Vec<LoadSpec>, RequestError> {
    match loads.iter().find(|load| matches!(load.kind, LoadKind::Net(_))) {
        Some(load) => Err(value::unusable(
            "--load",
            load.to_string(),
            "wake-ups are measured on this host: there is no path to load",
            "`latlab load HOST --load net=…` beside it",
        )),
        None => Ok(loads),
    }
}

fn settings(settings: Vec<SettingSpec>) -> Result<Vec<SettingSpec>, RequestError> {
    let elsewhere =
        |spec: &&SettingSpec| spec.setting.is_of_an_interface() || spec.side.is_some_and(|side| side.is_peer());
    match settings.iter().find(elsewhere) {
        Some(spec) => Err(value::unusable(
            "--set",
            spec.to_string(),
            "wake-ups are measured on this host: there is neither a peer nor a path",
            "use governor, cpu-dma-latency, idle-states, timer-slack, irq-affinity or rt-runtime",
        )),
        None => Ok(settings),
    }
}

/// Number of runs of each condition.
pub(super) const REMEDY_RUNS: u32 = defaults::REMEDY_BLOCKS * defaults::REMEDY_RUNS;
const TRY_REMEDIES: &str = "--try-remedies";

/// Returns one of the short runs into which `runs` is divided.
pub(super) fn remedy_run(runs: Vec<RunSpec>, typed: &WakeupArgs) -> Result<RunSpec, RequestError> {
    let out_of_place =
        |with: &str, cause, hint| RequestError::OutOfPlace { option: TRY_REMEDIES, with: with.into(), cause, hint };
    let [run] = <[RunSpec; 1]>::try_from(runs).map_err(|_| {
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
    let duration_ns = run.stop.duration_ns.map(|span| Nanos(span.0 / i64::from(REMEDY_RUNS)));
    let interval = run.schedule().interval().unwrap_or_default();
    if duration_ns.is_some_and(|span| span < interval) {
        let cause = format!("it is divided into {REMEDY_RUNS} runs, which are too short for a wake-up");
        let hint = format!(
            "`-d {}` or more, or `-n` alone, which lifts it",
            typed_span(interval.saturating_mul(REMEDY_RUNS.into()))
        );
        return Err(value::unusable("--duration", typed_span(run.stop.duration_ns.unwrap_or_default()), cause, hint));
    }
    let count = run.stop.count.map(|count| count.div_ceil(REMEDY_RUNS.into()));
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
    use crate::diagnostics::Explain;
    use crate::plan::Remedy;

    fn resolve(line: &str) -> Result<WakeupJob, RequestError> {
        let typed = ["latlab", "wakeup"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Wakeup(args) => wakeup(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_ten_seconds_of_clock_nanosleep() {
        let job = resolve("").expect("well typed");
        let run = &job.plan.runs[0];
        assert_eq!((job.plan.runs.len(), job.plan.rounds), (1, 1));
        assert_eq!(run.stop, StopWhen { count: None, duration_ns: Some(Nanos::from_secs(10)) });
        assert_eq!((run.here, run.peer), (EndSpec::SYSTEM, None));
        let expected = WakeupSpec {
            via: Via::ClockNanosleep,
            interval_ns: Nanos::from_millis(10),
            relative: false,
            cpus: WakeupCpus::Anywhere,
            break_ns: None,
        };
        assert_eq!(run.wakeup(), Some(&expected));
    }

    #[test]
    fn every_sleep_method_with_every_interval_is_a_run_without_empty_slices() {
        let job = resolve("-i 10ms,1s --via select,futex -d 3s --cpu 0-1").expect("well typed");
        let runs: Vec<_> =
            job.plan.runs.iter().filter_map(|run| run.wakeup()).map(|run| (run.via, run.interval_ns)).collect();
        let (short, long) = (Nanos::from_millis(10), Nanos::from_secs(1));
        assert_eq!(runs, [(Via::Select, short), (Via::Futex, short), (Via::Select, long), (Via::Futex, long)]);
        assert_eq!(job.plan.rounds, 3);
        assert_eq!(job.plan.runs[0].wakeup().map(|run| run.cpus.clone()), Some(WakeupCpus::These(vec![0, 1])));
    }

    #[test]
    fn impossible_values_are_refused_with_a_hint() {
        for (line, words) in [
            ("-i 0", ""),
            ("-i 0ms", ""),
            ("-i 2h", ""),
            ("-i 10ms,,1s", ""),
            ("-i 2s -d 1s", "-n"),
            ("--via sleep", "nanosleep"),
            ("--via select,select", "once"),
            ("-i 10ms,10ms", "once"),
            ("-i 1ms,1000us", "once"),
            ("--cpu some", ""),
            ("--cpu 3-1", ""),
            ("--fifo 0", ""),
            ("--fifo 100", ""),
            ("--break 0us", ""),
            ("--load net=10Mbit/s", "latlab load"),
            ("--set mtu=1500", "governor"),
            ("--set timer-slack@peer=1ns", "governor"),
            ("--try-remedies --via spin", "leave"),
            ("--try-remedies --via select,poll", "one"),
            ("--try-remedies -i 1ms,2ms", "one"),
            ("--try-remedies --break 1ms", "leave"),
            ("--try-remedies -i 1s -d 8s", "9s"),
        ] {
            let error = resolve(line).expect_err(line);
            assert!(
                error.explain().hint.is_some_and(|hint| hint.contains(words)),
                "{line}: {:?}",
                error.explain().hint
            );
            assert_eq!(error.explain().exit_code, 2);
        }
    }

    fn remedy_job(line: &str) -> WakeupJob {
        let line = format!("latlab wakeup {line}");
        let cli = crate::cli::parse(line.split_whitespace().map(Into::into)).expect(&line);
        let Command::Wakeup(args) = cli.command else { panic!("{line}") };
        wakeup(&args, &Environment::default()).expect(&line)
    }

    #[test]
    fn remedies_divide_the_requested_run_into_short_runs() {
        let job = remedy_job("--try-remedies -d 9s -n 100 -o here");
        let run = &job.plan.runs[0];
        assert_eq!(run.stop, StopWhen { count: Some(12), duration_ns: Some(Nanos::from_secs(1)) });
        assert_eq!(run.warmup.duration_ns, Some(defaults::REMEDY_WARMUP));
        assert!(job.try_remedies && job.output == OutputSpec::InNewStore("here".into()), "{:?}", job.output);
        let typed = remedy_job("--try-remedies --warmup 5").plan.runs[0].warmup;
        assert_eq!(typed, Warmup { count: Some(5), duration_ns: None });
    }

    #[test]
    fn a_remedy_equals_its_options() {
        let run = remedy_job("-i 1ms").plan.runs[0].clone();
        for remedy in Remedy::ALL.into_iter().filter(|remedy| *remedy != Remedy::ClockNanosleep) {
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
