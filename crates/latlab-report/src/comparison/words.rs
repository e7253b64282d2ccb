//! Formatting of the figures of comparisons.

use crate::analysis::comparison::{
    Comparison, ComparisonMethod, Effect, Evidence, FigureScale, Quantity, UndecidedReason, Verdict,
};
use crate::metric::Metric;
use crate::units::human::{self, ABSENT, BitRateUnit, TimeUnit, counted};

/// Plain numbers below this value need more than three decimals.
const SMALL: f64 = 0.1;
/// Largest number of decimals of figures with a unit, and of plain numbers.
const DECIMALS: usize = 3;
const DECIMALS_PLAIN: usize = 9;
/// Largest number of decimals that separate a figure from a limit: doubles have no more digits.
const DECIMALS_EXACT: usize = 17;
/// Numbers from this value on are shown with an exponent.
const LARGE: f64 = 1e15;

/// Formats a figure of `quantity`; the unit of times is that of `typical`.
pub(crate) fn figure(quantity: Quantity, value: f64, typical: f64) -> String {
    if value == f64::INFINITY {
        return "infinite".into();
    }
    if quantity.is_share() {
        return human::percent(value);
    }
    if quantity.is_time() {
        let unit = TimeUnit::suiting(typical);
        return format!("{} {}", unit.figure(value), unit.symbol());
    }
    if quantity.is_rate() {
        return human::bit_rate(value);
    }
    format!("{} {}", plain(value), quantity.unit().unwrap_or_default()).trim_end().to_owned()
}

/// Formats as [`figure`], but with as many digits as separate `value` from `limit`.
pub(crate) fn figure_beside(quantity: Quantity, value: f64, limit: f64) -> String {
    let usual = figure(quantity, value, value);
    // A small share must not read as 0.
    let is_shown = |text: &str| value == 0.0 || text.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    if value == limit || (usual != figure(quantity, limit, value) && is_shown(&usual)) {
        return usual;
    }
    let (scale, symbol) = if quantity.is_share() {
        (0.01, "%")
    } else if quantity.is_time() {
        let unit = TimeUnit::suiting(value);
        (unit.nanos(), unit.symbol())
    } else if quantity.is_rate() {
        let unit = BitRateUnit::suiting(value);
        (unit.bps(), unit.symbol())
    } else {
        return usual;
    };
    let exact = |value: f64, decimals: usize| format!("{:.decimals$} {symbol}", value / scale).replace('-', "−");
    let mut texts = (0..=DECIMALS_EXACT).map(|decimals| [value, limit].map(|value| exact(value, decimals)));
    let separate = texts.find(|[value, limit]| value != limit && is_shown(value));
    separate.map_or(usual, |[value, _]| value)
}

/// Formats a number without a unit and of unknown magnitude.
pub(crate) fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < SMALL {
        human::general(value, 3).replace('-', "−")
    } else {
        human::significant(value)
    }
}

/// Formats the verdict; of a metric whose better direction a user stated, with that.
pub(super) fn verdict(row: &Comparison) -> String {
    let word = row.verdict.word();
    match (row.quantity.metric(), row.verdict) {
        (Some(metric @ Metric::Printed(_)), Verdict::Higher | Verdict::Lower) => {
            let is_better = metric.is_higher_better() == (row.verdict == Verdict::Higher);
            format!("{word} ({})", if is_better { "better" } else { "worse" })
        }
        _ => word.into(),
    }
}

/// Formats the change as evaluated by a gate.
pub(super) fn judged_change(row: &Comparison) -> String {
    match row.judged_change() {
        Some(share) if !row.quantity.is_share() => effect(share, 100.0, "%"),
        _ => change(row),
    }
}

/// Formats the change with its interval: in per cent if it is a ratio, else in the figures' unit.
pub(crate) fn change(row: &Comparison) -> String {
    let typical = row.centres.map_or(0.0, |(baseline, _)| baseline);
    match (row.relative.filter(|_| row.scale == FigureScale::Logarithmic), row.difference) {
        (Some(relative), _) => effect(relative, 100.0, "%"),
        (None, Some(points)) if row.quantity.is_share() => effect(points, 100.0, "points"),
        (None, Some(difference)) if row.quantity.is_time() => {
            let unit = TimeUnit::suiting(typical);
            effect(difference, 1.0 / unit.nanos(), unit.symbol())
        }
        (None, Some(difference)) if row.quantity.is_rate() => effect(difference, 1e-6, "Mbit/s"),
        (None, Some(difference)) => effect(difference, 1.0, ""),
        (None, None) => ABSENT.into(),
    }
}

/// Formats as `−15.4 % [−17.1, −13.6]`; the interval's half-width determines the number of decimals.
fn effect(effect: Effect, scale: f64, unit: &str) -> String {
    let (low, high) = (effect.interval.low, effect.interval.high);
    let reach = match (low, high) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        (Some(end), None) | (None, Some(end)) => end - effect.value,
        (None, None) => effect.value / 10.0,
    };
    let decimals = match unit {
        "" if reach == 0.0 => decimals_for(effect.value / 10.0, DECIMALS_PLAIN),
        "" => decimals_for(reach, DECIMALS_PLAIN),
        _ => decimals_for(reach * scale, DECIMALS),
    };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let point = signed(effect.value * scale, decimals);
    if low.is_none() && high.is_none() {
        return format!("{point}{unit}");
    }
    let end = |end: Option<f64>| end.map_or_else(|| ABSENT.into(), |end| signed(end * scale, decimals));
    format!("{point}{unit} [{}, {}]", end(low), end(high))
}

