//! `latlab summary` and `latlab list` of recordings in testdata.

use crate::{Case, case, directories, lines_of};

pub(crate) fn cases() -> Vec<Case> {
    let each = ["good", "old", "forms"]
        .into_iter()
        .flat_map(|folder| recordings(folder).into_iter().map(move |name| (folder, name)));
    let each = each.map(|(folder, name)| {
        let lines = format!("summary {name}\nsummary {name} -v\nsummary {name} -q\nsummary {name} --json");
        case(&format!("summary/each/{name}"), &[&format!("recordings/{folder}/{name}")], &lines)
    });
    let damaged = recordings("bad").into_iter().map(|name| {
        let lines = format!("summary {name}\nsummary {name} --json\ncompare {name} again/{name}\nlist --store .");
        case(
            &format!("summary/damaged/{name}"),
            &[&format!("recordings/bad/{name}"), &format!("recordings/bad/{name} as again/{name}")],
            &lines,
        )
    });
    let all: Vec<String> = ["good", "old", "forms", "bad"]
        .into_iter()
        .flat_map(|folder| {
            recordings(folder).into_iter().map(move |name| format!("recordings/{folder}/{name} as store/{name}"))
        })
        .collect();
    let lists = Case { name: "list".into(), inputs: all, lines: lines_of(LIST) };
    let closed = &["recordings/good/closed"][..];
    let scheduled = &["recordings/good/scheduled"][..];
    let wakeup = &["recordings/old/1.3-wakeup"][..];
    let stream = &["recordings/old/1.4-stream"][..];
    let search = &["recordings/old/1.5-search"][..];
    let others = [
        case("summary/closed", closed, &forms("closed", PING)),
        case("summary/scheduled", scheduled, &forms("scheduled", PING)),
        case("summary/wakeup", wakeup, &forms("1.3-wakeup", WAKEUP)),
        case("summary/stream", stream, &forms("1.4-stream", STREAM)),
        case("summary/search", search, &forms("1.5-search", STREAM)),
        case("summary/plots", &[closed, scheduled, wakeup, stream].concat(), PLOTS),
        case("summary/gates", &[closed, wakeup, stream, search].concat(), GATES),
        case("summary/several", &[closed, scheduled, &["recordings/old/1.5-tcp"]].concat(), SEVERAL),
        case("summary/kinds", &[closed, wakeup, stream, search].concat(), KINDS),
        case("summary/colour", &[closed, scheduled, wakeup, stream, search].concat(), COLOUR),
        case("summary/beside-wake-ups", &["recordings/forms/with-wakeup"], &forms("with-wakeup", BESIDE_WAKE_UPS)),
        case(
            "summary/late-trace",
            &["recordings/forms/break"],
            "summary break --window 10ms\nsummary break --gate 'max <= 100us'\nsummary break --gate 'broke <= 0'",
        ),
        case(
            "summary/streams-like-netperf",
            &NETPERF,
            "summary stream-down --like netperf-udp-stream\nsummary stream-probes --like netperf-udp-stream\nsummary stream-tcp --like netperf-udp-stream\nsummary stream-down stream-probes --like netperf-udp-stream",
        ),
        case("compare/forms", &COMPARED, COMPARE),
        lists,
    ];
    each.chain(damaged).chain(others).collect()
}

const PLOTS: &str = "
LC_ALL=C.UTF-8 summary closed --no-intervals --plot
LC_ALL=C summary closed --no-intervals --plot
LC_ALL=C.UTF-8 summary closed scheduled 1.3-wakeup 1.4-stream --no-intervals --plot --ascii
COLUMNS=40 LC_ALL=C.UTF-8 tty summary closed scheduled --no-intervals --plot
summary closed --plot --json
summary closed --ascii";

/// The recordings in a folder of testdata, by name.
fn recordings(folder: &str) -> Vec<String> {
    directories(&format!("recordings/{folder}"))
}

