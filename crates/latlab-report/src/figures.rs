//! Formatting of statistics as cells: three significant digits, one unit per table, loss with every figure.

use std::collections::BTreeSet;

use super::comparison::plain;
use super::heading::title_of_run;
use super::over_runs::{DescribedRuns, TableRow, columns_over_runs, heading, runs_of};
use super::quantiles::{Cells, cells, column_above, column_of_two, rows_of_two};
use super::view::{BarView, ColumnView, GroupView, HistogramView, RowView, Showing, TableView};
use crate::analysis::experiment::ColumnFigure;
use crate::analysis::{Kind, Summary};
use crate::metric::Metric;
use crate::recipe::Column;
use crate::stats::{Bucket, Description, Interval};
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, about, grouped, percent, span, spans};

/// Heading of halved round trips, not called a latency because it is calculated, not measured.
pub(super) const HALF: &str = "round trip / 2";

/// Largest ratio of the longer to the shorter side of an interval shown with `±`.
const ALIKE: f64 = 1.25;

/// Unit and divisor of formatted statistics.
struct Scale {
    /// Of times; `None` of other numbers.
    unit: Option<TimeUnit>,
    divisor: f64,
}

impl Scale {
    /// That of a printed metric, and its heading.
    fn of_printed<'a>(metric: Metric, described: impl Iterator<Item = &'a Description>) -> (Scale, String) {
        let unit = metric.is_time().then(|| unit_of(described));
        let symbol = unit.map_or(metric.unit(), TimeUnit::symbol);
        let heading = if symbol.is_empty() { metric.title().into() } else { format!("{}, {symbol}", metric.title()) };
        (Scale { unit, divisor: 1.0 }, heading)
    }

    fn figure(&self, value: Option<f64>) -> String {
        let shown = |value: f64| self.unit.map_or_else(|| plain(value), |unit| unit.figure(value / self.divisor));
        value.map_or_else(|| ABSENT.into(), shown)
    }

    /// Formats as `±0.2` if both sides are similar, else with both ends: `68–81`.
    fn interval(&self, around: Option<f64>, interval: Option<Interval>) -> String {
        let Some((value, interval)) = around.zip(interval) else { return String::new() };
        match (interval.low, interval.high) {
            (Some(low), Some(high)) => {
                let (below, above) = (value - low, high - value);
                let ends = [low, high].map(|end| self.figure(Some(end)));
                // If both ends are equal to three digits, their distance is shown.
                if below.max(above) <= ALIKE * below.min(above) || ends[0] == ends[1] {
                    let reach = below.max(above);
                    let time = |unit: TimeUnit| about(reach / self.divisor / unit.nanos());
                    format!("±{}", self.unit.map_or_else(|| plain(reach), time))
                } else {
                    ends.join("–")
                }
            }
            (Some(low), None) => format!("{}–∞", self.figure(Some(low))),
            (None, Some(high)) => format!("≤ {}", self.figure(Some(high))),
            (None, None) => String::new(),
        }
    }

    /// A figure of a run, with its interval below if it is known and `with_interval`.
    fn cells(&self, column: Column, described: &Description, with_interval: bool) -> Cells {
        let figure = ColumnFigure::of(column, described);
        let [shown, below] = cells(figure, |ns| self.figure(Some(ns)));
        let interval = match column {
            Column::Quantile(q) => described.quantiles.iter().find(|own| own.q == q).and_then(|own| own.interval),
            // No mean lies below the smallest value; the caveat `wide-mean` says why the interval does.
            Column::Mean => described.mean_interval.map(|it| {
                let is_possible = |low: &f64| described.min.is_none_or(|min| *low >= min - described.step);
                Interval { low: it.low.filter(is_possible), ..it }
            }),
            _ => None,
        };
        match figure {
            ColumnFigure::Known(value) if with_interval => [shown, self.interval(Some(value), interval)],
            _ => [shown, below],
        }
    }
}

/// The statistics of runs that have these quantiles, in ascending order; the moments stand behind the minimum.
pub(super) fn statistics(quantiles: &[f64], with_moments: bool) -> Vec<Column> {
    let moments = [Column::Min, Column::Mean, Column::Stddev].into_iter().filter(|_| with_moments);
    moments.chain(quantiles.iter().copied().map(Column::Quantile)).chain([Column::Max]).collect()
}

