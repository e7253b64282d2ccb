//! `latlab ping`, `stream`, `command` and `wakeup`: measure a plan, and print the summaries of its runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use super::live_view::LiveView;
use super::{keys, recovery};
use crate::analysis::{
    AvailableFigures, GateError, Summary, SummaryOptions, ValueGateResult, ValueGates, real_time_warning,
    repeats_silence, run_outcome, summarise, with_gates,
};
use crate::cli::args::{GateArgs, MeasuringArgs};
use crate::cli::resolve::{MeasureJob, OutputSpec, expect_a_free_cpu, expect_feasible_intervals};
use crate::clock::{Clock, Monotonic};
use crate::console::{Console, Progress, RedrawCost, Verbosity, leave_full_screen};
use crate::diagnostics::{Caveat, Failure, Outcome, Severity, refused};
use crate::experiment::in_one_line;
use crate::facts::CommandLine;
use crate::host::HostRoot;
use crate::host::facts::{self, Interface};
use crate::measure::{
    self, LiveCounts, LiveProgress, MeasureError, PlanOutcome, RecordingTarget, UnansweredProbes, refusal_of,
};
use crate::metric::Metric;
use crate::plan::{Experiment, Kind, Plan, RunSpec, defaults};
use crate::platform::SignalWatch;
use crate::recording::manifest::AGENT_VERSION;
use crate::recording::{ProbeCounts, Store};
use crate::report::experiment::rough_span;
use crate::report::view::Showing;
use crate::report::{json, planned_heading, report_view, text};
use crate::session::PreSharedKey;
use crate::transport::TransportError;
use crate::tui;
use crate::units::Nanos;
use crate::units::human::{bit_rate, grouped, percent, span};

/// Says before a search how long it takes at most, since its progress does not show it.
fn announce_search(plan: &Plan, console: &Console) {
    let search = plan.runs.first().and_then(|run| run.stream()?.search.as_ref());
    if let (Some(search), Some(longest)) = (search, plan.duration()) {
        let goals = search.goals.iter().map(|goal| percent(goal.loss_ratio)).collect::<Vec<_>>().join(" and ");
        console.note(&format!(
            "searching for the highest rate with a loss of up to {goals}: measuring takes at most {}",
            span(longest)
        ));
    }
}

/// Says before several runs how long they take together, if that is longer than one run usually is.
fn announce_runs(plan: &Plan, console: &Console) {
    let is_search = |run: &RunSpec| run.stream().is_some_and(|stream| stream.search.is_some());
    let several = plan.runs.len() > 1 && !plan.runs.iter().any(is_search);
    if let Some(all) = plan.duration().filter(|all| several && *all > defaults::DURATION) {
        console.note(&format!("{} runs, in turns: about {}", plan.runs.len(), rough_span(all)));
    }
}

/// A progress line, and the function that redraws it.
pub(super) struct ProgressLine<'a> {
    pub(super) progress: Progress,
    pub(super) draw: &'a mut dyn FnMut(&Progress),
}

