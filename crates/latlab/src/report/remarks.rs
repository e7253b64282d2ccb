//! The labelled lines: what became of the probes, by what instrument, at what price.

use super::loads;
use super::view::RemarkView;
use crate::analysis::Summary;
use crate::stats::Interval;
use crate::units::human::{TimeUnit, grouped, percent, significant, span};

/// What a run has to say on something, if it has.
type Line = fn(&Summary) -> Option<String>;

/// The labelled lines; with several runs those that all of them have alike.
pub(super) fn of(summaries: &[Summary]) -> Vec<RemarkView> {
    let Some(first) = summaries.first() else { return Vec::new() };
    let lines: [(&str, Line); 5] = [
        ("settings", settings),
        ("fates", fates),
        ("deadline", deadline),
        ("time-outs", time_outs),
        ("instrument", instrument),
    ];
    let common = lines.into_iter().filter_map(|(label, line)| {
        let text = line(first)?;
        let same = summaries.iter().all(|summary| line(summary).as_ref() == Some(&text));
        same.then(|| RemarkView { label: label.into(), text })
    });
    let alike = summaries.iter().all(|summary| summary.loads == first.loads);
    let loads = if alike { loads::remarks(&first.loads) } else { Vec::new() };
    loads.into_iter().chain(common).collect()
}

/// What was set for the time of the run.
fn settings(summary: &Summary) -> Option<String> {
    let settings = summary.condition.settings.iter().map(|(place, value)| format!("{place}={value}"));
    settings.reduce(|all, one| format!("{all} · {one}"))
}

/// Counts, where any of them is out of the ordinary.
fn fates(summary: &Summary) -> Option<String> {
    let counts = &summary.counts;
    let odd = [
        ("late", counts.late),
        ("lost", counts.lost),
        ("send failed", counts.send_failed),
        ("not sent", counts.not_sent),
        ("duplicates", counts.duplicates),
        ("reordered", counts.reordered),
    ];
    let odd: Vec<_> = odd.into_iter().filter(|(_, count)| *count > 0).collect();
    let usual = [("sent", counts.sent), ("answered", counts.answered)];
    let words = usual.into_iter().chain(odd.iter().copied()).map(|(word, count)| format!("{word} {}", grouped(count)));
    let loss = summary.ratios.loss.filter(|loss| *loss > 0.0);
    let loss = loss.map(|loss| format!("loss ratio {}", sure(loss, summary.ratios.loss_interval)));
    (!odd.is_empty()).then(|| words.chain(loss).collect::<Vec<_>>().join(" · "))
}

fn deadline(summary: &Summary) -> Option<String> {
    let deadline = summary.deadline?;
    let ratios = &summary.ratios;
    let share = ratios.deadline_miss.map(|share| format!(": {}", sure(share, ratios.deadline_miss_interval)));
    let share = share.unwrap_or_default();
    Some(format!(
        "{} missed by {} of {} due probes{share}",
        span(deadline.deadline_ns),
        grouped(deadline.missed),
        grouped(deadline.due)
    ))
}

/// `1.67 % (95 %: 1.27–2.19 %)`
fn sure(share: f64, interval: Option<Interval>) -> String {
    let ends = interval.and_then(|interval| Some((interval.low?, interval.high?, interval.confidence)));
    let around = ends.map(|(low, high, confidence)| {
        let low = percent(low);
        format!(" ({}: {}–{})", percent(confidence), low.trim_end_matches(" %"), percent(high))
    });
    format!("{}{}", percent(share), around.unwrap_or_default())
}

fn time_outs(summary: &Summary) -> Option<String> {
    let spent = summary.timed_out_ns;
    (spent.0 > 0).then(|| format!("{} were spent waiting for answers that did not come", span(spent)))
}

/// The floor under every figure.
fn instrument(summary: &Summary) -> Option<String> {
    let instrument = &summary.instrument;
    let resolution = instrument.clock_resolution_ns.map(|step| format!(" in steps of {}", span(step)));
    let clock = match instrument.clock_read_ns {
        Some(cost) => format!("clock {} ns a read{}", significant(cost), resolution.unwrap_or_default()),
        None => "clock cost unknown".into(),
    };
    let tag = match instrument.tag_ns {
        Some(cost) => format!("tag {} ns", significant(cost)),
        None if summary.authenticated => "tag cost unknown".into(),
        None => "no tag".into(),
    };
    let bare = match &instrument.bare_loop {
        Some(bare) => {
            let unit = TimeUnit::suiting(bare.p50_ns);
            format!("bare loop on these pins p50 {} {}", unit.figure(bare.p50_ns), unit.symbol())
        }
        None => "bare loop not measured (`latlab doctor --calibrate`)".into(),
    };
    Some([clock, tag, bare].join(" · "))
}
