//! Caveats of wake-ups: slots that were overrun or given up, and runs that a late wake-up ended.

use super::figures::Wakeups;
use crate::diagnostics::{Caveat, Severity};
use crate::plan::defaults;
use crate::units::Nanos;
use crate::units::human::{grouped, percent, span};

/// The caveats of a run of `measured` wake-ups.
pub(crate) fn caveats(wakeups: &Wakeups, measured: u64) -> Vec<Caveat> {
    let found = [
        overrun(wakeups, measured),
        not_slept(wakeups.not_slept.unwrap_or(0)),
        broke(wakeups),
        cut_short(wakeups.cut_short),
    ];
    found.into_iter().flatten().collect()
}

fn overrun(wakeups: &Wakeups, measured: u64) -> Option<Caveat> {
    let (effect, hint) = advice(wakeups.lateness.real_time, wakeups.is_backlog(measured));
    overrun_slots(wakeups.overrun_slots, measured, effect, hint)
}

/// Effect and hint of overrun slots.
const fn advice(real_time: bool, backlog: bool) -> (&'static str, &'static str) {
    let hint = match (real_time, backlog) {
        (true, _) | (false, true) => "a longer `--interval`",
        (false, false) => "a longer `--interval`, or `--fifo 80` if other threads kept the CPU busy",
    };
    let effect = match backlog {
        true => "most of the lateness is backlog: each wake-up waits for those before it",
        false => "no wake-up is skipped: a periodic task would have been as late",
    };
    (effect, hint)
}

/// The caveat of `slots` that were due before their thread had returned from the one before.
pub(crate) fn overrun_slots(slots: u64, measured: u64, effect: &str, hint: &str) -> Option<Caveat> {
    (slots > 0).then(|| {
        let (share, count) = (percent(slots as f64 / measured.max(1) as f64), grouped(slots));
        let message = format!(
            "{count} of {} wake-ups ({share}) were due before their thread had returned from the previous one",
            grouped(measured)
        );
        Caveat::new(Severity::Warning, "overrun-slots", message, effect, hint)
    })
}

fn not_slept(given_up: u64) -> Option<Caveat> {
    (given_up > 0).then(|| {
        let backlog = span(defaults::MAX_BACKLOG);
        Caveat::new(
            Severity::Warning,
            "not-slept",
            format!(
                "{} wake-ups were given up: {backlog} after the last one was due, their threads had not reached them",
                grouped(given_up)
            ),
            "they would have been later than every measured one: the true quantiles lie above those shown",
            "a longer `--interval`",
        )
    })
}

fn broke(wakeups: &Wakeups) -> Option<Caveat> {
    let late = wakeups.broke?;
    let cpu = late.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    let lateness = span(Nanos(late.woke_ns - late.due_ns));
    // Without a trace another caveat says why it is missing, and how to have it.
    let hint = wakeups.trace.as_ref().map(|file| format!("`{file}` in the recording shows what ran then"));
    Some(Caveat::new(
        Severity::Note,
        "broke",
        format!("wake-up {} was {lateness} late{cpu}, which ended the run (`--break`)", late.seq),
        "the figures cover the part before it, whose length depends on the late wake-up",
        hint.unwrap_or_default(),
    ))
}

fn cut_short(cut_short: bool) -> Option<Caveat> {
    cut_short.then(|| {
        Caveat::new(
            Severity::Note,
            "cut-short",
            "a late wake-up of a concurrent run ended both runs",
            "the figures cover the part before it",
            "omit `--break` to measure whole runs",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifo_is_advised_only_without_real_time_and_backlog() {
        for (real_time, backlog, fifo) in
            [(false, false, true), (true, false, false), (false, true, false), (true, true, false)]
        {
            let (effect, hint) = advice(real_time, backlog);
            assert_eq!((hint.contains("--fifo"), effect.contains("backlog")), (fifo, backlog), "{effect}: {hint}");
        }
    }

    #[test]
    fn slots_given_up_or_overrun_raise_a_caveat_only_if_there_are_any() {
        let found = not_slept(1_234).expect("slots were given up");
        assert!(found.code == "not-slept" && found.message.starts_with("1,234 wake-ups"), "{found:?}");
        assert_eq!((not_slept(0), overrun_slots(0, 5, "", "")), (None, None));
    }
}
