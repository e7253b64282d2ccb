//! A bar while something is measured.

use std::time::Instant;

use super::interrupt::Interrupt;
use crate::console::Console;
use crate::plan::Plan;

/// Does `work`, which calls its heartbeat now and then, beside a bar for `plan`.
pub(super) fn beside<T>(
    plan: &Plan,
    title: &str,
    interrupt: &Interrupt,
    console: &Console,
    work: impl FnOnce(&mut dyn FnMut()) -> T,
) -> T {
    let expected = plan.duration();
    let progress = console.progress(title, expected.map(|span| (span.0 / 1_000_000) as u64));
    let start = Instant::now();
    let mut heartbeat = || {
        interrupt.notice();
        let gone = start.elapsed();
        progress.show(gone.as_millis() as u64, &format!("{:.1} s", gone.as_secs_f64()));
    };
    let done = work(&mut heartbeat);
    drop(progress);
    interrupt.notice();
    done
}
