//! Tables of streams: offered and delivered rates, CPU cost and results of rate searches.

use super::figures::{count_of, duration, middle};
use super::heading::title_of_run;
use super::over_runs::{DescribedRuns, TableRow, columns_over_runs, runs_of, scale_of};
use super::quantiles::{cells, column_above, column_of_two, rows_of_two};
use super::view::{ColumnView, RowView, TableView};
use crate::analysis::experiment::ColumnFigure;
use crate::analysis::{
    CpuCost, GoalEnd, GoalFigures, LevelSpans, STREAM_INTERVAL, SearchFigures, StageFigures, StreamFigures,
    StreamTotals, Summary,
};
use crate::metric::Metric;
use crate::plan::TransportProperties;
use crate::recipe::Column;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{ABSENT, BitRateUnit, TimeUnit, bit_rate, grouped, percent, quantile, significant, span};

/// Builds the tables of stream runs with these `names`: rate searches, rates and costs, distribution of the rate over
/// intervals, flows.
pub(super) fn tables(summaries: &[Summary], names: &[String]) -> Vec<TableView> {
    let runs = names.iter().zip(summaries).map(|(name, run)| TableRow::of_run(name.clone(), run)).collect::<Vec<_>>();
    let mut tables: Vec<TableView> = names.iter().zip(summaries).flat_map(|(name, run)| of_search(run, name)).collect();
    tables.extend(match summaries {
        [one] => one.stream.iter().map(|stream| both_ends(stream, one)).collect(),
        _ => vec![rates(&runs, None)],
    });
    tables.extend(evenness(&runs, false));
    tables.extend(summaries.iter().zip(names).filter_map(|(summary, name)| by_flow(summary, name)));
    tables
}

/// Tables with a row for each condition: rates and costs, and the distribution of the rate over intervals.
pub(super) fn rows_of_conditions(conditions: &[TableRow<'_>]) -> Vec<TableView> {
    let runs = runs_of(conditions.iter().map(|row| row.runs.len()));
    std::iter::once(rates(conditions, Some(runs))).chain(evenness(conditions, true)).collect()
}

fn or_absent(value: Option<String>) -> String {
    value.unwrap_or_else(|| ABSENT.into())
}

/// A message of these streams: a packet, or over DDS a sample.
fn message<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> &'static str {
    properties(summaries).message
}

/// Those of the transport of these streams; of the default one if they differ.
pub(super) fn properties<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> &'static TransportProperties {
    let mut transports = summaries.into_iter().map(|summary| summary.spec.transport());
    let first = transports.next().flatten();
    first.filter(|_| transports.all(|other| other == first)).unwrap_or_default().properties()
}

fn message_rate(message: &str, per_second: f64) -> String {
    match message {
        "packet" => packet_rate(per_second),
        message => format!("{} {message}s/s", grouped(per_second.round() as u64)),
    }
}

pub(super) fn packet_rate(pps: f64) -> String {
    match pps {
        pps if pps >= 999_500.0 => format!("{} Mpps", significant(pps / 1e6)),
        pps if pps >= 999.5 => format!("{} kpps", significant(pps / 1e3)),
        pps => format!("{} pps", significant(pps)),
    }
}

fn nanos(ns: Option<f64>) -> String {
    or_absent(ns.map(duration))
}

/// Stands in front of the number of lost packets, if more may have been lost after the last one that arrived.
pub(super) const LOST_AT_LEAST: &str = "lost at least";

/// Table of one run with a row for each end.
fn both_ends(stream: &StreamFigures, summary: &Summary) -> TableView {
    let (rates, total) = (&stream.rates, &stream.total);
    let lost = grouped(total.lost());
    let lost = match summary.ratios.loss {
        Some(loss) => format!("lost {lost} ({})", percent(loss)),
        None if summary.knows_losses => format!("lost {lost}"),
        None => format!("{LOST_AT_LEAST} {lost}: losses after the last packet that arrived are unknown"),
    };
    let ends = [
        (rates.offered_bps, rates.offered_pps, total.known_sent(), stream.sender_cpu),
        (rates.delivered_bps, rates.delivered_pps, Some(total.delivered), stream.receiver_cpu),
    ];
    let message = message([summary]);
    let cpu = |of: fn(&CpuCost) -> String| ends.map(|end| or_absent(end.3.as_ref().map(of)));
    let columns = vec![
        ColumnView::figures("rate", ends.map(|end| or_absent(end.0.map(bit_rate)))),
        ColumnView::figures("", ends.map(|end| or_absent(end.1.map(|rate| message_rate(message, rate))))),
        ColumnView::figures(&format!("{message}s"), ends.map(|end| or_absent(end.2.map(grouped)))),
        ColumnView::figures("CPU", cpu(|cost| or_absent(cost.share.map(percent)))),
        ColumnView::figures(&format!("a {message}"), cpu(|cost| nanos(cost.per_packet_ns))),
        ColumnView::figures("a byte", cpu(|cost| nanos(cost.per_byte_ns))),
    ];
    let sent = if total.known_sent().is_some() { "sent" } else { "known to be sent" };
    // Where losses are known, the loss ratio is that of the packets that are decided on.
    let packets = total.known_sent().filter(|_| !summary.knows_losses).unwrap_or(total.decided);
    TableView {
        note: format!("{sent} {} · {lost}", grouped(packets)),
        ..TableView::of("rates of payload", ["offered", "delivered"].map(RowView::of).into(), columns)
    }
}

