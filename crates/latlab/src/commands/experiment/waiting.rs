//! Waiting between runs and between blocks, with an ear for signals.

use std::thread;
use std::time::{Duration, Instant};

use crate::console::Console;
use crate::platform::SignalWatch;
use crate::units::Nanos;

/// Signals are looked for so often.
const LOOK: Duration = Duration::from_millis(50);
/// A shorter wait needs no progress line.
const SHOWN: Duration = Duration::from_secs(2);

/// Waits for `span`; false: somebody stopped it.
pub(super) fn wait(span: Nanos, title: &str, interrupt: &SignalWatch, console: &Console) -> bool {
    let span = Duration::from_nanos(span.0.unsigned_abs());
    let end = Instant::now() + span;
    let progress = (span > SHOWN).then(|| console.progress(title, None));
    while interrupt.outcome().is_none() && Instant::now() < end {
        let rest = end - Instant::now();
        if let Some(progress) = &progress {
            progress.show(0, &format!("waiting for {} s", rest.as_secs() + 1));
        }
        interrupt.notice();
        thread::sleep(LOOK.min(rest));
    }
    interrupt.outcome().is_none()
}
