//! Whether the kernel's slack on time-outs explains why longer sleeps wake later (`latlab run wakeup-governor`):
//! select(2) stretches its time-out by a share of it, clock_nanosleep(2) does not.

use std::collections::BTreeMap;

use crate::analysis::comparison::{
    Comparison, ComparisonOptions, ComparisonRequest, Effect, ObservedRun, RunGroups, compare,
};
use crate::analysis::{Estimand, Statistic};
use crate::facts::{RunState, WakeupFacts};
use crate::metric::Metric;
use crate::plan::{Factors, defaults};
use crate::units::Nanos;
use crate::units::human::parse_duration;

/// The call that stretches nothing.
const EXACT: &str = "clock_nanosleep";

/// The share by which select stretches its time-out: select_estimate_accuracy in
/// [fs/select.c](https://github.com/torvalds/linux/blob/v6.18/fs/select.c).
const STRETCH: f64 = 0.001;
/// The same of a thread with a positive nice value.
const STRETCH_NICE: f64 = 0.005;

/// One interval: the same sleep through the exact call and through the one that stretches its time-out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SleepRow {
    pub interval: Nanos,
    /// The typical median latency of the exact call, ns.
    pub exact_ns: f64,
    /// The same of the stretched call, ns.
    pub stretched_ns: f64,
    /// The difference, ns.
    pub later: Effect,
    /// Runs of the exact call.
    pub exact_runs: usize,
    /// Runs of the stretched call.
    pub stretched_runs: usize,
    /// The difference that the kernel's stretch predicts; `None` if the timer slack is unknown.
    pub predicted: Option<Nanos>,
    /// Whether the difference is as predicted; `None` if nothing is predicted.
    pub prediction: Option<Prediction>,
}

/// Whether a difference is as predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Its interval contains the prediction and excludes the contrary.
    Held,
    /// Its interval excludes the prediction.
    Missed,
    /// Its interval is too wide for either.
    Open,
}

/// The share of a growth that the call explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExplainedShare {
    /// The growth of the difference between the two calls over that of the stretched one.
    pub share: f64,
    /// The lower bound, from the 95 % intervals of the two differences and of the growth; together they hold with
    /// [`ExplainedShare::CONFIDENCE`].
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
}

impl ExplainedShare {
    /// At least so often three 95 % intervals hold together (Bonferroni).
    pub const CONFIDENCE: f64 = 0.85;
}

/// Whether the call explains the growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlackVerdict {
    /// It explains half of the growth or more.
    IsTheCall,
    /// It explains less than half.
    IsSomethingElse,
    /// Growth is excluded: its whole interval is at most 0.
    NoGrowth,
    /// The intervals are too wide for an answer.
    Undecided,
}

/// The circumstances that the prediction depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlackFacts {
    /// The setting of all runs, such as `governor=as-found`; `None` unless settings were a factor.
    pub setting: Option<String>,
    /// The timer slack that was in force; `None` if unknown.
    pub timer_slack: Option<Nanos>,
    /// Whether the threads had a positive nice value.
    pub nice: bool,
}

/// Latency over the interval, by two ways of sleeping.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutSlack {
    /// At least two, the shortest interval first.
    pub rows: Vec<SleepRow>,
    /// The growth of the stretched call's latency from the shortest interval to the longest, ns; `None` if unknown.
    pub grown: Option<Effect>,
    /// `None` unless the stretched call is known to grow.
    pub explained: Option<ExplainedShare>,
    pub verdict: SlackVerdict,
    pub facts: SlackFacts,
}

/// One run of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlackRun<'a> {
    pub interval: Nanos,
    /// The name of its recording.
    pub recording: &'a str,
}

/// The runs that can answer: idle ones under one setting, since settings change latencies by more than the call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackSelection<'a> {
    setting: &'a str,
    /// In the order of the conditions.
    pub runs: Vec<SlackRun<'a>>,
}

impl<'a> SlackSelection<'a> {
    /// The estimand: the median of a run, since one disturbed wake-up in a hundred moves a mean by more than the call
    /// does.
    pub const ESTIMAND: Estimand = Estimand::Statistic(Metric::WakeupLatency, Statistic::Quantile(0.5));