/// A figure of a stream in the tables of several runs and of conditions.
struct RateColumn {
    heading: &'static str,
    figure: fn(&Summary) -> Option<f64>,
    /// The figure in words, given what a message is called.
    shown: fn(&str, f64) -> String,
}

/// The column of a share.
const LOST: &str = "lost";
const RATE_COLUMNS: [RateColumn; 6] = [
    RateColumn {
        heading: "offered",
        figure: |run| run.stream.as_ref()?.rates.offered_bps,
        shown: |_, bps| bit_rate(bps),
    },
    RateColumn {
        heading: "delivered",
        figure: |run| run.stream.as_ref()?.rates.delivered_bps,
        shown: |_, bps| bit_rate(bps),
    },
    RateColumn { heading: "delivered", figure: |run| run.stream.as_ref()?.rates.delivered_pps, shown: message_rate },
    RateColumn { heading: LOST, figure: |run| run.ratios.loss, shown: |_, share| percent(share.clamp(0.0, 1.0)) },
    RateColumn {
        heading: "sending",
        figure: |run| run.stream.as_ref()?.sender_cpu?.per_packet_ns,
        shown: |_, ns| nanos(Some(ns)),
    },
    RateColumn {
        heading: "receiving",
        figure: |run| run.stream.as_ref()?.receiver_cpu?.per_packet_ns,
        shown: |_, ns| nanos(Some(ns)),
    },
];

