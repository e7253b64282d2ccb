//! The outcome of a command from the summaries of its runs, or the most likely reason if no run has an answer.

use std::collections::BTreeMap;

use super::comparison::{Comparisons, ObservedRun};
use super::counts::Counts;
use super::stream::SearchFigures;
use super::summary::Summary;
use crate::diagnostics::{Failure, Outcome};
use crate::facts::RunOutcome;
use crate::plan::{Kind, Protocol};
use crate::units::Nanos;
use crate::units::human::{grouped, span};

/// The outcome of a command that read recordings: [`Outcome::NotTrusted`] if one of them has a fatal caveat.
pub fn summary_outcome(summaries: &[Summary]) -> Outcome {
    if summaries.iter().all(Summary::is_trustworthy) { Outcome::Done } else { Outcome::NotTrusted }
}

/// The outcome of a command that measured runs and compared them: [`Outcome::NotTrusted`] if one of them has a fatal
/// caveat.
pub fn comparison_outcome(compared: &Comparisons) -> Outcome {
    if compared.groups.groups.iter().flat_map(|group| &group.runs).all(ObservedRun::is_trustworthy) {
        Outcome::Done
    } else {
        Outcome::NotTrusted
    }
}

/// The outcome of a run of an experiment that was measured to its end. Without an answer it failed, though its loss is a
/// result.
pub fn ended_run_outcome(summary: &Summary) -> RunOutcome {
    match (summary.counts.answered, summary.is_trustworthy()) {
        (0, _) => RunOutcome::Failed,
        (_, true) => RunOutcome::Completed,
        (_, false) => RunOutcome::Untrusted,
    }
}

/// The outcome of a command that measured.
///
/// # Errors
/// If no run has an answered probe; the failure names the most likely reason. The recordings are kept.
pub fn run_outcome(summaries: &[Summary]) -> Result<Outcome, Failure> {
    if summaries.iter().any(|summary| summary.counts.answered > 0) {
        Ok(summary_outcome(summaries))
    } else {
        Err(no_answer(summaries))
    }
}

/// The outcome of a command whose outcome without gates is `own`: a gate that does not hold comes before a fatal caveat,
/// and before a silent target, whose failure keeps its cause and hint. Any other failure comes before the gates: nothing
/// was measured that could be judged.
///
/// # Errors
/// If `own` is a failure.
pub fn with_gates(own: Result<Outcome, Failure>, gates: Outcome) -> Result<Outcome, Failure> {
    match (own, gates) {
        (own, Outcome::Done) => own,
        (Ok(_), gates) => Ok(gates),
        (Err(failure), gates) if failure.is_silence => Err(Failure { exit_code: gates.exit_code(), ..failure }),
        (Err(failure), _) => Err(failure),
    }
}

fn no_answer(summaries: &[Summary]) -> Failure {
    if summaries.iter().all(|summary| summary.kind == Kind::Wakeup) {
        return Failure::world("no wake-up was measured")
            .because("the run ended before the first wake-up after the warm-up")
            .hint("use a longer `--duration`, or a shorter `--interval` or `--warmup`");
    }
    if summaries.iter().all(|summary| summary.kind == Kind::Command) {
        return Failure::world("no execution succeeded")
            .because("each was killed, or took longer than `--timeout`, or none was measured")
            .hint("the recording says how each ended: `latlab export`");
    }
    let target = summaries.first().map(|summary| summary.spec.target.to_string()).unwrap_or_default();
    let streams: Vec<_> = summaries.iter().filter_map(|summary| summary.stream.as_ref()).collect();
    let searches: Vec<_> = streams.iter().filter_map(|stream| stream.search.as_ref()).collect();
    if !searches.is_empty() && searches.iter().all(|search| search.found_pps.is_none()) {
        return no_rate(&searches, &target);
    }
    if !streams.is_empty() {
        let sent: u64 = streams.iter().map(|stream| stream.total.sent).sum();
        return Failure::world(format!("no packet of the stream arrived at `{target}`"))
            .because(format!("{} were sent, and the receiver received none of them", grouped(sent)))
            .hint("check whether a firewall drops UDP on the path, or use a smaller `--size`")
            .of_silence(sent > 0);
    }
    no_probe_answered(summaries, Failure::world(format!("no probe was answered by `{target}`")))
}

/// The failure of searches that all found no rate: what their trials sent was lost or late.
fn no_rate(searches: &[&SearchFigures], target: &str) -> Failure {
    let trials: usize = searches.iter().map(|search| search.trials).sum();
    let (what, cause, hint) = match searches.iter().all(|search| search.late_at_least.is_some()) {
        true => (
            "arrives in time",
            "even at the lowest rate packets came too late",
            "use a smaller `--size`, or longer trials (`-d 5m`)",
        ),
        false => (
            "keeps the loss within the goal",
            "each lost too many packets, or was too short",
            "allow more loss (`--search 1%`), or use more time (`-d 5m`)",
        ),
    };
    Failure::world(format!("no rate to `{target}` {what}"))
        .because(format!("{} trials, {cause}", grouped(trials as u64)))
        .hint(hint)
        .of_silence(true)
}

