//! How bad can it get: the rare levels of a run as a table, or the reason why it has none.

use serde_json::{Value, json};

use super::heading::title_of_run;
use super::view::{ColumnView, RemarkView, RowView, TableView};
use crate::analysis::Summary;
use crate::stats::{Extremes, Level, NoExtremes, Rarity};
use crate::units::Nanos;
use crate::units::human::{TimeUnit, grouped, quantile, span};

/// The levels of the run of that `name`; `None` if it has none, or if they were not asked for.
pub(super) fn table(summary: &Summary, name: &str) -> Option<TableView> {
    let found = summary.extremes.as_ref()?.as_ref().ok()?;
    let unit = TimeUnit::suiting(found.threshold);
    let label = |rarity: Rarity| match rarity {
        Rarity::Quantile(q) => quantile(q),
        Rarity::OnceIn { period, .. } => once(period),
    };
    let rows = found.levels.iter().map(|level| RowView::of(label(level.rarity))).collect();
    let values = found.levels.iter().map(|level| unit.figure(level.value));
    let bounds = found.levels.iter().map(|level| format!("≤ {}", unit.figure(level.upper_bound)));
    let columns = vec![ColumnView::figures("level", values), ColumnView::figures("bound", bounds)];
    let title = format!("how bad can it get: {}, {}", summary.metric.title(), unit.symbol());
    let threshold = format!("{} {}", unit.figure(found.threshold), unit.symbol());
    let of_run =
        if summary.duration_ns > Nanos::ZERO { format!(" in {}", span(summary.duration_ns)) } else { String::new() };
    Some(TableView {
        note: format!("peaks over {threshold}: {} clusters{of_run}", found.clusters),
        legend: "≤: 95 % upper bound, as long as the causes of this run stay as frequent".into(),
        ..TableView::of(title_of_run(name, &title), rows, columns)
    })
}

fn once(period: Nanos) -> String {
    const NAMED: [(Nanos, &str); 3] =
        [(Nanos::from_secs(60), "a minute"), (Nanos::from_secs(3_600), "an hour"), (Nanos::from_secs(86_400), "a day")];
    let named = NAMED.into_iter().find(|(named, _)| *named == period);
    named.map_or_else(|| format!("once in {}", span(period)), |(_, name)| format!("once {name}"))
}

/// Why the run of that `name` has no rare levels; `None` if it has them, or if they were not asked for.
pub(super) fn refusal(summary: &Summary, name: &str) -> Option<RemarkView> {
    let reason = summary.extremes.as_ref()?.as_ref().err()?;
    let text = title_of_run(name, &format!("no answer: {}", words(reason)));
    Some(RemarkView { label: "extremes".into(), text })
}

fn words(reason: &NoExtremes) -> String {
    match reason {
        NoExtremes::Unordered => "the order of the values is unknown".into(),
        NoExtremes::Lost(lost) => {
            format!("{} lost: no level is known beyond an infinite delay", grouped(*lost))
        }
        NoExtremes::SlowChanges => {
            "the level changes slowly (`slow-changes`), so that this run is not like the next".into()
        }
        NoExtremes::FewClusters { needed } => {
            format!("too few clusters of slow values; about {} values may have enough", grouped(needed.ceil() as u64))
        }
        NoExtremes::Coarse(different) => format!("the slow values are too coarse: {different} different ones"),
        NoExtremes::Uneven => "some parts of the run have more slow values than others beyond chance".into(),
        NoExtremes::HeavyTail => "the tail is so heavy that the variance may be infinite".into(),
        NoExtremes::Disagreeing => {
            "the slowest values are slower than the others let expect, as of a rarer cause".into()
        }
    }
}

/// The object `extremes` of `latlab.summary/1`.
pub(super) fn document(extremes: &Result<Extremes, NoExtremes>) -> Value {
    let found = extremes.as_ref().ok();
    let reason = extremes.as_ref().err();
    let level = |level: &Level| {
        let (q, once_in_ns) = match level.rarity {
            Rarity::Quantile(q) => (Some(q), None),
            Rarity::OnceIn { period, .. } => (None, Some(period)),
        };
        json!({ "q": q, "once_in_ns": once_in_ns, "value": level.value, "upper_bound": level.upper_bound })
    };
    json!({
        "threshold": found.map(|found| found.threshold),
        "clusters": found.map(|found| found.clusters),
        "shape": found.map(|found| found.shape),
        "levels": found.map_or_else(Vec::new, |found| found.levels.iter().map(level).collect()),
        "reason": reason.map(code),
        "message": reason.map(words),
    })
}

fn code(reason: &NoExtremes) -> &'static str {
    match reason {
        NoExtremes::Unordered => "unordered",
        NoExtremes::Lost(_) => "lost",
        NoExtremes::SlowChanges => "slow-changes",
        NoExtremes::FewClusters { .. } => "few-clusters",
        NoExtremes::Coarse(_) => "coarse",
        NoExtremes::Uneven => "uneven",
        NoExtremes::HeavyTail => "heavy-tail",
        NoExtremes::Disagreeing => "rarer-cause",
    }
}
