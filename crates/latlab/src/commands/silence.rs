//! Why no probe of a run was answered, as far as the recordings tell.

use std::collections::BTreeMap;

use super::no_rate;
use crate::analysis::{Counts, Kind, Summary};
use crate::diagnostics::Failure;
use crate::units::human::grouped;

/// The failure of a command whose runs have no answer between them.
pub(super) fn failure(summaries: &[Summary]) -> Failure {
    if summaries.iter().all(|summary| summary.kind == Kind::Wakeup) {
        return Failure::world("no wake-up was measured")
            .because("the run ended before its first slot that counts")
            .hint("measure for longer, or with a shorter `--interval` or `--warmup`");
    }
    let target = summaries.first().map(|summary| summary.condition.target.clone()).unwrap_or_default();
    if let Some(failure) = no_rate::failure(summaries, &target) {
        return failure;
    }
    if summaries.iter().any(|summary| summary.stream.is_some()) {
        let sent =
            summaries.iter().filter_map(|summary| summary.stream.as_ref()).map(|stream| stream.total.sent).sum::<u64>();
        return Failure::world(format!("no packet of the stream arrived at `{target}`"))
            .because(format!("{} were sent, and the receiver counted none of them", grouped(sent)))
            .hint("see what drops UDP on the way, or choose a smaller `--size`");
    }
    let (cause, hint) = why(summaries);
    Failure::world(format!("no probe was answered by `{target}`")).because(cause).hint(hint)
}

fn why(summaries: &[Summary]) -> (String, String) {
    let total = |count: fn(&Counts) -> u64| summaries.iter().map(|summary| count(&summary.counts)).sum::<u64>();
    match (total(|counts| counts.sent), total(|counts| counts.send_failed)) {
        (0, 0) => ("the run ended before one could be sent".into(), "measure again, for longer".into()),
        (0, refused) => (
            format!("the kernel refused to send all {} of them", grouped(refused)),
            "the warning `send-failed` names the kernel's reason; check route, `--size` with `--df`, and the send buffer"
                .into(),
        ),
        (sent, _) => why_unanswered(summaries, sent),
    }
}

/// What came back instead of answers says more than that none came.
fn why_unanswered(summaries: &[Summary], sent: u64) -> (String, String) {
    let errors = added(summaries, |summary| &summary.socket_errors);
    let strays = added(summaries, |summary| &summary.strays);
    let is_echo = summaries.iter().any(|summary| summary.condition.protocol.as_deref() == Some("echo"));
    if let Some(refused) = errors.get("ECONNREFUSED") {
        let hint = match is_echo {
            true => "start the echo there, or name the port where it listens: `HOST:PORT`",
            false => "see that the target still runs: it opened a session before",
        };
        let (refused, sent) = (grouped(*refused), grouped(sent));
        (format!("the port is closed: {refused} of {sent} probes were refused there (ECONNREFUSED)"), hint.into())
    } else if !errors.is_empty() {
        let cause = format!("the network refused probes: {}", listed(&errors));
        (cause, "check route and firewalls on the way; they answered in the target's place".into())
    } else if let Some(altered) = strays.get("altered") {
        let cause = format!("{} answers came back altered, none as it was sent", grouped(*altered));
        (cause, "an echo returns each datagram unchanged and in full: see what cuts or rewrites it".into())
    } else {
        let instead = if strays.is_empty() { String::new() } else { format!(", but {}", listed(&strays)) };
        let cause = format!("{} probes were sent, nothing valid came back in time{instead}", grouped(sent));
        let hint = "see that the target still runs and that nothing on the path drops packets; `--timeout` sets how long an answer may take";
        (cause, hint.into())
    }
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