/// Adds cause and hint to `failure`. Datagrams that were received instead of answers, if any, explain more than silence.
fn no_probe_answered(summaries: &[Summary], failure: Failure) -> Failure {
    let total = |count: fn(&Counts) -> u64| summaries.iter().map(|summary| count(&summary.counts)).sum::<u64>();
    let (sent, refused) = (total(|counts| counts.sent), total(|counts| counts.send_failed));
    if sent == 0 && refused == 0 {
        return failure.because("the run ended before a probe was due").hint("use a longer `--duration`");
    }
    if sent == 0 {
        return failure
            .because(format!("the kernel refused to send all {} of them", grouped(refused)))
            .hint("the warning `send-failed` has the reason and the remedy");
    }
    let errors = added(summaries, |summary| &summary.socket_errors);
    let strays = added(summaries, |summary| &summary.strays);
    let is_echo =
        summaries.iter().any(|summary| summary.spec.ping().is_some_and(|ping| ping.protocol == Protocol::Echo));
    if let Some(refused) = errors.get("ECONNREFUSED") {
        let (refused, sent) = (grouped(*refused), grouped(sent));
        failure
            .because(format!("the port is closed: {refused} of {sent} probes were refused there (ECONNREFUSED)"))
            .hint(if is_echo {
                "start the echo there, or give its port: `HOST:PORT`"
            } else {
                "check that the target still runs: it opened a session before"
            })
    } else if !errors.is_empty() {
        failure
            .because(format!("the network refused probes: {}", listed(&errors)))
            .hint("check the route and the firewalls: one of them sent this, not the target")
    } else if let Some(altered) = strays.get("altered") {
        failure
            .because(format!("{} answers came back changed, none unchanged", grouped(*altered)))
            .hint("an echo must return each datagram unchanged: a device on the path, or the echo, cuts or rewrites it")
            .of_silence(true)
    } else {
        let instead = if strays.is_empty() { String::new() } else { format!(", but {}", listed(&strays)) };
        let failure = failure.because(format!(
            "{} probes were sent{}, no valid answer came in time{instead}",
            grouped(sent),
            tried(summaries)
        ));
        let mut caveats = summaries.iter().filter(|one| one.counts.sent > 0).flat_map(|one| &one.caveats);
        let hint = caveats.find(|caveat| caveat.code == "no-answer").map(|caveat| caveat.hint.clone());
        Failure { hint, ..failure }.of_silence(true)
    }
}

/// ` to 192.0.2.9:7 over udp in 9 s`, of runs with the same address and transport.
fn tried(summaries: &[Summary]) -> String {
    let longest = summaries.iter().map(|summary| summary.duration_ns).max().unwrap_or_default();
    let span = if longest > Nanos::ZERO { format!(" in {}", span(longest)) } else { String::new() };
    let Some(Summary { peer_address, spec, .. }) = summaries.first() else { return span };
    let address = peer_address.as_ref().map(|address| format!(" to {address}")).unwrap_or_default();
    let transport = spec.transport().map(|transport| format!(" over {}", transport.word())).unwrap_or_default();
    format!("{address}{transport}{span}")
}

/// `foreign 3, never-sent 1`
fn listed(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect::<Vec<_>>().join(", ")
}

