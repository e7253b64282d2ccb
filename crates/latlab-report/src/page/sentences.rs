//! The question and the verdict of a page, one sentence each. A verdict says what the comparisons decide, and of a single run
//! what was measured; it never compares runs by itself.

use super::input::{PageExperiment, PageInput, as_code};
use crate::analysis::comparison::{Comparison, ComparisonMethod, Comparisons, Quantity, Verdict};
use crate::analysis::experiment::{ColumnFigure, ConditionRow};
use crate::analysis::{Kind, Summary};
use crate::comparison::{
    compared_factors, lacks_runs, pair_name, quantity_change, quantity_figure, several_metrics, shared_reason,
    undecided_reason,
};
use crate::heading::{Headline, heading};
use crate::metric::Metric;
use crate::quantiles::in_words;
use crate::recipe::{self, Column};
use crate::units::Nanos;
use crate::units::human::{ABSENT, bit_rate, counted, grouped, listed, percent, quantile, span};

/// What was asked, and the recipe that asks it.
pub(super) fn question(input: &PageInput<'_>) -> String {
    let asked = match input.comparisons {
        Some(comparisons) => question_of_groups(comparisons),
        None => question_of_runs(input.summaries),
    };
    let recipe = input.experiment.and_then(|it| it.report.recipe.as_ref());
    match recipe.and_then(|facts| recipe::find(&facts.name)) {
        Some(recipe) => format!("{asked} (Recipe `{}`: {}.)", recipe.name, recipe.title),
        None => asked,
    }
}

/// `How do the p50 and p99 of the round trip delay change with load?`
fn question_of_groups(comparisons: &Comparisons) -> String {
    let asked = asked_quantities(comparisons);
    let (how, that) = if asked.len() == 1 { ("How does", "that") } else { ("How do", "those") };
    let figures = listed_quantities(&asked);
    match (compared_factors(comparisons), comparisons.groups.groups.split_first()) {
        (Some(factors), _) => {
            let factors: Vec<String> = factors.split(" and ").map(str::to_owned).collect();
            format!("{how} {figures} change with {}?", listed(&factors))
        }
        (None, Some((baseline, candidates))) => {
            let candidates: Vec<String> = candidates.iter().map(|group| group.words()).collect();
            format!("{how} {figures} of {} differ from {that} of `{}`?", as_code(&candidates), baseline.words())
        }
        (None, None) => String::new(),
    }
}

/// What the rows are about, without the losses that latlab added; what was to be compared without a row.
fn asked_quantities(comparisons: &Comparisons) -> Vec<Quantity> {
    let mut asked: Vec<Quantity> = Vec::new();
    for row in comparisons.rows.iter().filter(|row| !row.added) {
        if !asked.contains(&row.quantity) {
            asked.push(row.quantity);
        }
    }
    if asked.is_empty() { comparisons.quantities.clone() } else { asked }
}

/// `the p50 and p99 of the round trip delay and the loss ratio`
fn listed_quantities(quantities: &[Quantity]) -> String {
    let mut by_metric: Vec<(&str, Vec<String>)> = Vec::new();
    for quantity in quantities {
        let metric = if quantity.is_share() { "" } else { quantity.metric_title() };
        match by_metric.iter_mut().find(|known| known.0 == metric) {
            Some((_, statistics)) => statistics.push(statistic(*quantity)),
            None => by_metric.push((metric, vec![statistic(*quantity)])),
        }
    }
    let words = |(metric, statistics): (&str, Vec<String>)| match metric {
        "" => format!("the {}", listed(&statistics)),
        metric => format!("the {} of the {metric}", listed(&statistics)),
    };
    listed(&by_metric.into_iter().map(words).collect::<Vec<_>>())
}

/// `p99`, `loss ratio`.
fn statistic(quantity: Quantity) -> String {
    quantity.label().replace('_', " ")
}

fn question_of_runs(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else { return String::new() };
    let asked = match first.kind {
        Kind::Ping => "How long does a round trip take",
        Kind::Wakeup => "How late does a timer wake a thread",
        Kind::Stream => "How much of a stream arrives",
        Kind::Values => "How long are the delays of a log",
    };
    let conditions = heading(&summaries.iter().map(Headline::of).collect::<Vec<_>>());
    let of_runs =
        if summaries.len() == 1 { String::new() } else { format!(", in {}", counted(summaries.len(), "run")) };
    format!("{asked}{of_runs} ({conditions})?")
}

pub(super) fn verdict(input: &PageInput<'_>, names: &[String]) -> String {
    let single = |it: PageExperiment<'_>| {
        verdict_of_condition(it.report.single_condition.as_ref()?, it.report.only_condition().as_deref())
    };
    let found = match (input.comparisons, input.summaries) {
        (Some(comparisons), _) => verdict_of_comparison(comparisons),
        (None, [one]) => verdict_of_run(one),
        (None, several) => input.experiment.and_then(single).unwrap_or_else(|| verdict_of_runs(several, names)),
    };
    if input.summaries.iter().all(Summary::is_trustworthy) {
        found
    } else {
        format!("{found} A fatal caveat says why figures are not to be trusted.")
    }
}

