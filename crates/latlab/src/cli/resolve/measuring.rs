//! What the commands that measure have in common: the end of a run, the schedule of its end, its conditions.

use std::collections::BTreeSet;

use super::environment::{output_spec, tags};
use super::{Environment, OutputSpec, load, setting};
use crate::cli::args::{EndArgs, MeasuringArgs, RemedyArgs, StopArgs};
use crate::cli::options::KeySource;
use crate::cli::value::{Pin, out_of_place, unusable};
use crate::diagnostics::Failure;
use crate::host::placement;
use crate::plan::{EndSpec, Plan, RunSpec, SettingSpec, StopWhen, Target, WaitMode, Warmup, Work, defaults};
use crate::units::Nanos;
use crate::units::human::typed_span;

#[derive(Clone, Debug, PartialEq)]
pub struct MeasureJob {
    pub plan: Plan,
    /// Source of the pre-shared key.
    pub key: KeySource,
    pub output: OutputSpec,
}

impl MeasureJob {
    /// The job of `runs`, of which each leaves `recordings` recordings.
    pub(super) fn of(
        plan: Plan,
        key: KeySource,
        recordings: usize,
        typed: &MeasuringArgs,
        environment: &Environment,
    ) -> MeasureJob {
        let output = output_spec(&typed.output, plan.runs.len() * recordings, environment);
        MeasureJob { plan, key, output }
    }
}

/// A run of `work` under the conditions that were typed, from which its command makes its runs.
pub(super) fn run(typed: &MeasuringArgs, work: Work, target: Target) -> Result<RunSpec, Failure> {
    Ok(RunSpec {
        loads: load::loads(&typed.loads, &target)?,
        settings: setting::settings(&typed.settings, &target)?,
        tags: tags(&typed.output.tag)?,
        judging: typed.judging.of_run()?,
        target,
        ..RunSpec::here(work)
    })
}

/// Refuses settings of another host, or of a path, for a run on this host alone.
pub(super) fn expect_settings_of_this_host(run: &RunSpec) -> Result<(), Failure> {
    let is_elsewhere =
        |spec: &&SettingSpec| spec.setting.is_of_an_interface() || spec.side.is_some_and(|side| side.is_peer());
    let Some(spec) = run.settings.iter().find(is_elsewhere) else { return Ok(()) };
    let cause = format!("{} are measured on this host: there is neither a peer nor a path", run.kind().rows());
    let hint = "use governor, cpu-dma-latency, idle-states, timer-slack, irq-affinity or rt-runtime";
    Err(unusable("--set", spec, cause, hint))
}

impl StopArgs {
    /// A count without a duration lifts the default duration.
    pub(super) fn stop(&self) -> StopWhen {
        let default = self.count.is_none().then_some(defaults::DURATION);
        StopWhen { count: self.count, duration_ns: self.duration.or(default) }
    }

    pub(super) fn warmup(&self) -> Warmup {
        let usual = Warmup { count: Some(defaults::WARMUP_PROBES), duration_ns: Some(defaults::WARMUP) };
        self.warmup.unwrap_or(usual)
    }
}

impl EndArgs {
    /// The end here, and the one that latlab starts at `target`. On this host they have the two `cores`, if it has them and no
    /// pin was typed.
    pub fn ends(&self, peer: Option<Pin>, target: &Target, cores: Option<[u16; 2]>) -> (EndSpec, Option<EndSpec>) {
        let is_here = matches!(target, Target::Local | Target::Lab) && self.cpu.is_none() && peer.is_none();
        let [core, other] = cores.filter(|_| is_here).map_or([None; 2], |cores| cores.map(Some));
        let here = EndSpec { cpu: self.cpu.map_or(core, Pin::cpu), ..self.end() };
        let peer = EndSpec { cpu: peer.map_or(other, Pin::cpu), ..here };
        let is_started = !matches!(target, Target::Host { .. } | Target::Log { .. });
        (here, is_started.then_some(peer))
    }

