use super::{RequestError, ends, setting, value};
use crate::cli::args::{BareWakeupArgs, EndArgs};
use crate::measure::baseline::BareWakeupSpec;
use crate::plan::{Target, defaults};

/// The loop keeps its latencies in memory: 80 MB at the limit.
const COUNT_MAX: u64 = 10_000_000;
/// Wake-ups unless said otherwise: ten seconds at the default interval.
const COUNT: u64 = 1_000;

/// Settles `typed`.
pub fn bare_wakeup(typed: &BareWakeupArgs) -> Result<BareWakeupSpec, RequestError> {
    let count = typed.count.as_deref().map(|count| value::whole("--count", count, 1..=COUNT_MAX)).transpose()?;
    let warmup = typed.warmup.as_deref().map(|count| value::whole("--warmup", count, 0..=COUNT_MAX)).transpose()?;
    let interval = typed.interval.as_deref();
    let interval = interval.map(|span| value::span("--interval", span, defaults::INTERVAL_MAX)).transpose()?;
    let threads = &typed.threads;
    let end = EndArgs { wait: None, cpu: threads.cpu.clone(), fifo: threads.fifo.clone(), mlock: threads.mlock };
    Ok(BareWakeupSpec {
        interval_ns: interval.unwrap_or(defaults::WAKEUP_INTERVAL),
        count: count.unwrap_or(COUNT) as usize,
        warmup: warmup.unwrap_or(0) as usize,
        end: ends::here(&end)?,
        settings: setting::settings(&typed.settings.set, &Target::Local)?,
    })
}
