//! The question and the verdict of a page, one sentence each. A verdict says what the comparisons decide, and of a single run
//! what was measured; it never compares runs by itself.

use super::input::{PageExperiment, PageInput};
use crate::analysis::comparison::{
    Comparison, ComparisonMethod, Comparisons, FigureScale, Quantity, RunGroup, Verdict,
};
use crate::analysis::experiment::{ColumnFigure, ConditionRow, PublishedResults};
use crate::analysis::{Kind, Summary};
use crate::comparison::{lacks_runs, pair_sentence, quantity_change, quantity_figure, shared_reason, undecided_reason};
use crate::heading::{Headline, heading};
use crate::metric::Metric;
use crate::plan::Factors;
use crate::quantiles::in_words;
use crate::recipe::{self, Answer, Asked, Column, Published};
use crate::units::Nanos;
use crate::units::human::{ABSENT, bit_rate, counted, grouped, listed, percent, quantile, span};

/// What was asked: by a recipe in its own words, of runs that are not compared how long they take.
pub(super) fn question(input: &PageInput<'_>) -> String {
    match (asked(input), input.comparisons) {
        (Some((_, asked)), _) => asked.question.clone(),
        (None, Some(_)) => String::new(),
        (None, None) => question_of_runs(input.summaries),
    }
}

/// What the recipe of the experiment asks.
fn asked(input: &PageInput<'_>) -> Option<(&'static Published, &'static Asked)> {
    let recipe = recipe::find(&input.experiment?.report.recipe.as_ref()?.name)?;
    recipe.published.as_ref().zip(recipe.asked.as_ref())
}