    /// Selects from judged runs and the names of their recordings; `None` if under no setting both calls slept for two
    /// intervals.
    pub fn of(judged: impl Iterator<Item = (&'a RunState, &'a str)>) -> Option<SlackSelection<'a>> {
        // Heaters keep a CPU from idling, and the published rows that grow are idle.
        let is_idle = |run: &RunState| run.key.factors.get("load").is_none_or(|load| load == "none");
        let mut idle: Vec<_> = judged.filter(|(run, _)| is_idle(run)).collect();
        idle.sort_by_key(|(run, _)| run.position.condition);
        let setting = common_setting(idle.iter().map(|(run, _)| &run.key.factors))?;
        let selected = |(run, recording): (&'a RunState, &'a str)| {
            let factors = &run.key.factors;
            let interval = parse_duration(factors.get("interval")?).ok()?;
            (level(factors, "set") == setting).then_some(SlackRun { interval, recording })
        };
        Some(SlackSelection { setting, runs: idle.into_iter().filter_map(selected).collect() })
    }

    /// Judges the selected runs, which are `observed` in their order; `None` if fewer than two intervals have runs of
    /// both calls with a median.
    pub fn judge(&self, observed: Vec<ObservedRun>, facts: &WakeupFacts) -> Option<TimeoutSlack> {
        let mut by_interval: BTreeMap<Nanos, Vec<ObservedRun>> = BTreeMap::new();
        for (run, observed) in self.runs.iter().zip(observed) {
            by_interval.entry(run.interval).or_default().push(observed);
        }
        by_interval.retain(|_, runs| runs.iter().any(is_stretched) && !runs.iter().all(is_stretched));
        let row = |(interval, runs): (&Nanos, &Vec<ObservedRun>)| {
            let compared = compare_medians(runs.clone(), "via", EXACT)?;
            SleepRow::of(*interval, &compared)
        };
        let rows = by_interval.iter().filter_map(row).collect();
        let grown = growth(&by_interval);
        let facts = SlackFacts {
            setting: Some(self.setting.to_owned()).filter(|setting| !setting.is_empty()),
            timer_slack: facts.timer_slack_ns,
            nice: facts.niceness.is_some_and(|niceness| niceness > 0),
        };
        TimeoutSlack::of(rows, grown, facts)
    }
}

fn level<'a>(factors: &'a Factors, factor: &str) -> &'a str {
    factors.get(factor).map_or("", String::as_str)
}

/// The calls that slept for an interval.
#[derive(Clone, Copy, Default)]
struct CallsSeen {
    exact: bool,
    stretched: bool,
}

/// The level of `set`, empty if that is not a factor, at which both calls slept for two intervals or more: the one that
/// leaves the host as it was found, else the first of `conditions`.
fn common_setting<'a>(conditions: impl IntoIterator<Item = &'a Factors>) -> Option<&'a str> {
    let mut seen: Vec<(&str, BTreeMap<&str, CallsSeen>)> = Vec::new();
    for factors in conditions {
        let setting = level(factors, "set");
        let index = seen.iter().position(|(other, _)| *other == setting).unwrap_or_else(|| {
            seen.push((setting, BTreeMap::new()));
            seen.len() - 1
        });
        let calls = seen[index].1.entry(level(factors, "interval")).or_default();
        match level(factors, "via") {
            EXACT => calls.exact = true,
            _ => calls.stretched = true,
        }
    }
    let has_both = |calls: &&CallsSeen| calls.exact && calls.stretched;
    let suits = |intervals: &BTreeMap<&str, CallsSeen>| intervals.values().filter(has_both).count() >= 2;
    let mut suitable = seen.iter().filter(|(_, intervals)| suits(intervals)).map(|(setting, _)| *setting);
    suitable.clone().find(|setting| setting.ends_with("=as-found")).or_else(|| suitable.next())
}

fn is_stretched(run: &ObservedRun) -> bool {
    run.levels.get("via").is_some_and(|via| via != EXACT)
}

/// The comparison of medians by `factor`, `baseline` being the level to compare with.
fn compare_medians(runs: Vec<ObservedRun>, factor: &str, baseline: &str) -> Option<Comparison> {
    let mut request = ComparisonRequest::default();
    let baseline = Factors::from([(factor.to_owned(), baseline.to_owned())]);
    request.ask(SlackSelection::ESTIMAND, Some(baseline), None);
    let groups = RunGroups::by(factor, runs).ok()?;
    let compared = compare(groups, &request, &ComparisonOptions::at(defaults::CONFIDENCE)).ok()?;
    compared.rows.into_iter().next()
}