/// Returns the number of decimals that resolve `reach`, at most `most`.
fn decimals_for(reach: f64, most: usize) -> usize {
    match reach.abs() {
        reach if reach >= 9.5 || !reach.is_finite() => 0,
        reach if reach >= 0.195 || reach == 0.0 => 1,
        reach => (-(reach / 1.95).log10()).ceil().min(most as f64) as usize,
    }
}

/// Formats with sign, minus sign U+2212 and grouped thousands.
fn signed(value: f64, decimals: usize) -> String {
    let is_tiny = value != 0.0 && decimals == DECIMALS_PLAIN && value.abs() < 1e-6;
    let digits = if value.abs() >= LARGE || is_tiny {
        format!("{:.2e}", value.abs())
    } else {
        format!("{:.*}", decimals, value.abs())
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits.as_str(), ""), |(whole, fraction)| (whole, fraction));
    // A value that is rounded to 0 keeps its sign: an interval that ends at −0.0 does not hold 0.
    let sign = if value == 0.0 {
        ""
    } else if value < 0.0 {
        "−"
    } else {
        "+"
    };
    let whole = whole.parse::<u64>().map_or_else(|_| whole.to_owned(), human::grouped);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// Formats as `95 %` without rounding: 99.999 % is not 100 %.
pub(super) fn confidence(share: f64) -> String {
    let percent = format!("{:.9}", share * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats as `0.019` or `<0.001` with two digits, the precision of a sampled permutation test.
pub(super) fn p_value(p: Option<f64>) -> String {
    match p {
        None => ABSENT.into(),
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) if p < 0.0995 => format!("{p:.3}"),
        Some(p) => format!("{p:.2}"),
    }
}

/// Formats why a row is undecided, or what the verdict of infinite figures rests on; `None` if nothing needs to be said.
pub(crate) fn reason(row: &Comparison) -> Option<String> {
    let infinite = match row.method {
        ComparisonMethod::Separated | ComparisonMethod::Placements => Some(without_answers(row)),
        _ => None,
    };
    match (infinite, row.undecided.and_then(|undecided| undecided_because(row, undecided))) {
        (Some(infinite), Some(why)) => Some(format!("{infinite}; {why}")),
        (infinite, why) => infinite.or(why),
    }
}

/// Formats as `4 against 4 runs`.
pub(super) fn sizes(row: &Comparison) -> String {
    let (baseline, candidate) = row.evidence.runs;
    format!("{baseline} against {}", counted(candidate, if row.evidence.of_means { "file" } else { "run" }))
}

/// Formats `infinite in 2 of 6 runs of the baseline and 6 of 6 of the candidate`.
fn without_answers(row: &Comparison) -> String {
    let Evidence { runs, infinite, unanswered, .. } = row.evidence;
    let (what, counts) = if infinite == (0, 0) { ("without any answer", unanswered) } else { ("infinite", infinite) };
    format!(
        "{what} in {} of {} of the baseline and {} of {} of the candidate",
        counts.0,
        counted(runs.0, "run"),
        counts.1,
        runs.1
    )
}

/// `None` if a note below the table says it.
fn undecided_because(row: &Comparison, undecided: UndecidedReason) -> Option<String> {
    let words = match undecided {
        UndecidedReason::Unsure if row.method == ComparisonMethod::Placements => {
            "runs of neither group are above those of the other often enough".into()
        }
        UndecidedReason::Unsure if row.evidence.losses_widen => {
            "the interval also counts infinite values as their time-out; see `loss_ratio`".into()
        }
        UndecidedReason::Unsure if row.centres == Some((0.0, 0.0)) => "0 in every run of both groups".into(),
        UndecidedReason::Unsure if row.margin.is_none() => {
            let margin = if row.quantity.is_share() { "0.1%" } else { "3%" };
            format!("no difference is proven; `--equivalence {margin}` tests whether it is negligible")
        }
        UndecidedReason::Unsure => "neither a difference nor equivalence is proven".into(),
        UndecidedReason::Corrected { comparisons } => {
            format!("significant alone, but not after correcting for {comparisons} comparisons")
        }
        UndecidedReason::Losses => {
            "holds for the answered probes, but not if each lost one counts as its time-out; see `loss_ratio`".into()
        }
        UndecidedReason::SingleRuns => {
            "one run against one run: what differs between runs anyway is unknown; measure several of each".into()
        }
        // Said once below the table, of all such rows.
        UndecidedReason::TooFewRuns => return None,
        UndecidedReason::TooFewBoots { boots, needed } => {
            format!("{}; at least {needed} are needed to say something about boots", counted(boots, "boot"))
        }
        UndecidedReason::NoCommonBlock => {
            "no block has runs of both at the same levels of the other factors; without `--by` conditions are compared"
                .into()
        }
        UndecidedReason::NoRun { baseline, candidate } => {
            let who = match (baseline, candidate) {
                (true, false) => "the baseline has",
                (false, true) => "the candidate has",
                _ => "both have",
            };
            format!("{who} no run that can be judged")
        }
        UndecidedReason::NotPositive => {
            "no difference is proven, and of values that are not all above 0 no margin is a share".into()
        }
        UndecidedReason::Overflow => "the values are too large to be added; scale them down".into(),
        UndecidedReason::Infinite => "infinite in every run of both groups; see `loss_ratio`".into(),
        UndecidedReason::NoFigure { runs: count } => {
            format!("{} had nothing to compute it from", counted(count, "run"))
        }
    };
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::parse_estimand;
    use crate::stats::Interval;

    #[test]
    fn a_figure_beside_a_limit_has_the_digits_that_separate_them() {
        for (metric, statistic, value, limit, text) in [
            (Some("delivered_rate"), "mean", 358.41e6, 358.42e6, "358.41 Mbit/s"),
            (Some("delivered_rate"), "mean", 358.41e6, 358.4e6, "358.41 Mbit/s"),
            (Some("delivered_rate"), "mean", 358.41e6, 300e6, "358 Mbit/s"),
            (Some("delivered_rate"), "mean", 358.41e6, 358.41e6, "358 Mbit/s"),
            (None, "loss_ratio", 0.010_004, 0.01, "1.0004 %"),
            (None, "loss_ratio", 0.000_004, 0.000_005, "0.0004 %"),
            (Some("ipdv"), "min", -1_040.4, -1_040.0, "−1.0404 µs"),
        ] {
            let estimand = parse_estimand(metric, statistic).expect("known");
            assert_eq!(figure_beside(Quantity::Of(estimand), value, limit), text);
        }
    }

    #[test]
    fn the_interval_determines_the_digits_of_a_change() {
        let of = |value: f64, low: Option<f64>, high: Option<f64>| {
            effect(Effect { value, interval: Interval { low, high, confidence: 0.95 } }, 100.0, "%")
        };
        for (value, low, high, text) in [
            (-0.154, Some(-0.171), Some(-0.136), "−15.4 % [−17.1, −13.6]"),
            (5.27, Some(4.60), Some(6.11), "+527 % [+460, +611]"),
            (0.006, Some(-0.009), Some(0.022), "+0.6 % [−0.9, +2.2]"),
            (0.0004, Some(-0.0005), Some(0.0012), "+0.04 % [−0.05, +0.12]"),
            (0.25, None, None, "+25.0 %"),
            (0.25, Some(0.21), None, "+25.0 % [+21.0, –]"),
            (0.0, Some(0.0), Some(0.0), "0.0 % [0.0, 0.0]"),
            (1e20, Some(9e19), Some(1.1e20), "+1.00e22 % [+9.00e21, +1.10e22]"),
            (15.27, Some(14.0), Some(17.0), "+1,527 % [+1,400, +1,700]"),
        ] {
            assert_eq!(of(value, low, high), text);
        }
    }

    #[test]
    fn plain_numbers_have_as_many_digits_as_they_need() {
        let of = |value: f64, low: f64, high: f64| {
            effect(Effect { value, interval: Interval { low: Some(low), high: Some(high), confidence: 0.95 } }, 1.0, "")
        };
        for (value, low, high, text) in [
            (0.0098, 0.0093, 0.0103, "+0.0098 [+0.0093, +0.0103]"),
            (-0.00001, -0.000012, -0.000008, "−0.000010 [−0.000012, −0.000008]"),
            (2e-12, 1e-12, 3e-12, "+2.00e-12 [+1.00e-12, +3.00e-12]"),
            (0.002, 0.002, 0.002, "+0.0020 [+0.0020, +0.0020]"),
            (1.5e308, 1e308, 1.7e308, "+1.50e308 [+1.00e308, +1.70e308]"),
            (17.0, 3.0, 31.0, "+17 [+3, +31]"),
        ] {
            assert_eq!(of(value, low, high), text);
        }
        for (value, text) in [
            (0.001_17, "0.00117"),
            (-0.0002, "−0.0002"),
            (48.3, "48.3"),
            (0.0, "0"),
            (1.7e308, "1.70e308"),
            (3e-9, "3e−09"),
        ] {
            assert_eq!(figure(Quantity::Value, value, 0.0), text);
        }
    }

    #[test]
    fn p_values_are_short() {
        for (share, text) in [(0.95, "95 %"), (0.995, "99.5 %"), (0.99999, "99.999 %"), (0.999_999_999, "99.9999999 %")]
        {
            assert_eq!(confidence(share), text);
        }
        for (p, text) in
            [(None, "–"), (Some(0.0002), "<0.001"), (Some(0.0194), "0.019"), (Some(0.191), "0.19"), (Some(1.0), "1.00")]
        {
            assert_eq!(p_value(p), text);
        }
    }
}