/// Most changes in a verdict.
const CHANGES: usize = 3;

/// `none → cpu=80%: p99 higher, infinite in 5 of 5 runs, p50 higher, +527 % [+460, +611]; 2 comparisons are undecided.`
fn verdict_of_comparison(comparisons: &Comparisons) -> String {
    let rows: Vec<&Comparison> = comparisons.rows.iter().filter(|row| !lacks_runs(row)).collect();
    let undecided = rows.iter().filter(|row| row.verdict == Verdict::Undecided).count();
    let is_decided = |row: &&&Comparison| !matches!(row.verdict, Verdict::Undecided | Verdict::None);
    let mut decided: Vec<&Comparison> = rows.iter().filter(is_decided).copied().collect();
    if rows.is_empty() {
        return "Nothing could be compared.".into();
    }
    if decided.is_empty() && undecided == 0 {
        return "Neither group has what was compared: all ratios are 0.".into();
    }
    if decided.is_empty() {
        // What stands behind a semicolon is advice.
        let reason = shared_reason(&comparisons.rows).unwrap_or_default();
        let reason = reason.split(';').next().filter(|it| !it.is_empty()).map(|reason| format!(": {reason}"));
        let all = if undecided == 1 { String::new() } else { format!("all {} ", grouped(undecided as u64)) };
        let noun = if undecided == 1 { "the only comparison" } else { "comparisons" };
        return format!("Undecided in {all}{noun}{}.", reason.unwrap_or_default());
    }
    // Infinite figures come first, then ratios such as losses that differ, then all others.
    decided.sort_by_key(|row| match row.method {
        ComparisonMethod::Separated | ComparisonMethod::Placements => 0,
        _ if row.quantity.is_share() && row.verdict != Verdict::Equivalent => 1,
        _ => 2,
    });
    let (name, with_metric) = (pair_name(comparisons), several_metrics(&comparisons.rows));
    let pairs = decided[..decided.len().min(CHANGES)]
        .chunk_by(|one, other| (one.baseline, one.candidate) == (other.baseline, other.candidate));
    let changes = |pair: &[&Comparison]| pair.iter().map(|row| change(row, with_metric)).collect::<Vec<_>>().join(", ");
    let mut parts: Vec<String> = pairs.map(|pair| format!("{}: {}", name(pair[0]), changes(pair))).collect();
    if let Some(more) = decided.len().checked_sub(CHANGES).filter(|more| *more > 0) {
        parts.push(format!("{} more in the table", grouped(more as u64)));
    }
    if undecided > 0 {
        parts.push(format!(
            "{} {} undecided",
            counted(undecided, "comparison"),
            if undecided == 1 { "is" } else { "are" }
        ));
    }
    format!("{}.", parts.join("; "))
}

fn change(row: &Comparison, with_metric: bool) -> String {
    let name = if with_metric && !row.quantity.is_share() {
        format!("{} of the {}", statistic(row.quantity), row.quantity.metric_title())
    } else {
        statistic(row.quantity)
    };
    let found = match row.method {
        ComparisonMethod::Separated | ComparisonMethod::Placements => undecided_reason(row),
        _ => None,
    };
    format!("{name} {}, {}", row.verdict.word(), found.unwrap_or_else(|| quantity_change(row)))
}

/// The statistics of an experiment with one judged condition over its runs, infinite ones first; the condition has a `name` if
/// the experiment has others:
/// `Over 10 runs of one condition: p99 infinite in 2 of 10 runs; geometric mean p50 45.0 µs [44.6 µs, 45.4 µs].`
pub(super) fn verdict_of_condition(rows: &[ConditionRow], name: Option<&str>) -> Option<String> {
    let infinite = rows.iter().filter(|row| row.lost > 0).map(|row| {
        format!("{} infinite in {} of {}", statistic(row.quantity), row.lost, counted(row.runs + row.lost, "run"))
    });
    let means = [(true, "geometric mean"), (false, "mean")].into_iter().filter_map(|(is_geometric, name)| {
        let rows = rows.iter().filter(|row| row.is_geometric == is_geometric);
        let figures: Vec<String> = rows.filter_map(mean_words).collect();
        let plural = if figures.len() == 1 { "" } else { "s" };
        (!figures.is_empty()).then(|| format!("{name}{plural} {}", figures.join(", ")))
    });
    let found: Vec<String> = infinite.chain(means).collect();
    let runs = rows.iter().map(|row| row.runs + row.lost).max()?;
    let name = name.map(|name| format!(" (`{name}`)")).unwrap_or_default();
    (!found.is_empty()).then(|| format!("Over {} of one condition{name}: {}.", counted(runs, "run"), found.join("; ")))
}

/// `p50 45.0 µs [44.6 µs, 45.4 µs]`; `None` without a finite mean.
fn mean_words(row: &ConditionRow) -> Option<String> {
    let mean = row.mean?;
    let figure = |value: f64| quantity_figure(row.quantity, value, mean);
    let interval = row.interval.and_then(|ends| Some(format!(" [{}, {}]", figure(ends.low?), figure(ends.high?))));
    Some(format!("{} {}{}", statistic(row.quantity), figure(mean), interval.unwrap_or_default()))
}

