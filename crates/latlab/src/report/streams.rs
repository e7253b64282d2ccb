//! Streams: what was offered, what arrived, what it cost; as tables, as labelled lines, and as documents.

use serde::Serialize;

use super::stages;
use super::view::{ColumnView, GroupView, RowView, TableView, names};
use crate::analysis::{CpuCost, StreamFigures, StreamTotals, Summary};
use crate::metric::Metric;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, bit_rate, grouped, percent, quantile, significant, typed_size};

/// The tables of runs that are all streams: rates and costs, then how even they were.
pub(super) fn tables(summaries: &[Summary]) -> Vec<TableView> {
    let names = names(summaries);
    let mut tables = stages::tables(summaries, &names);
    tables.extend(match summaries {
        [one] => one.stream.iter().map(|stream| both_ends(stream, one)).collect(),
        several => vec![rows_of_runs(several, &names)],
    });
    tables.extend(evenness(summaries, &names));
    tables.extend(summaries.iter().zip(&names).filter_map(|(summary, name)| by_flow(summary, name)));
    tables
}

pub(super) fn column(heading: &str, cells: impl IntoIterator<Item = String>) -> ColumnView {
    ColumnView { heading: heading.into(), cells: cells.into_iter().collect() }
}

pub(super) fn or_absent(value: Option<String>) -> String {
    value.unwrap_or_else(|| ABSENT.into())
}

pub(super) fn packet_rate(pps: f64) -> String {
    match pps {
        pps if pps >= 999_500.0 => format!("{} Mpps", significant(pps / 1e6)),
        pps if pps >= 999.5 => format!("{} kpps", significant(pps / 1e3)),
        pps => format!("{} pps", significant(pps)),
    }
}

fn nanos(ns: Option<f64>) -> String {
    or_absent(ns.map(|ns| {
        let unit = TimeUnit::suiting(ns);
        format!("{} {}", unit.figure(ns), unit.symbol())
    }))
}

/// One run: a row for each end.
fn both_ends(stream: &StreamFigures, summary: &Summary) -> TableView {
    let (rates, total) = (&stream.rates, &stream.total);
    let loss = summary.ratios.loss.map_or_else(String::new, |loss| format!(" ({})", percent(loss)));
    let ends = [
        (rates.offered_bps, rates.offered_pps, total.sent, stream.sender_cpu),
        (rates.delivered_bps, rates.delivered_pps, total.delivered, stream.receiver_cpu),
    ];
    let cpu = |of: fn(&CpuCost) -> String| ends.map(|end| or_absent(end.3.as_ref().map(of)));
    let columns = vec![
        column("rate", ends.map(|end| or_absent(end.0.map(bit_rate)))),
        column("", ends.map(|end| or_absent(end.1.map(packet_rate)))),
        column("packets", ends.map(|end| grouped(end.2))),
        column("CPU", cpu(|cost| or_absent(cost.share.map(percent)))),
        column("a packet", cpu(|cost| nanos(cost.per_packet_ns))),
        column("a byte", cpu(|cost| nanos(cost.per_byte_ns))),
    ];
    TableView {
        title: "rates of payload".into(),
        note: format!("sent {} · lost {}{loss}", grouped(total.decided), grouped(total.lost())),
        corner: String::new(),
        rows: ["offered", "delivered"].map(|label| RowView { label: label.into(), quiet: false }).into(),
        groups: vec![GroupView { heading: String::new(), columns }],
    }
}

