//! From where on a run is not what it seems: every limit of validity, with its reason, in one table. The same numbers
//! stand in docs/metrics.md.

use crate::units::Nanos;

/// Calendar and monotonic clock may part by this much before it is called a step. Slewing bends both
/// alike, so that any difference beyond the width of the anchors is a step; a smaller one than this
/// cannot be told from a busy host and would spoil nothing.
pub(super) const STEP: Nanos = Nanos::from_millis(1);

/// From this share of due probes on that were never sent, the schedule is lost: the default quantiles
/// from p99 on are then about other probes than the schedule promised.
pub(super) const SCHEDULE_LOST: f64 = 0.01;

/// A probe is behind when it left so many intervals after it was due, and no less than this span …
pub(in crate::analysis) const BEHIND_INTERVALS: i64 = 10;
/// … which even a busy host keeps …
pub(in crate::analysis) const BEHIND_SPAN: Nanos = Nanos::from_millis(1);
/// … and where half of all were behind, the typical probe left when the sender could, not when it was due.
pub(super) const BEHIND: f64 = 0.5;

/// From this share of probes on that our own socket threw away, the losses are the instrument's: the same reason.
pub(super) const OWN_DROPS: f64 = 0.01;

/// A stream that sent less than this share of the rate asked for did not reach it: docs/stream.md promises half a per cent.
pub(super) const RATE_REACHED: f64 = 0.995;

/// A hypervisor that took this share of one CPU: a thousandth is what p99.9 shows.
pub(super) const STEAL: f64 = 0.001;

/// It took this share of one CPU within one second: 50 ms, five steps of the counter, so that no rounding makes it. A
/// stop of that length is what the largest values show, however long the run and small the mean.
pub(super) const STEAL_IN_A_SECOND: f64 = 0.05;

/// Host samples are judged over at least so long: counters of CPU time move in steps of 10 ms for each CPU, which is
/// 1 % of a second.
pub(super) const JUDGED_SPAN: Nanos = Nanos::from_secs(1);

/// What a CPU's busy time may be wrong by when two readings are subtracted: a tick of 10 ms at either end.
pub(super) const TICKS_OF_A_CPU: Nanos = Nanos::from_millis(20);

/// Foreign work on so large a share of the CPUs that measure is worth knowing: a probe in twenty may have met it …
pub(super) const FOREIGN_NOTE: f64 = 0.05;
/// … and from here on even p90 is no longer that of an idle host.
pub(super) const FOREIGN_WARNING: f64 = 0.1;

/// The clock rate of a measuring CPU differed by this share between the two halves of the run. The part of a round
/// trip that is computing changes as much: more than the difference that comparisons are made for.
pub(super) const FREQUENCY_DRIFT: f64 = 0.05;
/// In each half there must be so many readings of the rate: fewer are chance.
pub(super) const FREQUENCY_READINGS: u64 = 4;