/// The sentences with which the recipe answers its question; empty without figures.
fn answer(input: &PageInput<'_>) -> String {
    let Some((published, asked)) = asked(input) else { return String::new() };
    // A mean over hosts is of none of them.
    if input.experiment.is_some_and(|it| it.report.published.as_ref().is_some_and(PublishedResults::is_joint)) {
        return String::new();
    }
    let sentence = |answer: &Answer| {
        let is_of = |levels: &Factors, group: &RunGroup| published.has_levels(levels, &group.levels);
        let row = input.comparisons.and_then(|comparisons| {
            comparisons.rows.iter().find(|row| {
                let [from, to] = [row.baseline, row.candidate].map(|group| &comparisons.groups.groups[group]);
                let is_asked = is_of(&answer.from, from) && is_of(&answer.to, to) && !lacks_runs(row);
                is_asked && !row.added && statistic(row.quantity) == answer.statistic.heading()
            })
        });
        let is_other =
            answer.verdict.as_deref().is_some_and(|verdict| row.is_none_or(|row| row.verdict.word() != verdict));
        let text = if is_other { &answer.otherwise } else { &answer.text };
        let mean = |levels: &Factors| {
            let is_own =
                |run: &&Summary| run.experiment.as_ref().is_some_and(|it| published.has_levels(levels, &it.factors));
            let own = input.summaries.iter().filter(is_own);
            let figures =
                own.filter_map(|run| Some(ColumnFigure::of(answer.statistic, run.metrics.get(&published.metric)?)));
            let figures: Vec<ColumnFigure> = figures.collect();
            let scale = FigureScale::of(ColumnFigure::values(&figures).into_iter(), false);
            scale.mean(&ColumnFigure::values(&figures)).filter(|mean| mean.is_finite())
        };
        let of_runs = || mean(&answer.from).zip(mean(&answer.to));
        let (from, to) = row.and_then(|row| row.centres).or_else(of_runs)?;
        let change = match row {
            None => String::new(),
            Some(row) if row.verdict == Verdict::Undecided => " (undecided)".into(),
            Some(row) => format!(": {}, {}", row.verdict.word(), quantity_change(row)),
        };
        let shown = |value: f64| figure(published.metric, value);
        let fields =
            [("{from}", shown(from)), ("{to}", shown(to)), ("{share}", percent(1.0 - from / to)), ("{change}", change)];
        Some(fields.into_iter().fold(text.clone(), |text, (field, words)| text.replace(field, &words)))
    };
    asked.answers.iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
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

/// `p99`, `loss ratio`.
fn statistic(quantity: Quantity) -> String {
    quantity.label().replace('_', " ")
}

fn question_of_runs(summaries: &[Summary]) -> String {
    let Some(first) = summaries.first() else { return String::new() };
    let asked = match first.kind {
        Kind::Ping => "How long does a round trip take",
        Kind::Wakeup => "How late does a timer wake a thread",
        Kind::Command => "How long does a command take",
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
    let answer = answer(input);
    let found = match (input.comparisons, input.summaries) {
        _ if !answer.is_empty() => answer,
        (Some(comparisons), _) => verdict_of_comparison(comparisons),
        (None, [one]) => verdict_of_run(one),
        (None, several) => input.experiment.and_then(single).unwrap_or_else(|| verdict_of_runs(several, names)),
    };
    if input.summaries.iter().all(Summary::is_trustworthy) {
        found
    } else {
        format!("{found} A fatal caveat says why results are not to be trusted.")
    }
}

/// `p99 of the round trip delay is higher with load cpu=80% than with none: 388 µs and 61.9 µs, +527 % [+460, +611]; …`: the
/// largest decided change, and how many others there are.
fn verdict_of_comparison(comparisons: &Comparisons) -> String {
    let rows: Vec<&Comparison> = comparisons.rows.iter().filter(|row| !lacks_runs(row)).collect();
    let undecided = rows.iter().filter(|row| row.verdict == Verdict::Undecided).count();
    let is_decided = |row: &&&Comparison| !matches!(row.verdict, Verdict::Undecided | Verdict::None);
    let decided: Vec<&Comparison> = rows.iter().filter(is_decided).copied().collect();
    if rows.is_empty() {
        return "Nothing could be compared.".into();
    }
    let Some(largest) = decided.iter().copied().reduce(larger) else {
        if undecided == 0 {
            return "Neither group has what was compared: all ratios are 0.".into();
        }
        // What stands behind a semicolon is advice.
        let reason = shared_reason(&comparisons.rows).unwrap_or_default();
        let reason = reason.split(';').next().filter(|it| !it.is_empty()).map(|reason| format!(": {reason}"));
        let all = if undecided == 1 { String::new() } else { format!("all {} ", grouped(undecided as u64)) };
        let noun = if undecided == 1 { "the only comparison" } else { "comparisons" };
        return format!("Undecided in {all}{noun}{}.", reason.unwrap_or_default());
    };
    let mut parts = vec![change(comparisons, largest)];
    match decided.len() - 1 {
        0 => {}
        1 => parts.push("1 smaller change is decided".into()),
        more => parts.push(format!("{} smaller changes are decided", grouped(more as u64))),
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

/// The row with the larger change: infinite figures first, then ratios such as losses that differ; the first of equal ones.
fn larger<'a>(one: &'a Comparison, other: &'a Comparison) -> &'a Comparison {
    let size = |row: &Comparison| match row.method {
        ComparisonMethod::Separated | ComparisonMethod::Placements => (2, 0.0),
        _ if row.quantity.is_share() && row.verdict != Verdict::Equivalent => (1, 0.0),
        _ => (0, row.relative.map_or(0.0, |change| change.value.ln_1p().abs())),
    };
    if size(other) > size(one) { other } else { one }
}

fn change(comparisons: &Comparisons, row: &Comparison) -> String {
    let name = statistic(row.quantity);
    let name = if row.quantity.is_share() { name } else { format!("{name} of the {}", row.quantity.metric_title()) };
    let word = if row.verdict == Verdict::Equivalent { "not different" } else { row.verdict.word() };
    let found = match (row.method, row.centres) {
        (ComparisonMethod::Separated | ComparisonMethod::Placements, _) => undecided_reason(row).unwrap_or_default(),
        (_, Some((baseline, candidate))) => {
            let shown = |value: f64| quantity_figure(row.quantity, value, baseline);
            format!("{} and {}, {}", shown(candidate), shown(baseline), quantity_change(row))
        }
        (_, None) => quantity_change(row),
    };
    let mut words = format!("{name} is {word} {}: {found}", pair_sentence(comparisons, row));
    // The first letter of `p99` stays.
    if !words.starts_with('p') {
        words[..1].make_ascii_uppercase();
    }
    words
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
    let first = summaries.first().filter(|_| n == lost || n == 1)?;
    let in_runs = if summaries.len() > 1 { format!(" in {}", counted(summaries.len(), "run")) } else { String::new() };
    let (rows, infinite) = (first.kind.rows(), first.kind.infinite());
    let row = rows.trim_end_matches('s');
    Some(match n {
        0 if first.metric.is_rate() => format!("Plots of rates are missing: nothing was measured{in_runs}."),
        0 => format!("Plots of delays are missing: nothing was measured{in_runs}."),
        1 if lost == 0 => format!("Plots are missing: there is one {row}."),
        1 => format!("Plots of delays are missing: the only {row}{in_runs} counts as {infinite}."),
        _ => format!("Plots of delays are missing: all of {} {rows}{in_runs} count as {infinite}.", grouped(n)),
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
        lost => format!("; {} {}", grouped(lost), summary.kind.infinite()),
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
