//! Runs in the ministat form: each recording is one observation, a statistic of its probes.

use super::groups::PathGroup;
use super::verdict;
use crate::analysis::{Condition, FailIf, Observed, SummaryWishes};
use crate::cli::resolve::{Grouping, MinistatJob};
use crate::console::Console;
use crate::error::Failure;
use crate::metric::Metric;
use crate::plan::WaitMode;
use crate::recording::Recording;
use crate::units::human;

/// Name and observations of each group that the recordings in `groups` make: times in ns, shares as they are.
pub(super) fn observations(
    job: &MinistatJob,
    groups: &[PathGroup],
    console: &Console,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let mut found: Vec<(String, Vec<f64>)> = Vec::new();
    for (group, path) in groups.iter().flat_map(|group| group.paths.iter().map(move |path| (group, path))) {
        let recording = Recording::open(path)?;
        if let Some(note) = recording.note() {
            console.note(note);
        }
        let name = match &job.sources.grouping {
            Grouping::By(factor) => level(&recording.manifest().condition, factor)?,
            Grouping::Paths | Grouping::Globs(_) => group.name.clone(),
        };
        let value = figure(job, &recording)?;
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => found.push((name, vec![value])),
        }
    }
    Ok(found)
}

/// The statistic of one run, read as a gate reads it.
fn figure(job: &MinistatJob, recording: &Recording) -> Result<f64, Failure> {
    let statistic = job.statistic.as_deref().unwrap_or("mean");
    let asked = format!("{} {statistic}", job.metric.as_deref().unwrap_or_default());
    let condition = FailIf::parse(&format!("{asked} >= 0")).map_err(|error| Failure {
        message: format!("cannot take `{}` of each run", asked.trim()),
        ..Failure::from(error)
    })?;
    let judging = recording.manifest().spec.judging.clone();
    let metrics = vec![condition.metric().unwrap_or(Metric::RoundTripDelay)];
    let mut wishes = SummaryWishes { judging, intervals: false, metrics };
    wishes.include(&condition);
    let summary = verdict::summary_of(recording, &wishes)?;
    let no_number = |cause: &str| {
        Failure::request(format!("`{}` has no {statistic} that can be compared", summary.recording))
            .because(cause)
            .hint("leave it out, or compare another `--statistic`, such as `loss_ratio` or a lower quantile")
    };
    match condition.judge(&summary)?.observed {
        Observed::Finite(value) => Ok(value),
        Observed::Infinite => Err(no_number("it fell among the lost probes")),
        Observed::Nothing => Err(no_number("no probe of it was measured")),
    }
}

/// What `factor` was in a run of `condition`.
fn level(condition: &Condition, factor: &str) -> Result<String, Failure> {
    let or_none = |level: Option<String>| level.unwrap_or_else(|| "none".into());
    Ok(match factor {
        "target" => condition.target.clone(),
        "transport" => or_none(condition.transport.clone()),
        "protocol" => or_none(condition.protocol.clone()),
        "size" => or_none(condition.size_bytes.map(|size| human::bytes(size.into()))),
        "schedule" => condition.schedule.clone(),
        "interval" => or_none(condition.interval_ns.map(human::typed_span)),
        "wait" => match condition.wait {
            None => or_none(None),
            Some(WaitMode::Block) => "block".into(),
            Some(WaitMode::Spin) => "spin".into(),
            Some(WaitMode::BusyPoll) => "busy-poll".into(),
        },
        "via" => or_none(condition.via.map(|via| via.word().into())),
        "source-port" => or_none(condition.source_port.map(|port| port.to_string())),
        "load" if condition.loads.is_empty() => "none".into(),
        "load" => condition.loads.join(" + "),
        _ => match factor.split_once(':') {
            Some(("tag", key)) => or_none(condition.tags.get(key).cloned()),
            Some(("setting", knob)) => or_none(condition.settings.get(knob).cloned()),
            _ => return Err(unknown(factor)),
        },
    })
}

fn unknown(factor: &str) -> Failure {
    const FACTORS: [&str; 10] =
        ["target", "transport", "protocol", "size", "schedule", "interval", "wait", "via", "source-port", "load"];
    Failure::request(format!("there is no factor `{factor}`"))
        .because(format!("factors are {}, setting:KNOB and tag:KEY", FACTORS.join(", ")))
        .hint(human::suggestion(factor, &FACTORS))
}
