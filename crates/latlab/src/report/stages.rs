//! A search for a rate and the probes beside a stream: as tables, and as documents.

use serde::Serialize;

use super::json::{MetricDocument, whole};
use super::streams::{column, or_absent, packet_rate};
use super::view::{ColumnView, GroupView, RowView, TableView};
use crate::analysis::{GoalEnd, GoalFigures, SearchFigures, StageFigures, Summary};
use crate::stats::{Description, QuantileEstimate};
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, bit_rate, grouped, percent, quantile, span};

/// The tables of runs: what was found for each goal, then the delays of each stage.
pub(super) fn tables(summaries: &[Summary], names: &[String]) -> Vec<TableView> {
    let of = |(summary, name): (&Summary, &String)| {
        let Some(stream) = &summary.stream else { return Vec::new() };
        let bits = f64::from(stream.size_bytes) * 8.0;
        let title = |title: &str| if name.is_empty() { title.to_owned() } else { format!("{name} · {title}") };
        let found = stream.beside.search.as_ref().map(|search| found(search, bits, title("rates found")));
        let delays = delays(&stream.beside.stages, bits, title("round trip delay beside the stream"));
        found.into_iter().chain(delays).collect()
    };
    summaries.iter().zip(names).flat_map(of).collect()
}

fn found(search: &SearchFigures, bits: f64, title: String) -> TableView {
    let all = |cell: &dyn Fn(&GoalFigures) -> String| search.goals.iter().map(cell).collect::<Vec<_>>();
    let rate = |pps: Option<f64>| or_absent(pps.map(|pps| bit_rate(pps * bits)));
    let columns = vec![
        column("lower bound", all(&|goal| rate(goal.bounds.lower_pps))),
        column("", all(&|goal| or_absent(goal.bounds.lower_pps.map(packet_rate)))),
        column("upper bound", all(&|goal| rate(goal.bounds.upper_pps))),
        column("width", all(&|goal| goal.bounds.width().map_or_else(|| ending(goal.end).into(), percent))),
        column("delivered", all(&|goal| rate(goal.bounds.conditional_pps))),
    ];
    TableView {
        title,
        note: match search.took {
            // It was killed before it could tell.
            Nanos::ZERO => format!("{} trials", grouped(search.trials as u64)),
            took => format!("{} trials in {}", grouped(search.trials as u64), span(took)),
        },
        corner: "loss up to".into(),
        rows: search.goals.iter().map(|goal| row(percent(goal.goal.loss_ratio))).collect(),
        groups: plain(columns),
    }
}

fn plain(columns: Vec<ColumnView>) -> Vec<GroupView> {
    vec![GroupView { heading: String::new(), columns }]
}

/// In the place of a width, where a bound is missing.
const fn ending(end: GoalEnd) -> &'static str {
    match end {
        GoalEnd::Reached => ABSENT,
        GoalEnd::AtCeiling => "ceiling",
        GoalEnd::AtFloor => "floor",
        GoalEnd::Undecided => "undecided",
    }
}

fn row(label: String) -> RowView {
    RowView { label, quiet: false }
}

/// The delays of each stage, where there were probes.
fn delays(stages: &[StageFigures], bits: f64, title: String) -> Option<TableView> {
    let with: Vec<(&StageFigures, &Description)> =
        stages.iter().filter_map(|stage| Some((stage, stage.round_trip.as_ref()?))).collect();
    let (_, first) = with.first()?;
    let unit = unit_of(&with);
    let all = |cell: &dyn Fn(&StageFigures, &Description) -> String| {
        with.iter().map(|(stage, delay)| cell(stage, delay)).collect::<Vec<_>>()
    };
    let rate = |pps: Option<f64>| or_absent(pps.map(|pps| bit_rate(pps * bits)));
    let mut columns = vec![
        column("offered", all(&|stage, _| rate(stage.offered_pps))),
        column("delivered", all(&|stage, _| rate(stage.delivered_pps))),
        column("lost", all(&|stage, _| or_absent(stage.loss_ratio.map(percent)))),
        column("probes", all(&|_, delay| probes(delay))),
    ];
    for estimate in &first.quantiles {
        columns.push(column(&quantile(estimate.q), all(&|_, delay| figure(delay, estimate.q, unit))));
    }
    columns.push(column("max", all(&|_, delay| or_absent(delay.max.map(|max| unit.figure(max as f64))))));
    let label = |stage: &StageFigures| stage.share.map_or_else(|| "as asked".into(), percent);
    Some(TableView {
        title: format!("{title}, {}", unit.symbol()),
        note: String::new(),
        corner: if with.iter().any(|(stage, _)| stage.share.is_some()) { "rate".into() } else { String::new() },
        rows: with.iter().map(|(stage, _)| row(label(stage))).collect(),
        groups: plain(columns),
    })
}

/// `834`, `834 (3 lost)`
fn probes(delay: &Description) -> String {
    match delay.lost {
        0 => grouped(delay.n),
        lost => format!("{} ({} lost)", grouped(delay.n), grouped(lost)),
    }
}

