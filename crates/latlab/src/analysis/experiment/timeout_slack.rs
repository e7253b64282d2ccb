//! Why longer sleeps wake later: how much of that growth is the call that sleeps.

use std::collections::BTreeMap;

use crate::analysis::comparison::{Comparison, Effect};
use crate::plan::Factors;
use crate::units::Nanos;

/// One interval: the same sleep through a call that is exact and through one that stretches its time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SleepRow {
    /// The interval.
    pub interval: Nanos,
    /// The typical median latency of the exact call, ns.
    pub exact_ns: f64,
    /// The same of the other one, ns.
    pub stretched_ns: f64,
    /// By how much that is later, ns.
    pub later: Effect,
    /// Runs of the exact call and of the other one.
    pub runs: (usize, usize),
}

/// How much of a growth the way of sleeping explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExplainedShare {
    /// The growth of the difference between the two calls over that of the stretched one.
    pub share: f64,
    /// Where it may lie, from the ends of the two intervals of the difference and of that of the growth: at 95 % each,
    /// [`Explained::CONFIDENCE`] together.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
}

impl ExplainedShare {
    /// Of three intervals at 95 % all hold at least so often (Bonferroni).
    pub const CONFIDENCE: f64 = 0.85;
}

/// What the data say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlackVerdict {
    /// Half of the growth or more is the call's.
    IsTheCall,
    /// Less than half of it is.
    IsSomethingElse,
    /// There is none: the whole interval of the growth is at most 0.
    NoGrowth,
    /// The intervals are too wide to tell.
    Undecided,
}

/// Latency over the interval, by two ways of sleeping.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutSlack {
    /// At least two, the shortest interval first.
    pub rows: Vec<SleepRow>,
    /// By how much the stretched call is later after the longest than after the shortest, ns; none where nothing tells.
    pub grown: Option<Effect>,
    /// From the shortest to the longest; none where the stretched call is not known to grow.
    pub explained: Option<ExplainedShare>,
    /// What follows.
    pub answer: SlackVerdict,
}

/// Under which level of `set` the calls are compared, empty where that is no factor: under two of them latencies differ by
/// more than the call does. Of those at which `exact` and another call slept for two intervals or more it is the one that
/// leaves the host as it was found, else the first of `conditions`; none where there is none.
pub fn common_setting<'a>(conditions: impl IntoIterator<Item = &'a Factors>, exact: &str) -> Option<&'a str> {
    let mut met: Vec<(&str, BTreeMap<&str, [bool; 2]>)> = Vec::new();
    for factors in conditions {
        let level = |factor: &str| factors.get(factor).map_or("", String::as_str);
        let set = level("set");
        let place = met.iter().position(|(other, _)| *other == set).unwrap_or_else(|| {
            met.push((set, BTreeMap::new()));
            met.len() - 1
        });
        met[place].1.entry(level("interval")).or_default()[usize::from(level("via") == exact)] = true;
    }
    let is_told =
        |intervals: &BTreeMap<&str, [bool; 2]>| intervals.values().filter(|calls| calls[0] && calls[1]).count() >= 2;
    let mut told = met.iter().filter(|(_, intervals)| is_told(intervals)).map(|(set, _)| *set);
    told.clone().find(|set| set.ends_with("=as-found")).or_else(|| told.next())
}

impl SleepRow {
    /// Of a comparison of medians, the exact call being the baseline; none where it has no figure.
    pub fn of(interval: Nanos, compared: &Comparison) -> Option<SleepRow> {
        let (exact_ns, stretched_ns) = compared.centres?;
        Some(SleepRow { interval, exact_ns, stretched_ns, later: compared.difference?, runs: compared.evidence.runs })
    }
}