/// The growth of the stretched call's latency from the shortest interval to the longest.
fn growth(by_interval: &BTreeMap<Nanos, Vec<ObservedRun>>) -> Option<Effect> {
    let (shortest, longest) = (by_interval.values().next()?, by_interval.values().next_back()?);
    let runs: Vec<ObservedRun> = shortest.iter().chain(longest).filter(|run| is_stretched(run)).cloned().collect();
    compare_medians(runs, "interval", shortest.first()?.levels.get("interval")?)?.difference
}

impl SleepRow {
    /// From a comparison of medians with the exact call as baseline; `None` if it has no figures.
    fn of(interval: Nanos, compared: &Comparison) -> Option<SleepRow> {
        let (exact_ns, stretched_ns) = compared.centres?;
        let (exact_runs, stretched_runs) = compared.evidence.runs;
        let later = compared.difference?;
        let (predicted, prediction) = (None, None);
        Some(SleepRow { interval, exact_ns, stretched_ns, later, exact_runs, stretched_runs, predicted, prediction })
    }

    fn predict(&mut self, facts: &SlackFacts) {
        let stretch = self.interval.0 as f64 * facts.stretch();
        // The timer slack delays the exact call as well; without slack the kernel stretches nothing.
        self.predicted = facts.timer_slack.map(|slack| match slack {
            Nanos::ZERO => Nanos::ZERO,
            slack => Nanos(stretch as i64 - slack.0).max(Nanos::ZERO),
        });
        self.prediction = self.predicted.map(|predicted| self.judge(predicted.0 as f64, stretch));
    }

    /// A prediction above 0 holds if the interval excludes 0 as well. A prediction of 0, where the slack hides the
    /// stretch or there is none, holds if the interval is narrow enough to show a stretch: within ± the whole of it.
    fn judge(&self, predicted: f64, stretch: f64) -> Prediction {
        let (Some(low), Some(high)) = (self.later.interval.low, self.later.interval.high) else {
            return Prediction::Open;
        };
        let excludes_contrary = if predicted > 0.0 { low > 0.0 } else { low > -stretch && high < stretch };
        match (low..=high).contains(&predicted) {
            false => Prediction::Missed,
            true if excludes_contrary => Prediction::Held,
            true => Prediction::Open,
        }
    }
}

impl SlackFacts {
    /// The share by which select stretches its time-out.
    pub const fn stretch(&self) -> f64 {
        if self.nice { STRETCH_NICE } else { STRETCH }
    }
}