/// `latlab ping`, `stream`, `command` and `wakeup`: measures the plan, then shows the summaries of its recordings.
pub(super) fn run(
    job: &MeasureJob,
    typed: &MeasuringArgs,
    command_line: &CommandLine,
    console: &Console,
) -> Result<Outcome, Failure> {
    let (plan, is_live) = (&job.plan, typed.live.live);
    expect_feasible_intervals(&plan.runs)?;
    expect_a_free_cpu(&plan.runs)?;
    let gates = gates(&typed.gates)?;
    gates.expect_judgeable(plan.runs.iter())?;
    let key = keys::find(&job.key)?;
    keys::check_other_host(plan)?;
    warn_of_real_time([plan], console);
    announce_search(plan, console);
    let output = open(&job.output)?;
    announce_runs(plan, console);
    let listen_to = if is_live { listen_on_full_screen(console) } else { listen([plan], console) };
    let signals = listen_to.map_err(refused("listen to signals"))?;
    let expected = plan.duration();
    let progress = console.progress(&title(plan), expected.map(|span| (span.0 / 1_000_000) as u64));
    let (start, live) = (Instant::now(), LiveText::of(plan, progress.is_shown()));
    let (mut view, mut is_warned) = (is_live.then(|| LiveView::of(plan, title(plan), console)).flatten(), false);
    let mut draw = |progress: &Progress| {
        let elapsed = start.elapsed();
        let text = || format!("{}{:.1} s", live.text(), live.measuring_for(elapsed).as_secs_f64());
        match view.as_mut().filter(|_| live.progress.is_open()) {
            Some(view) => view.draw(&live.progress),
            None => progress.show(elapsed.as_millis() as u64, text),
        }
        is_warned = is_warned || warn_of_silence(plan, &live.progress, console);
    };
    let target = RecordingTarget { live: Some(&live.progress), ..output.target(command_line) };
    let line = ProgressLine { progress, draw: &mut draw };
    let measured = measure(plan, key.as_ref(), target, &signals, console, line);
    view.into_iter().for_each(LiveView::close);
    let Some(measured) = measured.map_err(|failure| failed(failure, &gates))? else {
        console.note("interrupted before anything was measured");
        return Ok(signals.outcome().unwrap_or(Outcome::Interrupted));
    };
    let shown = show_recordings(&measured, typed, &gates, &signals, console);
    outcome(measured, shown, &gates, &signals)
}

/// The gates of a command as typed.
///
/// # Errors
/// If one cannot be parsed.
pub(super) fn gates(typed: &GateArgs) -> Result<ValueGates, GateError> {
    ValueGates::parse(&typed.gate, typed.gate_strict)
}

/// Warns of each undecided gate, of several runs with the recording.
pub(super) fn warn_of_undecided(summaries: &[Summary], console: &Console) {
    for summary in summaries {
        for warning in summary.gates.iter().filter_map(ValueGateResult::undecided_warning) {
            console.caveat(&of_one(summary, summaries, warning));
        }
    }
}

/// `caveat`, which names its recording if there are several `summaries`.
fn of_one(summary: &Summary, summaries: &[Summary], caveat: Caveat) -> Caveat {
    match summaries {
        [_] => caveat,
        _ => Caveat { message: format!("`{}`: {}", summary.recording, caveat.message), ..caveat },
    }
}

/// Measures `plan` into `target`; `None` if a signal ended it before anything was measured. The progress line is erased
/// before anything else is printed.
pub(super) fn measure(
    plan: &Plan,
    key: Option<&PreSharedKey>,
    target: RecordingTarget<'_>,
    signals: &SignalWatch,
    console: &Console,
    line: ProgressLine<'_>,
) -> Result<Option<PlanOutcome>, Failure> {
    let ProgressLine { progress, draw } = line;
    let mut heartbeat = || {
        signals.notice();
        draw(&progress);
    };
    let measured = measure::measure_plan(plan, key, target, signals.stop(), &mut heartbeat);
    let cost = progress.cost();
    drop(progress);
    detail_cost(cost, console);
    signals.notice();
    recovery::warn_of_leftovers(console);
    match (measured, signals.outcome()) {
        // A user who interrupts the wait for a silent target knows that it is silent.
        (Err(MeasureError::Session(_) | MeasureError::Agent(_)), Some(_))
        | (Err(MeasureError::Transport(TransportError::Interrupted { .. })), Some(_)) => Ok(None),
        (measured, _) => {
            let outcome = measured?;
            note_other_version(&outcome, console);
            Ok(Some(outcome))
        }
    }
}

