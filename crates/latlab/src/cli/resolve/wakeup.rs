use super::{
    Environment, OutputSpec, RequestError, ends, judging, keeping, load, remedies, rounds, schedule, setting, talk,
    value,
};
use crate::cli::args::{EndArgs, SleepArgs, WakeupArgs};
use crate::console::Verbosity;
use crate::plan::{
    EndSpec, LoadKind, LoadSpec, Plan, RunSpec, SettingSpec, Target, Via, WaitMode, WakeupCpus, WakeupSpec, Work,
    defaults,
};
use crate::units::Nanos;
use crate::units::human;

/// `latlab wakeup`, settled.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeupJob {
    /// The runs: every way of sleeping with every interval.
    pub plan: Plan,
    /// Try what may let the threads wake earlier: the plan is then one short run, of which many are made.
    pub try_remedies: bool,
    /// Where the recordings go.
    pub keeping: OutputSpec,
    /// One JSON document instead of text.
    pub json: bool,
    /// How much to say on stderr.
    pub talk: Verbosity,
}

/// Settles `typed`.
pub fn wakeup(typed: &WakeupArgs, surroundings: &Environment) -> Result<WakeupJob, RequestError> {
    if typed.judging.half {
        return Err(RequestError::OutOfPlace {
            option: "--half",
            with: "wakeup".into(),
            cause: "a wake-up is no round trip: there is nothing to halve",
            hint: "leave it out",
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
        here: ends::here(&end)?,
        loads: loads(load::loads(&typed.loads, &Target::Local)?)?,
        settings: settings(setting::settings(&typed.settings.set, &Target::Local)?)?,
        tags: keeping::tags(&typed.keeping.tag)?,
        judging: judging::judging(&typed.judging)?,
        ..RunSpec::here(work(Via::ClockNanosleep, defaults::WAKEUP_INTERVAL))
    };
    if let (Some(duration), Some(longest)) = (base.stop.duration_ns, intervals.iter().max())
        && *longest > duration
    {
        let cause = format!("no slot of it lies within {}", human::typed_span(duration));
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
    let runs = if try_remedies { vec![remedies::short(runs, typed)?] } else { runs };
    let recordings = if try_remedies { remedies::RUNS as usize } else { runs.len() };
    let keeping = keeping::keeping(&typed.keeping, recordings, surroundings);
    let rounds = slices_with_a_slot(&runs).min(rounds(&runs));
    let (json, talk) = (typed.json.json, talk(&typed.talk));
    Ok(WakeupJob { plan: Plan { runs, rounds }, try_remedies, keeping, json, talk })
}

/// A thread that never sleeps is to its CPU as one that spins for datagrams.
fn run(base: &RunSpec, work: Work) -> RunSpec {
    let spins = matches!(&work, Work::Wakeup(wakeup) if wakeup.via == Via::Spin);
    let wait = if spins { WaitMode::Spin } else { base.here.wait };
    RunSpec { work, here: EndSpec { wait, ..base.here }, ..base.clone() }
}

/// So many slices of a duration have a slot of the longest interval each.
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
            value::unusable("--via", word, "it is no way to sleep that latlab knows", hint)
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

/// There is no path that a network load could take.
fn loads(loads: Vec<LoadSpec>) -> Result<Vec<LoadSpec>, RequestError> {
    match loads.iter().find(|load| matches!(load.kind, LoadKind::Net(_))) {
        Some(load) => Err(value::unusable(
            "--load",
            load.to_string(),
            "wake-ups are measured on this host alone: there is no path to load",
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
            "wake-ups are measured on this host alone: there is neither a peer nor a path",
            "governor, cpu-dma-latency, idle-states, timer-slack, irq-affinity and rt-runtime matter here",
        )),
        None => Ok(settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::plan::StopWhen;

    fn settle(line: &str) -> Result<WakeupJob, RequestError> {
        let typed = ["latlab", "wakeup"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Wakeup(args) => wakeup(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_typed_is_ten_seconds_of_clock_nanosleep() {
        let job = settle("").expect("well typed");
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
    fn every_way_with_every_interval_is_a_run_and_no_slice_is_empty() {
        let job = settle("-i 10ms,1s --via select,futex -d 3s --cpu 0-1").expect("well typed");
        let runs: Vec<_> =
            job.plan.runs.iter().filter_map(|run| run.wakeup()).map(|run| (run.via, run.interval_ns)).collect();
        let (short, long) = (Nanos::from_millis(10), Nanos::from_secs(1));
        assert_eq!(runs, [(Via::Select, short), (Via::Futex, short), (Via::Select, long), (Via::Futex, long)]);
        assert_eq!(job.plan.rounds, 3);
        assert_eq!(job.plan.runs[0].wakeup().map(|run| run.cpus.clone()), Some(WakeupCpus::These(vec![0, 1])));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_could() {
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
            let error = settle(line).expect_err(line);
            assert!(error.hint().is_some_and(|hint| hint.contains(words)), "{line}: {:?}", error.hint());
            assert_eq!(error.exit_code(), 2);
        }
    }
}
