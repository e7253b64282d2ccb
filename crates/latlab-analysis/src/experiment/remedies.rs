//! The gain of remedies: the comparison of each with the unchanged run, with the sign reversed.

use crate::analysis::comparison::{Comparison, Comparisons, Verdict};

/// The effect of one remedy on each statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct RemedyGains {
    pub remedy: String,
    pub gains: Vec<Gain>,
}

/// The gain in one statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// `p50`, `p99`.
    pub statistic: String,
    /// The typical figure of the unchanged run, in ns; `None` if a run has none.
    pub asked_ns: Option<f64>,
    /// The same with the remedy.
    pub with_ns: Option<f64>,
    /// The decrease, ns.
    pub gain_ns: Option<f64>,
    /// The lower end of its interval; `None` if unbounded.
    pub low_ns: Option<f64>,
    /// The upper end.
    pub high_ns: Option<f64>,
    pub verdict: GainVerdict,
    /// The p value of no difference, adjusted by Holm over all rows.
    pub adjusted_p_value: Option<f64>,
    /// Further runs of each condition that would decide; `None` if unknown.
    pub runs_needed: Option<u32>,
}

/// The verdict on a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GainVerdict {
    /// Threads wake earlier with it.
    Helps,
    /// Threads wake later with it.
    Harms,
    Undecided,
}

impl GainVerdict {
    pub const fn word(self) -> &'static str {
        match self {
            GainVerdict::Helps => "helps",
            GainVerdict::Harms => "harms",
            GainVerdict::Undecided => "undecided",
        }
    }
}

/// The gains of each group against the first, in the order of the groups.
pub fn gains(comparisons: &Comparisons) -> Vec<RemedyGains> {
    let of_group = |place: usize| {
        let rows = comparisons.rows.iter().filter(|row| row.candidate == place);
        RemedyGains { remedy: comparisons.groups.groups[place].name.clone(), gains: rows.map(gain).collect() }
    };
    (1..comparisons.groups.groups.len()).map(of_group).collect()
}

fn gain(row: &Comparison) -> Gain {
    let less = |value: f64| Some(-value).filter(|value| value.is_finite());
    let difference = row.difference;
    Gain {
        statistic: row.quantity.statistic_name(),
        asked_ns: row.centres.map(|(asked, _)| asked),
        with_ns: row.centres.map(|(_, with)| with),
        gain_ns: difference.and_then(|effect| less(effect.value)),
        // The upper end of a difference is the lower one of the gain.
        low_ns: difference.and_then(|effect| less(effect.interval.high?)),
        high_ns: difference.and_then(|effect| less(effect.interval.low?)),
        verdict: match row.verdict {
            Verdict::Lower => GainVerdict::Helps,
            Verdict::Higher => GainVerdict::Harms,
            Verdict::Equivalent | Verdict::None | Verdict::Undecided => GainVerdict::Undecided,
        },
        adjusted_p_value: row.adjusted_p_value,
        runs_needed: row.undecided.and_then(|why| why.runs_needed()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::comparison::{
        ComparisonOptions, ComparisonRequest, ObservedRun, RunFigure, RunGroups, RunOrigin,
    };
    use crate::analysis::comparison::{compare, parse_estimand};

    fn run(remedy: &str, condition: u32, block: u32, p50_us: f64) -> ObservedRun {
        let factors = BTreeMap::from([("remedy".to_owned(), remedy.to_owned())]);
        ObservedRun {
            origin: RunOrigin { block: Some(("x".into(), block)), ..RunOrigin::default() },
            levels: factors.clone(),
            factors: Some(factors),
            condition,
            figures: vec![RunFigure::Finite { value: p50_us * 1e3, supported: true }],
            ..ObservedRun::bare(format!("{remedy} {block}"), 0.0)
        }
    }

    #[test]
    fn a_decrease_is_a_gain_with_the_ends_of_its_interval_swapped() {
        let noise = [0.0, 0.3, -0.2];
        let of = |remedy, condition, p50: f64| {
            let runs = (0..9).map(move |n| run(remedy, condition, n / 3 + 1, p50 + noise[n as usize % 3]));
            runs.collect::<Vec<_>>()
        };
        let runs = [of("as asked", 1, 76.0), of("--fifo 80", 2, 26.0), of("--worse", 3, 90.0), of("--same", 4, 76.0)];
        let mut agenda = ComparisonRequest::default();
        agenda.ask(parse_estimand(Some("wakeup_latency"), "p50").expect("known"), None, None);
        let groups = RunGroups::by_condition(runs.concat()).expect("four groups");
        let gains = gains(&compare(groups, &agenda, &ComparisonOptions::at(0.95)).expect("a baseline"));
        let verdicts: Vec<_> = gains.iter().map(|one| (one.remedy.as_str(), one.gains[0].verdict)).collect();
        let (helps, harms, undecided) = (GainVerdict::Helps, GainVerdict::Harms, GainVerdict::Undecided);
        assert_eq!(verdicts, [("--fifo 80", helps), ("--worse", harms), ("--same", undecided)]);
        let gain = &gains[0].gains[0];
        let (low, value, high) =
            (gain.low_ns.expect("low"), gain.gain_ns.expect("a gain"), gain.high_ns.expect("high"));
        assert!(low < value && value < high && (value - 50e3).abs() < 100.0, "{low} {value} {high}");
        assert_eq!(gain.statistic, "p50");
    }
}
