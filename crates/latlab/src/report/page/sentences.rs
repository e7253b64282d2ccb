//! The question and the verdict of a page, one sentence each. A verdict says what the comparisons decide, and of a single run
//! what was measured; it never compares runs by itself.

use super::input::{PageExperiment, PageInput, as_code};
use crate::analysis::comparison::{Comparisons, Quantity};
use crate::analysis::experiment::{ConditionRow, ExperimentReport};
use crate::analysis::{Kind, Summary};
use crate::metric::Metric;
use crate::recipe;
use crate::report::comparison::{ChangeView, ComparisonView, ContrastView, quantity_figure, shared_reason};
use crate::report::heading::{Headline, heading, names};
use crate::stats::{Description, Interval, QuantileEstimate};
use crate::units::Nanos;
use crate::units::human::{ABSENT, bit_rate, counted, grouped, percent, quantile, span};

/// What was asked.
pub(super) fn question(input: &PageInput<'_>) -> String {
    let recipe = input.experiment.and_then(|it| it.report.recipe.as_ref());
    match (recipe.and_then(|facts| recipe::find(&facts.name)), input.comparisons) {
        (Some(recipe), _) => format!("Recipe `{}`: {}.", recipe.name, recipe.title),
        (None, Some(comparisons)) => question_of_groups(comparisons),
        (None, None) => question_of_runs(input.summaries),
    }
}

fn question_of_groups(comparisons: &Comparisons) -> String {
    let metric = comparisons.quantities.iter().find(|quantity| !quantity.is_share());
    let metric = metric.or(comparisons.quantities.first()).map_or("figures", Quantity::metric_title);
    let groups = &comparisons.groups;
    match (&groups.factor, groups.groups.split_first()) {
        (Some(factor), _) => format!("How does the {metric} change with {factor}?"),
        (None, Some((baseline, candidates))) => {
            let candidates: Vec<String> = candidates.iter().map(|group| group.words()).collect();
            format!("How does the {metric} of {} differ from that of `{}`?", as_code(&candidates), baseline.words())
        }
        (None, None) => String::new(),
    }
}

fn question_of_runs(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else { return String::new() };
    let asked = match first.kind {
        Kind::Ping => "How long does a round trip take",
        Kind::Wakeup => "How late does a timer wake a thread",
        Kind::Stream => "How much of a stream arrives",
    };
    let conditions = heading(&summaries.iter().map(Headline::of).collect::<Vec<_>>());
    let of_runs =
        if summaries.len() == 1 { String::new() } else { format!(", in {}", counted(summaries.len(), "run")) };
    format!("{asked}{of_runs} ({conditions})?")
}

/// What was found.
pub(super) fn verdict(input: &PageInput<'_>, comparison: Option<&ComparisonView>) -> String {
    let single = |it: PageExperiment<'_>| verdict_of_condition(it.report);
    let found = match (comparison.zip(input.comparisons), input.summaries) {
        (Some((view, comparisons)), _) => verdict_of_comparison(view, comparisons),
        (None, [one]) => verdict_of_run(one),
        (None, several) => input.experiment.and_then(single).unwrap_or_else(|| verdict_of_runs(several)),
    };
    match input.summaries.iter().all(Summary::is_trustworthy) {
        true => found,
        false => format!("{found} A fatal caveat says why figures are not to be trusted."),
    }
}

/// Most changes in a verdict.
const CHANGES: usize = 3;

