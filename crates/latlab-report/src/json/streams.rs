//! The objects `rates`, `stream`, `search` and `stages` of `latlab.summary/1`.

use serde_json::{Value, json};

use super::statistics::delays;
use crate::analysis::{GoalFigures, StageFigures, StreamFigures, StreamTotals, Summary};

pub(super) fn rates(summary: &Summary) -> Option<Value> {
    let mut rates = json!(summary.stream.as_ref()?.rates);
    rates["loss_ratio"] = json!(summary.ratios.loss);
    Some(rates)
}

/// Figures of a stream other than its rates.
pub(super) fn stream(summary: &Summary) -> Option<Value> {
    let stream = summary.stream.as_ref()?;
    Some(json!({
        "size_bytes": stream.size_bytes,
        "flows": stream.flows.iter().map(|flow| self::flow(flow, summary)).collect::<Vec<_>>(),
        "interval_ns": (!summary.is_imported).then_some(crate::analysis::STREAM_INTERVAL),
        "socket_drops": stream.socket_drops,
        "socket_drops_are_merged": stream.drops_are_merged,
        "burst_packets": stream.burst_packets,
        "send_buffer_bytes": stream.send_buffer_bytes,
        "receive_buffer_bytes": stream.receive_buffer_bytes,
        "sender_cpu": stream.sender_cpu,
        "receiver_cpu": stream.receiver_cpu,
    }))
}

/// A flow without what is unknown of an imported log.
fn flow(flow: &StreamTotals, summary: &Summary) -> Value {
    let counted = |count: u64| (!summary.is_imported).then_some(count);
    json!({
        "sent": flow.known_sent(),
        "decided": flow.decided,
        "delivered": flow.delivered,
        "lost": summary.knows_losses.then(|| flow.lost()),
        "reordered": counted(flow.reordered),
        "duplicates": counted(flow.duplicates),
        "outside_window": counted(flow.outside_window),
        "refused": counted(flow.refused),
        "skipped": counted(flow.skipped),
        "sending_ns": (!flow.is_of_receiver_alone()).then_some(flow.sending),
        "counting_ns": flow.counting,
    })
}

/// A rate of packets in bit/s of payload.
fn bits(stream: &StreamFigures, pps: Option<f64>) -> Option<f64> {
    pps.map(|pps| pps * f64::from(stream.size_bytes) * 8.0)
}

pub(super) fn search(summary: &Summary) -> Option<Value> {
    let stream = summary.stream.as_ref()?;
    let search = stream.search.as_ref()?;
    let goal = |GoalFigures { goal, bounds, end }: &GoalFigures| {
        json!({
            "loss_ratio": goal.loss_ratio,
            "final_trial_ns": goal.final_trial_ns,
            "duration_sum_ns": goal.duration_sum_ns,
            "exceed_ratio": goal.exceed_ratio,
            "width": goal.width,
            "confirming_ns": goal.confirming_ns,
            "end": end.word(),
            "lower_pps": bounds.lower_pps,
            "lower_bps": bits(stream, bounds.lower_pps),
            "upper_pps": bounds.upper_pps,
            "upper_bps": bits(stream, bounds.upper_pps),
            "conditional_throughput_pps": bounds.conditional_pps,
            "conditional_throughput_bps": bits(stream, bounds.conditional_pps),
        })
    };
    Some(json!({
        "found_pps": search.found_pps,
        "found_bps": bits(stream, search.found_pps),
        "floor_pps": search.min_pps,
        "ceiling_pps": search.max_pps,
        "trials": search.trials,
        "took_ns": search.took,
        "within_ns": search.within,
        "ending": search.ending,
        "goals": search.goals.iter().map(goal).collect::<Vec<_>>(),
    }))
}

pub(super) fn stages(summary: &Summary) -> Option<Value> {
    let stream = summary.stream.as_ref().filter(|stream| !stream.stages.is_empty())?;
    let stage = |stage: &StageFigures| {
        json!({
            "share": stage.share,
            "offered_pps": stage.offered_pps,
            "delivered_pps": stage.delivered_pps,
            "offered_bps": bits(stream, stage.offered_pps),
            "delivered_bps": bits(stream, stage.delivered_pps),
            "loss_ratio": stage.loss_ratio,
            "not_carried_ratio": stage.not_carried_ratio,
            "round_trip_delay": stage.round_trip.as_ref().map(delays),
            "unsent_probes": stage.unsent_probes,
        })
    };
    Some(stream.stages.iter().map(stage).collect())
}