    pub fn end(&self) -> EndSpec {
        let wait = self.wait.unwrap_or(WaitMode::Block);
        EndSpec { wait, cpu: self.cpu.and_then(Pin::cpu), fifo: self.fifo, mlock: self.mlock }
    }
}

/// Refuses `runs` whose spinning threads under SCHED_FIFO would leave no CPU of this host to anything else, the recording
/// of the probes included.
pub fn expect_a_free_cpu<'a>(runs: impl IntoIterator<Item = &'a RunSpec>) -> Result<(), Failure> {
    // Isolated CPUs are none of these.
    let usable = placement::allowed_cpus();
    let takes_all = |run: &RunSpec| {
        let peer = run.peer.filter(|_| matches!(run.target, Target::Local | Target::Lab));
        let spinners = [Some(run.here), peer].into_iter().flatten();
        let spinners = spinners.filter(|end| end.fifo.is_some() && end.wait == WaitMode::Spin);
        let pinned: BTreeSet<_> =
            spinners.clone().filter_map(|end| end.cpu).filter(|cpu| usable.contains(cpu)).collect();
        pinned.len() + spinners.filter(|end| end.cpu.is_none()).count() >= usable.len()
    };
    if usable.is_empty() || !runs.into_iter().any(takes_all) {
        return Ok(());
    }
    let cause = format!("they would leave none of the {} usable CPUs to the recording of the probes", usable.len());
    Err(Failure::request("cannot spin under SCHED_FIFO on every CPU")
        .because(cause)
        .hint("`--wait block`, or no `--fifo`"))
}

/// Number of runs of each condition.
const REMEDY_RUNS: u32 = defaults::REMEDY_BLOCKS * defaults::REMEDY_RUNS;

/// The runs of a plan, and the number of recordings of each. With `--try-remedies` it is one of the short runs into which
/// the only one of `runs` is divided; `several` names the options that make more.
pub(super) fn remedy_runs(
    runs: Vec<RunSpec>,
    typed: RemedyArgs,
    stop: &StopArgs,
    several: &str,
) -> Result<(Vec<RunSpec>, usize), Failure> {
    if !typed.try_remedies {
        return Ok((runs, 1));
    }
    let [run] = <[RunSpec; 1]>::try_from(runs).map_err(|_| {
        let cause = "each condition would be tried with each remedy";
        let hint = "give one of each, or write an experiment: `latlab run`";
        out_of_place("--try-remedies", several, cause, hint)
    })?;
    let duration_ns = run.stop.duration_ns.map(|span| Nanos(span.0 / i64::from(REMEDY_RUNS)));
    let interval = run.schedule().interval().unwrap_or_default();
    if duration_ns.is_some_and(|span| span < interval) {
        let cause = format!("it is divided into {REMEDY_RUNS} runs, which are shorter than `--interval`");
        let hint =
            format!("`-d {}` or more, or `-n` without `-d`", typed_span(interval.saturating_mul(REMEDY_RUNS.into())));
        return Err(unusable("--duration", typed_span(run.stop.duration_ns.unwrap_or_default()), cause, hint));
    }
    let count = run.stop.count.map(|count| count.div_ceil(REMEDY_RUNS.into()));
    let warmup = match stop.warmup {
        Some(_) => run.warmup,
        None => Warmup { duration_ns: Some(defaults::REMEDY_WARMUP), ..run.warmup },
    };
    Ok((vec![RunSpec { stop: StopWhen { count, duration_ns }, warmup, ..run }], REMEDY_RUNS as usize))
}

/// The number of slices of each of `runs`: 1 of a single run, else limited so that each slice has a probe.
pub(super) fn rounds(runs: &[RunSpec]) -> u32 {
    match runs {
        [_] => 1,
        several => {
            let fewest = several.iter().filter_map(|run| run.stop.count).min().unwrap_or(u64::MAX);
            u64::from(defaults::ROUNDS).min(fewest) as u32
        }
    }
}
