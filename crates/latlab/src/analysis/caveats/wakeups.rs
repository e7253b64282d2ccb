//! What wake-ups say: slots that were past before their thread came back.

use crate::analysis::wakeups::Wakeups;
use crate::caveat::{Caveat, Severity};
use crate::units::Nanos;
use crate::units::human::{grouped, percent, span};

/// The caveats of a run of wake-ups of which `measured` count.
pub(super) fn derive(wakeups: &Wakeups, measured: u64) -> Vec<Caveat> {
    [overrun(wakeups, measured), broke(wakeups)].into_iter().flatten().collect()
}

fn overrun(wakeups: &Wakeups, measured: u64) -> Option<Caveat> {
    let slots = wakeups.overrun_slots;
    (slots > 0).then(|| {
        let share = slots as f64 / measured.max(1) as f64;
        Caveat::new(
            Severity::Warning,
            "overrun-slots",
            format!(
                "{} of {} slots ({}) were past when their thread came back from the one before",
                grouped(slots),
                grouped(measured),
                percent(share)
            ),
            "no slot is skipped: their lateness is what a task of that period would have seen",
            "a longer `--interval`, or `--fifo` where something else kept the CPU",
        )
    })
}

fn broke(wakeups: &Wakeups) -> Option<Caveat> {
    let late = wakeups.broke?;
    let cpu = late.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    let lateness = span(Nanos(late.woke_ns - late.due_ns));
    let trace = wakeups.trace.as_ref().map(|file| format!("; `{file}` in the recording holds what ran around it"));
    Some(Caveat::new(
        Severity::Note,
        "broke",
        format!("slot {} woke {lateness} late{cpu}: the run ended there{}", late.seq, trace.unwrap_or_default()),
        "the figures are about the part before it, and its end was chosen by a late wake-up",
        "leave out `--break` for figures of a whole run",
    ))
}