/// `none → cpu=80%: p50 lower, −15.4 % [−17.1, −13.6], p99 higher, +527 % [+460, +611]; 2 comparisons are undecided.`
fn verdict_of_comparison(view: &ComparisonView, comparisons: &Comparisons) -> String {
    let quantity = comparisons.rows.first().map(|row| row.quantity);
    let single = quantity.filter(|quantity| comparisons.rows.iter().all(|row| row.quantity == *quantity));
    let single = single.map(|quantity| quantity.label());
    let rows = compared_changes(&view.contrasts, single.as_deref());
    let (losses, others): (Vec<_>, Vec<_>) =
        rows.iter().filter(|it| it.is_decided()).partition(|it| it.statistic().ends_with("_ratio"));
    // Losses were added to what was asked.
    let decided = [others, losses].concat();
    let undecided = rows.iter().filter(|it| it.row.verdict == "undecided").count();
    match decided.as_slice() {
        [] if rows.is_empty() => "Nothing could be compared.".into(),
        [] if undecided == 0 => "Neither group has what was compared: all ratios are 0.".into(),
        [] => {
            let reason = shared_reason(&comparisons.rows).unwrap_or_default();
            // What stands behind a semicolon is advice.
            let reason = reason.split(';').next().filter(|it| !it.is_empty());
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("Undecided in all {}{reason}.", counted(rows.len(), "comparison"))
        }
        decided => {
            let mut parts = changes(&decided[..decided.len().min(CHANGES)]);
            let more = decided.len().saturating_sub(CHANGES);
            parts.extend((more > 0).then(|| format!("{} more in the table", grouped(more as u64))));
            let is_are = if undecided == 1 { "is" } else { "are" };
            parts.extend((undecided > 0).then(|| format!("{} {is_are} undecided", counted(undecided, "comparison"))));
            format!("{}.", parts.join("; "))
        }
    }
}

/// The changes of each contrast, with those of one contrast behind its name.
fn changes(decided: &[&ComparedChange<'_>]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut last = None;
    for change in decided {
        let place = change.place();
        match parts.last_mut().filter(|_| last.as_ref() == Some(&place)) {
            Some(part) => *part += &format!(", {}", change.words()),
            None => parts.push(format!("{place}: {}", change.words())),
        }
        last = Some(place);
    }
    parts
}

fn compared_changes<'a>(contrasts: &'a [ContrastView], single: Option<&'a str>) -> Vec<ComparedChange<'a>> {
    let of_contrast = |contrast: &'a ContrastView| {
        contrast.rows.iter().map(move |row| ComparedChange { contrast: &contrast.title, row, single })
    };
    contrasts.iter().flat_map(of_contrast).collect()
}

/// A row of a comparison with the title of its contrast.
struct ComparedChange<'a> {
    contrast: &'a str,
    row: &'a ChangeView,
    /// The only statistic of the comparison, which labels leave out where they have levels.
    single: Option<&'a str>,
}

impl ComparedChange<'_> {
    fn is_decided(&self) -> bool {
        ["lower", "higher", "equivalent"].contains(&self.row.verdict.as_str())
    }

    fn statistic(&self) -> &str {
        self.single.or(self.row.label.last().map(String::as_str)).unwrap_or_default()
    }

    /// The groups, and the levels that they have in common.
    fn place(&self) -> String {
        let levels = self.row.label.iter().map(String::as_str).filter(|label| *label != self.statistic());
        std::iter::once(self.contrast).chain(levels).collect::<Vec<_>>().join(", ")
    }

    fn words(&self) -> String {
        let ChangeView { verdict, change, .. } = self.row;
        format!("{} {verdict}, {change}", self.statistic())
    }
}

