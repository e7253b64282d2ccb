//! `latlab summary` and `latlab list` of recordings in testdata.

use crate::{Case, case, directories, lines_of};

pub(crate) fn cases() -> Vec<Case> {
    let closed = &["recordings/good/closed"][..];
    let scheduled = &["recordings/good/scheduled"][..];
    let wakeup = &["recordings/old/1.3-wakeup"][..];
    let stream = &["recordings/old/1.4-stream"][..];
    let search = &["recordings/old/1.5-search"][..];
    let kinds = [closed, scheduled, wakeup, stream, search].concat();
    vec![
        each(),
        Case { name: "summary/old".into(), inputs: named(&["old"], ""), lines: lines_of(OLD) },
        Case { name: "summary/forms".into(), inputs: named(&["forms"], ""), lines: forms() },
        damaged(),
        case("summary/ping", &[closed, scheduled].concat(), PING),
        case("summary/wakeup", &[wakeup, &["recordings/forms/with-wakeup", "recordings/forms/break"]].concat(), WAKEUP),
        case("summary/stream", &[stream, search, &NETPERF].concat(), STREAM),
        case(
            "explain",
            &[
                &kinds[..],
                &["recordings/forms/with-wakeup", "recordings/old/1.13-traced", "recordings/old/1.13-stamped"],
            ]
            .concat(),
            EXPLAIN,
        ),
        case("summary/plots", &kinds, PLOTS),
        case("summary/gates", &kinds, GATES),
        case("summary/several", &[&kinds[..], &["recordings/old/1.5-tcp"]].concat(), SEVERAL),
        case("compare/forms", &COMPARED, COMPARE),
        Case { name: "list".into(), inputs: named(&["good", "old", "forms", "bad"], "store/"), lines: lines_of(LIST) },
    ]
}

/// Every recording is summarised, and its document is valid.
fn each() -> Case {
    let folders = ["good", "old", "forms"];
    let names = folders.iter().flat_map(|folder| recordings(folder));
    let lines = names.map(|name| format!("valid summary {name} --json")).collect();
    Case { name: "summary/each".into(), inputs: named(&folders, ""), lines }
}

/// The text of every form, and delays of one way.
fn forms() -> Vec<String> {
    let texts = recordings("forms").into_iter().map(|name| format!("summary {name}"));
    texts.chain(lines_of(ONE_WAY)).collect()
}

/// Damaged recordings are refused in the same words by every command.
fn damaged() -> Case {
    let copies = recordings("bad").into_iter().map(|name| format!("recordings/bad/{name} as again/{name}"));
    let lines = recordings("bad").into_iter().flat_map(|name| {
        [format!("summary {name}"), format!("~ summary {name} --json"), format!("~ compare {name} again/{name}")]
    });
    Case {
        name: "summary/damaged".into(),
        inputs: named(&["bad"], "").into_iter().chain(copies).collect(),
        lines: lines.chain(["list --store .".to_owned()]).collect(),
    }
}

/// The recordings in `folders` of testdata, as inputs below `place`.
fn named(folders: &[&str], place: &str) -> Vec<String> {
    let inputs = folders.iter().flat_map(|folder| {
        let names = recordings(folder).into_iter();
        names.map(move |name| format!("recordings/{folder}/{name} as {place}{name}"))
    });
    inputs.collect()
}

/// The recordings in a folder of testdata, by name.
fn recordings(folder: &str) -> Vec<String> {
    directories(&format!("recordings/{folder}"))
}

const NETPERF: [&str; 3] =
    ["recordings/forms/stream-down", "recordings/forms/stream-probes", "recordings/forms/stream-tcp"];

const COMPARED: [&str; 7] = [
    "recordings/forms/loaded",
    "recordings/forms/netload",
    "recordings/forms/lab",
    "recordings/forms/far",
    "recordings/forms/tcp",
    "recordings/forms/poisson",
    "recordings/forms/refused",
];

const COMPARE: &str = "
compare --by load loaded netload far tcp
valid compare --by load loaded netload far tcp --json
compare --by target lab far
compare --by transport tcp netload
compare --by schedule poisson tcp
compare --by tag:build loaded tcp
compare --by setting:timer-slack loaded far
compare --by setting:mtu lab tcp
compare --by wait lab tcp
compare --by source-port lab tcp
compare --by protocol lab tcp
compare --by size poisson tcp refused
compare loaded netload far tcp --statistic p50
summary loaded netload lab far tcp poisson refused
~ summary loaded netload lab far tcp poisson refused --half --no-intervals
";

