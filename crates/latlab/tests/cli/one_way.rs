//! `latlab summary --one-way`: delays there and back, on one clock and on two whose offset is known.

use std::path::Path;

use latlab::probe::ProbeRecord;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, check_schema, contains};
use crate::lab::privileged;
use crate::store::{only_recording, open, recordings};

/// `one_way` of the summary of `recording`.
fn one_way(recording: &Path) -> Value {
    let ran = Latlab::new().arg("summary").arg(recording).line("--one-way --json").measured();
    check_schema(&ran.json(), "summary/1");
    ran.json()["one_way"].clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Seconds by which the clock of the far end is ahead.
const AHEAD_S: i64 = 1_000;

/// The true delays there and back in ns, between stamps of the kernel or of the programs.
fn truths(rows: &[ProbeRecord], by_kernel: bool) -> [Vec<f64>; 2] {
    let exchange = |row: &ProbeRecord| {
        let (kernel, ahead) = (row.kernel, AHEAD_S * 1_000_000_000);
        let [sent, received] =
            if by_kernel { [kernel.tx_software, kernel.rx_software] } else { [row.sent, row.received] };
        let [there, back] = if by_kernel {
            [kernel.reflector_rx_software, kernel.reflector_tx_software]
        } else {
            [row.reflector_received, row.reflector_sent]
        };
        let [there, back] = [there?, back?].map(|at| at.as_nanos() - ahead);
        Some([(there - sent?.as_nanos()) as f64, (received?.as_nanos() - back) as f64])
    };
    let both: Vec<[f64; 2]> = rows.iter().filter_map(exchange).collect();
    [0, 1].map(|way| both.iter().map(|delays| delays[way]).collect())
}

#[test]
fn the_truth_lies_within_the_bound_of_two_clocks() {
    if !privileged() {
        return;
    }
    let clocks = format!("--monotonic {AHEAD_S} --boottime {AHEAD_S}");
    let target = format!("cmd:unshare --time --fork {clocks} {BINARY} agent --stdio");
    for by_kernel in [true, false] {
        let stamps = if by_kernel { "--stamps kernel" } else { "" };
        let lab = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1"]);
        let ran = lab.line(&format!("-n 600 -i 1ms --warmup 0 {stamps}")).measured();
        let recording = only_recording(ran.directory());
        let found = one_way(&recording);
        let word = if by_kernel { "kernel" } else { "program" };
        assert_eq!((&found["stamps"], &found["one_clock"]), (&word.into(), &false.into()));
        let (_, rows) = open(&recording);
        for (name, truth) in ["forward_delay", "backward_delay"].into_iter().zip(truths(&rows, by_kernel)) {
            let delay = &found[name];
            assert_eq!((number(&delay["estimate"]["n"]) as usize, &found["without_bound"]), (truth.len(), &0.into()));
            assert!(truth.len() > 300, "{}", truth.len());
            let mean = truth.iter().sum::<f64>() / truth.len() as f64;
            let ends = [("min", f64::min as fn(f64, f64) -> f64), ("max", f64::max)];
            let ends = ends.map(|(key, of)| (key, truth.iter().copied().reduce(of).expect("delays")));
            for (key, truth) in ends.into_iter().chain([("mean", mean)]) {
                let [low, high] = ["low", "high"].map(|end| number(&delay[end][key]));
                assert!(low <= truth && truth <= high, "{name} {key}: {truth} not in [{low}, {high}]");
            }
        }
        let middle = number(&found["forward_delay"]["estimate"]["mean"]).round();
        let gates = [("<= 1h".to_owned(), "met"), (format!("<= {middle}ns"), "undecided"), ("> 1h".into(), "failed")];
        for (limit, state) in gates.into_iter().filter(|_| middle > 0.0) {
            let gate = format!("forward_delay mean {limit}");
            let line = format!("gate `{gate}` {state}: ");
            let summary = Latlab::new().arg("summary").arg(&recording).args(["--gate", &gate]);
            summary.stdout(contains(line)).start().exits_with_one_of(&[0, 1, 4]);
        }
    }
}

#[test]
fn on_one_clock_both_ways_are_the_round_trip() {
    for target in ["", "lab"].into_iter().filter(|target| target.is_empty() || privileged()) {
        let ran = Latlab::new().line(&format!("ping {target} -n 200 --warmup 0")).measured();
        let recording = only_recording(ran.directory());
        let found = one_way(&recording);
        assert_eq!((&found["one_clock"], &found["without_bound"]), (&true.into(), &0.into()));
        let ways = ["forward_delay", "backward_delay"].map(|way| number(&found[way]["estimate"]["mean"]));
        let (_, rows) = open(&recording);
        let less_dwell = |row: &ProbeRecord| {
            let round_trip = (row.received? - row.sent?).0;
            Some((round_trip - (row.reflector_sent? - row.reflector_received?).0) as f64)
        };
        let trips: Vec<f64> = rows.iter().filter_map(less_dwell).collect();
        let mean = trips.iter().sum::<f64>() / trips.len() as f64;
        assert!((ways[0] + ways[1] - mean).abs() < 1.0, "{ways:?} {mean}");
        let bound = number(&found["forward_delay"]["high"]["mean"]) - ways[0];
        assert!(0.0 < bound && bound < 1_000_000.0, "{bound}");
    }
}

#[test]
fn one_way_is_not_compared() {
    let ran = Latlab::new().line("ping -n 100 -s 64,128 --warmup 0").measured();
    let hint = "latlab summary --one-way";
    Latlab::new()
        .arg("compare")
        .args(recordings(ran.directory()))
        .line("--by size --metric forward_delay")
        .stderr(contains(hint))
        .failure(2);
}