/// `summary` of `recording` with each line of `options`.
fn forms(recording: &str, options: &str) -> String {
    lines_of(options).iter().map(|options| format!("summary {recording} {options}\n")).collect()
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
compare --by load loaded netload far tcp --json
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
summary loaded netload lab far tcp poisson refused --half --no-intervals
";

const PING: &str = "
--half
--half --json
--window 5ms
--window 5ms --json
--deadline 50us
--deadline 50us --json
--quantiles 0.01,0.25,0.5,0.75,0.9,0.999
--quantiles 0.5,0.99 --half --window 2ms --deadline 4us -v
--no-intervals
--no-intervals --json
-v --json
-q --json
";

const BESIDE_WAKE_UPS: &str = "
--window 100ms
--window 100ms --json
--deadline 100us --half
--gate 'p50 <= 1us'
";

const WAKEUP: &str = "
--window 100ms
--window 100ms --json
--deadline 70us
--deadline 70us --json
--quantiles 0.25,0.5,0.99
--no-intervals
";

const STREAM: &str = "
--window 200ms
--window 200ms --json
--quantiles 0.25,0.5,0.99
--like netperf-udp-stream
--like netperf-udp-stream --json
--deadline 1ms
--half
--no-intervals
";

const GATES: &str = "
summary closed --gate 'p50 <= 0ns'
summary closed --gate 'p50 <= 1h'
summary closed --gate 'p50 <= 0ns' --gate 'max >= 1h' --json
summary closed --gate 'p50 <= 1h' --json
summary closed --gate 'round_trip_delay mean < 1h'
summary closed --gate 'reflector_dwell max <= 0ns'
summary closed --gate 'stddev <= 0ns' -q
summary closed --gate 'loss_ratio < 0%'
summary closed --gate 'loss_ratio <= 0.1%' --json
summary closed --gate 'loss_ratio <= 99%'
summary closed --gate 'p99.99 <= 1us'
summary closed --gate 'p99.99 <= 1h'
summary closed --gate 'p99.6 <= 1h' --gate-strict
summary closed --gate 'p99.6 <= 1h' --json
summary closed --gate 'p99.6 <= 1h' -q
summary closed --gate 'p99.99 >= 1us'
summary closed --gate 'p99.6 <= 1us'
summary closed --gate 'p99.6 <= 1h'
summary closed --gate 'p50 <= 1ns' --gate 'p50 <= 1h' --gate 'p99.6 <= 1h'
summary closed --gate 'deadline_miss_ratio <= 1%'
summary closed --gate 'deadline_miss_ratio <= 1%' --deadline 45us
summary 1.3-wakeup --gate 'p50 <= 50us'
summary 1.3-wakeup --gate 'wakeup_latency max <= 5ms'
summary 1.4-stream --gate 'loss_ratio <= 1%'
summary 1.4-stream --gate 'delivered_rate p50 >= 1Mbit/s'
summary 1.4-stream --gate 'delivered_rate min >= 1Gbit/s'
summary 1.4-stream --gate 'mean >= 10kpps'
summary 1.5-search --gate 'loss_ratio <= 1%'
summary 1.5-search --gate 'found_rate >= 1Gbit/s'
summary 1.5-search --gate 'round_trip_delay p50 <= 1us'
summary closed 1.3-wakeup --gate 'p50 <= 50us'
summary closed 1.3-wakeup --gate 'p50 <= 50us' --json
summary closed 1.3-wakeup --gate 'p99.99 <= 1h'
summary 1.3-wakeup --gate 'loss_ratio <= 1%'
";

const SEVERAL: &str = "
summary closed scheduled
summary closed scheduled -v
summary closed scheduled -q
summary closed scheduled --half
summary closed scheduled --json
summary closed scheduled 1.5-tcp
summary closed closed
summary closed scheduled --window 5ms --deadline 50us --quantiles 0.5,0.9
summary closed scheduled --no-intervals
summary closed scheduled --gate 'loss_ratio <= 1%'
";

const KINDS: &str = "
summary closed 1.3-wakeup
summary 1.4-stream 1.4-stream
summary 1.4-stream 1.5-search
summary 1.3-wakeup 1.3-wakeup
summary closed 1.3-wakeup 1.4-stream 1.5-search
summary closed 1.3-wakeup 1.4-stream 1.5-search --json
";

const COLOUR: &str = "
tty summary closed
tty summary scheduled --half -v
tty summary closed scheduled
tty summary 1.3-wakeup
tty summary 1.4-stream
tty summary 1.5-search
NO_COLOR=1 tty summary closed
COLUMNS=50 tty summary closed
COLUMNS=140 tty summary closed
COLUMNS=140 tty summary closed scheduled
tty summary closed --gate 'p50 <= 0ns'
tty summary missing
tty summary closed --json --no-intervals
";

const LIST: &str = "
list --store store
list --store store --json
LATLAB_STORE=store list
tty list --store store
COLUMNS=140 tty list --store store
COLUMNS=40 tty list --store store --kind stream
list --store store --sort size --kind wakeup
list --store store --since 2026-11-22 --kind stream --json
list --store store --before 2026-11-22 --prune
list
list --store missing
list --store missing --json
LATLAB_STORE=missing list
";