/// Several runs: a row for each.
fn rows_of_runs(summaries: &[Summary], names: &[String]) -> TableView {
    let all = |of: &dyn Fn(&Summary, &StreamFigures) -> String| {
        let cells =
            summaries.iter().map(|summary| or_absent(summary.stream.as_ref().map(|stream| of(summary, stream))));
        cells.collect::<Vec<_>>()
    };
    let per_packet = |cost: Option<CpuCost>| nanos(cost.and_then(|cost| cost.per_packet_ns));
    let columns = vec![
        column("offered", all(&|_, stream| or_absent(stream.rates.offered_bps.map(bit_rate)))),
        column("delivered", all(&|_, stream| or_absent(stream.rates.delivered_bps.map(bit_rate)))),
        column("", all(&|_, stream| or_absent(stream.rates.delivered_pps.map(packet_rate)))),
        column("lost", all(&|summary, _| or_absent(summary.ratios.loss.map(percent)))),
        column("sending", all(&|_, stream| per_packet(stream.sender_cpu))),
        column("receiving", all(&|_, stream| per_packet(stream.receiver_cpu))),
    ];
    TableView {
        title: "rates of payload; CPU time of a packet".into(),
        note: String::new(),
        corner: String::new(),
        rows: names.iter().map(|label| RowView { label: label.clone(), quiet: false }).collect(),
        groups: vec![GroupView { heading: String::new(), columns }],
    }
}

/// How the delivered rate was spread over the intervals.
fn evenness(summaries: &[Summary], names: &[String]) -> Option<TableView> {
    let described: Vec<(&String, &Description)> = names
        .iter()
        .zip(summaries)
        .filter_map(|(name, summary)| Some((name, summary.metrics.get(&Metric::DeliveredRate)?)))
        .filter(|(_, described)| described.n > 0)
        .collect();
    let (_, first) = described.first()?;
    let figure = |value: Option<f64>| or_absent(value.map(bit_rate));
    let all = |of: &dyn Fn(&Description) -> Option<f64>| {
        described.iter().map(|(_, described)| figure(of(described))).collect::<Vec<_>>()
    };
    let mut columns = vec![column("min", all(&|described| described.min.map(|min| min as f64)))];
    for estimate in &first.quantiles {
        let cell = |described: &Description| {
            let found = described.quantiles.iter().find(|other| other.q == estimate.q);
            match found {
                Some(found) if found.supported => figure(found.value),
                Some(found) => found.lower_bound.map_or_else(|| "n/a".into(), |bound| format!("≥ {}", bit_rate(bound))),
                None => ABSENT.into(),
            }
        };
        columns.push(column(&quantile(estimate.q), described.iter().map(|(_, described)| cell(described))));
    }
    columns.push(column("max", all(&|described| described.max.map(|max| max as f64))));
    let (least, most) = (described.iter().map(|(_, one)| one.n).min()?, described.iter().map(|(_, one)| one.n).max()?);
    let n = if least == most { grouped(most) } else { format!("{} to {}", grouped(least), grouped(most)) };
    Some(TableView {
        title: "delivered rate over intervals of 100 ms".into(),
        note: format!("n {n}"),
        corner: String::new(),
        rows: described.iter().map(|(name, _)| RowView { label: (*name).clone(), quiet: false }).collect(),
        groups: vec![GroupView { heading: String::new(), columns }],
    })
}

/// A row for each flow, where there are several.
fn by_flow(summary: &Summary, name: &str) -> Option<TableView> {
    let stream = summary.stream.as_ref().filter(|stream| stream.flows.len() > 1)?;
    let all = |of: &dyn Fn(&StreamTotals) -> String| stream.flows.iter().map(of).collect::<Vec<_>>();
    let rate = |packets: u64, span: Nanos| {
        let bits = packets as f64 * f64::from(stream.size_bytes) * 8.0;
        or_absent((span > Nanos::ZERO).then(|| bit_rate(bits / span.as_secs_f64())))
    };
    let columns = vec![
        column("offered", all(&|flow| rate(flow.sent, flow.sending))),
        column("delivered", all(&|flow| rate(flow.delivered, flow.counting))),
        column("packets", all(&|flow| grouped(flow.decided))),
        column("lost", all(&|flow| grouped(flow.lost()))),
        column("reordered", all(&|flow| grouped(flow.reordered))),
        column("duplicates", all(&|flow| grouped(flow.duplicates))),
    ];
    let of_run = if name.is_empty() { String::new() } else { format!("{name} · ") };
    Some(TableView {
        title: format!("{of_run}each flow"),
        note: String::new(),
        corner: "flow".into(),
        rows: (0..stream.flows.len()).map(|flow| RowView { label: flow.to_string(), quiet: false }).collect(),
        groups: vec![GroupView { heading: String::new(), columns }],
    })
}