/// The counts of all runs together.
fn added(summaries: &[Summary], of: fn(&Summary) -> &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (kind, count) in summaries.iter().flat_map(of) {
        *all.entry(kind.clone()).or_default() += count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::{CLOSED, InMemory, but, closed};
    use crate::plan::{Via, WakeupCpus, WakeupSpec, Work};
    use crate::probe::{Fate, ProbeRecord};
    use crate::units::Nanos;
    use crate::{SummaryOptions, summarise};

    fn summary(rows: Vec<ProbeRecord>, change: impl Fn(&mut InMemory)) -> Summary {
        let mut source = InMemory::of(CLOSED, rows);
        change(&mut source);
        summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("rows in memory")
    }

    fn unanswered(fate: Fate) -> Vec<ProbeRecord> {
        (0..7).map(|seq| but(closed(seq, seq as i64 * 60, 50), fate)).collect()
    }

    #[test]
    fn one_answer_in_any_run_is_a_measurement() {
        let silent = summary(unanswered(Fate::Lost), |_| {});
        let answered = summary(vec![closed(0, 0, 50)], |_| {});
        assert_eq!(run_outcome(&[silent.clone(), answered]), Ok(Outcome::Done));
        let failure = run_outcome(&[silent]).expect_err("no answer");
        assert_eq!((failure.exit_code, failure.message.as_str()), (3, "no probe was answered by `local`"));
    }

    #[test]
    fn a_fatal_caveat_makes_the_outcome_untrusted() {
        let untrusted = summary(vec![closed(0, 0, 50)], |source| {
            source.manifest.run.reflector_died = Some("killed by SIGKILL".into());
        });
        assert_eq!(summary_outcome(std::slice::from_ref(&untrusted)), Outcome::NotTrusted);
        assert_eq!(ended_run_outcome(&untrusted), RunOutcome::Untrusted);
        assert_eq!(run_outcome(&[untrusted]), Ok(Outcome::NotTrusted));
    }

    #[test]
    fn a_gate_that_does_not_hold_comes_before_the_other_outcomes() {
        let silent = || run_outcome(&[summary(unanswered(Fate::Lost), |_| {})]);
        assert_eq!(with_gates(silent(), Outcome::Done), silent());
        let failure = with_gates(silent(), Outcome::AnswerIsNo).expect_err("no answer");
        assert_eq!((failure.exit_code, failure.message.as_str()), (1, "no probe was answered by `local`"));
        assert_eq!(with_gates(Ok(Outcome::NotTrusted), Outcome::Done), Ok(Outcome::NotTrusted));
        assert_eq!(with_gates(Ok(Outcome::NotTrusted), Outcome::AnswerIsNo), Ok(Outcome::AnswerIsNo));
    }

    #[test]
    fn a_failure_without_silence_comes_before_the_gates() {
        type Change = fn(&mut InMemory);
        let table: [(Vec<ProbeRecord>, Change, u8); 6] = [
            (Vec::new(), |_| {}, 3),
            (unanswered(Fate::SendFailed), |_| {}, 3),
            (unanswered(Fate::Lost), |source| error(source, "ECONNREFUSED"), 3),
            (unanswered(Fate::Lost), |source| error(source, "EHOSTUNREACH"), 3),
            (unanswered(Fate::Late), |_| {}, 1),
            (unanswered(Fate::Lost), |source| strays(source, "altered"), 1),
        ];
        for (rows, change, code) in table {
            let failure =
                with_gates(run_outcome(&[summary(rows, change)]), Outcome::AnswerIsNo).expect_err("no answer");
            assert_eq!(failure.exit_code, code, "{failure:?}");
        }
        let hook = Failure::world("the hook failed");
        assert_eq!(with_gates(Err(hook.clone()), Outcome::AnswerIsNo), Err(hook));
    }

    #[test]
    fn a_run_of_an_experiment_without_an_answer_failed() {
        assert_eq!(ended_run_outcome(&summary(unanswered(Fate::Lost), |_| {})), RunOutcome::Failed);
        assert_eq!(ended_run_outcome(&summary(vec![closed(0, 0, 50)], |_| {})), RunOutcome::Completed);
    }

    #[test]
    fn the_cause_is_what_came_back_instead_of_answers() {
        type Change = fn(&mut InMemory);
        let table: [(Vec<ProbeRecord>, Change, &str, &str); 7] = [
            (Vec::new(), |_| {}, "before a probe was due", "longer"),
            (unanswered(Fate::SendFailed), |_| {}, "refused to send all 7 of them", "`send-failed`"),
            (
                unanswered(Fate::Lost),
                |_| {},
                "7 probes were sent to 127.0.0.1:40000 over udp in 360 µs, no valid answer came",
                "`--timeout`",
            ),
            (unanswered(Fate::Lost), |source| strays(source, "foreign"), "in time, but foreign 3", "`--timeout`"),
            (unanswered(Fate::Lost), |source| strays(source, "altered"), "3 answers came back changed", "unchanged"),
            (unanswered(Fate::Lost), |source| error(source, "EHOSTUNREACH"), "refused probes: EHOSTUNREACH 3", "route"),
            (unanswered(Fate::Lost), |source| error(source, "ECONNREFUSED"), "3 of 7 probes were refused", "session"),
        ];
        for (rows, change, cause, hint) in table {
            let failure = run_outcome(&[summary(rows, change)]).expect_err("no answer");
            assert!(failure.cause.as_ref().is_some_and(|found| found.contains(cause)), "{failure:?}");
            assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
        }
    }

    fn strays(source: &mut InMemory, kind: &str) {
        source.manifest.run.strays.insert(kind.into(), 3);
    }

    fn error(source: &mut InMemory, name: &str) {
        source.manifest.run.socket_errors.insert(name.into(), 3);
    }

    #[test]
    fn wake_ups_fail_by_the_length_of_their_run() {
        let failure = run_outcome(&[summary(Vec::new(), |source| {
            let (via, cpus) = (Via::ClockNanosleep, WakeupCpus::Anywhere);
            let interval_ns = Nanos::from_millis(1);
            let spec = WakeupSpec { via, interval_ns, relative: false, cpus, break_ns: None };
            source.manifest.spec = crate::plan::RunSpec::here(Work::Wakeup(spec));
            source.manifest.kind = Kind::Wakeup;
        })]);
        assert_eq!(failure.expect_err("no wake-up").message, "no wake-up was measured");
    }
}