const ONE_WAY: &str = "
summary far
~ summary far --one-way --gate 'forward_delay p90 <= 64us' --gate 'backward_delay mean <= 1ms'
summary lab far --one-way
valid:one_way summary far --one-way --json
";

const OLD: &str = "
summary 1.0-finished
~ summary 1.1-finished
summary 1.1-died
~ summary 1.0-died
~ summary 1.6-died
~ summary 1.9-died
~ summary 1.10-died
summary 1.10-finished
~ summary 1.6-finished
~ summary 1.7-finished
~ summary 1.8-finished
~ summary 1.8-hosts
~ summary 1.9-finished
summary 1.2-finished
summary 1.4-stream-died
~ summary 1.6-stream-died
summary 1.5-search-died
summary 1.5-tcp
summary 1.7-dds
summary 1.8-xdp
summary 1.11-import
summary 1.11-import-stream
summary 1.11-counts
summary 1.11-values
summary 1.11-values --json
";

const PING: &str = "
summary closed
~ summary closed -q
~ summary closed -v
~ summary closed --half
~ summary closed --one-way
~ summary closed --window 5ms
~ summary closed --deadline 50us
~ summary closed --quantiles 0.01,0.25,0.5,0.75,0.9,0.999
~ summary closed --no-intervals
~ tty summary closed
~ NO_COLOR=1 tty summary closed
~ COLUMNS=50 tty summary closed
~ COLUMNS=140 tty summary closed
summary closed --json
~ tty summary closed -v --json
~ summary closed -q --json
~ summary closed --half --json
~ summary closed --deadline 50us --json
~ summary closed --no-intervals --json
summary closed --extremes
valid:extremes summary closed --extremes --json
valid:windows summary closed --window 50ms --json
summary scheduled
~ summary scheduled -v
~ summary scheduled --half
~ summary scheduled --window 5ms
~ summary scheduled --deadline 50us
~ tty summary scheduled --half
summary scheduled --quantiles 0.5,0.99 --half --window 2ms --deadline 4us -v
summary scheduled --json
~ summary scheduled --half --json
";

const WAKEUP: &str = "
summary 1.3-wakeup
~ summary 1.3-wakeup -q
~ summary 1.3-wakeup -v
~ summary 1.3-wakeup --window 100ms
~ summary 1.3-wakeup --deadline 70us
~ summary 1.3-wakeup --quantiles 0.25,0.5,0.99
~ summary 1.3-wakeup --no-intervals
~ summary 1.3-wakeup --half --window=1s
~ summary 1.3-wakeup --gate 'p50 <= 50us'
~ summary 1.3-wakeup --gate 'wakeup_latency max <= 5ms'
~ summary 1.3-wakeup --gate 'loss_ratio <= 1%'
~ tty summary 1.3-wakeup
summary 1.3-wakeup --json
~ summary 1.3-wakeup --deadline 70us --json
summary break
~ summary break --window 10ms
~ summary break --gate 'max <= 100us'
~ summary break --gate 'broke <= 0'
summary with-wakeup
~ summary with-wakeup -v
~ summary with-wakeup --window 100ms
~ summary with-wakeup --deadline 100us --half
~ summary with-wakeup --gate 'p50 <= 1us'
";

const EXPLAIN: &str = "
explain 1.13-stamped
~ explain 1.13-stamped -v
explain 1.13-stamped --worst 2 --json
explain closed
explain with-wakeup
explain 1.13-traced
explain 1.13-traced --worst 1 --json
explain 1.3-wakeup
explain 1.4-stream
";

