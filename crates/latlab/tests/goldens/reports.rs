//! `latlab report`: the data of figures, and refusals. Pages are checked by tests of the binary and in a browser.

use crate::{Case, case, lines_of};

pub(crate) fn cases() -> Vec<Case> {
    let recordings = [
        ("far", "forms/far", &["tail", "percentiles", "histogram", "over-time", "host-busy"][..]),
        ("wakeup", "old/1.3-wakeup", &["histogram"]),
        ("stream", "old/1.4-stream", &["rates"]),
    ];
    let of_recording = recordings.map(|(name, place, figures)| Case {
        name: format!("report/{name}"),
        inputs: vec![format!("recordings/{place} as x")],
        lines: lines_with(figures),
    });
    let experiments = [
        ("factors", &["forest", "shift", "box-plots"][..]),
        ("lost", &["forest", "tail"]),
        ("alone", &["box-plots"]),
        ("stream", &["box-plots"]),
    ];
    let of_experiment = experiments.map(|(name, figures)| Case {
        name: format!("report/experiment-{name}"),
        inputs: vec![format!("experiments/finished/{name} as x")],
        lines: lines_with(figures),
    });
    let refusals = case("report/refusals", &INPUTS, REFUSALS);
    let export = case("export", &EXPORTED, EXPORT);
    of_recording.into_iter().chain(of_experiment).chain([refusals, export]).collect()
}

/// The names of the figures, then the data of some.
fn lines_with(figures: &[&str]) -> Vec<String> {
    let data = figures.iter().map(|name| format!("report x --figure {name} --format csv -o -"));
    lines_of("report x --figure list").into_iter().chain(data).collect()
}

const EXPORTED: [&str; 5] = [
    "recordings/good/closed",
    "recordings/forms/stream-down",
    "recordings/old/1.11-values",
    "recordings/old/1.3-wakeup",
    "experiments/finished/alone as x",
];

const EXPORT: &str = "
export 1.11-values
export 1.11-values --format jsonl
export 1.11-values --format jitter
export 1.11-values --format hlog
export closed --format values --statistic mean --unit us
export closed --format values --statistic p99.9
export closed 1.3-wakeup
export closed 1.3-wakeup --kind wakeup --format values
export closed stream-down --format hlog
export closed --format hlog --metric response_time
export 1.11-values --format perfetto
export closed --format values --metric rtt
export closed --format values --statistic p999
export closed --unit us
";

const INPUTS: [&str; 4] =
    ["recordings/good/closed", "recordings/old/1.3-wakeup", "inputs/before", "experiments/finished/factors as x"];

const REFUSALS: &str = "
report
report nowhere
report before
report closed before
report closed closed
report closed 1.3-wakeup
report closed --figure forest
report closed --figure tial
report closed -o tail.svg
report closed --figure tail -o tail.pdf
report closed --figure tail -o tail.svg --format csv
report closed --format svg
report closed --group a=b
report x --by nothing
report x --metric wakeup_latency
report closed --metric rond_trip_delay
report closed --figure tail --metric response_time
report closed --figure tail -o tail.png
report closed --figure tail --format png
report closed --figure tail --one-way
write closed.html mine
report closed
report closed -o .
report closed --force
report closed
";