/// That of the middle stage: an idle path and a full one differ by orders of magnitude.
fn unit_of(stages: &[(&StageFigures, &Description)]) -> TimeUnit {
    let middle = |described: &Description| described.quantiles.first().and_then(|estimate| estimate.value);
    let mut sizes: Vec<f64> = stages.iter().filter_map(|(_, described)| middle(described)).collect();
    sizes.sort_by(f64::total_cmp);
    TimeUnit::suiting(sizes.get(sizes.len() / 2).copied().unwrap_or(1_000.0))
}

fn figure(described: &Description, q: f64, unit: TimeUnit) -> String {
    let found = described.quantiles.iter().find(|estimate| estimate.q == q);
    match found {
        _ if described.n == 0 => ABSENT.into(),
        Some(QuantileEstimate { supported: false, lower_bound: Some(bound), .. }) => {
            format!("≥ {}", unit.figure(*bound))
        }
        Some(QuantileEstimate { supported: false, .. }) => "n/a".into(),
        Some(QuantileEstimate { lost: true, value: None, .. }) => "lost".into(),
        Some(QuantileEstimate { value, .. }) => or_absent(value.map(|value| unit.figure(value))),
        None => ABSENT.into(),
    }
}

/// What the document of a summary says of both, where there is anything to say.
#[derive(Serialize)]
pub(super) struct StagesDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<Vec<StageDocument>>,
}

impl StagesDocument {
    pub(super) fn of(summary: &Summary) -> StagesDocument {
        StagesDocument { search: SearchDocument::of(summary), stages: StageDocument::all_of(summary) }
    }
}

#[derive(Serialize)]
struct SearchDocument {
    found_pps: Option<f64>,
    found_bps: Option<f64>,
    floor_pps: f64,
    ceiling_pps: f64,
    trials: usize,
    took_ns: Nanos,
    within_ns: Nanos,
    ending: crate::facts::SearchEnding,
    goals: Vec<GoalDocument>,
}

#[derive(Serialize)]
struct GoalDocument {
    loss_ratio: f64,
    final_trial_ns: Nanos,
    duration_sum_ns: Nanos,
    exceed_ratio: f64,
    width: f64,
    end: &'static str,
    lower_pps: Option<f64>,
    lower_bps: Option<f64>,
    upper_pps: Option<f64>,
    upper_bps: Option<f64>,
    conditional_throughput_pps: Option<f64>,
    conditional_throughput_bps: Option<f64>,
}

#[derive(Serialize)]
struct StageDocument {
    share: Option<f64>,
    offered_pps: Option<f64>,
    delivered_pps: Option<f64>,
    offered_bps: Option<f64>,
    delivered_bps: Option<f64>,
    loss_ratio: Option<f64>,
    not_carried_ratio: Option<f64>,
    round_trip_delay: Option<MetricDocument>,
    unsent_probes: u64,
}

impl SearchDocument {
    fn of(summary: &Summary) -> Option<SearchDocument> {
        let stream = summary.stream.as_ref()?;
        let search = stream.beside.search.as_ref()?;
        let bits = |pps: Option<f64>| pps.map(|pps| pps * f64::from(stream.size_bytes) * 8.0);
        let goal = |figures: &GoalFigures| GoalDocument {
            loss_ratio: figures.goal.loss_ratio,
            final_trial_ns: figures.goal.final_trial_ns,
            duration_sum_ns: figures.goal.duration_sum_ns,
            exceed_ratio: figures.goal.exceed_ratio,
            width: figures.goal.width,
            end: figures.end.word(),
            lower_pps: figures.bounds.lower_pps,
            lower_bps: bits(figures.bounds.lower_pps),
            upper_pps: figures.bounds.upper_pps,
            upper_bps: bits(figures.bounds.upper_pps),
            conditional_throughput_pps: figures.bounds.conditional_pps,
            conditional_throughput_bps: bits(figures.bounds.conditional_pps),
        };
        Some(SearchDocument {
            found_pps: search.found_pps,
            found_bps: bits(search.found_pps),
            floor_pps: search.reach_pps.0,
            ceiling_pps: search.reach_pps.1,
            trials: search.trials,
            took_ns: search.took,
            within_ns: search.within,
            ending: search.ending,
            goals: search.goals.iter().map(goal).collect(),
        })
    }
}

impl StageDocument {
    /// The stages of `summary`, where it had any.
    fn all_of(summary: &Summary) -> Option<Vec<StageDocument>> {
        let stream = summary.stream.as_ref()?;
        let bits = |pps: Option<f64>| pps.map(|pps| pps * f64::from(stream.size_bytes) * 8.0);
        let stage = |stage: &StageFigures| StageDocument {
            share: stage.share,
            offered_pps: stage.offered_pps,
            delivered_pps: stage.delivered_pps,
            offered_bps: bits(stage.offered_pps),
            delivered_bps: bits(stage.delivered_pps),
            loss_ratio: stage.loss_ratio,
            not_carried_ratio: stage.not_carried_ratio,
            round_trip_delay: stage.round_trip.as_ref().map(whole),
            unsent_probes: stage.unsent_probes,
        };
        let stages: Vec<StageDocument> = stream.beside.stages.iter().map(stage).collect();
        (!stages.is_empty()).then_some(stages)
    }
}