/// Returns the value that determines the unit: the median or another available statistic.
fn typical(described: &Description) -> Option<f64> {
    let middle = described.quantiles.iter().find(|estimate| estimate.q >= 0.5).and_then(|estimate| estimate.value);
    middle.or(described.mean)
}

/// Returns the unit that suits the median of the typical values, so that an outlier does not determine the unit.
pub(super) fn unit_of<'a>(described: impl Iterator<Item = &'a Description>) -> TimeUnit {
    TimeUnit::suiting(middle(described.filter_map(typical)).unwrap_or(1_000.0))
}

/// The upper one of the values in the middle.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A time with its unit.
pub(super) fn duration(ns: f64) -> String {
    let unit = TimeUnit::suiting(ns);
    format!("{} {}", unit.figure(ns), unit.symbol())
}

/// Formats n and loss; wake-ups have no loss.
fn n_and_lost(summary: &Summary, described: &Description) -> String {
    let n = grouped(described.n);
    match (summary.kind, summary.counts.late) {
        (Kind::Ping, _) if !summary.knows_losses => format!("n {n}"),
        (Kind::Ping, 0) => format!("n {n} · lost {}", grouped(described.lost)),
        (Kind::Values, _) if summary.knows_losses => format!("n {n} · lost {}", grouped(described.lost)),
        (Kind::Ping, late) => format!("n {n} · lost {} · late {}", grouped(summary.counts.lost), grouped(late)),
        _ => format!("n {n}"),
    }
}

/// Heads the number of infinite delays of probes that were sent: answers after the time-out are not lost.
fn lost_heading<'a>(mut summaries: impl Iterator<Item = &'a Summary> + Clone) -> &'static str {
    if summaries.clone().any(|summary| summary.kind == Kind::Command) {
        "failed"
    } else if summaries.any(|summary| summary.counts.late > 0) {
        "lost+late"
    } else {
        "lost"
    }
}

/// The same of response times, which are infinite for due probes that were never sent, too.
fn unanswered_heading<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> &'static str {
    let all_sent = summaries.clone().all(|summary| summary.counts.not_sent + summary.counts.send_failed == 0);
    if all_sent { lost_heading(summaries) } else { "not in time" }
}

/// Says of how many singletons the moments are, in contrast to the quantiles of the `shown` metrics; empty without losses.
fn of_answered(summary: &Summary, shown: &[Metric]) -> String {
    let described = || shown.iter().filter_map(|metric| summary.metrics.get(metric).map(|all| (metric, all)));
    let is_lossy = |all: &Description| all.lost > 0 && all.lost < all.n;
    let answered: BTreeSet<u64> =
        described().filter(|(_, all)| is_lossy(all)).map(|(_, all)| all.n - all.lost).collect();
    let count = match answered.first() {
        None => return String::new(),
        Some(count) if answered.len() == 1 => format!("{} ", grouped(*count)),
        Some(_) => String::new(),
    };
    let of = match summary.kind {
        Kind::Command => "successful",
        _ if summary.counts.late > 0 => "answered in time",
        _ => "answered",
    };
    let names: Vec<&str> = described().filter(|(_, all)| is_lossy(all)).map(|(metric, _)| metric.title()).collect();
    let whose =
        if described().all(|(_, all)| is_lossy(all)) { String::new() } else { format!("{}: ", names.join(", ")) };
    format!("{whose}min, mean, stddev, max of the {count}{of}")
}

/// Tables of one closed-loop or wake-up run, statistics in columns: the main metric, then optionally half round trips.
pub(super) fn across(summary: &Summary, showing: Showing) -> Vec<TableView> {
    let metric = summary.metric;
    let Some(described) = summary.metrics.get(&metric) else { return Vec::new() };
    let unit = unit_of(std::iter::once(described));
    let rows = [DescribedRuns::of_one(described)];
    let table = |title: &str, divisor: f64| {
        let mut columns =
            columns_of_runs(&rows, &statistics(&quantiles_of(&rows), true), &Scale { unit: Some(unit), divisor }, true);
        columns.push(column_above("", [unit.symbol().to_owned()]));
        TableView {
            note: n_and_lost(summary, described),
            ..TableView::of(title, rows_of_two([String::new()]), columns)
        }
    };
    let legend = of_answered(summary, &[metric]);
    let mut tables = vec![TableView { legend, ..table(metric.title(), 1.0) }];
    if showing.half && metric == Metric::RoundTripDelay {
        tables.push(table(HALF, 2.0));
    }
    tables
}