/// Says once that the agent of the other end is another version.
fn note_other_version(outcome: &PlanOutcome, console: &Console) {
    static SAID: Once = Once::new();
    let conditions = outcome.recordings.first().map(|recording| &recording.manifest.run.conditions);
    if let Some(agent) = conditions.and_then(|conditions| conditions.get(AGENT_VERSION)) {
        let own = env!("CARGO_PKG_VERSION");
        let note =
            format!("the agent of the other end is latlab {agent}, this end {own}: run one version on both hosts");
        SAID.call_once(|| console.note(&note));
    }
}

/// Says what the progress line has cost, if it was drawn.
fn detail_cost(cost: RedrawCost, console: &Console) {
    if cost.redraws > 0 {
        console.detail(&format!("the progress line was drawn {}", cost.words()));
    }
}

/// Warns of a plan whose real-time threads could make this host hard to reach.
pub(super) fn warn_of_real_time<'a>(plans: impl IntoIterator<Item = &'a Plan>, console: &Console) {
    let facts = || facts::read(&HostRoot::live(), Interface::Named("lo"));
    if let Some(warning) = plans.into_iter().find_map(|plan| real_time_warning(plan, facts)) {
        console.caveat(&warning);
    }
}

/// Warns of what this user may not do that `experiment` needs, each once.
pub(super) fn warn_of_refusals(experiment: &Experiment, console: &Console) {
    let mut tried = BTreeSet::new();
    let needs = |run: &&RunSpec| format!("{:?}", (&run.target, &run.here, &run.peer, &run.settings));
    let runs = experiment.conditions.iter().flat_map(|condition| &condition.plan.runs);
    let runs = runs.filter(|run| tried.insert(needs(run)));
    let refused: BTreeMap<_, _> = runs.filter_map(refusal_of).map(|it| (in_one_line(&it), it.hint)).collect();
    refused.iter().for_each(|(message, hint)| console.warning(message, hint.as_deref()));
}

/// Handles signals while `plans` are measured; a second signal restores the host before it ends the process.
pub(super) fn listen<'a>(plans: impl IntoIterator<Item = &'a Plan>, console: &Console) -> io::Result<SignalWatch> {
    let mut runs = plans.into_iter().flat_map(|plan| &plan.runs);
    if runs.any(|run| !run.settings.is_empty()) { listen_and_restore(console) } else { SignalWatch::listen() }
}

/// Handles signals of a command that changes settings of this host.
pub(super) fn listen_and_restore(console: &Console) -> io::Result<SignalWatch> {
    recovery::warn_of_other_root(console);
    SignalWatch::listen_with(recovery::restore_at_once)
}

/// Handles signals of a command with a full screen, which a second signal leaves before it ends the process.
fn listen_on_full_screen(console: &Console) -> io::Result<SignalWatch> {
    recovery::warn_of_other_root(console);
    SignalWatch::listen_with(|| {
        leave_full_screen();
        recovery::restore_at_once();
    })
}

/// An open store, and the directory that `--output` named.
#[derive(Debug)]
pub(super) struct OpenOutput {
    store: Store,
    directory: Option<PathBuf>,
}

impl OpenOutput {
    /// Where the runs of `command_line` are recorded.
    pub(super) fn target<'a>(&'a self, command_line: &'a CommandLine) -> RecordingTarget<'a> {
        RecordingTarget {
            store: &self.store,
            directory: self.directory.as_deref(),
            command_line: Some(command_line),
            experiment: None,
            service: None,
            live: None,
        }
    }
}

/// Opens the store before anything is sent. `--no-record` records into files without names, so that every summary is that of a
/// recording.
pub(super) fn open(output: &OutputSpec) -> Result<OpenOutput, Failure> {
    let (store, directory) = match output {
        OutputSpec::Nothing => (Store::temporary()?, None),
        OutputSpec::InStore(path) => (Store::open(path)?, None),
        OutputSpec::InNewStore(path) => (Store::make_new(path)?, None),
        OutputSpec::As(path) => {
            Store::expect_new(path)?;
            (Store::at(path), Some(path.clone()))
        }
    };
    Ok(OpenOutput { store, directory })
}