/// Runs that are not compared: between what their medians lie, without a claim that they differ.
fn verdict_of_runs(summaries: &[Summary], names: &[String]) -> String {
    let Some(first) = summaries.first() else { return "No run can be used.".into() };
    let middles = summaries.iter().zip(names).map(|(summary, name)| Some((middle(summary, first.metric)?, name)));
    let mut middles: Vec<(f64, &String)> = middles.flatten().collect();
    middles.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(least), Some(most)) = (middles.first(), middles.last()) else { return "Nothing was measured.".into() };
    let shown = |value: f64| if value.is_finite() { figure(first.metric, value) } else { "infinite".into() };
    let what = if first.metric.is_rate() { "Means" } else { "Medians" };
    format!(
        "{what} of single runs are between {} (`{}`) and {} (`{}`); whether conditions differ was not tested.",
        shown(least.0),
        least.1,
        shown(most.0),
        most.1
    )
}

/// The median of a delay, which is infinite among the lost probes, or the mean of a rate; `None` if it is not known.
fn middle(summary: &Summary, metric: Metric) -> Option<f64> {
    let described = summary.metrics.get(&metric).filter(|described| described.n > 0)?;
    if metric.is_rate() {
        described.mean
    } else {
        Some(described.quantiles.iter().find(|own| own.q == 0.5)?.value.unwrap_or(f64::INFINITY))
    }
}

/// What the comparison is of and what `others` are of, if these do not show it. Beside the main metric they show `further` ones.
pub(super) fn other_metric(input: &PageInput<'_>, compared: &str, others: &str, further: &[Metric]) -> Option<String> {
    let main = input.summaries.first()?.metric.title();
    let asked = asked_quantities(input.comparisons?);
    let mut titles: Vec<String> = Vec::new();
    for title in asked.iter().filter(|quantity| !quantity.is_share()).map(|quantity| quantity.metric_title()) {
        if !titles.iter().any(|known| known == title) {
            titles.push(title.into());
        }
    }
    let is_shown = |title: &String| title == main || further.iter().any(|metric| metric.title() == title);
    let is_other = !titles.is_empty() && !titles.iter().any(is_shown);
    is_other.then(|| format!("{compared} of the {}; {others} of the {main}.", listed(&titles)))
}

/// Why no plot shows a delay, or a rate: no run has one. `None` if a run has one, or without runs.
pub(super) fn without_plots(summaries: &[Summary]) -> Option<String> {
    let described = || summaries.iter().filter_map(|summary| summary.metrics.get(&summary.metric));
    let (n, lost) = described().fold((0, 0), |(n, lost), all| (n + all.n, lost + all.lost));
    let first = summaries.first().filter(|_| n == lost)?;
    let in_runs = if summaries.len() > 1 { format!(" in {}", counted(summaries.len(), "run")) } else { String::new() };
    Some(match n {
        0 if first.metric.is_rate() => format!("Plots of rates are missing: nothing was measured{in_runs}."),
        0 => format!("Plots of delays are missing: nothing was measured{in_runs}."),
        1 => format!("Plots of delays are missing: the only probe{in_runs} was lost or late."),
        _ => {
            let rows = first.kind.rows();
            format!("Plots of delays are missing: all of {} {rows}{in_runs} were lost or late.", grouped(n))
        }
    })
}

/// Median, p99 and losses of a single run, and how many probes were due and not sent.
fn verdict_of_run(summary: &Summary) -> String {
    let (metric, rows) = (summary.metric, summary.kind.rows());
    let Some(described) = summary.metrics.get(&metric).filter(|described| described.n > 0) else {
        return "Nothing was measured.".into();
    };
    if metric.is_rate() {
        let mean = described.mean.map_or_else(|| ABSENT.into(), |mean| figure(metric, mean));
        let loss = summary.ratios.loss.map(|loss| format!(", the loss ratio is {}", percent(loss)));
        return format!("The mean delivered rate is {mean}{}.", loss.unwrap_or_default());
    }
    let quantile = |q: f64| {
        let shown = in_words(ColumnFigure::of(Column::Quantile(q), described), |ns| figure(metric, ns));
        format!("{} is {shown}", quantile(q))
    };
    let losses = match described.lost {
        0 if summary.kind.has_target() && summary.knows_losses => "; none was lost or late".into(),
        0 => String::new(),
        lost => format!("; {} lost or late", grouped(lost)),
    };
    let due = summary.counts.due();
    let unsent = match summary.counts.send_failed + summary.counts.not_sent {
        0 => String::new(),
        unsent => format!("; {} of {} due {rows} not sent", grouped(unsent), grouped(due)),
    };
    let n = counted(described.n as usize, rows.trim_end_matches('s'));
    format!("Of {n} {}, {}{losses}{unsent}.", quantile(0.5), quantile(0.99))
}

fn figure(metric: Metric, value: f64) -> String {
    if metric.is_rate() { bit_rate(value) } else { span(Nanos(value.round() as i64)) }
}