impl TimeoutSlack {
    /// What `rows` tell together, whose stretched call is later by `grown` after the longest interval than after the
    /// shortest; none where there are fewer than two.
    pub fn of(mut rows: Vec<SleepRow>, grown: Option<Effect>) -> Option<TimeoutSlack> {
        rows.sort_by_key(|row| row.interval);
        let [first, .., last] = rows.as_slice() else { return None };
        let surely = grown.filter(|grown| grown.interval.low.is_some_and(|low| low > 0.0));
        let explained = surely.map(|grown| {
            let (from, to, all) = (first.later.interval, last.later.interval, grown.interval);
            // The far end of the growth where that brings the share nearer to 0, else the near one.
            let least = |ns: f64| Some(ns / if ns > 0.0 { all.high? } else { all.low? });
            let most = |ns: f64| Some(ns / if ns > 0.0 { all.low? } else { all.high? });
            ExplainedShare {
                share: (last.later.value - first.later.value) / grown.value,
                low: to.low.zip(from.high).and_then(|(to, from)| least(to - from)),
                high: to.high.zip(from.low).and_then(|(to, from)| most(to - from)),
            }
        });
        let none = grown.is_some_and(|grown| grown.interval.high.is_some_and(|high| high <= 0.0));
        let answer = match explained {
            None if none => SlackVerdict::NoGrowth,
            None => SlackVerdict::Undecided,
            Some(ExplainedShare { low: Some(low), .. }) if low >= 0.5 => SlackVerdict::IsTheCall,
            Some(ExplainedShare { high: Some(high), .. }) if high < 0.5 => SlackVerdict::IsSomethingElse,
            Some(_) => SlackVerdict::Undecided,
        };
        Some(TimeoutSlack { rows, grown, explained, answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    /// The exact call takes `exact` µs, the other one `later` µs more, give or take `about`.
    fn row(interval_ms: i64, exact: f64, later: f64, about: Option<f64>) -> SleepRow {
        let end = |sign: f64| about.map(|about| (later + sign * about) * 1e3);
        let interval = Interval { low: end(-1.0), high: end(1.0), confidence: 0.95 };
        SleepRow {
            interval: Nanos::from_millis(interval_ms),
            exact_ns: exact * 1e3,
            stretched_ns: (exact + later) * 1e3,
            later: Effect { value: later * 1e3, interval },
            runs: (4, 4),
        }
    }

    /// So much later, give or take `about`, µs.
    fn grown(value: f64, about: f64) -> Option<Effect> {
        let interval =
            Interval { low: Some((value - about) * 1e3), high: Some((value + about) * 1e3), confidence: 0.95 };
        Some(Effect { value: value * 1e3, interval })
    }

    #[test]
    fn the_answer_follows_from_the_intervals() {
        let answer = |rows: [SleepRow; 2], grown| TimeoutSlack::of(rows.to_vec(), grown).expect("two rows").answer;
        for (exact, later, about, expected) in [
            (90.0, 950.0, Some(20.0), SlackVerdict::IsTheCall),
            (90.0, 950.0, Some(700.0), SlackVerdict::Undecided),
            (90.0, 950.0, None, SlackVerdict::Undecided),
            // As deep sleep would have it: both calls grow alike.
            (900.0, 5.0, Some(20.0), SlackVerdict::IsSomethingElse),
            (40.0, 2.0, Some(1.0), SlackVerdict::NoGrowth),
        ] {
            let rows = [row(1_000, exact, later, about), row(10, 60.0, 2.0, Some(3.0))];
            let grown = grown(exact + later - 62.0, 10.0);
            assert_eq!(answer(rows, grown), expected, "{exact} {later} {about:?}");
        }
        assert_eq!(TimeoutSlack::of(vec![row(10, 60.0, 2.0, None)], grown(1.0, 0.5)), None);
        // Two points are no growth and no lack of it.
        let rows = [row(10, 60.0, 2.0, Some(3.0)), row(1_000, 58.0, 1.0, Some(3.0))];
        assert_eq!(answer(rows, grown(-3.0, 4.0)), SlackVerdict::Undecided);
        assert_eq!(answer(rows, None), SlackVerdict::Undecided);
    }

    #[test]
    fn calls_are_compared_under_one_setting() {
        let of = |set: &str, via: &str, interval: &str| {
            let factors = [("set", set), ("via", via), ("interval", interval)].into_iter();
            factors.filter(|(_, level)| !level.is_empty()).map(|(name, level)| (name.into(), level.into())).collect()
        };
        let both = |set: &str, intervals: &[&str]| -> Vec<Factors> {
            intervals.iter().flat_map(|interval| ["exact", "other"].map(|via| of(set, via, interval))).collect()
        };
        let select = |set: &str| vec![of(set, "other", "10ms"), of(set, "other", "1s")];
        let (a, b, found) = ("governor=a", "governor=b", "governor=as-found");
        for (conditions, expected) in [
            // As `--quick` has it on a host with governors.
            ([select(a), both(found, &["10ms", "100ms", "1s"]), select(b)].concat(), Some(found)),
            ([both(b, &["10ms", "1s"]), both(a, &["10ms", "1s"]), both(found, &["10ms", "1s"])].concat(), Some(found)),
            ([both(b, &["10ms", "1s"]), both(a, &["10ms", "1s"]), select(found)].concat(), Some(b)),
            ([both(b, &["10ms"]), both(a, &["10ms", "1s"]), both(found, &["10ms"])].concat(), Some(a)),
            // One call as found, the other under a governor: nothing is alike.
            ([select(found), vec![of(a, "exact", "10ms"), of(a, "exact", "1s")]].concat(), None),
            (both("", &["10ms", "1s"]), Some("")),
            (Vec::new(), None),
        ] {
            assert_eq!(common_setting(&conditions, "exact"), expected, "{conditions:?}");
        }
    }

    #[test]
    fn the_share_is_of_the_whole_growth() {
        let growth = TimeoutSlack::of(
            vec![row(10, 60.0, 0.0, Some(1.0)), row(1_000, 160.0, 900.0, Some(9.0))],
            grown(1_000.0, 100.0),
        );
        let explained = growth.expect("two rows").explained.expect("it grew");
        assert_eq!((explained.share, explained.low, explained.high), (0.9, Some(890.0 / 1_100.0), Some(910.0 / 900.0)));
    }
}