/// Reads the recordings back and shows their summaries.
fn show_recordings(
    measured: &PlanOutcome,
    typed: &MeasuringArgs,
    gates: &ValueGates,
    signals: &SignalWatch,
    console: &Console,
) -> Result<Vec<Summary>, Failure> {
    let json = typed.json.json;
    let every_metric = console.verbosity() > Verbosity::Usual;
    let mut summaries = Vec::new();
    let mut half = false;
    for finished in &measured.recordings {
        let recording = finished.open()?;
        let spec = &recording.manifest().spec;
        half |= spec.judging.half;
        let mut options = SummaryOptions { metrics: metrics(json || every_metric), ..SummaryOptions::of(spec) };
        gates.include(&mut options);
        let mut summary = summarise(&recording, &options)?;
        gates.judge(&mut summary, &AvailableFigures::of(spec, spec.judging.deadline_ns));
        summaries.push(summary);
    }
    let kept = !typed.output.no_record;
    let showing = Showing { half, every_metric, kept, wide: false, of_store: false };
    let is_measured = measured.failure.is_none() && measured.recordings.iter().all(|one| one.failure.is_none());
    if is_measured && signals.outcome().is_none() && !json && run_outcome(&summaries).is_err() {
        show(&beside_failure(&summaries), showing, json, console)?
    } else {
        show(&summaries, showing, json, console)?
    }
    warn_of_undecided(&summaries, console);
    Ok(summaries)
}

/// `summaries` without the caveats that say what the failure below them says.
fn beside_failure(summaries: &[Summary]) -> Vec<Summary> {
    let mut summaries = summaries.to_vec();
    summaries.iter_mut().for_each(|summary| summary.caveats.retain(|caveat| !repeats_silence(caveat)));
    summaries
}

/// A failure of measuring, with the exit code of `gates` if the target was silent.
fn failed(failure: impl Into<Failure>, gates: &ValueGates) -> Failure {
    let failure = failure.into();
    with_gates(Err(failure.clone()), gates.outcome_without_runs()).err().unwrap_or(failure)
}

/// A failure of measuring or recording comes first, then a signal, then the gates, then what the summaries say.
fn outcome(
    measured: PlanOutcome,
    shown: Result<Vec<Summary>, Failure>,
    gates: &ValueGates,
    signals: &SignalWatch,
) -> Result<Outcome, Failure> {
    if let Some(error) = measured.failure {
        return Err(failed(error, gates));
    }
    if let Some(error) = measured.recordings.into_iter().find_map(|finished| finished.failure) {
        return Err(error.into());
    }
    // The terminal was closed: a summary could not be shown.
    if signals.outcome() == Some(Outcome::HungUp) {
        return Ok(Outcome::HungUp);
    }
    let summaries = shown?;
    signals.outcome().map_or_else(|| with_gates(run_outcome(&summaries), gates.outcome(&summaries)), Ok)
}

/// The metrics to describe: every one in a document, the usual ones for a person.
pub(super) fn metrics(all: bool) -> Vec<Metric> {
    if all { Metric::every().collect() } else { Metric::USUAL.to_vec() }
}

/// Prints `summaries`, as one JSON document or as text.
pub(super) fn show(summaries: &[Summary], showing: Showing, as_json: bool, console: &Console) -> Result<(), Failure> {
    if summaries.is_empty() {
        return Ok(());
    }
    if as_json {
        warn(summaries, console);
        return console.document(&json::render(summaries, showing));
    }
    console.data(&text::render(&report_view(summaries, showing), console.data_style()))
}

