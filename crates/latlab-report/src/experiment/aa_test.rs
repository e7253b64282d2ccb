//! Rendering of the A/A test: false positives of each test, and the drift of the host.

use serde_json::{Value, json};

use crate::analysis::experiment::{AaTest, Drift};
use crate::stats::{Share, Slope};
use crate::units::human::{percent, signed};
use crate::view::{ColumnView, RowView, TableView};

pub(super) fn table(view: &AaTest) -> TableView {
    let tests = [
        ("permutation test of runs", &view.found, "tests"),
        ("Student's t of probes", &view.by_student, "pairs of runs"),
        ("Mann-Whitney of probes", &view.by_ranks, "pairs of runs"),
    ];
    let found = tests.iter().map(|(_, found, _)| share(found));
    let known = || view.drift.iter().filter_map(|Drift { statistic, slope }| Some((statistic, slope.as_ref()?)));
    let found = found.chain(known().map(|(_, slope)| drift(slope)));
    let counts = tests.iter().map(|(_, found, of)| format!("{} of {} {of}", found.hits, found.n));
    let counts = counts.chain(known().map(|_| String::new()));
    let columns = vec![ColumnView::words("", found), ColumnView::words("", counts)];
    let drifts = known().map(|(statistic, _)| format!("drift of {statistic} per hour"));
    let labels = tests.iter().map(|(label, ..)| (*label).to_owned()).chain(drifts);
    let title = format!("the same condition under two names, {} runs: every difference found is false", view.runs);
    let table = TableView::of(title, labels.map(RowView::of).collect(), columns);
    TableView { legend: lesson(view).into(), ..table }
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

fn share(share: &Share) -> String {
    let Some(value) = share.value else { return "nothing to compare".into() };
    let end = |end: Option<f64>| end.map(percent).unwrap_or_default();
    let interval = share.interval.map(|interval| format!(" [{}, {}]", end(interval.low), end(interval.high)));
    format!("{}{}", percent(value), interval.unwrap_or_default())
}

fn drift(slope: &Slope) -> String {
    // A slope of logarithms is a factor for each hour.
    let change = |slope: f64| signed(slope.exp_m1() * 100.0);
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
    use crate::text::{Style, draw_table};

    fn text(view: &AaTest) -> String {
        draw_table(&table(view), Style::PLAIN).join("\n")
    }

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
        let shown = text(&view);
        for line in [
            "the same condition under two names, 24 runs: every difference found is false",
            " 1 of 30 tests\n",
            " 9 of 12 pairs of runs\n",
            "Mann-Whitney of probes    nothing to compare ",
            "+2.02 % [−0.995, +5.13]",
            "5 % or fewer are expected",
        ] {
            assert!(shown.contains(line), "{line}\n{shown}");
        }
        let many = AaTest { found: ratio(20, 30, 0.95), ..view };
        assert!(text(&many).contains("more than 5 % were found"));
    }
}
