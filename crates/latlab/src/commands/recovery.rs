//! Restores settings and removes traces that latlab processes which died had left on this host, and reports both.

use std::io;

use crate::console::Console;
use crate::diagnostics::in_words;
use crate::facts::{Finding, FindingSeverity, Restoration};
use crate::host::knobs::{self, Recovered, Unrecovered};
use crate::host::{HostRoot, KnobJournal, tracing};
use crate::platform::ownership::{of_another_user, untrusted};

/// Restores leftovers of dead processes: a note for each restored value, a warning for each that stays.
pub(super) fn recover(console: &Console) {
    for finding in findings() {
        match finding.severity {
            FindingSeverity::Note | FindingSeverity::Fine => console.note(&finding.message),
            _ => console.warning(&finding.message, finding.fix.as_deref()),
        }
    }
}

/// Restores leftovers of dead processes; one finding for each.
pub(super) fn findings() -> Vec<Finding> {
    let traces = tracing::remove_left().into_iter().map(|name| {
        Finding::note("trace-removed", format!("removed the trace instance `{name}`, which a killed latlab had left"))
    });
    let Some(journal) = KnobJournal::for_user() else { return traces.collect() };
    let (recovered, unrecovered) = knobs::recover(&journal, &HostRoot::for_knobs());
    traces.chain(recovered.iter().map(recovered_finding)).chain(unrecovered.iter().map(unrecovered_finding)).collect()
}

/// Warns if settings apply to the files of a test instead of this host.
pub(super) fn warn_of_other_root(console: &Console) {
    if let Some(root) = HostRoot::for_knobs().elsewhere() {
        let message = format!(
            "`LATLAB_HOST_ROOT` is set: settings apply to files under `{}` instead of this host, and settings \
             that killed latlabs left on this host remain",
            root.display()
        );
        console.warning(&message, Some("`unset LATLAB_HOST_ROOT`, unless this is a test of latlab itself"));
    }
}

/// Warns of settings that this process could not restore.
pub(super) fn warn_of_leftovers(console: &Console) {
    let left = KnobJournal::for_user().and_then(|journal| knobs::unrestored(&journal));
    if let Some((page, settings)) = left {
        let message = format!("cannot restore `{}`; it remains in `{}`", settings.join("`, `"), page.display());
        console.warning(&message, Some("the next latlab command, or `latlab doctor --restore`, tries again"));
    }
}

/// Restores what this process has set, before it ends; callable on any thread.
pub(super) fn restore_at_once() {
    if let Some(journal) = KnobJournal::for_user() {
        // From here to the end of the process no `HostGuard` restores a setting; one may still set some.
        std::mem::forget(knobs::restore_own(&journal, &HostRoot::for_knobs()));
    }
}

fn recovered_finding(one: &Recovered) -> Finding {
    let Recovered { setting, place, before, ours, outcome, kept_in } = one;
    let died = format!("a killed latlab had set `{setting}`");
    match outcome {
        Restoration::Restored => {
            Finding::note("setting-restored", format!("{died}: `{place}` is restored from `{ours}` to `{before}`"))
        }
        Restoration::Changed { found } => Finding::note(
            "setting-changed",
            format!("{died}, and `{place}` was changed since ({found}): it stays as it is; before it was `{before}`"),
        ),
        Restoration::Failed { reason } => {
            let page = kept_in.as_ref().map(|page| format!("; it is kept in `{}`", page.display())).unwrap_or_default();
            Finding::new(
                FindingSeverity::Blocker,
                "setting-not-restored",
                format!("{died}, and `{place}` cannot be restored to `{before}`: {reason}"),
                format!("`latlab doctor --restore` tries again, or finds that it was restored by hand{page}"),
            )
        }
    }
}

fn unrecovered_finding(one: &Unrecovered) -> Finding {
    let path = one.path.display();
    if let Some(directory) = of_another_user(&one.path, &one.source) {
        let message = format!(
            "cannot look for settings left by a killed latlab: `{}` belongs to another user (EACCES)",
            directory.display()
        );
        let fix = "sudo latlab doctor --restore, or set HOME to a directory of this user";
        return Finding::new(FindingSeverity::Blocker, "journal-unreadable", message, fix);
    }
    let (cause, fix) = match untrusted(&one.source) {
        Some(found) => (found.cause(), found.remedy()),
        None if matches!(one.source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            (in_words(&one.source), format!("restore the values that it lists by hand, then remove `{path}`"))
        }
        None => (in_words(&one.source), "`latlab doctor --restore` tries again when that is fixed".into()),
    };
    let message = format!("cannot read the settings of a killed latlab in `{path}`: {cause}");
    Finding::new(FindingSeverity::Blocker, "journal-unreadable", message, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn only_a_page_that_latlab_can_never_read_is_to_be_removed() {
        let fix = |source: io::Error| unrecovered_finding(&Unrecovered { path: "/x/journal".into(), source }).fix;
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOENT, Errno::IO] {
            let fix = fix(errno.into()).expect("a hint");
            assert!(fix.contains("--restore") && !fix.contains("remove"), "{fix}");
        }
        assert!(fix(io::ErrorKind::InvalidData.into()).expect("a hint").contains("then remove `/x/journal`"));
        let reason = "too many open files (EMFILE)".into();
        let [setting, place, before, ours] =
            ["governor=performance", "/sys/x", "ondemand", "performance"].map(String::from);
        let kept_in = Some("/x/journal/1-1.json".into());
        let one = Recovered { setting, place, before, ours, outcome: Restoration::Failed { reason }, kept_in };
        assert!(!recovered_finding(&one).fix.expect("a hint").contains("remove"));
    }
}