const STREAM: &str = "
summary 1.4-stream
~ summary 1.4-stream -q
~ summary 1.4-stream -v
~ summary 1.4-stream --window 200ms
~ summary 1.4-stream --quantiles 0.25,0.5,0.99
~ summary 1.4-stream --deadline 1ms
~ summary 1.4-stream --half
~ summary 1.4-stream --no-intervals
~ summary 1.4-stream --gate 'loss_ratio <= 1%'
~ summary 1.4-stream --gate 'delivered_rate p50 >= 1Mbit/s'
~ summary 1.4-stream --gate 'delivered_rate min >= 1Gbit/s'
~ summary 1.4-stream --gate 'mean >= 10kpps'
~ tty summary 1.4-stream
summary 1.4-stream --json
~ summary 1.4-stream --window 200ms --json
summary 1.5-search
~ summary 1.5-search -v
~ summary 1.5-search --window 200ms
~ summary 1.5-search --gate 'loss_ratio <= 1%'
~ summary 1.5-search --gate 'found_rate >= 1Gbit/s'
~ summary 1.5-search --gate 'round_trip_delay p50 <= 1us'
~ tty summary 1.5-search
summary 1.5-search --json
summary stream-down
summary stream-probes
summary stream-tcp
summary stream-down stream-probes
";

const PLOTS: &str = "
LC_ALL=C.UTF-8 summary closed --no-intervals --plot
LC_ALL=C summary closed --no-intervals --plot
LC_ALL=C.UTF-8 summary closed scheduled 1.3-wakeup 1.4-stream --no-intervals --plot --ascii
COLUMNS=40 LC_ALL=C.UTF-8 tty summary closed scheduled --no-intervals --plot
summary closed --plot --json
summary closed --ascii";

const GATES: &str = "
summary closed
~ summary closed --gate 'p50 <= 0ns'
~ summary closed --gate 'p50 <= 1h'
~ summary closed --gate 'round_trip_delay mean < 1h'
~ summary closed --gate 'reflector_dwell max <= 0ns'
~ summary closed --gate 'stddev <= 0ns' -q
~ summary closed --gate 'loss_ratio < 0%'
~ summary closed --gate 'loss_ratio <= 99%'
~ summary closed --gate 'p99.99 <= 1us'
~ summary closed --gate 'p99.99 <= 1h'
~ summary closed --gate 'p99.6 <= 1h' --gate-strict
~ summary closed --gate 'p99.6 <= 1h' -q
~ summary closed --gate 'p99.99 >= 1us'
~ summary closed --gate 'p99.6 <= 1us'
~ summary closed --gate 'p99.6 <= 1h'
~ summary closed --gate 'p50 <= 1ns' --gate 'p50 <= 1h' --gate 'p99.6 <= 1h'
~ summary closed --gate 'deadline_miss_ratio <= 1%'
~ summary closed --gate 'deadline_miss_ratio <= 1%' --deadline 45us
~ tty summary closed --gate 'p50 <= 0ns'
valid:gates summary closed --gate 'p50 <= 0ns' --gate 'max >= 1h' --json
valid:gates summary scheduled --gate 'response_time p99 > 24h' --json
valid:gates summary closed --gate 'loss_ratio <= 0.1%' --json
valid:gates,caveats summary closed --gate 'p99.6 <= 1h' --json
summary closed 1.3-wakeup
~ summary closed 1.3-wakeup --gate 'p50 <= 50us'
~ summary closed 1.3-wakeup --gate 'p99.99 <= 1h'
valid summary closed 1.3-wakeup --gate 'p50 <= 50us' --json
";

const SEVERAL: &str = "
summary closed scheduled
~ summary closed scheduled -v
~ summary closed scheduled -q
~ summary closed scheduled --half
~ summary closed scheduled --window 5ms --deadline 50us --quantiles 0.5,0.9
~ summary closed scheduled --no-intervals
~ tty summary closed scheduled
~ COLUMNS=140 tty summary closed scheduled
~ summary closed scheduled --gate 'loss_ratio <= 1%'
~ summary closed scheduled 1.5-tcp
summary closed closed
summary 1.4-stream 1.4-stream
summary 1.4-stream 1.5-search
summary 1.3-wakeup 1.3-wakeup
summary closed 1.3-wakeup 1.4-stream 1.5-search
valid summary closed scheduled --json
valid summary closed 1.3-wakeup 1.4-stream 1.5-search --json
";

const LIST: &str = "
list --store store
~ LATLAB_STORE=store list
~ tty list --store store
COLUMNS=140 tty list --store store --kind wakeup
COLUMNS=40 tty list --store store --kind stream
list --store store --sort size --kind wakeup
list --store store --since 2026-11-22 --kind stream --json
valid list --store store --json
list --store store --before 2026-11-22 --prune
list
list --store missing
list --store missing --json
LATLAB_STORE=missing list
";