/// Table of one scheduled run, one of a command, or one shown with every metric: a column for each metric, a row for each statistic.
pub(super) fn down(summary: &Summary, showing: Showing) -> TableView {
    let is_shown = |metric: &Metric| showing.every_metric || Metric::USUAL.contains(metric) || is_printed(metric);
    let known = summary.spec.metrics().into_iter().filter(is_shown);
    let shown: Vec<(Metric, &Description)> =
        known.filter_map(|metric| summary.metrics.get(&metric).map(|described| (metric, described))).collect();
    let main = shown.iter().filter(|(metric, _)| *metric == summary.metric);
    let unit = unit_of(main.map(|(_, described)| *described));
    let mut groups = Vec::new();
    for (metric, described) in &shown {
        if is_printed(metric) {
            let (scale, heading) = Scale::of_printed(*metric, std::iter::once(*described));
            groups.push(figures_down(summary, &heading, described, &scale));
            continue;
        }
        groups.push(figures_down(summary, metric.title(), described, &Scale { unit: Some(unit), divisor: 1.0 }));
        if showing.half && *metric == Metric::RoundTripDelay {
            groups.push(figures_down(summary, HALF, described, &Scale { unit: Some(unit), divisor: 2.0 }));
        }
    }
    let lost = unanswered_heading(std::iter::once(summary));
    let names = shown.first().map(|(_, described)| statistics_of(described)).unwrap_or_default();
    let labels = ["n".into(), lost.into()].into_iter().chain(names.into_iter().map(heading));
    let legend = of_answered(summary, &shown.iter().map(|(metric, _)| *metric).collect::<Vec<_>>());
    let rows = labels.map(RowView::of).collect();
    TableView { corner: unit.symbol().into(), rows, groups, legend, ..TableView::default() }
}

fn is_printed(metric: &Metric) -> bool {
    matches!(metric, Metric::Printed(_))
}

fn statistics_of(described: &Description) -> Vec<Column> {
    statistics(&described.quantiles.iter().map(|estimate| estimate.q).collect::<Vec<_>>(), true)
}

fn figures_down(summary: &Summary, heading: &str, described: &Description, scale: &Scale) -> GroupView {
    let lost = if summary.knows_losses { grouped(described.lost) } else { ABSENT.into() };
    let counts = [grouped(described.n), lost].map(|count| [count, String::new()]);
    let statistics = statistics_of(described).into_iter().map(|column| scale.cells(column, described, true));
    let (figures, intervals): (Vec<String>, Vec<String>) =
        counts.into_iter().chain(statistics).map(<(_, _)>::from).unzip();
    GroupView {
        heading: heading.into(),
        columns: [figures, intervals].map(|cells| ColumnView::figures("", cells)).into(),
    }
}

