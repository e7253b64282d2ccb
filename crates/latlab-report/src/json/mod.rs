//! JSON documents `latlab.summary/1` and `latlab.summaries/1`, with schemas in docs/schemas. Numbers are finite or
//! null. Keys never change their meaning; new keys are added to the schema.

pub(crate) mod statistics;
mod streams;
mod wakeups;

use serde_json::{Map, Value, json};

use super::rare_levels;
use super::view::Showing;
use super::{gates, one_way};
use crate::analysis::{Kind, Summary, Window};
use crate::metric::Metric;
use crate::stats::Description;
use statistics::{delays, statistics, without_nulls};

pub(crate) use statistics::pretty;

/// Renders a summary for one run, or a list of summaries for several, with a final newline.
pub fn render(summaries: &[Summary], showing: Showing) -> String {
    let documents: Vec<Value> = summaries.iter().map(|summary| document(summary, showing)).collect();
    match documents.as_slice() {
        [one] => pretty(one),
        several => pretty(&json!({ "schema": "latlab.summaries/1", "summaries": several })),
    }
}

fn document(summary: &Summary, showing: Showing) -> Value {
    let counts = &summary.counts;
    // Of an imported log these are unknown.
    let counted = |count: u64| (!summary.is_imported).then_some(count);
    let document = json!({
        "schema": "latlab.summary/1",
        "run": summary.run,
        "recording": showing.kept.then_some(&summary.recording),
        "kind": summary.kind.word(),
        "started_at": summary.started_at,
        "ending": summary.ending,
        "condition": summary.spec.condition(),
        "sent": sent(summary),
        "answered": counts.answered,
        "late": counted(counts.late),
        "lost": summary.knows_losses.then_some(counts.lost),
        "send_failed": counted(counts.send_failed),
        "not_sent": counted(counts.not_sent),
        "duplicates": counted(counts.duplicates),
        "reordered": counted(counts.reordered),
        "duration_ns": (summary.kind != Kind::Values).then_some(summary.duration_ns),
        "timed_out_ns": (!summary.is_imported).then_some(summary.timed_out_ns),
        "refused_pause_ns": (!summary.is_imported).then_some(summary.refused_pause_ns),
        "discovery_ns": summary.discovery_ns,
        "xdp": (!summary.xdp.is_empty()).then_some(&summary.xdp),
        "ratios": summary.ratios,
        "metrics": metrics(summary),
        "half": half(summary).filter(|_| showing.half),
        "deadline": summary.deadline,
        "windows": windows(summary),
        "wakeups": summary.wakeups.as_ref().map(wakeups::wakeups),
        "executions": summary.executions,
        "rates": streams::rates(summary),
        "stream": streams::stream(summary),
        "search": streams::search(summary),
        "stages": streams::stages(summary),
        "extremes": summary.extremes.as_ref().map(rare_levels::document),
        "one_way": summary.one_way.as_ref().map(one_way::document),
        "gates": (!summary.gates.is_empty()).then(|| gates::documents(&summary.gates)),
        "loads": summary.loads,
        "instrument": summary.instrument,
        "caveats": summary.caveats,
    });
    // What a kind of run or a command does not have.
    without_nulls(
        document,
        &[
            "discovery_ns",
            "xdp",
            "half",
            "deadline",
            "windows",
            "wakeups",
            "executions",
            "rates",
            "stream",
            "search",
            "stages",
            "extremes",
            "one_way",
            "gates",
        ],
    )
}

/// What was answered, late or lost. What was lost may be unknown of a stream: then it is what its sender counted, `None` of the log
/// of a receiver alone.
fn sent(summary: &Summary) -> Option<u64> {
    match &summary.stream {
        Some(stream) if !summary.knows_losses => stream.total.known_sent(),
        _ => Some(summary.counts.sent),
    }
}

fn metrics(summary: &Summary) -> Map<String, Value> {
    let member = |(metric, described): (&Metric, &Description)| {
        let mut document = statistics(described, metric.unit(), 1.0);
        if !summary.knows_losses {
            document["lost"] = Value::Null;
        }
        (metric.name().to_owned(), document)
    };
    summary.metrics.iter().map(member).collect()
}

fn half(summary: &Summary) -> Option<Value> {
    summary.metrics.get(&Metric::RoundTripDelay).map(|described| statistics(described, "ns", 2.0))
}

