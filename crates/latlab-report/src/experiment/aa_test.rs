//! Rendering of the A/A test: false positives of each test, and the drift of the host.

use serde_json::{Value, json};

use crate::analysis::experiment::{AaTest, Drift};
use crate::stats::{Share, Slope};
use crate::text::{Style, width, wrap};
use crate::units::human::{percent, signed};

const INDENT: usize = 34;
/// In shorter experiments the drift is shown per minute.
const SHORT_HOURS: f64 = 0.2;

/// Renders the A/A test as text.
pub(super) fn text(view: &AaTest, style: Style) -> String {
    let heading = format!("the same condition under two names, {} runs: every difference found is false", view.runs);
    let mut lines: Vec<String> = wrap(&heading, style.width).iter().map(|line| style.strong(line)).collect();
    for (label, found, of) in [
        ("permutation test, runs in blocks", &view.found, "of blocks and statistics"),
        ("Student's t, probes of two runs", &view.by_student, "of pairs of runs"),
        ("Mann-Whitney, probes of two runs", &view.by_ranks, "of pairs of runs"),
    ] {
        lines.extend(labelled(label, &share(found, of), style));
    }
    let (unit, hours) = if view.hours < SHORT_HOURS { ("minute", 1.0 / 60.0) } else { ("hour", 1.0) };
    for Drift { statistic, slope } in &view.drift {
        lines.extend(labelled(&format!("drift of {statistic} per {unit}"), &drift(slope.as_ref(), hours), style));
    }
    lines.extend(wrap(lesson(view), style.width).iter().map(|line| style.quiet(line)));
    lines.join("\n") + "\n"
}

/// Renders it as the value of the key `experiment.same` of `latlab.compare/1`.
pub(super) fn document(view: &AaTest) -> Value {
    let share = |share: &Share| {
        let (low, high) = share.interval.map_or((None, None), |ends| (ends.low, ends.high));
        json!({ "found": share.hits, "of": share.n, "share": share.value, "low": low, "high": high })
    };
    let drift = |Drift { statistic, slope }: &Drift| {
        let change = |slope: f64| Some(slope.exp_m1()).filter(|change| change.is_finite());
        let ends = slope.map(|slope| slope.interval);
        json!({
            "statistic": statistic,
            "per_hour": slope.and_then(|slope| change(slope.value)),
            "low": ends.and_then(|ends| ends.low).and_then(change),
            "high": ends.and_then(|ends| ends.high).and_then(change),
        })
    };
    json!({
        "runs": view.runs,
        "hours": view.hours,
        "exchange_test": share(&view.found),
        "students_t": share(&view.by_student),
        "mann_whitney": share(&view.by_ranks),
        "drift": view.drift.iter().map(drift).collect::<Vec<_>>(),
    })
}

/// Label and text in one line, or the text below the label if the line would be too long.
fn labelled(label: &str, text: &str, style: Style) -> Vec<String> {
    if INDENT + width(text) <= style.width {
        return vec![format!("{label:<INDENT$}{text}")];
    }
    let below = wrap(text, style.width.saturating_sub(2).max(1));
    std::iter::once(label.to_owned()).chain(below.iter().map(|line| format!("  {line}"))).collect()
}

fn share(share: &Share, of: &str) -> String {
    let Some(value) = share.value else { return "nothing to compare".into() };
    let end = |end: Option<f64>| end.map(percent).unwrap_or_default();
    let interval = share.interval.map(|interval| format!(" [{}, {}]", end(interval.low), end(interval.high)));
    format!("{}{} {of}, {} of {}", percent(value), interval.unwrap_or_default(), share.hits, share.n)
}

fn drift(slope: Option<&Slope>, hours: f64) -> String {
    let Some(slope) = slope else { return "not known: too few runs, or none answered".into() };
    // A slope of logarithms is a factor for each hour.
    let change = |slope: f64| signed((slope * hours).exp_m1() * 100.0);
    let end = |end: Option<f64>| end.map(change).unwrap_or_default();
    format!("{} % [{}, {}]", change(slope.value), end(slope.interval.low), end(slope.interval.high))
}

fn lesson(view: &AaTest) -> &'static str {
    let expected = view.found.interval.and_then(|interval| interval.low).is_none_or(|low| low <= 0.05);
    if expected {
        "at 95 % confidence 5 % or fewer are expected to be found; probes of one run are no independent observations"
    } else {
        "more than 5 % were found: runs of this host depend on each other inside of a block; longer runs or a \
         longer settling time may help; see also `latlab doctor`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Interval, ratio};

    #[test]
    fn shares_and_drift_have_intervals() {
        let interval = Interval { low: Some(-0.01), high: Some(0.05), confidence: 0.95 };
        let view = AaTest {
            runs: 24,
            found: ratio(1, 30, 0.95),
            by_student: ratio(9, 12, 0.95),
            by_ranks: ratio(0, 0, 0.95),
            drift: [("p50", Some(Slope { value: 0.02, interval })), ("p99", None)]
                .map(|(statistic, slope)| Drift { statistic: statistic.into(), slope })
                .into(),
            hours: 2.0,
        };
        let shown = text(&view, Style::PLAIN);
        for line in [
            "the same condition under two names, 24 runs: every difference found is false",
            "of blocks and statistics, 1 of 30",
            "of pairs of runs, 9 of 12",
            "Mann-Whitney, probes of two runs  nothing to compare",
            "drift of p50 per hour             +2.02 % [−0.995, +5.13]",
            "drift of p99 per hour             not known: too few runs, or none answered",
            "5 % or fewer are expected",
        ] {
            assert!(shown.contains(line), "{line}\n{shown}");
        }
        let short = AaTest { hours: 0.01, ..view.clone() };
        assert!(text(&short, Style::PLAIN).contains("drift of p50 per minute           +0.033 % [−0.017, +0.083]"));
        let many = AaTest { found: ratio(20, 30, 0.95), ..view };
        assert!(text(&many, Style::PLAIN).contains("more than 5 % were found"));
    }
}
