//! Limits of validity: the values from which caveats are raised, each with its reason, as in docs/metrics.md.

use crate::units::Nanos;

/// Difference between the advances of the calendar clock and of the monotonic clock that counts as a step. Slewing
/// bends both alike, so a difference beyond the width of the clock anchors is a step; one below this limit cannot be
/// distinguished from a delayed reading on a busy host, and distorts no figure.
pub(super) const STEP: Nanos = Nanos::from_millis(1);

/// A probe that leaves this long after it was due has slipped: an idle wake-up takes about as long.
pub(super) const SLIPPED: Nanos = Nanos::from_micros(50);

/// Share of due probes never sent from which the schedule is lost: the default quantiles from p99 on are then about
/// other probes than the schedule promised.
pub(super) const SCHEDULE_LOST: f64 = 0.01;

/// A probe is behind if it left this many intervals after it was due, and at least [`BEHIND_SPAN`] after.
pub(super) const BEHIND_INTERVALS: i64 = 10;
/// Even a busy host keeps to a schedule within this span.
pub(super) const BEHIND_SPAN: Nanos = Nanos::from_millis(1);
/// If half of the probes were behind, the typical probe left when the sender could, not when it was due.
pub(super) const BEHIND: f64 = 0.5;

/// A burst of losses at the end of a run is the end of its answers if it has so many times the probes of the longest burst
/// before; the longest bursts of a lossy path differ less.
pub(super) const BURST_CONTRAST: u64 = 3;
/// The same: so improbable if each of its probes was lost with the share of the probes before.
pub(super) const BURST_CHANCE: f64 = 1e-4;
/// The same: no answer arrived during so large a part of the run, so that even p90 is infinite on a schedule …
pub(super) const BURST_SHARE: f64 = 0.1;
/// … and for so long, or the burst has half of the probes: full queues and changes of a route take less.
pub(super) const BURST_SPAN: Nanos = Nanos::from_secs(1);

/// Share of probes dropped at our own socket from which the losses are those of the instrument, for the reason of
/// [`SCHEDULE_LOST`].
pub(super) const OWN_DROPS: f64 = 0.01;

/// Share of the requested rate below which a stream did not reach it: docs/stream.md promises half a per cent.
pub(super) const RATE_REACHED: f64 = 0.995;

/// Share of one CPU taken by the hypervisor: p99.9 shows a thousandth. Nearly every virtual machine loses so much.
pub(super) const STEAL: f64 = 0.001;
/// From this share on p99 shows it.
pub(super) const STEAL_WARNING: f64 = 0.01;

/// The same within one second: 50 ms are five steps of the counter, so that rounding cannot produce it. A stop of that
/// length shows in the largest values, however long the run and however small the mean.
pub(super) const STEAL_IN_A_SECOND: f64 = 0.05;

/// Least span over which host samples are judged: counters of CPU time advance in steps of 10 ms for each CPU, which
/// is 1 % of a second.
pub(super) const JUDGED_SPAN: Nanos = Nanos::from_secs(1);

/// Error of a CPU's busy time between two readings: a tick of 10 ms at either end.
pub(super) const TICKS_OF_A_CPU: Nanos = Nanos::from_millis(20);

/// Share of the measuring CPUs used by other processes that is worth a note: one probe in twenty may have met it.
pub(super) const FOREIGN_NOTE: f64 = 0.05;
/// From this share on even p90 is not that of an idle host.
pub(super) const FOREIGN_WARNING: f64 = 0.1;
/// From this share of all CPUs on, an end finds no CPU that other processes leave free.
pub(super) const FOREIGN_EVERYWHERE: f64 = 0.8;

/// Relative change of a measuring CPU's clock rate between the two halves of the run. The computing part of a round
/// trip changes as much: more than the differences that comparisons look for.
pub(super) const FREQUENCY_DRIFT: f64 = 0.05;
/// Fewer readings of the rate in either half are chance.
pub(super) const FREQUENCY_READINGS: u64 = 4;

/// Share of the probes from which a placement of the ends is named, and the round trips are called mixed: it determines
/// p99, or all above.
pub(super) const PLACEMENT_SHARE: f64 = 0.01;
/// Share of the probes from which a run as a whole counts as placed so: with less even p90 may be of another placement.
pub(super) const PLACEMENT_MOST: f64 = 0.9;
/// Ratio of the medians of two placements from which quantiles that mix them mislead.
pub(super) const PLACEMENT_CONTRAST: f64 = 1.2;

/// A round trip on one host that takes this long, while an end spins, contains a time slice of another thread: the
/// scheduler's shortest is 0.7 ms or longer (`sysctl_sched_base_slice`, kernel/sched/fair.c).
pub(super) const STALLED: Nanos = Nanos::from_millis(1);
/// The path alone does not vary by so many times the fastest round trip.
pub(super) const STALLED_CONTRAST: i64 = 20;
/// From this share on even p90 contains time slices.
pub(super) const STALLED_SHARE: f64 = 0.1;
