//! `latlab run wakeup-governor`: whether the call that sleeps explains why longer sleeps wake later.

use std::collections::BTreeMap;
use std::path::Path;

use super::runs;
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Effect, ObservedRun, RunGroups, compare, parse_estimand,
};
use crate::analysis::experiment::{SleepRow, TimeoutSlack, common_setting};
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentState, RunState};
use crate::metric::Metric;
use crate::plan::{Factors, defaults};
use crate::recording::Recording;
use crate::report::experiment::timeout_slack::{SlackRowView, TimeoutSlackView};
use crate::units::Nanos;
use crate::units::human::parse_duration;

/// The call that stretches nothing.
const EXACT: &str = "clock_nanosleep";

/// What the experiment tells; none where it is another.
pub(super) fn view(directory: &Path, standing: &ExperimentState) -> Result<Option<SlackRowView>, Failure> {
    if standing.recipe.as_ref().is_none_or(|recipe| recipe.name != "wakeup-governor") {
        return Ok(None);
    }
    let mut idle: Vec<_> = runs::judged(standing).filter(|(run, _)| is_idle(run)).collect();
    idle.sort_by_key(|(run, _)| run.place.condition);
    let Some(setting) = common_setting(idle.iter().map(|(run, _)| &run.key.factors), EXACT) else {
        return Ok(Some(SlackRowView::Untold));
    };
    idle.retain(|(run, _)| run.key.factors.get("set").map_or("", String::as_str) == setting);
    let mut agenda = ComparisonRequest::default();
    // The median of a run: one disturbed wake-up in a hundred moves a mean by more than the call does.
    let median = parse_estimand(Some(Metric::WakeupLatency.name()), "p50")?;
    agenda.ask(median, Some(Factors::from([("via".into(), EXACT.into())])), None);
    let mut by_interval: BTreeMap<Nanos, Vec<ObservedRun>> = BTreeMap::new();
    let mut facts = None;
    for (run, name) in &idle {
        let Some(Ok(interval)) = run.key.factors.get("interval").map(|text| parse_duration(text)) else { continue };
        let recording = Recording::open(&directory.join("runs").join(name))?;
        facts = facts.or_else(|| recording.manifest().run.wakeup.clone());
        by_interval.entry(interval).or_default().push(ObservedRun::of(&recording, &agenda.estimands())?);
    }
    // An interval that only one call has runs of has nothing to tell.
    by_interval.retain(|_, runs| runs.iter().any(is_stretched) && !runs.iter().all(is_stretched));
    let row = |(interval, runs): (&Nanos, &Vec<ObservedRun>)| {
        let groups = RunGroups::by("via", runs.clone()).ok()?;
        let compared = compare(groups, &agenda, &ComparisonOptions::at(defaults::CONFIDENCE)).ok()?;
        SleepRow::of(*interval, compared.rows.first()?)
    };
    let rows = by_interval.iter().filter_map(row).collect();
    let Some(growth) = TimeoutSlack::of(rows, grown(&by_interval)) else { return Ok(Some(SlackRowView::Untold)) };
    let facts = facts.unwrap_or_default();
    let nice = facts.niceness.is_some_and(|niceness| niceness > 0);
    let setting = Some(setting.to_owned()).filter(|setting| !setting.is_empty());
    Ok(Some(SlackRowView::Told(TimeoutSlackView { growth, setting, slack: facts.timer_slack_ns, nice })))
}

fn is_stretched(run: &ObservedRun) -> bool {
    run.levels.get("via").is_some_and(|via| via != EXACT)
}

/// By how much the other call is later after the longest interval than after the shortest.
fn grown(by_interval: &BTreeMap<Nanos, Vec<ObservedRun>>) -> Option<Effect> {
    let (shortest, longest) = (by_interval.values().next()?, by_interval.values().next_back()?);
    let runs: Vec<ObservedRun> = shortest.iter().chain(longest).filter(|run| is_stretched(run)).cloned().collect();
    let from = shortest.first()?.levels.get("interval")?.clone();
    let mut agenda = ComparisonRequest::default();
    let median = parse_estimand(Some(Metric::WakeupLatency.name()), "p50").ok()?;
    agenda.ask(median, Some(Factors::from([("interval".into(), from)])), None);
    let groups = RunGroups::by("interval", runs).ok()?;
    compare(groups, &agenda, &ComparisonOptions::at(defaults::CONFIDENCE)).ok()?.rows.first()?.difference
}

/// Heaters wake the CPU that the publication's growing rows leave idle.
fn is_idle(run: &RunState) -> bool {
    run.key.factors.get("load").is_none_or(|load| load == "none")
}