/// Repeats the foremost warnings of a document on stderr, for a person who redirects it into a file; with `--verbose` all. If
/// there are several runs, each warning names its recording.
fn warn(summaries: &[Summary], console: &Console) {
    let named = |summary: &Summary| {
        let serious = summary.caveats.iter().filter(|caveat| caveat.severity != Severity::Note);
        serious.map(|caveat| of_one(summary, summaries, caveat.clone())).collect::<Vec<_>>()
    };
    let mut warnings: Vec<Caveat> = summaries.iter().flat_map(named).collect();
    warnings.sort_by_key(Caveat::worst_first);
    let most =
        if console.verbosity() == Verbosity::Verbose { warnings.len() } else { text::CAVEATS.min(warnings.len()) };
    warnings[..most].iter().for_each(|caveat| console.caveat(caveat));
    if let Some(others) = text::counted(warnings[most..].iter().map(|caveat| caveat.severity)) {
        console.warning(&format!("{} in the document (`-v`)", others.replacen(' ', " more ", 1)), None);
    }
}

/// The heading that the summaries of `plan` will have; for several runs, followed by how many there are.
pub(super) fn title(plan: &Plan) -> String {
    let heading = planned_heading(&plan.runs);
    if plan.runs.len() > 1 { format!("{heading} · {} runs", plan.runs.len()) } else { heading }
}

/// Warns of a target that has not answered for a while; false if it is not to be warned of yet.
pub(super) fn warn_of_silence(plan: &Plan, live: &LiveProgress, console: &Console) -> bool {
    let run = plan.runs.first().filter(|run| run.ping().is_some());
    let silent = live.unanswered(Monotonic.now()).filter(|silent| silent.span >= defaults::UNANSWERED_NOTICE);
    let Some((run, unanswered)) = run.zip(silent) else { return false };
    let UnansweredProbes { span: silent, probes } = unanswered;
    let message =
        format!("no answer from `{}` in the first {}, to {} probes", run.target, span(silent), grouped(probes));
    let hint = unanswered.end(plan).map(|end| format!("without an answer the run ends after about {}", span(end)));
    console.warning(&message, hint.as_deref());
    true
}

/// The interval between two updates of rates: a person reads no faster.
const UPDATE: Duration = Duration::from_secs(1);

/// The counts of the runs of a plan as text for its progress line.
pub(super) struct LiveText {
    /// The counts, which the runs update.
    pub(super) progress: Arc<LiveProgress>,
    kind: Option<Kind>,
    /// Whether the warm-up is all that precedes the measuring phase: a search for a rate has figures of its own.
    has_warmup: bool,
    rates: RefCell<Rates>,
}

/// The rates of a stream in the last whole second.
struct Rates {
    since: Instant,
    counts: LiveCounts,
    text: String,
}

impl Rates {
    /// No rates yet, of what is counted from `counts` on.
    fn since(counts: LiveCounts) -> Rates {
        Rates { since: Instant::now(), counts, text: String::new() }
    }
}

impl LiveText {
    /// No counts so far. Without a display, `is_shown`, the runs do no work for one.
    pub(super) fn of(plan: &Plan, is_shown: bool) -> LiveText {
        let kind = plan.runs.first().map(RunSpec::kind);
        let warms_up = |run: &RunSpec| run.warmup.count.is_some() || run.warmup.duration_ns.is_some();
        let searches = |run: &RunSpec| run.stream().is_some_and(|stream| stream.search.is_some());
        let has_warmup = plan.runs.iter().any(warms_up) && !plan.runs.iter().any(searches);
        LiveText {
            progress: Arc::new(if is_shown { LiveProgress::with_delays() } else { LiveProgress::default() }),
            kind,
            has_warmup,
            rates: RefCell::new(Rates::since(LiveCounts::default())),
        }
    }

    /// The time of the measuring phase, if `elapsed` has passed since the command began, which is shown before that phase.
    fn measuring_for(&self, elapsed: Duration) -> Duration {
        let measuring = self.progress.measuring_for(Monotonic.now()).filter(|_| self.has_warmup);
        measuring.map_or(elapsed, Nanos::to_duration)
    }