/// Table of several runs of one kind, a row each: n and loss, then quantiles and maximum of the round trip and, on a
/// schedule, of the response time. If rows are `of_conditions`, they have the number of their runs, and figures over these.
pub(super) fn rows_of_runs(rows: &[TableRow<'_>], showing: Showing, of_conditions: bool) -> TableView {
    let described = |metric| rows.iter().map(move |row| row.described(metric));
    let runs = || rows.iter().flat_map(|row| row.runs);
    let kind = runs().next().map_or(Kind::Ping, |summary| summary.kind);
    let main = runs().next().map_or(kind.metric(), |summary| summary.metric);
    let round_trips: Vec<DescribedRuns<'_>> = described(main).collect();
    let unit = unit_of(round_trips.iter().flat_map(|row| &row.runs).flatten().copied());
    let mut counts = Vec::new();
    if of_conditions {
        counts.push(runs_of(rows.iter().map(|row| row.runs.len())));
    }
    counts.push(count_of(&round_trips, "n", |described| described.n));
    let has_losses = matches!(kind, Kind::Ping | Kind::Command | Kind::Values) && main != Metric::WakeupLatency;
    if has_losses && runs().any(|run| run.knows_losses) {
        let lost = |row: &TableRow<'_>| {
            if row.runs.iter().all(|run| run.knows_losses) {
                total(&row.described(main), |described| described.lost).map_or_else(|| ABSENT.into(), grouped)
            } else {
                ABSENT.into()
            }
        };
        counts.push(column_above(lost_heading(runs()), rows.iter().map(lost)));
    }
    let mut groups = vec![GroupView::plain(counts)];
    let columns = |all: &[DescribedRuns<'_>], scale: &Scale| {
        if of_conditions {
            columns_over_runs(all, &statistics(&quantiles_of(all), true), &|ns| scale.figure(Some(ns)))
        } else {
            columns_of_runs(all, &statistics(&quantiles_of(all), showing.wide), scale, showing.wide)
        }
    };
    let group = |title: &str, all: &[DescribedRuns<'_>], divisor: f64| GroupView {
        heading: format!("{title}, {}", unit.symbol()),
        columns: columns(all, &Scale { unit: Some(unit), divisor }),
    };
    groups.push(group(main.title(), &round_trips, 1.0));
    if showing.half && main == Metric::RoundTripDelay {
        groups.push(group(HALF, &round_trips, 2.0));
    }
    let printed: BTreeSet<Metric> = runs().flat_map(|run| run.metrics.keys().copied()).filter(is_printed).collect();
    for metric in printed {
        let all: Vec<DescribedRuns<'_>> = described(metric).collect();
        let (scale, heading) = Scale::of_printed(metric, all.iter().flat_map(|row| &row.runs).flatten().copied());
        groups.push(GroupView { heading, columns: columns(&all, &scale) });
    }
    let responses: Vec<DescribedRuns<'_>> = described(Metric::ResponseTime).collect();
    if responses.iter().any(|row| row.runs.iter().any(Option::is_some)) {
        let mut response = group(Metric::ResponseTime.title(), &responses, 1.0);
        // Response time covers all due probes, of which more may be lost than of those sent.
        response.columns.insert(0, count_of(&responses, unanswered_heading(runs()), |described| described.lost));
        let n = |all: &[DescribedRuns<'_>]| all.iter().map(|row| total(row, |one| one.n)).collect::<Vec<_>>();
        if n(&responses) != n(&round_trips) {
            response.columns.insert(0, count_of(&responses, "n", |described| described.n));
        }
        groups.push(response);
    }
    TableView { rows: rows.iter().flat_map(TableRow::views).collect(), groups, ..TableView::default() }
}

/// The sum over the runs of a row that have the metric; `None` if there are none.
fn total(row: &DescribedRuns<'_>, of: fn(&Description) -> u64) -> Option<u64> {
    row.runs.iter().flatten().copied().map(of).reduce(|one, other| one + other)
}

pub(super) fn count_of(rows: &[DescribedRuns<'_>], heading: &str, of: fn(&Description) -> u64) -> ColumnView {
    column_above(heading, rows.iter().map(|row| total(row, of).map_or_else(|| ABSENT.into(), grouped)))
}

/// Returns the quantiles of any run in ascending order.
fn quantiles_of(rows: &[DescribedRuns<'_>]) -> Vec<f64> {
    let described = rows.iter().flat_map(|row| &row.runs).flatten();
    let mut quantiles: Vec<f64> = described.flat_map(|one| one.quantiles.iter().map(|q| q.q)).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    quantiles
}

/// A column for each of `statistics`. A row is one run.
fn columns_of_runs(
    rows: &[DescribedRuns<'_>],
    statistics: &[Column],
    scale: &Scale,
    with_intervals: bool,
) -> Vec<ColumnView> {
    let cells = |row: &DescribedRuns<'_>, column| match row.runs.first().copied().flatten() {
        Some(described) => scale.cells(column, described, with_intervals),
        None => [ABSENT.into(), String::new()],
    };
    let column = |column: &Column| column_of_two(&heading(*column), rows.iter().map(|row| cells(row, *column)));
    statistics.iter().map(column).collect()
}

/// Table with a row for each CPU with sleeping threads; `None` for a single CPU. `name` identifies the run.
pub(super) fn by_cpu(summary: &Summary, name: &str) -> Option<TableView> {
    let by_cpu = summary.wakeups.as_ref().map(|wakeups| &wakeups.by_cpu).filter(|by_cpu| !by_cpu.is_empty())?;
    let described: Vec<DescribedRuns<'_>> =
        by_cpu.iter().map(|(_, described)| DescribedRuns::of_one(described)).collect();
    let unit = unit_of(by_cpu.iter().map(|(_, described)| described));
    let mut columns = vec![count_of(&described, "n", |described| described.n)];
    let statistics = statistics(&quantiles_of(&described), false);
    columns.extend(columns_of_runs(&described, &statistics, &Scale { unit: Some(unit), divisor: 1.0 }, false));
    let title = format!("{} by CPU, {}", Metric::WakeupLatency.title(), unit.symbol());
    let rows = rows_of_two(by_cpu.iter().map(|(cpu, _)| cpu.to_string()));
    Some(TableView { corner: "CPU".into(), ..TableView::of(title_of_run(name, &title), rows, columns) })
}

/// Table with a row for each window; `None` without windows. `name` identifies the run.
pub(super) fn windows(summary: &Summary, name: &str) -> Option<TableView> {
    let length = summary.window_ns.filter(|_| !summary.windows.is_empty())?;
    let windows = || summary.windows.iter().map(|window| &window.round_trip_delay);
    let described: Vec<DescribedRuns<'_>> = windows().map(DescribedRuns::of_one).collect();
    let unit = unit_of(windows());
    let scale = Scale { unit: Some(unit), divisor: 1.0 };
    // Losses that a log states in its totals alone are in no window.
    let in_windows: u64 = windows().map(|window| window.lost).sum();
    let is_known = summary.knows_losses && (!summary.is_imported || in_windows == summary.counts.lost);
    let lost = |window: &Description| if is_known { grouped(window.lost) } else { ABSENT.into() };
    let mut columns = vec![
        count_of(&described, "n", |window| window.n),
        column_above(lost_heading(std::iter::once(summary)), windows().map(lost)),
    ];
    // High quantiles that no window supports are omitted to keep the table narrow.
    let estimates = || windows().flat_map(|window| &window.quantiles);
    let is_supported = |q: f64| estimates().any(|estimate| estimate.q == q && estimate.supported);
    let mut quantiles = quantiles_of(&described);
    quantiles.retain(|q| *q <= 0.99 || is_supported(*q));
    let statistics = [vec![Column::Min], statistics(&quantiles, false)].concat();
    columns.extend(columns_of_runs(&described, &statistics, &scale, false));
    let time = TimeUnit::suiting(length.0 as f64);
    let labels = summary.windows.iter().map(|window| format!("{} {}", time.exactly(window.start_ns), time.symbol()));
    let title = format!("{} by window of {}, {}", summary.metric.title(), span(length), unit.symbol());
    let title = title_of_run(name, &title);
    Some(TableView { corner: "from".into(), ..TableView::of(title, rows_of_two(labels), columns) })
}

/// Returns the view of `buckets`; `None` if empty.
pub(super) fn histogram(buckets: &[Bucket]) -> Option<HistogramView> {
    let most = buckets.iter().map(|bucket| bucket.count).max().filter(|most| *most > 0)?;
    let length = |count: u64| (1.0 + count as f64).ln() / (1.0 + most as f64).ln();
    let labels = spans(&buckets.iter().map(|bucket| Nanos(bucket.low_ns)).collect::<Vec<_>>());
    let bars = buckets
        .iter()
        .zip(labels)
        .map(|(bucket, from)| BarView { from, length: length(bucket.count), count: grouped(bucket.count) })
        .collect();
    Some(HistogramView { bars })
}

/// Formats as `1.67 % (95 %: 1.27–2.19 %)`.
pub(super) fn sure(share: f64, interval: Option<Interval>) -> String {
    let ends = interval.and_then(|interval| Some((interval.low?, interval.high?, interval.confidence)));
    let around = ends.map(|(low, high, confidence)| {
        let low = percent(low);
        format!(" ({}: {}–{})", percent(confidence), low.trim_end_matches(" %"), percent(high))
    });
    format!("{}{}", percent(share), around.unwrap_or_default())
}