impl TimeoutSlack {
    /// Judges `rows` and the growth of the stretched call from the shortest interval to the longest; `None` if there
    /// are fewer than two rows.
    pub fn of(mut rows: Vec<SleepRow>, grown: Option<Effect>, facts: SlackFacts) -> Option<TimeoutSlack> {
        rows.sort_by_key(|row| row.interval);
        rows.iter_mut().for_each(|row| row.predict(&facts));
        let [first, .., last] = rows.as_slice() else { return None };
        let known_to_grow = grown.filter(|grown| grown.interval.low.is_some_and(|low| low > 0.0));
        let explained = known_to_grow.map(|grown| {
            let (from, to, all) = (first.later.interval, last.later.interval, grown.interval);
            // The far end of the growth if that brings the share nearer to 0, else the near one.
            let least = |ns: f64| Some(ns / if ns > 0.0 { all.high? } else { all.low? });
            let most = |ns: f64| Some(ns / if ns > 0.0 { all.low? } else { all.high? });
            ExplainedShare {
                share: (last.later.value - first.later.value) / grown.value,
                low: to.low.zip(from.high).and_then(|(to, from)| least(to - from)),
                high: to.high.zip(from.low).and_then(|(to, from)| most(to - from)),
            }
        });
        let none = grown.is_some_and(|grown| grown.interval.high.is_some_and(|high| high <= 0.0));
        let verdict = match explained {
            None if none => SlackVerdict::NoGrowth,
            None => SlackVerdict::Undecided,
            Some(ExplainedShare { low: Some(low), .. }) if low >= 0.5 => SlackVerdict::IsTheCall,
            Some(ExplainedShare { high: Some(high), .. }) if high < 0.5 => SlackVerdict::IsSomethingElse,
            Some(_) => SlackVerdict::Undecided,
        };
        Some(TimeoutSlack { rows, grown, explained, verdict, facts })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::stats::Interval;

    /// The exact call takes `exact` µs, the other one `later` µs more, give or take `about`.
    pub(crate) fn row(interval_ms: i64, exact: f64, later: f64, about: Option<f64>) -> SleepRow {
        let end = |sign: f64| about.map(|about| (later + sign * about) * 1e3);
        let interval = Interval { low: end(-1.0), high: end(1.0), confidence: 0.95 };
        SleepRow {
            interval: Nanos::from_millis(interval_ms),
            exact_ns: exact * 1e3,
            stretched_ns: (exact + later) * 1e3,
            later: Effect { value: later * 1e3, interval },
            exact_runs: 4,
            stretched_runs: 4,
            predicted: None,
            prediction: None,
        }
    }

    /// A growth of `value` µs, give or take `about`.
    pub(crate) fn grown(value: f64, about: f64) -> Option<Effect> {
        let interval =
            Interval { low: Some((value - about) * 1e3), high: Some((value + about) * 1e3), confidence: 0.95 };
        Some(Effect { value: value * 1e3, interval })
    }

    fn judge(rows: impl Into<Vec<SleepRow>>, grown: Option<Effect>) -> Option<TimeoutSlack> {
        TimeoutSlack::of(rows.into(), grown, SlackFacts::default())
    }

    #[test]
    fn the_verdict_follows_from_the_intervals() {
        let verdict = |rows: [SleepRow; 2], grown| judge(rows, grown).expect("two rows").verdict;
        for (exact, later, about, expected) in [
            (90.0, 950.0, Some(20.0), SlackVerdict::IsTheCall),
            (90.0, 950.0, Some(700.0), SlackVerdict::Undecided),
            (90.0, 950.0, None, SlackVerdict::Undecided),
            // As deep idle states would have it: both calls grow alike.
            (900.0, 5.0, Some(20.0), SlackVerdict::IsSomethingElse),
            (40.0, 2.0, Some(1.0), SlackVerdict::NoGrowth),
        ] {
            let rows = [row(1_000, exact, later, about), row(10, 60.0, 2.0, Some(3.0))];
            let grown = grown(exact + later - 62.0, 10.0);
            assert_eq!(verdict(rows, grown), expected, "{exact} {later} {about:?}");
        }
        assert_eq!(judge([row(10, 60.0, 2.0, None)], grown(1.0, 0.5)), None);
        // An interval around 0 shows neither growth nor its absence.
        let rows = [row(10, 60.0, 2.0, Some(3.0)), row(1_000, 58.0, 1.0, Some(3.0))];
        assert_eq!(verdict(rows, grown(-3.0, 4.0)), SlackVerdict::Undecided);
        assert_eq!(verdict(rows, None), SlackVerdict::Undecided);
    }

    #[test]
    fn the_share_is_of_the_whole_growth() {
        let rows = [row(10, 60.0, 0.0, Some(1.0)), row(1_000, 160.0, 900.0, Some(9.0))];
        let explained = judge(rows, grown(1_000.0, 100.0)).expect("two rows").explained.expect("it grew");
        assert_eq!((explained.share, explained.low, explained.high), (0.9, Some(890.0 / 1_100.0), Some(910.0 / 900.0)));
    }

    #[test]
    fn calls_are_compared_under_one_setting() {
        let of = |set: &str, via: &str, interval: &str| {
            let factors = [("set", set), ("via", via), ("interval", interval)].into_iter();
            factors.filter(|(_, level)| !level.is_empty()).map(|(name, level)| (name.into(), level.into())).collect()
        };
        let both = |set: &str, intervals: &[&str]| -> Vec<Factors> {
            intervals.iter().flat_map(|interval| [EXACT, "select"].map(|via| of(set, via, interval))).collect()
        };
        let select = |set: &str| vec![of(set, "select", "10ms"), of(set, "select", "1s")];
        let (a, b, found) = ("governor=a", "governor=b", "governor=as-found");
        for (conditions, expected) in [
            // As `--quick` has it on a host with governors.
            ([select(a), both(found, &["10ms", "100ms", "1s"]), select(b)].concat(), Some(found)),
            ([both(b, &["10ms", "1s"]), both(a, &["10ms", "1s"]), both(found, &["10ms", "1s"])].concat(), Some(found)),
            ([both(b, &["10ms", "1s"]), both(a, &["10ms", "1s"]), select(found)].concat(), Some(b)),
            ([both(b, &["10ms"]), both(a, &["10ms", "1s"]), both(found, &["10ms"])].concat(), Some(a)),
            // One call as found, the other under a governor: they cannot be compared.
            ([select(found), vec![of(a, EXACT, "10ms"), of(a, EXACT, "1s")]].concat(), None),
            (both("", &["10ms", "1s"]), Some("")),
            (Vec::new(), None),
        ] {
            assert_eq!(common_setting(&conditions), expected, "{conditions:?}");
        }
    }

    #[test]
    fn medians_of_runs_are_compared_by_call_and_interval() {
        let runs: Vec<SlackRun<'_>> = [10, 10, 1_000, 1_000]
            .iter()
            .flat_map(|ms| [SlackRun { interval: Nanos::from_millis(*ms), recording: "r" }; 4])
            .collect();
        let observed = |place: usize| {
            let (call, interval) = ((place / 4) % 2, place / 8);
            let later = if call == 1 && interval == 1 { 950e3 } else { 1e3 };
            let mut run = ObservedRun::bare("r".into(), 60e3 + later + (place % 4) as f64);
            let via = if call == 1 { "select" } else { EXACT };
            let levels = [("via", via), ("interval", if interval == 1 { "1s" } else { "10ms" })];
            run.levels = levels.map(|(factor, level)| (factor.to_owned(), level.to_owned())).into();
            run.origin.block = Some(("e".into(), 1));
            run
        };
        let selection = SlackSelection { setting: "", runs };
        let facts = WakeupFacts { timer_slack_ns: Some(Nanos::from_micros(50)), ..WakeupFacts::default() };
        let slack = selection.judge((0..16).map(observed).collect(), &facts).expect("two intervals");
        assert_eq!((slack.rows.len(), slack.rows[1].exact_runs, slack.facts.setting), (2, 4, None));
        assert_eq!(slack.rows[1].predicted, Some(Nanos::from_micros(950)));
        assert!((slack.rows[1].later.value - 949e3).abs() < 10.0, "{:?}", slack.rows[1]);
        assert!((slack.grown.expect("known").value - 949e3).abs() < 10.0, "{:?}", slack.grown);
    }

    #[test]
    fn a_prediction_holds_only_if_the_interval_excludes_the_contrary() {
        let slack = Some(Nanos::from_micros(50));
        let prediction = |interval_ms: i64, low: Option<f64>, high: Option<f64>, timer_slack, nice| {
            let mut row = row(interval_ms, 60.0, 0.0, None);
            let ns = |us: f64| us * 1e3;
            row.later.interval = Interval { low: low.map(ns), high: high.map(ns), confidence: 0.95 };
            row.predict(&SlackFacts { setting: None, timer_slack, nice });
            row.prediction
        };
        for (interval_ms, low, high, expected) in [
            // 950 µs are predicted.
            (1_000, 900.0, 1_000.0, Prediction::Held),
            (1_000, -100.0, 2_000.0, Prediction::Open),
            (1_000, 0.0, 950.0, Prediction::Open),
            (1_000, -100.0, 900.0, Prediction::Missed),
            // The slack hides a stretch of 10 µs: 0 is predicted, and the interval must be able to show 10 µs.
            (10, -8.0, 9.0, Prediction::Held),
            (10, -8.0, 30.0, Prediction::Open),
            (10, -30.0, 9.0, Prediction::Open),
            (10, 1.0, 9.0, Prediction::Missed),
        ] {
            let found = prediction(interval_ms, Some(low), Some(high), slack, false);
            assert_eq!(found, Some(expected), "{interval_ms} ms: {low} to {high}");
        }
        assert_eq!(prediction(1_000, None, Some(1_000.0), slack, false), Some(Prediction::Open));
        assert_eq!(prediction(1_000, Some(900.0), Some(1_000.0), None, false), None);
        // Without slack nothing is stretched; a nice thread's stretch would be 5 ms.
        let none = Some(Nanos::ZERO);
        assert_eq!(prediction(1_000, Some(-900.0), Some(1_000.0), none, true), Some(Prediction::Held));
        assert_eq!(prediction(1_000, Some(-900.0), Some(1_000.0), none, false), Some(Prediction::Open));
    }
}
