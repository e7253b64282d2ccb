//! Putting back what a latlab that died had set, before anything else is done, and telling so.

use crate::console::Console;
use crate::diagnostics::in_words;
use crate::facts::{Finding, FindingSeverity, Restoration};
use crate::host::restoring::{self, Recovered, Unrecovered};
use crate::host::{HostRoot, KnobJournal, tracing};

/// Puts back what the dead have left, with a note for each value and a warning for each that stays.
pub(super) fn heal(console: &Console) {
    for finding in findings() {
        match finding.severity {
            FindingSeverity::Note | FindingSeverity::Fine => console.note(&finding.message),
            _ => console.warning(&finding.message, finding.fix.as_deref()),
        }
    }
}

/// Puts back what the dead have left; what came of it, as findings.
pub(super) fn findings() -> Vec<Finding> {
    let traces = tracing::remove_left().into_iter().map(|name| {
        Finding::note("trace-removed", format!("a latlab that died had left the trace instance `{name}`: it is gone"))
    });
    let Some(journal) = KnobJournal::of_user() else { return traces.collect() };
    let (healed, unhealed) = restoring::heal(&journal, &HostRoot::of_knobs());
    traces.chain(healed.iter().map(told)).chain(unhealed.iter().map(unread)).collect()
}

/// Warns where settings go to the files of a test, and not to this host.
pub(super) fn tell_of_another_root(console: &Console) {
    if let Some(root) = HostRoot::of_knobs().elsewhere() {
        let message = format!(
            "`LATLAB_HOST_ROOT` is set: files under `{}` are set instead of this host, and what dead latlabs left on \
             this host stays as it is",
            root.display()
        );
        console.warning(&message, Some("`unset LATLAB_HOST_ROOT`, unless this is a test of latlab itself"));
    }
}

/// Warns of what this process itself could not put back.
pub(super) fn tell_what_is_left(console: &Console) {
    let left = KnobJournal::of_user().and_then(|journal| restoring::left_behind(&journal));
    if let Some((page, settings)) = left {
        let message = format!("`{}` could not be put back; it stays in `{}`", settings.join("`, `"), page.display());
        console.warning(&message, Some("`latlab doctor --restore` tries again, and so does the next latlab command"));
    }
}

/// Restores at once what this process has set, on whatever thread this is called.
pub(super) fn restore_at_once() {
    if let Some(journal) = KnobJournal::of_user() {
        restoring::restore_own(&journal, &HostRoot::of_knobs());
    }
}

fn told(one: &Recovered) -> Finding {
    let Recovered { setting, place, before, ours, outcome, kept_in } = one;
    let died = format!("a latlab that died had set `{setting}`");
    match outcome {
        Restoration::Restored => {
            Finding::note("setting-restored", format!("{died}: `{place}` is `{before}` again, it was `{ours}`"))
        }
        Restoration::Changed { found } => Finding::note(
            "setting-changed",
            format!("{died}, and somebody has changed it since: `{place}` stays as it is ({found}), it was `{before}`"),
        ),
        Restoration::Failed { reason } => {
            let page = kept_in.as_ref().map(|page| page.display().to_string()).unwrap_or_default();
            Finding::new(
                FindingSeverity::Blocker,
                "setting-not-restored",
                format!("{died}, and `{place}` cannot be put back to `{before}`: {reason}"),
                format!("put it back by hand, then remove `{page}`"),
            )
        }
    }
}

fn unread(one: &Unrecovered) -> Finding {
    let path = one.path.display();
    Finding::new(
        FindingSeverity::Blocker,
        "journal-unreadable",
        format!("cannot read what a latlab had set in `{path}`: {}", in_words(&one.source)),
        format!("look at the values it names, then remove `{path}`"),
    )
}