    /// The counts, each with ` · ` behind it, the most important ones first, since a narrow terminal does not show the last.
    /// Empty before the first; in the warm-up its name.
    pub(super) fn text(&self) -> String {
        let now = self.progress.read();
        if self.has_warmup && self.progress.is_before_measuring() {
            // So that the first rates of the measuring phase have no packet of the warm-up.
            *self.rates.borrow_mut() = Rates::since(now);
            return "warm-up · ".into();
        }
        let ProbeCounts { sent, answered, lost } = now.probes;
        match self.kind {
            Some(Kind::Ping) if sent > 0 => {
                let delays = self.delays();
                format!("sent {} · lost {} · {delays}answered {} · ", grouped(sent), grouped(lost), grouped(answered))
            }
            Some(kind @ (Kind::Wakeup | Kind::Command)) if now.measured > 0 => {
                format!("{} {} · {}", grouped(now.measured), kind.rows(), self.delays())
            }
            Some(Kind::Stream) => self.rates_at(now),
            _ => String::new(),
        }
    }

    /// The delays of the last second, if there were any.
    fn delays(&self) -> String {
        let second = self.progress.last_second(Monotonic.now());
        second.map(|second| format!("{} · ", tui::delays(&second))).unwrap_or_default()
    }

    fn rates_at(&self, now: LiveCounts) -> String {
        let mut rates = self.rates.borrow_mut();
        let elapsed = rates.since.elapsed();
        if elapsed >= UPDATE {
            let text = rates_between(rates.counts, now, elapsed);
            *rates = Rates { since: Instant::now(), counts: now, text };
        }
        rates.text.clone()
    }
}

/// Sent and delivered rate, and the share of what was lost.
fn rates_between(from: LiveCounts, to: LiveCounts, elapsed: Duration) -> String {
    let more = |count: fn(&LiveCounts) -> u64| count(&to).saturating_sub(count(&from)) as f64;
    let rate = |bits: f64| bit_rate(bits / elapsed.as_secs_f64());
    let (polled, delivered) = (more(|counts| counts.polled_bits), more(|counts| counts.delivered_bits));
    let lost = percent(if polled > 0.0 { (1.0 - delivered / polled).max(0.0) } else { 0.0 });
    format!("sent {} · lost {lost} · delivered {} · ", rate(more(|counts| counts.sent_bits)), rate(delivered))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::cli::resolve::{self, Environment};

    fn plan_of(line: &str) -> Plan {
        let typed = format!("latlab ping {line}");
        let cli = crate::cli::parse(typed.split_whitespace().map(Into::into)).expect(line);
        let Command::Ping(args) = cli.command else { panic!("{line}") };
        resolve::ping(&args, &Environment::default()).expect(line).plan
    }

    #[test]
    fn the_end_without_an_answer_follows_from_interval_and_time_out() {
        for (line, seconds) in [
            ("", Some(10)),
            ("-d 60s -i 10ms", Some(10)),
            ("-d 5s", None),
            ("-d 5s -i 10ms", None),
            ("-d 60s -i 5s", Some(50)),
            ("-d 30s -i 5s", None),
            ("-d 60s --timeout 5s", Some(50)),
            ("-d 30s --timeout 5s", None),
            ("-n 1000", Some(10)),
            ("-n 5", None),
            ("-n 1000 -i 1ms", None),
            ("-d 8s -s 64,128", Some(10)),
        ] {
            let after_3_s = |probes| UnansweredProbes { span: Nanos::from_secs(3), probes };
            assert_eq!(after_3_s(3).end(&plan_of(line)), seconds.map(Nanos::from_secs), "{line}");
            // So many refusals need no time-out.
            let refused = after_3_s(1_000).end(&plan_of(line));
            assert!(refused.is_none_or(|end| end == Nanos::from_secs(10)), "{line}: {refused:?}");
        }
    }
}