/// What became of the packets, where anything out of the ordinary did.
pub(super) fn packets(summary: &Summary) -> Option<String> {
    let stream = summary.stream.as_ref()?;
    let total = &stream.total;
    let drops = match (stream.socket_drops, stream.drops_are_merged) {
        (Some(drops), true) if drops > 0 => {
            Some(format!("at the receiver's socket at least {} buffers", grouped(drops)))
        }
        (Some(drops), false) if total.lost() > 0 => {
            Some(format!("at the receiver's socket {}", grouped(drops.min(total.lost()))))
        }
        _ => None,
    };
    let odd = [
        ("lost", total.lost()),
        ("reordered", total.reordered),
        ("duplicates", total.duplicates),
        ("too late to be known as new", total.outside_window),
        ("undecided", total.sent.saturating_sub(total.decided)),
        ("refused and sent again", total.refused),
        ("skipped", total.skipped),
    ];
    let words =
        odd.into_iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{word} {}", grouped(count)));
    words.chain(drops).reduce(|all, one| format!("{all} · {one}"))
}

/// How packets left: in what bursts, through what buffers.
pub(super) fn sending(summary: &Summary) -> Option<String> {
    let stream = summary.stream.as_ref()?;
    let bursts = (stream.burst_packets > 0).then(|| match stream.burst_packets {
        1 => "one packet at a time".to_owned(),
        burst => format!("bursts of at most {} packets", grouped(burst)),
    });
    let buffer =
        |what: &str, granted: Option<u32>| granted.map(|granted| format!("{what} buffer {}", typed_size(granted)));
    let (send, receive) = stream.buffers;
    let parts = bursts.into_iter().chain(buffer("send", send)).chain(buffer("receive", receive));
    parts.reduce(|all, one| format!("{all} · {one}"))
}

/// `rates` of the contract, section 5.
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

/// What a stream came to beyond its rates.
#[derive(Serialize)]
pub(super) struct StreamDocument {
    size_bytes: u32,
    flows: Vec<FlowDocument>,
    interval_ns: Nanos,
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
    sent: u64,
    decided: u64,
    delivered: u64,
    lost: u64,
    reordered: u64,
    duplicates: u64,
    outside_window: u64,
    refused: u64,
    skipped: u64,
    sending_ns: Nanos,
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
    pub(super) fn of(stream: &StreamFigures) -> StreamDocument {
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
            flows: stream.flows.iter().map(FlowDocument::of).collect(),
            interval_ns: crate::analysis::STREAM_INTERVAL,
            socket_drops: stream.socket_drops,
            socket_drops_are_merged: stream.drops_are_merged,
            burst_packets: stream.burst_packets,
            send_buffer_bytes: stream.buffers.0,
            receive_buffer_bytes: stream.buffers.1,
            sender_cpu: cpu(stream.sender_cpu),
            receiver_cpu: cpu(stream.receiver_cpu),
        }
    }
}

impl FlowDocument {
    fn of(flow: &StreamTotals) -> FlowDocument {
        FlowDocument {
            sent: flow.sent,
            decided: flow.decided,
            delivered: flow.delivered,
            lost: flow.lost(),
            reordered: flow.reordered,
            duplicates: flow.duplicates,
            outside_window: flow.outside_window,
            refused: flow.refused,
            skipped: flow.skipped,
            sending_ns: flow.sending,
            counting_ns: flow.counting,
        }
    }
}