fn capitalised(text: &str) -> String {
    // `p99` is a name.
    match text.split_once(' ') {
        Some((word, _)) if word.chars().all(char::is_alphabetic) => {
            let mut chars = text.chars();
            chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// The statistics of an experiment with one condition over its runs.
fn verdict_of_condition(report: &ExperimentReport) -> Option<String> {
    let rows = report.single_condition.as_ref()?;
    let words = |row: &ConditionRow| {
        let mean = row.mean?;
        let figure = |value: f64| quantity_figure(row.quantity, value, mean);
        let interval = row.interval.and_then(|ends| Some(format!(" [{}, {}]", figure(ends.low?), figure(ends.high?))));
        Some(format!("{} {}{}", row.quantity.label(), figure(mean), interval.unwrap_or_default()))
    };
    let figures: Vec<String> = rows.iter().filter_map(words).collect();
    let runs = rows.iter().map(|row| row.runs).max()?;
    (!figures.is_empty())
        .then(|| format!("Over {} of one condition the means are: {}.", counted(runs, "run"), figures.join(", ")))
}

/// Runs that are not compared: what their medians are, without a claim that they differ.
fn verdict_of_runs(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else { return "No run can be used.".into() };
    let metric = first.kind.metric();
    let names = names(summaries);
    let middle = |summary: &Summary| {
        let described = summary.metrics.get(&metric)?;
        if metric.is_rate() { described.mean } else { at(described, 0.5)?.value }
    };
    let known = summaries.iter().zip(&names).filter_map(|(summary, name)| Some((middle(summary)?, name)));
    let known: Vec<(f64, &String)> = known.collect();
    let (Some(least), Some(most)) = (
        known.iter().min_by(|one, other| one.0.total_cmp(&other.0)),
        known.iter().max_by(|one, other| one.0.total_cmp(&other.0)),
    ) else {
        return "No run has a finite median.".into();
    };
    let what = if metric.is_rate() { "Means" } else { "Medians" };
    format!(
        "{what} of single runs lie between {} (`{}`) and {} (`{}`); whether conditions differ was not tested.",
        figure(metric, least.0),
        least.1,
        figure(metric, most.0),
        most.1
    )
}

/// Why no plot shows a delay, or a rate: no run has one. Empty if a run has one, or without runs.
pub(super) fn without_plots(summaries: &[Summary]) -> String {
    let described = || summaries.iter().filter_map(|summary| summary.metrics.get(&summary.kind.metric()));
    let sum = |of: fn(&Description) -> u64| described().map(of).sum::<u64>();
    let n = sum(|all| all.n);
    let Some(first) = summaries.first().filter(|_| n == sum(|all| all.lost)) else { return String::new() };
    let in_runs = if summaries.len() > 1 { format!(" in {}", counted(summaries.len(), "run")) } else { String::new() };
    match n {
        0 => format!("There is no plot: nothing was measured{in_runs}."),
        1 => format!("There is no plot of delays: the only probe{in_runs} was lost or late."),
        _ => format!(
            "There is no plot of delays: all of {} {}{in_runs} were lost or late.",
            grouped(n),
            first.kind.rows()
        ),
    }
}

/// Median, p99 and losses of a single run.
fn verdict_of_run(summary: &Summary) -> String {
    let metric = summary.kind.metric();
    let Some(described) = summary.metrics.get(&metric).filter(|described| described.n > 0) else {
        return "Nothing was measured.".into();
    };
    let rows = counted(described.n as usize, summary.kind.rows().trim_end_matches('s'));
    if described.lost == described.n {
        return format!("No answer came in time, of {rows}.");
    }
    let mut parts: Vec<String> = Vec::new();
    if metric.is_rate() {
        let mean = described.mean.map(|mean| figure(metric, mean)).unwrap_or_else(|| ABSENT.into());
        parts.push(format!("the mean delivered rate is {mean}{}", interval(metric, described.mean_interval)));
        parts.extend(summary.ratios.loss.map(|loss| format!("the loss ratio is {}", percent(loss))));
    } else {
        parts.extend([0.5, 0.99].into_iter().filter_map(|q| quantile_words(metric, described, q)));
        let lost = if described.lost > 0 {
            format!(", {} of them lost or late", grouped(described.lost))
        } else {
            String::new()
        };
        let lost = if summary.kind.has_target() && described.lost == 0 { ", without a loss".into() } else { lost };
        parts.push(format!("of {rows}{lost}"));
    }
    format!("{}.", capitalised(&parts.join(", ")))
}

/// `p99 is 61.9 µs (61.3 µs to 62.5 µs)`; `None` if the summary has no such quantile.
fn quantile_words(metric: Metric, described: &Description, q: f64) -> Option<String> {
    let estimate = at(described, q)?;
    let name = if q == 0.5 { "the median".into() } else { quantile(q) };
    Some(match estimate.value {
        _ if estimate.is_surely_lost() => format!("{name} lies among the lost probes"),
        Some(value) if estimate.supported => {
            format!("{name} is {}{}", figure(metric, value), interval(metric, estimate.interval))
        }
        _ => format!("{name} is at least {}", figure(metric, estimate.lower_bound?)),
    })
}

fn at(described: &Description, q: f64) -> Option<&QuantileEstimate> {
    described.quantiles.iter().find(|estimate| estimate.q == q)
}

fn interval(metric: Metric, interval: Option<Interval>) -> String {
    let words = interval.and_then(|it| {
        let (low, high) = (figure(metric, it.low?), figure(metric, it.high?));
        Some(format!(" ({low} to {high})"))
    });
    words.unwrap_or_default()
}

fn figure(metric: Metric, value: f64) -> String {
    if metric.is_rate() { bit_rate(value) } else { span(Nanos(value.round() as i64)) }
}
