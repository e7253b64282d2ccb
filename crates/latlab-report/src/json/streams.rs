//! JSON objects `rates`, `stream` and `search` of `latlab.summary/1`.

use serde::Serialize;

use super::figures::{MetricDocument, whole};
use crate::analysis::{CpuCost, GoalFigures, StageFigures, StreamFigures, StreamTotals, Summary};
use crate::units::Nanos;

/// Objects `search` and `stages`; absent keys if the run had neither.
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
        let search = stream.search.as_ref()?;
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
            floor_pps: search.min_pps,
            ceiling_pps: search.max_pps,
            trials: search.trials,
            took_ns: search.took,
            within_ns: search.within,
            ending: search.ending,
            goals: search.goals.iter().map(goal).collect(),
        })
    }
}

impl StageDocument {
    /// Returns the stages of `summary`; `None` if it has none.
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
        let stages: Vec<StageDocument> = stream.stages.iter().map(stage).collect();
        (!stages.is_empty()).then_some(stages)
    }
}

#[derive(Serialize)]
pub(super) struct RatesDocument {
    offered_pps: Option<f64>,
    delivered_pps: Option<f64>,
    offered_bps: Option<f64>,
    delivered_bps: Option<f64>,
    loss_ratio: Option<f64>,
}

impl RatesDocument {
    pub(super) fn of(stream: &StreamFigures, loss_ratio: Option<f64>) -> RatesDocument {
        let rates = &stream.rates;
        RatesDocument {
            offered_pps: rates.offered_pps,
            delivered_pps: rates.delivered_pps,
            offered_bps: rates.offered_bps,
            delivered_bps: rates.delivered_bps,
            loss_ratio,
        }
    }
}

/// The object `stream`: figures of a stream other than its rates.
#[derive(Serialize)]
pub(super) struct StreamDocument {
    size_bytes: u32,
    flows: Vec<FlowDocument>,
    interval_ns: Option<Nanos>,
    socket_drops: Option<u64>,
    socket_drops_are_merged: bool,
    burst_packets: u64,
    send_buffer_bytes: Option<u32>,
    receive_buffer_bytes: Option<u32>,
    sender_cpu: Option<CpuDocument>,
    receiver_cpu: Option<CpuDocument>,
}

#[derive(Serialize)]
struct FlowDocument {
    sent: Option<u64>,
    decided: u64,
    delivered: u64,
    lost: Option<u64>,
    reordered: Option<u64>,
    duplicates: Option<u64>,
    outside_window: Option<u64>,
    refused: Option<u64>,
    skipped: Option<u64>,
    sending_ns: Option<Nanos>,
    counting_ns: Nanos,
}

#[derive(Serialize)]
struct CpuDocument {
    used_ns: Nanos,
    share: Option<f64>,
    per_packet_ns: Option<f64>,
    per_byte_ns: Option<f64>,
}

impl StreamDocument {
    /// That of the stream of `summary`, without what is unknown of an imported log.
    pub(super) fn of(stream: &StreamFigures, summary: &Summary) -> StreamDocument {
        let cpu = |cost: Option<CpuCost>| {
            cost.map(|CpuCost { used, share, per_packet_ns, per_byte_ns }| CpuDocument {
                used_ns: used,
                share,
                per_packet_ns,
                per_byte_ns,
            })
        };
        StreamDocument {
            size_bytes: stream.size_bytes,
            flows: stream.flows.iter().map(|flow| FlowDocument::of(flow, summary)).collect(),
            interval_ns: (!summary.is_imported).then_some(crate::analysis::STREAM_INTERVAL),
            socket_drops: stream.socket_drops,
            socket_drops_are_merged: stream.drops_are_merged,
            burst_packets: stream.burst_packets,
            send_buffer_bytes: stream.send_buffer_bytes,
            receive_buffer_bytes: stream.receive_buffer_bytes,
            sender_cpu: cpu(stream.sender_cpu),
            receiver_cpu: cpu(stream.receiver_cpu),
        }
    }
}

/// What the sender counted; `None` of the log of a receiver alone.
pub(super) fn sent(totals: &StreamTotals) -> Option<u64> {
    (!totals.is_of_receiver_alone()).then_some(totals.sent)
}

impl FlowDocument {
    fn of(flow: &StreamTotals, summary: &Summary) -> FlowDocument {
        let counted = |count: u64| (!summary.is_imported).then_some(count);
        FlowDocument {
            sent: sent(flow),
            decided: flow.decided,
            delivered: flow.delivered,
            lost: summary.knows_losses.then(|| flow.lost()),
            reordered: counted(flow.reordered),
            duplicates: counted(flow.duplicates),
            outside_window: counted(flow.outside_window),
            refused: counted(flow.refused),
            skipped: counted(flow.skipped),
            sending_ns: (!flow.is_of_receiver_alone()).then_some(flow.sending),
            counting_ns: flow.counting,
        }
    }
}
