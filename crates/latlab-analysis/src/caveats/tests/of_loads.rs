//! Caveats of loads that were not achieved.

use crate::diagnostics::Severity;
use crate::facts::load::{BYTES_PER_SECOND, CPUS, SHARE};
use crate::facts::{LoadReport, StreamReport};
use crate::units::Nanos;
use crate::unreached_loads;

fn cpu(offered: f64, achieved: f64, five_seconds: Option<[f64; 2]>) -> LoadReport {
    LoadReport {
        load: "cpu=80%".into(),
        kind: "cpu".into(),
        at: "local".into(),
        unit: SHARE.into(),
        offered: Some(offered),
        achieved: Some(achieved),
        min: Some(0.5),
        max: Some(1.0),
        five_seconds,
        measured_ns: Some(Nanos::from_secs(10)),
        period_ns: Some(Nanos::from_micros(16_180)),
        cpus: vec![0, 1],
        ended_early: None,
        stream: None,
    }
}

fn memory(achieved: f64) -> LoadReport {
    LoadReport { kind: "mem".into(), unit: BYTES_PER_SECOND.into(), ..cpu(2e9, achieved, None) }
}

#[test]
fn a_load_is_judged_over_five_seconds_if_it_lasted_as_long() {
    let slow = LoadReport { period_ns: Some(Nanos::from_secs(1)), ..cpu(0.5, 0.5, Some([0.46, 0.54])) };
    let heaters = LoadReport { unit: CPUS.into(), kind: "heaters".into(), ..cpu(30.0, 1.9, Some([1.8, 2.0])) };
    let short = LoadReport { measured_ns: Some(Nanos::from_millis(900)), ..cpu(0.8, 0.7, None) };
    for (load, caveat) in [
        (cpu(0.8, 0.8, Some([0.791, 0.809])), false),
        (cpu(0.8, 0.8, Some([0.785, 0.805])), true),
        (cpu(0.8, 0.8, Some([0.795, 0.815])), true),
        (cpu(0.8, 0.809, None), false),
        (cpu(0.8, 0.62, None), true),
        (slow, false),
        (heaters, false),
        (short, false),
        (memory(1.95e9), false),
        (memory(1.85e9), true),
    ] {
        assert_eq!(unreached_loads(std::slice::from_ref(&load)).len(), usize::from(caveat), "{load:?}");
    }
}

#[test]
fn the_caveat_has_the_achieved_rate() {
    let [caveat] = &unreached_loads(&[cpu(0.8, 0.623, Some([0.601, 0.641]))])[..] else { panic!("not reached") };
    assert_eq!(caveat.message, "the load `cpu=80%` at `local` reached 62.3 %, 60.1 % to 64.1 % over 5 s");
    assert_eq!((caveat.code.as_str(), caveat.severity), ("load-unreached", Severity::Warning));
    let [caveat] = &unreached_loads(&[memory(1.5e9)])[..] else { panic!("not reached") };
    assert!(caveat.message.ends_with("reached 1.50 GB/s"), "{}", caveat.message);
}

#[test]
fn a_load_that_died_has_a_caveat() {
    let silent = LoadReport { achieved: None, five_seconds: None, measured_ns: None, ..cpu(0.8, 0.8, None) };
    let endless = LoadReport { kind: "net".into(), offered: None, load: "net=max".into(), ..silent.clone() };
    let killed = "its process ended: killed by SIGKILL";
    for (dead, reason) in [
        (silent.clone(), ""),
        (endless.clone(), ""),
        (silent.that_ended_early(killed), ": its process ended: killed by SIGKILL"),
        (endless.that_ended_early(killed), ": its process ended: killed by SIGKILL"),
    ] {
        let [caveat] = &unreached_loads(std::slice::from_ref(&dead))[..] else { panic!("nothing of {dead:?}") };
        let expected = format!("the load `{}` at `local` ended before the run did{reason}", dead.load);
        assert_eq!((caveat.code.as_str(), &caveat.message), ("load-unreached", &expected));
    }
}

#[test]
fn a_network_load_that_was_too_short_to_judge_has_no_caveat() {
    let stream = StreamReport {
        size_bytes: 1_400,
        wire: false,
        offered_bps: Some(1e6),
        searched_bps: None,
        search_trials: 0,
        sent: None,
        delivered: None,
        windows: 0,
        measured_ns: None,
        sent_packets: 3,
        skipped_packets: 0,
        refused_packets: 0,
        delivered_packets: 3,
        lost_packets: 0,
        reordered_packets: 0,
        duplicate_packets: 0,
        socket_drops: Some(0),
    };
    let endless = StreamReport { offered_bps: None, ..stream.clone() };
    for short in
        [stream.as_load("net=1Mbit/s".into(), "local".into()), endless.as_load("net=max".into(), "peer".into())]
    {
        assert_eq!(unreached_loads(std::slice::from_ref(&short)), [], "{short:?}");
    }
}