/// Rates and costs, behind the numbers of runs.
fn rates(rows: &[TableRow<'_>], runs: Option<ColumnView>) -> TableView {
    let message = message(rows.iter().flat_map(|row| row.runs));
    let of_column = |column: &RateColumn| {
        let figure = |run: &Summary| (column.figure)(run).map_or(ColumnFigure::Nothing, ColumnFigure::Known);
        let figures: Vec<Vec<ColumnFigure>> = rows.iter().map(|row| row.runs.iter().map(figure).collect()).collect();
        let scale = scale_of(figures.iter(), column.heading == LOST);
        let cells = |(row, own): (&TableRow<'_>, &Vec<ColumnFigure>)| {
            row.cells(own, scale, |value| (column.shown)(message, value))
        };
        column_of_two(column.heading, rows.iter().zip(&figures).map(cells))
    };
    let columns = runs.into_iter().chain(RATE_COLUMNS.iter().map(of_column)).collect();
    let title = format!("rates of payload; CPU time of a {message}");
    TableView::of(title, rows.iter().flat_map(TableRow::views).collect(), columns)
}

/// Table of the distribution of the delivered rate over intervals.
fn evenness(rows: &[TableRow<'_>], of_conditions: bool) -> Option<TableView> {
    let lengths = lengths(rows.iter().flat_map(|row| row.runs));
    let measured =
        |row: &&TableRow<'_>| row.described(Metric::DeliveredRate).runs.iter().flatten().any(|one| one.n > 0);
    let rows: Vec<&TableRow<'_>> = rows.iter().filter(measured).collect();
    let described: Vec<DescribedRuns<'_>> = rows.iter().map(|row| row.described(Metric::DeliveredRate)).collect();
    let all = || described.iter().flat_map(|row| &row.runs).flatten().copied().filter(|one| one.n > 0);
    let unit = BitRateUnit::suiting(middle(all().filter_map(|described| described.mean)).unwrap_or_default());
    let quantiles = all().next()?.quantiles.iter().map(|estimate| Column::Quantile(estimate.q));
    let columns: Vec<Column> = std::iter::once(Column::Min).chain(quantiles).chain([Column::Max]).collect();
    let (least, most) = (all().map(|one| one.n).min()?, all().map(|one| one.n).max()?);
    let n = if least == most { grouped(most) } else { format!("{} to {}", grouped(least), grouped(most)) };
    let counts = || [runs_of(rows.iter().map(|row| row.runs.len())), count_of(&described, "n", |one| one.n)];
    let counts = if of_conditions { counts().into() } else { Vec::new() };
    let figures = columns_over_runs(&described, &columns, &|bps| unit.figure(bps));
    Some(TableView {
        note: if of_conditions { String::new() } else { format!("n {n}") },
        ..TableView::of(
            format!("delivered rate over intervals of {lengths}, {}", unit.symbol()),
            rows.iter().flat_map(|row| row.views()).collect(),
            counts.into_iter().chain(figures).collect(),
        )
    })
}

/// Formats the lengths of the intervals as `100 ms`, or as `56 ms to 716 ms` if some are stretched. The last one of a
/// slice may have half of the length; a stream may be so short that no interval has the whole.
fn lengths<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> String {
    let spans = || summaries.clone().filter_map(|summary| summary.stream.as_ref()?.intervals);
    let shortest = spans().map(|LevelSpans { shortest, .. }| shortest).min().unwrap_or(STREAM_INTERVAL);
    let longest = spans().map(|LevelSpans { longest, .. }| longest).max().unwrap_or(STREAM_INTERVAL);
    let is_usual = 2 * shortest.0 >= STREAM_INTERVAL.0
        && 10 * longest.0 >= 9 * STREAM_INTERVAL.0
        && 2 * longest.0 < 3 * STREAM_INTERVAL.0;
    match is_usual {
        true => span(STREAM_INTERVAL),
        false if span(shortest) == span(longest) => span(longest),
        false => format!("{} to {}", span(shortest), span(longest)),
    }
}

/// Table with a row for each flow; `None` for a single flow.
fn by_flow(summary: &Summary, name: &str) -> Option<TableView> {
    let stream = summary.stream.as_ref().filter(|stream| stream.flows.len() > 1)?;
    let column =
        |heading: &str, of: &dyn Fn(&StreamTotals) -> String| ColumnView::figures(heading, stream.flows.iter().map(of));
    let rate = |packets: u64, span: Nanos| {
        let bits = packets as f64 * f64::from(stream.size_bytes) * 8.0;
        or_absent((span > Nanos::ZERO).then(|| bit_rate(bits / span.as_secs_f64())))
    };
    let counted = |count: u64| or_absent((!summary.is_imported).then(|| grouped(count)));
    let columns = vec![
        column("offered", &|flow| rate(flow.sent, flow.sending)),
        column("delivered", &|flow| rate(flow.delivered, flow.counting)),
        column(&format!("{}s", message([summary])), &|flow| grouped(flow.decided)),
        column(if summary.knows_losses { "lost" } else { LOST_AT_LEAST }, &|flow| grouped(flow.lost())),
        column("reordered", &|flow| counted(flow.reordered)),
        column("duplicates", &|flow| counted(flow.duplicates)),
    ];
    let rows = (0..stream.flows.len()).map(|flow| RowView::of(flow.to_string())).collect();
    Some(TableView { corner: "flow".into(), ..TableView::of(title_of_run(name, "each flow"), rows, columns) })
}

/// Tables of a rate search: results for each goal, then delays of each stage.
fn of_search(summary: &Summary, name: &str) -> Vec<TableView> {
    let Some(stream) = &summary.stream else { return Vec::new() };
    let rate = |pps: Option<f64>| or_absent(pps.map(|pps| bit_rate(pps * f64::from(stream.size_bytes) * 8.0)));
    let found = stream.search.as_ref().map(|search| found(search, &rate, title_of_run(name, "rates found")));
    let title = title_of_run(name, "round trip delay during the stream");
    found.into_iter().chain(delays(&stream.stages, &rate, &title)).collect()
}

/// Formats packets a second as a rate of payload.
type PayloadRate<'a> = &'a dyn Fn(Option<f64>) -> String;

fn found(search: &SearchFigures, rate: PayloadRate<'_>, title: String) -> TableView {
    let column = |heading: &str, cell: &dyn Fn(&GoalFigures) -> String| {
        ColumnView::figures(heading, search.goals.iter().map(cell))
    };
    let columns = vec![
        column("lower bound", &|goal| rate(goal.bounds.lower_pps)),
        column("", &|goal| or_absent(goal.bounds.lower_pps.map(packet_rate))),
        column("upper bound", &|goal| rate(goal.bounds.upper_pps)),
        column("width", &|goal| goal.bounds.width().map_or_else(|| ending(goal.end).into(), percent)),
        column("delivered", &|goal| rate(goal.bounds.conditional_pps)),
    ];
    // A search that was killed has not reported how long it took.
    let took = if search.took == Nanos::ZERO { String::new() } else { format!(" in {}", span(search.took)) };
    let rows = search.goals.iter().map(|goal| RowView::of(percent(goal.goal.loss_ratio))).collect();
    TableView {
        note: format!("{} trials{took}", grouped(search.trials as u64)),
        corner: "loss up to".into(),
        ..TableView::of(title, rows, columns)
    }
}

/// Text in place of the width if a bound is missing.
const fn ending(end: GoalEnd) -> &'static str {
    match end {
        GoalEnd::Reached => ABSENT,
        GoalEnd::AtCeiling => "ceiling",
        GoalEnd::AtFloor => "floor",
        GoalEnd::Undecided => "undecided",
    }
}

/// Table of the delays of each stage; `None` without probes.
fn delays(stages: &[StageFigures], rate: PayloadRate<'_>, title: &str) -> Option<TableView> {
    let with: Vec<(&StageFigures, &Description)> =
        stages.iter().filter_map(|stage| Some((stage, stage.round_trip.as_ref()?))).collect();
    let (_, first) = with.first()?;
    // Delays of idle and full paths differ by orders of magnitude.
    let of_stage = |(_, delay): &(&StageFigures, &Description)| delay.quantiles.first()?.value;
    let unit = TimeUnit::suiting(middle(with.iter().filter_map(of_stage)).unwrap_or(1_000.0));
    let column = |heading: &str, cell: &dyn Fn(&StageFigures, &Description) -> String| {
        column_above(heading, with.iter().map(|(stage, delay)| cell(stage, delay)))
    };
    let mut columns = vec![
        column("offered", &|stage, _| rate(stage.offered_pps)),
        column("delivered", &|stage, _| rate(stage.delivered_pps)),
        column("lost", &|stage, _| or_absent(stage.loss_ratio.map(percent))),
        column("probes", &|_, delay| probes(delay)),
    ];
    for estimate in &first.quantiles {
        let of = |delay: &Description| ColumnFigure::of(Column::Quantile(estimate.q), delay);
        let cells = with.iter().map(|(_, delay)| cells(of(delay), |ns| unit.figure(ns)));
        columns.push(column_of_two(&quantile(estimate.q), cells));
    }
    columns.push(column("max", &|_, delay| or_absent(delay.max.map(|max| unit.figure(max)))));
    let label = |(stage, _): &(&StageFigures, &Description)| match stage.share {
        Some(0.0) => "no stream".into(),
        Some(share) => percent(share),
        None => "as asked".into(),
    };
    let has_shares = with.iter().any(|(stage, _)| stage.share.is_some());
    let corner = if has_shares { "rate".into() } else { String::new() };
    let rows = rows_of_two(with.iter().map(label));
    Some(TableView { corner, ..TableView::of(format!("{title}, {}", unit.symbol()), rows, columns) })
}

/// Formats as `834` or `834 (3 lost)`.
fn probes(delay: &Description) -> String {
    match delay.lost {
        0 => grouped(delay.n),
        lost => format!("{} ({} lost)", grouped(delay.n), grouped(lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::InMemory;
    use crate::analysis::{SummaryOptions, summarise};

    #[test]
    fn lengths_of_intervals_are_stated_unless_they_are_the_usual_ones() {
        let source = InMemory::of_stream(1, Vec::new());
        let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        for (shortest, longest, text) in [
            (100, 100, "100 ms"),
            (52, 101, "100 ms"),
            (20, 20, "20 ms"),
            (60, 60, "60 ms"),
            (20, 100, "20 ms to 100 ms"),
            (56, 716, "56 ms to 716 ms"),
        ] {
            let spans = LevelSpans { shortest: Nanos::from_millis(shortest), longest: Nanos::from_millis(longest) };
            let mut summary = summary.clone();
            summary.stream.as_mut().expect("a stream").intervals = Some(spans);
            assert_eq!(lengths(std::iter::once(&summary)), text);
        }
    }
}