fn windows(summary: &Summary) -> Option<Value> {
    let metric = summary.metric.name();
    let row = |window: &Window| json!({ "start_ns": window.start_ns, metric: delays(&window.round_trip_delay) });
    let rows = || summary.windows.iter().map(row).collect::<Vec<_>>();
    summary.window_ns.map(|window_ns| json!({ "window_ns": window_ns, "rows": rows() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, logged, scheduled, stream_interval};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::facts::IntervalCounts;
    use crate::plan::Work;
    use crate::probe::Fate;
    use crate::schemas::check;
    use crate::units::Nanos;
    use serde_json::{Value, json};

    const HALF: Showing = Showing { half: true, every_metric: false, kept: true, wide: false, of_store: false };
    const USUAL: Showing = Showing { half: false, every_metric: false, kept: true, wide: false, of_store: false };

    fn summary(source: InMemory) -> Summary {
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.judging.window_ns = Some(Nanos::from_millis(10));
        options.judging.deadline_ns = Some(Nanos::from_micros(60));
        summarise(&source, &options).expect("few windows")
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn with_losses() -> Summary {
        let fates = [Fate::Answered, Fate::Lost, Fate::Answered, Fate::Late, Fate::SendFailed, Fate::NotSent];
        let row = |seq: u64| scheduled(seq, seq as i64 * 1_000, 3, 50 + seq as i64 % 7);
        summary(InMemory::of(EVERY_MS, (0..60).map(|seq| but(row(seq), fates[seq as usize % 6])).collect()))
    }

    #[test]
    fn one_run_is_a_summary_document_and_several_a_list() {
        let clean = summary(InMemory::of(CLOSED, (0..500).map(|seq| closed(seq, seq as i64 * 60, 50)).collect()));
        let nothing = summary(InMemory::of(CLOSED, Vec::new()));
        for one in [&clean, &nothing, &with_losses()] {
            check("summary", &render(std::slice::from_ref(one), USUAL));
            check("summary", &render(std::slice::from_ref(one), HALF));
        }
        let several = render(&[clean, nothing, with_losses()], HALF);
        check("summaries", &several);
        assert_eq!(parsed(&several)["summaries"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn losses_are_null_with_a_reason_and_counts_add_up() {
        let document = parsed(&render(&[with_losses()], USUAL));
        let counts = ["sent", "answered", "late", "lost", "send_failed", "not_sent"].map(|key| document[key].clone());
        assert_eq!(json!(counts), json!([40, 20, 10, 10, 10, 10]));
        let metrics = &document["metrics"];
        assert_eq!((&metrics["round_trip_delay"]["n"], &metrics["round_trip_delay"]["lost"]), (&json!(40), &json!(20)));
        assert_eq!((&metrics["response_time"]["n"], &metrics["response_time"]["lost"]), (&json!(60), &json!(40)));
        let p99 = metrics["round_trip_delay"]["quantiles"].as_array().and_then(|all| all.get(2)).expect("p99");
        assert_eq!((&p99["value"], &p99["reason"], &p99["supported"]), (&Value::Null, &json!("lost"), &json!(true)));
        let ratios = &document["ratios"];
        assert_eq!(ratios["loss_ratio"], json!(0.5));
        let ends = |name: &str| (ratios[name]["low"].as_f64().expect(name), ratios[name]["high"].as_f64().expect(name));
        let (low, high) = ends("loss_ratio_interval");
        assert!(0.2 < low && low < 0.5 && 0.5 < high && high < 0.8, "{ratios}");
        let missed = ratios["deadline_miss_ratio"].as_f64().expect("a deadline was asked for");
        let (low, high) = ends("deadline_miss_ratio_interval");
        assert!(low < missed && missed < high, "{ratios}");
        assert!(document.get("half").is_none());
    }

    #[test]
    fn what_was_sent_of_a_stream_with_unknown_losses_is_what_its_sender_counted() {
        let offered = IntervalCounts::Offered { packets: 625, refused: 0, skipped: 0 };
        let counted = IntervalCounts::Counted {
            polled: 312,
            delivered: 312,
            reordered: 0,
            duplicates: 0,
            outside_window: 0,
            socket_drops: None,
        };
        let of = |states_losses, seen: &[IntervalCounts]| {
            let mut source = logged(Vec::new(), true);
            source.manifest.kind = Kind::Stream;
            source.intervals = seen.iter().map(|seen| stream_interval(0, *seen)).collect();
            if let Work::Import(import) = &mut source.manifest.spec.work {
                (import.rows, import.states_losses, import.size_bytes) = (Kind::Stream, states_losses, Some(1_000));
            }
            let text = render(&[summary(source)], USUAL);
            check("summary", &text);
            let document = parsed(&text);
            ["sent", "answered", "lost"].map(|key| document[key].clone())
        };
        assert_eq!(json!(of(false, &[offered, counted])), json!([625, 312, null]));
        assert_eq!(json!(of(false, &[counted])), json!([null, 312, null]), "a receiver alone");
        assert_eq!(json!(of(true, &[offered, counted])), json!([312, 312, 0]), "the packets that are decided on");
    }

    #[test]
    fn a_run_without_probes_has_zero_counts_and_nulls() {
        let document = parsed(&render(&[summary(InMemory::of(CLOSED, Vec::new()))], USUAL));
        let round_trip = &document["metrics"]["round_trip_delay"];
        assert_eq!((&document["sent"], &round_trip["n"], &round_trip["mean"]), (&json!(0), &json!(0), &Value::Null));
        assert_eq!(document["ratios"]["loss_ratio"], Value::Null);
        assert_eq!(document["ratios"]["loss_ratio_interval"], Value::Null);
        assert_eq!(document["caveats"][0]["code"], json!("nothing-measured"));
    }

    #[test]
    fn half_halves_every_figure_and_nothing_else() {
        let rows = (0..500).map(|seq| closed(seq, seq as i64 * 60, 50 + seq as i64 % 3)).collect();
        let document = parsed(&render(&[summary(InMemory::of(CLOSED, rows))], HALF));
        let (whole, half) = (&document["metrics"]["round_trip_delay"], &document["half"]);
        for key in ["min", "mean", "stddev", "max"] {
            assert_eq!(whole[key].as_f64().map(|ns| ns / 2.0), half[key].as_f64(), "{key}");
        }
        assert_eq!((&whole["n"], &whole["effective_n"]), (&half["n"], &half["effective_n"]));
    }
}
